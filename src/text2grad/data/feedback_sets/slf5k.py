"""SLF5K: summaries of Reddit posts with a person's written feedback (JeremyAlain/SLF5K, Scheurer et al., 2023).

Tested on files of that shape, not on the set itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from text2grad.data.feedback_sets.fields import optional_text, text_field
from text2grad.data.rows import Row
from text2grad.schema import Example, Feedback

PROMPT = "Title: {title}\n\n{post}\n\nSummarise the post above in a few sentences."
_META = ("subreddit", "feedback_class", "has_additional_feedback", "tldr_human_reference_summary")


def convert(row: Row) -> Iterator[Example]:
    """Yield the summary that feedback was given on; the reference is the annotator's ideal summary.

    The critique has no spans: `text2grad import` aligns it. Rows without feedback (the test split) are refused.
    """
    fields = row.fields
    prompt = optional_text(fields, "summary_prompt")
    yield Example(
        id=f"slf5k-{fields['id']}",
        prompt=prompt or PROMPT.format(title=text_field(fields, "title"), post=text_field(fields, "post")),
        completion=text_field(fields, "generated_summary_for_feedback"),
        reference=optional_text(fields, "ideal_human_summary"),
        feedback=Feedback(critique=text_field(fields, "feedback").strip(), critic="human"),
        meta={"document": fields["post"], **{name: fields[name] for name in _META if fields.get(name) is not None}},
    )
