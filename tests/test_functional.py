"""Pure functions of one document, pair or triple: what ``jax.vmap`` makes of them is what the batched functions do."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

from jaxsim import losses, optim, sparse
from jaxsim.data import sentences
from jaxsim.losses import tiles
from jaxsim.methods import s2net, ssi, topics
from jaxsim.methods.language import combination, log_bilinear
from jaxsim.methods.s2net import exact
from jaxsim.methods.ssi import low_rank, triples
from jaxsim.methods.ssi import sgd as minibatches
from jaxsim.methods.thesaurus import mixture, s2net_antonym
from jaxsim.sparse import precision

N, V, K = 6, 9, 3
EXTREMES = np.array([-1e4, -30.0, 0.0, 0.0, 1e-8, 1e4])  # of gamma times a difference; a tie twice


@dataclasses.dataclass(frozen=True)
class Row:
    """A batched function and the single one that ``vmap`` lifts, of the same arguments.

    Attributes:
      batched: function of the arguments, and of one scalar or array (``third``) that a second ``vmap`` goes over.
      single: the same of one document, pair or triple.
      axes: where each argument has the axis of documents; None for one that all share.
      args: makes the arguments.
      third: values of the last argument, one a fit: scales, or starts from several seeds.
      slopes: numbers of the arguments in which both are differentiable.
    """

    batched: Callable
    single: Callable
    axes: tuple
    args: Callable
    third: Callable
    slopes: tuple[int, ...] = (0,)


def dense(rng, *shape):
    """Vectors, of which one is zero and two are equal."""
    x = rng.normal(size=shape)
    x[..., 2, :] = 0
    x[..., 4, :] = x[..., 3, :]
    return x


def rows(rng):
    """Documents as a matrix: an empty one, a long one, two equal ones."""
    x = rng.random((N, V)) * (rng.random((N, V)) < 0.4)
    x[1], x[2], x[4] = rng.random(V), 0, x[3]
    return x


def csr(rng):
    return scipy.sparse.csr_matrix(rows(rng))


def starts(rng):
    """Three projections, as of three seeds."""
    return rng.normal(size=(3, V, K))


def scales(rng):
    return np.array([0.5, 1.0, 10.0])


def pair(rng):
    return dense(rng, N, K), dense(rng, N, K)[::-1]


def distributions(rng):
    x = rng.random((2, N, K))
    x[0, 2] = [0, 0, 1]
    x[1, 2] = [0, 1, 0]
    return tuple(x / x.sum(axis=-1, keepdims=True))


def of_vectors(function):
    """A function of two vectors; the second ``vmap`` scales the first of them."""

    def both(a, b, scale):
        return function(scale * a, b)

    return Row(both, both, (0, 0), pair, scales, (0, 1))


def mean_of_all_pairs(left, right, groups, gamma):
    """000 Eq. (2) of every pair and every other document, from functions of two vectors alone."""

    def difference(i, j):
        own = sparse.cosine(left[i], right[i]), sparse.cosine(left[j], right[j])
        other = sparse.cosine(left[i], right[j])
        apart = (groups[i] != groups[j]).astype(float)
        loss = sum(losses.logistic_pairwise(score - other, gamma=gamma) for score in own)
        return apart * loss, 2 * apart

    every = jnp.arange(left.shape[0])
    total, count = jax.vmap(jax.vmap(difference, in_axes=(None, 0)), in_axes=(0, None))(every, every)
    return jnp.sum(total) / jnp.sum(count)


def swept(left, right, groups, gamma):
    """The sum of `tiles.sweep`, over the number of its terms; `all_pairs_logistic` has the gradients."""
    left, right = sparse.unit(left), sparse.unit(right)
    own, ids = jnp.sum(left * right, axis=-1), jnp.arange(N)
    sides = [tiles.Side(side, own, ids, groups[:, None]) for side in (left, right)]
    return tiles.sweep(*sides, gamma, (4, 5), with_grad=False).total / (2 * losses.negatives(groups[:, None], float))


def grouped(rng):
    return *pair(rng), np.array([0, 1, 0, 2, 3, 4])


def weighed(terms, scale):
    return sparse.project(sparse.weigh(terms, scale), jnp.eye(V))


KNOWN = np.array([[True, True, True], [True, False, True], [False, True, True]])  # of the choices of three questions
ANSWERS = np.array([0, 2, 1])


def mixed(cosines, weights):
    """The loss of `mixture.objective`, from that of one question."""

    def of_one(cosines, known, answer):
        scores = jnp.where(known, -weights @ cosines, -jnp.inf)
        return jax.nn.logsumexp(scores) - scores[answer]

    return jnp.mean(jax.vmap(of_one, in_axes=(1, 0, 0))(cosines, KNOWN, ANSWERS)) + 0.05 * jnp.sum(weights**2)


def combined(differences, weights):
    """The loss of `combination.objective`, from that of one pair of a right and a wrong choice."""
    loss = jax.vmap(lambda difference: jax.nn.softplus(-difference @ weights))(differences)
    return jnp.sum(loss * KNOWN[0]) / 3 + 0.1 * jnp.sum(weights**2)


def windows(rng):
    """Numbers of words, some of them marks; the middle, which is asked for, never is one."""
    result = rng.choice([sentences.START, sentences.END, *range(7, 12)], (N, 5))
    result[:, 2] = 7
    return (result,)


def in_sentence(window, scale):
    """The words of one window with no mark between them and the middle, nor a mark themselves."""
    places, middle = jnp.arange(len(window)), len(window) // 2
    marks = jnp.isin(window, jnp.array([sentences.START, sentences.END]))
    near, far = jnp.minimum(places, middle)[:, None], jnp.maximum(places, middle)[:, None]
    crossed = jnp.any(marks[None] & (near <= places[None]) & (places[None] <= far), axis=1)
    return scale * jnp.delete(~crossed, middle)


ANTONYMS = np.array([[0, 3], [1, 4], [0, 5]])  # heads and antonyms: the first and the last pair share a head


def opposed(documents, weights):
    """The loss of `s2net_antonym.objective`, from functions of two vectors."""
    heads, antonyms = jnp.split(jax.vmap(sparse.project, in_axes=(0, None))(documents, weights), 2)
    return mean_of_all_pairs(heads, -antonyms, jnp.asarray(ANTONYMS[:, 0]), 5.0)


TABLE = {
    "sparse.project of Terms": Row(
        sparse.project, sparse.project, (0,), lambda rng: (sparse.from_scipy(csr(rng)),), starts, ()),
    "sparse.project of Slices": Row(
        sparse.project, sparse.project, (0,), lambda rng: (sparse.slices(csr(rng), width=2),), starts, ()),
    "sparse.weigh": Row(
        weighed, lambda document, scale: jnp.zeros(V).at[document.indices].add(
            document.values * scale[document.indices]),
        (0,), lambda rng: (sparse.from_scipy(csr(rng)),), lambda rng: rng.normal(size=(3, V)), ()),
    "sparse.with_values": Row(
        lambda terms, weights: sparse.project(sparse.with_values(terms, terms.values**2), weights),
        lambda document, weights: sparse.project(dataclasses.replace(document, values=document.values**2), weights),
        (0,), lambda rng: (sparse.from_scipy(csr(rng)),), starts, ()),
    "sparse.project_transpose": Row(
        lambda terms, dense: sparse.project_transpose(terms, dense),
        lambda document, dense: dense, (0,), lambda rng: (sparse.from_scipy(csr(rng)),),
        lambda rng: rng.normal(size=(3, N, K)), ()),
    "sparse.inner_products": Row(
        sparse.inner_products, lambda document, vectors: vectors, (0,),
        lambda rng: (sparse.from_scipy(scipy.sparse.csr_matrix(rng.random((N, N)) < 0.5)),),
        lambda rng: rng.normal(size=(3, N, K)), ()),
    "sparse.unit": Row(lambda a, scale: sparse.unit(scale * a), lambda a, scale: sparse.unit(scale * a), (0,),
                       lambda rng: (dense(rng, N, K),), scales),
    "sparse.activated": Row(lambda a, scale: sparse.activated(scale * a, jax.nn.sigmoid),
                            lambda a, scale: sparse.activated(scale * a, jax.nn.sigmoid), (0,),
                            lambda rng: (dense(rng, N, K),), scales),
    **{f"sparse.{name}": of_vectors(getattr(sparse, name)) for name in ("cosine", "dot", "l1")},
    "sparse.jensen_shannon": Row(
        lambda a, b, share: sparse.jensen_shannon(share * a + (1 - share) * b, b),
        lambda a, b, share: sparse.jensen_shannon(share * a + (1 - share) * b, b), (0, 0), distributions,
        lambda rng: np.array([0.2, 0.5, 0.9]), (0, 1)),
    "precision.matmul": Row(
        lambda a, weights: precision.matmul(a, weights, "float32"),
        lambda a, weights: precision.matmul(a[None], weights, "float32")[0],
        (0,), lambda rng: (dense(rng, N, V),), starts),
    "losses.logistic_pairwise": Row(
        lambda delta, gamma: losses.logistic_pairwise(delta, gamma=gamma),
        lambda delta, gamma: losses.logistic_pairwise(delta, gamma=gamma), (0,), lambda rng: (EXTREMES,), scales),
    "losses.margin_ranking": Row(
        lambda better, worse, margin: losses.margin_ranking(better, worse, margin=margin),
        lambda better, worse, margin: losses.margin_ranking(better, worse, margin=margin),
        (0, 0), lambda rng: (EXTREMES, np.zeros(N)), scales, (0, 1)),
    "losses.squared": Row(
        lambda labels, scores, scale: losses.squared(labels, scale * scores),
        lambda labels, scores, scale: losses.squared(labels, scale * scores),
        (0, 0), lambda rng: (np.arange(N) % 2.0, rng.normal(size=N)), scales, (1,)),
    "losses.log": Row(
        lambda labels, scores, scale: losses.log(labels, scale * scores),
        lambda labels, scores, scale: losses.log(labels, scale * scores),
        (0, 0), lambda rng: (np.arange(N) % 2.0, np.linspace(-0.5, 1.5, N)), scales, (1,)),
    "losses.all_pairs_logistic": Row(
        lambda left, right, groups, gamma: losses.all_pairs_logistic(left, right, gamma=gamma, groups=groups,
                                                                     block_size=4),
        mean_of_all_pairs, None, grouped, lambda rng: np.array([1.0, 10.0, 1e4]), (0, 1)),
    "losses.tiles": Row(swept, mean_of_all_pairs, None, grouped, lambda rng: np.array([1.0, 19.0, 1e4]), ()),
    "topics.shares": Row(
        lambda counts, scale: topics.shares(counts + scale * counts**2),
        lambda counts, scale: topics.shares(counts + scale * counts**2),
        (0,), lambda rng: (np.abs(dense(rng, N, K)),), scales),
    "mixture.objective": Row(
        lambda cosines, weights: mixture.objective(weights, mixture.Choices(cosines, KNOWN, ANSWERS, 0.1)), mixed,
        None, lambda rng: (rng.uniform(-1, 1, (2, 3, 3)),), lambda rng: rng.normal(size=(3, 2))),
    "combination.objective": Row(
        lambda differences, weights: combination.objective(
            weights, {"differences": differences, "counted": KNOWN[0], "l2": 0.1}), combined,
        None, lambda rng: (rng.normal(size=(3, K)),), lambda rng: rng.normal(size=(3, K))),
    "log_bilinear.predicted": Row(
        lambda rows, inside, places: log_bilinear.predicted(rows, places, inside),
        lambda rows, inside, places: jnp.sum(rows * places * inside[:, None], axis=0),
        (0, 0), lambda rng: (rng.normal(size=(N, 4, K)), rng.random((N, 4)) < 0.5),
        lambda rng: rng.normal(size=(3, 4, K))),
    "log_bilinear.within": Row(
        lambda windows, scale: scale * log_bilinear.within(windows), in_sentence, (0,),
        windows, scales, ()),
    "s2net_antonym.objective": Row(
        lambda words, rows: s2net_antonym.objective(
            rows, s2net_antonym.Batch(jnp.arange(V), words, jnp.asarray(ANTONYMS)), jnp.asarray(5.0)), opposed,
        None, lambda rng: (sparse.from_scipy(csr(rng)),), starts, ()),
}
"""All public numeric functions of `sparse` and `losses`; of the methods those that take many documents, questions or
windows at once and are JAX from end to end (`topics.encode`, and the scores of sentences and of thesauri, lay out their
data on the host). ``axes`` is None where the single function lifts itself."""

OTHERS = {
    "sparse": {
        "types": {"Document", "Filled", "Gathered", "Held", "Slices", "Terms", "Vectors"},
        "on the host": {"documents", "from_scipy", "gathered", "host", "narrow", "nonzero", "size_class", "slices",
                        "take", "to_scipy"},
        "another storage": {"filled", "held"},
        "in the table under another name": {"precision"},
    },
    "losses": {"in the table under another name": {"negatives"}},
}


def test_the_table_has_every_public_numeric_function():
    named = {name.split(" ")[0].removeprefix("precision.") for name in TABLE}
    for package in (sparse, losses):
        short = package.__name__.removeprefix("jaxsim.")
        missing = {name for name in package.__all__ if f"{short}.{name}" not in named}
        assert missing == set().union(*OTHERS[short].values()), short


def single_arguments(name, row, rng):
    """The arguments of the lifted function: documents one by one where the batched one has a collection."""
    args = row.args(np.random.default_rng(0))
    if not isinstance(args[0], sparse.Terms | sparse.Slices):
        return tuple(map(jnp.asarray, args))
    return (sparse.documents(csr(np.random.default_rng(0))),)


def lifted(name, row):
    """The batched function's counterpart, made of the single one by ``vmap``."""
    if row.axes is None:
        return row.single
    if name == "sparse.project_transpose":  # the transpose of a lifted project, by JAX's own rules
        return lambda documents, out: jax.linear_transpose(
            lambda weights: jax.vmap(sparse.project, in_axes=(0, None))(documents, weights), jnp.zeros((V, K)))(out)[0]
    if name == "sparse.inner_products":
        def products(_, vectors):
            at = np.nonzero(np.random.default_rng(0).random((N, N)) < 0.5)
            return jax.vmap(lambda i, j: sparse.dot(vectors[i], vectors[j]))(*map(jnp.asarray, at))

        return products
    return jax.vmap(row.single, in_axes=(*row.axes, None))


def outcomes(function, args, third, slopes, weight):
    """Value, and gradients of a weighted sum: in the arguments ``slopes`` and in the last; all of it over ``third``."""

    def value_and_grads(last):
        value = function(*args, last)

        def total(*some):
            return jnp.sum(weight(value.shape) * function(*some))

        return value, jax.grad(total, argnums=(*slopes, len(args)))(*args, last)

    return jax.jit(jax.vmap(value_and_grads))(third), value_and_grads(third[0])


@pytest.mark.parametrize("name", TABLE)
def test_batched_functions_are_the_lifted_single_ones(rng, name):
    row = TABLE[name]
    third = jnp.asarray(row.third(np.random.default_rng(1)))

    def weight(shape):
        return np.random.default_rng(2).normal(size=shape)

    args = tuple(arg if isinstance(arg, sparse.Terms | sparse.Slices) else jnp.asarray(arg)
                 for arg in row.args(np.random.default_rng(0)))
    single = lifted(name, row)
    batched = outcomes(row.batched, args, third, row.slopes, weight)
    by_vmap = outcomes(single, single_arguments(name, row, rng), third, row.slopes, weight)
    assert jax.tree.structure(batched) == jax.tree.structure(by_vmap)
    for one, other in zip(jax.tree.leaves(batched), jax.tree.leaves(by_vmap), strict=True):
        assert one.dtype == jnp.float64 and one.shape == other.shape and np.all(np.isfinite(one))
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)
    # A second vmap changes nothing: its first element is the function of the first setting.
    for one, other in zip(jax.tree.leaves(batched[0]), jax.tree.leaves(batched[1]), strict=True):
        np.testing.assert_allclose(one[0], other, rtol=1e-11, atol=1e-11)


def test_the_gradient_in_the_values_of_documents_is_that_of_each_alone(rng):
    weights, target = jnp.asarray(starts(rng)[0]), jnp.asarray(dense(rng, N, K))
    matrix = csr(rng)
    terms, documents = sparse.from_scipy(matrix, pad_nnz=matrix.nnz + 3), sparse.documents(matrix, width=V + 2)

    def of_terms(values):
        return jnp.sum(sparse.cosine(sparse.project(sparse.with_values(terms, values), weights), target))

    def of_document(values, indices, target):
        return sparse.cosine(sparse.project(sparse.Document(indices, values, V), weights), target)

    expected = jax.grad(of_terms)(terms.values)[: matrix.nnz]
    result = jax.jit(jax.vmap(jax.grad(of_document)))(documents.values, documents.indices, target)
    filled = np.arange(V + 2) < np.diff(matrix.indptr)[:, None]
    np.testing.assert_allclose(np.asarray(result)[filled], expected, atol=1e-12)


def test_second_derivatives_and_other_documents_a_fit_pass_through_project(rng):
    matrix, weights = csr(rng), jnp.asarray(starts(rng))
    terms, full = sparse.from_scipy(matrix), jnp.asarray(matrix.toarray())

    def curvature(project):
        slope = jax.grad(lambda w: jnp.sum(project(w) ** 3))
        return jax.vmap(jax.grad(lambda w: jnp.sum(slope(w) ** 2)))(weights)

    np.testing.assert_allclose(curvature(lambda w: sparse.project(terms, w)), curvature(lambda w: full @ w), rtol=1e-9)
    scale = jnp.arange(1.0, 4.0)
    result = jax.vmap(lambda s: sparse.project(sparse.with_values(terms, s * terms.values), weights[0]))(scale)
    np.testing.assert_allclose(result, scale[:, None, None] * (full @ weights[0])[None], rtol=1e-12)


def test_one_document_is_refused_where_many_are_given(rng):
    documents = sparse.documents(csr(rng))
    with pytest.raises(ValueError, match=r"terms: expected one document \(for many, jax.vmap"):
        sparse.project(documents, jnp.ones((V, K)))
    with pytest.raises(ValueError, match=rf"weights: expected shape \({V}, k\), got \(2, 1\)"):
        sparse.project(documents[0], jnp.ones((2, 1)))
    with pytest.raises(ValueError, match=f"width: expected at least {V}"):
        sparse.documents(csr(rng), width=2)
    assert sparse.documents(scipy.sparse.csr_matrix((3, 0))).values.shape == (3, 1)


def small_problem(rng):
    sides = [sparse.from_scipy(csr(rng)) for _ in range(2)]
    start = s2net.random_init(V, K, key=jax.random.key(0))
    return exact.Data(*sides, jnp.asarray(10.0), jnp.asarray(0.01), start)


@pytest.mark.parametrize("over", ["gamma", "seeds"])
def test_a_grid_in_one_program_is_the_separate_fits(rng, over):
    data = small_problem(rng)
    axes, size = None, 3
    params = jax.vmap(lambda key: s2net.random_init(V, K, key=key))(jax.random.split(jax.random.key(3), size))
    if over == "gamma":
        data = dataclasses.replace(data, gamma=jnp.array([0.5, 10.0, 40.0]))
        axes = dataclasses.replace(jax.tree.map(lambda _: None, data), gamma=0)
        params = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf[0], leaf.shape), params)
    settings = {"max_iter": 25, "tol": 0.02, "first_step": 0.1}
    fits = optim.minimize_lbfgs_grid(exact.objective, params, data, axes, **settings)
    assert len({fit.steps for fit in fits}) > 1 and any(fit.converged for fit in fits)  # some wait for others
    for i, fit in enumerate(fits):
        own = dataclasses.replace(data, gamma=data.gamma[i]) if over == "gamma" else data
        alone = optim.minimize_lbfgs(exact.objective, jax.tree.map(lambda leaf, i=i: leaf[i], params), own, **settings)
        np.testing.assert_allclose(fit.params.weights, alone.params.weights, atol=1e-8)
        assert (fit.steps, fit.evaluations, fit.converged) == (alone.steps, alone.evaluations, alone.converged)
        assert [entry["loss"] for entry in fit.history] == pytest.approx([entry["loss"] for entry in alone.history])
        assert fit.loss == pytest.approx(alone.loss, rel=1e-9) and fit.history[0].keys() == alone.history[0].keys()


def test_a_grid_refuses_what_it_cannot_do(rng):
    data = small_problem(rng)
    with pytest.raises(ValueError, match="patience: expected None"):
        optim.minimize_lbfgs_grid(exact.objective, data.start, data, None, patience=2)
    with pytest.raises(ValueError, match="params: expected one leading axis"):
        optim.minimize_lbfgs_grid(exact.objective, (jnp.ones(2), jnp.ones(3)), data, None)


def bad(x, data):
    return jnp.sum(x * data)


def test_a_grid_names_the_fit_whose_loss_is_not_finite():
    with pytest.raises(FloatingPointError, match="L-BFGS grid, fit 1: expected a finite loss, got nan at step 0"):
        optim.minimize_lbfgs_grid(bad, jnp.ones((2, 1)), jnp.array([1.0, jnp.nan]), 0, max_iter=1)


LINKS = np.array([[0, 1], [1, 3], [3, 0], [4, 5], [5, 1]])


def test_sgd_a_triple_at_a_time_is_the_row_wise_loop(rng, key):
    sides = [sparse.from_scipy(csr(rng)) for _ in range(2)]
    settings = {"k": K, "key": key, "identity": 2.0, "init_scale": 0.3, "triples": 80, "max_iter": 2}
    plain = ssi.fit(*sides, LINKS, learning_rate=0.1, **settings)
    minibatch = minibatches.fit(*sides, LINKS, learning_rate=0.1, batch=1, **settings)
    for one, other in zip(minibatch.params, plain.params, strict=True):
        np.testing.assert_allclose(one.weights, other.weights, atol=1e-6)
    assert minibatch.loss == pytest.approx(plain.loss, rel=1e-9) and minibatch.evaluations == plain.evaluations == 160
    assert minibatch.loss < plain.history[1]["loss"]


def batch_rows(batch, data):
    """Rows of all triples of a batch, for `optim.minimize_rows`."""
    query, document = jax.vmap(low_rank.rows, in_axes=(0, None))(batch, data)
    return query.reshape(-1), document.reshape(-1)


def batch_objective(gathered, batch, data):
    size = batch.apart.shape[0]
    parts = [part.reshape(size, -1, part.shape[-1]) for part in gathered]
    return jnp.mean(jax.vmap(low_rank.objective, in_axes=(0, 0, None))(tuple(parts), batch, data))


@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_minibatches_of_triples_by_optax_are_the_row_wise_loop_over_the_same_triples(rng, key, momentum):
    sides = [sparse.from_scipy(csr(rng)) for _ in range(2)]
    size, rate = 5, 0.4
    fit = minibatches.fit(*sides, LINKS, k=K, key=key, batch=size, optimizer=optim.sgd(rate, momentum),
                          identity=None, init_scale=0.3, triples=60, max_iter=1)
    problem = ssi.shared.prepare(*sides, LINKS, identity=None, known=None, margin=1.0, training={})
    tables, draw_key = ssi.shared.start_tables(key, (V, V), K, 0.3, jnp.float64)
    chunk_key = jax.random.fold_in(jax.random.fold_in(draw_key, 0), 0)
    drawn = triples.draw(chunk_key, problem.links, 60)
    chunk = jax.tree.map(lambda part: part.reshape(-1, size), low_rank.Example(drawn, jnp.zeros(60)))
    loop = optim.minimize_rows(batch_objective, tables, lambda _: [chunk], rows=batch_rows,
                               data=problem.documents(200), key=key, learning_rate=rate, max_iter=1)
    apart = max(float(jnp.max(jnp.abs(one.weights - other)))
                for one, other in zip(fit.params, loop.params, strict=True))
    moved = max(float(jnp.max(jnp.abs(one - other))) for one, other in zip(tables, loop.params, strict=True))
    assert moved > 0.1 and (apart < 1e-6) == (momentum == 0)
    if momentum == 0:
        assert fit.loss == pytest.approx(loop.loss, rel=1e-9)


@pytest.mark.parametrize(("change", "message"), [
    ({"batch": 0}, "batch: expected"), ({"triples": 0}, "triples: expected"), ({"learning_rate": 0.0}, "learning_rate"),
    ({"k": 0}, "k: expected"), ({"tol": 1e-3}, "tol: expected None"),
])
def test_minibatches_refuse_bad_settings(rng, key, change, message):
    side = sparse.from_scipy(csr(rng))
    with pytest.raises(ValueError, match=message):
        minibatches.fit(side, side, LINKS, **{"k": K, "key": key, "max_iter": 1, **change})


@pytest.mark.parametrize("momentum", [-0.1, 1.0])
def test_a_momentum_outside_its_range_is_refused(momentum):
    with pytest.raises(ValueError, match=r"momentum: expected a number in \[0, 1\)"):
        optim.sgd(0.1, momentum)
