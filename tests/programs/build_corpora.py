"""Builds corpora by their recipes from local copies of the repositories, and compares them with corpora that are here.

A machine without the network cannot ask the real hosts, but git itself can be told that an address is a folder
(`url.<folder>.insteadOf`). All else is what `jaxsim data NAME --fetch` does: the transfer of the one commit without the
other files, the recipe, the packing, the comparison with the catalogue's digests. Afterwards every file is compared by
its content with the one below `--reference`, and a line says what came out.

    python tests/programs/build_corpora.py --copies FOLDER --reference FOLDER [--archives FOLDER] [--fast] [NAME ...]

`--copies` holds git repositories at any depth; a commit is taken from those that have it, a copy or a fork of the named
one. `--archives` holds files that the catalogue reads from web addresses; they are served on this machine.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import http.server
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from jaxsim.data import catalogue, fetching, files, git, packing

EQUAL, OTHER = 0, 1


def repositories(folder: Path) -> list[Path]:
    """Git directories below a folder."""
    result = []
    for place, folders, names in os.walk(folder):
        if "HEAD" in names and "objects" in folders:
            result.append(Path(place))
            folders.clear()
    return sorted(result)


def holder(copies: list[Path], url: str, commit: str) -> Path | None:
    """A copy that has a commit: one with the name of the address first, then any other, such as a fork's."""
    name = url.removeprefix("https://github.com/").replace("/", "+")
    for copy in sorted(copies, key=lambda copy: name not in str(copy)):
        if not subprocess.run(["git", f"--git-dir={copy}", "cat-file", "-e", commit], capture_output=True).returncode:
            return copy
    return None


def stand_in(url: str, commits: list[str], copies: list[Path], folder: Path) -> Path | None:
    """A repository with the given commits, which lie in the copies; None where one is in none of them."""
    result = [holder(copies, url, commit) for commit in commits]
    if None in result:
        return None
    subprocess.run(["git", "init", "--quiet", "--bare", folder], check=True)
    for name in ("allowFilter", "allowAnySHA1InWant"):
        subprocess.run(["git", f"--git-dir={folder}", "config", f"uploadpack.{name}", "true"], check=True)
    held = list(dict.fromkeys(result))
    (folder / "objects" / "info" / "alternates").write_text("".join(f"{copy / 'objects'}\n" for copy in held))
    ends = "".join((copy / "shallow").read_text() for copy in held if (copy / "shallow").is_file())
    if ends:
        (folder / "shallow").write_text(ends)
    for number, commit in enumerate(commits):
        subprocess.run(["git", f"--git-dir={folder}", "update-ref", f"refs/heads/{number}", commit], check=True)
    return folder


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """Address of a server of a folder's files, while the block lasts."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def build(corpus: catalogue.Corpus, copies: list[Path], archives: tuple[Path, str] | None, work: Path) -> str | None:
    """Points the sources of a corpus at what is here and fetches it into ``work``; says what lacks, if anything."""
    sources, settings = [], []
    for url in dict.fromkeys(one.url for one in corpus.sources if isinstance(one, git.Source)):
        commits = [one.commit for one in corpus.sources if one.url == url]
        place = stand_in(url, commits, copies, work / "copies" / f"{len(settings)}.git")
        if place is None:
            return f"no copy of {url} with its commit"
        settings.append((f"url.file://{place}.insteadOf", url))
    for source in corpus.sources:
        if isinstance(source, catalogue.Archive):
            name = source.url.rpartition("/")[2]
            if archives is None or not (archives[0] / name).is_file():
                return f"no copy of {source.url}"
            source = dataclasses.replace(source, urls=(f"{archives[1]}/{name}",))
        sources.append(source)
    if corpus.addresses:
        return f"no copy of {next(iter(corpus.addresses.values()))}"
    catalogue.CORPORA[corpus.name] = dataclasses.replace(corpus, sources=tuple(sources))
    os.environ["GIT_CONFIG_COUNT"] = str(len(settings))
    for number, (key, value) in enumerate(settings):
        os.environ[f"GIT_CONFIG_KEY_{number}"], os.environ[f"GIT_CONFIG_VALUE_{number}"] = key, value
    fetching.fetch(corpus.name, root=work / "corpora", progress=False)
    return None


def compare(corpus: catalogue.Corpus, made: Path, reference: Path) -> list[str]:
    """The files whose content is another one than that of the reference."""
    return [file for file in corpus.files
            if files.sha256(made / file) != files.sha256(reference / file)
            and packing.content_digest(made / file) != packing.content_digest(reference / file)]


def main(arguments: list[str] | None = None) -> int:
    """Prints a line a corpus; the status is 1 where one differs or could not be made."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="corpora; all unless given")
    parser.add_argument("--copies", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--archives", type=Path)
    parser.add_argument("--fast", action="store_true", help="compress little; contents are compared anyhow")
    given = parser.parse_args(arguments)
    copies, status = repositories(given.copies.resolve()), EQUAL
    os.environ.pop(fetching.MIRROR, None)
    packing._PRESET = 0 if given.fast else packing._PRESET
    names = given.names or [name for name, corpus in catalogue.CORPORA.items() if corpus.files]
    with contextlib.ExitStack() as stack:
        archives = given.archives and (given.archives, stack.enter_context(served(given.archives)))
        for name in names:
            corpus, begun = catalogue.get(name), time.perf_counter()
            with tempfile.TemporaryDirectory() as work:
                try:
                    lacking = build(corpus, copies, archives, Path(work))
                    other = [] if lacking else compare(corpus, Path(work) / "corpora" / name, given.reference / name)
                except (OSError, ValueError) as error:
                    lacking, other = f"failed: {error}", []
            seconds = time.perf_counter() - begun
            messages = lacking or (f"{len(other)} of {len(corpus.files)} files differ: {', '.join(other)}" if other else
                                   f"equal, {len(corpus.files)} files")
            status = OTHER if lacking or other else status
            print(f"{name}: {messages} ({seconds:.0f} s)", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
