"""Thesauri in the public domain, from Project Gutenberg: Fallows (1898), Fernald (1896), Soule (1871), Roget (1911).

Each is the text of a book and has its own layout. Fallows and Fernald list opposites; Soule has none. This text
of Roget has lost his columns of opposites: heads that follow each other are often, but not always, opposite; known
antonyms and prefixes decide which are (`opposite_heads`).
"""

from __future__ import annotations

import gzip
import html
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from jaxsim.data import catalogue, files
from jaxsim.data.corpora import thesauri
from jaxsim.data.corpora.thesauri import Thesaurus

CORPUS = "thesauri"
_FILES = {"fallows": "fallows/51155-0.txt.gz", "fernald": "fernald/28900-8.txt.gz",
          "soule": "soule/soule_dictionary.htm.gz", "roget": "roget1911/22.txt.gz"}  # fmt: skip
_FIELD = re.compile(r"(KEY|SYN|ANT):", re.MULTILINE)
_NOISE = re.compile(r"\{\[.*?\]\?\}|\[[^\]]*\]|\([^)]*\)|[_*]")
_SEE = re.compile(r"\b[A-Z][A-Z' -]*[A-Z]\b")  # heads that a list refers to
_RULE = re.compile(r"^\s*\*(?:[ ]+\*)+[ ]*$", re.MULTILINE)
_HEAD = re.compile(r"[A-Z][A-Z' -]+")
_LIST = re.compile(r"^(Synonyms?|Antonyms?):[ ]*$(.*?)(?=^[^\s].*|\Z)", re.MULTILINE | re.DOTALL)
_SENSE = re.compile(r"<d[td]>(.*?)</d[td]>", re.DOTALL)
_BOLD = re.compile(r"<b>(.*?)</b>", re.DOTALL)
_MARKS = re.compile(r"<i>.*?</i>|<b>.*?</b>|\(.*?\)|\[.*?\]", re.DOTALL)
_TAG = re.compile(r"<[^>]+>")
_ROGET = re.compile(r"^\s*#(\d+[a-z]?)\.", re.MULTILINE)
_SPEECH = re.compile(r"(?:^|\s)(?:N|V|Adj|Adv|Phr|Int|pl)\.(?=\s)")
_REFERENCE = re.compile(r"&c\.?(?:\s*\([^)]*\))?(?:\s*(?:\d+[a-z]?|adj|adv|v|n|int)\b\.?)*"
                        r"|\{[^}]*\}|\[[^\]]*\]|\([^)]*\)|[|%!?*]")
_SPLIT = re.compile(r"[,;.:]")
_COLUMNS = re.compile(r"[,.;]")
_AGAINST = ("un", "in", "im", "ir", "il", "non", "dis", "mis", "anti", "de", "counter")
_SHORTEST = 4
"""Letters of the shortest word whose prefix is looked at."""


def _text(name: str, root: str | os.PathLike | None, encoding: str, verify: bool) -> tuple[str, str]:
    """A book as text, and its digest."""
    path = catalogue.find(CORPUS, _FILES[name], root=root, verify=verify)
    try:
        body = gzip.decompress(Path(path).read_bytes())
    except files.DAMAGED as error:
        raise ValueError(f"{path}: expected a whole .gz file, got a damaged one ({error})") from error
    return files.decode(body, str(path), encoding), catalogue.digest(CORPUS, _FILES[name], path)


def _words(text: str, split: re.Pattern[str] = _SPLIT) -> list[str]:
    """Parts of a list of words, references and unreadable fragments left out."""
    return [word for part in split.split(" ".join(text.split())) if (word := part.strip())]


def load_fallows(*, root: str | os.PathLike | None = None, verify: bool = True) -> Thesaurus:
    """Fallows, Complete Dictionary of Synonyms and Antonyms: blocks of ``KEY:``, ``SYN:`` and ``ANT:``.

    Args:
      root: the data folder; see `jaxsim.data.root`.
      verify: compare the file's checksum.

    Returns:
      `Thesaurus` ``"fallows"``.

    Raises:
      MissingCorpus: the file is not there.
      ValueError: it is not the expected one.
    """
    text, digest = _text("fallows", root, "utf-8-sig", verify)
    raw = {name: len(re.findall(rf"^{name}:", text, re.MULTILINE)) for name in ("KEY", "SYN", "ANT")}

    def senses() -> Iterator[tuple[str, list[str], list[str]]]:
        for block in re.split(r"^KEY:", text, flags=re.MULTILINE)[1:]:
            parts = _FIELD.split(re.split(r"^=", block, maxsplit=1, flags=re.MULTILINE)[0])
            fields: dict[str, list[str]] = {"SYN": [], "ANT": []}
            for name, body in zip(parts[1::2], parts[2::2], strict=True):
                fields.setdefault(name, []).extend(_words(_NOISE.sub(_space, body)))
            heads = _words(_NOISE.sub(_space, parts[0]))
            yield (heads or [""])[0], [*heads[1:], *fields["SYN"]], fields["ANT"]

    return thesauri.thesaurus("fallows", senses(), sha256=digest, counts=raw, corpus=CORPUS)


def _space(match: re.Match[str]) -> str:
    return "_" if match[0] == "_" else " "


def load_fernald(*, root: str | os.PathLike | None = None, verify: bool = True) -> Thesaurus:
    """Fernald, English Synonyms and Antonyms: a head in capitals, and lists in columns between prose.

    "See synonyms for X" stands for the synonyms of X, the entry of which is looked up.

    Args:
      root: the data folder; see `jaxsim.data.root`.
      verify: compare the file's checksum.

    Returns:
      `Thesaurus` ``"fernald"``.

    Raises:
      MissingCorpus: the file is not there.
      ValueError: it is not the expected one.
    """
    text, digest = _text("fernald", root, "iso-8859-1", verify)
    text = re.split(r"^PART II\.", text, maxsplit=1, flags=re.MULTILINE)[0]
    raw = {"Synonyms": len(re.findall(r"^Synonyms?:", text, re.MULTILINE)),
           "Antonyms": len(re.findall(r"^Antonyms?:", text, re.MULTILINE))}  # fmt: skip
    entries: dict[str, dict[str, str]] = {}
    for section in _RULE.split(text):
        body, match = section.strip("\n"), _HEAD.match(section.lstrip())
        lists = {name[:7]: part for name, part in _LIST.findall(body)}
        # A list may be a sentence at the margin, "See synonyms for END."
        for name, part in re.findall(r"^(Synonyms?|Antonyms?):\s*(See\s+synonyms[^.]*\.)", body, re.MULTILINE):
            lists[name[:7]] = part
        if lists and match:
            entries[match[0].strip()] = lists

    def words(head: str, kind: str) -> list[str]:
        body = entries[head].get(kind, "")
        if not body.lstrip().startswith("See"):
            return _words(_NOISE.sub(" ", body), _COLUMNS)
        refers = [other for other in _SEE.findall(" ".join(body.split())) if other in entries and other != head]
        return [word for other in refers for word in (other, *words(other, "Synonym"))]

    senses = ((head, words(head, "Synonym"), words(head, "Antonym")) for head in entries)
    return thesauri.thesaurus("fernald", senses, sha256=digest, counts=raw, corpus=CORPUS)


def load_soule(*, root: str | os.PathLike | None = None, verify: bool = True) -> Thesaurus:
    """Soule, Dictionary of English Synonymes: a sense is a ``<dt>`` or a ``<dd>``; there are no antonyms.

    Args:
      root: the data folder; see `jaxsim.data.root`.
      verify: compare the file's checksum.

    Returns:
      `Thesaurus` ``"soule"``.

    Raises:
      MissingCorpus: the file is not there.
      ValueError: it is not the expected one.
    """
    text, digest = _text("soule", root, "windows-1252", verify)
    raw = {"dt": text.count("<dt>"), "dd": text.count("<dd>")}

    def senses() -> Iterator[tuple[str, list[str], list[str]]]:
        head = ""
        for match in _SENSE.finditer(text):
            body = match[1]
            if match[0].startswith("<dt>"):
                bold = _BOLD.search(body)
                head = re.sub(r"[,.]?\s*\d+\.?\s*$", "", _plain(bold[1])).strip(" ,.") if bold else ""
            words = _words(_plain(_MARKS.sub(" ", body)))
            yield head, [word for word in words if not word.lower().startswith("see ")], []

    return thesauri.thesaurus("soule", senses(), sha256=digest, counts=raw, corpus=CORPUS)


def _plain(text: str) -> str:
    return html.unescape(_TAG.sub("", text)).replace("\xa0", " ")


def roget_heads(*, root: str | os.PathLike | None = None, verify: bool = True) -> tuple[list[list[list[str]]], str]:
    """Roget's Thesaurus of 1911, as its heads: each a list of paragraphs of words.

    Args:
      root: the data folder; see `jaxsim.data.root`.
      verify: compare the file's checksum.

    Returns:
      ``(heads, sha256)``: head -> paragraph -> words, in the book's order.

    Raises:
      MissingCorpus: the file is not there.
      ValueError: it is not the expected one.
    """
    text, digest = _text("roget", root, "iso-8859-1", verify)
    parts = _ROGET.split(text)
    heads = []
    for body in parts[2::2]:
        body = re.split(r"^\s*(?:CLASS|SECTION|DIVISION|End of )", body, maxsplit=1, flags=re.MULTILINE)[0]
        paragraphs = []
        for part in re.split(r"\n\s{2,}|\n\s*\n", body):
            for speech in _SPEECH.split(" ".join(part.split())):
                words = [word.strip(" -—\"'") for word in _SPLIT.split(_REFERENCE.sub(" ", speech).replace("--", ","))]
                paragraphs.append([word for word in words if word and len(word.split()) <= 4])
        heads.append([words for words in paragraphs if words])
    return heads, digest


def opposite_heads(
    heads: Sequence[Sequence[Sequence[str]]], antonyms: Iterable[tuple[str, str]] = ()
) -> dict[int, int]:
    """Which heads of Roget's are opposite: neighbours, paired so that most antonyms stand across pairs.

    A pair of neighbours is worth the number of known antonyms of which each head has one, and of words that the other
    has with a prefix such as un-. Every head has one partner at most; the sum over all pairs is the largest there is.

    Args:
      heads: of `roget_heads`.
      antonyms: pairs of words that are opposite, in any spelling; in either order.

    Returns:
      Place -> place of the opposite head, both ways; heads without evidence are absent.

    Example:
      >>> heads = [[["being", "reality"]], [["nonexistence", "unreality"]], [["body", "fat"]], [["spirit"]]]
      >>> opposite_heads(heads), opposite_heads(heads, [("spirit", "body")])
      ({0: 1, 1: 0}, {0: 1, 1: 0, 2: 3, 3: 2})
    """
    words = [{thesauri.normal(word) for paragraph in head for word in paragraph} - {""} for head in heads]
    against: dict[str, set[str]] = {}
    for one, other in antonyms:
        one, other = thesauri.normal(one), thesauri.normal(other)
        against.setdefault(one, set()).add(other)
        against.setdefault(other, set()).add(one)

    def worth(left: set[str], right: set[str]) -> int:
        known = sum(len(against.get(word, set()) & right) for word in left)
        return known + sum(any(f"{prefix}{joint}{word}" in other for prefix in _AGAINST for joint in ("", "-"))
                           for one, other in ((left, right), (right, left)) for word in one if len(word) >= _SHORTEST)

    best = [0] * (len(heads) + 2)  # of the heads from a place on
    worths = [worth(*pair) for pair in zip(words, words[1:], strict=False)]
    for at in reversed(range(len(worths))):
        best[at] = max(best[at + 1], worths[at] + best[at + 2])
    partners, at = {}, 0
    while at < len(worths):
        paired = worths[at] > 0 and best[at] > best[at + 1]
        if paired:
            partners |= {at: at + 1, at + 1: at}
        at += 1 + paired
    return partners


def load_roget(
    *, antonyms: Iterable[tuple[str, str]] | None = None, root: str | os.PathLike | None = None, verify: bool = True
) -> Thesaurus:
    """Roget's Thesaurus of 1911: an entry is a paragraph of a head.

    Args:
      antonyms: pairs of words that are opposite, by which `opposite_heads` finds heads that are: an entry is then a
        whole head, against it the words of the opposite one. The book itself no longer says which heads are opposite.
      root: the data folder; see `jaxsim.data.root`.
      verify: compare the file's checksum.

    Returns:
      `Thesaurus` ``"roget"``, or ``"roget-opposites"`` with antonyms.

    Raises:
      MissingCorpus: the file is not there.
      ValueError: it is not the expected one.
    """
    heads, digest = roget_heads(root=root, verify=verify)
    whole = [[word for paragraph in head for word in paragraph] for head in heads]
    counts = {"heads": len(heads), "mentions": sum(map(len, whole))}
    if antonyms is None:
        senses = (("", paragraph, []) for head in heads for paragraph in head)
        return thesauri.thesaurus("roget", senses, sha256=digest, counts=counts, corpus=CORPUS)
    partners = opposite_heads(heads, antonyms)
    senses = (("", words, whole[partners[at]] if at in partners else []) for at, words in enumerate(whole))
    return thesauri.thesaurus("roget-opposites", senses, sha256=digest, counts={**counts, "opposite": len(partners)},
                              corpus=CORPUS)
