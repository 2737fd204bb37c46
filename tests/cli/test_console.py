"""Whatever models, data sets and servers write, no control character of it reaches the terminal."""

from __future__ import annotations

import io
import logging
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.table import Table

import text2grad.cli
from text2grad.annotate import Summary
from text2grad.cli.annotate import summary_table
from text2grad.cli.console import Console, PrintableFormatter
from text2grad.cli.display import comparison_table, explanation_table, highlight_spans
from text2grad.explain import Explanation, TokenChange
from text2grad.schema import Example, Feedback, Span

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b1A\r\u202eevil"
RICH_OWN = re.compile(r"\x1b\[[\d;]*m")  # colours


def shown(renderable: object) -> str:
    """What a terminal receives, without Rich's colours."""
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    console.print(renderable)
    return RICH_OWN.sub("", console.file.getvalue())  # type: ignore[attr-defined]


def side(text: str) -> dict[str, object]:
    span = Span(start=len(HOSTILE), end=len(HOSTILE) + 5, label="poor")
    feedback = Feedback(critique=text, spans=[span], critic="c")
    return {"completion": f"{HOSTILE}words{HOSTILE}", "feedback": feedback.model_dump()}


def every_display() -> dict[str, object]:
    token = TokenChange(HOSTILE, 0, 1, 1.0, 0.1, 0.2, -1.0, -0.5)
    summary = Summary()
    summary.add({"feedback": {"status": "failed", "error": f"{HOSTILE}: x"}})
    table = Table(HOSTILE, title=HOSTILE)
    table.add_row(HOSTILE)
    return {
        "comparison": comparison_table({"id": f"[/x] {HOSTILE}", "before": side(HOSTILE), "after": side("fine")}),
        "explanation": explanation_table(Explanation("c", HOSTILE, [], [], [], [], [token], [], 0)),
        "summary": summary_table(summary),
        "table": table,
        "text": HOSTILE,
    }


@pytest.mark.parametrize("name", every_display())
def test_no_display_lets_control_characters_through(name: str) -> None:
    printed = shown(every_display()[name])
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", printed)
    assert "evil" in printed


def test_spans_stay_on_their_words() -> None:
    example = Example.model_validate({"id": "1", "prompt": "", **side("")})
    (style,) = highlight_spans(example).spans
    assert highlight_spans(example).plain[style.start : style.end] == "words"


def test_all_commands_use_this_console() -> None:
    for path in Path(text2grad.cli.__file__).parent.glob("*.py"):
        if path.name != "console.py":
            assert "rich.console" not in path.read_text(encoding="utf-8"), path.name


def test_log_messages_are_printable() -> None:
    record = logging.LogRecord("n", logging.WARNING, "p", 1, "example %s failed", (HOSTILE,), None)
    assert PrintableFormatter().format(record) == "example ␛]0;owned␇␛[2J�1A␍�evil failed"


@pytest.mark.parametrize(
    "statement", ["raise ValueError(text)", "warnings.warn(text)", "logging.getLogger('x').error(text)"]
)
def test_tracebacks_warnings_and_logs_are_printable(statement: str) -> None:
    code = f"import logging, warnings\nimport text2grad.cli.console as c\nc.guard_stderr()\ntext = {HOSTILE!r}\n"
    done = subprocess.run([sys.executable, "-c", code + statement], capture_output=True, text=True, check=False)
    assert "␛]0;owned␇␛[2J" in done.stderr
    assert "\x1b" not in done.stderr


def test_an_error_message_is_printable(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text('{"id": "1", "prompt": "p", "completion": "c"}\n')
    command = [sys.executable, "-m", "text2grad", "annotate", str(path), "--critic", f"no{HOSTILE}", "-o", "x"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "evil" in done.stderr
    assert not re.search("[\x1b\x9b\r\u202e]", done.stderr)
