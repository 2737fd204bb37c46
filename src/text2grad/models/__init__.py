"""Language models: loading, prompts, packed batches, log-probabilities, the policy with its value head."""
