"""The Hugging Face hub: whether it responds, asked once instead of once per file with retries."""

from __future__ import annotations

from pathlib import Path

TIMEOUT = 5  # seconds


class HubUnreachableError(Exception):
    """The hub does not respond, and its cache does not have the model."""


def hub_options(name: str) -> dict[str, bool]:
    """Return the options that load a model: from the cache alone where the hub does not respond.

    Without them the libraries retry every file for most of a minute. Raises ValueError for an impossible name.
    """
    from huggingface_hub import get_hf_file_metadata, hf_hub_url, try_to_load_from_cache
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    if Path(name).is_dir():
        return {}
    try:
        get_hf_file_metadata(hf_hub_url(name, "config.json"), timeout=TIMEOUT)
    except HFValidationError:
        raise
    except HfHubHTTPError:
        return {}  # it responds
    except Exception as error:  # which one depends on the hub's HTTP library
        if isinstance(try_to_load_from_cache(name, "config.json"), str):
            return {"local_files_only": True}
        raise HubUnreachableError(name) from error
    return {}
