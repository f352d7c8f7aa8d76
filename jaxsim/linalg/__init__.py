"""Truncated singular value decompositions and symmetric eigenproblems of matrices that are never formed.

Operators are functions that multiply a block of columns. `covariance` makes such operators of sparse documents,
`krylov` has the steps of the iteration, `row_space` the span of few documents over many terms.
"""

from jaxsim.linalg import covariance, krylov, row_space
from jaxsim.linalg.eigen import (
    cholesky,
    cholesky_solve,
    fix_signs,
    means,
    precise,
    top_eigh,
    top_generalised,
    truncated_svd,
)
from jaxsim.linalg.randomised import randomised_svd

__all__ = ["cholesky", "cholesky_solve", "covariance", "fix_signs", "krylov", "means", "precise", "randomised_svd",
           "row_space", "top_eigh", "top_generalised", "truncated_svd"]
