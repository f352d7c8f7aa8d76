"""Linear projections: latent semantic analysis, PCA, oriented PCA, CCA, reduced-rank regression, and what they share.

`Projection` holds the parameters, and `encode` turns documents into `Vectors`. A method is a module with a ``fit``.
"""

from jaxsim.methods.projections import cca, cl_lsi, cr5, dda, lsa, opca, pca
from jaxsim.methods.projections.projection import Projection, encode, truncate

__all__ = ["Projection", "cca", "cl_lsi", "cr5", "dda", "encode", "lsa", "opca", "pca", "truncate"]
