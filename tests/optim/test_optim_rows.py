"""SGD on rows of tables: what a step changes, what it leaves alone, what is refused."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim import optim


def hinge(rows, example, data):
    """A loss that is 0, and flat, below a margin."""
    return jnp.maximum(0, data - jnp.sum(rows["a"]) * example[2])


def named(example, data):
    """The two rows that an example names."""
    return {"a": jnp.stack(example[:2])}


def run(examples, key, *, start=None, rate=0.5, data=1.0, **options):
    chunk = tuple(jnp.asarray(column) for column in zip(*examples, strict=True))
    chunk = (*(column.astype(jnp.int32) for column in chunk[:2]), chunk[2])
    start = {"a": jnp.zeros((4, 1))} if start is None else start
    return optim.minimize_rows(hinge, start, lambda key: [chunk], rows=named, data=jnp.asarray(data), key=key,
                               learning_rate=rate, **{"max_iter": 1, **options})


def test_a_step_changes_the_rows_of_its_example_and_a_row_named_twice_gets_both_updates(key):
    start = {"a": jnp.zeros((4, 1))}
    fit = run([(1, 1, 0.25)], key, start=start)
    assert fit.params["a"][:, 0].tolist() == [0, 0.25, 0, 0] and fit.loss == 1.0
    assert start["a"].tolist() == [[0.0]] * 4, "the caller's arrays are not donated"
    assert run([(0, 3, 1.0)], key).params["a"][:, 0].tolist() == [0.5, 0, 0, 0.5]


def test_examples_are_taken_one_after_the_other_and_those_of_loss_0_update_nothing(key):
    # 1 - 0; then the sum is 1 and the loss 0; then 1 - 2 * 1 is below 0.
    fit = run([(0, 1, 1.0), (0, 1, 1.0), (0, 1, 2.0)], key)
    assert fit.params["a"][:, 0].tolist() == [0.5, 0.5, 0, 0] and fit.loss == pytest.approx(1 / 3)
    assert fit.evaluations == 3 and fit.steps == 1 and np.isnan(fit.grad_norm) and np.isnan(fit.history[0]["loss"])


def test_the_best_epoch_is_returned_and_patience_stops(key):
    fit = run([(0, 1, 1.0)], key, rate=0.1, max_iter=9, patience=2,
              validate=lambda params: -abs(float(params["a"][0, 0]) - 0.2))
    assert fit.params["a"][:2, 0].tolist() == pytest.approx([0.2, 0.2]) and fit.steps == 4 and fit.converged


def test_the_first_loss_that_is_not_finite_is_named(key):
    examples = [(0, 1, 1.0), (2, 3, float("nan")), (2, 3, 1.0)]
    with pytest.raises(FloatingPointError, match=r"SGD: expected a finite loss, got nan at step 2 \(epoch 1\)"):
        run(examples, key)
    with pytest.raises(FloatingPointError, match=r"got nan at step 3 \(epoch 1\)"):
        run([(0, 1, 1.0), (0, 1, 0.5), (2, 3, float("nan"))], key)


def test_an_epoch_without_examples_and_bad_rates_are_refused(key, without_64_bits):
    with pytest.raises(ValueError, match="chunks: expected at least one example an epoch, got 0"):
        optim.minimize_rows(hinge, {"a": jnp.zeros((1, 1))}, lambda key: [], rows=named, data=1.0, key=key,
                            learning_rate=0.1)
    for rate in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="learning_rate: expected a positive number"):
            run([(0, 1, 1.0)], key, rate=rate)
    with without_64_bits(), pytest.raises(ValueError, match="learning_rate: expected a number that float32 holds"):
        run([(0, 1, 1.0)], key, rate=1e39)
