"""A small alignment for test_translation_killed.py, slow enough to be killed: ``python ... FOLDER``."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import jax
import numpy as np

EPOCHS = 14


def train(folder=None, *, slow=0.0):
    """Aligns sentences that are always the same."""
    from jaxsim.methods.translation import bitext, hmm

    rng = np.random.default_rng(0)
    rows = [rng.integers(9, size=rng.integers(2, 9)) for _ in range(40)]
    text = bitext.from_words([[f"l{i}" for i in row] for row in rows], [[f"r{i}" for i in row[::-1]] for row in rows])

    def validate(params) -> float:
        time.sleep(slow)
        return params.right_given_left.max(axis=1).sum()

    return hmm.fit(text, max_iter=EPOCHS, checkpoint=folder, validate=validate, word_jumps=True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    jax.config.update("jax_enable_x64", True)
    train(sys.argv[1], slow=0.3)
