"""Which devices a training takes: all there are without a word, and no more than there are devices and pairs."""

from __future__ import annotations

import jax
import pytest
from command_line import LEFT, RIGHT

from jaxsim import cli, sharding, training
from jaxsim.data.pairs import Pairs


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


@pytest.mark.parametrize(("options", "message"), [
    (["--batch-size", "0", "--devices", "99"], "devices: expected at most"),
    (["--batch-size", "8", "--devices", "2"], "devices: expected 1, with batches, got 2"),
    (["--precision", "half"], "--precision"),
])
def test_the_command_names_what_is_wrong(folder, capsys, options, message):
    words = ["train", "--pairs", "pairs.tsv", "--out", "model", "--dim", "3", "--dev", "0", *options]
    assert cli.main(words) == 2
    assert message in capsys.readouterr().err.splitlines()[-1]
