"""Products of sparse rows under ``jax.vmap``: many dense matrices side by side are one wide product."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxsim.sparse.products import rows_product

mapped_rows_product = jax.custom_batching.custom_vmap(rows_product)
"""`rows_product` whose ``vmap`` over dense matrices, of several fits of one collection, walks over the rows once."""


@mapped_rows_product.def_vmap
def _mapped(size, in_batched, values, indices, indptr, dense):
    if in_batched == [False, False, False, True]:
        wide = jnp.moveaxis(dense, 0, 1).reshape(dense.shape[1], -1)
        product = mapped_rows_product(values, indices, indptr, wide)
        return jnp.moveaxis(product.reshape(product.shape[0], size, -1), 1, 0), True
    # Other documents for each: one after the other, since a batched product has no native kernel.
    given = values, indices, indptr, dense
    mapped = [array for array, batched in zip(given, in_batched, strict=True) if batched]

    def single(some):
        rest = iter(some)
        arrays = (next(rest) if batched else array for array, batched in zip(given, in_batched, strict=True))
        return mapped_rows_product(*arrays)

    return jax.lax.map(single, mapped), True
