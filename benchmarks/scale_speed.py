"""Speed at the sizes that people train: random weights of Llama-3.2-1B, Qwen3-1.7B and an 8B Llama, on one GPU.

    python benchmarks/scale_speed.py --part step --device cuda --out OUT     # one part; finished cases are skipped
    python benchmarks/scale_speed.py --part report --device cuda --out OUT   # joins OUT into docs/results
    python benchmarks/scale_speed.py --quick                                 # all parts, tiny models, on the CPU

step      64 prompts of about 300 tokens, 8 answers each of up to 512: ours and TRL's GRPO, adapter and all weights.
          Random weights rarely stop, so both are given the same lengths. One pass over each batch, beta .02, bfloat16
          compute, frozen weights in bfloat16 and trained ones in float32 on both sides. Where there are two settings of
          TRL, the faster counts for the time and the smaller for the memory; its first step, which is not counted, has
          answers of 32 tokens at most. The bars are for our defaults; ours-plain is without gradient checkpointing. MFU
          is of our update: 6 operations per parameter and token with all weights, 4 with an adapter, of 989 TFLOP/s;
          see `scale_steps.utilisation`.
compiled  our step with torch_compile and without gradient checkpointing; for comparison, needs a compiler.
decode    batches of 64 and 512 to 512 tokens, against the time to read weights and cache once per token at 4.8 TB/s.
attention one layer's attention of a decoding step by kernel: which one `grouped_attention` should use; no bar.
static    the same with transformers, its cache static and its step compiled; for comparison, needs a compiler.
large     8B with an adapter: 256 answers of 512 tokens.
growth    time and memory with answer length, batch and vocabulary.
critics   critics on 512 answers, as a share of our step of the 1B model with an adapter, the shortest.
serving   200 clients of a reward model, against its offline rate.

Every case is a process of its own with a time limit, and leaves OUT/CASE.json, so that an interrupted campaign
continues; commit and machine of the result are those of its cases. This is `trl_speed` and `growth` at the sizes that
matter; those stay for the default model.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from growth import plot
from harness import ROOT, Bar, commit, machine, report, show

MODELS = ("llama-1b", "qwen3-1.7b")
MODES = ("lora", "full")
TRL = {  # setting -> answers per micro-batch, gradient checkpointing
    "checkpointed": (32, True),
    "plain": (8, False),
}
PLAIN = {"gradient_checkpointing": False, "max_tokens_per_batch": 12_288}
OURS: dict[str, dict[str, Any]] = {"ours": {}, "ours-plain": PLAIN, "ours-compiled": PLAIN | {"torch_compile": True}}
ANSWERS, PROMPT, LONGEST = 512, 300, 512
LIMIT = 540.0  # seconds of a part
CASE_LIMIT = 300.0
GROWTH: dict[str, dict[str, Any]] = {
    "length": {"values": [512, 1024, 2048, 4096], "answers": 64},
    "batch": {"values": [64, 128, 256, 512, 1024], "length": 512},
    "vocabulary": {"values": [32_768, 65_536, 131_072, 262_144], "answers": 128, "length": 256},
}

Case = Callable[[argparse.Namespace], dict[str, Any]]


def step_case(kind: str, mode: str, side: str) -> Case:
    def run(args: argparse.Namespace) -> dict[str, Any]:
        import scale_steps
        from scale_models import saved_model

        answers, prompt, longest = (16, 40, 24) if args.quick else (ANSWERS, PROMPT, LONGEST)
        folder = saved_model(kind, args.quick, args.models, args.device)
        common: dict[str, Any] = {
            "model": folder,
            "lora_adapter": mode == "lora",
            "answers": answers,
            "prompt_length": prompt,
            "lengths": scale_steps.step_lengths(answers, longest),
            "passes": 1,
        }
        if side in OURS:
            steps = 2 if side == "ours" and not args.quick else 1
            return scale_steps.ours(**common, steps=steps, profile=True, **OURS[side])
        micro, checkpointing = TRL[side]
        micro = min(micro, answers // 2)
        return scale_steps.trl(**common, steps=1, micro_batch=micro, gradient_checkpointing=checkpointing)

    return run


def decode_case(kind: str, batch: int) -> Case:
    def run(args: argparse.Namespace) -> dict[str, Any]:
        import scale_decode

        size, length, prompt = (16, 16, 30) if args.quick else (batch, LONGEST, PROMPT)
        return scale_decode.measure(kind, size, length, prompt, args.device, args.quick)

    return run


def attention_case(kind: str, batch: int) -> Case:
    def run(args: argparse.Namespace) -> dict[str, Any]:
        import scale_decode

        sizes = [(16, 16)] if args.quick else [(batch, PROMPT + 64), (batch, PROMPT + LONGEST)]
        return {str(n): scale_decode.attention(kind, size, n, args.device, args.quick) for size, n in sizes}

    return run


def static_case(kind: str, batch: int) -> Case:
    def run(args: argparse.Namespace) -> dict[str, Any]:
        import scale_decode

        size, length, prompt = (16, 16, 30) if args.quick else (batch, LONGEST, PROMPT)
        return scale_decode.static(kind, size, length, prompt, args.device, args.quick)

    return run


def large(args: argparse.Namespace) -> dict[str, Any]:
    import scale_steps
    import torch
    from scale_models import config, random_model, tokenizer

    answers, prompt, longest = (16, 40, 24) if args.quick else (256, PROMPT, LONGEST)
    made = config("llama-8b", args.quick)
    dtype = torch.float32 if args.device == "cpu" else torch.bfloat16
    return scale_steps.ours(
        model=random_model(made, args.device, dtype),
        tokenizer=tokenizer(made.vocab_size),
        lora_adapter=True,
        answers=answers,
        prompt_length=prompt,
        lengths=[longest] * answers,
        steps=1,
        profile=True,
    )


def growth_case(name: str) -> Case:
    def run(args: argparse.Namespace) -> dict[str, Any]:
        import scale_steps
        import torch
        from scale_models import config, random_model, tokenizer

        points = []
        for value in _quick_values(name) if args.quick else GROWTH[name]["values"]:
            answers = value if name == "batch" else GROWTH[name]["answers"]
            length = value if name == "length" else GROWTH[name]["length"]
            if args.quick:
                answers, length = min(answers, 32), min(length, 32)
            made = config("llama-1b", args.quick, **({"vocab_size": value} if name == "vocabulary" else {}))
            model = random_model(made, args.device, torch.float32 if args.device == "cpu" else torch.bfloat16)
            found = scale_steps.ours(
                model=model,
                tokenizer=tokenizer(made.vocab_size),
                lora_adapter=True,
                answers=answers,
                prompt_length=40 if args.quick else PROMPT,
                lengths=[length] * answers,
                steps=1,
            )
            point = {"value": value, "answers": answers, "length": length, "seconds": found["seconds"]}
            point |= found["parts"] | {"gib": found["gib"] - found["gib_before"], "mfu": found["mfu"]}
            points.append(point)
            print(json.dumps(point), flush=True)
            args.partial.write_text(json.dumps({"points": points}), encoding="utf-8")
            del model
        return {"points": points}

    return run


def _quick_values(name: str) -> list[int]:
    return {"length": [8, 16], "batch": [8, 16], "vocabulary": [1024, 2048]}[name]


def rule_critics(args: argparse.Namespace) -> dict[str, Any]:
    import scale_critics

    return scale_critics.rule_critics(16 if args.quick else ANSWERS)


def code_critic(args: argparse.Namespace) -> dict[str, Any]:
    import scale_critics

    return scale_critics.code_critic(8 if args.quick else ANSWERS)


def reward_critic(args: argparse.Namespace) -> dict[str, Any]:
    import scale_critics

    return scale_critics.reward_critic(16 if args.quick else ANSWERS, args.device, args.quick)


def serving(args: argparse.Namespace) -> dict[str, Any]:
    import scale_critics

    return scale_critics.serving(*((8, 2.0) if args.quick else (200, 30.0)), args.device, args.quick)


PARTS: dict[str, dict[str, Case]] = {
    "step": {
        f"{kind}_{mode}_{side}": step_case(kind, mode, side)
        for kind in MODELS
        for mode in MODES
        for side in ("ours", "ours-plain", *(TRL if kind == MODELS[0] else ["checkpointed"]))
    },
    "decode": {f"{kind}_{batch}": decode_case(kind, batch) for kind in MODELS for batch in (64, 512)},
    "attention": {f"{kind}_{batch}": attention_case(kind, batch) for kind in MODELS for batch in (64, 512)},
    "compiled": {f"{MODELS[0]}_{mode}_ours-compiled": step_case(MODELS[0], mode, "ours-compiled") for mode in MODES},
    "static": {f"{MODELS[0]}_{batch}": static_case(MODELS[0], batch) for batch in (64, 512)},
    "large": {"llama-8b": large},
    "growth": {name: growth_case(name) for name in GROWTH},
    "critics": {"rules": rule_critics, "code": code_critic, "reward": reward_critic},
    "serving": {"clients": serving},
}


QUICK = {  # the cases of --quick, where not all
    "step": [
        "llama-1b_lora_ours",
        "llama-1b_lora_checkpointed",
        "qwen3-1.7b_full_ours",
        "qwen3-1.7b_full_checkpointed",
    ],
    "decode": ["llama-1b_64", "qwen3-1.7b_64"],
    "attention": ["llama-1b_64"],
    "compiled": [],
    "static": [],
}
OPTIONAL = {"attention", "compiled", "static"}  # parts that no bar is about


def cases(part: str, quick: bool) -> list[str]:
    return QUICK.get(part, list(PARTS[part])) if quick else list(PARTS[part])


def main() -> None:
    args = parse()
    if args.case:
        part, case = args.case.split("/")
        args.partial = args.out / f"{part}.{case}.partial.json"
        result = PARTS[part][case](args) | {"commit": commit(), "machine": machine(args.device)}
        (args.out / f"{part}.{case}.json").write_text(json.dumps(result, indent=1), encoding="utf-8")
        return
    with tempfile.TemporaryDirectory() as scratch:
        args.out = args.out or Path(scratch)
        args.out.mkdir(parents=True, exist_ok=True)
        for part in PARTS if args.part == "all" else [args.part]:
            if part != "report":
                run_part(part, args)
        if args.part in ("all", "report"):
            join(args)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=[*PARTS, "report", "all"], default="all")
    parser.add_argument("--only", default="", help="only cases whose name matches this regular expression")
    parser.add_argument("--out", type=Path, help="folder of the results; finished cases in it are skipped")
    parser.add_argument("--models", type=Path, default=Path(tempfile.gettempdir(), "scale_speed_models"),
                        help="folder for random weights, a few GB; kept")  # fmt: skip
    parser.add_argument("--limit", type=float, default=LIMIT, help=f"seconds of a part (default: {LIMIT:g})")
    parser.add_argument("--device", default="cpu", help="device of the models: cpu, cuda (default: cpu)")
    parser.add_argument("--quick", action="store_true", help="tiny models and batches; saves no result")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.part == "report" and args.out is None:
        parser.error("--part report needs --out, the folder of the results")
    return args


def run_part(part: str, args: argparse.Namespace) -> None:
    """Run the cases that have no result yet, until the time is used up."""
    began = time.monotonic()
    for case in cases(part, args.quick):
        left = args.limit - (time.monotonic() - began)
        if not re.search(args.only, case) or (args.out / f"{part}.{case}.json").exists():
            continue
        if left < 10:
            print(f"{part}/{case}: no time left", flush=True)
            continue
        command = [sys.executable, __file__, "--case", f"{part}/{case}", "--device", args.device]
        command += ["--out", str(args.out), "--models", str(args.models), *(["--quick"] if args.quick else [])]
        environment = os.environ | {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
        start, most = time.monotonic(), min(left, CASE_LIMIT)
        with (args.out / f"{part}.{case}.log").open("w") as log:
            try:
                done = subprocess.run(command, env=environment, stdout=log, stderr=log, check=False, timeout=most)
                code: int | str = done.returncode
            except subprocess.TimeoutExpired:
                code = "out of time"
        print(f"{part}/{case}: {code or 'ok'}, {time.monotonic() - start:.0f} s", flush=True)
        if code:
            print((args.out / f"{part}.{case}.log").read_text(errors="replace")[-1500:], flush=True)


def join(args: argparse.Namespace) -> None:
    """Report what is there, and fail for what is missing."""
    found: dict[str, dict[str, Any]] = {part: {} for part in PARTS}
    missing = []
    for part in PARTS:
        for case in cases(part, args.quick):
            path = args.out / f"{part}.{case}.json"
            partial = args.out / f"{part}.{case}.partial.json"
            if path.exists() or partial.exists():
                found[part][case] = json.loads((path if path.exists() else partial).read_text(encoding="utf-8"))
            if not path.exists() and part not in OPTIONAL:
                missing.append(f"{part}/{case}")
    figures: dict[str, Any] = {"missing": missing, "cases_missing": len(missing)}
    bars = {"cases_missing": Bar(at_most=0)}
    for section in (step_figures, decode_figures, large_figures, growth_figures, critic_figures, serving_figures):
        new, limits = section(found)
        figures |= new
        bars |= limits
    if not args.quick and found["growth"]:
        svg = plot({name: case["points"] for name, case in found["growth"].items()})
        (ROOT / "docs" / "scale_growth.svg").write_text(svg, encoding="utf-8")
    measured = [case for by_case in found.values() for case in by_case.values() if "commit" in case]
    where: dict[str, Any] = {}
    if measured:
        commits = dict.fromkeys(case["commit"] for case in measured)
        where = {"commit": ", ".join(commits), "machine": measured[-1]["machine"]}
    report("scale_speed", figures | {"cases": found}, bars, args, complete=not missing, **where)


Section = tuple[dict[str, Any], dict[str, Bar]]


def step_figures(found: dict[str, Any]) -> Section:
    figures: dict[str, Any] = {}
    bars, rows = {}, []
    for name, case in (found["step"] | found["compiled"]).items():
        parts = "  ".join(f"{part} {seconds:.2f}" for part, seconds in case["parts"].items())
        rows.append([name, f"{case['seconds']:.2f}", f"{case['gib']:.1f}", f"{case.get('mfu', 0):.0%}", parts])
    show("One step", ["", "seconds", "GiB", "MFU", "stages"], rows)
    for kind in MODELS:
        for mode in MODES:
            key, ours = f"{kind}_{mode}", found["step"].get(f"{kind}_{mode}_ours")
            others = [found["step"][f"{key}_{side}"] for side in TRL if f"{key}_{side}" in found["step"]]
            if ours is None:
                continue
            figures[f"{key}_mfu"] = ours["mfu"]
            bars[f"{key}_mfu"] = Bar(at_least=0.35)
            if others:
                figures[f"{key}_share_of_trl_time"] = ours["seconds"] / min(o["seconds"] for o in others)
                figures[f"{key}_share_of_trl_memory"] = ours["gib"] / min(o["gib"] for o in others)
                bars[f"{key}_share_of_trl_time"] = Bar(at_most=0.5)
                bars[f"{key}_share_of_trl_memory"] = Bar(at_most=1.0)
    return figures, bars


def decode_figures(found: dict[str, Any]) -> Section:
    figures: dict[str, Any] = {}
    rows = []
    for name, case in found["decode"].items():
        for how in ("full", "ending"):
            figures[f"decode_{name}_{how}_times_bound"] = case[how]["times_bound"]
        static = found["static"].get(name, {})
        beside = f"{static['times_bound']:.1f}" if "times_bound" in static else static.get("error", "")[:40]
        bounds = [f"{case[how]['times_bound']:.1f}" for how in ("full", "ending")]
        rows.append([name, *bounds, f"{case['full']['tokens_per_second']:,.0f}", beside])
    show("Decoding, times the bound", ["", "all rows", "rows end", "tokens/s", "static cache"], rows)
    return figures, {key: Bar(at_most=3.0) for key in figures}


def large_figures(found: dict[str, Any]) -> Section:
    case = found["large"].get("llama-8b")
    if case is None:
        return {}, {}
    show("8B with an adapter", ["stage", "seconds"], [[k, f"{v:.2f}"] for k, v in case["parts"].items()])
    return {"large_seconds": case["seconds"], "large_gib": case["gib"], "large_mfu": case["mfu"]}, {
        "large_gib": Bar(at_most=139.0)
    }


def growth_figures(found: dict[str, Any]) -> Section:
    for name, case in found["growth"].items():
        keys = ("seconds", "rollout", "update", "gib", "mfu")
        rows = [[f"{p['value']:,}", *(f"{p[key]:.2f}" for key in keys)] for p in case["points"]]
        show(f"Growth with the {name}", [name, "seconds", "rollout", "update", "GiB above the weights", "MFU"], rows)
    points = found["growth"].get("vocabulary", {}).get("points", [])
    if len(points) < 2:
        return {}, {}
    tokens = points[-1]["answers"] * points[-1]["length"]
    whole = 4 * tokens * (points[-1]["value"] - points[0]["value"]) / 2**30  # logits of all answers, in float32
    return {"logits_in_memory": (points[-1]["gib"] - points[0]["gib"]) / whole}, {"logits_in_memory": Bar(at_most=0.1)}


def critic_figures(found: dict[str, Any]) -> Section:
    step = found["step"].get("llama-1b_lora_ours")
    measured = {
        name: value["seconds"]
        for case in found["critics"].values()
        for name, value in case.items()
        if isinstance(value, dict) and "seconds" in value
    }
    show("Critics, 512 answers", ["", "seconds"], [[name, f"{seconds:.2f}"] for name, seconds in measured.items()])
    if step is None:
        return {}, {}
    most = {"code": 0.2, "reward_model": 0.15}
    shares = {f"{name}_share_of_step": seconds / step["seconds"] for name, seconds in measured.items()}
    return shares, {key: Bar(at_most=most.get(key.removesuffix("_share_of_step"), 0.1)) for key in shares}


def serving_figures(found: dict[str, Any]) -> Section:
    case = found["serving"].get("clients")
    if case is None:
        return {}, {}
    show("Serving", ["", ""], [[k, f"{v:,.2f}"] for k, v in case.items()])
    kept = ("share_of_offline", "requests_per_second", "p95_ms", "errors")
    figures = {f"serving_{key}": case[key] for key in kept}
    return figures, {"serving_share_of_offline": Bar(at_least=0.7), "serving_errors": Bar(at_most=0)}


if __name__ == "__main__":
    main()
