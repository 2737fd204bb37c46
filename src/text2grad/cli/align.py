"""`text2grad align`: places for comments that have none."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from text2grad.cli.annotate import annotate_with_progress


def align(
    source: Annotated[Path, typer.Argument(help="JSON lines whose records have feedback with a critique.")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Where the records with spans go. If it is there, the run continues it."),
    ],
    model: Annotated[
        str | None,
        typer.Option(help="Also read the attention of this model (smollm2): somewhat better, a hundred times slower."),
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try again on the records whose comment was found nowhere.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Find the words that each comment is about, in every record that has a critique and no spans.

    What a comment quotes counts first; where it quotes nothing, what it is about is estimated from its words. A comment
    that is found nowhere is kept as failed. It continues after an interruption, as annotate does.

    Example: text2grad align comments.jsonl -o feedback.jsonl
    """
    from text2grad.align.comment_aligner import CommentAligner

    scorer = None
    if model is not None:
        from text2grad.align.learned.attention import AttentionScorer
        from text2grad.models.loading import load_model, load_tokenizer

        scorer = AttentionScorer(load_model(model), load_tokenizer(model))
    annotate_with_progress(source, output, CommentAligner(scorer), retry_failed=retry_failed)
