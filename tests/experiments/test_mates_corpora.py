"""The corpora of the mate tables, on made-up pages: how they are dealt and parted."""

import json

import numpy as np
import pytest

from experiments.corpora import mates as corpora
from experiments.kit import judge
from experiments.kit.run import RESULTS
from jaxsim.data import docstrings, europarl, pairs


def pages(num, words, prefix="page", languages=("en", "es")):
    """Pairs of pages of different words, no two of them near-duplicates."""
    texts = [[" ".join(f"{side}{prefix}{i}w{j}" for j in range(words)) for i in range(num)] for side in ("l", "r")]
    return pairs.make(prefix, [f"{prefix}/{i:03d}" for i in range(num)], *texts, languages=languages)


def test_a_group_that_reaches_into_a_later_part_leaves_the_earlier_ones():
    place = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2])
    groups = np.array([0, 1, 2, 3, 1, 4, 2, 2, 5])
    keep = np.ones(9, bool)
    keep[3] = False
    parts = corpora.later_first(place, groups, keep)
    assert {name: rows.tolist() for name, rows in parts.items()} == {"train": [0], "dev": [4, 5], "test": [7, 8]}


def test_the_papers_years_share_no_near_duplicates(monkeypatch, tmp_path):
    shared = pages(4, 30, "shared")

    def release(folder, left, right, *, years):
        own = pages(12, 30, f"year{years[0]}")
        again = pairs.make("again", [f"{years[0]}/{i}" for i in range(4)], shared.left, shared.right,
                           languages=("en", "es"))
        return pairs.concatenate(f"{years[0]}", [own, again])

    monkeypatch.setattr(europarl, "load_release", release)
    monkeypatch.setattr(corpora.mates, "vocabulary_of", lambda documents, **more: real(documents, drop_top=0))
    corpus = corpora.paper_years(tmp_path)
    # Equal speeches count once, by the smallest identifier: that of the first year, whose group reaches into test.
    assert corpus.sizes == {"train": 12, "dev": 12, "test": 12}


real = corpora.mates.vocabulary_of


def test_parted_pages_hold_other_words_and_keep_the_groups_of_whole_pages(monkeypatch):
    monkeypatch.setattr(corpora.mates, "vocabulary_of", lambda documents, **more: real(documents, drop_top=0))
    long, short = pages(40, 150), pages(5, 100, "short")
    twins = pairs.make("twins", [f"twin/{i}" for i in range(3)], [f"{long.left[0]} more{i}" for i in range(3)],
                       [f"rtwin{i} " * 130 for i in range(3)], languages=("en", "es"))
    corpus = corpora._parted(pairs.concatenate("all", [long, short, twins]), corpora.first_half, corpora.second_half)
    assert sum(corpus.sizes.values()) == len(corpus.pairs) == 43  # short pages are left out
    assert corpus.task.groups["groups"] == 40 and corpus.task.groups["largest"] == 4
    words = set(corpus.task.vocabulary.terms)
    assert {word for word in words if word.startswith("lpage0w")} <= {f"lpage0w{j}" for j in range(75)}
    for name, (left, right) in corpus.task.counts.items():
        assert left.shape == right.shape and (name != "train" or (left.sum(1) >= 75).all())
    halves = corpora.first_half(list("abcde")), corpora.second_half(list("abcde"))
    assert halves == (list("ab"), list("cde"))
    small, smaller = corpus.of_size(10), corpus.of_size(5)
    assert small.counts["train"][0].shape[0] == 10 and smaller.counts["train"][0].shape[0] == 5
    assert set(smaller.group_ids["train"]) <= set(small.group_ids["train"])
    assert small.counts["test"][0].shape[0] == corpus.sizes["test"]


def in_languages(monkeypatch):
    """40 pages in English and Spanish; all but the first two of them in French too, of which two are short."""
    monkeypatch.setattr(corpora.mates, "vocabulary_of", lambda documents, **more: real(documents, drop_top=0))
    whole = pages(40, 150)
    texts = [" ".join(f"f{i}w{j}" for j in range(100 if i in (2, 3) else 150)) for i in range(2, 40)]
    french = pairs.make("french", whole.ids[2:], whole.left[2:], texts, languages=("en", "fr"))
    return corpora._halves(lambda: whole, more={"fr": lambda: french})(None)


def test_pages_in_more_languages_are_training_pages_that_have_them_all(monkeypatch):
    corpus = in_languages(monkeypatch)
    shared, train = corpus.shared(), corpus.task.rows["train"]
    rows = [row for row in train if row > 3]
    assert list(shared.documents) == ["en", "es", "fr"] and shared.size == len(rows)
    assert shared.documents["fr"] == [[f"f{row}w{j}" for j in range(75, 150)] for row in rows]  # the second half
    assert shared.documents["en"] == [[f"lpage{row}w{j}" for j in range(75)] for row in rows]
    two, three = shared.views(["en", "es"]), shared.views(["en", "es", "fr"])
    assert [len(views.counts["train"]) for views in (two, three)] == [2, 3]
    assert not any(term.startswith("f") for term in two.vocabulary.terms)
    assert len(three.vocabulary) == 1.5 * len(two.vocabulary)
    for part in ("dev", "test"):
        assert [side.shape for side in three.counts[part]] == [(corpus.sizes[part], len(three.vocabulary))] * 2
    assert {side.num_docs for side in three.weighted("train")} == {shared.size}


def test_opca_of_more_languages_has_the_dev_and_test_pairs_of_its_table(monkeypatch, tmp_path):
    from experiments import kit
    from experiments.mates import platt2010

    corpus = in_languages(monkeypatch)
    data = kit.Data(corpus, name="made", sha256=None, differs="synthetic", counts={"pages": 40})
    settings = platt2010.Settings(ks=(2, 3), grid_k=3, many_noises=(1e-3, 1e-2))
    table = kit.Table("made", "made", settings, "quick", data, tmp_path, kit.Fits(tmp_path / "cache", say=str))
    row = platt2010.fit_languages(table, ("en es", "en es fr"))
    assert row.config["pages"] == corpus.shared().size and row.config["k"] in (2, 3)
    assert [entry["languages"] for entry in row.dev["grid"]] == ["en es"] * 2 + ["en es fr"] * 2
    assert row.per_query[0]["mrr"].size == 2 * corpus.sizes["test"]
    assert {point["split"] for point in row.curve} == {"dev", "test"}
    table.loaded = kit.Data(corpora._halves(lambda: pages(40, 150))(None), name="made", sha256=None,
                            differs="synthetic", counts={"pages": 40})
    assert platt2010.fit_many(table) is None


def test_tables_are_dealt_without_a_salt(monkeypatch):
    seen = []
    split = corpora.mates.splits.split
    monkeypatch.setattr(corpora.mates, "vocabulary_of", lambda documents, **more: real(documents, drop_top=0))
    monkeypatch.setattr(corpora.mates.splits, "split", lambda *rest, **more: seen.append(more["salt"]) or split(
        *rest, **more))
    monkeypatch.setattr(corpora, "_load", lambda language, sources=None: pages(30, 150))
    monkeypatch.setattr(corpora, "human_pairs", lambda: pages(30, 150))
    monkeypatch.setattr(corpora.docstrings, "load", lambda: pages(30, 150, languages=("en", "en")))
    for name in ("en-es-halves", "en-es-halves-all"):
        monkeypatch.setitem(corpora.CORPORA, name, corpora._halves(lambda: pages(30, 150)))
    names = {"docstrings", *corpora.RULES} - {"en-fr-halves", "en-ja-halves"}  # halves as those, of other pages
    for name in names:
        corpora.load(name)
    assert set(seen) == {""} and len(seen) >= len(names)


def test_dev_and_test_keep_one_pair_of_each_group(monkeypatch):
    texts = corpora.mates.read(pages(60, 40))
    texts = texts._replace(groups=np.repeat(np.arange(20), 3), keep=np.arange(60) != 1)
    dealt, kept = corpora.mates.split(texts), corpora.lone(texts)
    np.testing.assert_array_equal(kept["train"], dealt["train"])
    for part in ("dev", "test"):
        assert len(dealt[part]) and set(kept[part]) <= set(dealt[part]) and list(kept[part]) == sorted(kept[part])
        assert sorted(texts.groups[kept[part]]) == sorted(set(texts.groups[dealt[part]]))


def test_pages_that_are_held_out_take_their_near_copies_along():
    own = pages(6, 40)
    copy = pairs.make("copy", ["copy"], [f"{own.left[2]} more"], ["another page " * 20], languages=("en", "es"))
    corpus = pairs.concatenate("all", [own, copy])
    assert corpora.without(corpus, {"page/002", "of no corpus"}).ids == tuple(f"page/{i:03d}" for i in (0, 1, 3, 4, 5))
    assert corpora.without(corpus, set()).ids == corpus.ids


def test_a_learning_curve_has_a_point_a_size(monkeypatch):
    from experiments.corpora import mate_scores
    from experiments.mates import platt2010

    class Table:
        settings = platt2010.Settings(sizes=(4, 8, 100), grid_k=5, ks=(2, 3))
        data = None

        def once(self, name, make):
            return make()

    monkeypatch.setattr(corpora.mates, "vocabulary_of", lambda documents, **more: real(documents, drop_top=0))
    table = Table()
    table.data = corpora._parted(pages(40, 150), corpora.first_half, corpora.second_half)
    asked = []

    def fit(task, k):
        asked.append((task.counts["train"][0].shape[0], k))
        return platt2010.lsa.fit(task.weighted("train")[0], k=k).params

    points = mate_scores.learning_curve(table, fit)
    most = table.data.sizes["train"]
    assert [point["pairs"] for point in points] == [4, 8, most] and asked == [(4, 3), (8, 3), (most, 3)]
    assert all(point["split"] == "test" and 0 < point["mrr"] <= 1 for point in points)
    assert pytest.approx(1.0) not in [point["mrr"] for point in points]


def test_long_speeches_have_enough_words_in_both_languages(monkeypatch):
    monkeypatch.setattr(corpora.mates, "vocabulary_of", lambda documents, **more: real(documents, drop_top=0))
    monkeypatch.setattr(europarl, "load_blocks", lambda years, cut: pages(6, 30, "train"))
    long, short = pages(3, corpora.LONG_SPEECH, "long"), pages(4, corpora.LONG_SPEECH - 1, "short")
    half = pairs.make("half", ["half/0"], long.left[:1], short.right[:1], languages=("en", "es"))
    monkeypatch.setattr(europarl, "load_speeches", lambda years: pairs.concatenate(
        str(years), [pages(2, 30, "dev")] if years == (2001,) else [long, short, half]))
    assert corpora.CORPORA["en-it-speeches"](None).sizes["test"] > 3
    assert corpora.CORPORA["en-it-speeches-long"](None).sizes == {"train": 6, "dev": 2, "test": 3}


@pytest.mark.programs
def test_the_groups_of_docstrings_are_those_that_tests_count_by():
    path = RESULTS / "yih2011_mates" / "docstrings" / "s2net.json"
    told = json.loads(path.read_text())["dataset"]["counts"]["versions"]
    if told != docstrings.load().counts["versions"]:
        pytest.skip("the records are of docstrings of other versions of these packages")
    assert json.loads(judge.GROUPS.read_text()) == corpora.groups_of_test_pairs()
