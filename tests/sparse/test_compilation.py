"""Programs that run seldom are compiled with options of their own, alone and not inside of others."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.optim import lbfgs, monitor
from jaxsim.sparse import compilation
from jaxsim.sparse.compilation import seldom


@pytest.fixture
def compiled(monkeypatch):
    """The keyword arguments of every `jax.jit` from here on, with the options of a GPU on the backend that is here."""
    calls, jit = [], jax.jit

    def watched(function, **options):
        calls.append(options)
        return jit(function, **options)

    monkeypatch.setitem(compilation.OPTIONS, jax.default_backend(), compilation.OPTIONS["gpu"])
    monkeypatch.setattr(jax, "jit", watched)
    return calls


def test_a_program_is_compiled_once_and_with_those_options(compiled):
    product = seldom(lambda a, b: a @ b)
    a = jnp.arange(6.0).reshape(2, 3)
    for _ in range(2):
        np.testing.assert_array_equal(product(a, a.T), np.asarray(a) @ np.asarray(a).T)
    assert compiled == [{"compiler_options": {"xla_gpu_enable_triton_gemm": False}}]


def test_inside_of_another_program_it_has_no_options_of_its_own(compiled):
    product = seldom(lambda a, times: times * a, static_argnames="times")

    def both(a):
        return product(a, times=2.0) + 1

    x = jnp.ones(3)
    assert jax.jit(both)(x).tolist() == jax.vmap(both)(x).tolist() == [3.0, 3.0, 3.0]
    assert jax.grad(lambda a: both(a).sum())(x).tolist() == [2.0, 2.0, 2.0]
    assert all(options.get("compiler_options") is None for options in compiled)


@pytest.mark.parametrize("function", [lbfgs._search, monitor.evaluate], ids=["search", "evaluate"])
def test_programs_of_a_fit_by_lbfgs_have_those_options(compiled, function):
    function.compiled.cache_clear()
    assert function.compiled(jax.default_backend()) is function.compiled(jax.default_backend())
    assert [options["compiler_options"] for options in compiled] == [compilation.OPTIONS["gpu"]]
    function.compiled.cache_clear()


def test_memory_can_be_given_away(compiled):
    given = jnp.ones(4)
    assert seldom(donate_argnums=0)(lambda total: total + 1)(given).tolist() == [2.0] * 4
    assert given.is_deleted() and compiled[0]["donate_argnums"] == 0
