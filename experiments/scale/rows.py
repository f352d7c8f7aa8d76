"""The rows of the scale tables. `scale.py` runs them and writes a record of each."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from experiments.corpora.synthetic import synthetic
from experiments.kit.measure import Sheet, installed, once, race
from experiments.scale import linear as scale_linear
from experiments.scale.peers import training as torch_training
from experiments.scale.points import (
    PAPER_DIM,
    PAPER_PAIRS,
    PAPER_SECONDS,
    PAPER_WORDS,
    PRESETS,
    Sizes,
    alone,
    corpus,
    point,
    rates,
)
from experiments.speed import peers as speed_peers
from experiments.speed import rows as speed_rows
from jaxsim import losses, sparse
from jaxsim.data import docstrings
from jaxsim.evaluate import mates
from jaxsim.methods import opca, s2net, s2net_sgd
from jaxsim.sparse import host
from jaxsim.train import estimate

GAMMA, BATCH, RATE = 10.0, 256, 0.3
MEASURED = "what was measured, by the estimate"


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Exponent of the power law through points, by least squares of logarithms.

    Example:
      >>> round(slope([(1, 2), (10, 200)]), 6)
      2.0
    """
    x, y = np.log(np.asarray(points, float)).T
    return float(np.polyfit(x, y, 1)[0])


def quadratic(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """``(a, b)`` of ``y = a + b x²`` by least squares of relative errors, neither below 0."""
    import scipy.optimize

    x, y = np.asarray(points, float).T
    return tuple(scipy.optimize.nnls(np.stack([1 / y, x**2 / y], axis=1), np.ones(len(x)))[0].tolist())


def _sheet(row: str, sizes: Sizes, cores: int, full: bool, counts: dict, **config) -> Sheet:
    dataset = synthetic("pairs of documents by Zipf's law, of the shape of the paper's term vectors", **counts,
                        terms=sizes.num_terms, terms_a_document=sizes.per_doc)
    return Sheet(row, cores, full, dataset, {"gamma": GAMMA, "start": "random", **config})


def _tell(sheet: Sheet, found: list[dict], name) -> list[dict]:
    """Lines of points: the seconds beside what was predicted, and the share of the device's rate."""
    for one in found:
        sheet.add(f"an iteration, {name(one)}", one["iteration_s"], "s", ratio=one["predicted_s"] / one["iteration_s"],
                  of=MEASURED, note=f"{one['gflops']:.4g} GFLOP/s in products, {one['share']:.0%} of the "
                  f"{one['rate_gflops']:.4g} of square matrices")
    ratios = [one["predicted_s"] / one["iteration_s"] for one in found]
    sheet.expect("worst prediction, times too high or too low", max(max(ratios), 1 / min(ratios)), 1.3)
    return found


def by_documents(sizes: Sizes, preset: str, cores: int) -> tuple[Sheet, list[dict]]:
    """Seconds an iteration against pairs."""
    sheet = _sheet("s2net-documents", sizes, cores, preset != "quick", {"pairs": max(sizes.pairs)}, k=sizes.dim)
    found = _tell(sheet, [point(sizes, m, sizes.dim) for m in sizes.pairs], lambda one: f"m = {one['m']:,}")
    pairs = [(one["m"], one["iteration_s"]) for one in found]
    constant, square = quadratic(pairs)
    sheet.add("a + b m², a", constant, "s", note="what does not depend on the pairs: the L-BFGS history")
    bound = 6.0 * sizes.dim / (found[-1]["rate_gflops"] * 1e9)
    sheet.add("a + b m², b", square, "s", ratio=square / bound, of="three products at the rate of square matrices")
    last = slope(pairs[-2:])
    sheet.add("exponent of m, over the two largest", last, "1", note=f"{slope(pairs):.2f} over all")
    sheet.expect("exponent of m, over the two largest", last, 2.15)
    return sheet, found


def by_dimensions(sizes: Sizes, preset: str, cores: int) -> tuple[Sheet, list[dict]]:
    """Seconds an iteration against dimensions."""
    m = sizes.pairs_of_dims
    sheet = _sheet("s2net-dimensions", sizes, cores, preset != "quick", {"pairs": m})
    found = _tell(sheet, [point(sizes, m, k) for k in sizes.dims], lambda one: f"k = {one['k']:,}")
    if len(found) > 1:
        sheet.add("exponent of k", slope([(one["k"], one["iteration_s"]) for one in found]), "1")
    return sheet, found


def by_devices(sizes: Sizes, preset: str, cores: int) -> tuple[Sheet, list[dict]]:
    """Seconds an iteration against devices; on a CPU forced ones, which share its cores."""
    m, cpu = sizes.pairs_of_dims, jax.default_backend() == "cpu"
    sheet = _sheet("s2net-devices", sizes, cores, preset != "quick", {"pairs": m}, k=sizes.dim, forced=cpu)
    found = []
    for count in sizes.devices:
        if cpu:
            found.append(alone(preset, m, sizes.dim, devices=count))
        elif count <= jax.local_device_count():
            found.append(point(sizes, m, sizes.dim, devices=count))
    for one in found:
        sheet.add(f"an iteration, {one['devices']} devices", one["iteration_s"], "s",
                  ratio=found[0]["iteration_s"] / one["iteration_s"], of=f"as fast as with {found[0]['devices']}",
                  note=f"loss {one['loss']:.6g}" + ("; the devices share the cores of one machine" if cpu else ""))
    apart = max(abs(one["loss"] / found[0]["loss"] - 1) for one in found)
    sheet.add("losses apart, relative", apart, "1", note="sums in another order")
    return sheet, found


def paper(sizes: Sizes, preset: str, cores: int) -> tuple[Sheet, list[dict]]:
    """The paper's own size."""
    (m, k), full, cpu = sizes.paper, preset != "quick", jax.default_backend() == "cpu"
    sheet = _sheet("s2net-paper", sizes, cores, full, {"pairs": m}, k=k, block_size=sizes.block_size)
    found = [alone(preset, m, k, iterations=2) if cpu and full else point(sizes, m, k, policy=policy)
             for policy in sizes.policies]
    for one in found:
        name, seconds = one["products"], one["iteration_s"]
        against = {"ratio": seconds / PAPER_SECONDS, "of": "the paper's 48 minutes"} if full else {}
        sheet.add(f"an iteration, {name}", seconds, "s", **against,
                  note=f"{one['gflops']:.4g} GFLOP/s, {one['share']:.0%} of the {one['rate_gflops']:.4g} of square "
                  f"matrices; predicted {one['predicted_s']:.4g} s; loss {one['loss']:.6g}")
        if one["peak_gb"] is not None:
            sheet.add(f"peak memory, {name}", one["peak_gb"], "GB", ratio=one["predicted_gb"] / one["peak_gb"],
                      of=MEASURED, note="of the process" if cpu else "of the device so far")
        if cpu:
            sheet.expect("s an iteration", seconds, 150.0)
            sheet.expect("GB", one["peak_gb"] or 0.0, 6.0)
        elif name == "float32":
            sheet.expect("s an iteration in float32", seconds, 1.0)
    if not cpu:
        best = max(one["share"] for one in found if one["products"] in ("tf32", "bfloat16"))
        sheet.expect("share of the product rate in TF32 or bfloat16", best, 0.6, at_least=True)
    sheet.expect("worst prediction of an iteration, times too high or too low",
                 max(max(r, 1 / r) for r in (one["predicted_s"] / one["iteration_s"] for one in found)), 1.3)
    assert not full or (m, k) == (PAPER_PAIRS, PAPER_DIM)
    return sheet, found


def sgd(sizes: Sizes, preset: str, cores: int) -> tuple[Sheet, list[dict]]:
    """Pairs a second by batches, against pairs, beside PyTorch."""
    batch = min(BATCH, min(sizes.pairs))
    sheet = _sheet("s2net-sgd", sizes, cores, preset != "quick", {"pairs": max(sizes.pairs)}, k=sizes.dim,
                   batch_size=batch, learning_rate=RATE)
    sides = corpus(max(sizes.pairs), sizes.num_terms, sizes.per_doc)
    start = jax.tree.map(lambda a: a.astype(jnp.float32),
                         s2net.random_init(sizes.num_terms, sizes.dim, key=jax.random.key(0)))
    found = []
    for m in sizes.pairs:
        left, right = (sparse.from_scipy(side[:m]) for side in sides)
        training = estimate.Training(pairs=m, terms=sizes.num_terms, dim=sizes.dim, words=sizes.per_doc,
                                     method="s2net_sgd", batch_size=batch)
        predicted = estimate.seconds(training, rates(sizes, training))["iteration"]
        fit = s2net_sgd.fit(left, right, init=start, key=jax.random.key(0), batch_size=batch, learning_rate=RATE,
                            max_iter=sizes.epochs)
        seconds = float(np.median(np.diff([entry["seconds"] for entry in fit.history])[1:]))
        found.append({"m": m, "k": sizes.dim, "epoch_s": seconds, "predicted_s": predicted})
        sheet.add(f"jaxsim, an epoch, m = {m:,}", seconds, "s", ratio=predicted / seconds, of=MEASURED,
                  note=f"{m // batch * batch / seconds:,.0f} pairs/s")
    ratios = [one["predicted_s"] / one["epoch_s"] for one in found]
    sheet.expect("worst prediction, times too high or too low", max(max(ratios), 1 / min(ratios)), 1.3)
    exponent = slope([(one["m"], one["epoch_s"]) for one in found])
    sheet.add("exponent of m", exponent, "1")
    sheet.expect("exponent of m", exponent, 1.1)
    torch = installed("torch")
    if torch is None:
        sheet.missing("PyTorch", "torch is not installed")
        return sheet, found
    torch.set_num_threads(max(cores, 1))
    m, weights = sizes.pairs[min(2, len(sizes.pairs) - 1)], np.asarray(start.weights)
    some = [side[:m] for side in sides]
    rms = RATE * float(np.sqrt(np.mean(weights**2)))
    epoch = torch_training(torch, some, weights, gamma=GAMMA, learning_rate=rms, batch_size=batch)
    order = np.random.default_rng(0).permutation(m)
    data = s2net_sgd.Batch(*(sparse.from_scipy(side[order[:batch]]) for side in some), jnp.float32(GAMMA),
                           jnp.arange(batch, dtype=jnp.int32)[:, None])
    sheet.parity("PyTorch's first loss", epoch(order), s2net_sgd.objective(start, data), within=1e-4)
    theirs = min(once(lambda: epoch(order))[1] for _ in range(2))
    ours = next(one["epoch_s"] for one in found if one["m"] == m)
    sheet.add(f"PyTorch, an epoch, m = {m:,}", theirs, "s", ratio=theirs / ours, of="jaxsim",
              note=f"{m // batch * batch / theirs:,.0f} pairs/s; EmbeddingBag, autograd, Adam")
    return sheet, found


def encode(sizes: Sizes, preset: str, cores: int) -> tuple[Sheet, list[dict]]:
    """Documents and terms projected a second, beside the paper and EmbeddingBag."""
    csr = corpus(max(sizes.pairs), sizes.num_terms, sizes.per_doc)[0][:5_000]
    sheet = _sheet("encode", sizes, cores, preset != "quick", {"documents": csr.shape[0]})
    collection, cpu = sparse.from_scipy(csr), jax.default_backend() == "cpu"
    torch = installed("torch") if cpu else None
    forward = jax.jit(sparse.project)
    for k in (sizes.dim, sizes.project_dim):
        weights = jax.random.normal(jax.random.key(0), (sizes.num_terms, k), jnp.float32)
        contestants = {"jaxsim, by XLA": lambda weights=weights: forward(collection, weights)}
        few = np.asarray(forward(collection, weights))[:100]
        sheet.parity(f"k = {k}", few, csr[:100].astype(np.float64) @ np.asarray(weights), within=1e-5)
        ours = "jaxsim, by XLA"
        if host.compiled() is not None:  # as models encode
            ours, dense = "jaxsim", np.asarray(weights)
            contestants[ours] = lambda dense=dense: host.rows_product(csr, dense)
            sheet.parity(f"k = {k}, on the host", host.rows_product(csr[:100], dense), few, within=1e-5)
        if torch is not None:
            torch.set_num_threads(max(cores, 1))
            contestants["torch.nn.EmbeddingBag"] = speed_peers.embedding_bag(
                torch, csr, np.array(weights), np.zeros((csr.shape[0], k), np.float32))[0]
        times = race(contestants, repeats=sizes.repeats)
        for name, measured in times.items():
            against = {} if name.startswith("jaxsim") else {"ratio": times[ours].median / measured.median, "of": ours}
            sheet.add(f"{name}, k = {k:,}", csr.shape[0] / measured.median, "documents/s", **against)
        rate = csr.nnz / times[ours].median / max(cores, 1)
        if k == sizes.project_dim and preset != "quick":
            sheet.add(f"jaxsim, k = {k:,}, a core", rate, "terms/s", ratio=rate / PAPER_WORDS,
                      of="the paper's 41,000 words/s", note="distinct terms of a document; the paper counts words")
    if torch is None:
        sheet.missing("torch.nn.EmbeddingBag", "torch is not installed" if cpu else "this peer is for the CPU")
    return sheet, []


def search(sizes: Sizes, preset: str, cores: int) -> tuple[Sheet, list[dict]]:
    """Exact top-10 beside faiss."""
    few = speed_rows.QUICK._replace(candidates=sizes.candidates, k=sizes.dim, repeats=sizes.repeats)
    sheet = speed_rows.top_k(few, max(cores, 1), False)
    sheet.row, sheet.full = "search", preset != "quick"
    return sheet, []


def policies(sizes: Sizes, preset: str, cores: int) -> tuple[Sheet, list[dict]]:
    """What the precision of training does to the loss and to the MRR of held-out docstrings."""
    pairs = docstrings.load()
    pairs = pairs if sizes.mates is None else pairs.take(range(sizes.mates))
    task = mates.from_pairs(pairs, max_terms=min(10_000, sizes.num_terms))
    train, test = task.weighted("train"), task.weighted("test")
    sheet = Sheet("precision", cores, preset != "quick", {
        "name": pairs.name, "sha256": pairs.sha256, "groups": task.groups,
        "counts": {"train": train[0].num_docs, "test": test[0].num_docs},
        "differs": "substitute: docstrings of installed packages"},
        {"k": sizes.mates_dim, "gamma": GAMMA, "max_iter": sizes.mates_iterations, "start": "opca"})
    start, found = opca.fit(train, k=sizes.mates_dim, noise=1e-4).params, []
    for policy in sizes.mates_policies:
        fit = s2net.fit(*train, init=start, max_iter=sizes.mates_iterations, precision=policy)
        score = mates.scores(*mates.encode(fit.params, test))["mrr"]
        loss = float(losses.all_pairs_logistic(*(sparse.project(side, fit.params.weights) for side in train),
                                               gamma=GAMMA, precision="float32"))
        found.append({"products": policy, "test_mrr": score, "train_loss": loss, "steps": fit.steps})
        exact = found[0]
        sheet.add(f"test MRR, trained in {policy}", score, "MRR", ratio=score / exact["test_mrr"], of="float32",
                  note=f"loss {loss:.6g} in float32 after {fit.steps} iterations")
        sheet.expect(f"MRR of {policy} less that of float32, absolute", abs(score - exact["test_mrr"]), 0.005)
    return sheet, found


ROWS = {"s2net-documents": by_documents, "s2net-dimensions": by_dimensions, "s2net-devices": by_devices,
        "s2net-paper": paper, "s2net-sgd": sgd, "encode": encode, "search": search, "precision": policies,
        **{name: functools.partial(scale_linear.row, name) for name in scale_linear.METHODS}}

__all__ = ["PRESETS", "ROWS", "quadratic", "slope"]
