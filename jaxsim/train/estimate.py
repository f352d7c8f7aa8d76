"""What a training will cost before it is started: its memory, and its seconds at rates measured on the spot.

Memory is counted from the arrays that exist at the peak of an iteration; a whole process adds what was measured of its
libraries and compiled programs. Seconds are counts of work (products, scores,
stored terms, bytes) divided by how much of each this device does in a second, measured on small pieces of the same
shapes. What neither covers (the lengths of line searches, other programs on the machine) makes the estimate differ from
the real time.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from jaxsim import checks, linalg, optim, sparse
from jaxsim.linalg import row_space
from jaxsim.losses import tiles
from jaxsim.methods import s2net_sgd
from jaxsim.methods.projections import Projection
from jaxsim.optim import lbfgs
from jaxsim.sparse.precision import checked
from jaxsim.text import subwords
from jaxsim.train.s2net import START_PAIRS
from jaxsim.train.settings import FEW

__all__ = ["GRAMS_A_WORD", "METHODS", "Rates", "Training", "block_seconds", "grams", "measure", "memory", "process",
           "seconds"]  # fmt: skip

METHODS = ("s2net", "s2net_sgd")
GRAMS_A_WORD = 9
"""Distinct n-grams of a text for each of its distinct words, as docstrings have them."""
_GRAMS_A_TERM = 2  # of a vocabulary
_UNKNOWN = 0.26  # n-grams of words outside the vocabulary in a text, for each known word
_SPREAD = 6  # n-grams in words, for each word and n-gram of the vocabulary
_MOST = 2**31 - 2  # of pairs and of terms: documents keep 32-bit numbers of both
_PROBED_PAIRS = 65_536  # columns of the probe of the loss, at most
_PROBED_SCORES = 4_000_000  # scores that the probe takes, about
_PROBED_ROWS = 1_024  # of them, at least
_PROBED_TIMES = 100  # how often the same few are taken, at most: a sweep of any size takes some microseconds
_THIN = 8
_PROBED_WEIGHTS = 50_000_000  # numbers of the projection that are probed, at most: more than any cache holds
_PROBED_HISTORY = 500_000_000  # numbers, at most
_PROBED_DIM = 4_096  # at most: of more dimensions, products are as fast as of these
_PROBED_VECTORS = 100_000_000  # numbers of the vectors that the probe of the loss compares, at most
_PROBED_DOCS = 4_096
_PROBED_WORDS = 4_000_000  # of these documents, at most
_FEW = 8  # times fewer documents in the second probe, which tells what all have in common from what each takes
_LARGER = 8  # times, on an accelerator, which hardly notices so little
_HISTORY_PASSES, _PASSES = 3, 8  # of L-BFGS over its history, and over single vectors, to choose a direction
_STEPS = 4  # of Adam that are timed together
_FLOAT = 4  # bytes of float32 and of int32
# Bytes of a process that trains on a CPU, beside arrays: measured on Linux with JAX 0.10 and two cores.
_LOADED = 210_000_000  # Python with JAX, SciPy and this library
_START_PROGRAMS = 290_000_000  # compiled for OPCA and for scores of held-out pairs, with what compilers leave behind
_PROGRAMS = {"s2net": 550_000_000, "s2net_sgd": 380_000_000}  # of a whole training, those of its start included
_WORD = 120  # of a distinct word of a text, while its texts are read
# Of OPCA: matrices as large as its Cholesky factor and its Krylov basis, or as those that it solves densely, and of
# the documents' span.
_FACTORS, _BASES, _DENSE, _SPANS = 3, 6, 3, 2


@dataclasses.dataclass(frozen=True)
class Training:
    """The sizes of a training of S2Net.

    Attributes:
      pairs: ``m``.
      terms: ``V``, size of the vocabulary, n-grams included.
      dim: ``k``.
      words: distinct known words a text, mean; both sides have ``2 * pairs * (words + ngrams)`` weights.
      method: name in `METHODS`: all negatives by L-BFGS, or those of a batch by Adam.
      matrices: 1 for both sides, or 2, one a side.
      max_iter: iterations, or epochs.
      batch_size: pairs a batch of ``"s2net_sgd"``.
      devices: that share the documents of ``"s2net"``.
      shard_terms: whether they share the projection and what is of its size too, as for `s2net.fit`.
      history_size: pairs of vectors that L-BFGS keeps.
      precision: of the loss's products, as for `precision.matmul`.
      block_size: rows a tile of the loss, or rows and columns, as for `s2net.fit`.
      ngrams: distinct known n-grams a text, mean.

    Example:
      >>> Training(pairs=1000, terms=5000, dim=100, words=40).nnz
      40000
    """

    pairs: int
    terms: int
    dim: int
    words: float
    method: str = "s2net"
    matrices: int = 1
    max_iter: int = 100
    batch_size: int = 256
    devices: int = 1
    shard_terms: bool = False
    history_size: int = 10
    precision: str | None = None
    block_size: int | tuple[int, int] | None = None
    ngrams: float = 0.0

    def __post_init__(self) -> None:
        """Checks the sizes.

        Raises:
          ValueError: for an unknown method, a size that is no positive whole number, or one that no training can have.
        """
        checks.expect(self.method in METHODS, "method", f"one of {', '.join(METHODS)}", self.method)
        for name in ("pairs", "terms", "dim", "max_iter", "batch_size", "devices", "history_size"):
            checks.positive_int(getattr(self, name), name)
        checks.expect(self.matrices in (1, 2), "matrices", "1 or 2", self.matrices)
        for name in ("pairs", "terms"):
            checks.expect(getattr(self, name) <= _MOST, name, f"at most {_MOST:,} (numbers of 32 bits)",
                          f"{getattr(self, name):,}")  # fmt: skip
        checks.expect(0 < self.words <= self.terms, "words", f"a number above 0, at most {self.terms} (terms)",
                      self.words)
        checks.expect(0 <= self.ngrams <= self.terms - self.words, "ngrams", "a number of at least 0, with the words "
                      f"at most {self.terms} (terms)", self.ngrams)
        checks.expect(self.method == "s2net" or self.devices == 1, "devices", f"1, with {self.method}", self.devices)
        checks.expect(self.devices <= self.pairs, "devices", f"at most {self.pairs} (pairs to train on)", self.devices)
        checked(self.precision)
        tiles.tile(self.block_size, self.pairs)

    @property
    def nnz(self) -> int:
        """Weights of one side."""
        return round(self.pairs * self.slots)

    @property
    def slots(self) -> float:
        """Weights of a text with its n-grams, mean."""
        return self.words + self.ngrams

    @property
    def multiplied(self) -> float:
        """Weights of a text in the products with the projection: on all negatives, words become n-grams after them."""
        return self.slots if self.method != "s2net" or not self.ngrams else (1 + _UNKNOWN) * self.words

    @property
    def spread(self) -> int:
        """Weights of the n-grams in words, where these are multiplied once for all texts."""
        return _SPREAD * self.terms if self.method == "s2net" and self.ngrams else 0

    @property
    def parameters(self) -> int:
        """Numbers of the projection, or of both."""
        return self.matrices * self.terms * self.dim


def grams(pairs: int, terms: int) -> int:
    """N-grams that about as many words have, where pairs are so few that ``jaxsim train`` learns with them by default.

    Args:
      pairs: to train on.
      terms: words of the vocabulary.

    Returns:
      Their number; 0 with more pairs.

    Example:
      >>> grams(5_000, 15_000), grams(50_000, 15_000)
      (30000, 0)
    """
    return min(_GRAMS_A_TERM * terms, subwords.MOST) if pairs < FEW else 0


class Rates(NamedTuple):
    """The measured rates of a device.

    Attributes:
      product: operations a second of the loss's matrix products (two a multiplication with its addition).
      score: seconds a score that is compared with its row and its column, but for the products.
      weight: seconds a weight of a document and a dimension, in the products with the projection and back.
      gradient: seconds a number of the projection, to read it and to write its gradient for both sides.
      byte: seconds a byte that is read or written in a pass over arrays of the projection's size.
      update: seconds a number of the projection in a step of Adam, its gradient included; 0 for L-BFGS.
      batch: seconds on the host a pair of a batch.
    """

    product: float
    score: float
    weight: float
    gradient: float
    byte: float
    update: float
    batch: float


def memory(training: Training) -> dict[str, int]:
    """Bytes held on one device at the peak of a training.

    Args:
      training: its sizes.

    Returns:
      ``documents``, ``projection`` (with gradients, direction, start, or Adam's moments), ``history``, ``loss``
      (embeddings, their gradients and a block of scores) and their sum, ``total``. What else a process holds is in
      `process`.

    Example:
      >>> found = memory(Training(pairs=43_380, terms=20_000, dim=1_000, words=96, max_iter=80))
      >>> found["history"], 4e9 < found["total"] < 5e9
      (1600000000, True)
    """
    t = training
    projection = _FLOAT * t.parameters
    if t.method == "s2net_sgd":
        rows = min(t.batch_size, t.pairs)
        weights = round(rows * t.slots)
        result = {"documents": 2 * _FLOAT * (6 * t.nnz + t.terms + t.pairs),  # on the device, and rows on the host
                  "projection": 6 * projection,  # start, current, two moments, gradient, update
                  "history": 0, "loss": _loss_bytes(rows, t.dim, weights, 1, t.block_size)}
    else:
        m, held = -(-t.pairs // t.devices), t.devices if t.shard_terms else 1
        projection = _FLOAT * t.matrices * -(-t.terms // held) * t.dim
        # A device has all terms of its own documents, or its own terms of all documents.
        pointers = -(-t.terms // held) + (t.pairs if t.shard_terms else m)
        result = {
            # With n-grams: as the start learns from them, and as the iterations multiply them.
            "documents": 2 * _FLOAT * (4 * -(-t.nnz // t.devices) + pointers) + 4 * _FLOAT * (
                2 * round(t.pairs * t.multiplied) * (t.spread > 0) + t.spread),
            # Start, current and next, their gradients, direction, and one for the search.
            "projection": 7 * projection, "history": 2 * t.history_size * projection,
            "loss": _loss_bytes(m, t.dim, -(-t.nnz // t.devices), t.devices, t.block_size),
        }
    return {**result, "total": sum(result.values())}


def process(training: Training) -> dict[str, int]:
    """Bytes of a whole process at the peak of ``jaxsim train`` on a CPU, its closed-form start included.

    Arrays are counted. What Python and compiled programs take was measured on one machine; on others it may be some
    hundred MB more or less, which matters in small trainings alone.

    Args:
      training: its sizes, on one device.

    Returns:
      ``loaded`` (Python and libraries), ``texts`` (words of the pairs while they are read), ``start`` (arrays of OPCA),
      ``training`` (those of `memory`), ``programs`` (compiled), and two
      peaks: ``peak`` of the whole training, their sum, and ``opca_peak`` of one by OPCA alone. What the start frees is
      in the first too: of arrays below 32 MB the system gets little back.

    Example:
      >>> found = process(Training(pairs=3_000, terms=11_000, dim=100, words=72))
      >>> 0.6e9 < found["opca_peak"] < found["peak"] < 1.5e9
      True
    """
    t = training
    result = {"loaded": _LOADED, "texts": round(2 * t.pairs * t.words) * _WORD, "start": _start_bytes(t),
              "training": memory(t)["total"], "programs": _PROGRAMS[t.method]}  # fmt: skip
    alone = result["loaded"] + result["texts"] + result["start"] + _START_PROGRAMS
    return {**result, "peak": sum(result.values()), "opca_peak": alone}


def _start_bytes(t: Training) -> int:
    """Arrays of OPCA, by the algorithm that it takes: dense, or a factor of the smaller side and a Krylov basis."""
    m = min(t.pairs, START_PAIRS)
    slots, size, span = round(2 * m * t.slots), t.terms, 0
    if t.ngrams:  # products with words, and of words with their n-grams
        slots = round(2 * m * (1 + _UNKNOWN) * t.words) + _SPREAD * t.terms
    if t.dim < 2 * m <= row_space.most_rows(t.terms):  # in the span of the documents
        size, span = 2 * m, _SPANS * (2 * m) ** 2
    factor, shape = min(m, size), linalg.basis_shape(t.dim)
    passes = 2 * linalg.cost.sparse(slots)
    solve = linalg.cost.SOLVE / linalg.cost.BLOCKED * 2.0 * factor**2 + passes
    made = None  # with n-grams documents are not multiplied out
    if span:
        made = 2 * 2.0 * size**3 * linalg.cost.GRAM / linalg.cost.SQUARE
    elif not t.ngrams:
        made = 2 * 2.0 * m * (2 * t.slots) ** 2  # of sums and of differences of both sides
    dense = math.prod(shape) >= size or linalg.cost.cheapest(size, t.dim, shape, 2 * passes, solve, made) == "dense"
    arrays = _DENSE * size**2 if dense else _FACTORS * factor**2 + _BASES * size * math.prod(shape)
    return _FLOAT * (span + arrays)


def _loss_bytes(m: int, dim: int, nnz: int, devices: int, block_size: int | tuple[int, int] | None) -> int:
    """What value and gradient of the loss hold beside their arguments: as XLA's own account says on a CPU, about.

    Two embeddings, two unit vectors, three gradients and a copy; over a mesh also what visits.
    """
    rows, columns = (-(-m // -(-m // size)) for size in tiles.tile(block_size, m))
    embeddings = 8 + (m % rows != 0) + (m % columns != 0) + (0 if devices == 1 else 5)
    return _FLOAT * (embeddings * m * dim + 4 * rows * columns + 3 * nnz)


def seconds(training: Training, rates: Rates) -> dict[str, float]:
    """Seconds of an iteration (or epoch) and of a training.

    Args:
      training: its sizes.
      rates: what `measure` found, of these sizes.

    Returns:
      ``products``, ``scores``, ``documents`` (their products with the projection), ``bookkeeping`` (L-BFGS or Adam, and
      the cutting of batches) and their sum, ``iteration``; ``total`` of ``max_iter`` of them. With several devices:
      as if each was as fast as the one measured. Compilation (some seconds) and dev scores come on top.

    Example:
      >>> rates = Rates(product=6e9, score=1e-9, weight=0, gradient=0, byte=0, update=0, batch=0)
      >>> found = seconds(Training(pairs=10_000, terms=100, dim=10, words=5, max_iter=3), rates)
      >>> round(found["iteration"], 2), round(found["total"], 1)
      (1.1, 4.4)
    """
    t = training
    if t.method == "s2net_sgd":
        rows = min(t.batch_size, t.pairs)
        times, whole = max(1, t.pairs // rows), 0.0
        bookkeeping = t.parameters * rates.update + rows * rates.batch  # a step of Adam has its gradient
        gradient = 0.0
    else:
        rows, times, whole = t.pairs, 1, 1.0
        # The direction; then the history is written, and some steps along the direction are tried.
        passes = _HISTORY_PASSES * 2 * t.history_size + 2 * _PASSES
        held = t.devices if t.shard_terms else 1
        bookkeeping = _FLOAT * t.parameters / held * passes * rates.byte
        gradient = t.terms * t.dim / held * rates.gradient  # of both sides, into one matrix or into two
    result = {
        "products": times * 6.0 * rows**2 * t.dim / rates.product / t.devices,
        "scores": times * rates.score * rows**2 / t.devices,
        # Forward and back on two sides, and some passes over the embeddings; the gradient, on every device.
        "documents": times * (((4.0 * rows * t.multiplied + 2.0 * t.spread) * t.dim * rates.weight
                               + 24 * _FLOAT * rows * t.dim * rates.byte) / t.devices + gradient),
        "bookkeeping": times * bookkeeping,
    }
    iteration = sum(result.values())
    # L-BFGS evaluates once before its first iteration.
    return {**result, "iteration": iteration, "total": (t.max_iter + whole) * iteration}


def _typical(function: Callable, *arguments, repeats: int = 3) -> float:
    """Median seconds of several calls, compiled before."""
    jax.block_until_ready(function(*arguments))
    result = []
    for _ in range(repeats):
        begun = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        result.append(time.perf_counter() - begun)
    return float(np.median(result))


def block_seconds(pairs: int, dim: int, *, precision: str | None = None,
                  block_size: int | tuple[int, int] | None = None) -> float:
    """Seconds of a block of the loss with its gradients: the rows of a tile against ``[pairs, k]`` columns.

    The sums over the columns are as large as in the training, so that cache misses cost as much here.

    Args:
      pairs: ``m``.
      dim: ``k``.
      precision: as for `precision.matmul`.
      block_size: as for `tiles.tile`.

    Returns:
      Seconds, in the median of three runs of some blocks.

    Example:
      >>> block_seconds(64, 8) > 0
      True
    """
    rows, across = tiles.tile(block_size, pairs)
    rows = min(rows, pairs)
    blocks = min(max(-(-_PROBED_ROWS // rows), int(_PROBED_SCORES / (rows * pairs))), max(1, pairs // rows))
    vectors = jnp.full((pairs, dim), 1 / np.sqrt(dim), jnp.float32)
    columns = tiles.Side(vectors, jnp.ones(pairs, jnp.float32), jnp.arange(pairs, dtype=jnp.int32), None)
    # A few scores are too soon done to be timed: the same rows several times, one after the other.
    times = min(max(1, int(_PROBED_SCORES / (blocks * rows * pairs))), _PROBED_TIMES)
    some = jax.tree.map(lambda leaf: jnp.repeat(leaf[None, : blocks * rows], times, axis=0), columns)

    @jax.jit
    def run(some, all_):
        def swept(one):
            return tiles.sweep(one, all_, 1.0, (rows, across), with_grad=True, precision=precision)

        return jax.lax.map(swept, some)

    return _typical(run, some, columns) / (times * blocks)


def _scale() -> int:
    return 1 if jax.default_backend() == "cpu" else _LARGER


def _probe(training: Training) -> tuple[scipy.sparse.csr_matrix, int]:
    """Documents of the training's length over its vocabulary, and as many dimensions as the probe may hold."""
    rng = np.random.default_rng(0)
    words = max(1, round(training.multiplied))
    docs = max(1, min(_PROBED_DOCS * _scale(), training.pairs, _PROBED_WORDS // words))
    # Terms by Zipf's law, as texts have them: whether weights are found in a cache depends on it. `from_scipy` sums
    # what is drawn twice.
    drawn = 50 * ((training.terms + 50) / 50) ** rng.random((docs, words)) - 50
    rows = scipy.sparse.csr_matrix(
        (np.ones(docs * words, np.float32), np.clip(drawn, 0, training.terms - 1).astype(np.int64).ravel(),
         np.arange(docs + 1) * words), shape=(docs, training.terms))
    return rows, max(1, min(training.dim, _PROBED_WEIGHTS * _scale() // training.terms))


def _documents_seconds(rows: scipy.sparse.csr_matrix, dim: int) -> float:
    """Of projecting documents, twice as two sides are, and of the gradient of the projection."""
    documents, weights = sparse.from_scipy(rows), jnp.ones((rows.shape[1], dim), jnp.float32)
    embeddings = jnp.ones((documents.num_docs, dim), jnp.float32)

    def both(weights, sides):
        return sum(jnp.vdot(sparse.project(side, weights), embeddings) for side in sides)

    other = sparse.from_scipy(rows[::-1])  # so that nothing is computed once for both
    return _typical(jax.jit(jax.value_and_grad(both)), weights, (documents, other))


def _update_seconds(num_terms: int, dim: int) -> float:
    """Of a step of Adam on a batch of two short documents, a number of the projection."""
    short = sparse.from_scipy(scipy.sparse.csr_matrix(np.eye(4, num_terms, dtype=np.float32)))
    batch = s2net_sgd.Batch(short, None, jnp.float32(1), jnp.arange(2, dtype=jnp.int32)[:, None])
    start = Projection(jnp.ones((num_terms, dim), jnp.float32))
    fit = optim.minimize_sgd(s2net_sgd.objective, start, lambda key: [batch] * _STEPS, key=jax.random.key(0),
                             optimizer=optim.adam(1e-3, 4 * _STEPS), max_iter=4)
    marks = [entry["seconds"] for entry in fit.history]
    return float(np.median(np.diff(marks))) / _STEPS / (num_terms * dim)


def _byte_seconds(size: int, history_size: int) -> float:
    """Of what L-BFGS reads and writes to choose a direction: its history is larger than a cache, if one vector is not.

    It is as large as the training's, which needs more memory than this, or 2 GB of it; one pair stands for Adam's.
    """
    size = min(size, _PROBED_HISTORY // (2 * history_size))
    history, vector = jnp.ones((2 * history_size, size), jnp.float32), jnp.ones(size, jnp.float32)
    products = jnp.eye(history_size)
    given = history, products, products, jnp.int32(0), 0 * vector, 0 * vector, vector, vector
    seconds = _typical(lbfgs.direction, *given)
    return seconds / ((_HISTORY_PASSES * 2 * history_size + _PASSES) * vector.nbytes)


def measure(training: Training) -> Rates:
    """Measures the rates that a training will go at, on the default device; a few seconds.

    Above a size that fits a laptop's memory, rates no longer depend on the size: nothing larger is measured.

    Args:
      training: its sizes.

    Returns:
      `Rates`.

    Example:
      >>> measure(Training(pairs=100, terms=200, dim=8, words=10)).product > 0
      True
    """
    terms_, dim = min(training.terms, _PROBED_WEIGHTS), min(training.dim, _PROBED_DIM)
    training = dataclasses.replace(training, terms=terms_, dim=dim, words=min(training.multiplied, terms_), ngrams=0.0)
    pairs = training.pairs if training.method == "s2net" else min(training.batch_size, training.pairs)
    some = max(2, min(pairs, _PROBED_PAIRS, _PROBED_VECTORS // training.dim))
    rows_at_once = min(tiles.tile(training.block_size, some)[0], some)
    # Of few dimensions the products are hardly anything: what is left is the scores, their exponentials and slopes.
    whole, thin = (block_seconds(some, k, precision=training.precision, block_size=training.block_size)
                   for k in (_THIN + training.dim, _THIN))
    rows, dim = _probe(training)
    few = max(1, rows.shape[0] // _FEW)
    some_seconds, all_seconds = (_documents_seconds(rows[:docs], dim) for docs in (few, rows.shape[0]))
    slope = max(all_seconds - some_seconds, 1e-9) / max(rows.nnz - rows[:few].nnz, 1)
    cut = min(training.batch_size, rows.shape[0])
    chosen = np.random.default_rng(0).permutation(rows.shape[0])[:cut]
    slots = 2 * s2net_sgd.largest_batch(np.diff(rows.indptr), cut)
    host = _typical(lambda: s2net_sgd.documents_of(scipy.sparse.vstack([rows[chosen]] * 2, format="csr"), slots))
    return Rates(
        product=6.0 * rows_at_once * some * training.dim / max(whole - thin, 1e-9),
        score=thin / (rows_at_once * some),
        weight=slope / (4 * dim),
        gradient=max(all_seconds - slope * rows.nnz, 1e-9) / (training.terms * dim),
        byte=_byte_seconds(training.parameters, training.history_size if training.method == "s2net" else 1),
        update=0.0 if training.method == "s2net" else _update_seconds(training.terms, dim),
        batch=host / cut,
    )
