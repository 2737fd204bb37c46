"""Files of a run: its folder, resumable state, weights, export, model card."""
