"""What the corpora are, where they come from, under which terms, and whether the files here are the expected ones."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from jaxsim import checks
from jaxsim.data import files
from jaxsim.data.checksums import SHA256


@dataclass(frozen=True)
class Corpus:
    """A corpus that a loader reads.

    Attributes:
      name: of the loader and of the folder below the data folder.
      title: what it is, in a few words.
      source: where the texts come from: web address or repositories, enough to get them again.
      licence: terms of the texts, as their owners state them.
      files: file name -> SHA-256 of the files as distributed, None where none is known; empty where any file will do.
      addresses: file name -> public web address, for files that have one.
      packed: how files without an address were made from the source, for people who want to make them again.
    """

    name: str
    title: str
    source: str
    licence: str
    files: dict[str, str | None]
    addresses: dict[str, str] = field(default_factory=dict)
    packed: str = ""


@dataclass(frozen=True)
class Status:
    """Whether a file of a corpus is there and the expected one.

    Attributes:
      file: its name.
      path: where it is looked for; None where no data folder is known.
      state: ``"verified"``, ``"present"`` (there, but no checksum is known), ``"missing"`` or ``"wrong"``.
      expected: SHA-256 as distributed, or None.
      got: SHA-256 of what is there, or None.
    """

    file: str
    path: Path | None
    state: str
    expected: str | None
    got: str | None


def _files(name: str) -> dict[str, str]:
    return {path.partition("/")[2]: digest for path, digest in SHA256.items() if path.partition("/")[0] == name}


CORPORA = {
    corpus.name: corpus
    for corpus in (
        Corpus(
            "docstrings",
            "summaries and bodies of the docstrings of installed Python packages",
            "the installed numpy, scipy, jax, flax, optax and jaxopt",
            "BSD-3-Clause (numpy, scipy), Apache-2.0 (jax, flax, optax, jaxopt)",
            {},
        ),
        Corpus(
            "doc_pairs",
            "pages of open documentation projects and other texts, English with Spanish, Japanese, French or German",
            "16 sources, among them github.com/MicrosoftDocs/cpp-docs and biztalk-docs, freeCodeCamp, tldr-pages/tldr, "
            "withastro/docs, python/python-docs-es and -ja, mdn/archived-content, google-deepmind/xquad, tico-19",
            "a licence for each source: CC BY 4.0, CC BY-SA, MIT, BSD, PSF, CC0 and public domain",
            _files("doc_pairs"),
            packed="pages at equal paths, a file for each source and language, without pages that are not translated "
            "or occur twice",
        ),
        Corpus(
            "mdn",
            "MDN Web Docs, English pages and their Spanish, Japanese, French and German translations",
            "github.com/mdn/content and github.com/mdn/translated-content, state of 2023-02-08 (German: 2022-07-28)",
            "CC BY-SA 2.5, Mozilla Contributors; code samples CC0 or MIT",
            _files("mdn"),
            packed="commit 89b8ab5a of the first and 8171887e (German: 6df13e94) of the second, a file for each "
            "language, and the links between the English pages",
        ),
        Corpus(
            "europarl_en_it",
            "European Parliament proceedings 1996-2001, English and Italian, aligned lines of 129 session days",
            "the early sentence-aligned release of Europarl, www.statmt.org/europarl (Koehn 2005)",
            "no known copyright restriction; to be acknowledged: European Parliament",
            _files("europarl_en_it"),
            packed="every third session day of the folder it-en in github.com/Martingeek4life/Sin-r, commit e8471c43, "
            "in UTF-8, and the speeches that were cut out of these days",
        ),
        Corpus(
            "europarl_en_fr_tagged",
            "European Parliament proceedings of January 2000 in the release format, English and French",
            "www.statmt.org/europarl (Koehn 2005): the source release, folders txt/en, txt/fr and so on",
            "no known copyright restriction; to be acknowledged: European Parliament",
            _files("europarl_en_fr_tagged"),
            packed="the folder europarl.uima/resources/sample in github.com/mjlaali/europarl, commit a796a50d, an "
            "archive for each language",
        ),
        Corpus(
            "europarl_release",
            "European Parliament proceedings 1996-2011, the whole source release (version 7, 21 languages, 1.5 GB)",
            "www.statmt.org/europarl (Koehn 2005); `data.release.load_release` reads the archive as it is",
            "no known copyright restriction; to be acknowledged: European Parliament",
            {"europarl.tgz": None},
            {"europarl.tgz": "https://www.statmt.org/europarl/v7/europarl.tgz"},
        ),
        Corpus(
            "nfcorpus",
            "NFCorpus: titles of NutritionFacts.org pages as queries, PubMed abstracts as documents, graded by links",
            "github.com/WeberNick/vector-space-retrieval, a copy of the collection of Heidelberg University (Boteva, "
            "Gholipour, Sokolov, Riezler, ECIR 2016)",
            "free for academic use; NutritionFacts.org text for non-commercial use, abstracts from PubMed",
            _files("nfcorpus"),
            packed="the files of data/*/raw at commit 39c4b09e, of which s-4.qrel is named 3-2-1.qrel, compressed",
        ),
        Corpus(
            "reuters21578",
            "Reuters-21578, Distribution 1.0: 21,578 newswire stories of 1987 in SGML, with topics",
            "github.com/colibri17/TextCategorization, commit b6c2ca3d (Lewis 1997)",
            "Reuters Ltd. and Carnegie Group, Inc.: free distribution for research purposes only",
            _files("reuters21578"),
            packed="the folder reuters21578 as an archive: 22 SGML files, the collection's README and category lists",
        ),
        Corpus(
            "word_frequency",
            "the 100,000 most frequent English words of the web, with counts",
            "github.com/RyanMcG/authorate, commit 4a8d3f02, count_1w.txt (Norvig; Google Web Trillion Word Corpus)",
            "none stated; derived from data of the Linguistic Data Consortium; research use",
            _files("word_frequency"),
            packed="the first 100,000 lines, compressed",
        ),
        Corpus(
            "us_patent_phrases",
            "36,473 pairs of short phrases of patents with their similarity in five grades",
            "github.com/cuicaihao/kaggle-us-patent-phrase-to-phrase-matching, commit 155c3e42 (Aslanyan and Wetherbee "
            "2022; training set of the Kaggle competition of the USPTO)",
            "none stated by the repository; the public release is believed to be CC BY 4.0; research use",
            _files("us_patent_phrases"),
            packed="data/train.csv, compressed",
        ),
        Corpus(
            "crowdflower_search",
            "10,158 products that shops found for 261 queries, with the median relevance that judges gave them",
            "github.com/thomasjungblut/crowdflower, commit 17379ccd (Kaggle, Search Results Relevance, 2015)",
            "none stated by the repository; rules of the Kaggle competition: research use, no redistribution",
            _files("crowdflower_search"),
            packed="ValidationFolds/1-test.csv to 10-test.csv one after the other, sorted by id, with the column fold "
            "for the number of the file, compressed",
        ),
        Corpus(
            "httpd_html",
            "the English manual of the Apache HTTP Server: 262 HTML pages, and their links with anchor texts",
            "github.com/apache/httpd, commit 0cb68044, docs/manual",
            "Apache-2.0, The Apache Software Foundation",
            _files("httpd_html"),
            packed="the files manual/**/*.html.en and *.html.en.utf8 as an archive, and a table of the links between "
            "two of these pages",
        ),
        Corpus(
            "wikispeedia",
            "articles of the 2007 Wikipedia for Schools, the links between them, and click paths of a game on them",
            "snap.stanford.edu, wikispeedia (West and Leskovec, WWW 2012; West, Pineau and Precup, IJCAI 2009)",
            "texts GNU FDL (Wikipedia); SNAP asks for citation",
            _files("wikispeedia"),
            packed="the articles from github.com/angelpras/epfl_ADA_project, commit c955510e, articles and links from "
            "github.com/asrtoufa/wikispeedia-paths-dual-hypergraph-features, commit 24112732, whose observations.txt "
            "and lengths.txt give the finished paths, one a line with ; between the titles",
        ),
        Corpus(
            "classic_ir",
            "the CACM test collection: 3,204 articles of the Communications of the ACM with their citations",
            "github.com/kavinsan/Information-Retrieval-Project, commit feda4806 (SMART; University of Glasgow)",
            "none stated; distributed freely for research, not for sale",
            _files("classic_ir"),
            packed="the file cacm.all, compressed, in the folder cacm",
        ),
    )
}


def get(name: str) -> Corpus:
    """One corpus of the catalogue.

    Args:
      name: such as ``"mdn"``.

    Returns:
      Its entry.

    Raises:
      ValueError: no such corpus; the message lists them.

    Example:
      >>> get("mdn").licence
      'CC BY-SA 2.5, Mozilla Contributors; code samples CC0 or MIT'
    """
    checks.expect(name in CORPORA, "name", f"one of {', '.join(sorted(CORPORA))}", repr(name))
    return CORPORA[name]


def find(name: str, file: str, *, root: str | os.PathLike | None = None, verify: bool = True) -> Path:
    """Path of a corpus file, after its checksum was compared.

    Args:
      name: of the corpus.
      file: name inside the corpus folder.
      root: the data folder; see `jaxsim.data.root`.
      verify: compare the SHA-256; turn it off for files of your own in the same format.

    Returns:
      An existing file.

    Raises:
      MissingCorpus: the file is not there; the message says what to get and from where.
      ValueError: the file is not the expected one.
    """
    corpus = get(name)
    hint = f"the corpus {name!r} ({corpus.title}), from {corpus.source}"
    try:
        path = files.root(root) / name / file
    except files.MissingCorpus as error:
        raise files.MissingCorpus(f"{error}; needed: {hint}") from error
    if not path.is_file():
        raise files.MissingCorpus(f"{path}: expected {hint}; got no such file")
    if verify and corpus.files.get(file) is not None:
        expect_right([_look(path, file, corpus.files[file])])
    return path


def status(name: str, folder: str | os.PathLike | None) -> list[Status]:
    """Look at every file of a corpus; absent and wrong ones are told, not refused.

    Args:
      name: of the corpus.
      folder: the corpus's own folder, which need not exist; None where there is none.

    Returns:
      One entry a file, in the catalogue's order.

    Raises:
      ValueError: no such corpus.
      OSError: a file cannot be read.

    Example:
      >>> [(one.file, one.state) for one in status("europarl_release", None)]
      [('europarl.tgz', 'missing')]
    """
    known = get(name).files.items()
    if folder is None:
        return [Status(file, None, "missing", expected, None) for file, expected in known]
    return [_look(Path(folder) / file, file, expected) for file, expected in known]


def _look(path: Path, file: str, expected: str | None) -> Status:
    if not path.exists():
        return Status(file, path, "missing", expected, None)
    if not path.is_file():
        return Status(file, path, "wrong", expected, None)
    got = files.sha256(path)
    state = "present" if expected is None else "verified" if got == expected else "wrong"
    return Status(file, path, state, expected, got)


def expect_right(found: list[Status], advice: str = "") -> None:
    """Refuse files that are not the expected ones.

    Args:
      found: as `status` gives them.
      advice: what to do about it, for the message.

    Raises:
      ValueError: a wrong file; names the first and counts the others.

    Example:
      >>> expect_right([Status("a", Path("a"), "wrong", "00", "11")])
      Traceback (most recent call last):
      ...
      ValueError: a: expected SHA-256 00, got 11 (damaged or changed)
    """
    wrong = [one for one in found if one.state == "wrong"]
    if wrong:
        first, others = wrong[0], len(wrong) - 1
        got = f"{first.got} (damaged or changed)" if first.got else "something that is no file"
        more = f", and {others} more such files" if others else ""
        wanted = "a file" if first.expected is None else f"SHA-256 {first.expected}"
        raise ValueError(f"{first.path}: expected {wanted}, got {got}{more}{advice}")
