"""Which devices a training takes: all there are without a word, and no more than there are devices and pairs."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
import scipy.sparse
from command_line import LEFT, RIGHT
from light import with_devices

from jaxsim import cli, sparse
from jaxsim.data.pairs import Pairs
from jaxsim.evaluate import mates
from jaxsim.methods.projections import Projection
from jaxsim.parallel import sharding
from jaxsim.train import s2net, settings, training


@pytest.fixture
def three(monkeypatch):
    """A process that seems to have three devices."""
    (device,) = jax.local_devices()
    monkeypatch.setattr(sharding.jax, "local_devices", lambda: [device, "second", "third"])
    monkeypatch.setattr(sharding, "Mesh", lambda devices, names: (list(devices), names))
    return device


def test_all_devices_are_taken_but_no_more_than_there_are_pairs(three):
    assert sharding.local_mesh(100) == ([three, "second", "third"], ("pairs",))
    assert sharding.local_mesh(2) == ([three, "second"], ("pairs",))
    assert sharding.local_mesh(1) is None and sharding.local_mesh(0) is None
    assert sharding.local_mesh(100, devices=2) == ([three, "second"], ("pairs",))
    assert sharding.local_mesh(100, devices=1) is None


@pytest.mark.parametrize(("pairs", "devices", "message"), [
    (100, 4, r"devices: expected at most 3 \(devices of this process\), got 4"),
    (2, 3, r"devices: expected at most 2 \(pairs to train on\), got 3"),
    (2, 0, "devices: expected"),
])
def test_more_devices_than_devices_or_pairs_are_refused(three, pairs, devices, message):
    with pytest.raises(ValueError, match=message):
        sharding.local_mesh(pairs, devices=devices)


def test_one_device_needs_no_mesh():
    assert sharding.local_mesh(100) is None


def test_a_training_asks_for_its_devices_and_trains_on_them(monkeypatch):
    asked = []

    def local_mesh(num_docs, *, devices=None):
        asked.append((num_docs, devices))
        return jax.make_mesh((1,), ("pairs",))

    monkeypatch.setattr(sharding, "local_mesh", local_mesh)
    ids = tuple(map(str, range(len(LEFT))))
    pairs = Pairs("pairs", ids, tuple(LEFT), tuple(RIGHT), ("here",) * len(ids), ("en", "en"), "0" * 64)
    settings = training.Settings(dim=3, max_iter=0, min_df=1, batch_size=0, devices=1, precision="bfloat16")
    model = training.train(pairs, settings, dev=0)
    assert asked == [(model.training["pairs"]["train"], 1)]
    assert model.training["settings"]["precision"] == "bfloat16" and model.params.weights.shape[1] == 3


@pytest.mark.programs
def test_a_training_that_shares_its_terms_says_so_to_the_fit_and_gives_its_result(monkeypatch):
    """On a mesh of one device."""
    seen, fit = [], s2net.s2net.fit
    monkeypatch.setattr(s2net.s2net, "fit", lambda *sides, **options: seen.append(options) or fit(
        *sides, **options))
    ids = tuple(map(str, range(len(LEFT))))
    pairs = Pairs("pairs", ids, tuple(LEFT), tuple(RIGHT), ("here",) * len(ids), ("en", "en"), "0" * 64)
    settings = training.Settings(dim=3, max_iter=3, min_df=1, subwords=0.0)
    some, dev = pairs.take(range(30)), pairs.take(range(30, 40))
    alone = training.train(some, settings, dev=dev)
    monkeypatch.setattr(sharding, "local_mesh", lambda num_docs, *, devices=None: jax.make_mesh((1,), ("pairs",)))
    monkeypatch.setattr(s2net, "_EXACT_PAIRS", 2)  # sharing goes with all negatives, however many
    shared = training.train(some, dataclasses.replace(settings, shard_terms=True), dev=dev)
    assert [options["shard_terms"] for options in seen] == [False, True] and seen[1]["mesh"].size == 1
    assert isinstance(shared.params.weights, np.ndarray) and shared.training["settings"]["shard_terms"]
    np.testing.assert_allclose(shared.params.weights, alone.params.weights, rtol=1e-4, atol=1e-5)
    one, other = (model.training["history"] for model in (shared, alone))
    np.testing.assert_allclose(one["loss"], other["loss"], rtol=1e-4)
    assert one["validation"][:2] == other["validation"][:2] and len(one["validation"]) == 4


def test_the_shared_dev_score_is_the_dev_score(rng):
    sides = tuple(sparse.from_scipy(scipy.sparse.csr_matrix(rng.poisson(0.3, (9, 12)).astype(np.float32)))
                  for _ in range(2))  # fmt: skip
    mesh = jax.make_mesh((1,), ("pairs",))
    one, other = (Projection(rng.normal(size=(12, 4)).astype(np.float32)) for _ in range(2))
    for params in (one, (one, other)):
        for activation in (None, jax.numpy.tanh):
            score = s2net.shared_validator(sides, mesh, activation=activation)
            assert score(params) == mates.validator(sides, activation=activation)(params)


SHARED = """
import json, os, sys
import numpy as np
from jaxsim.optim import checkpoints
from jaxsim import cli
from jaxsim.model import Model
words = ["train", "--pairs", "pairs.tsv", "--dim", "4", "--max-iter", "6", "--dev", "0.2", *sys.argv[1:], "--out"]
assert cli.main([*words, "alone", "--devices", "1", "--subwords", "0"]) == 0
assert cli.main([*words, "shared", "--shard-terms"]) == 0
save, saved = checkpoints.save, []
def stop(*state, **options):
    save(*state, **options)
    saved.append(1)
    if len(saved) == 2:  # the start, then the first checkpoint
        raise KeyboardInterrupt
checkpoints.save = stop
assert cli.main([*words, "stopped", "--shard-terms"]) == cli.INTERRUPTED
checkpoints.save = save
assert cli.main([*words, "stopped", "--shard-terms", "--resume"]) == 0
weights = {name: [np.asarray(side.weights) for side in Model.load(name)._sides] for name in
           ("alone", "shared", "stopped")}
found = {"matrices": len(weights["alone"]), "history": Model.load("shared").training["history"]["step"][-1],
         "shared": max(float(np.abs(a - b).max()) for a, b in zip(weights["alone"], weights["shared"])),
         "resumed": all(np.array_equal(a, b) for a, b in zip(weights["shared"], weights["stopped"]))}
with open("found.json", "w") as file:
    json.dump(found, file)
"""


@pytest.mark.programs
@pytest.mark.parametrize("method", settings.S2NET)
def test_terms_over_two_devices_give_the_model_of_one_and_a_stopped_training_goes_on(method, folder):
    environment = {**os.environ, "XLA_FLAGS": with_devices(2), "JAX_PLATFORMS": "cpu",
                   "PYTHONPATH": str(Path(sharding.__file__).parents[2])}  # fmt: skip
    done = subprocess.run([sys.executable, "-c", SHARED, "--method", method], env=environment, capture_output=True,
                          text=True, timeout=900)  # fmt: skip
    assert done.returncode == 0, done.stderr
    result = json.loads((folder / "found.json").read_text())
    assert result.pop("shared") < 1e-4
    assert result == {"matrices": settings.S2NET.index(method) + 1, "history": 6, "resumed": True}


@pytest.mark.parametrize(("options", "message"), [
    (["--shard-terms"], "--shard-terms: expected several devices to share the terms, got 1"),
    (["--shard-terms", "--batch-size", "8"], "--shard-terms: expected all negatives (batch_size 0), got batches"),
    (["--batch-size", "0", "--devices", "99"], "--devices: expected at most"),
    (["--batch-size", "8", "--devices", "2"], "--devices: expected 1, with batches, got 2"),
    (["--precision", "half"], "--precision"),
])
def test_the_command_names_what_is_wrong(folder, capsys, options, message):
    words = ["train", "--pairs", "pairs.tsv", "--out", "model", "--dim", "3", "--dev", "0", *options]
    assert cli.main(words) == 2
    assert message in capsys.readouterr().err.splitlines()[-1]
