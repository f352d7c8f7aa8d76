"""From pairs of texts to a `Model`: split, vocabulary, weights, fit, dev score. What ``jaxsim train`` calls."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from jaxsim import checkpoints, checks, mates, record_history, sharding, terms, text
from jaxsim.checks import counted
from jaxsim.data import splits
from jaxsim.data.pairs import Pairs, tokenize
from jaxsim.methods import cca, cl_lsi, lsa, opca, s2net, s2net_sgd
from jaxsim.model import ACTIVATIONS, WEIGHTINGS, Model
from jaxsim.models.projection import Projection
from jaxsim.optim import Fit
from jaxsim.precision import checked
from jaxsim.terms import Terms
from jaxsim.vectors import Vectors

_EXACT_PAIRS = 8_000  # up to here S2Net trains on all negatives by L-BFGS; above it on batches by Adam
_START_PAIRS = 8_000  # pairs that the closed-form start of S2Net is fitted on, at most
_STEPS = 6_000  # of Adam, about; between 5 and 40 epochs
_NOISE = 1e-4
_FEWEST = 20  # pairs of which some are held out


@dataclass(frozen=True)
class Settings:
    """How a model is trained.

    Attributes:
      method: name in `METHODS`.
      dim: dimension; smaller where the data bears less.
      weighting: name in `model.WEIGHTINGS`.
      drop_top: most frequent terms left out.
      max_terms: terms kept at most.
      min_df: documents a term must occur in.
      noise: of OPCA, also as S2Net's start; the ridge of CCA.
      gamma: scale of S2Net's loss.
      activation: name in `model.ACTIVATIONS`, for S2Net.
      all_negatives: whether near-duplicates are negatives of each other too.
      max_iter: iterations (or epochs) of S2Net at most; by the number of pairs unless given.
      patience: iterations (or epochs) without a better dev score before stopping; 30 (or 10) unless given. Dev scores
        may dip before they rise.
      batch_size: pairs a batch of S2Net; 0 for all pairs at once (exact), by the number of pairs unless given.
      seed: of whatever is random, and the salt of the split.
      precision: of the products of S2Net's loss, as for `precision.matmul`; JAX's default unless given.
      devices: that share the pairs of S2Net on all negatives; all of this process unless given. Batches take one.
    """

    method: str = "s2net"
    dim: int = 300
    weighting: str = "log_tf_idf"
    drop_top: int = 0
    max_terms: int = 50_000
    min_df: int = 2
    noise: float = _NOISE
    gamma: float = 10.0
    activation: str = "none"
    all_negatives: bool = False
    max_iter: int | None = None
    patience: int | None = None
    batch_size: int | None = None
    seed: int = 0
    precision: str | None = None
    devices: int | None = None


@dataclass(frozen=True, eq=False)
class Parts:
    """What a method is fitted on.

    Attributes:
      counts: raw counts of the training pairs, left and right, CSR.
      train: their weighted vectors, of unit length.
      groups: ``[m, 2]`` group numbers of near-duplicates among the left and among the right texts.
      validate: dev score of params, or None without dev pairs.
      k: dimension.
      settings: the rest.
      checkpoint: folder for checkpoints, or None.
      progress: whether to show bars.
    """

    counts: tuple[scipy.sparse.csr_matrix, scipy.sparse.csr_matrix]
    train: tuple[Terms, Terms]
    groups: np.ndarray
    validate: Callable | None
    k: int
    settings: Settings
    checkpoint: Any = None
    progress: bool = False


def _opca(parts: Parts) -> Fit:
    return opca.fit(parts.train, k=parts.k, noise=parts.settings.noise)


def _cca(parts: Parts) -> Fit:
    used = min(int(np.unique(side.indices).size) for side in parts.counts)
    return cca.fit(*parts.train, k=min(parts.k, used), ridge=parts.settings.noise)


def _lsa(parts: Parts) -> Fit:
    both = scipy.sparse.vstack([terms.to_scipy(side) for side in parts.train], format="csr")
    return lsa.fit(terms.from_scipy(both), k=parts.k)


def _cl_lsi(parts: Parts) -> Fit:
    return cl_lsi.fit([terms.from_scipy(side) for side in parts.counts], k=parts.k, unit_length=True)


def _s2net(parts: Parts) -> Fit:
    """From OPCA; on all negatives while that is cheap, else on those of a batch."""
    settings, m = parts.settings, parts.train[0].num_docs
    activation = _activation(settings.activation)
    key = jax.random.key(settings.seed)
    chosen = np.sort(np.asarray(jax.random.permutation(key, m))[:_START_PAIRS])
    some = parts.train if m <= _START_PAIRS else tuple(terms.take(side, chosen) for side in parts.train)
    batch_size, mesh = settings.batch_size, None
    if batch_size is None:
        batch_size = 0 if m <= _EXACT_PAIRS else 256
    if batch_size == 0:
        mesh = sharding.local_mesh(m, devices=settings.devices)
    else:
        checks.expect(settings.devices in (None, 1), "devices", "1, with batches", settings.devices)
    init = _start(parts, some)
    few = min(np.unique(column).size for column in parts.groups.T) < 2  # no negative would be left
    groups = None if settings.all_negatives or few else parts.groups
    common = {"init": init, "gamma": settings.gamma, "groups": groups, "activation": activation,
              "validate": parts.validate, "checkpoint": parts.checkpoint, "progress": parts.progress,
              "precision": settings.precision}  # fmt: skip
    if batch_size == 0:
        max_iter, patience = 100 if parts.validate else 15, 30  # with nothing to stop by, stop early
    else:
        max_iter, patience = int(np.clip(_STEPS * batch_size / m, 5, 40)), 10
    common["max_iter"] = max_iter if settings.max_iter is None else settings.max_iter
    if parts.validate:
        common["patience"] = patience if settings.patience is None else settings.patience
    if batch_size == 0:
        return s2net.fit(*parts.train, mesh=mesh, **common)
    return s2net_sgd.fit(*parts.train, key=key, batch_size=batch_size, **common)


def _start(parts: Parts, views: tuple[Terms, ...]) -> Projection:
    """OPCA, kept beside the checkpoints: refitted on other cores it would differ in its last bits."""
    def fit() -> Projection:
        return opca.fit(views, k=parts.k, noise=parts.settings.noise).params

    if parts.checkpoint is None:
        return fit()
    folder = checkpoints.prepare(Path(parts.checkpoint) / "checkpoint.start")
    mark = checkpoints.fingerprint([parts.k, parts.settings.noise], views)
    like = Projection(np.zeros((views[0].num_terms, parts.k), views[0].values.dtype))
    saved = checkpoints.load(folder, like, fingerprint=mark)
    if saved is not None:
        return jax.tree.map(jnp.asarray, saved[0])
    init = fit()
    checkpoints.save(folder, init, {"fingerprint": mark})
    return init


def _activation(name: str) -> Callable | None:
    checks.expect(name in ACTIVATIONS, "activation", f"one of {', '.join(ACTIVATIONS)}", name)
    return ACTIVATIONS[name]


METHODS: dict[str, Callable[[Parts], Fit] | None] = {
    "s2net": _s2net, "opca": _opca, "cca": _cca, "cl-lsi": _cl_lsi, "lsa": _lsa, "log-tfidf": None, "tfidf": None,
}  # fmt: skip
"""Method name -> its fit; None for bare term weights, which only count."""


def train(
    pairs: Pairs,
    settings: Settings | None = None,
    *,
    dev: float | Pairs = 0.1,
    checkpoint=None,
    progress: bool = False,
    say: Callable[[str], None] = lambda message: None,
) -> Model:
    """Learns a model from pairs of texts.

    Args:
      pairs: left texts are queries, right texts the documents that belong to them.
      settings: how; `Settings()` unless given.
      dev: share of the pairs to stop and to measure by, near-duplicates kept together; or pairs of your own. 0: none.
        Of fewer than 20 pairs, or where nearly all are near-duplicates of each other, none are held out.
      checkpoint: folder for checkpoints of S2Net; training goes on where it stopped.
      progress: whether to show bars on a terminal's stderr.
      say: told what is being done.

    Returns:
      `Model`; ``model.training`` holds counts, settings, dev scores, seconds and the history of S2Net.

    Raises:
      ValueError: for bad settings, no pairs, or texts without words.

    Example:
      >>> from jaxsim.data import docstrings
      >>> model = train(docstrings.load().take(range(300)), Settings(method="opca", dim=20))
      >>> model.dim, model.training["dev"]["mrr"] > 0.2
      (20, True)
    """
    settings = Settings() if settings is None else settings
    checks.expect(settings.method in METHODS, "method", f"one of {', '.join(METHODS)}", settings.method)
    checks.positive_int(settings.dim, "dim")
    checked(settings.precision)
    checks.expect(len(pairs) > 0, "pairs", "at least one pair", "none")
    begun = time.perf_counter()
    say(f"{counted(len(pairs), 'pair')}: reading words …")
    sides = tokenize(pairs)
    twins = [splits.group_near_duplicates(side) for side in sides]
    keep = splits.first_of_equals(*sides, pairs.ids)
    if not keep.all():
        say(f"left out {counted(np.count_nonzero(~keep), 'pair')}, equal to an earlier one")
    rows, dev_pairs = _parts(pairs, splits.merge(*twins), keep, dev, settings, say)
    groups = np.stack(twins, axis=1)
    words = [[side[i] for i in rows["train"]] for side in sides]
    vocabulary = text.Vocabulary.build(
        [*words[0], *words[1]], drop_top=settings.drop_top, max_terms=settings.max_terms,
        min_df=settings.min_df if len(rows["train"]) >= 100 else 1,
    )  # fmt: skip
    checks.expect(len(vocabulary) > 0, "pairs", "texts with words", "an empty vocabulary")
    counts = tuple(text.counts(side, vocabulary) for side in words)
    del words, sides
    if settings.method == "tfidf":
        settings = replace(settings, weighting="tf_idf")
    untrained = Model(vocabulary, None, settings.weighting, languages=pairs.languages, method=settings.method)
    m = len(rows["train"])
    told = {"pairs": {"all": len(pairs), "train": m, "dev": len(dev_pairs)}, "terms": len(vocabulary)}
    say(f"{counted(m, 'training pair')}, {counted(len(dev_pairs), 'dev pair')}, {counted(len(vocabulary), 'term')}")
    fit_method = METHODS[settings.method]
    dev_sides = None if not len(dev_pairs) else _sides(untrained, dev_pairs)
    params, fit = None, None
    if fit_method is not None:
        k = min(settings.dim, m - 1, len(vocabulary) - 1)
        checks.expect(k >= 1, "pairs", "at least two training pairs and two terms", f"{m} and {len(vocabulary)}")
        if k < settings.dim:
            say(f"dimension {k}: {counted(m, 'training pair')} and {counted(len(vocabulary), 'term')} bear no more")
        weighted = tuple(_unit(untrained, side) for side in counts)
        validate = None if dev_sides is None else _validator(dev_sides, settings.activation)
        say(f"training {settings.method} …")
        fit = fit_method(Parts(counts, weighted, groups[rows["train"]], validate, k, settings, checkpoint, progress))
        params = fit.params
    activation = settings.activation if settings.method == "s2net" else "none"
    model = Model(vocabulary, _as_projections(params), settings.weighting, activation, pairs.languages, settings.method)
    told |= {"settings": asdict(settings), "data": {"name": pairs.name,
             "sha256": pairs.sha256}, "dev": _dev_scores(model, untrained, dev_pairs)}  # fmt: skip
    if fit is not None and fit.history:
        told["history"] = record_history.compact(fit.history)
        told["fit"] = {"steps": fit.steps, "loss": fit.loss, "start_loss": told["history"]["loss"][0]}
    told["seconds"] = round(time.perf_counter() - begun, 1)
    return replace(model, training=told)


def _as_projections(params) -> Projection | tuple[Projection, Projection] | None:
    return params if params is None or isinstance(params, Projection) else tuple(params)


def _parts(pairs: Pairs, groups, keep: np.ndarray, dev, settings: Settings, say: Callable[[str], None]):
    """Rows of the training pairs, and the dev pairs."""
    everything = {"train": np.flatnonzero(keep)}, pairs.take([])
    if isinstance(dev, Pairs):
        checks.expect(dev.languages == pairs.languages, "dev", f"languages {pairs.languages} (as pairs)", dev.languages)
        checks.expect(len(dev) >= 2, "dev", "at least two pairs (one alone always finds its mate)", len(dev))
        return everything[0], dev
    checks.expect(isinstance(dev, int | float) and 0 <= dev < 1, "dev", "pairs, or a share in [0, 1)", dev)
    if dev == 0:
        return everything
    if len(pairs) < _FEWEST:
        say(f"no pairs held out: there are fewer than {_FEWEST}")
        return everything
    salt = "" if settings.seed == 0 else str(settings.seed)
    chosen = splits.split(groups, pairs.ids, shares=(1 - dev, dev, 0.0), salt=salt, keep=keep)
    if not len(chosen["train"]) or len(chosen["dev"]) < 2:
        say("no pairs held out: nearly all are near-duplicates of each other, which stay together; give dev pairs of "
            "your own to stop and to measure by")
        return everything
    return chosen, pairs.take(chosen["dev"])


def _unit(model: Model, counts: scipy.sparse.csr_matrix) -> Terms:
    weigh = WEIGHTINGS[model.weighting]
    return terms.from_scipy(text.unit_rows(weigh(counts, model.vocabulary.df, model.vocabulary.num_docs)))


def _sides(model: Model, pairs: Pairs) -> tuple[Terms, Terms]:
    return tuple(
        terms.from_scipy(text.unit_rows(model.term_vectors(texts, side=side)))
        for texts, side in ((pairs.left, "query"), (pairs.right, "document"))
    )


def _validator(sides: tuple[Terms, Terms], activation: str) -> Callable:
    return mates.validator(sides, activation=_activation(activation))


def _dev_scores(model: Model, untrained: Model, dev: Pairs) -> dict[str, Any]:
    """Accuracy and mean reciprocal rank of the dev mates, beside those of the bare term weights."""
    if len(dev) < 2:
        return {}
    found = {}
    for name, one in (("", model), ("untrained_", untrained)):
        sides = one.vectors(dev.left, side="query"), one.vectors(dev.right, side="document")
        scores = mates.scores(*(Vectors(*side) for side in sides))
        found |= {f"{name}{key}": round(value, 4) for key, value in scores.items()}
    return found
