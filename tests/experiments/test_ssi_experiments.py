"""`bai2010_queries`, `bai2010_clicks` and `bai2010_cross_language` on made-up texts: what is judged, rows, records."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse

from experiments import kit
from experiments.corpora import links as corpora
from experiments.kit import records
from experiments.links import bai2010_clicks, bai2010_cross_language, bai2010_queries
from jaxsim import sparse
from jaxsim.data import links, mdn_links, nfcorpus, splits, wikispeedia
from jaxsim.methods.translation import dictionary

pytestmark = pytest.mark.programs
N, TOPICS = 72, 6
SCRIPTS = (bai2010_queries, bai2010_clicks, bai2010_cross_language)


@pytest.fixture(scope="module")
def articles():
    """Articles about six topics, of which those of one topic link to each other."""
    rng = np.random.default_rng(5)
    topics = [rng.dirichlet(np.full(120, 0.05)) for _ in range(TOPICS)]
    tokens = [[f"w{word}" for word in rng.choice(120, 40, p=topics[i % TOPICS])] for i in range(N)]
    linked = links.checked([[i, j] for i in range(N) for j in range(N) if i % TOPICS == j % TOPICS], N)
    return wikispeedia.Articles("made up", tuple(f"a{i}" for i in range(N)), (), tuple(map(" ".join, tokens)), linked,
                                "0" * 64, {"articles": N})


@pytest.fixture
def table(tmp_path):
    """Makes a small table."""
    def make(script, name, **changes):
        settings = dataclasses.replace(script.QUICK, **{"k": 3, "triples": 100, "limit": None, "num_terms": 100,
                                                        "seeds": (0, 1), **changes})
        return kit.Table(script.EXPERIMENT.name, name, settings, "quick", script.load(name, settings), tmp_path,
                         kit.Fits(tmp_path / "cache", say=lambda line: None))

    return make


@pytest.fixture
def keywords(articles, monkeypatch):
    """The articles, in place of Wikispeedia's."""
    data = articles, [page.split() for page in articles.texts], np.arange(N)
    monkeypatch.setattr(corpora, "articles", lambda source, limit=None: data)


def fill(table, rows, *names):
    """Records of some rows."""
    results = {name: records.read(table.fill(name, rows[name])) for name in names}
    learned = [record for name, record in results.items() if name.startswith("ssi") and "+" not in name]
    assert all(record["seeds"] == list(table.settings.seeds) and record["fit"]["history"] for record in learned)
    return results


def test_queries_are_different_words_of_their_article_and_weigh_something():
    counts = scipy.sparse.csr_matrix(np.array([[3, 1, 1, 1, 0], [1, 0, 2, 0, 0], [1, 0, 0, 0, 0]], np.float32))
    df = np.array([3, 1, 2, 1, 0])
    draws = [bai2010_queries.drawn(counts, df, 3, 2, seed).toarray() for seed in range(60)]
    assert {tuple(np.flatnonzero(draw[0])) for draw in draws} == {(1, 2), (1, 3), (2, 3)}
    assert all(draw[1].tolist() == [0, 0, 1, 0, 0] and not draw[2].any() and draw.max() == 1 for draw in draws)


def test_right_answers_of_test_queries_are_no_training_links_and_known_links_are_out(keywords, table):
    content = table(bai2010_queries, "k5").data
    test = content.parts["test"]
    assert content.left.num_docs == 2 * N and content.links[:, 0].max() >= N
    training = {tuple(pair) for pair in (content.links % [N, N]).tolist()}
    right = test.truth.relevant.tocoo()
    assert not {(int(test.truth.queries[a]), int(b)) for a, b in zip(right.row, right.col, strict=True)} & training
    out = test.truth.left_out.toarray()
    for row, query in enumerate(test.truth.queries.tolist()):
        assert out[row, query] and all(out[row, b] for a, b in training if a == query)
    assert np.diff(test.queries.indptr).max() <= 5
    np.testing.assert_allclose(test.exact, (test.queries @ sparse.to_scipy(content.right).T).toarray(), atol=1e-6)


def test_a_sample_of_a_part_has_the_scores_of_its_queries(keywords, table):
    part = table(bai2010_queries, "k5").data.parts["test"]
    sample = part.sample(7)
    rows = np.searchsorted(part.truth.queries, sample.truth.queries)
    assert rows.size == 7 and part.sample(None) is part
    for name, values in sample.per_query(sample.exact).items():
        np.testing.assert_array_equal(values, part.per_query(part.exact)[name][rows])


@pytest.mark.slow
def test_rows_of_the_queries_become_records(keywords, table):
    made = table(bai2010_queries, "k10", ks=(3,), seeds=(0,), max_iter=4)
    results = fill(made, bai2010_queries.TABLES["k10"].rows, "tfidf", "bm25", "lsi+tfidf", "popularity", "ssi-asym")
    assert results["ssi-asym"]["metrics"]["map"]["mean"] > 0.3
    assert results["lsi+tfidf"]["config"]["alpha"] in made.settings.shares


def test_queries_are_expanded_by_retrieved_documents_without_their_own_article(keywords, table):
    made = table(bai2010_queries, "k10")
    test, documents = made.data.parts["test"], sparse.to_scipy(made.data.right).toarray()
    best, known = bai2010_queries.retrieved(test, 5)
    for row, query in enumerate(test.truth.queries.tolist()):
        scores = np.where(np.arange(N) == query, 0, test.exact[row])
        assert best[row].tolist() == sorted(range(N), key=lambda at: (-scores[at], at))[:5]
        assert known[row].tolist() == (scores[best[row]] > 0).tolist()
    record = records.read(made.fill("qe", bai2010_queries.ROWS["qe"]))
    scores = {(point["E"], point["beta"]): point["map"] for point in record["curve"]}
    assert record["dev"]["map"] == max(scores.values()) >= scores[0, 0.0]
    E, beta = record["config"]["E"], record["config"]["beta"]
    best, known = bai2010_queries.retrieved(test, max(E, 1))
    more = [documents[best[row, :E][known[row, :E]]].sum(axis=0) for row in range(len(best))]
    expected = test.means(test.exact + beta * (np.array(more) @ documents.T).astype(np.float32))
    assert record["metrics"]["map"]["mean"] == pytest.approx(expected["map"], abs=1e-3)
    assert record["metrics"]["rank_loss@half"]["mean"] <= record["metrics"]["rank_loss"]["mean"]


def test_popularity_is_added_to_the_fits_of_the_row(keywords, table):
    made = table(bai2010_queries, "k10-all-words", identities=(1.0,), max_iter=4, ssi_boosts=(0.0, 0.3))
    rows = bai2010_queries.TABLES["k10-all-words"].rows
    alone, added = (records.read(made.fill(row, rows[row])) for row in ("ssi-asym", "ssi-asym+popularity"))
    scores = {point["c"]: point["map"] for point in added["dev"]["grid"]}
    assert scores[0.0] == pytest.approx(alone["dev"]["map"]) and scores[0.3] != scores[0.0]
    assert added["seeds"] == alone["seeds"] and added["fit"]["history"] == alone["fit"]["history"]
    assert added["config"] == {**added["config"], **{name: alone["config"][name] for name in (
        "learning_rate", "identity", "k", "max_iter", "max_terms")}}


def test_hashed_words_are_the_other_ones_and_a_mixture_is_no_worse_on_dev(keywords, table):
    made = table(bai2010_queries, "k10-all-words", num_terms=60, identities=(1.0,), max_iter=4)
    closest = bai2010_queries.closest_words(made.data, 60)
    hashed = bai2010_queries.hashed_words(closest, sparse.to_scipy(made.data.right)).toarray()
    other = sparse.to_scipy(made.data.right)[:, 60:].toarray().any(axis=1)
    assert hashed.shape == (N, 60) and other.any() and (hashed.any(axis=1) == other).all()
    np.testing.assert_allclose(np.linalg.norm(hashed[other], axis=1), 1, rtol=1e-5)
    record = records.read(made.fill("ssi-cfh", bai2010_queries.TABLES["k10-all-words"].rows["ssi-cfh"]))
    scores = {point["alpha"]: point["map"] for point in record["dev"]["grid"]}
    assert record["dev"]["map"] == pytest.approx(max(scores.values())) and record["config"]["F"] == 60
    assert scores[0.0] != scores[1.0]


def test_two_seeds_are_two_fits_a_seed_of_which_the_first_are_those_of_the_row(keywords, table):
    made = table(bai2010_queries, "k10-all-words", num_terms=60, identities=(1.0,), max_iter=4, mixtures=(0.0, 0.5))
    rows = bai2010_queries.TABLES["k10-all-words"].rows
    alone, mixed = (records.read(made.fill(row, rows[row])) for row in ("ssi-asym", "two-seeds"))
    scores = {point["alpha"]: point["map"] for point in mixed["dev"]["grid"]}
    assert scores[0.0] == pytest.approx(alone["dev"]["map"]) and scores[0.5] != scores[0.0]
    assert mixed["seeds"] == alone["seeds"] == [0, 1]
    assert mixed["config"]["learning_rate"] == alone["config"]["learning_rate"]


def test_nfcorpus_is_scored_by_grade(articles, table, monkeypatch):
    qrels = {split: {f"{split}{i}": {f"a{j}": 1 + (j > 40) for j in range(N) if i % TOPICS == j % TOPICS}
                     for i in range(12)} for split in nfcorpus.SPLITS}
    queries = {split: {f"{split}{i}": articles.texts[i][:40] for i in range(12)} for split in nfcorpus.SPLITS}
    documents = dict(zip(articles.ids, articles.texts, strict=True))
    collection = nfcorpus.Collection("made up", documents, queries, qrels, "0" * 64, {"documents": N})
    monkeypatch.setattr(nfcorpus, "load", lambda: collection)
    made = table(bai2010_queries, "nfcorpus")
    part = made.data.parts["test"]
    scores = part.grades.toarray().astype(np.float32)
    perfect = part.means(scores)
    assert perfect["ndcg@10"] == 1 and perfect["map"] == 1 and perfect["rank_loss"] == 0
    flat = part.per_query(np.minimum(scores, 1))
    assert flat["map"].min() == 1 and flat["ndcg@10"].mean() < 1
    results = fill(made, bai2010_queries.ROWS, "bm25", "tfidf")
    assert results["bm25"]["metrics"]["ndcg@10"]["mean"] > 0.5


def test_clicked_links_are_judged_against_unclicked_ones_of_their_page_alone():
    linked = np.array([[0, 1], [0, 2], [0, 3], [1, 0], [2, 0], [2, 1], [3, 0]])
    clicked, unclicked = bai2010_clicks.both_kinds(linked, np.array([[0, 2], [1, 0], [2, 1], [3, 1]]), 4)
    assert clicked.tolist() == [[0, 2], [2, 1]]  # 1 has no unclicked link, 3 no clicked one (its click is no link)
    assert unclicked.tolist() == [[0, 1], [0, 3], [2, 0]]
    truth = bai2010_clicks.judged(clicked, unclicked, 4)
    assert truth.queries.tolist() == [0, 2]
    assert truth.relevant.toarray().tolist() == [[0, 0, 1, 0], [0, 1, 0, 0]]
    assert truth.left_out.toarray().tolist() == [[1, 0, 0, 0], [0, 0, 1, 1]]


@pytest.fixture
def clicks(articles, monkeypatch):
    """The articles and made-up clicks, in place of Wikispeedia's."""
    pairs = np.array([[i, j, 1 + j % 3] for i, j in articles.links.tolist() if (i + j) % 4 == 0 or j < 24])
    monkeypatch.setattr(wikispeedia, "load", lambda: articles)
    monkeypatch.setattr(wikispeedia, "clicks", lambda collection: pairs)
    return pairs


def test_rows_of_the_clicks_become_records(clicks, table):
    made = table(bai2010_clicks, "clicks", max_iter=6)
    training = set(made.data.preferred[:, 0].tolist())
    assert training.isdisjoint(made.data.parts["test"].truth.queries.tolist())
    expected = np.bincount(clicks[np.isin(clicks[:, 0], [*training]), 1], minlength=N) > 0
    assert (made.data.popularity[expected] > 0).all()
    results = fill(made, bai2010_clicks.ROWS, "tfidf", "popularity", "tfidf+popularity", "ssi-asym",
                 "ssi-asym+popularity")
    assert results["popularity"]["metrics"]["rank_loss"]["mean"] < results["tfidf"]["metrics"]["rank_loss"]["mean"]
    path = made.fill("ssi-hash-10m", bai2010_clicks.ROWS["ssi-hash-10m"])
    assert records.read(path)["metrics"]["rank_loss"]["mean"] < results["tfidf"]["metrics"]["rank_loss"]["mean"]
    assert bai2010_clicks.shown(made, 10).indices.max() < 10 <= bai2010_clicks.shown(made, None).indices.max()


def test_few_articles_are_those_that_most_clicks_lead_to(articles, clicks):
    rows, linked, among = bai2010_clicks.most_clicked(articles, clicks, 20)
    times = np.bincount(clicks[:, 1], clicks[:, 2], minlength=N)
    assert times[rows].min() >= np.delete(times, rows).max() and rows.size == 20
    inside = [[a, b, n] for a, b, n in clicks.tolist() if a in rows and b in rows]
    assert np.column_stack([rows[among[:, 0]], rows[among[:, 1]], among[:, 2]]).tolist() == inside
    assert linked.max() < 20


def test_a_rate_that_diverges_is_not_taken(clicks, table, monkeypatch):
    fit = bai2010_clicks.ssi_preferred.fit

    def diverging(*data, learning_rate, **options):
        if learning_rate == 9.0:
            raise FloatingPointError
        return fit(*data, learning_rate=learning_rate, **options)

    monkeypatch.setattr(bai2010_clicks.ssi_preferred, "fit", diverging)
    record = fill(table(bai2010_clicks, "clicks", rates=(0.01, 0.1, 9.0)), bai2010_clicks.ROWS, "ssi-asym")["ssi-asym"]
    losses = {point["learning_rate"]: point["rank_loss"] for point in record["curve"]}
    assert {0.01, 0.1, 9.0} <= {*losses} and losses.pop(9.0) is None
    assert record["config"]["learning_rate"] == min(losses, key=losses.get)


@pytest.fixture
def translated(articles, monkeypatch):
    """Every second article has a translation: the same words in capitals; the first two are twins."""
    english = [page.split() for page in articles.texts]
    mates = np.arange(0, N, 2)
    other = [[word.upper() for word in english[row]] for row in mates]
    collection = mdn_links.LinkedPages("made up", "es", articles.ids, articles.texts, articles.links, mates,
                                       tuple(map(" ".join, other)), "0" * 64, {"pages": N})
    other[1] = other[0]
    groups = splits.group_near_duplicates(english), splits.group_near_duplicates(other)
    monkeypatch.setattr(bai2010_cross_language, "pages", lambda language, limit: (collection, english, other, *groups))
    return collection


@pytest.mark.parametrize("name", ["es", "mates-es"])
def test_mates_are_out_and_links_of_held_out_pages_untold(translated, table, name):
    content, by_mate, held = table(bai2010_cross_language, name).data, name == "mates-es", set()
    for part in ("dev", "test"):
        truth = content.parts[part].truth
        own = translated.mates[truth.queries]
        rows, right = np.arange(own.size), truth.relevant.toarray()
        assert (right[rows, own] == by_mate).all() and (truth.left_out.toarray()[rows, own] != by_mate).all()
        assert right.sum() == (own.size if by_mate else np.isin(translated.links[:, 0], own).sum())
        held |= set(own.tolist())
    assert held.isdisjoint(content.mates[:, 1].tolist()) and held.isdisjoint(content.same_links[:, 0].tolist())
    assert set(content.links[:, 0].tolist()) <= set(content.mates[:, 0].tolist())
    assert len(set(content.mates[:, 0].tolist()) & {0, 1}) in (0, 2)  # the twins stay together
    assert not content.parts["test"].exact.any()  # capitals are other words


def test_a_word_that_the_dictionary_lacks_is_looked_up_by_its_first_letters():
    params = dictionary.fit([("house", "casa"), ("home", "casa"), ("hunter", "cazador"), ("hunt", "cazar")]).params
    terms, english = ("casas", "cazadores", "casa", "web", "sol"), ("house", "home", "hunter", "web", "hunt")
    plain, near = (bai2010_cross_language.by_dictionary(params, terms, english, prefix).toarray()
                   for prefix in (None, 4))
    np.testing.assert_allclose(plain, [[0] * 5, [0] * 5, [0.5, 0.5, 0, 0, 0], [0, 0, 0, 1, 0], [0] * 5])
    np.testing.assert_allclose(near[2:], plain[2:])
    np.testing.assert_allclose(near[:2], [[0.5, 0.5, 0, 0, 0], [0, 0, 0.5, 0, 0.5]])


@pytest.mark.slow
def test_rows_across_languages_become_records(translated, table):
    made = table(bai2010_cross_language, "es", ks=(3, 5), seeds=(0,), max_iter=8)
    results = fill(made, bai2010_cross_language.ROWS, "tfidf", "cl-lsi", "ssi", "ssi+tfidf", "ssi-multitask")
    assert results["cl-lsi"]["metrics"]["map"]["mean"] > results["tfidf"]["metrics"]["map"]["mean"]
    assert results["ssi-multitask"]["config"]["symmetric"] in (True, False)
    assert results["ssi-multitask"]["metrics"]["map"]["mean"] > results["tfidf"]["metrics"]["map"]["mean"]


def test_a_share_of_the_links_tells_nothing_of_the_others(translated, table, monkeypatch):
    made, given = table(bai2010_cross_language, "es"), {}

    def fit(left, right, links, **options):
        given.update(options, links=links)
        raise InterruptedError

    monkeypatch.setattr(bai2010_cross_language.ssi, "fit", fit)
    with pytest.raises(InterruptedError):
        bai2010_cross_language.fit_ssi(made, bai2010_cross_language.Variant(percent=30), max_iter=1)
    pairs = [{tuple(pair) for pair in np.asarray(part).tolist()}
             for part in (given["links"], given["known"], made.data.links)]
    assert len(pairs[0]) == len(made.data.links) * 30 // 100 and pairs[0] <= pairs[2]
    assert pairs[2] - pairs[0] <= pairs[1] and not pairs[0] & pairs[1]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.EXPERIMENT.name)
def test_scripts_of_links_say_what_they_lack(script, monkeypatch, tmp_path, capsys):
    def refused(*options):
        with pytest.raises(SystemExit) as stopped:
            kit.run(script.EXPERIMENT, [*map(str, options)])
        assert stopped.value.code == 2
        return capsys.readouterr().err.strip().splitlines()[-1]

    monkeypatch.delenv("JAXSIM_DATA", raising=False)
    kit.run(script.EXPERIMENT, ["--out", str(tmp_path)])
    assert "nothing was run: " in capsys.readouterr().out
    assert "JAXSIM_DATA" in refused("--preset", "full", "--out", tmp_path)
    monkeypatch.setenv("JAXSIM_DATA", str(tmp_path))
    assert "expected the corpus" in refused("--out", tmp_path)
    assert not list(tmp_path.rglob("*.json"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.EXPERIMENT.name)
def test_the_claims_name_rows_of_their_tables(script):
    for claim in script.CLAIMS:
        for name in claim.tables:
            rows = script.EXPERIMENT.tables[name].rows
            missing = {claim.better, claim.worse} - rows.keys()
            assert not missing, (claim.id, name, missing)
        assert set(claim.equal_rows or ()) <= script.EXPERIMENT.tables[claim.tables[0]].rows.keys(), claim.id
        if claim.printed:
            difference = claim.printed[claim.better] - claim.printed[claim.worse]
            assert difference < 0 if claim.lower else difference > 0, claim.id
