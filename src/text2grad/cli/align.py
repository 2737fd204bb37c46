"""`text2grad align`: spans for comments that have none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from text2grad.cli.annotate import KEY_HELP, annotate_with_progress, llm_option
from text2grad.cli.options import Debug, FeedbackFile, RetryFailed, given
from text2grad.errors import UserError

if TYPE_CHECKING:
    from text2grad.critics.base import Critic
    from text2grad.schema import Example


def align(
    source: Annotated[Path, typer.Argument(help="JSON lines whose records have feedback with a critique.")],
    output: FeedbackFile,
    model: Annotated[
        str | None,
        typer.Option(help="Also use the attention of this model (smollm2): somewhat better, a hundred times slower."),
    ] = None,
    llm_model: Annotated[
        str | None, llm_option("Let this model on an OpenAI-compatible server read the comments instead.")
    ] = None,
    base_url: Annotated[
        str | None, llm_option("Server URL, for instance http://localhost:8000/v1. Default: OpenAI.")
    ] = None,
    api_key_env: Annotated[str | None, llm_option(KEY_HELP)] = None,
    price_in: Annotated[float | None, llm_option("Price per million prompt tokens.", min=0)] = None,
    price_out: Annotated[float | None, llm_option("Price per million reply tokens.", min=0)] = None,
    max_cost: Annotated[
        float | None, llm_option("Stop before this run costs more, in the currency of the prices.", min=0)
    ] = None,
    retry_failed: RetryFailed = False,
    debug: Debug = False,
) -> None:
    """Find the words that each comment is about, for every record that has a critique and no spans.

    A comment is split into clauses, praise is told from blame, and the words that each clause means are found: quoted,
    named, described or paraphrased. A comment that cannot be aligned is kept with status "failed". An interrupted run
    continues with the same command. A language model reads what rules cannot: --llm-model.

    Example: text2grad align comments.jsonl -o feedback.jsonl
    """
    from text2grad.align.comment_aligner import CommentAligner

    endpoint: dict[str, object] = {"base_url": base_url, "api_key_env": api_key_env}
    endpoint |= {"price_in": price_in, "price_out": price_out, "max_cost": max_cost}
    if llm_model is None and given(endpoint):
        option = f"--{next(iter(given(endpoint))).replace('_', '-')}"
        raise UserError(f"{option} is for a model on a server; name it with --llm-model")
    if llm_model is not None and model is not None:
        raise UserError("give --model or --llm-model, not both: a model on a server reads the comments alone")

    _check_alignable(source)
    critic: Critic
    if llm_model is not None:
        from text2grad.critics.llm.comment_reader import LLMCommentReader

        critic = LLMCommentReader(model=llm_model, **given(endpoint))
    elif model is not None:
        from text2grad.align.learned.attention_features import AttentionScorer
        from text2grad.models.loading import load_model, load_tokenizer

        critic = CommentAligner(AttentionScorer(load_model(model), load_tokenizer(model)))
    else:
        critic = CommentAligner()
    annotate_with_progress(source, output, critic, retry_failed=retry_failed)


def _check_alignable(source: Path) -> None:
    """Raise UserError with the remedy where no record has feedback to align."""
    from text2grad.align.comment_aligner import is_alignable
    from text2grad.schema import read_examples

    is_empty, comment = True, None
    for example in read_examples(source):
        is_empty = False
        if example.feedback is not None and is_alignable(example.feedback):
            return
        comment = comment or _find_comment(example)
    if is_empty:
        raise UserError(f"{source}: the file is empty; give JSON lines whose records have feedback with a critique")
    if comment is not None:
        raise UserError(
            f"{source}: nothing to align: the records have no feedback, but a {comment}; "
            f"use `text2grad import {source} -o feedback.jsonl`, which reads it"
        )
    raise UserError(
        f"{source}: nothing to align: no record has feedback with a critique and without spans; "
        f"`text2grad annotate` adds feedback"
    )


def _find_comment(example: Example) -> str | None:
    """Return the name of the field that holds a person's comment, where there is no feedback."""
    from text2grad.critics.human.columns import NAMES

    usual = NAMES["comment"].split()
    if example.feedback is not None:
        return None
    return next((name for name, text in example.meta.items() if name.lower() in usual and isinstance(text, str)), None)
