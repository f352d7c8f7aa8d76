"""The task of `yih2010_reuters`: documents, features, development sets and records of the Reuters-21578 tables."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import jax
import numpy as np

from experiments.kit import papers, records
from jaxsim import sparse, text
from jaxsim.data import labelled_pairs, reuters21578, splits, word_frequency
from jaxsim.data.labelled_pairs import LabelledPairs
from jaxsim.evaluate import all_pairs, metrics, retrieval, significance
from jaxsim.methods.weights import metric
from jaxsim.methods.weights.metric import Metric
from jaxsim.optim import Fit
from jaxsim.sparse import Vectors
from jaxsim.text import features
from jaxsim.text.features import Featured

EXPERIMENT = "yih2010_reuters"
METRICS = ("auc", "max_f1", "p@5", "p@10", "map")
PAPERS = {"table2": "001 Table 2", "table3": "001 Table 3"}
# better row -> rows that the paper puts below it, and the metrics for which the text claims it
ORDER = {
    "tweak-pref": {"tfidf": ("auc", "max_f1", "p@5", "p@10", "map")},
    "hdilr": {"tfidf": ("auc", "max_f1", "p@5", "p@10", "map")},
    "vl-ext": {"tweak-pref": ("auc", "max_f1", "p@5", "p@10", "map"), "hdilr": ("auc", "max_f1", "p@5", "p@10", "map")},
    "hdlr": {"lsa": ("auc", "max_f1", "p@5", "p@10", "map")},
    "vl-cv": {"lsa": ("auc", "max_f1", "p@5", "p@10", "map")},
}
DIFFERS = ("same: Reuters-21578, ModApte split, documents with a topic and at least 80 characters; the paper's 7,310 "
           "and 2,848 documents do not add up to its 10,107")
ALPHA = 0.05


@dataclass(frozen=True)
class Settings:
    """What a preset fixes; gammas and alphas are chosen from on dev."""

    pairs: int = 40_000
    more_pairs: int = 400_000
    max_iter: int = 60
    patience: int = 15
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    tweak_gammas: tuple[float, ...] = (1.0, 10.0, 30.0, 100.0)
    concept_gammas: tuple[float, ...] = (1.0, 5.0, 10.0)
    alphas: tuple[float, ...] = (0.0, 1e-3)
    extension_gammas: tuple[float, ...] = (10.0, 30.0)
    extension_betas: tuple[float, ...] = (0.0, 1e-5)
    relations: int = 15_000
    slacks: tuple[float, ...] = (0.1, 1.0, 10.0)
    percentiles: tuple[tuple[float, float], ...] = ((5.0, 95.0), (25.0, 75.0))
    cycles: int = 20
    metric_ks: tuple[int, ...] = (5, 50)
    curve_ks: tuple[int, ...] = (5, 20, 100, 300)
    mates: int = 5_000
    noises: tuple[float, ...] = (0.1, 10.0)
    curve_pairs: tuple[int, ...] = (1_000, 4_000, 10_000, 40_000, 100_000)
    ks: tuple[int, ...] = (2, 5, 10, 20, 50, 100)
    min_characters: int = 80
    limit: tuple[int, int] | None = None


FULL = Settings()
QUICK = Settings(pairs=1000, more_pairs=3000, max_iter=6, patience=3, seeds=(0, 1), tweak_gammas=(10.0,),
                 concept_gammas=(5.0,), alphas=(0.0,), ks=(2, 5), limit=(500, 250), extension_gammas=(30.0,),
                 extension_betas=(0.0,), relations=500, slacks=(1.0,), percentiles=((5.0, 95.0),), cycles=3,
                 metric_ks=(5,), curve_ks=(2, 5), mates=300, noises=(10.0,), curve_pairs=(200, 500))


@dataclass(frozen=True, eq=False)
class Sample:
    """What one seed trains on.

    Attributes:
      fit: rows of the training documents that are fitted on.
      dev: rows of those held out, whole groups of near-duplicates.
      pairs: balanced pairs of fitted documents, as rows of all training documents, so that every seed has data of
        one shape and is compiled once.
      dev_pairs: 5 % more of these, held out (the paper's development set).
    """

    fit: np.ndarray
    dev: np.ndarray
    pairs: LabelledPairs
    dev_pairs: LabelledPairs


@dataclass(eq=False)
class Task:
    """Documents, labels and features of both parts, over the training documents' terms."""

    settings: Settings
    out: Path
    publish: bool
    environment: dict = field(default_factory=records.environment)

    def __post_init__(self):
        """Reads the collection and extracts features."""
        begun = time.perf_counter()
        collection = reuters21578.load()
        frequency = word_frequency.load()
        chosen = reuters21578.rows(collection.stories, min_characters=self.settings.min_characters)
        for part, most in zip(chosen, self.settings.limit or (None, None), strict=True):
            if most is not None and len(chosen[part]) > most:
                chosen[part] = chosen[part][np.linspace(0, len(chosen[part]) - 1, most).astype(int)]
        self.sha256, self.read = collection.sha256, collection.counts
        self.stories = {part: [collection.stories[row] for row in rows] for part, rows in chosen.items()}
        self.tokens = {part: [text.words(one.text, lower=False) for one in of] for part, of in self.stories.items()}
        folded = {part: [[word.lower() for word in one] for one in of] for part, of in self.tokens.items()}
        self.vocabulary = text.Vocabulary.build(folded["train"], drop_top=0, max_terms=10**9, min_df=2)
        self.every_term = text.Vocabulary.build(folded["train"], drop_top=0, max_terms=10**9)
        self.folded = folded
        query_frequency = word_frequency.of_terms(frequency, self.vocabulary.terms)
        found = {part: features.extract(of, self.vocabulary, query_frequency=query_frequency)
                 for part, of in self.tokens.items()}
        scale = features.scale_of(found["train"])
        self.featured = {part: features.scaled(one, scale) for part, one in found.items()}
        self.counts = {part: sparse.to_scipy(one.terms) for part, one in found.items()}
        self.labels = {part: all_pairs.incidence([one.topics for one in of]) for part, of in self.stories.items()}
        self.load_seconds = time.perf_counter() - begun
        say(f"{ {part: len(of) for part, of in self.stories.items()} } documents, {len(self.vocabulary)} terms, "
            f"{self.load_seconds:.0f} s")

    @cached_property
    def groups(self) -> np.ndarray:
        """Numbers of the training documents; near-duplicates have one."""
        return splits.group_near_duplicates(self.folded["train"])

    @cached_property
    def tfidf(self) -> dict:
        """tf·idf rows of both parts, neither scaled to length one."""
        return {part: text.tf_idf(one, self.vocabulary.df, self.vocabulary.num_docs)
                for part, one in self.counts.items()}

    @cached_property
    def log_tfidf(self) -> dict[str, sparse.Terms]:
        """Log tf·idf rows of both parts."""
        return {part: sparse.from_scipy(text.log_tf_idf(one, self.vocabulary.df, self.vocabulary.num_docs))
                for part, one in self.counts.items()}

    def weights(self, part: str) -> np.ndarray:
        """tf·idf of every slot of the featured documents."""
        one = self.counts[part]
        idf = np.log(self.vocabulary.num_docs / self.vocabulary.df)
        return one.data.astype(np.float64) * idf[one.indices]

    def sample(self, seed: int, num: int) -> Sample:
        """Development documents and training pairs of a seed."""
        ids = [str(one.number) for one in self.stories["train"]]
        parts = splits.split(self.groups, ids, shares={"fit": 0.9, "dev": 0.1}, salt=str(seed))
        labels = self.labels["train"][parts["fit"]]
        extra = max(num // 19, 1)  # 5 % of all
        drawn = labelled_pairs.balanced(len(parts["fit"]), lambda i, j: all_pairs.share(labels, i, j), num=num + extra,
                               key=jax.random.key(seed))
        size = num + extra
        first = np.r_[0:num, size : size + num]
        last = np.r_[num:size, size + num : 2 * size]
        left, right = (parts["fit"][np.asarray(rows)].astype(np.int32) for rows in drawn[:2])
        drawn = LabelledPairs(left, right, np.asarray(drawn.labels))
        kept, held = (LabelledPairs(*(part[rows] for part in drawn)) for rows in (first, last))
        return Sample(parts["fit"], parts["dev"], kept, held)

    def rows(self, documents: Featured, rows: np.ndarray) -> Featured:
        """Some documents with their features."""
        csr = sparse.to_scipy(documents.terms)
        slots = np.concatenate([np.zeros(0, np.int64), *(np.arange(csr.indptr[row], csr.indptr[row + 1])
                                                        for row in rows)])
        return Featured(sparse.from_scipy(csr[rows]), documents.columns[slots], documents.names)

    @cached_property
    def test_parts(self) -> dict[str, np.ndarray]:
        """Test documents that get figures of their own: those a model may not remember, those of smaller topics."""
        groups = splits.group_near_duplicates([*self.folded["train"], *self.folded["test"]])
        size = len(self.stories["train"])
        return {"no near-duplicate in training": np.flatnonzero(~np.isin(groups[size:], groups[:size])),
                "neither earn nor acq": np.array([row for row, one in enumerate(self.stories["test"])
                                                  if not {"earn", "acq"} & set(one.topics)], int)}

    def apart(self, encoded: list[Vectors], similarities: list) -> dict:
        """AUC and average precision among the test documents of each part."""
        found = {}
        for name, rows in self.test_parts.items():
            if len(rows) < 50:
                continue
            labels = self.labels["test"][rows]
            means = [all_pairs.score(sparse.take(one, rows), labels, similarity=of).means()
                     for one, of in zip(encoded, similarities, strict=True)]
            found[name] = {key: [one[key] for one in means] for key in ("auc", "map")}
        return found

    def done(self, table: str, row: str) -> bool:
        """Whether the row has its record."""
        return (self.out / EXPERIMENT / table / f"{row}.json").exists()

    def record(self, table: str, row: str, encoded: list[Vectors], *, config: dict, dev: dict, curve=(),
               fit: Fit | None = None, seconds: float = 0.0, seeds=(), similarities=None) -> None:
        """Scores all test pairs of every seed's model and writes the record with its per-query values."""
        begun = time.perf_counter()
        similarities = similarities or [retrieval.cosine] * len(encoded)
        scored = [all_pairs.score(one, self.labels["test"], similarity=of)
                  for one, of in zip(encoded, similarities, strict=True)]
        found = [one.means() for one in scored]
        sizes = {part: len(of) for part, of in self.stories.items()}
        record = records.new(
            experiment=EXPERIMENT, paper=PAPERS[table], table=table, row=row, status="within noise",
            config={"min_df": 2, "min_characters": self.settings.min_characters, **config}, seeds=list(seeds),
            dataset={"name": "reuters21578", "sha256": self.sha256, "differs": DIFFERS,
                     "counts": {**self.read, "split": sizes, "test_pairs": sizes["test"] * (sizes["test"] - 1) // 2,
                                "terms": len(self.vocabulary)},
                     "groups": {"groups of training documents": int(self.groups.max()) + 1}},
            dev=dev, metrics={name: [one[name] for one in found] for name in METRICS}, curve=list(curve), fit=fit,
            seconds={"load": self.load_seconds, "fit": seconds, "evaluate": time.perf_counter() - begun},
            environment=self.environment, metrics_by_group=self.apart(encoded, similarities),
        )
        per_query = {name: np.mean([one.per_query[name] for one in scored], axis=0) for name in scored[0].per_query}
        records.write(record, self.out, per_query=per_query, allow_dirty=not self.publish)
        means = " ".join(f"{name} {np.mean([one[name] for one in found]):.3f}" for name in METRICS)
        say(f"{table}: {row} {means}, {seconds:.0f} s")


def similarity_of(params) -> Callable:
    """How documents encoded by a model are compared."""
    return retrieval.signed(metric.signs(params)) if isinstance(params, Metric) else retrieval.cosine


def pair_auc(found: Vectors, held: LabelledPairs, params=None) -> float:
    """AUC over held-out pairs of fitted documents."""
    rows = np.asarray(held.left), np.asarray(held.right)
    signs = np.where(np.asarray(params.gains) < 0, -1.0, 1.0) if isinstance(params, Metric) else 1.0
    product, squares = np.zeros(len(rows[0])), np.zeros((2, len(rows[0])))
    if found.dense is not None:
        one, other = (np.asarray(found.dense, np.float64)[of] for of in rows)
        product += np.sum(one * other * signs, axis=1)
        squares += [np.sum(side**2 * signs, axis=1) for side in (one, other)]
    if found.sparse is not None:
        csr = sparse.to_scipy(found.sparse).astype(np.float64)
        one, other = (csr[of] for of in rows)
        product += np.asarray(one.multiply(other).sum(axis=1)).ravel()
        squares += [np.asarray(side.multiply(side).sum(axis=1)).ravel() for side in (one, other)]
    length = np.sqrt(squares[0] * squares[1])
    scores = np.divide(product, length, out=np.zeros_like(product), where=length > 0)
    return float(metrics.auc(scores, np.asarray(held.labels)))


def judge(out: Path, table: str, *, publish: bool) -> None:
    """Marks the best rows and says of every row whether the paper's order holds, from the records alone.

    P@5, P@10 and average precision are compared by paired t-tests over queries; AUC and Max-F1 are one number a seed,
    so their differences are only told.
    """
    folder = out / EXPERIMENT / table
    rows = {path.stem: records.read(path) for path in sorted(folder.glob("*.json"))}
    values = {}
    for row in rows:
        with np.load(folder / f"{row}.npz") as file:
            values[row] = {name: np.asarray(file[name], np.float64) for name in file.files}
    best = significance.smallest_best_set({row: v["map"] for row, v in values.items()}, alpha=ALPHA,
                                          test=significance.paired_t) if len(rows) > 1 else set(rows)
    for row, record in rows.items():
        off, close = [], []
        for lower, names in ORDER.get(row, {}).items():
            for name in names if lower in rows else ():
                gap = record["metrics"][name]["mean"] - rows[lower]["metrics"][name]["mean"]
                tested = name in values[row] and bool(np.any(values[row][name] != values[lower][name]))
                pvalue = significance.paired_t(values[row][name], values[lower][name]).pvalue if tested else None
                told = "" if pvalue is None else f" (paired t, p = {pvalue:.1g})"
                if gap <= 0:
                    worse = pvalue is None or pvalue < ALPHA
                    (off if worse else close).append(f"{lower} is above by {-gap:.4f} {name}{told}")
                elif pvalue is not None and pvalue >= ALPHA:
                    close.append(f"above {lower} by only {gap:.4f} {name}{told}")
        printed = row in ORDER or any(row == one.row for one in papers.TABLES[record["paper"]].rows)
        record["status"] = "reproduced" if printed else "no row of the paper's table"
        if close:
            record["status"] = "within noise: " + "; ".join(close)
        if off:
            record["status"] = "off: " + "; ".join(off + close)
        if row == "vl-ext":
            record["status"] += above_the_paper(record, rows)
        record["best_set"] = row in best
        records.write(record, out, per_query=values[row], allow_dirty=not publish)


def above_the_paper(record: dict, rows: dict) -> str:
    """Where VL-Ext's AUC is above the printed one: what it is in the variants that could explain it."""
    printed = next(one for one in papers.TABLES["001 Table 2"].rows if one.row == "vl-ext").figures[0]
    gap = record["metrics"]["auc"]["mean"] - printed
    if gap <= 0:
        return ""
    variants = {"vl-ext-gamma1": "gamma 1, as printed", "vl-ext-maximum": "terms paired by their largest product",
                "vl-ext-similar": "terms paired in similar documents alone"}
    found = [f"{rows[row]['metrics']['auc']['mean']:.3f} with {told}" for row, told in variants.items() if row in rows]
    found += [f"{one['auc']['mean']:.3f} on test documents with {part}"
              for part, one in record.get("metrics_by_group", {}).items()]
    return f". AUC is {gap:.3f} above the paper's" + (": " + ", ".join(found) if found else "")


def say(message: str) -> None:
    """A line of progress."""
    print(time.strftime("%H:%M:%S"), message, file=sys.stderr, flush=True)
