"""What every method of SSI does with links and articles that are not as they should be."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

from jaxsim import sparse
from jaxsim.methods import ssi, ssi_batch, ssi_diag, ssi_full, ssi_hash, ssi_sparse
from jaxsim.methods.ssi.sparse import Sparse

N, V, EMPTY, ALONE = 8, 6, 3, 7  # a query and target without words; an article that nothing links to or from
LINKS = np.array([[0, 1], [0, EMPTY], [1, 2], [EMPTY, 0], [EMPTY, 4], [5, 6]])
OWN = np.repeat(np.arange(N), 2).reshape(N, 2)


@pytest.fixture
def side(rng):
    found = rng.random((N, V)) * (rng.random((N, V)) < 0.7)
    found[EMPTY] = 0
    return sparse.from_scipy(scipy.sparse.csr_matrix(found))


def sparse_fit(left, right, links, **options):
    """A fit of half the entries of W, which start at 0."""
    init = Sparse(jnp.tile(jnp.arange(3, dtype=jnp.int32), (V, 1)), jnp.zeros((V, 3)), jnp.asarray(1.0))
    return ssi_sparse.fit(left, right, links, init=init, **options)


FITS = {
    "low rank": lambda *of, **more: ssi.fit(*of, k=2, **more),
    "batch": lambda *of, **more: ssi_batch.fit(*of, k=2, batch=4, **more),
    "diagonal": lambda *of, **more: ssi_diag.fit(*of, **{"learning_rate": 0.1, **more}),
    "full": ssi_full.fit, "sparse": sparse_fit, "hashed": lambda *of, **more: ssi_hash.fit(*of, size=31, **more),
}
every_method = pytest.mark.parametrize("name", FITS)


def fit(name, side, links, key, **options):
    return FITS[name](side, side, links, key=key, known=OWN, triples=16, max_iter=1, **options)


@every_method
@pytest.mark.parametrize(("links", "message"), [
    ([[0, N]], r"links: expected documents in \[0, 8\), got \[\[0, 8\]\]"),
    ([[-1, 0]], r"links: expected queries in \[0, 8\), got \[\[-1, 0\]\]"),
    ([[0, 1], [2, 2]], r"links: expected none of the pairs in known, got \[\[2, 2\]\]"),
    ([[0, document] for document in range(1, N)], r"links: expected a document left as a negative .* query \[0\]"),
    (np.zeros((0, 2), int), "links: expected at least one link, got none"),
])
def test_unknown_ids_self_links_and_queries_of_only_positives_are_refused(name, side, key, links, message):
    with pytest.raises(ValueError, match=message):
        fit(name, side, links, key)


@every_method
def test_a_link_twice_counts_once_and_an_article_without_text_or_links_harms_nothing(name, side, key):
    once, twice = (fit(name, side, links, key) for links in (LINKS, np.concatenate([LINKS, LINKS[2:4]])))
    for one, other in zip(jax.tree.leaves(once.params), jax.tree.leaves(twice.params), strict=True):
        np.testing.assert_array_equal(one, other)
        assert np.all(np.isfinite(one))
    assert np.isfinite(once.loss) and once.loss > 0
    if name == "full":
        # The article with no text scores 0 with everything; nobody pulled anything to the one without links.
        query, document = ssi_full.encode(once.params, side, side)
        assert not np.any((query.dense @ document.dense.T)[EMPTY]) and not np.any(once.params.coefficients[ALONE])


@every_method
def test_a_setting_that_does_not_exist_is_refused_before_any_work(name, side, key):
    with pytest.raises(TypeError, match="unexpected keyword argument 'max_itr'"):
        fit(name, side, LINKS, key, max_itr=3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'label'"):  # of the optimiser, not of the fit
        fit(name, side, LINKS, key, label="x")
