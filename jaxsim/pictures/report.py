"""Pictures of one model: its training, dimensions, ROC on held-out pairs, and neighbours before and after learning."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from jaxsim import checks, io
from jaxsim.data.pairs import Pairs
from jaxsim.evaluate import metrics
from jaxsim.model import Model
from jaxsim.optim import history
from jaxsim.pictures import dimensions, figures, neighbours
from jaxsim.pictures.figures import Panel
from jaxsim.pictures.neighbours import Example

_MOST_PAIRS = 2_000  # whose texts are compared with each other for the ROC
_CELLS = 400  # of an axis: a curve has no finer points
UNTRAINED = "untrained"


class Sides:
    """The different texts of pairs, and which of them belong together.

    Attributes:
      queries: left texts that have a mate, each once.
      documents: right texts, each once.
      mates: for each query, the set of its documents' numbers.

    Example:
      >>> from jaxsim.data import pairs
      >>> sides = Sides(pairs.make("toy", "12", ["a", "a"], ["x", "y"], languages=("en", "en")), np.array([1, 0]))
      >>> sides.queries, sides.documents, sides.mates
      (('a',), ('x', 'y'), ({0},))
    """

    def __init__(self, pairs: Pairs, labels: np.ndarray | None = None):
        """Gathers them; without labels every right text is a mate of its left text.

        Args:
          pairs: the pairs.
          labels: ``[len(pairs)]`` numbers, above 0 for mates, or None.

        Raises:
          ValueError: for labels of another number, or without a mate.
        """
        positive = np.ones(len(pairs), bool) if labels is None else _positive(pairs, labels)
        checks.expect(bool(positive.any()), pairs.name, "pairs that belong together", "none")
        self.documents = tuple(dict.fromkeys(pairs.right))
        number = {text: i for i, text in enumerate(self.documents)}
        relevant: dict[str, set[int]] = {}
        for left, right, belong in zip(pairs.left, pairs.right, positive, strict=True):
            if belong:
                relevant.setdefault(left, set()).add(number[right])
        self.queries, self.mates = tuple(relevant), tuple(relevant.values())

    def belong(self, queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
        """Which documents are mates of which queries.

        Args:
          queries: ``[q]`` numbers of queries.
          documents: ``[d]`` numbers of documents.

        Returns:
          ``[q, d]`` booleans.
        """
        wanted = np.zeros((len(queries), len(self.documents)), bool)
        for row, query in enumerate(queries):
            wanted[row, list(self.mates[query])] = True
        return wanted[:, documents]


def write(
    folder: str | os.PathLike, model: Model, pairs: Pairs, labels: np.ndarray | None = None, *, examples: int = 20
) -> dict[str, Path]:
    """Writes ``training.svg``, ``settings.svg``, ``dimensions.svg``, ``roc.svg`` and ``neighbours.html``.

    The ROC is of the cosine of mates against that of all other texts of the pairs (of at most 2,000 pairs, evenly
    spaced), or of the pairs' own labels. Beside the model stand its term weights without any learning.

    Args:
      folder: made if it is not there; files of these names are replaced, and a curve that an earlier call left is
        removed if this model has none.
      model: the model.
      pairs: held-out pairs, left texts queries and right texts documents.
      labels: ``[len(pairs)]`` numbers, above 0 for texts that belong together; all do unless given.
      examples: queries on the page, evenly spaced, at most.

    Returns:
      ``training``, ``settings``, ``dimensions``, ``roc`` and ``neighbours`` -> path; without ``training`` where the
      model keeps no history of it (a closed form, or a folder of an older version), without ``settings`` where none
      were chosen among several, and without ``dimensions`` where there is no projection that can be turned (bare words,
      SSI, an activation) or kept in part.

    Raises:
      ValueError: for fewer than two pairs, pairs without a mate or without others, or a damaged history.
      OSError: if the files cannot be written.

    Example:
      >>> import tempfile
      >>> from jaxsim.data import docstrings
      >>> from jaxsim.train.training import Settings, train
      >>> known = docstrings.load().take(range(240))
      >>> model = train(known.take(range(200)), Settings(method="opca", dim=20))
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     [path.name for path in write(folder, model, known.take(range(200, 240))).values()]
      ['dimensions.svg', 'roc.svg', 'neighbours.html']
    """
    checks.positive_int(examples, "examples")
    checks.expect(len(pairs) > 1, pairs.name, "at least two pairs", len(pairs))
    files = {
        "training.svg": training(model),
        "settings.svg": settings(model),
        "dimensions.svg": dimensions.draw(model, pairs, labels, untrained=UNTRAINED),
        "roc.svg": roc(model, pairs, labels),
        "neighbours.html": nearest_page(model, pairs, labels, examples=examples).encode(),
    }
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        if content is not None:
            io.write_bytes(folder / name, content)
        elif (folder / name).is_file() and figures.digest((folder / name).read_bytes()) is not None:
            (folder / name).unlink()
    return {Path(name).stem: folder / name for name, content in files.items() if content is not None}


def training(model: Model) -> bytes | None:
    """Loss and dev score against the iteration.

    Args:
      model: the model.

    Returns:
      The SVG file; None where the model keeps no history.

    Raises:
      ValueError: for a damaged history.
    """
    course = model.training.get("history")
    if not course:
        return None
    history.check(course, "training.history")
    last = course["step"][-1]
    # As the optimisers do: the first of the best.
    best = max(history.points(course, "validation"), key=lambda point: point[1], default=(last, None))[0]
    dev = model.training.get("dev", {})
    judged = model.training.get("stop_by")
    score = ("Spearman" if "spearman" in dev else "AUC" if "auc" in dev else "MRR") + " (held-out pairs)"
    if judged:
        score = f"{judged['metric'].upper()} (judged queries)"
    title = f"Training of {model.method}: {best} of {last} kept"
    title += ", then distilled" if model.training.get("distilled") else ""
    return figures.training({model.method: course}, title=title, score=score,
                                   xlabel="iteration, or epoch in batches")


def settings(model: Model) -> bytes | None:
    """The settings that were tried before the training, and their scores, as parallel coordinates.

    Args:
      model: of ``train --grid`` or ``--tune``.

    Returns:
      The SVG file; None where there were fewer than two candidates.

    Raises:
      ValueError: for a damaged record.
    """
    tried = model.training.get("tuned") or []
    checks.expect(isinstance(tried, list) and all(isinstance(one, dict) for one in tried), "training.tuned",
                  "candidates with their settings", checks.a_kind(tried))  # fmt: skip
    if len(tried) < 2:
        return None
    known = {name for one in tried for name in one} - {"seconds", "cut", *model.training.get("settings", {})}
    score = next((name for name in sorted(known) if all(isinstance(one.get(name), int | float) for one in tried)), None)
    checks.expect(score is not None, "training.tuned", "a score for every candidate", "none")
    return figures.parallel(tried, score, title=f"{len(tried)} settings that were tried, by {score} of held-out data")


def roc(model: Model, pairs: Pairs, labels: np.ndarray | None = None) -> bytes:
    """The ROC of the model's cosine and of bare term weights, the area under each in the legend.

    Args:
      model: the model.
      pairs: held-out pairs.
      labels: as for `write`.

    Returns:
      The SVG file. Mates against all others have a logarithmic axis, since there are so many others.

    Raises:
      ValueError: if all pairs belong together or none does, or all texts do.
    """
    scored, belong = scores(model, pairs, labels)
    positive, others = int(belong.sum()), int((~belong).sum())
    least = 0.0 if labels is not None else 1 / others
    series = {f"{name} (AUC {metrics.auc(result, belong):.4f})": curve(result, belong, least=least)
              for name, result in scored.items()}  # fmt: skip
    chance = [(x, x) for x in (np.linspace(0, 1, 2) if least == 0 else np.geomspace(least, 1, 50)).tolist()]
    panel = Panel(series, f"false positive rate (of {others:,} pairs)", f"true positive rate (of {positive:,} pairs)",
                  xscale="linear" if least == 0 else "log", reference={"chance (AUC 0.5)": chance})  # fmt: skip
    title = f"ROC of the {score_name(model)}, texts that belong together against others"
    return figures.panels([panel], title=title)


def scores(model: Model, pairs: Pairs, labels: np.ndarray | None = None) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Cosines of texts that belong together and of others, by the model and by bare term weights.

    Args:
      model: the model.
      pairs: held-out pairs.
      labels: as for `write`.

    Returns:
      ``({name: [n] float32}, [n] booleans)``; one name alone where the model is bare term weights. Without labels, the
      ``n`` are all left texts with all right texts, of at most 2,000 pairs.

    Raises:
      ValueError: as `roc`.
    """
    values = {}
    if labels is not None:
        belong = _positive(pairs, labels)
        checks.expect(0 < belong.sum() < belong.size, pairs.name, "labels above 0 and others", checks.one_kind(labels))
        for name, one in _models(model).items():
            values[name] = one.pair_similarity(pairs.left, pairs.right)
        return values, belong
    if len(pairs) > _MOST_PAIRS:
        pairs = pairs.take(even(len(pairs), _MOST_PAIRS))
    sides = Sides(pairs)
    every = np.arange(len(sides.queries)), np.arange(len(sides.documents))
    belong = sides.belong(*every).ravel()
    checks.expect(not belong.all(), pairs.name, "texts that do not belong together", "none")
    for name, one in _models(model).items():
        values[name] = one.similarity(sides.queries, sides.documents).ravel()
    return values, belong


def curve(scores, labels, *, least: float = 0.0) -> list[tuple[float, float]]:
    """The points of a ROC curve that a figure needs.

    Args:
      scores: ``[n]`` real, higher is better.
      labels: ``[n]`` 0 or 1, both of them there.
      least: above 0, where a logarithmic axis of false positives begins.

    Returns:
      ``(false positive rate, true positive rate)``, rising: those of `metrics.roc_curve` but for points less than
      1/400 of an axis from their neighbours and, with ``least``, those left of it.

    Example:
      >>> curve([0.9, 0.5, 0.5, 0.1], [1, 0, 1, 0])
      [(0.0, 0.0), (0.0, 0.5), (0.5, 1.0), (1.0, 1.0)]
    """
    false, true, _ = metrics.roc_curve(scores, labels)
    along = false
    if least > 0:
        # What is reached without any false positive stands at the left end of the axis.
        first = int(np.searchsorted(false, least * (1 - 1e-9))) - 1
        false, true = np.maximum(false[first:], least), true[first:]
        along = 1 - np.log(false) / np.log(least) if least < 1 else false
    cells = np.floor(np.stack([along, true]) * _CELLS)
    new = np.any(np.diff(cells, axis=1) != 0, axis=0)
    keep = np.concatenate([[True], new]) | np.concatenate([new, [True]])  # the first and the last of each cell
    return list(zip(false[keep].tolist(), true[keep].tolist(), strict=True))


def nearest_page(model: Model, pairs: Pairs, labels: np.ndarray | None = None, *, examples: int = 20) -> str:
    """The page of nearest neighbours before and after learning; candidates are all right texts of the pairs.

    Args:
      model: the model.
      pairs: held-out pairs.
      labels: as for `write`.
      examples: as for `write`.

    Returns:
      HTML.

    Raises:
      ValueError: without a mate.
    """
    sides = Sides(pairs, labels)
    chosen = even(len(sides.queries), examples)
    belong = sides.belong(chosen, np.arange(len(sides.documents)))
    texts = [sides.queries[i] for i in chosen]
    models = _models(model)
    lists = [_nearest(item, texts, sides.documents, belong) for item in models.values()]
    queries = checks.counted(len(sides.queries), "query", "queries")
    documents = checks.counted(len(sides.documents), "document")
    note = (
        f"{len(texts):,} of the {queries} of {pairs.name}, evenly spaced, with their nearest of {documents} by "
        f"{score_name(model)}. "
        f"“{UNTRAINED}” are bare term weights without any learning. "
        f"Equal {score_name(model)}s count against the mate; below the first documents stands the best mate if none of "
        "them is one."
    )
    return neighbours.page([Example(*item) for item in zip(texts, zip(*lists, strict=True), strict=True)],
                           models=list(models), note=note, languages=model.languages,
                           scores=[score_name(item) for item in models.values()])  # fmt: skip


def score_name(model: Model) -> str:
    """What a model compares texts by.

    Args:
      model: the model.

    Returns:
      ``"cosine"`` or ``"score"``.
    """
    return "score" if model.bilinear or model.topical else "cosine"


def _nearest(model: Model, queries: Sequence[str], documents: Sequence[str], belong: np.ndarray) -> list:
    scores = model.similarity(queries, documents)
    return [neighbours.nearest(row, documents, mine) for row, mine in zip(scores, belong, strict=True)]


def _positive(pairs: Pairs, labels) -> np.ndarray:
    """Which pairs have a label above 0."""
    labels = np.asarray(labels)
    checks.expect(labels.shape == (len(pairs),), "labels", f"{len(pairs)} numbers, one a pair", labels.shape)
    return labels > 0


def _models(model: Model) -> dict[str, Model]:
    """Bare term weights, and the model unless it is nothing else."""
    kind = {name: value for name, value in model.training.items() if name == "kind"}  # how it cuts texts
    bare = Model(model.vocabulary, None, model.weighting, languages=model.languages, training=kind)
    return {UNTRAINED: bare, **({} if model.params is None else {model.method: model})}


def even(number: int, most: int) -> np.ndarray:
    """Rows evenly spaced.

    Args:
      number: of rows.
      most: of them to take.

    Returns:
      Rising ``[min(number, most)]``.

    Example:
      >>> even(9, 3).tolist()
      [0, 4, 8]
    """
    return np.linspace(0, number - 1, min(number, most)).round().astype(int)
