r"""The training of recurrent language models: pieces of parallel streams, a sampled softmax, updates of touched rows.

Text is cut into streams of equal length that are read side by side, ``window`` words at a time; gradients stop at the
start of the window, while states are carried over. The loss of a window is the negative logarithm of a softmax over the
right word and a few hundred drawn ones, which all positions share (Jean et al. 2015), summed over steps and averaged
over streams. With draws from Q, the logits are less log Q, so that its gradient is that of the full softmax in the
limit of many.

The tables are the donated carry of a compiled scan over windows. An update touches the rows of the words that a window
reads, predicts or draws, and nothing else: the cost of a window does not grow with the vocabulary.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.methods.language.rnn_cells import Network

__all__ = ["Constants", "Rows", "State", "add_rows", "drawn_rows", "full_loss", "sampled_loss", "train_windows"]


class Constants(NamedTuple):
    """What a window sees besides what is learned.

    Attributes:
      log_draws: ``[K]`` log Q.
      cumulative: ``[K]`` cumulative Q.
      rate: scalar, the learning rate.
      clip: scalar, the largest norm of a window's gradient.
      boundary: scalar int32, the row of the sentence marker.
    """

    log_draws: jax.Array
    cumulative: jax.Array
    rate: jax.Array
    clip: jax.Array
    boundary: jax.Array


class Rows(NamedTuple):
    """The rows of the tables that a window touches.

    Attributes:
      inputs: ``[T, B, embed]``.
      right: ``[T, B, width]``, of the words that follow.
      right_bias: ``[T, B]``.
      drawn: ``[S, width]``.
      drawn_bias: ``[S]``.
    """

    inputs: jax.Array
    right: jax.Array
    right_bias: jax.Array
    drawn: jax.Array
    drawn_bias: jax.Array


class State(NamedTuple):
    """What goes from window to window besides what is learned.

    Attributes:
      sums: of squared gradients, a number a row of ``inputs``, ``outputs`` and ``bias``; None for plain SGD.
      optimizer: optax's state, of the layers.
      carry: states of the cells.
    """

    sums: Any
    optimizer: Any
    carry: Any


def sampled_loss(rows: Rows, read: jax.Array, right: jax.Array, drawn: jax.Array, log_draws: jax.Array) -> jax.Array:
    r"""Negative log softmax whose denominator is estimated from drawn words (Jean et al. 2015, §3.1).

    .. math:: -s_w + \log\big(e^{s_w} + \tfrac1S \textstyle\sum_{j: w_j \ne w} e^{s_j} / Q(w_j)\big)

    Args:
      rows: of the tables.
      read: ``[T, B, width]``, outputs of the layers.
      right: ``[T, B]`` rows of the words that follow.
      drawn: ``[S]`` rows of the words drawn from Q.
      log_draws: ``[K]`` log Q.

    Returns:
      ``[T, B]`` losses in nats.
    """
    hit = jnp.sum(read * rows.right, -1) + rows.right_bias
    weight = rows.drawn_bias - log_draws[drawn] - jnp.log(len(drawn)).astype(read.dtype)
    others = read.reshape(-1, read.shape[-1]) @ rows.drawn.T + weight[None]
    others = jnp.where(right.reshape(-1, 1) == drawn[None], -jnp.inf, others)
    rest = jax.nn.logsumexp(others, axis=-1).reshape(hit.shape)
    return jax.nn.softplus(rest - hit)


def full_loss(outputs: jax.Array, bias: jax.Array, read: jax.Array, right: jax.Array) -> jax.Array:
    """Negative log softmax over the whole vocabulary.

    Args:
      outputs: ``[K, width]``, Y.
      bias: ``[K]``.
      read: ``[T, B, width]``, outputs of the layers.
      right: ``[T, B]`` rows of the words that follow.

    Returns:
      ``[T, B]`` losses in nats.
    """
    scores = read @ outputs.T + bias[None, None]
    return jax.nn.logsumexp(scores, -1) - jnp.take_along_axis(scores, right[..., None], -1)[..., 0]


def window_loss(touched, core, words, right, drawn, carry, key, network: Network, constants: Constants):
    """Loss of a window, summed over steps and averaged over streams, with the mean over words and the states after.

    Args:
      touched: `Rows`; or, where nothing is drawn, rows of inputs, and the whole of outputs and bias.
      core: parameters of the layers.
      words: ``[T, B]`` rows of the words that are read.
      right: ``[T, B]`` rows of the words that follow.
      drawn: ``[S]`` rows of the drawn words; None for the full softmax.
      carry: states before the window.
      key: PRNG key of dropout, or None.
      network: sizes.
      constants: the rest.

    Returns:
      ``(loss, (mean, carry))``.
    """
    read, carry = network.run(core, touched[0], words == constants.boundary, carry, key)
    if drawn is None:
        losses = full_loss(*touched[1:], read, right)
    else:
        losses = sampled_loss(touched, read, right, drawn, constants.log_draws)
    return jnp.sum(losses) / losses.shape[1], (jnp.mean(losses), carry)


def add_rows(table: jax.Array, sums: jax.Array | None, at: jax.Array, slope: jax.Array, rate: jax.Array):
    """One step of rows of a table: plain, or divided by the root of each row's sum of mean squares (Adagrad).

    Args:
      table: ``[K, n]`` or ``[K]``.
      sums: ``[K]``; None for plain steps.
      at: integers of any shape, the rows; one that is named twice is moved twice.
      slope: gradients of these rows.
      rate: scalar.

    Returns:
      ``(table, sums)``.

    Example:
      >>> table, sums = add_rows(jnp.zeros((3, 2)), jnp.zeros(3), jnp.array([1]), jnp.array([[2.0, -2.0]]), 0.5)
      >>> table.tolist(), sums.tolist()
      ([[0.0, 0.0], [-0.5, 0.5], [0.0, 0.0]], [0.0, 4.0, 0.0])
    """
    at, slope = at.reshape(-1), slope.reshape(-1, *table.shape[1:])
    if sums is None:
        return table.at[at].add(-rate * slope, mode="promise_in_bounds"), None
    square = slope * slope if slope.ndim == 1 else jnp.mean(slope * slope, axis=1)
    sums = sums.at[at].add(square, mode="promise_in_bounds")
    root = jnp.sqrt(sums.at[at].get(mode="promise_in_bounds"))
    step = slope / (root if slope.ndim == 1 else root[:, None])
    return table.at[at].add(-rate * step, mode="promise_in_bounds"), sums


def drawn_rows(key: jax.Array, cumulative: jax.Array, number: int) -> jax.Array:
    """Rows drawn with replacement.

    Args:
      key: PRNG key.
      cumulative: ``[K]`` cumulative weights.
      number: how many.

    Returns:
      ``[number]`` int32.

    Example:
      >>> drawn_rows(jax.random.key(0), jnp.array([0.0, 1.0, 1.0]), 3).tolist()
      [1, 1, 1]
    """
    places = jax.random.uniform(key, (number,), cumulative.dtype) * cumulative[-1]
    return jnp.minimum(jnp.searchsorted(cumulative, places, side="right"), len(cumulative) - 1).astype(jnp.int32)


def _touched(inputs, outputs, bias, words, right, drawn):
    """What the loss of a window sees of the tables, and the rows of each table that it stands in."""
    def take(table, at):
        return table.at[at].get(mode="promise_in_bounds")

    if drawn is None:
        return (take(inputs, words), outputs, bias)
    return Rows(take(inputs, words), take(outputs, right), take(bias, right), take(outputs, drawn), take(bias, drawn))


def _moved(tables, sums, slopes, words, right, drawn, rate):
    """The tables after a window's step."""
    sums = (None,) * 3 if sums is None else sums
    first = add_rows(tables[0], sums[0], words, slopes[0], rate)
    if drawn is None:
        every = jnp.arange(len(tables[1]))
        rest = [add_rows(tables[at], sums[at], every, slopes[at], rate) for at in (1, 2)]
    else:
        at = jnp.concatenate([right.reshape(-1), drawn])
        width = tables[1].shape[1]
        rows = jnp.concatenate([slopes.right.reshape(-1, width), slopes.drawn])
        shifts = jnp.concatenate([slopes.right_bias.reshape(-1), slopes.drawn_bias])
        rest = [add_rows(tables[1], sums[1], at, rows, rate), add_rows(tables[2], sums[2], at, shifts, rate)]
    moved, sums = zip(first, *rest, strict=True)
    return moved, None if sums[0] is None else sums


@functools.partial(jax.jit, static_argnames=("network", "number", "optimizer"), donate_argnames=("learned", "state"))
def train_windows(learned, state: State, windows, key, constants: Constants, *, network: Network, number: int | None,
                  optimizer):
    """One compiled loop over windows.

    Args:
      learned: ``(inputs, outputs, bias, core)``; donated.
      state: `State`; donated.
      windows: ``(words, right, fresh)``: ``[n, T, B]`` rows of the words read and of those that follow, and ``[n]``
        booleans, whether the streams begin anew with a window.
      key: PRNG key of the draws and of dropout.
      constants: `Constants`.
      network: sizes.
      number: words drawn a window; None for the full softmax.
      optimizer: optax's, of the layers.

    Returns:
      ``(learned, state, losses [n])``, the mean loss of a word in each window before its update, in nats.
    """
    gradient = jax.grad(window_loss, argnums=(0, 1), has_aux=True)

    def step(carry, window):
        (*tables, core), state = carry
        words, right, fresh, key = window
        keys = jax.random.split(key)
        states = jax.tree.map(lambda one: jnp.where(fresh, 0, one), state.carry)
        drawn = None
        if number is not None:
            drawn = drawn_rows(keys[0], constants.cumulative, number)
        touched = _touched(*tables, words, right, drawn)
        (slopes, inner), (mean, states) = gradient(
            touched, core, words, right, drawn, states, keys[1] if network.dropout else None, network, constants
        )
        squares = sum(jnp.vdot(leaf, leaf) for leaf in jax.tree.leaves((slopes, inner)))
        share = jnp.minimum(1, constants.clip / jnp.sqrt(jnp.maximum(squares, jnp.finfo(squares.dtype).tiny)))
        slopes, inner = jax.tree.map(lambda leaf: leaf * share, (slopes, inner))
        tables, sums = _moved(tables, state.sums, slopes, words, right, drawn, constants.rate)
        changes, opt_state = optimizer.update(inner, state.optimizer, core)
        core = jax.tree.map(lambda leaf, change: leaf + constants.rate * change, core, changes)
        return ((*tables, core), State(sums, opt_state, states)), mean

    keys = jax.random.split(key, len(windows[0]))
    (learned, state), losses = jax.lax.scan(step, (learned, state), (*windows, keys))
    return learned, state, losses
