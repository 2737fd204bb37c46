"""Shows a run to a person: one page that needs nothing but a browser."""

from text2grad.report.build import build_report

__all__ = ["build_report"]
