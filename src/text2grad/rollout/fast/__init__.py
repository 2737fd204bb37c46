"""Faster decoding on a GPU: CUDA graphs, grouped attention, fused norms, prepared LoRA layers."""
