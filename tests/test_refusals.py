"""What people pass by mistake, and the message that names it."""

import json

import numpy as np
import pytest
import scipy.sparse

from jaxsim import mates, terms, text
from jaxsim.data import jsonl, pairs
from jaxsim.methods import bm25, cca, cl_lsi, dda, log_tfidf, lsa, opca, pca, s2net, tfidf
from jaxsim.models import projection

MATRIX = scipy.sparse.csr_matrix(np.eye(4))
DOCUMENTS = terms.from_scipy(MATRIX)
NO_WORDS = terms.from_scipy(scipy.sparse.csr_matrix((4, 0)))
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
    with pytest.raises(ValueError, match="expected (something to choose it from|a vocabulary of at least one term)"):
        fit(NO_WORDS, 1)


@pytest.mark.parametrize("fit", [tfidf.fit, log_tfidf.fit, bm25.fit, *(lambda x, f=f: f(x, 1) for f in FITS.values())])
def test_a_bare_scipy_matrix_is_not_terms(fit):
    with pytest.raises(ValueError, match="expected Terms, got csr_matrix"):
        fit(MATRIX)


def test_starts_that_are_none():
    fitted = lsa.fit(DOCUMENTS, k=2)
    for init, told in ((fitted, "fit.params"), (None, "a projection"), ("opca", "a projection")):
        with pytest.raises(ValueError, match=f"^init: expected .*{told}"):
            s2net.fit(DOCUMENTS, DOCUMENTS, init=init)
    with pytest.raises(ValueError, match="^activation: expected a function"):
        s2net.fit(DOCUMENTS, DOCUMENTS, init=fitted.params, activation="tanh")
    with pytest.raises(ValueError, match="^first_step: expected a positive number"):
        s2net.fit(DOCUMENTS, DOCUMENTS, init=fitted.params, first_step=0.0)
    with pytest.raises(NotImplementedError, match="^mesh: expected None"):
        s2net.fit(DOCUMENTS, DOCUMENTS, init=fitted.params, mesh=object())


def test_a_pair_of_projections_is_not_one():
    with pytest.raises(ValueError, match="^params: expected Projection, got tuple"):
        projection.encode(cca.fit(DOCUMENTS, DOCUMENTS, k=1).params, DOCUMENTS)


def test_overflowing_documents_end_with_the_step():
    huge = terms.from_scipy(MATRIX.astype(np.float32) * 1e30)
    start = projection.Projection(np.full((4, 2), 1e30, np.float32) * np.arange(1, 9, dtype=np.float32).reshape(4, 2))
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
    assert jsonl.load(path).left == ("one", "two")


def test_a_compressed_file_of_no_bytes_is_truncated(tmp_path):
    path = tmp_path / "pairs.jsonl.gz"
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="expected a whole .gz file, got one of no bytes"):
        jsonl.load(path)


def test_prose_drops_what_gives_translations_away():
    page = (
        "---\rtitle: A\rlocaleTitle: B\r---\rSee [the guide][guide] and {* ../../docs_src/a.py hl[1] *}\r\r"
        "## Head {#try-react}\r\rimport X from '~/components/x.astro'\r\r[guide]: ../api/app.md\r\r"
        "[!INCLUDE[abc](x.md)] end"
    )
    assert text.words(text.prose(page)) == ["b", "see", "the", "guide", "guide", "and", "head", "end"]
