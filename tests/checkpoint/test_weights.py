"""Weights written for others, and read back."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model

from text2grad.checkpoint.weights import check_weights, read_weights, write_weights
from text2grad.errors import UserError
from text2grad.models.loading import load_model, load_tokenizer


@pytest.mark.parametrize("lora", [True, False])
def test_what_is_written_is_read_back_bit_for_bit(tiny_model: Path, tmp_path: Path, lora: bool) -> None:
    model: PeftModel | torch.nn.Module = load_model(tiny_model)
    if lora:
        model = get_peft_model(model, LoraConfig(r=2, target_modules="all-linear"))
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    with torch.no_grad():
        for parameter in trained.values():
            parameter.normal_()
    written = {name: p.detach().clone() for name, p in trained.items()}
    write_weights(tmp_path / "best", model, load_tokenizer(tiny_model), "# A card\n")
    with torch.no_grad():
        for parameter in trained.values():
            parameter.zero_()
    read_weights(tmp_path / "best", model)
    torch.testing.assert_close({name: p.detach() for name, p in trained.items()}, written, rtol=0, atol=0)
    assert (tmp_path / "best" / "README.md").read_text() == "# A card\n", "not the library's own"
    assert (tmp_path / "best" / "tokenizer.json").is_file()


def test_missing_weights_are_named(tiny_model: Path, tmp_path: Path) -> None:
    said = "so the best weights are lost; set load_best_model_at_end to false"
    with pytest.raises(UserError, match=f"best does not exist, {said}"):
        check_weights(tmp_path / "best")
    write_weights(tmp_path / "best", load_model(tiny_model), load_tokenizer(tiny_model), "# A card\n", step=7)
    (tmp_path / "best" / "README.md").write_text("# My card\n")
    assert check_weights(tmp_path / "best") == 7
    (tmp_path / "best" / "tokenizer.json").write_text("{}")
    with pytest.raises(UserError, match=rf"tokenizer.json is damaged \(its checksum is wrong\), {said}"):
        check_weights(tmp_path / "best")


def test_a_folder_of_others_is_not_replaced(tiny_model: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UserError, match="is not a text2grad model"):
        write_weights(tmp_path, load_model(tiny_model), load_tokenizer(tiny_model), "# A card\n")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
