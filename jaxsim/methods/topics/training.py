"""What the topic models share: counts laid out for EM, the iteration, and its objective."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from jaxsim import checks
from jaxsim.methods import statistics
from jaxsim.methods.topics import host, starts
from jaxsim.methods.topics.topics import Topics, shares
from jaxsim.optim import Fit, Run, checkpoints, em
from jaxsim.parallel import gathering, sharding
from jaxsim.sparse import Terms, precision
from jaxsim.sparse import host as sparse_host

_LARGEST = 30.0  # |log tilt|, so that its exponential stays finite
_FLOOR = 1e-12  # of an expected share of a topic, before its logarithm
_TOPICS = 256  # of a start that are made at a time


class Data(NamedTuple):
    """Counts as an iteration reads them; over several devices leaves but the last four have an axis of devices first.

    Attributes:
      documents: `em.Buckets` of all documents, language after language, over the words.
      order: ``[places]`` int32, the document at each place; 0 for padding.
      place: ``[languages, n]`` int32, the place of each document.
      words: `em.Buckets` of the words, over the documents.
      tokens: ``[languages, n]`` number of words of each document; -1 for padding.
      block: ``[num_words, blocks]``: 1 where a word is of a block, whose topics sum to 1 over its words.
      alpha: scalar, ``α - 1``.
      beta: scalar, ``β - 1``.
      sigma: scalar, strength of the coupling.
    """

    documents: em.Buckets
    order: jax.Array
    place: jax.Array
    words: em.Buckets
    tokens: jax.Array
    block: jax.Array
    alpha: jax.Array
    beta: jax.Array
    sigma: jax.Array


class State(NamedTuple):
    """What changes from iteration to iteration.

    Attributes:
      words: ``φ``, ``[num_words, k]``.
      theta: ``[languages, n, k]``; one for all languages where a tuple has one topic vector.
      tilt: ``[languages, n, k]``, minus the multipliers of the coupling over the tokens; None without a coupling.
    """

    words: jax.Array
    theta: jax.Array
    tilt: jax.Array | None


class Coupling(NamedTuple):
    """How posteriors of a pair are brought together; see `cplsa`.

    Attributes:
      steps: of the dual, in each iteration.
      dual: ``scaling`` or ``gradient``.
    """

    steps: int
    dual: str


def objective(params: tuple[jax.Array, jax.Array], data: Data) -> jax.Array:
    r"""Minus the logarithm of the posterior density, a token, up to a constant.

    .. math:: -\frac1n \Big( \sum_{dw} x_{dw} \log \sum_t \theta_{dt} \phi_{wt}
              + (\alpha - 1) \sum \log \theta + (\beta - 1) \sum \log \phi \Big)

    Args:
      params: ``(φ, θ)``, ``[num_words, k]`` and ``[languages or 1, n, k]``.
      data: on one device.

    Returns:
      Scalar, in nats.
    """
    words, theta = params
    whole = jnp.broadcast_to(theta, (data.tokens.shape[0], *theta.shape[1:]))
    _, likelihood = em.expected(data.documents, whole.reshape(-1, theta.shape[-1])[data.order], words)
    return _loss(likelihood, words, theta, data, lambda x: x)


def _loss(likelihood, words, theta, data: Data, total: Callable) -> jax.Array:
    """The objective from the likelihood; ``total`` sums over devices."""
    least = jnp.finfo(words.dtype).tiny
    there = (data.tokens >= 0)[: theta.shape[0], :, None]
    of_theta = jnp.sum(jnp.where(there, jnp.log(jnp.maximum(theta, least)), 0))
    of_words = jnp.sum(jnp.log(jnp.where(words > 0, words, 1)))  # 0: padding, or β = 1
    tokens = total(jnp.sum(jnp.maximum(data.tokens, 0)))
    return -(total(likelihood + data.alpha * of_theta) + data.beta * of_words) / jnp.maximum(tokens, 1)


def iteration(state: State, data: Data, coupling: Coupling | None, total: Callable) -> tuple[State, jax.Array]:
    """One iteration of EM and the loss of the state that it was given; of a coupled model, at most the objective's.

    Args:
      state: `State`.
      data: `Data`, of one device.
      coupling: None where a tuple has one posterior.
      total: sums over devices.

    Returns:
      ``(state, loss)``.
    """
    languages, n = data.tokens.shape
    k = state.words.shape[1]

    def documents(theta):
        counts, likelihood = em.expected(data.documents, theta.reshape(languages * n, k)[data.order], state.words)
        return counts[data.place], likelihood

    theta, tilt = jnp.broadcast_to(state.theta, (languages, n, k)), state.tilt
    if coupling is None:
        counts, likelihood = documents(theta)
    else:
        def together(step, carry):
            tilt = carry[0]
            counts, likelihood = documents(theta * jnp.exp(tilt))
            moved = _dual_step(counts, tilt, data, coupling.dual)
            return jnp.where(step < coupling.steps, moved, tilt), counts, likelihood

        start = tilt, jnp.zeros_like(theta), jnp.zeros((), theta.dtype)
        tilt, counts, likelihood = jax.lax.fori_loop(0, coupling.steps + 1, together, start)
        theta = theta * jnp.exp(tilt)
    of_words, _ = em.expected(data.words, state.words, theta.reshape(languages * n, k))
    return _maximum(state._replace(tilt=tilt), data, counts, of_words, likelihood, total)


def _maximum(state: State, data: Data, counts, of_words, likelihood, total: Callable) -> tuple[State, jax.Array]:
    """The M step from the expected counts of documents, ``[languages, n, k]``, and of words; and the loss before it."""
    loss = _loss(likelihood, state.words, state.theta, data, total)
    of_words, block = total(of_words), data.block
    sums = jnp.einsum("wb,wk->bk", block, of_words, precision=precision.EVALUATION)
    sums = 1 / jnp.maximum(sums + data.beta * jnp.sum(block, axis=0)[:, None], 1e-30)
    words = (of_words + data.beta) * jnp.einsum("wb,bk->wk", block, sums, precision=precision.EVALUATION)
    if state.theta.shape[0] < counts.shape[0]:
        counts = jnp.sum(counts, axis=0, keepdims=True)
    return State(words, shares(counts + data.alpha), state.tilt), loss


def _dual_step(counts, tilt, data: Data, dual: str) -> jax.Array:
    """One step towards the multipliers under which all languages of a tuple have the same share of every topic."""
    tokens = jnp.maximum(data.tokens, 0)[..., None]
    share = counts / jnp.maximum(tokens, 1)
    weight = tokens / jnp.maximum(jnp.sum(tokens, axis=0, keepdims=True), 1)
    if dual == "scaling":
        share = jnp.log(jnp.maximum(share, _FLOOR))
        change = share - jnp.sum(weight * share, axis=0, keepdims=True)
    else:
        change = 2 * (share - jnp.sum(weight * share, axis=0, keepdims=True))
    limit = jnp.minimum(data.sigma / jnp.maximum(tokens, 1), _LARGEST)
    return jnp.where(tokens > 0, jnp.clip(tilt - change, -limit, limit), 0)


@functools.partial(jax.jit, static_argnames=("coupling", "mesh"), donate_argnames="state")
def step(state: State, data: Data, coupling: Coupling | None, mesh) -> tuple[State, jax.Array]:
    """`iteration` on one device or over a mesh, whose devices share the documents."""
    if mesh is None:
        return iteration(state, data, coupling, lambda x: x)
    axis = mesh.axis_names[0]
    along, rows = P(axis), P(None, axis)

    def own(state, data):
        split = jax.tree.map(lambda leaf: leaf[0], data[:5])
        return iteration(state, Data(*split, *data[5:]), coupling, lambda x: jax.lax.psum(x, axis))

    states = State(P(), rows, None if state.tilt is None else rows)
    specs = Data(*(jax.tree.map(lambda _: along, part) for part in data[:5]), P(), P(), P(), P())
    return jax.shard_map(own, mesh=mesh, in_specs=(states, specs), out_specs=(states, P()), check_vma=False)(
        state, data)


def step_on_host(state: State, data: Data, counts: host.Counts, coupling: Coupling | None) -> tuple[State, jax.Array]:
    """`iteration` by the loops of `host`."""
    languages, n = data.tokens.shape
    words, tilt = np.asarray(state.words), state.tilt

    def documents(tilt):
        theta = np.asarray(_tilted(state.theta, tilt, languages))
        found, ratios, likelihood = host.of_documents(counts.documents, theta, words)
        return theta, found.reshape(languages, n, -1), ratios, likelihood

    theta, found, ratios, likelihood = documents(tilt)
    for _ in range(0 if coupling is None else coupling.steps):
        tilt = _moved(found, tilt, data, coupling.dual)
        theta, found, ratios, likelihood = documents(tilt)
    of_words = host.of_words(counts, ratios, theta, words)
    found, of_words = jax.device_put((found, of_words))
    return _finished(state._replace(tilt=tilt), data, found, of_words, words.dtype.type(likelihood))


_moved = jax.jit(_dual_step, static_argnames="dual")


@functools.partial(jax.jit, static_argnames="languages")
def _tilted(theta: jax.Array, tilt: jax.Array | None, languages: int) -> jax.Array:
    """The topic vectors of all documents, language after language, under the multipliers."""
    theta = jnp.broadcast_to(theta, (languages, *theta.shape[1:]))
    return (theta if tilt is None else theta * jnp.exp(tilt)).reshape(-1, theta.shape[-1])


@jax.jit
def _finished(state: State, data: Data, counts, of_words, likelihood) -> tuple[State, jax.Array]:
    return _maximum(state, data, counts, of_words, likelihood, lambda x: x)


class Layout(NamedTuple):
    """Counts laid out, and the way back.

    Attributes:
      data: `Data`; without documents and words where the loops of `host` read them.
      columns: ``[num_words]`` column of each row of φ, -1 for padding.
      counts: ``[documents, columns]`` CSR, language after language.
      mesh: of one axis, or None.
      host: the counts, for `step_on_host`; None for `step`.
    """

    data: Data
    columns: np.ndarray
    counts: sp.csr_matrix
    mesh: object
    host: host.Counts | None = None


def lay_out(views: Sequence[sp.csr_matrix], blocks: np.ndarray, *, k: int, alpha: float, beta: float,
            sigma: float = np.inf, mesh=None) -> Layout:
    """Puts counts where an iteration finds them.

    Args:
      views: ``[n, columns]`` counts of each language over the same columns.
      blocks: ``[columns]`` the block of each column, whose words a topic is a distribution over.
      k: topics.
      alpha: Dirichlet prior of θ.
      beta: Dirichlet prior of φ.
      sigma: strength of the coupling.
      mesh: of one axis, or None.

    Returns:
      `Layout`.
    """
    mesh = None if mesh is None else sharding.checked_mesh(mesh)
    dtype = views[0].dtype
    n, devices = views[0].shape[0], 1 if mesh is None else mesh.size
    each = -(-n // devices)
    tall = [sp.vstack([_padded(view[part * each : (part + 1) * each], each) for view in views], format="csr")
            for part in range(devices)]
    used = np.flatnonzero(sum(np.asarray(part.sum(axis=0)).ravel() for part in tall) > 0)
    wide = [part[:, used].T.tocsr() for part in tall]
    words, columns = em.buckets(wide, k=k)
    position = np.zeros(used.size, np.int64)
    position[columns[columns >= 0]] = np.flatnonzero(columns >= 0)
    renamed = [sp.csr_matrix((part.data, position[part.indices], part.indptr), (part.shape[0], columns.size))
               for part in (one[:, used] for one in tall)]
    documents, order = em.buckets(renamed, k=k)
    place = np.zeros(len(views) * each, np.int32)
    place[order[order >= 0]] = np.flatnonzero(order >= 0)
    tokens = np.stack([np.asarray(part.sum(axis=1), dtype).reshape(len(views), each) for part in tall])
    tokens[np.broadcast_to((np.arange(devices * each).reshape(devices, 1, each) >= n), tokens.shape)] = -1
    where = np.zeros((columns.size, int(blocks.max()) + 1), dtype)
    where[np.flatnonzero(columns >= 0), blocks[used[columns[columns >= 0]]]] = 1
    order, place = np.maximum(order, 0).astype(np.int32), place.reshape(len(views), each)
    if mesh is None:
        tokens = tokens[0]
    else:
        order, place = (np.broadcast_to(array, (devices, *array.shape)) for array in (order, place))
    data = Data(documents, order, place, words, tokens, where, *_scalars(alpha, beta, sigma, dtype))
    if mesh is not None:
        along = NamedSharding(mesh, P(mesh.axis_names[0]))
        data = Data(*(jax.device_put(part, along) for part in data[:5]), *sharding.replicate(data[5:], mesh))
    return Layout(jax.tree.map(jnp.asarray, data), np.where(columns >= 0, used[columns], -1),
                  sp.vstack(views, format="csr"), mesh)


def lay_out_on_host(views: Sequence[sp.csr_matrix], blocks: np.ndarray, *, alpha: float, beta: float,
                    sigma: float = np.inf) -> Layout:
    """Puts counts where `step_on_host` finds them.

    Args:
      views: as for `lay_out`.
      blocks: as there.
      alpha: as there.
      beta: as there.
      sigma: as there.

    Returns:
      `Layout`.
    """
    whole = sp.vstack(views, format="csr")
    used = np.flatnonzero(np.asarray(whole.sum(axis=0)).ravel() > 0)
    where = np.zeros((used.size, int(blocks.max()) + 1), whole.dtype)
    where[np.arange(used.size), blocks[used]] = 1
    tokens = np.asarray(whole.sum(axis=1), whole.dtype).reshape(len(views), -1)
    data = Data(None, None, None, None, *jax.device_put((tokens, where, *_scalars(alpha, beta, sigma, whole.dtype))))
    return Layout(data, used, whole, None, host.counts_of(whole[:, used]))


def _scalars(alpha: float, beta: float, sigma: float, dtype) -> list[np.ndarray]:
    """The last three leaves of `Data`."""
    return [np.asarray(x, dtype) for x in (alpha - 1, beta - 1, min(sigma, float(np.finfo(dtype).max)))]


def _padded(matrix: sp.csr_matrix, rows: int) -> sp.csr_matrix:
    """Empty rows below, up to a number."""
    matrix = matrix.tocsr(copy=True)
    matrix.resize(rows, matrix.shape[1])
    return matrix


def first_state(layout: Layout, start: np.ndarray, *, languages: int, coupled: bool) -> State:
    """The M step from the posteriors of a start, which depend on the word alone.

    Args:
      layout: `Layout`.
      start: ``[columns, k]`` shares of topics of each word.
      languages: topic vectors a tuple.
      coupled: whether there are multipliers.

    Returns:
      `State`.
    """
    data, counts, devices = layout.data, layout.counts, 1 if layout.mesh is None else layout.mesh.size
    dtype, k = start.dtype, start.shape[1]
    views = data.tokens.shape[-2]
    n = counts.shape[0] // views
    theta = np.asarray(counts @ start).reshape(views, n, k)
    theta = theta.sum(axis=0, keepdims=True) if languages == 1 else theta
    spare = data.tokens.shape[-1] * devices - n
    theta = np.pad(theta, ((0, 0), (0, spare), (0, 0))) + float(data.alpha)
    frequency = np.asarray(counts.sum(axis=0)).ravel()
    there = layout.columns >= 0
    words, block = sparse_host.empty((there.size, k), dtype), np.asarray(data.block)
    for first in range(0, k, _TOPICS):  # float64 of all topics at once would be the most that a fit holds
        those = np.s_[:, first : first + _TOPICS]
        part = np.zeros(words[those].shape)
        part[there] = frequency[layout.columns[there], None] * start[those][layout.columns[there]] + float(data.beta)
        words[those] = part / np.maximum(block @ (block.T @ part), np.finfo(np.float32).tiny)
    tilt = jnp.zeros((views, n + spare, k), dtype) if coupled else None
    return State(jax.device_put(words), shares(jnp.asarray(theta, dtype)), tilt)


def views_of(views: Sequence[Terms]) -> list[sp.csr_matrix]:
    """The counts of comparable documents on the host, checked.

    Args:
      views: two or more `Terms` of counts over the same vocabulary slots.

    Returns:
      A CSR matrix a language.

    Raises:
      ValueError: for views that do not agree, or negative counts.
    """
    return [statistics.counts_of(view, f"views[{i}]") for i, view in enumerate(statistics.checked_views(views))]


def _apart(views: Sequence[sp.csr_matrix]) -> list[sp.csr_matrix]:
    """Every language over columns of its own."""
    return [sp.hstack([view if j == i else sp.csr_matrix(view.shape, dtype=view.dtype) for j in range(len(views))],
                      format="csr") for i, view in enumerate(views)]


def iterations(layout: Layout, coupling: Coupling | None) -> Callable:
    """An iteration as `em.maximize` takes it, by the host or by the device, as the counts are laid out.

    Args:
      layout: `Layout`.
      coupling: as for `iteration`.

    Returns:
      Function of the fields of a `State` giving those of the next one, and the loss.
    """
    def advance(state):
        if layout.host is not None:
            state, loss = step_on_host(State(*state), layout.data, layout.host, coupling)
        else:
            state, loss = step(State(*state), layout.data, coupling, layout.mesh)
        return tuple(state), loss

    return advance


def _of_language(words: jax.Array, columns: np.ndarray, first: int, num_terms: int) -> Topics:
    """The rows of φ whose columns are those of one language, from ``first`` on, in their places."""
    own = np.flatnonzero((columns >= first) & (columns < first + num_terms))
    empty = jnp.zeros((num_terms, words.shape[1]), words.dtype)
    return Topics(empty.at[columns[own] - first].set(words[own]))


def fit(views: Sequence[sp.csr_matrix], *, k: int, start: str, key, alpha: float, beta: float, merged: bool,
        joint: bool, languages: int, coupling: Coupling | None, sigma: float, each: int, mesh, run: Run,
        single: bool = False) -> Fit:
    """Fits any of the models.

    Args:
      views: counts, ``[n, num_terms]`` a language.
      k: topics.
      start: as for `starts.make`.
      key: as for `starts.make`.
      alpha: Dirichlet prior of θ.
      beta: Dirichlet prior of φ.
      merged: whether languages share their words.
      joint: whether the documents of a tuple are one.
      languages: topic vectors a tuple.
      coupling: how their posteriors are brought together, or None.
      sigma: strength of the coupling.
      each: iterations a step of the run.
      mesh: of one axis, or None.
      run: how it runs.
      single: whether the `Topics` stand for themselves, not in a tuple.

    Returns:
      `Fit` of a tuple of `Topics`, one a language.
    """
    num_terms, number, dtype = views[0].shape[1], len(views), views[0].dtype

    def begun() -> tuple[list[np.ndarray], np.ndarray]:
        """Frequencies of the words, and the start, if all arguments fit."""
        for value, name in ((alpha, "alpha"), (beta, "beta")):
            checks.expect(1 <= value < np.inf, name, "a number of at least 1", value)
        checks.positive_int(k, "k")
        found = [np.asarray(view.sum(axis=0)).ravel() for view in views]
        for i, frequency in enumerate(found):
            argument, those = ("terms", "all") if single else (f"views[{i}]", "all of this language")
            checks.expect(frequency.any(), argument, "a document with words", f"none ({those} are empty)")
        found = [sum(found)] if merged else found
        return found, np.concatenate(starts.make(found, k=k, start=start, key=key, dtype=dtype))

    several = gathering.several(mesh)
    frequencies, first = gathering.agreed(begun, "arguments") if several else begun()
    if several:
        documents = [(view.shape, view.indptr, view.indices, view.data) for view in views]
        digests = {"documents": checkpoints.fingerprint(documents), "start": start,
                   "key": checkpoints.fingerprint(first)}
        gathering.expect_same_settings(mesh, alpha=float(alpha), beta=float(beta), k=k, sigma=float(sigma), each=each,
                                       coupling=coupling, merged=merged, joint=joint, languages=languages, **digests,
                                       **run.in_common())  # fmt: skip
    blocks = np.repeat(np.arange(len(frequencies)), num_terms)
    if not merged:
        views = _apart(views)
    if joint:
        views = [sum(views[1:], start=views[0]).tocsr()]
    priors = {"alpha": alpha, "beta": beta, "sigma": sigma}
    on_host = mesh is None and host.takes(dtype)
    layout = lay_out_on_host(views, blocks, **priors) if on_host else lay_out(views, blocks, k=k, mesh=mesh, **priors)
    state = first_state(layout, first, languages=languages, coupled=coupling is not None)
    del first  # as large as all topics

    def whole(words) -> tuple[Topics, ...]:
        words = words if layout.mesh is None else sharding.local(jax.device_put(words, NamedSharding(layout.mesh, P())))
        sides = [_of_language(words, layout.columns, first, num_terms)
                 for first in range(0, num_terms * len(frequencies), num_terms)]
        return sides[0] if single else tuple(sides * (number if merged else 1))

    # Steps are counted in iterations of each; checkpoints of before do not say how many, so that one tells nothing.
    settings = [str(coupling), str(layout.data.tokens.shape), *([] if each == 1 else [f"each {each}"])]
    mark = "" if run.checkpoint is None else checkpoints.fingerprint(
        settings, state, layout.data,
        *() if layout.host is None else layout.host)
    begin = [tuple(state)]
    del state  # nothing holds it beside the states that follow

    def minimize(*, run):
        return em.maximize(iterations(layout, coupling), begin.pop(), each=each, mark=lambda: mark, label="topics",
                           run=run, shared=several)

    return run.run(minimize, whole)
