"""Alignment: which part of a completion a comment is about, and which tokens hold a part."""
