"""`text2grad explain`: the effect of one comment on one completion."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from text2grad.cli.console import Console
from text2grad.cli.options import Debug, PlainPrompts
from text2grad.cli.progress import silence_libraries


def explain(
    prompt: Annotated[str, typer.Option(help="The prompt.")],
    completion: Annotated[str, typer.Option(help="The model's completion.")],
    feedback: Annotated[str, typer.Option(help="Your comment; quoting the words that you mean helps.")],
    model: Annotated[str, typer.Option(help="smollm2, a hub name, a folder, or a run.")] = "smollm2",
    step_size: Annotated[
        float, typer.Option(min=1e-6, help="Mean change of a rewarded token's log-probability, in nats.")
    ] = 0.5,
    plain_prompts: PlainPrompts = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    debug: Debug = False,
) -> None:
    """Show how a comment is read, its token rewards and corrections, and probabilities before and after one step.

    The step is the smallest change of the last layers' weights that moves these words and no others. Nothing is saved.

    Example: text2grad explain --prompt "When do we meet?" --completion "We meet on Friday at noon."
    --feedback 'The meeting was not on "Friday".'
    """
    from text2grad.checkpoint.trained import find_model, load_merged
    from text2grad.cli.display import explanation_table, reading_table
    from text2grad.explain import explain as explain_comment
    from text2grad.explain import locate_comment
    from text2grad.models.loading import load_tokenizer

    silence_libraries()
    located, refused = locate_comment(feedback, completion, prompt)  # fails before the model is loaded
    source = find_model(model)
    explanation = explain_comment(
        load_merged(source),
        load_tokenizer(source.tokenizer),
        prompt,
        completion,
        located,
        step_size,
        plain_prompts,
        refused,
    )
    if as_json:
        print(json.dumps(explanation.to_dict()))  # ASCII: nothing in it can command a terminal
    else:
        console = Console()
        console.print(reading_table(explanation))
        console.print(explanation_table(explanation))
