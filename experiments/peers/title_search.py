"""Search trained on nothing but the searched documents' own titles, beside what one would use instead.

Five test collections. Every system sees the documents alone: pairs of title and text (NPL and NFCorpus have no titles:
the first third of the words and the rest). Judged queries are used once, to measure: MAP, nDCG@10, MRR and P@10. What
is chosen is chosen by held-out titles (for `lsa`, by all titles). The defaults of the search (agreement of the
dimensions, half of the score from BM25, how the halves are measured, BM25's settings, and those of the second search)
were settled on Cranfield and CACM, with their queries in view; CISI, NPL and NFCorpus took no part.

Two collections of articles that link to each other, Wikispeedia and the English pages of MDN, are searched too: an
article asks for those that it links to, itself left out; no link is seen in training (1,000 articles that have links,
evenly spaced, are the queries).

Rows: `bm25` (stems; stop words of a query count a fifth), `tfidf` and `lsa` of scikit-learn with its stop words,
`opca` (the dimension that held-out titles choose, cosine alone), `opca-r` (all dimensions weighed by their agreement,
cosine alone), `opca-search`, what `jaxsim train --method opca --dim 600 --min-df 1` and `jaxsim search` give (words
learn with their n-grams; `opca-words` is the same with `--subwords 0`, `opca-feedback` with `jaxsim search --feedback
3`, a second search for what the three best documents of the first have in common with the query), and `tuned-search`:
`jaxsim train --tune --budget 5m`, whose choice depends on the speed of the machine, and on what else runs on it
(`tuned-for-search`: with `--tune-for search`: held-out titles lose the words that are in their texts too; the idea was
tried on Cranfield and CACM, with their queries in view). `static-embedding` is StaticEmbedding of
sentence-transformers, trained on the same pairs in the loop of `experiments.peers.static`, its rate, its batch and the
scale of its loss chosen by the same held-out titles, one step at a time until no step is better, with five seeds
(needs `pip install -e '.[peers]'`; the records of Wikispeedia and MDN are older: the scale as the library has it, 20,
though a smaller one may be better for it, and one seed). Which titles are held out, and so the agreement, depends on a
seed: `opca-r`, `opca-search`, `opca-words` and `opca-feedback` have five. Expected: `opca-search` above `opca-words`
and below `opca-feedback`, and `opca-search`, `opca-feedback`, `tuned-search` and `tuned-for-search` above each of
`bm25`, `tfidf`, `lsa` and `static-embedding`, in MAP by a paired t test: the lower end of the difference's 95 %
interval is at least 0. The report makes these tests, of the records that are there. `opca-best-k` takes the dimension
that **the judged queries themselves** like best: no rival, but what choosing without judgements (`opca-r`) is to be
measured by; expected within .01 of it.

    JAXSIM_DATA=/path/to/corpora python -m experiments.peers.title_search --preset full
    python -m experiments.peers.title_search --preset quick --out /tmp/quick

Time: quick half a minute on two cores; full some hours on one, of which `opca-search` and `opca-words` take 2 to 15
minutes a table (Wikispeedia 65), each `tuned` row 5 to 20, and `static-embedding` up to an hour and more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from experiments import kit
from jaxsim.data import pairs
from jaxsim.data.corpora import classic, mdn_links, nfcorpus, wikispeedia
from jaxsim.data.pairs import Pairs
from jaxsim.evaluate import metrics
from jaxsim.methods import opca, projections
from jaxsim.model import Model, index, ranker
from jaxsim.model.bm25 import K1, STOP, B, weigh
from jaxsim.train import Settings as TrainSettings
from jaxsim.train import budget, training


@dataclass(frozen=True)
class Settings:
    """What a preset fixes.

    Attributes:
      dim: Dimensions of OPCA; fewer where the pairs support no more.
      ks: Dimensions that held-out titles choose among, for `opca`.
      lsa_ks: Dimensions that titles choose among, for `lsa`.
      subwords: Share of a word's weight that goes to its n-grams.
      limit: Pairs to train on; None for all.
      seconds: Budget of `tuned-search`.
      tried: Dimensions of `opca-best-k`.
      asked: Queries of collections of links, at most.
      rates: Learning rates of `static-embedding`.
      batches: Pairs a batch of it; all of them where there are no more.
      scales: Of the cosines in its loss.
      epochs: Of it, at most.
      seeds: Of the titles that are held out, for `opca-r` and the rows of searches, and of `static-embedding`.
    """

    dim: int = 600
    ks: tuple[int, ...] = (50, 100, 200, 300, 600)
    subwords: float = 0.5
    limit: int | None = None
    seconds: float = 300.0
    tried: tuple[int, ...] = (10, 25, 50, 75, 100, 150, 200, 300, 400, 500, 600)
    asked: int = 1000
    rates: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
    batches: tuple[int, ...] = (128, 512)
    scales: tuple[float, ...] = (20.0,)
    epochs: int = 40
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    lsa_ks: tuple[int, ...] = (50, 100, 200, 300, 600, 1000, 1500, 2000, 3000, 4000)


INSTEAD = ("bm25", "tfidf", "lsa", "static-embedding")
"""What one would use instead: our searches are expected ahead of it."""
FEEDBACK = 3
"""Documents that the second search of `opca-feedback` is also after."""
FULL = Settings()
QUICK = Settings(dim=30, ks=(10, 30), subwords=0.0, limit=300, seconds=5.0, tried=(5, 10, 20, 30), asked=50,
                 rates=(0.03,), batches=(128,), epochs=2, seeds=(0,), lsa_ks=(10, 30))
OF_TESTS = replace(FULL, rates=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0), epochs=300,
                   batches=(16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384),
                   scales=(2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0))
"""Of the test collections. The others have millions of words, and one training of `static-embedding` takes minutes."""
LINKED = {"wikispeedia": wikispeedia.load, "mdn": mdn_links.english}
"""Collections whose queries are articles, and whose relevant documents are those that these link to."""


@dataclass(frozen=True, eq=False)
class Task:
    """A collection as rows see it: texts, the queries, ``[queries, documents]`` grades, and pairs to train on.

    ``itself`` is the row of the document that is the query, for queries that are documents.
    """

    pairs: Pairs
    documents: list[str]
    queries: list[str]
    grades: np.ndarray
    itself: np.ndarray | None = None


def load(name: str, settings: Settings) -> kit.Data:
    """A collection; rows see a `Task`."""
    if name in LINKED:
        return linked(name, settings)
    if name == "nfcorpus":
        found = nfcorpus.load()
        asked, qrels = found.queries["test"], found.qrels["test"]
        cut = {key: _thirds(text) for key, text in found.documents.items()}
        made = pairs.make("nfcorpus", list(cut), *zip(*cut.values(), strict=True), languages=("en", "en"))
    else:
        found = classic.load(name)
        asked, qrels, made = found.queries, found.qrels, found.pairs
    column = {key: place for place, key in enumerate(found.documents)}
    grades = np.zeros((len(asked), len(column)))
    for row, query in enumerate(asked):
        for document, grade in qrels[query].items():
            grades[row, column[document]] = grade
    made = made.take(range(min(len(made), settings.limit or len(made))))
    task = Task(made, list(found.documents.values()), list(asked.values()), grades)
    return kit.Data(task, name=found.name, sha256=found.sha256, counts=found.counts, paper="none",
                    differs="substitute: no paper's data, a public test collection")


def linked(name: str, settings: Settings) -> kit.Data:
    """A collection of articles and their links; rows see a `Task`."""
    found = LINKED[name]()
    sources = np.unique(found.links[:, 0])
    chosen = sources[np.linspace(0, len(sources) - 1, min(settings.asked, len(sources))).astype(int)]
    grades = np.zeros((len(chosen), len(found.texts)))
    for row, source in enumerate(chosen):
        grades[row, found.links[found.links[:, 0] == source, 1]] = 1
    titled = [(key, title, _untitled(title, text))
              for key, title, text in zip(found.ids, found.titles, found.texts, strict=True)]
    titled = [one for one in titled if all(any(map(str.isalnum, side)) for side in one[1:])]
    made = pairs.make(name, *zip(*titled, strict=True), languages=("en", "en"))
    made = made.take(range(min(len(made), settings.limit or len(made))))
    task = Task(made, list(found.texts), [found.texts[row] for row in chosen], grades, chosen)
    return kit.Data(task, name=found.name, sha256=found.sha256, counts={**found.counts, "queries": len(chosen)},
                    paper="none", differs="substitute: no paper's data, public articles and their links")


def _untitled(title: str, text: str) -> str:
    """An article without the line that is its title."""
    first, _, rest = text.lstrip().partition("\n")
    return rest if first.strip() == title else text


def _thirds(text: str) -> tuple[str, str]:
    words = text.split()
    third = -(-len(words) // 3)
    return " ".join(words[:third]), " ".join(words[third:])


def measured(task: Task, scores: np.ndarray) -> dict[str, np.ndarray]:
    """Values of every query. Equal scores keep the order of the documents; the query's own document comes last."""
    relevant = task.grades > 0
    if task.itself is not None:
        scores = np.array(scores)
        scores[np.arange(len(scores)), task.itself] = -np.inf
    order = np.argsort(-scores, axis=1, kind="stable")
    first = np.argmax(np.take_along_axis(relevant, order, axis=1), axis=1)
    return {"map": np.asarray(metrics.average_precision(scores, relevant)), "mrr": 1.0 / (1 + first),
            "ndcg@10": np.asarray(metrics.ndcg(scores, task.grades, k=10)),
            "p@10": np.asarray(metrics.precision_at(scores, relevant, k=10))}


def by_bm25(table: kit.Table) -> kit.Row:
    """BM25 over stems, with the documents' own statistics. No setting."""
    words = weigh(table.data.documents)
    scores = (words.counts(table.data.queries) @ words.weights.T).toarray()
    return kit.Row({"k1": K1, "b": B, "stop": STOP}, measured(table.data, scores))


def vectorizer(table: kit.Table):
    """TfidfVectorizer of scikit-learn, fitted on the documents: sublinear tf, English stop words."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    def fit():
        program = TfidfVectorizer(sublinear_tf=True, stop_words="english", dtype=np.float32)
        return program, program.fit_transform(table.data.documents)

    return table.once("tfidf", fit)


def by_tfidf(table: kit.Table) -> kit.Row:
    """Cosines of tf·idf. No setting."""
    program, rows = vectorizer(table)
    scores = (program.transform(table.data.queries) @ rows.T).toarray()
    return kit.Row({"sublinear_tf": True}, measured(table.data, scores))


def by_lsa(table: kit.Table) -> kit.Row:
    """TruncatedSVD of the tf·idf. Chosen: the dimension, by MRR over all titles and their texts (none held out)."""
    from sklearn.decomposition import TruncatedSVD

    program, rows = vectorizer(table)
    ks = [k for k in table.settings.lsa_ks if k < min(rows.shape)]
    svd = TruncatedSVD(max(ks), random_state=0).fit(rows)
    left, right = (svd.transform(program.transform(side)) for side in (table.data.pairs.left, table.data.pairs.right))

    def mrr(k: int) -> float:
        cosines = _unit(left[:, :k]) @ _unit(right[:, :k]).T
        return float(np.mean(1.0 / (cosines >= np.diag(cosines)[:, None]).sum(axis=1)))

    choice = kit.choose([{"k": k} for k in ks], mrr, by="mrr", split="dev")
    k = choice.best["k"]
    both = svd.transform(program.transform(table.data.queries)), svd.transform(rows)
    scores = _unit(both[0][:, :k]) @ _unit(both[1][:, :k]).T
    return kit.Row(choice.best, measured(table.data, scores), curve=choice.tried, dev={"mrr": choice.score})


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)


def learned(table: kit.Table, seed: int, subwords: float | None = None) -> Model:
    """OPCA of the pairs as `jaxsim train` learns it; a tenth of the pairs, by the seed, is held out."""
    share = table.settings.subwords if subwords is None else subwords
    settings = TrainSettings(method="opca", dim=table.settings.dim, subwords=share, min_df=1, seed=seed)
    return training.train(table.data.pairs, settings)


def model(table: kit.Table) -> Model:
    """That of seed 0."""
    return table.once("opca", lambda: learned(table, 0))


def of_seeds(table: kit.Table) -> list[dict]:
    """What both rows with seeds need of each model, which is not kept: one has up to some hundred MB."""

    def make(seed: int) -> dict:
        trained = model(table) if seed == 0 else learned(table, seed)
        return {"k": trained.dim, "mrr": trained.training["dev"]["mrr"], "seconds": trained.training["seconds"],
                "opca-r": measured(table.data, searched(table, trained, terms=0.0)),
                "opca-search": measured(table.data, searched(table, trained)),
                "opca-feedback": measured(table.data, searched(table, trained, feedback=FEEDBACK))}

    return table.once("seeds", lambda: [make(seed) for seed in table.settings.seeds])


def searched(table: kit.Table, trained: Model, **how) -> np.ndarray:
    """``[queries, documents]`` scores of `ranker.rank`."""
    both = index.encode(trained, table.data.documents, bm25=True)
    itself = None if table.data.itself is None else table.data.itself[:, None]
    found, rows = ranker.rank(trained, both, table.data.queries, k=len(table.data.documents), exclude=itself, **how)
    scores = np.zeros_like(table.data.grades)
    np.put_along_axis(scores, rows, found.astype(np.float64), axis=1)
    return scores


def by_opca(table: kit.Table) -> kit.Row:
    """Cosines of OPCA at the dimension with the best MRR of held-out titles."""
    whole = model(table)
    dev = training.split(training.mates.read(table.data.pairs), 0.1, TrainSettings(), training.Grades(None, None),
                         lambda message: None).dev

    def cut(k: int) -> Model:
        return replace(whole, params=projections.truncate(whole.params, k), agreement=None)

    def mrr(k: int) -> float:
        shorter = cut(k)
        return training.mates.scores(shorter.vectors(dev.left, side="query"), shorter.vectors(dev.right))["mrr"]

    choice = kit.choose([{"k": k} for k in table.settings.ks if k <= whole.dim], mrr, by="mrr", split="dev")
    scores = searched(table, cut(**choice.best), terms=0.0)
    return kit.Row(choice.best, measured(table.data, scores), curve=choice.tried, dev={"mrr": choice.score},
                   methods=[opca])


def by_best(table: kit.Table) -> kit.Row:
    """Cosines of OPCA at the dimension that the judged queries like best. Seen on test: what a choice could reach."""
    whole = model(table)

    def values(k: int) -> dict[str, np.ndarray]:
        shorter = replace(whole, params=projections.truncate(whole.params, k), agreement=None)
        return measured(table.data, searched(table, shorter, terms=0.0))

    tried = {k: values(k) for k in table.settings.tried if k <= whole.dim}
    maps = {k: float(found["map"].mean()) for k, found in tried.items()}
    best = max(maps, key=maps.get)
    return kit.Row({"k": best}, tried[best], methods=[opca],
                   curve=[{"k": k, "map": value, "split": "test"} for k, value in maps.items()],
                   comparisons=[kit.compared("opca-r", "opca-best-k", "map", at_least=-0.01)],
                   notes=["The dimension is the one that the test queries like best: how far a choice could reach."])


def by_static(table: kit.Table) -> kit.Row:
    """Cosines of StaticEmbedding, trained on the same pairs; its settings by the MRR of the same held-out titles."""
    from experiments.peers import static

    settings = table.settings
    held = training.split(training.mates.read(table.data.pairs), 0.1, TrainSettings(), training.Grades(None, None),
                          lambda message: None)
    train = table.data.pairs.take(held.rows)

    given = static.tokens(train.left, train.right)
    asked, texts = given.of(held.dev.left), given.of(held.dev.right)

    def mrr(system: static.Static) -> float:
        cosines = _unit(system.embed(asked)) @ _unit(system.embed(texts)).T
        own = np.diag(cosines)
        return float(np.mean([1.0 / (way >= own[:, None]).sum(axis=1) for way in (cosines, cosines.T)]))

    def fit(seed: int = 0, **option) -> static.Static:
        return static.train(given, k=300, epochs=settings.epochs, patience=10, warm_up=4, both_ways=True, validate=mrr,
                            seed=seed, **option)

    ladders = {"rate": settings.rates, "batch_size": settings.batches, "scale": settings.scales}
    choice = kit.climb(ladders, lambda **option: mrr(fit(**option)), by="mrr", split="dev")
    values, seconds = [], []
    for seed in settings.seeds:
        system = fit(seed, **choice.best)
        scores = _unit(system.encode(table.data.queries)) @ _unit(system.encode(table.data.documents)).T
        values.append(measured(table.data, scores))
        seconds.append(system.seconds)
    spent = {"name": "training from raw texts", "value": float(np.median(seconds)), "unit": "s"}
    # A batch of all pairs, beyond which there is none, has their number, which is none of the ladder's.
    config = {"k": 300, **choice.best, "batch_size": min(choice.best["batch_size"], len(train))}
    return kit.Row(config, values, measurements=[spent], seeds=settings.seeds,
                   dev={"grid": choice.tried, "mrr": choice.score})


def by_agreement(table: kit.Table) -> kit.Row:
    """Cosines of all dimensions, weighed by their agreement on held-out titles. No setting."""
    every = of_seeds(table)
    return kit.Row({"k": every[0]["k"], "power": 1.0}, [one["opca-r"] for one in every], methods=[opca],
                   seeds=table.settings.seeds, dev={"mrr": _mean(every, "mrr")})


def by_both(table: kit.Table) -> kit.Row:
    """The search as it is by default: agreement, and half of the score from BM25. No setting."""
    every = of_seeds(table)
    values = [one["opca-search"] for one in every]
    config = {"k": every[0]["k"], "power": 1.0, "terms": ranker.TERMS}
    spent = {"name": "training from raw texts", "value": _mean(every, "seconds"), "unit": "s"}
    return kit.Row(config, values, methods=[opca], seeds=table.settings.seeds, measurements=[spent],
                   comparisons=ahead("opca-search"), dev={"mrr": _mean(every, "mrr")})


def by_feedback(table: kit.Table) -> kit.Row:
    """The search by default, and a second one that is also after the best documents of the first. No setting."""
    every = of_seeds(table)
    values = [one["opca-feedback"] for one in every]
    config = {"k": every[0]["k"], "power": 1.0, "terms": ranker.TERMS, "feedback": FEEDBACK}
    return kit.Row(config, values, methods=[opca], seeds=table.settings.seeds,
                   comparisons=[*ahead("opca-feedback", "opca-search"), *ahead("opca-feedback")],
                   dev={"mrr": _mean(every, "mrr")})


def _mean(every: Sequence[dict], name: str) -> float:
    return float(np.mean([one[name] for one in every]))


def by_words(table: kit.Table) -> kit.Row:
    """The search by default, but without n-grams of words. No setting."""
    made = (learned(table, seed, subwords=0.0) for seed in table.settings.seeds)
    every, values = zip(*((one.training, measured(table.data, searched(table, one))) for one in made), strict=True)
    spent = {"name": "training from raw texts", "value": _mean(every, "seconds"), "unit": "s"}
    config = {"k": table.settings.dim, "power": 1.0, "terms": ranker.TERMS, "subwords": 0.0}
    return kit.Row(config, values, methods=[opca], seeds=table.settings.seeds, measurements=[spent],
                   comparisons=ahead("opca-search", "opca-words"),
                   dev={"mrr": _mean([one["dev"] for one in every], "mrr")})


def by_tuned_for_search(table: kit.Table) -> kit.Row:
    """As `by_tuned`, but the held-out titles have lost the words that are in their texts too."""
    return by_tuned(table, "tuned-for-search", by="apart")


def by_tuned(table: kit.Table, row: str = "tuned-search", by: str = "mrr") -> kit.Row:
    """The search by default, of a model whose method and settings held-out titles choose within a budget of time."""
    settings, tried = budget.search(table.data.pairs, seconds=table.settings.seconds, by=by)
    trained = training.train(table.data.pairs, settings)
    values = measured(table.data, searched(table, trained))
    config = {name: getattr(settings, name) for name in budget.FREE} | {"terms": ranker.TERMS}
    spent = {"name": "training with what was chosen, from raw texts", "value": trained.training["seconds"], "unit": "s"}
    return kit.Row(config, values, comparisons=ahead(row), measurements=[spent],
                   dev={"mrr": trained.training["dev"]["mrr"], "grid": tried})


def ahead(row: str, *others: str) -> list[dict]:
    """That a row is expected ahead of others in MAP, and not by chance; of what one would use instead unless given."""
    return [kit.compared(row, other, "map", at_least=0.0, by="lower end") for other in others or INSTEAD]


ROWS: dict[str, Callable] = {"bm25": by_bm25, "tfidf": by_tfidf, "lsa": by_lsa, "opca": by_opca,
                             "opca-r": by_agreement, "opca-search": by_both, "opca-words": by_words,
                             "opca-feedback": by_feedback,
                             "opca-best-k": by_best,
                             "tuned-search": by_tuned, "tuned-for-search": by_tuned_for_search,
                             "static-embedding": by_static}
SEEDED = {"opca-r", "opca-search", "opca-words", "opca-feedback"}


def read(row: str) -> set[str]:
    """The settings that a row reads."""
    if row == "static-embedding":
        return {"limit", "asked", "rates", "batches", "scales", "epochs", "seeds"}
    if row == "lsa":
        return {"limit", "asked", "lsa_ks"}
    apart = {"rates", "batches", "scales", "epochs", "lsa_ks"} | (set() if row in SEEDED else {"seeds"})
    return {one.name for one in fields(Settings)} - apart


TABLES = {name: kit.Plan(ROWS, {"quick": QUICK, "full": FULL if name in LINKED else OF_TESTS},
                         on_request=("quick",) * (name != "cranfield"),
                         rows_on_request=("tuned-search", "tuned-for-search", "static-embedding"),
                         reads={row: read(row) for row in ROWS}, seen=name in ("cranfield", "cacm"))
          for name in (*classic.COLLECTIONS, "nfcorpus", *LINKED)}
EXPERIMENT = kit.Experiment("title_search", __doc__, load, TABLES, shown=tuple(TABLES))

if __name__ == "__main__":
    kit.run(EXPERIMENT)
