"""What the experiments on 004 share: folds, measures, searches, choices inside folds, statuses; on data made here."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import metrics as sklearn_metrics

from experiments.kit import records
from jaxsim import losses, sparse, text
from jaxsim.data import labelled_pairs
from jaxsim.methods import tweak
from jaxsim.methods.weights import quadratic_forms, tweak_pairs
from jaxsim.methods.weights.term_weights import TermWeights
from jaxsim.text import features, html

pytestmark = pytest.mark.programs
EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"


@pytest.fixture(scope="module")
def scripts(scripts):
    """The modules, by short names."""
    return SimpleNamespace(folds=scripts.tweak_folds, measures=scripts.tweak_measures, snippets=scripts.tweak_snippets,
                           html=scripts.tweak2009_html, phrases=scripts.tweak2009_phrases,
                           search=scripts.tweak2009_search)


def test_doctests_of_the_experiments(scripts):
    import doctest

    for module, least in ((scripts.measures, 4), (scripts.snippets, 3), (scripts.html, 2)):
        found = doctest.testmod(module)
        assert found.failed == 0 and found.attempted >= least, module.__name__


def test_a_phrase_without_hits_has_an_empty_pseudo_document_and_cosine_0(scripts):
    passages = scripts.snippets.index([["Green", "tea"], ["tea", "cup"], ["coffee", "cup"]], min_df=1)
    queries = [["tea"], ["zyx"], [], ["cup", "tea"]]
    found = scripts.snippets.search(passages, queries, k=2)
    assert [one.tolist() for one in found] == [[0, 1], [], [], [1, 0]]
    documents = scripts.snippets.pseudo_documents(passages, found)
    assert documents[:3] == [["Green", "tea", "tea", "cup"], [], []]
    counted = features.extract(documents, passages.vocabulary, names=features.TF_DF)
    weighted = scripts.measures.tf_idf(counted, passages.vocabulary.df, 3)
    told = scripts.measures.cosines(weighted, [0, 0, 1, 1], [3, 1, 2, 1])
    assert told[0] > 0.5 and told[1:].tolist() == [0, 0, 0]
    forms = quadratic_forms.plan(counted, counted, [0, 1], [3, 2])
    assert quadratic_forms.cosines(jnp.array([0.0, 1.0, 0.0]), forms)[1] == 0


def test_ties_of_a_search_go_to_the_lower_passage_and_common_words_find_nothing(scripts):
    passages = scripts.snippets.index([["the", "cup"]] * 30 + [["tea", "the"]], min_df=1)
    found = scripts.snippets.search(passages, [["cup"], ["the", "tea"], ["the"]], k=3)
    assert found[0].tolist() == [0, 1, 2]  # the only word: common, yet better than none
    assert found[1].tolist() == [30]
    assert len(found[2]) == 3
    with pytest.raises(ValueError, match="tokens: expected at least one passage"):
        scripts.snippets.index([])
    with pytest.raises(ValueError, match="size: expected"):
        scripts.snippets.cut(["a"], ["b"], size=0)


def test_folds_keep_groups_together_and_are_nearly_equal(scripts, rng):
    groups, sizes = np.repeat(np.arange(60), 2), rng.integers(1, 20, 120)
    fold = scripts.measures.deal(groups, sizes, num=5)
    assert np.array_equal(fold[::2], fold[1::2])
    total = np.bincount(fold, weights=sizes)
    assert total.max() - total.min() <= 40
    assert not np.array_equal(fold, scripts.measures.deal(groups, sizes, num=5, salt="other"))
    with pytest.raises(ValueError, match=r"num: expected between 2 and 3 \(groups of queries\), got 4"):
        scripts.measures.deal([0, 1, 2], [1, 1, 1], num=4)


def test_measures_agree_with_a_loop_and_with_scikit_learn(scripts, rng):
    scores, positive = rng.integers(0, 5, 200) / 4, rng.random(200) < 0.3
    query = rng.integers(0, 12, 200)
    positive[query == 3] = False
    found = scripts.measures.measure(scores, positive, query)
    assert found["auc"] == pytest.approx(sklearn_metrics.roc_auc_score(positive, scores))
    average, first = [], []
    for one in set(query[positive].tolist()):
        rows = sorted(np.flatnonzero(query == one).tolist(), key=lambda row: (-scores[row], row))
        hits = [positive[row] for row in rows]
        first.append(sum(hits[:3]) / 3)
        average.append(np.mean([sum(hits[: at + 1]) / (at + 1) for at, hit in enumerate(hits) if hit]))
    assert found["map"] == pytest.approx(np.mean(average)) and found["p@3"] == pytest.approx(np.mean(first))
    flat = scripts.measures.measure(np.zeros(4), [True, False, True, False], [0, 0, 1, 1])
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


@pytest.fixture
def task(scripts, tmp_path, rng):
    """Judged pairs of toy documents in three folds."""
    documents, left, right, positive, df = toy(rng)
    settings = scripts.folds.Settings(folds=3, dev=0.2, preferences=300, gammas=(10.0,), alphas=(0.01, 1.0),
                                      max_iter=10, patience=5)
    dataset = {"name": "toy", "sha256": None, "counts": {"pairs": len(left)}, "groups": {}, "differs": "synthetic"}
    made = scripts.folds.Task("toy", "none", "toy", ("auc", "map", "p@3"), settings, tmp_path, False, dataset, left,
                              right, positive, left, np.arange(60) // 2, kinds={"some": left < 30})
    return made, documents, scripts.measures.tf_idf(documents, df, 120)


def test_no_query_group_stands_in_two_parts_of_a_fold(task):
    made = task[0]
    for number in range(3):
        parts = made.parts(number)
        assert sorted(np.concatenate(parts).tolist()) == list(range(len(made.left)))
        inside = [set((made.query[rows] // 2).tolist()) for rows in parts]
        assert not (inside[0] & inside[1] or inside[0] & inside[2] or inside[1] & inside[2])
        assert 0.15 < len(parts.dev) / (len(parts.fit) + len(parts.dev)) < 0.3


def test_a_fold_of_one_class_is_refused_by_name(task):
    made = task[0]
    made.positive = made.positive & (made.fold != 1)
    with pytest.raises(ValueError, match="fold 1, test: expected positive and negative pairs, got negative ones alone"):
        made.parts(1)
    with pytest.raises(ValueError, match="fold 1, test: expected positive"):
        made.record("tfidf", np.zeros(len(made.left)), {}, {}, None, 0.0)


def test_rows_are_learned_chosen_and_recorded_fold_by_fold(task, scripts, monkeypatch):
    made, documents, weighted = task
    made.bare("plain", scripts.measures.tf_idf(documents, np.ones(12), 2), {})  # raw counts: the noise wins
    read = []
    original = tweak_pairs.fit_preferences

    def spy(forms, better, worse, **settings):
        read.append((set(better.tolist()), set(worse.tolist())))
        return original(forms, better, worse, **settings)

    monkeypatch.setattr(tweak_pairs, "fit_preferences", spy)
    made.tweaked("tweak-pref", documents, weighted, {})
    assert len(read) == 3 * 3  # two starts, then the other alpha, in each fold
    for place, (better, worse) in enumerate(read):
        allowed = made.parts(place // 3).fit
        assert better <= set(allowed[made.positive[allowed]]) and worse <= set(allowed[~made.positive[allowed]])
    found = {row: records.read(made.out / "toy" / "toy" / f"{row}.json") for row in ("plain", "tweak-pref")}
    learned = found["tweak-pref"]
    assert learned["metrics"]["auc"]["mean"] > found["plain"]["metrics"]["auc"]["mean"] + 0.1
    assert len(learned["metrics"]["auc"]["per_seed"]) == len(learned["dev"]["folds"]) == 3
    assert learned["metrics_by_group"]["some"]["auc"]["mean"] > 0.6
    assert all(one["auc"] >= one["auc_at_start"] for one in learned["dev"]["folds"])
    scripts.folds.judge(made.out, "toy", "toy", {"tweak-pref": {"plain": ("auc",)}}, publish=False)
    judged = records.read(made.out / "toy" / "toy" / "tweak-pref.json")
    assert judged["status"] == "reproduced" or judged["status"].startswith("within noise: above plain by only")
    assert records.read(made.out / "toy" / "toy" / "plain.json")["status"] == "no row of the paper's table"


def test_one_start_is_tf_idf_and_the_other_has_no_negative_weights(task, scripts):
    _, documents, weighted = task
    found = scripts.folds.starts_of(documents, weighted)
    slots = weighted.nnz
    assert list(found) == ["tf·idf", "idf + 2 log(tf + 1)"]
    assert (documents.columns @ found["idf + 2 log(tf + 1)"].weights)[:slots].min() > 0
    assert np.corrcoef((documents.columns @ found["tf·idf"].weights)[:slots], weighted.data)[0, 1] > 0.8
    tf, columns = np.asarray(documents.terms.values)[:slots], np.asarray(documents.columns, float)[:slots]
    nearest = np.linalg.lstsq(columns, weighted.data / tf + 2 * np.log1p(tf), rcond=None)[0]
    np.testing.assert_allclose(found["idf + 2 log(tf + 1)"].weights, nearest, rtol=1e-3, atol=1e-3)


def test_only_sampled_pairs_are_fitted_on_and_all_are_tested(task, monkeypatch):
    made, documents, weighted = task
    made.sampled = np.arange(0, len(made.left), 2)
    made.settings = dataclasses.replace(made.settings, alphas=(0.01,), max_iter=3)
    asked = []
    monkeypatch.setattr(made, "record", lambda row, scores, *_: asked.append(scores))
    made.tweaked("tweak-sse", documents, weighted, {}, loss=losses.squared,
                 score=lambda params: np.arange(len(made.left)))
    assert asked[0].tolist() == list(range(len(made.left)))
    assert all(set(made.parts(number)[at]) <= set(made.sampled) for number in range(3) for at in (0, 1))
    assert sum(len(made.parts(number).test) for number in range(3)) == len(made.left)


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


def fake(out, row, auc, paper="004 Table 1"):
    dataset = {"name": "x", "sha256": None, "counts": {"test": 9}, "groups": {}, "differs": "synthetic"}
    record = records.new(experiment="toy", paper=paper, table="toy", row=row, status="within noise", config={},
                         seeds=range(len(auc)), dataset=dataset, metrics={"auc": auc, "map": auc},
                         environment=records.environment())
    records.write(record, out)


@pytest.mark.parametrize(("shift", "status"), [
    ((0.05, 0.06, 0.05, 0.06), "reproduced"),
    ((0.05, -0.04, 0.05, -0.04), "within noise: above tfidf by only 0.0050 auc (paired t over folds, p = "),
    ((-0.05, 0.04, -0.05, 0.04), "within noise: tfidf is above by 0.0050 auc"),
    ((-0.05, -0.06, -0.05, -0.06), "off: tfidf is above by 0.0550 auc (paired t over folds, p = "),
    ((0.0, 0.0, 0.0, 0.0), "within noise: tfidf is above by 0.0000 auc"),
])
def test_rows_are_judged_by_paired_tests_over_folds(scripts, tmp_path, shift, status):
    base = np.array([0.7, 0.75, 0.8, 0.72])
    fake(tmp_path, "tfidf", base)
    fake(tmp_path, "tweak-log", base + shift)
    scripts.folds.judge(tmp_path, "toy", "toy", scripts.phrases.ORDER, publish=False)
    record = records.read(tmp_path / "toy" / "toy" / "tweak-log.json")
    assert record["status"].startswith(status), record["status"]
    assert record["best_set"] == (shift[0] > -0.05 or shift[1] > 0)


def test_an_anchor_text_does_not_count_for_its_own_fold(scripts):
    link = scripts.html.httpd_html.Link
    links = (link(0, 1, "Listen"), link(2, 1, "listen"), link(0, 1, "the port"), link(0, 2, "Listen"), link(0, 2, "!"))
    assert scripts.html.queries_of(links) == {"listen": {1, 2}, "the port": {1}}
    assert scripts.html.inbound(links, 3, set()) == [[], ["listen", "the", "port"], ["listen"]]
    assert scripts.html.inbound(links, 3, {"listen"}) == [[], ["the", "port"], []]
    vocabulary = text.Vocabulary(("listen", "port"), np.array([1, 1]), 2)
    page = features.extract([["listen", "port"]], vocabulary, names=("bias",))
    both = html.in_fields(scripts.html.repeated(page, 2), vocabulary, {"inbound": [["port"], ["listen"]]})
    assert both.columns[:, 1].tolist() == [0, 1, 1, 0]
    asked = features.extract([["port"]], vocabulary, names=("bias",))
    assert scripts.html.stacked(asked, both).columns.tolist() == [[1, 0], [1, 0], [1, 1], [1, 1], [1, 0]]


@pytest.mark.parametrize("preset", ["quick", "full"])
def test_without_the_corpora_quick_says_that_it_skips_and_full_refuses(scripts, tmp_path, monkeypatch, capsys, preset):
    monkeypatch.delenv("JAXSIM_DATA", raising=False)
    monkeypatch.setattr(sys, "argv", ["tweak", "--preset", preset, "--out", str(tmp_path)])
    for module, build in ((scripts.phrases, "Phrases"), (scripts.search, "Products"), (scripts.html, "Manual")):
        given = (module.__doc__, module.EXPERIMENT, module.TABLE, module.ORDER, module.ROWS, getattr(module, build))
        if preset == "quick":
            scripts.folds.run(*given)
            assert f"{module.EXPERIMENT}: skipped, nothing was run: JAXSIM_DATA" in capsys.readouterr().out
        else:
            with pytest.raises(SystemExit) as stopped:
                scripts.folds.run(*given)
            error = capsys.readouterr().err
            assert stopped.value.code == 2 and "JAXSIM_DATA" in error and len(error.strip().splitlines()) == 1
    assert not list(tmp_path.rglob("*.json"))


def test_quick_presets_do_not_write_among_the_published_records(scripts, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["toy", "--out", str(EXPERIMENTS / "results" / "x")])
    with pytest.raises(SystemExit, match="2"):
        scripts.folds.run("", "toy", "toy", {}, {"one": print}, print)
    assert "--out: expected a folder outside experiments/results" in capsys.readouterr().err


def test_a_row_that_has_its_record_is_not_run_again(scripts, tmp_path, monkeypatch):
    made = []

    def build(settings, out, publish):
        made.append(settings)
        return SimpleNamespace(out=out)

    rows = {row: lambda task, row=row: fake(task.out, row, [0.5, 0.6]) for row in ("one", "two")}
    for options, built in (((), 1), ((), 1), (("--again",), 2), (("--rows", "two"), 2), (("--judge", "--again"), 2)):
        monkeypatch.setattr(sys, "argv", ["toy", "--out", str(tmp_path), *options])
        scripts.folds.run("", "toy", "toy", {}, rows, build)
        assert len(made) == built
    assert {path.stem for path in (tmp_path / "toy" / "toy").glob("*.json")} == {"one", "two"}
    assert made[0] is scripts.folds.QUICK
