"""Truncated singular value decompositions and symmetric eigenproblems of matrices that are never formed.

Operators are functions that multiply a block of columns. `covariance` makes such operators of sparse documents, and
`grams` the matrices themselves; `krylov` has the steps of the iteration, `row_space` the span of few documents over
many terms, `cost` the estimates by which a solver is chosen.
"""

from jaxsim.linalg import cost, covariance, grams, krylov, row_space
from jaxsim.linalg.eigen import (
    TOLERANCE,
    Whole,
    basis_shape,
    cholesky,
    cholesky_solve,
    fix_signs,
    leading_eigh,
    means,
    moderate,
    precise,
    top_eigh,
    top_generalised,
    truncated_svd,
)
from jaxsim.linalg.randomised import randomised_svd

__all__ = ["TOLERANCE", "Whole", "basis_shape", "cholesky", "cholesky_solve", "cost", "covariance", "fix_signs",
           "grams", "krylov", "leading_eigh", "means", "moderate", "precise", "randomised_svd", "row_space", "top_eigh",
           "top_generalised", "truncated_svd"]
