"""Weighted inner products ``qᵀ D d`` of sparse documents, for the triples of SSI; computed on the host."""

from __future__ import annotations

import jax
import numpy as np
import scipy.sparse

from jaxsim import sparse
from jaxsim.methods.ssi.triples import Triples
from jaxsim.sparse import Terms

_TABLE = 2**25  # up to this many pairs, all their products are computed once; beyond, those that are asked for
_ROWS = 512


class Products:
    """The part of a score that is not learned, exact whatever the length of the documents."""

    def __init__(self, left: Terms, right: Terms, diagonal, *, table: int = _TABLE):
        """Lays out both sides.

        Args:
          left: queries.
          right: documents over the same vocabulary.
          diagonal: the diagonal of D, ``[num_terms]`` or one number for all terms.
          table: how many pairs of query and document there may be at most for all products to be computed at once.
        """
        self.shape = left.num_docs, right.num_docs
        scale = scipy.sparse.diags_array(np.broadcast_to(np.asarray(diagonal, left.values.dtype), left.num_terms))
        self._left = scipy.sparse.csr_matrix(sparse.to_scipy(left) @ scale)
        self._right = sparse.to_scipy(right)
        self._table = None
        if left.num_docs * right.num_docs <= table:
            across = self._right.T.tocsr()
            blocks = [(self._left[start : start + _ROWS] @ across).toarray()
                      for start in range(0, left.num_docs, _ROWS)]
            self._table = jax.device_put(np.concatenate(blocks))

    def apart(self, triples: Triples) -> jax.Array:
        """``qᵀ D d⁺ − qᵀ D d⁻`` of every triple.

        Args:
          triples: ``[n]`` of them.

        Returns:
          ``[n]`` floating.
        """
        query, better, worse = triples
        if self._table is not None:
            return self._table[query, better] - self._table[query, worse]
        queries = self._left[np.asarray(query)]
        first, second = (np.asarray(queries.multiply(self._right[np.asarray(rows)]).sum(axis=1)).ravel()
                         for rows in (better, worse))
        return jax.device_put(first - second)
