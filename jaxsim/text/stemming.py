"""Words as a search engine counts them: without stop words, and reduced to their stems."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from jaxsim.text.tokens import pieces, tokenizer

_STEMMERS = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian", "fi": "finnish", "fr": "french", "ga": "irish",
    "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian", "lt": "lithuanian",
    "nb": "norwegian", "ne": "nepali", "nl": "dutch", "nn": "norwegian", "no": "norwegian", "pl": "polish",
    "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian", "sv": "swedish", "ta": "tamil",
    "tr": "turkish", "yi": "yiddish",
}  # fmt: skip
"""Language code -> stemmer of Snowball."""
_LISTS = {"nn": "nb", "no": "nb"}
"""Language code -> code of its list of stop words, where that is another."""


@functools.cache
def _stop_words(language: str) -> frozenset[str]:
    """The stop words of a language, cut as texts are; none where the list has no such language."""
    import stop_words

    try:
        return frozenset(pieces(" ".join(stop_words.get_stop_words(_LISTS.get(language, language)))))
    except stop_words.StopWordError:
        return frozenset()


@functools.cache
def _stemmer(language: str) -> Callable[[list[str]], list[str]]:
    """What stems a list of words; words stay as they are in languages without a stemmer, or in this release of it."""
    import Stemmer

    name = _STEMMERS.get(language)
    return Stemmer.Stemmer(name).stemWords if name in Stemmer.algorithms() else list


@functools.cache
def stems(language: str) -> Callable[[str], list[str]]:
    """The function that cuts a text into stems.

    Args:
      language: a language code such as ``"en"``; what follows a hyphen is ignored.

    Returns:
      A function of one string. Words are those of `tokenizer`; stop words are left out, unless a text has no other;
      languages without a list of stop words, or without a stemmer, keep all words, or keep them whole.

    Raises:
      ValueError: for a language that is no code.

    Example:
      >>> stems("en")("The connected connections of a network")
      ['connect', 'connect', 'network']
      >>> stems("en")("To be or not to be")
      ['to', 'be', 'or', 'not', 'to', 'be']
    """
    split, code = tokenizer(language), language.partition("-")[0]
    return lambda text: _stems(split(text), code)


def _stems(words: list[str], code: str) -> list[str]:
    return _stemmer(code)(_kept(words, code))


def _kept(words: list[str], code: str) -> list[str]:
    stop = _stop_words(code)
    return [word for word in words if word not in stop] or words


def with_stems(given: str, language: str) -> list[tuple[str, str]]:
    """The words of a text that `stems` keeps, each with its stem.

    Args:
      given: a text.
      language: a language code such as ``"en"``; what follows a hyphen is ignored.

    Returns:
      ``(word, stem)`` of every word, in the order of the text.

    Raises:
      ValueError: for a language that is no code.

    Example:
      >>> with_stems("The ships were sailing", "en")
      [('ships', 'ship'), ('sailing', 'sail')]
    """
    words = _kept(tokenizer(language)(given), language.partition("-")[0])
    return list(zip(words, stemmed(words, language), strict=True))


def stemmed(words: Sequence[str], language: str) -> list[str]:
    """The stem of each of some words; stop words have theirs too.

    Args:
      words: single words.
      language: a language code such as ``"en"``; what follows a hyphen is ignored.

    Returns:
      As many stems; the words themselves in languages without a stemmer.

    Raises:
      ValueError: for a language that is no code.

    Example:
      >>> stemmed(["ships", "the", "sailing"], "en")
      ['ship', 'the', 'sail']
    """
    tokenizer(language)
    return _stemmer(language.partition("-")[0])(list(words))
