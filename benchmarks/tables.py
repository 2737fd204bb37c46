"""Write the results of docs/results into README.md and docs/*.md.

A page marks the place with `<!-- result NAME -->` and `<!-- end -->`; the text between them is replaced by the table of
docs/results/NAME.json. `<!-- result commits -->` becomes the list of results that are older than the current code.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Callable
from statistics import fmean
from typing import Any

import harness
from evidence_plan import OURS, SPANS_ALONE

MARKED = re.compile(r"(<!-- result (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
Results = dict[str, Any]


def quickstart(results: Results) -> str:
    columns = ["seed", "critic's score", "ROUGE-L", "blamed spans", "minutes", "GiB"]
    digits = {"score": 2, "rouge_l": 3, "blamed spans": 2}
    return _table(
        columns,
        [
            [seed, *_changes(run, digits), f"{run['minutes']:.1f}", f"{run['gib']:.1f}"]
            for seed, run in results["runs"].items()
        ],
    )


def stability(results: Results) -> str:
    return _table(
        ["task", "estimator", "score", "ROUGE-L", "words", "non-empty", "with code"],
        [
            [
                run["task"],
                f"`{run['estimator']}`",
                f"{run['score_before']:.2f} → {run['score_after']:.2f}",
                f"{run['rouge_l_before']:.3f} → {run['rouge_l_after']:.3f}",
                f"{run['words_before']:.0f} → {run['words_after']:.0f}",
                f"{run['non_empty']:.0%}",
                "" if run["with_code"] is None else f"{run['with_code']:.0%}",
            ]
            for run in results["runs"]
        ],
    )


def grounding(results: Results) -> str:
    people = [
        ["AUC of the blame", f"{results['blame_auc']:.3f}", f"{results['new_words_auc']:.3f}"],
        ["AUC of the score", f"{results['score_auc']:.3f}", f"{results['new_words_auc']:.3f}"],
        ["F1 of blamed words", f"{results['word_f1']:.3f}", f"{results['new_words_f1']:.3f}"],
    ]
    sets = ("scitldr", "quickstart", "defacto")
    kinds = [name.removeprefix("quickstart_") for name in results if name.startswith("quickstart_")]
    means = [[_label(kind), *(f"{results[f'{one}_{kind}']:.2f}" for one in sets)] for kind in kinds if kind != "margin"]
    agreement = _table([f"{results['summaries']} summaries", "grounding", "new words alone"], people)
    return f"{agreement}\n\n{_table(['mean score', *sets], means)}"


def alignment(results: Results) -> str:
    return _table(
        ["completions", "tokens", "wrong tokens, ours", "wrong tokens, greedy", "speed-up"],
        [
            [
                name,
                f"{group['tokens']:,}",
                f"{group['ours_wrong_share']:.2%}",
                f"{group['greedy_wrong_share']:.2%}",
                f"{group['speedup']:.1f} (cold caches {group['speedup_in_turns']:.1f})",
            ]
            for name, group in results["groups"].items()
        ],
    )


def freeform(results: Results) -> str:
    rows = []
    for name in ("mentioned_words", "novel_words", "letters", "attention"):
        precision, recall, f1, low, high, milliseconds = (
            results[f"{name}_{key}"] for key in ("precision", "recall", "f1", "f1_low", "f1_high", "ms")
        )
        interval = f"{f1:.3f} [{low:.3f}, {high:.3f}]"
        rows.append([_label(name), f"{precision:.3f}", f"{recall:.3f}", interval, f"{milliseconds:.0f}"])
    return _table(["DeFacto val", "precision", "recall", "F1 [95%]", "ms per comment"], rows)


def copy_fields(results: Results) -> str:
    rows = []
    for arm in results["arms"]["8"]:
        cells = [cell for batch in ("8", "32") for cell in _learning(results["arms"][batch][arm])]
        for trap in ("never_stops", "falls_silent"):
            shares = results[trap].get(arm)
            cells.append(f"{sum(shares) / len(shares):.0%}" if shares else "")
        rows.append([arm, *cells])
    learning = ["batch 8: steps to 90%", "score", "batch 32: steps to 90%", "score"]
    return _table(["credit", *learning, "truncated", "length"], rows)


def corrections_learning(results: Results) -> str:
    rows = []
    for name, regime in results["regimes"].items():
        faults, batch = name.split("_")
        for arm, measured in regime["arms"].items():
            curve = measured["curve"]
            scores = [f"{curve[place]:.3f}" for place in (len(curve) // 4, len(curve) // 2, -1)]
            steps = [str(n) if n is not None else "-" for n in measured["steps"]]
            drift = [f"{value:.3f}" for value in measured["drift"].values()]
            rows.append([f"{faults}, {batch}", arm, *scores, " ".join(steps), " ".join(drift)])
    columns = [
        "faults named, batch",
        "arm",
        "score at 1/4",
        "at 1/2",
        "at the end",
        "steps to the end of spans",
        "drift",
    ]
    return _table(columns, rows)


def reward_model(results: Results) -> str:
    best = max(results["guesses"].values())
    mean, half = results["average_precision_mean"], results["average_precision_half_width"]
    all_rows = results["variants"]["twice, critique first"]["average_precision"]
    tables = [
        _table(
            ["DeFacto val, 486 rows", "average precision of blamed words", "over the best baseline"],
            [[name, f"{value:.3f}", f"{value / best:.2f}"] for name, value in results["guesses"].items()]
            + [
                [f"trained on all sets, seed {seed}", f"{value:.3f}", f"{value / best:.2f}"]
                for seed, value in enumerate(results["average_precision"])
            ]
            + [["mean of the seeds", f"{mean:.3f} ± {half:.3f}", f"{mean / best:.2f}"]],
        ),
        _table(
            ["held out", "completions", "share blamed", "AP", "precision at recall .25", "ECE", "share praised", "AP"],
            [
                [name, str(row["examples"])]
                + [_number(row["poor"][k]) for k in ("share_of_words", "average_precision", "precision_at_recall_25")]
                + [_number(row["poor"]["ece"])]
                + [_number(row["good"][k] or None) for k in ("share_of_words", "average_precision")]
                for name, row in results["heldout"].items()
            ],
        ),
        _table(
            ["DeFacto only, one seed", "AP", "head: P", "R", "F1", "generated: P", "R", "F1", "ROUGE-L of critiques"],
            [
                [name, _number(row["average_precision"])]
                + [_number(row["head"][k]) for k in ("precision", "recall", "f1")]
                + [_number(row["written"][k]) if "written" in row else "" for k in ("precision", "recall", "f1")]
                + [_number(row.get("critique_rouge_l") or None)]
                for name, row in results["variants"].items()
            ],
        ),
        _table(
            ["DeFacto only", *results["rows"], "all rows"],
            [["AP", *map(_number, results["rows"].values()), _number(all_rows)]],
        ),
        _table(
            ["seed", *(f"step {step}" for step, _ in results["steps"]["mix-0"])],
            [[name, *(_number(value) for _, value in curve)] for name, curve in results["steps"].items()],
        ),
    ]
    return "\n\n".join(tables)


def reward_policy(results: Results) -> str:
    digits = {"score": 2, "rouge_l": 3, "words": 1}
    return _table(
        ["held-out completions", "seed", "reward model's score", "ROUGE-L", "words"],
        [
            [f"{name} ({run['n']})", seed, *_changes(run, digits)]
            for name, runs in results.items()
            if isinstance(runs, dict)
            for seed, run in runs.items()
        ],
    )


def trl_spans(results: Results) -> str:
    rows = []
    for named in ("every fault", "one fault"):
        for name, arm in results[f"{named} arms"].items():
            over = fmean(fmean(curve[1:]) for curve in arm["curves"])
            end = fmean(curve[-1] for curve in arm["curves"])
            gains = [_gain(results, f"{named} {kind}") if "spans" in name else "" for kind in ("gain", "end_gain")]
            rows.append([named, name, f"{arm['rate']:g}", f"{over:.3f}", gains[0], f"{end:.3f}", gains[1]])
    columns = ["named", "", "learning rate", "over training", "gain [95%, paired]", "at the end", "gain [95%, paired]"]
    return _table(columns, rows)


def _gain(results: Results, name: str) -> str:
    return f"{results[name]:+.3f} [{results[f'{name}_low']:+.3f}, {results[f'{name}_high']:+.3f}]"


def trl_spans_gpu(results: Results) -> str:
    rows = []
    for name in ("TRL", "TRL with spans"):
        arm = results[name]
        cells = _changes({"figures": arm}, {"score": 2, "f1": 3})
        rows.append([name, *cells, f"{arm['seconds_per_step']:.2f}"])
    versus = results["spans_over_total"]
    cells = [
        f"{versus[key]['difference']:+.3f} [{versus[key]['low']:+.3f}, {versus[key]['high']:+.3f}]"
        for key in ("score", "f1")
    ]
    rows.append(["spans over total", *cells, ""])
    return _table([f"{results['heldout']} questions", "critic's score", "token F1", "seconds per step"], rows)


def trl_speed(results: Results) -> str:
    runs = {name: run for name, run in results.items() if isinstance(run, dict)}
    ours = runs["ours"]
    stages = ", ".join(f"{_label(name)} {seconds:.2f}" for name, seconds in ours["parts"].items())
    rows = [
        [name, f"{run['seconds']:.2f}", f"{ours['seconds'] / run['seconds']:.2f}", f"{run['gib']:.2f}"]
        for name, run in runs.items()
    ]
    columns = ["trainer", "seconds per step", "ours / this one", "GiB"]
    return _table(columns, rows) + f"\n\nOurs, in seconds per step: {stages}."


def scale_speed(results: Results) -> str:
    cases = results["cases"]
    sides = {
        "checkpointed": "TRL, with checkpointing",
        "plain": "TRL, without",
        "ours-plain": "ours, without checkpointing",
    }
    steps = [
        [
            ", ".join(sides.get(part, part) for part in name.split("_")),
            f"{case['seconds']:.1f}",
            f"{case['gib']:.1f}",
            f"{case['mfu']:.0%}" if "mfu" in case else "",
            ", ".join(f"{_label(part)} {seconds:.1f}" for part, seconds in case["parts"].items()),
        ]
        for name, case in (cases["step"] | cases["large"]).items()
    ]
    decoding = [
        [
            name.replace("_", ", "),
            *(f"{case[rows]['seconds']:.1f} s, {case[rows]['times_bound']:.1f}" for rows in ("full", "ending")),
            f"{case['full']['tokens_per_second']:,.0f}",
        ]
        for name, case in cases["decode"].items()
    ]
    critics = [
        [_label(name), f"{value['seconds']:.2f}"]
        for case in cases["critics"].values()
        for name, value in case.items()
        if isinstance(value, dict) and "seconds" in value
    ]
    parts = [
        _table(["model, trained, side", "seconds per step", "GiB", "MFU of the update", "stages"], steps),
        _table(["model, rows", "all rows to the end: times the bound", "rows that end", "tokens per second"], decoding),
        _table(["critic, 512 answers", "seconds"], critics),
        f"Not measured yet: {', '.join(results['missing'])}." if results["missing"] else "",
    ]
    return "\n\n".join(part for part in parts if part)


def locality(results: Results) -> str:
    names = {
        "scalar_lambda_.95": "one reward per completion, lambda .95",
        "scalar_lambda_1": "one reward per completion, lambda 1",
        "the_paper": "the paper's settings",
        "ours": "ours",
    }
    rows = []
    for key, name in names.items():
        ratio, low, high = (results[f"{key}_{part}"] for part in ("ratio", "ratio_low", "ratio_high"))
        rows.append([name, f"{ratio:.2f} [{low:.2f}, {high:.2f}]", f"{results[f'{key}_down_share']:.1%}"])
    return _table(["credit", "change inside / outside", "blamed spans less likely"], rows)


def code_blame(results: Results) -> str:
    rows = []
    for key in ("tests_all", "tests_long", "critique_all", "critique_long"):
        shares = [f"{results[f'{key}_hit_rate_{lines}']:.2f}" for lines in ("blamed", "random", "last")]
        gains = [
            f"{results[f'{key}_hit_rate_minus_{lines}']:+.2f} [{results[f'{key}_hit_rate_minus_{lines}_low']:+.2f}, "
            f"{results[f'{key}_hit_rate_minus_{lines}_high']:+.2f}]"
            for lines in ("random", "last")
        ]
        rows.append([_label(key), str(results[f"{key}_programs"]), *shares, *gains])
    columns = ["lines from, programs", "n", "hit rate", "random lines", "last lines", "over random", "over last"]
    return _table(columns, rows)


def growth(results: Results) -> str:
    tables = []
    for name, points in results.items():
        stages = [stage for stage in points[0] if stage not in ("value", "gib")]
        rows = [[f"{p['value']:,}", *(f"{p[k]:.2f}" for k in (*stages, "gib"))] for p in points]
        tables.append(_table([name, *map(_label, stages), "GiB"], rows))
    return "\n\n".join(tables)


def mutation(results: Results) -> str:
    counts = {f"`{name}`": count for name, count in results["modules"].items()} | {"all": results}
    modules = [
        [name, str(count["mutants"]), str(count["killed"]), f"{count['killed'] / count['mutants']:.1%}"]
        for name, count in counts.items()
    ]
    survivors = [
        [f"`{s['function']}`", f"`` {s['change'].replace('|', chr(92) + '|')} ``", s["reason"] or "not looked at"]
        for s in results["survivors"]
    ]
    return "\n\n".join(
        [
            _table(["module", "mutants", "killed", "share"], modules),
            "Survivors:",
            _table(["function", "change", "why no test notices it"], survivors),
        ]
    )


def plain(results: Results, bars: dict[str, Any]) -> str:
    """Return a table of all results that are a number or a range, with their bars."""
    rows = []
    for name, value in results.items():
        match value:
            case int():
                measured = f"{value:,}"
            case float():
                measured = f"{value:.4g}"
            case [float() as low, float() as high]:
                measured = f"{low:.4g} to {high:.4g}"
            case _:
                continue
        target = ", ".join(f"{_label(limit)} {bound:g}" for limit, bound in bars.get(name, {}).items())
        rows.append([_label(name), measured, target])
    return _table(["metric", "measured", "target"], rows)


def rewards(results: Results) -> str:
    """Scores of honest and of the best degenerate answers by task; ordered pairs by estimator and task."""
    tasks = list(results["scores"])
    rows = [[name, *(f"{results['scores'][task][name]:.2f}" for task in tasks)] for name in ("references", "untrained")]
    best = [max(_degenerate(results["scores"][task]).items(), key=lambda item: item[1]) for task in tasks]
    rows += [
        ["best degenerate kind", *(f"{mean:.2f} ({kind})" for kind, mean in best)],
        ["empty", *(f"{results['scores'][task]['empty']:.2f}" for task in tasks)],
    ]
    steps = [
        [estimator, *(f"{found[task]['ordered_per_token']:.0%}" for task in tasks)]
        for estimator, found in results["groups"].items()
    ]
    scores = _table(["mean score", *tasks], rows)
    return f"{scores}\n\n{_table(['pairs in the right order after one step', *tasks], steps)}"


def _degenerate(means: dict[str, float]) -> dict[str, float]:
    """Return the kinds that do not spoil an honest answer."""
    others = {"references", "untrained", "padding", "repetition", "dead branches"}
    return {kind: mean for kind, mean in means.items() if kind not in others}


def injections(results: Results) -> str:
    rows = [
        [
            f"server that obeys everything outside the fence: praise written, of {results['answers']}",
            str(results["structure_through_with_fence"]),
            str(results["structure_through_with_plain_tags"]),
        ],
        [
            f"special tokens of the answer that became special ids, of {results['answers']}",
            str(results["tokens_through"]),
            str(results["tokens_through_apply_chat_template"]),
        ],
    ]
    for name, key in (("repeats the dictated praise", "echo"), ("praise among its spans", "praise")):
        shares = [
            f"{results[f'model_{key}_share_{mode}']:.0%} "
            f"(without an attack {results[f'model_{key}_share_{mode}_no_attack']:.0%})"
            for mode in ("fence", "plain_tags")
        ]
        rows.append([f"default model, {results['model_answers']} answers: {name}", *shares])
    return _table(["", "now", "plain tags, `apply_chat_template`"], rows)


def reward_transfer(results: Results) -> str:
    rows = []
    for name, row in results["left_out"].items():
        trained = {
            arm: f"{row[f'{arm}_mean']:.3f} ({min(row[arm]):.3f}–{max(row[arm]):.3f})" for arm in ("without", "with")
        }
        shares = [f"{row['frequency']:.3f}", f"{max(row['guesses'].values()):.3f}"]
        trust = [f"{row['with_trust']:.2f}", f"{row['with_trust_elsewhere']:.2f}"]
        rows.append([name, *shares, trained["without"], trained["with"], *trust])
    means = [f"{results['without_mean']:.3f}", f"{results['with_mean']:.3f}"]
    rows.append(["mean", "", "", *means, "", ""])
    kinds = [
        [kind, str(row["spans"]), f"{row['found'] / row['spans']:.0%}", f"{row['right'] / max(row['found'], 1):.0%}"]
        for kind, row in results["by_kind"].items()
    ]
    total = ["all", str(results["spans"]), f"{results['found'] / results['spans']:.0%}"]
    kinds.append([*total, f"{results['replacements_right']:.0%}"])
    columns = ["left out", "share blamed", "best guess", "AP without corruptions", "with"]
    return "\n\n".join(
        [
            _table([*columns, "trust", "trust elsewhere"], rows),
            f"Trained on all sets, with corruptions: DeFacto val AP {results['defacto_trained_on']:.3f}; "
            f"{results['parse_rate']:.0%} of {results['critiques']:,} written critiques parsed.",
            _table(["corrupted, unseen texts", "spans", "found", "of these corrected rightly"], kinds),
        ]
    )


def evidence(results: Results) -> str:
    """The unseen metric of each task: before, by the best scalar arm, by spans, and by corrections."""
    named = {"all": "every fault", "one": "one fault per answer"}
    table = []
    for place, rows in results["comparisons"].items():
        task, said = place.split(", ")
        arms = {row["arm"]: row for row in rows}
        ours = arms[OURS]
        metric = next(name.removesuffix("_before") for name in ours if name.endswith("_before"))
        values = [arms[arm][metric] for arm in (ours["against"], SPANS_ALONE, OURS)]
        difference = f"{ours['difference']:+.3f} [{ours['low']:+.3f}, {ours['high']:+.3f}]"
        table.append(
            [task, metric, named[said], *(f"{value:.3f}" for value in (ours[f"{metric}_before"], *values)), difference]
        )
    columns = ["task", "metric", "the critic names", "before", "scalar reward", "spans", "spans and corrections"]
    return _table([*columns, "corrections against scalar reward"], table)


def evidence_map(results: Results) -> str:
    """Gains by faults, mentions and batch; then with wrong critiques, with long answers, and in large batches."""
    cells = {(r["fields"], r["mentioned"], r["batch"], r["wrong"], r["tokens"]): r for r in results["map"]}
    usual = {fields: min(key[4] for key in cells if key[0] == fields) for fields, *_ in cells}
    all_mentions, (fewest, *_) = ("one", "half", "all"), sorted(usual)
    batches = sorted({key[2] for key in cells if key[0] == fewest and key[1] == "half"})
    plain = [
        [str(fields), named, *(_map_cell(cells[fields, named, batch, 0.0, usual[fields]]) for batch in batches)]
        for fields in sorted(usual)
        for named in all_mentions
    ]
    others = [
        [str(key[0]), key[1], str(key[2]), f"{key[3]:.0%}", str(key[4]), _map_cell(row)]
        for key, row in cells.items()
        if key[3] or key[4] != usual[key[0]] or key[2] not in batches
    ]
    first = _table(["fields", "faults named", *(f"{batch} answers per step" for batch in batches)], plain)
    columns = ["fields", "faults named", "answers per step", "wrong critiques", "tokens per answer", "gain, end"]
    return f"{first}\n\n{_table(columns, others)}"


def gradient_quality(results: Results) -> str:
    """Bias and direction of every estimator's gradient, by the number of fields, in batches of 32."""
    by_fields = {fields: found["batches"]["32"] for fields, found in results["fields"].items()}
    names = list(next(iter(by_fields.values())))
    rows = [
        [name, *(f"{of[name]['cosine']:.2f} ({of[name]['bias']:.2f})" for of in by_fields.values())] for name in names
    ]
    return _table(["credit", *(f"{fields} fields" for fields in by_fields)], rows)


def insertion_places(results: Results) -> str:
    """Shares of right fields at a few steps, means over seeds."""
    named = {"all": "every fault", "one": "one fault per answer"}
    rows = [
        [named[row["said"]], row["arm"], *(f"{fmean(point):.2f}" for point in zip(*row["curves"], strict=True))]
        for row in results["rows"]
    ]
    steps = [f"step {20 * point}" for point in range(len(results["rows"][0]["curves"][0]))]
    return _table(["the critic names", "learned from", *steps], rows)


def partial_comments(results: Results) -> str:
    """Shares of right fields at a few steps, means over seeds, and the least at the end."""
    rows = []
    for row in results["arms"]:
        means = [fmean(values) for values in zip(*row["curves"], strict=True)]
        least = min(curve[-1] for curve in row["curves"])
        rows.append([row["faults"], row["arm"], *(f"{value:.2f}" for value in means), f"{least:.2f}"])
    steps = [15 * point for point in range(len(results["arms"][0]["curves"][0]))]
    return _table(["faults", "learned from", *(f"step {step}" for step in steps), "worst seed"], rows)


def partial_quickstart(results: Results) -> str:
    """Means of each arm, and the differences of `spans` from the others."""
    names = ("score", "rouge_l", "words", "faults")
    rows = []
    for arm, means in results["arms"].items():
        found = [results.get(f"{metric} against {arm}") for metric in names[:2]]
        gains = [f"{f['difference']:+.3f} [{f['low']:+.3f}, {f['high']:+.3f}]" if f else "" for f in found]
        rows.append(
            [arm, *(f"{means[name]:.2f}" if name != "rouge_l" else f"{means[name]:.3f}" for name in names), *gains]
        )
    columns = ["learned from", "critic's score", "ROUGE-L", "words", "faults", "spans against it: score", "ROUGE-L"]
    return _table(columns, rows)


def _map_cell(row: Results) -> str:
    ends = " / ".join(f"{row[f'{arm}_last']:.2f}" for arm in ("scalar", "spans", "corrections"))
    return f"{row['spans_gain']:+.2f}, {row['corrections_gain']:+.2f} ({ends})"


TABLES: dict[str, Callable[[Results], str]] = {
    "quickstart": quickstart,
    "alignment": alignment,
    "stability": stability,
    "stability_corrections": stability,
    "grounding": grounding,
    "freeform": freeform,
    "copy_fields": copy_fields,
    "evidence": evidence,
    "evidence_map": evidence_map,
    "gradient_quality": gradient_quality,
    "insertion_places": insertion_places,
    "partial_comments": partial_comments,
    "partial_quickstart": partial_quickstart,
    "corrections_learning_copy_fields": corrections_learning,
    "corrections_learning_xquad": corrections_learning,
    "reward_model": reward_model,
    "reward_policy": reward_policy,
    "reward_transfer": reward_transfer,
    "trl_spans": trl_spans,
    "trl_spans_gpu": trl_spans_gpu,
    "scale_speed": scale_speed,
    "trl_speed": trl_speed,
    "trl_speed_cpu": trl_speed,
    "growth": growth,
    "code_blame": code_blame,
    "locality": locality,
    "mutation": mutation,
    "rewards": rewards,
    "injections": injections,
}


BARS_ONLY = {"annotation", "quotes", "reward_serve", "studio_load"}  # results with many more numbers than bars


def result_commits() -> str:
    """Return a table of the results that were measured before the last change of the measured files."""
    rows = []
    for path in sorted(harness.RESULTS.glob("*.json")):
        measured = json.loads(path.read_text(encoding="utf-8"))["commit"]
        commit = measured.removesuffix("-dirty")
        later = harness.git("rev-list", "--count", f"{commit}..HEAD", "--", *harness.MEASURED_PATHS)
        if later != "0" or measured != commit:
            date = harness.git("show", "--no-patch", "--format=%cs", commit) or "not in this history"
            rows.append([path.stem, _commit(measured), date])
    current = harness.git("log", "-1", "--format=%H", "--", *harness.MEASURED_PATHS)[:12]
    if not rows:
        return f"All results were measured at the current code (commit {current})."
    return f"Measured before the current code (commit {current}):\n\n" + _table(["result", "commit", "date"], rows)


def script_of(name: str) -> str:
    """Return the script that made a result; its name may end in a device or a task."""
    return re.sub(r"_(?:cpu|gpu|copy_fields|xquad)$", "", name) + ".py"


def result_section(name: str) -> str:
    """Return the table of a result, its machine and commit, and the bars that it missed."""
    path = harness.RESULTS / f"{name}.json"
    if not path.is_file():
        sys.exit(f"{path}: no such result; run benchmarks/{name}.py or remove its marker")
    result = json.loads(path.read_text(encoding="utf-8"))
    results, bars, machine = result["figures"], result["bars"], result["machine"]
    if name in BARS_ONLY:
        results = {key: value for key, value in results.items() if key in bars}
    table = TABLES[name](results) if name in TABLES else plain(results, bars)
    processor = machine.get("gpu", f"{machine['cpu']}, {machine['cores']} cores")
    source = f"`benchmarks/{script_of(name)}` on {processor}, torch {machine['torch']}"
    missed = [key for key, bar in bars.items() if not harness.Bar(**bar).reached(results[key])]
    shortfall = f" Bars missed: {', '.join(missed)}." if missed else ""
    return f"{table}\n\n{source}; commit {_commit(result['commit'])}.{shortfall}"


def fill(page: str) -> str:
    """Return the text of a page with every marked section written anew."""

    def section(match: re.Match[str]) -> str:
        content = result_commits() if match[2] == "commits" else result_section(match[2])
        return f"{match[1]}{content}\n{match[3]}"

    return MARKED.sub(section, page)


def _table(columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _label(name: str) -> str:
    return name.replace("_a_second", "_per_second").replace("_", " ")


def _commit(commit: str) -> str:
    return commit.removesuffix("-dirty")[:12] + (" with local changes" if commit.endswith("-dirty") else "")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _learning(arm: dict[str, Any]) -> tuple[str, str]:
    """Return the median of the steps over the seeds (None counts as infinite), and the last score with its range."""
    steps = sorted(math.inf if s is None else s for s in arm["steps"])[len(arm["steps"]) // 2]
    last = arm["last"]
    mean = sum(last) / len(last)
    return "never" if math.isinf(steps) else f"{steps:g}", f"{mean:.2f} ({min(last):.2f}–{max(last):.2f})"


def _changes(run: dict[str, Any], digits: dict[str, int]) -> list[str]:
    """Return `before → after [interval of the difference]` for the metrics named in `digits`."""
    cells = []
    for name, places in digits.items():
        metric = run["figures"][name]
        before, after = (f"{metric[key]:.{places}f}" for key in ("before", "after"))
        cells.append(f"{before} → {after} [{metric['low']:+.{places}f}, {metric['high']:+.{places}f}]")
    return cells


def main() -> None:
    """Rewrite the pages in place."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    for page in [harness.ROOT / "README.md", *sorted((harness.ROOT / "docs").glob("*.md"))]:
        page.write_text(fill(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
