"""Pairs of words, antonyms or synonyms, by part of speech (Nguyen, Schulte im Walde and Vu, EACL 2017)."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from jaxsim import checks
from jaxsim.data import catalogue, files
from jaxsim.data.corpora.thesauri import normal

PARTS = ("adjective", "noun", "verb")
SPLITS = ("train", "val", "test")


@dataclass(frozen=True, eq=False)
class Labelled:
    """Pairs and whether they are opposite.

    Attributes:
      left: ``n`` words, as `thesauri.normal` writes them.
      right: likewise.
      antonyms: ``[n]`` booleans; the others are synonyms.
      sha256: digest of the file.
    """

    left: tuple[str, ...]
    right: tuple[str, ...]
    antonyms: np.ndarray
    sha256: str

    __repr__ = checks.brief


def load(part: str, split: str, *, root: str | os.PathLike | None = None, verify: bool = True) -> Labelled:
    """One part of the collection; half of it are antonyms.

    Args:
      part: one of `PARTS`.
      split: one of `SPLITS`.
      root: the data folder; see `jaxsim.data.root`.
      verify: compare the file's checksum.

    Returns:
      `Labelled`.

    Raises:
      MissingCorpus: the file is not there.
      ValueError: another part or split, or a damaged line (named).
    """
    checks.expect(part in PARTS, "part", f"one of {', '.join(PARTS)}", repr(part))
    checks.expect(split in SPLITS, "split", f"one of {', '.join(SPLITS)}", repr(split))
    file = f"antsynnet/{part}-pairs.{split}"
    path = catalogue.find("thesauri", file, root=root, verify=verify)
    rows = []
    for number, line in enumerate(files.read_lines(path), start=1):
        fields = line.split("\t")
        checks.expect(len(fields) == 3 and fields[2].strip() in ("0", "1"), f"{path}, line {number}",
                      "two words and 0 or 1, separated by tabs", repr(line[:60]))
        rows.append((normal(fields[0]), normal(fields[1]), fields[2].strip() == "1"))
    checks.expect(bool(rows), str(path), "at least one pair", "none")
    left, right, antonyms = zip(*rows, strict=True)
    return Labelled(left, right, np.array(antonyms), catalogue.digest("thesauri", file, path))
