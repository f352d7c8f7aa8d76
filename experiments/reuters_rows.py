"""Rows of `yih2010_reuters` that extend term vectors or learn a metric, and what stands beyond the paper's tables."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import scipy.sparse

from experiments.reuters_learn import fitted_alone, learned
from experiments.reuters_task import Sample, Task
from jaxsim import sparse, text
from jaxsim.data import labelled_pairs
from jaxsim.data.labelled_pairs import LabelledPairs
from jaxsim.evaluate import all_pairs
from jaxsim.methods import cca, itml, lsa, opca, projections, s2net, tweak, vl_cv, vl_ext
from jaxsim.methods.projections import Projection
from jaxsim.methods.weights import concepts, metric, related_terms, term_extension, term_weights
from jaxsim.optim import Fit
from jaxsim.sparse import Vectors
from jaxsim.text import features

K = 5
SHOWN, DOCUMENTS = 40, 10
GAMMA = 30.0  # TWEAK's, by development documents: the row tweak-pref


def weigh(task: Task, sample: Sample, gamma: float = GAMMA) -> Fit:
    """TWEAK on the sample, the start of VL-Ext."""
    train = task.featured["train"]
    dev, labels = task.rows(train, sample.dev), task.labels["train"][sample.dev]
    return tweak.fit(train, train, labelled_pairs.preferences_of(sample.pairs), gamma=gamma,
                     max_iter=task.settings.max_iter,
                     init=tweak.least_squares(train, task.weights("train")), patience=task.settings.patience,
                     validate=lambda params: all_pairs.auc(term_weights.encode(params, dev), labels))


def extend(task: Task, row: str, *, num: int | None = None, gammas=None, combine=np.add, similar_alone: bool = False,
           one_seed: bool = False) -> None:
    """VL-Ext from TWEAK; terms are paired in all training pairs of documents, or in the similar ones alone.

    With ``gammas`` given, the regulariser is not chosen but the first of the preset.
    """
    settings, train = task.settings, task.featured["train"]
    num = settings.pairs if num is None else num
    options = [{"gamma": gamma, "beta": beta} for gamma in gammas or settings.extension_gammas
               for beta in (settings.extension_betas if gammas is None else settings.extension_betas[:1])]
    held: list = []  # the sample last seen, and its start

    def fit(sample: Sample, option: dict, validate: Callable) -> Fit:
        if not held or held[0] is not sample:
            start = weigh(task, sample).params
            kept = np.asarray(sample.pairs.labels) == 1 if similar_alone else slice(None)
            weighted = term_weights.encode(start, train).sparse
            paired = np.asarray(sample.pairs.left)[kept], np.asarray(sample.pairs.right)[kept]
            found = related_terms.choose(weighted, weighted, paired, num=settings.relations, combine=combine)
            held[:] = sample, term_extension.make(start.weights, *found)
        return vl_ext.fit(train, train, labelled_pairs.preferences_of(sample.pairs), init=held[1],
                          max_iter=settings.max_iter,
                          patience=min(settings.patience, 8), validate=validate, **option)

    learned(task, "table2", row, options, num, task.featured, term_extension.encode, fit,
            seeds=settings.seeds[:1] if one_seed else None, told=lambda fits: told(task, fits),
            relations=2 * settings.relations, combine=combine.__name__,
            paired_in="similar pairs" if similar_alone else "all training pairs")


def told(task: Task, fits: dict[int, Fit]) -> dict:
    """The strongest extensions, averaged over the seeds that have them all, and the weights of ten documents' terms."""
    names, sums = task.vocabulary.terms, {}
    for fit in fits.values():
        for source, target, weight in zip(*term_extension.relations(fit.params), strict=True):
            sums.setdefault((source, target), []).append(float(weight))
    means = {pair: float(np.mean(found)) for pair, found in sums.items() if len(found) == len(fits)}
    best = sorted(means, key=lambda pair: -abs(means[pair]))[:SHOWN]
    return {"extensions": [[names[i], names[k], round(means[i, k], 3)] for i, k in best],
            "documents": documents(task, next(iter(fits.values())).params)}


def documents(task: Task, params: term_extension.TermExtension) -> list[dict]:
    """The eight heaviest terms of ten test documents: own weight and extended, as shares of the document's length."""
    count = len(task.stories["test"])
    rows = np.linspace(0, count - 1, min(DOCUMENTS, count)).astype(int)
    one = task.rows(task.featured["test"], rows)
    found = term_extension.encode(params, one)
    extended = sparse.to_scipy(found.sparse).toarray()
    extended[:, np.asarray(params.touched)] += np.asarray(found.dense)
    own = sparse.to_scipy(term_weights.encode(term_weights.TermWeights(params.features), one).sparse).toarray()
    shares = [side / np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-12) for side in (own, extended)]
    return [{"number": int(task.stories["test"][row].number), "topics": list(task.stories["test"][row].topics),
             "terms": [[task.vocabulary.terms[i], round(float(shares[0][place, i]), 4),
                        round(float(shares[1][place, i]), 4)]
                       for i in np.argsort(-np.abs(shares[1][place]), kind="stable")[:8]]}
            for place, row in enumerate(rows)]


def alternating(given: LabelledPairs) -> LabelledPairs:
    """Similar and other pairs in turn, for cyclic projections."""
    labels = np.asarray(given.labels)
    order = np.stack([np.flatnonzero(labels == 1), np.flatnonzero(labels == 0)], axis=1).ravel()
    return LabelledPairs(*(np.asarray(part)[order] for part in given))


def metrics_of(task: Task, row: str, *, identity: bool) -> None:
    """HDLR from LSA, or HDILR beside the identity; distances between documents of length one where they are learned."""
    rows = {part: sparse.from_scipy(one) for part, one in task.tfidf.items()}
    inputs = {part: features.single(one) for part, one in rows.items()}
    options = [{"slack": slack, "k": k, "percentiles": ranks} for k in (task.settings.metric_ks if identity else (K,))
               for ranks in task.settings.percentiles for slack in task.settings.slacks]

    def fit(sample: Sample, option: dict, validate: Callable) -> Fit:
        power = 0.0 if identity else -1.0
        start = lsa.fit(fitted_alone(rows["train"], sample), k=option["k"], singular_power=power).params
        given = rows["train"]
        length = _lengths(given) if identity else np.linalg.norm(projections.encode(start, given).dense, axis=1)
        scale = 1 / np.where(length > 0, length, 1)
        csr = sparse.to_scipy(given)
        unit = sparse.with_values(given, given.values * np.repeat(scale, np.diff(csr.indptr)).astype(csr.dtype))
        return itml.fit(unit, unit, alternating(sample.pairs), init=start, identity=identity, slack=option["slack"],
                        percentiles=option["percentiles"], max_iter=task.settings.cycles, patience=5, validate=validate)

    encode = metric.encode if identity else projections.encode
    learned(task, "table2" if identity else "table3", row, options, task.settings.pairs, inputs,
            lambda params, given: encode(params, given.terms), fit, unit_length=True, cycles=task.settings.cycles)


def _lengths(documents: sparse.Terms) -> np.ndarray:
    csr = sparse.to_scipy(documents)
    return np.sqrt(np.asarray(csr.multiply(csr).sum(axis=1), np.float64)).ravel()


def bm25(task: Task) -> None:
    """Cosines of BM25's document weights, k1 = 1.2, b = .75: similarity here is symmetric."""
    average = float(task.counts["train"].sum() / task.counts["train"].shape[0])
    found = text.bm25(task.counts["test"], task.vocabulary.df, task.vocabulary.num_docs, average_length=average)
    task.record("table2", "bm25", [Vectors(sparse=sparse.from_scipy(found))], config={"k1": 1.2, "b": 0.75}, dev={})


def title_twice(task: Task) -> None:
    """TFIDF with the words of the title counted twice, over every term: nearest the paper's figures."""
    words = {part: [[*text.words(one.title), *text.words(one.text)] for one in of] for part, of in task.stories.items()}
    vocabulary = text.Vocabulary.build(words["train"], drop_top=0, max_terms=10**9)
    found = text.tf_idf(text.counts(words["test"], vocabulary), vocabulary.df, vocabulary.num_docs)
    task.record("table2", "tfidf-title-twice", [Vectors(sparse=sparse.from_scipy(found))], config={"min_df": 1}, dev={})


def swept(task: Task, table: str, row: str, points: list[dict], fit: Callable, encode: Callable, documents: dict,
          **config) -> None:
    """A curve for the first seed; the record's own figures are those of the point that development documents prefer."""
    seed, curve, best = task.settings.seeds[0], [], None
    begun = time.perf_counter()
    for point in points:
        sample = task.sample(seed, point.get("pairs", task.settings.pairs))
        take = sparse.take if isinstance(documents["train"], sparse.Terms) else task.rows
        dev, labels = take(documents["train"], sample.dev), task.labels["train"][sample.dev]

        def score(params, dev=dev, labels=labels):
            return all_pairs.auc(encode(params, dev), labels)

        found = fit(sample, point, score)
        steps = [entry["validation"] for entry in found.history if "validation" in entry]
        at, encoded = max(steps) if steps else score(found.params), encode(found.params, documents["test"])
        means = all_pairs.score(encoded, task.labels["test"]).means()
        curve += [{**point, "auc": at, "split": "dev"}, {**point, **means, "split": "test"}]
        if best is None or at > best[0]:
            best = at, encoded, found, point
    task.record(table, row, [best[1]], config={**config, **best[3]}, dev={"auc": best[0]}, curve=curve, fit=best[2],
                seconds=time.perf_counter() - begun, seeds=(seed,))


def project(task: Task, sample: Sample, k: int, validate: Callable) -> Fit:
    """VL-CV of tf·idf from LSA."""
    rows = sparse.from_scipy(task.tfidf["train"])
    start: Projection = lsa.fit(fitted_alone(rows, sample), k=k, singular_power=-1.0).params
    return vl_cv.fit(features.single(rows), features.single(rows), labelled_pairs.preferences_of(sample.pairs),
                     init=start,
                     gamma=task.settings.concept_gammas[-1 if len(task.settings.concept_gammas) == 1 else 1],
                     max_iter=task.settings.max_iter, patience=task.settings.patience, validate=validate)


def mates(task: Task, sample: Sample) -> tuple[sparse.Terms, sparse.Terms, np.ndarray]:
    """Both documents of the first similar pairs of log tf·idf, and the commonest topic that each pair has in common."""
    similar = np.flatnonzero(np.asarray(sample.pairs.labels) == 1)[: task.settings.mates]
    rows = [np.asarray(part)[similar] for part in (sample.pairs.left, sample.pairs.right)]
    labels = task.labels["train"].tocsc()
    shared = labels[rows[0]].multiply(labels[rows[1]]).toarray() * np.diff(labels.indptr)
    return *(sparse.take(task.log_tfidf["train"], of) for of in rows), shared.argmax(axis=1)


def mated_curve(task: Task, row: str, method: Callable) -> None:
    """A method that learns from mates, by dimension; ``method(left, right, topics, k, validate)`` fits it."""
    def fit(sample: Sample, point: dict, score: Callable) -> Fit:
        return method(*mates(task, sample), point["k"], score)

    swept(task, "table3", row, [{"k": k} for k in task.settings.curve_ks], fit, projections.encode, task.log_tfidf,
          mates=task.settings.mates)


def correlate(left: sparse.Terms, right: sparse.Terms, topics: np.ndarray, k: int, score: Callable) -> Fit:
    """CCA of every pair both ways round, so that both sides have one projection."""
    both = [sparse.from_scipy(scipy.sparse.vstack([sparse.to_scipy(one) for one in sides]))
            for sides in ((left, right), (right, left))]
    found = cca.fit(*both, k=k)
    return found._replace(params=found.params[0])


def separate(task: Task) -> Callable:
    """S2Net from OPCA; pairs of one topic are no negatives of each other.

    OPCA with its usual noise already tells the training pairs apart and leaves little to learn from; a blander start
    is tried too, and development documents choose.
    """
    def fit(left: sparse.Terms, right: sparse.Terms, topics: np.ndarray, k: int, score: Callable) -> Fit:
        fits = [s2net.fit(left, right, init=opca.fit((left, right), k=k, noise=noise).params, groups=topics,
                          max_iter=task.settings.max_iter, patience=task.settings.patience, validate=score)
                for noise in task.settings.noises]
        return max(fits, key=lambda found: max(entry["validation"] for entry in found.history))

    return fit


def tweak_curve(task: Task) -> None:
    """TWEAK by the number of training pairs of pairs."""
    swept(task, "table2", "tweak-curve", [{"pairs": num} for num in task.settings.curve_pairs],
          lambda sample, point, score: weigh(task, sample), term_weights.encode, task.featured, gamma=GAMMA)


def concept_curve(task: Task, row: str, points: list[dict]) -> None:
    """VL-CV by the number of training pairs of pairs, or by dimension."""
    inputs = {part: features.single(sparse.from_scipy(one)) for part, one in task.tfidf.items()}
    swept(task, "table3", row, points, lambda sample, point, score: project(task, sample, point.get("k", K), score),
          concepts.encode, inputs, **({} if "k" in points[0] else {"k": K}))


TABLE_2: dict[str, Callable[[Task], None]] = {
    "bm25": bm25,
    "tfidf-title-twice": title_twice,
    "hdilr": lambda task: metrics_of(task, "hdilr", identity=True),
    "vl-ext": lambda task: extend(task, "vl-ext"),
    "vl-ext-more": lambda task: extend(task, "vl-ext-more", num=task.settings.more_pairs // 4, gammas=(GAMMA,)),
    "vl-ext-gamma1": lambda task: extend(task, "vl-ext-gamma1", gammas=(1.0,), one_seed=True),
    "vl-ext-similar": lambda task: extend(task, "vl-ext-similar", gammas=(GAMMA,), similar_alone=True, one_seed=True),
    "vl-ext-maximum": lambda task: extend(task, "vl-ext-maximum", gammas=(GAMMA,), combine=np.maximum, one_seed=True),
    "tweak-curve": tweak_curve,
}
TABLE_3: dict[str, Callable[[Task], None]] = {
    "hdlr": lambda task: metrics_of(task, "hdlr", identity=False),
    "vl-cv-k": lambda task: concept_curve(task, "vl-cv-k", [{"k": k} for k in task.settings.curve_ks]),
    "opca-k": lambda task: mated_curve(task, "opca-k", lambda left, right, _, k, score: opca.fit((left, right), k=k)),
    "cca-k": lambda task: mated_curve(task, "cca-k", correlate),
    "s2net-k": lambda task: mated_curve(task, "s2net-k", separate(task)),
    "vl-cv-curve": lambda task: concept_curve(task, "vl-cv-curve", [{"pairs": n} for n in task.settings.curve_pairs]),
}
