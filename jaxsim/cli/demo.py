"""The first thing to run: learn a projection from the docstrings of installed packages, and see what it is worth."""

from __future__ import annotations

import json
import sys
import time
from io import BytesIO
from pathlib import Path

import jax
import numpy as np
import scipy.sparse

from jaxsim import __version__, io, sparse, text
from jaxsim.cli import pictures
from jaxsim.data import docstrings
from jaxsim.evaluate import mates
from jaxsim.evaluate.mates import Task
from jaxsim.methods import cca, cl_lsi, lsa, opca, s2net
from jaxsim.optim import Fit
from jaxsim.sparse import Vectors

_NOISE = 1e-4  # of OPCA and CCA on documents of unit length


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def _baselines(task: Task, k: int) -> dict[str, dict[str, float]]:
    """Scores of everything that S2Net is compared with, on the test mates, and OPCA's projection."""
    train, test = task.weighted("train"), task.weighted("test")
    counts = [sparse.from_scipy(side) for side in task.counts["train"]]
    both = sparse.from_scipy(scipy.sparse.vstack([sparse.to_scipy(side) for side in train], format="csr"))
    tf_idf = [text.tf_idf(side, task.vocabulary.df, task.vocabulary.num_docs) for side in task.counts["test"]]
    result = {
        "tfidf": mates.scores(*(Vectors(sparse=sparse.from_scipy(side)) for side in tf_idf)),
        "log-tfidf": mates.scores(*(Vectors(sparse=side) for side in test)),
    }
    fits = {
        "lsa": lambda: lsa.fit(both, k=k),
        "cl-lsi": lambda: cl_lsi.fit(counts, k=k, unit_length=True),
        "cca": lambda: cca.fit(*train, k=k, ridge=_NOISE),
        "opca": lambda: opca.fit(train, k=k, noise=_NOISE),
    }
    for name, fit in fits.items():
        _say(f"fitting {name} …")
        result[name] = mates.scores(*mates.encode(params := fit().params, test))
    return result, params


def _picture(path: Path, fit: Fit, baselines: dict[str, dict[str, float]], score: float) -> None:
    """Training loss and dev score against the iteration, beside every method's test score."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    steps = [entry["step"] for entry in fit.history]
    left.plot(steps, [entry["loss"] for entry in fit.history], color="tab:blue")
    left.set(xlabel="L-BFGS iteration", yscale="log")
    left.set_ylabel("training loss (nats)", color="tab:blue")
    other = left.twinx()
    other.plot(steps, [entry["validation"] for entry in fit.history], color="tab:orange")
    other.set_ylabel("dev mean reciprocal rank", color="tab:orange")
    names = [*baselines, "s2net"]
    values = [*(row["mrr"] for row in baselines.values()), score]
    bars = right.barh(names, values, color=["tab:gray"] * len(baselines) + ["tab:blue"])
    right.bar_label(bars, [f"{value:.3f}" for value in values], padding=3)
    right.set(xlabel="test mean reciprocal rank", xlim=(0, max(values) * 1.15))
    right.invert_yaxis()
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=120)
    io.write_bytes(path, buffer.getvalue())


def run(out: Path, *, k: int = 300, max_iter: int = 40, seed: int = 0, num_pairs: int | None = None) -> dict:
    """Fits S2Net and its baselines on docstrings and writes a record and a picture.

    Args:
      out: folder for the record (``s2net.json``) and ``demo.png``.
      k: dimension of every projection.
      max_iter: L-BFGS iterations of S2Net at most.
      seed: salt of the split into training, dev and test pairs; nothing else is random.
      num_pairs: how many pairs to use, from the first; all unless given.

    Returns:
      Rows of the table (method -> scores on the test pairs), then counts, settings and paths.

    Raises:
      ValueError: if ``k`` is above the number of training pairs.
    """
    out = Path(out)
    pictures.check_place(out, "--out")
    out.mkdir(parents=True, exist_ok=True)
    begun = time.perf_counter()
    _say("reading docstrings …")
    pairs = docstrings.load()
    if num_pairs is not None:
        pairs = pairs.take(range(min(num_pairs, len(pairs))))
    task = mates.from_pairs(pairs, salt="" if seed == 0 else str(seed), min_df=2)
    sizes = {name: sides[0].shape[0] for name, sides in task.counts.items()}
    _say(f"{sizes['train']} training, {sizes['dev']} dev and {sizes['test']} test pairs, {len(task.vocabulary)} terms")
    loaded = time.perf_counter()
    table, start = _baselines(task, k)
    _say("training s2net from opca …")
    train, test = task.weighted("train"), task.weighted("test")
    fit = s2net.fit(*train, init=start, max_iter=max_iter, validate=mates.validator(task.weighted("dev")), patience=8,
                    progress=True)
    fitted = time.perf_counter()
    values = mates.per_query(*mates.encode(fit.params, test))
    table["s2net"] = {name: float(np.mean(value)) for name, value in values.items()}
    first, last = fit.history[0], fit.history[-1]
    _picture(out / "demo.png", fit, {name: row for name, row in table.items() if name != "s2net"},
             table["s2net"]["mrr"])
    record = {
        "config": {"k": k, "max_iter": max_iter, "gamma": 10.0, "noise": _NOISE, "salt": seed, "min_df": 2},
        "dataset": {"name": pairs.name, "sha256": pairs.sha256, "counts": {**pairs.counts, **sizes},
                    "groups": task.groups},
        "dev": {"mrr": fit.best_score},
        "metrics": table["s2net"], "baselines": {name: row for name, row in table.items() if name != "s2net"},
        "fit": {name: getattr(fit, name) for name in ("loss", "grad_norm", "converged", "steps", "evaluations")},
        "seconds": {"load": loaded - begun, "fit": fitted - loaded, "evaluate": time.perf_counter() - fitted},
        "device": jax.devices()[0].device_kind, "versions": {"jaxsim": __version__, "jax": jax.__version__},
    }
    path = out / "s2net.json"
    io.write_bytes(path, (json.dumps(record, indent=1) + "\n").encode())
    return {
        "test mates found": table,
        "training loss": f"{first['loss']:.6f} at the start, {fit.loss:.6f} at the best of {last['step']} iterations",
        "dev mrr": f"{first['validation']:.4f} at the start (opca), {record['dev']['mrr']:.4f} at the best",
        "test pairs": sizes["test"], "dimension": k, "device": jax.devices()[0].device_kind,
        "record": str(path), "picture": str(out / "demo.png"),
    }
