"""The command about corpora: what there is, whether it is here, and downloads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jaxsim.cli import options
from jaxsim.cli.output import flush, keeping, show, show_json
from jaxsim.cli.program import app

if TYPE_CHECKING:
    from jaxsim.data.catalogue import Corpus, Status


@app.command(epilog="\b\nExample:\n  jaxsim data\n  jaxsim data mdn --root /path/to/corpora\n"
                    "  jaxsim data europarl_release --fetch --root /path/to/corpora")
def data(
    name: Annotated[str | None, typer.Argument(help="A corpus, to see its terms and to verify its files.")] = None,
    root: Annotated[Path | None, options.folder("Folder of the corpora (else the variable JAXSIM_DATA).")] = None,
    fetch: Annotated[bool, typer.Option("--fetch", help="Download what is not there, and verify all.")] = False,
    json: options.JsonOption = False,
) -> None:
    """List the corpora, where each comes from, and whether it is here; download one.

    Downloads come from the public address of a file, or from $JAXSIM_DATA_URL/CORPUS/FILE if that variable names a
    mirror. A corpus that has no address says what to get from where.
    """
    from jaxsim import checks
    from jaxsim.data import catalogue, fetching

    checks.expect(not fetch or name is not None, "--fetch", "the name of a corpus before it", "none")
    if name is None:
        _list(root, json)
        return
    corpus = catalogue.get(name)
    if not fetch:
        folder = _folder(corpus, root)
        found = catalogue.status(name, folder)
        _show(corpus, folder, found, json, fetched=set())
        catalogue.expect_right(found)
        return
    new = root is not None and not root.is_dir()  # made by `fetch`, or refused there
    before = set() if new else _there(corpus, root)
    with keeping("files that are there are whole; the same command fetches the others"):
        paths = fetching.fetch(name, root=root)
    folder = paths[0].parent if paths else None
    _show(corpus, folder, catalogue.status(name, folder), json, fetched=set(corpus.files) - before)


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
        rows.append({"name": corpus.name, "state": _state(corpus, root), "can_fetch": fetching.can_fetch(corpus.name),
                     "title": corpus.title})  # fmt: skip
    if json:
        show_json({"corpora": rows})
        return
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        way = "can be fetched" if row["can_fetch"] else "no address" if row["state"] != "installed" else "-"
        show(f"{row['name']:<{width}}  {row['state']:<9}  {way:<14}  {row['title']}")


def _from(corpus: Corpus) -> str:
    """Where the files of a corpus come from, all of which have an address."""
    from jaxsim.data import fetching

    first, *others = corpus.files
    return f"from {fetching.address(corpus.name, first)}" + f" and {len(others)} more" * bool(others)


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
                   "can_fetch": can_fetch, "folder": folder and str(folder), "files": rows})  # fmt: skip
        return
    way = _from(corpus) if can_fetch else fetching.how_to_get(corpus.name, folder)
    told = {"title": corpus.title, "source": corpus.source, "licence": corpus.licence, "fetch": way}
    for title, text in told.items():
        show(f"{title}: {text}")
    for one in found:
        digest = f"SHA-256 {one.got or one.expected}"
        if one.expected is None:
            digest = f"no checksum known{f'; {digest}' if one.got else ': the digest of the download is printed'}"
        show(f"{'fetched' if one.file in fetched else one.state}: {one.path or one.file}  {digest}")
    flush()
