"""Tokenisers: from texts to words."""

from __future__ import annotations

import functools
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, pairwise

from jaxsim import checks

_PLAIN_WORD = re.compile(r"\w+")
_FEW = 60  # characters between words, up to which a pass over the text for each is faster than a regular expression
_CODE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]+)*")
_TWO_LETTERS = frozenset(
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el "
    "en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik in io is it "
    "iu iw ja ji jv jw ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mo "
    "mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg sh "
    "si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh "
    "yi yo za zh zu".split())
"""All codes of ISO 639-1, those that were withdrawn too."""
_MEANT = {"jp": "ja", "jpn": "ja", "cn": "zh", "chi": "zh", "zho": "zh", "cmn": "zh", "tha": "th", "lao": "lo",
          "khm": "km", "bur": "my", "mya": "my",
          "ara": "ar", "arm": "hy", "aze": "az", "baq": "eu", "bul": "bg", "cat": "ca", "ces": "cs", "cze": "cs",
          "dan": "da", "deu": "de", "dut": "nl", "ell": "el", "eng": "en", "est": "et", "eus": "eu", "fas": "fa",
          "fin": "fi", "fra": "fr", "fre": "fr", "ger": "de", "gle": "ga", "gre": "el", "guj": "gu", "heb": "he",
          "hin": "hi", "hun": "hu", "hye": "hy", "ind": "id", "ita": "it", "kor": "ko", "lit": "lt", "may": "ms",
          "msa": "ms", "nep": "ne", "nld": "nl", "nno": "nn", "nob": "nb", "nor": "no", "per": "fa", "pol": "pl",
          "por": "pt", "ron": "ro", "rum": "ro", "rus": "ru", "slk": "sk", "slo": "sk", "spa": "es", "srp": "sr",
          "swe": "sv", "tam": "ta", "tur": "tr", "ukr": "uk", "vie": "vi", "yid": "yi"}  # fmt: skip
"""Other codes of languages that are not cut at spaces, which would be cut there, or that have stop words or a stemmer,
which would not be found."""
# Scripts without spaces between words, as the insides of character classes.
_UNSPACED = {"zh": "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff", "th": "\u0e00-\u0e7f",
             "lo": "\u0e80-\u0eff", "km": "\u1780-\u17ff", "my": "\u1000-\u109f"}  # fmt: skip
_KANA, _HANGUL = "\u3040-\u30ff", "\uac00-\ud7a3"


_RUN = 30  # marks in a row that keep their place, as in Unicode's Stream-Safe Text Format (Standard Annex 15)
_JOINER = "\u034f"  # that this format puts after so many; the time to sort the marks of a run is quadratic in them
# Soft hyphens and joiners say how a word is drawn or broken: with and without them it is one word.
DRAWN = "\u00ad\u200c\u200d\u2060"
"""Characters that are left out of words."""
DOTTED = {ord("I"): "ı", ord("İ"): "i"}
"""Capitals that are lowered otherwise in languages with an i without a dot."""
_NOT_DRAWN = dict.fromkeys(map(ord, DRAWN))
# Characters of one kind in a row, of which MeCab looks at every pair of ends: katakana, and all that is no Japanese.
_NO_LETTER = re.compile("[\0\ud800-\udfff]")  # what MeCab cannot be given: the zero byte, halves of surrogate pairs
_LONG_RUN = re.compile(r"[\u30a0-\u30ff]{500}|[^\s\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]{500}")


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
def word_marks(*, beyond: bool = True) -> str:
    """Combining marks that belong to words: vowel signs, tone marks, accents without a letter of their own.

    Args:
      beyond: whether also those beyond U+FFFF.

    Returns:
      The inside of a character class of a regular expression, as literal characters.

    Example:
      >>> bool(re.fullmatch(f"[{word_marks()}]", "\u093f")), bool(re.match(f"[{word_marks()}]", "a"))
      (True, False)
    """
    end = 0xE0000 if beyond else 0x10000
    codes = [code for code in range(0x300, end) if unicodedata.category(chr(code)) in ("Mn", "Mc")]
    codes = [code for code in codes if "VARIATION SELECTOR" not in unicodedata.name(chr(code), "")]
    return character_class(codes)


@functools.cache
def _combining(beyond: bool) -> frozenset[str]:
    """Characters that begin with a mark when taken apart; three of Tibetan are no marks, and are made of two."""
    codes = map(chr, range(sys.maxunicode + 1 if beyond else 0x10000))
    return frozenset(char for char in codes if unicodedata.combining(unicodedata.normalize("NFD", char)[0]))


@functools.cache
def _long_marks(beyond: bool) -> re.Pattern[str]:
    return re.compile(f"[{character_class(sorted(map(ord, _combining(beyond))))}]{{{_RUN}}}")


def composed(text: str) -> str:
    """The NFC form of a text in its Stream-Safe form, in time proportional to its length, without what is `DRAWN`.

    Args:
      text: any string.

    Returns:
      The same but for soft hyphens and joiners, and for the order and the composition of marks; a combining joiner
      follows every 30 marks in a row.

    Example:
      >>> composed("e\u0301"), len(composed("e" + "\u0323" * 95)), composed("soft\u00adware")
      ('é', 98, 'software')
    """
    chars = set(text)
    if not chars.isdisjoint(DRAWN):
        text = text.translate(_NOT_DRAWN)
    if len(text) > _RUN:
        beyond = max(chars) > "\uffff"
        if beyond or not chars.isdisjoint(_combining(False)):
            text = _long_marks(beyond).sub(lambda run: run[0] + _JOINER, text)
    return unicodedata.normalize("NFC", text)


def lowered(text: str) -> str:
    """The lower case of a text in NFC form, in NFC form: a capital may need a mark where its small letter has it.

    Args:
      text: any string, as `composed` gives it.

    Returns:
      The lower case.

    Example:
      >>> len("H\u0331"), len(lowered("H\u0331")), lowered("H\u0331") == "\u1e96"
      (2, 1, True)
    """
    return unicodedata.normalize("NFC", text.lower())


def lowering(language: str) -> Callable[[str], str]:
    """How `tokenizer` of a language lowers a word.

    Args:
      language: as there.

    Returns:
      Function of a word in its own case giving its lower case: `lowered`, but for Turkish and Azeri.

    Raises:
      ValueError: as `tokenizer`.

    Example:
      >>> lowering("tr")("ILIK"), lowering("en")("ILIK")
      ('ılık', 'ilik')
    """
    return _lowered_dotted if tokenizer(language) is words_dotted else lowered


def _lowered_dotted(text: str) -> str:
    return lowered(text.translate(DOTTED))


@functools.cache
def _marked(beyond: bool) -> re.Pattern[str]:
    """A word that may have marks: finding it is slower.

    A regular expression looks characters of the Basic Multilingual Plane up in a table, but others in a list of ranges,
    which a single one of them in a class makes slow for every character.
    """
    return re.compile(rf"\w+(?:[{word_marks(beyond=beyond)}]+\w*)*")


@functools.lru_cache(4096)
def _kind(char: str) -> str:
    """Of a character: part of a word, a mark, or between words."""
    if _PLAIN_WORD.match(char):
        return "word"
    return "mark" if re.match(f"[{word_marks()}]", char) else "between"


@functools.cache
def _ascii_words(lower: bool) -> dict[int, str]:
    """What makes words of ASCII's characters: letters (folded), digits and underscores stay, spaces take all else."""
    chars = map(chr, range(128))
    return {ord(char): (char.lower() if lower else char) if _PLAIN_WORD.match(char) else " " for char in chars}


def pieces(text: str, *, lower: bool = True) -> list[str]:
    """As `words`, but equal tokens are separate strings: less work for what is only counted.

    Args:
      text: any string.
      lower: fold to lower case.

    Returns:
      The tokens in order.

    Example:
      >>> pieces("One, two")
      ['one', 'two']
    """
    if text.isascii():
        return text.translate(_ascii_words(lower)).split()
    text = composed(text)
    text = lowered(text) if lower else text
    kinds = {char: _kind(char) for char in set(text)}
    if "mark" in kinds.values():
        return _marked(max(kinds) > "\uffff").findall(text)
    between = [char for char, kind in kinds.items() if kind == "between"]
    if len(between) > _FEW:
        return _PLAIN_WORD.findall(text)
    for char in between:
        text = text.replace(char, " ")
    return text.split()


def words(text: str, *, lower: bool = True) -> list[str]:
    r"""Words of a text: runs of letters, digits, underscores and the marks that follow them, in its NFC form.

    Args:
      text: any string; the empty string has no words. Soft hyphens and joiners are left out, and cut no word.
      lower: fold to lower case.

    Returns:
      The tokens in order; equal tokens are one shared string, so that large collections stay small in memory.

    Example:
      >>> words("Élan vital, 2 times!")
      ['élan', 'vital', '2', 'times']
      >>> words("हिन्दी में")
      ['हिन्दी', 'में']
    """
    return list(map(sys.intern, pieces(text, lower=lower)))


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
    text = _NO_LETTER.sub(" ", composed(text))
    text = _LONG_RUN.sub(lambda run: f"{run[0]} ", text)
    pieces = chain.from_iterable(tagger.parse(line).split() for line in text.splitlines() if line.strip())
    return words(" ".join(pieces), lower=lower)


@functools.cache
def words_unspaced(language: str) -> Callable[[str], list[str]]:
    """Words of texts in a script without spaces: overlapping pairs of letters, other scripts' words as they are.

    A letter is a character with the marks that follow it. A run of one letter is a word.

    Args:
      language: ``"zh"``, ``"th"``, ``"lo"``, ``"km"`` or ``"my"``.

    Returns:
      A function as `words`.

    Example:
      >>> words_unspaced("zh")("比较 JAX 与文本相似度")
      ['比较', 'jax', '与文', '文本', '本相', '相似', '似度']
    """
    script = _UNSPACED[language]
    piece = re.compile(rf"[{script}]+|[^{script}]+")
    letter = re.compile(rf".[{word_marks()}]*", re.DOTALL)
    inside = re.compile(f"[{script}]")

    def cut(text: str, *, lower: bool = True) -> list[str]:
        found = []
        for part in chain.from_iterable(map(piece.findall, words(text, lower=lower))):
            letters = letter.findall(part) if inside.match(part) else [part]
            found += map(sys.intern, ["".join(two) for two in pairwise(letters)] or letters)
        return found

    return cut


def words_dotted(text: str, *, lower: bool = True) -> list[str]:
    """Words of a text in Turkish or Azeri, where İ is the capital of i, and I that of ı.

    Args:
      text: any string.
      lower: fold to lower case.

    Returns:
      As `words`.

    Example:
      >>> words_dotted("ILIK İÇECEK"), words("ILIK")
      (['ılık', 'içecek'], ['ilik'])
    """
    return words(composed(text).translate(DOTTED) if lower else text, lower=lower)


def language_of(texts: Iterable[str]) -> str | None:
    """The code of a language that is written without spaces between words, where much of some texts is.

    Args:
      texts: a sample of them; the first 1,000 characters of each are looked at.

    Returns:
      ``"ja"``, or one of those that `words_unspaced` knows; None where less than a fifth of the letters are in such a
      script, or they are cut already. Texts with kana are Japanese, those with Chinese characters alone Chinese.

    Example:
      >>> language_of(["飞机的机翼", "a wing"]), language_of(["飛行機の翼"]), language_of(["naïve"])
      ('zh', 'ja', None)
    """
    joined = "\n".join(one[:1000] for one in texts)
    letters = sum(map(str.isalpha, joined))
    counts = {code: len(re.findall(f"[{inside}]", joined)) for code, inside in {**_UNSPACED, "ja": _KANA}.items()}
    if len(re.findall(f"[{_HANGUL}]", joined)) > counts["zh"]:
        counts["zh"] = 0  # words of Korean
    unspaced, inside = sum(counts.values()), "".join((*_UNSPACED.values(), _KANA))
    cuts = len(re.findall(f"(?<=[{inside}]) +(?=[{inside}])", joined))
    if unspaced == 0 or unspaced < letters / 5 or cuts > unspaced / 10:
        return None
    if counts["ja"] > counts["zh"] / 20:
        counts["ja"] += counts["zh"]
    return max(counts, key=counts.__getitem__)


def tokenizer(language: str) -> Callable[[str], list[str]]:
    """The word splitter for a language code.

    `words_ja` for ``"ja"``, `words_unspaced` for Chinese, Thai, Lao, Khmer and Burmese, `words_dotted` for Turkish and
    Azeri, and `words` for all others.

    Args:
      language: ISO 639-1 code such as ``"en"``, or three letters where a language has no code of two; what follows a
        hyphen, as in ``"pt-BR"``, changes nothing.

    Returns:
      A function from a text to its list of words.

    Raises:
      ValueError: for what is no language code, such as ``"english"`` or ``"jp"``, and for three letters where two are
        meant, such as ``"eng"``.

    Example:
      >>> tokenizer("es")("Hola mundo")
      ['hola', 'mundo']
    """
    checks.expect(isinstance(language, str), "language", "a code such as en", checks.a_kind(language))
    code = language.partition("-")[0]
    meant = _MEANT.get(code, "a code of ISO 639 in lower case, such as en, es or pt-BR")
    known = _CODE.fullmatch(language) and code not in _MEANT and (len(code) == 3 or code in _TWO_LETTERS)
    checks.expect(known, "language", meant, repr(language))
    if code in _UNSPACED:
        return words_unspaced(code)
    return words_ja if code == "ja" else words_dotted if code in ("tr", "az") else words
