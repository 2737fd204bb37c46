"""HTML reports: one self-contained file per run, or per file of feedback, that opens in any browser."""

from text2grad.report.build import build_report
from text2grad.report.feedback_page import build_feedback_report

__all__ = ["build_feedback_report", "build_report"]
