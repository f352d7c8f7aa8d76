"""The speed row of models with fewer bytes: product, query, load, size and error of float32, float16 and int8."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from experiments.corpora.synthetic import documents, synthetic
from experiments.kit.measure import Sheet, installed, race
from experiments.speed import peers
from jaxsim import Model, text
from jaxsim.methods.projections import Projection
from jaxsim.model import rounding
from jaxsim.sparse import host, narrow

MICROSECONDS, LOAD, AGAINST = 100.0, 0.05, 1.3
_CALLS, _STARTS = 500, 7
_COLD = """
import json, sys, time
begun = time.perf_counter()
import jax
jax.devices()
started = time.perf_counter()
from jaxsim.model import Model
from jaxsim.model import model
imported = time.perf_counter()
found = Model.load(sys.argv[1])
loaded = time.perf_counter()
found.encode("w1 w2")
print(json.dumps([started - begun, imported - started, loaded - imported, time.perf_counter() - loaded]))
"""


def weights(sizes, cores: int, full: bool) -> Sheet:
    """Documents by Zipf's law times weights of each type beside EmbeddingBag; a query; a folder in a fresh process."""
    (csr,) = documents(sizes.docs, sizes.num_terms, sizes.per_doc, seed=0)
    sheet = Sheet("weights", cores, full, synthetic("documents by Zipf's law", docs=sizes.docs, terms=sizes.num_terms,
                                                    terms_a_document=sizes.per_doc), {"k": sizes.k})
    wide = np.random.default_rng(0).standard_normal((sizes.num_terms, sizes.k)).astype(np.float32)
    _products(sheet, csr, wide, sizes.repeats)
    words = text.Vocabulary(tuple(f"w{number}" for number in range(sizes.num_terms)),
                            np.maximum(np.bincount(csr.indices, minlength=sizes.num_terms), 1), sizes.docs)  # fmt: skip
    model = Model(words, Projection(jnp.asarray(wide)))
    with tempfile.TemporaryDirectory() as place:
        for kind in ("float32", *narrow.KINDS):
            kept = model if kind == "float32" else rounding.rounded(model, kind)
            if kind != "float32":
                told = kept.training["weights"]
                sheet.add(f"{kind}, bytes of the weights", told["bytes"] / 1e6, "MB",
                          ratio=told["bytes"] / told["bytes_before"], of="float32")
                sheet.add(f"{kind}, typical error of a cosine", told["typical_error"], "cosine",
                          note=told["measured_on"])
                sheet.add(f"{kind}, largest error of a cosine", told["largest_error"], "cosine")
            _folder(sheet, kept, kind, Path(place) / kind, _STARTS if full else 1)
    return sheet


def _products(sheet: Sheet, csr, wide: np.ndarray, repeats: int) -> None:
    """The product with each type of weights, in turns with EmbeddingBag of float32 and float16."""
    contestants, exact = {}, csr.astype(np.float64)
    if host.compiled() is not None:
        contestants["jaxsim, float32"] = lambda: host.rows_product(csr, wide)
    for kind in narrow.KINDS:
        small = narrow.narrowed(wide, kind)
        contestants[f"jaxsim, {kind}"] = lambda small=small: narrow.rows_product(csr, small)
        sheet.parity(f"product, {kind}", narrow.rows_product(csr, small), exact @ np.asarray(small, np.float64),
                     within=1e-5)
    if host.compiled() is None:
        sheet.notes.append("without numba: narrow weights by SciPy")
    torch = installed("torch")
    if torch is not None:
        torch.set_num_threads(sheet.cores)
        for kind in (torch.float32, torch.float16):
            contestants[f"torch.nn.EmbeddingBag, {str(kind).split('.')[1]}"] = peers.bag(torch, csr, wide, kind)
    times = race(contestants, repeats=repeats)
    for name, measured in times.items():
        of = f"torch.nn.EmbeddingBag, {'float32' if name.endswith('float32') else 'float16'}"
        against = times.get(of) if name != of else None
        sheet.time(name, measured, against, of if against else None)
        if against is not None and name.endswith("float32"):
            sheet.expect(f"float32 against EmbeddingBag, k = {wide.shape[1]}", measured.median / against.median,
                         AGAINST)
    half = times.get("torch.nn.EmbeddingBag, float16")
    if half is None:
        sheet.missing("torch.nn.EmbeddingBag", "torch is not installed")
    else:
        best = min(times[f"jaxsim, {kind}"].median for kind in narrow.KINDS)
        sheet.expect(f"the better of float16 and int8 against EmbeddingBag of float16, k = {wide.shape[1]}",
                     best / half.median, 1.0)


def _fresh(folder: Path) -> list[float]:
    """Seconds of a process of its own: the start of JAX, imports, loading, and the first query."""
    done = subprocess.run([sys.executable, "-c", _COLD, str(folder)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def _folder(sheet: Sheet, model: Model, kind: str, folder: Path, starts: int) -> None:
    """Loading in fresh processes, where the files are in the system's cache, and single queries after that."""
    model.save(folder)
    sheet.add(f"{kind}, folder", sum(path.stat().st_size for path in folder.iterdir()) / 1e6, "MB")
    cold = []
    for _ in range(starts):
        cold.append(_fresh(folder))
    jax_start, imports, load, first = (statistics.median(column) for column in zip(*cold, strict=True))
    note = f"median of {starts} fresh processes, files in the system's cache"
    sheet.add(f"{kind}, load", load, "s", note=f"{note}; before it JAX starts in {jax_start:.2f} s and the other "
              f"imports take {imports:.2f} s")
    sheet.add(f"{kind}, first query after that", first, "s", note=f"{note}; the compiled loop is read from its cache")
    if kind != "float16":
        sheet.expect(f"seconds to load {kind} after the imports", load, LOAD)
    loaded = Model.load(folder)
    rng, seconds = np.random.default_rng(1), []
    for _ in range(_CALLS if sheet.full else 5):
        query = " ".join(f"w{number}" for number in rng.integers(0, len(model.vocabulary), 8))
        begun = time.perf_counter()
        loaded.encode(query)
        seconds.append(time.perf_counter() - begun)
    sheet.add(f"{kind}, one query, median", 1e6 * statistics.median(seconds), "µs",
              note=f"8 words, {len(seconds)} calls")
    sheet.expect(f"one query, µs, {kind}", 1e6 * statistics.median(seconds), MICROSECONDS)
