"""Metrics of completions, and comparisons with confidence intervals."""
