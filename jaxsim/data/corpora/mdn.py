"""MDN Web Docs: English pages with their community translations, and the links between English pages."""

from __future__ import annotations

import os
from collections.abc import Iterator

from jaxsim import checks
from jaxsim.data import catalogue, files, pairs
from jaxsim.data.corpora import doc_pairs

LANGUAGES = ("es", "ja", "fr", "de")


def load(language: str, *, root: str | os.PathLike | None = None, verify: bool = True) -> pairs.Pairs:
    """Load the translated pages of a language with their English partners, prose only.

    Args:
      language: of the right side: ``"es"``, ``"ja"``, ``"fr"`` or ``"de"``; the left side is English.
      root: the data folder; see `jaxsim.data.root`.
      verify: compare the files' checksums.

    Returns:
      The pairs in the order of the translated file, with ids ``mdn/<path>``; pairs of which a side holds no prose are
      left out and counted.

    Raises:
      MissingCorpus: a file is not there.
      ValueError: unknown language, a translation without its English page, or a damaged file (named, with the line).
    """
    checks.expect(language in LANGUAGES, "language", f"one of {', '.join(LANGUAGES)}", repr(language))
    path = catalogue.find("mdn", f"{language}.jsonl.xz", root=root, verify=verify)
    english_path = catalogue.find("mdn", "en.jsonl.xz", root=root, verify=verify)
    translated = [(number, record["id"], record["text"]) for number, record in files.read_jsonl(path, ("id", "text"))]
    wanted = {key for _, key, _ in translated}
    english = {
        record["id"]: record["text"]
        for _, record in files.read_jsonl(english_path, ("id", "text"))
        if record["id"] in wanted
    }

    def rows() -> Iterator[tuple[str, str, str, str]]:
        for number, key, translation in translated:
            checks.expect(key in english, f"{path}, line {number}", f"an id of {english_path.name}", repr(key))
            yield f"mdn/{key}", "mdn", english[key], translation

    kept, counts = doc_pairs.keep_nonempty(rows())
    ids, sources, left, right = zip(*kept, strict=True) if kept else ((), (), (), ())
    return pairs.make(
        f"mdn en-{language}",
        ids,
        left,
        right,
        sources=sources,
        languages=("en", language),
        counts=counts,
        differs="substitute: pages of MDN in place of Wikipedia",
    )


def links(*, root: str | os.PathLike | None = None, verify: bool = True) -> list[tuple[str, str, str]]:
    """Links between English pages.

    Args:
      root: the data folder; see `jaxsim.data.root`.
      verify: compare the file's checksum.

    Returns:
      Source id, target id and kind (``"md"``, a Markdown link, or ``"macro"``), ids as in `load`.

    Raises:
      MissingCorpus: the file is not there.
      ValueError: a damaged file or line.
    """
    path = catalogue.find("mdn", "links.tsv.xz", root=root, verify=verify)
    result = []
    for number, line in enumerate(files.read_lines(path), start=1):
        fields = line.split("\t")
        checks.expect(len(fields) == 3, f"{path}, line {number}", "3 fields with tabs between", len(fields))
        result.append((f"mdn/{fields[0]}", f"mdn/{fields[1]}", fields[2]))
    return result
