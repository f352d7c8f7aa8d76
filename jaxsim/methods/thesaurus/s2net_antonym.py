r"""S2Net on pairs of antonyms (PILSA §5): cosines of opposites fall below those of other pairs.

The loss is S2Net's, log(1 + exp(-γΔ)), with the sign of Δ flipped:

.. math:: \Delta_{ij} = \cos(A^\top f_{p_i}, A^\top f_{q_j}) - \cos(A^\top f_{p_i}, A^\top f_{q_i}).

Since cos(a, -b) = -cos(a, b), this is S2Net itself on pairs of a word and its *negated* antonym. The projection
``A``, ``[num_entries, k]``, has a row an entry, and a batch of words touches the entries that hold them: only these
rows are read and updated. Negatives are the other pairs of the batch, in both directions, except those that share a
head or an antonym. Start from `pilsa`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from jaxsim import checks, losses, optim, sparse
from jaxsim.methods.projections.projection import Projection, encode
from jaxsim.optim import Fit, Run
from jaxsim.sparse import Terms

VERSION = 2
GAMMA = 10.0


class Batch(NamedTuple):
    """Pairs of a step; arrays of batches of about one size have one shape.

    Attributes:
      entries: ``[r]`` int32: entries that the words of the batch are in, padded with entry 0.
      words: `Terms`, ``[2 b, r]``: heads and then antonyms, over ``entries``.
      groups: ``[b, 2]`` int32: words of the pairs; pairs that share one are no negatives of each other.
    """

    entries: jax.Array
    words: Terms
    groups: jax.Array


def objective(rows: jax.Array, batch: Batch, gamma: jax.Array) -> jax.Array:
    """Mean loss over the negatives of a batch, both directions.

    Args:
      rows: ``[r, k]``, the rows of ``A`` that the batch needs.
      batch: the pairs.
      gamma: scalar.

    Returns:
      Scalar, in nats; log 2 for a collapsed model.
    """
    heads, antonyms = jnp.split(encode(Projection(rows), batch.words).dense, 2)
    return losses.all_pairs_logistic(heads, -antonyms, gamma=gamma, groups=batch.groups)  # cos(a, -b) = -cos(a, b)


def _needed(batch: Batch, data: jax.Array) -> jax.Array:
    del data
    return batch.entries


def mean_cosine(params: Projection, words: Terms, pairs: Any) -> float:
    """Mean cosine of pairs, a score for `optim.Run.validate` when negated: opposites should be low.

    Args:
      params: the projection.
      words: ``[num_words, num_entries]``.
      pairs: ``[m, 2]`` rows of ``words``.

    Returns:
      The mean; words without entries count as 0.

    Raises:
      ValueError: for no pairs, or rows out of range.
    """
    pairs = _checked_pairs(pairs, "pairs", words.num_docs, least=1)
    some, places = np.unique(pairs, return_inverse=True)
    dense = encode(params, sparse.from_scipy(sparse.to_scipy(words)[some])).dense
    places = places.reshape(pairs.shape)
    return float(jnp.mean(sparse.cosine(dense[places[:, 0]], dense[places[:, 1]])))


def held_out_loss(words: Terms, pairs: Any, *, gamma: float = GAMMA):
    """The loss of held-out pairs, negated, as a score that stops the training (PILSA §7.4).

    Args:
      words: ``[num_words, num_entries]``.
      pairs: ``[m, 2]`` rows of ``words``, in none of the pairs of the training.
      gamma: as for `fit`.

    Returns:
      Function of `Projection` giving the score, higher is better.

    Raises:
      ValueError: for fewer than two pairs, or rows out of range.
    """
    pairs = _checked_pairs(pairs, "pairs", words.num_docs)
    matrix = sparse.to_scipy(words)
    batch = batch_of(matrix, pairs)

    def score(params: Projection) -> float:
        return -float(_score(params.weights, batch, jnp.asarray(gamma, params.weights.dtype)))

    return score


@jax.jit
def _score(weights, batch, gamma):
    return objective(weights[batch.entries], batch, gamma)


def fit(
    words: Terms,
    pairs: Any,
    *,
    init: Projection,
    key: jax.Array,
    gamma: float = GAMMA,
    batch_size: int = 1000,
    learning_rate: float = 0.001,
    adagrad: float = 1e-12,
    run: Run | None = None,
    **options,
) -> Fit:
    """Learns the projection from antonyms, by Adagrad over minibatches.

    Args:
      words: ``Signed.terms``, ``[num_words, num_entries]``.
      pairs: ``[m, 2]`` rows of ``words``: antonyms.
      init: start, `pilsa`'s parameters: ``[num_entries, k]``. Columns of length one set the scale of
        ``learning_rate``.
      key: PRNG key of the order of the pairs.
      gamma: scale of the loss; 10 in the paper.
      batch_size: pairs a batch; pairs that fill no batch wait for the next epoch.
      learning_rate: of Adagrad.
      adagrad: where the sums of squared gradients start.
      run: how the fit runs; 20 epochs at most, and patience 2, unless it says otherwise. Give ``validate=``
        (`held_out_loss`).
      **options: fields of `optim.Run`, in place of those of ``run``.

    Returns:
      `Fit` of `Projection`; a step is an epoch, an evaluation a batch. From a checkpoint it goes on bit for bit.

    Raises:
      ValueError: for pairs or a start that do not fit ``words``, or bad settings.
      FloatingPointError: if the loss is not finite.

    Example:
      >>> from jaxsim.data.corpora import thesauri
      >>> from jaxsim.methods.thesaurus import pilsa, signed
      >>> senses = [(f"a{i}", [f"a{(i + 1) % 8}"], [f"b{i}", f"b{(i + 3) % 8}"]) for i in range(8)]
      >>> entries = signed.documents([thesauri.thesaurus("mine", senses)])
      >>> words, pairs = entries.terms(), entries.pairs()
      >>> start = pilsa.fit(words, k=4).params
      >>> result = fit(words, pairs, init=start, key=jax.random.key(0), batch_size=4, learning_rate=0.1, max_iter=5)
      >>> mean_cosine(result.params, words, pairs) < mean_cosine(start, words, pairs)
      True

    Differs from the paper: minibatches and Adagrad in place of L-BFGS over all negatives, which peaks after a few steps
    and costs the square of the pairs; early stopping in place of a penalty. ``s2net.fit(heads, negated antonyms)`` is
    the paper's form.

    Relations: `s2net_sgd` updates all rows and has no signs.
    """
    checks.random_key(key)
    run = Run.of(run, options, Run(max_iter=20, patience=2, checkpoint_every=1))
    checks.kind(words, "words", Terms)
    checks.kind(init, "init", Projection)
    checks.expect(init.weights.shape[0] == words.num_terms, "init", f"{words.num_terms} rows (entries)",
                  init.weights.shape[0])
    pairs = _checked_pairs(pairs, "pairs", words.num_docs)
    checks.positive_int(batch_size, "batch_size")
    checks.expect(batch_size >= 2, "batch_size", "at least 2 (a batch of one pair has no negatives)", batch_size)
    checks.expect(0 < gamma < float("inf"), "gamma", "a positive number", gamma)
    batch_size = min(batch_size, len(pairs))
    whole = Projection(jnp.asarray(init.weights))
    return run.run(
        functools.partial(optim.minimize_rows, objective), Projection, whole.weights,
        batches(words, pairs, batch_size), rows=_needed,
        data=jnp.asarray(gamma, whole.weights.dtype), key=key, learning_rate=learning_rate, adagrad=adagrad,
        depends=(words, jnp.asarray(pairs), batch_size), label="S2Net (antonyms)")  # fmt: skip


def batches(words: Terms, pairs: np.ndarray, batch_size: int) -> Callable[[jax.Array], Iterator[Batch]]:
    """Epochs of minibatches, for `optim.minimize_rows`.

    Args:
      words: ``[num_words, num_entries]``.
      pairs: ``[m, 2]`` rows of ``words``.
      batch_size: pairs a batch; those that fill none are left out of the epoch.

    Returns:
      Function of an epoch's key giving its batches in a random order, each with a leading axis of one step.

    Example:
      >>> words = sparse.from_scipy(sp.identity(4, format="csr"))
      >>> [batch.groups.shape for batch in batches(words, np.array([[0, 1], [2, 3], [1, 2]]), 2)(jax.random.key(0))]
      [(1, 2, 2)]
    """
    matrix = sparse.to_scipy(words)

    def drawn(order: np.ndarray) -> Iterator[np.ndarray]:
        return (pairs[order[start : start + batch_size]] for start in range(0, len(pairs) - batch_size + 1, batch_size))

    # Room for the largest batch of some order. A larger one of another order has a program of its own.
    some = [matrix[chosen.ravel()] for chosen in drawn(np.random.default_rng(0).permutation(len(pairs)))]
    room = max(np.unique(rows.indices).size for rows in some), max(rows.nnz for rows in some)

    def epoch(key: jax.Array) -> Iterator[Batch]:
        for chosen in drawn(np.asarray(jax.random.permutation(key, len(pairs)))):
            batch = batch_of(matrix, chosen, *room)
            yield jax.tree.map(lambda leaf: leaf[None], batch)

    return epoch


def _checked_pairs(pairs: Any, argument: str, num_words: int, least: int = 2) -> np.ndarray:
    pairs = np.asarray(pairs)
    right = pairs.ndim == 2 and pairs.shape[1] == 2 and np.issubdtype(pairs.dtype, np.integer)
    checks.expect(right, argument, "integers of shape (m, 2)", f"{pairs.dtype} of shape {pairs.shape}")
    checks.expect(len(pairs) >= least, argument, f"at least {'two pairs' if least == 2 else 'one pair'}", len(pairs))
    outside = pairs[(pairs < 0) | (pairs >= num_words)]
    checks.expect(not outside.size, argument, f"rows of words in [0, {num_words})", outside[:1].tolist())
    return pairs


def rounded(size: int) -> int:
    """The next size of two binary digits, so that collections of about one size share a compiled program.

    Args:
      size: number of slots.

    Returns:
      At least ``size``, and at least 1.

    Example:
      >>> rounded(5), rounded(1025), rounded(0)
      (6, 1536, 1)
    """
    step = 1 << max(max(size, 1).bit_length() - 2, 0)
    return -(-max(size, 1) // step) * step


def batch_of(matrix: sp.csr_matrix, pairs: np.ndarray, num_entries: int = 0, slots: int = 0) -> Batch:
    """Words of pairs over the entries that hold them; batches of about one size have one shape.

    Args:
      matrix: ``[num_words, num_entries]``.
      pairs: ``[b, 2]`` rows of ``matrix``.
      num_entries: room for so many entries at least.
      slots: and for so many weights.

    Returns:
      `Batch`.
    """
    rows = matrix[pairs.T.ravel()]
    entries, places = np.unique(rows.indices, return_inverse=True)
    room = rounded(max(len(entries), num_entries))
    local = sp.csr_matrix((rows.data, places.reshape(-1), rows.indptr), shape=(rows.shape[0], room))
    padded = np.zeros(room, np.int32)
    padded[: len(entries)] = entries
    words = sparse.from_scipy(local, pad_nnz=rounded(max(local.nnz, slots)))
    return Batch(jnp.asarray(padded), words, jnp.asarray(pairs, jnp.int32))
