"""What else was tried on questions of opposites: retrofitting, a signed spectral embedding, two projections.

Also what becomes of words that have no part in the leading dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from experiments.corpora import thesauri as corpora
from jaxsim import losses, optim, sparse
from jaxsim.data.corpora.gre import Question
from jaxsim.methods import s2net_antonym
from jaxsim.methods.projections import Projection
from jaxsim.methods.projections.projection import encode
from jaxsim.methods.thesaurus import Signed, Space
from jaxsim.methods.thesaurus.signed import unit_rows
from jaxsim.optim import Fit
from jaxsim.sparse import Terms

ROUNDS = 5


def _scaled(matrix: sp.csr_matrix, power: float) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Diagonal matrices of a power of the sums of magnitudes: of rows and of columns."""
    sums = (np.asarray(abs(matrix).sum(axis=axis)).ravel() for axis in (1, 0))
    return tuple(sp.diags(np.where(total > 0, total, 1) ** power).astype(np.float32) for total in sums)


def retrofitted(space: Space, signed: Signed, strength: float, rounds: int = ROUNDS) -> Space:
    """Vectors drawn to those of the words that entries put beside them, and away from those against them.

    After Faruqui et al. 2015, with the entries as the graph: in a round a word's vector becomes its first one and
    ``strength`` times the mean of its entries' signed means, of length one.

    Args:
      space: of the words of ``signed``.
      signed: the entries.
      strength: weight of the entries.
      rounds: how often.

    Returns:
      `Space`.
    """
    by_entry, by_word = _scaled(signed.tf, -1.0)
    down, up = (by_entry @ signed.tf).tocsr(), (by_word @ signed.tf.T).tocsr()
    vectors = space.vectors
    for _ in range(rounds):
        vectors = unit_rows(space.vectors + np.float32(strength) * unit_rows(up @ (down @ vectors)))
    return Space(space.lexicon, vectors)


def or_signed(space: Space, plain: Space, some: Sequence[Question]) -> np.ndarray:
    """Cosines; of a target that has no part in ``space``, those of the signed vectors.

    Args:
      space: of vectors `pilsa.without_rest`.
      plain: of the signed vectors themselves.
      some: the questions.

    Returns:
      ``[n, c]``; NaN where a word is unknown.
    """
    absent = ~space.embed([one.target for one in some])[0].any(axis=1)
    return np.where(absent[:, None], corpora.cosines(plain, some), corpora.cosines(space, some))


def spectral(signed: Signed) -> Terms:
    """Words over entries, signed and of degree one: its singular vectors are those of the signed Laplacian.

    Args:
      signed: the entries.

    Returns:
      `Terms`, ``[num_words, num_entries]``: signs divided by the roots of the sizes of word and entry.
    """
    by_entry, by_word = _scaled(signed.tf, -0.5)
    return sparse.from_scipy((by_word @ signed.tf.T @ by_entry).tocsr())


def objective(rows: tuple[jax.Array, jax.Array], batch: s2net_antonym.Batch, gamma: jax.Array) -> jax.Array:
    """`s2net_antonym.objective` with one projection for heads and another for their antonyms: ``qᵀ A Bᵀ d``."""
    heads, antonyms = (jnp.split(encode(Projection(side), batch.words).dense, 2)[at] for at, side in enumerate(rows))
    return losses.all_pairs_logistic(heads, -antonyms, gamma=gamma, groups=batch.groups)


def _needed(batch: s2net_antonym.Batch, data: jax.Array) -> tuple[jax.Array, jax.Array]:
    del data
    return batch.entries, batch.entries


def two_sided(words: Terms, pairs: np.ndarray, held: np.ndarray, *, init: Projection, key: jax.Array,
              learning_rate: float, batch_size: int, max_iter: int, patience: int) -> Fit:
    """S2Net with a projection a side, both from PILSA, stopped by the loss of held-out pairs.

    Args:
      words: ``[num_words, num_entries]``.
      pairs: ``[m, 2]`` heads and antonyms.
      held: pairs that are held out.
      init: PILSA.
      key: of the order of the pairs.
      learning_rate: of Adagrad.
      batch_size: pairs a batch.
      max_iter: epochs at most.
      patience: epochs without a lower loss.

    Returns:
      `Fit` of two ``[num_entries, k]``.
    """
    batch, gamma = s2net_antonym.batch_of(sparse.to_scipy(words), held), jnp.float32(s2net_antonym.GAMMA)

    def score(tables) -> float:
        return -float(_loss(tables, batch, gamma))

    return optim.minimize_rows(
        objective, (jnp.array(init.weights), jnp.array(init.weights)),
        s2net_antonym.batches(words, pairs, min(batch_size, len(pairs))), rows=_needed, data=gamma, key=key,
        learning_rate=learning_rate, adagrad=1e-12, label="S2Net (two sides)", validate=score, max_iter=max_iter,
        patience=patience)  # fmt: skip


@jax.jit
def _loss(tables, batch, gamma):
    return objective(tuple(table[batch.entries] for table in tables), batch, gamma)


def across(left: Space, right: Space, some: Sequence[Question]) -> np.ndarray:
    """``[n, c]`` cosines of targets in one space with choices in another; NaN where a word is unknown."""
    targets, choices = corpora.pairs_of(some)
    found = [one.embed(words) for one, words in ((left, targets), (right, choices))]
    known = [np.array([match.how != "unknown" for match in matches]) for _, matches in found]
    cosines = np.einsum("ij,ij->i", found[0][0], found[1][0])
    return np.where(known[0] & known[1], cosines, np.nan).reshape(len(some), -1)
