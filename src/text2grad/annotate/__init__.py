"""Annotate every record of a file with a critic's feedback: streaming, concurrent, resumable."""

from text2grad.annotate.runner import annotate
from text2grad.annotate.summary import Summary

__all__ = ["Summary", "annotate"]
