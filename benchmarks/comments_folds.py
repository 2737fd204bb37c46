"""How well are comments read whose writers were left out of training? The yardstick while the reading is developed.

For each fold of writers of `comments_train`, the models of clauses (`train_stance.py`) and of places
(`train_places.py`) are trained on the other writers, and the comments of the fold are read with them: the figures of
`comments.py` for each writer. Writers 10 and above are always trained on, so that figures compare with those before
there were any. `--share` trains on a part of the writers: whether more of them help. `--cache FOLDER` keeps the trained
models of clauses, which take minutes, and `--places` those of places, so that changes to what does not train can be
measured at once.
"""

from __future__ import annotations

import argparse
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import train_places
import train_stance
from comment_labels import calibration, measure, read, span_outcomes
from harness import show
from train_stance import Comment

from text2grad.align.places import places

FOLDS = ((1, 4, 7), (2, 5, 8), (3, 6, 9))  # writers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, help="folder that keeps the trained models")
    parser.add_argument("--places", action="store_true", help="keep the models of places as well")
    parser.add_argument("--folds", type=int, default=len(FOLDS), help="how many folds of writers to read")
    parser.add_argument("--share", type=float, default=1.0, help="of the writers that are trained on")
    parser.add_argument("--processes", type=int, default=2)
    args = parser.parse_args()
    comments = train_stance.read_comments()
    others = train_stance.other_items()
    items: list[train_places.Item] = []
    results: dict[int, list] = {}
    for number, fold in enumerate(FOLDS[: args.folds]):
        names = {f"w{writer}" for writer in fold}
        kept = _some_writers([comment.writer for comment in comments if comment.writer not in names], args.share)
        rest = [comment for comment in comments if comment.writer in kept]
        weights = _cached(args.cache, f"clauses{number}", lambda rest=rest: train_stance.fit(rest, others))  # type: ignore[misc]

        def fit_places(kept: set[str] = kept) -> dict[str, Any]:
            items.extend(train_places.load_items() if not items else [])
            return train_places.fit_model([item for item in items if f"w{item.writer}" in kept])

        ranker = _cached(args.cache if args.places else None, f"places{number}", fit_places)
        held = [comment for comment in comments if comment.writer in names]
        with (
            train_stance.using(weights.stance, weights.join, weights.net),
            ranking(ranker),
            get_context("fork").Pool(args.processes) as pool,
        ):
            found = pool.map(_read, held, chunksize=20)
        for comment, opinions in zip(held, found, strict=True):
            results.setdefault(int(comment.writer[1:]), []).append((comment, opinions))
    if args.cache:
        (args.cache / "results.pickle").write_bytes(pickle.dumps(results))
    rows = [[f"writer {writer}", *_figures(own)] for writer, own in sorted(results.items())]
    everything = [pair for own in results.values() for pair in own]
    columns = ["stance", "span F1", "omission P", "omission R", "wrong", "refused", "ece", "sure right"]
    show("writers left out", ["", *columns], [*rows, ["all", *_figures(everything)]])


def _some_writers(writers: Sequence[str], share: float) -> set[str]:
    """Return a share of the writers, spread over all of them."""
    numbers = sorted({int(writer[1:]) for writer in writers})
    count = max(3, round(share * len(numbers)))
    return {f"w{numbers[i * len(numbers) // count]}" for i in range(count)}


def _read(comment: Comment) -> list:
    return read(comment.labelled)


def _figures(pairs: Sequence[tuple[Comment, list]]) -> list[str]:
    gold, found = [comment.opinions for comment, _ in pairs], [opinions for _, opinions in pairs]
    certainty = calibration(span_outcomes(gold, found))
    return [f"{value:.3f}" for value in (*measure(gold, found).values(), certainty["ece"], certainty["sure_right"])]


def _cached(folder: Path | None, name: str, make: Callable[[], Any]) -> Any:
    path = folder / f"{name}.pickle" if folder else None
    if path and path.exists():
        return pickle.loads(path.read_bytes())
    made = make()
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(made))
    return made


@contextmanager
def ranking(data: dict[str, Any]) -> Iterator[None]:
    """Rank places with this model."""
    shipped, other = places._load_model, places.parse_model(data)
    places._load_model = lambda: other  # type: ignore[assignment]
    try:
        yield
    finally:
        places._load_model = shipped


if __name__ == "__main__":
    main()
