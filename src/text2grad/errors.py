"""Exceptions for errors that the user can fix."""

import traceback
from pathlib import Path


class UserError(Exception):
    """An error whose message is one sentence with the cause and the fix; the CLI prints it without a traceback."""


class SharedError(UserError):
    """A UserError raised on every process of a distributed run; only the main process reports it."""


def describe_exception(error: Exception) -> str:
    """Return the kind and message of an exception, and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    message = " ".join(str(error).split())
    return f"{type(error).__name__}{': ' if message else ''}{message}{place}"
