"""What a run leaves on disk: its folder, resumable state, weights, export, model card."""
