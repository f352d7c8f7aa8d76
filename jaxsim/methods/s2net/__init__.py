"""S2Net: a projection learned so that every document is nearer to its match than to any other (000 §3).

The package itself trains on all negatives (``s2net.fit``); `sgd` takes those of a minibatch, `mse` fits labelled
similarities, `preferences` learns from graded candidates of queries, `distillation` teaches a projection to rank as it
does together with the bare terms, `mined` finds hard negatives in documents that are in no pair.
"""

from jaxsim.methods.s2net import distillation, groups, mined, mse, preferences, sgd
from jaxsim.methods.s2net.exact import (
    RUN,
    Data,
    Sides,
    checked_start,
    distance_penalty,
    fit,
    objective,
    random_init,
    sides,
    start_norm,
)

__all__ = ["RUN", "Data", "Sides", "checked_start", "distance_penalty", "distillation", "fit", "groups", "mined", "mse",
           "objective", "preferences", "random_init", "sgd", "sides", "start_norm"]
