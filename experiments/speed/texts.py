"""The speed row of raw texts: from strings to vectors, and the time that one query takes."""

from __future__ import annotations

import functools
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import scipy.sparse

from experiments.kit.measure import Sheet, installed, race
from jaxsim import Model, checks, data, text
from jaxsim.methods.projections import Projection
from jaxsim.text import weightings

A_SECOND, MICROSECONDS = 40_000, 100.0
_CALLS = 500
_LINES = 400_000
"""Texts of a file that `jaxsim encode` reads: with fewer, starting its processes would be much of the time."""


def texts(sizes, cores: int, full: bool) -> Sheet:
    """Docstrings, summaries and bodies as they are: words, look-up, weights and product, in one call and one by one."""
    pairs = data.docstrings.load()
    given = [side for pair in zip(pairs.left, pairs.right, strict=True) for side in pair][: 2 * sizes.docs]
    words = [re.findall(r"\w+", one.lower()) for one in given if one.isascii()]  # what is plain to take apart
    vocabulary = text.Vocabulary.build(map(text.words, given), max_terms=sizes.num_terms, drop_top=0)
    weights = np.random.default_rng(0).standard_normal((len(vocabulary), sizes.k)).astype(np.float32)
    model = Model(vocabulary, Projection(jnp.asarray(weights)))
    counted = {"texts": len(given), "words": sum(len(text.pieces(one)) for one in given), "terms": len(vocabulary)}
    sheet = Sheet("texts", cores, full, {"name": "docstrings", "sha256": pairs.sha256, "counts": counted, "groups": {},
                                         "differs": "same"}, {"k": sizes.k})
    few = [one for one in given if one.isascii()][:200]
    sheet.parity("vectors", model.encode(few), _reference(words[: len(few)], vocabulary, weights), within=1e-5)
    contestants = {"jaxsim": lambda: model.encode(given),
                   "jaxsim, words alone": lambda: sum(len(text.pieces(one)) for one in given)}
    peer = installed("sklearn.feature_extraction.text")
    if peer is not None:
        counter = peer.CountVectorizer(vocabulary=vocabulary.index, token_pattern=r"\w+", dtype=np.float32)
        idf = weightings.inverse_frequency(vocabulary.df, vocabulary.num_docs, np.log2).astype(np.float32)
        contestants["scikit-learn CountVectorizer, SciPy"] = lambda: _by_peer(counter, given, idf, weights)
    times = race(contestants, repeats=sizes.repeats)
    for name, measured in times.items():
        ours = name == "jaxsim"
        sheet.time(name, measured, *(() if ours else (times["jaxsim"], "jaxsim")),
                   note=f"{len(given) / measured.median:,.0f} texts a second")
    if peer is None:
        sheet.missing("scikit-learn CountVectorizer", "scikit-learn is not installed")
    if cores == 1:  # words are cut by one process, on one core; `jaxsim encode --workers` starts several
        sheet.expect("texts a second", len(given) / times["jaxsim"].median, A_SECOND, at_least=True)
    if cores > 1 and full:
        _by_processes(sheet, model, given, cores)
    seconds = [_seconds(model, given[2 * (i % (len(given) // 2))]) for i in range(_CALLS if full else 5)]
    sheet.add("one query, median", 1e6 * statistics.median(seconds), "µs", note=f"summaries, {len(seconds)} calls")
    sheet.expect("one query, µs", 1e6 * statistics.median(seconds), MICROSECONDS)
    return sheet


def _by_processes(sheet: Sheet, model: Model, given: list[str], cores: int) -> None:
    """The command line on a file of texts, by one process and by one a core; the start of Python is a part of it."""
    lines = [" ".join(one.split()) for one in given]
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder)
        model.save(whole / "model")
        with (whole / "texts.txt").open("w", encoding="utf-8") as file:
            file.writelines(f"{lines[number % len(lines)]}\n" for number in range(_LINES))

        def encode(workers: int) -> None:
            subprocess.run([sys.executable, "-m", "jaxsim", "encode", "--model", whole / "model", "--input",
                            whole / "texts.txt", "--output", whole / f"{workers}.npy", "--workers", str(workers)],
                           check=True, capture_output=True)

        names = {f"jaxsim encode, {workers} process{'es' if workers > 1 else ''}": workers for workers in (1, cores)}
        times = race({name: functools.partial(encode, workers) for name, workers in names.items()}, repeats=3,
                     budget=300.0)
        first, *_ = names
        same = all((whole / f"{workers}.npy").read_bytes() == (whole / "1.npy").read_bytes() for workers in (1, cores))
        checks.expect(same, "--workers", "the same bytes from any number", "others")
        for name in names:
            sheet.time(name, times[name], *(() if name == first else (times[first], first)),
                       note=f"{_LINES / times[name].median:,.0f} texts a second of {_LINES:,}")


def _reference(words, vocabulary, weights) -> np.ndarray:
    """Vectors of texts by the formula, in float64."""
    rows = np.zeros((len(words), len(vocabulary)))
    for row, tokens in zip(rows, words, strict=True):
        for token in tokens:
            if token in vocabulary.index:
                row[vocabulary.index[token]] += 1
    return np.log2(rows + 1) * np.log2(vocabulary.num_docs / vocabulary.df) @ weights.astype(np.float64)


def _by_peer(counter, given, idf, weights) -> np.ndarray:
    counts = counter.transform(given)
    weighted = scipy.sparse.csr_matrix((np.log2(counts.data + 1) * idf[counts.indices], counts.indices, counts.indptr),
                                       shape=counts.shape)
    return weighted @ weights


def _seconds(model: Model, query: str) -> float:
    begun = time.perf_counter()
    model.encode(query)
    return time.perf_counter() - begun
