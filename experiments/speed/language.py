"""The row of the speed tables that trains recurrent language models, beside the same models in PyTorch."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.corpora.synthetic import synthetic
from experiments.kit.measure import Sheet, installed, race
from jaxsim import optim
from jaxsim.methods.language import rnn_cells, rnn_training

STREAMS, WINDOW, DRAWN = 64, 32, 512
RATE, START, CLIP = 0.1, 1e-3, 5.0


class Problem:
    """A network, made-up words by Zipf's law, and steps of both programs from one start."""

    def __init__(self, cell: rnn_cells.Cell, words: int, hidden: int, windows: int):
        """Draws the words; the optimizers are Adagrad's, of which jaxsim's has one sum a row of the tables."""
        rng, share = np.random.default_rng(0), 1 / np.arange(1, words + 1)
        share /= share.sum()
        self.cell, self.network = cell, rnn_cells.Network(cell, hidden, hidden)
        read = rng.choice(words, (windows, WINDOW + 1, STREAMS), p=share).astype(np.int32)
        self.parts = read[:, :-1], read[:, 1:], np.zeros(windows, bool)
        draws = share**0.75 / (share**0.75).sum()
        self.constants = rnn_training.Constants(*(jnp.asarray(one, jnp.float32) for one in
                                                  (np.log(draws), np.cumsum(draws), RATE, CLIP)), jnp.int32(-1))
        self.learned = rnn_cells.start(self.network, words, jnp.asarray(np.log(share), jnp.float32), jax.random.key(0))
        self.draws, self.number = draws, windows * WINDOW * STREAMS

    def jaxsim(self):
        """A function that trains on all windows."""
        optimizer = optim.adagrad(1.0, START)
        sums = tuple(jnp.full(len(self.learned[2]), START, jnp.float32) for _ in range(3))
        state = [jax.tree.map(jnp.copy, self.learned),
                 rnn_training.State(sums, optimizer.init(self.learned[3]), self.network.zeros(STREAMS, jnp.float32))]

        def steps():
            *state[:], losses = rnn_training.train_windows(*state, self.parts, jax.random.key(1), self.constants,
                                                           network=self.network, number=DRAWN, optimizer=optimizer)
            return losses

        return steps

    def loss(self):
        """The full softmax of the first window, jaxsim's."""
        inputs, outputs, bias, core = self.learned
        words, right = self.parts[0][0], self.parts[1][0]
        zeros = self.network.zeros(STREAMS, jnp.float32)
        return rnn_training.window_loss((inputs[words], outputs, bias), core, words, right, None, zeros, None,
                                        self.network, self.constants)[1][0]

    def numpy(self):
        """The full softmax of the first window in float64."""
        inputs, outputs, bias, core = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), self.learned)
        layer, state, total = core["layer0"], np.zeros((STREAMS, self.network.hidden)), 0.0
        for words, right in zip(self.parts[0][0], self.parts[1][0], strict=True):
            rows, product = inputs[words] @ layer.get("kernel", np.eye(inputs.shape[1])), state @ layer["recurrent"]
            if self.cell.name == "tanh":
                state = np.tanh(rows + product)
            else:
                rows, product = np.split(rows, 3, axis=1), np.split(product, 3, axis=1)
                reset, update = (1 / (1 + np.exp(-rows[at] - product[at])) for at in (0, 1))
                state = (1 - update) * np.tanh(rows[2] + reset * product[2]) + update * state
            scores = state @ outputs.T + bias
            total += (np.logaddexp.reduce(scores, axis=1) - scores[np.arange(STREAMS), right]).sum()
        return total / (STREAMS * WINDOW)

    def torch(self, torch: Any):
        """PyTorch's loss of the first window, and a function that trains on all windows."""
        inputs, outputs, bias, core = jax.tree.map(lambda leaf: torch.tensor(np.array(leaf)), self.learned)
        tables = [torch.nn.Embedding.from_pretrained(one, freeze=False, sparse=True)
                  for one in (inputs, outputs, bias[:, None])]
        layer, hidden = core["layer0"], self.network.hidden
        rest = [one.requires_grad_() for one in layer.values()]
        if self.cell.name == "gru":
            gru = torch.nn.GRU(hidden, hidden)
            with torch.no_grad():
                gru.weight_ih_l0[:], gru.weight_hh_l0[:] = layer["kernel"].T, layer["recurrent"].T
                gru.bias_ih_l0[:], gru.bias_hh_l0[:] = layer["bias"], 0
            rest = list(gru.parameters())
        optimizer = torch.optim.Adagrad([table.weight for table in tables] + rest, lr=RATE,
                                        initial_accumulator_value=START)
        words, right = (torch.tensor(one.astype(np.int64)) for one in self.parts[:2])
        log_draws = torch.tensor(np.log(self.draws), dtype=torch.float32)

        def read(window, state):
            rows = tables[0](words[window])
            if self.cell.name == "gru":
                result, state = gru(rows, state[None])
                return result, state[0]
            result = []
            for row in rows:
                state = torch.tanh(row + layer["bias"] + state @ layer["recurrent"])
                result.append(state)
            return torch.stack(result), state

        def steps():
            state = torch.zeros(STREAMS, hidden)
            for window in range(len(words)):
                drawn = torch.multinomial(log_draws.exp(), DRAWN, replacement=True)
                result, state = read(window, state.detach())
                hit = (result * tables[1](right[window])).sum(-1) + tables[2](right[window])[..., 0]
                weight = tables[2](drawn)[:, 0] - log_draws[drawn] - np.log(DRAWN)
                others = result.reshape(-1, hidden) @ tables[1](drawn).T + weight
                others = others.masked_fill(right[window].reshape(-1, 1) == drawn, -torch.inf)
                loss = torch.nn.functional.softplus(others.logsumexp(-1) - hit.reshape(-1)).sum() / STREAMS
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            return float(loss.detach())

        with torch.no_grad():
            result, _ = read(0, torch.zeros(STREAMS, hidden))
            logs = torch.log_softmax(result @ outputs.T + bias, -1)
            loss = -float(torch.take_along_dim(logs, right[0][..., None], -1).mean())
        return loss, steps


def rnn(sizes, cores: int, full: bool) -> Sheet:
    """Training of recurrent language models: words a second of the tanh cell and of the GRU."""
    words, hidden, windows = (40_000, 200, 16) if full else (500, 16, 1)
    sheet = Sheet("rnn", cores, full, synthetic("words by Zipf's law", words=words, read=windows * WINDOW * STREAMS),
                  {"hidden": hidden, "streams": STREAMS, "window": WINDOW, "drawn": DRAWN})
    torch = installed("torch")
    if torch is None:
        sheet.missing("PyTorch, sparse gradients", "torch is not installed")
    else:
        torch.set_num_threads(cores)
    for cell, least in ((rnn_cells.TANH, 60_000), (rnn_cells.GRU, 33_000)):
        problem = Problem(cell, words, hidden, windows)
        contestants = {"jaxsim": problem.jaxsim()}
        value = problem.numpy()
        sheet.parity(f"{cell.name}, loss of a window, full softmax", problem.loss(), value, within=1e-5)
        if torch is not None:
            loss, contestants["PyTorch"] = problem.torch(torch)
            sheet.parity(f"{cell.name}, PyTorch's loss of it", loss, value, within=1e-5)
        speed = {name: problem.number / times.median
                 for name, times in race(contestants, repeats=sizes.repeats).items()}
        sheet.add(f"jaxsim, {cell.name}", speed["jaxsim"], "words/s")
        if torch is not None:
            sheet.add(f"PyTorch, {cell.name}, sparse gradients", speed["PyTorch"], "words/s",
                      ratio=speed["PyTorch"] / speed["jaxsim"], of="jaxsim", note="Adagrad without clipping")
        if cores == 1:
            sheet.expect(f"words/s, {cell.name}", speed["jaxsim"], least, at_least=True)
    return sheet
