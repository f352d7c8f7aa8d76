"""A training of S2Net on antonyms for test_thesaurus_killed.py, slow enough to be killed: ``FOLDER``."""

from __future__ import annotations

import sys
import time

import jax

EPOCHS = 8


def train(folder=None, *, wait=0.0):
    """Learns the antonyms of a made-up thesaurus, a checkpoint an epoch; the fit, and how often it was validated."""
    from jaxsim.data import thesauri
    from jaxsim.methods import pilsa, s2net_antonym
    from jaxsim.methods.thesaurus import signed

    senses = [(f"a{i}", [f"a{(i + 1) % 12}"], [f"b{i}", f"b{(i + 5) % 12}"]) for i in range(12)]
    entries, calls = signed.documents([thesauri.thesaurus("made up", senses)]), []
    words, pairs = entries.terms(), entries.pairs()

    def validate(params):
        time.sleep(wait)
        calls.append(params)
        return float(len(calls))  # grows, so that the best epoch is none of the first

    fit = s2net_antonym.fit(words, pairs, init=pilsa.fit(words, k=3).params, key=jax.random.key(0), batch_size=6,
                            learning_rate=0.05, max_iter=EPOCHS, patience=EPOCHS, checkpoint=folder, validate=validate)
    return fit, len(calls)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    train(sys.argv[1], wait=0.5)
