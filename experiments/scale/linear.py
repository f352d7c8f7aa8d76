"""The closed forms at the papers' size: LSA, OPCA and CCA, beside a dense eigenproblem and gensim.

Each contestant runs in a process of its own (but for the quick sizes), once, with all it needs counted in: matrices
and compilation. What it found is judged in float64 on some of its dimensions: the eigenvalue there, and how far product
and multiple are apart.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse

from experiments.corpora.synthetic import synthetic
from experiments.kit.measure import Sheet, installed, relative_error
from experiments.scale.points import PRESETS, Sizes, corpus, peak_bytes, told_by

# The paper's 0.1 and 3 are for weights log(tf)·idf; documents here have length one, like those of docstrings in
# `mates`, and OPCA's noise there is 1e-4.
NOISE, RIDGE = 1e-4, 3e-3
JUDGED = 100  # dimensions
GIGABYTES = 24.0
RESIDUAL = 0.02
METHODS = ("lsa", "opca", "cca")
ALONE = "from experiments.scale import linear; linear.print_measured()"
SECONDS = {"cca": 150.0}  # on two cores, at 20,000 terms


class Found(NamedTuple):
    """What a contestant made.

    Attributes:
      left: ``[num_terms, k]``, the projection.
      right: that of the right documents, where there are two.
    """

    left: np.ndarray
    right: np.ndarray | None = None


class Covariance(NamedTuple):
    """``(D - 1 μᵀ)ᵀ (D' - 1 μ'ᵀ) / n + γ I`` in float64, as products."""

    left: scipy.sparse.csr_matrix
    right: scipy.sparse.csr_matrix
    centred: bool
    ridge: float = 0.0

    def __matmul__(self, x: np.ndarray) -> np.ndarray:
        """Its product with ``[num_terms, b]``."""
        n = self.left.shape[0]
        y = self.right @ x
        y = y - y.mean(axis=0, keepdims=True) if self.centred else y
        return self.left.T @ y / n + self.ridge * x

    def dense(self) -> np.ndarray:
        """All of it."""
        n, v = self.left.shape
        found = (self.left.T @ self.right).toarray() / n
        if self.centred:
            found -= np.outer(*(np.asarray(side.mean(axis=0)).ravel() for side in (self.left, self.right)))
        found[np.diag_indices(v)] += self.ridge
        return found


def problem(method: str, sides) -> tuple[list[Covariance], Covariance | None]:
    """The covariances whose sum is the signal, and that of the noise; CCA's are those of its two sides.

    Args:
      method: of `METHODS`.
      sides: CSR documents of both sides.

    Returns:
      ``(signal, noise)``. LSA has the left side and no noise; CCA the matrix across, and both sides with their ridge.
    """
    left, right = (side.astype(np.float64) for side in sides)
    if method == "lsa":
        return [Covariance(left, left, False)], None
    if method == "opca":
        apart = (left - right) / np.sqrt(2)
        return [Covariance(side, side, True) for side in (left, right)], Covariance(apart, apart, False, NOISE)
    across = Covariance(left, right, True)
    return [across, Covariance(left, left, True, RIDGE), Covariance(right, right, True, RIDGE)], None


def judged(k: int) -> np.ndarray:
    """Dimensions that are looked at."""
    return np.unique(np.linspace(0, k - 1, min(k, JUDGED)).astype(int))


def quality(method: str, sides, found: Found) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues at the judged dimensions, and how far ``S v`` is from ``λ N v`` there.

    Args:
      method: of `METHODS`.
      sides: CSR documents.
      found: the projection, of any scale of its columns.

    Returns:
      ``(values, residuals)``; the residual is relative to ``‖λ N v‖``.
    """
    signal, noise = problem(method, sides)
    some = judged(found.left.shape[1])
    v = found.left[:, some].astype(np.float64)
    if method == "cca":
        # Correlations: C₁₂ b = λ (C₁₁ + γ) a.
        across, first, second = signal
        w = found.right[:, some].astype(np.float64)
        below, image = first @ v, across @ w
        lengths = np.sqrt(np.sum(v * below, axis=0) * np.sum(w * (second @ w), axis=0))
        values = np.sum(v * image, axis=0) / lengths
        below = below * (np.sum(v * image, axis=0) / np.sum(v * below, axis=0))
        return values, np.linalg.norm(image - below, axis=0) / np.linalg.norm(below, axis=0)
    image, below = sum(one @ v for one in signal), v if noise is None else noise @ v
    values = np.sum(v * image, axis=0) / np.sum(v * below, axis=0)
    return values, np.linalg.norm(image - values * below, axis=0) / np.linalg.norm(values * below, axis=0)


def by_jaxsim(method: str, sides, k: int) -> tuple[Callable[[], object], Callable[[object], Found]]:
    """The library's fit, and its projections as arrays."""
    from jaxsim import sparse
    from jaxsim.methods import cca, lsa, opca

    left, right = (sparse.from_scipy(side) for side in sides)
    fit = {"lsa": lambda: lsa.fit(left, k=k), "opca": lambda: opca.fit((left, right), k=k, noise=NOISE),
           "cca": lambda: cca.fit(left, right, k=k, ridge=RIDGE)}[method]

    def read(result) -> Found:
        params = result.params if method == "cca" else (result.params,)
        return Found(*(np.asarray(side.weights) for side in params))

    return fit, read


def by_eigh(method: str, sides, k: int) -> tuple[Callable[[], object], Callable[[object], Found]]:
    """LAPACK on dense matrices in float64; of CCA's problem the half that is left after one elimination."""
    signal, noise = problem(method, sides)

    def fit():
        v = sides[0].shape[1]
        chosen = (v - k, v - 1)
        if method != "cca":
            whole = sum(one.dense() for one in signal)
            return scipy.linalg.eigh(whole, None if noise is None else noise.dense(), subset_by_index=chosen)[1], None
        across, first, second = (one.dense() for one in signal)
        back = scipy.linalg.solve(second, across.T, assume_a="pos")
        half = across @ back
        a = scipy.linalg.eigh((half + half.T) / 2, first, subset_by_index=chosen)[1]
        return a, back @ a

    def read(result) -> Found:
        return Found(*(None if side is None else side[:, ::-1] for side in result))

    return fit, read


def by_gensim(method: str, sides, k: int) -> tuple[Callable[[], object], Callable[[object], Found]]:
    """`gensim.models.LsiModel` with its own defaults."""
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LsiModel

    assert method == "lsa"
    names = {number: str(number) for number in range(sides[0].shape[1])}
    return (lambda: LsiModel(Sparse2Corpus(sides[0], documents_columns=False), num_topics=k, id2word=names),
            lambda model: Found(model.projection.u))


CONTESTANTS = {"jaxsim": by_jaxsim, "eigh": by_eigh, "gensim": by_gensim}


def measure(preset: str, method: str, contestant: str, num_terms: int) -> dict:
    """One contestant, once.

    Args:
      preset: of `PRESETS`.
      method: of `METHODS`.
      contestant: of `CONTESTANTS`.
      num_terms: size of the vocabulary.

    Returns:
      A point of the record's curve: sizes, ``seconds``, ``peak_gb`` of the process, ``values`` (eigenvalues at the
      judged dimensions), ``residual`` (the largest of theirs) and its median.
    """
    import jax

    sizes = PRESETS[preset]
    sides = corpus(sizes.linear_pairs, num_terms, sizes.per_doc)
    fit, read = CONTESTANTS[contestant](method, sides, sizes.linear_dim)
    begun = time.perf_counter()
    result = jax.block_until_ready(fit())
    seconds, peak = time.perf_counter() - begun, peak_bytes()
    values, residuals = quality(method, sides, read(result))
    return {"contestant": contestant, "m": sizes.linear_pairs, "terms": num_terms, "k": sizes.linear_dim,
            "seconds": seconds, "peak_gb": None if peak is None else peak / 1e9, "values": values.tolist(),
            "residual": float(residuals.max()), "residual_median": float(np.median(residuals))}


def print_measured() -> None:
    """Runs in a process of its own."""
    preset, method, contestant, num_terms = sys.argv[1:]
    print(json.dumps(measure(preset, method, contestant, int(num_terms))))


def measured(preset: str, method: str, contestant: str, num_terms: int) -> dict:
    """`measure`, alone but for the quick sizes."""
    print(f"{method}, {contestant}, {num_terms:,} terms", file=sys.stderr, flush=True)
    if preset == "quick":
        return measure(preset, method, contestant, num_terms)
    return told_by(ALONE, preset, method, contestant, str(num_terms),
                   what=f"{method}, {contestant}, {num_terms} terms")


def row(method: str, sizes: Sizes, preset: str, cores: int) -> tuple[Sheet, list[dict]]:
    """One method at all its sizes, beside the others.

    Args:
      method: of `METHODS`.
      sizes: of the preset.
      preset: its name.
      cores: that the process may use.

    Returns:
      The sheet and the points, of whose ``values`` the sum is left.

    Raises:
      ArithmeticError: if a process fails, or the library's eigenvalues are not those of LAPACK.
    """
    config = {"k": sizes.linear_dim, "noise": NOISE} if method == "opca" else {"k": sizes.linear_dim}
    sheet = Sheet(method, cores, preset != "quick", synthetic(
        "pairs of documents by Zipf's law, of the shape of the paper's term vectors", pairs=sizes.linear_pairs,
        terms=sizes.linear_terms[0], terms_a_document=sizes.per_doc),
        config | ({"ridge": RIDGE} if method == "cca" else {}))
    ours = [measured(preset, method, "jaxsim", count) for count in (*sizes.linear_terms, sizes.dense_terms)]
    dense = measured(preset, method, "eigh", sizes.dense_terms)
    sheet.parity("eigenvalues", ours[-1]["values"], dense["values"], within=0.05)  # a bug is worse than that
    found = [*ours, dense]
    for one in found:
        _tell(sheet, one, ours[-1])
    if method == "lsa" and installed("gensim") is None:
        sheet.missing("gensim", "gensim is not installed")
    elif method == "lsa":
        found.append(measured(preset, method, "gensim", sizes.linear_terms[0]))
        _tell(sheet, found[-1], ours[0])
    for one in ours[:-1]:
        sheet.expect(f"GB at {one['terms']:,} terms", one["peak_gb"] or 0.0, GIGABYTES)
    if method in SECONDS and preset == "full":
        sheet.expect(f"seconds at {ours[0]['terms']:,} terms", ours[0]["seconds"], SECONDS[method])
    sheet.expect("median residual", max(one["residual_median"] for one in ours), RESIDUAL)
    sheet.expect("error of an eigenvalue, of the largest", relative_error(ours[-1]["values"], dense["values"]), 1e-3)
    return sheet, [{**one, "values": sum(one["values"])} for one in found]


def _tell(sheet: Sheet, one: dict, ours: dict) -> None:
    """Lines of a point; of another contestant beside ours of the same size."""
    name = f"{one['contestant']}, {one['terms']:,} terms"
    against = {} if one["contestant"] == "jaxsim" else {"ratio": one["seconds"] / ours["seconds"], "of": "jaxsim"}
    share = sum(one["values"]) / sum(ours["values"])
    told = f"one run; residual {one['residual_median']:.1g} in the median, {one['residual']:.1g} at most"
    told += f"; its eigenvalues sum to {share:.6f} of jaxsim's" if against else ""
    sheet.add(name, one["seconds"], "s", **against, note=told)
    if one["peak_gb"] is not None:
        sheet.add(f"{name}: peak memory", one["peak_gb"], "GB", note="of the process")
