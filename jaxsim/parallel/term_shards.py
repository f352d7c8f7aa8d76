"""A projection over the devices of a mesh, for vocabularies too large for one: each device holds the rows of its terms.

Of every document, a device has the weights of its own terms. Their projections are summed over the devices and divided
by documents in one step (``psum_scatter``), so that embeddings are laid out as by `sharding.project` and enter the same
loss. The gradient of the embeddings goes back to all devices, and that of the projection stays where its rows
are.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools

import jax
import numpy as np
import scipy.sparse
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jaxsim import checks, sparse
from jaxsim.parallel import gathering, sharding
from jaxsim.sparse import Terms
from jaxsim.sparse.terms import expect_weights


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["terms", "ids", "groups", "num_negatives"],
    meta_fields=["num_docs", "num_terms", "mesh"],
)
@dataclasses.dataclass(frozen=True)
class TermShards:
    """Sparse documents over the devices of a mesh, by their terms. Build with `shard`.

    Attributes:
      terms: `Terms` whose leaves have a first axis of devices; a device holds its own ``v`` terms of every document.
      ids: ``[num_devices * n]`` int32 number of each document; -1 for padding.
      groups: ``[num_devices * n, c]`` int32, or None.
      num_negatives: scalar, as of `sharding.Shards`.
      num_docs: documents without padding.
      num_terms: terms without padding.
      mesh: of one axis.
    """

    terms: Terms
    ids: jax.Array
    groups: jax.Array | None
    num_negatives: jax.Array
    num_docs: int
    num_terms: int
    mesh: Mesh


def _each(number: int, mesh: Mesh) -> int:
    """Of so many, how many a device gets."""
    return max(-(-number // mesh.size), 1)


def shard(documents: Terms, mesh: Mesh, *, groups: np.ndarray | None = None) -> TermShards:
    """Deals the terms of documents to the devices of a mesh, in order, as many to each.

    Args:
      documents: `Terms` of ``m`` documents.
      mesh: of one axis; more devices than terms or documents are legal.
      groups: ``[m, c]`` integers to travel with them, or None.

    Returns:
      `TermShards`.

    Raises:
      ValueError: for another mesh, or groups of another length.

    Example:
      >>> documents = sparse.from_scipy(scipy.sparse.identity(3, format="csr"))
      >>> shard(documents, jax.make_mesh((1,), ("pairs",))).num_terms
      3
    """
    mesh = sharding.checked_mesh(mesh)
    columns = sparse.to_scipy(documents).tocsc()
    m, v = columns.shape
    each, docs = _each(v, mesh), _each(m, mesh) * mesh.size
    parts = [columns[:, min(i * each, v) : (i + 1) * each].tocsr() for i in range(mesh.size)]
    slots = max(max(part.nnz for part in parts), 1)
    held = []
    for part in parts:
        part.resize(m, each)
        held.append(sparse.from_scipy(part, pad_docs=docs, pad_nnz=slots))
    along = NamedSharding(mesh, P(mesh.axis_names[0]))
    stacked = jax.tree.map(lambda *leaves: jax.device_put(np.stack([np.asarray(leaf) for leaf in leaves]), along),
                           *held)
    # Documents are numbered, and counted, as if they were dealt out themselves: their embeddings will be.
    empty = sparse.from_scipy(scipy.sparse.csr_matrix((m, 1), dtype=columns.dtype))
    numbers = sharding.shard(empty, mesh, groups=groups)
    return TermShards(stacked, numbers.ids, numbers.groups, numbers.num_negatives, m, v, mesh)


def split(tree, mesh: Mesh):
    """Deals the rows of matrices to the devices of a mesh; none of these ever holds a whole one.

    Args:
      tree: pytree of ``[num_terms, k]`` arrays, best in host memory.
      mesh: the mesh, of one axis.

    Returns:
      The same, of a multiple of the devices of rows: zeros are added.

    Example:
      >>> split(np.ones((3, 2)), jax.make_mesh((1,), ("pairs",))).shape
      (3, 2)
    """
    mesh = sharding.checked_mesh(mesh)
    along = NamedSharding(mesh, P(mesh.axis_names[0]))

    def dealt(array):
        array = np.asarray(array)
        each = _each(array.shape[0], mesh)

        def rows(index):
            found = array[index[0]]
            return np.concatenate([found, np.zeros((each - found.shape[0], *found.shape[1:]), array.dtype)])

        return jax.make_array_from_callback((each * mesh.size, *array.shape[1:]), along, rows)

    return jax.tree.map(dealt, tree)


def gathered(tree, like):
    """What `split` dealt out, together again in host memory; over several processes all of them call it.

    Args:
      tree: what `split` gives.
      like: pytree of arrays of the shapes before.

    Returns:
      NumPy arrays of those shapes.

    Example:
      >>> gathered(split(np.ones((3, 2)), jax.make_mesh((1,), ("pairs",))), np.ones((3, 2))).shape
      (3, 2)
    """
    return jax.tree.map(lambda array, shape: gathering.whole(array)[: shape.shape[0]], tree, like)


def on_host():
    """A block in which new arrays stand in the host's memory, also where an accelerator is the default.

    Returns:
      A context manager.

    Example:
      >>> with on_host():
      ...     [device.platform for device in jax.numpy.ones(1).devices()]
      ['cpu']
    """
    with contextlib.suppress(RuntimeError):  # a JAX that was told to leave the CPU out
        return jax.default_device(jax.local_devices(backend="cpu")[0])
    return contextlib.nullcontext()


def _spread(function, mesh: Mesh):
    over = P(mesh.axis_names[0])
    # The gradient is given below, so that what varies over devices need not be tracked.
    return jax.shard_map(function, mesh=mesh, in_specs=(over, over), out_specs=over, check_vma=False)


def _own(terms: Terms) -> Terms:
    return jax.tree.map(lambda leaf: leaf[0], terms)


@jax.custom_vjp
def _project(weights, shards: TermShards):
    def parts(held, rows):
        return jax.lax.psum_scatter(sparse.project(_own(held), rows), shards.mesh.axis_names[0], tiled=True)

    return _spread(parts, shards.mesh)(shards.terms, weights)


def _project_forward(weights, shards):
    return _project(weights, shards), shards


def _project_backward(shards, grad):
    def parts(held, g):
        return sparse.project_transpose(_own(held), jax.lax.all_gather(g, shards.mesh.axis_names[0], tiled=True))

    return _spread(parts, shards.mesh)(shards.terms, grad), None


_project.defvjp(_project_forward, _project_backward)


@sparse.project.register(TermShards)
def project(shards: TermShards, weights: jax.Array) -> jax.Array:
    """`sparse.project` of every document, by all devices together.

    Args:
      shards: ``m`` documents.
      weights: ``[num_devices * v, k]`` floating, as `split` deals them.

    Returns:
      ``[num_devices * n, k]`` over the devices, zero for padding; differentiable in ``weights``, whose gradient is
      dealt out like them.

    Raises:
      ValueError: if ``weights`` has another shape.

    Example:
      >>> mesh = jax.make_mesh((1,), ("pairs",))
      >>> documents = sparse.from_scipy(scipy.sparse.csr_matrix([[1.0, 2.0]]))
      >>> project(shard(documents, mesh), split(np.ones((2, 1), np.float32), mesh)).tolist()
      [[3.0]]
    """
    expect_weights(weights, _each(shards.num_terms, shards.mesh) * shards.mesh.size)
    return _project(weights, shards)


_compiled = jax.jit(project)


def encode(weights, documents: Terms, mesh: Mesh, *, activation=None) -> np.ndarray:
    """Concept vectors by a projection that is too large for one device.

    Args:
      weights: ``[num_terms, k]`` floating, in host memory (a `Projection`'s ``weights``), or as `split` deals them.
      documents: `Terms` of ``m`` documents.
      mesh: of one axis.
      activation: as for `sparse.activated`.

    Returns:
      ``[m, k]`` NumPy array: what `projections.encode` gives.

    Raises:
      ValueError: for another mesh, or weights of another vocabulary.

    Example:
      >>> documents = sparse.from_scipy(scipy.sparse.csr_matrix([[1.0, 2.0], [0.0, 3.0]]))
      >>> encode(np.ones((2, 1), np.float32), documents, jax.make_mesh((1,), ("pairs",))).tolist()
      [[3.0], [3.0]]
    """
    shards = shard(documents, mesh)
    dealt = isinstance(weights, jax.Array) and isinstance(weights.sharding, NamedSharding)
    if not dealt:
        weights = np.asarray(weights)
        fits = weights.ndim == 2 and weights.shape[0] == documents.num_terms
        checks.expect(fits, "weights", f"shape ({documents.num_terms}, k)", weights.shape)
        weights = split(weights, mesh)
    found = gathering.whole(_compiled(shards, weights))[: documents.num_docs]
    return np.asarray(sparse.activated(found, activation))
