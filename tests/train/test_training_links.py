"""SSI from pairs of texts: which links there are, what is never a negative, the choice of b, and going on."""

from __future__ import annotations

import functools
import itertools

import jax
import numpy as np
import pytest
import scipy.sparse
from command_line import interrupting

from jaxsim import sparse
from jaxsim.data import docstrings, pairs
from jaxsim.methods import ssi
from jaxsim.methods.ssi import triples
from jaxsim.optim import closed_form
from jaxsim.train import linked, resume, settings, train
from jaxsim.train.settings import SSI as METHODS

# Few words, since eigenvalues of thousands of them would take most of the time.
Settings = functools.partial(settings.Settings, max_terms=400)
SSI = {"method": "ssi", "dim": 8, "max_iter": 3}


@pytest.fixture(scope="module")
def corpus():
    return docstrings.load().take(range(300))


def side(rows, size=6):
    """Documents of one word each; None is an empty one."""
    result = np.zeros((len(rows), size), np.float32)
    for i, word in enumerate(rows):
        if word is not None:
            result[i, word] = 1
    return sparse.from_scipy(scipy.sparse.csr_matrix(result))


def made(left, right, name="made"):
    return pairs.make(name, map(str, range(len(left))), left, right, languages=("en", "en"))


def words_of(found):
    """Links and known pairs as words of query and document."""
    query, document = (sparse.to_scipy(one).argmax(axis=1).ravel() for one in (found.queries, found.documents))
    query, document = np.asarray(query).ravel(), np.asarray(document).ravel()
    return [sorted((int(query[q]), int(document[d])) for q, d in rows.tolist()) for rows in (found.links, found.known)]


def test_equal_texts_are_one_and_texts_without_words_are_left_out():
    result = linked.links_of(side([0, 0, 1, 0, None, 2]), side([3, 4, 3, 3, 5, None]))
    # Query 0 has both documents, so that no negative is left: it teaches nothing.
    assert words_of(result) == [[(1, 3)], []] and (result.queries.num_docs, result.documents.num_docs) == (2, 2)


def test_near_duplicates_are_known_by_brute_force(rng):
    left, right = rng.integers(0, 6, 30), rng.integers(0, 6, 30)
    groups = np.stack([left // 2, right // 2], axis=1)
    result = linked.links_of(side(left), side(right), groups)
    pairs = set(zip(left.tolist(), right.tolist(), strict=True))
    near = {(left[i], right[j]) for i, j in itertools.product(range(30), repeat=2) if (groups[i] == groups[j]).any()}
    num = len(set(right.tolist()))
    expected = []
    for query in sorted(set(left.tolist())):
        mine, others = ({d for q, d in some if q == query} for some in (pairs, near - pairs))
        if len(mine) < num:
            # Near-duplicates that leave no negative do not count.
            expected.append((query, mine, others if len(mine | others) < num else set()))
    words, known = words_of(result)
    assert words == sorted((q, d) for q, mine, _ in expected for d in mine)
    assert known == sorted((q, int(d)) for q, _, others in expected for d in others)


def test_no_triple_has_a_positive_or_its_twin_as_its_negative(monkeypatch):
    """40 questions, five to an answer; answers 0 and 1 are near-duplicates."""
    answers = ["press the red button twice then wait for the light to turn green again " + tail for tail in
               ("now", "please")] + [f"answer{i} is about thing{i} and matter{i}" for i in range(6)]  # fmt: skip
    right = [answers[i % 8] for i in range(40)]
    given = made([f"question{i} of kind{i % 8} asked{i}" for i in range(40)], right)
    seen, draw = [], triples.draw

    def spy(key, table, number):
        result = draw(key, table, number)
        seen.append(np.stack(result, axis=1))
        return result

    monkeypatch.setattr(triples, "draw", spy)
    calls = []
    real = ssi.fit
    monkeypatch.setattr(ssi, "fit", lambda *sides, **options: calls.append(sides) or real(*sides, **options))
    for all_negatives, forbidden in ((False, {0, 1}), (True, None)):
        seen.clear()
        calls.clear()
        train(given, Settings(**SSI, all_negatives=all_negatives), dev=0)
        rows, documents = np.concatenate(seen), calls[0][1]
        assert documents.num_docs == 8 and len(rows) > 1000
        positive = {tuple(link) for link in calls[0][2].tolist()}
        assert len(positive) == 40 and not positive & {(q, n) for q, _, n in rows.tolist()}
        twins = {frozenset((p, n)) for _, p, n in rows.tolist()}
        assert (frozenset((0, 1)) in twins) == (forbidden is None) and frozenset((2, 3)) in twins


def test_the_model_is_better_than_bare_terms_and_its_score_is_the_one_it_stopped_by(corpus):
    messages = []
    facts = train(corpus, Settings(**SSI | {"dim": 30, "max_iter": 6}), dev=0.2, say=messages.append).training
    assert facts["dev"]["mrr"] > facts["dev"]["untrained_mrr"] + 0.02
    assert facts["history"]["step"][0] == 0 and facts["history"]["loss"][0] is None
    assert max(facts["history"]["validation"]) == pytest.approx(facts["dev"]["mrr"], abs=1e-4)
    losses = facts["history"]["loss"][1:]
    assert losses[-1] < losses[0]
    tried = facts["identities"]
    assert {"3", "10", "30"} <= set(tried) and list(tried) == sorted(tried, key=float)
    assert tried[f"{facts['identity']:g}"] == max(tried.values())
    assert any(line.startswith(f"b = {facts['identity']:g}, of {next(iter(tried))} (") for line in messages)


def test_one_matrix_scores_both_sides_alike_and_as_dense_float64_arithmetic_does(corpus):
    model = train(corpus, Settings(**SSI | {"method": "ssi-sym"}, identity=4), dev=0.2)
    query, document = model.params
    np.testing.assert_array_equal(query.weights, document.weights)
    assert not model.two_sided and model.strongest == linked.STRONGEST and model.training["identity"] == 4
    some = corpus.left[:20]
    matrix = sparse.to_scipy(sparse.from_scipy(model.term_vectors(some))).toarray().astype(np.float64)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    assert (matrix != 0).sum(axis=1).max() <= linked.STRONGEST
    u = np.asarray(query.weights, np.float64)
    expected = matrix @ (u @ u.T + 4 * np.eye(len(u))) @ matrix.T
    np.testing.assert_allclose(model.similarity(some, some), expected, rtol=1e-5, atol=1e-5)
    assert np.abs(matrix @ u @ u.T @ matrix.T).max() > 1e-3  # something was learned


@pytest.mark.parametrize(("first", "then"), [
    ({"identity": 5.0}, {}), ({}, {"identity": 3.0}), ({"identity": 10.0}, {}), ({}, {"method": "ssi-sym"}),
])
def test_checkpoints_of_another_choice_are_not_gone_on_from(corpus, tmp_path, first, then):
    """Without an identity three are tried: those of one that was given would not be looked at, or not truly."""
    some = corpus.take(range(40))
    train(some, Settings(**SSI | first), dev=0.2, checkpoint=tmp_path / "c")
    train(some, Settings(**SSI | first), dev=0.2, checkpoint=tmp_path / "c")
    with pytest.raises(ValueError, match="checkpoint: expected one of method ssi.* and identity .*, got one of method"):
        train(some, Settings(**SSI | then), dev=0.2, checkpoint=tmp_path / "c")


def test_a_choice_before_the_first_iteration_binds_nobody(tmp_path):
    folder = tmp_path / "c"
    resume.keep_choice(folder, Settings(method="ssi", identity=5.0), "a")
    assert resume.kept_choice(folder) is None
    resume.keep_choice(folder, Settings(method="ssi"), "b")
    (folder / "checkpoint.identity-3").mkdir()
    (folder / "checkpoint.identity-3" / "checkpoint.safetensors").write_bytes(b"")
    assert resume.kept_choice(folder) == {"method": "ssi", "identity": None, "dim": 300}
    resume.keep_choice(folder, Settings(method="ssi"), "b")
    with pytest.raises(ValueError, match="checkpoint: expected one of a training with these held-out pairs, got one"):
        resume.keep_choice(folder, Settings(method="ssi"), "a")
    (folder / "checkpoint.settings.json").write_text('{"method": "ssi", "identity": null, "dim": 300}')
    resume.keep_choice(folder, Settings(method="ssi"), "a")  # as of an earlier version, which kept no held-out pairs
    for written in ("", "[1]"):
        (folder / "checkpoint.settings.json").write_text(written)
        assert resume.kept_choice(folder) == {}  # as of an earlier version
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="checkpoint: expected a folder that can be written to"):
        resume.keep_choice(tmp_path / "file", Settings(), "a")


def test_topics_go_on_with_steps_of_the_same_length_alone(corpus, tmp_path):
    some = corpus.take(range(40))
    settings = {"method": "jplsa", "dim": 3, "max_terms": 100}
    train(some, Settings(**settings, max_iter=6), dev=0.0, checkpoint=tmp_path / "c")
    with pytest.raises(ValueError, match="checkpoint: expected one of method jplsa.* max_iter 4, got .* max_iter 6"):
        train(some, Settings(**settings, max_iter=4), dev=0.0, checkpoint=tmp_path / "c")


@pytest.mark.parametrize("method", METHODS)
def test_words_that_no_pair_shares_are_learned(method):
    """Two languages without a word in common: bare terms know nothing."""
    left = [f"red{i % 6} boat{i % 5} sea{i % 7}" for i in range(210)]
    right = [f"rot{i % 6} schiff{i % 5} meer{i % 7}" for i in range(210)]
    facts = train(made(left, right), Settings(method=method, dim=30, max_iter=10, seed=2), dev=0.2).training["dev"]
    assert facts["untrained_mrr"] < 0.1 and facts["mrr"] > 0.6


@pytest.mark.parametrize(("dev", "options", "identity"), [(0, {}, 10.0), (0, {"identity": 4}, 4.0),
                                                          (0.2, {"identity": 4}, 4.0),
                                                          (0.2, {"identity": 0.5, "learning_rate": 0.1}, 0.5)])
def test_b_is_fixed_where_it_is_given_or_nothing_is_held_out(corpus, dev, options, identity):
    model = train(corpus, Settings(**SSI, **options), dev=dev)
    assert model.training["identity"] == identity and "identities" not in model.training
    rates = model.training.get("learning_rates", {})
    assert len(rates) >= 3 if dev and "learning_rate" not in options else not rates
    best = float(max(rates, key=rates.__getitem__)) if rates else 0.03
    assert model.training["learning_rate"] == options.get("learning_rate", best)
    np.testing.assert_array_equal(model.params[0].scale, np.full(len(model.vocabulary), identity))
    assert model.training["fit"]["steps"] == 3 and model.strongest == linked.STRONGEST


def test_a_rate_at_which_nothing_is_learned_is_not_taken(corpus, monkeypatch):
    messages = []
    monkeypatch.setattr(linked, "LEARNING_RATES", (300.0, 0.01))
    monkeypatch.setattr(linked, "BEYOND", {"learning_rate": ()})
    facts = train(corpus, Settings(**SSI, identity=10), dev=0.2, say=messages.append).training
    first = facts["history"]["validation"][0]
    assert facts["learning_rate"] == 0.01 and facts["learning_rates"]["300"] == pytest.approx(first, abs=1e-4)
    assert facts["learning_rates"]["0.01"] > first
    assert any(line.startswith("learning rate = 0.01, of 0.01 (") for line in messages)


def test_where_no_rate_is_better_than_the_start_that_which_hurts_least_is_taken(monkeypatch):
    """With the same start, which would otherwise be all that tells them apart."""
    history = {0.03: [0.5, 0.2, 0.3], 0.01: [0.5, 0.1, 0.4], 0.003: [0.5, 0.3, 0.35]}
    entries = {rate: [{"validation": score} for score in scores] for rate, scores in history.items()}
    best = {rate: linked._best(closed_form(None)._replace(history=some), 2) for rate, some in entries.items()}
    assert best == {0.03: (0.5, 0.3), 0.01: (0.5, 0.4), 0.003: (0.5, 0.35)}


def test_beyond_the_edge_of_a_grid_values_are_tried_as_long_as_they_are_better(corpus, monkeypatch):
    """The made score of a fit has its optimum at b = .3 and a rate of .1."""
    seen = []

    def fit(*sides, identity, learning_rate, **options):
        score = -abs(np.log10(identity / 0.3)) - abs(np.log10(learning_rate / 0.1))
        seen.append((identity, learning_rate))
        return real(*sides, identity=identity, learning_rate=learning_rate, **options | {"validate": lambda _: score})

    real = ssi.fit
    monkeypatch.setattr(ssi, "fit", fit)
    some = corpus.take(range(60))
    facts = train(some, Settings(**SSI | {"max_iter": 1}), dev=0.2).training
    assert (facts["identity"], facts["learning_rate"]) == (0.3, 0.1)
    assert list(facts["identities"]) == ["0.1", "0.3", "1", "3", "10", "30"]
    assert list(facts["learning_rates"]) == ["0.003", "0.01", "0.03", "0.1", "0.3"]
    # Nine of the grid, three and two beyond it, the random start, and the training itself.
    assert len(seen) == 16 and len(set(seen)) == 14
    given = train(some, Settings(**SSI | {"max_iter": 1}, identity=3, learning_rate=0.03), dev=0.2).training
    assert (given["identity"], given["learning_rate"]) == (3, 0.03)


@pytest.mark.parametrize("method", METHODS)
def test_the_start_is_opca_beside_the_words(corpus, method, monkeypatch):
    """With inner products of 1 on average, and the better of it and random numbers is taken."""
    seen, real = [], ssi.fit
    monkeypatch.setattr(ssi, "fit", lambda *sides, **options: seen.append(options["init"]) or real(*sides, **options))
    facts = train(corpus, Settings(**SSI | {"method": method}, identity=3, learning_rate=0.01), dev=0.2).training
    assert len(seen) == 3 and seen[1] is None and len(seen[0]) == (1 if method == "ssi-sym" else 2)
    assert set(facts["starts"]) == {"opca", "random"}
    assert facts["start"] == max(facts["starts"], key=facts["starts"].__getitem__) == "opca"
    # Beside the words it is better than they are, before anything is learned.
    assert facts["history"]["validation"][0] > facts["dev"]["untrained_mrr"] + 0.005
    plain = train(corpus, Settings(method="opca", dim=8, subwords=0), dev=0.2).params.weights
    ratio = np.asarray(seen[0][0]) / np.asarray(plain)
    assert np.nanstd(ratio) < 1e-3 * np.nanmean(ratio)


def test_pairs_that_opca_cannot_learn_from_have_a_random_start(corpus, monkeypatch):
    messages = []

    def fail(*_, **__):
        raise FloatingPointError("params: expected finite parameters")

    monkeypatch.setattr(linked.s2net.opca, "fit", fail)
    facts = train(corpus, Settings(**SSI, identity=10), dev=0.2, say=messages.append).training
    assert facts["start"] == "random" and "starts" not in facts
    assert "OPCA cannot be fitted to these pairs: random numbers are the start" in messages


def test_a_kept_start_of_other_pairs_is_refused(corpus, tmp_path, monkeypatch):
    """Stopped before the first epoch: only the start is there, and it is not that of these pairs or dimensions."""
    some, fit = corpus.take(range(60)), ssi.fit
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(ssi, "fit", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        train(some, Settings(**SSI), dev=0.2, checkpoint=tmp_path / "c")
    assert ssi.fit is fit
    for pairs_given, changes in ((corpus.take(range(70)), {}), (some, {"dim": 5}), (some, {"seed": 1})):
        with pytest.raises(ValueError, match="checkpoint: expected a checkpoint of the same data, start and settings"):
            train(pairs_given, Settings(**SSI | changes), dev=0.2, checkpoint=tmp_path / "c")


def test_one_seed_gives_one_model_and_another_another(corpus):
    some = corpus.take(range(60))
    first, again, other = (train(some, Settings(**SSI, seed=seed), dev=0) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.params[0].weights, again.params[0].weights)
    assert not np.array_equal(first.params[0].weights, other.params[0].weights)


@pytest.mark.programs
@pytest.mark.parametrize(("method", "patience", "last"), [("ssi", 1, 1), ("ssi", None, 3), ("ssi", 1, 7),
                                                          ("ssi", None, 22), ("ssi-sym", None, 3)])  # fmt: skip
def test_a_stopped_training_goes_on_bit_for_bit(corpus, tmp_path, monkeypatch, method, patience, last):
    """Stopped after OPCA, in the first trial or another, or after them; and the same as without a checkpoint."""
    some = corpus.take(range(120))
    settings = Settings(**SSI | {"method": method, "max_iter": 5}, patience=patience)
    whole = train(some, settings, dev=0.2)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        interrupting(patch, last)
        train(some, settings, dev=0.2, checkpoint=tmp_path / "c")
    again = train(some, settings, dev=0.2, checkpoint=tmp_path / "c")
    for one, other in zip(jax.tree.leaves(again.params), jax.tree.leaves(whole.params), strict=True):
        np.testing.assert_array_equal(one, other)
    for name in ("identities", "dev"):
        assert again.training[name] == whole.training[name]
    assert again.training["history"]["validation"] == whole.training["history"]["validation"]
    with pytest.raises(ValueError, match="checkpoint: expected one of a training with these held-out pairs"):
        train(corpus.take(range(200)), settings, dev=0.2, checkpoint=tmp_path / "c")


@pytest.mark.parametrize(("left", "right", "message"), [
    (["one pair"], ["its mate"], "pairs: expected at least two training pairs that differ, got 1"),
    (["the same"] * 30, ["its mate"] * 30, "pairs: expected at least two training pairs that differ, got 1"),
    ([f"question{i}" for i in range(30)], ["yes"] * 30, "pairs: expected right texts that differ .*, got all alike"),
    (["why"] * 30, [f"answer{i}" for i in range(30)], "pairs: expected a left text to which some right text does not"),
    ([""] * 30, [f"answer{i}" for i in range(30)], "pairs: expected a pair with known words on both sides, got none"),
    ([""] * 30, ["!"] * 30, "pairs: expected texts with words, got an empty vocabulary"),
])
def test_pairs_without_links_or_negatives_are_refused(left, right, message):
    with pytest.raises(ValueError, match=message):
        train(made(left, right), Settings(**SSI), dev=0)


@pytest.mark.parametrize(("options", "message"), [
    ({"identity": -1.0}, "identity: expected None, or a finite number of at least 0, got -1.0"),
    ({"identity": float("nan")}, "identity: expected None, or a finite number of at least 0, got nan"),
    ({"identity": 1e39}, r"identity: expected a number from 0 to 1e\+06, got 1e\+39"),
    ({"learning_rate": 0.0}, "learning_rate: expected a positive number, at most 1000, got 0.0"),
    ({"learning_rate": 1e30}, "learning_rate: expected a positive number, at most 1000, got 1e"),
])
def test_bad_settings_are_refused(corpus, options, message):
    with pytest.raises(ValueError, match=message):
        train(corpus, Settings(**SSI, **options), dev=0)


def test_too_many_near_duplicates_are_refused(monkeypatch):
    monkeypatch.setattr(linked, "_MOST_KNOWN", 8)
    rows = list(range(6))
    groups = np.stack([np.zeros(6, int), np.arange(6)], axis=1)
    with pytest.raises(ValueError, match="pairs: expected at most 8 near-duplicates .*--all-negatives.*got 36"):
        linked.links_of(side(rows), side(rows), groups)
    assert len(linked.links_of(side(rows), side(rows)).links) == 6


def test_unicode_and_empty_texts_train():
    left = [f"été 日本{i} \udc80" if i % 9 else "" for i in range(40)]
    right = [f"ÉTÉ größe{i} 日本{i}" if i % 7 else "—" for i in range(40)]
    model = train(made(left, right), Settings(**SSI), dev=0.2)
    assert np.isfinite(model.similarity(left, right)).all() and model.training["pairs"]["dev"] > 2


def test_two_pairs_are_enough():
    messages = []
    model = train(made(["red cat", "blue dog"], ["rot katze", "blau hund"]), Settings(**SSI), say=messages.append)
    assert model.dim == 1 and any("support no more" in line for line in messages)
    assert np.isfinite(model.similarity("red cat", ["rot katze", "blau hund"])).all()
