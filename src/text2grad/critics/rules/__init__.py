"""Reading English prose without a model: words, names and numbers, key facts, and what is wrong with a summary."""
