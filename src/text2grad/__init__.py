"""Teach language models from written feedback."""
