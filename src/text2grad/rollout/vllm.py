"""Rollouts through vLLM: a server with GPUs of its own, or an engine that shares the trainer's.

Either receives the policy's weights before every rollout, and returns the sampled ids with the log-probability of each,
at the sampling temperature. See docs/rollouts.md.
"""

from __future__ import annotations

import http.client
import importlib
import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from accelerate import Accelerator
from transformers import PreTrainedTokenizerBase

from text2grad.errors import UserError
from text2grad.rollout.rng import Stream, stream
from text2grad.rollout.samplers import Sampler, SamplingRequest
from text2grad.rollout.sampling import Sampled

TIMEOUT = 600  # seconds per request
MAX_CONCURRENT = 128  # requests; the server batches them itself
COMMAND = (
    "VLLM_SERVER_DEV_MODE=1 vllm serve MODEL --logprobs-mode processed_logprobs "
    """--weight-transfer-config '{"backend": "nccl"}'"""
)
PROBE = "The café in 東京 serves 1234 naïve dishes."
FINISHED = ("stop", "length")  # finish reasons of complete samples


class TrainedPolicy(NamedTuple):
    """The language model that an engine samples from, its tokenizer and its limits.

    max_length: tokens of the longest prompt with its completion.
    """

    model: Any
    accelerator: Accelerator
    tokenizer: PreTrainedTokenizerBase
    end_ids: Sequence[int]
    max_length: int


def vllm_sampler(
    rollouts: str,
    trained: TrainedPolicy,
    temperature: float,
    bf16: bool,
    server_base_url: str,
    gpu_memory_utilization: float,
) -> Sampler:
    """Return the sampler that the setting `rollouts` names: vllm_server or vllm_colocated."""
    if trained.accelerator.num_processes > 1:
        raise UserError(
            f"rollouts: {rollouts} serves one training process, but {trained.accelerator.num_processes} were "
            f"launched; set rollouts to transformers, or start one process"
        )
    require_gpu(trained.accelerator)
    if rollouts == "vllm_server":
        return VllmServer(server_base_url, trained, temperature)
    return VllmColocated(trained, "bfloat16" if bf16 else "float32", gpu_memory_utilization)


def require_gpu(accelerator: Accelerator) -> None:
    """Reject a trainer on the CPU: weights are sent from GPU to GPU."""
    if accelerator.device.type != "cuda":
        raise UserError("rollouts through vLLM need the trainer on a GPU; set rollouts to transformers")


class VllmColocated:
    """An engine on the trainer's own GPU."""

    def __init__(self, trained: TrainedPolicy, dtype: str, gpu_memory_utilization: float) -> None:
        self._end_ids = trained.end_ids
        self._client = _import_client()
        name, device = str(trained.model.config.name_or_path), trained.accelerator.device.index or 0
        self._llm = self._client.start_engine(name, device, dtype, gpu_memory_utilization, trained.max_length)
        self._transfer = self._client.transfer_to(self._llm, trained.model)

    def sample(self, prompts: Sequence[Sequence[int]], num_generations: int, request: SamplingRequest) -> Sampled:
        self._transfer.send_weights()
        self._llm.reset_prefix_cache()  # computed with the old weights
        repeated = [list(ids) for ids in prompts for _ in range(num_generations)]
        outputs = self._client.generate(self._llm, repeated, sampling_params(request, self._end_ids))
        completions = [
            _Completion(
                list(output.token_ids),
                [step[token].logprob for token, step in zip(output.token_ids, output.logprobs, strict=True)],
                output.finish_reason,
            )
            for output in outputs
        ]
        return _validate(completions, self._end_ids, "the colocated vLLM engine")


class VllmServer:
    """A server that the user started with `COMMAND`."""

    def __init__(self, url: str, trained: TrainedPolicy, temperature: float) -> None:
        self._url = url.rstrip("/")
        self._trained = trained
        client = _import_client()
        self._name = self._check_model(trained)
        self._check_logprobs(temperature)
        num_workers = self._call("/get_world_size")["world_size"]
        self._transfer = client.transfer_to_server(self._url, trained.model, num_workers)

    def sample(self, prompts: Sequence[Sequence[int]], num_generations: int, request: SamplingRequest) -> Sampled:
        self._send_weights()
        repeated = [list(ids) for ids in prompts for _ in range(num_generations)]
        with ThreadPoolExecutor(min(len(repeated), MAX_CONCURRENT)) as pool:
            params = sampling_params(request, self._trained.end_ids)
            completions = list(pool.map(self._complete, repeated, params))
        return _validate(completions, self._trained.end_ids, f"the vLLM server at {self._url}")

    def _send_weights(self) -> None:
        self._call("/pause", {})  # also drops the cache of the old weights
        try:
            self._transfer.send_weights()
        except OSError as error:
            raise UserError(
                f"the vLLM server at {self._url} did not accept the policy's weights ({error}); serve the model that "
                f"is trained: {COMMAND}"
            ) from error
        finally:
            self._call("/resume", {})  # a paused server would block the next run

    def _complete(self, prompt: list[int], params: dict[str, Any]) -> _Completion:
        body = {"model": self._name, "prompt": prompt, "return_token_ids": True, **params}
        choice = self._call("/v1/completions", body)["choices"][0]
        return _Completion(choice["token_ids"], choice["logprobs"]["token_logprobs"], choice["finish_reason"])

    def _check_model(self, trained: TrainedPolicy) -> str:
        """Return the name of the served model; reject one with another vocabulary or too short a context."""
        served = self._call("/v1/models")["data"][0]
        tokenized = self._call("/tokenize", {"model": served["id"], "prompt": PROBE, "add_special_tokens": False})
        encoded: Any = trained.tokenizer(PROBE, add_special_tokens=False)
        if tokenized["tokens"] != encoded["input_ids"]:
            raise UserError(
                f'the vLLM server at {self._url} serves "{served["id"]}", whose vocabulary is not that of the trained '
                f"model; serve that one: {COMMAND}"
            )
        if served["max_model_len"] < trained.max_length:
            raise UserError(
                f"the vLLM server at {self._url} has a context of {served['max_model_len']} tokens, but a prompt with "
                f"its completion may have {trained.max_length}; start it with --max-model-len {trained.max_length}"
            )
        return str(served["id"])

    def _check_logprobs(self, temperature: float) -> None:
        """Reject a server in raw mode, whose log-probabilities do not depend on the temperature."""
        if temperature == 1:
            return
        prompt = self._trained.tokenizer(PROBE)["input_ids"]
        best = []
        for value in (1.0, temperature):
            body = {"model": self._name, "prompt": prompt, "max_tokens": 1, "temperature": value, "logprobs": 1}
            choice = self._call("/v1/completions", body | {"top_p": 1.0, "top_k": 0})["choices"][0]
            best.append(max(choice["logprobs"]["top_logprobs"][0].values()))
        if best[0] == best[1]:
            raise UserError(
                f"the vLLM server at {self._url} reports log-probabilities before the temperature; start it with "
                f"--logprobs-mode processed_logprobs"
            )

    def _call(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """Send a GET request, or with a body a POST request."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                detail = error.read().decode(errors="replace")[:300]
            raise UserError(
                f"the vLLM server at {self._url} answers {error.code} to {path} ({detail}); start it with: {COMMAND}"
            ) from error
        except (OSError, http.client.HTTPException) as error:
            raise UserError(f"no vLLM server answers at {self._url} ({error}); start one: {COMMAND}") from error
        except ValueError as error:
            raise UserError(f"{self._url}{path} is not a vLLM server; set vllm_server_base_url") from error


def sampling_params(request: SamplingRequest, end_ids: Sequence[int]) -> list[dict[str, Any]]:
    """Return the sampling parameters of each completion, under vLLM's names, without any truncation or penalty.

    All are explicit, since the model's generation config would fill in missing ones. The seed is keyed by (seed, step,
    sample), so a completion does not depend on its batch.
    """
    return [
        {
            "temperature": request.temperature,
            "top_p": 1.0,
            "top_k": 0,
            "min_p": 0.0,
            "repetition_penalty": 1.0,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "max_tokens": request.max_tokens,
            "stop_token_ids": list(end_ids),
            "logprobs": 0,  # of the sampled token only
            "seed": int(stream(Stream.SAMPLING, request.seed, request.step, sample).integers(2**63)),
        }
        for sample in request.samples
    ]


class _Completion(NamedTuple):
    ids: list[int]
    logprobs: list[float]
    finish_reason: str


def _validate(completions: list[_Completion], end_ids: Sequence[int], engine: str) -> Sampled:
    """Return the samples; one that was aborted, or stopped without an end token, is an error."""
    for ids, logprobs, finish_reason in completions:
        if finish_reason not in FINISHED or not ids or len(ids) != len(logprobs):
            raise UserError(f"{engine} aborted a completion ({finish_reason}); let no other client pause or use it")
        if finish_reason == "stop" and ids[-1] not in end_ids:
            raise UserError(f"{engine} ended a completion without an end token; start it without stop settings")
    return Sampled([c.ids for c in completions], [c.logprobs for c in completions])


def _import_client() -> Any:
    """Import the module that needs the package `vllm`."""
    try:
        return importlib.import_module("text2grad.rollout.vllm_client")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "vllm":
            raise
        raise UserError(
            "rollouts through vLLM need its package; `pip install text2grad[vllm]`, or set rollouts to transformers"
        ) from error
