"""Pairs of words with judged similarities: SimLex-999, SimVerb-3500, WordSim-353, MEN."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import numpy as np

from jaxsim import checks
from jaxsim.data import catalogue, files
from jaxsim.data.corpora.thesauri import normal

# File, whether a first line is dropped, column of the score. In two SimVerb files the first line is a copy of the
# first pair, which a repository on the way added; in the others it is a header.
_SETS = {
    "simlex": ("simlex999/SimLex-999.txt", True, 3),
    "simverb": ("simverb3500/SimVerb-3500.txt", True, 3),
    "simverb-dev": ("simverb3500/SimVerb-500-dev.txt", True, 3),
    "simverb-test": ("simverb3500/SimVerb-3000-test.txt", True, 3),
    "wordsim353": ("wordsim353/combined.tab", True, 2),
    "wordsim353-similarity": ("wordsim353/similarity.tab", False, 2),
    "wordsim353-relatedness": ("wordsim353/relatedness.tab", False, 2),
    "men": ("men/MEN_dataset_natural_form_full", True, 2),
}
_SIZES = {"simlex": 999, "simverb": 3500, "simverb-dev": 500, "simverb-test": 3000, "wordsim353": 353,
          "wordsim353-similarity": 203, "wordsim353-relatedness": 252, "men": 3000}  # fmt: skip
NAMES = tuple(_SETS)


@dataclass(frozen=True, eq=False)
class Judged:
    """Pairs with scores.

    Attributes:
      name: of the set.
      left: words, as `thesauri.normal` writes them.
      right: likewise.
      scores: ``[n]`` float64, higher is more similar.
      relations: of SimVerb, one a pair (``"SYNONYMS"``, ``"ANTONYMS"`` ...); empty for other sets.
      sha256: digest of the file.
    """

    name: str
    left: tuple[str, ...]
    right: tuple[str, ...]
    scores: np.ndarray
    relations: tuple[str, ...] = field(default=())
    sha256: str | None = None

    __repr__ = checks.brief


def load(name: str, *, root: str | os.PathLike | None = None, verify: bool = True) -> Judged:
    """One set of pairs.

    Args:
      name: one of `NAMES`.
      root: the data folder; see `jaxsim.data.root`.
      verify: compare the file's checksum, and the number of pairs.

    Returns:
      `Judged`.

    Raises:
      MissingCorpus: the file is not there.
      ValueError: another name, or a damaged line (named).
    """
    checks.expect(name in _SETS, "name", f"one of {', '.join(_SETS)}", repr(name))
    file, headed, column = _SETS[name]
    path = catalogue.find("word_similarity", file, root=root, verify=verify)
    rows = []
    for number, line in enumerate(files.read_lines(path), start=1):
        if not line.strip() or (headed and number == 1):
            continue
        fields = line.split("\t") if "\t" in line else line.split()
        score = checks.decimal(fields[column]) if len(fields) > column else float("nan")
        checks.expect(score == score, f"{path}, line {number}", "two words and a score", repr(line[:60]))
        rows.append((normal(fields[0]), normal(fields[1]), score, fields[4].strip() if len(fields) > 4 else ""))
    checks.expect(not verify or len(rows) == _SIZES[name], str(path), f"{_SIZES[name]} pairs", len(rows))
    checks.expect(bool(rows), str(path), "at least one pair", "none")
    left, right, scores, relations = zip(*rows, strict=True)
    return Judged(name, left, right, np.array(scores), relations if "simverb" in name else (),
                  catalogue.digest("word_similarity", file, path))
