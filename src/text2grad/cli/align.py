"""`text2grad align`: spans for comments that have none."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from text2grad.cli.annotate import annotate_with_progress
from text2grad.cli.options import Debug, FeedbackFile, RetryFailed
from text2grad.errors import UserError


def align(
    source: Annotated[Path, typer.Argument(help="JSON lines whose records have feedback with a critique.")],
    output: FeedbackFile,
    model: Annotated[
        str | None,
        typer.Option(help="Also use the attention of this model (smollm2): somewhat better, a hundred times slower."),
    ] = None,
    retry_failed: RetryFailed = False,
    debug: Debug = False,
) -> None:
    """Find the words that each comment is about, for every record that has a critique and no spans.

    Quotations are located first; for a comment without quotations, the words it refers to are predicted. A comment that
    cannot be aligned is kept with status "failed". An interrupted run continues with the same command.

    Example: text2grad align comments.jsonl -o feedback.jsonl
    """
    from text2grad.align.comment_aligner import CommentAligner, is_alignable
    from text2grad.schema import read_examples

    if not any(example.feedback and is_alignable(example.feedback) for example in read_examples(source)):
        raise UserError(
            f"{source}: nothing to align: no record has feedback with a critique and without spans; "
            f"`text2grad annotate` adds feedback"
        )
    scorer = None
    if model is not None:
        from text2grad.align.learned.attention_features import AttentionScorer
        from text2grad.models.loading import load_model, load_tokenizer

        scorer = AttentionScorer(load_model(model), load_tokenizer(model))
    annotate_with_progress(source, output, CommentAligner(scorer), retry_failed=retry_failed)
