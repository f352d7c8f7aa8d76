"""`bai2010_links` on made-up articles: splits, what is judged, rows, records, learning curves."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments import kit
from experiments.corpora import links as corpora
from experiments.kit import records
from experiments.links import bai2010_links as script
from jaxsim import sparse
from jaxsim.data import links, wikispeedia
from jaxsim.evaluate import metrics, ranking
from jaxsim.methods import ssi_diag
from jaxsim.methods.ssi import bilinear
from jaxsim.sparse import Vectors

pytestmark = pytest.mark.programs
N = 90


def articles(size, topics, linked, *, twins=(), titles=False, words=200, length=60, seed=11):
    """Articles about some topics, each with words of its topic's own; the second of two twins has the first's words."""
    rng = np.random.default_rng(seed)
    of_topic = [rng.dirichlet(np.full(words, 0.05)) for _ in range(topics)]
    tokens = [[f"w{word}" for word in rng.choice(words, length, p=of_topic[i % topics])] + [f"title{i}"] * titles
              for i in range(size)]
    for first, second in twins:
        tokens[second] = tokens[first]
    pairs = links.checked([[i, j] for i in range(size) for j in range(size) if linked(i, j)], size)
    collection = wikispeedia.Articles("made up", tuple(f"a{i}" for i in range(size)),
                                      tuple(f"title{i}" for i in range(size)),
                                      tuple(" ".join(page) for page in tokens), pairs, "0" * 64, {"articles": size})
    return collection, tokens, np.arange(size)


@pytest.fixture(scope="module")
def data():
    """Articles about nine topics, of which those of one topic link to each other; every tenth is another's twin."""
    return articles(N, 9, lambda i, j: i % 9 == j % 9, twins=[(i, i + 1) for i in range(0, N, 10)], titles=True)


@pytest.fixture(scope="module")
def ring():
    """Articles about six topics in a ring, which link to those of the topics before and after: other words, that is."""
    return articles(60, 6, lambda i, j: (i - j) % 6 in (1, 5), words=100, length=40, seed=3)


@pytest.fixture
def table(monkeypatch, tmp_path):
    """Makes a table of made-up articles."""
    def make(name, data, **changes):
        monkeypatch.setattr(corpora, "articles", lambda source, limit=None: data)
        settings = dataclasses.replace(script.QUICK, **{"ks": (2, 5), "k": 4, "triples": 300,
                                                        "starts": (1.0,), "num_terms": 150, **changes})
        return kit.Table(script.EXPERIMENT.name, name, settings, "quick", script.load(name, settings), tmp_path,
                         kit.Fits(tmp_path / "cache", say=lambda line: None))

    return make


@pytest.fixture
def ring_table(table, ring):
    """Makes a table of the ring."""
    return lambda name: table(name, ring, k=6, num_terms=100, sizes=(60, 10**6), seeds=(0,), boosts=(0.01, 0.1),
                              identities=(1.0,), triples=1000, max_iter=3, adagrad_rates=(0.1,), batch_rates=(3.0,),
                              sgd_rates=(3.0,))


def fill(table, *rows):
    """Records of some rows."""
    paths = [table.fill(row, script.TABLES[table.name].rows[row]) for row in rows]
    return {path.stem: records.read(path) for path in paths}


def pairs(truth, what="relevant"):
    entries = getattr(truth, what).tocoo()
    return {(int(truth.queries[a]), int(b)) for a, b in zip(entries.row, entries.col, strict=True)}


def test_known_links_leave_the_lists_and_none_is_lost(table, data):
    content = table("table1", data).data
    assert sum(part.relevant.nnz for part in content.truth.values()) + len(content.links) == len(data[0].links)
    for part, known in (("dev", content.links), ("test", [*content.links, *pairs(content.truth["dev"])])):
        queries = content.truth[part].queries.tolist()
        assert pairs(content.truth[part], "left_out") == {(i, i) for i in queries} | {
            (a, b) for a, b in np.asarray(known).tolist() if a in queries}


def test_documents_of_one_group_are_in_one_part_and_idf_is_of_training(table, data):
    made = table("table3", data)
    sizes = {part: count["documents"] for part, count in made.loaded.counts["split"].items()}
    content = made.data
    documents = {part: {tuple(row) for row in collection.counts.toarray().tolist()}
                 for part, collection in content.parts.items()}
    assert sum(sizes.values()) == N and not documents["train"] & documents["test"]  # twins have the same words
    assert not documents["dev"] & (documents["train"] | documents["test"])
    assert all(part.num_docs == sizes["train"] for part in content.parts.values())
    assert content.links.max() < sizes["train"]
    assert pairs(content.truth["test"], "left_out") == {(i, i) for i in content.truth["test"].queries.tolist()}


def test_partitioned_links_are_as_many_and_none_is_judged(table, data):
    made = table("table3", data, identities=(1.0,), seeds=(0,))
    content, counts = made.data, made.loaded.counts["split"]
    whole, links = content.partitioned
    assert whole.counts.shape[0] == N and len(links) == counts["train"]["links"]
    rows = {tuple(row): place for place, row in enumerate(whole.counts.toarray().tolist())}  # titles differ
    judged = set()
    for part in ("dev", "test"):
        of_part = [rows[tuple(row)] for row in content.parts[part].counts.toarray().tolist()]
        judged |= {(of_part[a], of_part[b]) for a, b in pairs(content.truth[part])}
    given = {tuple(pair) for pair in links.tolist()}
    assert given <= {tuple(pair) for pair in data[0].links.tolist()} and judged and not given & judged
    held_out = {document for pair in judged for document in pair}
    assert held_out & {document for pair in given for document in pair}
    assert fill(made, "ssi-asym-links")["ssi-asym-links"]["config"]["links"] == len(links)


def test_both_ways_of_a_citation_are_in_one_part(ring_table, ring):
    content = ring_table("cacm").data
    given = {tuple(pair) for pair in content.links.tolist()}
    parts = [given, *(pairs(content.truth[part]) for part in ("dev", "test"))]
    assert set.union(*parts) == {tuple(pair) for pair in ring[0].links.tolist()}
    assert sum(map(len, parts)) == len(ring[0].links) and all(parts)
    for part in parts:
        assert {(b, a) for a, b in part} == part
    mdn = ring_table("mdn").data
    assert {(b, a) for a, b in mdn.links.tolist()} != {tuple(pair) for pair in mdn.links.tolist()}


@pytest.mark.parametrize("kind", ["identity", "diagonal", "without", "only diagonal"])
def test_scores_with_products_kept_are_the_plain_ones(table, data, kind, rng):
    made = table("table1", data)
    whole, truth = made.data.parts["dev"], made.data.truth["dev"]
    weights = [jnp.asarray(rng.normal(size=(whole.df.size, 3)), jnp.float32) for _ in range(2)]
    diagonal = {"identity": jnp.full(whole.df.size, 3.0, jnp.float32), "without": None}.get(
        kind, jnp.asarray(rng.random(whole.df.size), jnp.float32))
    params = bilinear.sides(*([None, None] if kind == "only diagonal" else weights), diagonal)
    sides = [bilinear.encode(side, whole.tfidf, low_rank=whole.cut) for side in params]
    plain = ranking.scores(*sides, truth, half_ties=True)
    for _ in range(2):  # the products are made once
        assert script.dev(made, script.bilinear_model(made, params)) == pytest.approx(plain, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["table1", "table3"])
def test_rows_become_records(table, data, name):
    made = table(name, data)
    rows = ("tfidf", "lsi+tfidf", "title-overlap", "ssi-diag", "ssi-asym", "ssi-asym-d")
    results = fill(made, *rows, *["popularity"] * (name == "table1"))
    assert {len(record["seeds"]) for row, record in results.items() if row.startswith("ssi")} == {2}
    assert results["ssi-asym"]["metrics"]["map"]["mean"] > results["title-overlap"]["metrics"]["map"]["mean"]
    best = max(results["ssi-asym"]["curve"], key=lambda point: point["map"])
    assert {name: results["ssi-asym"]["config"][name] for name in ("identity", "learning_rate")}.items() <= best.items()
    assert results["ssi-diag"]["method_version"] == {"ssi.diagonal": 1}
    settings, whole = made.settings, made.data.parts["train"]
    option = {name: values[0] for name, values in script.diagonals(made).items()}
    kept = script.fit_diagonal(made, **option)
    direct = ssi_diag.fit(whole.tfidf, whole.tfidf, made.data.links, key=jax.random.key(0), known=whole.own,
                          triples=300, max_iter=settings.diag_iter, patience=settings.patience, **option,
                          validate=lambda params: script.dev(made, script.bilinear_model(made, params))["map"])
    np.testing.assert_array_equal(kept.params[0].scale, direct.params[0].scale)


def test_expanded_queries_are_the_loop_over_the_best_documents(table, data):
    made = table("table3", data)
    row = script.expansion(made)
    whole, truth = made.data.parts["test"], made.data.truth["test"]
    cosines = (sparse.to_scipy(whole.tfidf) @ sparse.to_scipy(whole.tfidf).T).toarray()
    for i, query in enumerate(truth.queries[:5].tolist()):
        best = sorted((d for d in range(len(cosines)) if d != query), key=lambda d: -cosines[query, d])
        expected = cosines[query] + row.config["beta"] * sum(cosines[d] for d in best[: row.config["E"]])
        listed = truth.left_out[[i]].toarray()[0] == 0
        value = metrics.average_precision(expected[listed], truth.relevant[[i]].toarray()[0][listed])
        assert row.per_query["map"][i] == pytest.approx(value, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "rows"), [
    ("table1", ("ssi-full", "ssi-full-nodiag", "ssi-sparse-1000", "ssi-sparse-100", "ssi-sparse-10", "ssi-l1")),
    ("table4", ("ssi-sym-50", "ssi-asym-50")),
    ("table2", ("tfidf", "ssi-all", "ssi-top-10k", "two-seeds", "hash-1m", "hash-1m+i", "cfh-2", "cfh-1",
                "cfh-1+2")),
])
def test_more_rows_become_records_with_the_scores_of_their_models(table, data, name, rows):
    seeds = (0, 1) if name == "table2" else (0,)
    made = table(name, data, tops={"10k": 60, "30k": 90}, bigrams=300, seeds=seeds, validated=20)
    few, truth = script.of_few_queries(made).data.truth["dev"], made.data.truth["dev"]
    assert few.queries.size == 20 < truth.queries.size and pairs(few) < pairs(truth)
    results = fill(made, *rows)
    for row, record in results.items():
        assert record["paper"] == f"003 Table {name[-1]}" and 0 < record["metrics"]["map"]["mean"] <= 1, row
        if row.startswith("ssi"):  # by which a start that is returned unchanged is seen
            history = record["fit"]["history"]
            assert history["step"][0] == 0 and all(score is not None for score in history["validation"]), row
            assert record["dev"]["per_seed"][0] == pytest.approx(max(history["validation"]), rel=1e-5), row
            assert len(record["dev"]["per_seed"]) == len(record["seeds"]) and record["seeds"] == list(seeds)
    if name == "table2":
        assert results["hash-1m+i"]["dev"]["grid"][0]["alpha"] == 0.0
        assert results["hash-1m+i"]["fit"]["evaluations"] == results["hash-1m"]["fit"]["evaluations"]
        features = {row: results[row]["config"]["features"] for row in ("cfh-1", "cfh-2", "cfh-1+2")}
        terms = made.data.parts["train"].df.size
        assert features["cfh-1"] == terms - 90 and features["cfh-1+2"] == features["cfh-1"] + features["cfh-2"]
        assert {row: len(record["seeds"]) for row, record in results.items()} == {
            row: 0 if row == "tfidf" else 2 for row in rows}
        best = max(point["map"] for point in results["cfh-1"]["dev"]["grid"])
        assert results["cfh-1"]["dev"]["map"] == pytest.approx(best)


def test_fewer_links_are_among_more_and_lists_stay_the_same(ring_table):
    made = ring_table("training-links")
    every = len(made.data.links)
    assert script.sizes(made) == [60, every]
    given = [{tuple(pair) for pair in script.fewer(made, size).data.links.tolist()} for size in script.sizes(made)]
    assert [len(part) for part in given] == [60, every] and given[0] < given[1]
    few = script.fewer(made, 60)
    assert few.data.truth is made.data.truth and few.settings.triples == round(1000 * (60 / every) ** 0.5)
    queries = set(few.data.truth["test"].queries.tolist())
    assert {pair for pair in given[1] if pair[0] in queries} <= pairs(made.data.truth["test"], "left_out")


def of_table1(table, config):
    """A record of `ssi-asym` in Table 1, from which other rows take their settings."""
    kit.Table(table.experiment, "table1", table.settings, "quick", table.loaded, table.out, table.fits).write(
        "ssi-asym", kit.Row(config, {"map": np.ones(2)}), {})


def test_a_curve_is_one_record_with_the_queries_of_every_size(ring_table):
    made = ring_table("training-links")
    made.settings = dataclasses.replace(made.settings, seeds=(0, 1))
    of_table1(made, {"identity": 1.0, "learning_rate": 0.3})
    results = fill(made, "tfidf", "popularity", "ssi-asym")
    for row, record in results.items():
        assert [point["links"] for point in record["curve"]] == script.sizes(made) and record["paper"] == "003"
        assert record["curve"][-1]["map"] == pytest.approx(record["metrics"]["map"]["mean"]), row
        with np.load(made.path(row).with_suffix(".npz")) as file:
            for point in record["curve"][:-1]:
                assert file[f"map@{point['links']}"].mean() == pytest.approx(point["map"], abs=1e-6), row
    assert len({point["map"] for point in results["tfidf"]["curve"]}) == 1
    asym, tfidf = results["ssi-asym"], results["tfidf"]["metrics"]["map"]["mean"]
    assert asym["curve"][0]["map"] < asym["curve"][-1]["map"] and asym["metrics"]["map"]["mean"] > 2 * tfidf
    assert asym["seeds"] == [0, 1] and results["popularity"]["seeds"] == [] and asym["curve"][0]["identity"] == 1.0


def test_rows_beyond_the_paper_learn_at_the_b_of_table_1(ring_table):
    made = ring_table("table1")
    of_table1(made, {"identity": 1.0, "learning_rate": 0.3})
    rows = ("ssi-asym-adagrad", "ssi-asym-in-batch", "ssi-asym-sgd")
    results = fill(made, "tfidf", *rows)
    for row in rows:
        assert results[row]["config"]["identity"] == 1.0
        assert results[row]["metrics"]["map"]["mean"] > 2 * results["tfidf"]["metrics"]["map"]["mean"], row
    for row in ("ssi-asym-in-batch", "ssi-asym-sgd"):
        assert results[row]["config"]["batch"] == made.settings.batch
    assert results["ssi-asym-sgd"]["method_version"] == {"ssi.sgd": 1}


def test_a_full_run_in_another_folder_takes_what_published_records_have_chosen(ring_table, tmp_path, monkeypatch):
    made = ring_table("table1")
    monkeypatch.setattr(kit, "RESULTS", tmp_path / "published")
    place = kit.RESULTS / made.experiment / "table1"
    place.mkdir(parents=True)
    (place / "ssi-asym-b1.json").write_text("{}")
    monkeypatch.setattr(kit.records, "read", lambda path: {"config": {"identity": 1.0, "learning_rate": 0.1}})
    usual = {"identity": 10.0, "learning_rate": 0.03}
    assert script.chosen_in(made, "ssi-asym-b1") == usual  # a quick one does not
    monkeypatch.setattr(made, "preset", "full")
    assert script.chosen_in(made, "ssi-asym-b1") == {"identity": 1.0, "learning_rate": 0.1}
    assert script.chosen_in(made, "ssi-asym") == usual


def test_the_claims_name_rows_of_their_tables():
    for claim in script.CLAIMS:
        for name in claim.tables:
            rows = script.TABLES[name].rows
            assert {claim.better, claim.worse} <= rows.keys(), (claim.id, name)
        assert set(claim.equal_rows or ()) <= script.TABLES[claim.tables[0]].rows.keys(), claim.id
        difference = claim.printed[claim.better] - claim.printed[claim.worse]
        assert claim.holds or (difference < 0 if claim.lower else difference > 0), claim.id


def test_words_stand_beside_those_that_share_most_articles_with_them(table, data, monkeypatch):
    made = table("dice", data)
    sets = [set(words) for words in made.data.tokens]
    known = sorted({word for words in sets for word in words})
    texts = [f" {' '.join(words)} " for words in made.data.tokens]
    word = next(word for word in known if sum(word in words for words in sets) > 2)
    gram = next(gram for gram in script.bigrams(made.data.tokens)[0] if sum(f" {gram} " in text for text in texts) > 1)
    monkeypatch.setattr(script, "EXAMPLES", {"words": (word, "nowhere"), "2-grams": (gram,)})
    for kind, inside in (("words", [word in words for words in sets]),
                         ("2-grams", [f" {gram} " in text for text in texts])):
        lines = records.read(made.fill(kind, script.TABLES["dice"].rows[kind]))["measurements"]
        assert [line["name"] for line in lines] == list(script.EXAMPLES[kind])
        assert lines[0]["value"] == sum(inside) > 1 and lines[0]["unit"] == "articles"
        named = [word.split() for word in lines[0]["note"].split(", ")]
        dice = {other: 2 * sum(a and other in b for a, b in zip(inside, sets, strict=True))
                / (sum(inside) + sum(other in b for b in sets)) for other in known if other != word or kind != "words"}
        best = sorted(dice.values())[:-6:-1]
        assert [float(value) for _, value in named] == pytest.approx(best, abs=0.006)
        assert [dice[other] for other, _ in named] == pytest.approx(best)
    lines = records.read(made.path("words"))["measurements"]
    assert lines[1] == {"name": "nowhere", "value": 0, "unit": "articles"}


def test_scores_by_a_function_of_rows_are_those_of_the_matrix(table, data):
    made = table("table1", data)
    matrix, truth = made.data.exact("test"), made.data.truth["test"]
    by_function = corpora.per_query(truth, lambda rows: matrix[rows])
    vectors = Vectors(sparse=made.data.parts["test"].tfidf)
    plain = ranking.per_query(vectors, vectors, truth, half_ties=True)
    for name, values in corpora.per_query(truth, matrix).items():
        np.testing.assert_array_equal(values, by_function[name])
        np.testing.assert_allclose(values, plain[name], atol=1e-12)
