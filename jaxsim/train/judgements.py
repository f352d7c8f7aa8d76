"""Graded pairs from a test collection: queries, documents and relevance judgements in TREC's formats."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from jaxsim import checks
from jaxsim.data import pairs as pairs_room
from jaxsim.data.pairs import Pairs


def graded_pairs(
    queries: Mapping[str, str],
    documents: Mapping[str, str],
    qrels: Mapping[str, Mapping[str, int]],
    *,
    negatives: int = 30,
    seed: int = 0,
    languages: tuple[str, str] = ("en", "en"),
) -> tuple[Pairs, np.ndarray, dict[str, int]]:
    """Every judged document with its query, and documents without a judgement as grade 0.

    Judgements often list relevant documents alone, from which no preference follows. The others are drawn at random:
    those that a search finds share words with the query, and training on them alone teaches that shared words are bad.

    Args:
      queries: identifier -> text.
      documents: identifier -> text.
      qrels: query -> document -> grade, as `evaluate.trec.read_qrels` gives them.
      negatives: documents without a judgement that are drawn for each query, as far as there are any.
      seed: of the draw.
      languages: of queries and documents.

    Returns:
      ``(pairs, grades, counts)``: queries left and documents right, ``[n]`` float64, and numbers: of ``queries`` that
      have a pair, of judgements left out because their query or document has no text (``unknown``), and of documents
      ``drawn``.

    Raises:
      ValueError: if no judgement is about known texts, or ``negatives`` is negative.

    Example:
      >>> found, grades, counts = graded_pairs({"q": "tea"}, {"a": "green tea", "b": "milk"}, {"q": {"a": 2}})
      >>> found.right, grades.tolist(), counts["unknown"]
      (('green tea', 'milk'), [2.0, 0.0], 0)
    """
    checks.whole(negatives, "negatives", 0)
    rng = np.random.default_rng(seed if seed >= 0 else [seed & (2**64 - 1)])  # it takes no number below 0 itself
    names = list(documents)
    rows, asked, unknown, drawn = [], 0, 0, 0
    for query, judged in qrels.items():
        known = {name: grade for name, grade in judged.items() if query in queries and name in documents}
        unknown += len(judged) - len(known)
        if not known:
            continue
        asked += 1
        others = [name for name in names if name not in judged] if negatives else []
        chosen = rng.permutation(len(others))[:negatives]
        drawn += len(chosen)
        graded = [*known.items(), *((others[i], 0) for i in sorted(chosen))]
        rows += [(f"{query} {name}", queries[query], documents[name], float(grade)) for name, grade in graded]
    checks.expect(bool(rows), "qrels", "judgements of documents and queries that are given", "none")
    ids, left, right, grades = zip(*rows, strict=True)
    result = pairs_room.make("judgements", ids, left, right, languages=languages)
    return result, np.array(grades), {"queries": asked, "unknown": unknown, "drawn": drawn}
