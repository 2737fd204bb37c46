"""The one exception that means: the person at the keyboard can fix this."""


class UserError(Exception):
    """One sentence that names the culprit and the remedy; `cli.py` prints it without a traceback."""


class SharedError(UserError):
    """A UserError that ends every process of a run and that the main process reports; the others only stop."""
