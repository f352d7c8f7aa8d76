"""What people pass by mistake, and the message that names it."""

import json

import jax
import numpy as np
import pytest
import scipy.sparse

from jaxsim import sparse, text
from jaxsim.data import files, pairs
from jaxsim.evaluate import mates
from jaxsim.methods import bm25, cca, cl_lsi, dda, log_tfidf, lsa, opca, pca, projections, s2net, s2net_mse, tfidf

MATRIX = scipy.sparse.csr_matrix(np.eye(4))
DOCUMENTS = sparse.from_scipy(MATRIX)
NO_WORDS = sparse.from_scipy(scipy.sparse.csr_matrix((4, 0)))
FITS = {
    "lsa": lambda x, k: lsa.fit(x, k=k),
    "pca": lambda x, k: pca.fit(x, k=k),
    "cl_lsi": lambda x, k: cl_lsi.fit((x, x), k=k),
    "opca": lambda x, k: opca.fit((x, x), k=k),
    "cca": lambda x, k: cca.fit(x, x, k=k),
    "dda": lambda x, k: dda.fit((x, x), k=k),
}


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
@pytest.mark.parametrize("k", [2.0, "3", None, True, 0, 99])
def test_k_must_be_a_whole_number_in_range(fit, k):
    with pytest.raises(ValueError, match="^k: expected a whole number"):
        fit(DOCUMENTS, k)


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_an_empty_vocabulary_is_named(fit):
    with pytest.raises(ValueError, match="expected (at least one to choose from|a vocabulary of at least one term)"):
        fit(NO_WORDS, 1)


@pytest.mark.parametrize("fit", [tfidf.fit, log_tfidf.fit, bm25.fit, *(lambda x, f=f: f(x, 1) for f in FITS.values())])
def test_a_bare_scipy_matrix_is_not_terms(fit):
    with pytest.raises(ValueError, match="expected Terms, got csr_matrix"):
        fit(MATRIX)


def test_starts_that_are_none():
    fitted = lsa.fit(DOCUMENTS, k=2)
    for init, facts in ((fitted, "fit.params"), (None, "a projection"), ("opca", "a projection")):
        with pytest.raises(ValueError, match=f"^init: expected .*{facts}"):
            s2net.fit(DOCUMENTS, DOCUMENTS, init=init)
    with pytest.raises(ValueError, match="^activation: expected a function"):
        s2net.fit(DOCUMENTS, DOCUMENTS, init=fitted.params, activation="tanh")
    with pytest.raises(ValueError, match="^first_step: expected a positive number"):
        s2net.fit(DOCUMENTS, DOCUMENTS, init=fitted.params, first_step=0.0)
    with pytest.raises(ValueError, match="^mesh: expected a jax.sharding.Mesh, got object"):
        s2net.fit(DOCUMENTS, DOCUMENTS, init=fitted.params, mesh=object())


ONES = np.ones((4, 2))
NO_TEXT = sparse.from_scipy(scipy.sparse.csr_matrix((4, 4)))
MATES = ([0, 1, 2, 3], [0, 1, 2, 3], [1.0, 1.0, 0.5, 0.0])
SPREAD = s2net.random_init(4, 3, key=jax.random.key(0))


@pytest.mark.parametrize("fit", [s2net.fit, lambda *sides, **options: s2net_mse.fit(*sides, MATES, **options)],
                         ids=["s2net", "s2net_mse"])
@pytest.mark.parametrize("scale", [1, 1 / 3], ids=["exact", "rounded"])
def test_starts_without_a_gradient_are_refused(fit, scale):
    for activation in (None, jax.nn.sigmoid):
        with pytest.raises(ValueError, match="^init: expected a start from which there is a gradient .*, got loss 0"):
            fit(DOCUMENTS, DOCUMENTS, init=scale * ONES, activation=activation)
    for left, right, name in ((NO_TEXT, NO_TEXT, "left"), (NO_TEXT, DOCUMENTS, "left"), (DOCUMENTS, NO_TEXT, "right")):
        with pytest.raises(ValueError, match=f"^{name}: expected documents with words, got only empty documents"):
            fit(left, right, init=SPREAD)


@pytest.mark.parametrize("gamma", [1e-5, 1e-9])
def test_a_scale_at_which_no_start_has_a_gradient_is_named_and_not_the_start(gamma):
    with pytest.raises(ValueError, match=f"^gamma: expected a scale that lets the loss tell .*, got {gamma}"):
        s2net.fit(DOCUMENTS, DOCUMENTS, init=SPREAD, gamma=gamma)


def test_starts_that_are_as_good_as_it_gets_are_legal():
    best = s2net.fit(DOCUMENTS, DOCUMENTS, init=SPREAD)
    again = s2net.fit(DOCUMENTS, DOCUMENTS, init=best.params, tol=1.0)
    assert again.converged and again.steps == 0 and again.loss == pytest.approx(best.loss)
    rows = list(range(4))
    alike = s2net_mse.fit(DOCUMENTS, DOCUMENTS, (rows, rows, np.ones(4)), init=ONES)
    assert alike.converged and alike.loss < 1e-30


@pytest.mark.parametrize(("options", "message"), [
    ({"max_iter": 2.5}, "max_iter: expected a whole number of at least 0, got 2.5"),
    ({"max_iter": -1}, "max_iter: expected a whole number of at least 0, got -1"),
    ({"patience": 1.5}, "patience: expected a whole number of at least 1, or None, got 1.5"),
    ({"tol": float("nan")}, "tol: expected a number of at least 0, got nan"),
    ({"tol": -1}, "tol: expected a number of at least 0, got -1"),
])
def test_settings_of_the_optimiser_are_named_as_the_caller_wrote_them(options, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        s2net.fit(DOCUMENTS, DOCUMENTS, init=SPREAD, **options)
    with pytest.raises(ValueError, match=f"^{message}$"):
        s2net_mse.fit(DOCUMENTS, DOCUMENTS, MATES, init=SPREAD, **options)


def test_messages_say_what_came():
    with pytest.raises(ValueError, match=r"^rows: expected rows in \[0, 4\), got \[7\]"):
        sparse.take(DOCUMENTS, [0, 7, -1])
    with pytest.raises(ValueError, match=r"^df: expected numbers in 0 ... num_docs = 4, got \[9\]"):
        text.tf_idf(MATRIX, np.array([1, 9, 1, 1]), 4)
    with pytest.raises(ValueError, match="^counts: expected no negative numbers, got -1.0"):
        text.tf_idf(-MATRIX, np.ones(4), 4)
    for pointers, facts in (([0, 2, 1, 3, 4], "1 after 2"), ([0, 1, 2, 3, 9], "0 to 9"), ([1, 1, 2, 3, 4], "1 to 4")):
        broken = MATRIX.copy()
        broken.indptr = np.array(pointers, np.int32)
        with pytest.raises(ValueError, match=f"indptr: expected ascending row pointers .* at most 4, got {facts}"):
            sparse.from_scipy(broken)


def test_a_pair_of_projections_is_not_one():
    with pytest.raises(ValueError, match="^params: expected Projection, got tuple"):
        projections.encode(cca.fit(DOCUMENTS, DOCUMENTS, k=1).params, DOCUMENTS)


def test_overflowing_documents_end_with_the_step():
    huge = sparse.from_scipy(MATRIX.astype(np.float32) * 1e30)
    start = projections.Projection(np.full((4, 2), 1e30, np.float32) * np.arange(1, 9, dtype=np.float32).reshape(4, 2))
    with pytest.raises(FloatingPointError, match="expected a finite loss, got nan at step 0"):
        s2net.fit(huge, huge, init=start, max_iter=2)


def test_no_pairs_at_all():
    nothing = pairs.make("none", [], [], [], languages=("en", "es"))
    with pytest.raises(ValueError, match="^pairs: expected at least one pair"):
        mates.from_pairs(nothing)


def test_json_lines_with_a_byte_order_mark_and_windows_line_ends(tmp_path):
    path = tmp_path / "windows.jsonl"
    lines = [json.dumps({"left": "one", "right": "uno"}), json.dumps({"left": "two", "right": "dos"})]
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    assert [record["left"] for _, record in files.read_jsonl(path, ("left", "right"))] == ["one", "two"]


def test_a_compressed_file_of_no_bytes_is_truncated(tmp_path):
    path = tmp_path / "pairs.jsonl.gz"
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="expected a whole .gz file, got one of no bytes"):
        list(files.read_jsonl(path, ("left", "right")))


def test_prose_drops_what_gives_translations_away():
    page = (
        "---\rtitle: A\rlocaleTitle: B\r---\rSee [the guide][guide] and {* ../../docs_src/a.py hl[1] *}\r\r"
        "## Head {#try-react}\r\rimport X from '~/components/x.astro'\r\r[guide]: ../api/app.md\r\r"
        "[!INCLUDE[abc](x.md)] end"
    )
    assert text.words(text.prose(page)) == ["b", "see", "the", "guide", "guide", "and", "head", "end"]
