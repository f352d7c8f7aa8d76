"""The command about corpora: what there is, whether it is here, and downloads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from jaxsim.cli import options
from jaxsim.cli.output import flush, keeping, say, show, show_json
from jaxsim.cli.program import app

if TYPE_CHECKING:
    from jaxsim.data.catalogue import Corpus, Status


@app.command(epilog="\b\nExample:\n  jaxsim data\n  jaxsim data mdn --root /path/to/corpora\n"
                    "  jaxsim data word_frequency --fetch --root /path/to/corpora\n"
                    "  jaxsim data --fetch-all --root /path/to/corpora\n  jaxsim data --verify")
def data(
    name: Annotated[str | None, typer.Argument(help="A corpus, to see its terms and to verify its files.")] = None,
    root: Annotated[Path | None, options.folder("Folder of the corpora (else the variable JAXSIM_DATA).")] = None,
    fetch: Annotated[bool, typer.Option("--fetch", help="Fetch missing files, and verify all files.")] = False,
    fetch_all: Annotated[bool, typer.Option("--fetch-all", help="Fetch every corpus, the small ones first.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Verify the files that are here: those of one corpus, or of "
                                                          "all if none is named.")] = False,
    cache: Annotated[Path | None, options.folder("Folder that keeps the parts of repositories that were "
                                                 "transferred.")] = None,
    json: options.JsonOption = False,
) -> None:
    """List the corpora, their sources, and whether they are on this machine; or fetch them.

    A corpus is downloaded from its public address or made of the files of public repositories, which needs the program
    git; $JAXSIM_DATA_URL/CORPUS/FILE is read instead if that variable names a mirror. Where a corpus cannot be fetched,
    the message says what to get from where.
    """
    from jaxsim import checks
    from jaxsim.data import catalogue

    checks.expect(not fetch or name is not None, "--fetch", "the name of a corpus before it", "none")
    checks.expect(not fetch_all or name is None, "--fetch-all", "no name of a corpus before it", repr(name))
    checks.expect(cache is None or fetch or fetch_all, "--cache", "--fetch or --fetch-all beside it", "neither")
    if fetch_all:
        _fetch_all(root, cache, json)
    elif name is None:
        (_verify_all if verify else _list)(root, json)
    elif fetch:
        _fetch(catalogue.get(name), root, cache, json)
    else:
        corpus = catalogue.get(name)
        folder = _folder(corpus, root)
        result = catalogue.status(name, folder)
        _show(corpus, folder, result, json, fetched=set())
        catalogue.expect_right(result)


def _fetch(corpus: Corpus, root: Path | None, cache: Path | None, json: bool) -> None:
    from jaxsim.data import catalogue, fetching

    new = root is not None and not root.is_dir()  # made by `fetch`, or refused there
    before = set() if new else _there(corpus, root)
    if len(before) < len(corpus.files) and fetching.can_fetch(corpus.name):
        say(fetching.plan(corpus.name, root and root / corpus.name))
    with keeping("files that are there are whole; the same command fetches the others"):
        paths = fetching.fetch(corpus.name, root=root, cache=cache)
    folder = None if not paths else root / corpus.name if root is not None else _folder(corpus, root)
    _show(corpus, folder, catalogue.status(corpus.name, folder), json, fetched=set(corpus.files) - before)


def _fetch_all(root: Path | None, cache: Path | None, json: bool) -> None:
    """Fetches every corpus; one that fails is told at the end and does not stop the others."""
    from jaxsim.data import catalogue, fetching, files

    if root is None:
        files.root()  # refuses before anything is downloaded
    wanted = sorted((one for one in catalogue.CORPORA.values() if one.files), key=lambda one: one.megabytes)
    rows: list[dict[str, str | None]] = []
    with keeping("files that are there are whole; the same command fetches the others"):
        for corpus in wanted:
            row: dict[str, str | None] = {"name": corpus.name, "state": "verified", "error": None}
            try:
                if not (_state(corpus, root) == "present" if root is None or root.is_dir() else False):
                    say(fetching.plan(corpus.name, root and root / corpus.name))
                fetching.fetch(corpus.name, root=root, cache=cache)
            except (OSError, ValueError) as error:
                row |= {"state": "failed", "error": str(error)}
            rows.append(row)
            if not json:
                show(f"{row['state']}: {corpus.name}" + (f"  {row['error']}" if row["error"] else ""))
    if json:
        show_json({"corpora": rows})
    _expect_none([row["name"] for row in rows if row["error"]], "fetched")


def _verify_all(root: Path | None, json: bool) -> None:
    """Compares the files of every corpus of which something is here."""
    from jaxsim.data import catalogue, files

    files.root(root)
    rows = []
    for corpus in catalogue.CORPORA.values():
        if corpus.files and _there(corpus, root):
            states = [one.state for one in catalogue.status(corpus.name, _folder(corpus, root))]
            numbers = {state: states.count(state) for state in dict.fromkeys(states)}
            rows.append({"name": corpus.name, "files": numbers})
            if not json:
                show(f"{corpus.name}: " + ", ".join(f"{number} {state}" for state, number in numbers.items()))
    if json:
        show_json({"corpora": rows})
    _expect_none([row["name"] for row in rows if "wrong" in row["files"]], "verified")


def _expect_none(failed: list[str], done: str) -> None:
    from jaxsim import checks

    flush()
    checks.expect(not failed, "corpora", f"all {done}", f"{', '.join(failed)} that could not be")


def _folder(corpus: Corpus, root: Path | None) -> Path | None:
    """The corpus's own folder; None where no data folder is named."""
    from jaxsim.data import files

    return None if root is None and not os.environ.get("JAXSIM_DATA") else files.root(root) / corpus.name


def _there(corpus: Corpus, root: Path | None) -> set[str]:
    """Names of the files that are there, right or wrong."""
    folder = _folder(corpus, root)
    return set() if folder is None else {file for file in corpus.files if (folder / file).is_file()}


def _list(root: Path | None, json: bool) -> None:
    from jaxsim.data import catalogue, fetching

    rows = []
    for corpus in catalogue.CORPORA.values():
        providers = fetching.providers(corpus.name)
        rows.append({"name": corpus.name, "state": _state(corpus, root), "can_fetch": fetching.can_fetch(corpus.name),
                     "megabytes": corpus.megabytes, "download_megabytes": fetching.download_megabytes(corpus.name),
                     "from": list(providers), "licence": corpus.licence, "terms": corpus.terms,
                     "title": corpus.title})  # fmt: skip
    if json:
        show_json({"corpora": rows})
        return
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        hosts = list(dict.fromkeys(urlsplit(address).hostname for address in row["from"]))
        way = f"fetch: {row['download_megabytes']:g} MB from {hosts[0]}" if row["can_fetch"] else (
            "no address" if row["state"] != "installed" else "-")  # fmt: skip
        show(f"{row['name']:<{width}}  {row['state']:<9}  {row['megabytes']:>6g} MB  {way:<36}  {row['title']} "
             f"[{row['licence']}]")


def _from(corpus: Corpus) -> str:
    """Where the files of a corpus come from, all of which can be fetched."""
    from jaxsim.data import fetching

    first, *others = fetching.providers(corpus.name)
    return f"from {first}" + f" and {len(others)} more" * bool(others)


def _state(corpus: Corpus, root: Path | None) -> str:
    """Whether the files of a corpus are in the data folder; they are not verified."""
    if not corpus.files:
        return "installed"
    present = len(_there(corpus, root))
    return "present" if present == len(corpus.files) else f"{present} of {len(corpus.files)}" if present else "missing"


def _show(corpus: Corpus, folder: Path | None, found: list[Status], json: bool, fetched: set[str]) -> None:
    """Prints the terms of a corpus, how to get it, and its files."""
    from jaxsim.data import fetching

    can_fetch = fetching.can_fetch(corpus.name)
    if json:
        rows = [{"file": one.file, "state": one.state, "fetched": one.file in fetched, "expected_sha256": one.expected,
                 "sha256": one.got, "address": fetching.address(corpus.name, one.file)} for one in found]  # fmt: skip
        show_json({"name": corpus.name, "title": corpus.title, "source": corpus.source, "licence": corpus.licence,
                   "terms": corpus.terms, "from": fetching.providers(corpus.name), "can_fetch": can_fetch,
                   "folder": folder and str(folder), "files": rows})  # fmt: skip
        return
    way = _from(corpus) if can_fetch else fetching.how_to_get(corpus.name, folder)
    lines = {"title": corpus.title, "source": corpus.source, "licence": corpus.licence, "terms": corpus.terms,
             "fetch": way}  # fmt: skip
    for title, text in lines.items():
        if text:
            show(f"{title}: {text}")
    for one in found:
        digest = f"SHA-256 {one.got or one.expected}"
        if one.expected is None:
            digest = f"no checksum known{f'; {digest}' if one.got else ': the digest of the download is printed'}"
        show(f"{'fetched' if one.file in fetched else one.state}: {one.path or one.file}  {digest}")
    flush()
