"""From text to words, from words to counts, and from counts to weights.

Tokenisers, the `Vocabulary`, counts and term weightings are taken from here. `subwords` adds character n-grams,
`features` describes terms in their documents, `html` reads web pages, `corpus` and `corpus_build` keep collections that
are larger than memory, and `corpus_beam` counts them on several machines.
"""

import lazy_loader

_NAMES = {
    "vocabulary": ["Vocabulary", "counts", "strings", "unit_rows"],
    "weightings": ["bm25", "log_tf_idf", "tf_idf"],
    "tokens": ["character_class", "language_of", "pieces", "tokenizer", "word_marks", "words", "words_dotted",
               "words_ja", "words_unspaced"],
    "markup": ["prose"],
    "stemming": ["stemmed", "stop_words", "with_stems"],
}
_MODULES = ["corpus", "corpus_beam", "corpus_build", "features", "html", "subwords", "tokens", "weightings"]
__all__ = ["Vocabulary", "bm25", "character_class", "corpus", "corpus_beam", "corpus_build", "counts", "features",
           "html", "language_of", "log_tf_idf", "pieces", "prose", "stemmed", "stop_words", "strings", "subwords",
           "tf_idf", "tokenizer", "tokens", "unit_rows", "weightings", "with_stems", "word_marks", "words",
           "words_dotted", "words_ja", "words_unspaced"]
__getattr__, __dir__, _ = lazy_loader.attach(__name__, submodules=_MODULES, submod_attrs=_NAMES)
