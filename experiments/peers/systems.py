"""The systems that `peers` sets side by side, each from raw texts to scores, each tuned on dev.

jaxsim's systems are `training.train` and `Model`, as a user has them. The others are used as their documentation shows;
each is optional, and `MissingPeer` says which is not installed. Settings move one step at a time from the middle of
their ladders until no step is better on dev (`kit.climb`); the chosen ones are trained once for every seed.
"""

from __future__ import annotations

import functools
import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments import kit
from experiments.corpora.rankings import Data, Ranking
from experiments.kit.measure import installed
from jaxsim import io
from jaxsim.data.pairs import Pairs
from jaxsim.text import tokens
from jaxsim.train import Settings, training
from jaxsim.train.settings import asks

Scores = Callable[[Ranking], tuple[np.ndarray, np.ndarray | None]]
Ladders = dict[str, tuple]


class MissingPeer(ImportError):
    """A program to compare with is not installed."""


@dataclass(eq=False)
class System:
    """A trained system and how it came about.

    Attributes:
      scores: of a ranking: ``[n, m]``, and ``[m, n]`` the other way round where mates are asked both ways.
      seconds: of this training, from raw texts.
      config: its settings.
      curve: dev score after so many seconds, for what is trained step by step.
      encode: texts -> vectors, where there are any.
      save: writes the system into a folder.
      told: where its optimiser began, was best and ended, by the score that it stops by.
    """

    scores: Scores
    seconds: float
    config: dict
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


class Tuned(NamedTuple):
    """A system with the settings that dev chose.

    Attributes:
      runs: one a seed; one alone where nothing is random.
      tried: every setting with its dev score.
    """

    runs: tuple[System, ...]
    tried: list[dict]

    @property
    def first(self) -> System:
        """The run of the first seed."""
        return self.runs[0]


_WORDS: Ladders = {"min_df": (1, 2, 3, 5, 10, 20, 50)}  # texts that a word must occur in
_OPCA: Ladders = {"noise": (1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0), **_WORDS,
                  "subwords": (0.0, 0.25, 0.5, 0.75, 0.9)}  # the share of a word that its n-grams are
_S2NET: Ladders = {"gamma": (1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 80.0), "noise": _OPCA["noise"]}
_STATIC: Ladders = {"rate": (3e-4, 1e-3, 0.003, 0.01, 0.03, 0.1, 0.3),
                    "batch_size": (16, 32, 64, 128, 256, 512, 1024, 2048, 4096),
                    "scale": (2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0)}


@dataclass(frozen=True)
class Sizes:
    """What a preset fixes.

    StaticEmbedding stops after ``patience`` epochs without a better dev score. With 4, the MRR of NFCorpus's 325 dev
    queries, which goes up and down by chance, once ended it after 20 seconds.
    """

    k: int
    epochs: int
    patience: int
    limit: int | None
    seeds: int
    words: Ladders
    opca: Ladders
    s2net: Ladders
    distill: tuple[float, ...]  # the share of bare terms in what S2Net is distilled to
    static: Ladders
    mixes: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    bm25: Ladders = field(default_factory=lambda: {
        "k1": (0.1, 0.3, 0.6, 0.9, 1.2, 1.5, 2.0, 3.0, 5.0, 8.0), "b": (0.0, 0.2, 0.4, 0.6, 0.75, 0.9, 1.0),
        "stems": (False, True), "stop_words": (False, True)})


FULL = Sizes(k=300, epochs=300, patience=10, limit=None, seeds=5, words=_WORDS, opca=_OPCA, s2net=_S2NET,
             distill=(0.0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9), static=_STATIC)
WIDE = replace(FULL, k=1024)
"""The dimension of sentence-transformers' own static models."""
QUICK = Sizes(k=20, epochs=2, patience=2, limit=300, seeds=2, words={"min_df": (2,)},
              opca={"noise": (1e-4,), "min_df": (2,), "subwords": (0.5,)}, s2net={"gamma": (10.0,), "noise": (1e-4,)},
              distill=(0.0, 0.5), static={"rate": (0.01,), "batch_size": (64,), "scale": (20.0,)},
              bm25={"k1": (0.9, 1.5), "b": (0.4, 0.75), "stems": (False, True), "stop_words": (False, True)})


def dev_score(data: Data, scores: Scores) -> float:
    """What dev chooses by."""
    return float(data.dev.scores(*scores(data.dev))[data.metric].mean())


class Bench:
    """One table: its data, the systems found so far, and the dev score of every setting that was tried.

    Attributes:
      data: of the table.
      sizes: of the preset.
      found: row -> what was tuned.
    """

    def __init__(self, data: Data, sizes: Sizes, path: Path | None = None, made_by: str = "",
                 say: Callable[[str], None] = print):
        """Reads the scores in ``path``, where a choice that was cut off goes on, if they are ``made_by`` the same."""
        self.data, self.sizes = data, sizes
        self.found: dict[str, Tuned] = {}
        self._path, self._made_by, self._say = path, made_by, say
        kept = json.loads(path.read_text(encoding="utf-8")) if path is not None and path.is_file() else {}
        self._scores = kept["scores"] if kept.get("made_by") == made_by else {}

    def climb(self, row: str, make: Callable[..., System], ladders: Mapping[str, Sequence], *,
              start: Mapping[str, Any] | None = None) -> kit.Choice:
        """The settings that no step along their ladders makes better on dev."""
        return kit.climb(ladders, functools.partial(self._score, row, make), by="dev", beyond=0, start=start)

    def choose(self, row: str, make: Callable[..., System], options: Sequence[Mapping[str, Any]]) -> kit.Choice:
        """The best of some settings on dev, where a step may change nothing and several steps much."""
        return kit.choose(options, functools.partial(self._score, row, make), by="dev")

    def _score(self, row: str, make: Callable[..., System], **option) -> dict:
        name = json.dumps([row, option], sort_keys=True)
        if name not in self._scores:
            system = make(**option)
            self._scores[name] = {"dev": dev_score(self.data, system.scores), **system.told}
            self._say(f"{row}: {option} dev {self._scores[name]['dev']:.4f}, {system.seconds:.1f} s")
            if self._path is not None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                kept = {"made_by": self._made_by, "scores": self._scores}
                io.write_bytes(self._path, json.dumps(kept).encode())
        return self._scores[name]

    def tune(self, row: str, make: Callable[..., System], ladders: Mapping[str, Sequence], *, random: bool) -> Tuned:
        """The system with the settings that dev chooses, trained with every seed where training is random."""
        choice = self.climb(row, make, ladders)
        return Tuned(self.train(make, choice.best, random=random), choice.tried)

    def train(self, make: Callable[..., System], chosen: Mapping[str, Any], *, random: bool) -> tuple[System, ...]:
        """The chosen settings with every seed."""
        runs = tuple(make(**chosen, seed=seed) for seed in range(self.sizes.seeds if random else 1))
        for run in runs:
            if run.seconds and not run.curve:  # ready all at once, or stopped by another score than dev's
                score = dev_score(self.data, run.scores)
                run.curve = [{"seconds": run.seconds, self.data.metric: score, "split": "dev"}]
        return runs


def dense(ranking: Ranking, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Cosines of every query with every candidate."""
    left, right = (side / np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-30) for side in (left, right))
    forward = left @ right.T
    return forward, forward.T if ranking.grades is None else None


def ours(bench: Bench, *, seed: int = 0, spell: Callable[[Sequence[str]], list[str]] = list, **settings) -> System:
    """A model of `training.train`; the curve is that of its optimiser, evaluation of dev included."""
    data = bench.data
    begun = time.perf_counter()
    train, dev = (_spelled(part, spell) for part in (data.train, data.dev_pairs))
    chosen, judged = Settings(dim=bench.sizes.k, seed=seed, **{"subwords": 0.0, **settings}), None
    if data.judged is not None and asks(chosen):
        spelled = {name: dict(zip(texts, spell(list(texts.values())), strict=True)) for name, texts in
                   (("queries", data.judged.queries), ("documents", data.judged.documents))}
        judged = replace(data.judged, **spelled)
    model = training.train(train, chosen, dev=dev, stop_by=judged)
    seconds = time.perf_counter() - begun
    steps = model.training.get("history", {})
    curve, told = [], {}

    def scores(ranking: Ranking):
        forward = np.asarray(model.similarity(spell(ranking.left), spell(ranking.right)))
        return forward, forward.T if ranking.grades is None else None

    if steps:
        found, best_step = steps["validation"], int(np.argmax(steps["validation"]))
        told = {"stops_by": {"start": found[0], "best": max(found), "best_step": best_step, "last": found[-1],
                             "start_loss": steps["loss"][0], "loss": steps["loss"][-1]}}
    if steps and not settings.get("distill"):
        # What comes before the first step, from reading words to the closed-form start, counts in the curve too.
        points = [(seconds - steps["seconds"][-1] + after, score)
                  for after, score in zip(steps["seconds"], found, strict=True)]
        curve = [{"seconds": after, "mrr": score, "split": "dev"} for after, score in points]
    encode = None if model.params is None else lambda texts: model.encode_document(spell(texts))
    return System(scores, seconds, {"k": bench.sizes.k if encode else None, **settings}, curve=curve, encode=encode,
                  save=model.save, told=told)


def _spelled(given: Pairs, spell: Callable[[Sequence[str]], list[str]]) -> Pairs:
    return given if spell is list else replace(given, left=tuple(spell(given.left)), right=tuple(spell(given.right)))


def log_tfidf(bench: Bench) -> Tuned:
    """Bare term weights, log(1 + tf) idf."""
    def make(**settings) -> System:
        return ours(bench, method="log-tfidf", **settings)

    return bench.tune("log-tfidf", make, bench.sizes.words, random=False)


def opca(bench: Bench) -> Tuned:
    """The closed form that S2Net starts from, over words and, as dev likes that, their n-grams too."""
    def make(**settings) -> System:
        return ours(bench, method="opca", **settings)

    return bench.tune("opca", make, bench.sizes.opca, random=False)


def s2net(bench: Bench) -> Tuned:
    """S2Net, the default of ``jaxsim train``.

    Over the vocabulary, and with the share of n-grams, that dev prefers for OPCA; from OPCA or from random numbers, and
    then distilled, where dev likes that.
    """
    def make(**settings) -> System:
        return ours(bench, method="s2net", **settings)

    words = bench.found["opca"].first.config
    fixed = {"min_df": (words["min_df"],), "subwords": (words["subwords"],), "distill": (0.0,)}
    plain = _best_start(bench, "s2net", make, fixed, words["noise"])
    if len(set(bench.data.train.languages)) > 1:  # two languages share few terms
        return Tuned(bench.train(make, plain.best, random=True), plain.tried)
    # A small share often changes nothing, since a model that distillation does not improve stays as it was.
    choice = bench.choose("s2net", make, [{**plain.best, "distill": share} for share in bench.sizes.distill])
    runs = bench.train(make, choice.best, random=True)
    if choice.best["distill"]:
        runs[0].curve = [*make(**plain.best).curve, *runs[0].curve]  # the same steps come before distillation
    return Tuned(runs, [*plain.tried, *(entry for entry in choice.tried if entry not in plain.tried)])


def _best_start(bench: Bench, row: str, make: Callable[..., System], fixed: Ladders, noise: float | None) -> kit.Choice:
    """S2Net from OPCA, its noise and γ chosen from this noise on, or from random numbers with another γ."""
    ladders = bench.sizes.s2net
    begin = {} if noise is None else {"noise": noise}  # it is OPCA's projection that training starts from
    starts = [bench.climb(row, make, {**ladders, **fixed, "start": ("opca",)}, start=begin)]
    same = {"noise": (starts[0].best["noise"],)}  # without effect
    starts.append(bench.climb(row, make, {**ladders, **same, **fixed, "start": ("random",)}))
    best = max(starts, key=lambda choice: choice.score)
    return best._replace(tried=[entry for choice in starts for entry in choice.tried])


def letter_trigrams(texts: Sequence[str]) -> list[str]:
    """Every word as its letter trigrams, with a mark before and after it: the input of DSSM (Huang et al., 2013).

    Example:
      >>> letter_trigrams(["Good day"])
      ['_go goo ood od_ _da day ay_']
    """
    return [" ".join(word[i : i + 3] for word in (f"_{word}_" for word in tokens.words(text))
                     for i in range(len(word) - 2)) for text in texts]


def s2net_trigrams(bench: Bench) -> Tuned:
    """S2Net over letter trigrams alone, without words."""
    def make(**settings) -> System:
        return ours(bench, method="s2net", spell=letter_trigrams, **settings)

    choice = _best_start(bench, "s2net-trigrams", make, {"min_df": (1,)}, None)
    return Tuned(bench.train(make, choice.best, random=True), choice.tried)


def s2net_terms(bench: Bench) -> Tuned:
    """The words themselves beside the vectors, as ``jaxsim search --terms`` has them."""
    learned, words = bench.found["s2net"], bench.found["log-tfidf"].first

    def make(terms: float, seed: int = 0) -> System:
        run = learned.runs[seed]

        def mixed(ranking: Ranking):
            ways = zip(run.scores(ranking), words.scores(ranking), strict=True)
            return tuple(None if a is None else (1 - terms) * a + terms * b for a, b in ways)

        return System(mixed, run.seconds + words.seconds, {**run.config, "terms": terms})

    return bench.tune("s2net-terms", make, {"terms": bench.sizes.mixes}, random=True)


def static_embedding(bench: Bench) -> Tuned:
    """StaticEmbedding of sentence-transformers, trained from scratch by its MultipleNegativesRankingLoss."""
    if installed("sentence_transformers") is None:
        raise MissingPeer("sentence-transformers")
    from experiments.peers import static as peers_static

    data, sizes = bench.data, bench.sizes

    def scores(system: peers_static.Static) -> Scores:
        return lambda ranking: dense(ranking, system.encode(ranking.left), system.encode(ranking.right))

    given = peers_static.tokens(data.train.left, data.train.right)
    dev = [given.of(side) for side in (data.dev.left, data.dev.right)]  # tokens once, not once an epoch

    def validate(system: peers_static.Static) -> float:
        return dev_score(data, lambda ranking: dense(ranking, *map(system.embed, dev)))

    def make(seed: int = 0, **settings) -> System:
        system = peers_static.train(
            given, k=sizes.k, epochs=sizes.epochs, patience=sizes.patience, warm_up=4,
            both_ways=data.dev.grades is None, validate=validate, seed=seed, **settings)
        curve = [{"seconds": seconds, data.metric: score, "split": "dev"} for seconds, score in system.curve]
        # A batch of all pairs, beyond which there is none, has their number, which is none of the ladder's.
        batch_size = min(settings["batch_size"], len(data.train.left))
        config = {"k": sizes.k, **settings, "batch_size": batch_size, "vocabulary": system.vocabulary}
        return System(scores(system), system.seconds, config, curve=curve, encode=system.encode, save=system.save,
                      told={"epochs": len(curve), "most_epochs": sizes.epochs})

    return bench.tune("static-embedding", make, sizes.static, random=True)


def _documents(data: Data, merged: bool) -> list[str]:
    """Training documents: both sides apart, or each pair as one (as CL-LSI has it)."""
    both = zip(data.train.left, data.train.right, strict=True)
    return [f"{a}\n{b}" for a, b in both] if merged else [*data.train.left, *data.train.right]


def truncated_svd(bench: Bench) -> Tuned:
    """TfidfVectorizer and TruncatedSVD of scikit-learn."""
    if installed("sklearn") is None:
        raise MissingPeer("scikit-learn")
    import joblib
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline

    def make(seed: int = 0, *, sublinear_tf: bool, stop_words: bool, merged: bool, min_df: int) -> System:
        begun = time.perf_counter()
        texts = _documents(bench.data, merged)
        program = make_pipeline(TfidfVectorizer(sublinear_tf=sublinear_tf, min_df=min_df, max_features=50_000,
                                                stop_words="english" if stop_words else None, dtype=np.float32),
                                TruncatedSVD(bench.sizes.k, random_state=seed))
        program.fit(texts)
        seconds = time.perf_counter() - begun

        def scores(ranking: Ranking):
            return dense(ranking, program.transform(ranking.left), program.transform(ranking.right))

        config = {"k": bench.sizes.k, "sublinear_tf": sublinear_tf, "stop_words": stop_words, "merged": merged,
                  "min_df": min_df}
        return System(scores, seconds, config, encode=program.transform, save=lambda path: joblib.dump(program, path))

    return bench.tune("truncated-svd", make, {"sublinear_tf": (False, True), "stop_words": (False, True),
                                              "merged": (False, True), **bench.sizes.words}, random=True)


def gensim_lsi(bench: Bench) -> Tuned:
    """Dictionary, TfidfModel and LsiModel of gensim."""
    if installed("gensim") is None:
        raise MissingPeer("gensim")
    from gensim.corpora import Dictionary
    from gensim.matutils import corpus2dense
    from gensim.models import LsiModel, TfidfModel
    from gensim.utils import simple_preprocess

    def make(seed: int = 0, *, merged: bool, min_df: int) -> System:
        begun = time.perf_counter()
        words = [simple_preprocess(text) for text in _documents(bench.data, merged)]
        dictionary = Dictionary(words)
        dictionary.filter_extremes(no_below=min_df, no_above=0.5, keep_n=50_000)
        bags = [dictionary.doc2bow(one) for one in words]
        weigh = TfidfModel(bags)
        model = LsiModel(weigh[bags], id2word=dictionary, num_topics=bench.sizes.k, random_seed=seed)
        seconds = time.perf_counter() - begun

        def encode(texts):
            rows = [dictionary.doc2bow(simple_preprocess(text)) for text in texts]
            return corpus2dense(model[weigh[rows]], bench.sizes.k, num_docs=len(rows)).T

        def save(path: Path):
            path.mkdir()
            for name, part in (("dictionary", dictionary), ("tfidf", weigh), ("lsi", model)):
                part.save(str(path / name))

        return System(lambda ranking: dense(ranking, encode(ranking.left), encode(ranking.right)), seconds,
                      {"k": bench.sizes.k, "merged": merged, "min_df": min_df}, encode=encode, save=save)

    return bench.tune("gensim-lsi", make, {"merged": (False, True), **bench.sizes.words}, random=True)


def bm25(bench: Bench) -> Tuned:
    """bm25s over the candidates; it learns nothing from the training pairs. Stems and stop words are of English."""
    bm25s = installed("bm25s")
    if bm25s is None:
        raise MissingPeer("bm25s")
    import Stemmer

    stemmer = Stemmer.Stemmer("english")

    @functools.lru_cache(maxsize=16)
    def cut(texts: tuple[str, ...], stems: bool, stop_words: bool) -> list[list[str]]:
        return bm25s.tokenize(list(texts), stopwords="en" if stop_words else None, stemmer=stemmer if stems else None,
                              return_ids=False, show_progress=False)

    def rank(queries: Sequence[str], candidates: Sequence[str], k1: float, b: float, **words: bool) -> np.ndarray:
        index = bm25s.BM25(k1=k1, b=b)
        index.index(cut(tuple(candidates), **words), show_progress=False)
        return np.stack([index.get_scores(asked) if asked else np.zeros(len(candidates), np.float32)
                         for asked in cut(tuple(queries), **words)])

    def make(seed: int = 0, **settings) -> System:
        def scores(ranking: Ranking):
            backward = rank(ranking.right, ranking.left, **settings) if ranking.grades is None else None
            return rank(ranking.left, ranking.right, **settings), backward

        return System(scores, 0.0, settings)

    return bench.tune("bm25", make, bench.sizes.bm25, random=False)


SYSTEMS: dict[str, Callable[[Bench], Tuned]] = {
    "log-tfidf": log_tfidf, "bm25": bm25, "truncated-svd": truncated_svd, "gensim-lsi": gensim_lsi,
    "static-embedding": static_embedding, "opca": opca, "s2net": s2net, "s2net-trigrams": s2net_trigrams,
    "s2net-terms": s2net_terms,
}
"""Row -> system, in an order in which each finds those that it builds on in `Bench.found`."""
