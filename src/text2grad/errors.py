"""The one exception that means: the person at the keyboard can fix this."""


class UserError(Exception):
    """One sentence that names the culprit and the remedy; `cli.py` prints it without a traceback."""
