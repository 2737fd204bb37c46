"""Exceptions for errors that the user can fix."""


class UserError(Exception):
    """An error whose message is one sentence with the cause and the fix; the CLI prints it without a traceback."""


class SharedError(UserError):
    """A UserError raised on every process of a distributed run; only the main process reports it."""
