"""Why mutants survive that `benchmarks/mutation.py` tests: (function, pattern of the changed line, reason)."""

import re

LENGTHS = "the lengths are always equal; `strict` guards later changes of the code"
SHORTCUT = "the general case gives the same result; the condition saves work"
NOT_STRICT = r"zip\(.*, (strict=None|strict=False|)\)"

SURVIVORS = [
    ("align.tokens.decode", "if True:", SHORTCUT),
    ("align.tokens.offsets", "if (True|False):", SHORTCUT),
    ("critics.base.validate_batch", NOT_STRICT, LENGTHS),
    (
        "critics.base.validate_feedback",
        r"model_dump\(exclude=(None|\{\"XXfeedbackXX\"\}|\{\"FEEDBACK\"\})\)",
        "earlier feedback of the example is replaced in the next expression; leaving it out saves work",
    ),
    ("rewards.credit.limit_total", r"sum\(dtype=None\)", "differs in the rounding of single precision only"),
    ("rewards.credit.limit_total", "total < max_total", "where they are equal, the factor is 1"),
    (
        "rewards.credit.span_rewards",
        r"np.asarray\(offsets, (dtype=None|)\)",
        "offsets are integers and never empty here, so NumPy chooses the same type",
    ),
    ("rewards.credit.span_rewards", r"reshape\(-2, 2\)", "NumPy infers the size from any negative number"),
    ("rewards.credit.span_rewards", r"np.zeros\(len\(starts\), (dtype=None|)\)", "float64 is NumPy's default"),
    (
        "trainer.advantages.add_outcomes",
        r"credit.sum\(1\) / lengths\)|\* mask\).sum\(1\)$",
        "0 / 0 in a row without tokens, which is masked",
    ),
    (
        "trainer.advantages.add_outcomes",
        r"device=None|dtype=mask.dtype, \)",
        "the tests run on the CPU, where tensors are made",
    ),
    (
        "trainer.advantages.add_outcomes",
        r"torch.arange\(mask.shape\[1\], (dtype=None, )?device=mask.device\)",
        "integers as exponents give the same powers",
    ),
    ("trainer.advantages.explained_variance", "NAN", "Python reads both spellings"),
    (
        "trainer.advantages.local_credit",
        r"mask.sum\(1\).long\(\) - 1",
        "index -1 in a row without tokens, which is masked and compared with by none",
    ),
    ("trainer.advantages.rloo", r"to\(None\)", "booleans are counted and multiplied like 0 and 1"),
    ("trainer.batch.make_batch", "NAN", "Python reads both spellings"),
    ("trainer.trainer.Text2GradTrainer.set_learning_rate", NOT_STRICT, LENGTHS),
    (
        "trainer.trainer.Text2GradTrainer.step",
        "if True:",
        "without a valid sample the KL is NaN, which the controller ignores",
    ),
    ("trainer.update._accumulate", "if True:", "adds 0 times a finite number"),
    ("trainer.update._accumulate", r"\.to\(None\)", "the tests run on the CPU, where the batch already is"),
    ("trainer.update._accumulate", r"approximate_kl\(scores.logprobs, ", "only its value is used, never its gradient"),
    ("trainer.update._optimize", NOT_STRICT, LENGTHS),
]


def reason(function: str, changed: str) -> str:
    """Return why this change of a line of a function survives; empty where nobody has looked at it."""
    matches = (why for name, pattern, why in SURVIVORS if name == function and re.search(pattern, changed))
    return next(matches, "")
