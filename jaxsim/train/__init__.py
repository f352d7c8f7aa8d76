"""From pairs of texts to a `jaxsim.Model`: `train` with `Settings`, and `tune`, which chooses some of them.

`training` runs the four stages (read, split, weigh, fit). `settings` says what can be set and loads nothing large,
`fits` has the fit of every method, and `s2net`, `linked` (SSI), `graded` (s2net-mse) and `distilled` are those with a
file of their own. `tuning` chooses settings by held-out pairs, `grid` sweeps over given values, `estimate` says what a
training will cost, `resume` reads and writes what `--resume` needs, `logs` writes its table of steps, and `estimator`
is a scikit-learn transformer.
"""

import lazy_loader

__all__ = ["Settings", "TextProjection", "distilled", "estimate", "estimator", "fits", "graded", "grid", "linked",
           "logs", "opposites", "problem", "resume", "s2net", "settings", "train", "training", "tune", "tuning"]
_MODULES = ["distilled", "estimate", "estimator", "fits", "graded", "grid", "linked", "logs", "opposites", "problem",
            "resume", "s2net", "settings", "training", "tuning"]
_NAMES = {"estimator": ["TextProjection"], "settings": ["Settings"], "training": ["train"], "tuning": ["tune"]}
__getattr__, __dir__, _ = lazy_loader.attach(__name__, submodules=_MODULES, submod_attrs=_NAMES)
