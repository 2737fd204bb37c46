"""Save and load the trained model or adapter in the format of `from_pretrained`."""

from __future__ import annotations

from pathlib import Path

from peft import PeftModel, get_peft_model_state_dict, load_peft_weights
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from text2grad.checkpoint.model_card import CARD
from text2grad.distributed.sharding import copy_full_tensor
from text2grad.errors import UserError
from text2grad.files import replace_folder, replace_text
from text2grad.models.loading import load_model


def write_weights(
    folder: Path,
    model: PreTrainedModel | PeftModel,
    tokenizer: PreTrainedTokenizerBase,
    card: str | None,
    kind: str = "model",
) -> None:
    """Replace `folder` by the model with its tokenizer and card; after a kill the old or the new one is complete.

    kind: of the folder that may be replaced, see `replace_folder`.
    """

    def fill(new: Path) -> None:
        model.save_pretrained(str(new))
        tokenizer.save_pretrained(new)
        if card is not None:
            replace_text(new / CARD, card)

    replace_folder(folder, kind, fill)


def read_weights(folder: Path, model: PreTrainedModel | PeftModel) -> None:
    """Load the weights that `write_weights` saved into the same model, bit for bit; it may be sharded."""
    if not folder.is_dir():
        raise UserError(
            f"{folder} does not exist; set load_best_model_at_end to false to keep the weights of the last step"
        )
    if isinstance(model, PeftModel):
        saved = load_peft_weights(str(folder), device="cpu")
        state = model.state_dict(keep_vars=True)
        targets = get_peft_model_state_dict(model, state, save_embedding_layers=False)  # under the names of the file
    else:
        saved, targets = load_model(folder).state_dict(), model.state_dict(keep_vars=True)
    for name, target in targets.items():
        copy_full_tensor(saved[name], target)
