"""The loop of `host.rows_product`, compiled by numba; nothing else imports numba."""

from __future__ import annotations

import numba


# Only a product and a sum may become one operation: sums keep their order, so a row has the same bits in any batch.
@numba.njit(fastmath={"contract"}, nogil=True, cache=True)
def rows_product(starts, terms, values, dense, out, first, last):  # pragma: no cover - compiled
    """``out[first:last]`` of documents times ``dense``, eight terms at a time: each reads and writes a row once."""
    columns = dense.shape[1]
    for row in range(first, last):
        total = out[row]
        total[:] = 0
        slot, end = starts[row], starts[row + 1]
        while slot + 8 <= end:
            a, b, c, d = dense[terms[slot]], dense[terms[slot + 1]], dense[terms[slot + 2]], dense[terms[slot + 3]]
            e, f, g, h = (dense[terms[slot + 4]], dense[terms[slot + 5]], dense[terms[slot + 6]],
                          dense[terms[slot + 7]])
            p, q, r, s = values[slot], values[slot + 1], values[slot + 2], values[slot + 3]
            t, u, v, w = values[slot + 4], values[slot + 5], values[slot + 6], values[slot + 7]
            for i in range(columns):
                total[i] += p * a[i] + q * b[i] + r * c[i] + s * d[i] + t * e[i] + u * f[i] + v * g[i] + w * h[i]
            slot += 8
        while slot < end:
            a, p = dense[terms[slot]], values[slot]
            for i in range(columns):
                total[i] += p * a[i]
            slot += 1
