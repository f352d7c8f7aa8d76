from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_models as reference
import scipy.sparse

from jaxsim import sparse
from jaxsim.sparse import products

BUILDERS = {"whole": sparse.from_scipy, "slices": lambda csr: sparse.slices(csr, width=3)}


def some_documents(rng, dtype=np.float64):
    """Documents of 0 to all 12 terms, some negative values, one term that no document uses."""
    dense = rng.normal(size=(9, 12)) * (rng.random((9, 12)) < 0.4)
    dense[:, 7] = 0
    dense[2] = dense[8] = 0
    dense[4] = rng.normal(size=12)
    return dense.astype(dtype)


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS.keys())
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_project_is_the_matrix_product(rng, build, dtype):
    dense, weights = some_documents(rng, dtype), rng.normal(size=(12, 5)).astype(dtype)
    projected = sparse.project(build(scipy.sparse.csr_matrix(dense)), jnp.asarray(weights))
    assert projected.dtype == dtype
    np.testing.assert_allclose(projected, dense.astype(float) @ weights, atol=1e-5 if dtype == np.float32 else 1e-12)
    assert not np.any(projected[2]) and not np.any(projected[8])


def test_project_transpose_is_the_transposed_product(rng):
    dense, scores = some_documents(rng), rng.normal(size=(9, 4))
    back = sparse.project_transpose(sparse.from_scipy(scipy.sparse.csr_matrix(dense)), jnp.asarray(scores))
    np.testing.assert_allclose(back, dense.T @ scores, atol=1e-12)


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS.keys())
def test_gradients_in_weights_and_values_match_dense_autodiff(rng, build):
    dense = some_documents(rng)
    csr = scipy.sparse.csr_matrix(dense)
    weights, target = jnp.asarray(rng.normal(size=(12, 3))), jnp.asarray(rng.normal(size=(9, 3)))
    documents = build(csr)

    def loss(values, weights):
        changed = documents.__class__(**{**vars(documents), "values": values})
        return jnp.sum(jnp.tanh(sparse.project(changed, weights) - target))

    d_values, d_weights = jax.grad(loss, argnums=(0, 1))(documents.values, weights)
    expected = jax.grad(lambda f, w: jnp.sum(jnp.tanh(f @ w - target)), argnums=(0, 1))(jnp.asarray(dense), weights)
    np.testing.assert_allclose(d_weights, expected[1], atol=1e-12)
    if build is sparse.from_scipy:
        rows = np.repeat(np.arange(9), np.diff(csr.indptr))
        np.testing.assert_allclose(d_values, np.asarray(expected[0])[rows, csr.indices], atol=1e-12)
    else:
        used = np.asarray(documents.values) != 0
        rows = np.asarray(documents.document)[:, None]
        at_slots = np.asarray(expected[0])[np.minimum(rows, 8), np.asarray(documents.indices)]
        np.testing.assert_allclose(np.asarray(d_values)[used], at_slots[used], atol=1e-12)


def test_gradient_in_values_matches_finite_differences_over_several_blocks(rng, monkeypatch):
    monkeypatch.setattr(products, "_SAMPLED_NUMBERS", 7)
    documents = sparse.from_scipy(scipy.sparse.csr_matrix(some_documents(rng)), pad_nnz=60)
    weights = jnp.asarray(rng.normal(size=(12, 2)))

    def loss(values):
        return jnp.sum(sparse.project(sparse.with_values(documents, values), weights) ** 3)

    grad = np.asarray(jax.grad(loss)(documents.values))
    direction = rng.normal(size=60)
    slope = reference.central_difference(loss, documents.values, jnp.asarray(direction))
    assert slope == pytest.approx(grad @ direction, rel=1e-7)
    assert not np.any(grad[int(documents.indptr[-1]) :])


def test_padding_changes_nothing(rng):
    dense = some_documents(rng)
    csr, weights = scipy.sparse.csr_matrix(dense), jnp.asarray(rng.normal(size=(12, 3)))
    plain, padded = sparse.from_scipy(csr), sparse.from_scipy(csr, pad_docs=14, pad_nnz=90)
    assert (padded.num_docs, padded.nnz, padded.num_terms) == (14, 90, 12)
    np.testing.assert_array_equal(sparse.project(padded, weights)[:9], sparse.project(plain, weights))
    assert not np.any(sparse.project(padded, weights)[9:])
    scores = jnp.asarray(rng.normal(size=(14, 2)))
    np.testing.assert_allclose(sparse.project_transpose(padded, scores), dense.T @ scores[:9], atol=1e-12)
    back = sparse.to_scipy(padded)
    assert back.nnz == csr.nnz
    np.testing.assert_array_equal(back.toarray()[:9], dense)
    # What stands in the padding slots is never read, forward or backward.
    poked = sparse.with_values(padded, padded.values.at[csr.nnz :].set(1e9))
    np.testing.assert_array_equal(sparse.project(poked, weights)[:9], sparse.project(plain, weights))
    np.testing.assert_allclose(sparse.project_transpose(poked, scores), dense.T @ scores[:9], atol=1e-12)


def test_padded_slices_change_nothing(rng):
    csr, weights = scipy.sparse.csr_matrix(some_documents(rng)), jnp.asarray(rng.normal(size=(12, 3)))
    padded = sparse.slices(csr, width=4, pad_slices=40)
    assert padded.values.shape == (40, 4)
    np.testing.assert_allclose(sparse.project(padded, weights), csr @ np.asarray(weights), atol=1e-12)


def test_one_compilation_serves_batches_of_one_shape(rng):
    traces = []

    @jax.jit
    def run(cut, weights):
        traces.append(1)
        return sparse.project(cut, weights)

    weights = jnp.asarray(rng.normal(size=(12, 3)))
    for _ in range(3):
        csr = scipy.sparse.csr_matrix(rng.normal(size=(4, 12)) * (rng.random((4, 12)) < 0.5))
        result = run(sparse.slices(csr, width=3, pad_slices=20), weights)
        np.testing.assert_allclose(result, csr @ np.asarray(weights), atol=1e-12)
    assert len(traces) == 1


def test_with_values_and_weigh_work_inside_jit(rng):
    dense = some_documents(rng)
    documents = sparse.from_scipy(scipy.sparse.csr_matrix(dense))
    scale = jnp.asarray(rng.normal(size=12))

    @jax.jit
    def run(documents, scale):
        doubled = sparse.with_values(documents, 2 * documents.values)
        return sparse.project(sparse.weigh(doubled, scale), jnp.eye(12))

    np.testing.assert_allclose(run(documents, scale), 2 * dense * np.asarray(scale)[None, :], atol=1e-12)


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS.keys())
@pytest.mark.parametrize("shape", [(0, 5), (4, 0), (0, 0), (3, 5)], ids=str)
def test_nothing_at_all_is_legal(build, shape):
    documents = build(scipy.sparse.csr_matrix(shape))
    assert (documents.num_docs, documents.num_terms) == shape
    weights = jnp.ones((shape[1], 2))
    assert sparse.project(documents, weights).tolist() == [[0.0, 0.0]] * shape[0]
    grad = jax.grad(lambda w: jnp.sum(sparse.project(documents, w)))(weights)
    assert grad.shape == weights.shape and not np.any(grad)


@pytest.mark.parametrize("shape", [(0, 5), (4, 0), (3, 5)], ids=str)
def test_nothing_comes_back_as_nothing(shape):
    documents = sparse.from_scipy(scipy.sparse.csr_matrix(shape))
    assert sparse.to_scipy(documents).shape == shape and sparse.to_scipy(documents).nnz == 0
    assert sparse.project_transpose(documents, jnp.ones((shape[0], 2))).tolist() == [[0.0, 0.0]] * shape[1]


def test_a_huge_document_beside_a_tiny_one(rng):
    dense = np.zeros((2, 20_000))
    dense[0], dense[1, 19_999] = rng.normal(size=20_000), 3.0
    csr, weights = scipy.sparse.csr_matrix(dense), jnp.asarray(rng.normal(size=(20_000, 2)))
    expected = dense @ np.asarray(weights)
    np.testing.assert_allclose(sparse.project(sparse.from_scipy(csr), weights), expected, atol=1e-10)
    cut = sparse.slices(csr)
    assert cut.values.shape == (20_000 // 32 + 1, 32)
    np.testing.assert_allclose(sparse.project(cut, weights), expected, atol=1e-10)


def test_duplicates_are_summed_and_terms_sorted():
    csr = scipy.sparse.csr_matrix((np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    documents = sparse.from_scipy(csr)
    assert documents.indices.tolist() == [0, 2] and documents.values.tolist() == [2.0, 5.0]
    assert csr.nnz == 3, "the caller's matrix is left alone"


@pytest.mark.parametrize("convert", [scipy.sparse.csc_matrix, scipy.sparse.coo_matrix, scipy.sparse.lil_matrix,
                                     scipy.sparse.csr_array, scipy.sparse.coo_array])
def test_every_sparse_format_is_read(rng, convert):
    dense = some_documents(rng)
    np.testing.assert_array_equal(sparse.to_scipy(sparse.from_scipy(convert(dense))).toarray(), dense)


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint16, bool])
def test_whole_numbers_become_float32(dtype):
    documents = sparse.from_scipy(scipy.sparse.csr_matrix(np.array([[0, 1, 1]], dtype)))
    assert documents.values.dtype == jnp.float32
    assert sparse.to_scipy(documents).toarray().tolist() == [[0.0, 1.0, 1.0]]


def test_take_selects_repeats_and_reorders(rng):
    dense = some_documents(rng)
    taken = sparse.take(sparse.from_scipy(scipy.sparse.csr_matrix(dense), pad_docs=11), [4, 4, 10, 0])
    expected = np.stack([dense[4], dense[4], 0 * dense[0], dense[0]])
    np.testing.assert_array_equal(sparse.to_scipy(taken).toarray(), expected)
    assert sparse.take(taken, []).num_docs == 0


def broken(**fields):
    csr = scipy.sparse.csr_matrix(np.array([[1.0, 2.0], [3.0, 4.0]]))
    for name, value in fields.items():
        setattr(csr, name, np.asarray(value))
    return csr


ONE = scipy.sparse.csr_matrix([[1.0, 2.0]])


@pytest.mark.parametrize(("call", "message"), [
    (lambda: sparse.from_scipy(np.eye(2)), "csr: expected a SciPy sparse matrix, got ndarray"),
    (lambda: sparse.from_scipy(broken(indices=[0, 5, 0, 1])), r"csr.indices: expected term ids in \[0, 2\), got 5"),
    (lambda: sparse.from_scipy(broken(indices=[0, -1, 0, 1])), r"csr.indices: expected term ids in \[0, 2\), got -1"),
    (lambda: sparse.from_scipy(broken(indptr=[0, 3, 2])), "csr.indptr: expected ascending row pointers"),
    (lambda: sparse.from_scipy(broken(data=[1.0, 2.0, np.nan, 4.0])), "finite values, got nan in document 1"),
    (lambda: sparse.from_scipy(broken(data=[1.0, -np.inf, 3.0, 4.0])), "finite values, got -inf in document 0"),
    (lambda: sparse.slices(broken(data=[1.0, 2.0, 3.0, np.inf])), "finite values, got inf in document 1"),
    (lambda: sparse.from_scipy(ONE.astype(complex)), "csr: expected real numbers, got complex128"),
    (lambda: sparse.from_scipy(ONE, pad_docs=0), "pad_docs: expected at least 1"),
    (lambda: sparse.from_scipy(ONE, pad_nnz=1), "pad_nnz: expected at least 2"),
    (lambda: sparse.slices(ONE, width=0), "width: expected at least 1, got 0"),
    (lambda: sparse.slices(ONE, width=1, pad_slices=1), "pad_slices: expected at least 2, got 1"),
    (lambda: sparse.project(sparse.from_scipy(ONE), jnp.ones((3, 2))),
     r"weights: expected shape \(2, k\), got \(3, 2\)"),
    (lambda: sparse.project(sparse.from_scipy(ONE), jnp.ones(2)), r"weights: expected shape \(2, k\), got \(2,\)"),
    (lambda: sparse.project_transpose(sparse.from_scipy(ONE), jnp.ones((2, 2))), r"dense: expected shape \(1, k\)"),
    (lambda: sparse.with_values(sparse.from_scipy(ONE), jnp.ones(3)), r"values: expected shape \(2,\), got \(3,\)"),
    (lambda: sparse.weigh(sparse.from_scipy(ONE), jnp.ones(1)), r"scale: expected shape \(2,\), got \(1,\)"),
    (lambda: sparse.take(sparse.from_scipy(ONE), [1]), r"rows: expected rows in \[0, 1\)"),
    (lambda: sparse.take(sparse.from_scipy(ONE), [-1]), r"rows: expected rows in \[0, 1\)"),
    (lambda: sparse.take(sparse.from_scipy(ONE), [[0]]), "rows: expected one axis, got 2 axes"),
    (lambda: sparse.take(sparse.from_scipy(ONE), [True]), "rows: expected integers, got bool"),
])
def test_bad_input_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_ids_out_of_range_are_refused_in_every_format():
    columns = scipy.sparse.csc_matrix((np.ones(2), np.array([0, 10**6]), np.array([0, 1, 2])), shape=(3, 2))
    with pytest.raises(ValueError, match="csr: expected indices within"):
        sparse.from_scipy(columns)
    coordinates = scipy.sparse.coo_matrix((np.ones(2), ([0, 1], [0, 1])), shape=(3, 2))
    coordinates.col = np.array([0, 7])
    with pytest.raises(ValueError, match=r"csr: expected term ids in \[0, 2\), got 7"):
        sparse.from_scipy(coordinates)


def test_values_that_overflow_on_the_device_are_refused(without_64_bits):
    with without_64_bits(), pytest.raises(ValueError, match="csr: expected finite values"):
        sparse.from_scipy(scipy.sparse.csr_matrix([[1e300]]))
    wide = scipy.sparse.csr_matrix(np.array([[1.0, 2.0]], np.longdouble))
    assert sparse.to_scipy(sparse.from_scipy(wide)).toarray().tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("width", [3, 300])
def test_inner_products_of_chosen_rows_and_their_gradients(rng, monkeypatch, width):
    monkeypatch.setattr(products, "_WIDE", 200)  # from here on in blocks, the last narrower
    chosen = scipy.sparse.random(5, 5, 0.5, random_state=0, format="csr")
    pattern = sparse.from_scipy(chosen, pad_nnz=15)
    given = jnp.asarray(rng.normal(size=(5, width)))
    rows, columns = np.repeat(np.arange(5), np.diff(chosen.indptr)), chosen.indices
    result = sparse.inner_products(pattern, given)
    np.testing.assert_allclose(result[: len(rows)], np.sum(given[rows] * given[columns], axis=1), atol=1e-12)
    assert not np.any(result[len(rows) :])
    weights = jnp.asarray(rng.normal(size=15))
    ours = jax.grad(lambda a: jnp.sum(weights * sparse.inner_products(pattern, a) ** 2))
    plain = jax.grad(lambda a: jnp.sum(weights[: len(rows)] * jnp.sum(a[rows] * a[columns], axis=1) ** 2))
    np.testing.assert_allclose(ours(given), plain(given), atol=1e-11)


@pytest.mark.parametrize("reused", [0, 10**6])
def test_wide_products_are_those_of_narrow_ones(rng, monkeypatch, reused):
    documents = sparse.from_scipy(scipy.sparse.csr_matrix(some_documents(rng)))
    weights = jnp.asarray(rng.normal(size=(12, 300)))

    def both(given):
        return jnp.sum(jnp.sin(sparse.project(documents, given)))

    expected = jax.value_and_grad(both)(weights)
    monkeypatch.setattr(products, "_WIDE", 200)
    monkeypatch.setattr(products, "_REUSED", reused)
    for mine, theirs in zip(jax.value_and_grad(both)(weights), expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)  # every column is computed as before


@pytest.mark.parametrize(("kind", "number"), [(np.int8, 300), (np.uint8, 300), (bool, 300), (np.int16, 40_000)])
@pytest.mark.parametrize("form", ["coo", "csr", "csc"])
def test_equal_coordinates_of_small_integers_are_summed_without_overflow(kind, number, form):
    where = np.zeros(number, int)
    counted = scipy.sparse.coo_matrix((np.ones(number, kind), (where, where)), shape=(1, 2))
    if form != "coo":
        starts = [0, number] if form == "csr" else [0, number, number]
        counted = getattr(scipy.sparse, f"{form}_matrix")((np.ones(number, kind), where, starts), shape=(1, 2))
    assert sparse.to_scipy(sparse.from_scipy(counted)).toarray().tolist() == [[number, 0]]
