"""The same training step in PyTorch: EmbeddingBag, the all-pairs loss of the batch, Adam."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
import scipy.sparse


def bags(torch: ModuleType, rows: scipy.sparse.csr_matrix, device: str):
    """Documents as EmbeddingBag takes them: terms, where each document begins, weights."""
    arrays = rows.indices.astype(np.int64), rows.indptr[:-1].astype(np.int64), rows.data
    return tuple(torch.tensor(array, device=device) for array in arrays)


def device(torch: ModuleType) -> str:
    """Where PyTorch works: its GPU if it has one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def training(torch: ModuleType, sides, start: np.ndarray, *, gamma: float, learning_rate: float, batch_size: int
             ) -> Callable[[np.ndarray], float]:
    """A function of one epoch's order that trains on it and gives the loss of its first batch.

    Args:
      torch: the module.
      sides: left and right documents, CSR float32 of unit rows.
      start: ``[num_terms, k]`` float32.
      gamma: scale of the loss.
      learning_rate: of Adam.
      batch_size: pairs a batch.

    Returns:
      The function; it waits for the device.
    """
    where = device(torch)
    bag = torch.nn.EmbeddingBag.from_pretrained(torch.tensor(start, device=where), mode="sum", freeze=False)
    adam = torch.optim.Adam(bag.parameters(), lr=learning_rate)
    softplus, unit = torch.nn.functional.softplus, torch.nn.functional.normalize
    off = ~torch.eye(batch_size, dtype=torch.bool, device=where)
    count = 2.0 * batch_size * (batch_size - 1.0)

    def epoch(order: np.ndarray) -> float:
        first = None
        for begin in range(0, len(order) - batch_size + 1, batch_size):
            chosen = order[begin : begin + batch_size]
            left, right = (bags(torch, side[chosen], where) for side in sides)
            vectors = [unit(bag(one[0], one[1], per_sample_weights=one[2])) for one in (left, right)]
            scores = vectors[0] @ vectors[1].T
            own = scores.diagonal()
            terms = softplus(gamma * (scores - own[:, None])) + softplus(gamma * (scores - own[None, :]))
            loss = (terms * off).sum() / count
            adam.zero_grad()
            loss.backward()
            adam.step()
            first = float(loss.detach()) if first is None else first
        if where == "cuda":
            torch.cuda.synchronize()
        return first

    return epoch
