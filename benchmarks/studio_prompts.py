"""Prompts that have nothing to do with summaries: questions, instructions and small programs."""

UNRELATED = [
    "What is the capital of Portugal?",
    "Write a haiku about rain.",
    "Explain in two sentences why the sky is blue.",
    "Write a Python function that returns the sum of the squares of a list of numbers.",
    "Translate into French: Where is the railway station?",
    "Give three tips for growing tomatoes on a balcony.",
    "What is 17 plus 25?",
    "Write a polite email that declines an invitation to dinner.",
    "Name four metals and say what each is used for.",
    "Write a SQL query that counts the orders of each customer.",
    "Who wrote Pride and Prejudice, and when was it published?",
    "How do I boil an egg?",
    "Write the first sentence of a detective story.",
    "What does the word photosynthesis mean?",
    "List the planets of the solar system in order.",
    "Write a Python function that reverses a string.",
]
