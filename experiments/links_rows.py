"""More rows of `bai2010_links`: W without constraint and sparse, query expansion, all words, hashing, dimensions."""

from __future__ import annotations

import copy
import dataclasses
import time
from itertools import pairwise

import jax
import numpy as np
import scipy.sparse

from experiments.kit import records
from experiments.links_fits import chosen, trained
from experiments.links_settings import EXPERIMENT, MAX_TERMS
from experiments.links_tables import Collection, Scored, Table, say, unit
from jaxsim import sparse, text
from jaxsim.methods import ssi, ssi_full, ssi_hash, ssi_sparse
from jaxsim.methods.ssi import bilinear, correlated

_BLOCK = 256
SPARSE = (100, 10)  # p of Algorithm 2, which prunes one to the next
L1 = 1e-7
SHARES_OF_TWO = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 1.0)


def seen(part: Collection, rows=None) -> sparse.Terms:
    """What the learned part sees of documents, or of some."""
    return part.cut() if rows is None else sparse.take(part.cut(), rows)


def learned(table: Table, name: str, params) -> np.ndarray:
    """Scores of the learned part of a full, sparse or hashed W, ``[queries, documents]``."""
    part, rows = table.parts[name], table.queries(name)
    queries, documents = seen(part, rows), seen(part)
    if isinstance(params, ssi_hash.Hashed):
        return ssi_hash.scores(params, queries, documents)
    if isinstance(params, ssi_full.Full):
        query, document = ssi_full.encode(params, queries, documents)
        return np.asarray(query.dense) @ np.asarray(document.dense).T
    across, left = sparse.to_scipy(documents), sparse.to_scipy(queries) @ ssi_sparse.matrix(params)
    return np.concatenate([(across @ left[start : start + _BLOCK].T.toarray()).T
                           for start in range(0, rows.size, _BLOCK)])


def whole(table: Table, params) -> Scored:
    """The learned part, plus b times the cosine of whole documents where the model has an identity."""
    b = float(getattr(params, "identity", 0.0))
    return Scored(lambda name: learned(table, name, params) + (np.float32(b) * table.exact(name) if b else 0))


def judged(table: Table):
    """The validation of a fit: dev MAP."""
    return lambda params: table.dev(whole(table, params))["map"]


def fit_expansion(table: Table) -> None:
    """TFIDF again with β times the E best documents added to the query; both by training ranking loss."""
    def make(name, number, beta):
        # All documents of a part are its candidates, so that the best of a query are rows of one matrix.
        part, rows = table.parts[name], table.queries(name)
        across = table.exact("train") if part is table.parts["train"] else _among(table, name)
        found = across[rows].copy()
        found[np.arange(rows.size), rows] = -np.inf
        best = np.argpartition(-found, number - 1, axis=1)[:, :number]
        return across[rows] + np.float32(beta) * sum(across[best[:, i]] for i in range(number))

    tried = [{"E": number, "beta": beta, "train_rank_loss": table.train_loss(make("train", number, beta))}
             for number in (1, 3, 10) for beta in (0.03, 0.1, 0.3)]
    best = min(tried, key=lambda one: one["train_rank_loss"])
    model = Scored(lambda name: make(name, best["E"], best["beta"]))
    table.record("qe", [model], config={"E": best["E"], "beta": best["beta"]},
                 dev={"grid": tried, **table.dev(model)})


def _among(table: Table, name: str) -> np.ndarray:
    """Cosines of all documents of a part."""
    def make():
        matrix = sparse.to_scipy(table.parts[name].tfidf())
        return (matrix @ matrix.T).toarray()

    return table.once(f"among {name}", make)


def full(table: Table):
    """W without constraint from W = I, its rate by training loss; read back where it has been done."""
    def fit(value):
        return one_fit(table, "ssi-full", ssi_full.fit, identity=1.0, learning_rate=value)

    def make():
        rates = table.settings.full_rates
        rate = min(rates, key=lambda value: fit(value).history[-1]["loss"]) if len(rates) > 1 else rates[0]
        return fit(rate), rate

    return table.once("full", make)


def sparsified(table: Table, p: int):
    """Algorithm 2: the strongest entries of the full W, trained on; of these the strongest, trained on."""
    more = [q for q in SPARSE if q > p]
    fitted, rate = full(table)
    if more:
        init = ssi_sparse.prune(table.once(f"sparse {more[-1]}", lambda: sparsified(table, more[-1])).params, p)
    else:
        init = table.once("strongest", lambda: ssi_sparse.strongest(fitted.params, p))
    return one_fit(table, f"ssi-sparse-{p}", ssi_sparse.fit, init=init, learning_rate=rate)


def fit_full(table: Table) -> None:
    """W without constraint, as in the paper from W = I; one seed."""
    found, rate = full(table)
    entered(table, "ssi-full", found, {"identity": 1.0, "learning_rate": rate})


def fit_sparse(p: int):
    """At most ``p`` learned entries a row."""
    def fill(table: Table) -> None:
        found = table.once(f"sparse {p}", lambda: sparsified(table, p))
        entered(table, f"ssi-sparse-{p}", found, {"identity": 1.0, "learning_rate": full(table)[1], "p": p})

    return fill


def fit_l1(table: Table) -> None:
    """The same entries as the first sparse row, with γ‖W‖₁ on them in place of pruning."""
    fitted, rate = full(table)
    init = table.once("strongest", lambda: ssi_sparse.strongest(fitted.params, SPARSE[0]))
    found = one_fit(table, "ssi-l1", ssi_sparse.fit, init=init, learning_rate=rate, l1=L1)
    kept = ssi_sparse.matrix(found.params).nnz / found.params.values.shape[0]
    entered(table, "ssi-l1", found, {"identity": 1.0, "learning_rate": rate, "l1": L1, "p": SPARSE[0],
                                     "entries_a_row": round(kept, 2)})


def one_fit(table: Table, row: str, fit, **options):
    """A fit of seed 0, validated by its scores; read back where it has been done."""
    return trained(table, row, fit, 0, max_iter=table.settings.diag_iter, validate=judged(table), **options)


def entered(table: Table, row: str, found, config: dict, models=None) -> None:
    """The record of a fit of one seed."""
    score = max(entry["validation"] for entry in found.history)
    say(f"{table.name}: {row}: dev MAP {score:.4f} after {found.evaluations} triples")
    table.record(row, [whole(table, found.params)] if models is None else models, dev={"map": score}, fit=found,
                 config={**config, "triples": int(found.evaluations), "max_terms": MAX_TERMS}, seeds=[0])


def tuned(table: Table, row: str) -> dict:
    """What the row of Table 1 has chosen on dev, b and the rate, or what is usual where it has not been run."""
    path = table.out / EXPERIMENT / "table1" / f"{row}.json"
    config = records.read(path)["config"] if path.exists() else {"identity": 10.0, "learning_rate": 0.03}
    return {name: float(config[name]) for name in ("identity", "learning_rate")}


def dimension(number: int, symmetric: bool):
    """A row of Table 4, at the b of Table 1; one seed."""
    row = f"ssi-{'sym' if symmetric else 'asym'}-{number}"

    def fill(table: Table) -> None:
        narrow = copy.copy(table)  # with its splits and what it has computed
        narrow.settings = dataclasses.replace(table.settings, seeds=(0,))
        options = tuned(table, row.rsplit("-", 1)[0])
        chosen(narrow, row, ssi.fit, [options], ["identity"], k=number, symmetric=symmetric)

    return row, fill


def top(row: str, name: str | None):
    """(UᵀV)_n + I: the low-rank part sees the n most frequent words alone; one seed."""
    def fill(table: Table) -> None:
        number = None if name is None else table.settings.tops[name]
        entered(table, row, *table.once(f"top {name}", lambda: top_fit(table, row, number)))

    return fill


def top_fit(table: Table, row: str, number: int | None):
    """Fit, configuration and models of a row that `top` fills."""
    options = tuned(table, "ssi-asym")
    transform = (lambda part: part.tfidf()) if number is None else (lambda part: first_words(part, number))
    found, model = transformed(table, row, transform, options)
    return found, {**options, "k": table.settings.k, "num_terms": number or table.parts["train"].df.size}, [model]


def first_words(part: Collection, number: int) -> sparse.Terms:
    """Documents of their most frequent words, with the weights that they have among all."""
    return part._once(f"first {number}", lambda: sparse.from_scipy(sparse.to_scipy(part.tfidf())[:, :number].tocsr()))


def transformed(table: Table, row: str, transform, options: dict):
    """UᵀV of documents of another vocabulary, plus b times the cosine of all words; fit and model."""
    def model_of(params):
        def make(name):
            part, rows = table.parts[name], table.queries(name)
            low = part._once(f"low {row}", lambda: bilinear.strongest(transform(part), MAX_TERMS))
            query, document = (np.asarray(sparse.project(low, side.weights)) for side in params)
            return query[rows] @ document.T + np.float32(options["identity"]) * table.exact(name)

        return Scored(make)

    found = trained(table, row, ssi.fit, 0, max_iter=table.settings.max_iter, k=table.settings.k,
                    low_rank=transform(table.parts["train"]),
                    validate=lambda params: table.dev(model_of(params))["map"], **options)
    return found, model_of(found.params)


def mixed(table: Table, first: Scored, second: Scored) -> tuple[Scored, list[dict], float]:
    """(1 − α) one + α the other, α by dev MAP; both are scaled to spread alike on dev."""
    scales = [float(np.std(model.make("dev"))) or 1.0 for model in (first, second)]

    def mixture(share):
        weights = (1 - share) / scales[0], share / scales[1]
        return Scored(lambda name: weights[0] * first.make(name) + weights[1] * second.make(name))

    tried = [{"alpha": share, **table.dev(mixture(share))} for share in SHARES_OF_TWO]
    best = max(tried, key=lambda one: one["map"])["alpha"]
    return mixture(best), tried, best


def hashed(name: str):
    """Hash kernels of a size, alone and with αI; one seed and few triples, because a step has 80,000 pairs of words."""
    def fill(table: Table) -> None:
        size, settings = table.settings.hashes[name], table.settings
        begun, row = time.perf_counter(), f"hash-{name}"
        part = table.parts["train"]

        def fit(value):
            told = {"size": size, "triples": settings.hash_triples, "learning_rate": value, "seed": 0}
            return ssi_hash.fit(part.tfidf(), part.tfidf(), table.links, size=size, key=jax.random.key(0),
                                known=part.own(), triples=settings.hash_triples, max_iter=settings.hash_iter,
                                learning_rate=value, max_terms=MAX_TERMS, checkpoint=table.checkpoint(row, told))

        # The rate of the smallest serves all: every other one would cost a fit more.
        known = table.path("hash-1m")
        rate = (records.read(known)["config"]["learning_rate"] if name != "1m" and known.exists() else
                min(settings.full_rates, key=lambda value: fit(value).history[-1]["loss"]))
        found = fit(rate)
        config = {"H": size, "learning_rate": rate, "triples": int(found.evaluations), "max_terms": MAX_TERMS}
        kept: dict[str, np.ndarray] = {}

        def make(which):
            if which not in kept:
                kept[which] = learned(table, which, found.params)
            return kept[which]

        model = Scored(make)
        seconds = time.perf_counter() - begun
        mixture, tried, share = mixed(table, model, Scored(table.exact))
        table.record(f"{row}+i", [mixture], config={**config, "alpha": share}, dev={"grid": tried}, fit=found,
                     seconds=seconds, seeds=[0])
        table.record(row, [model], config=config, dev=table.dev(model), fit=found, seconds=seconds, seeds=[0])

    return fill


def grams(tokens: list[list[str]]) -> list[list[str]]:
    """2-grams of lists of words."""
    return [[f"{a} {b}" for a, b in pairwise(words)] for words in tokens]


def cfh(row: str, words_a_gram: int):
    """(UᵀV)_30k + I mixed with the same on words beyond, or on 2-grams, hashed by DICE into the first F (k = 5)."""
    def fill(table: Table) -> None:
        number = table.settings.tops["30k"]
        options = tuned(table, "ssi-asym")
        base = table.once("top 30k", lambda: top_fit(table, "ssi-top-30k", number))[2][0]
        counts, df, size = features(table, words_a_gram)
        part = table.parts["train"]
        closest = correlated.dice(counts, part.counts[:, :number], k=5)
        weighed = unit(scipy.sparse.csr_matrix(correlated.hashed(text.tf_idf(counts, df, size), closest)))
        found, model = transformed(table, row, lambda _: weighed, options)
        mixture, tried, share = mixed(table, base, model)
        config = {**options, "k": table.settings.k, "F": number, "alpha": share, "features": int(counts.shape[1])}
        say(f"{table.name}: {row}: alpha {share}")
        table.record(row, [mixture], config=config, dev={"grid": tried, "map": table.dev(mixture)["map"]}, fit=found,
                     seeds=[0])

    return fill


def features(table: Table, words_a_gram: int):
    """Counts, document frequencies and documents of words or of 2-grams, in the rows of the collection."""
    part = table.parts["train"]
    if words_a_gram == 1:
        return part.counts, part.df, part.num_docs
    tokens = grams(table.data[1])
    vocabulary = text.Vocabulary.build(tokens, drop_top=0, max_terms=table.settings.bigrams, min_df=2)
    return text.counts(tokens, vocabulary), vocabulary.df, vocabulary.num_docs


LIMITED = {"qe": fit_expansion, "ssi-full": fit_full, **{f"ssi-sparse-{p}": fit_sparse(p) for p in SPARSE},
           "ssi-l1": fit_l1}
DIMENSIONS = dict(dimension(number, symmetric) for number in (50, 100, 200, 500) for symmetric in (True, False))
ALL_WORDS = {
    "qe": fit_expansion, "ssi-all": top("ssi-all", None), "ssi-top-10k": top("ssi-top-10k", "10k"),
    "ssi-top-30k": top("ssi-top-30k", "30k"),
    **{f"hash-{name}": hashed(name) for name in ("1m", "3m", "6m")}, "cfh-2": cfh("cfh-2", 2), "cfh-1": cfh("cfh-1", 1),
}
