"""Extracts the code blocks of Markdown pages and executes them in a prepared folder.

Blocks marked bash, sh, console (lines that begin with `$ `) and python are executed in order. Python blocks of a page
share their names, and begin with `prompts`, `heldout`, `examples` and `critic`. `<!-- no-test: reason -->` before a
block skips it. The default model is replaced by a tiny one, training is limited to a few steps, servers are stopped
after some seconds, and the programs in `SKIPPED` do nothing.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import text2grad
from text2grad.critics.rules.grounding import GroundingCritic
from text2grad.schema import Example, Feedback, Span, write_examples

SKIPPED = [
    "accelerate",
    "apt-get",
    "brew",
    "docker",
    "git",
    "nvidia-smi",
    "open",
    "pip",
    "pipx",
    "uv",
    "vllm",
    "xdg-open",
]
SHELLS = ["bash", "sh", "console"]
BLOCK = re.compile(
    r"(?:<!--\s*no-test:(?P<reason>.*?)-->\s*)?^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<code>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)

TEXT2GRAD = """#!{python}
import os, re, signal, sys, threading
from text2grad.cli.app import main

arguments = [re.sub(r"max_steps=\\d+", "max_steps=2", argument) for argument in sys.argv[1:]]
if arguments[:1] in (["run"], ["train"]) and not {{"-h", "--help"}} & set(arguments):
    if not any("max_steps=" in argument for argument in arguments):
        arguments.append("policy.max_steps=2")
    arguments += ["policy.max_completion_length=8", "evaluate.resamples=50"]
if "serve" in arguments:  # until it is stopped; an error ends it earlier
    threading.Timer({server_seconds}, os.kill, (os.getpid(), signal.SIGINT)).start()
sys.argv = ["text2grad", *arguments]
try:
    main()
except SystemExit as stop:
    sys.exit(0 if stop.code == 130 and "serve" in arguments else stop.code)
"""
MAKE = """#!/bin/sh
if [ "$1" = quickstart ] && [ ! -e runs/quickstart ]; then text2grad run quickstart; fi
"""


@dataclass(frozen=True)
class Block:
    """One code block of a page."""

    line: int
    language: str
    code: str


def code_blocks(page: str) -> list[Block]:
    """Return the blocks of a page that are executed."""
    blocks = []
    for match in BLOCK.finditer(page):
        if match["reason"] is None and match["language"] in (*SHELLS, "python"):
            lines = [line.removeprefix(match["indent"]) for line in match["code"].splitlines()]
            code = _commands(lines) if match["language"] == "console" else "\n".join(lines)
            code = code.replace(".venv/bin/", "")  # programs of the environment that runs the tests
            blocks.append(Block(page.count("\n", 0, match.start("code")) + 1, match["language"], code))
    return blocks


def _commands(lines: list[str]) -> str:
    """Return the commands of a terminal session: lines after a prompt, with their continuation lines."""
    commands, continues = [], False
    for line in lines:
        if line.startswith("$ ") or continues:
            commands.append(line.removeprefix("$ "))
            continues = line.endswith("\\")
    return "\n".join(commands)


class DocumentationRunner:
    """Executes blocks in a folder that has the files that the documentation names."""

    def __init__(self, folder: Path, model: Path, server_seconds: float = 15.0) -> None:
        self.folder = self.current = folder / "project"
        self.folder.mkdir()
        self.environment = _environment(folder, model, server_seconds)
        self.names: dict[str, object] = {"__name__": "__main__", "critic": GroundingCritic()}
        self.names |= dict.fromkeys(("prompts", "heldout", "examples"), examples())
        write_files(self.folder)

    def run(self, block: Block, page: str) -> None:
        """Execute one block; a later block begins in the folder in which a shell block ended."""
        where = f"{page}:{block.line}"
        if block.language == "python":
            code = re.sub(r"max_steps=\d+", "max_steps=2", block.code)
            if "max_steps" not in code:
                code = code.replace("Text2GradConfig(", "Text2GradConfig(max_steps=2, ")
            code = "\n" * (block.line - 1) + code  # so that a traceback names the line of the page
            exec(compile(code, where, "exec"), self.names)
            return
        marker = self.folder.parent / "current_folder"
        done = subprocess.run(
            ["bash", "-e", "-u", "-o", "pipefail", "-c", f"{block.code}\npwd > {marker}"],
            cwd=self.current,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=900,
            check=False,
        )
        assert done.returncode == 0, f"{where} failed:\n{block.code}\n{done.stdout[-3000:]}"
        self.current = Path(marker.read_text().strip())


def _environment(folder: Path, model: Path, server_seconds: float) -> dict[str, str]:
    """Programs of the tests come first in PATH; the cache has the tiny model under the name of the default one."""
    programs = folder / "programs"
    programs.mkdir()
    scripts = dict.fromkeys(SKIPPED, "#!/bin/sh\n") | {"make": MAKE}
    scripts["text2grad"] = TEXT2GRAD.format(python=sys.executable, server_seconds=server_seconds)
    for name, text in scripts.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    (programs / "python").symlink_to(sys.executable)
    return os.environ | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(Path(text2grad.__file__).parents[1]),
        "TEXT2GRAD_CACHE": str(cache_with(folder / "cache", model)),
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "120",
    }


def cache_with(folder: Path, model: Path) -> Path:
    """Return a cache folder that has `model` as the default model, with room for the prompts of the quickstart."""
    shutil.copytree(model, folder / "smollm2")
    path = folder / "smollm2" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"max_position_embeddings": 4096}))
    return folder


def examples() -> list[Example]:
    """Return completions about summaries, questions and programs, with what the critics need."""
    source = (
        "The bridge over the Moll was closed on Monday after 340 bolts were found to be loose. Repairs take six weeks."
    )
    code = "def absolute(x):\n    if x < 0:\n        return x\n    return x\n"
    return [
        Example(
            id=str(i),
            prompt=f"{source}\n\nSummarise text {i} in one sentence.",
            completion=f"The Moll bridge was closed because {i}30 of its bolts were loose." if i % 2 else code,
            reference="The Moll bridge is closed for six weeks because of loose bolts.",
            tests="assert absolute(2) == 2\nassert absolute(-2) == 2",
            meta={"document": source, "question": "Why was the bridge closed?"},
        )
        for i in range(1, 13)
    ]


def write_files(folder: Path) -> None:
    """Write the files that commands of the documentation read."""
    plain = examples()
    commented = [
        example.model_copy(
            update={"feedback": Feedback(critic="human", critique=f'Wrong: "{example.completion[4:12].strip()}".')}
        )
        for example in plain
    ]
    located = []
    for example in commented:
        spans = [Span(start=4, end=12, label="poor"), Span(start=0, end=3, label="good")]
        assert example.feedback is not None
        located.append(example.model_copy(update={"feedback": example.feedback.model_copy(update={"spans": spans})}))
    prompts = [Example(id=e.id, prompt=e.prompt, reference=e.reference, meta=e.meta) for e in plain]
    files = {"answers": plain, "comments": commented, "feedback": located, "heldout": located, "prompts": prompts}
    for name, records in files.items():
        write_examples(folder / f"{name}.jsonl", records)
    (folder / "comments.csv").write_text(
        "prompt,completion,comment\n"
        + "".join(
            f'"{e.prompt}","{e.completion}","The word ""bridge"" is wrong."\n'
            for e in plain
            if "bridge" in e.completion
        )
    )
