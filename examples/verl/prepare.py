"""Write the prompts of a text2grad data set as the Parquet files that verl reads.

python examples/verl/prepare.py --train summaries --eval summaries --out data/verl
"""

from __future__ import annotations

import argparse
from pathlib import Path

from datasets import Dataset

from text2grad.config.run import DataSettings
from text2grad.integrations.verl.rows import to_row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default="summaries", help="a file, a name of text2grad.data, or hf:OWNER/NAME")
    parser.add_argument("--eval", default="summaries", help="the same for held-out prompts")
    parser.add_argument("--out", type=Path, default=Path("data/verl"), help="folder of the Parquet files")
    args = parser.parse_args()
    data = DataSettings(train=args.train, eval=args.eval)
    args.out.mkdir(parents=True, exist_ok=True)
    for name, examples in (("train", data.load_train()), ("val", data.load_eval())):
        rows = [to_row(example, index) for index, example in enumerate(examples)]
        Dataset.from_list(rows).to_parquet(args.out / f"{name}.parquet")
        print(f"{args.out / name}.parquet: {len(rows)} prompts")


if __name__ == "__main__":
    main()
