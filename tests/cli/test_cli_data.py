"""`jaxsim data`: what is told of corpora and their files, and downloads from a server on this machine."""

from __future__ import annotations

import dataclasses
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
    monkeypatch.setitem(catalogue.CORPORA, "other", dataclasses.replace(corpus(), name="other"))
    rows = {line.split()[0]: line for line in run(capsys, "data", "--root", place).splitlines()}
    assert set(rows) == {*catalogue.CORPORA}
    assert rows["word_frequency"].split()[1:9] == ["missing", "0.7", "MB", "fetch:", "1", "MB", "from", "github.com"]
    assert "1500 MB  fetch: 1500 MB from www.statmt.org" in rows["europarl_release"]
    assert "  no address " in rows["other"] and rows["other"].endswith("two small files [none]")
    listed = {row["name"]: row for row in json.loads(run(capsys, "data", "--root", place, "--json"))["corpora"]}
    assert listed["docstrings"]["state"] == "installed" and listed["docstrings"]["can_fetch"] is False
    assert listed["europarl_release"]["can_fetch"] is True and listed["other"]["can_fetch"] is False
    assert listed["word_frequency"]["from"] == ["https://github.com/RyanMcG/authorate"]
    assert listed["word_frequency"]["licence"] and listed["crowdflower_search"]["terms"]
    monkeypatch.setenv("JAXSIM_DATA_URL", "http://127.0.0.1")
    lines = [line for line in run(capsys, "data").splitlines() if "installed" not in line]
    assert all("from 127.0.0.1" in line for line in lines)


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
    assert err == (f"small: downloads about 0 MB from {server.url}/public/one.txt and 1 more (1 min at 10 Mbit/s), "
                   f"keeps 0 MB in {place}/small, needs 98 MB of disk\n")
    assert server.asked == ["/public/two.txt"]
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
    monkeypatch.setitem(catalogue.CORPORA, "other", dataclasses.replace(corpus(), name="other"))
    assert f"into {tmp_path}/other, or set" in refused(capsys, "data", "other", "--fetch", "--root", tmp_path)
    assert refused(capsys, "data", "small", "--fetch-all") == (
        "--fetch-all: expected no name of a corpus before it, got 'small'")
    assert refused(capsys, "data", "--cache", tmp_path) == (
        "--cache: expected --fetch or --fetch-all beside it, got neither")
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


def test_fetch_all_goes_on_after_a_failure(server, tmp_path, capsys, monkeypatch):
    broken = dataclasses.replace(corpus(server.url + "/none"), name="broken", megabytes=1.0)
    monkeypatch.setattr(catalogue, "CORPORA", {"broken": broken, "small": corpus(server.url)})
    server.bodies = {path: body for path, body in server.bodies.items() if path.startswith("/public")}
    assert cli.main(["data", "--fetch-all", "--root", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == "verified: small" and out.splitlines()[1].startswith("failed: broken  http")
    assert err.splitlines()[-1] == "jaxsim: corpora: expected all fetched, got broken that could not be"
    monkeypatch.delitem(catalogue.CORPORA, "broken")
    assert json.loads(run(capsys, "data", "--fetch-all", "--root", tmp_path, "--json")) == {
        "corpora": [{"name": "small", "state": "verified", "error": None}]}


def test_verify_looks_at_what_is_here(place, capsys):
    assert run(capsys, "data", "--verify", "--root", place) == "small: 1 verified, 1 missing\n"
    (place / "small" / "two.txt").write_bytes(b"changed")
    assert cli.main(["data", "--verify", "--root", str(place)]) == 2
    out, err = capsys.readouterr()
    assert out == "small: 1 verified, 1 wrong\n"
    assert err.endswith("expected all verified, got small that could not be\n")
