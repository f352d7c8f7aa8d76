"""Loaders, one for each corpus: they read the files as distributed, and verify counts and checksums."""

import lazy_loader

__all__ = ["antsynnet", "cacm", "classic", "doc_pairs", "docstrings", "europarl", "gre", "httpd_html", "judged", "mdn",
           "mdn_links", "nfcorpus", "novels", "questions", "release", "reuters21578", "sentences", "thesauri",
           "thesaurus_books", "wikispeedia", "word_frequency", "word_similarity", "wordnet"]
__getattr__, __dir__, _ = lazy_loader.attach(__name__, submodules=__all__)
