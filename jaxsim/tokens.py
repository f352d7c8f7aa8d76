"""Texts to words: the tokenisers."""

from __future__ import annotations

import functools
import re
import sys
import unicodedata
from collections.abc import Callable, Sequence
from itertools import chain, pairwise

_PLAIN_WORD = re.compile(r"\w+")


def character_class(codes: Sequence[int]) -> str:
    """The inside of a character class, as literal characters, so that every regular expression engine reads it.

    Args:
      codes: code points, rising.

    Returns:
      Single characters and ranges of them.

    Example:
      >>> character_class([97, 98, 99, 101])
      'a-ce'
    """
    breaks = [i for i in range(1, len(codes)) if codes[i] != codes[i - 1] + 1]
    spans = [(codes[a], codes[b - 1]) for a, b in pairwise([0, *breaks, len(codes)])]
    return "".join(f"{re.escape(chr(a))}-{re.escape(chr(b))}" if a < b else re.escape(chr(a)) for a, b in spans)



@functools.cache
def word_marks() -> str:
    """Combining marks that belong to words: vowel signs, tone marks, accents without a letter of their own.

    Returns:
      The inside of a character class of a regular expression, as literal characters.

    Example:
      >>> bool(re.fullmatch(f"[{word_marks()}]", "\u093f")), bool(re.match(f"[{word_marks()}]", "a"))
      (True, False)
    """
    codes = [code for code in range(0x300, 0xE0000) if unicodedata.category(chr(code)) in ("Mn", "Mc")]
    codes = [code for code in codes if "VARIATION SELECTOR" not in unicodedata.name(chr(code), "")]
    return character_class(codes)


@functools.cache
def _marked_word() -> re.Pattern[str]:
    return re.compile(rf"\w+(?:[{word_marks()}]+\w*)*")


def words(text: str, *, lower: bool = True) -> list[str]:
    r"""Words of a text: runs of letters, digits, underscores and the marks that follow them, in its NFC form.

    Args:
      text: any string; the empty string has no words.
      lower: fold to lower case.

    Returns:
      The tokens in order; equal tokens are one shared string, so that large collections stay small in memory.

    Example:
      >>> words("Élan vital, 2 times!")
      ['élan', 'vital', '2', 'times']
      >>> words("हिन्दी में")
      ['हिन्दी', 'में']
    """
    text = unicodedata.normalize("NFC", text)
    text = text.lower() if lower else text
    try:
        text.encode("latin-1")  # no marks there, which need a slower search
        word = _PLAIN_WORD
    except UnicodeEncodeError:
        word = _marked_word()
    return list(map(sys.intern, word.findall(text)))


@functools.cache
def _japanese_tagger():
    try:
        import fugashi
        import unidic_lite  # noqa: F401  (the dictionary; fugashi finds it by itself)
    except ImportError as error:
        raise ImportError(
            "text.words_ja: expected the packages fugashi and unidic-lite, got none; "
            "install them with: pip install 'jaxsim-text[ja]'"
        ) from error
    return fugashi.Tagger("-Owakati")


def words_ja(text: str, *, lower: bool = True) -> list[str]:
    """Words of a Japanese text, cut by MeCab with the UniDic-lite dictionary; punctuation is dropped.

    Args:
      text: any string; words in Latin letters inside it are kept as words.
      lower: fold Latin letters to lower case.

    Returns:
      The surface forms in order.

    Raises:
      ImportError: the optional packages are not installed; the message says how to install them.

    Example:
      >>> words_ja("文書の類似度")  # doctest: +SKIP
      ['文書', 'の', '類似', '度']
    """
    tagger = _japanese_tagger()
    text = unicodedata.normalize("NFC", text).replace("\0", " ")
    pieces = chain.from_iterable(tagger.parse(line).split() for line in text.splitlines() if line.strip())
    return words(" ".join(pieces), lower=lower)


def tokenizer(language: str) -> Callable[[str], list[str]]:
    """The word splitter for a language code: `words_ja` for ``"ja"``, `words` for all others.

    Args:
      language: ISO 639-1 code such as ``"en"``.

    Returns:
      A function from a text to its list of words.

    Example:
      >>> tokenizer("es")("Hola mundo")
      ['hola', 'mundo']
    """
    return words_ja if language == "ja" else words
