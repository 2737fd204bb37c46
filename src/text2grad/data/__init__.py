"""Prompt sets and feedback sets."""
