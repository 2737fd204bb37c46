"""Run configuration: settings of a run, YAML presets."""
