"""Similarity of short phrases: 004 (Yih 2009), Table 1, on pairs of patent phrases.

A judged pair is an anchor phrase and a target phrase with a similarity of 0 to 1; it is positive from .75 on, and a
phrase paired with itself does not count. Every phrase is searched for by BM25 in passages of 50 words of local
collections: the 2007 Wikipedia for Schools, Reuters-21578, abstracts (NFCorpus, CACM, CISI, Cranfield, NPL), the manual
of the Apache HTTP Server, English pages of MDN and of other technical sites, and descriptions of products. The best 5,
10, 20, 50, 100, 200, 400 or 800 passages, each below its title where it has one, are the phrase's pseudo-document. Of
its words it keeps those of the phrase, and of the others those with the highest tf·idf, 200 in all. A phrase whose
words are in no passage has an empty one, whose cosines are 0.

All pairs of an anchor are in one of ten folds. In each fold, a tenth of the training anchors is for choices. The number
of passages is the one whose tf·idf cosines have the best AUC on the pairs of these anchors; all rows of the fold have
it, that of tf·idf too. The start, the scale γ, the regulariser α and the moment to stop are then chosen row by row, by
the AUC on the same pairs. Test pairs choose nothing. Words of a passage and terms of a pseudo-document are not chosen.
Figures are means over the folds. AUC counts a tie as one half; a note gives the rank loss (1 - AUC) with ties as errors
too, where that differs.

`tweak-sse`, `tweak-log` and `tweak-pref` have the paper's features (004 §4.1.2). The query frequency of a term is the
number of phrases with it among those of the training folds. `-more` rows have five columns beside: whether the term is
in the phrase, the share of its snippets with the term, the rank of the best one, the term frequency as BM25 saturates
it, and tf·idf. They start from tf·idf exactly: 1 for that column and 0 for all others. `tweak-pref-graded` has these
columns, and learns from pairs of targets of one anchor with different grades; `tweak-pref` and `tweak-pref-more` learn
from random pairs of a positive and a negative pair, of any anchors.

Expected (004, on web queries and the suggestions of a search engine, AUC / MAP / P@3): web-kernel (tf·idf) .732 .540
.556, squared error .775 .590 .553, log loss .781 .585 .545, preferences .782 .597 .570.

Differs from the paper: other phrases; local collections in place of the web; a query log of the phrases themselves. The
regulariser draws to the start and not to zero, where a cosine is undefined.

    JAXSIM_DATA=/path/to/corpora python -m experiments.tweak.tweak2009_phrases --preset full
    JAXSIM_DATA=/path/to/corpora python -m experiments.tweak.tweak2009_phrases --preset quick --out /tmp/quick

Time: quick takes less than a minute on two cores; of full each record has its own.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from experiments import kit
from experiments.corpora import folds, passages, snippets
from experiments.corpora.folds import Folds
from jaxsim import losses, sparse, text
from jaxsim.data import judged, splits, wikispeedia
from jaxsim.evaluate import metrics
from jaxsim.methods.weights import quadratic_forms, tweak_pairs
from jaxsim.methods.weights.quadratic_forms import Forms
from jaxsim.methods.weights.term_weights import TermWeights
from jaxsim.optim import Fit
from jaxsim.text import features
from jaxsim.text.features import Featured

# The presets are those of all three tables of 004 (`corpora.folds.Settings`), with the numbers of snippets beside. In
# `full` there are ten folds, 40,000 preferences a fold, and ladders of γ and α. `Folds.parts(number)` are the rows of a
# fold that are fitted on, chosen by (`dev`) and tested; `Folds.tested(scores, names)` measures every fold;
# `folds.choose_fit` takes the best start, and then γ and α, by development AUC.

METRICS = ("auc", "map", "p@3")
WORDS, POSITIVE = 50, 0.75
QUICK_ARTICLES = 300
PAPERS, MORE = features.PLAIN_TEXT, snippets.NAMES


@dataclass(frozen=True)
class Settings(folds.Settings):
    """What a preset fixes, as for the other tables of 004, and of the search.

    Attributes:
      snippets: Passages of a phrase at most; every fold chooses one number.
      terms: Terms of a pseudo-document at most.
    """

    snippets: tuple[int, ...] = (5, 10, 20, 50, 100, 200, 400, 800)
    terms: int = 200
    alphas: tuple[float, ...] = (0.0, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0,
                                 30.0, 100.0, 300.0, 1000.0)


FULL = Settings()
QUICK = Settings(**{**dataclasses.asdict(folds.QUICK), "snippets": (10, 50), "terms": 100})


@dataclass(frozen=True, eq=False)
class Phrases:
    """All phrases as documents, anchors first, and the judged pairs of them.

    Attributes:
      own: ``[num_phrases, num_terms]`` tf·idf of the phrases' own words.
      weighted: Number of snippets -> tf·idf of the pseudo-documents, with a value for every slot of ``documents``.
      documents: Number of snippets -> pseudo-documents with the features of their terms, not scaled; ``log_qf`` is 0.
      grades: ``[n]`` similarity of each pair.
      folds: The judged pairs as rows of the matrices, their labels, and the parts fit, dev and test of each fold.
    """

    own: sp.csr_matrix
    weighted: dict[int, sp.csr_matrix]
    documents: dict[int, Featured]
    grades: np.ndarray
    folds: Folds


def searched(settings: Settings) -> tuple[list[list[str]], dict[str, int], str]:
    """Passages, how many of each collection, and a digest of the collections; a preset with a limit has some articles.

    Passages of the same words in several places are one.
    """
    if settings.limit is None:
        read = snippets.collections()
    else:
        articles = wikispeedia.load()
        chosen = np.linspace(0, len(articles.ids) - 1, QUICK_ARTICLES).astype(int)
        read = [("wikispeedia", [articles.texts[at] for at in chosen], [articles.titles[at] for at in chosen],
                 articles.sha256)]
    tokens: dict[tuple[str, ...], None] = {}
    counts, digest = {}, hashlib.sha256()
    for name, texts, titles, sha256 in read:
        before = len(tokens)
        tokens.update(dict.fromkeys(map(tuple, passages.cut(texts, titles, size=WORDS))))
        counts[f"passages of {name}"] = len(tokens) - before
        digest.update(sha256.encode())
    return [list(one) for one in tokens], counts, digest.hexdigest()


def load(name: str, settings: Settings) -> kit.Data:
    """Searches for every phrase, and extracts the features of the terms in its pseudo-documents."""
    pairs = judged.load_phrases()
    anchors = sorted(set(pairs.anchors))
    if settings.limit is not None:
        anchors = [anchors[at] for at in np.linspace(0, len(anchors) - 1, settings.limit).astype(int)]
    place = {anchor: at for at, anchor in enumerate(anchors)}
    kept = [row for row, anchor in enumerate(pairs.anchors) if anchor in place]
    phrases = [*anchors, *sorted({pairs.targets[row] for row in kept} - place.keys())]
    number = {phrase: at for at, phrase in enumerate(phrases)}

    tokens, counted, digest = searched(settings)
    index = passages.index(tokens)
    vocabulary, words = index.vocabulary, snippets.numbered(index)
    results = passages.search(index, [text.words(phrase) for phrase in phrases], k=max(settings.snippets))
    own = folds.tf_idf(features.extract([text.words(phrase) for phrase in phrases], vocabulary, names=features.TF_DF),
                       vocabulary)
    made = {num: snippets.extract(index, words, results, own, num=num, terms=settings.terms)
            for num in settings.snippets}

    grades = pairs.scores[kept]
    positive = grades >= POSITIVE
    query = np.array([place[pairs.anchors[row]] for row in kept])
    left, right = (np.array([number[side[row]] for row in kept]) for side in (pairs.anchors, pairs.targets))
    groups = splits.group_near_duplicates([text.words(anchor) for anchor in anchors])
    content = Phrases(own, {num: weighted for num, (_, weighted) in made.items()},
                      {num: documents for num, (documents, _) in made.items()}, grades,
                      Folds(left, right, positive, query, groups, num=settings.folds, dev=settings.dev))
    counts = {**pairs.counts, "anchors": len(anchors), "pairs_used": len(kept), "phrases": len(phrases),
              "positive_pairs": int(positive.sum()),
              "anchors_without_a_positive_pair": len(anchors) - len(set(query[positive].tolist())),
              "phrases_that_find_nothing": sum(not len(rows) for rows in results),
              "passages": len(index), **counted, "terms": len(vocabulary)}
    return kit.Data(content, name="us_patent_phrases, searched in local collections",
                    sha256=hashlib.sha256(f"{pairs.sha256}{digest}".encode()).hexdigest(), counts=counts,
                    differs="substitute: patent phrases of five grades for judged query suggestions; passages of "
                    "local collections for web snippets; the phrases of the training folds for a query log",
                    groups={"groups of anchors": int(groups.max()) + 1}, paper="004 Table 1")


def common(table: kit.Table) -> dict:
    """The entries of the record's configuration that all rows share."""
    return {"folds": table.settings.folds, "seeds": "the numbers of the folds"}


def of_search(table: kit.Table) -> dict:
    """The entries of rows with a search; the number of snippets is in ``dev``, fold by fold."""
    return {**common(table), "words": WORDS, "terms": table.settings.terms}


def web_kernels(table: kit.Table) -> dict[int, np.ndarray]:
    """Cosines of all pairs by tf·idf of the pseudo-documents, for each number of snippets."""
    data = table.data
    return table.once("web kernels", lambda: {
        num: folds.cosines(weighted, data.folds.left, data.folds.right) for num, weighted in data.weighted.items()})


def number_of_snippets(table: kit.Table, number: int) -> dict:
    """The number of snippets in a fold: the one with the best AUC of tf·idf on the fold's development pairs.

    Returns:
      ``snippets``, its ``auc``, what was ``tried``, and whether the number is at an edge of its grid (``edges``).
    """
    judgements, kernels = table.data.folds, web_kernels(table)
    rows = judgements.parts(number).dev

    def score(snippets: int) -> float:
        return float(metrics.auc(kernels[snippets][rows], judgements.positive[rows].astype(float)))

    choice = kit.choose([{"snippets": num} for num in table.settings.snippets], score, by="auc")
    return {**choice.best, "auc": choice.score, "tried": choice.tried, "edges": list(choice.at_edge)}


def dev_of(table: kit.Table, chosen: list[dict]) -> dict:
    """What a record says of choices made fold by fold."""
    return {"auc": float(np.mean([entry["auc"] for entry in chosen])), "folds": chosen,
            "pairs": f"a share of {table.settings.dev:g} of the pairs outside the test fold, whole queries"}


def web_kernel(table: kit.Table) -> kit.Row:
    """Cosines of the pseudo-documents' tf·idf: the paper's baseline. Each fold chooses the number of snippets."""
    judgements, kernels = table.data.folds, web_kernels(table)
    chosen = [{"fold": number, **number_of_snippets(table, number)} for number in range(table.settings.folds)]
    scores = np.zeros(len(judgements.left))
    for entry in chosen:
        rows = judgements.parts(entry["fold"]).test
        scores[rows] = kernels[entry["snippets"]][rows]
    return kit.Row(of_search(table), **judgements.tested(scores, METRICS), dev=dev_of(table, chosen))


def bare(table: kit.Table) -> kit.Row:
    """Cosines of the tf·idf of the phrases' own words, without any search. Nothing is chosen; no claim."""
    data = table.data
    scores = folds.cosines(data.own, data.folds.left, data.folds.right)
    return kit.Row(common(table), **data.folds.tested(scores, METRICS))


def query_frequency(data: Phrases, number: int) -> np.ndarray:
    """Phrases with each term, among those that the pairs outside a fold have; a phrase counts once."""
    rows = np.flatnonzero(data.folds.fold != number)
    seen = np.unique(np.concatenate([data.folds.left[rows], data.folds.right[rows]]))
    own = data.own[seen]
    return np.bincount(own.indices, minlength=own.shape[1]).astype(np.float64)


def prepared(data: Phrases, number: int, num: int, names: tuple[str, ...]) -> Featured:
    """Pseudo-documents of a fold, of ``num`` snippets, with some columns, scaled; tf·idf keeps its zero."""
    documents = snippets.with_query_frequency(data.documents[num], query_frequency(data, number))
    documents = features.choose(documents, names)
    scale = features.scale_of(documents)
    zero = np.array([name == "tfidf" for name in names])
    return features.scaled(documents, scale._replace(mean=np.where(zero, 0.0, scale.mean)))


def starts(documents: Featured, weighted: sp.csr_matrix) -> dict[str, TermWeights]:
    """The starts, of which none reads a label: with a column of tf·idf, that alone; otherwise `folds.starts`."""
    if "tfidf" not in documents.names:
        return folds.starts(documents, weighted)
    one = np.array([name == "tfidf" for name in documents.names])
    return {"tf·idf": TermWeights(jnp.asarray(one, documents.columns.dtype))}


def anchors_alone(documents: Featured, num: int) -> Featured:
    """The first ``num`` documents."""
    csr = sparse.to_scipy(documents.terms)[:num]
    terms = sparse.from_scipy(csr)
    columns = np.zeros((terms.values.shape[0], len(documents.names)), documents.columns.dtype)
    columns[: csr.nnz] = np.asarray(documents.columns)[: csr.nnz]
    return Featured(terms, jnp.asarray(columns), documents.names)


def planned(table: kit.Table, number: int, names: tuple[str, ...]) -> tuple[Forms, dict[str, TermWeights]]:
    """The pairs' quadratic forms in a fold's features, which all its fits read, and the starts.

    The forms differ from fold to fold by the number of snippets and the query frequency. They take far longer than a
    fit, so that rows with the same features share them.
    """

    def make() -> tuple[Forms, dict[str, TermWeights]]:
        data, num = table.data, number_of_snippets(table, number)["snippets"]
        documents = prepared(data, number, num, names)
        anchors = anchors_alone(documents, int(data.folds.left.max()) + 1)
        forms = quadratic_forms.plan(anchors, documents, data.folds.left, data.folds.right)
        return forms, starts(documents, data.weighted[num])

    return table.once(("forms", number, names), make)


def draw_random(parts: folds.Parts, data: Phrases, size: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """``size`` positive pairs and as many negative ones to fit on, of any anchors."""
    positive = data.folds.positive[parts.fit]
    return tuple(rng.choice(parts.fit[positive == side], size) for side in (True, False))


def draw_graded(parts: folds.Parts, data: Phrases, size: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """``size`` better and worse pairs to fit on: targets of one anchor with different grades, drawn evenly.

    Each is drawn once where there are enough.
    """
    better, worse = [], []
    for query in np.unique(data.folds.query[parts.fit]):
        rows = parts.fit[data.folds.query[parts.fit] == query]
        high, low = np.nonzero(data.grades[rows][:, None] > data.grades[rows])
        better.append(rows[high])
        worse.append(rows[low])
    better, worse = np.concatenate(better), np.concatenate(worse)
    chosen = rng.choice(len(better), size, replace=len(better) < size)
    return better[chosen], worse[chosen]


def best_of_fold(
    table: kit.Table, number: int, size: int, names: tuple[str, ...], loss: Callable | None, draw: Callable
) -> tuple[dict, Fit]:
    """The best fit of a fold by the AUC on its development pairs.

    γ is a setting of preferences alone (``loss`` None), which ``draw`` draws. ``size`` labelled pairs are drawn, as
    many in every fold, so that one compiled program serves all folds. Returns the chosen settings, among them which lie
    at an edge of their grid (``edges``), and the fit.
    """
    settings, judgements = table.settings, table.data.folds
    forms, weights = planned(table, number, names)
    parts, rng = judgements.parts(number), np.random.default_rng([number, size])
    held, labels = tweak_pairs.take(forms, parts.dev), judgements.positive[parts.dev].astype(float)
    if loss is None:
        better, worse = draw(parts, table.data, settings.preferences, rng)
    else:
        rows = np.sort(rng.choice(parts.fit, size, replace=False))

    def validate(params: TermWeights) -> float:
        return float(metrics.auc(np.asarray(quadratic_forms.cosines(params.weights, held), np.float64), labels))

    if loss is None:
        entry, fit = folds.fit_preferences(table, forms, (better, worse), weights, validate=validate,
                                           reads=[parts.dev, labels], by="auc")
    else:
        def fitted(start: str, gamma: float, alpha: float) -> Fit:
            return table.fit(tweak_pairs, reads=[parts.dev, labels])(
                forms, rows, judgements.positive[rows], init=weights[start], loss=loss, alpha=alpha / size,
                max_iter=settings.max_iter, patience=settings.patience, validate=validate)

        entry, fit = folds.choose_fit(fitted, weights, gammas=(1.0,), alphas=settings.alphas)
    search = number_of_snippets(table, number)
    edges = [*search["edges"], *entry["edges"]]
    return {"fold": number, "snippets": search["snippets"], **entry, "edges": edges}, fit


def learn(
    table: kit.Table, names: tuple[str, ...], loss: Callable | None = None, draw: Callable = draw_random
) -> kit.Row:
    """TWEAK with one of its losses (None: preferences). Each fold chooses, fits, and then scores its own test pairs."""
    settings, judgements = table.settings, table.data.folds
    scores, chosen, fits = np.zeros(len(judgements.left)), [], []
    size = min(len(judgements.parts(number).fit) for number in range(settings.folds))
    for number in range(settings.folds):
        entry, fit = best_of_fold(table, number, size, names, loss, draw)
        rows, forms = judgements.parts(number).test, planned(table, number, names)[0]
        scores[rows] = np.asarray(quadratic_forms.cosines(fit.params.weights, tweak_pairs.take(forms, rows)))
        chosen, fits = [*chosen, entry], [*fits, fit]
    return kit.Row({**of_search(table), "features": list(names)}, **judgements.tested(scores, METRICS),
                   dev=dev_of(table, chosen), fit=fits[0])


def squared_error(table: kit.Table) -> kit.Row:
    """TWEAK by squared errors of labelled pairs (Eq. 4). Each fold chooses start, α and when to stop, by AUC."""
    return learn(table, PAPERS, losses.squared)


def log_loss(table: kit.Table) -> kit.Row:
    """TWEAK by the log loss of labelled pairs (Eq. 5). Each fold chooses start, α and when to stop, by AUC."""
    return learn(table, PAPERS, losses.log)


def preferences(table: kit.Table) -> kit.Row:
    """TWEAK by the logistic loss of preferences between pairs (Eq. 6). Each fold chooses start, γ, α, when to stop."""
    return learn(table, PAPERS)


def squared_error_more(table: kit.Table) -> kit.Row:
    """`tweak-sse` with five columns more, from tf·idf. Each fold chooses α and when to stop, by AUC."""
    return learn(table, MORE, losses.squared)


def log_loss_more(table: kit.Table) -> kit.Row:
    """`tweak-log` with five columns more, from tf·idf. Each fold chooses α and when to stop, by AUC."""
    return learn(table, MORE, losses.log)


def preferences_more(table: kit.Table) -> kit.Row:
    """`tweak-pref` with five columns more, from tf·idf. Each fold chooses γ, α and when to stop, by AUC."""
    return learn(table, MORE)


def preferences_graded(table: kit.Table) -> kit.Row:
    """`tweak-pref-more`, from preferences between targets of one anchor with different grades."""
    return learn(table, MORE, draw=draw_graded)


ROWS = {"tfidf": web_kernel, "tfidf-bare": bare, "tweak-sse": squared_error, "tweak-log": log_loss,
        "tweak-pref": preferences, "tweak-sse-more": squared_error_more, "tweak-log-more": log_loss_more,
        "tweak-pref-more": preferences_more, "tweak-pref-graded": preferences_graded}
TABLES = {"patent-phrases": kit.Plan(ROWS, {"quick": QUICK, "full": FULL})}

PRINTED = {"tfidf": (0.732, 0.540, 0.556), "tweak-sse": (0.775, 0.590, 0.553), "tweak-log": (0.781, 0.585, 0.545),
           "tweak-pref": (0.782, 0.597, 0.570)}
NAMES = {"tfidf": "the TFIDF scheme", "tweak-sse": "squared error", "tweak-log": "log loss",
         "tweak-pref": "preference learning"}
OURS = {"tweak-sse-more": "squared error with our columns", "tweak-log-more": "log loss with our columns",
        "tweak-pref-more": "preference learning with our columns",
        "tweak-pref-graded": "preference learning from grades, with our columns"}


LACKING = ("the paper's features lack tf·idf itself: with it and four columns more (`-more`) the same loss is above "
           "TFIDF by AUC (squared error .696, log loss .708, preferences .714, against .690; the first is within what "
           "ten folds show)")
FOLDS = ("in the paper's direction, by .012 to .013 of MAP, which ten folds that share most of what is trained on do "
         "not show; the paper's own test does not count that")
LEVEL = "not known; the three losses differ by less than their folds do"
"""Why verdicts are against the paper, as far as the records tell."""


def above(better: str, worse: str, metric: str) -> kit.Claim:
    """That one row is above another by a metric; the paper's test is a paired t test over the ten folds."""
    column = METRICS.index(metric)
    return kit.Claim(f"004-{better}-{worse}-{metric}", place="004 §4.1.3, Table 1", tables=("patent-phrases",),
                     sentence=f"{NAMES[better]} has a higher {metric.upper()} than {NAMES[worse]}",
                     better=better, worse=worse, metric=metric,
                     printed={row: PRINTED[row][column] for row in (better, worse)}, test="paired t", alpha=0.05,
                     why={"patent-phrases": LEVEL if worse != "tfidf" else LACKING if metric == "auc" else FOLDS})


def above_with_ours(better: str, metric: str) -> kit.Claim:
    """That a row with our columns is above tf·idf by a metric; the paper has no such row and prints no figure."""
    return kit.Claim(f"004-{better}-tfidf-{metric}", place="004 §4.1.3", tables=("patent-phrases",), own=True,
                     sentence=f"{OURS[better]} has a higher {metric.upper()} than {NAMES['tfidf']}",
                     better=better, worse="tfidf", metric=metric, test="paired t", alpha=0.05,
                     why={"patent-phrases": "not known; settings and the moment to stop are chosen by AUC, by which "
                                            "the row is above" if metric == "map" else
                                            "the row is above by .007, which ten folds that share most of what is "
                                            "trained on do not show"})


def only_preferences_at_three(rows: Mapping[str, Mapping]) -> tuple[bool, str]:
    """Whether preferences are the only one of the three losses whose P@3 is higher than the baseline's.

    The paper says that its own difference is not significant, so none is asked for; p stands in the line.
    """
    _, line = kit.above_over_folds(rows, PRINTED, "tfidf", "p@3")
    sums = {row: sum(rows[row]["metrics"]["p@3"]["per_seed"]) for row in PRINTED}
    return [row for row in PRINTED if sums[row] > sums["tfidf"]] == ["tweak-pref"], line


CLAIMS = [
    *(above(row, "tfidf", metric) for row in ("tweak-sse", "tweak-log", "tweak-pref") for metric in ("auc", "map")),
    *(above("tweak-pref", row, metric) for row in ("tweak-sse", "tweak-log") for metric in ("auc", "map")),
    kit.Claim("004-p@3", sentence="by precision at 3 only preference learning is above the TFIDF scheme",
              place="004 §4.1.3, Table 1", tables=("patent-phrases",), better="tweak-pref", worse="tfidf", metric="p@3",
              printed={row: figures[2] for row, figures in PRINTED.items()}, test="paired t",
              holds=only_preferences_at_three,
              why={"patent-phrases": "all three losses are above it here, none of them by what ten folds show"}),
    *(above_with_ours(row, metric) for row in OURS for metric in ("auc", "map")),
]
EXPERIMENT = kit.Experiment("tweak2009_phrases", __doc__, load, TABLES, CLAIMS)

if __name__ == "__main__":
    kit.run(EXPERIMENT)
