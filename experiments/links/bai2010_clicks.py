"""Content matching by clicks: 003 (Bai et al. 2010), Table 11, on the clicks of Wikispeedia's players.

A page and one of its links that a player clicked stand for the paper's page and clicked advert; worse are the links of
the same page that nobody clicked. Pages are split 60 / 10 / 30% (near-duplicates together); test pages are unseen,
their targets are not. Only the links of a page are scored: rank loss over its clicked and unclicked ones. b and the
rate are chosen by dev rank loss; n in ssi-asym-n is how many of the most frequent words the low-rank part sees. SSI
scores a page q and a link's target d by qᵀWd, W = UᵀV + b·I, and learns U and V from triples of a page, a clicked and
an unclicked link by the margin ranking loss; hash kernels learn a W whose entries share a table of a size.
Popularity, a target's clicks on training pages, is a row that the paper lacks, alone and added to the others.

Expected (003, rank loss): TFIDF 45.6%, hash kernels 25.6%, UᵀV + I 25.8% to 27.0%; half of its pairs are positive.

    JAXSIM_DATA=/path/to/corpora python -m experiments.links.bai2010_clicks --preset full
    python -m experiments.links.bai2010_clicks --preset quick --out /tmp/quick

Time: quick a quarter of a minute on two cores; full: its records state the seconds of every row.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import jax
import numpy as np
import scipy.sparse

from experiments import kit
from experiments.corpora import links as corpora
from experiments.corpora.links import MAX_TERMS, Part
from jaxsim import sparse, text
from jaxsim.data import links as linked
from jaxsim.data import splits, wikispeedia
from jaxsim.evaluate.ranking import Judged
from jaxsim.methods import ssi_hash, ssi_preferred
from jaxsim.methods.ssi import bilinear


@dataclass(frozen=True)
class Settings:
    """What a preset fixes.

    Attributes:
      k: Rank of UᵀV.
      identities: Grid of b; dev rank loss chooses.
      rates: Learning rates; dev rank loss chooses.
      boosts: Grid of the weight of popularity; dev rank loss chooses.
      triples: Triples an epoch.
      max_iter: Epochs, at most.
      patience: Epochs without a better dev score before training stops.
      seeds: Of the starts and the triples.
      num_terms: Words of the dictionary.
      hashes: Name -> size of the hash table.
      hash_identities: Grid of the weight that pairs of a word with itself start from; dev rank loss chooses.
      hash_rates: Learning rates of hash kernels; dev rank loss chooses.
      hash_grid: Epochs of the fits that these are chosen by.
      hash_terms: Strongest terms of a document that hash kernels see: a step costs as much as there are pairs.
      limit: Articles; None for all.
    """

    k: int = 50
    identities: tuple[float, ...] = (1.0, 3.0, 10.0, 30.0)
    rates: tuple[float, ...] = (0.03, 0.1, 0.3)
    boosts: tuple[float, ...] = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
    triples: int = 40_000
    max_iter: int = 100
    patience: int = 3
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    num_terms: int = 30_000
    hashes: dict = field(default_factory=lambda: {"1m": 1_000_003, "10m": 10_000_019})
    hash_identities: tuple[float, ...] = (1.0, 3.0, 10.0, 30.0)
    hash_rates: tuple[float, ...] = (0.3, 1.0, 3.0, 10.0, 30.0)
    hash_grid: int = 2
    hash_terms: int = 100
    limit: int | None = None


FULL = Settings()
QUICK = Settings(k=10, identities=(10.0,), rates=(0.1,), boosts=(0.01, 0.1), triples=2000, max_iter=2,
                 seeds=(0, 1), num_terms=3000, hashes={"1m": 10_007, "10m": 100_003}, hash_identities=(3.0,),
                 hash_rates=(1.0,), hash_terms=30, limit=200)
SHARES = {"train": 0.6, "dev": 0.1, "test": 0.3}
DIFFERS = ("substitute: links of encyclopedia articles that players of a game clicked or did not, in place of adverts; "
           "every link of a page is a candidate, clicked however rarely; the dictionary is of all articles")


# `Part`, of `corpora.links`: the queries of a split. ``truth`` is what is right, ``queries`` the rows of the queries as
# the low-rank part sees them (their `MAX_TERMS` strongest terms), ``exact`` the scores of TFIDF. ``per_query(scores)``
# measures rank loss, MAP and P@10, ``means(scores)`` are their means, and ``sample(n)`` is an even part of the queries.


@dataclass(frozen=True, eq=False)
class Pages:
    """Pages with their clicked and unclicked links.

    Attributes:
      documents: All articles, TFIDF.
      preferred: ``[n, 2]`` clicked links of training pages, rows of articles.
      rejected: ``[m, 2]`` their unclicked links.
      parts: Dev and test.
      popularity: ``[num_articles]``, log(1 + clicks on training pages that lead to an article).
    """

    documents: scipy.sparse.csr_matrix
    preferred: np.ndarray
    rejected: np.ndarray
    parts: dict[str, Part]
    popularity: np.ndarray


def both_kinds(links: np.ndarray, clicked: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Clicked and unclicked links, ``[n, 2]`` each, of the pages that have both; a click on no link does not count."""
    is_clicked = np.isin(links @ [size, 1], clicked @ [size, 1])
    yes, no = (np.bincount(links[kind][:, 0], minlength=size) for kind in (is_clicked, ~is_clicked))
    kept = ((yes > 0) & (no > 0))[links[:, 0]]
    return links[kept & is_clicked], links[kept & ~is_clicked]


def judged(clicked: np.ndarray, unclicked: np.ndarray, size: int) -> Judged:
    """The links of each page alone: every other article is out of its list."""
    right, wrong = (scipy.sparse.csr_matrix((np.ones(len(pairs), np.int8), pairs.T), shape=(size, size))
                    for pairs in (clicked, unclicked))
    pages = np.flatnonzero(np.diff(right.indptr))
    listed = (right + wrong)[pages].toarray()
    return Judged(pages, right[pages], scipy.sparse.csr_matrix((1 - listed).astype(np.int8)))


def most_clicked(articles, clicks: np.ndarray, limit: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of the articles that most clicks lead to, and the links and clicks among them."""
    rows = np.arange(len(articles.ids))
    if limit is None:
        return rows, articles.links, clicks
    times = np.bincount(clicks[:, 1], clicks[:, 2], minlength=rows.size)
    rows = np.sort(np.argsort(-times, kind="stable")[:limit])
    inside = clicks[np.isin(clicks[:, :2], rows).all(axis=1)]
    among = np.column_stack([np.searchsorted(rows, inside[:, :2]), inside[:, 2]])
    return rows, linked.inside(articles.links, rows), among


def load(name: str, settings: Settings) -> kit.Data:
    """Articles, clicks, and the split by page."""
    articles = wikispeedia.load()
    rows, links, clicks = most_clicked(articles, wikispeedia.clicks(articles), settings.limit)
    ids, tokens = [articles.ids[row] for row in rows], [text.words(articles.texts[row]) for row in rows]
    size = rows.size
    clicked, unclicked = both_kinds(links, clicks[:, :2], size)
    pages = np.unique(clicked[:, 0])
    groups = splits.group_near_duplicates([tokens[page] for page in pages])
    places = splits.split(groups, [ids[page] for page in pages], shares=SHARES)
    split = {part: [pairs[np.isin(pairs[:, 0], pages[places[part]])] for pairs in (clicked, unclicked)]
             for part in SHARES}
    vocabulary = text.Vocabulary.build(tokens, drop_top=0, max_terms=settings.num_terms, min_df=2)
    documents = corpora.tfidf(text.counts(tokens, vocabulary), vocabulary.df, size)
    seen, parts = corpora.cut(documents), {}
    for part in ("dev", "test"):
        truth = judged(*split[part], size)
        parts[part] = Part(truth, seen[truth.queries], corpora.product(documents[truth.queries], documents))
    training = clicks[np.isin(clicks[:, 0], pages[places["train"]])]
    popularity = np.log1p(np.bincount(training[:, 1], training[:, 2], minlength=size)).astype(np.float32)
    digest = hashlib.sha256(articles.sha256.encode() + np.ascontiguousarray(clicks, "<i8").tobytes()).hexdigest()
    counts = {**articles.counts, "clicks": int(clicks[:, 2].sum()), "pairs_clicked": len(clicks),
              "split": {part: {"pages": places[part].size, "clicked": len(pairs[0]), "unclicked": len(pairs[1])}
                        for part, pairs in split.items()}}
    return kit.Data(Pages(documents, *split["train"], parts, popularity), name=f"{articles.name}, clicks",
                    sha256=digest, differs=DIFFERS, counts=counts, paper="003 Table 11",
                    groups={"groups": int(groups.max() + 1), "largest": int(np.bincount(groups).max())})


def tfidf(table: kit.Table) -> kit.Row:
    """Cosine of tf · log(N / df). Nothing is chosen."""
    dev, test = table.data.parts["dev"], table.data.parts["test"]
    return kit.Row({}, test.per_query(test.exact), dev={**dev.means(dev.exact), "split": "dev"})


def popularity(table: kit.Table) -> kit.Row:
    """log(1 + clicks on training pages), whatever the page. Nothing is chosen."""
    dev, test = table.data.parts["dev"], table.data.parts["test"]
    boosts = {part: np.broadcast_to(table.data.popularity, part.exact.shape) for part in (dev, test)}
    return kit.Row({}, test.per_query(boosts[test]), dev={**dev.means(boosts[dev]), "split": "dev"})


def with_popularity(table: kit.Table, boosts, every, seeds=()) -> kit.Row:
    """Functions of a part that give scores, one a seed, plus c times popularity; c by their mean dev rank loss."""
    pairs = [(scores, lambda part: table.data.popularity) for scores in every]
    return corpora.mixtures(table, pairs, boosts, by="rank_loss", lowest=True, seeds=seeds)


def tfidf_popularity(table: kit.Table) -> kit.Row:
    """TFIDF + c · popularity. Chosen: c, by dev rank loss."""
    return with_popularity(table, table.settings.boosts, [lambda part: part.exact])


def shown(table: kit.Table, num_terms: int | None) -> scipy.sparse.csr_matrix:
    """Documents as the low-rank part sees them: all their words, or those among the most frequent."""
    matrix = table.data.documents
    if num_terms is not None:
        entries = matrix.tocoo()
        kept = entries.col < num_terms
        matrix = scipy.sparse.csr_matrix((entries.data[kept], (entries.row[kept], entries.col[kept])), matrix.shape)
    return table.once(num_terms, lambda: corpora.cut(matrix))


def ssi_scores(params, part: Part, seen: scipy.sparse.csr_matrix) -> np.ndarray:
    """qᵀ(UᵀV + b·I)d of a part's queries and all documents."""
    query, document = params
    scores = (seen[part.truth.queries] @ np.asarray(query.weights)) @ (seen @ np.asarray(document.weights)).T
    return scores if query.scale is None else scores + float(query.scale[0]) * part.exact


def fit_ssi(table: kit.Table, num_terms: int | None, *, seed: int = 0, **options):
    """UᵀV + b·I from triples of a page, a clicked and an unclicked link; the epoch with the best dev score is kept."""
    data, settings = table.data, table.settings
    matrix, part = shown(table, num_terms), data.parts["dev"]
    documents, seen = sparse.from_scipy(data.documents), sparse.from_scipy(matrix)
    return table.fit(ssi_preferred, reads=part)(
        documents, documents, data.preferred, data.rejected, k=settings.k, key=jax.random.key(seed), seen=(seen, seen),
        triples=settings.triples, patience=settings.patience, max_iter=settings.max_iter,
        validate=lambda params: -part.means(ssi_scores(params, part, matrix))["rank_loss"], **options)


def choose_ssi(table: kit.Table, num_terms: int | None, identities) -> kit.Choice:
    """The rate and the b with the lowest dev rank loss of the first seed, one step at a time."""
    def score(**option):
        try:
            best = fit_ssi(table, num_terms, **option).best_score
        except FloatingPointError:  # a rate this high diverges
            return {"score": None, "rank_loss": None}
        return {"score": best, "rank_loss": -best}

    ladders = {"learning_rate": table.settings.rates, "identity": identities}
    return kit.climb(ladders, score, by="score", split="dev")


def low_rank(*, num_terms: int | None = None, identities=None):
    """The row W = UᵀV + b·I, every seed, of the ``num_terms`` most frequent words in UᵀV, or all.

    Chosen: the rate, and b of ``identities`` (the preset's grid unless given; None is no identity), by dev rank loss.
    """

    def row(table: kit.Table) -> kit.Row:
        settings, test = table.settings, table.data.parts["test"]
        choice = choose_ssi(table, num_terms, identities or settings.identities)
        fits = [fit_ssi(table, num_terms, seed=seed, **choice.best) for seed in settings.seeds]
        dev = [-fit.best_score for fit in fits]
        config = {**choice.best, "k": settings.k, "num_terms": num_terms or settings.num_terms,
                  "triples": settings.triples, "max_iter": settings.max_iter, "patience": settings.patience,
                  "max_terms": MAX_TERMS}
        tested = [test.per_query(ssi_scores(fit.params, test, shown(table, num_terms))) for fit in fits]
        return kit.Row(config, tested, dev={"rank_loss": float(np.mean(dev)), "per_seed": dev},
                       curve=choice.tried, fit=fits[0], seeds=settings.seeds)

    return row


def hash_scores(table: kit.Table, params, part: Part) -> np.ndarray:
    """Scores of a part's queries and all documents, as hash kernels see them."""
    seen = table.once("hashed", lambda: bilinear.strongest(sparse.from_scipy(table.data.documents),
                                                           table.settings.hash_terms))
    return ssi_hash.scores(params, sparse.take(seen, part.truth.queries), seen)


def fit_hash(table: kit.Table, size: int, *, seed: int = 0, **options):
    """Hash kernels from the same triples; the epoch with the best dev score is kept."""
    data, settings, part = table.data, table.settings, table.data.parts["dev"]
    documents = sparse.from_scipy(data.documents)
    return table.fit(ssi_hash, reads=part)(
        documents, documents, data.preferred, rejected=data.rejected, size=size, key=jax.random.key(seed),
        max_terms=settings.hash_terms, triples=settings.triples, patience=settings.patience,
        validate=lambda params: -part.means(hash_scores(table, params, part))["rank_loss"], **options)


def choose_hash(table: kit.Table) -> tuple[dict, list[dict]]:
    """The rate and then the start of the smallest table with the lowest dev rank loss, and all that was tried."""
    settings, size = table.settings, min(table.settings.hashes.values())
    grid = settings.hash_identities

    def rank_loss(**option):
        return -fit_hash(table, size, max_iter=settings.hash_grid, **option).best_score

    best, tried = {"identity": grid[len(grid) // 2], "learning_rate": settings.hash_rates[0]}, []
    for name, values in (("learning_rate", settings.hash_rates), ("identity", grid)):
        if len(values) > 1:
            choice = kit.choose([{**best, name: value} for value in values], rank_loss, by="rank_loss", lowest=True,
                                split="dev")
            best, tried = choice.best, tried + choice.tried
    return best, tried


def hashed(name: str):
    """The row of hash kernels of a size; the settings of the smallest serve all."""

    def row(table: kit.Table) -> kit.Row:
        settings, test, size = table.settings, table.data.parts["test"], table.settings.hashes[name]
        best, tried = choose_hash(table)
        fits = [fit_hash(table, size, seed=seed, max_iter=settings.max_iter, **best) for seed in settings.seeds]
        dev = [-fit.best_score for fit in fits]
        config = {**best, "H": size, "triples": settings.triples, "max_iter": settings.max_iter,
                  "patience": settings.patience, "max_terms": settings.hash_terms}
        return kit.Row(config, [test.per_query(hash_scores(table, fit.params, test)) for fit in fits], fit=fits[0],
                       seeds=settings.seeds, curve=tried, dev={"rank_loss": float(np.mean(dev)), "per_seed": dev})

    return row


def ssi_popularity(table: kit.Table) -> kit.Row:
    """`ssi-asym` + c · popularity, every seed: what do words say beyond it? Chosen: c, by dev rank loss."""
    settings = table.settings
    best = choose_ssi(table, None, settings.identities).best
    fits = [fit_ssi(table, None, seed=seed, **best) for seed in settings.seeds]
    boosts = sorted({*settings.boosts, *(10 * c for c in settings.boosts)})
    every = [lambda part, params=fit.params: ssi_scores(params, part, shown(table, None)) for fit in fits]
    return with_popularity(table, boosts, every, settings.seeds)


ROWS = {
    "tfidf": tfidf, "popularity": popularity, "tfidf+popularity": tfidf_popularity,
    "ssi-asym-10k": low_rank(num_terms=10_000), "ssi-asym-20k": low_rank(num_terms=20_000), "ssi-asym": low_rank(),
    "ssi-asym-b1": low_rank(identities=(1.0,)), "ssi-asym-no-i": low_rank(identities=(None,)),
    "ssi-asym+popularity": ssi_popularity, "ssi-hash-1m": hashed("1m"), "ssi-hash-10m": hashed("10m"),
}
ALIKE = 0.05
"""How far two rank losses may be apart, as a share of the larger one, to be called similar; in print it is 1 %."""


def alike(rows) -> tuple[bool, str]:
    """Whether the rank losses of hash kernels and low rank are similar: within `ALIKE` of each other."""
    hashed, low = (rows[row]["metrics"]["rank_loss"]["mean"] for row in ("ssi-hash-10m", "ssi-asym-10k"))
    return abs(hashed - low) <= ALIKE * max(hashed, low), f"{abs(hashed - low) / max(hashed, low):.1%} apart"


CLAIMS = [
    kit.Claim(f"003-clicks-{row}-tfidf", sentence=f"low-rank SSI of the {words} most frequent words strongly "
              "outperforms TFIDF on clicks", place="003 §4.4, Table 11", tables=("clicks",), better=row, worse="tfidf",
              metric="rank_loss", lower=True, printed={row: printed, "tfidf": 0.4560}, equal_rows=equal)
    for row, words, printed, equal in (("ssi-asym-10k", "10,000", 0.2583, None),
                                       ("ssi-asym-20k", "20,000", 0.2668, None),
                                       ("ssi-asym", "30,000", 0.2698, ("ssi-asym-b1", "tfidf")))
]
CLAIMS += [
    kit.Claim(f"003-clicks-{better}-{worse}", sentence=sentence, place="003 §4.4, Table 11", tables=("clicks",),
              better=better, worse=worse, metric="rank_loss", lower=True,
              printed=dict(zip((better, worse), printed, strict=True)),
              holds=alike if worse == "ssi-asym-10k" else None,
              why={"clicks": "not known; hash kernels see the 100 strongest terms of a document, low rank 200, and the "
                             "rate and b of the table of a million weights are taken for ten million, which is better"}
              if worse == "ssi-asym-10k" else {})
    for better, worse, printed, sentence in (
        ("ssi-hash-1m", "tfidf", (0.2615, 0.4560), "hash kernels of a million weights strongly outperform TFIDF"),
        ("ssi-hash-10m", "tfidf", (0.2556, 0.4560), "hash kernels of ten million weights strongly outperform TFIDF"),
        ("ssi-hash-10m", "ssi-hash-1m", (0.2556, 0.2615), "larger hash tables are better (figures alone)"),
        ("ssi-hash-10m", "ssi-asym-10k", (0.2556, 0.2583), "hash kernels and low rank perform rather similarly on "
         "clicks"))
]
EXPERIMENT = kit.Experiment("bai2010_clicks", __doc__, load,
                            {"clicks": kit.Plan(ROWS, {"quick": QUICK, "full": FULL})}, CLAIMS)

if __name__ == "__main__":
    kit.run(EXPERIMENT)
