"""Words as a search engine counts them: reduced to their stems; and which of them are stop words."""

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
def stop_words(language: str) -> frozenset[str]:
    """The stop words of a language: a long list, which has words that some texts are about, such as *computer*.

    Args:
      language: a language code such as ``"en"``; what follows a hyphen is ignored.

    Returns:
      Words as `tokenizer` cuts them; none where the list has no such language.

    Raises:
      ValueError: for a language that is no code.

    Example:
      >>> {"the", "of", "computer"} <= stop_words("en"), "ships" in stop_words("en")
      (True, False)
    """
    import stop_words as lists

    tokenizer(language)
    code = language.partition("-")[0]
    try:
        return frozenset(pieces(" ".join(lists.get_stop_words(_LISTS.get(code, code)))))
    except lists.StopWordError:
        return frozenset()


@functools.cache
def _stemmer(language: str) -> Callable[[list[str]], list[str]]:
    """What stems a list of words; words stay as they are in languages without a stemmer, or in this release of it."""
    import Stemmer

    name = _STEMMERS.get(language)
    return Stemmer.Stemmer(name).stemWords if name in Stemmer.algorithms() else list


def with_stems(given: str, language: str) -> list[tuple[str, str]]:
    """The words of a text, each with its stem.

    Args:
      given: a text.
      language: a language code such as ``"en"``; what follows a hyphen is ignored.

    Returns:
      ``(word, stem)`` of every word, in the order of the text. Words are those of `tokenizer`; languages without a
      stemmer keep them whole.

    Raises:
      ValueError: for a language that is no code.

    Example:
      >>> with_stems("The ships were sailing", "en")
      [('the', 'the'), ('ships', 'ship'), ('were', 'were'), ('sailing', 'sail')]
    """
    words = tokenizer(language)(given)
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
