"""Compilation of programs that run seldom, as those of closed forms, of evaluation and of an iteration of L-BFGS do.

For a GPU, XLA compiles dozens of kernels of its own for each matrix product of a program and takes the fastest of these
and of those of cuBLAS: seconds for every new shape. Training in batches, which runs one program many thousand times,
may gain from it. A fit by L-BFGS takes some hundred evaluations of milliseconds, and closed forms have many programs:
these take cuBLAS, whose kernels are compiled already.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax

OPTIONS = {"gpu": {"xla_gpu_enable_triton_gemm": False}}
"""Options of the compiler, by JAX's name of the backend."""


def seldom(function: Callable | None = None, **options):
    """``jax.jit`` that takes cuBLAS for every matrix product on a GPU.

    Inside of another compiled function, which is compiled as a whole, it is the function itself.

    Args:
      function: any function of arrays; without one, what takes it is returned.
      options: as for ``jax.jit``.

    Returns:
      The compiled function. Its ``compiled(backend)`` is what ``jax.jit`` gave for JAX's name of a backend.

    Example:
      >>> import jax.numpy as jnp
      >>> twice = seldom(lambda x, times: times * x, static_argnames="times")
      >>> twice(jnp.ones(2), times=2).tolist(), jax.jit(lambda x: twice(x, times=3))(jnp.ones(1)).tolist()
      ([2.0, 2.0], [3.0])
    """
    if function is None:
        return functools.partial(seldom, **options)

    @functools.cache
    def compiled(backend: str | None):
        return jax.jit(function, compiler_options=OPTIONS.get(backend), **options)

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        traced = any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves((args, kwargs)))
        return compiled(None if traced else jax.default_backend())(*args, **kwargs)

    wrapped.compiled = compiled
    return wrapped
