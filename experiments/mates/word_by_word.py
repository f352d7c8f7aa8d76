"""Rows of `platt2010` that translate word by word (002 §3.2): documents of the other language become English vectors.

A table of Pr(English word | word) is learned from the lines of the training pairs, where a page and its translation
have equally many (in place of the paper's Europarl). The paper multiplies it with log(tf)-idf vectors; the row
`wbw-best` also tries it on counts that are weighted after, and the roots of its probabilities. A word without an entry
stays as it is. The paper's aligner is the row `wbw-wdhmm`; `wbw` has the same without jumps of each word.
`wbw-eflomal` has the links of another program, eflomal, on the same lines.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse

from experiments import kit
from experiments.corpora.mate_scores import tested
from experiments.kit.measure import installed
from jaxsim import sparse, text
from jaxsim.data import catalogue
from jaxsim.data.pairs import Pairs
from jaxsim.evaluate import mates
from jaxsim.methods import lsa, projections
from jaxsim.methods.translation import bitext, dictionary, hmm, ibm1
from jaxsim.methods.translation import table as tables
from jaxsim.optim import Fit, closed_form
from jaxsim.sparse import Vectors

LINES = 40_000
"""Lines that an aligner learns from, at most: an even sample."""
LSA_KS = (300, 1000, 1500, 2000, 3000)
"""Dimensions of LSA, of which development pairs choose one."""
PAPER_WORDS = 274_000
"""Words a second of word-by-word translation in 002 §4."""
_DEV = 1500  # pairs by which an aligner is stopped; settings are chosen on all


def lines(table: kit.Table) -> bitext.Bitext:
    """Lines of the training pairs whose two sides have equally many."""
    pairs = table.data.pairs.take(table.data.task.rows["train"])
    return table.once("lines", lambda: lines_of(pairs, LINES if table.preset == "full" else 2000))


def lines_of(pairs: Pairs, most: int) -> bitext.Bitext:
    """Lines of pages whose two sides have equally many, ``most`` at most."""
    words = tuple(text.tokenizer(language) for language in pairs.languages)
    return bitext.from_pages(pairs.left, pairs.right, words=words, most=most)


def documents(table: kit.Table, split: str, columns, counts_first: bool) -> tuple[Vectors, Vectors]:
    """English documents as they are, the others translated."""
    task = table.data.task
    left, right = table.once(("own length", split), lambda: task.weighted(split, unit_length=False))
    if not counts_first:
        return Vectors(sparse=left), tables.encode(columns, right)
    return Vectors(sparse=left), tables.encode(columns, sparse.from_scipy(task.counts[split][1]),
                                               df=task.vocabulary.df, num_docs=task.vocabulary.num_docs)


def table_of(table: kit.Table, params: tables.Translation, symmetrize: str = "none", power: float = 1.0):
    """A translation table over the terms of the documents."""
    terms = table.data.task.vocabulary.terms
    return tables.between(tables.symmetrized(params, symmetrize), terms, terms, power=power)


def aligned(table: kit.Table, method, of: bitext.Bitext | None = None, **options):
    """A table learned from lines, those of training unless given, with as many iterations as dev pairs ask for."""
    left, right = (side[:_DEV] for side in table.data.task.counts["dev"])
    task = table.data.task
    weigh = partial(text.log_tf_idf, df=task.vocabulary.df, num_docs=task.vocabulary.num_docs)
    held = sparse.from_scipy(weigh(left)), sparse.from_scipy(weigh(right))

    def score(params: tables.Translation) -> float:
        return mates.scores(Vectors(sparse=held[0]), tables.encode(table_of(table, params), held[1]))["mrr"]

    return table.fit(method, reads=held)(lines(table) if of is None else of, max_iter=30, patience=4, validate=score,
                                           **options)


def bilingual(table: kit.Table) -> bool:
    """Whether the table has two languages; its rows have no place elsewhere."""
    left, right = table.data.pairs.languages
    return left != right


def _speed(table: kit.Table, columns) -> list[dict]:
    """Words translated a second, one core, the documents' weights given."""
    counts = table.data.task.counts["test"][1]
    begun = time.perf_counter()
    tables.translate(counts, columns)
    rate = float(counts.sum()) / (time.perf_counter() - begun)
    return [{"name": "words translated a second", "value": rate, "unit": "words/s", "ratio": rate / PAPER_WORDS,
             "of": "002 §4", "note": "words of the vocabulary, one thread"}]


def dev_mrr(table: kit.Table, columns, counts_first: bool = False) -> float:
    """Mean reciprocal rank on development pairs."""
    return mates.scores(*documents(table, "dev", columns, counts_first))["mrr"]


def choose_symmetrize(table: kit.Table, params: tables.Translation) -> kit.Choice:
    """How the two directions are combined."""
    return kit.choose([{"symmetrize": way} for way in tables.SYMMETRIZE],
                      lambda symmetrize: dev_mrr(table, table_of(table, params, symmetrize)), by="mrr", split="dev")


def word_by_word(table: kit.Table, method, **options) -> kit.Row | None:
    """A table times log(tf)-idf vectors, as in the paper. Chosen: how the two directions are combined."""
    if not bilingual(table):
        return None
    fit = aligned(table, method, **options)
    choice = choose_symmetrize(table, fit.params)
    columns = table_of(table, fit.params, **choice.best)
    config = {"aligner": method.__name__.rpartition(".")[2], **options, **choice.best, "threshold": 0.01,
              "order": "log(tf)-idf first", "lines": lines(table).counts, "entries": int(columns.nnz)}
    return kit.Row(config, **tested(table, documents(table, "test", columns, False)),
                   measurements=_speed(table, columns), dev={"mrr": choice.score, "grid": choice.tried}, fit=fit)


def fit_best(table: kit.Table) -> kit.Row | None:
    """Ours. Chosen: the aligner, how directions are combined, weights before or after, the power of probabilities."""
    if not bilingual(table):
        return None
    params = {"ibm1": aligned(table, ibm1).params, "hmm": aligned(table, hmm).params}

    def columns_of(aligner, symmetrize, power):
        return table_of(table, params[aligner], symmetrize, power)

    def score(order, **option):
        return dev_mrr(table, columns_of(**option), order == "counts first")

    choice = kit.choose(
        [{"aligner": aligner, "symmetrize": way, "power": power, "order": order} for aligner in params
         for way in tables.SYMMETRIZE for power in (0.3, 0.5, 0.7, 1.0, 1.5)
         for order in ("counts first", "log(tf)-idf first")], score, by="mrr", split="dev")  # fmt: skip
    best = dict(choice.best)
    order = best.pop("order")
    columns = columns_of(**best)
    return kit.Row({**choice.best, "threshold": 0.01, "lines": lines(table).counts, "entries": int(columns.nnz)},
                   **tested(table, documents(table, "test", columns, order == "counts first")),
                   dev={"mrr": choice.score, "grid": choice.tried})


def fit_lsa(table: kit.Table) -> kit.Row | None:
    """Translated as in `wbw`, then mapped by LSA of the English training documents. Chosen: the dimension."""
    if not bilingual(table):
        return None
    learned = aligned(table, hmm).params
    way = choose_symmetrize(table, learned).best
    columns = table_of(table, learned, **way)
    most = min(table.data.sizes["train"], len(table.data.task.vocabulary))
    ks = [k for k in sorted({*table.settings.lsi_ks, *LSA_KS}) if k < most] or [most - 1]
    params = table.fit(lsa)(table.data.task.weighted("train")[0], k=max(ks)).params

    def encoded(split: str, k: int) -> tuple[Vectors, Vectors]:
        sides = tuple(side.sparse for side in documents(table, split, columns, False))
        return mates.encode(projections.truncate(params, k), sides)

    size = kit.choose([{"k": k} for k in ks], lambda k: mates.scores(*encoded("dev", k))["mrr"], by="mrr", split="dev")
    return kit.Row({"aligner": "hmm", **way, "threshold": 0.01, **size.best},
                   **tested(table, encoded("test", size.best["k"])), curve=size.tried, dev={"mrr": size.score})


def fit_dictionary(table: kit.Table) -> kit.Row | None:
    """A dictionary (the English Wiktionary's) in place of a learned table, all translations equally probable."""
    if table.data.pairs.languages != ("en", "es"):
        return None
    pairs = []
    counts = {}
    for name, flip in (("en-es-enwiktionary.txt.gz", False), ("es-en-enwiktionary.txt.gz", True)):
        found, counts[name] = dictionary.read(catalogue.find("dictionary_en_es", name))
        pairs += [(b, a) if flip else (a, b) for a, b in found]
    fit = table.fit(dictionary)(pairs)
    columns = table_of(table, fit.params)
    dev = mates.scores(*documents(table, "dev", columns, False))["mrr"]
    return kit.Row({"dictionary": "Wiktionary", "words": len(set(pairs)), "read": counts, "entries": int(columns.nnz)},
                   **tested(table, documents(table, "test", columns, False)), dev={"mrr": dev})


def fit_eflomal(text_pairs: bitext.Bitext) -> Fit:
    """A table from the links that eflomal, a sampler, draws in both directions.

    Args:
      text_pairs: Sentences and their translations.

    Returns:
      `Fit` of a `Translation`, pruned like those of the other aligners.
    """
    sides = (text_pairs.left, text_pairs.right)
    words = [[side.words[a:b] for a, b in itertools.pairwise(side.indptr)] for side in sides]
    written = [[" ".join(f"w{word}" for word in sentence) + "\n" for sentence in side] for side in words]
    counts = []
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("forward", "reverse")]
        installed("eflomal").Aligner().align(*written, *map(str, paths))
        for path in paths:  # each link is "place on the left-place on the right"
            links = [[tuple(map(int, link.split("-"))) for link in line.split()]
                     for line in path.read_text().splitlines()]
            pairs = np.array([(a[i], b[j]) for a, b, line in zip(*words, links, strict=True) for i, j in line])
            shape = tuple(len(side.vocabulary) for side in sides)
            counts.append(scipy.sparse.csr_matrix((np.ones(len(pairs)), pairs.T), shape=shape))
    return closed_form(tables.from_counts(counts[0], counts[1].T.tocsr(), *(side.vocabulary for side in sides), 0.01))


def eflomal_row(table: kit.Table) -> kit.Row | None:
    """A peer: the links of eflomal in place of our aligners; no row where it is not installed (extra `peers`)."""
    if installed("eflomal") is None or not bilingual(table):
        return None
    params = table.fit(fit_eflomal)(lines(table)).params
    choice = choose_symmetrize(table, params)
    columns = table_of(table, params, **choice.best)
    config = {"aligner": "eflomal", **choice.best, "threshold": 0.01, "order": "log(tf)-idf first",
              "lines": lines(table).counts, "entries": int(columns.nnz)}
    return kit.Row(config, **tested(table, documents(table, "test", columns, False)),
                   dev={"mrr": choice.score, "grid": choice.tried})


ROWS = {"wbw": partial(word_by_word, method=hmm), "wbw-lsa": fit_lsa, "wbw-best": fit_best,
        "wbw-ibm1": partial(word_by_word, method=ibm1), "wbw-wdhmm": partial(word_by_word, method=hmm, word_jumps=True),
        "wbw-dictionary": fit_dictionary, "wbw-eflomal": eflomal_row}
