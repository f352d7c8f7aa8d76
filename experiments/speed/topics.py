"""The row of the speed tables about topic models: an iteration of EM, and topics of new documents beside others'."""

from __future__ import annotations

import functools
import warnings

import jax
import numpy as np
import scipy.sparse

from experiments.corpora.synthetic import documents, synthetic
from experiments.kit.measure import Sheet, Times, installed, race
from jaxsim import sparse
from jaxsim.methods import topics as models
from jaxsim.methods.topics import Topics, host, starts, training
from jaxsim.methods.topics.training import Coupling

FULL = {"pairs": 4_600, "per_doc": 120, "terms": 20_000, "ks": (100, 300), "largest": 1000, "new": 2_000, "few": 200}
QUICK = {"pairs": 80, "per_doc": 12, "terms": 300, "ks": (5,), "largest": 5, "new": 60, "few": 10}
LIMITS = {100: 1.3 * 0.12, 300: 1.3 * 0.46}  # seconds of an iteration on 1.1 M entries: a prototype's, and a third more
COUPLED = {"CPLSA, one step of the dual": Coupling(1, "scaling"), "CPLSA, three steps": Coupling(3, "scaling")}


def counts(size: dict) -> list[scipy.sparse.csr_matrix]:
    """Counts of pairs, a language a matrix."""
    views = documents(size["pairs"], size["terms"], size["per_doc"], seed=0, views=2)
    for view in views:
        view.data = np.ceil(view.data * 10).astype(np.float32)
    return views


class Problem:
    """JPLSA or CPLSA of the pairs with ``k`` topics, ready for an iteration: on the host, or by XLA."""

    def __init__(self, views, k: int, coupling: Coupling | None = None, *, on_host: bool = False):
        """Lays the counts out."""
        apart, terms = training._apart(views), views[0].shape[1]
        if coupling is None:
            apart = [sum(apart[1:], start=apart[0]).tocsr()]
        blocks = np.repeat(np.arange(2), terms)
        priors = {"alpha": 1.1, "beta": 1.01}
        self.layout = (training.lay_out_on_host(apart, blocks, **priors) if on_host else
                       training.lay_out(apart, blocks, k=k, **priors))
        frequencies = [np.asarray(view.sum(axis=0)).ravel() for view in views]
        start = np.concatenate(starts.make(frequencies, k=k, start="soft", key=jax.random.key(0), dtype=np.float32))
        self.coupling, self.step = coupling, training.iterations(self.layout, coupling)
        self.state = tuple(training.first_state(self.layout, start, languages=len(apart), coupled=coupling is not None))

    def advance(self):
        """One iteration."""
        self.state, loss = self.step(self.state)
        return loss

    def memory(self) -> int:
        """Bytes that the program holds: what it is given, and its temporary arrays."""
        state = training.State(*self.state)
        compiled = training.step.lower(state, self.layout.data, self.coupling, None).compile().memory_analysis()
        return compiled.argument_size_in_bytes + compiled.temp_size_in_bytes


def plain(matrix: scipy.sparse.csr_matrix, theta: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Expected counts of the documents in SciPy, float64."""
    rows, columns = matrix.nonzero()
    rate = np.einsum("nk,nk->n", theta[rows], words[columns])
    return theta * (scipy.sparse.csr_matrix((matrix.data / rate, (rows, columns)), shape=matrix.shape) @ words)


def topics(sizes, cores: int, full: bool) -> Sheet:
    """Seconds of an iteration of JPLSA and CPLSA, memory at 1,000 topics, and new documents a second."""
    size = FULL if full else QUICK
    sheet = Sheet("topics", cores, full, synthetic("documents by Zipf's law", pairs=size["pairs"], terms=size["terms"],
                                                   terms_a_document=size["per_doc"]), {"k": list(size["ks"])})
    views = counts(size)
    on_host = host.takes(views[0].dtype)
    if not on_host:
        sheet.missing("iterations on the host", "numba is not installed, or JAX has an accelerator")
    contestants = {f"JPLSA, {k} topics": Problem(views, k, on_host=on_host).advance for k in size["ks"]}
    contestants |= {f"JPLSA without numba, {k} topics": Problem(views, k).advance for k in size["ks"] if on_host}
    contestants |= {f"{name}, {size['ks'][0]} topics": Problem(views, size["ks"][0], coupling, on_host=on_host).advance
                    for name, coupling in list(COUPLED.items())[not full :]}
    times = race(contestants, repeats=sizes.repeats)
    first = times[f"JPLSA, {size['ks'][0]} topics"]
    for name, measured in times.items():
        same = times.get(name.replace(" without numba", ""), first)
        sheet.time(f"iteration, {name}", measured, None if measured is first else first if same is measured else same,
                   "JPLSA's")
    for k, limit in LIMITS.items() if full else ():
        sheet.expect(f"seconds of an iteration, {k} topics", times[f"JPLSA, {k} topics"].median, limit)
    used = Problem(views, size["largest"]).memory()
    sheet.add(f"memory of the program without numba, {size['largest']} topics", used / 1e6, "MB")
    sheet.expect(f"MB at {size['largest']} topics", used / 1e6, 1000.0)
    fold(sheet, views[0], size, sizes.repeats)
    return sheet


def fold(sheet: Sheet, view: scipy.sparse.csr_matrix, size: dict, repeats: int) -> None:
    """Adds the rates of folding-in, and those of scikit-learn and tomotopy on the same documents."""
    k = size["ks"][0]
    rng = np.random.default_rng(0)
    words = rng.dirichlet(np.full(view.shape[1], 0.1), k).T.astype(np.float32)
    some = view[: size["new"]]
    new, params = sparse.from_scipy(some), Topics(jax.numpy.asarray(words))
    found = models.encode(params, new, iterations=3).dense
    theta = np.full((some.shape[0], k), 1 / k)
    for _ in range(3):
        theta = plain(some.astype(np.float64), theta, np.maximum(words.astype(np.float64), 1e-300))
        theta /= theta.sum(axis=1, keepdims=True)
    sheet.parity("three iterations of folding-in", found, theta, within=1e-4)
    contestants = {f"jaxsim, {iterations} iteration{'s' * (iterations > 1)}":
                   functools.partial(lambda n: models.encode(params, new, iterations=n).dense, iterations)
                   for iterations in (1, 10)}
    documents_of = dict.fromkeys(contestants, some.shape[0])
    few = some[: size["few"]]
    for name, function in (*sklearn_peers(sheet, few, words), *tomotopy_peer(sheet, few, k)):
        contestants[name], documents_of[name] = function, few.shape[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of peers that reach their largest number of iterations
        found = race(contestants, repeats=min(repeats, 3), settle=True)
    rates = {name: Times(tuple(second / documents_of[name] for second in measured.seconds))
             for name, measured in found.items()}
    ours = rates["jaxsim, 10 iterations"].median
    for name, measured in rates.items():
        sheet.add(f"new documents, {name}", 1 / measured.median, "documents/s", ratio=ours / measured.median,
                  of="jaxsim's rate at 10 iterations", note=measured.told())
    others = [measured.median for name, measured in rates.items() if not name.startswith("jaxsim")]
    if others:
        sheet.expect("times as fast as the fastest peer, 10 iterations", min(others) / ours, 10.0, at_least=True)


def sklearn_peers(sheet: Sheet, few: scipy.sparse.csr_matrix, words: np.ndarray):
    """``transform`` of scikit-learn's NMF (Kullback-Leibler) and LDA with the same topics and their own settings."""
    decomposition = installed("sklearn.decomposition")
    if decomposition is None:
        sheet.missing("scikit-learn", "it is not installed")
        return
    k = words.shape[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nmf = decomposition.NMF(k, init="random", solver="mu", beta_loss="kullback-leibler", max_iter=1, random_state=0)
        lda = decomposition.LatentDirichletAllocation(k, max_iter=1, random_state=0, n_jobs=sheet.cores)
        for model in (nmf, lda):
            model.fit(few[: max(k // 10, 5)])
    nmf.max_iter, nmf.components_ = 200, np.ascontiguousarray(words.T)
    lda.components_ = np.ascontiguousarray(words.T) * few.sum() + 0.1
    lda.exp_dirichlet_component_ = lda.components_ / lda.components_.sum(axis=1, keepdims=True)
    yield "scikit-learn NMF", functools.partial(nmf.transform, few)
    yield "scikit-learn LDA", functools.partial(lda.transform, few)


def tomotopy_peer(sheet: Sheet, few: scipy.sparse.csr_matrix, k: int):
    """LDA of tomotopy, trained for a moment on the documents, and its ``infer`` on as many cores as the others have."""
    tomotopy = installed("tomotopy")
    if tomotopy is None:
        sheet.missing("tomotopy LDA", "tomotopy is not installed")
        return
    texts = [np.repeat(few[row].indices, few[row].data.astype(int)).astype(str).tolist()
             for row in range(few.shape[0])]
    model = tomotopy.LDAModel(k=k, seed=0)
    for text in texts:
        model.add_doc(text)
    model.train(5, workers=1)

    def infer():
        return np.asarray(model.infer([model.make_doc(text) for text in texts], workers=sheet.cores)[0])

    yield "tomotopy LDA", infer
