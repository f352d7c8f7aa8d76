"""How a row of a mate table is fitted, chosen on dev, tested and recorded, for both mate experiments.

Fits are kept in a cache folder under a digest of the package's sources, the data and the settings, so that the two
experiments share them and an interrupted run goes on where it stopped; a row that has its record is not run again.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import jax
import numpy as np
from safetensors.numpy import load_file, save_file

import jaxsim
from experiments.corpora.mates import CORPORA, DIFFERS, PAPERS, Corpus, paper_years
from experiments.kit import records
from jaxsim import io, sparse
from jaxsim.evaluate import mates, significance
from jaxsim.evaluate.mates import Task
from jaxsim.methods import projections
from jaxsim.methods.projections import Projection
from jaxsim.optim import Fit
from jaxsim.sparse import Vectors

# better row -> rows that the papers put below it
ORDER = {
    "s2net": ("opca",), "opca": ("cca", "cl-lsi", "log-tfidf"), "cca": ("cl-lsi", "log-tfidf"),
    "cl-lsi": ("log-tfidf",), "log-tfidf": ("tf",),
}
# What may explain misses, by (table, row).
ONE_LANGUAGE = ". Both sides are English here, so that equal words count for much"
WHY = {
    ("docstrings", "cl-lsi"): ONE_LANGUAGE,
    ("docstrings", "cca"): ONE_LANGUAGE + ", which CCA, with its own projection for each side, cannot use (002 §2.3)",
}


@dataclass(frozen=True)
class Settings:
    """What a preset fixes: grids are chosen from on dev."""

    ks: tuple[int, ...] = (50, 100, 200, 300, 500, 1000)
    variant_ks: tuple[int, ...] = (100, 300)
    noises: tuple[float, ...] = (1e-4, 1e-3)
    ridges: tuple[float, ...] = (1e-4, 1e-3)
    grid_k: int = 200
    max_iter: int = 100
    patience: int = 30
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    limit: int | None = None


FULL = Settings()
# Dimensions of the tables that are large, or that share their story with a table that has them all.
LESS = (50, 100, 200, 300, 500)
FEWER = {"en-es": LESS, "en-fr": LESS, "en-ja": LESS, "en-it-speeches": LESS, "en-es-unseen": (50, 100, 200),
         "en-it-lines": (100, 300)}
FEWER_VARIANTS = {"en-es": (50, 100), "en-es-unseen": (50, 100)}
GRID_K = {"en-es": 100, "en-es-unseen": 100}
QUICK = Settings(ks=(20, 50), variant_ks=(20,), noises=(1e-4, 1e-3), ridges=(1e-4, 1e-3), grid_k=20, max_iter=8,
                 patience=4, seeds=(0, 1), limit=600)


def sources_digest() -> str:
    """Digest of the package's and these scripts' sources: a cached fit is of this code or it is not used."""
    digest = hashlib.sha256()
    folders = (Path(jaxsim.__file__).parent, Path(__file__).parent)
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        if not path.name.startswith(("report", "papers", "record", "cli", "speed")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


@dataclass(eq=False)
class Table:
    """One table being filled: its data, settings and folders."""

    experiment: str
    name: str
    settings: Settings
    out: Path
    cache: Path
    publish: bool
    release: Path | None = None
    environment: dict = field(default_factory=records.environment)
    digest: str = field(default_factory=sources_digest)

    def __post_init__(self):
        """Loads the corpus."""
        begun = time.perf_counter()
        if self.name == "paper":
            self.corpus: Corpus = paper_years(self.release, limit=self.settings.limit)
        else:
            self.corpus = CORPORA[self.name](self.settings.limit)
        self.task: Task = self.corpus.task
        self.sizes = {name: sides[0].shape[0] for name, sides in self.task.counts.items()}
        self.load_seconds = time.perf_counter() - begun
        most = min(self.sizes["train"], len(self.task.vocabulary))
        ks = FEWER.get(self.name, self.settings.ks) if self.settings == FULL else self.settings.ks
        self.ks = tuple(k for k in ks if k < most)
        variants = FEWER_VARIANTS.get(self.name) if self.settings == FULL else None
        self.variant_ks = tuple(k for k in variants or self.settings.variant_ks if k < most)
        self.grid_k = GRID_K.get(self.name) if self.settings == FULL else None
        self.grid_k = min(self.grid_k or self.settings.grid_k, max(self.ks))
        self._weighted: dict = {}
        say(f"{self.name}: {self.sizes} pairs, {len(self.task.vocabulary)} terms, {self.load_seconds:.0f} s")

    def weighted(self, split: str, unit_length: bool = True, task: Task | None = None):
        """Both sides' vectors of a split, made once."""
        key = (split, unit_length, id(task))
        if key not in self._weighted:
            self._weighted[key] = (task or self.task).weighted(split, unit_length=unit_length)
        return self._weighted[key]

    def fitted(self, method: str, settings: dict, make: Callable[[], Fit]) -> tuple[Fit, float]:
        """A fit and its seconds, from the cache if it is there."""
        described = json.dumps([self.digest, self.corpus.pairs.sha256, self.name, self.settings.limit, method,
        settings],
                               sort_keys=True)
        path = self.cache / f"{self.name}-{method}-{hashlib.sha256(described.encode()).hexdigest()[:16]}.safetensors"
        note = path.with_suffix(".json")
        if note.exists() and path.exists():
            kept = json.loads(note.read_text())
            leaves = [Projection(jax.numpy.asarray(a)) for _, a in sorted(load_file(path).items())]
            return Fit(leaves[0] if len(leaves) == 1 else tuple(leaves), *kept["fit"]), kept["seconds"]
        begun = time.perf_counter()
        fit = make()
        jax.block_until_ready(fit.params)
        seconds = time.perf_counter() - begun
        sides = [fit.params] if isinstance(fit.params, Projection) else fit.params
        self.cache.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        save_file({str(i): np.array(side.weights) for i, side in enumerate(sides)}, temporary)
        os.replace(temporary, path)
        io.write_bytes(note, json.dumps({"fit": list(fit[1:]), "seconds": seconds}).encode())
        say(f"{self.name}: {method} {settings} fitted in {seconds:.0f} s")
        return fit, seconds

    def dev(self, params, unit_length: bool = True) -> float:
        """Dev mean reciprocal rank of a projection."""
        return mates.validator(self.weighted("dev", unit_length))(params)

    def done(self, row: str) -> bool:
        """Whether the row has its record."""
        return (self.out / self.experiment / self.name / f"{row}.json").exists()

    def record(self, row: str, encoded: list[tuple[Vectors, Vectors]], *, config: dict, dev: dict, curve=(), fit=None,
               seconds: float = 0.0, seeds=(), **extra) -> None:
        """Tests what dev chose (one model a seed) and writes the record with its per-query values."""
        begun = time.perf_counter()
        ranked = [mates.per_query(*sides) for sides in encoded]
        groups = [mates.by_source(*sides, self.task.sources["test"]) for sides in encoded]
        by_group = {source: {name: [one[source][name] for one in groups] for name in groups[0][source]}
                    for source in groups[0]}
        metrics = {name: [float(one[name].mean()) for one in ranked] for name in ("accuracy", "mrr")}
        differs = DIFFERS[self.name]
        record = records.new(
            experiment=self.experiment, paper=PAPERS[self.experiment].get(self.name, self.experiment_paper()),
            table=self.name, row=row, status="within noise", config=config, seeds=list(seeds),
            dataset={"name": self.corpus.pairs.name, "sha256": self.corpus.pairs.sha256, "differs": differs,
                     "counts": {**self.corpus.pairs.counts, "split": self.sizes}, "groups": self.task.groups},
            dev=dev, metrics=metrics, curve=curve, fit=fit, environment=self.environment,
            metrics_by_group=by_group if len(by_group) > 1 else {},
            seconds={"load": self.load_seconds, "fit": seconds, "evaluate": time.perf_counter() - begun}, **extra,
        )
        per_query = {name: np.mean([one[name] for one in ranked], axis=0) for name in ("accuracy", "mrr")}
        records.write(record, self.out, per_query=per_query, allow_dirty=not self.publish)
        say(f"{self.name}: {row} {config.get('k', '')} mrr {np.mean(metrics['mrr']):.4f}")

    def experiment_paper(self) -> str:
        """The paper's number, where no table of it compares."""
        return {"platt2010_mates": "002", "yih2011_mates": "000"}[self.experiment]

    def sweep(self, row: str, params, *, config: dict, dev: dict, seconds: float, unit_length: bool = True, naive=None):
        """Records the dimension that dev prefers of a closed form, whose first dimensions are its smaller fits.

        ``naive(k)`` gives the scores of the same method on the naive split, to stand beside.
        """
        scores = {k: self.dev(projections.truncate(params, k), unit_length) for k in self.ks}
        curve = [{"k": k, "mrr": score, "split": "dev"} for k, score in scores.items()]
        best = max(curve, key=lambda point: point["mrr"])
        chosen = projections.truncate(params, best["k"])
        self.record(row, [mates.encode(chosen, self.weighted("test", unit_length))], config={**config, "k": best["k"]},
                    dev={**dev, "mrr": best["mrr"]}, curve=curve, seconds=seconds,
                    **({} if naive is None else {"metrics_naive": naive(best["k"])}))

    def grid(self, method: str, options: list[dict], fit: Callable[..., Fit], unit_length) -> tuple[dict, list, float]:
        """The options with the best dev score at one dimension, all scores, and the seconds of the fits."""
        k = self.grid_k
        tried, spent = [], 0.0
        for option in options:
            found, seconds = self.fitted(method, {**option, "k": k}, lambda option=option: fit(k=k, **option))
            tried.append({**option, "k": k, "dev": self.dev(found.params, unit_length(option))})
            spent += seconds
        return options[int(np.argmax([one["dev"] for one in tried]))], tried, spent


def say(message: str) -> None:
    """A line of progress."""
    print(time.strftime("%H:%M:%S"), message, file=sys.stderr, flush=True)


def counts(table: Table, split: str) -> list[sparse.Terms]:
    """Both sides' raw counts."""
    return [sparse.from_scipy(side) for side in table.task.counts[split]]


def compactness(curve: list[dict], closed: list[dict]) -> list[str]:
    """What is off about "S2Net at k is OPCA at two to five times k" (000 §4.1.2), on dev; nothing where it holds.

    The dimension at which OPCA reaches a score of S2Net is interpolated on a logarithmic axis; a score that OPCA never
    reaches counts as found.
    """
    ks, scores = np.log([point["k"] for point in closed]), np.maximum.accumulate([point["mrr"] for point in closed])
    points = [point for point in curve if point["k"] < max(point["k"] for point in closed)]
    ratios = {point["k"]: float(np.exp(np.interp(point["mrr"], scores, ks))) / point["k"]
              for point in points if point["mrr"] < scores[-1]}
    short = {k: ratio for k, ratio in ratios.items() if ratio < 2}
    if not short or len(short) <= len(points) / 2:
        return []
    told = ", ".join(f"{ratio:.1f} at k = {k}" for k, ratio in short.items())
    best = max(curve, key=lambda point: point["mrr"])
    return [f"OPCA reaches the dev MRR of S2Net with {told} times its dimension, not with two to five (where "
            f"dev MRR is best, {best['mrr']:.3f}, the training loss is already down to {best['loss']:.1e} nats)"]


def judge(table: Table, *, alpha: float) -> None:
    """Marks the smallest best set and says of every row whether the paper's order holds, from per-query values."""
    folder = table.out / table.experiment / table.name
    rows = {path.stem: records.read(path) for path in sorted(folder.glob("*.json"))}
    values = {}
    for row in rows:
        with np.load(folder / f"{row}.npz") as file:
            values[row] = {name: np.asarray(file[name], np.float64) for name in ("accuracy", "mrr")}
    best = significance.smallest_best_set({row: v["accuracy"] for row, v in values.items()}, alpha=alpha)
    for row, record in rows.items():
        off, close = [], []
        for lower in (other for other in ORDER.get(row, ()) if other in rows):
            gap = values[row]["mrr"].mean() - values[lower]["mrr"].mean()
            pvalue = significance.paired_t(values[row]["mrr"], values[lower]["mrr"]).pvalue if gap else 1.0
            if gap <= 0:
                told = f"{lower} is above by {-gap:.4f} MRR (paired t, p = {pvalue:.1g})"
                (off if pvalue < alpha else close).append(told)
        still = [point["k"] for point in record["curve"] if point["mrr"] <= point.get("start", -1)]
        if still:
            close.append("no gain over its start on dev at k = " + ", ".join(map(str, still)))
        if row == "s2net" and "opca" in rows:
            off += compactness(record["curve"], rows["opca"]["curve"])
        record["status"] = "within noise: " + "; ".join(close) if close else "reproduced"
        if off:
            record["status"] = "off: " + "; ".join(off + close) + WHY.get((table.name, row), "")
        record["best_set"] = row in best
        records.write(record, table.out, per_query=values[row], allow_dirty=not table.publish)
