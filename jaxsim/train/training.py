"""From pairs of texts to a `Model`: split, vocabulary, weights, fit, dev score. What ``jaxsim train`` calls."""

from __future__ import annotations

import functools
import math
import numbers
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import scipy.sparse

from jaxsim import checks, sparse, text
from jaxsim.checks import counted
from jaxsim.data import splits
from jaxsim.data.pairs import Pairs, tokenize
from jaxsim.evaluate import mates, metrics
from jaxsim.linalg.row_space import distinct_rows
from jaxsim.methods import cca, cl_lsi, lsa, opca
from jaxsim.methods.projections import Projection
from jaxsim.model import WEIGHTINGS, Model, parts
from jaxsim.optim import Fit, history
from jaxsim.sparse import Terms
from jaxsim.sparse.precision import checked
from jaxsim.text.subwords import Subwords, slots
from jaxsim.train import distilled, linked, s2net
from jaxsim.train import graded as graded_pairs
from jaxsim.train.settings import Parts, Settings, keep_choice

_FEWEST = 20  # pairs of which some are held out
RARE_COUNT = 100
"""Training pairs below which every word is learned of, whatever ``min_df`` is."""


def _opca(parts: Parts) -> Fit:
    return opca.fit(parts.train, k=parts.k, noise=parts.settings.noise)


def _cca(parts: Parts) -> Fit:
    used = min(int(np.unique(side.indices).size) for side in parts.counts)
    return cca.fit(*parts.train, k=min(parts.k, used), ridge=parts.settings.noise)


def _lsa(parts: Parts) -> Fit:
    both = scipy.sparse.vstack([sparse.to_scipy(side) for side in parts.train], format="csr")
    return lsa.fit(sparse.from_scipy(both), k=parts.k)


def _cl_lsi(parts: Parts) -> Fit:
    return cl_lsi.fit([sparse.from_scipy(side) for side in parts.counts], k=parts.k, unit_length=True)


METHODS: dict[str, Callable[[Parts], Fit] | None] = {
    "s2net": s2net.fit, "opca": _opca, "cca": _cca, "cl-lsi": _cl_lsi, "lsa": _lsa, "ssi": linked.fit,
    "ssi-sym": functools.partial(linked.fit, symmetric=True),
    "s2net-2": functools.partial(s2net.fit, matrices=2), "s2net-mse": graded_pairs.fit, "log-tfidf": None,
    "tfidf": None,
}  # fmt: skip
"""Method name -> its fit; None for bare term weights, which only count."""
S2NET = ("s2net", "s2net-2")
"""S2Net with one matrix for both sides, and with one a side."""
LINKED = ("ssi", "ssi-sym")
"""Methods that learn W = UᵀV + b·I, or UᵀU + b·I."""
GRADED = ("s2net-mse",)
"""Methods that learn from grades."""
SPELT = (*S2NET, "opca", "cca", "lsa", *GRADED)
"""Methods that can learn of words and their n-grams."""


def train(
    pairs: Pairs,
    settings: Settings | None = None,
    *,
    dev: float | Pairs = 0.1,
    grades=None,
    dev_grades=None,
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
      grades: one number a pair, the larger the more alike its texts are, for ``s2net-mse`` and no other method; scaled
        as `train.graded` says. Equal pairs count once, with the mean of their grades.
      dev_grades: the same of ``dev``, where it is pairs.
      checkpoint: folder for checkpoints of S2Net and SSI; training goes on where it stopped.
      progress: whether to show bars on a terminal's stderr.
      say: told what is being done.

    Returns:
      `Model`; ``model.training`` holds counts, settings, dev scores, seconds and the history of S2Net or SSI.

    Raises:
      ValueError: for bad settings, no pairs, texts without words, grades that are missing, all equal or not asked
        for, or a checkpoint of another method or ``identity``.

    Example:
      >>> from jaxsim.data import docstrings
      >>> model = train(docstrings.load().take(range(300)), Settings(method="opca", dim=20))
      >>> model.dim, model.training["dev"]["mrr"] > 0.2
      (20, True)
    """
    settings = Settings() if settings is None else settings
    checks.expect(settings.method in METHODS, "method", f"one of {', '.join(METHODS)}", settings.method)
    checks.expect(settings.weighting in WEIGHTINGS, "weighting", f"one of {', '.join(WEIGHTINGS)}", settings.weighting)
    checks.positive_int(settings.dim, "dim")
    checks.expect(-(2**63) <= settings.seed < 2**63, "seed", "a whole number of 64 bits", settings.seed)
    checked(settings.precision)
    settings = replace(settings, subwords=_share(settings))
    distilled.expect_possible(settings)
    checks.expect(len(pairs) > 0, "pairs", "at least one pair", "none")
    graded = _graded(settings.method, pairs, grades, dev, dev_grades)
    begun = time.perf_counter()
    say(f"{counted(len(pairs), 'pair')}: reading words …")
    sides = tokenize(pairs)
    twins = [splits.group_near_duplicates(side) for side in sides]
    keep = splits.first_of_equals(*sides, pairs.ids)
    if not keep.all():
        say(f"left out {counted(np.count_nonzero(~keep), 'pair')}, equal to an earlier one")
    rows, dev_pairs = _parts(pairs, splits.merge(*twins), keep, dev, settings, say)
    if graded is not None:
        graded = graded_pairs.averaged(*(map(tuple, side) for side in sides), graded)
        if not isinstance(dev, Pairs):
            dev_grades = graded[rows.get("dev", [])]
            if np.unique(dev_grades).size < 2 and len(dev_pairs):
                say("no pairs held out: those chosen all have one grade; give dev pairs of your own to stop by")
                rows, dev_pairs = {"train": np.flatnonzero(keep)}, pairs.take([])
    groups = np.stack(twins, axis=1)
    words = [[side[i] for i in rows["train"]] for side in sides]
    if len(words[0]) < RARE_COUNT:
        settings = replace(settings, min_df=1)
    vocabulary = _vocabulary([*words[0], *words[1]], settings)
    if settings.method == "tfidf":
        settings = replace(settings, weighting="tf_idf")
    counts = tuple(text.counts(side, vocabulary) for side in words)
    spelt = Subwords.build(vocabulary, share=settings.subwords) if settings.subwords else None
    spread = None if spelt is None else spelt.spread(vocabulary)
    weigh = functools.partial(slots, vocabulary=vocabulary, subwords=spelt, weigh=WEIGHTINGS[settings.weighting])
    slotted = None if spelt is None else [weigh(side) for side in words]
    weighted = None if spelt is None else [_unit(side, spread) for side in slotted]
    del words, sides
    untrained = Model(vocabulary, None, settings.weighting, languages=pairs.languages, method=settings.method)
    m = len(rows["train"])
    told = {"pairs": {"all": len(pairs), "train": m, "dev": len(dev_pairs)}, "terms": len(vocabulary)}
    say(f"{counted(m, 'training pair')}, {counted(len(dev_pairs), 'dev pair')}, {counted(len(vocabulary), 'term')}")
    bare = int(np.count_nonzero((np.diff(counts[0].indptr) == 0) | (np.diff(counts[1].indptr) == 0)))
    if bare:
        say(f"{counted(bare, 'training pair')} without a word of the vocabulary on a side"
            + f", which is {'all' if bare == m else 'most'} of them: are these the right columns?" * (2 * bare > m))
    if spelt is not None:
        told["ngrams"] = len(spelt)
        if not len(spelt):
            say("no n-gram is in two words: subwords change nothing")
    dev_sides = None if not len(dev_pairs) else tuple(
        _unit(weigh(map(text.tokenizer(language), texts)), spread)
        for texts, language in zip((dev_pairs.left, dev_pairs.right), pairs.languages, strict=True)
    )
    params, fit = None, None
    if METHODS[settings.method] is not None:
        checks.expect(min(m, len(vocabulary)) > 1, "pairs, max_terms", "at least two training pairs and two terms",
                      f"{m} and {len(vocabulary)}")  # fmt: skip
        checks.expect(bare < m or settings.method == "lsa", "pairs", "a pair with known words on both sides", "none")
        bearing, most = counted(m, "training pair"), min(m, len(vocabulary)) - 1
        if settings.method == "lsa":  # to which both sides are documents, whatever belongs together
            different = len(distinct_rows(scipy.sparse.vstack([one[np.diff(one.indptr) > 0] for one in counts]))[0])
            bearing, most = counted(different, "different text"), min(different, len(vocabulary))
        k = min(settings.dim, most)
        if k < settings.dim:
            say(f"dimension {k}: {bearing} and {counted(len(vocabulary), 'term')} bear no more")
        if weighted is None:
            weighted = [_unit(WEIGHTINGS[settings.weighting](side, vocabulary.df, vocabulary.num_docs))
                        for side in counts]
        validate = None if dev_sides is None else _validator(dev_sides, settings.activation)
        say(f"training {settings.method} …")
        parts = Parts(counts, tuple(weighted), groups[rows["train"]], validate, k, settings, checkpoint, progress,
                      dev_sides, say=say)  # fmt: skip
        if graded is not None:
            low, high = graded_pairs.scale(graded_pairs.checked(graded, len(pairs)))  # means of equal pairs
            told["grades"] = {"lowest": low, "highest": high}
            parts = replace(parts, grades=(graded[rows["train"]] - low) / (high - low), dev_grades=dev_grades)
        if checkpoint is not None:
            keep_choice(checkpoint, settings)
        fit = METHODS[settings.method](parts)
        if settings.distill:
            say(f"distilling {settings.method} and bare terms, {settings.distill:g} of the score …")
            fit = distilled.distilled(fit, parts, slotted, words=len(vocabulary), spread=spread)
        told |= parts.told
        params = _as_sides(fit.params) if spelt is None else _folded(fit.params, spread)
    activation = settings.activation if settings.method in S2NET else "none"
    strongest = linked.STRONGEST if settings.method in LINKED else None
    model = Model(vocabulary, params, settings.weighting, activation, pairs.languages, settings.method,
                  strongest=strongest, subwords=spelt)  # fmt: skip
    scores = _dev_scores(model, untrained, dev_pairs) if graded is None else _dev_correlations(
        model, untrained, dev_pairs, dev_grades)  # fmt: skip
    told |= {"settings": asdict(settings), "data": {"name": pairs.name, "sha256": pairs.sha256}, "dev": scores}
    if fit is not None and fit.history:
        told["history"] = history.compact(fit.history)
        loss = fit.loss if math.isfinite(fit.loss) else None  # SSI has none before its first epoch
        told["fit"] = {"steps": fit.steps, "loss": loss, "start_loss": told["history"]["loss"][0]}
    told["seconds"] = round(time.perf_counter() - begun, 1)
    return replace(model, training=told)


def _vocabulary(documents: list, settings: Settings) -> text.Vocabulary:
    """The terms to learn of, at least one."""
    found = text.Vocabulary.build(documents, drop_top=settings.drop_top, max_terms=settings.max_terms,
                                  min_df=settings.min_df)  # fmt: skip
    rare = {"min_df": f" in {settings.min_df} texts or more"} if settings.min_df > 1 else {}
    frequent = {"drop_top": f" beside the {settings.drop_top} most frequent"} if settings.drop_top else {}
    checks.expect(len(found) > 0, ", ".join(["pairs", *rare, *frequent]),
                  f"texts with words{''.join([*rare.values(), *frequent.values()])}", "an empty vocabulary")
    return found


def _graded(method: str, pairs: Pairs, grades, dev, dev_grades) -> np.ndarray | None:
    """The checked grades; None for methods that take none."""
    own = isinstance(dev, Pairs)
    if method in GRADED:
        if own:
            graded_pairs.checked(dev_grades, len(dev), "dev_grades")
        else:
            checks.expect(dev_grades is None, "dev_grades", "none, without dev pairs", "some")
        return graded_pairs.checked(grades, len(pairs))
    for name, given in (("grades", grades), ("dev_grades", dev_grades)):
        checks.expect(given is None, name, f"none, for {method} ({', '.join(GRADED)} learns from grades)", "some")
    return None


def _as_sides(params):
    return params if params is None or isinstance(params, Projection) else tuple(params)


def _parts(pairs: Pairs, groups, keep: np.ndarray, dev, settings: Settings, say: Callable[[str], None]):
    """Rows of the training pairs, and the dev pairs."""
    everything = {"train": np.flatnonzero(keep)}, pairs.take([])
    if isinstance(dev, Pairs):
        checks.expect(dev.languages == pairs.languages, "dev", f"languages {pairs.languages} (as pairs)", dev.languages)
        checks.expect(len(dev) >= 2, "dev", "at least two pairs (one alone always finds its mate)", len(dev))
        known = set(zip(pairs.left, pairs.right, strict=True))
        both = sum(pair in known for pair in zip(dev.left, dev.right, strict=True))
        if both:
            say(f"{both:,} of the {len(dev):,} dev pairs trained on too: the dev score is not that of new pairs")
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
        say(f"no pairs held out: a share of {dev:g}, near-duplicates kept together, leaves none to train on or fewer "
            "than two to measure by; give another share, or dev pairs of your own")
        return everything
    return chosen, pairs.take(chosen["dev"])


def _unit(weighted: scipy.sparse.csr_matrix, spread=None) -> Terms:
    """Texts as they are learned of."""
    return sparse.from_scipy(text.unit_rows(weighted if spread is None else weighted @ spread))


def _folded(params, spread) -> Projection | tuple[Projection, ...]:
    """What was learned of words and n-grams, as rows of known words and of the n-grams of others."""
    found = tuple(Projection(jnp.asarray(spread @ np.asarray(side.weights))) for side in parts.sides(params))
    return found[0] if isinstance(params, Projection) else found


def _share(settings: Settings) -> float:
    """That of n-grams, checked; above 0 with a method that learns of them."""
    share = settings.subwords
    checks.expect(isinstance(share, numbers.Real) and 0 <= share < 1, "subwords", "a share in [0, 1)", share)
    checks.expect(share == 0 or settings.method in SPELT, "subwords",
                  f"0, for {settings.method} (n-grams are for {', '.join(SPELT)})", share)
    checks.expect(share == 0 or settings.drop_top == 0, "drop_top", "0, if subwords are above 0 (words left out would "
                  "be made of n-grams)", settings.drop_top)  # fmt: skip
    return float(share)


def _validator(sides: tuple[Terms, Terms], activation: str) -> Callable:
    return mates.validator(sides, activation=s2net.activation_of(activation))


def _dev_scores(model: Model, untrained: Model, dev: Pairs) -> dict[str, Any]:
    """Accuracy and mean reciprocal rank of the dev mates, beside those of the bare term weights."""
    if len(dev) < 2:
        return {}
    found = {}
    for name, one in (("", model), ("untrained_", untrained)):
        sides = one.vectors(dev.left, side="query"), one.vectors(dev.right, side="document")
        scores = mates.scores(*sides, similarity=one.scorer)
        found |= {f"{name}{key}": round(value, 4) for key, value in scores.items()}
    return found


def _dev_correlations(model: Model, untrained: Model, dev: Pairs, grades) -> dict[str, float]:
    """Spearman's correlation of cosines with the dev grades, beside that of the bare term weights."""
    return {} if len(dev) < 2 else {
        f"{name}spearman": round(float(metrics.spearman(one.pair_similarity(dev.left, dev.right), grades)), 4)
        for name, one in (("", model), ("untrained_", untrained))
    }  # fmt: skip
