"""Sampling completions: Hugging Face and vLLM samplers, constrained decoding, fast decoding."""
