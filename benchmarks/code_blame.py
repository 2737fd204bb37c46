"""Fault localisation: are the lines that the code critic or an aligned critique blames those that the fix changed?

195 failing programs, each with a human critique and a human fix. A blamed line is right if the fix changed it. Blamed
lines are compared with as many random lines (the exact expectation), with as many last lines, and with the lines of as
many largest statements (by syntax nodes, of equals the later one). At most 30% of a
program's statements are blamed, at least one; the bars are for programs of four statements and more, where both limits
can hold. Programs whose fix only inserts lines have no line to blame and are skipped.
"""

from __future__ import annotations

import difflib
import math
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness import Bar, data_folder, options, report, show

from text2grad.align.answer.program import Program, extract_program, find_statements
from text2grad.align.reading import read_comment
from text2grad.critics.code import CodeCritic
from text2grad.data import ilf_code
from text2grad.evaluation.significance import Interval, paired_bootstrap
from text2grad.schema import Example, Span

SHARE = 0.3
RESAMPLES, SEED = 10_000, 0
MEASURES = ("hit rate", "precision")
BASELINES = ("random", "last", "largest")
ABOVE_ZERO = Bar(at_least=1e-9)


@dataclass(frozen=True)
class Row:
    """One program: its lines, those that the fix changed, and those that were blamed."""

    lines: list[int]
    changed: set[int]
    blamed: set[int]
    by_size: list[int]  # the lines, that of the largest statement first

    def hit(self, lines: Iterable[int]) -> float:
        return float(bool(self.changed & set(lines)))

    def precision(self, lines: Sequence[int]) -> float:
        return len(self.changed & set(lines)) / len(lines)

    def metrics(self) -> dict[tuple[str, str], float]:
        """Return hit rate and precision of the blamed lines, of as many random, last and largest ones."""
        count, total = len(self.blamed), len(self.lines)
        missed = math.comb(total - len(self.changed), count) / math.comb(total, count)
        last, largest = self.lines[-count:], self.by_size[:count]
        return {
            ("hit rate", "blamed"): self.hit(self.blamed),
            ("hit rate", "random"): 1 - missed,
            ("hit rate", "last"): self.hit(last),
            ("hit rate", "largest"): self.hit(largest),
            ("precision", "blamed"): self.precision(sorted(self.blamed)),
            ("precision", "random"): len(self.changed) / total,
            ("precision", "last"): self.precision(last),
            ("precision", "largest"): self.precision(largest),
        }


def main() -> None:
    args = options(__doc__ or "")
    examples = list(ilf_code.read(data_folder() / "ilf_code" / "surge_annotations.jsonl.gz"))
    examples = examples[:40] if args.quick else examples
    feedback = CodeCritic(max_blamed_share=SHARE).critique(examples)
    by_tests = [(example, feedback.spans) for example, feedback in zip(examples, feedback, strict=True)]
    by_critique = [(example, _align_critique(example)) for example in examples]
    figures: dict[str, float] = {"programs": len(examples)}
    figures["programs_passing"] = sum(item.score == 1 for item in feedback)
    figures["critiques_failed"] = sum(item.status == "failed" for item in feedback)
    for name, pairs in (("tests", by_tests), ("critique", by_critique)):
        rows = [row for row in (_row(example, spans) for example, spans in pairs) if row is not None]
        figures |= _compare(f"{name}_all", rows)
        figures |= _compare(f"{name}_long", [row for row in rows if len(row.lines) * SHARE >= 1])
    bars = {
        f"{name}_long_{_key(measure)}_minus_{baseline}_low": ABOVE_ZERO
        for name in ("tests", "critique")
        for measure in MEASURES
        for baseline in ("random", "last")
    }
    bars["tests_long_precision_minus_largest_low"] = ABOVE_ZERO
    bars |= {f"{name}_long_blamed_share_max": Bar(at_most=SHARE) for name in ("tests", "critique")}
    report("code_blame", figures, bars, args)


def _align_critique(example: Example) -> list[Span]:
    assert example.feedback is not None
    assert isinstance(example.prompt, str)
    return read_comment(example.feedback.critique, example.completion, example.prompt_text, label="poor").spans


def _row(example: Example, spans: Sequence[Span]) -> Row | None:
    """Blame the most confident spans, as many as the share allows; None if the fix changes no line of the program."""
    assert isinstance(example.prompt, str)
    program = extract_program(example.completion, example.prompt)
    statements = find_statements(program) if program else {}
    lines = list(statements)
    changed = set(lines) & _changed(example, program) if program else set()
    if not program or not changed:
        return None
    max_lines = max(1, int(SHARE * len(lines)))
    ranked = sorted(
        (span for span in spans if span.label == "poor" and span.match != "whole"),
        key=lambda span: -span.confidence * span.severity,
    )
    blamed: list[int] = []
    for span in ranked:
        line = _line_at(program, span.start)
        if line in lines and line not in blamed:
            blamed.append(line)
    by_size = sorted(lines, key=lambda line: (-statements[line].size, -line))
    return Row(lines, changed, set(blamed[:max_lines]), by_size)


def _line_at(program: Program, position: int) -> int:
    before = program.prefix + program.code[: position - program.start]
    return len(re.findall(r"\r\n|\r|\n", before)) + 1


def _changed(example: Example, program: Program) -> set[int]:
    """Return the lines that the human fix replaced or deleted; white space, blank lines and comments are ignored."""
    assert isinstance(example.reference, str)
    assert isinstance(example.prompt, str)
    is_whole_program = example.reference.lstrip().startswith('"""') and not program.code.lstrip().startswith('"""')
    fixed = example.reference if is_whole_program else example.prompt + example.reference
    before, after = _meaningful(program.source), _meaningful(fixed)
    matcher = difflib.SequenceMatcher(None, [text for _, text in before], [text for _, text in after], autojunk=False)
    return {
        before[index][0]
        for what, start, end, _, _ in matcher.get_opcodes()
        if what in ("replace", "delete")
        for index in range(start, end)
    }


def _meaningful(source: str) -> list[tuple[int, str]]:
    lines = [(number, re.sub(r"\s+", "", line)) for number, line in enumerate(re.split(r"\r\n|\r|\n", source), 1)]
    return [(number, line) for number, line in lines if line and not line.startswith("#")]


def _compare(name: str, rows: Sequence[Row]) -> dict[str, float]:
    blamed_rows = [row for row in rows if row.blamed]
    measured = [row.metrics() for row in blamed_rows]
    figures: dict[str, float] = {f"{name}_programs": len(rows), f"{name}_programs_blamed": len(blamed_rows)}
    figures[f"{name}_blamed_share_max"] = max(len(row.blamed) / len(row.lines) for row in blamed_rows)
    table = []
    for measure in MEASURES:
        values = {who: [row[measure, who] for row in measured] for who in ("blamed", *BASELINES)}
        cells = [f"{sum(values[who]) / len(measured):.3f}" for who in values]
        figures |= {f"{name}_{_key(measure)}_{who}": sum(values[who]) / len(measured) for who in values}
        for baseline in BASELINES:
            interval = paired_bootstrap(values[baseline], values["blamed"], RESAMPLES, SEED)
            figures |= _interval(f"{name}_{_key(measure)}_minus_{baseline}", interval)
            cells.append(f"{interval.difference:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]")
        table.append([measure, *cells])
    title = f"{name}: {len(blamed_rows)} of {len(rows)} programs with a blamed line"
    show(title, ["", "blamed", *BASELINES, *(f"minus {baseline}" for baseline in BASELINES)], table)
    return figures


def _interval(name: str, interval: Interval) -> dict[str, float]:
    return {name: interval.difference, f"{name}_low": interval.low, f"{name}_high": interval.high}


def _key(measure: str) -> str:
    return measure.replace(" ", "_")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
