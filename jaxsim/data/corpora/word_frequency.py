"""How often English words occur on the web: a stand-in for the frequencies of a query log (004 §4.1.2, 001 Table 1)."""

from __future__ import annotations

import os
from collections.abc import Iterable

import numpy as np

from jaxsim import checks
from jaxsim.data import catalogue, files


def load(*, root: str | os.PathLike | None = None, verify: bool = True) -> dict[str, int]:
    """Counts of the 100,000 most frequent words, the most frequent first.

    Args:
      root: the data folder; see `jaxsim.data.root`.
      verify: compare the file's checksum.

    Returns:
      Lower-case word -> count.

    Raises:
      MissingCorpus: the file is not there.
      ValueError: a damaged file or line (named).
    """
    path = catalogue.find("word_frequency", "count_1w_top100k.txt.gz", root=root, verify=verify)
    counts = {}
    for number, line in enumerate(files.read_lines(path), start=1):
        word, _, count = line.partition("\t")
        checks.expect(bool(word) and count.isdecimal(), f"{path}, line {number}", "a word, a tab and a count",
                      repr(line[:60]))
        counts[word] = int(count)
    checks.expect(bool(counts), str(path), "at least one word", "none")
    return counts


def of_terms(counts: dict[str, int], terms: Iterable[str]) -> np.ndarray:
    """Counts of some terms; a word that is not listed counts as the rarest one that is.

    Args:
      counts: as `load` gives them, not empty.
      terms: lower-case words, such as those of a vocabulary.

    Returns:
      ``[num_terms]`` float64.

    Raises:
      ValueError: for empty counts.

    Example:
      >>> of_terms({"the": 9, "tea": 2}, ["tea", "zyx", "the"]).tolist()
      [2.0, 2.0, 9.0]
    """
    checks.expect(bool(counts), "counts", "at least one word", "none")
    floor = min(counts.values())
    return np.array([counts.get(term, floor) for term in terms], np.float64)
