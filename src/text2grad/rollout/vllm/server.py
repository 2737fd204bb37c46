"""A vLLM server that the user started."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from text2grad.errors import UserError
from text2grad.rollout.samplers import SamplingRequest
from text2grad.rollout.sampling import Sampled
from text2grad.rollout.vllm.completions import AbortedError, Completion, TrainedPolicy, sampling_params, to_sampled
from text2grad.rollout.vllm.connection import Connection, ServerDownError
from text2grad.rollout.vllm.transfer import WeightTransfer

MAX_CONCURRENT = 128  # requests; the server batches them itself
ATTEMPTS = 3  # at one rollout, before the run ends
PROBE = "The café in 東京 serves 1234 naïve dishes."
T = TypeVar("T")


class VllmServer:
    """Samples through a server; one that goes down is waited for, gets the weights again, and samples anew.

    A completion depends only on the weights and its seed, so a repeated rollout is the same rollout.
    """

    def __init__(
        self, connection: Connection, trained: TrainedPolicy, transfer: WeightTransfer, temperature: float
    ) -> None:
        self._connection, self._trained, self._transfer = connection, trained, transfer
        self._temperature = temperature
        self._served_model: str | None = None
        self._repeat_until_up(self._connect)

    def sample(self, prompts: Sequence[Sequence[int]], num_generations: int, request: SamplingRequest) -> Sampled:
        repeated = [list(ids) for ids in prompts for _ in range(num_generations)]
        return self._repeat_until_up(lambda: self._sample(repeated, request))

    def _repeat_until_up(self, action: Callable[[], T]) -> T:
        failure: Exception | None = None
        for _ in range(ATTEMPTS):
            if failure is not None:
                self._served_model = None
                self._connection.wait(failure)
            try:
                return action()
            except (ServerDownError, AbortedError) as error:
                failure = error
        raise UserError(
            f"the vLLM server at {self._connection.url} failed {ATTEMPTS} times at one rollout ({failure}): see its log"
        )

    def _sample(self, prompts: list[list[int]], request: SamplingRequest) -> Sampled:
        model = self._transfer.send(self._served_model or self._connect())
        with ThreadPoolExecutor(min(len(prompts), MAX_CONCURRENT)) as pool:
            params = sampling_params(request, self._trained.end_ids)
            completions = list(pool.map(lambda ids, values: self._complete(model, ids, values), prompts, params))
        return to_sampled(completions, self._trained.end_ids, f"the vLLM server at {self._connection.url}")

    def _complete(self, model: str, prompt: list[int], params: dict[str, Any]) -> Completion:
        body = {"model": model, "prompt": prompt, "return_token_ids": True, **params}
        choice = self._connection.call("/v1/completions", body)["choices"][0]
        return Completion(choice["token_ids"], choice["logprobs"]["token_logprobs"], choice["finish_reason"])

    def _connect(self) -> str:
        """Check the server and prepare the transfer of weights; return the name of the served model."""
        served = self._check_model()
        self._check_logprobs(served)
        self._transfer.connect()
        self._served_model = served
        return served

    def _check_model(self) -> str:
        """Return the name of the served model; reject one with another vocabulary or too short a context."""
        url, trained = self._connection.url, self._trained
        served = self._connection.call("/v1/models")["data"][0]
        probe = {"model": served["id"], "prompt": PROBE, "add_special_tokens": False}
        encoded: Any = trained.tokenizer(PROBE, add_special_tokens=False)
        if self._connection.call("/tokenize", probe)["tokens"] != encoded["input_ids"]:
            raise UserError(
                f'the vLLM server at {url} serves "{served["id"]}", whose vocabulary is not that of the trained '
                f"model; serve that one: {self._connection.command}"
            )
        if served["max_model_len"] < trained.max_length:
            raise UserError(
                f"the vLLM server at {url} has a context of {served['max_model_len']} tokens, but a prompt with its "
                f"completion may have {trained.max_length}; start it with --max-model-len {trained.max_length}"
            )
        return str(served["id"])

    def _check_logprobs(self, served: str) -> None:
        """Reject a server in raw mode, whose log-probabilities do not depend on the temperature."""
        if self._temperature == 1:
            return
        prompt = self._trained.tokenizer(PROBE)["input_ids"]
        best = []
        for value in (1.0, self._temperature):
            body = {"model": served, "prompt": prompt, "max_tokens": 1, "temperature": value, "logprobs": 1}
            choice = self._connection.call("/v1/completions", body | {"top_p": 1.0, "top_k": 0})["choices"][0]
            best.append(max(choice["logprobs"]["top_logprobs"][0].values()))
        if best[0] == best[1]:
            raise UserError(
                f"the vLLM server at {self._connection.url} reports log-probabilities before the temperature; start it "
                f"with --logprobs-mode processed_logprobs"
            )
