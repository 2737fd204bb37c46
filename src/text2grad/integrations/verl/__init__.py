"""Span feedback in verl, the distributed trainer: docs/verl.md.

`import verl` loads `plugin` through the entry point group `verl.plugins`. `rows`, `scoring` and `advantages` do not
import verl.
"""
