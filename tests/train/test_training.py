"""From pairs of texts to a model: every method, the split, and what is written down."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import replace

import jax
import numpy as np
import pytest

from jaxsim import text
from jaxsim.data import docstrings, pairs
from jaxsim.evaluate import mates
from jaxsim.methods.projections.agreement import agreement
from jaxsim.model import bm25
from jaxsim.optim import Fit, closed_form
from jaxsim.train import s2net, settings, train, training
from jaxsim.train.problem import Learned
from jaxsim.train.settings import BARE, GRADED, METHODS, S2NET, SSI, TOPICS

# Few words, since eigenvalues of thousands of them would take most of the time.
Settings = functools.partial(settings.Settings, max_terms=400)


@pytest.fixture(scope="module")
def corpus():
    return docstrings.load().take(range(400))


# One size of documents and of projections, so that a program compiled for one test serves the others.
BATCHES, EXACT = (Settings(dim=20, batch_size=size, max_iter=3) for size in (64, 0))


@pytest.mark.parametrize("method", [method for method in METHODS if method not in GRADED])
def test_every_method_makes_a_model_that_finds_mates(corpus, method):
    chosen = {"identity": 3.0, "learning_rate": 0.03} if method in SSI else {}  # which SSI would try several of
    model = train(corpus, Settings(method=method, dim=20, max_iter=40 if method in TOPICS else 5, **chosen), dev=0.2)
    facts = model.training
    assert facts["pairs"]["train"] + facts["pairs"]["dev"] <= 400 and facts["pairs"]["dev"] > 40
    assert facts["dev"]["mrr"] > 3 / facts["pairs"]["dev"] and facts["data"]["sha256"] == corpus.sha256
    assert model.dim == (len(model.vocabulary) if method in BARE else 20)
    assert (facts.get("fit") is not None) == (method in (*S2NET, *SSI, *TOPICS))


def test_bm25_of_held_out_pairs_is_that_of_the_search(corpus):
    facts = train(corpus, Settings(method="lsa", dim=20), dev=0.2).training
    texts = mates.read(corpus)
    dev = training.split(texts, 0.2, Settings(), training.Grades(None, None), lambda message: None).dev
    words = bm25.weigh(dev.right)
    scores = (words.counts(dev.left) @ words.weights.T).toarray()
    ranks = [(way >= np.diag(scores)[:, None]).sum(axis=1) for way in (scores, scores.T)]
    assert facts["dev"]["bm25_mrr"] == pytest.approx(np.mean(1 / np.array(ranks)), abs=1e-4)
    assert facts["dev"]["bm25_mrr"] > 0.3 and facts["dev"]["bm25_accuracy"] < facts["dev"]["bm25_mrr"]


def test_held_out_texts_without_words_have_no_bm25():
    held = pairs.make("held", "ab", ["cat1", "the cat2"], ["!", "?"], languages=("en", "en"))
    some = pairs.make("some", map(str, range(30)), [f"cat{i} the" for i in range(30)],
                      [f"cat{i} and of" for i in range(30)], languages=("en", "en"))  # fmt: skip
    facts = train(some, Settings(method="log-tfidf"), dev=held).training["dev"]
    assert facts["bm25_mrr"] == 0.5 and facts["bm25_accuracy"] == 0  # all tie


def test_s2net_in_batches_and_exact_both_gain_over_their_start(corpus):
    start = train(corpus, Settings(method="opca", dim=20), dev=0.2).training["dev"]["mrr"]
    for given in (EXACT, BATCHES):
        facts = train(corpus, dataclasses.replace(given, max_iter=10), dev=0.2).training
        assert facts["dev"]["mrr"] >= start, given
        history = facts["history"]
        assert history["step"] == list(range(facts["fit"]["steps"] + 1)) and history["loss"][-1] > 0
        assert max(history["validation"]) == pytest.approx(facts["dev"]["mrr"], abs=1e-4)


def test_random_numbers_are_a_start_too(corpus):
    given = dataclasses.replace(EXACT, start="random", max_iter=30)
    first, again, other = (train(corpus, replace(given, seed=seed), dev=0.2) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.params.weights, again.params.weights)
    assert not np.array_equal(first.params.weights, other.params.weights)
    history = first.training["history"]["validation"]
    assert history[0] < 0.6 * max(history) and first.training["settings"]["start"] == "random"
    with pytest.raises(ValueError, match="start: expected one of opca, random, got cca"):
        train(corpus, replace(given, start="cca"))


@pytest.mark.parametrize(("start", "most"), [("opca", 100), ("random", 300)])
def test_random_numbers_have_more_iterations(corpus, monkeypatch, start, most):
    seen = []
    monkeypatch.setattr(s2net.s2net, "fit", lambda *_, init, max_iter, **__: seen.append(max_iter) or closed_form(init))
    train(corpus.take(range(60)), replace(EXACT, start=start, max_iter=None), dev=0.4)
    assert seen == [most]


@pytest.mark.programs
def test_two_matrices_start_as_copies_of_opca_and_then_part(corpus):
    start = train(corpus, Settings(method="opca", dim=20), dev=0.2)
    for size in (0, 64):
        result = train(corpus, Settings(method="s2net-2", dim=20, batch_size=size, max_iter=3), dev=0,
                       cross_fit=False)
        left, right = (np.asarray(side.weights) for side in result.params)
        assert result.two_sided and result.method == "s2net-2" and not np.allclose(left, right)
    alike = train(corpus, Settings(method="s2net-2", dim=20, batch_size=0, max_iter=0), dev=0.2)
    for side in alike.params:
        np.testing.assert_array_equal(side.weights, start.params.weights)


def test_one_seed_gives_one_model_bit_for_bit(corpus):
    models = [train(corpus, BATCHES, dev=0.2).params.weights for _ in range(2)]
    np.testing.assert_array_equal(*models)


def test_a_stopped_training_keeps_its_start_and_goes_on_bit_for_bit(corpus, tmp_path, monkeypatch):
    whole = train(corpus, EXACT, dev=0.2, checkpoint=tmp_path / "checkpoint")
    monkeypatch.setattr(s2net.opca, "fit", None)  # would be called without the start that was kept
    again = train(corpus, EXACT, dev=0.2, checkpoint=tmp_path / "checkpoint")
    np.testing.assert_array_equal(again.params.weights, whole.params.weights)
    with pytest.raises(ValueError, match="checkpoint"):
        train(corpus.take(range(60)), EXACT, dev=0.2, checkpoint=tmp_path / "checkpoint")


@pytest.mark.parametrize("subwords", [0.0, 0.2])
@pytest.mark.parametrize("activation", ["none", "tanh", "sigmoid"])
def test_a_model_finds_mates_as_well_as_its_training_said(corpus, activation, subwords, monkeypatch):
    """The lengths of the texts matter where a function comes after the projection."""
    scores, validator = [], mates.validator

    def noted(*args, **given):
        score = validator(*args, **given)
        return lambda params: scores.append(score(params)) or scores[-1]

    monkeypatch.setattr(mates, "validator", noted)
    rows, dev = corpus.take(range(100)), corpus.take(range(300, 400))
    model = train(rows, Settings(dim=10, max_iter=4, activation=activation, subwords=subwords), dev=dev)
    left, right = model.vectors(dev.left, side="query"), model.vectors(dev.right)
    assert mates.scores(left, right)["mrr"] == pytest.approx(max(scores), abs=1e-6)


def test_dev_pairs_of_ones_own_and_none(corpus):
    rows = corpus.take(range(60)), corpus.take(range(300, 400))
    assert train(rows[0], Settings(method="opca", dim=5), dev=rows[1]).training["pairs"]["dev"] == 100
    facts = train(rows[0], Settings(method="opca", dim=5), dev=0).training
    assert facts["pairs"]["dev"] == 0 and facts["dev"] == {}


@pytest.mark.parametrize("method", ["s2net", "s2net-2", "opca", "cca", "lsa", "cl-lsi"])
def test_very_few_pairs(method):
    few = pairs.make("few", "abc", ["red cat", "blue dog", "green"], ["rot cat", "blau dog", "grün"],
                     languages=("en", "de"))
    messages = []
    model = train(few, Settings(method=method, max_iter=2), say=messages.append)
    assert model.dim <= (6 if method == "lsa" else 2) and any("support no more" in line for line in messages)
    assert np.isfinite(model.encode_query(["red cat dog"])).all()
    assert model.training["dev"] == {}


@pytest.mark.parametrize(("right", "dim"), [("abcdefgh", 7), ("aaaaaaaa", 5), ("ijklmnop", 8)])
def test_lsa_has_as_many_dimensions_as_different_texts_bear(right, dim):
    """Both sides are documents to it, so that a few pairs bear more dimensions than there are pairs."""
    sides = [f"a{word} b{word}" for word in "ijkl"], [f"a{word} c{word}" for word in right[:4]]
    sides[0][3] = sides[1][0] if dim == 7 else sides[0][3]
    few = pairs.make("few", "1234", *sides, languages=("en", "en"))
    messages = []
    model = train(few, Settings(method="lsa", dim=50, subwords=0), dev=0, say=messages.append)
    assert model.dim == dim and any(line.startswith(f"dimension {dim}: {dim} different texts and") for line in messages)
    texts = np.concatenate([model.term_vectors(side).toarray() for side in sides])
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)
    singular = np.linalg.svd(texts, compute_uv=False)[:dim]
    np.testing.assert_allclose(np.linalg.norm(texts @ model.params.weights, axis=0), singular, rtol=1e-6)


def spied_groups(monkeypatch) -> list:
    """The groups that fits are given; the fits themselves are not made."""
    seen = []

    def spy(*sides, init, groups=None, validate=None, **options):
        assert validate is None  # no pairs are held out: nothing stops it before its time
        seen.append(groups)
        return closed_form(init)

    monkeypatch.setattr(s2net.s2net, "fit", spy)
    return seen


def test_near_duplicates_are_no_negatives_unless_asked_for(monkeypatch):
    twins = pairs.make("twins", [str(i) for i in range(40)], [f"word{i // 2} same text of twins" for i in range(40)],
                       [f"wort{i // 2} gleich text der zwillinge" for i in range(40)], languages=("en", "en"))
    seen = spied_groups(monkeypatch)
    for all_negatives in (False, True):
        train(twins, Settings(dim=5, max_iter=1, all_negatives=all_negatives), dev=0)
    assert [np.unique(column).size for column in seen[0].T] == [20, 20] and seen[1] is None


def test_pairs_that_share_a_text_with_a_third_stay_negatives_of_each_other(monkeypatch):
    """Questions that share some answers would be one large group without negatives."""
    rows = range(40)
    chain = pairs.make("chain", [str(i) for i in rows], [f"question{i // 2} about thing{i // 2}" for i in rows],
                       [f"answer{(i + 1) // 2} of matter{(i + 1) // 2}" for i in rows], languages=("en", "en"))
    seen = spied_groups(monkeypatch)
    train(chain, Settings(dim=5, max_iter=1), dev=0)
    apart = (seen[0][:, None] != seen[0][None]).all(axis=2)
    assert apart.sum(axis=1).tolist() == [38, *[37] * 38, 38]


@pytest.mark.parametrize(("given", "options", "message"), [
    (Settings(method="magic"), {}, "method: expected one of s2net, s2net-2, opca.* got magic"),
    (Settings(dim=0), {}, "dim: expected a whole number of at least 1, got 0"),
    (Settings(), {"dev": 1.0}, r"dev: expected pairs, or a share in \[0, 1\), got 1.0"),
    (Settings(activation="relu"), {}, "activation: expected one of none, tanh, sigmoid, got relu"),
    (Settings(weighting="bm25"), {}, "weighting: expected one of"),
    (Settings(seed=2**63), {}, "seed: expected a whole number of 64 bits, got 9223372036854775808"),
    (Settings(shard_terms=True, devices=1), {}, "shard_terms: expected several devices to share the terms, got 1"),
    (Settings(shard_terms=True, batch_size=64), {}, "shard_terms: expected all negatives .batch_size 0., got batches"),
    (Settings(devices=4), {"documents": ["a text"]}, "devices: expected 1, with documents, got 4"),
    (Settings(shard_terms=True), {"documents": ["a text"]}, "shard_terms: expected False, with documents, got True"),
    (Settings(beta=0.1, batch_size=64), {}, "beta: expected 0, with batches, got 0.1"),
    (Settings(beta=0.1), {"most": 10}, "beta: expected 0, with batches, got 0.1"),  # by the number of pairs
    (Settings(), {"most": 10, "documents": ["a text"]}, "documents: expected none, with batches"),
    (Settings(blend=True, activation="tanh"), {}, "blend: expected False, with an activation, got True"),
    (Settings(blend=True, shard_terms=True), {}, "blend: expected False, with shard_terms, got True"),
    (Settings(blend=True), {"dev": 0}, "blend: expected held-out pairs or judged queries to choose by, got none"),
    (Settings(blend=True), {"rows": 15}, "blend: expected held-out pairs or judged queries to choose by, got none"),
])
def test_bad_settings_are_refused_before_anything_is_trained(corpus, given, options, message, monkeypatch):
    monkeypatch.setattr(s2net, "start", lambda *_, **__: pytest.fail("the start was made"))
    monkeypatch.setattr(s2net, "_EXACT_PAIRS", options.pop("most", s2net._EXACT_PAIRS))
    corpus = corpus.take(range(options.pop("rows", 60)))
    with pytest.raises(ValueError, match=message):
        train(corpus, given, **options)


def test_no_pairs_and_no_words_are_refused(corpus):
    with pytest.raises(ValueError, match="pairs: expected at least one pair, got none"):
        train(corpus.take([]))
    blank = pairs.make("blank", ["a", "b"], ["", "!"], ["?", ""], languages=("en", "en"))
    with pytest.raises(ValueError, match="pairs: expected texts with words, got an empty vocabulary"):
        train(blank)
    half = pairs.make("half", "abc", ["", "?", ""], ["red cat", "blue dog", "green"], languages=("en", "en"))
    message = "pairs: expected a pair with known words on both sides, got none"
    for method in METHODS:
        if method == "lsa" or method in BARE:
            assert train(half, Settings(method=method)).similarity("red cat", "cat") > 0.1
        elif method not in GRADED:
            with pytest.raises(ValueError, match=message):
                train(half, Settings(method=method))


def test_of_few_pairs_the_frequency_that_was_asked_of_words_is_told_as_it_was(corpus):
    asked = Settings(method="log-tfidf", min_df=3)
    facts = [train(corpus.take(range(rows)), asked, dev=0).training for rows in (60, 160)]
    assert [one["settings"]["min_df"] for one in facts] == [1, 3]


def test_unpaired_texts_add_words_and_lsa_learns_from_them(corpus):
    some, more = corpus.take(range(60)), ["quux zork", "zork quux again", "numpy zork", ""]
    given = Settings(method="lsa", dim=5, max_terms=2000)
    plain = train(some, given)
    model = train(some, given, unpaired=more)
    assert {"zork", "quux"} <= set(model.vocabulary.terms) and "zork" not in plain.vocabulary.terms
    assert model.vocabulary.num_docs == plain.vocabulary.num_docs + 4 and model.training["unpaired"] == 4
    assert float(model.similarity("zork", "quux")) > 0.9  # only these texts say so
    assert train(some, replace(given, method="opca", dim=5), unpaired=more).training["unpaired"] == 4
    two = dataclasses.replace(some, languages=("en", "es"))
    with pytest.raises(ValueError, match="unpaired: expected none, for pairs of two languages, got 4 texts"):
        train(two, given, unpaired=more)


def test_links_that_hang_together_are_held_out_by_their_left_texts():
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(400)]
    texts = [" ".join(rng.choice(words, 12, replace=False)) for _ in range(130)]
    links = [(i, 120 + j) for i in range(120) for j in range(10) if rng.random() < 0.4]  # ten hubs tie all together
    given = pairs.make("links", [str(i) for i in range(len(links))], [texts[a] for a, _ in links],
                       [texts[b] for _, b in links], languages=("en", "en"))  # fmt: skip
    read, messages = mates.read(given), []
    assert len(np.unique(read.groups)) < 5
    held = training.split(read, 0.1, Settings(), training.Grades(None, None), messages.append)
    assert 0.05 <= len(held.dev) / len(links) <= 0.2 and "held out by their left texts alone" in messages[-1]
    assert not set(held.dev.left) & {given.left[row] for row in held.rows}


@pytest.mark.parametrize(
    ("left", "message"),
    [
        (["a b", "c d", "e f"], "no pairs held out: there are fewer than 20"),
        ([f"one and the same long text about gardens number {i}" for i in range(30)] + ["something else"],
         "no pairs held out: a share of 0.1, near-duplicates kept together, leaves none to train on or"),
        (["same words"] * 5 + ["others here"] * 2, "left out 5 pairs, equal to an earlier one"),
        (["!", "?", "…", "a b", "a b"], "left out 3 pairs, equal to an earlier one (2 of these have no words)"),
    ],
)
def test_what_is_not_held_out_or_left_out_is_said(left, message):
    messages = []
    given = pairs.make("toy", [str(i) for i in range(len(left))], left, left, languages=("en", "en"))
    facts = train(given, Settings(method="log-tfidf"), say=messages.append).training
    assert any(line.startswith(message) for line in messages), messages
    assert facts["pairs"]["dev"] == 0 and facts["dev"] == {}
    assert facts["pairs"]["train"] == len({tuple(text.words(one)) for one in left})


def test_rare_words_are_named_where_none_is_left():
    texts = [f"once{i}" for i in range(120)]
    given = pairs.make("rare", texts, texts, [f"other{i}" for i in range(120)], languages=("en", "en"))
    with pytest.raises(ValueError, match=r"pairs, min_df: expected texts with words in 3 texts or more, got an empty"):
        train(given, Settings(method="opca", min_df=3), dev=0)


def test_dev_pairs_that_are_trained_on_are_counted(corpus):
    messages = []
    same = corpus.take([0, 1, 2])
    exchanged = pairs.make("dev", "123", [*same.right[:2], same.left[2].upper()], [*same.left[:2], same.right[2]],
                           languages=corpus.languages)
    for dev in (same, exchanged):
        messages.clear()
        train(corpus, Settings(method="log-tfidf"), dev=dev, say=messages.append)
        assert any(line.startswith("3 of the 3 dev pairs are training pairs too") for line in messages), messages


def test_equal_dev_pairs_count_once(corpus):
    messages = []
    twice = corpus.take([*range(30), *range(30)])
    held = training.split(mates.read(corpus), [twice, corpus.take([40, 41])], Settings(),
                          training.Grades(None, None), messages.append)  # fmt: skip
    assert [size for _, size in held.sets] == [30, 2] and held.sizes == (30, 2)
    assert any(line.endswith("left out 30 pairs, equal to an earlier one") for line in messages)


@pytest.mark.parametrize(("linked", "said"), [(12, True), (1, False), (0, False)])
def test_texts_that_are_on_both_sides_are_counted(corpus, linked, said):
    """Articles that link to each other: every one is nearest to itself. A few change little."""
    some, messages = corpus.take(range(60)), []
    right = [*some.left[1 : linked + 1], *some.right[linked:]]
    links = pairs.make("links", some.ids, some.left, right, languages=("en", "en"))
    assert mates.own_rivals(links) == linked + (linked > 0)
    training.split(mates.read(corpus), [links], Settings(), training.Grades(None, None), messages.append)
    told = f"{linked + 1} pairs with a text that another pair has on the other side"
    assert any(told in line for line in messages) == said, messages


def test_one_dev_pair_is_refused(corpus):
    with pytest.raises(ValueError, match="dev: expected at least two pairs .*, got 1"):
        train(corpus, Settings(method="opca", dim=5), dev=corpus.take([0]))


def test_a_blend_is_the_mean_of_start_and_end_that_held_out_pairs_like_best(corpus):
    messages = []
    given = {"dim": 20, "max_iter": 10, "batch_size": 0}
    ends = train(corpus, Settings(**given), dev=0.2)
    result = train(corpus, Settings(**given, blend=True), dev=0.2, say=messages.append)
    facts = result.training["blend"]
    assert set(facts["mrr"]) == {"1", "0.25", "0.5", "0.75"}
    assert facts["mrr"]["1"] == ends.training["dev"]["mrr"]
    assert max(facts["mrr"].values()) == facts["mrr"][f"{facts['end']:g}"] == result.training["dev"]["mrr"]
    start = train(corpus, Settings(method="opca", dim=20), dev=0.2)
    a, b = (np.asarray(model.params.weights) for model in (start, ends))
    wanted = (1 - facts["end"]) * a / np.linalg.norm(a) + facts["end"] * b / np.linalg.norm(b)
    got = np.asarray(result.params.weights)
    np.testing.assert_allclose(got / np.linalg.norm(got), wanted / np.linalg.norm(wanted), atol=1e-5)
    with pytest.raises(ValueError, match="blend: expected held-out pairs or judged queries to choose by, got none"):
        train(corpus, Settings(**given, blend=True), dev=0)


@pytest.mark.programs
def test_beta_keeps_a_model_near_its_start(corpus):
    start = train(corpus, Settings(method="opca", dim=20), dev=0)
    far = []
    for beta in (0.0, 100.0):
        model = train(corpus, Settings(dim=20, max_iter=10, batch_size=0, beta=beta), dev=0, cross_fit=False)
        far.append(np.linalg.norm(np.asarray(model.params.weights) - np.asarray(start.params.weights)))
    assert far[1] < 0.1 * far[0]


@pytest.mark.parametrize(("method", "subwords"), [("opca", 0.0), ("lsa", 0.5), ("cl-lsi", 0.0),
                                                  pytest.param("cca", 0.0, marks=pytest.mark.programs)])  # fmt: skip
def test_without_held_out_pairs_more_fits_weigh_the_dimensions_of_closed_forms(corpus, method, subwords):
    messages, some = [], corpus.take(range(140))
    settings = Settings(method=method, dim=12, subwords=subwords, max_terms=400)
    model = train(some, settings, dev=0, say=messages.append)
    assert model.training["cross_fitted"] == 3 and model.agreement.shape == (model.dim,)
    assert any(line.startswith("weighing the dimensions for search by 3 more fits") for line in messages)
    held = train(some, settings, dev=0.3).agreement  # of pairs that took no part, without another fit
    own = agreement(model.encode_query(some.left), model.encode_document(some.right))
    assert np.abs(model.agreement - held).mean() < 0.1 < (own - held).mean() + (method in ("lsa", "cl-lsi"))
    plain = train(some, settings, dev=0, cross_fit=False)
    assert plain.agreement is None and "cross_fitted" not in plain.training
    for mine, other in zip(jax.tree.leaves(model.params), jax.tree.leaves(plain.params), strict=True):
        np.testing.assert_array_equal(mine, other)


def test_near_duplicates_are_left_out_of_a_fit_together(corpus, monkeypatch):
    """Fits of fewer pairs may have fewer dimensions: the others have the weight of the last."""
    seen = []
    real = training.cross_fitted
    monkeypatch.setattr(training, "cross_fitted", lambda fit, folds: seen.append(folds) or real(fit, folds))
    some = corpus.take(range(90))
    twins = pairs.make("twins", map(str, range(180)), [*some.left] * 2, [f"{text} more" for text in some.right] + [
        *some.right], languages=("en", "en"))  # fmt: skip
    model = train(twins, Settings(method="lsa", dim=250), dev=0)
    (folds,) = seen
    np.testing.assert_array_equal(folds[:90], folds[90:])
    assert set(folds) == {0, 1, 2} and min(np.bincount(folds)) >= 20
    assert model.agreement.shape == (model.dim,) and len(set(model.agreement[-20:].tolist())) == 1


@pytest.mark.programs
def test_more_fits_weigh_the_dimensions_of_s2net(corpus, tmp_path, monkeypatch):
    """They take as many iterations as the model, and an interrupted one goes on to the same weights."""
    settings = Settings(method="s2net", dim=6, max_terms=300, max_iter=2, activation="tanh")
    taken, fit = [], training.FITS["s2net"]

    def watched(problem):
        taken.append(problem)
        if len(taken) == stop:
            raise KeyboardInterrupt
        return fit(problem)

    monkeypatch.setitem(training.FITS, "s2net", watched)
    stop, some = 0, corpus.take(range(100))
    whole = train(some, settings, dev=0)
    sizes = [one.train[0].num_docs for one in taken]
    assert sizes[0] == 100 and sum(100 - size for size in sizes[1:]) == 100 and len(sizes) == 4
    assert [one.settings.max_iter for one in taken] == [2] * 4
    assert whole.training["cross_fitted"] == 3 and (whole.agreement > 0).all()

    stop = len(taken) + 3
    with pytest.raises(KeyboardInterrupt):
        train(some, settings, dev=0, checkpoint=tmp_path)
    stop = 0
    again = train(some, settings, dev=0, checkpoint=tmp_path)
    np.testing.assert_array_equal(again.agreement, whole.agreement)


@pytest.mark.parametrize(("method", "rows", "options", "reason"), [
    ("opca", 50, {}, "too few are trained on for 3 more fits (50 pairs with known words)"),
    ("opca", 62, {}, "the least of 3 parts of the training pairs, near-duplicates kept together, has "),
    ("opca", 100, {"cross_fit": False}, "three more fits, which would weigh them, are left out"),
    ("s2net-mse", 100, {"grades": np.arange(100) % 3}, "this training of s2net-mse is not repeated without parts"),
])  # fmt: skip
def test_why_dimensions_are_not_weighed_is_said(corpus, method, rows, options, reason):
    messages = []
    settings = Settings(method=method, dim=5, max_terms=300, max_iter=1)
    model = train(corpus.take(range(rows)), settings, dev=0, say=messages.append, **options)
    (told,) = (line for line in messages if line.startswith("search weights all dimensions equally: fewer than 20"))
    assert model.agreement is None and f", and {reason}" in told


def test_a_damaged_checkpoint_of_more_fits_is_refused_and_other_failures_are_told(corpus, monkeypatch):
    fit, messages = training.FITS["opca"], []
    for error in ("checkpoint: expected a whole checkpoint, got a damaged file", "views: expected other texts"):
        calls = []

        def failing(problem, error=error, calls=calls):
            calls.append(1)
            if len(calls) > 1:
                raise ValueError(error)
            return fit(problem)

        monkeypatch.setitem(training.FITS, "opca", failing)
        given = corpus.take(range(120)), Settings(method="opca", dim=5, max_terms=300)
        if error.startswith("checkpoint"):
            with pytest.raises(ValueError, match="damaged file"):
                train(*given, dev=0)
        else:
            assert train(*given, dev=0, say=messages.append).agreement is None
    assert any(line.endswith("a fit without a part of the pairs failed (views: expected other texts)")
               for line in messages)


def test_more_fits_of_s2net_stop_where_its_score_was_best():
    history = [{"step": step, "validation": score} for step, score in enumerate((0.3, 0.5, 0.4))]
    fit = Fit(None, 0.0, 0.0, False, 2, 3, history)
    assert training._again(Settings(), Learned(fit)).max_iter == 1
    assert training._again(Settings(), Learned(fit._replace(history=[{"step": 0}, {"step": 1}], steps=1))).max_iter == 1
    start = fit._replace(history=history[:1])
    assert training._again(Settings(), Learned(start)).method == "opca"
    assert training._again(Settings(start="random"), Learned(start)) is None
    assert training._again(Settings(blend=True), Learned(fit)) is None
