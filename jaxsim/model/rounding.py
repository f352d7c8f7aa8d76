"""Models whose weights take fewer bytes, and how far their scores are from those of the model they were made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from jaxsim import checks
from jaxsim.model import parts
from jaxsim.model.model import WEIGHTINGS, Model
from jaxsim.sparse import narrow

KINDS = narrow.KINDS
"""Types of weights: ``"float16"``, and ``"int8"`` with a scale for each term."""
_TEXTS, _WORDS = 1_000, 12


def rounded(model: Model, weights: str) -> Model:
    """The same model with weights of 16 or of 8 bits.

    Sums stay float32. What the model was before is not kept: errors are measured against the model that is given, and
    where that one was rounded before, what it lost then is told too.

    Args:
      model: one with a projection, or with W.
      weights: of `KINDS`.

    Returns:
      A model, of whose ``training`` the entry ``weights`` says what was lost: ``type``, ``bytes`` and ``bytes_before``
      of the weights, from `error` ``largest_error``, ``typical_error`` and ``measured_on``, and, for a model that was
      rounded before, its own entry as ``before``.

    Raises:
      ValueError: for another type, bare term weights, and for float16 weights above 65,504.

    Example:
      >>> from jaxsim import text
      >>> from jaxsim.methods.projections import Projection
      >>> words = text.Vocabulary(("cat", "dog"), np.array([1, 2]), 4)
      >>> small = rounded(Model(words, Projection(np.array([[1.0, 0.3], [0.2, 0.5]], np.float32))), "int8")
      >>> small.training["weights"]["bytes"], small.training["weights"]["bytes_before"]
      (12, 16)
      >>> small.training["weights"]["largest_error"] < 0.01
      True
    """
    checks.kind(model, "model", Model)
    checks.expect(model.params is not None, "model", "one with a projection", f"bare term weights ({model.method})")
    made: dict[int, Any] = {}  # sides that are one array stay one
    sides = []
    for side in parts.sides(model.params):
        if id(side.weights) not in made:
            made[id(side.weights)] = narrow.narrowed(narrow.full(side.weights), weights)
        sides.append(side._replace(weights=made[id(side.weights)]))
    small = replace(model, params=sides[0] if len(sides) == 1 else tuple(sides))
    told = {"type": weights, "bytes": _bytes(small), "bytes_before": _bytes(model), **error(model, small)}
    if narrow.is_narrow(parts.sides(model.params)[0].weights) and "weights" in model.training:
        told["before"] = model.training["weights"]
    return replace(small, training={**model.training, "weights": told})


def error(model: Model, other: Model) -> dict[str, Any]:
    """How far the scores of two models of one vocabulary are apart.

    Measured on 1,000 texts of 12 words, which are drawn as often as they occur in texts (seed 0): every one of the
    first half against every one of the second.

    Args:
      model: with a projection, or with W.
      other: the same with other weights.

    Returns:
      ``largest_error`` and ``typical_error`` (root mean square) of a score, a cosine for most models, and
      ``measured_on``, in words.

    Example:
      >>> from jaxsim import text
      >>> from jaxsim.methods.projections import Projection
      >>> words = text.Vocabulary(("cat", "dog"), np.array([1, 2]), 4)
      >>> model = Model(words, Projection(np.eye(2, dtype=np.float32)))
      >>> error(model, model)["largest_error"]
      0.0
    """
    df = np.maximum(np.asarray(model.vocabulary.df, np.float64), 1e-9)
    rng = np.random.default_rng(0)
    columns = rng.choice(len(df), (_TEXTS, _WORDS), p=df / df.sum()) if len(df) else np.zeros((_TEXTS, 0), int)
    counts = sp.csr_matrix((np.ones(columns.size, np.float32), columns.ravel(),
                            np.arange(_TEXTS + 1) * columns.shape[1]), shape=(_TEXTS, len(df)))  # fmt: skip
    counts.sum_duplicates()
    rows = WEIGHTINGS[model.weighting](counts, model.vocabulary.df, model.vocabulary.num_docs).tocsr()
    if model.subwords is not None:  # none of the words is unseen
        rows = sp.csr_matrix((rows.data, rows.indices, rows.indptr), (_TEXTS, len(df) + len(model.subwords)))
    apart = np.abs(_scores(model, rows) - _scores(other, rows))
    return {"largest_error": float(apart.max(initial=0)), "typical_error": float(np.sqrt(np.mean(np.square(apart)))),
            "measured_on": f"{_TEXTS // 2} by {_TEXTS // 2} texts of {_WORDS} words, drawn by their frequency"}


def _bytes(model: Model) -> int:
    """What the weights take in a folder."""
    return sum(array.nbytes for name, array in parts.to_tensors(model.params).items() if "weights" in name)


def _scores(model: Model, rows: sp.csr_matrix) -> np.ndarray:
    """The low-rank part of the scores, which is all that weights change."""
    half = _TEXTS // 2
    compare: Callable = _in_common if model.topical else np.matmul
    sides = []
    for side, some in zip((parts.sides(model.params)[0], parts.sides(model.params)[-1]), (rows[:half], rows[half:]),
                          strict=True):  # fmt: skip
        if model.bilinear:
            some, _ = parts.rows_seen(side, some, model.strongest)
        found = model.project(side, some).astype(np.float64)
        sides.append(found if model.bilinear or model.topical else parts.unit_dense(found))
    return compare(sides[0], sides[1].T)


def _in_common(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return np.stack([np.minimum(one, right.T).sum(axis=1) for one in left])


def told(record: dict[str, Any], score: str = "cosine") -> str:
    """What `rounded` says, in words.

    Args:
      record: ``training["weights"]``.
      score: what the model's scores are.

    Returns:
      A line.

    Example:
      >>> told({"type": "int8", "bytes": 6_080_000, "bytes_before": 24_000_000, "largest_error": 0.004,
      ...       "typical_error": 0.0007, "measured_on": "4 by 4 texts"})
      'int8, 6.08 MB for 24.00 MB; a cosine is off by .0007, at most .0040 (4 by 4 texts)'

    Two roundings together are off by no more than the sum of both errors (the triangle inequality):

      >>> first = {"type": "float16", "bytes": 12_000_000, "bytes_before": 24_000_000, "largest_error": 0.0002,
      ...          "typical_error": 0.0001, "measured_on": "4 by 4 texts"}
      >>> told({**first, "type": "int8", "largest_error": 0.004, "before": first}).partition("texts), ")[2]
      "from the float16 model's; from that of the model before any rounding, by up to .0002, at most .0042"
    """
    sizes = [f"{size / 1e6:.2f} MB" if size >= 1e6 else f"{size / 1e3:.2f} kB"
             for size in (record["bytes"], record["bytes_before"])]  # fmt: skip
    names = "typical_error", "largest_error"
    errors = [_shown(record[name]) for name in names]
    line = (f"{record['type']}, {sizes[0]} for {sizes[1]}; a {score} is off by {errors[0]}, at most {errors[1]} "
            f"({record['measured_on']})")
    if "before" not in record:
        return line
    roundings = [record]
    while "before" in roundings[-1]:
        roundings.append(roundings[-1]["before"])
    sums = [_shown(sum(one[name] for one in roundings)) for name in names]
    return (f"{line}, from the {roundings[1]['type']} model's; from that of the model before any rounding, by up to "
            f"{sums[0]}, at most {sums[1]}")


def _shown(error: float) -> str:
    return f"{error:.4f}".lstrip("0")
