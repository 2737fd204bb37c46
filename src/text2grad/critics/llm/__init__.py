"""LLM critics: an OpenAI-compatible endpoint or a local model."""
