"""Feedback to token rewards."""
