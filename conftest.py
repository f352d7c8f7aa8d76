"""Names that every doctest of the package may use without importing them."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _doctest_names(doctest_namespace):
    doctest_namespace["jnp"] = jnp
    doctest_namespace["np"] = np
