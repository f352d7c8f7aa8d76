"""The score of held-out pairs against the dimensions of one model that are kept."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from jaxsim.data.pairs import Pairs
from jaxsim.evaluate import mates
from jaxsim.methods import s2net
from jaxsim.model import WEIGHTINGS, Model
from jaxsim.pictures import figures
from jaxsim.pictures.figures import Panel
from jaxsim.sparse import Vectors

ORDERED = ("opca", "cca", "cl-lsi", "lsa")
"""Methods whose first dimensions are the fit with fewer, unless distilled; others are turned on `principal_axes`."""


def principal_axes(model: Model) -> np.ndarray:
    """The directions in which vectors of texts vary most, as the terms' document frequencies say.

    Turning both sides by the same rotation changes no cosine, so that what is learned with dimensions in no order gets
    one.

    Args:
      model: one with a projection, or one a side.

    Returns:
      ``[k, k]`` float64, orthonormal columns by falling variance.

    Example:
      >>> from jaxsim.methods.projections import Projection
      >>> from jaxsim.text import Vocabulary
      >>> one = Model(Vocabulary(("a", "b"), np.array([1, 2]), 3), Projection(jnp.array([[0.1, 0.0], [0.0, 2.0]])))
      >>> np.abs(principal_axes(one)).tolist()
      [[0.0, 1.0], [1.0, 0.0]]
    """
    words = model.vocabulary
    weights = WEIGHTINGS[model.weighting](sp.eye_array(len(words), format="csr"), words.df, words.num_docs).diagonal()
    shares = (weights**2 * words.df / max(words.num_docs, 1))[:, None]
    gram = 0.0
    for side in s2net.sides(model.params):
        terms = np.asarray(side.weights, np.float64)[: len(words)]
        gram = gram + terms.T @ (shares * terms)
    return np.linalg.eigh(gram)[1][:, ::-1]


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


def _turned(model: Model) -> bool:
    """Whether its dimensions are in no order as they are."""
    return model.method not in ORDERED or bool(model.training.get("distilled"))


def scores(model: Model, pairs: Pairs) -> list[tuple[int, float]]:
    """Mean reciprocal rank of mates, both directions averaged, by the first dimensions alone.

    Those of methods that are not `ORDERED`, and of whatever is distilled, are turned on `principal_axes` first.

    Args:
      model: one with a projection, without an activation where it is turned.
      pairs: held-out pairs, at least one.

    Returns:
      ``(dimensions, score)``, rising; the last point is the whole model.

    Example:
      >>> from jaxsim.data import docstrings
      >>> from jaxsim.train.training import Settings, train
      >>> known = docstrings.load().take(range(240))
      >>> model = train(known.take(range(200)), Settings(method="opca", dim=20))
      >>> [k for k, _ in scores(model, known.take(range(200, 240)))]
      [1, 2, 4, 8, 16, 20]
    """
    texts = {"query": pairs.left, "document": pairs.right}
    sides = [model.vectors(some, side=side).dense for side, some in texts.items()]
    if _turned(model):
        axes = jnp.asarray(principal_axes(model), jnp.float32)
        sides = [side @ axes for side in sides]
    result = []
    for k in sizes(model.dim):
        # Zeros add nothing to a cosine, and arrays of one shape need one program.
        first = jnp.asarray(np.arange(model.dim) < k, jnp.float32)
        result.append((k, mates.scores(*(Vectors(side * first[None]) for side in sides))["mrr"]))
    return result


def draw(model: Model, pairs: Pairs, labels: np.ndarray | None = None, *, untrained: str = "untrained") -> bytes | None:
    """MRR of the model against its dimensions, beside that of bare term weights.

    Args:
      model: the model.
      pairs: held-out pairs.
      labels: ``[len(pairs)]`` numbers, above 0 for texts that belong together, the others are left out; all do unless
        given.
      untrained: what bare term weights are called.

    Returns:
      The SVG file; None where there is no projection to turn (bare words, SSI, an activation), or there are fewer than
      two dimensions or pairs.
    """
    rows = np.arange(len(pairs)) if labels is None else np.flatnonzero(np.asarray(labels) > 0)
    turned = _turned(model)
    if model.params is None or model.bilinear or model.dim < 2 or rows.size < 2 or (
            turned and model.activation != "none"):
        return None
    pairs = pairs.take(rows)
    bare = Model(model.vocabulary, None, model.weighting, languages=model.languages)
    level = mates.scores(bare.vectors(pairs.left, side="query"), bare.vectors(pairs.right, side="document"))["mrr"]
    points = scores(model, pairs)
    panel = Panel({model.method: points}, "dimensions", f"MRR (of {len(pairs):,} pairs)", xscale="log",
                  reference={untrained: [(points[0][0], level), (points[-1][0], level)]})  # fmt: skip
    kept = "principal axes" if turned else "dimensions"
    name = f"{model.method}, distilled" if model.training.get("distilled") else model.method
    return figures.panels([panel], title=f"Held-out pairs by the first {kept} of {name}")
