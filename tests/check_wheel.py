"""Build sdist and wheel, install the wheel into an empty environment, and use it there: `make test-wheel`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "text2grad"
EXTRAS = ["fastapi", "uvicorn", "openai", "ruff"]  # the core must work without them
FEW_STEPS = ["policy.max_steps=1", "policy.max_completion_length=16"]


def main() -> None:
    """Exit with an error if a step fails."""
    with tempfile.TemporaryDirectory(prefix="text2grad-wheel-") as name:
        folder = Path(name)
        run([sys.executable, "-m", "build", "--outdir", folder / "dist", ROOT], folder)
        (wheel,) = (folder / "dist").glob("*.whl")
        (_sdist,) = (folder / "dist").glob("*.tar.gz")
        run([sys.executable, "-m", "twine", "check", "--strict", *(folder / "dist").iterdir()], folder)
        check_contents(wheel)
        venv.create(folder / "venv", with_pip=True)
        python = folder / "venv" / "bin" / "python"
        run([python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wheel], folder)
        check_missing(python, folder)
        text2grad = folder / "venv" / "bin" / "text2grad"
        run([text2grad, "--version"], folder)
        run([text2grad, "run", "quickstart", *FEW_STEPS], folder)
        run([text2grad, "init", "mine"], folder)
        run([text2grad, "run", "config.yaml", *FEW_STEPS], folder / "mine")
        reports = [folder / "runs/quickstart/report.html", folder / "mine/runs/first/report.html"]
        missing = [str(report) for report in reports if not report.is_file()]
        if missing:
            sys.exit(f"not written: {', '.join(missing)}")
    print("The wheel works.")


def run(command: list[str | Path], folder: Path) -> None:
    """Run a command without the packages and settings of this environment."""
    print("+", *command, flush=True)
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    subprocess.run(command, cwd=folder, env=environment, check=True)


def check_contents(wheel: Path) -> None:
    """Check that the wheel has every tracked file of the package."""
    listed = subprocess.run(["git", "ls-files", "src/text2grad"], cwd=ROOT, capture_output=True, text=True, check=True)
    tracked = {path.removeprefix("src/") for path in listed.stdout.splitlines() if (ROOT / path).is_file()}
    missing = tracked - set(zipfile.ZipFile(wheel).namelist())
    if missing or not tracked:
        sys.exit(f"missing in {wheel.name}: {', '.join(sorted(missing)) or 'everything'}")


def check_missing(python: Path, folder: Path) -> None:
    """Check that optional packages were not installed, so that the commands below show that they are optional."""
    code = f"import importlib.util as u, sys; sys.exit(' '.join(n for n in {EXTRAS} if u.find_spec(n)) or 0)"
    run([python, "-c", code], folder)


if __name__ == "__main__":
    main()
