"""From source files to corpus files: one pure function for each file that is neither a copy nor an archive of sources.

A recipe takes the files of every source (name of the source -> path -> bytes) and gives corpus files, not compressed.
Where only some pages are used, ``manifests`` lists their names, so that the selection is the same everywhere.
"""

from __future__ import annotations

import csv
import html.parser
import io
import json
import lzma
import posixpath
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator, Mapping
from importlib import resources

from jaxsim import checks
from jaxsim.data import packing

Sources = Mapping[str, Mapping[str, bytes]]

_HOLMES = "data/raw_data/Holmes_Training_Data/"
_HOLMES_LEFT_OUT = ("RHOLM10.TXT", "RHOLM11B.TXT", "STUDY10.TXT")  # stories of Sherlock Holmes, as the questions are
_HOLMES_PARTS = (118, 139, 135, 127)


def crowdflower_search(sources: Sources) -> dict[str, bytes]:
    """The ten parts in one table, by id, with the number of the part in the column ``fold``."""
    rows, header = [], None
    for fold in range(1, 11):
        text = sources["folds"][f"ValidationFolds/{fold}-test.csv"].decode("utf-8")
        header, *part = csv.reader(io.StringIO(text, newline=""))
        rows.extend([*row, str(fold)] for row in part)
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows([[*header, "fold"], *sorted(rows, key=lambda row: int(row[0]))])
    return {"train.csv.gz": out.getvalue().encode()}


def wikispeedia_paths(sources: Sources) -> dict[str, bytes]:
    """The finished games, a line each: titles with ``;`` between, from the numbers of the articles."""
    folder, game = "workspace/wikispeedia/", sources["game"]
    listed = game[f"{folder}raw_input_data/articles.tsv"].decode().splitlines()
    titles = [line for line in listed if line and not line.startswith("#")]
    # The first line of the observations says how many there are.
    steps = [int(line.split()[0]) for line in game[f"{folder}observations.txt"].decode().splitlines()[1:]]
    lengths = [int(line.split()[1]) for line in game[f"{folder}lengths.txt"].decode().splitlines()]
    checks.expect(sum(lengths) == len(steps), "lengths.txt", f"{len(steps)} steps in all", sum(lengths))
    lines, start = [], 0
    for length in lengths:
        lines.append(";".join(titles[number] for number in steps[start : start + length]))
        start += length
    return {"paths_finished_articles.tsv.gz": "".join(f"{line}\n" for line in lines).encode()}


def europarl_days(sources: Sources) -> dict[str, bytes]:
    """Every third session day, in UTF-8, an archive for each language, and the speeches cut out of these days."""
    days = sources["days"]
    names = sorted(path.rpartition("/")[2] for path in days if path.startswith("it-en/en/"))[::3]
    sides = {
        language: {f"{language}/{name}": days[f"it-en/{language}/{name}"].decode("latin-1") for name in names}
        for language in ("en", "it")
    }
    speeches = []
    for line in _manifest("europarl_speeches.tsv.xz"):
        key, start, number, speaker, language = line.split("\t")
        day, chosen = key.partition("/")[0], slice(int(start), int(start) + int(number))
        parts = {side: "\n".join(line.strip() for line in texts[f"{side}/{day}.al"].split("\n")[chosen])
                 for side, texts in sides.items()}  # fmt: skip
        speeches.append({"id": key, "speaker": speaker, "lang": language, **parts})
    made = {f"{side}.tar.xz": packing.tar({name: text.encode() for name, text in texts.items()})
            for side, texts in sides.items()}  # fmt: skip
    return made | {"speeches_2000_2001.en_it.jsonl.xz": packing.jsonl(speeches)}


def semeval(sources: Sources) -> dict[str, bytes]:
    """The sets of 2012 to 2016 with their notices, without a script."""
    folder = "data/sts/semeval-sts/"
    kept = {f"sts_semeval/{path.removeprefix(folder)}": body for path, body in sources["sentences"].items()
            if path.startswith(f"{folder}201") and not path.endswith(".pl")}  # fmt: skip
    return {"sts_semeval/sts_semeval_2012-2016.tar.gz": packing.tar(kept)}


def holmes(sources: Sources) -> dict[str, bytes]:
    """The training texts in four archives, without the stories of Sherlock Holmes."""
    texts = {path.removeprefix(_HOLMES): body for path, body in sources["novels"].items()}
    names = sorted(texts.keys() - set(_HOLMES_LEFT_OUT))
    checks.expect(len(names) == sum(_HOLMES_PARTS), "novels", f"{sum(_HOLMES_PARTS)} texts", len(names))
    made = {}
    for number, size in enumerate(_HOLMES_PARTS, start=1):
        part, names = names[:size], names[size:]
        made[f"training/part{number}.tar.xz"] = packing.tar({f"holmes_training_data/{one}": texts[one] for one in part})
    return made


def wordnet(sources: Sources) -> dict[str, bytes]:
    """The database files of Debian's package, one by one."""
    (package,) = sources["package"].values()
    members = packing.deb_members(package)
    made = {f"{path.rpartition('/')[2]}.gz": body for path, body in members.items()
            if path.startswith("usr/share/wordnet/") and path.rpartition("/")[2].partition(".")[0] in
            ("data", "index", "noun", "verb", "adj", "adv")}  # fmt: skip
    return made | {"COPYRIGHT": members["usr/share/doc/wordnet-base/copyright"]}


class _Anchors(html.parser.HTMLParser):
    """Collects the targets and the texts of the links of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[tuple[str, str]] = []
        self._target: str | None = None
        self._text = ""

    def handle_starttag(self, tag: str, attrs: list) -> None:
        if tag == "a":
            self._target, self._text = dict(attrs).get("href"), ""

    def handle_data(self, data: str) -> None:
        self._text += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "a" and self._target is not None:
            self.links.append((self._target, " ".join(self._text.split())))
            self._target = None


def httpd_links(sources: Sources) -> dict[str, bytes]:
    """The links between two different pages of the manual, and which of them are boilerplate.

    Boilerplate are labels that end in a colon, anchors without letters or digits, and an anchor that leads to the same
    page from more than 30 % of the pages.
    """
    pages: dict[str, str] = {}
    for path, body in sorted(sources["manual"].items()):  # x.en before x.en.utf8
        name = path.removeprefix("docs/manual/")
        encoding = "utf-8" if name.endswith(".utf8") else "latin-1"
        pages[name.removesuffix(".utf8").removesuffix(".en")] = body.decode(encoding)
    rows = [(name, target, fragment, anchor) for name in sorted(pages)
            for target, fragment, anchor in _page_links(name, pages)]  # fmt: skip
    places: dict[tuple[str, str], set[str]] = {}
    for name, target, _, anchor in rows:
        places.setdefault((target, anchor), set()).add(name)
    lines = ["source\ttarget\tfragment\tanchor\tboilerplate\n"]
    for name, target, fragment, anchor in rows:
        label = anchor.endswith(":") or not any(map(str.isalnum, anchor))
        often = len(places[target, anchor]) > 0.3 * len(pages)
        lines.append(f"{name}\t{target}\t{fragment}\t{anchor}\t{int(label or often)}\n")
    return {"links.tsv.gz": "".join(lines).encode()}


def _page_links(name: str, pages: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Target, fragment and anchor of the links of a page to other pages."""
    parser = _Anchors()
    parser.feed(pages[name])
    for address, anchor in parser.links:
        path, _, fragment = address.partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
        if path and ":" not in path and not path.endswith("/") and target in pages and target != name:
            yield target, fragment, anchor


# Folders of the pages of a source: repository and folder of the English ones, of the others; {} is the language.
_PAGES = {
    "astro": ("astro", "src/content/docs/en/", "astro", "src/content/docs/{}/"),
    "biztalk_docs": ("biztalk_docs", "", "biztalk_docs_es", ""),
    "cpp_docs": ("cpp_docs", "docs/", "cpp_docs_es", "docs/"),
    "electron": ("electron", "content/en-US/", "electron", "content/{}/"),
    "fastapi": ("fastapi", "docs/en/docs/", "fastapi", "docs/{}/docs/"),
    "fcc_curriculum": ("freecodecamp", "curriculum/challenges/english/", "freecodecamp",
                       "curriculum/challenges/spanish/"),
    "fcc_guide": ("freecodecamp", "guide/english/", "freecodecamp", "guide/spanish/"),
    "kubernetes": ("kubernetes", "content/en/", "kubernetes", "content/{}/"),
    "mdn_archived": ("mdn_archived", "files/en-us/", "mdn_archived", "files/{}/"),
    "opensource_guide": ("opensource_guide", "_articles/", "opensource_guide", "_articles/{}/"),
    "react": ("react", "content/", "react_es", "content/"),
    "tldr": ("tldr", "pages/", "tldr", "pages.{}/"),
}  # fmt: skip
_REGIONS = {"de": "de-DE", "es": "es-ES", "fr": "fr-FR", "ja": "ja-JP"}


def doc_pairs(sources: Sources) -> dict[str, bytes]:
    """Pages at equal paths and texts of other forms, those that the manifest names; files of the given sources."""
    chosen: dict[str, list[str]] = {}
    for line in _manifest("doc_pairs.txt.xz"):
        if line.startswith("# "):
            ids = chosen.setdefault(line[2:], [])
        else:
            ids.append(line)
    made = {}
    for file, ids in chosen.items():
        name, _, language = file.removesuffix(".jsonl.xz").partition(".en_")
        if name in _PAGES:
            needed, sides = {_PAGES[name][0], _PAGES[name][2]}, _pages
        else:
            needed, sides = _TEXTS[name]
            needed = {one.format(language) for one in needed}
        if needed <= sources.keys():
            texts = sides(sources, name, language, ids)
            made[file] = packing.jsonl({"id": key, "en": left, language: right}
                                       for key, (left, right) in zip(ids, texts, strict=True))
    return made


def _pages(sources: Sources, name: str, language: str, ids: list[str]) -> Iterator[tuple[str, str]]:
    english, folder, other, other_folder = _PAGES[name]
    other_folder = other_folder.format(_REGIONS[language] if name == "electron" else language)
    for key in ids:
        path = other_path = key.partition("/")[2]
        if name == "fcc_curriculum":
            path, other_path = (path.removesuffix(".md") + f".{one}.md" for one in ("english", "spanish"))
        yield _text(sources[english][folder + path]), _text(sources[other][other_folder + other_path])


def _python_docs(sources: Sources, name: str, language: str, ids: list[str]) -> Iterator[tuple[str, str]]:
    """Messages of a catalogue that are translated, finished and not the same on both sides."""
    for key in ids:
        body = _text(sources[f"python_docs_{language}"][key.partition("/")[2] + ".po"])
        pairs = [(one, two) for one, two in _messages(body) if one and two and one != two]
        yield "\n\n".join(one for one, _ in pairs), "\n\n".join(two for _, two in pairs)


def _messages(catalogue: str) -> Iterator[tuple[str, str]]:
    """Message and translation of the entries of a gettext catalogue, without fuzzy and obsolete ones."""
    for entry in re.split(r"\n\s*\n", catalogue):
        if re.search(r"^#,.*\bfuzzy\b", entry, re.MULTILINE):
            continue
        parts: dict[str, list[str]] = {}
        part: list[str] = []
        for line in entry.split("\n"):
            start = re.match(r"(msg\w+(?:\[\d\])?) (?=\")", line)
            if start:
                part = parts.setdefault(start[1], [])
                line = line[start.end() :]
            if line.startswith('"'):
                part.append(json.loads(line.strip(), strict=False))
        if "msgid" in parts and "msgstr" in parts:
            yield "".join(parts["msgid"]), "".join(parts["msgstr"])


def _bible(sources: Sources, name: str, language: str, ids: list[str]) -> Iterator[tuple[str, str]]:
    english = sources["bible"]
    spanish = json.loads(sources["bible_es"]["json/es_rvr.json"].decode("utf-8-sig"))
    books = json.loads(english["Books.json"])
    for key in ids:
        _, book, chapter = key.split("/")
        verses = json.loads(english[f"{book.replace(' ', '')}.json"])["chapters"][int(chapter) - 1]["verses"]
        yield ("\n".join(verse["text"].strip() for verse in verses),
               "\n".join(verse.strip() for verse in spanish[books.index(book)]["chapters"][int(chapter) - 1]))


def _tico19(sources: Sources, name: str, language: str, ids: list[str]) -> Iterator[tuple[str, str]]:
    """Documents put together of the sentences of a translation memory, in its order."""
    file = {"es": "all.en-es-419.tmx", "fr": "all.en-fr.tmx"}[language]
    documents: dict[str, list[tuple[str, str]]] = {}
    for unit in ElementTree.fromstring(sources["tico19"][f"data/TM/{file}"]).iter("tu"):
        segments = [segment.text or "" for segment in unit.iter("seg")]
        documents.setdefault(unit.get("tuid", "").partition(":")[0], []).append((segments[0], segments[1]))
    for key in ids:
        sentences = documents[key.partition("/")[2]]
        yield "\n".join(one for one, _ in sentences), "\n".join(two for _, two in sentences)


def _xquad(sources: Sources, name: str, language: str, ids: list[str]) -> Iterator[tuple[str, str]]:
    sides = []
    for one in ("en", language):
        articles = json.loads(sources["xquad"][f"xquad.{one}.json"])["data"]
        sides.append([part["context"] for article in articles for part in article["paragraphs"]])
    titles = [f"xquad/{article['title']}/{number}"
              for article in json.loads(sources["xquad"]["xquad.en.json"])["data"]
              for number in range(len(article["paragraphs"]))]  # fmt: skip
    row = {title: number for number, title in enumerate(titles)}
    for key in ids:
        yield sides[0][row[key]], sides[1][row[key]]


_TEXTS: dict[str, tuple[tuple[str, ...], Callable]] = {
    "bible": (("bible", "bible_es"), _bible), "python_docs": (("python_docs_{}",), _python_docs),
    "tico19": (("tico19",), _tico19), "xquad_wikipedia": (("xquad",), _xquad),
}  # fmt: skip


def mdn(sources: Sources) -> dict[str, bytes]:
    """All English pages and the translations that the manifest names; files of the given sources."""
    files: dict[str, list[dict[str, str]]] = {}
    for line in _manifest("mdn.tsv.xz"):
        key, _, languages = line.partition("\t")
        for entry in ("en", *languages.split()):
            language, _, path = entry.partition("=")
            source = {"en": "content", "de": "translated_de"}.get(language, "translated")
            if source in sources:
                folder = "en-us" if language == "en" else language
                ending = "html" if language == "de" else "md"
                body = sources[source][f"files/{folder}/{path or key}/index.{ending}"]
                files.setdefault(f"{language}.jsonl.xz", []).append({"id": key, "text": _text(body)})
    made = {file: packing.jsonl(records) for file, records in files.items()}
    return made | ({"links.tsv.xz": _mdn_links()} if "content" in sources else {})


def _mdn_links() -> bytes:
    """The links between English pages, of which the manifest has the numbers of the pages and the kind."""
    ids = [line.partition("\t")[0] for line in _manifest("mdn.tsv.xz")]
    lines, source = [], -1
    for line in _manifest("mdn_links.txt.xz"):
        step, target = line.split(" ")
        source += int(step)
        kind = "md" if target.endswith("m") else "macro"
        lines.append(f"{ids[source]}\t{ids[int(target.removesuffix('m'))]}\t{kind}\n")
    return "".join(lines).encode()


def _text(body: bytes) -> str:
    """A page as it stands, without a byte-order mark, with line feeds as line ends."""
    return body.decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n")


def _manifest(name: str) -> list[str]:
    packed = resources.files("jaxsim.data").joinpath("manifests", name).read_bytes()
    return lzma.decompress(packed).decode("utf-8").splitlines()


RECIPES: dict[str, Callable[[Sources], dict[str, bytes]]] = {
    recipe.__name__: recipe
    for recipe in (crowdflower_search, doc_pairs, europarl_days, holmes, httpd_links, mdn, semeval, wikispeedia_paths,
                   wordnet)  # fmt: skip
}
