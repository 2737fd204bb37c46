"""How a language model reads and writes: prompts, batches, caches, sampling, log-probabilities."""
