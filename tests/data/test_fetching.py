"""Downloads of corpora, from a server on this machine: a file is whole and right under its name, or not there."""

from __future__ import annotations

import errno
import gzip
import io
import os
import socket
import sys
import tarfile
import tempfile

import pooch
import pytest
from local_server import ONE, TWO, corpus

from jaxsim import data
from jaxsim.data import catalogue, downloads, fetching, packing


def left(folder) -> list[str]:
    """Every file below a folder, hidden ones too."""
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_fetch_downloads_verifies_and_then_leaves_alone(server, tmp_path):
    logger = pooch.get_logger()
    level = logger.level
    place = tmp_path / "new" / "corpora"
    paths = fetching.fetch("small", root=place, progress=False)
    assert paths == [place / "small" / "one.txt", place / "small" / "two.txt"]
    assert [path.read_bytes() for path in paths] == [ONE, TWO]
    assert left(tmp_path) == [fetching.NOTICE, "one.txt", "two.txt"]
    assert logger.level == level
    assert server.asked == ["/public/one.txt", "/public/two.txt"]
    states = [(one.state, one.got) for one in catalogue.status("small", place / "small")]
    assert states == [("verified", digest) for digest in catalogue.get("small").files.values()]
    times = [path.stat().st_mtime_ns for path in paths]
    assert fetching.fetch("small", root=place) == paths
    assert [path.stat().st_mtime_ns for path in paths] == times and len(server.asked) == 2


def test_fetch_gets_only_what_is_not_there(server, tmp_path, monkeypatch):
    monkeypatch.setenv("JAXSIM_DATA", str(tmp_path))
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "one.txt").write_bytes(ONE)
    assert len(fetching.fetch("small")) == 2
    assert server.asked == ["/public/two.txt"]


def test_files_are_as_readable_as_their_folder(server, tmp_path):
    for mode in (0o755, 0o700):
        (tmp_path / str(mode) / "small").mkdir(parents=True)
        (tmp_path / str(mode) / "small").chmod(mode)
        for path in fetching.fetch("small", root=tmp_path / str(mode)):
            assert path.stat().st_mode & 0o777 == mode & 0o666


def test_a_wrong_file_is_refused_before_anything_is_fetched(server, tmp_path):
    path = tmp_path / "small" / "two.txt"
    path.parent.mkdir()
    path.write_bytes(b"mine")
    with pytest.raises(ValueError, match=r"two\.txt: expected SHA-256 \w+, got \w+ \(damaged or changed\); nothing"):
        fetching.fetch("small", root=tmp_path)
    assert path.read_bytes() == b"mine" and left(tmp_path) == ["two.txt"] and not server.asked
    path.unlink()
    path.mkdir()
    with pytest.raises(ValueError, match=r"two\.txt: expected SHA-256 \w+, got something that is no file"):
        fetching.fetch("small", root=tmp_path)


def test_a_wrong_file_of_the_server_is_not_kept(server, tmp_path):
    server.bodies["/public/two.txt"] = b"changed since"
    with pytest.raises(ValueError, match=rf"^{server.url}/public/two\.txt: expected a file with SHA-256 \w+, got \w+;"):
        fetching.fetch("small", root=tmp_path)
    assert left(tmp_path) == ["one.txt"]


def test_a_part_of_a_file_is_not_kept(server, tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "_CHUNK", 50_000)
    server.missing_bytes = 1000
    for files, kept in ((corpus().files, ["one.txt.rest"]), ({"one.txt": None, "two.txt": None}, [])):
        monkeypatch.setitem(catalogue.CORPORA, "small", corpus(server.url, files=files))
        with pytest.raises(ConnectionError, match=r"one\.txt: expected the file, got a part of it"):
            fetching.fetch("small", root=tmp_path)
        assert left(tmp_path) == kept and not left(tmp_path / "small")


@pytest.mark.parametrize("known", [True, False])
def test_the_rest_of_a_download_is_asked_for(known, server, tmp_path, monkeypatch):
    if not known:
        monkeypatch.setitem(catalogue.CORPORA, "small", corpus(server.url, files={"one.txt": None, "two.txt": None}))
    monkeypatch.setattr(downloads, "_CHUNK", 50_000)
    server.headers["ETag"], server.sent_bytes = '"first"', 150_000
    for times in (1, 2):
        with pytest.raises(ConnectionError, match="got a part of it"):
            fetching.fetch("small", root=tmp_path, progress=False)
        assert (tmp_path / ".fetch" / "small" / "one.txt.rest").stat().st_size == 150_000 * times
    server.sent_bytes = None
    assert [path.read_bytes() for path in fetching.fetch("small", root=tmp_path, progress=False)] == [ONE, TWO]
    assert server.ranges == ["bytes=150000-", "bytes=300000-"] and not (tmp_path / ".fetch").exists()


def test_a_download_of_another_version_begins_anew(server, tmp_path, monkeypatch):
    monkeypatch.setitem(catalogue.CORPORA, "small", corpus(server.url, files={"one.txt": None, "two.txt": None}))
    monkeypatch.setattr(downloads, "_CHUNK", 50_000)
    server.headers["ETag"], server.sent_bytes = '"first"', 150_000
    with pytest.raises(ConnectionError, match="got a part of it"):
        fetching.fetch("small", root=tmp_path, progress=False)
    server.headers["ETag"], server.sent_bytes = '"second"', None
    server.bodies["/public/one.txt"] = ONE[::-1]
    assert fetching.fetch("small", root=tmp_path, progress=False)[0].read_bytes() == ONE[::-1]
    assert server.ranges == ["bytes=150000-"]


@pytest.mark.parametrize("known", [True, False])
def test_a_download_that_was_stopped_at_its_last_byte(known, server, tmp_path, monkeypatch):
    if not known:
        monkeypatch.setitem(catalogue.CORPORA, "small", corpus(server.url, files={"one.txt": None, "two.txt": None}))
    store = tmp_path / ".fetch" / "small"
    store.mkdir(parents=True)
    (store / "one.txt.rest").write_bytes(ONE)
    (store / "one.txt.rest.tag").write_text('"first"')
    server.headers["ETag"] = '"first"'
    assert fetching.fetch("small", root=tmp_path, progress=False)[0].read_bytes() == ONE
    assert server.asked.count("/public/one.txt") == (1 if known else 2)


def test_a_wrong_part_is_not_gone_on_from(server, tmp_path):
    store = tmp_path / ".fetch" / "small"
    store.mkdir(parents=True)
    (store / "one.txt.rest").write_bytes(b"of another file")
    server.headers["ETag"] = '"first"'
    with pytest.raises(ValueError, match=r"one\.txt: expected a file with SHA-256 \w+, got \w+; nothing was kept"):
        fetching.fetch("small", root=tmp_path, progress=False)
    assert left(tmp_path) == []
    assert len(fetching.fetch("small", root=tmp_path, progress=False)) == 2


def archive(members):
    """A tar archive of files, and of links and devices where the body says so."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, body in members:
            member = tarfile.TarInfo(name)
            if isinstance(body, bytes):
                member.size = len(body)
            else:
                member.type, member.linkname = body, "/etc/passwd"
            tar.addfile(member, io.BytesIO(body) if isinstance(body, bytes) else None)
    return buffer.getvalue()


GOOD = [("lines.en", b"one\ntwo\n"), ("txt/en/day.txt", b"a\n"), ("txt/es/day.txt", b"b\n")]
HOSTILE = [("../../outside", b"x"), ("/tmp/outside", b"x"), ("txt/link", tarfile.SYMTYPE), ("dev", tarfile.CHRTYPE)]


@pytest.mark.parametrize(("members", "message"), [
    (GOOD, None),
    (GOOD + HOSTILE, None),  # they are no part of what is read, and nothing is unpacked
    ([("lines.en", b"one\n"), *GOOD[1:]], r"expected 2 lines in lines\.en, got 1; nothing was kept"),
    ([("lines.en", tarfile.SYMTYPE), *GOOD[1:]], r"expected 2 lines in lines\.en, got 0"),
    (GOOD[:2], "expected at least 2 folders in txt/, got 1"),
])  # fmt: skip
def test_an_archive_of_no_known_digest_is_counted(members, message, server, tmp_path, monkeypatch):
    body = server.bodies["/public/one.tgz"] = archive(members)
    changed = corpus(files={"one.tgz": None}, addresses={"one.tgz": f"{server.url}/public/one.tgz"},
                     counts={"one.tgz": {"lines.en": 2, "txt/": 2}})
    monkeypatch.setitem(catalogue.CORPORA, "small", changed)
    if message is None:
        (path,) = fetching.fetch("small", root=tmp_path / "data")
        assert path.read_bytes() == body and left(tmp_path) == [fetching.NOTICE, "one.tgz"]
    else:
        with pytest.raises(ValueError, match=rf"^{server.url}/public/one\.tgz: {message}"):
            fetching.fetch("small", root=tmp_path / "data")
        assert not left(tmp_path)


def test_an_archive_that_was_cut_is_not_counted(tmp_path):
    (tmp_path / "one.tgz").write_bytes(archive([("lines.en", os.urandom(5000))])[:3000])
    with pytest.raises(ValueError, match="^there: expected a whole tar archive, got a damaged or truncated one"):
        packing.expect_counts(tmp_path / "one.tgz", {"lines.en": 2}, "there")


def test_an_absent_file_and_a_web_page_in_its_place(server, tmp_path):
    server.headers["Content-Type"] = "text/html; charset=utf-8"
    with pytest.raises(ConnectionError, match=r"one\.txt: expected the file, got a web page$"):
        fetching.fetch("small", root=tmp_path)
    del server.bodies["/public/one.txt"]
    with pytest.raises(ConnectionError, match=r"one\.txt: expected the file, got HTTP status 404 \(Not Found\)$"):
        fetching.fetch("small", root=tmp_path)
    assert not left(tmp_path)


def test_bytes_are_kept_as_the_server_has_them(server, tmp_path, monkeypatch):
    packed = gzip.compress(ONE)
    server.bodies["/public/one.tgz"] = packed
    server.headers["Content-Encoding"] = "x-gzip"
    changed = corpus(files={"one.tgz": None}, addresses={"one.tgz": f"{server.url}/public/one.tgz"})
    monkeypatch.setitem(catalogue.CORPORA, "small", changed)
    (path,) = fetching.fetch("small", root=tmp_path)
    assert path.read_bytes() == packed
    assert [one.state for one in catalogue.status("small", path.parent)] == ["present"]
    assert catalogue.find("small", "one.tgz", root=tmp_path) == path


def test_no_server_there(server, tmp_path, monkeypatch):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("JAXSIM_DATA_URL", f"http://127.0.0.1:{unused.getsockname()[1]}")
        with pytest.raises(ConnectionError, match=r"one\.txt: expected the file, got no answer \(.*refused"):
            fetching.fetch("small", root=tmp_path)
    assert not left(tmp_path)


def test_a_server_that_says_nothing(server, tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("JAXSIM_DATA_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(ConnectionError, match=r"one\.txt: expected the file, got no answer \(timed out\)$"):
            fetching.fetch("small", root=tmp_path)


def test_a_mirror_stands_in_for_every_address(server, tmp_path, monkeypatch):
    monkeypatch.setitem(catalogue.CORPORA, "small", corpus())
    assert not fetching.can_fetch("small") and fetching.address("small", "one.txt") is None
    server.bodies = {"/kept/small/one.txt": ONE, "/kept/small/two.txt": TWO}
    monkeypatch.setenv("JAXSIM_DATA_URL", f"{server.url}/kept/")
    assert fetching.can_fetch("small") and fetching.can_fetch("mdn")
    assert [path.read_bytes() for path in fetching.fetch("small", root=tmp_path)] == [ONE, TWO]
    monkeypatch.setitem(catalogue.CORPORA, "small", corpus(server.url))
    assert fetching.address("small", "one.txt") == f"{server.url}/kept/small/one.txt"
    monkeypatch.setenv("JAXSIM_DATA_URL", "")
    assert fetching.address("small", "one.txt") == f"{server.url}/public/one.txt"


@pytest.mark.parametrize("mirror", ["mirror.example/x", "ftp://mirror.example", "http://", "https://me:secret@mirror.example"])
def test_mirrors_that_are_none(mirror, tmp_path, monkeypatch):
    monkeypatch.setenv("JAXSIM_DATA_URL", mirror)
    with pytest.raises(ValueError, match="^JAXSIM_DATA_URL: expected an address") as facts:
        fetching.fetch("mdn", root=tmp_path)
    assert "secret" not in str(facts.value)


def test_what_has_no_address_says_what_to_get_and_where_to(server, tmp_path, monkeypatch):
    monkeypatch.setitem(catalogue.CORPORA, "small", corpus())
    with pytest.raises(data.MissingCorpus, match="^small: no public address; copy one.txt and 1 more from") as facts:
        fetching.fetch("small", root=tmp_path)
    for part in (f"into {tmp_path / 'small'}", "JAXSIM_DATA_URL", "small/one.txt", "example.org/texts: as they are"):
        assert part in str(facts.value)
    assert not (tmp_path / "small").exists()
    (tmp_path / "small").mkdir()
    for file, body in (("one.txt", ONE), ("two.txt", TWO)):
        (tmp_path / "small" / file).write_bytes(body)
    assert len(fetching.fetch("small", root=tmp_path)) == 2


def test_names_and_folders_that_are_not_there(server, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="name: expected one of .*doc_pairs, .*, got 'wikipedia'"):
        fetching.fetch("wikipedia", root=tmp_path)
    with pytest.raises(ValueError, match="file: expected one of one.txt, two.txt, got 'three.txt'"):
        fetching.address("small", "three.txt")
    with pytest.raises(data.MissingCorpus, match="^JAXSIM_DATA: expected the folder of the corpora"):
        fetching.fetch("small")
    monkeypatch.setenv("JAXSIM_DATA", str(tmp_path / "unmounted"))
    with pytest.raises(data.MissingCorpus, match="^JAXSIM_DATA: expected an existing folder"):
        fetching.fetch("small")
    assert not list(tmp_path.iterdir()) and not server.asked


def test_folders_that_cannot_be_written(server, tmp_path, monkeypatch):
    (tmp_path / "small").write_text("a file in the folder's place")
    with pytest.raises(FileExistsError) as facts:
        fetching.fetch("small", root=tmp_path)
    assert facts.value.filename == str(tmp_path / "small")
    (tmp_path / "small").unlink()

    def refuse(*_, dir, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), f"{dir}/tmp123")

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", refuse)
    with pytest.raises(PermissionError) as facts:
        fetching.fetch("small", root=tmp_path)
    assert (facts.value.strerror, facts.value.filename) == ("Permission denied", str(tmp_path / "small" / "one.txt"))
    assert not left(tmp_path)


def test_a_full_disk_leaves_nothing(server, tmp_path, monkeypatch):
    def fill(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(fetching.files, "sha256", fill)
    with pytest.raises(OSError, match="No space left on device") as facts:
        fetching.fetch("small", root=tmp_path)
    assert facts.value.filename == str(tmp_path / "small" / "one.txt") and not left(tmp_path)


@pytest.mark.parametrize("progress", [True, False])
def test_nothing_is_printed_off_a_terminal(progress, server, tmp_path, capfd, monkeypatch):
    logged = []
    monkeypatch.setattr(pooch.get_logger(), "handle", logged.append)
    fetching.fetch("small", root=tmp_path, progress=progress)
    assert capfd.readouterr() == ("", "") and not logged


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("progress", [True, False])
def test_a_bar_counts_bytes_on_a_terminal(progress, server, tmp_path, monkeypatch):
    bars = []
    make = downloads.bar

    def keep(*arguments):
        bars.append(make(*arguments))
        assert bars[-1].disable is not progress
        return bars[-1]

    monkeypatch.setattr(downloads, "bar", keep)
    monkeypatch.setattr(sys, "stderr", Terminal())
    fetching.fetch("small", root=tmp_path, progress=progress)
    counted = [len(ONE), len(TWO)] if progress else [0, 0]
    assert [bar.n for bar in bars] == counted
