"""Documents and the all-pairs loss over a mesh of devices: documents are sharded, parameters stand on every device.

The rows of a device's own documents are compared with the columns of all documents: blocks of columns are passed round
the ring of devices, together with their gradients, so that no device holds more than its own documents and one other
block.
"""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jaxsim import checks, losses, sparse
from jaxsim.losses import negatives, tiles
from jaxsim.losses.all_pairs import checked_groups
from jaxsim.sparse import Filled, Held, Terms, dense, unit
from jaxsim.sparse.gather import gathered_alike
from jaxsim.sparse.precision import checked
from jaxsim.sparse.terms import expect_weights


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["terms", "ids", "groups", "num_negatives"],
    meta_fields=["num_docs", "mesh"],
)
@dataclasses.dataclass(frozen=True)
class Shards:
    """Sparse documents over the devices of a mesh. Build with `shard`.

    Attributes:
      terms: `Terms`, `Filled` or `Gathered` whose leaves have a first axis of devices; a device holds ``n`` documents,
        some of them padding.
      ids: ``[num_devices * n]`` int32 number of each document; -1 for padding.
      groups: ``[num_devices * n, c]`` int32, or None.
      num_negatives: scalar, ordered pairs of documents that differ in every column of ``groups``.
      num_docs: documents without padding.
      mesh: of one axis.
    """

    terms: Held
    ids: jax.Array
    groups: jax.Array | None
    num_negatives: jax.Array
    num_docs: int
    mesh: Mesh

    @property
    def num_terms(self) -> int:
        """Size of the vocabulary."""
        return self.terms.num_terms


def checked_mesh(mesh) -> Mesh:
    """A mesh of one axis.

    Args:
      mesh: `jax.sharding.Mesh`, such as ``jax.make_mesh((jax.device_count(),), ("pairs",))``.

    Returns:
      The same devices under the same name, with shardings left to the compiler.

    Raises:
      ValueError: for anything else, and inside `jax.set_mesh` of a mesh with explicit axes (as `jax.make_mesh` gives),
        where JAX would ask for the sharding of every operation.

    Example:
      >>> checked_mesh(jax.make_mesh((1,), ("pairs",))).size
      1
    """
    checks.expect(isinstance(mesh, Mesh), "mesh", "a jax.sharding.Mesh", type(mesh).__name__)
    checks.expect(len(mesh.axis_names) == 1, "mesh", "one axis", mesh.axis_names)
    around = jax.sharding.get_abstract_mesh()
    checks.expect(not around.explicit_axes, "jax.set_mesh", "none around what is given a mesh, or one made with "
                  "axis_types=(jax.sharding.AxisType.Auto,)", f"explicit axes {around.explicit_axes}")  # fmt: skip
    return Mesh(mesh.devices, mesh.axis_names)


def local_mesh(num_docs: int, *, devices: int | None = None) -> Mesh | None:
    """A mesh of this process's devices, for a training on ``num_docs`` pairs.

    Args:
      num_docs: pairs; their number need not be a multiple of that of devices.
      devices: how many of them; all, but no more than there are pairs, unless given.

    Returns:
      A mesh of one axis; None where one device is enough, which needs no mesh.

    Raises:
      ValueError: for more devices than there are, or than pairs.

    Example:
      >>> local_mesh(10, devices=1) is None
      True
      >>> local_mesh(2, devices=3000)
      Traceback (most recent call last):
      ...
      ValueError: devices: expected at most ... (devices of this process), got 3000
    """
    has = jax.local_devices()
    if devices is None:
        devices = max(1, min(len(has), num_docs))
    else:
        checks.positive_int(devices, "devices")
        checks.expect(devices <= len(has), "devices", f"at most {len(has)} (devices of this process)", devices)
        checks.expect(devices <= max(num_docs, 1), "devices", f"at most {num_docs} (pairs to train on)", devices)
    return None if devices == 1 else Mesh(np.asarray(has[:devices]), ("pairs",))


def shard(documents: Terms, mesh: Mesh, *, groups: np.ndarray | None = None) -> Shards:
    """Deals documents to the devices of a mesh, in order, as many to each.

    Args:
      documents: `Terms` of ``m`` documents.
      mesh: of one axis; more devices than documents are legal, some then hold padding alone.
      groups: ``[m]`` or ``[m, c]`` integers to travel with them, or None, as for `losses.all_pairs_logistic`.

    Returns:
      `Shards`.

    Raises:
      ValueError: for another mesh, or groups of another length or kind.

    Example:
      >>> import scipy.sparse
      >>> documents = sparse.from_scipy(scipy.sparse.identity(3, format="csr"))
      >>> shard(documents, jax.make_mesh((1,), ("pairs",))).ids.tolist()
      [0, 1, 2]
    """
    mesh = checked_mesh(mesh)
    rows = sparse.to_scipy(documents)
    m, devices = rows.shape[0], mesh.size
    each = max(-(-m // devices), 1)
    parts = [rows[i * each : (i + 1) * each] if i * each < m else rows[:0] for i in range(devices)]
    slots = max(max(part.nnz for part in parts), 1)
    held = [sparse.from_scipy(part, pad_docs=each, pad_nnz=slots) for part in parts]
    along = NamedSharding(mesh, P(mesh.axis_names[0]))

    def placed(array: np.ndarray) -> jax.Array:
        return jax.device_put(array, along)

    storage = dense.storage(held[0], held[0])  # of two sides
    held = gathered_alike(held) if storage == "gathered" else held
    stacked = jax.tree.map(lambda *leaves: placed(np.stack([np.asarray(leaf) for leaf in leaves])), *held)
    if storage == "filled":
        over = P(mesh.axis_names[0])
        stacked = jax.jit(_spread(_filled, mesh, over, over))(stacked)
    ids = np.full(each * devices, -1, np.int32)
    ids[:m] = np.arange(m)
    dtype = jnp.result_type(documents.values.dtype, jnp.float32)
    count = jnp.asarray(m * (m - 1.0), dtype)
    if groups is not None:
        groups = np.asarray(checked_groups(groups, m))
        count = negatives(groups, dtype)
        groups = placed(np.concatenate([groups, np.zeros((each * devices - m, groups.shape[1]), np.int32)]))
    return Shards(stacked, placed(ids), groups, replicate(count, mesh), m, mesh)


def replicate(tree, mesh: Mesh):
    """Puts arrays on every device of a mesh.

    Args:
      tree: pytree of arrays.
      mesh: the mesh.

    Returns:
      The same values.
    """
    return jax.device_put(tree, NamedSharding(checked_mesh(mesh), P()))


def local(tree):
    """One device's copy of arrays that stand on every device, as ordinary arrays.

    Args:
      tree: pytree of replicated arrays.

    Returns:
      The same values.
    """
    return jax.tree.map(lambda array: array.addressable_data(0), tree)


def _spread(function, mesh: Mesh, in_specs, out_specs):
    # The custom gradients below are taken outside of it, so that what varies over devices need not be tracked.
    return jax.shard_map(function, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)


def _own(terms: Held) -> Held:
    return jax.tree.map(lambda leaf: leaf[0], terms)


def _filled(terms: Terms) -> Filled:
    return jax.tree.map(lambda leaf: leaf[None], dense.filled(_own(terms)))


@jax.custom_vjp
def _project(weights, shards: Shards):
    axis = shards.mesh.axis_names[0]
    return _spread(lambda held, a: sparse.project(_own(held), a), shards.mesh, (P(axis), P()), P(axis))(
        shards.terms, weights)


def _project_forward(weights, shards):
    return _project(weights, shards), shards


def _project_backward(shards, grad):
    axis = shards.mesh.axis_names[0]

    def transposed(held, g):
        return jax.lax.psum(sparse.project_transpose(_own(held), g), axis)

    return _spread(transposed, shards.mesh, (P(axis), P(axis)), P())(shards.terms, grad), None


_project.defvjp(_project_forward, _project_backward)


@sparse.project.register(Shards)
def project(shards: Shards, weights: jax.Array) -> jax.Array:
    """`sparse.project` of every document on the device that holds it.

    Args:
      shards: ``m`` documents.
      weights: ``[num_terms, k]`` floating, on every device.

    Returns:
      ``[num_devices * n, k]`` over the devices, zero for padding; differentiable in ``weights``.

    Raises:
      ValueError: if ``weights`` has another shape.
    """
    expect_weights(weights, shards.num_terms)
    return _project(weights, shards)


def _round(mesh: Mesh, block_size, precision: str | None, with_grad: bool):
    """The body on one device: its rows against the columns of all, which go round."""
    (axis,), devices = mesh.axis_names, mesh.size
    forward = [(i, (i + 1) % devices) for i in range(devices)]

    def body(left, right, ids, groups, gamma):
        own = jnp.sum(left * right, axis=-1)
        rows, columns = tiles.Side(left, own, ids, groups), tiles.Side(right, own, ids, groups)

        def step(carry, _):
            visiting, sums, luggage = carry
            found = tiles.sweep(rows, visiting, gamma, block_size, with_grad=with_grad, padded=True,
                                precision=precision)
            here, away = (found.total, found.d_rows, found.row_slopes), (found.d_columns, found.column_slopes)
            sums = jax.tree.map(jnp.add, sums, here)
            luggage = jax.tree.map(jnp.add, luggage, away)
            # After as many steps as devices every block, and what it gathered, is at home again.
            visiting, luggage = jax.lax.ppermute((visiting, luggage), axis, forward)
            return (visiting, sums, luggage), None

        zero = jnp.zeros((), left.dtype)
        slopes = (jnp.zeros_like(left), jnp.zeros_like(own)) if with_grad else (None, None)
        start = (columns, (zero, *slopes), slopes)
        (_, sums, luggage), _ = jax.lax.scan(step, start, None, length=devices)
        result = tiles.finished(tiles.Swept(*sums, *luggage), left, right)
        if not with_grad:
            return jax.lax.psum(result, axis)
        total, d_left, d_right = result
        return jax.lax.psum(total, axis), d_left, d_right

    over = P(axis)
    outputs = (P(), over, over) if with_grad else P()
    return _spread(body, mesh, (over, over, over, over, P()), outputs)


@functools.partial(jax.custom_vjp, nondiff_argnums=(5, 6, 7))
def _all_pairs(left, right, ids, groups, gamma, mesh, block_size, precision):
    return _round(mesh, block_size, precision, False)(left, right, ids, groups, gamma)


def _all_pairs_forward(left, right, ids, groups, gamma, mesh, block_size, precision):
    total, d_left, d_right = _round(mesh, block_size, precision, True)(left, right, ids, groups, gamma)
    return total, (d_left, d_right, left, gamma)


def _all_pairs_backward(mesh, block_size, precision, saved, grad):
    del mesh, block_size, precision
    d_left, d_right, left, gamma = saved
    # As in `losses.all_pairs_logistic`.
    return grad * (gamma * d_left), grad * (gamma * d_right), None, None, grad * jnp.sum(left * d_left)


_all_pairs.defvjp(_all_pairs_forward, _all_pairs_backward)


def all_pairs_logistic(left, right, documents, *, gamma, groups=None, weights=None,
                       block_size: int | tuple[int, int] | None = None, precision: str | None = None) -> jax.Array:
    """`losses.all_pairs_logistic` of embeddings as `sparse.project` leaves them, on one device or spread over a mesh.

    Args:
      left: ``[m, k]`` floating embeddings; ``[num_devices * n, k]`` over a mesh.
      right: their mates, row for row.
      documents: those of one side; over a mesh they know their numbers and groups.
      gamma: positive scalar scale; differentiable.
      groups: as for `losses.all_pairs_logistic`, of documents on one device.
      weights: as for `losses.all_pairs_logistic`; None over a mesh.
      block_size: rows a tile, or rows and columns, as for `tiles.tile`.
      precision: of the matrix products, as for `precision.matmul`.

    Returns:
      Scalar, in nats, on every device: the same loss and the same gradient, whatever the storage.

    Raises:
      ValueError: if the shapes differ; over a mesh also for weights, for groups, which `shard` takes, for embeddings
        that are not those of the documents, and for a scale that is not positive.
    """
    mesh = getattr(documents, "mesh", None)
    if mesh is None:
        return losses.all_pairs_logistic(left, right, gamma=gamma, groups=groups, weights=weights,
                                         block_size=block_size, precision=precision)
    checks.expect(weights is None, "weights", "None, over a mesh", "some")
    checks.expect(groups is None, "groups", "None, over a mesh (`shard` takes them)", "some")
    rows = documents.ids.shape[0]
    fits = left.ndim == 2 and left.shape[0] == rows and left.shape[1] > 0
    checks.expect(fits, "left", f"shape [{rows}, k] (as the documents), k at least 1", left.shape)
    checks.expect(left.shape == right.shape, "right", f"shape {left.shape} (as left)", right.shape)
    if not isinstance(gamma, jax.core.Tracer):
        checks.positive(gamma, "gamma")
    if documents.num_docs < 2:
        return 0 * (jnp.sum(left) + jnp.sum(right))
    dtype = jnp.result_type(left, right, jnp.float32)
    total = _all_pairs(unit(left.astype(dtype)), unit(right.astype(dtype)), documents.ids, documents.groups,
                       jnp.asarray(gamma, dtype), mesh, block_size, checked(precision))
    return total / jnp.maximum(2 * documents.num_negatives.astype(dtype), 1)
