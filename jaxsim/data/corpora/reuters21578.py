"""Reuters-21578, Distribution 1.0: newswire stories of 1987 with topics, from the original SGML files.

The files are read as Latin-1, as they are distributed: an archive or the unpacked folder. They are SGML, not XML, so
they are split at their fixed tags. References to control characters are dropped, ``&lt;``, ``&gt;`` and ``&amp;``
decoded. A story of type UNPROC has no marks inside its text, all of which becomes the body; one of type BRIEF has
only a title. Stories without topics, without a body, or without either are kept here: `rows` chooses.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jaxsim import checks
from jaxsim.data import catalogue, files

__all__ = ["SPLITS", "Collection", "Story", "load", "parse", "rows"]

_CORPUS, _ARCHIVE = "reuters21578", "reuters21578.tar.gz"
_FILE = re.compile(r"reut2-\d\d\d\.sgm")
_MARK = re.compile(r"<(/?)REUTERS\b([^>]*)>")
_ATTRIBUTE = re.compile(r'([A-Z]+)="([^"]*)"')
_REFERENCE = re.compile(r"&#(\d+);")
_TOPICS = {"YES", "NO", "BYPASS"}
_PARTS = {"TRAIN", "TEST", "NOT-USED"}
_KINDS = {"NORM", "BRIEF", "UNPROC"}

SPLITS = {"ModApte": {"YES"}, "ModLewis": {"YES", "NO"}}
"""Name of a split -> values of the attribute TOPICS that it takes; parts are those of the attribute LEWISSPLIT."""


@dataclass(frozen=True)
class Story:
    """One ``<REUTERS>`` element.

    Attributes:
      number: the attribute NEWID, 1 to 21,578.
      title: without marks; empty where there is none.
      body: without marks; empty where there is none. All of the text for the type UNPROC.
      topics: in the order of the file, often none.
      judged: the attribute TOPICS: ``"YES"``, ``"NO"`` or ``"BYPASS"``.
      part: the attribute LEWISSPLIT: ``"TRAIN"``, ``"TEST"`` or ``"NOT-USED"``.
      kind: ``"NORM"``, ``"BRIEF"`` or ``"UNPROC"``.
    """

    number: int
    title: str
    body: str
    topics: tuple[str, ...]
    judged: str
    part: str
    kind: str

    @property
    def text(self) -> str:
        """Title and body with a space between, neither stripped."""
        return f"{self.title} {self.body}"


@dataclass(frozen=True, eq=False)
class Collection:
    """All stories, by number.

    Attributes:
      stories: in ascending order of their numbers.
      counts: of the stories: read, with topics, with a body, and by type.
      sha256: digest of numbers, texts, topics and splits.
    """

    stories: tuple[Story, ...]
    counts: dict[str, int]
    sha256: str

    __repr__ = checks.brief


def load(
    path: str | os.PathLike | None = None, *, root: str | os.PathLike | None = None, verify: bool = True
) -> Collection:
    """Reads the whole collection.

    Args:
      path: the archive ``reuters21578.tar.gz``, or a folder that holds its ``.sgm`` files; the data folder's archive
        unless given.
      root: the data folder; see `jaxsim.data.root`.
      verify: compare the checksum of the data folder's archive.

    Returns:
      `Collection`.

    Raises:
      MissingCorpus: there is nothing to read; the message says what to get and from where.
      ValueError: a damaged archive or malformed SGML (named, with the line), or two stories of one number.
    """
    path = catalogue.find(_CORPUS, _ARCHIVE, root=root, verify=verify) if path is None else Path(path)
    if path.is_dir():
        result = sorted(one for one in path.iterdir() if _FILE.fullmatch(one.name))
        texts = {str(one): files.decode(one.read_bytes(), str(one), "latin-1") for one in result}
    elif path.is_file():
        inside = files.read_archive(path, keep=lambda name: bool(_FILE.fullmatch(Path(name).name)), encoding="latin-1")
        texts = {f"{path}: {name}": text for name, text in sorted(inside.items())}
    else:
        raise files.MissingCorpus(f"{path}: expected {_ARCHIVE} or the folder of its .sgm files, got nothing there")
    if not texts:
        raise files.MissingCorpus(f"{path}: expected files reut2-000.sgm to reut2-021.sgm, got none")
    stories = sorted((story for where, text in texts.items() for story in parse(text, where)), key=lambda s: s.number)
    twice = [a.number for a, b in zip(stories, stories[1:], strict=False) if a.number == b.number]
    checks.expect(not twice, str(path), "every NEWID once", f"{twice[:1]} twice")
    return collection(stories)


def collection(stories: Sequence[Story]) -> Collection:
    """Counts stories and takes their digest.

    Args:
      stories: in ascending order of their numbers.

    Returns:
      `Collection`.

    Example:
      >>> collection([Story(1, "A title", "", ("tea",), "YES", "TRAIN", "BRIEF")]).counts
      {'read': 1, 'with_topic': 1, 'with_body': 0, 'with_neither_title_nor_body': 0, 'brief': 1, 'unproc': 0}
    """
    digest = hashlib.sha256()
    for story in stories:
        fields = (story.number, story.title, story.body, *story.topics, story.judged, story.part, story.kind)
        digest.update("\0".join(map(str, fields)).encode() + b"\n")
    counts = {
        "read": len(stories),
        "with_topic": sum(bool(story.topics) for story in stories),
        "with_body": sum(bool(story.body) and story.kind == "NORM" for story in stories),
        "with_neither_title_nor_body": sum(not story.text.strip() for story in stories),
        "brief": sum(story.kind == "BRIEF" for story in stories),
        "unproc": sum(story.kind == "UNPROC" for story in stories),
    }
    return Collection(tuple(stories), counts, digest.hexdigest())


def parse(text: str, where: str) -> Iterator[Story]:
    r"""Cuts one SGML file into stories.

    Args:
      text: of the file.
      where: its name, for messages.

    Yields:
      The stories in the order of the file.

    Raises:
      ValueError: a story that does not end, ends without a beginning or stands inside another, lacks an attribute or
        has an unknown value, has no number or no text, or an element that does not end; names file and line.

    Example:
      >>> story, = parse('<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" NEWID="7"><TOPICS><D>tea</D></TOPICS>'
      ...                '<TEXT>&#2;<TITLE>AT&amp;T</TITLE><BODY>News\n&#3;</BODY></TEXT></REUTERS>', "a file")
      >>> story.title, story.body, story.topics
      ('AT&T', 'News\n', ('tea',))
    """
    opened, began, line, seen = None, where, 1, 0
    for mark in _MARK.finditer(text):
        line += text.count("\n", seen, mark.start())
        seen, here = mark.start(), f"{where}, line {line}"
        if mark[1]:
            checks.expect(opened is not None, here, "<REUTERS ...> before its end", mark[0])
            yield _story(opened[2], text[opened.end() : mark.start()], began)
            opened = None
        else:
            checks.expect(opened is None, here, "</REUTERS> before another story", "a story inside a story")
            opened, began = mark, here
    checks.expect(opened is None, began, "a story that ends in </REUTERS>", "one that does not")


def rows(
    stories: Sequence[Story], *, split: str = "ModApte", labelled: bool = True, min_characters: int = 0
) -> dict[str, np.ndarray]:
    """Chooses the stories of a standard split.

    Args:
      stories: such as `Collection.stories`.
      split: of `SPLITS`: ``"ModApte"`` (stories that were judged for topics) or ``"ModLewis"``.
      labelled: whether to leave out stories without a topic.
      min_characters: least length of `Story.text`; stories without any word should have one.

    Returns:
      ``{"train": ..., "test": ...}``, ascending int64 positions in ``stories``.

    Raises:
      ValueError: unknown split, or a negative length.

    Example:
      >>> story = Story(1, "A title", "", ("tea",), "YES", "TRAIN", "BRIEF")
      >>> {name: found.tolist() for name, found in rows([story]).items()}
      {'train': [0], 'test': []}
    """
    checks.expect(split in SPLITS, "split", f"one of {', '.join(SPLITS)}", repr(split))
    checks.expect(min_characters >= 0, "min_characters", "a number of at least 0", min_characters)
    result: dict[str, list[int]] = {"train": [], "test": []}
    for place, story in enumerate(stories):
        wanted = story.judged in SPLITS[split] and (story.topics or not labelled)
        if wanted and story.part.lower() in result and len(story.text) >= min_characters:
            result[story.part.lower()].append(place)
    return {name: np.asarray(places, np.int64) for name, places in result.items()}


def _story(head: str, inside: str, where: str) -> Story:
    attributes = dict(_ATTRIBUTE.findall(head))
    for name, known in (("TOPICS", _TOPICS), ("LEWISSPLIT", _PARTS)):
        checks.expect(attributes.get(name) in known, f"{where}, attribute {name}", f"one of {', '.join(sorted(known))}",
                      repr(attributes.get(name)))
    number = attributes.get("NEWID", "")
    checks.expect(number.isdecimal(), f"{where}, attribute NEWID", "a number", repr(number))
    text = re.search(r"<TEXT\b([^>]*)>", inside)
    checks.expect(text is not None, where, "a story with <TEXT>", "none")
    body_of_text = _element(inside, "TEXT", where)
    kind = dict(_ATTRIBUTE.findall(text[1])).get("TYPE", "NORM")
    checks.expect(kind in _KINDS, f"{where}, attribute TYPE", f"one of {', '.join(sorted(_KINDS))}", repr(kind))
    topics = re.findall(r"<D>(.*?)</D>", _element(inside, "TOPICS", where), re.DOTALL)
    title, body = _element(body_of_text, "TITLE", where), _element(body_of_text, "BODY", where)
    if kind == "UNPROC":
        title, body = "", body_of_text
    labels = tuple(dict.fromkeys(label.strip() for label in topics if label.strip()))
    return Story(int(number), _decoded(title), _decoded(body), labels, attributes["TOPICS"], attributes["LEWISSPLIT"],
                 kind)


def _element(inside: str, name: str, where: str) -> str:
    """What stands in the first element of a name; the empty string where there is none."""
    begin = re.search(rf"<{name}\b[^>]*>", inside)
    if begin is None:
        return ""
    end = inside.find(f"</{name}>", begin.end())
    checks.expect(end >= 0, where, f"<{name}> that ends in </{name}>", "one that does not")
    return inside[begin.end() : end]


def _decoded(text: str) -> str:
    text = _REFERENCE.sub(lambda one: "" if int(one[1]) < 32 or int(one[1]) == 127 else chr(int(one[1])), text)
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
