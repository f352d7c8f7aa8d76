r"""IBM Model 1: every word of a sentence is the translation of a word of the other, or of none, at random.

.. math:: \Pr(e_1 \dots e_J \mid f_1 \dots f_I) \propto \prod_{j=1}^J \sum_{i=0}^I t(e_j \mid f_i)

with the empty word :math:`f_0` (Brown et al. (1993), "The mathematics of statistical machine translation"). The start
is uniform, and the likelihood has no other maximum. Both directions are learned at once, and their counts
can be combined.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim import checks, optim
from jaxsim.methods.translation import links as layout
from jaxsim.methods.translation import table
from jaxsim.methods.translation.bitext import Bitext
from jaxsim.methods.translation.links import Links
from jaxsim.methods.translation.table import Translation
from jaxsim.optim import Fit, Run

RUN = Run(max_iter=5, checkpoint_every=1)
"""Five iterations, as is usual: rare words are fitted too closely after more. Give ``validate`` and ``patience`` to
stop by a score."""


class Expected(NamedTuple):
    """What an iteration learns in one direction.

    Attributes:
      counts: ``[links]`` expected number of times that a link was used.
    """

    counts: jax.Array


@functools.partial(jax.jit, static_argnames="num_rows")
def probabilities(counts: jax.Array, rows: jax.Array, num_rows: int) -> jax.Array:
    """``t(e | f)``: counts of links over those of their source word.

    Args:
      counts: ``[links]``.
      rows: ``[links]`` source words, ascending.
      num_rows: source words, and the empty word.

    Returns:
      ``[links]``; 0 for a source word without counts.
    """
    total = jax.ops.segment_sum(counts, rows, num_rows, indices_are_sorted=True)[rows]
    return counts / jnp.where(total > 0, total, 1)


@functools.partial(jax.jit, donate_argnums=1)
def _block_counts(t: jax.Array, counts: jax.Array, links: jax.Array, null: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The counts with those of a block added, and the log-likelihood of its sentences."""

    def step(carry, chunk):
        counts, total = carry
        link, empty = chunk
        each, none = t[link], t[empty]
        whole = each.sum(axis=2) + none
        share = jnp.where(whole > 0, 1 / jnp.where(whole > 0, whole, 1), 0)
        counts = counts.at[link].add(each * share[:, :, None]).at[empty].add(none * share)
        length = jnp.sum(jnp.any(link > 0, axis=1), axis=1, keepdims=True) + 1
        likely = jnp.where(whole > 0, jnp.log(jnp.where(whole > 0, whole, 1) / length), 0)
        return (counts, total + likely.sum()), None

    return jax.lax.scan(step, (counts, jnp.zeros((), t.dtype)), (links, null))[0]


def expectation(t: jax.Array, links: Links) -> tuple[jax.Array, float]:
    """One E step: expected counts of all links, and minus the mean log-likelihood of a target word.

    Args:
      t: ``[links]`` translation probabilities.
      links: of one direction.

    Returns:
      ``(counts, loss)``, the loss in nats.
    """
    counts, total = jnp.zeros_like(t), 0.0
    for block in links.blocks:
        counts, likely = _block_counts(t, counts, block.links, block.null)
        total += float(likely)
    return counts.at[0].set(0), -total / max(links.tokens, 1)


def uniform(links: Links) -> jax.Array:
    """The start: every translation has the same probability."""
    return jnp.full(links.rows.shape, 1.0 / links.num_target, jnp.result_type(float)).at[0].set(0)


def iterate(learned: Expected, links: Links, step: int) -> tuple[Expected, float]:
    """One iteration in one direction, the first one from the uniform start.

    Args:
      learned: what the iteration before learned.
      links: of the direction.
      step: iterations made before.

    Returns:
      What is learned now, and the loss before it.
    """
    t = uniform(links) if step == 0 else probabilities(learned.counts, links.rows, links.num_rows)
    counts, loss = expectation(t, links)
    return Expected(counts), loss


def fit(
    bitext: Bitext,
    *,
    symmetrize: str = "none",
    threshold: float = 0.01,
    run: Run | None = None,
    **options,
) -> Fit:
    """Learns translation tables of both directions from sentences and their translations.

    Args:
      bitext: from `bitext.from_words` or `bitext.from_pages`.
      symmetrize: how the two directions are combined, as for `table.symmetrized`.
      threshold: translations less probable than this are left out of the table of each direction, and of the
        combination.
      run: how the fit runs, `RUN` where it says nothing. ``validate`` gets a `Translation`.
      **options: fields of `optim.Run`, in place of those of ``run``.

    Returns:
      `Fit` of a `Translation`; the loss is minus the mean log-likelihood of a word, in nats, over both directions,
      before the last iteration.

    Raises:
      ValueError: for bad settings, or a checkpoint of another bitext.

    Example:
      >>> from jaxsim.methods.translation import bitext
      >>> text = bitext.from_words([["the", "house"], ["a", "house"]], [["la", "casa"], ["una", "casa"]])
      >>> fit(text, max_iter=10).params.best("house", k=1)[0][0]
      'casa'

    Relations: `hmm` starts from it and also learns where a translation stands.
    """
    return learn(bitext, iterate, lambda links: Expected(uniform(links)), "Model 1", symmetrize, threshold,
                 Run.of(run, options, RUN))  # fmt: skip


def learn(
    bitext: Bitext, step: Callable, start: Callable, label: str, symmetrize: str, threshold: float, run: Run
) -> Fit:
    """Iterates over both directions; shared by the aligners.

    Args:
      bitext: the sentences.
      step: as `iterate`.
      start: function of `Links` giving what is learned before the first iteration, with a field ``counts``.
      label: name on the bar, and of the problem.
      symmetrize: as for `fit`.
      threshold: as for `fit`.
      run: how the fit runs.

    Returns:
      `Fit` of a `Translation`.
    """
    checks.kind(bitext, "bitext", Bitext)
    checks.expect(symmetrize in table.SYMMETRIZE, "symmetrize", f"one of {', '.join(table.SYMMETRIZE)}", symmetrize)
    checks.expect(0 <= threshold < 1, "threshold", "a probability in [0, 1)", threshold)
    both = layout.both(bitext)

    def epoch(state: tuple, number: int):
        learned, losses = zip(*(step(one, links, number) for one, links in zip(state[0], both, strict=True)),
                              strict=True)  # fmt: skip
        loss = sum(losses) / len(losses)
        return (learned,), [loss], loss, float("nan")

    def whole(learned: tuple) -> Translation:
        counts = [table.matrix(one.counts, links) for one, links in zip(learned, both, strict=True)]
        params = table.from_counts(*counts, bitext.left.vocabulary, bitext.right.vocabulary, threshold)
        return table.symmetrized(params, symmetrize, threshold)

    def mark() -> str:
        arrays = [part for side in (bitext.left, bitext.right) for part in side[:2]]
        return optim.checkpoints.fingerprint(arrays, list(label.encode()))

    return run.run(optim.epochs.run, whole, epoch, (tuple(map(start, both)),), mark=mark, label=label)
