"""A critic's reply about an answer -> Feedback with its quotations found in that answer."""

from __future__ import annotations

from text2grad.align.quotes import locate_quote, locate_quotes
from text2grad.critics.llm.reply import Quoted, Reply, UnreadableError, read_reply
from text2grad.schema import Example, Feedback, Omission, Range, Span


def verdict(raw: str, example: Example, critic: str, threshold: float = 0.75) -> Feedback:
    """Read `raw` and find its quotations in the completion.

    A part that is quoted twice with the same label counts once, in the words of the first. Failed, with the raw reply
    kept: a reply that cannot be read, and one none of whose quotations is in the answer.
    """
    try:
        reply = read_reply(raw)
    except UnreadableError as error:
        return Feedback.failure(critic, f"unreadable: {error}", raw)
    contexts = [span.phrase for span in reply.spans]
    matches = locate_quotes(
        [span.quote for span in reply.spans], example.completion, contexts=contexts, threshold=threshold
    )
    spans: dict[tuple[int, int, str], Span] = {}
    unmatched = list(reply.unread)
    for quoted, match in zip(reply.spans, matches, strict=True):
        if match is None:
            unmatched.append(quoted.quote)
        else:
            span = Span(
                start=match.start,
                end=match.end,
                label=quoted.label,
                severity=quoted.severity,
                phrase=_phrase(quoted.phrase, reply),
                critic=critic,
                match=match.kind,
                confidence=match.confidence,
            )
            spans.setdefault((span.start, span.end, span.label), span)
    lost = bool(unmatched) and not spans
    return Feedback(
        reasoning=reply.reasoning,
        critique=reply.critique,
        spans=list(spans.values()),
        omissions=[
            Omission(text=missing.text, severity=missing.severity, phrase=_phrase(missing.phrase, reply))
            for missing in reply.omissions
        ],
        unmatched=unmatched,
        critic=critic,
        raw=raw,
        status="failed" if lost else "ok",
        error=_why_lost(reply.spans, unmatched) if lost else None,
    )


def _phrase(phrase: str | None, reply: Reply) -> Range | None:
    """Where the phrase stands in the critique; a phrase that is not there points nowhere, and the span still stands."""
    match = locate_quote(phrase, reply.critique) if phrase else None
    return (match.start, match.end) if match else None


def _why_lost(spans: list[Quoted], unmatched: list[str]) -> str:
    if not spans:
        return f"unreadable: none of the {len(unmatched)} quotes has a readable label"
    return f"unmatched: none of the {len(unmatched)} quotes is in the answer"
