"""Let runs fill a small disk, enlarge it, and resume them: `python full_disk_support.py FOLDER MODEL SIZE...`.

Needs a mount namespace of its own. SIZE: of the disk, as a percentage of what a run needs at most.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from kill_support import fork, make_config, read_run_folder, train, write_data

from text2grad.errors import UserError


def main(folder: Path, model: str, sizes: list[int]) -> None:
    write_data(folder)
    assert fork(lambda: train(make_config(folder, "through", model, 0), resume=False)) == 0
    needed = sum(path.stat().st_blocks // 2 for path in (folder / "through").rglob("*"))
    for size in sizes:
        config = make_config(folder, f"disk-{size}", model, 0)
        disk, said = config.output_dir, folder / f"said-{size}"
        disk.mkdir()
        mount("-t", "tmpfs", "-o", f"size={needed * size // 100}k", "tmpfs", disk)

        def work() -> None:
            try:
                train(config, resume=False)  # noqa: B023
            except UserError as error:
                said.write_text(str(error))  # noqa: B023

        status = fork(work)
        mount("-o", f"remount,size={2 * needed}k", disk)
        again = fork(lambda: train(config, resume=(disk / "config.yaml").exists()))  # noqa: B023
        one, other = read_run_folder(folder / "through"), read_run_folder(disk)
        different = sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))
        error = said.read_text() if said.exists() else None
        print(json.dumps({"status": [status, again], "said": error, "different": different}), flush=True)


def mount(*arguments: str | Path) -> None:
    subprocess.run(["mount", *map(os.fspath, arguments)], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], list(map(int, sys.argv[3:])))
