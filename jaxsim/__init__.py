"""Learned text similarity in JAX.

Text becomes sparse `Terms`, a model turns `Terms` into `Vectors`, and everything after that (similarity, retrieval,
metrics, export) sees only `Vectors`. Import the package you need, `from jaxsim import sparse` or
`from jaxsim.methods import opca`: importing `jaxsim` alone loads neither JAX nor SciPy.
"""

from __future__ import annotations

__all__ = ["Model", "__version__", "checks", "cli", "data", "evaluate", "io", "linalg", "losses", "methods", "model",
           "optim", "parallel", "pictures", "sparse", "text", "train"]


def __getattr__(name: str):
    """Finds `__version__`, or loads `Model` or a package, when it is first asked for."""
    if name == "__version__":
        return globals().setdefault(name, _version())
    if name == "Model":
        from jaxsim.model import Model

        return Model
    if name in __all__:
        import importlib  # not above: little is to be loaded before `__main__` takes Ctrl-C over

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Public names, those that are not loaded yet included."""
    return list(__all__)


def _version() -> str:
    """Returns the version of the installed distribution, which is `jaxsim-text` and not `jaxsim`."""
    from importlib import metadata

    try:
        return metadata.version("jaxsim-text")
    except metadata.PackageNotFoundError:
        return "0+unknown"
