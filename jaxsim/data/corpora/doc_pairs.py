"""Aligned pages of documentation projects and other sources, English with Spanish, Japanese, French or German."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from jaxsim import checks, text
from jaxsim.data import catalogue, files, pairs

LANGUAGES = ("es", "ja", "fr", "de")
# Sources whose Spanish side is machine translation in whole or in part: the vendor's pages say so themselves (cpp_docs,
# biztalk_docs), were imported in bulk and read so (fcc_guide, fcc_curriculum), or are partly generated (fastapi).
MACHINE_SOURCES = ("biztalk_docs", "cpp_docs", "fastapi", "fcc_curriculum", "fcc_guide")
HUMAN_SOURCES = (
    "astro",
    "bible",
    "electron",
    "kubernetes",
    "mdn",
    "mdn_archived",
    "opensource_guide",
    "python_docs",
    "react",
    "tico19",
    "tldr",
    "xquad_wikipedia",
)


def available(language: str) -> tuple[str, ...]:
    """Names of the sources that have a language, in alphabetical order.

    Args:
      language: ``"es"``, ``"ja"``, ``"fr"`` or ``"de"``.

    Returns:
      The names.

    Raises:
      ValueError: another language.

    Example:
      >>> available("fr")[:3]
      ('astro', 'electron', 'fastapi')
    """
    checks.expect(language in LANGUAGES, "language", f"one of {', '.join(LANGUAGES)}", repr(language))
    ending = f".en_{language}.jsonl.xz"
    return tuple(
        sorted(name.removesuffix(ending) for name in catalogue.get("doc_pairs").files if name.endswith(ending))
    )


def keep_nonempty(rows: Iterator[tuple[str, str, str, str]]) -> tuple[list[tuple[str, str, str, str]], dict[str, int]]:
    """Strip markup from both sides and leave out pairs with a side of no words.

    Args:
      rows: identifier, source, left and right text as they stand in the source.

    Returns:
      The rows with prose only, and the counts ``read`` and ``empty_after_stripping``.
    """
    kept = []
    read = 0
    for key, source, left, right in rows:
        read += 1
        left, right = text.prose(left), text.prose(right)
        if text.words(left) and text.words(right):
            kept.append((key, source, left, right))
    return kept, {"read": read, "empty_after_stripping": read - len(kept)}


def load(
    language: str,
    *,
    sources: Sequence[str] | None = None,
    root: str | os.PathLike | None = None,
    verify: bool = True,
) -> pairs.Pairs:
    """Load pairs of pages, prose only (see `jaxsim.text.vocabulary.prose`; the raw text gives the pairing away).

    Args:
      language: of the right side: ``"es"``, ``"ja"``, ``"fr"`` or ``"de"``; the left side is English.
      sources: some of `available`; all of them by default.
      root: the data folder; see `jaxsim.data.root`.
      verify: compare the files' checksums.

    Returns:
      The pairs, source by source in alphabetical order, in file order inside; pairs of which a side holds no prose are
      left out and counted.

    Raises:
      MissingCorpus: a file is not there.
      ValueError: unknown language or source, or a damaged file (named, with the line).
    """
    known = available(language)
    chosen = known if sources is None else tuple(sorted(set(sources)))
    unknown = [name for name in chosen if name not in known]
    checks.expect(not unknown, "sources", f"some of {', '.join(known)}", ", ".join(map(repr, unknown)))

    def rows() -> Iterator[tuple[str, str, str, str]]:
        for source in chosen:
            path = catalogue.find("doc_pairs", f"{source}.en_{language}.jsonl.xz", root=root, verify=verify)
            for _, record in files.read_jsonl(path, ("id", "en", language)):
                yield record["id"], source, record["en"], record[language]

    kept, counts = keep_nonempty(rows())
    ids, origin, left, right = zip(*kept, strict=True) if kept else ((), (), (), ())
    return pairs.make(
        f"doc_pairs en-{language}",
        ids,
        left,
        right,
        sources=origin,
        languages=("en", language),
        counts=counts,
        differs="substitute: translated documentation and other texts in place of Wikipedia",
    )
