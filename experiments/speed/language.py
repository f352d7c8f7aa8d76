"""Rows of the speed tables: recurrent language models beside the same in PyTorch, and n-gram models of the novels."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.corpora.synthetic import synthetic
from experiments.kit.measure import Sheet, installed, race
from jaxsim import optim
from jaxsim.data import MissingCorpus, sentences
from jaxsim.methods.language import ngram, rnn_cells, rnn_training

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


def ngrams(sizes, cores: int, full: bool) -> Sheet:
    """Counting and estimating of 4-gram models in a process of its own: seconds, and the most memory it held."""
    sheet = Sheet("ngram", cores, full, synthetic("words by Zipf's law", words=500, tokens=20_000),
                  {"order": 4, "min_count": 3})
    sheet.missing("KenLM", "its Python package reads models and makes none")
    with tempfile.TemporaryDirectory() as place:
        folder = _novels() if full else _made_up(Path(place))
        if folder is None:
            sheet.missing("n-gram models of the novels", "the corpus sentence_completion is not in JAXSIM_DATA")
            return sheet
        text = sentences.load(folder)
        if full:
            sheet.dataset = {"name": "novels of the Sentence Completion Challenge", "sha256": text.sha256,
                             "counts": {"tokens": len(text.tokens), "words": text.size(3)}, "groups": {},
                             "differs": "same"}
        for smoothing in ngram.SMOOTHINGS if full else ngram.SMOOTHINGS[:1]:
            told, seconds, memory = _in_a_process(folder, smoothing)
            sheet.parity(f"{smoothing}, probabilities of all words after a history add up to 1", told["sum"], 1.0,
                         within=1e-4)
            sheet.add(f"{smoothing}, counting and estimating", told["seconds"], "s",
                      note=f"{told['ngrams']:,} n-grams; {seconds:.0f} s from the start of the process to its end")
            sheet.add(f"{smoothing}, peak resident memory", memory, "GB")
            sheet.expect(f"seconds, {smoothing}", seconds, 120.0)
            sheet.expect(f"GB, {smoothing}", memory, 3.0)
    return sheet


def _novels() -> Path | None:
    """The folder of the novels as numbers, written if it is not there; None without the corpus."""
    from experiments.completion import completion2012

    try:
        completion2012.novel_text()
    except MissingCorpus:
        return None
    return completion2012.CACHE / f"novels-{completion2012.RULES}"


def _made_up(place: Path) -> Path:
    """Sentences of ten words by Zipf's law."""
    rng, share = np.random.default_rng(0), 1 / np.arange(1, 501)
    drawn = rng.choice(500, (2_000, 10), p=share / share.sum())
    names = np.array(["".join(chr(97 + int(digit)) for digit in f"{at:03}") for at in range(500)])
    sentences.build([("made up", "\n\n".join(" ".join(row) for row in names[drawn]))], place / "tokens")
    return place / "tokens"


def _in_a_process(folder: Path, smoothing: str) -> tuple[dict, float, float]:
    """What `build` tells, its seconds from start to end, and its peak memory in GB."""
    begun = time.perf_counter()
    root = str(Path(__file__).resolve().parents[2])
    code = f"from experiments.speed import language; language.build({str(folder)!r}, {smoothing!r})"
    program = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}, cwd=root)
    told = program.stdout.read()
    program.stdout.close()
    _, status, used = os.wait4(program.pid, 0)
    program.returncode = os.waitstatus_to_exitcode(status)
    if program.returncode:
        raise RuntimeError(f"n-grams, {smoothing}: expected exit code 0, got {program.returncode}")
    memory = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e9
    return json.loads(told), time.perf_counter() - begun, memory


def build(folder: str, smoothing: str) -> None:
    """Makes a 4-gram model of sentences and prints, as JSON, what it took and a sum of probabilities."""
    text = sentences.load(folder)
    begun = time.perf_counter()
    model = ngram.fit(text, order=4, smoothing=smoothing, min_count=3).params
    seconds = time.perf_counter() - begun
    history = np.asarray(text.tokens[:3])
    words = np.delete(np.arange(model.size), sentences.START)
    rows = np.concatenate([np.tile(history, (len(words), 1)), words[:, None]], axis=1)
    logs = ngram.log_probs(model, rows.ravel()).reshape(rows.shape)[:, -1]
    print(json.dumps({"seconds": seconds, "ngrams": sum(map(len, model.log_prob)),
                      "sum": float(np.exp(logs.astype(np.float64)).sum())}))
