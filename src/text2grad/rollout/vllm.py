"""Rollouts through vLLM: a server with GPUs of its own, or an engine that shares the trainer's.

Either is given the policy's weights before every rollout, and answers with the ids that it drew and the log-probability
of each, at the sampling temperature. See docs/rollouts.md.
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
from torch import nn
from transformers import PreTrainedTokenizerBase

from text2grad.errors import UserError
from text2grad.rollout.rng import Stream, stream
from text2grad.rollout.samplers import Sampler, SamplingRequest
from text2grad.rollout.sampling import Sampled
from text2grad.trainer.config import PolicySettings

TIMEOUT = 600  # seconds for one answer of the server
AT_ONCE = 128  # requests that the server is given at a time; it batches them itself
COMMAND = (
    "VLLM_SERVER_DEV_MODE=1 vllm serve MODEL --logprobs-mode processed_logprobs "
    """--weight-transfer-config '{"backend": "nccl"}'"""
)
PROBE = "The café in 東京 serves 1234 naïve dishes."
WHOLE = ("stop", "length")  # the ways in which an answer ends by itself


class Trained(NamedTuple):
    """Whom an engine samples for: the policy that is trained, and what its answers are made of.

    longest: tokens of the longest prompt with its answer.
    """

    policy: nn.Module
    accelerator: Accelerator
    tokenizer: PreTrainedTokenizerBase
    end_ids: Sequence[int]
    longest: int

    @property
    def model(self) -> Any:
        return self.accelerator.unwrap_model(self.policy).model


def vllm_sampler(args: PolicySettings, trained: Trained) -> Sampler:
    """The engine that `rollouts` names."""
    if trained.accelerator.num_processes > 1:
        raise UserError(
            f"rollouts: {args.rollouts} serves one training process, but {trained.accelerator.num_processes} were "
            f"launched; set rollouts to transformers, or start one process"
        )
    require_gpu(trained.accelerator)
    if args.rollouts == "vllm_server":
        return VllmServer(args.vllm_server_base_url, trained, args.temperature)
    return VllmColocated(trained, "bfloat16" if args.bf16 else "float32", args.vllm_gpu_memory_utilization)


def require_gpu(accelerator: Accelerator) -> None:
    """Weights go to an engine from GPU to GPU."""
    if accelerator.device.type != "cuda":
        raise UserError("rollouts through vLLM need the trainer on a GPU; set rollouts to transformers")


class VllmColocated:
    """An engine on the trainer's own GPU."""

    def __init__(self, trained: Trained, dtype: str, memory: float) -> None:
        """memory: the engine's share of the GPU's memory."""
        self._end_ids = trained.end_ids
        self._link = _link()
        name, device = str(trained.model.config.name_or_path), trained.accelerator.device.index or 0
        self._llm = self._link.start_engine(name, device, dtype, memory, trained.longest)
        self._transfer = self._link.transfer_to(self._llm, trained.model)

    def sample(self, prompts: Sequence[Sequence[int]], num_generations: int, draws: SamplingRequest) -> Sampled:
        self._transfer.send_weights()
        self._llm.reset_prefix_cache()  # what it remembers of the prompts was computed with the old weights
        repeated = [list(ids) for ids in prompts for _ in range(num_generations)]
        outputs = self._link.generate(self._llm, repeated, options(draws, self._end_ids))
        answers = [
            _Answer(
                list(output.token_ids),
                [step[token].logprob for token, step in zip(output.token_ids, output.logprobs, strict=True)],
                output.finish_reason,
            )
            for output in outputs
        ]
        return _sampled(answers, self._end_ids, "the colocated vLLM engine")


class VllmServer:
    """A server that was started beside the training, with `COMMAND`."""

    def __init__(self, url: str, trained: Trained, temperature: float) -> None:
        self._url = url.rstrip("/")
        self._trained = trained
        link = _link()
        self._name = self._check_model(trained)
        self._check_logprobs(temperature)
        workers = self._call("/get_world_size")["world_size"]
        self._transfer = link.transfer_to_server(self._url, trained.model, workers)

    def sample(self, prompts: Sequence[Sequence[int]], num_generations: int, draws: SamplingRequest) -> Sampled:
        self._send_weights()
        repeated = [list(ids) for ids in prompts for _ in range(num_generations)]
        with ThreadPoolExecutor(min(len(repeated), AT_ONCE)) as pool:
            answers = list(pool.map(self._complete, repeated, options(draws, self._trained.end_ids)))
        return _sampled(answers, self._trained.end_ids, f"the vLLM server at {self._url}")

    def _send_weights(self) -> None:
        self._call("/pause", {})  # and forget what was computed with the old weights
        try:
            self._transfer.send_weights()
        except OSError as error:
            raise UserError(
                f"the vLLM server at {self._url} did not take the policy's weights ({error}); serve the model that is "
                f"trained: {COMMAND}"
            ) from error
        finally:
            self._call("/resume", {})  # a server left paused would keep the next run waiting

    def _complete(self, prompt: list[int], option: dict[str, Any]) -> _Answer:
        body = {"model": self._name, "prompt": prompt, "return_token_ids": True, **option}
        choice = self._call("/v1/completions", body)["choices"][0]
        return _Answer(choice["token_ids"], choice["logprobs"]["token_logprobs"], choice["finish_reason"])

    def _check_model(self, trained: Trained) -> str:
        """The name of the served model; one with another vocabulary or too short a context is refused."""
        served = self._call("/v1/models")["data"][0]
        theirs = self._call("/tokenize", {"model": served["id"], "prompt": PROBE, "add_special_tokens": False})
        encoded: Any = trained.tokenizer(PROBE, add_special_tokens=False)
        if theirs["tokens"] != encoded["input_ids"]:
            raise UserError(
                f'the vLLM server at {self._url} serves "{served["id"]}", whose vocabulary is not that of the model '
                f"that is trained; serve that one: {COMMAND}"
            )
        if served["max_model_len"] < trained.longest:
            raise UserError(
                f"the vLLM server at {self._url} has room for {served['max_model_len']} tokens, but a prompt with its "
                f"answer may have {trained.longest}; start it with --max-model-len {trained.longest}"
            )
        return str(served["id"])

    def _check_logprobs(self, temperature: float) -> None:
        """Log-probabilities must be those of the draw: a server in its raw mode tells the same at any temperature."""
        if temperature == 1:
            return
        prompt = self._trained.tokenizer(PROBE)["input_ids"]
        best = []
        for warmth in (1.0, temperature):
            body = {"model": self._name, "prompt": prompt, "max_tokens": 1, "temperature": warmth, "logprobs": 1}
            choice = self._call("/v1/completions", body | {"top_p": 1.0, "top_k": 0})["choices"][0]
            best.append(max(choice["logprobs"]["top_logprobs"][0].values()))
        if best[0] == best[1]:
            raise UserError(
                f"the vLLM server at {self._url} reports log-probabilities before the temperature; start it with "
                f"--logprobs-mode processed_logprobs"
            )

    def _call(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """GET, or with a body POST."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                said = error.read().decode(errors="replace")[:300]
            raise UserError(
                f"the vLLM server at {self._url} answers {error.code} to {path} ({said}); start it so: {COMMAND}"
            ) from error
        except (OSError, http.client.HTTPException) as error:
            raise UserError(f"no vLLM server answers at {self._url} ({error}); start one: {COMMAND}") from error
        except ValueError as error:
            raise UserError(f"what answers at {self._url}{path} is no vLLM server; set vllm_server_base_url") from error


def options(draws: SamplingRequest, end_ids: Sequence[int]) -> list[dict[str, Any]]:
    """Sampling parameters of each answer, under vLLM's names; nothing stands between the distribution and the draw.

    All are spelled out, since a model's generation settings would otherwise fill in what is left open. The seed is
    keyed by (seed, step, sample), so an answer does not depend on who else is in the batch.
    """
    return [
        {
            "temperature": draws.temperature,
            "top_p": 1.0,
            "top_k": 0,
            "min_p": 0.0,
            "repetition_penalty": 1.0,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "max_tokens": draws.max_tokens,
            "stop_token_ids": list(end_ids),
            "logprobs": 0,  # of the drawn token only
            "seed": int(stream(Stream.SAMPLING, draws.seed, draws.step, sample).integers(2**63)),
        }
        for sample in draws.samples
    ]


class _Answer(NamedTuple):
    ids: list[int]
    logprobs: list[float]
    finish_reason: str


def _sampled(answers: list[_Answer], end_ids: Sequence[int], who: str) -> Sampled:
    """What the engine drew; an answer that was broken off, or that came without its end token, is an error."""
    for answer in answers:
        if answer.finish_reason not in WHOLE or not answer.ids or len(answer.ids) != len(answer.logprobs):
            raise UserError(f"{who} broke an answer off ({answer.finish_reason}); let nobody else pause or use it")
        if answer.finish_reason == "stop" and answer.ids[-1] not in end_ids:
            raise UserError(f"{who} ended an answer by other rules than the trainer's; start it without stop settings")
    return Sampled([answer.ids for answer in answers], [answer.logprobs for answer in answers])


def _link() -> Any:
    """The module that speaks to the package, where it is installed."""
    try:
        return importlib.import_module("text2grad.rollout.vllm_client")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "vllm":
            raise
        raise UserError(
            "rollouts through vLLM need its package; `pip install text2grad[vllm]`, or set rollouts to transformers"
        ) from error
