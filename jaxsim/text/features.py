"""Features of a term in a document, as named columns: what learned term weights are made of (001 Table 1, 004 §4.1.2).

The columns have the order of the slots of `Terms`, so that a weight ``columns @ w`` is a value of `sparse.with_values`.
Parts of speech (001) are not among them: no tagger of moderate size includes its model in its package.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from jaxsim import checks, sparse
from jaxsim.sparse import Terms
from jaxsim.text.tokens import lowering
from jaxsim.text.vocabulary import Vocabulary

__all__ = ["LOGARITHMS", "NAMES", "PLAIN_TEXT", "TABLE_1", "TF_DF", "Featured", "Scale", "choose", "extract",
           "from_counts", "scale_of", "scaled", "single"]

NAMES = ("bias", "tf", "log_tf", "df", "log_df", "cap", "loc", "log_loc", "relative_loc", "len", "log_len", "qf",
         "log_qf")
"""Every column. Logarithms are ``log(x + 1)``.

bias: 1. tf: occurrences in the document. df: training documents with the term. cap: 1 if it is capitalised at least
once. loc: words before its first occurrence. len: words of the document. relative_loc: loc / len. qf: query frequency.
"""
TABLE_1 = ("bias", "tf", "log_tf", "df", "log_df", "cap", "loc", "len", "log_len", "qf", "log_qf")
"""001 Table 1 with the logarithms that it names, without parts of speech."""
PLAIN_TEXT = ("bias", "log_tf", "log_df", "log_qf", "cap", "log_loc", "relative_loc", "log_len")
"""004 §4.1.2."""
TF_DF = ("bias", "log_tf", "log_df")
"""004 §4.2.2, what tf·idf knows."""
LOGARITHMS = {"log_tf": "tf", "log_df": "df", "log_loc": "loc", "log_len": "len", "log_qf": "qf"}
_OF_COUNTS = ("bias", "tf", "log_tf", "df", "log_df")


@functools.partial(jax.tree_util.register_dataclass, data_fields=["terms", "columns"], meta_fields=["names"])
@dataclasses.dataclass(frozen=True)
class Featured:
    """Documents whose terms have features, a pytree.

    Attributes:
      terms: `Terms` of counts, ``[num_docs, num_terms]``.
      columns: ``[slots, num_features]`` floating, in the order of ``terms.values``; 0 at padding.
      names: of the columns.
    """

    terms: Terms
    columns: jax.Array
    names: tuple[str, ...]

    @property
    def num_docs(self) -> int:
        """Number of documents, padding included."""
        return self.terms.num_docs

    @property
    def num_terms(self) -> int:
        """Size of the vocabulary."""
        return self.terms.num_terms


class Scale(NamedTuple):
    """Centre and spread of columns.

    Attributes:
      mean: ``[num_features]``; 0 for bias.
      deviation: ``[num_features]``, positive; 1 for bias and for constant columns.
    """

    mean: np.ndarray
    deviation: np.ndarray


def extract(
    token_lists: Iterable[Sequence[str]],
    vocabulary: Vocabulary,
    *,
    names: Sequence[str] = TABLE_1,
    query_frequency: np.ndarray | None = None,
    language: str = "en",
) -> Featured:
    """Counts documents and reads the features of every term in every document, in one pass.

    Args:
      token_lists: words of each document **in their own case**, such as ``text.words(one, lower=False)``; they are
        folded to lower case to be found in the vocabulary.
      vocabulary: lower-case terms, with their document frequencies. Words outside it count for positions and lengths.
      names: columns wanted, of `NAMES`.
      query_frequency: ``[num_terms]`` of at least 0, required for the columns ``qf`` and ``log_qf``.
      language: code whose `text.tokenizer` cut the documents; Turkish and Azeri lower an I in their own way.

    Returns:
      `Featured` with float32 columns.

    Raises:
      ValueError: unknown or repeated names, no query frequencies where they are wanted, or of another shape, a
        document given as one string, or what is no code of a language.

    Example:
      >>> words = Vocabulary(("tea", "up"), np.array([3, 1]), 4)
      >>> found = extract([["Tea", "is", "up", "tea"]], words, names=("bias", "tf", "df", "cap", "loc", "len"))
      >>> found.columns.tolist()
      [[1.0, 2.0, 3.0, 1.0, 0.0, 4.0], [1.0, 1.0, 1.0, 0.0, 2.0, 4.0]]
    """
    names = _checked(names, NAMES)
    size = len(vocabulary)
    wanted = {"qf", "log_qf"} & set(names)
    if wanted:
        shape = None if query_frequency is None else np.shape(query_frequency)
        checks.expect(shape == (size,), "query_frequency", f"{size} numbers (one a term)", shape)
        checks.expect(bool(np.min(query_frequency, initial=0) >= 0), "query_frequency", "numbers of at least 0",
                      np.min(query_frequency, initial=0))
    lengths, ids, capitals = [], [], []
    find, lowered = vocabulary.index.get, lowering(language)
    for tokens in token_lists:
        checks.expect(not isinstance(tokens, str), "token_lists", "a list of words for each document", "a string")
        lengths.append(len(tokens))
        ids.append(np.fromiter((find(lowered(token), -1) for token in tokens), np.int64, len(tokens)))
        capitals.append(np.fromiter((token[:1].isupper() for token in tokens), bool, len(tokens)))
    length = np.asarray(lengths, np.int64)
    term = np.concatenate([np.zeros(0, np.int64), *ids])
    capital = np.concatenate([np.zeros(0, bool), *capitals])
    document = np.repeat(np.arange(length.size), length)
    position = np.arange(term.size) - np.repeat(np.cumsum(length) - length, length)
    known = term >= 0
    term, capital, document, position = (array[known] for array in (term, capital, document, position))
    # np.unique sorts by document, then term: the order of a CSR matrix; the first occurrence is the first position.
    slots, first, back, tf = np.unique(document * max(size, 1) + term, return_index=True, return_inverse=True,
                                       return_counts=True)
    row, column = slots // max(size, 1), slots % max(size, 1)
    df = np.asarray(vocabulary.df, np.float64)
    base = {
        "bias": lambda: np.ones(slots.size),
        "tf": lambda: tf,
        "df": lambda: df[column],
        "cap": lambda: np.bincount(back, weights=capital, minlength=slots.size) > 0,
        "loc": lambda: position[first],
        "relative_loc": lambda: position[first] / length[row],
        "len": lambda: length[row],
        "qf": lambda: np.asarray(query_frequency, np.float64)[column],
    }
    columns = np.empty((slots.size, len(names)), np.float32)
    for place, name in enumerate(names):
        columns[:, place] = np.log1p(base[LOGARITHMS[name]]()) if name in LOGARITHMS else base[name]()
    indptr = np.cumsum(np.bincount(row, minlength=length.size)) if slots.size else np.zeros(length.size, np.int64)
    counts = scipy.sparse.csr_matrix((tf.astype(np.float32), column, np.r_[0, indptr]), (length.size, size))
    return Featured(sparse.from_scipy(counts), _filled(columns, max(slots.size, 1)), names)


def from_counts(counts: Terms, df, *, names: Sequence[str] = TF_DF) -> Featured:
    """The features that counts alone give; works inside ``jit``.

    Args:
      counts: `Terms` of counts.
      df: ``[num_terms]`` training documents with each term.
      names: of bias, tf, log_tf, df and log_df.

    Returns:
      `Featured`.

    Raises:
      ValueError: other names, or a df of another shape.

    Example:
      >>> counts = sparse.from_scipy(scipy.sparse.csr_matrix([[2.0, 0.0, 1.0]]))
      >>> from_counts(counts, [5, 6, 7], names=("bias", "tf", "df")).columns.tolist()
      [[1.0, 2.0, 5.0], [1.0, 1.0, 7.0]]
    """
    names = _checked(names, _OF_COUNTS)
    dtype = counts.values.dtype
    df = jnp.asarray(df, dtype)
    checks.expect(df.shape == (counts.num_terms,), "df", f"shape ({counts.num_terms},)", df.shape)
    tf = counts.values
    of = df[counts.indices] if counts.num_terms else jnp.zeros_like(tf)
    every = {"bias": jnp.ones_like(tf), "tf": tf, "log_tf": jnp.log1p(tf), "df": of, "log_df": jnp.log1p(of)}
    columns = jnp.stack([every[name] for name in names], axis=1)
    return Featured(counts, _masked(counts, columns), names)


def single(documents: Terms, name: str = "tfidf") -> Featured:
    """Weighted documents as documents with one feature, the weight (001 §4.3.2).

    Args:
      documents: weighted `Terms`.
      name: of the column.

    Returns:
      `Featured` with one column.

    Example:
      >>> single(sparse.from_scipy(scipy.sparse.csr_matrix([[0.5, 2.0]]))).columns.tolist()
      [[0.5], [2.0]]
    """
    checks.kind(documents, "documents", Terms)
    return Featured(documents, _masked(documents, documents.values[:, None]), (name,))


def choose(documents: Featured, names: Sequence[str]) -> Featured:
    """Some of the columns, in another order perhaps.

    Args:
      documents: `Featured`.
      names: columns wanted.

    Returns:
      `Featured`.

    Raises:
      ValueError: unknown or repeated names.
    """
    names = _checked(names, documents.names)
    return dataclasses.replace(documents, names=names,
                               columns=documents.columns[:, np.array([documents.names.index(n) for n in names])])


def scale_of(documents: Featured) -> Scale:
    """Mean and standard deviation of every column over all slots; bias is left as it is.

    Args:
      documents: training documents.

    Returns:
      `Scale`, to be used on all documents of the model.

    Example:
      >>> counts = sparse.from_scipy(scipy.sparse.csr_matrix([[1.0, 3.0]]))
      >>> [part.tolist() for part in scale_of(from_counts(counts, [1, 1], names=("bias", "tf", "df")))]
      [[0.0, 2.0, 1.0], [1.0, 1.0, 1.0]]
    """
    used = np.asarray(documents.columns, np.float64)[: int(documents.terms.indptr[-1])]
    mean = used.mean(axis=0) if len(used) else np.zeros(used.shape[1])
    deviation = used.std(axis=0) if len(used) else np.ones(used.shape[1])
    bias = np.array([name == "bias" for name in documents.names])
    # A constant column is told by the rounding of its mean.
    constant = bias | (deviation <= 1e-6 * np.maximum(np.abs(mean), 1))
    return Scale(np.where(bias, 0.0, mean), np.where(constant, 1.0, deviation))


def scaled(documents: Featured, scale: Scale) -> Featured:
    """Columns less their mean, divided by their deviation; works inside ``jit``.

    Linear weights of scaled columns are linear weights of the plain ones if bias is among them, so the model is the
    same and only its optimisation is easier.

    Args:
      documents: `Featured`.
      scale: of the training documents.

    Returns:
      `Featured`; padding stays 0.

    Raises:
      ValueError: for a scale of another number of columns.
    """
    checks.expect(np.shape(scale.mean) == (len(documents.names),), "scale", f"{len(documents.names)} columns",
                  np.shape(scale.mean))
    dtype = documents.columns.dtype
    mean, deviation = (jnp.asarray(part, dtype)[None, :] for part in scale)
    return dataclasses.replace(documents, columns=_masked(documents.terms, (documents.columns - mean) / deviation))


def _checked(names, known: Sequence[str]) -> tuple[str, ...]:
    names = (names,) if isinstance(names, str) else tuple(names)
    checks.expect(len(names) > 0, "names", "at least one column", "none")
    for name in names:
        checks.expect(name in known, "names", f"some of {', '.join(known)}", repr(name))
    checks.expect(len(set(names)) == len(names), "names", "every column once", names)
    return names


def _filled(columns: np.ndarray, slots: int) -> jax.Array:
    return jnp.asarray(np.concatenate([columns, np.zeros((slots - len(columns), columns.shape[1]), columns.dtype)]))


def _masked(documents: Terms, columns: jax.Array) -> jax.Array:
    return jnp.where(jnp.arange(documents.nnz)[:, None] < documents.indptr[-1], columns, 0)
