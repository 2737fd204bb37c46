"""Rule critics, which need no model: grounding (summaries), qa (answers to questions), lint (Python code)."""
