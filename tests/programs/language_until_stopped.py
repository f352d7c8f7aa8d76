"""Small language models; as a program it trains one until it is killed: ``language_until_stopped.py FOLDER METHOD``."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import jax
import numpy as np

from jaxsim.data.corpora.sentences import Sentences
from jaxsim.methods.language import log_bilinear, model_m, rnn_lm

WORDS, SIZE, UNIGRAM = 12, 8, 7.0
NETWORK = rnn_lm.Network(rnn_lm.GRU, embed=6, hidden=8, dropout=0.1)
METHODS = ("rnn_lm", "log_bilinear", "model_m")
STEPS = 8


def text() -> Sentences:
    """Made-up sentences in which word 3 is always followed by word 5."""
    rng = np.random.default_rng(0)
    weights = 1 / np.arange(1, WORDS - 2)
    rows = []
    for _ in range(300):
        row = rng.choice(np.arange(3, WORDS), rng.integers(1, 8), p=weights / weights.sum())
        row = [word for one in row if one != 5 for word in ((one, 5) if one == 3 else (one,))]
        rows += [1, *row, 2] if row else []
    tokens = np.array(rows, np.int32)
    counts = np.bincount(tokens, minlength=WORDS)
    return Sentences(tokens, tuple(map(str, range(WORDS))), counts, "0" * 64, {})


def train(steps: int, **options):
    """Fits a recurrent network."""
    settings = {"size": SIZE, "network": NETWORK, "negatives": 8, "streams": 4, "window": 8, "learning_rate": 0.1,
                "adagrad": 1e-2, **options}
    return rnn_lm.fit(text(), key=jax.random.key(0), max_iter=steps, progress=False, **settings)


def fit(method: str, checkpoint=None, steps: int = STEPS):
    """Fits a method with a checkpoint after every step; of Model M each of its two parts has that many."""
    if method == "rnn_lm":
        return train(steps, checkpoint=checkpoint)
    run = {"max_iter": steps, "checkpoint": checkpoint, "checkpoint_every": 1, "progress": False}
    if method == "log_bilinear":
        return log_bilinear.fit(text(), [3, 4, 6, 7], size=SIZE, key=jax.random.key(0), k=6, window=2, negatives=8,
                                batch=32, learning_rate=0.1, **run)
    return model_m.fit(text(), np.arange(SIZE) % 4, tol=0.0, **run)


if __name__ == "__main__":
    replace = os.replace

    def slowly(source, target):
        """Names a file, and leaves time after a checkpoint for the kill."""
        replace(source, target)
        time.sleep(0.5 * (Path(target).name == "checkpoint.safetensors"))

    os.replace = slowly
    fit(sys.argv[2], sys.argv[1])
