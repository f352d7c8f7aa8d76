"""Corpora: pairs, labelled and linked documents, a loader for each corpus, and splits by group.

Docstrings of installed packages need no download. The other corpora are looked for in the folder that the environment
variable ``JAXSIM_DATA`` (or the argument ``root=``) names; `catalogue` says what they are and where they come from, and
`fetching` builds them from their public sources.
"""

import lazy_loader

_CORPORA = ["antsynnet", "cacm", "classic", "doc_pairs", "docstrings", "europarl", "gre", "httpd_html", "judged",
            "mdn", "mdn_links", "nfcorpus", "novels", "questions", "release", "reuters21578", "sentences", "thesauri",
            "thesaurus_books", "wikispeedia", "word_frequency", "word_similarity", "wordnet"]
_MODULES = ["catalogue", "corpora", "fetching", "files", "labelled_pairs", "links", "pairs", "splits", "streams",
            "tables"]
__all__ = ["MissingCorpus", "Pairs", "antsynnet", "cacm", "catalogue", "classic", "concatenate", "corpora",
           "doc_pairs", "docstrings", "europarl", "fetching", "files", "gre", "httpd_html", "judged", "labelled_pairs",
           "links", "mdn", "mdn_links", "nfcorpus", "novels", "pairs", "questions", "release", "reuters21578", "root",
           "sentences", "splits", "streams", "tables", "thesauri", "thesaurus_books", "tokenize", "wikispeedia",
           "word_frequency", "word_similarity", "wordnet"]
__getattr__, __dir__, _ = lazy_loader.attach(__name__, submodules=_MODULES, submod_attrs={
    "files": ["MissingCorpus", "root"],
    "pairs": ["Pairs", "concatenate", "tokenize"],
    "corpora": _CORPORA,
})
