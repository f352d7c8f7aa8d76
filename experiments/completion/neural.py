"""The completion tables' rows that are trained step by step: recurrent networks, the log-bilinear model, Model M.

The preset `full` gives the paper's tanh network two hours of two cores: `rnn-lm` reads up to 900 million words, some
eighteen times the novels, on one of them; `rnn-lm-both` adds a second one that reads every sentence from its end, for
the other. A GRU reads 40 million words in ten minutes; the log-bilinear model takes a quarter of an hour and Model M
five minutes. A row says how many words a network read, and its curve how many questions it answered on the way. The
table `sat-equal` trains network, Model M and n-grams on the same three million tokens, the network for four passes.

``--preset accelerator`` trains the published network (two layers of LSTM, ten passes: 69.4 % of all Holmes questions
from left to right, 72.3 % in both directions) where there is an accelerator. Every training keeps a checkpoint beside
its fit and goes on from it when the command is given again.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np

from experiments import kit
from jaxsim import io
from jaxsim.data import sentences
from jaxsim.data.corpora.sentences import END, START, Sentences
from jaxsim.evaluate import completion
from jaxsim.methods.language import log_bilinear, model_m, ngram, rnn_lm, word_classes
from jaxsim.optim import Fit, closed_form

SEED = 0
NEEDS = {"lstm": "preset accelerator", "lstm-both": "preset accelerator", "gensim-cbow": "gensim"}
"""Row -> what it needs that a machine may lack."""


@dataclass(frozen=True)
class Sizes:
    """What a preset fixes.

    Attributes:
      words: Rows of a network's tables; None for the words that the n-gram models know.
      hidden: Width of a network's states and of the log-bilinear vectors.
      step: Words between two looks at the held-out sentences; None for a pass over the text.
      steps: Cell -> the most such steps.
      looks: Steps after which a network answers the questions, for its curve.
      patience: Looks at the held-out sentences without a better perplexity after which a network stops.
      passes: The most passes of the log-bilinear model.
      held: Sentences held out to stop by.
      classes: Of words, for Model M.
      norm: Gradient norm, in nats a word, at which Model M has converged, and iterations that each half of it has.
      batch: Gaps of a step of the log-bilinear model.
    """

    words: int | None = 40_000
    hidden: int = 200
    step: int | None = 10_000_000
    steps: Mapping[str, int] = field(default_factory=lambda: {"tanh": 90, "gru": 4})
    looks: tuple[int, ...] = (1, 2, 5, 10, 20, 50)
    patience: int = 6
    passes: int = 5
    held: int = 400
    classes: int = 150
    norm: tuple[float, int] = (1e-3, 1000)
    batch: int = 64


FULL = Sizes()
EQUAL = Sizes(words=None, hidden=100, step=None, steps={"tanh": 4}, looks=(), patience=3,
              norm=(1e-3, 500))
QUICK = Sizes(words=200, hidden=16, step=20_000, steps={"tanh": 2, "gru": 2}, looks=(1,), patience=3, passes=1,
              held=100, classes=15)


def sizes(table: kit.Table) -> Sizes:
    """Of the table and its preset."""
    return QUICK if table.settings.synthetic else EQUAL if table.name == "sat-equal" else FULL


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


def network(task, *, cell: str, words: int, hidden: int, step: int | None, held: int, backward: bool, steps: int,
            patience: int, looks: tuple[int, ...] = (), checkpoint=None) -> Fit:
    """A recurrent network on one core, with its scores of the questions after some steps and at the end.

    The params are ``{"model": RnnLm, "scores": {step: [num_questions, num_choices]}}``.
    """
    train, dev = apart(task.text, held)
    cells = {"tanh": rnn_lm.TANH, "gru": rnn_lm.GRU, "lstm": rnn_lm.LSTM}
    folder = Path(checkpoint)
    found = {}
    for limit in (*(look for look in looks if look < steps), steps):
        kept = folder / f"scores-{limit}.json"
        if kept.exists() and limit < steps:  # an earlier command went on from here
            found[limit] = np.array(json.loads(kept.read_bytes()))
            continue
        fit = rnn_lm.fit(
            train, size=min(words, len(train.vocabulary)), key=jax.random.key(SEED), dev=dev, backward=backward,
            network=rnn_lm.Network(cells[cell], hidden, hidden), learning_rate=0.05 if cell == "tanh" else 0.1,
            adagrad=1e-3, words_a_step=step, max_iter=limit, patience=patience, checkpoint=folder / "training",
        )
        found[fit.steps] = rnn_lm.scores(fit.params, task.filled)
        io.write_bytes(kept, json.dumps(found[fit.steps].tolist()).encode())
    return fit._replace(params={"model": fit.params, "scores": found})


def published(task, *, held: int, backward: bool, steps: int, checkpoint=None) -> Fit:
    """The published network, for an accelerator."""
    train, dev = apart(task.text, held)
    return rnn_lm.fit(train, size=task.text.size(6), key=jax.random.key(SEED), dev=dev, backward=backward,
                      max_iter=steps, checkpoint=checkpoint, **rnn_lm.PUBLISHED)


def curve(fit: Fit, step: int) -> list[dict]:
    """Perplexity of the held-out sentences by words read."""
    return [{"words": entry["step"] * step, "perplexity": -entry["validation"], "split": "dev"}
            for entry in fit.history]


def network_fit(table: kit.Table, cell: str, *, backward: bool = False) -> Fit:
    """A network that reads from left to right, or backward, as `network` gives it."""
    size, task = sizes(table), table.data
    words = task.text.size(table.settings.min_count) if size.words is None else size.words
    return table.once(("network", cell, backward), lambda: kept(
        table, network, rnn_lm, cell=cell, words=words, hidden=size.hidden, step=size.step, held=size.held,
        backward=backward, steps=size.steps[cell], patience=size.patience, looks=size.looks))


def last_scores(fit: Fit) -> np.ndarray:
    """Scores of the questions at the end of a network's training."""
    return fit.params["scores"][fit.steps]


def recurrent(table: kit.Table, tested: Callable, cell: str, *, perplexity: bool = True) -> kit.Row:
    """A recurrent network (completion §3.3); how far it was trained stands in its configuration.

    Where the table has held-out text and ``perplexity`` is true, it is found with rare words as one, as that of the
    n-gram models is.
    """
    size, task = sizes(table), table.data
    fit = network_fit(table, cell)
    model, step = fit.params["model"], size.step or len(task.text.tokens)
    best = max(fit.history, key=lambda entry: entry["validation"])
    minutes = fit.history[-1]["seconds"] / 60
    config = {"cell": cell, "hidden": size.hidden, "rows": len(model.bias), "words_read": fit.steps * step,
              "passes": round(fit.steps * step / len(task.text.tokens), 2), "minutes": round(minutes, 1),
              "stopped_by": "held-out perplexity" if fit.converged else "the number of steps"}
    points = [{"words": at * step, "accuracy@all": float(completion.correct(scores, task.questions.answers).mean()),
               "split": "test"} for at, scores in sorted(fit.params["scores"].items())]
    told = (f"It read {fit.steps * step:,} words in {minutes:.0f} minutes on this device. Held-out perplexity "
            f"{'was still falling' if best['step'] == fit.steps else 'fell no more'} at the end.")
    metrics = {}
    if perplexity and task.held is not None:
        logs = rnn_lm.log_probs(model, task.held) - np.asarray(model.shares)[task.held]
        metrics["perplexity"] = float(ngram.perplexity(logs, task.held))
    return kit.Row(config, **tested(table, last_scores(fit)), curve=[*curve(fit, step), *points],
                   fit=fit._replace(history=[], params=None), dev={"perplexity": -best["validation"]}, metrics=metrics,
                   methods=(rnn_lm,), notes=[] if fit.converged else [told])


def two_networks(table: kit.Table, tested: Callable) -> kit.Row:
    """The paper's cell twice, the second network reading backward: the log-probabilities of both are added.

    Each is trained on one core and chosen by its own perplexity of the held-out sentences; nothing else is chosen.
    """
    size = sizes(table)
    fits = [network_fit(table, "tanh", backward=backward) for backward in (True, False)]
    step = size.step or len(table.data.text.tokens)
    of_step = [fit.params["scores"] for fit in fits]
    config = {"cell": "tanh", "hidden": size.hidden, "rows": len(fits[0].params["model"].bias), "directions": 2,
              "words_read": sum(fit.steps for fit in fits) * step,
              "minutes": round(sum(fit.history[-1]["seconds"] for fit in fits) / 60, 1)}
    points = [{"words": 2 * at * step, "split": "test",
               "accuracy@all": float(completion.correct(of_step[0][at] + of_step[1][at],
                                                        table.data.questions.answers).mean())}
              for at in sorted(set(of_step[0]) & set(of_step[1]))]
    dev = {f"perplexity_{name}": -fit.best_score
           for name, fit in zip(("backward", "forward"), fits, strict=True)}
    return kit.Row(config, **tested(table, last_scores(fits[0]) + last_scores(fits[1])), curve=points,
                   fit=fits[0]._replace(history=[], params=None), dev=dev, methods=(rnn_lm,))


def both_ways(table: kit.Table, tested: Callable, *, backward: bool) -> kit.Row | None:
    """The published network, ten passes; with ``backward`` also trained backward, and both log-probabilities added.

    Nothing is chosen; no row but by the preset `accelerator`.
    """
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
    """The log-bilinear model (Mnih and Kavukcuoglu 2013), which the paper lacks; stopped by held-out sentences."""
    fit, scores = table.once("log-bilinear", lambda: log_bilinear_fit(table))
    best = max(fit.history, key=lambda entry: entry["validation"])
    points = [{"pass": entry["step"], "cross_entropy": -entry["validation"], "split": "dev"} for entry in fit.history]
    return kit.Row({"k": sizes(table).hidden // 2, "window": 10, "passes": fit.steps}, **tested(table, scores),
                   curve=points, fit=fit._replace(history=[]), dev={"cross_entropy": -best["validation"]},
                   methods=(log_bilinear,))


def of_gensim(task, *, k: int, window: int, epochs: int, min_count: int) -> Fit:
    """Scores of the questions by gensim's continuous bag of words: the same kind of model, by another program.

    A choice's score is the inner product of its output vector and the mean of the input vectors within the window, as
    in training; a word that the model lacks adds nothing.
    """
    from gensim.models import Word2Vec

    begun = time.process_time()  # of a processor, so that other programs on the machine do not count
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "sentences.txt"
        with lines.open("w", encoding="utf-8") as file:
            for row in np.split(task.text.tokens, np.flatnonzero(np.asarray(task.text.tokens) == START)[1:]):
                file.write(" ".join(task.text.vocabulary[number] for number in row[1:-1]) + "\n")
        model = Word2Vec(corpus_file=str(lines), vector_size=k, window=window, sg=0, negative=10, epochs=epochs,
                         min_count=min_count, workers=1, seed=SEED)  # fmt: skip
    place, scores = model.wv.key_to_index, np.zeros(task.filled.tokens.shape[:2])
    for at in np.ndindex(scores.shape):
        tokens, chosen = task.filled.tokens[at], task.filled.chosen[at]
        known = [(spot, place[task.text.vocabulary[number]]) for spot, number in enumerate(tokens)
                 if number > END and task.text.vocabulary[number] in place]  # fmt: skip
        for spot, word in known:
            near = [other for beside, other in known if not chosen[beside] and abs(beside - spot) <= window]
            if chosen[spot] and near:
                scores[at] += model.syn1neg[word] @ model.wv.vectors[near].mean(axis=0)
    return closed_form({"scores": scores, "minutes": (time.process_time() - begun) / 60, "words": len(place)})


def gensim_bag(table: kit.Table, tested: Callable) -> kit.Row | None:
    """A peer of the log-bilinear model: the continuous bag of words of gensim, where it is installed."""
    if importlib.util.find_spec("gensim") is None:
        kit.say("gensim-cbow: not run, gensim is not installed (pip install gensim)")
        return None

    def make(**settings) -> Fit:
        return of_gensim(table.data, **settings)

    make.__name__, make.__module__ = of_gensim.__name__, of_gensim.__module__
    settings = {"k": sizes(table).hidden // 2, "window": 10, "epochs": 2, "min_count": table.settings.min_count}
    fit = table.fit(make, reads=table.data.known)(**settings)
    config = {**settings, "program": f"gensim {importlib.metadata.version('gensim')}", "negative": 10,
              "cpu_minutes": round(fit.params["minutes"], 1), "words": fit.params["words"]}
    return kit.Row(config, **tested(table, fit.params["scores"]))


def classes_and_words(task, *, classes: int, min_count: int, tol: float, max_iter: int, checkpoint=None) -> Fit:
    """Model M, its perplexity on the held-out text, and its scores of the questions."""
    words = task.text.size(min_count)
    found = word_classes.exchange(word_classes.bigrams(task.text, words), classes, passes=8)
    fit = model_m.fit(task.text, found.of_word, tol=tol, max_iter=max_iter, checkpoint=checkpoint)
    value = ngram.perplexity(model_m.log_probs(fit.params, task.held), task.held)
    return fit._replace(params={"perplexity": value, "scores": model_m.scores(fit.params, task.filled)}, history=[])


def exponential_fit(table: kit.Table) -> Fit:
    """Model M, as `classes_and_words` gives it."""
    size = sizes(table)
    return table.once("model-m", lambda: kept(
        table, classes_and_words, model_m, classes=size.classes, min_count=table.settings.min_count, tol=size.norm[0],
        max_iter=size.norm[1]))


def exponential(table: kit.Table, tested: Callable) -> kit.Row:
    """Model M (completion §3.2, Table 3): the same text, vocabulary and order as the 3-grams above."""
    size, settings = sizes(table), table.settings
    fit = exponential_fit(table)
    return kit.Row({"classes": size.classes, "min_count": settings.min_count, "l1": 0.5, "variance": 6.0},
                   **tested(table, fit.params["scores"]), metrics={"perplexity": float(fit.params["perplexity"])},
                   fit=fit._replace(params=None), methods=(model_m, word_classes.exchange))


def inputs(table: kit.Table) -> list[np.ndarray]:
    """For the combination with ours: scores of the log-bilinear model and of the GRU."""
    return [table.once("log-bilinear", lambda: log_bilinear_fit(table))[1],
            last_scores(network_fit(table, "gru"))]


def rows(tested: Callable) -> dict[str, Callable]:
    """Rows of the table of the Holmes questions; ``tested`` makes what a `kit.Row` says of scores."""
    return {
        "rnn-lm": lambda table: recurrent(table, tested, "tanh"),
        "rnn-lm-both": lambda table: two_networks(table, tested),
        "gru": lambda table: recurrent(table, tested, "gru"),
        "lstm": lambda table: both_ways(table, tested, backward=False),
        "lstm-both": lambda table: both_ways(table, tested, backward=True),
        "log-bilinear": lambda table: gap_model(table, tested),
        "gensim-cbow": lambda table: gensim_bag(table, tested),
    }


__all__ = ["NEEDS", "exponential", "inputs", "last_scores", "network_fit", "recurrent", "rows"]
