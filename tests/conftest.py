"""Strict settings for every test, and the only two sources of random numbers."""

from __future__ import annotations

import jax
import numpy as np
import pytest

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture
def key() -> jax.Array:
    """A JAX random key, the same in every test."""
    return jax.random.key(0)


@pytest.fixture
def rng() -> np.random.Generator:
    """A NumPy generator, fresh and the same in every test."""
    return np.random.default_rng(0)
