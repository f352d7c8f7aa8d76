"""Sparse documents and what models make of them.

`Terms` holds documents as sparse rows, made by `from_scipy`; `Slices` holds a minibatch in static shapes, `Filled`
documents with their zeros, for TPUs, and `Gathered` as sums of a few rows, for GPUs. `project` multiplies documents by
a dense matrix, whatever their storage.
`Document` is a single document, for functions of a pair that ``jax.vmap`` lifts. `Vectors` are a model's
representations of documents: a dense part, a sparse part, or both. `precision` sets the precision of dense products,
`host` has the loop of encoding, and `narrow` weights of fewer bytes.
"""

from jaxsim.sparse import host, narrow, precision
from jaxsim.sparse.dense import Filled, Held, filled, held
from jaxsim.sparse.document import Document, documents
from jaxsim.sparse.gather import Gathered, gathered
from jaxsim.sparse.padded import Slices, slices
from jaxsim.sparse.sizes import size_class
from jaxsim.sparse.terms import (
    Terms,
    from_scipy,
    inner_products,
    project,
    project_transpose,
    to_scipy,
    weigh,
    with_values,
)
from jaxsim.sparse.vectors import Vectors, activated, cosine, dot, jensen_shannon, l1, nonzero, take, unit

__all__ = ["Document", "Filled", "Gathered", "Held", "Slices", "Terms", "Vectors", "activated", "cosine", "documents",
           "dot", "filled", "from_scipy", "gathered", "held", "host", "inner_products", "jensen_shannon", "l1",
           "narrow", "nonzero", "precision", "project", "project_transpose", "size_class", "slices", "take", "to_scipy",
           "unit", "weigh", "with_values"]
