r"""Supervised Semantic Indexing: scores :math:`f(q, d) = q^\top W d` learned from links between documents (003).

The package itself learns a W of low rank (``ssi.fit``); the other modules learn a diagonal, full, sparse or hashed one,
or train on batches, minibatches, given preferences or several languages. `Bilinear` holds the parameters, `encode`
makes `Vectors`.
"""

from jaxsim.methods.ssi import (
    batch,
    bilinear,
    correlated,
    diagonal,
    full,
    hashed,
    multitask,
    preferred,
    products,
    sgd,
    shared,
    sparse,
    triples,
)
from jaxsim.methods.ssi.bilinear import Bilinear, encode
from jaxsim.methods.ssi.low_rank import Example, fit, objective, rows, symmetric_rows

__all__ = ["Bilinear", "Example", "batch", "bilinear", "correlated", "diagonal", "encode", "fit", "full", "hashed",
           "multitask", "objective", "preferred", "products", "rows", "sgd", "shared", "sparse", "symmetric_rows",
           "triples"]
