"""Readers of public feedback sets: each has `convert(row) -> Iterator[Example]`, see `importing.py`."""
