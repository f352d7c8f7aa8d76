"""Pairs of documents from a JSON Lines file of one's own."""

from __future__ import annotations

import os
from pathlib import Path

from jaxsim import checks
from jaxsim.data import files, pairs


def load(
    path: str | os.PathLike,
    *,
    left: str = "left",
    right: str = "right",
    id: str | None = None,  # noqa: A002  (the name of the field, as callers write it)
    languages: tuple[str, str] = ("en", "en"),
) -> pairs.Pairs:
    """Load pairs from JSON Lines, plain or compressed (``.gz``, ``.xz``, ``.bz2``); texts are taken as they are.

    Args:
      path: the file.
      left: key of the left text.
      right: key of the right text.
      id: key of the identifier; the line number when not given.
      languages: language codes, which choose the word splitters.

    Returns:
      The pairs in file order; empty texts are legal.

    Raises:
      MissingCorpus: no such file.
      ValueError: a damaged file, invalid JSON, a missing key or a repeated identifier (file and line are named), or
        languages that are not two codes.

    Example:
      >>> import tempfile
      >>> with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
      ...     _ = file.write('{"q": "one", "d": "uno"}')
      ...     file.flush()
      ...     load(file.name, left="q", right="d").right
      ('uno',)
    """
    path, languages = Path(path), pairs.two_languages(languages)
    if not path.is_file():
        raise files.MissingCorpus(f"{path}: expected a JSON Lines file of pairs, got no such file")
    keys = (left, right) if id is None else (left, right, id)
    ids: dict[str, int] = {}
    texts: tuple[list[str], list[str]] = [], []
    for number, record in files.read_jsonl(path, keys):
        key = str(number) if id is None else record[id]
        checks.expect(key not in ids, f"{path}, line {number}", "an identifier not used before", repr(key))
        ids[key] = number
        texts[0].append(record[left])
        texts[1].append(record[right])
    return pairs.make(path.name, ids, *texts, languages=languages)
