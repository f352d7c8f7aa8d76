"""`jaxsim data`: what is told of corpora and their files, and downloads from a server on this machine."""

from __future__ import annotations

import hashlib
import json

import pytest
from command_line import refused, run
from local_server import ONE, TWO, corpus

from jaxsim import cli
from jaxsim.data import catalogue

DIGESTS = [hashlib.sha256(body).hexdigest() for body in (ONE, TWO)]


@pytest.fixture
def place(server, tmp_path):
    """A data folder in which one of two files is there, and right."""
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "one.txt").write_bytes(ONE)
    return tmp_path


def test_the_list_says_what_is_here_and_what_can_be_fetched(place, capsys, monkeypatch):
    monkeypatch.setitem(catalogue.CORPORA, "other", corpus())
    rows = {line.split()[0]: line for line in run(capsys, "data", "--root", place).splitlines()}
    assert set(rows) == {*catalogue.CORPORA} - {"other"}
    assert rows["mdn"].split(maxsplit=4)[1:4] == ["missing", "no", "address"]
    assert "europarl_release       missing    can be fetched" in rows["europarl_release"]
    listed = {row["name"]: row for row in json.loads(run(capsys, "data", "--root", place, "--json"))["corpora"]}
    assert listed["docstrings"]["state"] == "installed" and listed["docstrings"]["can_fetch"] is False
    assert listed["europarl_release"]["can_fetch"] is True and listed["mdn"]["can_fetch"] is False
    monkeypatch.setenv("JAXSIM_DATA_URL", "http://127.0.0.1")
    assert all("can be fetched" in line for line in run(capsys, "data").splitlines() if "installed" not in line)


def test_a_corpus_shows_every_file(place, server, capsys):
    lines = run(capsys, "data", "small", "--root", place).splitlines()
    assert lines == [
        "title: two small files", "source: example.org/texts", "licence: none",
        f"fetch: from {server.url}/public/one.txt and 1 more",
        f"verified: {place}/small/one.txt  SHA-256 {DIGESTS[0]}",
        f"missing: {place}/small/two.txt  SHA-256 {DIGESTS[1]}",
    ]  # fmt: skip
    lines = run(capsys, "data", "small").splitlines()
    assert lines[-2:] == [f"missing: one.txt  SHA-256 {DIGESTS[0]}", f"missing: two.txt  SHA-256 {DIGESTS[1]}"]
    shown = json.loads(run(capsys, "data", "small", "--root", place, "--json"))
    assert shown["folder"] == str(place / "small") and shown["can_fetch"] is True
    assert shown["files"][1] == {
        "file": "two.txt", "state": "missing", "fetched": False, "expected_sha256": DIGESTS[1], "sha256": None,
        "address": f"{server.url}/public/two.txt",
    }  # fmt: skip
    assert not server.asked


def test_a_wrong_file_is_told_beside_the_others_and_refused(place, capsys):
    (place / "small" / "two.txt").write_bytes(b"changed")
    assert cli.main(["data", "small", "--root", str(place)]) == 2
    out, err = capsys.readouterr()
    assert f"verified: {place}/small/one.txt" in out and f"wrong: {place}/small/two.txt" in out
    assert err.startswith(f"jaxsim: {place}/small/two.txt: expected SHA-256 {DIGESTS[1]}, got ")
    assert err.count("\n") == 1
    assert "nothing was fetched, remove" in refused(capsys, "data", "small", "--root", place, "--fetch")


def test_fetch_downloads_what_is_missing(place, server, capsys):
    assert cli.main(["data", "small", "--root", str(place), "--fetch"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[-2:] == [
        f"verified: {place}/small/one.txt  SHA-256 {DIGESTS[0]}",
        f"fetched: {place}/small/two.txt  SHA-256 {DIGESTS[1]}",
    ]
    assert not err and server.asked == ["/public/two.txt"]
    again = json.loads(run(capsys, "data", "small", "--root", place, "--fetch", "--json"))
    assert [(one["state"], one["fetched"]) for one in again["files"]] == [("verified", False)] * 2
    assert len(server.asked) == 1


def test_a_new_folder_is_not_taken_for_the_one_of_the_environment(place, capsys, monkeypatch):
    monkeypatch.setenv("JAXSIM_DATA", str(place))
    shown = json.loads(run(capsys, "data", "small", "--root", place / "new", "--fetch", "--json"))
    assert shown["folder"] == str(place / "new" / "small")
    assert [one["fetched"] for one in shown["files"]] == [True, True]


def test_the_digest_of_a_download_without_checksum_is_printed(server, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(catalogue.CORPORA, "small", corpus(server.url, files={"one.txt": None}))
    assert run(capsys, "data", "small").splitlines()[-1] == (
        "missing: one.txt  no checksum known: the digest of the download is printed")
    for state in ("fetched", "present"):
        assert run(capsys, "data", "small", "--fetch", "--root", tmp_path / "new").splitlines()[-1] == (
            f"{state}: {tmp_path}/new/small/one.txt  no checksum known; SHA-256 {DIGESTS[0]}")


def test_failures_are_one_line(server, tmp_path, capsys, monkeypatch):
    assert refused(capsys, "data", "--fetch") == "--fetch: expected the name of a corpus before it, got none"
    assert "got 'wikipedia'" in refused(capsys, "data", "wikipedia", "--fetch", "--root", tmp_path)
    assert "JAXSIM_DATA: expected the folder" in refused(capsys, "data", "small", "--fetch")
    place = tmp_path / "taken"
    place.write_text("a file")
    assert refused(capsys, "data", "small", "--fetch", "--root", place) == f"{place}/small: Not a directory"
    assert f"into {tmp_path}/mdn, or set" in refused(capsys, "data", "mdn", "--fetch", "--root", tmp_path)
    server.missing_bytes = 1
    assert "got a part of it" in refused(capsys, "data", "small", "--fetch", "--root", tmp_path)
    server.bodies = {}
    assert refused(capsys, "data", "small", "--fetch", "--root", tmp_path) == (
        f"{server.url}/public/one.txt: expected the file, got HTTP status 404 (Not Found)")
    monkeypatch.setenv("JAXSIM_DATA_URL", "mirror")
    assert refused(capsys, "data").startswith("JAXSIM_DATA_URL: expected an address that begins with http://")
    assert not list((tmp_path / "small").iterdir())


def test_a_corpus_of_no_files_has_nothing_to_fetch(server, tmp_path, capsys):
    shown = run(capsys, "data", "docstrings", "--fetch", "--root", tmp_path)
    assert shown.splitlines()[-1] == "fetch: nothing to fetch: the texts are read from the installed packages"
