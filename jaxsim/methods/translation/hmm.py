r"""Word alignment by a hidden Markov model: the position of a word depends on that of the word before it.

.. math:: \Pr(e_1^J, a_1^J \mid f_1^I) = \prod_j p(a_j \mid a_{j-1}, I)\, t(e_j \mid f_{a_j})

The probability of a jump from place :math:`i'` to :math:`i` is :math:`s(i - i')` over the sum of the jumps that stay in
the sentence (Vogel, Ney and Tillmann (1996), "HMM-based word alignment in statistical translation"). A word with no
source has probability `EMPTY` and remembers the place before it (Och and Ney (2003)), so that there are two states a
place. With ``word_jumps`` every source word has its own jumps, drawn towards the common ones (He (2007), the WDHMM that
002 used). The first iterations are those of Model 1.

Differs from the papers: the M step of the jumps takes their expected counts as they are, although a jump out of a
sentence is impossible; the likelihood is then not guaranteed to rise, but it does.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim import checks
from jaxsim.methods.translation import ibm1
from jaxsim.methods.translation.bitext import Bitext
from jaxsim.methods.translation.links import Block, Links
from jaxsim.optim import Fit, Run

EMPTY = 0.2
"""Probability that a word has no source."""
WIDEST = 20
"""Longer jumps count as one of this length."""
_SMOOTH = 0.01  # share of a uniform distribution in that of jumps
RUN = Run(max_iter=9, checkpoint_every=1)
"""Four iterations of Model 1 and five of the hidden Markov model."""


class Learned(NamedTuple):
    """What an iteration learns in one direction.

    Attributes:
      counts: ``[links]`` expected number of times that a link was used.
      jumps: ``[words, 2 WIDEST + 1]`` expected jumps by length, of every source word (row 0: there is none); one row
        where all words jump alike.
    """

    counts: jax.Array
    jumps: jax.Array


def weights(jumps: jax.Array, prior: float) -> jax.Array:
    """Jump weights from expected jumps: the common ones, or each word's own with ``prior`` common ones added.

    Args:
      jumps: as in `Learned`.
      prior: how many jumps of the common distribution are added to a word's own.

    Returns:
      The same shape; rows sum to 1. Where no jump was counted, all are alike.
    """
    common = jumps.sum(axis=0)
    common = jnp.where(common.sum() > 0, common, 1)  # sentences of one word have no jumps
    common = (1 - _SMOOTH) * common / common.sum() + _SMOOTH / common.size
    if jumps.shape[0] == 1:
        return common[None]
    return (jumps + prior * common[None]) / (jumps.sum(axis=1, keepdims=True) + prior)


def _lengths(size: int) -> jax.Array:
    """``[from, to]`` place of a jump's weight."""
    place = jnp.arange(size)
    return jnp.clip(place[None] - place[:, None], -WIDEST, WIDEST) + WIDEST


def transitions(jumps: jax.Array, source: jax.Array) -> jax.Array:
    """Probability of the next place.

    Args:
      jumps: ``[words or 1, 2 WIDEST + 1]`` weights.
      source: ``[n, places]`` words, counted from 1; 0 where there is none.

    Returns:
      ``[n, from, to]``; 0 to places without a word, and 1 in sum to the others.
    """
    lengths = _lengths(source.shape[1])
    own = jumps[0, lengths][None] if len(jumps) == 1 else jumps[source[:, :, None], lengths]
    weight = jnp.where((source > 0)[:, None, :], own, 0)
    total = weight.sum(axis=2, keepdims=True)
    return weight / jnp.where(total > 0, total, 1)


def posteriors(emit: jax.Array, none: jax.Array, move: jax.Array, start: jax.Array):
    """The forward-backward algorithm for a chunk of sentences, each target word's probability scaled to 1.

    Args:
      emit: ``[target, n, source]`` t of each target word at each place, 0 where there is none.
      none: ``[target, n]`` t of each target word without a source.
      move: ``[n, from, to]`` from `transitions`.
      start: ``[n, source]`` probability of the first place.

    Returns:
      ``(at, without, moves, likely)``: posterior of each place ``[target, n, source]``, of none ``[target, n]``,
      expected moves ``[n, from, to]`` and the log-likelihood. Words that have probability 0 are passed over.
    """
    first = jnp.arange(len(emit)) == 0

    def forward(place, word):
        emit, none, first = word
        arrived = jnp.where(first, start, jnp.einsum("ni,nij->nj", place, move))
        stayed = jnp.where(first, start, place)
        both = (1 - EMPTY) * emit * arrived + EMPTY * none[:, None] * stayed
        scale = both.sum(axis=1)
        share = jnp.where(scale > 0, 1 / jnp.where(scale > 0, scale, 1), 0)
        return jnp.where(scale[:, None] > 0, both * share[:, None], place), (arrived, stayed, share)

    _, (arrived, stayed, share) = jax.lax.scan(forward, jnp.zeros_like(start), (emit, none, first))

    def backward(carry, word):
        later, moves = carry
        emit, none, first, arrived, stayed, share = word
        onward = (1 - EMPTY) * emit * later * share[:, None]
        empty = EMPTY * none[:, None] * later * share[:, None]
        moves = moves + jnp.where(first, 0, 1) * stayed[:, :, None] * move * onward[:, None, :]
        before = jnp.einsum("nij,nj->ni", move, onward) + empty
        later = jnp.where(share[:, None] > 0, before, later)
        return (later, moves), (onward * arrived, jnp.sum(empty * stayed, axis=1))

    (_, moves), (at, without) = jax.lax.scan(
        backward, (jnp.ones_like(start), jnp.zeros_like(move)), (emit, none, first, arrived, stayed, share),
        reverse=True)  # fmt: skip
    return at, without, moves, -jnp.sum(jnp.where(share > 0, jnp.log(jnp.where(share > 0, share, 1)), 0))


@functools.partial(jax.jit, donate_argnums=(1, 2))
def _block_counts(t: jax.Array, counts: jax.Array, jumps: jax.Array, block: Block, jump_weights: jax.Array):
    """Counts and jumps with those of a block added, and the log-likelihood of its sentences."""
    lengths = _lengths(block.source.shape[2])

    def step(carry, chunk):
        counts, jumps, total = carry
        link, empty, source = chunk
        there = (source > 0).astype(t.dtype)
        start = there / jnp.maximum(there.sum(axis=1, keepdims=True), 1)
        emit, none = jnp.moveaxis(t[link], 1, 0), t[empty].T
        at, without, moves, likely = posteriors(emit, none, transitions(jump_weights, source), start)
        counts = counts.at[link].add(jnp.moveaxis(at, 0, 1)).at[empty].add(without.T)
        if len(jumps) == 1:
            jumps = jumps.at[0, lengths].add(moves.sum(axis=0))
        else:
            jumps = jumps.at[source[:, :, None], lengths].add(moves)
        return (counts, jumps, total + likely), None

    return jax.lax.scan(step, (counts, jumps, jnp.zeros((), t.dtype)), block)[0]


def expectation(t: jax.Array, jump_weights: jax.Array, links: Links) -> tuple[Learned, float]:
    """One E step: expected counts and jumps, and minus the mean log-likelihood of a target word.

    Args:
      t: ``[links]`` translation probabilities.
      jump_weights: from `weights`.
      links: of one direction.

    Returns:
      ``(learned, loss)``, the loss in nats.
    """
    counts, jumps, total = jnp.zeros_like(t), jnp.zeros_like(jump_weights), 0.0
    for block in links.blocks:
        counts, jumps, likely = _block_counts(t, counts, jumps, block, jump_weights)
        total += float(likely)
    return Learned(counts.at[0].set(0), jumps), -total / max(links.tokens, 1)


def _iterate(learned: Learned, links: Links, step: int, model1: int, prior: float) -> tuple[Learned, float]:
    """One iteration in one direction: of Model 1 first."""
    if step < model1:
        found, loss = ibm1.iterate(ibm1.Expected(learned.counts), links, step)
        return Learned(found.counts, learned.jumps), loss
    t = ibm1.probabilities(learned.counts, links.rows, links.num_rows)
    return expectation(t, weights(learned.jumps, prior), links)


def fit(
    bitext: Bitext,
    *,
    model1: int = 4,
    word_jumps: bool = False,
    prior: float = 1000.0,
    symmetrize: str = "none",
    threshold: float = 0.01,
    run: Run | None = None,
    **options,
) -> Fit:
    """Learns translation tables of both directions from sentences and their translations.

    Args:
      bitext: from `bitext.from_words` or `bitext.from_pages`.
      model1: iterations of Model 1 before those of the hidden Markov model, at least one.
      word_jumps: whether every source word has its own jumps (the WDHMM).
      prior: jumps of the common distribution that are added to a word's own.
      symmetrize: as for `ibm1.fit`.
      threshold: as for `ibm1.fit`.
      run: how the fit runs, `RUN` where it says nothing; its iterations include those of Model 1.
      **options: fields of `optim.Run`, in place of those of ``run``.

    Returns:
      `Fit` of a `Translation`, as `ibm1.fit`.

    Raises:
      ValueError: for bad settings, or a checkpoint of another bitext or of other settings.

    Example:
      >>> from jaxsim.methods.translation import bitext
      >>> text = bitext.from_words([["a", "b"], ["a", "b", "c"]], [["A", "B"], ["A", "B", "C"]])  # one order
      >>> fit(text).params.best("b", k=1)[0][0]
      'B'

    Relations: `ibm1` knows no places.
    """
    checks.whole(model1, "model1", 1)
    checks.expect(0 < prior < float("inf"), "prior", "a positive number", prior)

    def start(links: Links) -> Learned:
        counts = ibm1.uniform(links)
        return Learned(counts, jnp.ones((links.num_rows if word_jumps else 1, 2 * WIDEST + 1), counts.dtype))

    label = f"HMM, {model1} iterations of Model 1" + f", a word's own jumps with prior {prior:g}" * word_jumps
    return ibm1.learn(bitext, functools.partial(_iterate, model1=model1, prior=prior), start, label, symmetrize,
                      threshold, Run.of(run, options, RUN))  # fmt: skip
