"""Rollouts through vLLM, against a stand-in that speaks its documented interface, and against the real thing."""

from __future__ import annotations

import importlib.util
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import vllm_support
from peft import LoraConfig
from support import PROMPTS, MakeTrainer, Seen, VowelCritic
from vllm_support import LLM, Server

from text2grad import Text2GradConfig, Text2GradTrainer
from text2grad.align.tokens import decode
from text2grad.errors import UserError
from text2grad.rollout.samplers import SamplingRequest
from text2grad.rollout.vllm import colocated
from text2grad.rollout.vllm import sampler as vllm_sampler
from text2grad.rollout.vllm import server as vllm_server
from text2grad.rollout.vllm.completions import TrainedPolicy, sampling_params

HAS_VLLM = importlib.util.find_spec("vllm") is not None


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    vllm_support.install(monkeypatch)
    monkeypatch.setattr(vllm_sampler, "require_gpu", lambda *_: None)


@pytest.fixture
def server(tiny_model: Path, stand_in: None) -> Iterator[Server]:
    server = Server(tiny_model)
    yield server
    server.close()


@pytest.fixture(params=["vllm_server", "vllm_colocated"])
def settings(request: pytest.FixtureRequest, server: Server) -> dict[str, Any]:
    return {"rollouts": request.param, "vllm_server_base_url": server.url}


def engine(trainer: Text2GradTrainer, server: Server) -> vllm_support.Engine:
    return server.engine if trainer.args.rollouts == "vllm_server" else LLM.last.engine


@pytest.mark.parametrize("lora", [True, False])
def test_every_rollout_is_drawn_from_the_policy_as_it_is(
    make_trainer: MakeTrainer, settings: dict[str, Any], server: Server, lora: bool
) -> None:
    """The second step's too, after the first has changed the weights."""
    trainer = make_trainer(lora=lora, temperature=1.4, num_generations=2, **settings)
    for step in (1, 2):
        metrics, _ = trainer.step(step)
        assert 0 <= metrics["sampling/logp_difference/max"] < 1e-4
    assert engine(trainer, server).calls == ["init", *["start", "update", "finish"] * 2]


def test_ids_and_log_probabilities_are_the_engines_own(make_trainer: MakeTrainer, settings: dict[str, Any]) -> None:
    """The engine's text is nonsense; what the critic reads is decoded from the ids."""
    rollout = make_trainer(**settings).rollout(1)
    tokenizer = make_trainer("other").tokenizer
    assert [e.completion for e in rollout.examples] == [decode(ids, tokenizer) for ids in rollout.completions]
    assert rollout.sampled_logprobs is not None
    assert torch.equal(rollout.sampled_logprobs != 0, rollout.mask.bool())


def test_an_answer_depends_on_its_key_and_not_on_its_batch(make_trainer: MakeTrainer, settings: dict[str, Any]) -> None:
    sampler = make_trainer(**settings).sampler
    prompts = [[10, 11], [12], [13, 14, 15]]

    def draw(rows: list[int], step: int = 1) -> list[list[int]]:
        return sampler.sample([prompts[i] for i in rows], 1, SamplingRequest(7, step, rows, 1.3, 8)).completions

    together = draw([0, 1, 2])
    assert together == [draw([i])[0] for i in range(3)]
    assert together != draw([0, 1, 2], step=2)
    twins = sampler.sample([prompts[0]], 2, SamplingRequest(7, 1, [0, 1], 1.3, 8)).completions
    assert twins[0] == together[0] != twins[1]


def test_sampling_parameters_do_not_change_the_distribution() -> None:
    first, second = sampling_params(
        SamplingRequest(seed=1, step=2, samples=[3, 4], temperature=0.7, max_tokens=9), end_ids=[1, 2]
    )
    assert first["seed"] != second["seed"]
    assert 0 <= first.pop("seed") < 2**63
    assert first == {
        "temperature": 0.7,
        "top_p": 1.0,
        "top_k": 0,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "max_tokens": 9,
        "stop_token_ids": [1, 2],
        "logprobs": 0,
    }


def test_answers_end_with_the_end_token(make_trainer: MakeTrainer, settings: dict[str, Any]) -> None:
    trainer = make_trainer(per_device_train_batch_size=24, max_completion_length=60, **settings)
    rollout = trainer.rollout(1)
    assert any(rollout.ended)
    assert not all(rollout.ended)
    assert all(
        ended == (len(ids) < 60 or ids[-1] == 1) for ended, ids in zip(rollout.ended, rollout.completions, strict=True)
    )


def test_an_aborted_completion_is_an_error(make_trainer: MakeTrainer, settings: dict[str, Any], server: Server) -> None:
    trainer = make_trainer(**settings)
    engine(trainer, server).aborted = True
    with pytest.raises(UserError, match="aborted a completion \\(abort\\); let no other client"):
        trainer.rollout(1)


def test_a_completion_that_stops_without_an_end_token_is_an_error(
    make_trainer: MakeTrainer, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = make_trainer(max_completion_length=60, per_device_train_batch_size=24, **settings)
    more = trainer.end_ids + list(range(2, 60))  # the engine also stops where the trainer knows no end
    for module in (vllm_server, colocated):
        monkeypatch.setattr(module, "sampling_params", lambda request, _: sampling_params(request, more))
    with pytest.raises(UserError, match="without an end token"):
        trainer.rollout(1)


def test_the_colocated_engine_gets_what_the_settings_say(make_trainer: MakeTrainer, stand_in: None) -> None:
    trainer = make_trainer(rollouts="vllm_colocated", vllm_gpu_memory_utilization=0.4, bf16=True)
    longest = max(map(len, trainer.prompts)) + 10
    assert LLM.last.settings == {"dtype": "bfloat16", "memory": 0.4, "longest": longest, "gpu": [0]}


def refusal(make_trainer: MakeTrainer, server: Server | str, **settings: Any) -> str:
    """What a run with this server is refused with."""
    url = server if isinstance(server, str) else server.url
    with pytest.raises(UserError) as refused:
        make_trainer(rollouts="vllm_server", vllm_server_base_url=url, **settings).rollout(1)
    return str(refused.value)


def test_a_server_that_is_not_there_is_named(make_trainer: MakeTrainer, stand_in: None) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        said = refusal(make_trainer, url, vllm_server_timeout=0)
    assert re.search(f"no vLLM server answers at {url} .*; start one: VLLM_SERVER_DEV_MODE=1 vllm serve", said)


def test_a_server_with_another_vocabulary_is_refused(make_trainer: MakeTrainer, server: Server) -> None:
    server.tokenizer = lambda text, **_: {"input_ids": [1, 2, 3]}  # type: ignore[assignment]
    assert 'serves "tiny", whose vocabulary is not that' in refusal(make_trainer, server)


def test_a_server_with_another_model_is_refused(make_trainer: MakeTrainer, server: Server) -> None:
    del server.engine.model.model.layers[1]
    said = refusal(make_trainer, server)
    assert re.search("did not accept the policy's weights .*; serve the model that is trained", said)
    assert not server.paused


def test_a_server_with_too_short_a_context_is_refused(make_trainer: MakeTrainer, server: Server) -> None:
    server.max_model_len = 20
    assert re.search("has a context of 20 tokens, .* --max-model-len", refusal(make_trainer, server))


def test_a_server_without_its_development_routes_is_refused(make_trainer: MakeTrainer, server: Server) -> None:
    server.dev_mode = False
    assert re.search("answers 404 to /get_world_size .*VLLM_SERVER_DEV_MODE=1", refusal(make_trainer, server))


def test_log_probabilities_before_the_temperature_are_refused(make_trainer: MakeTrainer, server: Server) -> None:
    server.engine.mode = "raw_logprobs"
    said = refusal(make_trainer, server, temperature=1.4)
    assert "before the temperature; start it with --logprobs-mode" in said
    trainer = make_trainer("one", rollouts="vllm_server", vllm_server_base_url=server.url)
    metrics, _ = trainer.step(1)  # at temperature 1 the two are the same
    assert metrics["sampling/logp_difference/max"] < 1e-4


def test_the_package_must_be_there(make_trainer: MakeTrainer, stand_in: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    assert "needs its package; `pip install text2grad[vllm]`" in refusal(make_trainer, "http://localhost:1")


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_a_trainer_on_the_cpu_is_refused(make_trainer: MakeTrainer) -> None:
    with pytest.raises(UserError, match="vllm_colocated needs the trainer on a GPU; set rollouts to vllm_server"):
        make_trainer(rollouts="vllm_colocated")
    with pytest.raises(UserError, match="nccl needs the trainer on a GPU; set vllm_weight_transfer to adapter or disk"):
        make_trainer("other", rollouts="vllm_server")


@pytest.mark.parametrize("rollouts", ["vllm_server", "vllm_colocated"])
def test_several_training_processes_are_refused(rollouts: Any) -> None:
    processes: Any = SimpleNamespace(num_processes=2)
    trained = TrainedPolicy(torch.nn.Identity(), processes, None, [], 10, Path())
    with pytest.raises(UserError, match=f"{rollouts} serves one training process, but 2 were launched; set rollouts"):
        vllm_sampler.vllm_sampler(
            rollouts,
            trained,
            temperature=1.0,
            bf16=True,
            server_base_url="",
            server_timeout=0,
            weight_transfer="nccl",
            gpu_memory_utilization=0.5,
        )


@pytest.mark.model
@pytest.mark.skipif(not HAS_VLLM or not torch.cuda.is_available(), reason="needs vllm and a GPU")
def test_the_real_engine_draws_from_the_policy(smollm2: str, tmp_path: Path) -> None:
    """Its kernels and bfloat16 leave a gap; old weights would leave a far wider one."""
    args = Text2GradConfig(
        output_dir=tmp_path / "run", rollouts="vllm_colocated", temperature=1.2, learning_rate=1e-3, max_steps=3
    )
    lora = LoraConfig(r=8, target_modules="all-linear")
    seen = Seen()
    Text2GradTrainer(smollm2, VowelCritic(), args, PROMPTS, peft_config=lora, callbacks=[seen]).train()
    gaps = [metrics["sampling/logp_difference/mean"] for metrics in seen.steps]
    assert len(gaps) == 3
    assert max(gaps) < 0.05
