"""Loss functions: elementwise and unreduced, and the exact loss over all pairs of a collection.

Elementwise losses return one value per element; callers reduce them. `all_pairs_logistic` has too many terms to return
them; it computes them in `tiles` and returns their mean.
"""

from jaxsim.losses import tiles
from jaxsim.losses.all_pairs import all_pairs_logistic, negatives
from jaxsim.losses.elementwise import log, logistic_pairwise, margin_ranking, squared

__all__ = ["all_pairs_logistic", "log", "logistic_pairwise", "margin_ranking", "negatives", "squared", "tiles"]
