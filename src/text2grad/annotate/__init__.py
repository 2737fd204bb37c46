"""Feedback for every record of a file, by any critic: streaming, concurrent, resumable."""

from text2grad.annotate.pipeline import annotate
from text2grad.annotate.summary import Summary

__all__ = ["Summary", "annotate"]
