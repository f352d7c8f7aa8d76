"""Term weights: fixed by formula (`tfidf`, `bm25`) or learned from pairs (`tweak`, `vl_ext`, `vl_cv`, `itml`).

`itml_kernel` is `itml` for very many dimensions. `term_weights`, `term_extension`, `concepts`, `metric` and `weighting`
hold the parameters of a model each, with an ``encode`` beside them.
"""

from jaxsim.methods.weights import (
    bm25,
    concepts,
    itml,
    itml_kernel,
    log_tfidf,
    metric,
    quadratic_forms,
    related_terms,
    term_extension,
    term_weights,
    tfidf,
    tweak,
    tweak_pairs,
    vl_cv,
    vl_ext,
    weighting,
)

__all__ = ["bm25", "concepts", "itml", "itml_kernel", "log_tfidf", "metric", "quadratic_forms", "related_terms",
           "term_extension", "term_weights", "tfidf", "tweak", "tweak_pairs", "vl_cv", "vl_ext", "weighting"]
