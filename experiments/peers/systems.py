"""The systems that `peers` sets side by side, each from raw texts to scores, each tuned on dev.

jaxsim's systems are `training.train` and `Model`, as a user has them. The others are used as their documentation shows;
each is optional, and `MissingPeer` says which is not installed.
"""

from __future__ import annotations

import functools
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from experiments.corpora.rankings import Data, Ranking
from experiments.kit.measure import installed
from jaxsim.model import Model
from jaxsim.train import Settings, training

Scores = Callable[[Ranking], tuple[np.ndarray, np.ndarray | None]]


class MissingPeer(ImportError):
    """A program to compare with is not installed."""


@dataclass(eq=False)
class System:
    """A trained system and how it came about.

    Attributes:
      scores: of a ranking: ``[n, m]``, and ``[m, n]`` the other way round where mates are asked both ways.
      seconds: of the chosen training, from raw texts, choosing settings not counted.
      config: the chosen settings.
      tried: every setting with its dev score.
      curve: dev score after so many seconds, for what is trained step by step.
      encode: texts -> vectors, where there are any.
      save: writes the system into a folder.
      told: where its optimiser began, was best and ended, by the score that it stops by.
    """

    scores: Scores
    seconds: float
    config: dict
    tried: list[dict] = field(default_factory=list)
    curve: list[dict] = field(default_factory=list)
    encode: Callable[[Sequence[str]], np.ndarray] | None = None
    save: Callable[[Path], object] | None = None
    told: dict = field(default_factory=dict)

    def size(self) -> int | None:
        """Bytes of the saved system."""
        if self.save is None:
            return None
        with tempfile.TemporaryDirectory() as folder:
            self.save(Path(folder) / "system")
            return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


@dataclass(frozen=True)
class Sizes:
    """What a preset fixes.

    StaticEmbedding stops after ``patience`` epochs without a better dev score. With 4, the MRR of NFCorpus's 325 dev
    queries, which goes up and down by chance, once ended it after 20 seconds. Records so far tried rates up to .1.
    """

    k: int
    epochs: int
    patience: int
    limit: int | None
    rates: tuple[float, ...]
    batches: tuple[int, ...]
    gammas: tuple[float, ...]
    noises: tuple[float, ...]
    starts: tuple[float, ...] = (1e-4, 1e-2)
    dfs: tuple[int, ...] = (2, 1)  # texts that a word must occur in
    mixes: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8)
    shares: tuple[float, ...] = (0.5, 0.75)  # of a word that its n-grams are, beside none
    distills: tuple[float, ...] = (0.3, 0.6)  # of bare terms in what S2Net is distilled to, beside none


FULL = Sizes(k=300, epochs=40, patience=10, limit=None, rates=(0.01, 0.03, 0.1, 0.3, 1.0), batches=(128, 512),
             gammas=(5.0, 10.0, 20.0), noises=(1e-4, 1e-3, 1e-2))
WIDE = replace(FULL, k=1024, batches=(128,), gammas=(10.0,), noises=(1e-4,))
"""The dimension of sentence-transformers' own static models; around what is chosen at 300, which takes hours less."""
QUICK = Sizes(k=20, epochs=2, patience=2, limit=300, rates=(0.01,), batches=(64,), gammas=(10.0,), noises=(1e-4,),
              starts=(1e-4,), dfs=(2,), shares=(0.5,), distills=(0.5,))


def dev_score(data: Data, scores: Scores) -> float:
    """What dev chooses by."""
    return float(data.dev.scores(*scores(data.dev))[data.metric].mean())


def best(data: Data, options: Sequence[dict], make: Callable[..., System]) -> System:
    """The option with the best dev score; the first of equals."""
    chosen, top, tried = None, -1.0, []
    for option in options:
        system = make(**option)
        score = dev_score(data, system.scores)
        tried.append({**option, "dev": score, **system.told})
        if score > top:
            chosen, top = system, score
    chosen.tried = tried
    if chosen.seconds and not chosen.curve:  # ready all at once, or stopped by another score than dev's
        chosen.curve = [{"seconds": chosen.seconds, data.metric: top, "split": "dev"}]
    return chosen


def dense(ranking: Ranking, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Cosines of every query with every candidate."""
    left, right = (side / np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-30) for side in (left, right))
    forward = left @ right.T
    return forward, forward.T if ranking.grades is None else None


def ours(data: Data, sizes: Sizes, **settings) -> tuple[Model, System]:
    """A model of `training.train`; the curve is that of its optimiser, evaluation of dev included."""
    begun = time.perf_counter()
    model = training.train(data.train, Settings(dim=sizes.k, **{"subwords": 0.0, **settings}), dev=data.dev_pairs)
    seconds = time.perf_counter() - begun
    steps = model.training.get("history", {})
    curve, told = [], {}

    def scores(ranking: Ranking):
        forward = np.asarray(model.similarity(ranking.left, ranking.right))
        return forward, forward.T if ranking.grades is None else None

    if steps:
        found, best_step = steps["validation"], int(np.argmax(steps["validation"]))
        told = {"stops_by": {"start": found[0], "best": max(found), "best_step": best_step, "last": found[-1],
                             "start_loss": steps["loss"][0], "loss": steps["loss"][-1]}}
    if steps and not settings.get("distill"):
        # What comes before the first step, from reading words to the closed-form start, counts in the curve too.
        points = [(seconds - steps["seconds"][-1] + after, score)
                  for after, score in zip(steps["seconds"], found, strict=True)]
        if data.dev.grades is not None:  # it stops by another score than the one shown, which is known of its best step
            points = [(points[best_step][0], dev_score(data, scores))]
        curve = [{"seconds": after, "mrr": score, "split": "dev"} for after, score in points]

    encode = None if model.params is None else model.encode_document
    return model, System(scores, seconds, {"k": sizes.k if encode else None, **settings}, curve=curve, encode=encode,
                         save=model.save, told=told)


def untrained(data: Data, sizes: Sizes) -> System:
    """Bare term weights, log(1 + tf) idf."""
    return best(data, [{"min_df": min_df} for min_df in sizes.dfs],
                lambda min_df: ours(data, sizes, method="log-tfidf", min_df=min_df)[1])


@functools.cache
def opca(data: Data, sizes: Sizes) -> System:
    """The closed form that S2Net starts from; over words, and as dev likes those best over their n-grams too."""
    def make(**settings) -> System:
        return ours(data, sizes, method="opca", **settings)[1]

    words = best(data, [{"noise": noise, "min_df": min_df} for min_df in sizes.dfs for noise in sizes.noises], make)
    chosen = {name: words.config[name] for name in ("noise", "min_df")}
    found = best(data, [{**chosen, "subwords": share} for share in (0.0, *sizes.shares)], make)
    found.tried = [*words.tried, *found.tried[1:]]
    return found


def s2net(data: Data, sizes: Sizes) -> System:
    """S2Net, the default of ``jaxsim train``; from the start of its default, and from a blander one.

    Over the vocabulary, and with the share of n-grams, that dev prefers for OPCA; then distilled, where dev likes that.
    """
    def make(**settings) -> System:
        return ours(data, sizes, method="s2net", **settings)[1]

    chosen = {name: opca(data, sizes).config[name] for name in ("min_df", "subwords")}
    plain = best(data, [{"gamma": gamma, "noise": noise, **chosen} for noise in sizes.starts for gamma in sizes.gammas],
                 make)
    if len(set(data.train.languages)) > 1:
        return plain  # two languages share few terms
    same, tried = {name: plain.config[name] for name in ("gamma", "noise", *chosen)}, plain.tried
    found = best(data, [{**same, "distill": share} for share in (0.0, *sizes.distills)],
                 lambda distill, **settings: make(distill=distill, **settings) if distill else plain)
    if found is not plain:  # the same steps come before it
        found.curve = [*plain.curve, *found.curve]
    found.tried = [*tried, *found.tried[1:]]
    return found


def s2net_terms(data: Data, sizes: Sizes, learned: System, words: System) -> System:
    """The words themselves beside the vectors, as ``jaxsim search --terms`` has them."""
    def mixed(ranking: Ranking, share: float):
        ways = zip(learned.scores(ranking), words.scores(ranking), strict=True)
        return tuple(None if a is None else (1 - share) * a + share * b for a, b in ways)

    system = best(data, [{"terms": share} for share in sizes.mixes],
                  lambda terms: System(lambda ranking: mixed(ranking, terms), 0.0, {**learned.config, "terms": terms}))
    system.seconds = learned.seconds + words.seconds
    return system


def static_embedding(data: Data, sizes: Sizes) -> System:
    """StaticEmbedding of sentence-transformers, trained from scratch by its MultipleNegativesRankingLoss."""
    if installed("sentence_transformers") is None:
        raise MissingPeer("sentence-transformers")
    from experiments.peers import static as peers_static

    def scores(system: peers_static.Static) -> Scores:
        return lambda ranking: dense(ranking, system.encode(ranking.left), system.encode(ranking.right))

    given = peers_static.tokens(data.train.left, data.train.right)

    def make(rate: float, batch_size: int) -> System:
        system = peers_static.train(
            given, k=sizes.k, rate=rate, batch_size=batch_size, epochs=sizes.epochs,
            patience=sizes.patience, both_ways=data.dev.grades is None,
            validate=lambda system: dev_score(data, scores(system)),
        )
        curve = [{"seconds": seconds, data.metric: score, "split": "dev"} for seconds, score in system.curve]
        return System(scores(system), system.seconds, {"k": sizes.k, "rate": rate, "batch_size": batch_size,
                      "vocabulary": system.vocabulary}, curve=curve, encode=system.encode, save=system.save)

    return best(data, [{"rate": rate, "batch_size": size} for rate in sizes.rates for size in sizes.batches], make)


def _documents(data: Data, merged: bool) -> list[str]:
    """Training documents: both sides apart, or each pair as one (as CL-LSI has it)."""
    both = zip(data.train.left, data.train.right, strict=True)
    return [f"{a}\n{b}" for a, b in both] if merged else [*data.train.left, *data.train.right]


def truncated_svd(data: Data, sizes: Sizes) -> System:
    """TfidfVectorizer and TruncatedSVD of scikit-learn."""
    if installed("sklearn") is None:
        raise MissingPeer("scikit-learn")
    import joblib
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline

    def make(sublinear_tf: bool, merged: bool) -> System:
        begun = time.perf_counter()
        texts = _documents(data, merged)
        program = make_pipeline(TfidfVectorizer(sublinear_tf=sublinear_tf, min_df=2, max_features=50_000,
                                                dtype=np.float32), TruncatedSVD(sizes.k, random_state=0))
        program.fit(texts)
        seconds = time.perf_counter() - begun

        def scores(ranking: Ranking):
            return dense(ranking, program.transform(ranking.left), program.transform(ranking.right))

        return System(scores, seconds, {"k": sizes.k, "sublinear_tf": sublinear_tf, "merged": merged},
                      encode=program.transform, save=lambda path: joblib.dump(program, path))

    return best(data, [{"sublinear_tf": s, "merged": m} for s in (True, False) for m in (True, False)], make)


def gensim_lsi(data: Data, sizes: Sizes) -> System:
    """Dictionary, TfidfModel and LsiModel of gensim."""
    if installed("gensim") is None:
        raise MissingPeer("gensim")
    from gensim.corpora import Dictionary
    from gensim.matutils import corpus2dense
    from gensim.models import LsiModel, TfidfModel
    from gensim.utils import simple_preprocess

    def make(merged: bool) -> System:
        begun = time.perf_counter()
        words = [simple_preprocess(text) for text in _documents(data, merged)]
        dictionary = Dictionary(words)
        dictionary.filter_extremes(no_below=2, no_above=0.5, keep_n=50_000)
        bags = [dictionary.doc2bow(one) for one in words]
        weigh = TfidfModel(bags)
        model = LsiModel(weigh[bags], id2word=dictionary, num_topics=sizes.k, random_seed=0)
        seconds = time.perf_counter() - begun

        def encode(texts):
            rows = [dictionary.doc2bow(simple_preprocess(text)) for text in texts]
            return corpus2dense(model[weigh[rows]], sizes.k, num_docs=len(rows)).T

        def save(path: Path):
            path.mkdir()
            for name, part in (("dictionary", dictionary), ("tfidf", weigh), ("lsi", model)):
                part.save(str(path / name))

        return System(lambda ranking: dense(ranking, encode(ranking.left), encode(ranking.right)), seconds,
                      {"k": sizes.k, "merged": merged}, encode=encode, save=save)

    return best(data, [{"merged": merged} for merged in (True, False)], make)


def bm25(data: Data, sizes: Sizes) -> System:
    """bm25s over the candidates; it learns nothing from the training pairs."""
    bm25s = installed("bm25s")
    if bm25s is None:
        raise MissingPeer("bm25s")

    def rank(queries: Sequence[str], candidates: Sequence[str], k1: float, b: float) -> np.ndarray:
        index = bm25s.BM25(k1=k1, b=b)
        index.index(bm25s.tokenize(list(candidates), stopwords=None, show_progress=False), show_progress=False)
        asked = bm25s.tokenize(list(queries), stopwords=None, return_ids=False, show_progress=False)
        return np.stack([index.get_scores(words) if words else np.zeros(len(candidates), np.float32)
                         for words in asked])

    def make(k1: float, b: float) -> System:
        def scores(ranking: Ranking):
            backward = rank(ranking.right, ranking.left, k1, b) if ranking.grades is None else None
            return rank(ranking.left, ranking.right, k1, b), backward

        return System(scores, 0.0, {"k1": k1, "b": b})

    return best(data, [{"k1": k1, "b": b} for k1 in (0.9, 1.5) for b in (0.4, 0.75)], make)


SYSTEMS: dict[str, Callable[[Data, Sizes], System]] = {
    "log-tfidf": untrained, "bm25": bm25, "truncated-svd": truncated_svd, "gensim-lsi": gensim_lsi,
    "static-embedding": static_embedding, "opca": opca, "s2net": s2net,
}
"""Row -> system; `s2net_terms` follows from the last."""

