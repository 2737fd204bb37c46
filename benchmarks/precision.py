"""In which precision does a processor train faster? The quickstart in float32 and bfloat16, with units for it or not.

AVX2: matrix products use nothing newer than AVX2, as on most laptops, where bfloat16 is converted to float32 and back.
Own: whatever the processor has, AVX512-BF16 or AMX for the second bar. Seconds are of the last of two training steps.
At last the whole quickstart runs as on such a laptop.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path
from unittest.mock import patch

import harness
import quickstart

INSTRUCTIONS = {
    "avx2": {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"},
    "own": {},
}
PRECISIONS = {"float32": "policy.bf16=false", "bfloat16": "policy.bf16=true"}
BARS = {
    "avx2_bfloat16_over_float32": harness.Bar(at_least=1.0),
    "own_float32_over_bfloat16": harness.Bar(at_least=1.0),
    "avx2_minutes": harness.Bar(at_most=8.0),
    "avx2_gib": harness.Bar(at_most=4.0),
}


def main() -> None:
    args = harness.options(__doc__ or "")
    figures = {
        f"{kind}_{precision}_seconds": step_seconds(INSTRUCTIONS[kind], PRECISIONS[precision], args.quick)
        for kind, precision in product(INSTRUCTIONS, PRECISIONS)
    }
    rows = [
        [kind, *(f"{figures[f'{kind}_{precision}_seconds']:.1f}" for precision in PRECISIONS)] for kind in INSTRUCTIONS
    ]
    harness.show("Seconds of a training step", ["instructions", *PRECISIONS], rows)
    with patch.dict(os.environ, INSTRUCTIONS["avx2"]):
        whole = quickstart.run(0, [PRECISIONS["float32"], *(["policy.max_steps=2"] if args.quick else [])])
    figures |= {
        "avx2_bfloat16_over_float32": figures["avx2_bfloat16_seconds"] / figures["avx2_float32_seconds"],
        "own_float32_over_bfloat16": figures["own_float32_seconds"] / figures["own_bfloat16_seconds"],
        "avx2_minutes": whole["minutes"],
        "avx2_gib": whole["gib"],
    }
    harness.report("precision", figures, BARS, args)


def step_seconds(environment: dict[str, str], precision: str, quick: bool) -> float:
    """Return the seconds of the last training step of a run without held-out prompts."""
    with tempfile.TemporaryDirectory() as folder:
        settings = [f"policy.max_steps={1 if quick else 2}", "data.eval=null", f"output_dir={folder}/run", precision]
        program = "from text2grad.cli.app import main; main()"
        command = [sys.executable, "-c", program, "run", "quickstart", *settings]
        subprocess.run(command, env={**os.environ, **environment}, check=True, stdout=subprocess.DEVNULL)
        steps = Path(folder, "run", "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return float(json.loads(steps[-1])["time/step"])


if __name__ == "__main__":
    main()
