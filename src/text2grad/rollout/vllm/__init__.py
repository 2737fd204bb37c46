"""Rollouts through vLLM: a server, or an engine that shares the trainer's GPU.

Either receives the policy's weights before every rollout, and returns the sampled ids with the log-probability of each,
at the sampling temperature. See docs/rollouts.md.
"""
