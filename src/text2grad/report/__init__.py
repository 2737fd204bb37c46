"""HTML reports: one self-contained file per run that opens in any browser."""

from text2grad.report.build import build_report

__all__ = ["build_report"]
