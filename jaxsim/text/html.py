"""Features that only web pages have: title, headings, anchor texts, address and meta tags (004 §4.2.2).

`read` takes a page apart with the parser of the standard library, which refuses nothing; `in_fields` and `in_strings`
put columns of 0 and 1 beside those of `features.extract`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim import checks, sparse
from jaxsim.text.features import Featured
from jaxsim.text.tokens import composed, lowering
from jaxsim.text.vocabulary import Vocabulary

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_HIDDEN = ("script", "style", "template", "noscript")
# Tags that do not part words; every other one does.
_INLINE = frozenset(("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "del", "dfn", "em", "font", "i",
                     "ins", "kbd", "mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "tt",
                     "u", "var", "wbr"))
_NO_COMMENT, _EMPTY = re.compile("<(?!!--)"), re.compile("<!---?>")


class Page(NamedTuple):
    """The parts of a page, as plain text.

    Attributes:
      title: of the first title tag.
      text: everything that is shown, headings and anchor texts included, title excluded.
      headings: of all six orders.
      anchors: texts of the links that the page has.
      keywords: of the meta tag of that name.
      description: of the meta tag of that name.
    """

    title: str
    text: str
    headings: str
    anchors: str
    keywords: str
    description: str


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.parts = {name: [] for name in Page._fields}
        self.inside: set[str] = set()

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self._parted(tag)
        if tag == "title":
            if not self.parts["title"]:  # a picture may have a title of its own
                self.inside.add("title")
        elif tag == "body":
            self.inside.discard("title")
        elif tag in _HIDDEN:
            self.inside.add(tag)
        elif tag == "a":
            self.inside.discard("a")
            if attributes.get("href") is not None:
                self.inside.add("a")
                self.parts["anchors"].append(" ")
        elif tag in HEADINGS:
            self.inside.add("heading")
            self.parts["headings"].append(" ")
        elif tag == "meta":
            name = (attributes.get("name") or "").strip().lower()
            if name in ("keywords", "description"):
                self.parts[name] += [attributes.get("content") or "", " "]

    def handle_endtag(self, tag):
        self._parted(tag)
        self.inside.discard("heading" if tag in HEADINGS else tag)
        if tag == "head":
            self.inside.discard("title")

    def handle_data(self, data):
        if "title" in self.inside:
            self.parts["title"].append(data)
        elif self.inside.isdisjoint(_HIDDEN):
            self.parts["text"].append(data)
            for name, part in (("a", "anchors"), ("heading", "headings")):
                if name in self.inside:
                    self.parts[part].append(data)

    def parse_comment(self, i, report=1):
        """One without its end hides the rest, as in browsers; the ends of many would be looked for one by one."""
        end = super().parse_comment(i, report)
        if end < 0:
            empty = _EMPTY.match(self.rawdata, i)
            end = empty.end() if empty else len(self.rawdata)
        return end

    def parse_marked_section(self, i, report=1):
        """``<![CDATA[…]]>``; any other ends at the next >, as in browsers, and is no error."""
        closing = "]]>" if self.rawdata[i : i + 9].upper() == "<![CDATA[" else ">"
        end = self.rawdata.find(closing, i)
        return len(self.rawdata) if end < 0 else end + len(closing)

    def _parted(self, tag):
        if tag not in _INLINE:
            for name in ("text", "anchors", "headings"):
                self.parts[name].append(" ")


def read(page: str) -> Page:
    """Takes a page apart.

    Args:
      page: HTML or XHTML. Damaged markup is read as a browser would: what is not closed is closed by what follows, and
        a comment without its end hides the rest. A ``<`` without a ``>`` after it is text.

    Returns:
      `Page`, white space collapsed; parts that are not there are empty.

    Raises:
      ValueError: something else than a string.

    Example:
      >>> page = read('<title>Tea</title><h1>Green <i>t</i>ea</h1><p>See <a href="x">the map</a>.<script>no()</script>')
      >>> page.title, page.text, page.headings, page.anchors
      ('Tea', 'Green tea See the map.', 'Green tea', 'the map')
    """
    checks.kind(page, "page", str)
    reader = _Reader()
    end = page.rfind(">") + 1  # of the last tag; the parser would look for one from each < of the rest
    reader.feed(page[:end] + _NO_COMMENT.sub("&lt;", page[end:]))
    reader.close()
    return Page(*(" ".join("".join(reader.parts[name]).split()) for name in Page._fields))


def in_fields(
    documents: Featured, vocabulary: Vocabulary, fields: Mapping[str, Sequence[Sequence[str]]], *, language: str = "en"
) -> Featured:
    """A column a field: 1 where the field of the document has the term.

    Args:
      documents: with features.
      vocabulary: of their terms.
      fields: name of the column -> words of that field, one list a document, in any case.
      language: code that says how they are lowered, as for `features.extract`.

    Returns:
      `Featured` with as many more columns.

    Raises:
      ValueError: a name that is taken, a vocabulary of another size, or another number of documents.

    Example:
      >>> from jaxsim.text import features
      >>> words = Vocabulary(("tea", "up"), np.array([3, 1]), 4)
      >>> found = features.extract([["tea", "up"], ["up"]], words, names=("bias",))
      >>> in_fields(found, words, {"title": [["Up"], ["tea"]]}).columns.tolist()
      [[1.0, 0.0], [1.0, 1.0], [1.0, 0.0]]
    """
    row, column = _slots(documents, vocabulary)
    new, lowered = [], lowering(language)
    for name, lists in fields.items():
        checks.expect(len(lists) == documents.num_docs, f"fields.{name}", f"{documents.num_docs} lists (documents)",
                      len(lists))
        codes = {number * len(vocabulary) + found for number, words in enumerate(lists)
                 for found in (vocabulary.index.get(lowered(word), -1) for word in words) if found >= 0}
        new.append(np.isin(row * len(vocabulary) + column, np.fromiter(codes, np.int64, len(codes))))
    return _beside(documents, tuple(fields), new)


def in_strings(
    documents: Featured, vocabulary: Vocabulary, name: str, strings: Sequence[str], *, language: str = "en"
) -> Featured:
    """One column: 1 where the term is part of the document's string, such as its address (004 §4.2.2).

    Args:
      documents: with features.
      vocabulary: of their terms.
      name: of the column.
      strings: one a document, in any case.
      language: as for `in_fields`.

    Returns:
      `Featured` with one more column.

    Raises:
      ValueError: as `in_fields`.

    Example:
      >>> from jaxsim.text import features
      >>> words = Vocabulary(("tea", "up"), np.array([3, 1]), 4)
      >>> found = features.extract([["tea", "up"]], words, names=("bias",))
      >>> in_strings(found, words, "url", ["/Steam.html"]).columns.tolist()
      [[1.0, 1.0], [1.0, 0.0]]
    """
    row, column = _slots(documents, vocabulary)
    checks.expect(len(strings) == documents.num_docs, name, f"{documents.num_docs} strings (documents)", len(strings))
    lower = list(map(lowering(language), map(composed, strings)))
    inside = (vocabulary.terms[term] in lower[number]
              for number, term in zip(row.tolist(), column.tolist(), strict=True))
    return _beside(documents, (name,), [np.fromiter(inside, bool, len(row))])


def _slots(documents: Featured, vocabulary: Vocabulary) -> tuple[np.ndarray, np.ndarray]:
    """Document and term of every slot."""
    checks.kind(documents, "documents", Featured)
    checks.expect(len(vocabulary) == documents.num_terms, "vocabulary", f"{documents.num_terms} terms (documents)",
                  len(vocabulary))
    csr = sparse.to_scipy(documents.terms)
    return np.repeat(np.arange(csr.shape[0], dtype=np.int64), np.diff(csr.indptr)), csr.indices.astype(np.int64)


def _beside(documents: Featured, names: tuple[str, ...], columns: list[np.ndarray]) -> Featured:
    taken = sorted(set(names) & set(documents.names))
    checks.expect(not taken, "fields", "names that documents have not", taken)
    added = np.zeros((documents.columns.shape[0], len(names)), documents.columns.dtype)
    for place, values in enumerate(columns):
        added[: len(values), place] = values
    return dataclasses.replace(documents, names=(*documents.names, *names),
                               columns=jnp.concatenate([documents.columns, jnp.asarray(added)], axis=1))
