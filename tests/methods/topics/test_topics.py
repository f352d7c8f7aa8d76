"""Topic models against slow references: NMF of scikit-learn, NumPy's EM, the dual of a projection by SciPy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
import scipy.stats
from sklearn.decomposition import non_negative_factorization

from jaxsim import sparse
from jaxsim.evaluate import mates, retrieval
from jaxsim.methods import cplsa, jplsa, plsa, topics
from jaxsim.methods.topics import host, training

M, V, K = 24, 30, 4


def made_up(languages=2, seed=0):
    """Counts of documents about a few topics, whose words differ between languages; some are short, one is empty."""
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.full(K, 0.2), M)
    sides = []
    for _ in range(languages):
        words = rng.dirichlet(np.full(V, 0.1), K)
        sides.append(rng.poisson(rng.integers(5, 90, (M, 1)) * (theta @ words)).astype(float))
    sides[0][3] = 0
    return sides


@pytest.fixture(params=["host", "device"])
def loop(request, monkeypatch):
    """The loops of the host, or the program of the device that takes their place without numba and on accelerators."""
    if request.param == "device":
        monkeypatch.setattr(host, "compiled", lambda: None)
    elif host.compiled() is None:
        pytest.skip("numba is not installed, or JAX has an accelerator")


def terms(side):
    return sparse.from_scipy(scipy.sparse.csr_matrix(side))


def plain_em(counts, phi, theta, blocks, alpha, beta, steps):
    """EM of one topic vector a row, every posterior formed. ``blocks`` are slices of columns, each of one language."""
    used = counts.sum(axis=0) > 0
    for _ in range(steps):
        posterior = theta[:, None, :] * phi[None, :, :]
        posterior /= np.maximum(posterior.sum(axis=2, keepdims=True), 1e-300)
        expected = counts[:, :, None] * posterior
        theta = expected.sum(axis=1) + alpha - 1
        theta /= theta.sum(axis=1, keepdims=True)
        phi = (expected.sum(axis=0) + beta - 1) * used[:, None]
        phi = np.concatenate([phi[block] / phi[block].sum(axis=0) for block in blocks])
    return phi, theta


@pytest.mark.usefixtures("loop")
@pytest.mark.parametrize("merged", [False, True])
def test_jplsa_is_em_with_every_posterior_formed(merged):
    sides = made_up()
    views, options = [terms(side) for side in sides], {"k": K, "start": "soft", "key": jax.random.key(1)}
    first, *_, last = [jplsa.fit(views, merged=merged, max_iter=steps, **options).params for steps in (1, 2, 7)]
    whole = sum(sides) if merged else np.concatenate(sides, axis=1)
    blocks = [slice(0, V)] if merged else [slice(0, V), slice(V, 2 * V)]
    # θ is not returned: its first value follows from the start, which the fit of no step holds.
    start = np.concatenate([np.asarray(side.words) for side in start_topics(views, merged, options)])
    theta = whole @ start + 0.1
    theta /= theta.sum(axis=1, keepdims=True)
    frequency = whole.sum(axis=0)[:, None]
    phi = (start * frequency + 0.01) * (frequency > 0)
    phi = np.concatenate([phi[block] / phi[block].sum(axis=0) for block in blocks])
    for steps, result in ((1, first), (7, last)):
        wanted, _ = plain_em(whole, phi, theta, blocks, 1.1, 1.01, steps)
        for i, side in enumerate(result):
            rows = wanted[:V] if merged else wanted[i * V : (i + 1) * V]
            np.testing.assert_allclose(side.words, rows, atol=1e-10)


def start_topics(views, merged, options):
    counts = training.views_of(views)
    frequencies = [np.asarray(view.sum(axis=0)).ravel() for view in counts]
    frequencies = [sum(frequencies)] if merged else frequencies
    return [topics.Topics(side) for side in topics.starts.make(frequencies, dtype=float, **options)]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.usefixtures("loop")
@pytest.mark.parametrize("iterations", [1, 2, 10])
def test_folding_in_is_the_multiplicative_update_of_scikit_learn(iterations):
    """KL-NMF with the topics held fixed (α = 1)."""
    side = made_up()[0]
    model = plsa.fit(terms(side), k=K, start="soft", key=jax.random.key(0), max_iter=30).params
    some = side[np.arange(M) != 3]
    weights, _, _ = non_negative_factorization(
        some, H=np.asarray(model.words).T.copy(), n_components=K, init="custom", update_H=False, solver="mu",
        beta_loss="kullback-leibler", max_iter=iterations, tol=0)
    weights /= weights.sum(axis=1, keepdims=True)
    result = topics.encode(model, terms(some), iterations=iterations).dense
    np.testing.assert_allclose(result, weights, atol=1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_plsa_without_priors_ends_where_scikit_learn_s_nmf_cannot_improve():
    side = made_up()[0][np.arange(M) != 3]
    start = jax.random.key(2)  # from some starts, 0 among them, EM stays near a saddle for thousands of iterations
    fit = plsa.fit(terms(side), k=K, start="soft", key=start, alpha=1.0, beta=1.0, max_iter=3000)
    words = np.asarray(fit.params.words)
    theta = np.asarray(topics.encode(fit.params, terms(side), iterations=2000).dense) * side.sum(axis=1)[:, None]
    weights, factors, _ = non_negative_factorization(
        side, W=theta.copy(), H=np.maximum(words.T, 0).copy(), n_components=K, init="custom", solver="mu",
        beta_loss="kullback-leibler", max_iter=200, tol=0)
    np.testing.assert_allclose(weights @ factors, theta @ words.T, atol=1e-4 * np.max(theta @ words.T))


@pytest.mark.parametrize("options", [{}, {"merged": True}, {"alpha": 1.0, "beta": 1.0}, {"languages": 3},
                                     {"start": "blocks"}, {"start": "hard"}])
def test_the_posterior_density_never_falls(options):
    options = {"start": "soft", "languages": 2, **options}
    views = [terms(side) for side in made_up(options.pop("languages"))]
    fit = jplsa.fit(views, k=K, key=jax.random.key(2), max_iter=40, **options)
    losses = np.array([entry["loss"] for entry in fit.history[1:]])
    assert np.all(np.diff(losses) <= 1e-12) and losses[-1] < losses[0] - 0.1


def test_the_objective_is_that_of_the_fit():
    side = made_up()[0]
    counts = scipy.sparse.csr_matrix(side)
    layout = training.lay_out([counts], np.zeros(V, int), k=K, alpha=1.1, beta=1.01)
    start = np.random.default_rng(1).dirichlet(np.ones(K), V)
    state = training.first_state(layout, start, languages=1, coupled=False)
    words, theta = np.asarray(state.words), np.asarray(state.theta[0])
    there = layout.columns >= 0
    full = np.zeros((V, K))
    full[layout.columns[there]] = words[there]
    rate = np.where(side > 0, theta @ full.T, 1)
    wanted = -(np.sum(side * np.log(rate)) + 0.1 * np.log(theta).sum() + 0.01 * np.log(words[there]).sum()) / side.sum()
    result = float(training.objective((state.words, state.theta), layout.data))
    np.testing.assert_allclose(result, wanted, rtol=1e-12)
    _, loss = training.step(state, layout.data, None, None)
    np.testing.assert_allclose(float(loss), wanted, rtol=1e-12)


def projected(counts, theta, words, sigma):
    """The multipliers of a pair by SciPy: the dual, every posterior formed."""
    posteriors = []
    for row, own, phi in zip(counts, theta, words, strict=True):
        rows = np.repeat(np.arange(row.size), row.astype(int))
        posterior = own * phi[rows]
        posteriors.append(posterior / posterior.sum(axis=1, keepdims=True))
    sizes = [len(posterior) for posterior in posteriors]

    def dual(multipliers):
        signs = 1, -1
        return sum(np.log((p * np.exp(-sign * multipliers / n)).sum(axis=1)).sum()
                   for p, sign, n in zip(posteriors, signs, sizes, strict=True))

    bound = None if np.isinf(sigma) else sigma
    result = scipy.optimize.minimize(dual, np.zeros(K), bounds=[(bound and -bound, bound)] * K, method="L-BFGS-B",
                                     options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 2000})
    return result.x, dual


@pytest.mark.parametrize("dual", ["scaling", "gradient"])
@pytest.mark.parametrize("sigma", [np.inf, 2.0])
def test_the_multipliers_are_those_of_the_projection(dual, sigma):
    rng = np.random.default_rng(3)
    counts = [rng.poisson(1.5, (1, V)).astype(float), rng.poisson(0.4, (1, V)).astype(float)]
    words = [rng.dirichlet(np.full(V, 2.0), K).T for _ in range(2)]
    theta = rng.dirichlet(np.full(K, 3.0), 2)
    wide = training._apart([scipy.sparse.csr_matrix(side) for side in counts])
    layout = training.lay_out(wide, np.repeat([0, 1], V), k=K, alpha=1.0, beta=1.0, sigma=sigma)
    there = layout.columns >= 0
    phi = np.zeros((there.size, K))
    phi[there] = np.concatenate(words)[layout.columns[there]]
    state = training.State(jnp.asarray(phi), jnp.asarray(theta)[:, None], jnp.zeros((2, 1, K)))
    state, _ = training.step(state, layout.data, cplsa.Coupling(4000, dual), None)
    sizes = np.array([side.sum() for side in counts])
    result = -np.asarray(state.tilt[:, 0]) * sizes[:, None]
    wanted, value = projected([side[0] for side in counts], theta, words, sigma)
    np.testing.assert_allclose(result[0], -result[1], atol=1e-6)
    np.testing.assert_allclose(value(result[0]), value(wanted), atol=1e-7)
    shift = 0 if np.isfinite(sigma) else np.mean(result[0] - wanted)  # the same for every topic changes nothing
    np.testing.assert_allclose(result[0] - shift, wanted, atol=2e-3 if np.isinf(sigma) else 1e-4)


def test_coupled_documents_of_three_languages_agree_on_their_topics():
    sides = made_up(3)
    layout = training.lay_out(training._apart([scipy.sparse.csr_matrix(side) for side in sides]),
                              np.repeat([0, 1, 2], V), k=K, alpha=1.1, beta=1.01)
    start = np.random.default_rng(5).dirichlet(np.full(K, 0.3), 3 * V)
    state = training.first_state(layout, start, languages=3, coupled=True)
    theta = np.asarray(state.theta)
    state, _ = training.step(state, layout.data, cplsa.Coupling(500, "scaling"), None)
    tilted = jnp.asarray(theta) * jnp.exp(state.tilt)
    coupled, _ = training.step(training.State(state.words, tilted, None), layout.data, None, None)
    del coupled
    sizes = np.stack([side.sum(axis=1) for side in sides])
    shares = np.asarray(state.theta) * (sizes[..., None] + 0.1 * K) - 0.1  # the M step, undone
    shares = shares / np.maximum(sizes, 1)[..., None]
    full = sizes.min(axis=0) > 0
    np.testing.assert_allclose(shares[0, full], shares[1, full], atol=1e-6)
    np.testing.assert_allclose(shares[0, full], shares[2, full], atol=1e-6)
    np.testing.assert_allclose(shares[1, ~full], shares[2, ~full], atol=1e-6)  # the first language lacks it


@pytest.mark.parametrize("shared", [False, True])
def test_cplsa_finds_mates_that_differ_in_length(shared):
    rng = np.random.default_rng(1)
    theta = rng.dirichlet(np.full(6, 0.6), M)
    views = [terms(rng.poisson(length * theta @ rng.dirichlet(np.full(V, 0.1), 6)).astype(float))
             for length in (400, 100)]
    fit = cplsa.fit(views, k=6, start="soft", key=jax.random.key(0), shared=shared, max_iter=60)
    sides = (topics.encode(side, view) for side, view in zip(fit.params, views, strict=True))
    assert mates.scores(*sides, similarity=retrieval.l1)["mrr"] > 0.6  # by chance .16


def test_topics_predict_held_out_words_better_than_their_frequencies():
    rng, (side, _) = np.random.default_rng(0), made_up(2, seed=1)
    observed = rng.binomial(side.astype(int), 0.5).astype(float)
    model = plsa.fit(terms(observed), k=K, start="soft", key=jax.random.key(0), max_iter=60).params
    one = plsa.fit(terms(observed), k=1, max_iter=1).params
    frequency = observed.sum(axis=0) + 0.01 * (observed.sum(axis=0) > 0)
    rest = (side - observed) * (observed.sum(axis=0) > 0)
    wanted = np.exp(-np.sum(rest * np.log(np.maximum(frequency / frequency.sum(), 1e-9))) / rest.sum())
    np.testing.assert_allclose(topics.perplexity(one, terms(observed), terms(side - observed)), wanted, rtol=1e-9)
    assert topics.perplexity(model, terms(observed), terms(side - observed)) < 0.7 * wanted


def test_an_impossible_word_has_an_infinite_perplexity():
    model = topics.Topics(jnp.eye(2))
    observed, held_out = terms(np.array([[2.0, 0.0]])), terms(np.array([[1.0, 2.0]]))
    assert topics.perplexity(model, observed, held_out, alpha=1.0) == np.inf
    assert topics.perplexity(model, observed, observed, alpha=1.0) == 1.0
    assert np.isfinite(topics.perplexity(model, observed, held_out))


def test_a_nearly_impossible_word_is_no_certain_one():
    """From the uniform vector on, the share of the topic that has the word falls by a factor of 1e9 an iteration."""
    model = topics.Topics(jnp.array([[1.0, 1e-9], [0.0, 1e-3], [0.0, 1 - 1e-3]], jnp.float32))
    observed, held_out = (terms(np.array([row], np.float32)) for row in ([50.0, 0.0, 0.0], [0.0, 1.0, 0.0]))
    found = [topics.perplexity(model, observed, held_out, iterations=steps, alpha=1.0) for steps in range(1, 7)]
    np.testing.assert_allclose(found[:4], [1e12, 1e21, 1e30, 1e39], rtol=1e-3)
    assert np.all(np.diff(found[:5]) > 0) and found[5] == np.inf


@pytest.mark.usefixtures("loop")
def test_documents_of_another_precision_are_folded_in_as_those_of_the_topics(rng):
    words, side = rng.random((V, K)), made_up()[0]
    for mine, other in ((np.float32, np.float64), (np.float64, np.float32)):
        alike, unlike = terms(side.astype(mine)), terms(side.astype(other))
        model = topics.Topics(jnp.asarray(words, mine))
        wanted = topics.encode(model, alike, iterations=3).dense
        found = topics.encode(model, unlike, iterations=3).dense
        assert found.dtype == mine
        np.testing.assert_array_equal(found, wanted)
        assert topics.perplexity(model, unlike, unlike) == topics.perplexity(model, alike, alike)
        again = (topics.recount(model, each, sparse.Vectors(wanted)).words for each in (alike, unlike))
        np.testing.assert_array_equal(*again)


@pytest.mark.usefixtures("loop")
def test_documents_without_known_words_have_the_uniform_vector_and_are_flagged():
    model = topics.Topics(jnp.asarray(np.eye(3)[:, :2]))
    unknown = terms(np.array([[0.0, 0.0, 5.0], [1.0, 0.0, 1.0]]))
    for iterations in (1, 3):
        result = topics.encode(model, unknown, iterations=iterations).dense
        np.testing.assert_allclose(result, [[0.5, 0.5], [1.0, 0.0]])
        assert topics.encode(model, terms(np.zeros((0, 3))), iterations=iterations).dense.shape == (0, 2)
    assert topics.known(model, unknown).tolist() == [False, True]


@pytest.mark.usefixtures("loop")
def test_documents_are_folded_in_under_jit_and_vmap_too():
    model, documents = topics.Topics(jnp.asarray(np.random.default_rng(0).random((V, K)))), terms(made_up()[0])

    def fold(words):
        return topics.encode(topics.Topics(words), documents, iterations=3).dense

    wanted = fold(model.words)
    np.testing.assert_allclose(jax.jit(fold)(model.words), wanted, atol=1e-12)
    np.testing.assert_allclose(jax.vmap(fold)(model.words[None])[0], wanted, atol=1e-12)


@pytest.mark.usefixtures("loop")
def test_a_killed_fit_goes_on_bit_for_bit(tmp_path):
    views = [terms(side) for side in made_up()]
    options = {"k": K, "start": "soft", "key": jax.random.key(0)}
    whole = cplsa.fit(views, max_iter=5, **options)
    cplsa.fit(views, max_iter=2, checkpoint=tmp_path, **options)
    resumed = cplsa.fit(views, max_iter=5, checkpoint=tmp_path, **options)
    for result, wanted in zip(resumed.params, whole.params, strict=True):
        np.testing.assert_array_equal(result.words, wanted.words)
    with pytest.raises(ValueError, match="checkpoint"):
        cplsa.fit(views, max_iter=5, checkpoint=tmp_path, **options | {"k": K - 1})
    with pytest.raises(ValueError, match="checkpoint"):  # its steps would be of other lengths
        cplsa.fit(views, max_iter=5, checkpoint=tmp_path, each=2, **options)


@pytest.mark.skipif(host.compiled() is None, reason="numba is not installed, or JAX has an accelerator")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_words_read_the_topics_in_blocks_where_no_cache_holds_them(monkeypatch, rng, dtype):
    counts = rng.poisson(0.5, (30, 20)).astype(dtype)
    counts[:, 3] = counts[5] = 0
    theta, words = rng.dirichlet(np.ones(150), 30).astype(dtype), rng.dirichlet(np.ones(150), 20).astype(dtype)
    parts = host.counts_of(scipy.sparse.csr_matrix(counts))
    ratios = host.of_documents(parts.documents, theta, words)[1]
    monkeypatch.setattr(host, "_CACHE", 1)
    blocks = []
    product = host.host.product
    monkeypatch.setattr(host.host, "product", lambda *given: blocks.append(given[-1].shape[1]) or product(*given))
    found = host.of_words(parts, ratios, theta, words)
    rates = np.where(counts > 0, counts / (theta.astype(float) @ words.T.astype(float)), 0)
    np.testing.assert_allclose(found, words * (rates.T @ theta), rtol=1e-5 if dtype == np.float32 else 1e-12)
    assert blocks == [64, 64, 22]


@pytest.mark.skipif(host.compiled() is None, reason="numba is not installed, or JAX has an accelerator")
@pytest.mark.parametrize(("languages", "coupling"), [(1, None), (3, None), (3, cplsa.Coupling(2, "scaling")),
                                                     (2, cplsa.Coupling(1, "gradient"))])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_iteration_on_the_host_is_that_of_the_device(languages, coupling, dtype):
    sides = [scipy.sparse.csr_matrix(side.astype(dtype)) for side in made_up(languages)]
    wide, blocks = training._apart(sides), np.repeat(np.arange(languages), V)
    start = np.random.default_rng(5).dirichlet(np.full(K, 0.3), languages * V).astype(dtype)
    priors = {"alpha": 1.1, "beta": 1.01, "sigma": 3.0}
    ends = []
    for layout in (training.lay_out(wide, blocks, k=K, **priors), training.lay_out_on_host(wide, blocks, **priors)):
        state = training.first_state(layout, start, languages=1 if coupling is None else languages,
                                     coupled=coupling is not None)
        advance, losses = training.iterations(layout, coupling), []
        for _ in range(3):
            state, loss = advance(state)
            losses.append(float(loss))
        there = layout.columns >= 0
        words = np.zeros((languages * V, K))
        words[layout.columns[there]] = np.asarray(state[0])[there]
        ends.append((words, *state[1:], losses))
        assert all(leaf.dtype == dtype for leaf in jax.tree.leaves(state))
    for mine, other in zip(*map(jax.tree.leaves, ends), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-4 if dtype == np.float32 else 1e-11, atol=1e-6)


def test_npmi_and_top_words_are_those_of_their_definitions():
    counts = np.array([[1, 2, 0, 0], [3, 1, 1, 0], [0, 0, 1, 0], [0, 1, 0, 0]], float)
    result = topics.coherence.npmi(np.array([[0, 1, -1], [0, 2, 1], [3, 0, -1]]), terms(counts))
    pair = np.log(0.5 / (0.5 * 0.75)) / -np.log(0.5)  # 0 and 1 meet in two of four
    others = [0.0, np.log(0.25 / (0.5 * 0.75)) / -np.log(0.25)]  # 0 and 2, 1 and 2: each in one
    np.testing.assert_allclose(result[:2], [pair, np.mean([pair, *others])])
    assert np.isnan(result[2])
    words = topics.Topics(jnp.array([[0.5, 0.4], [0.3, 0.0], [0.2, 0.6]]))
    assert topics.coherence.top_words(words, number=3).tolist() == [[0, 1, 2], [2, 0, -1]]
    assert topics.coherence.top_words(words, number=3, lift=1.0).tolist() == [[1, 0, 2], [2, 0, -1]]


ONE, NONE = terms(np.eye(3)), terms(np.zeros((3, 3)))
OTHER, FEWER, THREE = terms(np.eye(3, 4)), terms(np.eye(2, 3)), topics.Topics(jnp.eye(3))


@pytest.mark.parametrize(("call", "message"), [
    (lambda: jplsa.fit((ONE, ONE), k=4), r"k: expected a whole number between 1 and 3 \(words of views\[0\]\), got 4"),
    (lambda: jplsa.fit((ONE, NONE), k=2), r"views\[1\]: expected a document with words, got none \(all of this"),
    (lambda: cplsa.fit((NONE, ONE), k=2, merged=True), r"views\[0\]: expected a document with words"),
    (lambda: plsa.fit(NONE, k=2), r"^terms: expected a document with words, got none \(all are empty\)"),
    (lambda: jplsa.fit((ONE, terms(-np.eye(3))), k=2), r"views\[1\]: expected counts of at least 0, got -1.0"),
    (lambda: jplsa.fit((ONE, ONE), k=2, start="soft"), "key: expected a PRNG key, for the start 'soft', got None"),
    (lambda: jplsa.fit((ONE, ONE), k=2, start="none"), "start: expected one of blocks, soft, hard, got none"),
    (lambda: jplsa.fit((ONE, ONE), k=2, alpha=0.5), "alpha: expected a number of at least 1, got 0.5"),
    (lambda: plsa.fit(ONE, k=2, beta=np.nan), "beta: expected a number of at least 1, got nan"),
    (lambda: plsa.fit(ONE, k=0), "k: expected a whole number"),
    (lambda: plsa.fit(ONE, k=4), r"k: expected a whole number between 1 and 3 \(words\), got 4"),
    (lambda: cplsa.fit((ONE, ONE), k=2, sigma=0.0), "sigma: expected a positive number, got 0.0"),
    (lambda: cplsa.fit((ONE, ONE, ONE), k=2, sigma=9.0), "sigma: expected infinity, for more than two languages"),
    (lambda: cplsa.fit((ONE, ONE), k=2, dual="newton"), "dual: expected scaling or gradient, got newton"),
    (lambda: topics.encode(topics.Topics(jnp.eye(3)), ONE, iterations=0), "iterations: expected a whole number"),
    (lambda: topics.encode(topics.Topics(jnp.eye(4)), ONE, iterations=2), r"terms: expected 4 terms \(as params\)"),
    (lambda: topics.perplexity(topics.Topics(jnp.eye(3)), ONE, NONE), "held_out: expected a word that the topics know"),
    (lambda: topics.perplexity(THREE, ONE, OTHER), r"held_out: expected 3 terms \(as params\), got 4"),
    (lambda: topics.perplexity(THREE, OTHER, ONE), r"observed: expected 3 terms \(as params\), got 4"),
    (lambda: topics.perplexity(THREE, ONE, FEWER), r"held_out: expected 3 documents \(as observed\), got 2"),
    (lambda: topics.known(THREE, OTHER), r"terms: expected 3 terms \(as params\), got 4"),
    (lambda: topics.recount(THREE, OTHER, sparse.Vectors(jnp.eye(3))), r"terms: expected 3 terms \(as params\)"),
    (lambda: topics.recount(THREE, FEWER, sparse.Vectors(jnp.eye(3))), r"vectors: expected a dense part of shape"),
    (lambda: topics.recount(THREE, ONE, sparse.Vectors(jnp.eye(4)[:3])), r"vectors: expected .*, got \(3, 4\)"),
    (lambda: topics.encode(topics.Topics(jnp.eye(3, dtype=jnp.float32)), ONE, alpha=1e39), "alpha: expected a number"),
    (lambda: topics.coherence.npmi(np.array([[0, 3]]), ONE), r"words: expected word ids below 3 \(terms\), got 3"),
])
def test_bad_input_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_soft_starts_are_uniform_over_all_shares():
    frequencies = [np.ones(20_000), np.array([1.0, 0.0, 2.0, 3.0])]
    many, few = topics.starts.make(frequencies, k=3, start="soft", key=jax.random.key(0), dtype=np.float32)
    assert scipy.stats.kstest(np.asarray(many)[:, 0], "beta", (1, 2)).pvalue > 1e-3  # a share of Dirichlet(1, 1, 1)
    np.testing.assert_allclose(many.sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(few)[1], 0)


@pytest.mark.parametrize("dtype", [np.float32, float])
def test_a_soft_start_of_which_zeros_are_drawn_has_shares_above_zero(monkeypatch, dtype, without_64_bits):
    def drawn(key, shape, dtype):
        return jnp.zeros(shape, dtype).at[1:, 0].set(9)

    monkeypatch.setattr(jax.random, "exponential", drawn)
    topics.starts._uniform_shares.clear_cache()
    with without_64_bits():
        for k in (1, 3):
            (shares,) = topics.starts.make([np.ones(4)], k=k, start="soft", key=jax.random.key(0), dtype=dtype)
            assert np.all(np.asarray(shares) > 0)
            np.testing.assert_allclose(np.sum(shares, axis=1), 1, rtol=1e-6)
    topics.starts._uniform_shares.clear_cache()
