"""What `bai2010_queries`, `bai2010_clicks` and `bai2010_cross_language` share: scores, search, records, command line.

A row of a table is a matrix of scores, queries by documents; how it is judged, chosen on dev and recorded is here.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse

from experiments.kit import records
from experiments.kit.places import add_out, records_folder
from experiments.links_tables import MAX_TERMS, say
from jaxsim import sparse, text
from jaxsim.data import MissingCorpus
from jaxsim.evaluate import metrics, ranking, significance
from jaxsim.evaluate.ranking import Judged
from jaxsim.methods.ssi import bilinear
from jaxsim.sparse import Vectors


class Place(NamedTuple):
    """Where records go, and whether they are to be published."""

    out: Path
    publish: bool


class Part(NamedTuple):
    """Queries of a split with what is right; ``exact`` is their product with every document, without learning.

    ``queries`` are the rows of ``truth.queries`` as the low-rank part sees them, ``grades`` their relevance where it
    has degrees.
    """

    truth: Judged
    queries: scipy.sparse.csr_matrix
    exact: np.ndarray
    grades: scipy.sparse.csr_matrix | None = None


def tfidf(counts, df, num_docs) -> scipy.sparse.csr_matrix:
    """Unit tf · log(N / df)."""
    return text.unit_rows(text.tf_idf(counts, df, num_docs))


def cut(matrix: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix:
    """What the low-rank part sees of documents."""
    return sparse.to_scipy(bilinear.strongest(sparse.from_scipy(matrix), MAX_TERMS))


def product(queries: scipy.sparse.csr_matrix, documents: scipy.sparse.csr_matrix, block: int = 512) -> np.ndarray:
    """All inner products, ``[num_queries, num_documents]`` float32."""
    across = documents.T.tocsr()
    found = np.zeros((queries.shape[0], documents.shape[0]), np.float32)
    for start in range(0, queries.shape[0], block):
        found[start : start + block] = (queries[start : start + block] @ across).toarray()
    return found


def learned(params, part: Part, documents: scipy.sparse.csr_matrix) -> np.ndarray:
    """Scores of W = UᵀV, plus b·I where it has one; ``documents`` are those of the low-rank part."""
    query, document = params
    found = (part.queries @ np.asarray(query.weights)) @ (documents @ np.asarray(document.weights)).T
    return found if query.scale is None else found + float(query.scale[0]) * part.exact


def judged(part: Part, scores: np.ndarray) -> dict[str, np.ndarray]:
    """Every query's rank loss, average precision and P@10, and NDCG@10 where there are grades."""
    empty = (Vectors(np.zeros((size, 1), np.float32)) for size in (part.truth.queries[-1] + 1, scores.shape[1]))
    found = ranking.per_query(*empty, part.truth, similarity=lambda *_: lambda rows: scores[rows])
    if part.grades is not None:
        found["ndcg@10"] = np.concatenate([metrics.ndcg(scores[[i]], part.grades[[i]].toarray(), k=10)
                                           for i in range(scores.shape[0])])
    return found


def means(found: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Means over queries."""
    return {name: float(np.mean(values)) for name, values in found.items()}


def some(part: Part, most: int | None) -> Part:
    """An even sample of the queries, for validation during training."""
    size = part.truth.queries.size
    if most is None or size <= most:
        return part
    rows = np.linspace(0, size - 1, most).astype(int)
    truth = Judged(part.truth.queries[rows], part.truth.relevant[rows], part.truth.left_out[rows])
    return Part(truth, part.queries[rows], part.exact[rows], None if part.grades is None else part.grades[rows])


@dataclass(eq=False)
class Sheet:
    """The records of one table."""

    experiment: str
    name: str
    paper: str
    dataset: dict
    place: Place
    load_seconds: float
    environment: dict = field(default_factory=records.environment)

    def record(self, row: str, found: Sequence[Mapping[str, np.ndarray]], *, config: dict, dev: dict, curve=(),
               fit=None, seconds: float = 0.0, evaluate: float = 0.0, seeds=()) -> None:
        """Writes what dev chose, tested: per-query values of one model a seed."""
        values = {name: np.mean([one[name] for one in found], axis=0) for name in found[0]}
        errors = {f"test {name}, standard error over queries": significance.standard_error(value)
                  for name, value in values.items()}
        record = records.new(
            experiment=self.experiment, paper=self.paper, table=self.name, row=row, status="within noise",
            config=config, seeds=list(seeds), dataset=self.dataset, dev={**dev, **errors},
            metrics={name: [float(one[name].mean()) for one in found] for name in found[0]}, curve=curve, fit=fit,
            environment=self.environment, seconds={"load": self.load_seconds, "fit": seconds, "evaluate": evaluate})
        records.write(record, self.place.out, per_query=values, allow_dirty=not self.place.publish)
        say(f"{self.name}: {row} {config} " + ", ".join(f"{name} {value.mean():.4f}" for name, value in values.items()))


def score(table, row: str, scorer: Callable[[Part], np.ndarray], *, config: dict, dev: dict, **told) -> None:
    """Records a row without seeds."""
    begun = time.perf_counter()
    found = judged(table.parts["test"], scorer(table.parts["test"]))
    table.sheet.record(row, [found], config=config, dev=dev, evaluate=time.perf_counter() - begun, **told)


def best_of(table, tried: Sequence[dict], scorer: Callable[[dict, Part], np.ndarray], metric: str = "map"):
    """The settings with the best dev score, and the dev scores of all."""
    scored = [{**one, **means(judged(table.parts["dev"], scorer(one, table.parts["dev"]))), "split": "dev"}
              for one in tried]
    sign = -1 if metric == "rank_loss" else 1
    return tried[int(np.argmax([sign * one[metric] for one in scored]))], scored


def search(table, row: str, fit: Callable, options: Sequence[dict], scorer: Callable, *, rates: Sequence[float],
           metric: str = "map", told: Mapping = {}) -> list:  # noqa: B006  (never written)
    """The rate by training loss and the options by dev score, on one seed each; then all seeds, tested and recorded.

    Args:
      table: with ``parts``, ``sheet`` and ``settings`` (``grid_iter, max_iter, seeds, triples, patience, validated``).
      row: its name.
      fit: function of seed, max_iter, validate and options giving a `Fit`.
      options: candidates.
      scorer: function of params and a `Part` giving scores.
      rates: learning rates.
      metric: that dev is judged by.
      told: more for the record's config.

    Returns:
      The parameters of every seed.
    """
    begun, settings = time.perf_counter(), table.settings
    sign = -1 if metric == "rank_loss" else 1
    part = some(table.parts["dev"], settings.validated)

    def validate(params) -> float:
        return sign * float(np.mean(judged(part, scorer(params, part))[metric]))

    middle = options[len(options) // 2]

    def loss(rate: float) -> float | None:
        try:
            return fit(seed=0, max_iter=settings.grid_iter, validate=None, learning_rate=rate,
                       **middle).history[-1]["loss"]
        except FloatingPointError:  # a rate this high diverges
            return None

    tried = [{"learning_rate": one, "loss": loss(one)} for one in rates] if len(rates) > 1 else []
    whole = [one for one in tried if one["loss"] is not None]
    rate = min(whole, key=lambda one: one["loss"])["learning_rate"] if whole else rates[0]
    found = []
    for option in options if len(options) > 1 else ():
        history = fit(seed=0, max_iter=settings.grid_iter, validate=validate, learning_rate=rate, **option).history
        found.append(max(entry["validation"] for entry in history))
        tried.append({**option, metric: sign * found[-1], "split": "dev"})
    option = options[int(np.argmax(found))] if found else options[0]
    fits = [fit(seed=seed, max_iter=settings.max_iter, validate=validate, learning_rate=rate, **option)
            for seed in settings.seeds]
    seconds, begun = time.perf_counter() - begun, time.perf_counter()
    tested = [judged(table.parts["test"], scorer(one.params, table.parts["test"])) for one in fits]
    dev = [sign * max(entry["validation"] for entry in one.history) for one in fits]
    config = {**option, "learning_rate": rate, "triples": settings.triples, "max_iter": settings.max_iter,
              "patience": settings.patience, "max_terms": MAX_TERMS, **told}
    table.sheet.record(row, tested, config=config, dev={metric: float(np.mean(dev)), "per_seed": dev}, curve=tried,
                       fit=fits[0], seconds=seconds, evaluate=time.perf_counter() - begun, seeds=settings.seeds)
    return [one.params for one in fits]


def judge(place: Place, experiment: str, name: str, order: Mapping[str, Sequence[str]], *, metric: str = "map",
          alpha: float = 0.05) -> None:
    """Marks the smallest best set and says of every row whether the order holds, by one metric over queries."""
    folder = place.out / experiment / name
    rows = {path.stem: records.read(path) for path in sorted(folder.glob("*.json"))}
    if not rows:
        return
    values = {}
    for row in rows:
        with np.load(folder / f"{row}.npz") as file:
            values[row] = {key: np.asarray(file[key], np.float64) for key in file.files}
    sign = -1 if metric == "rank_loss" else 1
    level = {row: sign * value[metric] for row, value in values.items()}
    best = significance.smallest_best_set(level, alpha=alpha)
    for row, record in rows.items():
        off, close = [], []
        for lower in (other for other in order.get(row, ()) if other in rows):
            gap = level[row].mean() - level[lower].mean()
            pvalue = significance.paired_t(level[row], level[lower]).pvalue if gap else 1.0
            if gap <= 0 or pvalue >= alpha:
                where = "better" if gap < 0 else "not clearly worse" if gap else "equal"
                told = f"{lower} is {where}, by {abs(gap):.4f} {metric} (paired t, p = {pvalue:.1g})"
                (off if gap < 0 and pvalue < alpha else close).append(told)
        record["status"] = ("off: " + "; ".join(off + close) if off else
                            "within noise: " + "; ".join(close) if close else "reproduced")
        record["best_set"] = row in best
        records.write(record, place.out, per_query=values[row], allow_dirty=not place.publish)


class Plan(NamedTuple):
    """One table of a script: how it is made, its rows, the order that the paper gives them, and by which metric."""

    make: Callable[[object, Place], object]
    rows: Mapping[str, Callable]
    order: Mapping[str, Sequence[str]]
    metric: str = "map"


def main(doc: str, experiment: str, plans: Mapping[str, Plan], *, quick, full, of_quick=None, arguments=None) -> None:
    """The command line: fills the tables asked for, row by row; rows that have their record are not run again.

    ``of_quick`` names the tables of the quick preset where these are not all.
    """
    rows = list(dict.fromkeys(row for plan in plans.values() for row in plan.rows))
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=("quick", "full"), default="quick")
    parser.add_argument("--tables", nargs="+", choices=tuple(plans), metavar="TABLE",
                        help=f"of {', '.join(plans)}; all unless given (quick: some)")
    parser.add_argument("--rows", nargs="+", choices=rows, default=rows, metavar="ROW",
                        help=f"of {', '.join(rows)}; all unless given")
    add_out(parser)
    parser.add_argument("--again", action="store_true", help="run rows that have a record once more")
    parser.add_argument("--judge", action="store_true", help="fit nothing: only mark best sets and statuses again")
    given = parser.parse_args(arguments)
    if given.preset == "quick" and not os.environ.get("JAXSIM_DATA"):
        print(f"{experiment}: JAXSIM_DATA names no folder with the corpora, so nothing was run")
        return
    out = records_folder(parser, given.out, quick=given.preset == "quick")
    place = Place(out, publish=given.preset == "full")
    for name in given.tables or (given.preset == "quick" and of_quick) or plans:
        plan = plans[name]
        wanted = [row for row in plan.rows if row in given.rows
                  and (given.again or not (out / experiment / name / f"{row}.json").exists())]
        if wanted and not given.judge:
            try:
                table = plan.make(quick if given.preset == "quick" else full, place)
            except MissingCorpus as error:
                parser.exit(2, f"{parser.prog}: {error}\n")
            for row in wanted:
                plan.rows[row](table)
        judge(place, experiment, name, plan.order, metric=plan.metric)
    print(out)
