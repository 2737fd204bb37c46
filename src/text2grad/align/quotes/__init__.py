"""Quotations of a comment, found in the completion."""
