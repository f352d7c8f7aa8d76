"""A small recurrent language model; as a program it trains until it is killed."""

from __future__ import annotations

import sys

import jax
import numpy as np

from jaxsim.data.corpora.sentences import Sentences
from jaxsim.methods.language import rnn_lm

WORDS, SIZE, UNIGRAM = 12, 8, 7.0
NETWORK = rnn_lm.Network(rnn_lm.GRU, embed=6, hidden=8, dropout=0.1)


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
    """Fits the model."""
    settings = {"size": SIZE, "network": NETWORK, "negatives": 8, "streams": 4, "window": 8, "learning_rate": 0.1,
                "adagrad": 1e-2, **options}
    return rnn_lm.fit(text(), key=jax.random.key(0), max_iter=steps, progress=False, **settings)


if __name__ == "__main__":
    train(steps=10**6, checkpoint=sys.argv[1])
