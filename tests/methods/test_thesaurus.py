"""Opposites from thesauri: signed entries, look-up, PILSA, S2Net on antonyms, words out of the thesaurus, mixtures."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

from jaxsim import linalg, sparse
from jaxsim.data import thesauri
from jaxsim.evaluate import questions
from jaxsim.methods import pilsa, s2net_antonym
from jaxsim.methods.projections import Projection
from jaxsim.methods.thesaurus import Lexicon, Senses, Space, encode, lookup, mixture, oov, signed

WORDS = ["hot", "warm", "fiery", "cold", "icy", "cool", "big", "large", "small", "tiny"]


def some(rng, number=24):
    """A made-up thesaurus of two axes, of which each entry lists a part."""
    poles = [WORDS[:3], WORDS[3:6], WORDS[6:8], WORDS[8:]]

    def senses():
        for _ in range(number):
            axis, side = 2 * rng.integers(2), rng.integers(2)
            same, other = poles[axis + side], poles[axis + 1 - side]
            yield str(rng.choice(same)), rng.choice(same, 2).tolist(), rng.choice(other, 1).tolist()

    return thesauri.thesaurus("some", senses())


def test_weights_are_signed_tf_idf(rng):
    first, second = some(rng, 9), thesauri.thesaurus("more", [("hot", ["spicy"], ["bland"])])
    entries = signed.documents([first, second], weights=[2.0, 1.0])
    rows = [*first.entries, *second.entries]
    df = {word: sum(word in (*row.positive, *row.negative) for row in rows) for word in entries.words}
    for at, row in enumerate(rows):
        expected = {word: (2.0 if at < len(first.entries) else 1.0) * sign * np.log(len(rows) / df[word])
                    for words, sign in ((row.positive, 1), (row.negative, -1)) for word in words}  # fmt: skip
        result = {entries.words[column]: entries.weights[at, column] for column in entries.weights[at].indices}
        assert result == pytest.approx(expected)
    pairs = {frozenset((entries.words[a], entries.words[b])) for a, b in entries.pairs()}
    assert pairs == {frozenset((row.head, word)) for row in rows for word in row.negative}
    with pytest.raises(ValueError, match=r"sources: expected at least one entry, got none"):
        signed.documents([])


def test_look_up_knows_words_of_both_sides_whatever_their_weight():
    entries = signed.documents([thesauri.thesaurus("one", [("hot", ["warm"], ["cold", "icy"])])])  # all idf are 0
    left, right = np.array([0, 1, 2, 0]), np.array([2, 3, 3, 1])
    assert lookup.opposite(entries, left, right).tolist() == [True, True, False, False]


def test_pilsa_is_the_truncated_svd_of_the_signed_entries(rng):
    entries = signed.documents([some(rng)])
    dense = entries.weights.toarray().astype(np.float64)
    _, values, right = np.linalg.svd(dense, full_matrices=False)
    for k in (2, 5):
        expected = right[:k].T * values[:k]  # V S
        result = np.asarray(encode(pilsa.fit(entries.terms(), k=k).params, entries.terms()).dense, np.float64)
        np.testing.assert_allclose(result @ result.T, expected @ expected.T, atol=1e-4)  # whatever the signs of columns
    space = Space.of(entries, Lexicon(entries.words), pilsa.fit(entries.terms(), k=3).params)
    assert space.cosines(["hot", "hot"], ["icy", "fiery"]).round(1).tolist() == [-1.0, 1.0]
    unsigned = pilsa.fit(entries.terms(unsigned=True), k=3).params
    flat = np.asarray(sparse.unit(encode(unsigned, entries.terms(unsigned=True)).dense))
    assert flat[entries.index["hot"]] @ flat[entries.index["icy"]] > 0.5  # PILSA §3.1


def test_randomised_svd_keeps_small_singular_values(rng):
    scale = 1 / np.arange(1, 301)  # squares of 1e-5 of the first: a Gram matrix alone would lose them in float32
    matrix = sp.csr_matrix((rng.normal(size=(300, 80)) * scale[:, None]).astype(np.float32))
    expected = np.linalg.svd(matrix.toarray().astype(np.float64), compute_uv=False)[:40]
    for some_matrix in (matrix, matrix.T.tocsr()):  # a basis of terms, and one of documents
        values, right = linalg.randomised_svd(sparse.from_scipy(some_matrix), 40, key=jax.random.key(0))
        np.testing.assert_allclose(values, expected, rtol=0.01)
        np.testing.assert_allclose(right.T @ right, np.eye(40), atol=2e-3)
        np.testing.assert_allclose(np.linalg.norm(some_matrix @ right, axis=0), expected, rtol=0.01)
    low = sp.csr_matrix(rng.normal(size=(30, 2)) @ rng.normal(size=(2, 20)))
    values, right = linalg.randomised_svd(sparse.from_scipy(low), 5, key=jax.random.key(0))
    assert np.all(np.asarray(values)[2:] == 0) and not np.asarray(right)[:, 2:].any()


def test_pilsa_of_a_small_thesaurus_is_exact_where_singular_values_are_close():
    rng, senses = np.random.default_rng(0), []
    for group in range(4):
        words = [f"{group} {number}" for number in range(8)]
        senses += [(order[0], order[1:4], order[4:7]) for order in (rng.permutation(words).tolist() for _ in range(6))]
    entries = signed.documents([thesauri.thesaurus("mine", senses)])
    dense = entries.columns.toarray().astype(np.float64)
    values, right = np.linalg.svd(dense)[1:]
    assert values[1] > 0.96 * values[0]
    for k in (1, 2, 6):
        found = np.asarray(encode(pilsa.fit(entries.terms(), k=k).params, entries.terms()).dense, np.float64)
        expected = dense @ right[:k].T
        difference = np.linalg.norm(found @ found.T - expected @ expected.T)
        assert difference < 1e-4 * np.linalg.norm(expected @ expected.T)


def test_the_scale_of_weights_does_not_count_and_what_float32_cannot_hold_is_refused():
    source = thesauri.thesaurus("mine", [("hot", ["warm"], ["cold"]), ("big", ["large"], ["small"])])
    spaces = [Space.of(entries, Lexicon(entries.words))
              for entries in (signed.documents([source], weights=[weight]) for weight in (2.0**-100, 1e-30, 1e20, 1.0))]
    for space in spaces:
        assert space.cosines(["hot", "hot", "hot"], ["cold", "warm", "big"]).round(6).tolist() == [-1, 1, 0]
    np.testing.assert_array_equal(spaces[0].vectors.toarray(), spaces[-1].vectors.toarray())
    for weight in (1e-50, 1e39, 3e38):
        with pytest.raises(ValueError, match=r"weights: expected numbers from 1.2e-38 to 5.3e\+36 \(float32\), got"):
            signed.documents([source], weights=[weight])
    with pytest.raises(ValueError, match=r"right: expected 1 word \(as left\), got 2"):
        spaces[0].cosines(["hot"], ["cold", "warm"])


@pytest.mark.parametrize(("pairs", "message"), [
    (np.zeros((0, 2), int), "at least one pair, got 0"),
    (np.array([[-1, 0]]), r"rows of words in \[0, 3\), got \[-1\]"),
    (np.array([[0, 3]]), r"rows of words in \[0, 3\), got \[3\]"),
    (np.zeros((2, 2)), "integers of shape"),
])
def test_mean_cosines_of_other_rows_are_refused(pairs, message):
    with pytest.raises(ValueError, match=f"pairs: expected {message}"):
        s2net_antonym.mean_cosine(Projection(jnp.eye(3)), sparse.from_scipy(sp.identity(3, format="csr")), pairs)


def slow_loss(weights, columns, pairs, gamma):
    """The loss as printed, pair by pair, in float64; pairs that share a word are passed over."""
    vectors = columns @ weights
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    total, number = 0.0, 0
    for i, (p, q) in enumerate(pairs):
        for j, (other, mate) in enumerate(pairs):
            if i != j and p != other and q != mate:
                own = unit[p] @ unit[q]
                for delta in (unit[p] @ unit[mate] - own, unit[other] @ unit[q] - own):
                    total += np.log1p(np.exp(-gamma * delta))
                    number += 1
    return total / number


def test_the_objective_is_the_papers_with_its_sign_flipped(rng):
    entries = signed.documents([some(rng)])
    words, pairs = sparse.from_scipy(entries.columns.astype(np.float64)), entries.pairs()[:8]
    weights, columns = rng.normal(size=(entries.tf.shape[0], 3)), entries.columns.toarray().astype(np.float64)
    score = s2net_antonym.held_out_loss(words, pairs, gamma=3.0)
    assert -score(Projection(jnp.asarray(weights))) == pytest.approx(slow_loss(weights, columns, pairs, 3.0), rel=1e-9)
    collapsed = Projection(jnp.ones((len(weights), 1)))
    assert -score(Projection(jnp.zeros_like(collapsed.weights))) == pytest.approx(np.log(2))
    # One batch, one step of plain size: Adagrad's first step is the sign of the gradient, of which we take differences.
    fit = s2net_antonym.fit(words, pairs, init=Projection(jnp.asarray(weights)), key=jax.random.key(0), gamma=3.0,
                            learning_rate=1e-3, max_iter=1)  # fmt: skip
    moved = np.asarray(fit.params.weights) - weights
    touched = np.flatnonzero(np.abs(columns[np.unique(pairs)]).sum(axis=0))
    assert not moved[np.setdiff1d(np.arange(len(weights)), touched)].any()
    for at in touched[:3]:
        step = np.zeros_like(weights)
        step[at, 0] = 1e-5
        slope = slow_loss(weights + step, columns, pairs, 3.0) - slow_loss(weights - step, columns, pairs, 3.0)
        assert np.sign(moved[at, 0]) == -np.sign(slope) and abs(moved[at, 0]) == pytest.approx(1e-3, rel=1e-3)


def test_training_lowers_the_held_out_loss_below_that_of_a_collapsed_model(rng):
    entries = signed.documents([some(rng, 40)])
    words, pairs = entries.terms(), entries.pairs()
    start = Projection(jnp.asarray(rng.normal(size=(40, 4)), jnp.float32))
    held, train = pairs[:4], pairs[4:]
    fit = s2net_antonym.fit(words, train, init=start, key=jax.random.key(0), batch_size=6, learning_rate=0.05,
                            validate=s2net_antonym.held_out_loss(words, held), max_iter=30, patience=5)
    scores = [entry["validation"] for entry in fit.history]
    assert max(scores) > scores[0] and max(scores) > -np.log(2)
    assert -s2net_antonym.held_out_loss(words, held)(fit.params) == pytest.approx(-max(scores))


def test_training_waits_two_epochs_for_a_better_score_unless_told_otherwise(rng):
    entries = signed.documents([some(rng, 40)])
    words, pairs = entries.terms(), entries.pairs()
    start, scores = Projection(jnp.asarray(rng.normal(size=(40, 4)), jnp.float32)), iter([2, 3, 1, 3, 9])
    fit = s2net_antonym.fit(words, pairs, init=start, key=jax.random.key(0), batch_size=6, learning_rate=0.05,
                            validate=lambda params: next(scores))
    assert fit.converged and fit.steps == 3 and fit.best_score == 3


def test_a_killed_training_goes_on_bit_for_bit(rng, tmp_path):
    entries = signed.documents([some(rng, 40)])
    words, pairs = entries.terms(), entries.pairs()
    start = pilsa.fit(words, k=3).params
    score = s2net_antonym.held_out_loss(words, pairs[:5])
    settings = {"init": start, "key": jax.random.key(1), "batch_size": 5, "learning_rate": 0.03, "max_iter": 5}
    calls = []

    def killed(params):
        calls.append(None)
        if len(calls) == 4:
            raise RuntimeError("killed")
        return score(params)

    with pytest.raises(RuntimeError, match="killed"):
        s2net_antonym.fit(words, pairs[5:], validate=killed, checkpoint=tmp_path / "run", **settings)
    resumed = s2net_antonym.fit(words, pairs[5:], validate=score, checkpoint=tmp_path / "run", **settings)
    whole = s2net_antonym.fit(words, pairs[5:], validate=score, **settings)
    np.testing.assert_array_equal(resumed.params.weights, whole.params.weights)
    assert [one["loss"] for one in resumed.history[1:]] == [one["loss"] for one in whole.history[1:]]
    with pytest.raises(ValueError, match="checkpoint: expected a checkpoint of the same data"):
        s2net_antonym.fit(words, pairs[6:], validate=score, checkpoint=tmp_path / "run", **settings)


@pytest.mark.parametrize(("change", "message"), [
    ({"pairs": [[0, 99], [0, 1]]}, r"pairs: expected rows of words in \[0, 10\), got \[99\]"),
    ({"pairs": [[0, 1]]}, "pairs: expected at least two pairs, got 1"),
    ({"pairs": [[0.5, 1.0]]}, r"pairs: expected integers of shape \(m, 2\)"),
    ({"init": Projection(jnp.ones((3, 2)))}, r"init: expected 24 rows \(entries\), got 3"),
    ({"batch_size": 1}, "batch_size: expected at least 2"),
    ({"gamma": 0.0}, "gamma: expected a positive number"),
])  # fmt: skip
def test_bad_arguments_are_refused(rng, change, message):
    entries = signed.documents([some(rng)])
    given = {"pairs": entries.pairs(), "init": Projection(jnp.ones((24, 2))), "key": jax.random.key(0)} | change
    with pytest.raises(ValueError, match=message):
        s2net_antonym.fit(entries.terms(), given.pop("pairs"), **given)


def test_words_that_the_thesaurus_lacks():
    words = ["generous", "corrupt", "corruptible", "self-denial", "stop", "city", "ox", "goodwill", "make-up", "die"]
    lexicon = Lexicon(words, {"oxen": ("ox", "oxe")})
    result = {word: lexicon.match(word) for word in
              ("GENEROUS", "oxen", "stopped", "cities", "corruptibility", "good-will", "makeup", "denial", "zyx", "")}
    assert {word: match.how for word, match in result.items()} == {
        "GENEROUS": "as written", "oxen": "base form", "stopped": "base form", "cities": "base form",
        "corruptibility": "stem", "good-will": "hyphens", "makeup": "hyphens", "denial": "compound",
        "zyx": "unknown", "": "unknown"}  # fmt: skip
    assert result["corruptibility"].words == ("corrupt", "corruptible") and result["makeup"].words == ("make-up",)
    assert Lexicon(["q"]).match("qing").how == "unknown"  # no base form of one letter
    vectors = np.eye(len(words), dtype=np.float32)
    space = Space(lexicon, vectors)
    cosines = space.cosines(["corruptibility", "zyx", "cities"], ["corrupt", "city", "city"])
    assert cosines[[0, 2]] == pytest.approx([2**-0.5, 1.0]) and np.isnan(cosines[1])  # a mean of two; unknown; itself
    assert space.neighbours("zyx") == [] and "city" not in dict(space.neighbours("cities"))
    sparse_space = Space(lexicon, sp.csr_matrix(vectors))
    np.testing.assert_allclose(sparse_space.cosines(["corruptibility"], ["corrupt"]), 2**-0.5)


def test_a_word_of_the_corpus_is_placed_by_neighbours_that_agree():
    cosines = np.array([[1, -0.5, 0.2, 0.1], [-0.5, 1, 0.3, 0.2], [0.2, 0.3, 1, -0.1], [0.1, 0.2, -0.1, 1]])
    assert oov.consistent(cosines, 2).tolist() == [0, 2] and oov.consistent(cosines, 3) is None
    corpus = np.array([[1.0, 0.0], [1.0, 0.1], [1.0, 0.2], [1.0, 0.3], [-1.0, 0.0]])
    inner = np.array([[-1.0, 0.0], [0.8, 0.6], [1.0, 0.0], [0.0, 1.0]])  # cold, burning, hot, wet
    place = oov.Neighbours(["sweltering", "cold", "burning", "hot", "wet"], corpus, ["cold", "burning", "hot", "wet"],
                           inner, neighbours=3, size=2)  # fmt: skip
    centre = inner[1] + inner[2]
    np.testing.assert_allclose(place("Sweltering"), centre / np.linalg.norm(centre), rtol=1e-6)
    assert place("unheard") is None
    assert oov.Neighbours(["sweltering"], corpus[:1], ["cold"], inner[:1], neighbours=1, size=1)("sweltering") is None
    space = Space(Lexicon(["cold", "burning", "hot", "wet"]), inner, beyond=place)
    vectors, (match,) = space.embed(["sweltering"])
    assert match.how == "corpus" and vectors[0] @ inner[2] > 0.9 and space.cosines(["sweltering"], ["cold"])[0] < -0.9


def test_questions_are_not_attempted_where_nothing_is_known_and_ties_share_the_credit():
    nan = np.nan
    scores = np.array([[-1, 0, 0, 0, 0], [0, 0, -1, -1, nan], [nan] * 5, [0] * 5, [nan, 3, nan, 2, nan]])
    found = questions.closest_opposite(scores, [0, 2, 1, 4, 3])
    assert found.credit.tolist() == [1, 0.5, 0, 0.2, 1] and found.attempted.tolist() == [True, True, False, True, True]
    precision, recall, f1 = questions.precision_recall_f1(found)
    assert (precision, recall) == pytest.approx((2.7 / 4, 2.7 / 5)) and f1 == pytest.approx(5.4 / 9)


def test_weights_of_a_mixture_have_the_largest_likelihood(rng):
    good = rng.normal(size=(60, 4))
    answer = np.argmin(good + 0.3 * rng.normal(size=good.shape), axis=1)
    cosines = np.stack([np.tanh(good), rng.uniform(-1, 1, good.shape)])
    cosines[1, 0] = np.nan
    weights = np.asarray(mixture.fit(cosines, answer, l2=0.01).params)
    assert weights[0] > 5 * abs(weights[1])
    mixed = mixture.mix(cosines, weights)
    np.testing.assert_allclose(mixed[0], weights[0] * cosines[0, 0])
    data = mixture.Choices(jnp.asarray(np.nan_to_num(cosines)), jnp.ones((60, 4), bool), jnp.asarray(answer),
                           jnp.asarray(0.01))  # fmt: skip
    for step in (0.05 * np.eye(2)).tolist():
        assert mixture.objective(jnp.asarray(weights), data) < mixture.objective(jnp.asarray(weights + step), data)
        assert mixture.objective(jnp.asarray(weights), data) < mixture.objective(jnp.asarray(weights - step), data)


def test_senses_are_of_entries_and_the_most_opposite_ones_count(rng):
    words = ["light", "dark", "heavy", "alone"]
    vectors = rng.normal(size=(4, 5)).astype(np.float32)
    signs = np.array([[1, -1, 0, 0], [2, 0, -2, 0], [-1, 0, 1, 0]])
    space = Space(Lexicon(words), vectors)
    made = Senses(space, sp.csr_matrix(signs), 0.3)
    unit = np.float64(vectors) / np.linalg.norm(np.float64(vectors), axis=1, keepdims=True)

    def sense(word, entry):
        mean = np.sign(signs[entry]) @ unit
        found = 0.3 * unit[word] + 0.7 * np.sign(signs[entry, word]) * mean / np.linalg.norm(mean)
        return found / np.linalg.norm(found)

    light, heavy = [sense(0, entry) for entry in range(3)], [sense(2, entry) for entry in (1, 2)]
    np.testing.assert_allclose(made.of("Light"), light, atol=1e-6)
    np.testing.assert_allclose(made.of("alone"), unit[3:], atol=1e-6)  # no entry has it: its own vector
    assert made.of("xyzzy").shape == (0, 5)
    found = made.lowest(["light", "heavy", "xyzzy"], ["heavy", "light", "light"])
    lowest = min(a @ b for a in light for b in heavy)
    np.testing.assert_allclose(found[:2], lowest, atol=1e-6)
    assert np.isnan(found[2])
    plain = Senses(space, sp.csr_matrix(signs), 1.0).lowest(["light"], ["dark"])
    np.testing.assert_allclose(plain, space.cosines(["light"], ["dark"]), atol=1e-6)


@pytest.mark.parametrize(("entries", "share", "message"), [
    (np.eye(3), 0.5, "entries: expected 2 columns"), (np.eye(2), 1.5, "share: expected a number in"),
    (np.eye(2), float("nan"), "share: expected a number in"),
])  # fmt: skip
def test_senses_refuse_entries_of_other_words(entries, share, message):
    with pytest.raises(ValueError, match=message):
        Senses(Space(Lexicon(["a", "b"]), np.eye(2)), sp.csr_matrix(entries), share)


def test_words_of_many_equal_entries_keep_their_vectors():
    rows = [(f"hot{i}", [f"warm{i}"], [f"cold{i}"]) for i in range(40)]
    small = [(f"wet{i}", [], [f"dry{i}"]) for i in range(5)]  # with smaller singular values than those of the others
    entries = signed.documents([thesauri.thesaurus("mine", rows + small)])
    words = entries.terms()
    vectors = np.asarray(encode(pilsa.without_rest(pilsa.fit(words, k=6).params, entries), words).dense, np.float64)
    there = dict(zip(entries.words, vectors.any(axis=1), strict=True))
    assert all(there[f"{word}{i}"] for word in ("hot", "warm", "cold") for i in range(40))
    assert not any(there[f"{word}{i}"] for word in ("wet", "dry") for i in range(5))
    place = {word: row for row, word in enumerate(entries.words)}
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-30)
    for i in range(40):
        hot, warm, cold = (unit[place[f"{word}{i}"]] for word in ("hot", "warm", "cold"))
        assert hot @ warm > 0.99 and hot @ cold < -0.99
