"""People's comments, read by a language model behind an OpenAI-compatible endpoint."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from text2grad.align.comment_aligner import describe_no_effect, is_alignable
from text2grad.critics.llm.comment_reply import SCHEMA, locate_parts, parse_parts
from text2grad.critics.llm.endpoint import CompletionError
from text2grad.critics.llm.endpoint_critic import EndpointCritic
from text2grad.critics.llm.fence import Fence, split_control_tokens
from text2grad.critics.llm.reply import UnreadableReplyError
from text2grad.critics.llm.settings import LLMSettings
from text2grad.schema import Example, Feedback

_TASK = """Somebody has commented on an answer to a task. Say what the comment means; do not judge the answer yourself.

The task:
{prompt}

The answer:
{completion}

The comment:
{comment}

Split the comment into the things that it says of the answer, in order, without thanks and greetings. Give for each
"phrase": the words of the comment that say it, copied.
"opinion": "poor" if something should be changed, removed or added, also politely, as a question or with \
irony; "good" if it should stay as it is; "unsure" if the writer takes no side.
"quotes": the fewest words of the answer that it is about, copied: of a wrong date the date, of a clumsy sentence the \
sentence, of a part that it names ("the last line") that part. Empty if it is about the answer as a whole, about \
something that is missing, or about nothing in this answer.
"whole": true if it is about the answer as a whole.
"missing": what the answer lacks and should have, in words of the comment; else null.
"instead": what should stand in the place of the quote, where the comment says so; "" if the quote should go; else null.

Reply with one JSON object: {{"reasoning": "...", "parts": [{{"phrase": "...", "opinion": "poor", "quotes": ["..."], \
"whole": false, "missing": null, "instead": null}}]}}"""


class LLMCommentReader(EndpointCritic):
    """As `CommentAligner`, by a language model: it splits a comment, tells praise from blame and quotes what is meant.

    Quotations are located in the completion, and what is said to be missing is checked against it. Feedback that has
    spans or scores, has no critique, or has failed is returned unchanged. A reply that fails or cannot be parsed, and a
    comment that has no effect, is failed feedback.

    options: the fields of LLMSettings.
    """

    reads_feedback = True  # a cached result is valid only for the same completion and the same comment

    def __init__(self, **options: Any) -> None:
        super().__init__(LLMSettings.parse(options, where="comment reader"), SCHEMA)

    def fingerprint(self) -> str:
        """Return a string that changes with every setting that the reading depends on."""
        relevant = {"model", "base_url", "max_tokens", "temperature", "extra_body", "threshold"}
        content = json.dumps([self.settings.model_dump(mode="json", include=relevant), _TASK], sort_keys=True)
        return "comments:" + hashlib.blake2b(content.encode(), digest_size=16).hexdigest()

    async def critique_one(self, example: Example) -> Feedback:
        """Return the feedback of an example with spans and omissions added."""
        feedback = example.feedback
        if feedback is None:
            return Feedback.failure("align", "there is no feedback to align; annotate the record first")
        if not is_alignable(feedback):
            return feedback
        comment, completion = feedback.critique, example.completion
        if not completion.strip():
            return _failed(feedback, describe_no_effect([]), None)
        try:
            reply = await self.endpoint.complete(render(example, comment))
        except CompletionError as error:
            return _failed(feedback, str(error), error.raw)
        try:
            parts = parse_parts(reply.content)
        except UnreadableReplyError as error:
            cut = f"truncated: the reply reached max_tokens ({self.settings.max_tokens}); " if reply.truncated else ""
            return _failed(feedback, f"{cut}unreadable: {error}", reply.content)
        found = locate_parts(parts, comment, completion, feedback.critic, self.settings.threshold)
        omissions = [*feedback.omissions, *found.omissions]
        if not found.spans and not omissions:
            return _failed(feedback, describe_no_effect(found.refused), reply.content)
        changes = {"spans": found.spans, "omissions": omissions, "unmatched": found.unmatched, "raw": reply.content}
        return feedback.model_copy(update=changes)


def _failed(feedback: Feedback, error: str, raw: str | None) -> Feedback:
    return feedback.model_copy(update={"status": "failed", "error": error, "raw": raw})


def render(example: Example, comment: str) -> str:
    """Return the prompt; the texts stand between tags that they cannot close (`fence.py`)."""
    given = {
        "prompt": ("task", example.prompt_text),
        "completion": ("answer", example.completion),
        "comment": ("comment", comment),
    }
    texts = {name: (tag, split_control_tokens(text)) for name, (tag, text) in given.items()}
    fence = Fence(text for _, text in texts.values())
    return f"{fence.instructions}\n\n{_TASK.format(**{n: fence.wrap(*pair) for n, pair in texts.items()})}"
