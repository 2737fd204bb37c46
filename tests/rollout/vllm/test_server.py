"""A server that gets weights through files, and one that goes down: against the stand-in."""

from __future__ import annotations

import logging
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from peft import LoraConfig
from support import MakeTrainer
from vllm_support import Server

from text2grad.errors import UserError
from text2grad.rollout.vllm import connection, server, transfer


@pytest.fixture
def served(tiny_model: Path) -> Iterator[Server]:
    served = Server(tiny_model)
    yield served
    served.close()


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "POLL_SECONDS", 0.02)


def settings(served: Server, weight_transfer: str = "adapter") -> dict[str, Any]:
    return {
        "rollouts": "vllm_server",
        "vllm_server_base_url": served.url,
        "vllm_weight_transfer": weight_transfer,
        "vllm_server_timeout": 20,
    }


@pytest.mark.parametrize(("weight_transfer", "lora"), [("adapter", True), ("disk", True), ("disk", False)])
def test_every_rollout_is_drawn_from_the_policy_as_it_is(
    make_trainer: MakeTrainer, served: Server, weight_transfer: str, lora: bool
) -> None:
    """Without the package vllm, and without a GPU."""
    trainer = make_trainer(lora=lora, temperature=1.4, num_generations=2, **settings(served, weight_transfer))
    for step in (1, 2, 3):
        metrics, _ = trainer.step(step)
        assert 0 <= metrics["sampling/logp_difference/max"] < 1e-4
    assert len(served.adapters) == (weight_transfer == "adapter")  # older versions are unloaded


def test_an_adapter_has_a_new_name_each_time(make_trainer: MakeTrainer, served: Server) -> None:
    """The server's prefix cache is keyed by the name."""
    trainer = make_trainer(**settings(served))
    names = []
    for step in (1, 2):
        trainer.rollout(step)
        names += list(served.adapters)
    assert len(set(names)) == 2


def test_the_weights_do_not_make_the_run_folder_look_used(make_trainer: MakeTrainer, served: Server) -> None:
    trainer = make_trainer(max_steps=1, **settings(served))
    trainer.rollout(1)
    trainer.train()
    assert trainer.state.step == 1


def test_a_server_that_restarts_in_a_rollout_is_waited_for(
    make_trainer: MakeTrainer, served: Server, tiny_model: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The rollout is the one of an undisturbed server: it gets the weights again, and the seeds are the same."""
    trainer = make_trainer(**settings(served))
    trainer.step(1)
    expected = trainer.rollout(2).completions
    replacement: list[Server] = []

    def restart() -> None:
        port = int(served.url.rpartition(":")[2])
        served.close()
        time.sleep(0.2)
        replacement.append(Server(tiny_model, port=port))

    served.when_down = lambda: threading.Thread(target=restart).start()
    served.down = True
    with caplog.at_level(logging.WARNING):
        again = trainer.rollout(2).completions
    replacement[0].close()
    assert again == expected
    assert re.search(r"server at \S+ failed \(.*\); waiting up to 20 seconds .*vllm serve MODEL", caplog.text)
    assert "answers after" in caplog.text


def test_a_server_that_stays_down_ends_the_run_with_a_way_to_resume(make_trainer: MakeTrainer, served: Server) -> None:
    trainer = make_trainer(**(settings(served) | {"vllm_server_timeout": 0.05}))
    served.down = True
    with pytest.raises(UserError, match=r"no vLLM server answers at .*; start one: .*--enable-lora.*--resume"):
        trainer.rollout(1)


def test_a_server_that_keeps_failing_ends_the_run(make_trainer: MakeTrainer, served: Server) -> None:
    trainer = make_trainer(**settings(served))
    trainer.rollout(1)
    served.aborts = True
    with pytest.raises(UserError, match=f"failed {server.ATTEMPTS} times at one rollout .*aborted a completion"):
        trainer.rollout(1)


def test_a_refusal_is_not_waited_for(make_trainer: MakeTrainer, served: Server) -> None:
    served.lora_updating = False
    with pytest.raises(UserError, match=r"answers 404 to /v1/load_lora_adapter .*VLLM_ALLOW_RUNTIME_LORA_UPDATING=1"):
        make_trainer(**settings(served))
    served.dev_mode = False
    with pytest.raises(UserError, match=r"answers 404 to /is_paused .*VLLM_SERVER_DEV_MODE=1"):
        make_trainer("other", **settings(served, "disk"))


def test_an_adapter_needs_lora(make_trainer: MakeTrainer, served: Server) -> None:
    with pytest.raises(UserError, match="adapter, but all weights are trained; set it to disk or nccl"):
        make_trainer(lora=False, **settings(served))


def test_another_model_is_refused_and_the_server_not_left_paused(make_trainer: MakeTrainer, served: Server) -> None:
    trainer = make_trainer(**settings(served, "disk"))
    del served.engine.model.model.layers[1]
    with pytest.raises(UserError, match=r"answers 500 to /collective_rpc .*other names.*; start it with"):
        trainer.rollout(1)
    assert not served.paused


def test_something_else_that_answers_is_named(make_trainer: MakeTrainer, served: Server) -> None:
    served.models = lambda: "hello"  # type: ignore[method-assign, assignment, return-value]
    with pytest.raises(UserError, match="/v1/models is not a vLLM server; set vllm_server_base_url"):
        make_trainer(**settings(served))


def test_the_command_of_a_transfer_has_what_it_needs() -> None:
    model = SimpleNamespace(peft_config={"default": LoraConfig(r=24)})
    assert transfer.server_command("adapter", model) == (
        "VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 vllm serve MODEL --logprobs-mode processed_logprobs --enable-lora "
        "--max-lora-rank 24"
    )
    assert transfer.server_command("disk", model).startswith("VLLM_SERVER_DEV_MODE=1 vllm serve")
    assert '--weight-transfer-config \'{"backend": "nccl"}\'' in transfer.server_command("nccl", model)


def test_a_closed_port_is_not_healthy() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        assert not connection.Connection(f"http://127.0.0.1:{closed.getsockname()[1]}", 0, "").is_healthy()


def test_tied_embeddings_are_not_trained_through_a_folder(make_trainer: MakeTrainer, served: Server) -> None:
    """A real server reloads them in one of two places only; frozen ones, under an adapter, are not touched."""
    trainer = make_trainer(**settings(served, "disk"))
    model = trainer.policy.model
    model.config.tie_word_embeddings = True
    transfer.require_untied_or_frozen_embeddings(model)
    model.get_input_embeddings().weight.requires_grad = True
    with pytest.raises(UserError, match="tied to the output layer, which vLLM does not reload with them; train LoRA"):
        transfer.require_untied_or_frozen_embeddings(model)
