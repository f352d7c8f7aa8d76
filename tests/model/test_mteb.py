"""Models in mteb: its protocols, a task whose texts are in memory, and figures equal to our own."""

from __future__ import annotations

import numpy as np
import pytest

from jaxsim.data import MissingCorpus, docstrings, nfcorpus, pairs
from jaxsim.evaluate import trec
from jaxsim.methods.ssi.bilinear import Bilinear
from jaxsim.model import Model, index, ranker
from jaxsim.model.mteb import Encoder, Search
from jaxsim.train import Settings, training


@pytest.fixture(scope="module")
def library():
    return pytest.importorskip("mteb", reason="mteb is not installed (pip install 'jaxsim-text[mteb]')")


@pytest.fixture(scope="module")
def model():
    return training.train(docstrings.load().take(range(200)), Settings(method="opca", dim=20))


def task(library, name, documents, queries, qrels):
    """A task of retrieval on these texts; nothing is fetched."""
    from datasets import Dataset
    from mteb.abstasks.retrieval import AbsTaskRetrieval

    class Own(AbsTaskRetrieval):
        metadata = library.TaskMetadata(
            name=name, description=name, reference=None, type="Retrieval", category="t2t", modalities=["text"],
            eval_splits=["test"], eval_langs=["eng-Latn"], main_score="ndcg_at_10", date=None, domains=None,
            task_subtypes=None, license=None, annotations_creators=None, dialect=None, sample_creation=None,
            bibtex_citation=None, dataset={"path": "none", "revision": "none"},
        )

        def load_data(self, *args, **kwargs):
            self.dataset = {"default": {"test": {
                "corpus": Dataset.from_list([{"id": key, "title": "", "text": one} for key, one in documents.items()]),
                "queries": Dataset.from_list([{"id": key, "text": text} for key, text in queries.items()]),
                "relevant_docs": {key: dict(grades) for key, grades in qrels.items()}, "top_ranked": None,
            }}}
            self.data_loaded = True

    return Own()


def by_mteb(library, adapter, own):
    result = library.evaluate(adapter, own, cache=None, co2_tracker=False, encode_kwargs={"show_progress_bar": False})
    return result.task_results[0].scores["test"][0]


def by_ours(model, documents, queries, qrels, **way):
    names = list(documents)
    both = index.encode(model, list(documents.values()), bm25=True)
    scores, rows = ranker.rank(model, both, list(queries.values()), k=min(trec.DEPTH, len(names)), **way)
    run = {query: trec.ranked({names[row]: float(score) for score, row in zip(*pair, strict=True)})
           for query, *pair in zip(queries, scores, rows, strict=True)}
    return {name: values.mean() for name, values in trec.scores(run, qrels).items()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", [{}, {"terms": 0.0}, {"terms": 0.3, "power": 0.0}])
def test_a_task_in_memory_is_searched_as_we_search(library, model, way):
    some = docstrings.load().take(range(200, 300))
    documents, queries = dict(zip(some.ids, some.right, strict=True)), dict(zip(some.ids, some.left, strict=True))
    qrels = {key: {key: 1} for key in some.ids}
    result = by_mteb(library, Search(model, **way), task(library, "OwnTexts", documents, queries, qrels))
    ours = by_ours(model, documents, queries, qrels, **way)
    assert 0.2 < ours["ndcg@10"] < 1
    assert result["ndcg_at_10"] == pytest.approx(ours["ndcg@10"], abs=1e-4)
    assert result["map_at_1000"] == pytest.approx(ours["map"], abs=1e-4)


@pytest.mark.filterwarnings("ignore")
def test_vectors_alone_are_compared_by_their_cosine(library, model, tmp_path):
    some = docstrings.load().take(range(200, 260))
    documents, queries = dict(zip(some.ids, some.right, strict=True)), dict(zip(some.ids, some.left, strict=True))
    qrels = {key: {key: 1} for key in some.ids}
    model.save(tmp_path / "own")
    encoder = Encoder(tmp_path / "own")
    assert isinstance(encoder, library.EncoderProtocol) and not isinstance(encoder, library.SearchProtocol)
    assert isinstance(Search(model), library.SearchProtocol)
    assert encoder.mteb_model_meta.name == "jaxsim/own" and encoder.mteb_model_meta.embed_dim == 20
    result = by_mteb(library, encoder, task(library, "OwnVectors", documents, queries, qrels))
    ours = by_ours(model, documents, queries, qrels, terms=0.0, power=0.0)
    assert result["ndcg_at_10"] == pytest.approx(ours["ndcg@10"], abs=1e-4)


@pytest.mark.programs
@pytest.mark.filterwarnings("ignore")
def test_nfcorpus_has_the_same_ndcg(library):
    try:
        result = nfcorpus.load()
    except MissingCorpus as missing:
        pytest.skip(str(missing))
    texts = list(result.documents.items())[:600]
    halves = [(key, text[: len(text) // 2], text[len(text) // 2 :]) for key, text in texts]
    model = training.train(pairs.make("halves", *zip(*halves, strict=True), languages=("en", "en")),
                           Settings(method="opca", dim=50))
    documents, queries, qrels = result.documents, result.queries["test"], result.qrels["test"]
    theirs = by_mteb(library, Search(model), task(library, "OwnNfcorpus", documents, queries, qrels))
    ours = by_ours(model, documents, queries, qrels)
    assert ours["ndcg@10"] > 0.2
    assert theirs["ndcg_at_10"] == pytest.approx(ours["ndcg@10"], abs=1e-4)


def test_some_documents_alone_are_ordered_and_refusals_name_what_is_wrong(model):
    search = Search(model, name="own")
    with pytest.raises(ValueError, match="search: expected documents, by index"):
        search.search([{"id": "q", "text": "array"}], top_k=1)
    search.index([{"id": str(row), "text": text} for row, text in enumerate(["sort an array", "array", "a file"])])
    result = search.search([{"id": "q", "text": "array"}], top_k=3, top_ranked={"q": ["0", "2"]})["q"]
    assert set(result) == {"0", "2"} and result["0"] > result["2"]
    assert set(search.search([{"id": "q", "text": "array"}], top_k=1)["q"]) == {"1"}
    few = search.search([{"id": "q", "text": "xyzzy"}, {"id": "p", "text": "array"}], top_k=3,
                        top_ranked={"q": ["0", "2"], "p": ["1"]})  # fmt: skip
    assert few["q"] == search.search([{"id": "q", "text": "xyzzy"}], top_k=3)["q"] == {} and set(few["p"]) == {"1"}
    words = Search(model, terms=1.0)
    words.index([{"id": str(row), "text": text} for row, text in enumerate(["sort an array", "a file"])])
    assert words.search([{"id": "q", "text": "array"}], top_k=2)["q"]["1"] == 0
    with pytest.raises(ValueError, match="queries: expected texts"):
        search.search([{"id": "q", "text": [{"role": "user"}]}], top_k=1)
    with pytest.raises(ValueError, match="options: expected some of terms, words, power, feedback, got beta"):
        Search(model, beta=1)
    with pytest.raises(ValueError, match="model: expected one with a projection"):
        Encoder(Model(model.vocabulary, None))
    side = Bilinear(np.ones((len(model.vocabulary), 2), np.float32), np.zeros(len(model.vocabulary), np.float32))
    with pytest.raises(ValueError, match=r"model: expected one whose vectors are compared by their cosine \(or S"):
        Encoder(Model(model.vocabulary, (side, side)))
    batches = [{"text": ["sort an array"]}, {"text": ["a file", "§"]}]
    vectors = Encoder(model).encode(batches, prompt_type="query")
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 1, 0], atol=1e-6)
    np.testing.assert_allclose(Encoder(model).similarity_pairwise(vectors, vectors), [1, 1, 0], atol=1e-6)
