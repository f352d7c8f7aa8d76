"""The completion tables' rows that are trained step by step: recurrent networks, the log-bilinear model, Model M.

The preset `full` trains a GRU for an hour of one core (33,000 words a second), the paper's tanh network for a quarter
of an hour, the log-bilinear model for as long and Model M for five minutes; a row says how many words a network read.
``--preset accelerator`` trains the published network (two layers of LSTM, ten passes: 69.4 % of all Holmes questions
from left to right, 72.3 % in both directions) where there is an accelerator. Every training keeps a checkpoint beside
its fit and goes on from it when the command is given again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from experiments import kit
from jaxsim.data import sentences
from jaxsim.data.corpora.sentences import Sentences
from jaxsim.methods.language import log_bilinear, model_m, ngram, rnn_lm, word_classes
from jaxsim.optim import Fit

SEED = 0


@dataclass(frozen=True)
class Sizes:
    """What a preset fixes.

    Attributes:
      words: Rows of a network's tables.
      hidden: Width of a network's states and of the log-bilinear vectors.
      step: Words between two looks at the held-out sentences.
      steps: Cell -> the most such steps.
      passes: The most passes of the log-bilinear model.
      held: Sentences held out to stop by.
      classes: Of words, for Model M.
      batch: Gaps of a step of the log-bilinear model.
    """

    words: int = 40_000
    hidden: int = 200
    step: int = 1_000_000
    steps: Mapping[str, int] = field(default_factory=lambda: {"tanh": 60, "gru": 120})
    passes: int = 5
    held: int = 400
    classes: int = 150
    batch: int = 64


FULL = Sizes()
QUICK = Sizes(words=200, hidden=16, step=20_000, steps={"tanh": 1, "gru": 1}, passes=1, held=100, classes=15)


def sizes(table: kit.Table) -> Sizes:
    """Of the table's preset."""
    return QUICK if table.settings.synthetic else FULL


def apart(text: Sentences, held: int) -> tuple[Sentences, np.ndarray]:
    """All sentences but the last ones, and the tokens of these."""
    ends = np.flatnonzero(np.asarray(text.tokens[-200 * held :]) == sentences.END)
    cut = len(text.tokens) - min(len(text.tokens), 200 * held) + int(ends[-held - 1]) + 1
    return text.head(cut), np.array(text.tokens[cut:])


def kept(table: kit.Table, make: Callable[..., Fit], module: Any, **settings) -> Fit:
    """A training's fit from the cache, or made with a checkpoint beside it."""
    task = table.data

    def of_settings(checkpoint=None, **given) -> Fit:
        return make(task, checkpoint=checkpoint, **given)

    of_settings.__name__ = of_settings.__qualname__ = make.__name__
    of_settings.__module__ = make.__module__
    return table.fit(of_settings, reads=[task.known, module.VERSION], checkpoint=True)(**settings)


def network(task, *, cell: str, words: int, hidden: int, step: int, held: int, backward: bool, steps: int,
            checkpoint=None) -> Fit:
    """A recurrent network on one core."""
    train, dev = apart(task.text, held)
    cells = {"tanh": rnn_lm.TANH, "gru": rnn_lm.GRU, "lstm": rnn_lm.LSTM}
    return rnn_lm.fit(
        train, size=min(words, len(train.vocabulary)), key=jax.random.key(SEED), dev=dev, backward=backward,
        network=rnn_lm.Network(cells[cell], hidden, hidden), learning_rate=0.05 if cell == "tanh" else 0.1,
        adagrad=1e-3, words_a_step=step, max_iter=steps, patience=3, checkpoint=checkpoint,
    )


def published(task, *, held: int, backward: bool, steps: int, checkpoint=None) -> Fit:
    """The published network, for an accelerator."""
    train, dev = apart(task.text, held)
    return rnn_lm.fit(train, size=task.text.size(6), key=jax.random.key(SEED), dev=dev, backward=backward,
                      max_iter=steps, checkpoint=checkpoint, **rnn_lm.PUBLISHED)


def curve(fit: Fit, step: int) -> list[dict]:
    """Perplexity of the held-out sentences by words read."""
    return [{"words": entry["step"] * step, "perplexity": -entry["validation"], "split": "dev"}
            for entry in fit.history]


def network_fit(table: kit.Table, cell: str) -> tuple[Fit, np.ndarray]:
    """A network that reads from left to right, and its scores of the questions."""
    size = sizes(table)
    fit = kept(table, network, rnn_lm, cell=cell, words=size.words, hidden=size.hidden, step=size.step,
               held=size.held, backward=False, steps=size.steps[cell])
    return fit, rnn_lm.scores(fit.params, table.data.filled)


def recurrent(table: kit.Table, tested: Callable, cell: str) -> kit.Row:
    """A recurrent network (completion §3.3); how far it was trained stands in its configuration."""
    size = sizes(table)
    fit, scores = table.once(("network", cell), lambda: network_fit(table, cell))
    best = max(fit.history, key=lambda entry: entry["validation"])
    config = {"cell": cell, "hidden": size.hidden, "rows": len(fit.params.bias), "words_read": fit.steps * size.step,
              "passes": round(fit.steps * size.step / len(table.data.text.tokens), 2),
              "stopped_by": "held-out perplexity" if fit.converged else "the number of steps"}
    return kit.Row(config, **tested(table, scores), curve=curve(fit, size.step), fit=fit._replace(history=[]),
                   dev={"perplexity": -best["validation"]}, methods=(rnn_lm,))


def both_ways(table: kit.Table, tested: Callable, *, backward: bool) -> kit.Row | None:
    """The published network; the sum of both directions' log-probabilities."""
    if table.preset != "accelerator":
        return None
    size, scores, fits = sizes(table), 0, []
    for direction in (False, True)[: 1 + backward]:
        fits.append(kept(table, published, rnn_lm, held=size.held, backward=direction, steps=10))
        scores = scores + rnn_lm.scores(fits[-1].params, table.data.filled)
    settings = {name: value for name, value in rnn_lm.PUBLISHED.items() if name != "network"}
    return kit.Row({**settings, "passes": fits[0].steps, "directions": len(fits)}, **tested(table, scores),
                   fit=fits[0]._replace(history=[]), methods=(rnn_lm,))


def gaps(task, *, k: int, batch: int, held: int, passes: int, checkpoint=None) -> Fit:
    """The log-bilinear model of the words that the questions ask for."""
    train, dev = apart(task.text, held)
    return log_bilinear.fit(train, np.unique(task.filled.tokens[task.filled.chosen]), size=task.text.size(3),
                            key=jax.random.key(SEED), k=k, dev=dev, batch=batch, max_iter=passes,
                            checkpoint=checkpoint)


def log_bilinear_fit(table: kit.Table) -> tuple[Fit, np.ndarray]:
    """The model, and its scores of the questions."""
    size = sizes(table)
    fit = kept(table, gaps, log_bilinear, k=size.hidden // 2, batch=size.batch, held=size.held,
               passes=size.passes)
    return fit, log_bilinear.scores(fit.params, table.data.filled)


def gap_model(table: kit.Table, tested: Callable) -> kit.Row:
    """The log-bilinear model (Mnih and Kavukcuoglu 2013), which the paper lacks."""
    fit, scores = table.once("log-bilinear", lambda: log_bilinear_fit(table))
    best = max(fit.history, key=lambda entry: entry["validation"])
    points = [{"pass": entry["step"], "cross_entropy": -entry["validation"], "split": "dev"} for entry in fit.history]
    return kit.Row({"k": sizes(table).hidden // 2, "window": 10, "passes": fit.steps}, **tested(table, scores),
                   curve=points, fit=fit._replace(history=[]), dev={"cross_entropy": -best["validation"]},
                   methods=(log_bilinear,))


def classes_and_words(task, *, classes: int, min_count: int, checkpoint=None) -> Fit:
    """Model M, its perplexity on the held-out text, and its scores of the questions."""
    words = task.text.size(min_count)
    found = word_classes.exchange(word_classes.bigrams(task.text, words), classes, passes=8)
    fit = model_m.fit(task.text, found.of_word, tol=2e-4, checkpoint=checkpoint)
    value = ngram.perplexity(model_m.log_probs(fit.params, task.held), task.held)
    return fit._replace(params={"perplexity": value, "scores": model_m.scores(fit.params, task.filled)}, history=[])


def exponential(table: kit.Table, tested: Callable) -> kit.Row:
    """Model M (completion §3.2, Table 3): the same text, vocabulary and order as the 3-grams above."""
    size, settings = sizes(table), table.settings
    fit = kept(table, classes_and_words, model_m, classes=size.classes, min_count=settings.min_count)
    return kit.Row({"classes": size.classes, "min_count": settings.min_count, "l1": 0.5, "variance": 6.0},
                   **tested(table, fit.params["scores"]), metrics={"perplexity": float(fit.params["perplexity"])},
                   fit=fit._replace(params=None), methods=(model_m, word_classes.exchange))


def inputs(table: kit.Table) -> list[np.ndarray]:
    """For the combination with ours: scores of the log-bilinear model and of the GRU."""
    return [table.once("log-bilinear", lambda: log_bilinear_fit(table))[1],
            table.once(("network", "gru"), lambda: network_fit(table, "gru"))[1]]


def rows(tested: Callable) -> dict[str, Callable]:
    """Rows of the table of the Holmes questions; ``tested`` makes what a `kit.Row` says of scores."""
    return {
        "rnn-lm": lambda table: recurrent(table, tested, "tanh"),
        "gru": lambda table: recurrent(table, tested, "gru"),
        "lstm": lambda table: both_ways(table, tested, backward=False),
        "lstm-both": lambda table: both_ways(table, tested, backward=True),
        "log-bilinear": lambda table: gap_model(table, tested),
    }


__all__ = ["exponential", "inputs", "rows"]
