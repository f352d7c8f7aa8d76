"""The score of held-out pairs against the dimensions of one model that are kept."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from jaxsim import mates, report_figures
from jaxsim.data.pairs import Pairs
from jaxsim.model import Model
from jaxsim.report_figures import Panel
from jaxsim.vectors import Vectors

ORDERED = ("opca", "cca", "cl-lsi", "lsa")
"""Methods whose first dimensions are the fit with fewer; those of S2Net have no order."""


def sizes(dim: int) -> list[int]:
    """Numbers of dimensions to look at.

    Args:
      dim: how many there are.

    Returns:
      The powers of two below it, and itself.

    Example:
      >>> sizes(10)
      [1, 2, 4, 8, 10]
    """
    return [*(2**i for i in range((dim - 1).bit_length())), dim]


def scores(model: Model, pairs: Pairs) -> list[tuple[int, float]]:
    """Mean reciprocal rank of mates, both directions averaged, by the first dimensions alone.

    Args:
      model: one with a projection.
      pairs: held-out pairs, at least one.

    Returns:
      ``(dimensions, score)``, rising; the last point is the whole model.

    Example:
      >>> from jaxsim.data import docstrings
      >>> from jaxsim.training import Settings, train
      >>> known = docstrings.load().take(range(240))
      >>> model = train(known.take(range(200)), Settings(method="opca", dim=20))
      >>> [k for k, _ in scores(model, known.take(range(200, 240)))]
      [1, 2, 4, 8, 16, 20]
    """
    texts = {"query": pairs.left, "document": pairs.right}
    sides = [model.vectors(some, side=side).dense for side, some in texts.items()]
    found = []
    for k in sizes(model.dim):
        # Zeros add nothing to a cosine, and arrays of one shape need one program.
        first = jnp.asarray(np.arange(model.dim) < k, jnp.float32)
        found.append((k, mates.scores(*(Vectors(side * first[None]) for side in sides))["mrr"]))
    return found


def draw(model: Model, pairs: Pairs, labels: np.ndarray | None = None, *, untrained: str = "untrained") -> bytes | None:
    """MRR of the model against its dimensions, beside that of bare term weights.

    Args:
      model: the model.
      pairs: held-out pairs.
      labels: ``[len(pairs)]`` numbers, above 0 for texts that belong together, the others are left out; all do unless
        given.
      untrained: what bare term weights are called.

    Returns:
      The SVG file; None where dimensions have no order, or there are fewer than two of them or of the pairs.
    """
    rows = np.arange(len(pairs)) if labels is None else np.flatnonzero(np.asarray(labels) > 0)
    if model.method not in ORDERED or model.params is None or model.dim < 2 or rows.size < 2:
        return None
    pairs = pairs.take(rows)
    bare = Model(model.vocabulary, None, model.weighting, languages=model.languages)
    level = mates.scores(bare.vectors(pairs.left, side="query"), bare.vectors(pairs.right, side="document"))["mrr"]
    points = scores(model, pairs)
    panel = Panel({model.method: points}, "dimensions", f"MRR (of {len(pairs):,} pairs)", xscale="log",
                  reference={untrained: [(points[0][0], level), (points[-1][0], level)]})  # fmt: skip
    return report_figures.panels([panel], title=f"Held-out pairs by the first dimensions of {model.method}")
