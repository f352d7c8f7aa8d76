"""Files of one commit of a public git repository, read by the `git` program without a working tree.

Only the commit, its folders and the files that are asked for are transferred. Git names every object by its hash and
checks it on arrival, so the commit's hash guarantees each file. No code of a repository is run, and no file is written
under its own name: files are read from git's object store.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from jaxsim import checks

_BATCH = 500
_SETTINGS = ("-c", "gc.auto=0", "-c", "maintenance.auto=0", "-c", "fetch.negotiationAlgorithm=noop",
             "-c", "protocol.version=2", "-c", "core.hooksPath=/dev/null")  # fmt: skip
_FETCH = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--recurse-submodules=no", "--filter=blob:none")
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class Source:
    """Some files of a commit.

    Attributes:
      name: what a recipe calls them.
      url: of the repository.
      commit: its full name, 40 hexadecimal digits.
      paths: files and folders.
      match: patterns of file names, of which one has to fit; any file by default.
      megabytes: roughly how much is transferred.
    """

    name: str
    url: str
    commit: str
    paths: tuple[str, ...]
    match: tuple[str, ...] = ()
    megabytes: float = 0.0


def fetch(source: Source, folder: str | os.PathLike, *, progress: bool = True) -> None:
    """Transfer what is not in the store yet; an interrupted fetch continues where it stopped.

    Args:
      source: what to get.
      folder: the store, a bare repository that is made if need be.
      progress: show a bar on stderr, where stderr is a terminal.

    Raises:
      FileNotFoundError: no `git` program.
      ConnectionError: the repository cannot be reached or has no such commit, or the transfer broke off.
      ValueError: a commit that is no full name, or a path that the commit lacks.
    """
    whole = _COMMIT.fullmatch(source.commit) is not None
    checks.expect(whole, "commit", "a full name, 40 hexadecimal digits", repr(source.commit))
    folder = Path(folder)
    _prepare(source, folder)
    there = _objects(folder)
    if source.commit not in there:
        _run(source, folder, *_FETCH, "--depth=1", "origin", source.commit)
        there = _objects(folder)
    wanted = set(files(source, folder).values())
    missing = sorted(wanted - there)
    with tqdm(total=len(wanted), initial=len(wanted) - len(missing), desc=source.name, unit="files", delay=0.5,
              disable=None if progress else True) as bar:  # fmt: skip
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            _run(source, folder, *_FETCH, "--stdin", "origin", stdin="".join(f"{name}\n" for name in batch))
            bar.update(len(batch))
    absent = len(wanted - _objects(folder))
    if absent:
        raise ConnectionError(f"{source.url}: expected {len(wanted)} files, got {absent} fewer")


def files(source: Source, folder: str | os.PathLike) -> dict[str, str]:
    """Paths of a source's files and the names of their objects.

    Args:
      source: fetched into ``folder``.
      folder: the store.

    Returns:
      Path -> object name, in git's order; links and submodules are left out.

    Raises:
      ValueError: a path that the commit lacks, or a pattern that fits no file.
    """
    listing = _run(source, folder, "ls-tree", "-r", "-z", "--full-tree", source.commit, "--", *source.paths)
    result: dict[str, str] = {}
    for line in listing.decode("utf-8", "surrogateescape").split("\0")[:-1]:
        kind, _, path = line.partition("\t")
        mode, _, name = kind.split(" ")
        if mode in ("100644", "100755", "100664"):
            result[path] = name
    for path in source.paths:
        inside = path == "." or any(one == path or one.startswith(path.rstrip("/") + "/") for one in result)
        checks.expect(inside, f"{source.url} at {source.commit}", f"the path {path}", "a commit without it")
    if source.match:
        result = {path: name for path, name in result.items() if _fits(path, source.match)}
        checks.expect(bool(result), f"{source.url} at {source.commit}", f"files like {source.match[0]}", "none")
    return result


def read(source: Source, folder: str | os.PathLike) -> Iterator[tuple[str, bytes]]:
    """The files of a source, one after the other.

    Args:
      source: fetched into ``folder``.
      folder: the store.

    Yields:
      Path and bytes, in git's order.

    Raises:
      ConnectionError: a file that is not in the store.
    """
    listed = files(source, folder)
    command = [*_git(folder), "cat-file", "--batch"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               env=_environment())  # fmt: skip
    try:
        for start in range(0, len(listed), _BATCH):
            batch = list(listed.items())[start : start + _BATCH]
            # A batch of names is smaller than a pipe holds, so git need not be read from while they are written.
            process.stdin.write("".join(f"{name}\n" for _, name in batch).encode())
            process.stdin.flush()
            yield from _answers(process, batch, source)
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def _answers(process, batch: Sequence[tuple[str, str]], source: Source) -> Iterator[tuple[str, bytes]]:
    for path, _ in batch:
        head = process.stdout.readline().split()
        if len(head) != 3 or head[1] != b"blob":
            raise ConnectionError(f"{source.url}: expected the file {path}, got none in what was transferred")
        body = process.stdout.read(int(head[2]))
        process.stdout.read(1)
        yield path, body


def _fits(path: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(path.rpartition("/")[2], pattern) for pattern in patterns)


def _prepare(source: Source, folder: Path) -> None:
    """Makes the store, or takes the one that is there, without the remains of a killed transfer."""
    if not (folder / "HEAD").is_file():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        _run(source, folder, "init", "--quiet", "--bare", "--template=", str(folder))
    for name, value in {"core.repositoryformatversion": "1", "extensions.partialClone": "origin",
                        "remote.origin.url": source.url, "remote.origin.promisor": "true",
                        "remote.origin.partialclonefilter": "blob:none"}.items():  # fmt: skip
        _run(source, folder, "config", name, value)
    for rest in (*folder.glob("objects/pack/tmp_*"), *folder.glob("*.lock")):
        rest.unlink()


def _objects(folder: Path) -> set[str]:
    """Names of the objects that are in the store; asks for none."""
    listed = subprocess.run([*_git(folder), "cat-file", "--batch-all-objects", "--batch-check=%(objectname)",
                             "--unordered"], capture_output=True, check=True, env=_environment())  # fmt: skip
    return set(listed.stdout.decode().split())


def _git(folder: str | os.PathLike) -> list[str]:
    return ["git", *_SETTINGS, f"--git-dir={Path(folder)}"]


def _environment() -> dict[str, str]:
    """Without the variables of a repository that this process may run in; git never prompts for a password."""
    kept = {name: value for name, value in os.environ.items()
            if name not in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY")}  # fmt: skip
    return kept | {"GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}


def _run(source: Source, folder: str | os.PathLike, *words: str, stdin: str = "") -> bytes:
    try:
        done = subprocess.run([*_git(folder), *words], input=stdin.encode(), capture_output=True, env=_environment())
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"git: expected the program git, which fetches {source.url}, got none; install it (git-scm.com)"
        ) from error
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"status {done.returncode}"]
        messages = next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1])
        if "No space left" in done.stderr.decode("utf-8", "replace"):
            raise OSError(28, "No space left on device", str(folder))
        raise ConnectionError(f"{source.url}: expected the commit {source.commit}, got no transfer ({messages})")
    return done.stdout
