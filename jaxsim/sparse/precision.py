"""How exactly dense matrix products are computed: one policy for training, one for evaluation.

Training may multiply in less than float32, where a device is faster that way; sums, parameters and documents stay as
they are. Evaluation, encoding, closed forms and the products of sparse documents never do: they ask for `EVALUATION`,
because an eigenproblem, or a tie between two scores, does not bear less.
"""

from __future__ import annotations

from typing import Literal, get_args

import jax
import jax.numpy as jnp

from jaxsim import checks

Policy = Literal["float32", "tf32", "bfloat16"]
"""How the products of a training are computed, in the order of their exactness."""

POLICIES: tuple[str, ...] = get_args(Policy)

EVALUATION = "highest"
"""JAX's name for products in the full precision of their arrays: what everything but training asks for."""

_TF32_BITS = 10  # of the fraction; exponents are those of float32


def checked(policy: str | None, argument: str = "precision") -> str | None:
    """A policy's name, or None for JAX's default.

    Args:
      policy: one of `POLICIES`, or None.
      argument: what the caller calls it, for the message.

    Returns:
      ``policy``.

    Raises:
      ValueError: for any other name.

    Example:
      >>> checked("tf32")
      'tf32'
      >>> checked("half")
      Traceback (most recent call last):
      ...
      ValueError: precision: expected None, or one of float32, tf32, bfloat16, got half
    """
    checks.expect(policy is None or policy in POLICIES, argument, f"None, or one of {', '.join(POLICIES)}", policy)
    return policy


def matmul(a: jax.Array, b: jax.Array, policy: str | None = None) -> jax.Array:
    r"""The product of two matrices under a policy; sums are in float32 under every one.

    ``"tf32"`` rounds both matrices to 10 bits of fraction, and ``"bfloat16"`` to 7, before they are multiplied. A
    device that has such units then uses them, and one that has not (a CPU) gives what they would, but for the order of
    sums: what a policy does to a loss can be tested anywhere, what it saves only there.

    Args:
      a: ``[n, k]`` floating.
      b: ``[k, m]`` floating, of the same type.
      policy: one of `POLICIES`; None is JAX's default for the device, that is ``a @ b``.

    Returns:
      ``[n, m]`` of the type of ``a``.

    Raises:
      ValueError: for another policy.

    Example:
      >>> third = jnp.array([[1 / 3]], jnp.float32)
      >>> [f"{matmul(third, jnp.ones((1, 1)), policy).item():.6f}" for policy in POLICIES]
      ['0.333333', '0.333252', '0.333984']
    """
    if checked(policy) is None:
        return a @ b
    if policy == "float32":
        return jnp.matmul(a, b, precision=EVALUATION)
    if policy == "tf32":
        cut = [jax.lax.reduce_precision(x.astype(jnp.float32), 8, _TF32_BITS) for x in (a, b)]
        return jnp.matmul(*cut, precision="tensorfloat32").astype(a.dtype)
    rounded = a.astype(jnp.bfloat16), b.astype(jnp.bfloat16)
    return jnp.matmul(*rounded, preferred_element_type=jnp.float32).astype(a.dtype)
