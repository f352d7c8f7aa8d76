from __future__ import annotations

import fit_until_stopped as example
import jax
import jax.numpy as jnp
import jaxopt
import numpy as np
import optax
import pytest
import reference_models as reference
import scipy.optimize

from jaxsim import optim


def logistic_regression(params, data):
    features, labels, penalty = data
    scores = features @ params["w"] + params["b"]
    return jnp.mean(jax.nn.softplus(-labels * scores)) + penalty * jnp.sum(params["w"] ** 2)


def quadratic(x, data):
    return jnp.sum((x - data) ** 2)


def waves(x, data):
    return -jnp.sum(data * jnp.cos(x))


def not_a_number(x, data):
    return jnp.sum(jnp.sqrt(x - data))


@pytest.fixture
def regression(rng):
    features = rng.normal(size=(60, 8)) * np.linspace(0.3, 3, 8)
    labels = np.sign(features @ rng.normal(size=8) + rng.normal(size=60))
    start = {"w": jnp.zeros(8), "b": jnp.zeros(())}
    return start, (jnp.asarray(features), jnp.asarray(labels), jnp.asarray(1e-3))


def flat(params):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(params)])


SUFFICIENT_DECREASE = jaxopt.BacktrackingLineSearch(logistic_regression, maxiter=30, condition="wolfe", c2=1e30)


@pytest.mark.parametrize(("linesearch", "penalty", "scale"), [
    ("backtracking", 1e-2, 1.0),
    # Here jaxopt's own search also shortens steps that overshoot without going up; with ours inside, it is the same.
    (SUFFICIENT_DECREASE, 1e-3, 3.0),
], ids=["as it stands", "with our line search"])
def test_iterates_are_those_of_jaxopt(regression, linesearch, penalty, scale):
    start, data = regression
    data = (data[0] * scale, data[1], jnp.asarray(penalty))
    solver = jaxopt.LBFGS(logistic_regression, linesearch=linesearch, linesearch_init="max", history_size=5,
                          maxls=30, tol=0.0, implicit_diff=False)
    state, params, theirs = solver.init_state(start, data), start, []
    update = jax.jit(solver.update)
    for _ in range(50):
        params, state = update(params, state, data)
        theirs.append(flat(params))
    ours = []

    def keep(params):
        ours.append(flat(params))
        return 0.0

    fit = optim.minimize_lbfgs(logistic_regression, start, data, max_iter=50, tol=0.0, history_size=5, validate=keep)
    for mine, other in zip(ours[1:], theirs, strict=False):
        np.testing.assert_allclose(mine, other, atol=1e-5)
    assert len(ours) > 20 and fit.history[0]["loss"] > 2 * fit.history[-1]["loss"]


def test_the_compact_direction_is_the_two_loop_recursion(rng):
    h, dim = 4, 9
    half = rng.normal(size=(dim, dim))
    hessian = half @ half.T + np.eye(dim)
    pairs, square = jnp.zeros((2 * h, dim)), jnp.zeros((h, h))
    state, steps, changes = (pairs, square, square, jnp.zeros((), jnp.int32)), [], []
    x, grad = rng.normal(size=dim), rng.normal(size=dim)
    for _ in range(7):  # past the length of the history
        step = rng.normal(size=dim)
        steps, changes = [*steps, step][-h:], [*changes, hessian @ step][-h:]
        new_x, new_grad = x + step, grad + hessian @ step
        *state, direction = optim.lbfgs._advance(*state, x, grad, new_x, new_grad)
        x, grad = new_x, new_grad
        expected = reference.lbfgs_direction(grad, steps, changes)
        np.testing.assert_allclose(direction, expected, atol=1e-9 * np.linalg.norm(expected))


@pytest.mark.parametrize(("share", "counts"), [(1e-3, True), (1e-6, True), (1e-8, False), (0.0, False), (-0.5, False)])
def test_pairs_without_curvature_change_no_direction(rng, share, counts):
    h, dim = 4, 9
    square = jnp.zeros((h, h))
    state, kept = (jnp.zeros((2 * h, dim)), square, square, jnp.zeros((), jnp.int32)), []
    x, grad = rng.normal(size=dim), rng.normal(size=dim)
    for number in range(3):
        step = rng.normal(size=dim)
        change = step * np.linspace(1, 2, dim)
        if number == 1:  # a change of which only so large a share is along the step
            across = change - step * (step @ change) / (step @ step)
            change = share * step / np.linalg.norm(step) + across / np.linalg.norm(across)
        if number != 1 or counts:
            kept.append((step, change))
        new_x, new_grad = x + step, grad + change
        *state, direction = optim.lbfgs._advance(*state, x, grad, new_x, new_grad)
        x, grad = new_x, new_grad
        expected = reference.lbfgs_direction(grad, *map(list, zip(*kept, strict=True)))
        np.testing.assert_allclose(direction, expected, atol=1e-7 * np.linalg.norm(expected))


def test_the_minimum_is_that_of_scipy_and_optax(regression):
    start, data = regression
    fit = optim.minimize_lbfgs(logistic_regression, start, data, max_iter=200, tol=1e-7)
    assert fit.converged and fit.grad_norm <= 1e-7

    @jax.jit
    def flat_objective(x):
        return jax.value_and_grad(lambda x: logistic_regression({"b": x[0], "w": x[1:]}, data))(x)

    oracle = scipy.optimize.minimize(flat_objective, np.zeros(9), method="L-BFGS-B", jac=True,
                                     options={"ftol": 1e-15, "gtol": 1e-9})
    assert fit.loss == pytest.approx(oracle.fun, abs=1e-9)
    solver, params = optax.lbfgs(), start
    state = solver.init(params)

    def value_of(params):
        return logistic_regression(params, data)

    @jax.jit
    def update(params, state):
        value, grad = optax.value_and_grad_from_state(value_of)(params, state=state)
        change, state = solver.update(grad, state, params, value=value, grad=grad, value_fn=value_of)
        return optax.apply_updates(params, change), state

    for _ in range(40):
        params, state = update(params, state)
    assert fit.loss == pytest.approx(float(value_of(params)), abs=1e-9)


def test_fit_reports_what_happened(regression):
    start, data = regression
    fit = optim.minimize_lbfgs(logistic_regression, start, data, max_iter=6)
    assert fit.steps == 6 and not fit.converged and len(fit.history) == 7
    assert [entry["step"] for entry in fit.history] == list(range(7))
    losses = [entry["loss"] for entry in fit.history]
    assert losses == sorted(losses, reverse=True) and fit.loss == losses[-1]
    value, grad = jax.value_and_grad(logistic_regression)(fit.params, data)
    assert fit.loss == pytest.approx(float(value)) and fit.grad_norm == pytest.approx(np.linalg.norm(flat(grad)))
    counts = [entry["evaluations"] for entry in fit.history]
    assert counts[0] == 1 and np.all(np.diff(counts) >= 1) and fit.evaluations == counts[-1]
    assert np.all(np.diff([entry["seconds"] for entry in fit.history]) >= 0)


def test_no_iterations_and_a_start_at_the_minimum_return_the_start():
    target = jnp.array([1.0, 2.0])
    none = optim.minimize_lbfgs(quadratic, jnp.zeros(2), target, max_iter=0)
    assert none.params.tolist() == [0.0, 0.0] and none.steps == 0 and not none.converged and none.loss == 5.0
    there = optim.minimize_lbfgs(quadratic, target, target)
    assert there.params.tolist() == [1.0, 2.0] and there.steps == 0 and there.converged


def test_first_step_sets_the_length_of_the_first_trial():
    start = jnp.array([3.0, 4.0])
    fit = optim.minimize_lbfgs(quadratic, start, jnp.zeros(2), max_iter=1, first_step=0.3)
    np.testing.assert_allclose(fit.params, 0.7 * start)


def test_a_first_step_that_is_much_too_short_costs_no_search():
    # No shorter step could meet a curvature condition here, so the step is taken and the next one is longer.
    fit = optim.minimize_lbfgs(quadratic, jnp.array([3.0, 4.0]), jnp.array([1e3, 0.0]), first_step=0.1, tol=1e-6)
    assert fit.history[1]["evaluations"] == 2 and fit.converged and fit.evaluations < 10
    np.testing.assert_allclose(fit.params, [1e3, 0.0], atol=1e-6)


def test_pairs_without_curvature_are_left_out():
    # -cos has concave stretches between its minima, on which s . y is negative.
    start, heights = jnp.array([2.9, 3.0, 0.4]), jnp.array([1.0, 0.5, 2.0])
    fit = optim.minimize_lbfgs(waves, start, heights, first_step=0.01, tol=1e-8)
    assert fit.converged and fit.loss == pytest.approx(-3.5)


@pytest.mark.parametrize("kind", ["lbfgs", "sgd"])
def test_early_stopping_returns_the_best_parameters(kind):
    seen = []

    def score(params):
        seen.append(params)
        return example.validate(params)

    def train(patience):
        start = {"x": jnp.asarray(np.linspace(-1.0, 1.0, 8))}
        options = dict(validate=score, patience=patience, max_iter=30)
        if kind == "lbfgs":
            return optim.minimize_lbfgs(example.objective, start, jnp.ones(7), tol=0.0, history_size=4, **options)
        return optim.minimize_sgd(example.objective, start, example.batches, key=jax.random.key(3), learning_rate=5e-4,
                                  **options)

    fit = train(3)
    scores = [entry["validation"] for entry in fit.history]
    best = int(np.argmax(scores))
    assert best > 0 and fit.steps == best + 3 < 30
    np.testing.assert_array_equal(fit.params["x"], seen[best]["x"])
    assert fit.loss == fit.history[best]["loss"]


def test_patience_with_a_validation_that_never_improves():
    fit = optim.minimize_lbfgs(quadratic, jnp.zeros(3), jnp.arange(3.0), validate=lambda params: 0.0, patience=1,
                               tol=0.0)
    assert fit.params.tolist() == [0.0] * 3 and fit.steps == 1


def test_a_validation_score_that_is_not_a_number_is_refused():
    with pytest.raises(ValueError, match="validate: expected a number after step 0, got nan"):
        optim.minimize_lbfgs(quadratic, jnp.zeros(2), jnp.ones(2), validate=lambda params: float("nan"))


def test_a_line_search_that_cannot_succeed_is_reported():
    # The kink at 0 makes every step along the negative gradient go up.
    fit = optim.minimize_lbfgs(lambda x, data: jnp.sum(jnp.abs(x)) * data, jnp.full(1, 1e-13), jnp.ones(()), tol=0.0,
                               max_linesearch=5)
    assert not fit.converged and fit.history[-1]["stop"] == "line search failed"
    assert fit.params.tolist() == [1e-13] and fit.loss == 1e-13


def test_a_loss_that_is_not_finite_names_the_step():
    with pytest.raises(FloatingPointError, match="L-BFGS: expected a finite loss, got nan at step 0"):
        optim.minimize_lbfgs(not_a_number, jnp.zeros(2), jnp.ones(2))
    with pytest.raises(FloatingPointError, match="L-BFGS: expected a finite loss, got nan at step 1"):
        optim.minimize_lbfgs(lambda x, data: jnp.where(x == data, 0.0, jnp.nan) + x, jnp.zeros(()), jnp.zeros(()))


def from_zeros(**options):
    target = jnp.array([1.0, -2.0])
    if options.pop("grid", False):
        return optim.minimize_lbfgs_grid(quadratic, jnp.zeros((1, 2)), target[None], 0, **options)[0]
    return optim.minimize_lbfgs(quadratic, jnp.zeros(2), target, **options)


@pytest.mark.parametrize("options", [{}, {"solver": "optax"}, {"grid": True}], ids=str)
def test_a_first_step_relative_to_a_start_of_zeros_is_the_gradient(options):
    fit = from_zeros(first_step=0.1, **options)
    np.testing.assert_allclose(fit.params, [1.0, -2.0], atol=1e-6)
    assert fit.converged and fit.steps == from_zeros(**options).steps


def rooted(x, data):
    return jnp.sum((x - data) ** 2) + jnp.sqrt(jnp.maximum(0.3 - x[0], 0.0))  # at 0.3 and beyond its slope is NaN


def test_a_gradient_that_is_no_number_names_the_step():
    for options in ({}, {"solver": "optax"}):
        with pytest.raises(FloatingPointError, match="L-BFGS: expected a gradient of numbers, got NaN at step 0"):
            optim.minimize_lbfgs(rooted, jnp.ones(2), jnp.array([1.0, 5.0]), **options)
    with pytest.raises(FloatingPointError, match=r"L-BFGS: expected a gradient of numbers, got NaN at step [1-9]"):
        optim.minimize_lbfgs(rooted, jnp.zeros(2), jnp.array([1.0, 5.0]))
    with pytest.raises(FloatingPointError, match=r"fit 1: expected a gradient of numbers, got NaN at step 0"):
        optim.minimize_lbfgs_grid(rooted, jnp.array([[0.0, 5.0], [1.0, 1.0]]), jnp.array([0.0, 5.0]), None)


def test_a_last_step_to_nan_is_refused_though_its_loss_was_a_number(key):
    def run(start, **options):
        return optim.minimize_sgd(rooted, jnp.full(2, start), lambda _: [jnp.zeros(2)], key=key, max_iter=1, **options)

    assert np.isfinite(run(0.0).params).all()
    with pytest.raises(FloatingPointError, match="SGD: expected parameters that are numbers, got NaN after epoch 1"):
        run(1.0)
    with pytest.raises(ValueError, match="validate: expected a number after step 1"):
        run(1.0, validate=lambda x: x[0])


def test_sgd_with_a_loss_that_is_not_finite_names_the_step(key):
    with pytest.raises(FloatingPointError, match=r"SGD: expected a finite loss, got inf at step 2 \(epoch 1\)"):
        optim.minimize_sgd(quadratic, jnp.zeros(2), lambda key: [jnp.ones(2)] * 3, key=key, learning_rate=1e200)
    batches = iter([[0.0] * 4, [0.0, 0.0, jnp.nan, 0.0]])
    with pytest.raises(FloatingPointError, match=r"got nan at step 7 \(epoch 2\)"):
        optim.minimize_sgd(quadratic, jnp.zeros(2), lambda key: map(jnp.asarray, next(batches)), key=key)


def test_sgd_leaves_the_start_alone_and_takes_any_optax_transformation(key):
    start = jnp.zeros(3)
    target = jnp.array([1.0, -1.0, 2.0])
    fit = optim.minimize_sgd(quadratic, start, lambda key: [target] * 40, key=key, optimizer=optax.adagrad(0.5),
                             max_iter=5)
    np.testing.assert_allclose(fit.params, target, atol=1e-3)
    assert start.tolist() == [0.0] * 3 and fit.evaluations == 200 and fit.steps == 5


def test_sgd_gives_every_epoch_its_own_key(key):
    seen = []

    def batches(epoch_key):
        seen.append(jax.random.key_data(epoch_key).tolist())
        return [jnp.ones(2)]

    optim.minimize_sgd(quadratic, jnp.zeros(2), batches, key=key, max_iter=3)
    assert seen == [jax.random.key_data(jax.random.fold_in(key, e)).tolist() for e in range(3)]


@pytest.mark.parametrize(("options", "message"), [
    ({"max_iter": -1}, "max_iter: expected a whole number of at least 0, got -1"),
    ({"max_iter": 2.5}, "max_iter: expected a whole number of at least 0, got 2.5"),
    ({"max_iter": True}, "max_iter: expected a whole number of at least 0, got True"),
    ({"patience": 0}, "patience: expected a whole number of at least 1, or None, got 0"),
    ({"patience": 1.5}, "patience: expected a whole number of at least 1, or None, got 1.5"),
    ({"checkpoint_every": 0}, "checkpoint_every: expected a whole number of at least 1, got 0"),
    ({"checkpoint_every": 1.5}, "checkpoint_every: expected a whole number of at least 1, got 1.5"),
    ({"history_size": 0}, "history_size: expected a whole number of at least 1, got 0"),
    ({"max_linesearch": 2.5}, "max_linesearch: expected a whole number of at least 1, got 2.5"),
    ({"tol": float("nan")}, "tol: expected a number of at least 0, got nan"),
    ({"tol": -1.0}, "tol: expected a number of at least 0, got -1.0"),
])
def test_bad_settings_are_refused(key, options, message):
    with pytest.raises(ValueError, match=message):
        optim.minimize_lbfgs(quadratic, jnp.zeros(2), jnp.ones(2), **options)
    if not {"history_size", "max_linesearch", "tol"} & set(options):
        with pytest.raises(ValueError, match=message):
            optim.minimize_sgd(quadratic, jnp.zeros(2), lambda key: [jnp.ones(2)], key=key, **options)


def test_an_epoch_without_batches_is_refused(key):
    with pytest.raises(ValueError, match="batches: expected at least one batch an epoch, got 0"):
        optim.minimize_sgd(quadratic, jnp.zeros(2), lambda key: [], key=key)


def test_progress_goes_to_stderr_only_when_asked(capsys):
    optim.minimize_lbfgs(quadratic, jnp.zeros(2), jnp.ones(2), max_iter=1)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_the_closed_form_fit_has_no_loss():
    fit = optim.closed_form("params")
    assert np.isnan(fit.loss) and np.isnan(fit.grad_norm) and fit.converged
    assert (fit.params, fit.steps, fit.evaluations, fit.history) == ("params", 0, 0, [])


def test_a_run_says_the_same_as_its_fields_one_by_one_and_an_option_counts_before_it(key):
    target, few = jnp.arange(3.0), optim.Run(max_iter=2, tol=0.0, first_step=0.1)
    one = optim.minimize_lbfgs(quadratic, jnp.ones(3), target, run=few)
    other = optim.minimize_lbfgs(quadratic, jnp.ones(3), target, max_iter=2, tol=0.0, first_step=0.1)
    assert one.steps == 2 and one.params.tolist() == other.params.tolist()
    assert optim.minimize_lbfgs(quadratic, jnp.ones(3), target, run=few, max_iter=1).steps == 1
    fit = optim.minimize_sgd(quadratic, jnp.ones(3), lambda key: [target], key=key, run=optim.Run(max_iter=3))
    assert fit.steps == 3


def test_what_is_no_field_of_a_run_or_none_of_the_optimiser_is_named(key):
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'max_itr': expected a field of optim.Run"):
        optim.minimize_lbfgs(quadratic, jnp.zeros(2), jnp.ones(2), max_itr=3)
    with pytest.raises(ValueError, match="run: expected an optim.Run, or None, got dict"):
        optim.minimize_lbfgs(quadratic, jnp.zeros(2), jnp.ones(2), run={"max_iter": 3})
    with pytest.raises(ValueError, match=r"tol: expected None \(SGD has no such setting\), got 0.1"):
        optim.minimize_sgd(quadratic, jnp.zeros(2), lambda key: [jnp.ones(2)], key=key, tol=0.1)
    with pytest.raises(ValueError, match="first_step: expected a positive number, got 0"):
        optim.Run(first_step=0)


def _square(params, data):
    return jnp.sum((params["a"].reshape(3) - data) ** 2)


def _square_of_batch(params, batch):
    return _square(params, batch)


MINIMISERS = {
    "lbfgs": lambda start: optim.minimize_lbfgs(_square, start, jnp.ones(3)),
    "optax": lambda start: optim.minimize_lbfgs(_square, start, jnp.ones(3), solver="optax"),
    "grid": lambda start: optim.minimize_lbfgs_grid(_square, start, jnp.ones(3), None)[0],
    "sgd": lambda start: optim.minimize_sgd(_square_of_batch, start, lambda key: [jnp.ones(3)], key=jax.random.key(0)),
}


@pytest.mark.parametrize("name", MINIMISERS)
def test_what_no_minimiser_starts_from_is_named(name):
    minimise = MINIMISERS[name]
    explicit = jax.make_mesh((1,), ("some",), axis_types=(jax.sharding.AxisType.Explicit,))
    placed = jax.device_put(jnp.zeros((1, 3)), jax.sharding.NamedSharding(explicit, jax.sharding.PartitionSpec()))
    for start, message in [
        ({"a": np.zeros((1, 3), int)}, r"params\['a'\]: expected floating values, got int64"),
        (optim.closed_form({"a": jnp.zeros((1, 3))}), r"params: expected parameters \(fit.params\), got a Fit"),
        ({"a": placed}, r"params\['a'\]: expected a mesh of Auto axes .*, got one of Explicit axes"),
    ]:
        with pytest.raises(ValueError, match=message):
            minimise(start)
    with pytest.raises(ValueError, match=r"params\['a'\]: expected an array .* outside jax.jit.*, got a traced value"):
        jax.jit(lambda a: minimise({"a": a}).params)(jnp.zeros((1, 3)))
    automatic = jax.sharding.Mesh(explicit.devices, explicit.axis_names)
    start = jax.device_put(jnp.zeros((1, 3)), jax.sharding.NamedSharding(automatic, jax.sharding.PartitionSpec()))
    assert float(minimise({"a": start}).loss) < 3
