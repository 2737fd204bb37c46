"""Are comments read as meant by a language model on a server? The hand-labelled part of `comments.py`.

The same comments, labels, measures and bars, with `text2grad align --llm-model` instead of the package's own reading. A
reply that fails counts as a comment that says nothing.

    python benchmarks/comments_llm.py --llm-model Qwen/Qwen3-8B --base-url http://localhost:8000/v1
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from comment_labels import LabelledComment, Opinion, words_in
from comments import own_comments
from harness import report, show

from text2grad.align.quotes.quotes import locate_quote
from text2grad.critics.llm.comment_reader import LLMCommentReader
from text2grad.critics.llm.comment_reply import Part, locate_parts, parse_parts
from text2grad.critics.llm.reply import UnreadableReplyError
from text2grad.schema import Example, Feedback


def main() -> None:
    args = options()
    reader = LLMCommentReader(model=args.llm_model, **({"base_url": args.base_url} if args.base_url else {}))
    figures, bars = own_comments(slice(40) if args.quick else slice(None), lambda comments: read_all(comments, reader))
    show(args.llm_model, ["", ""], [[name, f"{value:.3f}"] for name, value in figures.items()])
    report("comments_llm", figures | {"tokens_out": reader.ledger.tokens_out}, bars, args)


def read_all(comments: Sequence[LabelledComment], reader: LLMCommentReader) -> list[list[Opinion]]:
    """Return the opinions that the model reads in each comment."""
    examples = [
        Example(
            id=comment.id,
            prompt=comment.prompt or "",
            completion=comment.completion,
            feedback=Feedback(critic="human", critique=comment.comment),
        )
        for comment in comments
    ]
    replies = [feedback.raw or "" for feedback in reader.critique(examples)]
    return [opinions(comment, reply, reader) for comment, reply in zip(comments, replies, strict=True)]


def opinions(comment: LabelledComment, reply: str, reader: LLMCommentReader) -> list[Opinion]:
    """Return the parts of a reply as opinions; none of a reply that cannot be read."""
    try:
        parts = parse_parts(reply)
    except UnreadableReplyError:
        return []
    return [_opinion(comment, part, reader.settings.threshold) for part in parts]


def _opinion(comment: LabelledComment, part: Part, threshold: float) -> Opinion:
    match = locate_quote(part.phrase, comment.comment) if part.phrase else None
    bounds = (match.start, match.end) if match else (0, len(comment.comment))
    found = locate_parts([part], comment.comment, comment.completion, "human", threshold)
    is_whole = part.is_whole and not part.quotes
    words = words_in(comment.completion, [(span.start, span.end) for span in found.spans], is_whole)
    paid = part.opinion if found.spans else None
    confidences = tuple(
        (words_in(comment.completion, [(span.start, span.end)], is_whole), span.confidence) for span in found.spans
    )
    return Opinion(bounds, part.opinion, words, is_whole, bool(found.omissions), paid, confidences)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llm-model", required=True, help="the model on the server")
    parser.add_argument("--base-url", help="server URL; default: OpenAI")
    parser.add_argument("--device", default="cpu", help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="40 comments; save no result")
    return parser.parse_args()


if __name__ == "__main__":
    main()
