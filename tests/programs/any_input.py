"""What Hypothesis gives the public functions: any value, shape and type; what may come back is an answer or a refusal.

The tests run a few hundred examples; by hand, `python tests/programs/any_input.py --examples 5000` runs more. A
counterexample is printed as a call that repeats it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from jaxsim import losses, sparse, text
from jaxsim.data import labelled_pairs, tables
from jaxsim.evaluate import metrics, retrieval
from jaxsim.methods import s2net, s2net_mse, s2net_pref, tweak
from jaxsim.methods.projections import Projection
from jaxsim.methods.weights.term_weights import TermWeights
from jaxsim.model import Model
from jaxsim.sparse import Vectors
from jaxsim.text import features

REFUSALS = (ValueError, TypeError, FloatingPointError, OverflowError)
DTYPES = ["float32", "float64", "float16", "int32", "int64", "uint8", "bool", "complex64"]
_EDGES = [0.0, -0.0, 1.0, -1.0, 1e-45, 1e-38, 1e38, 3e38, 1e20, -1e20, float("inf"), -float("inf"), float("nan"), 0.5]
NUMBERS = st.one_of(st.sampled_from(_EDGES), st.floats(-3, 3, width=32), st.floats(width=32))
WORDS = text.Vocabulary(("cat", "dog", "fish", "日本"), np.array([2, 3, 2, 1]), 10)
MODEL = Model(WORDS, Projection(jnp.asarray(np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3))))


@st.composite
def matrices(draw, rows=None):
    """Small matrices of any type: zero rows, equal rows, extremes, values that are not finite."""
    shape = rows or draw(st.integers(0, 5)), draw(st.integers(0, 4))
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    values = draw(arrays.arrays(np.float64, shape, elements=NUMBERS))
    if shape[0] > 1 and draw(st.booleans()):
        values[1:] = values[0]  # ties
    with np.errstate(all="ignore"):
        return values.astype(dtype)


def expect_finite(found, *given) -> None:
    """An answer about finite input has no NaN."""
    if all(np.all(np.isfinite(np.asarray(one, np.complex128))) for one in given):
        assert not np.any(np.isnan(np.asarray(found, np.float64))), found


def answered(call, *given):
    """An answer, or None where the input is refused with a line that says what is expected."""
    try:
        with np.errstate(all="ignore"):
            return call(*given)
    except REFUSALS as error:
        assert str(error), type(error)
        return None


@hypothesis.given(matrices(), matrices())
def vectors_compared(left, right):
    """`retrieval.top_k` and `mate_ranks` by cosine: scores in [-1, 1], ties to the lower index, ranks from 1 to n."""
    k = min(2, len(right)) or 1
    found = answered(lambda: retrieval.top_k(Vectors(left), Vectors(right), k=k))
    if found is not None:
        scores, rows = found
        assert np.all(np.abs(scores) <= 1 + 1e-5) and np.all((rows >= 0) & (rows < len(right)))
        assert np.all(scores[:, :-1] >= scores[:, 1:])
        tied = scores[:, :-1] == scores[:, 1:]
        assert np.all(rows[:, :-1][tied] < rows[:, 1:][tied])
    ranks = answered(lambda: retrieval.mate_ranks(Vectors(left), Vectors(right)))
    if ranks is not None:
        assert all(np.all((1 <= places) & (places <= len(left))) for places in ranks)


@hypothesis.given(matrices(), matrices())
def cosines(left, right):
    """`sparse.cosine` and its gradient: in [-1, 1], 0 at zero vectors, no NaN of finite input."""
    if left.shape != right.shape or not left.size:
        return
    found = answered(sparse.cosine, left, right)
    if found is not None:
        expect_finite(found, left, right)
        values = np.asarray(found)
        assert np.all(np.abs(values[np.isfinite(values)]) <= 1)
        if left.dtype == right.dtype == np.float32:
            slope = jax.grad(lambda a: jnp.sum(sparse.cosine(a, right)))(jnp.asarray(left))
            moderate = np.all(np.abs(left) < 1e15) and np.all((np.abs(left) > 1e-15) | (left == 0))
            if moderate:
                expect_finite(slope, left, right)
            assert not np.any(np.asarray(slope)[~np.any(left, axis=1)])


@hypothesis.given(matrices(), st.integers(-2, 6), st.integers(-2, 6))
def documents(values, row, column):
    """`sparse.from_scipy`: what comes in comes back, and an index that is out of range is refused."""
    matrix = scipy.sparse.csr_matrix(values) if values.dtype != np.float16 else scipy.sparse.csr_matrix(
        values.astype(np.float32))
    found = answered(sparse.from_scipy, matrix)
    if found is not None:
        np.testing.assert_array_equal(sparse.to_scipy(found).toarray(), matrix.toarray().astype(found.values.dtype))
        if values.shape[1]:
            product = answered(sparse.project, found, jnp.ones((values.shape[1], 2), jnp.float32))
            assert product.shape == (len(values), 2)
    if matrix.nnz:
        matrix.indices[row % matrix.nnz] = column
        inside = 0 <= column < values.shape[1]
        assert inside or answered(sparse.from_scipy, matrix) is None
        matrix.indptr[-1] = 10**6
        assert answered(sparse.from_scipy, matrix) is None


@hypothesis.given(matrices(rows=3), NUMBERS)
def every_pair(rows, gamma):
    """`losses.all_pairs_logistic`: at least 0, log 2 where all are equal, no NaN of finite input."""
    found = answered(lambda: losses.all_pairs_logistic(rows, rows[::-1], gamma=gamma))
    if found is not None and rows.dtype.kind == "f":
        expect_finite(found, rows)
        assert np.isnan(float(found)) or float(found) >= 0


THREE = arrays.arrays(np.float32, 3, elements=st.one_of(st.sampled_from([one for one in _EDGES if np.isfinite(one)]),
                                                        st.floats(width=32, allow_nan=False, allow_infinity=False)))


@hypothesis.given(THREE, THREE, matrices(rows=3), NUMBERS)
def slopes(scores, labels, rows, gamma):
    """Gradients of every loss in scores, labels, vectors and gamma, at the edges of float32: no NaN."""
    for loss in (losses.margin_ranking, losses.squared, lambda a, b: losses.log(jnp.clip(b, 0, 1), a)):
        for slope in jax.grad(lambda a, b, loss=loss: jnp.sum(loss(a, b)), argnums=(0, 1))(scores, labels):
            expect_finite(slope)
    if answered(lambda: losses.logistic_pairwise(scores, gamma=gamma)) is None:
        return
    scale = jnp.float32(np.clip(gamma, 1e-30, 1e30))
    for slope in jax.grad(lambda a, b: jnp.sum(losses.logistic_pairwise(a, gamma=b)), argnums=(0, 1))(scores, scale):
        expect_finite(slope)
    if rows.dtype == np.float32 and np.all(np.isfinite(rows)):
        slope = answered(jax.grad(lambda a: losses.all_pairs_logistic(a, a[::-1], gamma=scale)), rows)
        expect_finite(0.0 if slope is None else slope)


FINITE = st.one_of(st.sampled_from([one for one in _EDGES if np.isfinite(one)]), st.floats(-3, 3, width=32))
DOCUMENTS = sparse.from_scipy(scipy.sparse.csr_matrix(np.array([[1, 2, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0], [0, 3, 0, 1]],
                                                               np.float32)))  # fmt: skip
FEATURED = features.single(DOCUMENTS)


@hypothesis.given(arrays.arrays(np.float32, (4, 2), elements=FINITE), arrays.arrays(np.float32, 3, elements=FINITE),
                  NUMBERS, st.sampled_from([0.0, 1.0, 1e30, 1e-30]))
def fits(weights, grades, gamma, strength):
    """Steps from weights, by grades, with a gamma and a regulariser, at the edges of float32: finite, or a refusal."""
    pairs, init = labelled_pairs.LabelledPairs(np.array([0, 0, 1]), np.array([0, 1, 3]), grades), Projection(weights)
    order, init_terms = labelled_pairs.Preferences(*map(np.array, ([0], [1], [0], [3]))), TermWeights(weights[0, :1])
    for fit in (lambda: s2net.fit(DOCUMENTS, DOCUMENTS, init=init, gamma=gamma, beta=strength, max_iter=2),
                lambda: s2net_mse.fit(DOCUMENTS, DOCUMENTS, pairs, init=init, beta=strength, max_iter=2),
                lambda: s2net_pref.fit(DOCUMENTS, DOCUMENTS, pairs, init=init, gamma=gamma, beta=strength, max_iter=2),
                lambda: tweak.fit(FEATURED, FEATURED, pairs, init=init_terms, alpha=strength, max_iter=2),
                lambda: tweak.fit(FEATURED, FEATURED, order, init=init_terms, gamma=gamma, max_iter=2)):
        found = answered(fit)
        if found is not None:
            assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(found.params)), found
            assert np.isfinite(found.loss), found


LABELS = st.lists(st.sampled_from([0, 1, 2, -1, 0.5, float("nan")]), max_size=6)


@hypothesis.given(st.lists(NUMBERS, max_size=6), LABELS)
def judged(scores, labels):
    """Metrics: in [0, 1], or a refusal."""
    for metric in (metrics.auc, metrics.max_f1, metrics.average_precision,
                   lambda *given: metrics.ndcg(*given, k=3), lambda *given: metrics.precision_at(*given, k=1)):
        found = answered(metric, scores, labels)
        assert found is None or 0 <= float(found) <= 1


ANY_TEXT = st.one_of(st.text(max_size=60), st.sampled_from(
    ["", "cat", "Cat dog", "\0", "\ud800", "e\u0301" * 40, "日本 cat", "\u0301" * 70, "ẞ İ ﬁ Σ", "cat\u2028dog"]))


@hypothesis.given(st.lists(ANY_TEXT, max_size=5), st.sampled_from(["en", "zh", "th", "ja"]))
def texts(given, language):
    """Tokenisers and models: any text has words, vectors and similarities that are finite."""
    split = text.tokenizer(language)
    for one in given:
        assert all(split(one)), "no word is empty"
    vectors = MODEL.encode(given)
    assert vectors.shape == (len(given), 3) and np.all(np.isfinite(vectors))
    assert np.all(np.abs(MODEL.similarity(given, given)) <= 1 + 1e-5)


CONTENT = st.one_of(st.binary(max_size=200), ANY_TEXT.map(lambda one: one.encode("utf-8", "surrogatepass")))
NAMES = ["p.tsv", "p.csv", "p.jsonl", "p.json", "p.tsv.gz", "p.parquet", "p.csv.xz", "p.txt"]


@hypothesis.given(CONTENT, st.sampled_from(NAMES))
def files(content, name):
    """`data.tables.read`: pairs, or one line that names the file."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / name
        path.write_bytes(content)
        try:
            tables.read(path)
        except (ValueError, OSError) as error:
            assert name in str(error)


PROGRAMS = (vectors_compared, cosines, documents, every_pair, slopes, fits, judged, texts, files)


def run(program, examples: int, *, derandomize: bool) -> None:
    """Runs one program on so many examples; a counterexample is an AssertionError or what the program raised."""
    hypothesis.settings(max_examples=examples, deadline=None, derandomize=derandomize, database=None,
                        suppress_health_check=list(hypothesis.HealthCheck))(program)()


def main() -> int:
    """Runs every program; the exit status is 1 if one has a counterexample."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=500, help="examples of each program")
    given, faults = parser.parse_args(), 0
    for program in PROGRAMS:
        try:
            run(program, given.examples, derandomize=False)
            print(f"{program.__name__}: {given.examples} examples", flush=True)
        except Exception as error:
            faults += 1
            print(f"{program.__name__}: {type(error).__name__}: {error}\n" + "\n".join(getattr(error, "__notes__", [])))
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
