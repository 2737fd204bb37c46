"""The Hugging Face hub: whether it responds, asked once instead of once per file with retries."""

from __future__ import annotations

from pathlib import Path

TIMEOUT = 5  # seconds


class HubUnreachableError(Exception):
    """The hub does not respond, and its cache does not have the model."""


def use_cache_only(name: str) -> bool:
    """Return whether a model has to come from the cache, because the hub does not respond.

    The libraries would retry every file for most of a minute. Raises ValueError for an impossible name.
    """
    from huggingface_hub import get_hf_file_metadata, hf_hub_url, try_to_load_from_cache
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    if Path(name).is_dir():
        return False
    try:
        get_hf_file_metadata(hf_hub_url(name, "config.json"), timeout=TIMEOUT)
    except HFValidationError:
        raise
    except HfHubHTTPError:
        return False  # it responds
    except Exception as error:  # which one depends on the hub's HTTP library
        if isinstance(try_to_load_from_cache(name, "config.json"), str):
            return True
        raise HubUnreachableError(name) from error
    return False
