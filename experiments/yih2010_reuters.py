"""Document similarity on Reuters-21578: 001 (Yih and Meek 2010), Tables 2 and 3.

Two documents are similar if they share at least one topic. All pairs of test documents are scored, about four million.
Table 2 compares term vectors: TFIDF, TWEAK, HDILR and VL-Ext. Table 3 compares concept vectors of five dimensions: LSA,
VL-CV and HDLR. The scale gamma, the regulariser and the moment to stop are chosen by the AUC over all pairs of a tenth
of the training documents, held out; the paper's own development set, 5 % of the training pairs, stands beside in the
records. The paper, AUC / Max-F1 / P@5 / P@10 / MAP: TFIDF .817 .621 .799 .773 .601, TWEAK .890 .728 .838 .812 .625,
HDILR .826 .632 .810 .784 .607, VL-Ext .968 .846 .873 .852 .749; LSA .947 .806 .772 .762 .703, VL-CV .986 .915 .817 .811
.779, HDLR .976 .886 .841 .834 .795. TWEAK has the features of the paper's Table 1 without parts of speech, and web
frequencies for those of a query log. Three rows ask why VL-Ext's AUC is above the paper's: the printed loss (gamma 1),
terms paired in similar documents alone, and terms ranked by their largest product instead of the sum.

    JAXSIM_DATA=/path/to/corpora python experiments/yih2010_reuters.py --preset full
    JAXSIM_DATA=/path/to/corpora python experiments/yih2010_reuters.py --preset quick --out /tmp/quick

Time: quick under a minute on two cores, and nothing where JAXSIM_DATA is not set; of full see the
records.
"""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from experiments import reuters_rows as more
from experiments.reuters_learn import fitted_alone, learned
from experiments.reuters_task import EXPERIMENT, FULL, QUICK, Sample, Task, judge
from jaxsim import losses, sparse, text
from jaxsim.data import MissingCorpus, labelled_pairs
from jaxsim.evaluate import all_pairs
from jaxsim.methods import lsa, projections, tweak, vl_cv
from jaxsim.methods.weights import concepts, term_weights
from jaxsim.methods.weights.concepts import Concepts
from jaxsim.optim import Fit
from jaxsim.sparse import Vectors
from jaxsim.text import features

ROOT = Path(__file__).resolve().parent
K = 5
# Rows that show nothing on the little data of the quick preset: run there only if asked for.
FULL_ONLY = {"tweak-pref-more", "vl-cv-more", "vl-ext-more", "vl-ext-gamma1", "vl-ext-similar", "vl-ext-maximum",
             "hdilr", "tweak-curve", "vl-cv-curve", "vl-cv-k", "opca-k", "cca-k", "s2net-k"}


def weighted(task: Task, row: str, weigh, vocabulary: text.Vocabulary | None = None) -> None:
    """A weighting without anything learned."""
    vocabulary = vocabulary or task.vocabulary
    counts = text.counts(task.folded["test"], vocabulary)
    vectors = Vectors(sparse=sparse.from_scipy(weigh(counts, vocabulary.df, vocabulary.num_docs)))
    task.record("table2", row, [vectors], config={"min_df": 2 if vocabulary is task.vocabulary else 1}, dev={})


def tweaked(task: Task, row: str, *, loss=None, num: int | None = None) -> None:
    """TWEAK with one of its losses (`losses.squared`, `losses.log`; preferences unless given)."""
    alphas = task.settings.alphas if num is None else (0.0,)  # many pairs need no regulariser
    num = task.settings.pairs if num is None else num
    start = tweak.least_squares(task.featured["train"], task.weights("train"))
    gammas = [{}] if loss else [{"gamma": gamma} for gamma in task.settings.tweak_gammas]
    options = [{**gamma, "alpha": alpha} for gamma in gammas for alpha in alphas]

    def train(sample: Sample, option: dict, validate: Callable) -> Fit:
        documents = task.featured["train"]
        chosen = sample.pairs if loss else labelled_pairs.preferences_of(sample.pairs)
        settings = {**option, **({"loss": loss} if loss else {})}
        return tweak.fit(documents, documents, chosen, init=start, max_iter=task.settings.max_iter,
                         patience=task.settings.patience, validate=validate, **settings)

    learned(task, "table2", row, options, num, task.featured, term_weights.encode, train,
            regulariser="distance from the start")


def fit_lsa(task: Task) -> None:
    """LSA of tf·idf rows of their own lengths, projected by U / S; 5 dimensions as in the paper."""
    train, test = (sparse.from_scipy(task.tfidf[part]) for part in ("train", "test"))
    sample = task.sample(task.settings.seeds[0], task.settings.pairs)
    begun = time.perf_counter()
    found = lsa.fit(train, k=K, singular_power=-1.0)
    seconds = time.perf_counter() - begun
    ks = [k for k in task.settings.ks if k <= len(sample.fit)]
    part = lsa.fit(fitted_alone(train, sample), k=max(ks), singular_power=-1.0).params
    dev, labels = sparse.take(train, sample.dev), task.labels["train"][sample.dev]
    curve = [{"k": k, "auc": all_pairs.auc(projections.encode(projections.truncate(part, k), dev), labels),
              "split": "dev"} for k in ks]
    at = next(point["auc"] for point in curve if point["k"] == K)
    task.record("table3", "lsa", [projections.encode(found.params, test)],
                config={"k": K, "singular_power": -1.0, "unit_length": False}, dev={"auc": at}, curve=curve,
                seconds=seconds)


def conceived(task: Task, row: str, *, num: int | None = None, joint: bool = False) -> None:
    """VL-CV from LSA: of tf·idf alone (the paper's row), or with the weights of all features learned too."""
    num = task.settings.pairs if num is None else num
    if joint:
        documents, weights = task.featured, tweak.least_squares(task.featured["train"], task.weights("train")).weights
    else:
        documents = {part: features.single(sparse.from_scipy(one)) for part, one in task.tfidf.items()}
        weights = np.ones(1, np.float32)
    tfidf = sparse.from_scipy(task.tfidf["train"])
    options = [{"gamma": gamma, "beta": 0.0} for gamma in task.settings.concept_gammas]

    def train(sample: Sample, option: dict, validate: Callable) -> Fit:
        chosen = documents["train"]
        start = lsa.fit(fitted_alone(tfidf, sample), k=K, singular_power=-1.0).params
        return vl_cv.fit(chosen, chosen, labelled_pairs.preferences_of(sample.pairs),
                         init=Concepts(start.weights, weights),
                         max_iter=task.settings.max_iter, patience=task.settings.patience, validate=validate, **option)

    learned(task, "table3", row, options, num, documents, concepts.encode, train, k=K)


ROWS: dict[str, dict[str, Callable[[Task], None]]] = {
    "table2": {
        "log-tfidf": lambda task: weighted(task, "log-tfidf", text.log_tf_idf),
        "tfidf": lambda task: weighted(task, "tfidf", text.tf_idf),
        "tfidf-min-df1": lambda task: weighted(task, "tfidf-min-df1", text.tf_idf, task.every_term),
        "tweak-sse": lambda task: tweaked(task, "tweak-sse", loss=losses.squared),
        "tweak-log": lambda task: tweaked(task, "tweak-log", loss=losses.log),
        "tweak-pref": lambda task: tweaked(task, "tweak-pref"),
        "tweak-pref-more": lambda task: tweaked(task, "tweak-pref-more", num=task.settings.more_pairs // 2),
        **more.TABLE_2,
    },
    "table3": {
        "lsa": fit_lsa,
        "vl-cv": lambda task: conceived(task, "vl-cv"),
        "vl-cv-more": lambda task: conceived(task, "vl-cv-more", num=task.settings.more_pairs),
        "vl-cv-features": lambda task: conceived(task, "vl-cv-features", joint=True),
        **more.TABLE_3,
    },
}


def main() -> None:
    """Fills the tables row by row; a row that has its record is skipped unless ``--again``."""
    names = sorted({row for rows in ROWS.values() for row in rows})
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=("quick", "full"), default="quick")
    parser.add_argument("--tables", nargs="+", choices=tuple(ROWS), default=tuple(ROWS), metavar="TABLE",
                        help=f"of {', '.join(ROWS)}; all unless given")
    parser.add_argument("--rows", nargs="+", choices=names, metavar="ROW", help=f"of {', '.join(names)}; all unless "
                        "given")
    parser.add_argument("--seeds", type=int, nargs="+", metavar="SEED", help="the preset's unless given; to try a row")
    parser.add_argument("--out", type=Path, help="folder of the records; experiments/results for full, a temporary "
                        "folder for quick")
    parser.add_argument("--again", action="store_true", help="run rows that have a record once more")
    parser.add_argument("--judge", action="store_true", help="fit nothing: only mark best sets and statuses again, "
                        "from the records' per-query values")
    given = parser.parse_args()
    quick = given.preset == "quick"
    out = given.out or (Path(tempfile.mkdtemp(prefix="jaxsim-")) if quick else ROOT / "results")
    if (quick or given.seeds) and out.resolve().is_relative_to(ROOT / "results"):
        parser.error("--out: expected a folder outside experiments/results for the quick preset and for --seeds")
    settings = QUICK if quick else FULL
    if given.seeds:
        settings = dataclasses.replace(settings, seeds=tuple(given.seeds))
    if not given.judge:
        try:
            task = Task(settings, out, publish=not quick and given.out is None)
        except MissingCorpus as error:
            if quick:
                print(f"{EXPERIMENT}: skipped, nothing was run: {error}")
                return
            parser.exit(2, f"{parser.prog}: {error}\n")
        for table in given.tables:
            for row, fill in ROWS[table].items():
                wanted = row in given.rows if given.rows else not (quick and row in FULL_ONLY)
                if wanted and (given.again or not task.done(table, row)):
                    fill(task)
    for table in given.tables:
        if (out / EXPERIMENT / table).is_dir():
            judge(out, table, publish=not quick and given.out is None)
    print(out)


if __name__ == "__main__":
    main()
