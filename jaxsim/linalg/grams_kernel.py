"""The loop of `grams.gram`, compiled by numba: a line of the matrix stays in the cache while rows are added to it.

Sums keep the order of the rows, as SciPy's do, so that both give the same bits.
"""

from __future__ import annotations

import numba


@numba.njit(nogil=True, cache=True)
def lines(starts, rows, values, mate_starts, mate_terms, mate_values, out, first, last):  # pragma: no cover - compiled
    """``out[first:last]`` of a transposed matrix, of which the first three are parts, times the mates of its rows."""
    for term in range(first, last):
        line = out[term]
        line[:] = 0
        for slot in range(starts[term], starts[term + 1]):
            row, value = rows[slot], values[slot]
            for mate in range(mate_starts[row], mate_starts[row + 1]):
                line[mate_terms[mate]] += value * mate_values[mate]
