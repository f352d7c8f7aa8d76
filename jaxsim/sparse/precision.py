"""The precision of dense matrix products: one policy for training, one for evaluation.

Training may multiply in less than float32, if that is faster on a device; sums, parameters and documents stay float32.
Evaluation, encoding, closed forms and the products of sparse documents never do. They use `EVALUATION`, because lower
precision would spoil eigenproblems, and ties between scores.
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


def rounded(a: jax.Array, policy: str) -> jax.Array:
    """A matrix with as many bits as a policy multiplies.

    Args:
      a: floating.
      policy: "tf32" or "bfloat16".

    Returns:
      float32 numbers of 10 bits of fraction, or bfloat16.

    Raises:
      ValueError: for another policy.

    Example:
      >>> f"{rounded(jnp.float32(1 / 3), 'tf32').item():.6f}"
      '0.333252'
    """
    checks.expect(policy in ("tf32", "bfloat16"), "policy", "tf32 or bfloat16", policy)
    return a.astype(jnp.bfloat16) if policy == "bfloat16" else jax.lax.reduce_precision(
        a.astype(jnp.float32), 8, _TF32_BITS)


def matmul(a: jax.Array, b: jax.Array, policy: str | None = None) -> jax.Array:
    r"""The product of two matrices under a policy; sums are always in float32.

    ``"tf32"`` rounds both matrices to 10 bits of fraction, and ``"bfloat16"`` to 7, before they are multiplied. A
    device with such units uses them. A device without (a CPU) gives the same products, up to the order of sums. The
    effect of a policy on a loss can thus be tested on any device; its speed cannot.

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
        return jnp.matmul(rounded(a, policy), rounded(b, policy), precision="tensorfloat32").astype(a.dtype)
    return jnp.matmul(rounded(a, policy), rounded(b, policy), preferred_element_type=jnp.float32).astype(a.dtype)
