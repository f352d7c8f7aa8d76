"""The 519 novels of the Sentence Completion Challenge, or a folder of anyone's texts, as sentences of numbers.

Of a Project Gutenberg file only the text between its licence and its last line, or its marks START and END, is kept.
Second copies of books are dropped. The five books that the challenge's questions come from, and the two other Sherlock
Holmes books, are refused: "Under no circumstances should data from these sources be used as training data."
"""

from __future__ import annotations

import os
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

from jaxsim import checks
from jaxsim.data import catalogue, files
from jaxsim.data.corpora import sentences
from jaxsim.data.corpora.sentences import Sentences

__all__ = ["build", "documents", "prose", "read", "read_folder", "refuse_holmes"]

CORPUS = "sentence_completion"
ARCHIVES = tuple(f"training/part{number}.tar.xz" for number in range(1, 5))
COPIES = ("ALAD10", "BADGE10A", "ECORE10", "HDARK10A", "HYDEA10", "MDFOG10", "SKYGM10")
"""Files whose text stands in another file as well."""
MOST_MENTIONS = 20  # of Sherlock; the novels have at most 9, a Holmes book has dozens

_LICENCE = re.compile(r"^.*END\*? ?THE SMALL PRINT.*$", re.MULTILINE)
_EBOOK = r"[ \t]*\*{3} ?%s OF (?:THE |THIS )?PROJECT GUTENBERG E-?BOOK"
_START = re.compile(rf"^{_EBOOK % 'START'}(?:[^*\n]*(?:\n[^*\n]+){{0,4}}\*{{3}}|.*$)", re.MULTILINE | re.IGNORECASE)
_END = re.compile(rf"^(?:end of (?:the |this )?project gutenberg.*(?:\n.+){{0,2}}\n\s*^)?{_EBOOK % 'END'}",
                  re.MULTILINE | re.IGNORECASE)  # fmt: skip
_LAST = re.compile(r"^\W{0,12}end of (?:the |this )?project gutenberg.*", re.MULTILINE | re.IGNORECASE | re.DOTALL)
_BOOKS = re.compile(r"(adventures|memoirs|return|case-?book)\s+of\s+sherlock\s+holmes|hound\s+of\s+the\s+baskervilles|"
                    r"(the|a)\s+sign\s+of\s+(the\s+)?four|the\s+valley\s+of\s+fear|a\s+study\s+in\s+scarlet",
                    re.IGNORECASE)  # fmt: skip
_HEAD = 3000  # characters in which a file names its title


def build(
    out: str | os.PathLike,
    *,
    root: str | os.PathLike | None = None,
    verify: bool = True,
    progress: bool = False,
) -> Sentences:
    """Writes the challenge's novels into a folder as numbers: 50 million tokens in about a minute and 600 MB.

    Args:
      out: the folder; see `jaxsim.data.corpora.sentences.build`.
      root: the data folder; see `jaxsim.data.root`.
      verify: compare the checksums of the archives.
      progress: show on stderr how many novels are done.

    Returns:
      `Sentences`.

    Raises:
      MissingCorpus: an archive is not there.
      ValueError: a damaged archive, or a Holmes book in it.
    """
    about = {"archives": [catalogue.get(CORPUS).files[name] for name in ARCHIVES], "copies_dropped": len(COPIES)}
    return sentences.build(read(root=root, verify=verify), out, source=about, progress=progress)


def read(*, root: str | os.PathLike | None = None, verify: bool = True) -> Iterator[tuple[str, str]]:
    """Name and prose of each of the challenge's novels; arguments and errors are those of `build`."""
    yield from documents([catalogue.find(CORPUS, name, root=root, verify=verify) for name in ARCHIVES])


def documents(archives: list[Path]) -> Iterator[tuple[str, str]]:
    """Name and prose of each novel in tar archives, one at a time; second copies are left out.

    Args:
      archives: with files of the old encodings of Project Gutenberg.

    Yields:
      Name of the file without its suffix, and its prose.

    Raises:
      ValueError: a damaged archive, or a Holmes book.
    """
    for path in archives:
        try:
            with tarfile.open(path, "r|*") as archive:
                for member in archive:
                    name = Path(member.name).stem
                    if member.isfile() and name not in COPIES:
                        text = files.decode(archive.extractfile(member).read(), f"{path}: {member.name}", "latin-1")
                        refuse_holmes(text, f"{path}: {member.name}")
                        yield name, prose(text)
        except files.DAMAGED as error:
            raise ValueError(f"{path}: expected a whole tar archive, got a damaged one ({error})") from error


def read_folder(folder: str | os.PathLike) -> Iterator[tuple[str, str]]:
    """Name and prose of each text file of a folder, in the order of their names, one at a time.

    Args:
      folder: with files ``*.txt`` in UTF-8 (in its folders too); licences of Project Gutenberg are cut off.

    Yields:
      Path below the folder, and prose.

    Raises:
      ValueError: no folder, no file in it, one that is not UTF-8 (or was cut in the middle of a character), or a
        Holmes book.
    """
    folder = Path(folder)
    checks.expect(folder.is_dir(), str(folder), "a folder of .txt files", "no folder")
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() == ".txt" and path.is_file())
    checks.expect(bool(paths), str(folder), "a folder with at least one .txt file", "none")
    for path in paths:
        text = files.decode(path.read_bytes(), str(path))
        refuse_holmes(text, str(path))
        yield path.relative_to(folder).as_posix(), prose(text)


def prose(text: str) -> str:
    r"""The text of a file without what Project Gutenberg puts before it and after it.

    Args:
      text: of a whole file, from Project Gutenberg or not.

    Returns:
      What stands between the marks "*** START OF THE PROJECT GUTENBERG EBOOK" and "*** END OF ..." (of several books,
      all that does), after the last mark of an older licence, and before the line "End of the Project Gutenberg ...".

    Example:
      >>> prose("Terms\n*END*THE SMALL PRINT!*END*\nTea is a hot drink for all.\nEnd of Project Gutenberg").strip()
      'Tea is a hot drink for all.'
    """
    parts = _START.split(text)  # of one book, or of several one after the other; what is before the first is none
    text = "\n\n".join(_END.split(part, maxsplit=1)[0] for part in parts[1:] or parts)
    ends = [mark.end() for mark in _LICENCE.finditer(text)]
    text = text[ends[-1] :] if ends else text
    last = _LAST.search(text, len(text) // 2)
    return text[: last.start()] if last else text


def refuse_holmes(text: str, where: str) -> None:
    """Refuses a Sherlock Holmes book, by its title at the head of the file or by how often it names him.

    Args:
      text: of the whole file.
      where: the file, for the message.

    Raises:
      ValueError: it is one.

    Example:
      >>> refuse_holmes("The Lost World", "lostw10.txt")
      >>> refuse_holmes("THE HOUND OF THE BASKERVILLES", "x.txt")
      Traceback (most recent call last):
      ...
      ValueError: x.txt: expected no Sherlock Holmes book in training (the questions come from them), got "HOUND OF
      THE BASKERVILLES"; take the file out of the folder
    """
    title, mentions = _BOOKS.search(text[:_HEAD]), text.count("Sherlock")
    got = f'"{" ".join(title[0].split())}"' if title else f"a text that names Sherlock {mentions} times"
    checks.expect(title is None and mentions <= MOST_MENTIONS, where,
                  "no Sherlock Holmes book in training (the questions come from them)",
                  f"{got}; take the file out of the folder")  # fmt: skip
