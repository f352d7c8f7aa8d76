"""The loops of `host`, compiled by numba."""

from __future__ import annotations

import math

import numba

from jaxsim.sparse.host_kernel import ask_row

_AHEAD = 4
"""Terms between a row and the one that is asked for."""
_FAST = {"contract", "reassoc", "nsz"}
"""What the sum of a product may do; NaN and infinity keep their meaning."""


@numba.njit(inline="always")
def _add_rows(out, table, terms, values):  # pragma: no cover - compiled
    """Adds rows of a table times values."""
    for slot in range(len(terms)):
        if slot + _AHEAD < len(terms):
            ask_row(table, terms[slot + _AHEAD])
        row, value = table[terms[slot]], values[slot]
        for i in range(len(out)):
            out[i] += value * row[i]


@numba.njit(inline="always")
def _move_rows(table, terms, values, step, along):  # pragma: no cover - compiled
    """Adds one vector, times step and value, to each row."""
    for slot in range(len(terms)):
        row, value = table[terms[slot]], step * values[slot]
        for i in range(len(along)):
            row[i] += value * along[i]


@numba.njit(inline="always")
def _add_squares(sums, terms, values, along):  # pragma: no cover - compiled
    """Adds the squares of a vector, times each value, to each row."""
    for slot in range(len(terms)):
        if slot + _AHEAD < len(terms):
            ask_row(sums, terms[slot + _AHEAD])
        row, value = sums[terms[slot]], values[slot]
        for i in range(len(along)):
            row[i] += (value * along[i]) * (value * along[i])


@numba.njit(inline="always")
def _move_divided(table, sums, terms, values, step, along):  # pragma: no cover - compiled
    """As `_move_rows`, each number divided by the root of its sum."""
    for slot in range(len(terms)):
        row, total, value = table[terms[slot]], sums[terms[slot]], step * values[slot]
        for i in range(len(along)):
            row[i] += value * along[i] / math.sqrt(total[i])


@numba.njit(inline="always")
def _of(terms, values, sizes, row):  # pragma: no cover - compiled
    """Terms and values of a document, without the padding."""
    return terms[row, : sizes[row]], values[row, : sizes[row]]


@numba.njit(inline="always")
def _apart(queries, table, of_query, of_better, of_worse, left, right):  # pragma: no cover - compiled
    """The learned part of a difference of scores: the product of what is left in ``left`` and ``right``."""
    left[:] = 0
    right[:] = 0
    _add_rows(left, queries, of_query[0], of_query[1])
    _add_rows(right, table, of_worse[0], of_worse[1])
    for i in range(len(right)):
        right[i] = -right[i]
    _add_rows(right, table, of_better[0], of_better[1])
    score = left.dtype.type(0)
    for i in range(len(left)):
        score += left[i] * right[i]
    return score


# An example's vectors are added up before a row of it changes, as in the scan: both tables may be one.
@numba.njit(fastmath=_FAST, nogil=True, cache=True)
def low_rank(queries, table, query_terms, query_values, query_sizes, terms, values, sizes, triples, apart, margin,
             rate, left, right, losses):  # pragma: no cover - compiled
    """Steps of plain SGD on ``max(0, margin - apart - left · right)``; ``left`` and ``right`` are room for the sums."""
    for n in range(len(apart)):
        query, better, worse = triples[0][n], triples[1][n], triples[2][n]
        of_query = _of(query_terms, query_values, query_sizes, query)
        of_better, of_worse = _of(terms, values, sizes, better), _of(terms, values, sizes, worse)
        loss = margin - (apart[n] + _apart(queries, table, of_query, of_better, of_worse, left, right))
        losses[n] = 0 if loss <= 0 else loss
        if loss > 0:
            _move_rows(queries, of_query[0], of_query[1], rate, right)
            _move_rows(table, of_better[0], of_better[1], rate, left)
            _move_rows(table, of_worse[0], of_worse[1], -rate, left)


# All squares of an example are added before a row of it moves, as in the scan.
@numba.njit(fastmath=_FAST, nogil=True, cache=True)
def low_rank_adagrad(queries, table, query_sums, sums, query_terms, query_values, query_sizes, terms, values, sizes,
                     triples, apart, margin, rate, left, right, losses):  # pragma: no cover - compiled
    """As `low_rank`, by Adagrad."""
    for n in range(len(apart)):
        query, better, worse = triples[0][n], triples[1][n], triples[2][n]
        of_query = _of(query_terms, query_values, query_sizes, query)
        of_better, of_worse = _of(terms, values, sizes, better), _of(terms, values, sizes, worse)
        loss = margin - (apart[n] + _apart(queries, table, of_query, of_better, of_worse, left, right))
        losses[n] = 0 if loss <= 0 else loss
        if loss > 0:
            _add_squares(query_sums, of_query[0], of_query[1], right)
            _add_squares(sums, of_better[0], of_better[1], left)
            _add_squares(sums, of_worse[0], of_worse[1], left)
            _move_divided(queries, query_sums, of_query[0], of_query[1], rate, right)
            _move_divided(table, sums, of_better[0], of_better[1], rate, left)
            _move_divided(table, sums, of_worse[0], of_worse[1], -rate, left)


@numba.njit(inline="always")
def _met(weights, begin, terms, values):  # pragma: no cover - compiled
    """The sum of the weights that a word of a query has with a document's words, times the values of these."""
    total = weights.dtype.type(0)
    for slot in range(len(terms)):
        place = begin + terms[slot]
        total += values[slot] * weights[place if place < len(weights) else place - len(weights)]
    return total


@numba.njit(inline="always")
def _move_met(weights, begin, terms, values, step):  # pragma: no cover - compiled
    """Adds the values, times a step, to the same weights."""
    for slot in range(len(terms)):
        place = begin + terms[slot]
        weights[place if place < len(weights) else place - len(weights)] += step * values[slot]


@numba.njit(fastmath=_FAST, nogil=True, cache=True)
def hashed(weights, first, query_terms, query_values, query_sizes, terms, values, sizes, triples, margin, rate,
           losses):  # pragma: no cover - compiled
    """Steps of plain SGD on ``max(0, margin - f(q, d+) + f(q, d-))``; terms of documents are given modulo H."""
    for n in range(len(losses)):
        query, better, worse = triples[0][n], triples[1][n], triples[2][n]
        of_query = _of(query_terms, query_values, query_sizes, query)
        of_better, of_worse = _of(terms, values, sizes, better), _of(terms, values, sizes, worse)
        loss = margin
        for slot in range(len(of_query[0])):
            begin = first[of_query[0][slot]]
            loss -= of_query[1][slot] * (_met(weights, begin, of_better[0], of_better[1])
                                         - _met(weights, begin, of_worse[0], of_worse[1]))
        losses[n] = 0 if loss <= 0 else loss
        if loss > 0:
            for slot in range(len(of_query[0])):
                begin, step = first[of_query[0][slot]], rate * of_query[1][slot]
                _move_met(weights, begin, of_better[0], of_better[1], step)
                _move_met(weights, begin, of_worse[0], of_worse[1], -step)
