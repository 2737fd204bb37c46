"""Faster decoding with the same results, behind the setting `fast_decoding`.

Everywhere: grouped attention for single tokens (grouped_attention.py) and prepared LoRA layers (modules.py). On a GPU
also CUDA graphs (decoders.py), fused norms (modules.py) and fused layers (fused_layers.py). Models that do not support
one of these decode without it.
"""
