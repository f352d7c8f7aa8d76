"""Learned text similarity in JAX.

Text becomes sparse `Terms`, a model turns `Terms` into `Vectors`, and everything after that (similarity, retrieval,
metrics, export) sees only `Vectors`. Import the room you need, `from jaxsim import terms` or
`from jaxsim.methods import opca`: importing the package alone loads neither JAX nor SciPy.
"""

from __future__ import annotations

__all__ = ["Model", "__version__"]


def __getattr__(name: str):
    """Finds `__version__`, or loads `Model`, when it is first asked for."""
    if name == "__version__":
        return globals().setdefault(name, _version())
    if name == "Model":
        from jaxsim.model import Model

        return Model
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _version() -> str:
    """Returns the version of the installed distribution, which is `jaxsim-text` and not `jaxsim`."""
    from importlib import metadata

    try:
        return metadata.version("jaxsim-text")
    except metadata.PackageNotFoundError:
        return "0+unknown"
