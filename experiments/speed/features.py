"""The rows of the speed tables about the Reuters task: TWEAK, VL-Ext, ITML, the exact figures of all pairs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
import scipy.stats

from experiments.corpora.synthetic import documents, synthetic
from experiments.kit.measure import Sheet, Times, once, race
from jaxsim import sparse
from jaxsim.data import labelled_pairs
from jaxsim.evaluate import all_pairs
from jaxsim.methods import itml, tweak, vl_ext
from jaxsim.methods.weights import quadratic_forms, term_extension
from jaxsim.methods.weights.term_weights import TermWeights
from jaxsim.sparse import Vectors
from jaxsim.text import features

GAMMA = 30.0
BLOCK = 2_000


def _collection(sizes):
    """Counts with features, and preferences between random pairs."""
    (csr,) = documents(sizes.featured, sizes.num_terms, sizes.per_doc, seed=0)
    csr.data = np.ceil(csr.data * 10)
    df = np.bincount(csr.indices, minlength=csr.shape[1])
    plain = features.from_counts(sparse.from_scipy(csr), df, names=("bias", "tf", "log_tf", "df", "log_df"))
    found = features.scaled(plain, features.scale_of(plain))
    rows = np.random.default_rng(1).integers(0, sizes.featured, (4, sizes.preferences))
    return csr, df, found, labelled_pairs.Preferences(*(jnp.asarray(part, jnp.int32) for part in rows))


def _preference_loss(csr: scipy.sparse.csr_matrix, chosen: labelled_pairs.Preferences) -> float:
    """The loss in SciPy, a block of pairs at a time."""
    length = np.sqrt(np.asarray(csr.multiply(csr).sum(axis=1), np.float64)).ravel()

    def cosines(left, right):
        found = []
        for start in range(0, len(left), BLOCK):
            one, other = left[start : start + BLOCK], right[start : start + BLOCK]
            product = np.asarray(csr[one].multiply(csr[other]).sum(axis=1)).ravel()
            found.append(product / np.maximum(length[one] * length[other], 1e-30))
        return np.concatenate(found)

    better, worse, low, high = (np.asarray(part) for part in chosen)
    return float(np.mean(np.logaddexp(0, -GAMMA * (cosines(better, worse) - cosines(low, high)))))


def _dataset(sizes) -> dict:
    return synthetic("documents by Zipf's law", docs=sizes.featured, terms=sizes.num_terms,
                     terms_a_document=sizes.per_doc, pairs_of_pairs=sizes.preferences)


_tweak_value = jax.jit(tweak.preference_objective)
_tweak_both = jax.jit(jax.value_and_grad(tweak.preference_objective))
_ext_value = jax.jit(vl_ext.objective)
_ext_both = jax.jit(jax.value_and_grad(vl_ext.objective))


def _timed(sheet: Sheet, sizes, planned: float, limit: float, *, value, both, peer) -> Sheet:
    """Times value, value and gradient, and SciPy's value, in turns."""
    times = race({"value": value, "both": both, "SciPy": peer}, repeats=sizes.repeats)
    sheet.time("jaxsim, value and gradient", times["both"], note=f"planned once, in {planned:.3g} s")
    sheet.time("jaxsim, value", times["value"])
    sheet.time("SciPy CSR, value", times["SciPy"], times["value"], "jaxsim, value")
    sheet.expect("seconds, value and gradient", times["both"].median, limit)
    return sheet


def tweak_evaluation(sizes, cores: int, full: bool) -> Sheet:
    """One evaluation of TWEAK's loss over pairs of pairs."""
    sheet = Sheet("tweak", cores, full, _dataset(sizes), {"features": 5, "gamma": GAMMA})
    csr, _, found, chosen = _collection(sizes)
    params = TermWeights(jnp.array([1.0, 0.5, 0.3, -0.2, -0.1]))
    rows = (np.concatenate([a, b]) for a, b in ((chosen.better_left, chosen.worse_left),
                                                (chosen.better_right, chosen.worse_right)))
    zero = jnp.zeros(())
    forms, seconds = once(lambda: quadratic_forms.plan(found, found, *rows))
    data = tweak.Data(forms, None, jnp.asarray(GAMMA), zero, params)
    wide = np.asarray(found.columns, np.float64)[: csr.nnz] @ np.asarray(params.weights, np.float64)
    weighted = scipy.sparse.csr_matrix((wide, csr.indices, csr.indptr), csr.shape)
    sheet.parity("loss", _tweak_value(params, data), _preference_loss(weighted, chosen), within=1e-4)
    return _timed(sheet, sizes, seconds, 0.05, value=lambda: _tweak_value(params, data),
                  both=lambda: _tweak_both(params, data), peer=lambda: _preference_loss(weighted, chosen))


def vl_ext_evaluation(sizes, cores: int, full: bool) -> Sheet:
    """One evaluation of VL-Ext's loss over pairs of pairs."""
    sheet = Sheet("vl-ext", cores, full, _dataset(sizes), {"features": 5, "relations": sizes.relations, "gamma": GAMMA,
                                                           "related_terms": sizes.related})
    csr, df, found, chosen = _collection(sizes)
    rng = np.random.default_rng(2)
    frequent = np.argsort(-df, kind="stable")[: sizes.related]
    codes = rng.choice(sizes.related * (sizes.related - 1), sizes.relations, replace=False)
    source, other = codes // (sizes.related - 1), codes % (sizes.related - 1)
    target = other + (other >= source)
    values = 0.1 * rng.normal(size=sizes.relations)
    start = term_extension.make(jnp.array([1.0, 0.5, 0.3, -0.2, -0.1]), frequent[source], frequent[target], values)
    data, seconds = once(lambda: vl_ext.plan(found, found, chosen, start, gamma=GAMMA))
    given = vl_ext.Learned(start.features, start.related.values)
    wide = np.asarray(found.columns, np.float64)[: csr.nnz] @ np.asarray(start.features, np.float64)
    weighted = scipy.sparse.csr_matrix((wide, csr.indices, csr.indptr), csr.shape)
    extension = scipy.sparse.csr_matrix((values, (frequent[source], frequent[target])), (csr.shape[1],) * 2)

    def peer():
        return _preference_loss((weighted + weighted @ extension).tocsr(), chosen)

    sheet.parity("loss", _ext_value(given, data), peer(), within=1e-4)
    return _timed(sheet, sizes, seconds, 0.3, value=lambda: _ext_value(given, data),
                  both=lambda: _ext_both(given, data), peer=peer)


def _itml_in_numpy(z, residuals, similar, bounds, slack: float):
    """A cycle of ITML beside the identity by its own update of the whole matrix, a pair at a time, in float64."""
    matrix, bounds = np.eye(z.shape[1]), np.array(bounds)
    for i, (difference, residual, sign) in enumerate(zip(z, residuals, similar, strict=True)):
        image = matrix @ difference
        p, bound = difference @ image, bounds[i]
        squared, linear = residual * p * bound, (p + residual) * bound + slack * p * bound - slack * residual * p
        root = np.sqrt(linear**2 + 4 * squared * slack * (p + residual - bound))
        alpha = min(0.0, -sign * (root - linear) / (2 * squared))  # the first cycle: no multiplier can fall
        step = sign * alpha
        matrix += step / (1 - step * p) * np.outer(image, image)
        bounds[i] = slack * bound / (slack + step * bound)
    return matrix, bounds


def itml_cycle(sizes, cores: int, full: bool) -> Sheet:
    """A cycle of ITML (HDILR), one pair after another and in blocks of pairs, for metrics of several ranks."""
    ranks = (100, 400, 800, 1_600) if full else (6, 12)
    sheet = Sheet("itml", cores, full, synthetic("normal differences", pairs="as many as 600 million products of a "
                                                 "vector with the metric have" if full else 40), {"k": list(ranks)})
    slack = 1.0
    for k in ranks:
        num = min(20_000, int(6e8 / k**2) // 32 * 32) if full else 40
        rng = np.random.default_rng(k)
        z, residuals = rng.normal(size=(num, k)) / np.sqrt(k), 0.1 + rng.random(num)
        similar = np.where(np.arange(num) % 2, -1.0, 1.0)
        bounds = np.where(similar == 1, 0.5, 2.5)
        state = itml.State(jnp.eye(k, dtype=jnp.float32), *(jnp.asarray(x, jnp.float32) for x in (bounds, 0 * bounds)))
        given = [jnp.asarray(x, jnp.float32) for x in (z, residuals, similar, slack)]
        single, blocks = f"one pair at a time, k = {k}", f"blocks of pairs, k = {k}"
        contestants = {single: lambda state=state, given=given: itml.cycle(state, *given),
                       blocks: lambda state=state, given=given: itml.cycle_in_blocks(state, *given)}
        few = z[: max(num // 8, 32)], residuals, similar, bounds, slack
        matrix, moved = _itml_in_numpy(z, *few[1:])
        for name, run in contestants.items():
            found = run()
            sheet.parity(f"metric, {name}", found.factor @ found.factor.T, matrix, within=1e-4)
            sheet.parity(f"bounds, {name}", found.bounds, moved, within=1e-4)
        peer = f"NumPy, float64, k = {k}"
        counts = dict.fromkeys(contestants, num) | {peer: len(few[0])}
        few = [x[: len(few[0])] if np.ndim(x) else x for x in few]
        times = race(contestants | {peer: lambda few=few: _itml_in_numpy(*few)}, repeats=sizes.repeats, settle=True)
        pairs = {name: Times(tuple(second / counts[name] for second in measured.seconds))
                 for name, measured in times.items()}
        for name, measured in pairs.items():
            sheet.time(f"a pair, {name}", measured, None if name == single else pairs[single], "one pair at a time")
    return sheet


def exact_figures(sizes, cores: int, full: bool) -> Sheet:
    """AUC, Max-F1, precision and average precision of all pairs of a collection."""
    count = sizes.collection
    (csr,) = documents(count, sizes.num_terms, sizes.per_doc, seed=0)
    sheet = Sheet("all-pairs-figures", cores, full,
                  synthetic("documents by Zipf's law", docs=count, pairs=count * (count - 1) // 2), {})
    topic = np.random.default_rng(3).integers(0, 5, count)
    labels = all_pairs.incidence([[str(one)] for one in topic])
    found = Vectors(sparse=sparse.from_scipy(csr))

    def peer():
        above = np.triu_indices(count, 1)
        scores, similar = (csr @ csr.T).toarray()[above], (topic[:, None] == topic[None, :])[above]
        ranks, positive = scipy.stats.rankdata(scores), int(similar.sum())
        return (ranks[similar].sum() - positive * (positive + 1) / 2) / (positive * (len(scores) - positive))

    figures, first = once(lambda: all_pairs.score(found, labels).means())
    sheet.parity("AUC", figures["auc"], peer(), within=1e-4)
    times = race({"jaxsim": lambda: all_pairs.score(found, labels), "SciPy": peer}, repeats=min(sizes.repeats, 3))
    sheet.time("jaxsim, all five figures", times["jaxsim"], note=f"first call {first:.3g} s")
    sheet.time("SciPy, AUC alone", times["SciPy"], times["jaxsim"], "jaxsim, all five figures")
    sheet.expect("seconds, all five figures", times["jaxsim"].median, 20.0)
    return sheet
