"""The span reward model: inputs, network, generation, training, evaluation and serving."""
