"""Save and load the trained model or adapter in the format of `from_pretrained`."""

from __future__ import annotations

import json
from pathlib import Path

from peft import PeftModel, get_peft_model_state_dict, load_peft_weights
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from text2grad.checkpoint.model_card import CARD
from text2grad.distributed.sharding import copy_full_tensor
from text2grad.errors import UserError
from text2grad.files import replace_text
from text2grad.folders import find_damage, replace_folder
from text2grad.models.loading import load_model

STATE = "trainer_state.json"


def write_weights(
    folder: Path,
    model: PreTrainedModel | PeftModel,
    tokenizer: PreTrainedTokenizerBase,
    card: str | None,
    kind: str = "model",
    step: int | None = None,
) -> None:
    """Replace `folder` by the model with its tokenizer and card; after a kill the old or the new one is complete.

    kind: of the folder that may be replaced, see `replace_folder`. step: that the model was trained for, which
    `check_weights` returns.
    """

    def fill(new: Path) -> None:
        model.save_pretrained(str(new))
        tokenizer.save_pretrained(new)
        if card is not None:
            replace_text(new / CARD, card)
        if step is not None:
            replace_text(new / STATE, json.dumps({"step": step}))

    replace_folder(folder, kind, fill, editable={CARD})


def check_weights(folder: Path) -> int:
    """Return the step that the model in `folder` was trained for; raise UserError where it is damaged or missing."""
    if damage := find_damage(folder, "model"):
        raise UserError(
            f"{damage}, so the best weights are lost; set load_best_model_at_end to false to keep the last ones"
        )
    return int(json.loads((folder / STATE).read_text(encoding="utf-8"))["step"])


def read_weights(folder: Path, model: PreTrainedModel | PeftModel) -> None:
    """Load the weights that `write_weights` saved into the same model, bit for bit; it may be sharded."""
    if isinstance(model, PeftModel):
        saved = load_peft_weights(str(folder), device="cpu")
        state = model.state_dict(keep_vars=True)
        targets = get_peft_model_state_dict(model, state, save_embedding_layers=False)  # under the names of the file
    else:
        saved, targets = load_model(folder).state_dict(), model.state_dict(keep_vars=True)
    for name, target in targets.items():
        copy_full_tensor(saved[name], target)
