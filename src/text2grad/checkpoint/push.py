"""Upload of a run's trained model to the Hugging Face hub."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from text2grad.checkpoint.export import export
from text2grad.checkpoint.model_card import CARD, PLACEHOLDER
from text2grad.checkpoint.run_folder import RunFolder
from text2grad.checkpoint.trained import ADAPTER_CONFIG, find_model, is_run
from text2grad.checkpoint.weights import STATE
from text2grad.errors import UserError
from text2grad.folders import MANIFEST
from text2grad.models.loading import base_model_name

_OWN = {MANIFEST, STATE}  # files of ours that are of no use to others


@contextmanager
def staged(run: Path, repository: str, merged: bool) -> Iterator[Path]:
    """Yield a folder with what is to be uploaded: the adapter or, if merged, the plain model, with card and tokenizer.

    The card and the adapter name things as others find them: the repository itself, and the base on the hub.
    """
    if not is_run(RunFolder(run)):
        raise UserError(f"{run}: not a run; give the output_dir of a finished one")
    source = find_model(run)
    name, is_published = base_model_name(source.base)
    if source.adapter is not None and not merged and not is_published:
        raise UserError(
            f"the adapter of {run} is for {source.base}, which is a folder of this machine that others do not have; "
            f"push the merged model: --merged"
        )
    if not (RunFolder(run).final / CARD).is_file():
        raise UserError(f"{run}: no model card; a finished run has one in {RunFolder(run).final / CARD}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "model"
        if merged:
            export(run, folder)
        else:
            shutil.copytree(RunFolder(run).final, folder)
        for own in _OWN:
            (folder / own).unlink(missing_ok=True)
        card = folder / CARD
        card.write_text(card.read_text(encoding="utf-8").replace(PLACEHOLDER, repository), encoding="utf-8")
        adapter = folder / ADAPTER_CONFIG
        if adapter.is_file():
            settings = json.loads(adapter.read_text(encoding="utf-8")) | {"base_model_name_or_path": name}
            adapter.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
        yield folder


def upload(folder: Path, repository: str, private: bool) -> str:
    """Upload a folder to a repository, which is created if there is none; return the address of the commit.

    The token is that of the environment or of `hf auth login`. Raises UserError where the hub refuses.
    """
    from huggingface_hub import HfApi, get_token
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    if get_token() is None:
        raise UserError("the hub needs a token: put one that may write into HF_TOKEN, or run `hf auth login`")
    api = HfApi()
    try:
        api.create_repo(repository, private=private, exist_ok=True)
        message = "Upload a model trained with text2grad"
        return str(api.upload_folder(repo_id=repository, folder_path=folder, commit_message=message))
    except HFValidationError as error:
        raise UserError(f'"{repository}" is no name of a repository; write OWNER/NAME ({error})') from error
    except HfHubHTTPError as error:
        status = getattr(error.response, "status_code", "?")
        raise UserError(
            f"the hub refuses to take {repository} (HTTP {status}); check that your token may write there"
        ) from error
