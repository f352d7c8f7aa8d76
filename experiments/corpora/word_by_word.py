"""Documents translated word by word, for the tables of mates and of classes (002 §3.2): the table, and what it does.

A table of Pr(English word | word) is learned from the lines of the training pairs, where a page and its translation
have equally many (in place of the paper's Europarl), by an aligner of `jaxsim.methods.translation`. It turns documents
of the other language into English vectors; a word without an entry stays as it is.
"""

from __future__ import annotations

from functools import partial

from experiments import kit
from jaxsim import sparse, text
from jaxsim.data.pairs import Pairs
from jaxsim.evaluate import mates
from jaxsim.methods.translation import bitext
from jaxsim.methods.translation import table as tables
from jaxsim.sparse import Vectors

LINES = 40_000
"""Lines that an aligner learns from, at most: an even sample."""
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

    score.__module__ = "experiments.mates.word_by_word"  # where it stood: cached fits know it by this name
    return table.fit(method, reads=held)(lines(table) if of is None else of, max_iter=30, patience=4, validate=score,
                                           **options)
