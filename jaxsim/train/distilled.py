"""``train --distill``: a trained projection learns to rank as it does together with bare terms (`distillation`)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np

from jaxsim import sparse
from jaxsim.evaluate import mates
from jaxsim.linalg.row_space import distinct_rows
from jaxsim.methods import distillation, projections
from jaxsim.optim import Fit, checkpoints
from jaxsim.sparse import Terms
from jaxsim.train import held_out
from jaxsim.train.problem import Learned, Problem

MOST = 4_096
"""Texts a side that are ranked, drawn at random where there are more."""


def distilled(fit: Fit, problem: Problem, answers: Sequence[mates.Answers] | None = None) -> Learned:
    """A projection that is distilled from what was fitted and the bare terms, unless its score to stop by is no better.

    Args:
      fit: of one `Projection`.
      problem: what it was fitted on.
      answers: which held-out texts belong together, of each set; None where mates alone are scored.

    Returns:
      ``fit`` with other parameters, and a note ``distilled``: the loss in the first epoch and in the last, and the
      scores before, of held-out pairs and of judged queries. Where the score to stop by was as good before, ``fit`` as
      it was, with ``kept`` False in the note.

    Raises:
      ValueError: for a damaged checkpoint.
    """
    begun = time.perf_counter()
    settings = problem.settings
    share = settings.distill
    *side_keys, key = jax.random.split(jax.random.key(settings.seed), 3)
    rows = [_some(side, side_key) for side, side_key in zip(problem.train, side_keys, strict=True)]
    if problem.slots is None:
        sides = [sparse.take(side, some) for side, some in zip(problem.train, rows, strict=True)]
    else:
        sides = [sparse.from_scipy(side[some]) for side, some in zip(problem.slots, rows, strict=True)]
    checkpoint = None
    if problem.checkpoint is not None:
        # What was trained may be trained on; its distillation so far is of no use then, and must not be in the way.
        mark = checkpoints.fingerprint(fit.params)[:12]
        checkpoint = Path(problem.checkpoint) / f"checkpoint.distilled-{share:g}-{mark}"
    student = distillation.fit(
        *sides, base=fit.params, share=share, key=key, spread=problem.spread, words=problem.counts[0].shape[1],
        progress=problem.progress, checkpoint=checkpoint, precision=settings.precision,
        callback=problem.logged("distillation"),
    )  # fmt: skip
    losses = [entry["loss"] for entry in student.history[1:]]
    if losses[-1] >= losses[0]:
        problem.say(f"the loss did not fall ({losses[0]:.4g} in the first epoch, {losses[-1]:.4g} in the last): leave "
                  "--distill out")
    note = {"share": share, "first_loss": round(losses[0], 6), "last_loss": round(losses[-1], 6),
            "seconds": round(time.perf_counter() - begun, 1)}  # fmt: skip
    if problem.validate is not None:
        before, after = (float(problem.validate(params)) for params in (fit.params, student.params))
        every = [] if problem.dev is None else list(held_out.of_sets(problem.dev, problem.sets))
        answers = [None] * len(every) if answers is None else answers
        scores = held_out.mean([
            held_out.mate_scores(*(projections.encode(fit.params, side) for side in sides), found)
            for sides, found in zip(every, answers, strict=True)]) if every else {}  # fmt: skip
        note |= {f"undistilled_{name}": round(value, 4) for name, value in scores.items()}
        metric, judges = problem.told
        if problem.searched is not None:
            note["judged"] = {"metric": metric, "undistilled": round(before, 4), "distilled": round(after, 4)}
        verdict = "" if after > before else ": no better, so the model stays as it was before"
        problem.say(f"{metric} of {judges} {before:.4f} before, {after:.4f} distilled{verdict}")
        note["kept"] = after > before
    else:
        problem.say("no pairs are held out to say whether distillation helps: compare searches of your own")
    params = student.params if note.get("kept", True) else fit.params
    return Learned(fit._replace(params=params), {"distilled": note})


def _some(side: Terms, key: jax.Array) -> np.ndarray:
    """Rows of distinct texts, at most `MOST`."""
    first, _ = distinct_rows(side)
    return first if len(first) <= MOST else np.sort(np.asarray(jax.random.permutation(key, first))[:MOST])
