"""The rows of the speed tables: what is measured, on what, against what. `speed.py` runs them in a pinned process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from experiments.corpora.synthetic import documents, synthetic
from experiments.kit.measure import Sheet, installed, once, race
from experiments.speed import peers as speed_peers
from experiments.speed.disk import disk
from experiments.speed.features import exact_figures, itml_cycle, tweak_evaluation, vl_ext_evaluation
from experiments.speed.fits import demo, lbfgs, lsa, opca
from experiments.speed.language import ngrams, rnn
from experiments.speed.links import ssi
from experiments.speed.texts import texts
from experiments.speed.thesaurus import pilsa
from experiments.speed.topics import topics
from experiments.speed.weights import weights
from jaxsim import losses, sparse
from jaxsim.evaluate import retrieval
from jaxsim.sparse import Vectors
from jaxsim.sparse import host as host_products

GAMMA = 10.0
F32 = jnp.float32


class Sizes(NamedTuple):
    """Sizes of a preset; the expectations are for those of `FULL`."""

    side: int = 4096
    docs: int = 10_000
    per_doc: int = 96
    num_terms: int = 20_000
    k: int = 300
    widths: tuple[int, ...] = (100, 300, 1_000)
    pairs: int = 5_000
    many_pairs: int = 20_000
    iterations: int = 20
    candidates: int = 20_000
    corpus_terms: int = 10_000
    repeats: int = 7
    featured: int = 6_576
    preferences: int = 40_000
    related: int = 1_700
    relations: int = 30_000
    collection: int = 2_857


FULL = Sizes()
QUICK = Sizes(side=256, docs=400, per_doc=24, num_terms=1_000, k=20, widths=(20, 40), pairs=300, many_pairs=700,
              iterations=12, candidates=600, corpus_terms=800, repeats=3, featured=200, preferences=300, related=50,
              relations=200, collection=150)


def _normal(seed: int, *shape: int) -> jax.Array:
    return jax.random.normal(jax.random.key(seed), shape, F32)


def _torch(cores: int):
    torch = installed("torch")
    if torch is not None:
        torch.set_num_threads(cores)
    return torch


def matmul(sizes: Sizes, cores: int, full: bool) -> Sheet:
    """The machine's float32 matrix product rate, square and in the shape of the loss."""
    sheet = Sheet("matmul", cores, full, synthetic("normal matrices", side=sizes.side, pairs=sizes.pairs), {})
    torch = _torch(cores)
    product = _product
    for name, rows, inner, columns in (
        (f"{sizes.side} x {sizes.side} x {sizes.side}", sizes.side, sizes.side, sizes.side),
        (f"{sizes.pairs} x {sizes.k} x {sizes.pairs}", sizes.pairs, sizes.k, sizes.pairs),
    ):
        a, b = _normal(0, rows, inner), _normal(1, inner, columns)
        host = np.asarray(a), np.asarray(b)
        some = slice(0, 64)
        sheet.parity(name, product(a, b)[some], host[0][some].astype(np.float64) @ host[1], within=1e-5)
        contestants = {"XLA": lambda a=a, b=b: product(a, b), "NumPy": lambda host=host: host[0] @ host[1]}
        if torch is not None:
            tensors = [torch.tensor(x) for x in host]
            contestants["PyTorch"] = lambda tensors=tensors: tensors[0] @ tensors[1]
        times = race(contestants, repeats=sizes.repeats)
        work = 2e-9 * rows * inner * columns
        for peer, measured in times.items():
            ratio, of = (None, None) if peer == "XLA" else (times["XLA"].median / measured.median, "XLA's rate")
            sheet.add(f"{peer}, {name}", work / measured.median, "GFLOP/s", ratio=ratio, of=of, note=measured.told())
    if torch is None:
        sheet.missing("PyTorch", "torch is not installed")
    return sheet


def project(sizes: Sizes, cores: int, full: bool) -> Sheet:
    """Sparse documents times a dense matrix, and the gradient in that matrix."""
    (csr,) = documents(sizes.docs, sizes.num_terms, sizes.per_doc, seed=0)
    sheet = Sheet("project", cores, full, synthetic("documents by Zipf's law", docs=sizes.docs, terms=sizes.num_terms,
                                                    terms_a_document=sizes.per_doc), {"k": sizes.k})
    collection = sparse.from_scipy(csr)
    weights, grad = _normal(0, sizes.num_terms, sizes.k), _normal(1, sizes.docs, sizes.k)
    forward = jax.jit(sparse.project)
    backward = jax.jit(lambda documents, a, g: jax.vjp(lambda a: sparse.project(documents, a), a)[1](g)[0])
    host, host_grad, transpose = np.asarray(weights), np.asarray(grad), csr.T.tocsr()
    wide = csr.astype(np.float64)
    sheet.parity("forward", forward(collection, weights), wide @ host, within=1e-5)
    sheet.parity("gradient", backward(collection, weights, grad), wide.T @ host_grad, within=1e-5)
    ours = {"forward": lambda: forward(collection, weights), "gradient": lambda: backward(collection, weights, grad)}
    peers = {"SciPy CSR": {"forward": lambda: csr @ host, "gradient": lambda: transpose @ host_grad}}
    if host_products.compiled() is not None:
        peers["jaxsim on the host"] = {"forward": lambda: host_products.rows_product(csr, host)}
        sheet.parity("forward on the host", host_products.rows_product(csr, host), wide @ host, within=1e-5)
    torch = _torch(cores)
    if torch is not None:
        pair = speed_peers.embedding_bag(torch, csr, host, host_grad)
        peers["torch.nn.EmbeddingBag"] = dict(zip(ours, pair, strict=True))
        sheet.parity("EmbeddingBag forward", pair[0](), wide @ host, within=1e-5)
    for what in ours:
        with_it = {peer: both[what] for peer, both in peers.items() if what in both}
        times = race({"jaxsim": ours[what], **with_it}, repeats=sizes.repeats)
        sheet.time(f"jaxsim, {what}", times["jaxsim"])
        for peer in with_it:
            of = None if peer.startswith("jaxsim") else "jaxsim"
            sheet.time(f"{peer}, {what}", times[peer], of and times["jaxsim"], of)
    if torch is None:
        sheet.missing("torch.nn.EmbeddingBag", "torch is not installed")
    elif host_products.compiled() is not None:
        for k in sizes.widths:
            _beside_bag(sheet, csr, np.asarray(_normal(0, sizes.num_terms, k)), torch, sizes.repeats)
    return sheet


def _beside_bag(sheet: Sheet, csr: scipy.sparse.csr_matrix, host: np.ndarray, torch, repeats: int) -> None:
    """The product on the host and EmbeddingBag's, at one dimension."""
    k = host.shape[1]
    times = race({"ours": lambda: host_products.rows_product(csr, host),
                  "theirs": speed_peers.bag(torch, csr, host, torch.float32)}, repeats=repeats)
    sheet.time(f"jaxsim on the host, k = {k}", times["ours"])
    sheet.time(f"torch.nn.EmbeddingBag, k = {k}", times["theirs"], times["ours"], "jaxsim on the host")
    sheet.expect(f"encoding on the host against EmbeddingBag, k = {k}", times["ours"].median / times["theirs"].median,
                 1.3)


_pairs_value_and_grad = jax.jit(
    jax.value_and_grad(lambda left, right: losses.all_pairs_logistic(left, right, gamma=GAMMA), argnums=(0, 1))
)
_pairs_in_bfloat16 = jax.jit(
    jax.value_and_grad(lambda left, right: losses.all_pairs_logistic(left, right, gamma=GAMMA, precision="bfloat16"),
                       argnums=(0, 1))
)


_product = jax.jit(jnp.matmul)


@jax.jit
def _three_products(left, right):
    scores = left @ right.T
    return scores @ right, scores.T @ left


def all_pairs(sizes: Sizes, cores: int, full: bool) -> Sheet:
    """Value and gradient of the all-pairs loss in both directions, and its memory."""
    sheet = Sheet("all-pairs", cores, full, synthetic("normal embeddings", pairs=sizes.pairs, more=sizes.many_pairs),
                  {"k": sizes.k, "gamma": GAMMA})
    few = min(sizes.pairs, 700)
    p, q = _normal(0, few, sizes.k), _normal(1, few, sizes.k)
    value, grads = _pairs_value_and_grad(p, q)
    wide = [np.asarray(side, np.float64) for side in (p, q)]
    reference = speed_peers.all_pairs_numpy(*wide, GAMMA, both=True)
    for what, ours, right in zip(("value", "gradient left", "gradient right"), (value, *grads), reference, strict=True):
        sheet.parity(what, ours, right, within=1e-4)
    torch = _torch(cores)
    for m in (sizes.pairs, sizes.many_pairs):
        p, q = _normal(0, m, sizes.k), _normal(1, m, sizes.k)
        host = np.asarray(p), np.asarray(q)
        contestants = {
            "jaxsim, both directions": lambda p=p, q=q: _pairs_value_and_grad(p, q),
            "three matrix products": lambda p=p, q=q: _three_products(p, q),
            "NumPy row blocks, one direction": lambda host=host: speed_peers.all_pairs_numpy(*host, GAMMA),
        }
        if m == sizes.pairs:
            contestants["jaxsim, products in bfloat16"] = lambda p=p, q=q: _pairs_in_bfloat16(p, q)
        else:
            square = _normal(0, sizes.side, sizes.side)
            contestants[f"square product, side {sizes.side:,}"] = lambda square=square: _product(square, square)
        if torch is not None and m == sizes.pairs:
            contestants["PyTorch autograd, materialised, both directions"] = speed_peers.all_pairs_torch(
                torch, *host, GAMMA)
        times = race(contestants, repeats=sizes.repeats, budget=60.0)
        limit = times["three matrix products"]
        limits = {(sizes.pairs, 1): 1.0, (sizes.many_pairs, 1): 1.4, (m, 2): 1.6}
        for name, measured in times.items():
            ratio = sheet.time(f"{name}, m = {m:,}", measured, *(() if measured is limit else (
                limit, "the three matrix products")))
            if name == "jaxsim, both directions":
                sheet.expect(f"m = {m:,} against three products", ratio, limits[m, cores])
        if m == sizes.many_pairs:
            square, ours = times[f"square product, side {sizes.side:,}"], times["jaxsim, both directions"]
            share = (6 * m**2 * sizes.k / ours.median) / (2 * sizes.side**3 / square.median)
            sheet.expect(f"m = {m:,}, share of the square product's rate", share, 0.9, at_least=True)
        _loss_memory(sheet, p, q, resident=full or m == sizes.pairs)
    if torch is None:
        sheet.missing("PyTorch autograd", "torch is not installed")
    else:
        sheet.missing(f"PyTorch autograd, m = {sizes.many_pairs:,}", "it holds several matrices of all scores")
    return sheet


def _loss_memory(sheet: Sheet, p, q, *, resident: bool) -> None:
    """Memory of the compiled loss, and of a process that evaluates it."""
    (m, k), temporary = p.shape, _pairs_value_and_grad.lower(p, q).compile().memory_analysis().temp_size_in_bytes
    sheet.add(f"temporary memory of the program, m = {m:,}", temporary / 1e9, "GB", ratio=temporary / (4 * p.size * 2),
              of="the embeddings", note=f"a matrix of all scores is {4e-9 * m * m:.2g} GB")
    peak = _resident(m, k) if resident else None
    if peak is not None:
        sheet.add(f"peak resident memory above embeddings and program, m = {m:,}", peak, "GB")
        sheet.expect(f"GB above the embeddings, m = {m:,}", peak, 1.0)
    elif resident:
        sheet.missing(f"peak resident memory, m = {m:,}", "this system has no /proc/self/status")


def _resident(m: int, k: int) -> float | None:
    """Peak resident memory of one evaluation in a process of its own, in GB above what stood before it."""
    if not Path("/proc/self/status").exists():
        return None
    paths = os.pathsep.join([str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-c",
                           f"from experiments.speed import rows; rows.print_resident({m}, {k})"],
                          env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def print_resident(m: int, k: int) -> None:
    """Runs in the process that `_resident` starts."""
    p, q = jax.block_until_ready((_normal(0, m, k), _normal(1, m, k)))
    compiled = _pairs_value_and_grad.lower(p, q).compile()
    before = _status("VmRSS")
    jax.block_until_ready(compiled(p, q))
    print(max(0.0, _status("VmHWM") - before))


def _status(name: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024 / 1e9
    raise OSError(f"/proc/self/status: expected a line {name}, got none")


def top_k(sizes: Sizes, cores: int, full: bool) -> Sheet:
    """Exact top-10 by inner product of unit vectors."""
    n = sizes.candidates
    sheet = Sheet("top-k", cores, full, synthetic("normal embeddings of length one", queries=n, candidates=n),
                  {"k": sizes.k, "best": 10})
    sides = [np.array(_normal(seed, n, sizes.k)) for seed in (0, 1)]
    sides = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides]
    queries, candidates = (Vectors(jnp.asarray(side)) for side in sides)

    def ours():
        return retrieval.top_k(queries, candidates, k=10, similarity=retrieval.dot)

    (scores, indices), first = once(ours)
    few = min(n, 500)
    exact = sides[0][:few].astype(np.float64) @ sides[1].astype(np.float64).T
    sheet.parity("scores", scores[:few], -np.sort(-exact, axis=1)[:, :10], within=1e-5)
    sheet.parity("scores of the indices", np.take_along_axis(exact, indices[:few], axis=1), scores[:few], within=1e-5)
    contestants = {"jaxsim": ours, "matrix product alone": lambda: _scores(queries.dense, candidates.dense)}
    faiss = installed("faiss")
    if faiss is not None:
        faiss.omp_set_num_threads(cores)
        index = faiss.IndexFlatIP(sizes.k)
        index.add(sides[1])
        theirs = index.search(sides[0], 10)
        _same_answers((scores, indices), theirs)
        sheet.add("answers that differ from faiss (ties)", np.mean(indices != theirs[1]), "share")
        contestants["faiss IndexFlatIP"] = lambda: index.search(sides[0], 10)
    times = race(contestants, repeats=sizes.repeats)
    sheet.time("jaxsim", times["jaxsim"], note=f"first call, with compilation, {first:.3g} s")
    sheet.time("matrix product alone", times["matrix product alone"], times["jaxsim"], "jaxsim")
    if faiss is None:
        sheet.missing("faiss IndexFlatIP", "faiss is not installed")
    else:
        sheet.time("faiss IndexFlatIP", times["faiss IndexFlatIP"], times["jaxsim"], "jaxsim")
    return sheet


@jax.jit
def _scores(left, right):
    # In blocks as the search does, so that the scores are not held; their sums keep the products from being dropped.
    size = min(500, left.shape[0])
    blocks = left[: left.shape[0] // size * size].reshape(-1, size, left.shape[1])
    return jax.lax.map(lambda block: jnp.sum(block @ right.T, axis=1), blocks)


def _same_answers(ours, theirs) -> None:
    apart = np.abs(ours[0] - theirs[0])
    other = ours[1] != theirs[1]
    if apart.max() > 1e-5 or other.mean() > 1e-3:
        raise ArithmeticError(f"top-k: expected the answers of faiss up to ties, got scores {apart.max():g} apart and "
                              f"{other.mean():.2%} other candidates")


ROWS = {"matmul": matmul, "project": project, "texts": texts, "all-pairs": all_pairs, "lbfgs": lbfgs,
        "top-k": top_k, "lsa": lsa, "opca": opca, "ssi": ssi, "tweak": tweak_evaluation, "vl-ext": vl_ext_evaluation,
        "itml": itml_cycle, "all-pairs-figures": exact_figures, "topics": topics, "pilsa": pilsa, "demo": demo,
        "rnn": rnn, "ngram": ngrams, "weights": weights, "disk": disk}
