"""What the experiments on 004 share: folds, measures, searches, choices inside folds, claims; on data made here."""

from __future__ import annotations

import dataclasses
import doctest
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import metrics as sklearn_metrics

from experiments import kit
from experiments.corpora import folds, passages, snippets
from experiments.corpora.folds import Folds
from experiments.kit import notes, papers
from experiments.tweak import tweak2009_html, tweak2009_phrases, tweak2009_search
from jaxsim import losses, sparse, text
from jaxsim.data import labelled_pairs
from jaxsim.methods import tweak
from jaxsim.methods.weights import quadratic_forms, tweak_pairs
from jaxsim.methods.weights.term_weights import TermWeights
from jaxsim.text import features, html

pytestmark = pytest.mark.programs
SCRIPTS = (tweak2009_phrases, tweak2009_search, tweak2009_html)


def test_doctests_of_the_experiments():
    for module, least in ((folds, 6), (passages, 3), (tweak2009_html, 2)):
        result = doctest.testmod(module)
        assert result.failed == 0 and result.attempted >= least, module.__name__


def test_a_phrase_without_hits_has_an_empty_pseudo_document_and_cosine_0():
    collection = passages.index([["Green", "tea"], ["tea", "cup"], ["coffee", "cup"]], min_df=1)
    queries = [["tea"], ["zyx"], [], ["cup", "tea"]]
    result = passages.search(collection, queries, k=2)
    assert [one.tolist() for one in result] == [[0, 1], [], [], [1, 0]]
    documents = passages.pseudo_documents(collection, result)
    assert documents[:3] == [["Green", "tea", "tea", "cup"], [], []]
    counted = features.extract(documents, collection.vocabulary, names=features.TF_DF)
    weighted = folds.tf_idf(counted, collection.vocabulary)
    facts = folds.cosines(weighted, [0, 0, 1, 1], [3, 1, 2, 1])
    assert facts[0] > 0.5 and facts[1:].tolist() == [0, 0, 0]
    forms = quadratic_forms.plan(counted, counted, [0, 1], [3, 2])
    assert quadratic_forms.cosines(jnp.array([0.0, 1.0, 0.0]), forms)[1] == 0


def test_ties_of_a_search_go_to_the_lower_passage_and_common_words_find_nothing():
    collection = passages.index([["the", "cup"]] * 30 + [["tea", "the"]], min_df=1)
    result = passages.search(collection, [["cup"], ["the", "tea"], ["the"]], k=3)
    assert result[0].tolist() == [0, 1, 2]  # the only word: common, yet better than none
    assert result[1].tolist() == [30]
    assert len(result[2]) == 3
    with pytest.raises(ValueError, match="tokens: expected at least one passage"):
        passages.index([])
    with pytest.raises(ValueError, match="size: expected"):
        passages.cut(["a"], ["b"], size=0)


def test_folds_keep_groups_together_and_are_nearly_equal(rng):
    groups, sizes = np.repeat(np.arange(60), 2), rng.integers(1, 20, 120)
    fold = folds.deal(groups, sizes, num=5)
    assert np.array_equal(fold[::2], fold[1::2])
    total = np.bincount(fold, weights=sizes)
    assert total.max() - total.min() <= 40
    assert not np.array_equal(fold, folds.deal(groups, sizes, num=5, salt="other"))
    with pytest.raises(ValueError, match=r"num: expected between 2 and 3 \(groups of queries\), got 4"):
        folds.deal([0, 1, 2], [1, 1, 1], num=4)


def test_measures_agree_with_a_loop_and_with_scikit_learn(rng):
    scores, positive = rng.integers(0, 5, 200) / 4, rng.random(200) < 0.3
    query = rng.integers(0, 12, 200)
    positive[query == 3] = False
    result = folds.measure(scores, positive, query)
    assert result["auc"] == pytest.approx(sklearn_metrics.roc_auc_score(positive, scores))
    average, first = [], []
    for one in set(query[positive].tolist()):
        rows = sorted(np.flatnonzero(query == one).tolist(), key=lambda row: (-scores[row], row))
        hits = [positive[row] for row in rows]
        first.append(sum(hits[:3]) / 3)
        average.append(np.mean([sum(hits[: at + 1]) / (at + 1) for at, hit in enumerate(hits) if hit]))
    assert result["map"] == pytest.approx(np.mean(average)) and result["p@3"] == pytest.approx(np.mean(first))
    flat = folds.measure(np.zeros(4), [True, False, True, False], [0, 0, 1, 1])
    assert flat["auc"] == 0.5 and flat["map"] == 1 and flat["tpr@0.1"] == 0  # ties: a half, the first, together


def toy(rng, num=60):
    """Queries 0 … num-1 and pages; the rare term is what matters, the frequent one is noise."""
    topic = rng.integers(0, 8, 2 * num)
    counts = np.zeros((2 * num, 12))
    counts[np.arange(2 * num), topic] = 1
    counts[:, 8:] = rng.integers(0, 6, (2 * num, 4))
    documents = features.from_counts(sparse.from_scipy(sp.csr_matrix(counts.astype(np.float32))), (counts > 0).sum(0))
    left, right = np.repeat(np.arange(num), 8), num + rng.integers(0, num, 8 * num)
    left, right = np.unique(np.stack([left, right]), axis=1)
    return documents, left, right, topic[left] == topic[right], (counts > 0).sum(0)


def searched(rng, numbers=(2, 6), terms=20):
    """Phrases of two words, searched for in passages of words that go with them; the longer the list, the noisier."""
    words = [f"w{at}" for at in range(40)]
    tokens = [[words[at] for at in rng.choice(8, 5) + 8 * topic] + [words[at] for at in 32 + rng.choice(8, 3)]
              for topic in rng.integers(0, 4, 300)]
    index = passages.index(tokens, min_df=1)
    topic = rng.integers(0, 4, 120)
    phrases = [[words[at] for at in rng.choice(8, 2, replace=False) + 8 * one] for one in topic]
    found = passages.search(index, phrases, k=max(numbers))
    own = folds.tf_idf(features.extract(phrases, index.vocabulary, names=features.TF_DF), index.vocabulary)
    made = {num: snippets.extract(index, snippets.numbered(index), found, own, num=num, terms=terms) for num in numbers}
    left, right = np.repeat(np.arange(60), 8), 60 + rng.integers(0, 60, 8 * 60)
    left, right = np.unique(np.stack([left, right]), axis=1)
    grades = np.where(topic[left] == topic[right], 0.75, 0.25) + 0.25 * rng.integers(-1, 2, len(left))
    return index, phrases, found, own, made, left, right, grades


@pytest.fixture
def table(tmp_path, rng):
    """The table of phrases, of judged pairs of toy phrases in three folds."""
    _, _, _, own, made, left, right, grades = searched(rng)
    settings = tweak2009_phrases.Settings(folds=3, dev=0.2, preferences=300, gammas=(10.0,), alphas=(0.01, 1.0),
                                          max_iter=10, patience=5, snippets=(2, 6), terms=20)
    pairs = Folds(left, right, grades >= 0.75, left, np.arange(60) // 2, num=3, dev=0.2, kinds={"some": left < 30})
    content = tweak2009_phrases.Phrases(own, {num: weighted for num, (_, weighted) in made.items()},
                                        {num: documents for num, (documents, _) in made.items()}, grades, pairs)
    data = kit.Data(content, name="toy", sha256=None, differs="synthetic", counts={"pairs": len(left)})
    return kit.Table("toy", "toy", settings, "quick", data, tmp_path, kit.Fits(tmp_path / "cache", lambda line: None))


def test_no_query_group_stands_in_two_parts_of_a_fold(table):
    pairs = table.data.folds
    for number in range(3):
        parts = pairs.parts(number)
        assert sorted(np.concatenate(parts).tolist()) == list(range(len(pairs.left)))
        inside = [set((pairs.query[rows] // 2).tolist()) for rows in parts]
        assert not (inside[0] & inside[1] or inside[0] & inside[2] or inside[1] & inside[2])
        assert 0.15 < len(parts.dev) / (len(parts.fit) + len(parts.dev)) < 0.3


def test_a_fold_of_one_class_is_refused_by_name(table):
    pairs = table.data.folds
    pairs = dataclasses.replace(pairs, positive=pairs.positive & (pairs.fold != 1))
    with pytest.raises(ValueError, match="fold 1, test: expected positive and negative pairs, got negative ones alone"):
        pairs.parts(1)
    with pytest.raises(ValueError, match="fold 1, test: expected positive"):
        pairs.tested(np.zeros(len(pairs.left)), ("auc",))


def test_only_sampled_pairs_are_fitted_on_and_all_are_tested(table):
    pairs = dataclasses.replace(table.data.folds, sampled=np.arange(0, len(table.data.folds.left), 2))
    assert all(set(pairs.parts(number)[at]) <= set(pairs.drawn) for number in range(3) for at in (0, 1))
    assert sum(len(pairs.parts(number).test) for number in range(3)) == len(pairs.left)


def test_rank_loss_counts_ties_both_ways(table, rng):
    scores, positive = rng.integers(0, 4, 80) / 3, rng.random(80) < 0.4
    below = scores[positive][:, None] - scores[~positive]
    expected = (np.mean(below <= 0), np.mean(below < 0) + np.mean(below == 0) / 2)
    assert folds.rank_losses(scores, positive) == pytest.approx(expected)
    pairs = table.data.folds
    assert pairs.tested(rng.random(len(pairs.left)), ("auc",))["notes"] == []
    assert pairs.tested(np.zeros(len(pairs.left)), ("auc",))["notes"] == [
        "rank loss (1 - AUC): 1.0000 with ties as errors, 0.5000 with ties as half an error"]


def test_rows_are_learned_chosen_and_tested_fold_by_fold(table, monkeypatch):
    plain = tweak2009_phrases.bare(table)  # few phrases of a topic share a word
    calls, original = [], tweak_pairs.fit_preferences

    def spy(forms, better, worse, **settings):
        calls.append((set(better.tolist()), set(worse.tolist()), settings["alpha"]))
        return original(forms, better, worse, **settings)

    spy.__module__, spy.__qualname__ = __name__, "spy"
    monkeypatch.setattr(tweak_pairs, "fit_preferences", spy)
    learned = tweak2009_phrases.preferences(table)
    assert len(calls) == 3 * 3  # two starts, then the other alpha, in each fold
    pairs = table.data.folds
    for place, (better, worse, alpha) in enumerate(calls):
        allowed = pairs.parts(place // 3).fit
        assert better <= set(allowed[pairs.positive[allowed]]) and worse <= set(allowed[~pairs.positive[allowed]])
        assert alpha == (0.01 if place % 3 == 2 else 1.0) / 300
    assert np.mean(learned.metrics["auc"]) > np.mean(plain.metrics["auc"]) + 0.1
    assert len(learned.metrics["auc"]) == len(learned.dev["folds"]) == len(learned.seeds) == 3
    assert np.mean([fold["some"]["auc"] for fold in learned.by_group]) > 0.6
    assert all(fold["auc"] >= fold["auc_at_start"] for fold in learned.dev["folds"])
    assert all(fold["edges"] == ["snippets", "alpha"] for fold in learned.dev["folds"])
    table.fill("tweak-pref", lambda table: learned)
    assert "edge-of-grid (alpha) in 3 of 3 folds" in notes.codes(kit.records.read(table.path("tweak-pref")))


def test_labelled_pairs_are_fitted_on_as_many_in_every_fold(table, monkeypatch):
    calls, original = [], tweak_pairs.fit

    def spy(forms, rows, labels, **settings):
        calls.append((rows, labels, settings["loss"], settings["alpha"]))
        return original(forms, rows, labels, **settings)

    spy.__module__, spy.__qualname__ = __name__, "spy"
    monkeypatch.setattr(tweak_pairs, "fit", spy)
    tweak2009_phrases.log_loss(table)
    pairs = table.data.folds
    size = min(len(pairs.parts(number).fit) for number in range(3))
    for place, (rows, labels, loss, alpha) in enumerate(calls):
        assert len(rows) == size and set(rows) <= set(pairs.parts(place // 3).fit)
        assert np.array_equal(labels, pairs.positive[rows]) and loss is losses.log and alpha in (0.01 / size, 1 / size)


def test_one_start_is_tf_idf_and_the_other_has_no_negative_weights(rng):
    documents, *_, df = toy(rng)
    weighted = folds.tf_idf(documents, text.Vocabulary(tuple(map(str, range(12))), df, 120))
    weights = tweak2009_phrases.starts(documents, weighted)
    others = folds.starts(documents, weighted)
    slots = weighted.nnz
    assert list(weights) == list(others) == ["tf·idf", "idf + 2 log(tf + 1)"]
    assert all(np.array_equal(weights[name].weights, others[name].weights) for name in weights)
    assert (documents.columns @ weights["idf + 2 log(tf + 1)"].weights)[:slots].min() > 0
    assert np.corrcoef((documents.columns @ weights["tf·idf"].weights)[:slots], weighted.data)[0, 1] > 0.8
    tf, columns = np.asarray(documents.terms.values)[:slots], np.asarray(documents.columns, float)[:slots]
    nearest = np.linalg.lstsq(columns, weighted.data / tf + 2 * np.log1p(tf), rcond=None)[0]
    np.testing.assert_allclose(weights["idf + 2 log(tf + 1)"].weights, nearest, rtol=1e-3, atol=1e-3)


def test_with_a_column_of_tf_idf_the_start_is_tf_idf_exactly(table):
    pairs = table.data.folds
    for number in range(3):
        num = tweak2009_phrases.number_of_snippets(table, number)["snippets"]
        forms, weights = tweak2009_phrases.planned(table, number, tweak2009_phrases.MORE)
        assert list(weights) == ["tf·idf"]
        assert weights["tf·idf"].weights.tolist() == [float(name == "tfidf") for name in tweak2009_phrases.MORE]
        wanted = folds.cosines(table.data.weighted[num], pairs.left, pairs.right)
        assert wanted.std() > 0.1
        np.testing.assert_allclose(quadratic_forms.cosines(weights["tf·idf"].weights, forms), wanted, atol=2e-5)
    entry = tweak2009_phrases.preferences_graded(table).dev["folds"][0]
    rows = pairs.parts(0).dev
    kernel = tweak2009_phrases.web_kernels(table)[entry["snippets"]][rows]
    assert entry["auc_at_start"] == pytest.approx(folds.measure(kernel, pairs.positive[rows], pairs.query[rows])["auc"],
                                                  abs=1e-3)


def test_pseudo_documents_have_the_features_that_extract_reads_and_those_of_their_search(rng):
    index = passages.index([["Tea", "is", "hot"], ["tea", "cup", "Tea"], ["cup", "of", "milk"], ["milk", "TEA"]],
                           min_df=2)
    found = [np.array([1, 0, 3]), np.zeros(0, int), np.array([2, 1])]
    own = text.counts([["cup"], ["tea"], ["milk"]], index.vocabulary)
    words = snippets.numbered(index)
    documents, weighted = snippets.extract(index, words, found, own, num=2, terms=9)
    frequency = np.arange(1.0, 1 + len(index.vocabulary))
    documents = snippets.with_query_frequency(documents, frequency)
    cut = passages.pseudo_documents(index, [one[:2] for one in found])
    plain = features.extract(cut, index.vocabulary, names=features.PLAIN_TEXT, query_frequency=frequency)
    np.testing.assert_allclose(features.choose(documents, features.PLAIN_TEXT).columns, plain.columns, rtol=1e-6)
    assert np.array_equal(documents.terms.indices, plain.terms.indices)
    assert np.array_equal(documents.terms.values, plain.terms.values)
    np.testing.assert_allclose(weighted.toarray(), folds.tf_idf(plain, index.vocabulary).toarray())
    names = [(row, index.vocabulary.terms[at]) for row, at in zip(*weighted.nonzero(), strict=True)]
    read = dict(zip(names, features.choose(documents, ("phrase", "share", "rank")).columns.tolist(), strict=True))
    assert read == {(0, "tea"): [0, 1, 1], (0, "cup"): [1, 0.5, 1], (2, "tea"): [0, 0.5, 0.5], (2, "cup"): [0, 1, 1],
                    (2, "milk"): [1, 0.5, 1]}
    few, _ = snippets.extract(index, words, found, own, num=2, terms=1)
    kept = sparse.to_scipy(few.terms).toarray()
    assert [index.vocabulary.terms[at] for at in kept.nonzero()[1]] == ["cup", "milk"]  # the phrases' own
    index, phrases, found, own, made, *_ = searched(rng)
    for num, (_, weighted) in made.items():
        cut = passages.pseudo_documents(index, [one[:num] for one in found])
        plain = features.extract(cut, index.vocabulary, names=features.TF_DF)
        whole = folds.tf_idf(plain, index.vocabulary).toarray()
        for row, phrase in enumerate(phrases):
            mine = np.isin(index.vocabulary.terms, phrase)
            order = np.lexsort((-whole[row], ~mine))[:20]
            assert set(np.flatnonzero(weighted.toarray()[row])) == set(order[whole[row][order] > 0])


def test_query_frequency_counts_phrases_of_the_training_folds_alone(table):
    data = table.data
    for number in range(3):
        outside = np.flatnonzero(data.folds.fold != number)
        seen = {*data.folds.left[outside].tolist(), *data.folds.right[outside].tolist()}
        wanted = sum((data.own[one].toarray()[0] > 0).astype(float) for one in sorted(seen))
        counted = tweak2009_phrases.query_frequency(data, number)
        assert np.array_equal(counted, wanted) and counted.sum() < (data.own > 0).sum()
        num = tweak2009_phrases.number_of_snippets(table, number)["snippets"]
        made = tweak2009_phrases.prepared(data, number, num, features.PLAIN_TEXT)
        csr = sparse.to_scipy(made.terms)
        column = np.asarray(made.columns)[: csr.nnz, made.names.index("log_qf")]
        raw = np.log1p(counted[csr.indices])
        np.testing.assert_allclose(column, (raw - raw.mean()) / raw.std(), atol=1e-4)


def test_graded_preferences_stay_within_an_anchor_and_go_by_grade(table):
    data = table.data
    parts = data.folds.parts(1)
    better, worse = tweak2009_phrases.draw_graded(parts, data, 100, np.random.default_rng(0))
    assert len(better) == len(worse) == 100 and {*better, *worse} <= set(parts.fit)
    assert np.array_equal(data.folds.query[better], data.folds.query[worse])
    assert (data.grades[better] > data.grades[worse]).all()
    assert (data.folds.positive[better] == data.folds.positive[worse]).any()  # grades of one class as well
    assert len({*zip(better.tolist(), worse.tolist(), strict=True)}) == 100
    assert len(tweak2009_phrases.draw_graded(parts, data, 10**4, np.random.default_rng(0))[0]) == 10**4


def test_the_number_of_snippets_is_chosen_without_test_pairs(table):
    data, chosen = table.data, [tweak2009_phrases.number_of_snippets(table, number) for number in range(3)]
    row = tweak2009_phrases.web_kernel(table)
    assert [fold["snippets"] for fold in row.dev["folds"]] == [one["snippets"] for one in chosen]
    for number in range(3):
        parts = data.folds.parts(number)
        for num in (2, 6):
            kernel = folds.cosines(data.weighted[num], data.folds.left, data.folds.right)
            value = metrics_of(kernel, data.folds, parts.dev)
            assert {"snippets": num, "auc": pytest.approx(value)} in chosen[number]["tried"]
        best = folds.cosines(data.weighted[chosen[number]["snippets"]], data.folds.left, data.folds.right)
        assert row.metrics["auc"][number] == pytest.approx(metrics_of(best, data.folds, parts.test))
        flipped = data.folds.positive.copy()
        flipped[parts.test] = ~flipped[parts.test]
        other = dataclasses.replace(table.loaded, content=dataclasses.replace(
            data, folds=dataclasses.replace(data.folds, positive=flipped)))
        assert tweak2009_phrases.number_of_snippets(dataclasses.replace(table, loaded=other), number) == chosen[number]
    table.fill("tfidf", lambda table: row)
    assert "not-chosen-on-dev" not in notes.codes(kit.records.read(table.path("tfidf")))


def metrics_of(scores, pairs, rows):
    return folds.measure(scores[rows], pairs.positive[rows], pairs.query[rows])["auc"]


@pytest.mark.parametrize("loss", [losses.squared, losses.log, None])
def test_planned_pairs_give_what_tweak_gives(rng, loss):
    documents, left, right, positive, _ = toy(rng, 30)
    forms = quadratic_forms.plan(documents, documents, left, right)
    start = TermWeights(jnp.array([1.0, 0.1, -0.1]))
    settings = {"init": start, "alpha": 1e-3, "max_iter": 8}
    if loss is None:
        size = int(min(positive.sum(), (~positive).sum()))
        better, worse = np.flatnonzero(positive)[:size], np.flatnonzero(~positive)[:size]
        ours = tweak_pairs.fit_preferences(forms, better, worse, gamma=10.0, **settings)
        wanted = labelled_pairs.preferences((left[better], right[better]), (left[worse], right[worse]), num_left=60,
                                   num_right=60)
        theirs = tweak.fit(documents, documents, wanted, gamma=10.0, **settings)
    else:
        rows = np.arange(len(left))[::-1]
        ours = tweak_pairs.fit(forms, rows, positive[rows], loss=loss, **settings)
        wanted = labelled_pairs.labelled(left[rows], right[rows], positive[rows], num_left=60, num_right=60)
        theirs = tweak.fit(documents, documents, wanted, loss=loss, **settings)
    assert ours.loss == pytest.approx(theirs.loss, rel=1e-5)
    np.testing.assert_allclose(ours.params.weights, theirs.params.weights, rtol=1e-3, atol=1e-4)


def test_planned_pairs_refuse_what_does_not_fit(rng):
    documents, left, right, positive, _ = toy(rng, 10)
    forms, start = quadratic_forms.plan(documents, documents, left, right), TermWeights(jnp.ones(3))
    for call, message in (
        (lambda: tweak_pairs.take(forms, [len(left)]), rf"rows: expected pairs in \[0, {len(left)}\)"),
        (lambda: tweak_pairs.take(forms, np.zeros(0, int)), "rows: expected at least one pair"),
        (lambda: tweak_pairs.take(forms, [0.5]), "rows: expected one axis of integers"),
        (lambda: tweak_pairs.fit(forms, [0, 1], [1.0], init=start), r"labels: expected shape \(2,\)"),
        (lambda: tweak_pairs.fit(forms, [0], [np.nan], init=start), "labels: expected finite numbers"),
        (lambda: tweak_pairs.fit(forms, [0], [1.0], init=TermWeights(jnp.ones(2))), "init: expected 3 weights"),
        (lambda: tweak_pairs.fit(forms, [0], [1.0], init=TermWeights(jnp.zeros(3))), "init: expected finite weights"),
        (lambda: tweak_pairs.fit(forms, [0], [1.0], init=start, alpha=-1.0), "alpha: expected at least 0"),
        (lambda: tweak_pairs.fit_preferences(forms, [0], [1, 2], init=start), r"worse: expected shape \(1,\)"),
        (lambda: tweak_pairs.fit_preferences(forms, [0], [1], init=start, gamma=0.0), "gamma: expected a positive"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    empty = quadratic_forms.plan(*[features.from_counts(sparse.from_scipy(sp.csr_matrix(np.eye(4))), np.ones(4))] * 2,
                                 [0, 1], [2, 3])
    with pytest.raises(ValueError, match="forms: expected a pair that shares a term"):
        tweak_pairs.fit(empty, [0, 1], [1.0, 0.0], init=start)


def test_an_anchor_text_does_not_count_for_its_own_fold():
    link, script = tweak2009_html.httpd_html.Link, tweak2009_html
    links = (link(0, 1, "Listen"), link(2, 1, "listen"), link(0, 1, "the port"), link(0, 2, "Listen"), link(0, 2, "!"))
    assert script.queries_of(links) == {"listen": {1, 2}, "the port": {1}}
    assert script.inbound(links, 3, set()) == [[], ["listen", "the", "port"], ["listen"]]
    assert script.inbound(links, 3, {"listen"}) == [[], ["the", "port"], []]
    vocabulary = text.Vocabulary(("listen", "port"), np.array([1, 1]), 2)
    page = features.extract([["listen", "port"]], vocabulary, names=("bias",))
    both = html.in_fields(script.repeated(page, 2), vocabulary, {"inbound": [["port"], ["listen"]]})
    assert both.columns[:, 1].tolist() == [0, 1, 1, 0]
    asked = features.extract([["port"]], vocabulary, names=("bias",))
    assert script.stacked(asked, both).columns.tolist() == [[1, 0], [1, 0], [1, 1], [1, 1], [1, 0]]


def test_every_query_is_compared_with_the_pages_of_its_own_fold(rng):
    fold = np.array([1, 0])  # of two queries; three pages, once a fold
    weighted = sp.csr_matrix(rng.random((2 + 2 * 3, 4)))
    query = np.repeat([0, 1], 3)
    pairs = Folds(query, query, query > 0, query, np.arange(2), num=2, dev=0.5)
    vars(pairs)["fold"] = fold[query]
    data = tweak2009_html.Manual([["a"], ["b"]], [["x"]] * 3, [], None, None, weighted, pairs)
    pages = np.array([5, 6, 7, 2, 3, 4])
    np.testing.assert_allclose(tweak2009_html.cosines(data, weighted), folds.cosines(weighted, query, pages))


@pytest.mark.parametrize("script", SCRIPTS)
def test_without_the_corpora_quick_says_that_it_skips_and_full_refuses(script, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("JAXSIM_DATA", raising=False)
    table, = script.TABLES
    kit.run(script.EXPERIMENT, ["--preset", "quick", "--out", str(tmp_path)])
    assert f"{script.EXPERIMENT.name}: {table} skipped, nothing was run: JAXSIM_DATA" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stopped:
        kit.run(script.EXPERIMENT, ["--preset", "full", "--out", str(tmp_path)])
    error = capsys.readouterr().err
    assert stopped.value.code == 2 and "JAXSIM_DATA" in error and len(error.strip().splitlines()) == 1
    assert not list(tmp_path.rglob("*.json"))


def test_claims_have_the_figures_that_the_tables_print_and_rows_that_are_run():
    for script, name in ((tweak2009_phrases, "004 Table 1"), (tweak2009_search, "004 Table 2")):
        assert {row.row: row.figures for row in papers.TABLES[name].rows} == script.PRINTED
    assert tweak2009_html.PRINTED == {row: figures[0] for row, figures in tweak2009_search.PRINTED.items()}
    claims = [claim for script in SCRIPTS for claim in script.CLAIMS]
    assert len({claim.id for claim in claims}) == len(claims)
    for script in SCRIPTS:
        for claim in script.CLAIMS:
            rows = script.TABLES[claim.tables[0]].rows
            assert {claim.better, claim.worse} <= rows.keys() and claim.test == "paired t"
            assert not claim.printed or claim.printed[claim.better] > claim.printed[claim.worse]


def test_claims_on_single_rows_name_all_figures():
    def rows(script, metric, **changes):
        column = script.METRICS.index(metric)
        means = {row: figures[column] for row, figures in script.PRINTED.items()} | changes
        return {row: {"metrics": {metric: {"per_seed": folds_of(mean, row)}}} for row, mean in means.items()}

    def folds_of(mean, row):
        """Ten folds; those of two rows differ by about .001 more or less than the rows do."""
        return mean + 0.001 * np.cos(np.arange(10) + len(row)) + 0.05 * np.sin(np.arange(10))

    assert tweak2009_phrases.only_preferences_at_three(rows(tweak2009_phrases, "p@3"))[0]
    holds, line = tweak2009_phrases.only_preferences_at_three(rows(tweak2009_phrases, "p@3", **{"tweak-log": 0.56}))
    assert not holds and line.startswith("tfidf 0.5") and "tweak-log 0.5" in line and "(p = 0." in line
    for mean, above in ((0.5563, True), (0.5557, False)):  # the paper's own difference is within what folds show
        few = rows(tweak2009_phrases, "p@3", **{"tweak-pref": mean})
        assert tweak2009_phrases.only_preferences_at_three(few)[0] == above
    assert tweak2009_search.html_alone_at_a_tenth(rows(tweak2009_search, "tpr@0.1"))[0]
    assert not tweak2009_search.html_alone_at_a_tenth(rows(tweak2009_search, "tpr@0.1", **{"tweak-html": 0.5}))[0]


def test_the_lowest_scale_is_an_edge_only_where_the_loss_bends():
    def fitted(start, gamma, alpha):
        return SimpleNamespace(steps=1, history=[{"validation": 0.5}, {"validation": 0.9 - gamma - abs(alpha - 0.1)}])

    edges = {gammas[0]: folds.choose_fit(fitted, ["plain"], gammas=gammas, alphas=(0.0, 0.1, 0.2))[0]["edges"]
             for gammas in ((0.1, 0.3), (0.001, 0.1))}
    assert edges == {0.1: ["gamma"], 0.001: []}
