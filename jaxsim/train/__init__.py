"""From pairs of texts to a `jaxsim.Model`: settings, training, tuning, and what a training will cost."""

import lazy_loader

__all__ = ["distilled", "estimate", "estimator", "graded", "linked", "rates", "s2net", "settings", "training", "tuning"]
__getattr__, __dir__, _ = lazy_loader.attach(__name__, submodules=__all__)
