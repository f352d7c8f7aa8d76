"""Linear projections: latent semantic analysis, PCA, oriented PCA, canonical correlations, and what they share.

`Projection` holds the parameters, `encode` makes `Vectors` of documents; a method is a module with a ``fit``.
"""

from jaxsim.methods.projections import cca, cl_lsi, dda, lsa, opca, pca
from jaxsim.methods.projections.projection import Projection, encode, truncate

__all__ = ["Projection", "cca", "cl_lsi", "dda", "encode", "lsa", "opca", "pca", "truncate"]
