"""Documents as a dense matrix on an accelerator, where products with a projection are plain matrix products.

A CPU has a native kernel for sparse rows. GPUs and TPUs gather a row of the projection for every stored weight, and
add up by scattering, in no fixed order; but they multiply matrices fast. Zeros are multiplied too, so documents are
held so only where they fit, as `fits` says.

`storage` and `held` choose how an accelerator holds documents of many products: a TPU so; a GPU as `gathered`, whose
products take a tenth of the time there.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks
from jaxsim.sparse.gather import Gathered, gathered
from jaxsim.sparse.precision import EVALUATION
from jaxsim.sparse.terms import Terms, expect_dense, expect_weights, project, project_transpose

SHARE = 0.25
"""Of the device's memory, that documents may fill."""


@functools.partial(jax.tree_util.register_dataclass, data_fields=["matrix"], meta_fields=[])
@dataclasses.dataclass(frozen=True)
class Filled:
    """Documents with all their zeros (build with `filled`), or vectors of any other kind.

    Attributes:
      matrix: ``[num_docs, num_terms]`` floating; over a mesh, ``[num_devices, n, num_terms]``.
    """

    matrix: jax.Array

    @property
    def values(self) -> jax.Array:
        """The weights of all terms, zeros among them: the matrix."""
        return self.matrix

    @property
    def num_docs(self) -> int:
        """Number of documents."""
        return self.matrix.shape[-2]

    @property
    def num_terms(self) -> int:
        """Size of the vocabulary."""
        return self.matrix.shape[-1]


@jax.jit
def filled(terms: Terms) -> Filled:
    """Sparse documents as a dense matrix, made on the device.

    Args:
      terms: `Terms`.

    Returns:
      `Filled`, the same documents.

    Example:
      >>> import scipy.sparse
      >>> from jaxsim import sparse
      >>> filled(sparse.from_scipy(scipy.sparse.csr_matrix([[1.0, 0.0], [0.0, 2.0]]))).matrix.tolist()
      [[1.0, 0.0], [0.0, 2.0]]

    Relations: `project` of both is the same.
    """
    slots = jnp.arange(terms.nnz, dtype=jnp.int32)
    row = jnp.searchsorted(terms.indptr, slots, side="right") - 1
    row = jnp.where(slots < terms.indptr[-1], row, terms.num_docs)  # padding is dropped
    zeros = jnp.zeros((terms.num_docs, terms.num_terms), terms.values.dtype)
    return Filled(zeros.at[row, terms.indices].add(terms.values, mode="drop"))


def checked(documents: Filled, argument: str) -> Filled:
    """Vectors that a user made, in the type that `Terms` would have.

    Args:
      documents: `Filled` of a matrix of any floating type, an array or what can become one.
      argument: the caller's name for it.

    Returns:
      The same in float32, or in float64 where it is of that and JAX has it switched on.

    Raises:
      ValueError: naming the argument, for what is no matrix of finite floating numbers.

    Example:
      >>> checked(Filled(jnp.ones((2, 3), jnp.float16)), "left").matrix.dtype
      dtype('float32')
    """
    matrix = documents.matrix if isinstance(documents.matrix, jax.Array) else np.asarray(documents.matrix)
    checks.expect(matrix.ndim == 2 and jnp.issubdtype(matrix.dtype, jnp.floating), argument,
                  "a matrix of floating numbers, [m, n]", f"{matrix.dtype} of shape {matrix.shape}")
    with np.errstate(over="ignore"):  # what overflows is refused
        matrix = jnp.asarray(matrix.astype(jnp.result_type(float) if matrix.dtype == np.float64 else np.float32))
    checks.expect(bool(jnp.isfinite(matrix).all()), argument, "finite numbers", "NaN or infinity")
    return Filled(matrix)


@project.register(Filled)
def _(documents, weights):
    expect_weights(weights, documents.num_terms)
    return jnp.matmul(documents.matrix, weights, precision=EVALUATION)


@project_transpose.register(Filled)
def _(documents, dense):
    expect_dense(dense, documents.num_docs)
    return jnp.matmul(documents.matrix.T, dense, precision=EVALUATION)


def fits(*documents: Terms) -> bool:
    """Whether documents may be held as dense matrices on the default device: never on a CPU.

    Args:
      *documents: all that are to be held at once.

    Returns:
      Whether they take `SHARE` of an accelerator's memory at most; False where its memory is not known.

    Example:
      >>> import scipy.sparse
      >>> from jaxsim import sparse
      >>> fits(sparse.from_scipy(scipy.sparse.identity(3, format="csr"))) and jax.default_backend() == "cpu"
      False
    """
    if jax.default_backend() == "cpu":
        return False
    memory = (jax.local_devices()[0].memory_stats() or {}).get("bytes_limit", 0)
    return sum(one.num_docs * one.num_terms * one.values.dtype.itemsize for one in documents) <= SHARE * memory


def storage(*documents: Terms) -> Literal["rows", "filled", "gathered"]:
    """The storage whose products are fastest on the default device, where many are taken.

    Args:
      *documents: all that are to be held at once.

    Returns:
      On a GPU "gathered"; on a TPU "filled" where `fits` says so; else "rows".

    Example:
      >>> storage() == "rows" or jax.default_backend() != "cpu"
      True
    """
    if jax.default_backend() == "gpu":
        return "gathered"
    return "filled" if fits(*documents) else "rows"


Held = Terms | Filled | Gathered
"""Documents of one device, as `held` gives them."""


def held(*documents: Terms | Filled | None) -> tuple[Held | None, ...]:
    """Documents in the storage whose products are fastest on the default device; for many products.

    Args:
      *documents: all that are to be held at once; None for none. `Filled` ones stay so.

    Returns:
      As many, as `storage` says.

    Example:
      >>> import scipy.sparse
      >>> from jaxsim import sparse
      >>> one = sparse.from_scipy(scipy.sparse.identity(3, format="csr"))
      >>> [sparse.project(some, jnp.ones((3, 1))).sum().item() for some in held(one, None) if some is not None]
      [3.0]
    """
    store = {"rows": lambda terms: terms, "filled": filled, "gathered": gathered}[
        storage(*(one for one in documents if isinstance(one, Terms | Filled)))]
    return tuple(store(one) if isinstance(one, Terms) else one for one in documents)
