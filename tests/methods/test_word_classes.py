"""The exchange algorithm: its gains are differences of the log-likelihood, which never falls."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from jaxsim.methods.language import word_classes


@pytest.fixture
def pairs(rng):
    """Counts of 40 words of four kinds, each of which is followed by the next."""
    kinds = np.arange(40) % 4
    chance = np.where((kinds[:, None] + 1) % 4 == kinds[None], 3.0, 0.1)
    counts = rng.poisson(chance)
    counts[:3] = counts[:, :3] = 0
    return scipy.sparse.csr_matrix(counts.astype(float))


def test_the_gain_of_a_move_is_the_difference_of_the_log_likelihoods(pairs, rng):
    of_word = rng.integers(0, 5, 40)
    word = 7
    belongs = scipy.sparse.csr_matrix((np.ones(40), (np.arange(40), of_word)), (40, 5)).toarray()
    without = belongs.copy()
    without[word] = 0
    table = without.T @ pairs @ without
    after, before = (word_classes._row(one, word) for one in (pairs.tocsr(), pairs.tocsc()))
    right = np.bincount(of_word[after[0]], after[1] * (after[0] != word), minlength=5)
    left = np.bincount(of_word[before[0]], before[1] * (before[0] != word), minlength=5)
    gains = word_classes._gains(table, right, left, pairs[word, word])
    moved = [word_classes.log_likelihood(pairs, np.where(np.arange(40) == word, one, of_word)) for one in range(5)]
    np.testing.assert_allclose(gains - gains[0], np.array(moved) - moved[0], rtol=1e-9, atol=1e-9)


def test_passes_never_lower_the_log_likelihood_and_find_the_kinds(pairs):
    classes = word_classes.exchange(pairs, 6, passes=30)
    assert (np.diff(classes.log_likelihoods) >= -1e-9).all()
    assert classes.log_likelihoods[-1] == pytest.approx(word_classes.log_likelihood(pairs, classes.of_word))
    result = classes.of_word[3:]
    together = [len(set(result[np.arange(3, 40) % 4 == kind])) for kind in range(4)]
    assert together == [1] * 4 and len(set(result)) == 4
    assert classes.of_word[1] == 0 and classes.of_word[2] == 1 and result.min() == 2  # marks have their own


def test_too_few_classes_are_refused(pairs):
    with pytest.raises(ValueError, match="number: expected a whole number of at least 3, got 2"):
        word_classes.exchange(pairs, 2)
