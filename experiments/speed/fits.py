"""The rows of the speed tables that fit a method: an L-BFGS iteration of S2Net, LSA, OPCA, and the demo."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from experiments.corpora.synthetic import documents, synthetic
from experiments.kit.measure import Sheet, Times, installed, once, race
from experiments.speed import peers as speed_peers
from jaxsim import optim, sparse
from jaxsim.data import docstrings
from jaxsim.evaluate import mates
from jaxsim.methods import lsa as lsa_method
from jaxsim.methods import opca as opca_method
from jaxsim.methods import s2net
from jaxsim.methods.projections import Projection
from jaxsim.optim.lbfgs import _jaxopt as jaxopt_module

GAMMA, NOISE = 10.0, 1e-4

_value_and_grad = jax.jit(jax.value_and_grad(s2net.objective))


def lbfgs(sizes, cores: int, full: bool) -> Sheet:
    """One whole L-BFGS iteration of S2Net: evaluations, direction and bookkeeping."""
    shared = sizes.per_doc // 4
    csr = documents(sizes.pairs, sizes.num_terms, sizes.per_doc, seed=0, shared=shared, views=2)
    sheet = Sheet("lbfgs", cores, full, synthetic("pairs of documents by Zipf's law", pairs=sizes.pairs,
                                                  terms=sizes.num_terms, terms_a_document=sizes.per_doc,
                                                  terms_in_common=shared),
                  {"k": sizes.k, "gamma": GAMMA, "history_size": 10, "start": "random"})
    start = jax.tree.map(lambda a: a.astype(jnp.float32),
                         s2net.random_init(sizes.num_terms, sizes.k, key=jax.random.key(0)))
    few = [side[: min(400, sizes.pairs)] for side in csr]
    value, grad = _value_and_grad(start, _data(few, start))
    weights = np.asarray(start.weights, np.float64)
    right, d_left, d_right = speed_peers.all_pairs_numpy(*[side @ weights for side in few], GAMMA, both=True)
    sheet.parity("objective", value, right, within=1e-5)
    sheet.parity("gradient", grad.weights, few[0].T @ d_left + few[1].T @ d_right, within=1e-4)

    data = _data(csr, start)
    evaluation = race({"one": lambda: _value_and_grad(start, data)}, repeats=sizes.repeats)["one"]
    sheet.time("value and gradient of the objective", evaluation)
    step = 0.02

    def ours(iterations):
        return optim.minimize_lbfgs(s2net.objective, start, data, max_iter=iterations, tol=0.0, first_step=step)

    ours(2)  # compiles
    fit = ours(sizes.iterations)
    seconds = Times(tuple(np.diff([entry["seconds"] for entry in fit.history])[1:].tolist()))
    sheet.time("jaxsim, an iteration", seconds, evaluation, "one value and gradient", f"loss {fit.loss:.5f}")
    per_step = (fit.evaluations - 1) / fit.steps
    sheet.add("jaxsim, evaluations an iteration", per_step, "evaluations", note=f"{fit.steps} iterations")
    if cores == 1:
        sheet.expect("seconds an iteration", seconds.median, 0.95)
    sheet.expect("evaluations an iteration", per_step, 1.1)

    def flat(a):
        value, grad = _value_and_grad(Projection(jnp.asarray(a)), data)
        return value, np.asarray(grad.weights)

    peer, evaluations, loss, steps = speed_peers.lbfgsb(flat, np.asarray(start.weights), sizes.iterations)
    sheet.add("SciPy L-BFGS-B on the same gradient, an iteration", peer, "s", ratio=peer / seconds.median, of="jaxsim",
              note=f"{evaluations:.3g} evaluations an iteration; loss {loss:.5f} after {steps}")
    # jaxopt's first step is the negative gradient; the loss ignores the scale of A, so scaling A makes that step ours.
    norms = [float(jnp.linalg.norm(a)) for a in (_value_and_grad(start, data)[1].weights, start.weights)]
    scaled = jax.tree.map(lambda a: a * np.float32(np.sqrt(norms[0] / (step * norms[1]))), start)
    for search in ("backtracking", "zoom") if full else ("backtracking",):
        peer, evaluations, loss = _jaxopt(scaled, data, sizes.iterations, search)
        sheet.add(f"jaxopt.LBFGS as it stands ({search}), an iteration", peer, "s", ratio=peer / seconds.median,
                  of="jaxsim", note=f"{evaluations:.3g} evaluations an iteration; loss {loss:.5f} after "
                                    f"{sizes.iterations}")
    return sheet


def _data(csr, start) -> s2net.Data:
    left, right = (sparse.from_scipy(side) for side in csr)
    return s2net.Data(left, right, jnp.float32(GAMMA), jnp.float32(0), start)


def _jaxopt(start, data, iterations: int, search: str) -> tuple[float, float, float]:
    """Median seconds an iteration, evaluations an iteration and the loss of jaxopt's own solver, update jitted."""
    jaxopt = jaxopt_module()
    solver = jaxopt.LBFGS(fun=jax.value_and_grad(s2net.objective), value_and_grad=True, history_size=10, tol=0.0,
                          linesearch=search, implicit_diff=False, maxiter=iterations)
    update = jax.jit(solver.update)
    params, state = start, solver.init_state(start, data)
    params, state = jax.block_until_ready(update(params, state, data))  # compiles
    marks, before = [time.perf_counter()], int(state.num_fun_eval)
    for _ in range(iterations - 1):
        params, state = jax.block_until_ready(update(params, state, data))
        marks.append(time.perf_counter())
    evaluations = (int(state.num_fun_eval) - before) / (iterations - 1)
    return float(np.median(np.diff(marks))), evaluations, float(state.value)


def _corpus(sizes, full: bool):
    """``(train, test, dataset)``: both sides' unit vectors of docstrings, or of made-up pairs in the quick preset."""
    if full:
        pairs = docstrings.load()
        task = mates.from_pairs(pairs, max_terms=sizes.corpus_terms)
        train, test = ([sparse.to_scipy(side) for side in task.weighted(part)] for part in ("train", "test"))
        counts = {"pairs": len(pairs), "train": train[0].shape[0], "test": test[0].shape[0],
                  "terms": len(task.vocabulary)}
        return train, test, {"name": pairs.name, "sha256": pairs.sha256, "counts": counts, "groups": task.groups,
                             "differs": "substitute: docstrings of installed packages"}
    csr = documents(2 * sizes.docs, sizes.corpus_terms, sizes.per_doc, seed=0, shared=sizes.per_doc // 2, views=2)
    train, test = [side[: sizes.docs] for side in csr], [side[sizes.docs :] for side in csr]
    dataset = synthetic("pairs of documents by Zipf's law", train=sizes.docs, test=sizes.docs, terms=sizes.corpus_terms)
    return train, test, dataset


def _kept(csr, vectors) -> float:
    """``‖D A‖²`` of an orthonormal basis ``A`` of the vectors: what the best ``k`` dimensions keep at most."""
    basis = np.linalg.qr(np.asarray(vectors, np.float64))[0]
    return float(np.sum((csr @ basis) ** 2))


def lsa(sizes, cores: int, full: bool) -> Sheet:
    """The fit of latent semantic analysis."""
    train, _, dataset = _corpus(sizes, full)
    csr = scipy.sparse.vstack(train, format="csr").astype(np.float32)
    sheet = Sheet("lsa", cores, full, dataset, {"k": sizes.k})
    collection, wide = sparse.from_scipy(csr), csr.astype(np.float64)

    found, first = once(lambda: lsa_method.fit(collection, k=sizes.k).params.weights)
    best, reference = once(lambda: scipy.sparse.linalg.svds(wide, k=sizes.k, return_singular_vectors=False))
    optimum = float(np.sum(best**2))
    sheet.parity("share of the squares kept", _kept(wide, found) / optimum, 1.0, within=1e-3)
    contestants, missing = _lsa_contestants(csr, collection, sizes.k)
    kept = {name: _kept(wide, function()) / optimum for name, function in contestants.items()}
    times = race(contestants, repeats=sizes.repeats, warm_up=False)
    for name, measured in times.items():
        note = f"keeps {kept[name]:.6f} of the optimal squares"
        if name == "jaxsim":
            sheet.time(name, measured, note=f"{note}; first call, with compilation, {first:.3g} s")
        elif name.startswith("jaxsim"):
            sheet.time(name, measured, note=note)
        else:
            sheet.time(name, measured, times["jaxsim"], "jaxsim", note)
    fast, randomised = (times.get(name) for name in ("jaxsim, one basis", "sklearn TruncatedSVD, randomized"))
    if randomised is not None:  # at its own accuracy
        sheet.expect("one basis against sklearn's randomised solver", fast.median / randomised.median, 1.0)
    sheet.time("SciPy svds (ARPACK, float64), values alone", Times((reference,)), times["jaxsim"], "jaxsim")
    for name in missing:
        sheet.missing(name, "it is not installed")
    return sheet


def _lsa_contestants(csr, collection, k: int) -> tuple[dict, list[str]]:
    """Functions that fit it, and the names of programs that are not installed."""
    found = {"jaxsim": lambda: lsa_method.fit(collection, k=k).params.weights,
             "jaxsim, one basis": lambda: lsa_method.fit(collection, k=k, tolerance=float("inf")).params.weights}
    sklearn, gensim = installed("sklearn.decomposition"), installed("gensim.models")
    if sklearn is not None:
        for name in ("randomized", "arpack"):
            found[f"sklearn TruncatedSVD, {name}"] = functools.partial(speed_peers.lsa_sklearn, sklearn, csr, k, name)
    if gensim is not None:
        found["gensim LsiModel"] = functools.partial(speed_peers.lsi_vectors, gensim, installed("gensim.matutils"),
                                                     csr, k)
    peers = {"sklearn TruncatedSVD": sklearn, "gensim LsiModel": gensim}
    return found, [name for name, module in peers.items() if module is None]


def opca(sizes, cores: int, full: bool) -> Sheet:
    """The fit of oriented PCA against the dense generalised eigenproblem, and what both are worth."""
    train, test, dataset = _corpus(sizes, full)
    sheet = Sheet("opca", cores, full, dataset, {"k": sizes.k, "noise": NOISE})
    views, held = ([sparse.from_scipy(side) for side in part] for part in (train, test))

    def ours():
        return opca_method.fit(views, k=sizes.k, noise=NOISE).params.weights

    found, first = once(ours)
    (values, vectors), reference = once(lambda: speed_peers.dense_opca(train, NOISE, sizes.k))
    leading = max(1, sizes.k // 10)
    sheet.parity(f"{leading} leading eigenvalues", _quotients(train, found)[:leading], values[:leading], within=1e-3)
    measured = race({"jaxsim": ours}, repeats=sizes.repeats, warm_up=False)["jaxsim"]
    sheet.time("jaxsim", measured, note=f"first call, with compilation, {first:.3g} s")
    ratio = sheet.time("scipy.linalg.eigh, dense, float64", Times((reference,)), measured, "jaxsim",
                       "with the making of both matrices")
    scores = [mates.scores(*mates.encode(Projection(jnp.asarray(a, jnp.float32)), tuple(held)))["mrr"]
              for a in (found, vectors)]
    for name, score in zip(("jaxsim", "scipy.linalg.eigh"), scores, strict=True):
        sheet.add(f"{name}, test MRR", score, "MRR")
    sheet.expect("times as fast as dense eigh", ratio, 5.0, at_least=True)
    sheet.expect("apart in MRR", abs(scores[0] - scores[1]), 0.002)
    return sheet


def _quotients(train, vectors) -> np.ndarray:
    """Generalised Rayleigh quotients ``vᵀ S v / vᵀ N v`` in float64, from the sparse documents."""
    a, n = np.asarray(vectors, np.float64), train[0].shape[0]
    left, right = (side.astype(np.float64) @ a for side in train)
    signal = left.var(axis=0) + right.var(axis=0)
    return signal / (np.sum((left - right) ** 2, axis=0) / (2 * n) + NOISE * np.sum(a**2, axis=0))


def demo(sizes, cores: int, full: bool) -> Sheet:
    """The whole of ``python -m jaxsim demo`` in a process of its own; the quick preset only starts it."""
    pairs = docstrings.load() if full else None
    dataset = synthetic("none", runs=1) if pairs is None else {
        "name": pairs.name, "sha256": pairs.sha256, "counts": {"pairs": len(pairs)}, "groups": {},
        "differs": "substitute: docstrings of installed packages"}
    sheet = Sheet("demo", cores, full, dataset, {})
    root = Path(__file__).resolve().parents[2]
    paths = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    with tempfile.TemporaryDirectory() as folder:
        options = ["--out", folder] if full else ["--help"]
        started = time.perf_counter()
        subprocess.run([sys.executable, "-m", "jaxsim", "demo", *options], check=True, cwd=folder,
                       env={**os.environ, "PYTHONPATH": paths}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seconds = time.perf_counter() - started
    sheet.add("python -m jaxsim demo" + ("" if full else " --help"), seconds, "s", note="one run, from start to end")
    if cores >= 2:
        sheet.expect("seconds of the demo", seconds, 180.0)
    return sheet
