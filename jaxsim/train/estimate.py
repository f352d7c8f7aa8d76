"""What a training will cost before it is started: its memory, and its seconds at rates measured on the spot.

Memory is counted from the arrays that stand at the peak of an iteration. Seconds are counts of work (products, scores,
stored terms, bytes) over what this device does of each in a second, measured on small pieces of the same shapes. Where
trainings differ in something that neither knows (the lengths of line searches, other programs on the machine) the
estimate is off by as much.
"""

from __future__ import annotations

from jaxsim.losses import tiles
from jaxsim.train.rates import HISTORY_PASSES, METHODS, PASSES, Rates, Training, measure

__all__ = ["METHODS", "Rates", "Training", "measure", "memory", "seconds"]

_FLOAT = 4  # bytes of float32 and of int32


def memory(training: Training) -> dict[str, int]:
    """Bytes that stand on one device at the peak of a training.

    Args:
      training: its sizes.

    Returns:
      ``documents``, ``projection`` (with gradients, direction, start, or Adam's moments), ``history``, ``loss``
      (embeddings, their gradients and a block of scores) and their sum, ``total``. The program itself, the Python
      process around it (a few hundred MB) and dev pairs come on top.

    Example:
      >>> found = memory(Training(pairs=43_380, terms=20_000, dim=1_000, words=96, max_iter=80))
      >>> found["history"], 4e9 < found["total"] < 5e9
      (1600000000, True)
    """
    t = training
    projection = _FLOAT * t.parameters
    if t.method == "s2net_sgd":
        rows = min(t.batch_size, t.pairs)
        weights = round(rows * t.words)
        found = {"documents": 2 * _FLOAT * (6 * t.nnz + t.terms + t.pairs),  # on the device, and rows on the host
                 "projection": 6 * projection,  # start, current, two moments, gradient, update
                 "history": 0, "loss": _loss_bytes(rows, t.dim, weights, 1, t.block_size)}
    else:
        m, held = -(-t.pairs // t.devices), t.devices if t.shard_terms else 1
        projection = _FLOAT * t.matrices * -(-t.terms // held) * t.dim
        # A device has all terms of its own documents, or its own terms of all documents.
        pointers = -(-t.terms // held) + (t.pairs if t.shard_terms else m)
        found = {
            "documents": 2 * _FLOAT * (4 * -(-t.nnz // t.devices) + pointers),
            # Start, current and next, their gradients, direction, and one for the search.
            "projection": 7 * projection, "history": 2 * t.history_size * projection,
            "loss": _loss_bytes(m, t.dim, -(-t.nnz // t.devices), t.devices, t.block_size),
        }
    return {**found, "total": sum(found.values())}


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
        passes = HISTORY_PASSES * 2 * t.history_size + 2 * PASSES
        held = t.devices if t.shard_terms else 1
        bookkeeping = _FLOAT * t.parameters / held * passes * rates.byte
        gradient = t.terms * t.dim / held * rates.gradient  # of both sides, into one matrix or into two
    found = {
        "products": times * 6.0 * rows**2 * t.dim / rates.product / t.devices,
        "scores": times * rates.score * rows**2 / t.devices,
        # Forward and back on two sides, and some passes over the embeddings; the gradient, on every device.
        "documents": times * ((4.0 * rows * t.words * t.dim * rates.weight + 24 * _FLOAT * rows * t.dim * rates.byte)
                              / t.devices + gradient),
        "bookkeeping": times * bookkeeping,
    }
    iteration = sum(found.values())
    # L-BFGS evaluates once before its first iteration.
    return {**found, "iteration": iteration, "total": (t.max_iter + whole) * iteration}
