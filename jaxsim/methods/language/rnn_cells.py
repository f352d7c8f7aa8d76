r"""Cells and layers of recurrent language models, in flax; their inputs and outputs are rows of tables.

The products of a layer's inputs with its kernel are one product over all steps. The state goes through a compiled scan.
It is set to zero where a sentence starts, so that a sentence does not depend on the one before it in the stream.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import flax.linen as nn
import flax.struct
import jax
import jax.numpy as jnp

from jaxsim import checks

__all__ = ["GRU", "LSTM", "TANH", "Cell", "Network", "RnnLm", "start"]


class Cell(NamedTuple):
    """A kind of cell.

    Attributes:
      name: of the cell.
      gates: blocks of the width of the state that a step computes.
      states: arrays that it hands on; the first is its output.
      step: function of inputs ``[B, gates · hidden]`` and states, both before the product with the recurrent matrix,
        that product, and a bias ``[hidden]``, giving the new states.
    """

    name: str
    gates: int
    states: int
    step: Callable


def _tanh(inputs, states, product, _):
    return (jnp.tanh(inputs + product),)


def _gru(inputs, states, product, bias):
    size = states[0].shape[-1]
    reset, update = jnp.split(jax.nn.sigmoid(inputs[..., : 2 * size] + product[..., : 2 * size]), 2, axis=-1)
    new = jnp.tanh(inputs[..., 2 * size :] + reset * (product[..., 2 * size :] + bias[None]))
    return (new + update * (states[0] - new),)


def _lstm(inputs, states, product, _):
    enter, forget, new, out = jnp.split(inputs + product, 4, axis=-1)
    memory = jax.nn.sigmoid(forget) * states[1] + jax.nn.sigmoid(enter) * jnp.tanh(new)
    return jax.nn.sigmoid(out) * jnp.tanh(memory), memory


TANH = Cell("tanh", 1, 1, _tanh)
"""The simple recurrent cell (Elman 1990; the paper's)."""
GRU = Cell("gru", 3, 1, _gru)
"""Gated recurrent unit (Cho et al. 2014), its reset gate behind the product, as cuDNN and PyTorch have it."""
LSTM = Cell("lstm", 4, 2, _lstm)
"""Long short-term memory (Hochreiter and Schmidhuber 1997) with a forget gate, without peepholes."""


class Network(NamedTuple):
    """Sizes of a network; hashable, because a compiled program depends on them.

    Attributes:
      cell: `TANH`, `GRU` or `LSTM`.
      embed: width of the table of inputs. Where it is the width of all gates of the first layer, its rows are what the
        gates read, without a kernel: for `TANH`, the paper's network.
      hidden: width of a layer's state.
      layers: how many.
      project: width of a projection of the last layer's state, which the softmax reads; None for none.
      dropout: share of inputs and of layers' outputs that training sets to zero.
    """

    cell: Cell = GRU
    embed: int = 200
    hidden: int = 200
    layers: int = 1
    project: int | None = None
    dropout: float = 0.0

    @property
    def width(self) -> int:
        """Width of what the softmax reads."""
        return self.hidden if self.project is None else self.project

    def check(self) -> None:
        """Refuses sizes that no network can have.

        Raises:
          ValueError: naming the first.

        Example:
          >>> Network(hidden=0).check()
          Traceback (most recent call last):
          ...
          ValueError: hidden: expected a whole number of at least 1, got 0
        """
        known = isinstance(self.cell, Cell)
        checks.expect(known, "cell", "rnn_lm.TANH, rnn_lm.GRU or rnn_lm.LSTM", type(self.cell).__name__)
        for name in ("embed", "hidden", "layers"):
            checks.whole(getattr(self, name), name, 1)
        checks.whole(self.project, "project", 1, or_none=True)
        checks.expect(0 <= self.dropout < 1, "dropout", "a number in [0, 1)", self.dropout)

    def zeros(self, batch: int, dtype) -> tuple:
        """States of all layers at the start of a stream, each ``[batch, hidden]``."""
        return tuple((jnp.zeros((batch, self.hidden), dtype),) * self.cell.states for _ in range(self.layers))

    def run(self, core, rows: jax.Array, starts: jax.Array, carry: tuple, key: jax.Array | None = None):
        """Runs the layers over steps.

        Args:
          core: parameters, as `start` makes them.
          rows: ``[T, B, embed]`` rows of the table of inputs.
          starts: ``[T, B]`` booleans, where a sentence starts.
          carry: states, as `zeros` makes them.
          key: PRNG key of dropout; None for none of it.

        Returns:
          ``(outputs [T, B, width], carry)``.
        """
        kept = {} if key is None else {"dropout": key}
        return Layers(self).apply({"params": core}, rows, starts, carry, dry=key is None, rngs=kept)


class Recurrent(nn.Module):
    """One layer."""

    network: Network
    direct: bool

    @nn.compact
    def __call__(self, inputs, starts, states):
        """Inputs ``[T, B, n]`` to outputs ``[T, B, hidden]`` and the states after them."""
        cell, hidden = self.network.cell, self.network.hidden
        width, dtype = cell.gates * hidden, inputs.dtype
        uniform = nn.initializers.uniform(2 / hidden**0.5)

        def centred(key, shape, dtype):
            return uniform(key, shape, dtype) - 1 / hidden**0.5

        if not self.direct:
            inputs = inputs @ self.param("kernel", centred, (inputs.shape[-1], width), dtype)
        inputs = inputs + self.param("bias", nn.initializers.zeros, (width,), dtype)[None, None]
        matrix = self.param("recurrent", centred, (hidden, width), dtype)
        bias = self.param("reset_bias", nn.initializers.zeros, (hidden,), dtype) if cell.name == "gru" else None

        def step(states, now):
            row, start = now
            states = jax.tree.map(lambda state: jnp.where(start[:, None], 0, state), states)
            states = cell.step(row, states, states[0] @ matrix, bias)
            return states, states[0]

        states, outputs = jax.lax.scan(step, states, (inputs, starts))
        return outputs, states


class Layers(nn.Module):
    """Layers with dropout between them, and the projection."""

    network: Network

    @nn.compact
    def __call__(self, rows, starts, carry, *, dry: bool):
        """As `Network.run`."""
        network, states = self.network, []
        drop = nn.Dropout(network.dropout, deterministic=dry or network.dropout == 0)
        rows = drop(rows)
        for layer in range(network.layers):
            direct = layer == 0 and network.embed == network.cell.gates * network.hidden
            rows, last = Recurrent(network, direct, name=f"layer{layer}")(rows, starts, carry[layer])
            rows = drop(rows)
            states.append(last)
        if network.project is not None:
            rows = nn.Dense(network.project, param_dtype=rows.dtype, dtype=rows.dtype, name="project")(rows)
        return rows, tuple(states)


@flax.struct.dataclass
class RnnLm:
    """A recurrent language model.

    Attributes:
      inputs: ``[K, embed]``, a row a word with a number below K; the first is for all other words.
      outputs: ``[K, width]``, Y.
      bias: ``[K]``, b.
      core: parameters of the layers.
      shares: ``[num_words]``, log of a word's share of the occurrences of its row: 0 where it has one of its own.
      network: sizes.
      backward: whether it reads sentences from the end to the start.
    """

    inputs: jax.Array
    outputs: jax.Array
    bias: jax.Array
    core: dict
    shares: jax.Array
    network: Network = flax.struct.field(pytree_node=False)
    backward: bool = flax.struct.field(pytree_node=False, default=False)


def start(network: Network, num_words: int, bias: jax.Array, key: jax.Array) -> tuple:
    """What is learned, at its start.

    Args:
      network: sizes.
      num_words: rows of the tables, K.
      bias: ``[K]``, the start of b: logarithms of the words' shares of the text.
      key: PRNG key.

    Returns:
      ``(inputs, outputs, bias, core)``, in the dtype of ``bias``.
    """
    keys = jax.random.split(key, 3)
    inputs, outputs = (jax.random.uniform(one, (num_words, width), bias.dtype, -0.1, 0.1)
                       for one, width in zip(keys, (network.embed, network.width), strict=False))  # fmt: skip
    states = network.zeros(1, bias.dtype)
    core = Layers(network).init(keys[2], inputs[None, :1], jnp.zeros((1, 1), bool), states, dry=True)["params"]
    return inputs, outputs, bias, core
