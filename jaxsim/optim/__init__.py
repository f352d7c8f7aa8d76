"""Optimisation: the only package that imports jaxopt and optax.

`minimize_lbfgs` runs jaxopt's L-BFGS (or optax's) on a whole collection, `minimize_sgd` any optax transformation
(`sgd`, `adam`, `adagrad`) over minibatches, `minimize_rows` plain SGD an example at a time on the few rows of large
tables that it needs, and `em.maximize` iterations of expectation maximisation. All report progress, stop early on a
validation score, return the best parameters, and continue from a checkpoint bit for bit (except optax's L-BFGS); a
`Run` holds these settings.
"""

from jaxsim.optim import checkpoints, em, epochs, history, lbfgs, monitor, rows
from jaxsim.optim.grid import minimize_lbfgs_grid
from jaxsim.optim.lbfgs import minimize_lbfgs
from jaxsim.optim.monitor import Fit, Run, closed_form
from jaxsim.optim.rows import minimize_rows
from jaxsim.optim.sgd import adagrad, adam, minimize_sgd, sgd

__all__ = ["Fit", "Run", "adagrad", "adam", "checkpoints", "closed_form", "em", "epochs", "history", "lbfgs",
           "minimize_lbfgs", "minimize_lbfgs_grid", "minimize_rows", "minimize_sgd", "monitor", "rows", "sgd"]
