"""Methods: one file each, holding an ``objective`` (if any) and a ``fit`` that returns a `jaxsim.optim.Fit`.

A family shares its parameters and one ``encode(params, documents)``: `projections`, `s2net` (which learns
projections), `ssi`, `thesaurus`, `topics`, `translation` and `weights`; `language` has models of sequences. Every
method is also found here under its own name: ``methods.opca.fit``.
"""

import importlib

_FAMILIES = {
    "projections": {"cca": "cca", "cl_lsi": "cl_lsi", "cr5": "cr5", "dda": "dda", "lsa": "lsa", "opca": "opca",
                    "pca": "pca"},
    "s2net": {"distillation": "distillation", "s2net_mse": "mse", "s2net_pref": "preferences", "s2net_sgd": "sgd"},
    "ssi": {"ssi_batch": "batch", "ssi_diag": "diagonal", "ssi_full": "full", "ssi_hash": "hashed",
            "ssi_multitask": "multitask", "ssi_preferred": "preferred", "ssi_sgd": "sgd",
            "ssi_sparse": "sparse"},
    "thesaurus": {"pilsa": "pilsa", "s2net_antonym": "s2net_antonym"},
    "topics": {"cplsa": "cplsa", "jplsa": "jplsa", "plsa": "plsa"},
    "translation": {"hmm": "hmm", "ibm1": "ibm1"},
    "weights": {"bm25": "bm25", "itml": "itml", "log_tfidf": "log_tfidf", "tfidf": "tfidf", "tweak": "tweak",
                "vl_cv": "vl_cv", "vl_ext": "vl_ext"},
}  # fmt: skip
_PLACES = {name: f"{family}.{file}" for family, names in _FAMILIES.items() for name, file in names.items()}
__all__ = ["bm25", "cca", "cl_lsi", "cplsa", "cr5", "dda", "distillation", "hmm", "ibm1", "itml", "jplsa", "language",
           "log_tfidf", "lsa", "opca", "pca", "pilsa", "plsa", "projections", "s2net", "s2net_antonym", "s2net_mse",
           "s2net_pref", "s2net_sgd", "ssi", "ssi_batch", "ssi_diag", "ssi_full", "ssi_hash", "ssi_multitask",
           "ssi_preferred", "ssi_sgd", "ssi_sparse", "statistics", "tfidf", "thesaurus", "topics", "translation",
           "tweak", "vl_cv", "vl_ext", "weights"]


def __getattr__(name: str):
    """Imports a family, or a method by its own name, when it is first asked for."""
    if name in __all__:
        return importlib.import_module(f"{__name__}.{_PLACES.get(name, name)}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Names of the families and of the methods."""
    return list(__all__)
