"""Kill -9, Ctrl-C, damaged files: what is written is never lost, and a resumed fit is the uninterrupted one."""

from __future__ import annotations

import dataclasses
import decimal
import functools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import fit_until_stopped as example
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.sparse

from jaxsim import optim, sparse
from jaxsim.methods import s2net
from jaxsim.optim import checkpoints, lbfgs
from jaxsim.optim.monitor import mark_of

NAME, BEFORE = "checkpoint.safetensors", "checkpoint.before.safetensors"


def quadratic(x, data):
    return jnp.sum((x - data) ** 2)


def other_objective(x, data):
    return jnp.sum((x - data) ** 4)


def flat(params):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(params)])


def same(a: float, b: float) -> bool:
    """Equality to the last bit; the loss before the first epoch of SGD is not a number."""
    return a == b or (np.isnan(a) and np.isnan(b))


@pytest.mark.parametrize("kind", ["lbfgs", "sgd", "rows"])
def test_resuming_after_any_checkpoint_is_bit_identical(tmp_path, kind):
    whole = example.train(kind)
    part = example.train(kind, tmp_path, max_iter=7, every=2)
    assert part.steps == 7
    resumed = example.train(kind, tmp_path, every=2)
    np.testing.assert_array_equal(flat(resumed.params), flat(whole.params))
    for mine, other in zip(resumed.history, whole.history, strict=True):
        assert same(mine["loss"], other["loss"]) and mine["validation"] == other["validation"]
        assert (mine["step"], mine["evaluations"]) == (other["step"], other["evaluations"])
    assert resumed.evaluations == whole.evaluations
    finished = example.train(kind, tmp_path, every=2)
    np.testing.assert_array_equal(flat(finished.params), flat(whole.params))
    assert finished.steps == whole.steps


def stop(kind, folder, sent, *, every, wait_for):
    """Starts the example in another process and sends it a signal once ``wait_for`` is there."""
    command = [sys.executable, example.__file__, str(folder), kind, str(every)]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, env={**os.environ, "JAX_PLATFORMS": "cpu"})
    deadline = time.monotonic() + 60
    while not wait_for() and time.monotonic() < deadline and child.poll() is None:
        time.sleep(0.02)
    child.send_signal(sent)
    _, errors = child.communicate(timeout=60)
    assert child.returncode != 0, "the example ended before it was stopped"
    return errors.decode()


@pytest.mark.programs
@pytest.mark.parametrize("kind", ["lbfgs", "sgd", "rows", "em"])
def test_kill_9_loses_nothing_that_was_written(tmp_path, kind):
    stop(kind, tmp_path / "run", signal.SIGKILL, every=3, wait_for=(tmp_path / "run" / NAME).exists)
    resumed, whole = example.train(kind, tmp_path / "run"), example.train(kind)
    np.testing.assert_array_equal(flat(resumed.params), flat(whole.params))
    assert all(same(a["loss"], b["loss"]) for a, b in zip(resumed.history, whole.history, strict=True))


@pytest.mark.programs
@pytest.mark.parametrize("kind", ["lbfgs", "sgd", "rows", "em"])
def test_ctrl_c_writes_a_checkpoint(tmp_path, kind):
    calls = tmp_path / "run.calls"  # one byte a validation
    errors = stop(kind, tmp_path / "run", signal.SIGINT, every=1000,
                  wait_for=lambda: calls.exists() and calls.stat().st_size > 3)
    assert "KeyboardInterrupt" in errors and (tmp_path / "run" / NAME).exists()
    resumed, whole = example.train(kind, tmp_path / "run", every=1000), example.train(kind)
    np.testing.assert_array_equal(flat(resumed.params), flat(whole.params))


@pytest.mark.parametrize("kind", ["lbfgs", "sgd", "rows"])
def test_ctrl_c_in_the_middle_of_a_validation_resumes_bit_identically(tmp_path, kind):
    calls = []

    def interrupted(params):
        calls.append(1)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return example.validate(params)

    with pytest.raises(KeyboardInterrupt):
        example.train(kind, tmp_path, validate=interrupted, every=1000)
    resumed, whole = example.train(kind, tmp_path, every=1000), example.train(kind)
    np.testing.assert_array_equal(flat(resumed.params), flat(whole.params))
    assert [entry["step"] for entry in resumed.history] == [entry["step"] for entry in whole.history]
    assert [e["validation"] for e in resumed.history] == [e["validation"] for e in whole.history]


@pytest.mark.parametrize(("seconds", "saved"), [(-1.0, 5), (3600.0, 1)])
def test_iterations_that_take_long_are_kept_before_their_number_is_reached(tmp_path, monkeypatch, seconds, saved):
    calls, save = [], checkpoints.save
    monkeypatch.setattr(lbfgs, "KEPT_WITHIN", seconds)
    monkeypatch.setattr(checkpoints, "save", lambda *given, **named: calls.append(1) or save(*given, **named))
    assert example.train("lbfgs", tmp_path, max_iter=4, every=1000).steps == 4
    assert len(calls) == saved


@pytest.mark.parametrize("kind", ["lbfgs", "sgd", "rows"])
def test_bad_checkpoints_and_folders_are_refused_before_any_step(tmp_path, kind):
    example.train(kind, tmp_path / "good", max_iter=3)
    path = tmp_path / "good" / NAME
    content = path.read_bytes()
    for damaged in (path, path.with_name(BEFORE)):
        damaged.write_bytes(content[:-20])
    with pytest.raises(ValueError, match="checkpoint: expected a whole checkpoint, got a damaged file"):
        example.train(kind, tmp_path / "good")
    assert path.read_bytes() == content[:-20], "the damaged file is left for inspection"
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ValueError, match="checkpoint: expected a folder that can be written to"):
        example.train(kind, tmp_path / "file" / "below")
    other = "sgd" if kind == "lbfgs" else "lbfgs"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="checkpoint: expected a checkpoint of the same data, start and settings"):
        example.train(other, tmp_path / "good")


@pytest.mark.parametrize("kind", ["lbfgs", "sgd", "rows"])
def test_a_fit_whose_newest_checkpoint_is_damaged_goes_on_from_the_one_before(tmp_path, kind):
    example.train(kind, tmp_path, max_iter=7, every=2)
    path, before = tmp_path / NAME, tmp_path / BEFORE
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.warns(UserWarning, match=f"{NAME} is damaged; going on from the one before it, .*{BEFORE}"):
        resumed = example.train(kind, tmp_path, every=2)
    whole = example.train(kind)
    np.testing.assert_array_equal(flat(resumed.params), flat(whole.params))
    assert all(same(a["loss"], b["loss"]) for a, b in zip(resumed.history, whole.history, strict=True))
    assert path.is_file() and before.is_file()
    assert example.train(kind, tmp_path, every=2).steps == whole.steps, "what is damaged is replaced"


def test_a_checkpoint_of_other_data_start_settings_or_objective_is_refused(tmp_path):
    start, data = jnp.zeros(2), jnp.array([1.0, 2.0])

    def run(objective=quadratic, start=start, data=data, **options):
        return optim.minimize_lbfgs(objective, start, data, checkpoint=tmp_path, max_iter=1, **options)

    run()
    for change in ({"data": data + 1}, {"start": start + 1}, {"history_size": 3}, {"first_step": 0.5},
                   {"objective": other_objective}, {"data": jnp.array([1.0, 2.0], jnp.float32)}):
        with pytest.raises(ValueError, match="expected a checkpoint of the same data, start and settings"):
            run(**change)
    assert run().steps == 1


@pytest.mark.parametrize("kind", ["lbfgs", "sgd", "rows"])
def test_a_fit_without_scores_goes_on_with_them_from_the_parameters_that_it_has(tmp_path, kind):
    example.train(kind, tmp_path, validate=None, max_iter=5)
    scored = []

    def falling(params):
        scored.append(flat(params))
        return -float(len(scored))

    resumed = example.train(kind, tmp_path, validate=falling, patience=3)
    part = example.train(kind, validate=None, max_iter=5)
    np.testing.assert_array_equal(scored[0], flat(part.params))
    assert [entry["validation"] for entry in resumed.history] == [None] * 5 + [-1.0, -2.0, -3.0, -4.0]
    np.testing.assert_array_equal(flat(resumed.params), scored[0])
    assert resumed.best_score == -1.0 and resumed.loss == resumed.history[5]["loss"]


@pytest.mark.parametrize("kind", ["lbfgs", "sgd", "rows"])
def test_a_fit_with_scores_goes_on_without_them_to_the_last_parameters(tmp_path, kind):
    example.train(kind, tmp_path, validate=lambda params: -float(jnp.sum(params["x"])), max_iter=5)
    resumed, whole = example.train(kind, tmp_path, validate=None), example.train(kind, validate=None)
    np.testing.assert_array_equal(flat(resumed.params), flat(whole.params))
    assert resumed.best_score is None and resumed.loss == whole.loss


@pytest.mark.parametrize("kind", ["lbfgs", "sgd", "rows"])
def test_a_fit_that_nothing_has_a_score_in_goes_on_bit_for_bit(tmp_path, kind):
    example.train(kind, tmp_path, validate=lambda params: -np.inf, max_iter=5)
    resumed, whole = (example.train(kind, folder, validate=lambda params: -np.inf) for folder in (tmp_path, None))
    np.testing.assert_array_equal(flat(resumed.params), flat(whole.params))
    assert resumed.loss == whole.loss and resumed.best_score == -np.inf


def test_a_checkpoint_holds_no_more_than_the_state(tmp_path):
    optim.minimize_lbfgs(quadratic, jnp.zeros(1000), jnp.ones(1000), checkpoint=tmp_path, history_size=3, max_iter=2)
    assert Path(tmp_path / NAME).stat().st_size < 8 * 1000 * (2 * 3 + 5)
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


def of_source(source: str, module: str = "a_method"):
    """The objective of a module that somebody may edit."""
    made = {"__name__": module, "jnp": jnp}
    exec(source, made)
    return made["objective"]


PLAIN = "def objective(x, data):\n    return jnp.sum((x - data) ** 2)"


@pytest.mark.parametrize(("other", "same"), [
    (of_source(PLAIN), True), (of_source("\n\n" + PLAIN), True), (jax.jit(of_source(PLAIN)), True),
    (of_source(PLAIN, "b_method"), False), (of_source(PLAIN.replace("- data", "+ data")), False),
    (of_source(PLAIN.replace("2", "4")), False), (of_source(PLAIN.replace("sum", "mean")), False),
])
def test_a_function_is_told_from_others_of_its_name(tmp_path, other, same):
    optim.minimize_lbfgs(of_source(PLAIN), jnp.zeros(3), jnp.ones(3), checkpoint=tmp_path, max_iter=1)
    if same:
        assert optim.minimize_lbfgs(other, jnp.zeros(3), jnp.ones(3), checkpoint=tmp_path, max_iter=3).steps > 0
        return
    with pytest.raises(ValueError, match="got another problem's"):
        optim.minimize_lbfgs(other, jnp.zeros(3), jnp.ones(3), checkpoint=tmp_path, max_iter=3)


@pytest.mark.parametrize(("other", "same"), [("jnp.tanh(x)", True), ("jnp.tanh(2 * x)", False), ("jnp.sin(x)", False)])
def test_functions_in_the_data_are_told_apart_by_what_they_do(tmp_path, rng, other, same):
    documents = sparse.from_scipy(scipy.sparse.csr_matrix(rng.normal(size=(6, 4))))
    start = s2net.random_init(4, 2, key=jax.random.key(0))

    def run(does, steps):
        return s2net.fit(documents, documents, init=start, activation=eval(f"lambda x: {does}", {"jnp": jnp}),
                         max_iter=steps, checkpoint=tmp_path)  # fmt: skip

    run("jnp.tanh(x)", 1)
    if same:
        assert run(other, 2).steps == 2
        return
    with pytest.raises(ValueError, match="got another problem's"):
        run(other, 2)


@dataclasses.dataclass
class Scaled:
    scale: float

    def __call__(self, x, data):
        return self.scale * jnp.sum((x - data) ** 2)

    def method(self, x, data):
        return self(x, data)


def closed_over(scale):
    return lambda x, data: scale * quadratic(x, data)


@pytest.mark.parametrize("made", [
    Scaled, closed_over, lambda scale: Scaled(scale).method, lambda scale: closed_over(jnp.full(2, scale)),
    lambda scale: lambda x, data, by=scale: by * x, lambda scale: functools.partial(quadratic, data=scale),
    lambda scale: jax.jit(closed_over(closed_over(scale)))])
def test_what_a_function_holds_on_to_tells_it_from_others(made):
    assert mark_of(made(2.0)) == mark_of(made(2.0)) != mark_of(made(3.0))


@pytest.mark.parametrize("odd", [
    {1: 2.0, "a": 3.0}, decimal.Decimal(3), 10**40, np.array([None, "a"]), np.array(["a"]), object(), {1, 2}, np, None,
    np.datetime64("2020-01-01"), [jnp.ones(2), "a"], np.float32(1), dataclasses.Field, lambda: None])
def test_whatever_a_function_holds_on_to_has_a_mark(odd):
    assert mark_of(lambda x: (x, odd)) == mark_of(lambda x: (x, odd))


def test_functions_of_this_library_without_a_name_are_told_apart():
    def made(squared):
        one = (lambda x: x * x) if squared else (lambda x: x + x)
        one.__module__ = "jaxsim.optim"
        return one

    assert mark_of(made(True)) == mark_of(made(True)) != mark_of(made(False))


def test_a_key_that_a_function_holds_on_to_counts(key):
    def drawn(key):
        return lambda x: x + jax.random.normal(key)

    assert mark_of(drawn(key)) == mark_of(drawn(key)) != mark_of(drawn(jax.random.key(1)))


def test_a_function_that_holds_on_to_itself_has_a_mark():
    def again(x):
        return again(x - 1)

    assert mark_of(again) == mark_of(again)


def quartic(params, data):
    return jnp.sum((params - data) ** 4)


def test_a_rate_that_falls_over_all_epochs_is_part_of_the_problem(tmp_path):
    def run(epochs):
        return optim.minimize_sgd(quartic, jnp.zeros(3), lambda key: [jnp.ones(3)] * 2, key=jax.random.key(0),
                                  optimizer=optim.adam(0.1, 2 * epochs), max_iter=epochs, checkpoint=tmp_path)

    assert run(2).loss == run(2).loss  # the mark is the same before and after the first step
    with pytest.raises(ValueError, match="expected a checkpoint of the same data, start and settings"):
        run(3)


def test_sgd_with_another_optimizer_or_other_batches_is_refused(tmp_path, key):
    def batches(times):
        return lambda key: [times * jnp.ones(3)] * 2

    def run(epochs, optimizer, times=1):
        return optim.minimize_sgd(quadratic, jnp.zeros(3), batches(times), key=key, optimizer=optimizer,
                                  max_iter=epochs, checkpoint=tmp_path)  # fmt: skip

    run(1, optax.adam(0.1))
    assert run(2, optax.adam(0.1)).steps == 2
    for optimizer, times in ((optax.adam(1e-4), 1), (optax.adam(0.1, b1=0.5), 1), (optax.adam(0.1), 5)):
        with pytest.raises(ValueError, match="got another problem's"):
            run(3, optimizer, times)
    with pytest.raises(ValueError, match="^batches: expected a function of a key that gives an epoch's batches, got"):
        optim.minimize_sgd(quadratic, jnp.zeros(3), [jnp.ones(3)], key=key)
