"""A small stand-in for vLLM 0.32, as far as its documentation describes what we use: package and HTTP server.

Its engine is a transformers model that draws with our own sampler; tensors that would travel from GPU to GPU are handed
over as they are. Fields and calls that the documentation does not have are refused.
"""

from __future__ import annotations

import json
import queue
import sys
import threading
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file
from torch import Tensor

from text2grad.models.loading import load_model, load_tokenizer
from text2grad.rollout.sampling import sample

WIRES: dict[int, queue.Queue[list[Tensor]]] = {}  # by port: what NCCL would carry


@dataclass
class SamplingParams:
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    max_tokens: int = 16
    stop_token_ids: list[int] = field(default_factory=list)
    logprobs: int | None = None
    seed: int | None = None
    detokenize: bool = True


class Engine:
    """A model with the weights it was given, and a prefix cache that must be emptied when they change."""

    def __init__(self, folder: Path, logprobs_mode: str = "processed_logprobs") -> None:
        self.model = load_model(folder).eval()
        for parameter in self.model.parameters():
            torch.nn.init.normal_(parameter)  # useless until weights come
        self.mode = logprobs_mode
        self.calls: list[str] = []
        self.stale = False
        self.asked: list[SamplingParams] = []
        self.aborted = False
        self._port: int | None = None
        self._lock = threading.Lock()

    def draw(self, prompt: list[int], params: SamplingParams) -> SimpleNamespace:
        """A `CompletionOutput`; its text is nonsense, since nobody may look at it."""
        assert not self.stale, "the prefix cache still knows the old weights"
        with self._lock:
            self.asked.append(params)
            uniforms = torch.from_numpy(np.random.default_rng(params.seed).random((1, params.max_tokens)))
            (ids,), scored = sample(
                self.model, [prompt], uniforms, params.temperature, params.stop_token_ids, 0, return_logprobs=True
            )
            at = params.temperature if self.mode == "processed_logprobs" else 1.0
            with torch.no_grad():
                logits = self.model(torch.tensor([[*prompt, *ids]])).logits[0, len(prompt) - 1 : -1] / at
        assert scored is not None
        drawn = scored[0] if self.mode == "processed_logprobs" else None
        table = logits.log_softmax(-1)
        logprobs = []
        for t, token in enumerate(ids):
            best = table[t].topk(params.logprobs or 0)
            step = {int(i): SimpleNamespace(logprob=float(v)) for v, i in zip(*best, strict=True)}
            step[token] = SimpleNamespace(logprob=drawn[t] if drawn else float(table[t, token]))
            logprobs.append(step)
        reason = "stop" if ids[-1] in params.stop_token_ids else "length"
        return SimpleNamespace(
            text="never look", token_ids=ids, logprobs=logprobs, finish_reason="abort" if self.aborted else reason
        )

    def init(self, init_info: dict[str, Any]) -> None:
        self.calls.append("init")
        self._port = init_info.get("master_port")

    def start(self) -> None:
        self.calls.append("start")

    def update(self, update_info: dict[str, Any]) -> None:
        assert self.calls[-1] == "start"
        self.calls.append("update")
        tensors = update_info["ipc_handles"] if self._port is None else WIRES[self._port].get(timeout=5)
        mine = dict(self.model.named_parameters())
        if set(update_info["names"]) != set(mine):
            raise ValueError("other names")
        with torch.no_grad():
            for name, shape, tensor in zip(update_info["names"], update_info["shapes"], tensors, strict=True):
                assert list(tensor.shape) == shape
                mine[name].copy_(tensor)
        self.stale = True

    def finish(self) -> None:
        assert self.calls[-1] == "update"
        self.calls.append("finish")


class LLM:
    """The offline engine, with the arguments and calls that we use."""

    last: LLM

    def __init__(
        self,
        model: str,
        *,
        dtype: str,
        device_ids: list[int],
        gpu_memory_utilization: float,
        max_model_len: int,
        logprobs_mode: str,
        weight_transfer_config: WeightTransferConfig,
    ) -> None:
        assert weight_transfer_config.backend == "ipc"
        self.settings = {"dtype": dtype, "memory": gpu_memory_utilization, "longest": max_model_len, "gpu": device_ids}
        self.engine = Engine(Path(model), logprobs_mode)
        LLM.last = self

    def generate(
        self, prompts: list[dict[str, list[int]]], sampling_params: list[SamplingParams], *, use_tqdm: bool = True
    ) -> list[SimpleNamespace]:
        assert all(not params.detokenize for params in sampling_params)
        pairs = zip(prompts, sampling_params, strict=True)
        return [SimpleNamespace(outputs=[self.engine.draw(p["prompt_token_ids"], params)]) for p, params in pairs]

    def init_weight_transfer_engine(self, request: dict[str, Any]) -> None:
        self.engine.init(request["init_info"])

    def start_weight_update(self) -> None:
        self.engine.start()

    def update_weights(self, request: dict[str, Any]) -> None:
        self.engine.update(request["update_info"])

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        self.engine.finish()

    def reset_prefix_cache(self) -> bool:
        self.engine.stale = False
        return True


@dataclass
class WeightTransferConfig:
    backend: str = "nccl"


@dataclass(frozen=True)
class ParamMeta:
    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]


class WeightSource(ABC):
    @abstractmethod
    def metadata(self) -> list[ParamMeta]: ...

    @abstractmethod
    def __iter__(self) -> Iterator[tuple[str, Tensor]]: ...


@dataclass
class IPCTrainerInitInfo:
    rank: int = field(kw_only=True)
    packed: bool = False


@dataclass
class NCCLTrainerInitInfo:
    master_address: str
    master_port: int
    world_size: int
    rank: int = field(kw_only=True)
    packed: bool = True


class HTTPVLLMWeightSyncClient:
    def __init__(self, base_url: str, timeout: float = 300) -> None:
        self.base_url, self.timeout = base_url, timeout

    def _post(self, path: str, body: dict[str, Any] | None = None) -> None:
        request = urllib.request.Request(f"{self.base_url}/{path}", json.dumps(body or {}).encode())
        try:
            urllib.request.urlopen(request, timeout=5).close()
        except urllib.error.HTTPError as error:
            error.close()  # the real client has read its answer whole before it raises
            raise

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        self._post("init_weight_transfer_engine", {"init_info": init_info})

    def start_weight_update(self) -> None:
        self._post("start_weight_update")

    def update_weights(self, update_info: dict[str, Any]) -> None:
        self._post("update_weights", {"update_info": update_info})

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        self._post("finish_weight_update")


class Transfer:
    """The trainer's side: what was announced must be what is sent, element for element."""

    def __init__(self, info: Any, client: Any, source: WeightSource) -> None:
        self.info, self.client, self.source = info, client, source
        if isinstance(info, NCCLTrainerInitInfo):
            assert info.world_size == 2
            WIRES[info.master_port] = queue.Queue()
        client.init_weight_transfer_engine(asdict(info))

    def send_weights(self) -> None:
        announced = self.source.metadata()
        pairs = list(self.source)
        assert [(m.name, m.dtype, m.shape) for m in announced] == [(n, t.dtype, tuple(t.shape)) for n, t in pairs]
        assert not any(tensor.requires_grad for _, tensor in pairs)
        body: dict[str, Any] = {
            "names": [name for name, _ in pairs],
            "dtype_names": [str(t.dtype).removeprefix("torch.") for _, t in pairs],
            "shapes": [list(t.shape) for _, t in pairs],
        }
        self.client.start_weight_update()
        tensors = [tensor.clone() for _, tensor in pairs]
        if isinstance(self.info, NCCLTrainerInitInfo):
            WIRES[self.info.master_port].put(tensors)
        else:
            body["ipc_handles"] = tensors
        self.client.update_weights(body)
        self.client.finish_weight_update()


class WeightTransferTrainerFactory:
    @staticmethod
    def trainer_init(init_info: Any, *, client: Any, source: WeightSource | None = None) -> Transfer:
        assert source is not None
        return Transfer(init_info, client, source)


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `import vllm` find the stand-in until the test ends."""
    transfer = "vllm.distributed.weight_transfer"
    contents: dict[str, list[Any]] = {
        "vllm": [LLM, SamplingParams],
        "vllm.config": [WeightTransferConfig],
        "vllm.distributed": [],
        transfer: [HTTPVLLMWeightSyncClient, ParamMeta, WeightSource, WeightTransferTrainerFactory],
        f"{transfer}.ipc_engine": [IPCTrainerInitInfo],
        f"{transfer}.nccl_engine": [NCCLTrainerInitInfo],
        "vllm.utils": [],
        "vllm.utils.network_utils": [],
    }
    for name, members in contents.items():
        module = ModuleType(name)
        for member in members:
            setattr(module, member.__name__, member)
        monkeypatch.setitem(sys.modules, name, module)
    network: Any = sys.modules["vllm.utils.network_utils"]
    network.get_ip, network.get_open_port = lambda: "127.0.0.1", lambda: len(WIRES) + 1
    monkeypatch.delitem(sys.modules, "text2grad.rollout.vllm.engine", raising=False)
    monkeypatch.setenv("VLLM_ALLOW_INSECURE_SERIALIZATION", "0")


class Server:
    """`vllm serve`: models, tokenize, completions, and the routes of a weight update in development mode."""

    def __init__(
        self, folder: Path, logprobs_mode: str = "processed_logprobs", dev_mode: bool = True, port: int = 0
    ) -> None:
        self.folder, self.engine = folder, Engine(folder, logprobs_mode)
        self.tokenizer = load_tokenizer(folder)
        self.max_model_len = 512
        self.dev_mode = dev_mode
        self.lora_updating = True
        self.down = self.aborts = False
        self.when_down: Callable[[], object] = lambda: None
        self.adapters: dict[str, Any] = {}
        self.paused = False
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.answer({})

            def do_POST(self) -> None:
                self.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"])) or "{}"))

            def answer(self, body: dict[str, Any]) -> None:
                if outer.down:
                    outer.when_down()
                    outer.when_down = lambda: None
                    self.close_connection = True  # as a killed process does: no answer
                    return
                try:
                    status, reply = 200, outer.route(self.path, body)
                except KeyError:
                    status, reply = 404, {"error": "Not Found"}
                except ValueError as error:
                    status, reply = 500, {"error": str(error)}
                payload = (reply if isinstance(reply, str) else json.dumps(reply)).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

            def log_message(self, format: str, *args: Any) -> None: ...

        class Patient(ThreadingHTTPServer):
            request_queue_size = 256
            daemon_threads = True

        self._http = Patient(("127.0.0.1", port), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def route(self, path: str, body: dict[str, Any]) -> Any:
        routes = {"/v1/models": self.models, "/tokenize": self.tokenize, "/v1/completions": self.complete}
        routes |= {"/health": dict}
        if self.lora_updating:
            routes |= {"/v1/load_lora_adapter": self.load_adapter, "/v1/unload_lora_adapter": self.unload_adapter}
        if self.dev_mode:
            routes |= {
                "/get_world_size": lambda: {"world_size": 1},
                "/is_paused": lambda: {"is_paused": self.paused},
                "/collective_rpc": self.reload,
                "/pause": self.pause,
                "/resume": self.resume,
                "/init_weight_transfer_engine": self.engine.init,
                "/start_weight_update": self.engine.start,
                "/update_weights": self.update,
                "/finish_weight_update": self.engine.finish,
            }
        return routes[path](**body)

    def models(self) -> dict[str, Any]:
        return {"object": "list", "data": [{"id": "tiny", "object": "model", "max_model_len": self.max_model_len}]}

    def tokenize(self, model: str, prompt: str, add_special_tokens: bool) -> dict[str, Any]:
        tokens = self.tokenizer(prompt, add_special_tokens=add_special_tokens)["input_ids"]
        return {"count": len(tokens), "max_model_len": self.max_model_len, "tokens": tokens}

    def pause(self) -> dict[str, str]:
        self.paused, self.engine.stale = True, False
        return {"status": "paused"}

    def resume(self) -> dict[str, str]:
        self.paused, self.engine.stale = False, False
        return {"status": "resumed"}

    def update(self, update_info: dict[str, Any]) -> None:
        assert self.paused
        self.engine.update(update_info)

    def reload(self, method: str, kwargs: dict[str, str]) -> dict[str, Any]:
        assert self.paused
        assert method == "reload_weights"
        saved = load_file(Path(kwargs["weights_path"], "model.safetensors"))
        if set(saved) != {name for name, _ in self.engine.model.named_parameters()}:
            raise ValueError("other names")
        self.engine.model.load_state_dict(saved, strict=False)  # without the tied ones
        self.engine.calls.append("reload")
        return {"results": [None]}

    def load_adapter(self, lora_name: str, lora_path: str) -> str:
        """The engine of an adapter is a copy of the base model with the adapter that was there when it was loaded."""
        if lora_name in self.adapters:
            raise ValueError("already loaded")
        base = Engine(self.folder, self.engine.mode)
        base.model = PeftModel.from_pretrained(load_model(self.folder), lora_path).merge_and_unload().eval()
        self.adapters[lora_name] = base
        return f"Success: LoRA adapter '{lora_name}' added successfully."

    def unload_adapter(self, lora_name: str) -> str:
        del self.adapters[lora_name]
        return "Success"

    def complete(self, model: str, prompt: list[int], return_token_ids: bool = False, **params: Any) -> dict[str, Any]:
        assert not self.paused
        engine = self.engine if model == "tiny" else self.adapters[model]
        engine.aborted = engine.aborted or self.aborts
        drawn = engine.draw(prompt, SamplingParams(**params))
        logprobs = {
            "tokens": ["?"] * len(drawn.token_ids),
            "token_logprobs": [s[t].logprob for t, s in zip(drawn.token_ids, drawn.logprobs, strict=True)],
            "top_logprobs": [{str(t): v.logprob for t, v in step.items()} for step in drawn.logprobs],
        }
        choice: dict[str, Any] = {"index": 0, "text": drawn.text, "finish_reason": drawn.finish_reason}
        choice["logprobs"] = None if params.get("logprobs") is None else logprobs
        if return_token_ids:
            choice["token_ids"] = drawn.token_ids
        return {"object": "text_completion", "choices": [choice]}
