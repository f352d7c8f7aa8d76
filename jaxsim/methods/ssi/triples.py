"""Random triples (query, better document, worse document) from a table of links, drawn on the device (003 §2.3)."""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks


class Triples(NamedTuple):
    """Triples of rows.

    Attributes:
      query: ``[n]`` int32.
      positive: ``[n]`` int32 documents that their queries link to.
      negative: ``[n]`` int32 documents that they do not.
    """

    query: jax.Array
    positive: jax.Array
    negative: jax.Array


class LinkTable(NamedTuple):
    """Links to draw from, and what is known to be no negative.

    Attributes:
      sources: ``[num_links]`` int32.
      targets: ``[num_links]`` int32.
      known: ``[num_known]`` int32 documents that are no negatives of a query, ascending for each query.
      start: ``[num_queries + 1]`` int32, where each query's part of ``known`` begins.
      num_documents: scalar int32.
    """

    sources: jax.Array
    targets: jax.Array
    known: jax.Array
    start: jax.Array
    num_documents: jax.Array


def table(links, num_queries: int, num_documents: int, *, known=None, names=("links", "known")) -> LinkTable:
    """Checks links and lays them out for `draw`.

    Args:
      links: ``[n, 2]`` integers, query and document rows; a link that occurs twice counts once.
      num_queries: rows of queries.
      num_documents: rows of documents.
      known: ``[m, 2]`` pairs, besides the links, that are no negatives: a document and itself, say. None for none.
      names: what the caller calls links and known, for errors.

    Returns:
      `LinkTable`.

    Raises:
      ValueError: for no links, another shape or type, rows out of range, a link of a query to itself where ``known``
        says that it is none, or a query that has links and no document left as a negative.

    Example:
      >>> table([[0, 1], [0, 1]], 1, 3).known.tolist()
      [1]
    """
    argument, of_known = names
    links = _rows(links, argument, num_queries, num_documents)
    checks.expect(len(links) > 0, argument, "at least one link", "none")
    extra = np.zeros((0, 2), np.int64) if known is None else _rows(known, of_known, num_queries, num_documents)
    size = np.int64(num_documents)
    both = np.isin(links @ [size, 1], extra @ [size, 1])
    checks.expect(not both.any(), argument, f"none of the pairs in {of_known}", links[both][:1].tolist())
    every = np.unique(np.concatenate([links, extra]), axis=0)
    number = np.bincount(every[:, 0], minlength=num_queries)
    full = np.flatnonzero((number >= num_documents) & (np.bincount(links[:, 0], minlength=num_queries) > 0))
    checks.expect(not full.size, argument, "a document left as a negative of every query",
                  f"none for query {full[:1].tolist()}")
    start = np.concatenate([[0], np.cumsum(number)])
    return LinkTable(*(jnp.asarray(part, jnp.int32) for part in (*links.T, every[:, 1], start, num_documents)))


def expect_integer_pairs(pairs: np.ndarray, argument: str) -> None:
    """Refuses anything but ``[n, 2]`` integers.

    Args:
      pairs: what should be pairs of rows.
      argument: the caller's name for them.

    Raises:
      ValueError: for another shape or type.

    Example:
      >>> expect_integer_pairs(np.array([[0, 1]]), "links")
    """
    checks.expect(pairs.ndim == 2 and pairs.shape[1] == 2, argument, "shape [n, 2]", pairs.shape)
    checks.expect(np.issubdtype(pairs.dtype, np.integer), argument, "integers", pairs.dtype)


def _rows(pairs, argument: str, num_queries: int, num_documents: int) -> np.ndarray:
    pairs = np.asarray(pairs)
    if pairs.size == 0:
        return np.zeros((0, 2), np.int64)
    expect_integer_pairs(pairs, argument)
    for column, (most, what) in enumerate([(num_queries, "queries"), (num_documents, "documents")]):
        outside = pairs[(pairs[:, column] < 0) | (pairs[:, column] >= most)]
        checks.expect(not outside.size, argument, f"{what} in [0, {most})", outside[:1].tolist())
    return np.unique(pairs.astype(np.int64), axis=0)


@functools.partial(jax.jit, static_argnames=("number",))
def draw(key: jax.Array, links: LinkTable, number: int) -> Triples:
    """Triples of a uniform link and a uniform document that is not known to be relevant to its query.

    The r-th document that is not known is found by bisection, so no draw is ever rejected; pairs of rows are never
    multiplied into one number, which 32-bit integers would not hold for large collections.

    Args:
      key: PRNG key.
      links: what to draw from.
      number: how many triples.

    Returns:
      `Triples`, each ``[number]``.

    Example:
      >>> found = draw(jax.random.key(0), table([[0, 1]], 1, 3, known=[[0, 0]]), 4)
      >>> found.positive.tolist(), found.negative.tolist()
      ([1, 1, 1, 1], [2, 2, 2, 2])
    """
    first, second = jax.random.split(key)
    link = jax.random.randint(first, (number,), 0, links.sources.shape[0], jnp.int32)
    query = links.sources[link]
    begin, end = links.start[query], links.start[query + 1]
    free = links.num_documents - (end - begin)
    place = jax.random.randint(second, (number,), 0, free, jnp.int32)

    def halve(_, bounds):
        # known[j] - (j - begin) documents below known[j] are free, a number that does not fall with j: the answer
        # is place plus how many known documents have at most place free ones below.
        low, high = bounds
        middle = (low + high) // 2
        at = jnp.minimum(middle, links.known.shape[0] - 1)
        below = (middle < high) & (links.known[at] - (middle - begin) <= place)
        return jnp.where(below, middle + 1, low), jnp.where(below, high, middle)

    rounds = int(links.known.shape[0]).bit_length() + 1
    low, _ = jax.lax.fori_loop(0, rounds, halve, (begin, end))
    return Triples(query, links.targets[link], place + low - begin)


def is_known(links: LinkTable, query: jax.Array, document: jax.Array) -> jax.Array:
    """Whether documents are known to be relevant to queries, and so are no negatives of theirs.

    Args:
      links: the table.
      query: integers of any shape.
      document: integers of a shape that goes with it.

    Returns:
      Booleans of the shape of both.

    Example:
      >>> is_known(table([[0, 1]], 2, 3, known=[[0, 0]]), jnp.array([[0], [1]]), jnp.arange(3)).tolist()
      [[True, True, False], [False, False, False]]
    """
    query, document = jnp.broadcast_arrays(query, document)
    begin, end = links.start[query], links.start[query + 1]
    last = links.known.shape[0] - 1

    def halve(_, bounds):
        low, high = bounds
        middle = (low + high) // 2
        below = (middle < high) & (links.known[jnp.minimum(middle, last)] < document)
        return jnp.where(below, middle + 1, low), jnp.where(below, high, middle)

    rounds = int(links.known.shape[0]).bit_length() + 1
    low, _ = jax.lax.fori_loop(0, rounds, halve, (begin, end))
    return (low < end) & (links.known[jnp.minimum(low, last)] == document)
