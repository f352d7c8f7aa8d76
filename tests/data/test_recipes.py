"""Corpora made of public repositories: right contents or nothing, from small repositories that the tests make."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import io
import os
import shutil
import subprocess
import tarfile
import threading

import pytest

from jaxsim.data import catalogue, fetching, git, packing, recipes

URL = "https://example.org/small/texts"
FILES = {"texts/a.txt": b"one\n", "texts/deep/b.txt": b"two\n", "texts/c.bin": b"\0", "other/d.txt": b"three\n"}


def run(folder, *words):
    done = subprocess.run(["git", "-C", folder, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def digest(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository that git finds at `URL`."""
    folder = tmp_path / "repository"
    folder.mkdir()
    settings = tmp_path / "gitconfig"
    settings.write_text(f'[user]\nname = a\nemail = a@example.org\n[url "{folder}"]\ninsteadOf = {URL}\n'
                        "[uploadpack]\nallowFilter = true\nallowAnySHA1InWant = true\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.delenv("JAXSIM_DATA_URL", raising=False)
    run(folder, "init", "--quiet")
    for path, body in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(body)
    os.symlink("/etc/passwd", folder / "texts" / "link.txt")
    run(folder, "add", "-A")
    run(folder, "commit", "--quiet", "-m", "texts")
    return folder


@pytest.fixture
def corpus(repository, monkeypatch):
    """A corpus of a copy and an archive of the repository's commit."""
    source = git.Source("texts", URL, run(repository, "rev-parse", "HEAD"), ("texts",), ("*.txt",), 0.1)
    archive = hashlib.sha256()
    for path in ("t/a.txt", "t/deep/b.txt"):
        body = FILES["texts" + path[1:]]
        archive.update(f"{path}\0{len(body)}\0".encode() + body)
    made = catalogue.Corpus(
        "small", "two texts", "example.org", "none", {"a.txt.gz": "0" * 64, "in/all.tar.xz": "1" * 64}, megabytes=0.1,
        contents={"a.txt.gz": digest(b"one\n"), "in/all.tar.xz": archive.hexdigest()},
        ways={"a.txt.gz": {"copy": "texts:texts/a.txt"}, "in/all.tar.xz": {"tar": "texts:texts/", "as": "t/"}},
        sources=(source,),
    )  # fmt: skip
    monkeypatch.setitem(catalogue.CORPORA, "small", made)
    return made


def change(monkeypatch, corpus, **changes):
    source = dataclasses.replace(corpus.sources[0], **changes)
    monkeypatch.setitem(catalogue.CORPORA, "small", dataclasses.replace(corpus, sources=(source,)))


def left(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_corpus_is_made_of_the_commit_and_nothing_else_is_kept(corpus, repository, tmp_path):
    run(repository, "rm", "--quiet", "-r", "texts")  # the branch moves on
    run(repository, "commit", "--quiet", "-m", "gone")
    root = tmp_path / "data"
    copy, archive = fetching.fetch("small", root=root, progress=False)
    assert gzip.decompress(copy.read_bytes()) == b"one\n"
    with tarfile.open(archive) as members:
        assert members.getnames() == ["t/a.txt", "t/deep/b.txt"]  # no link, no other kind of file
    assert left(root) == ["small/NOTICE.jaxsim.txt", "small/a.txt.gz", "small/in/all.tar.xz"]
    assert not (root / ".fetch").exists()
    assert [one.state for one in catalogue.status("small", root / "small")] == ["verified"] * 2
    assert catalogue.digest("small", "a.txt.gz", copy) == "0" * 64
    shutil.rmtree(repository)
    assert fetching.fetch("small", root=root) == [copy, archive]  # nothing to transfer


def test_only_the_files_asked_for_are_transferred(corpus, tmp_path):
    fetching.fetch("small", root=tmp_path / "data", progress=False, cache=tmp_path / "cache")
    store = tmp_path / "cache" / "small" / "texts.git"
    bodies = {path: body for path, body in git.read(corpus.sources[0], store)}
    assert bodies == {"texts/a.txt": b"one\n", "texts/deep/b.txt": b"two\n"}
    assert hashlib.sha1(b"blob 6\0three\n").hexdigest() not in git._objects(store)
    assert hashlib.sha1(b"blob 4\0one\n").hexdigest() in git._objects(store)


def test_many_files_are_read_in_batches(corpus, repository, tmp_path, monkeypatch):
    monkeypatch.setattr(git, "_BATCH", 3)
    for number in range(20):
        (repository / "texts" / f"{number:02}.txt").write_text(f"{number}\n")
    run(repository, "add", "-A")
    run(repository, "commit", "--quiet", "-m", "more")
    source = dataclasses.replace(corpus.sources[0], commit=run(repository, "rev-parse", "HEAD"))
    git.fetch(source, tmp_path / "store", progress=False)
    assert len(dict(git.read(source, tmp_path / "store"))) == 22


@pytest.mark.parametrize(("changes", "message"), [
    ({"commit": "0" * 40}, "expected the commit 0{40}, got no transfer"),
    ({"commit": "main"}, "commit: expected a full name, 40 hexadecimal digits, got 'main'"),
    ({"paths": ("texts", "nowhere")}, "expected the path nowhere, got a commit without it"),
    ({"match": ("*.md",)}, r"expected files like \*\.md, got none"),
    ({"url": "file:///nowhere/at/all"}, "file:///nowhere/at/all: expected the commit"),
])  # fmt: skip
def test_sources_that_are_not_as_declared(changes, message, corpus, tmp_path, monkeypatch):
    change(monkeypatch, corpus, **changes)
    with pytest.raises((ConnectionError, ValueError), match=message):
        fetching.fetch("small", root=tmp_path / "data", progress=False)
    assert not left(tmp_path / "data" / "small")


def test_history_that_was_pushed_over(corpus, repository, tmp_path):
    run(repository, "commit", "--quiet", "--amend", "-m", "other")
    run(repository, "-c", "gc.reflogExpire=now", "reflog", "expire", "--expire=now", "--all")
    run(repository, "gc", "--quiet", "--prune=now")
    with pytest.raises(ConnectionError, match="expected the commit .*not our ref"):
        fetching.fetch("small", root=tmp_path / "data", progress=False)
    assert not left(tmp_path / "data" / "small")


def test_other_contents_are_not_kept(corpus, tmp_path, monkeypatch):
    wrong = dataclasses.replace(corpus, contents=corpus.contents | {"in/all.tar.xz": "f" * 64})
    monkeypatch.setitem(catalogue.CORPORA, "small", wrong)
    with pytest.raises(ValueError, match=r"all\.tar\.xz from example\.org: expected content of SHA-256 f+, got \w+; n"):
        fetching.fetch("small", root=tmp_path / "data", progress=False)
    assert left(tmp_path / "data") == ["small/a.txt.gz"]


def test_no_git(corpus, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="git: expected the program git, .*git-scm"):
        fetching.fetch("small", root=tmp_path / "data", progress=False)


def test_no_room(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 0))
    with pytest.raises(OSError, match="No space left on device: expected 101 MB free for small, got 0 MB"):
        fetching.fetch("small", root=tmp_path / "data", progress=False)
    assert not left(tmp_path / "data")


def test_an_interrupted_fetch_goes_on(corpus, tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    root = tmp_path / "data"
    with monkeypatch.context() as patch:
        patch.setattr(fetching, "_contents", stop)
        with pytest.raises(KeyboardInterrupt):
            fetching.fetch("small", root=root, progress=False)
    assert not left(root / "small") and (root / ".fetch" / "small" / "texts.git").is_dir()
    (root / ".fetch" / "small" / "texts.git" / "objects" / "pack" / "tmp_pack_x").write_bytes(b"half")
    seen, call = [], git._run
    monkeypatch.setattr(git, "_run", lambda *words, **rest: seen.append(words[2]) or call(*words, **rest))
    assert len(fetching.fetch("small", root=root, progress=False)) == 2
    assert "fetch" not in seen and not (root / ".fetch").exists()  # all was there


def test_a_transfer_that_was_interrupted_goes_on_with_what_lacks(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(git, "_BATCH", 1)
    call, asked = git._run, []

    def break_off(source, folder, *words, stdin=""):
        if stdin:
            asked.append(stdin.strip())
            if len(asked) == 2:
                raise KeyboardInterrupt
        return call(source, folder, *words, stdin=stdin)

    monkeypatch.setattr(git, "_run", break_off)
    root = tmp_path / "data"
    with pytest.raises(KeyboardInterrupt):
        fetching.fetch("small", root=root, progress=False)
    assert not left(root / "small")
    assert len(fetching.fetch("small", root=root, progress=False)) == 2
    first, second, again = asked  # the file that had come was not asked for any more
    assert again == second != first and not (root / ".fetch").exists()


def test_two_fetches_at_once(corpus, tmp_path, monkeypatch):
    results, transfers, fetch = [], [], git.fetch
    monkeypatch.setattr(git, "fetch", lambda *words, **rest: transfers.append(words) or fetch(*words, **rest))
    threads = [threading.Thread(target=lambda: results.append(fetching.fetch("small", root=tmp_path / "data",
                                                                             progress=False))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 2 and results[0] == results[1] and len(transfers) == 1
    assert not (tmp_path / "data" / ".fetch").exists()


def test_a_file_put_there_by_hand_is_compressed(corpus, repository, tmp_path):
    folder = tmp_path / "data" / "small"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_bytes(b"one\n")
    fetching.fetch("small", root=tmp_path / "data", progress=False)
    assert gzip.decompress((folder / "a.txt.gz").read_bytes()) == b"one\n"
    (folder / "a.txt.gz").unlink()
    (folder / "a.txt").write_bytes(b"mine\n")
    with pytest.raises(ValueError, match="expected content of SHA-256"):
        fetching.fetch("small", root=tmp_path / "data", progress=False)
    assert not (folder / "a.txt.gz").exists()


def test_contents_do_not_depend_on_the_compression(tmp_path):
    records = [(b'{"id": "a", "text": "\xc3\xa4"}\n', 9), (b'{"text":"\\u00e4","id":"a"}', 1)]
    for number, (content, level) in enumerate(records):
        (tmp_path / f"{number}.jsonl.gz").write_bytes(gzip.compress(content, level))
    assert packing.content_digest(tmp_path / "0.jsonl.gz") == packing.content_digest(tmp_path / "1.jsonl.gz")
    (tmp_path / "1.jsonl.gz").write_bytes(gzip.compress(b'{"id": "a", "text": "b"}'))
    assert packing.content_digest(tmp_path / "0.jsonl.gz") != packing.content_digest(tmp_path / "1.jsonl.gz")
    (tmp_path / "x.txt.gz").write_bytes(gzip.compress(b"x" * 9999)[:-9])
    with pytest.raises(ValueError, match=r"x\.txt\.gz: expected a whole \.gz file, got a damaged"):
        packing.content_digest(tmp_path / "x.txt.gz")


def test_every_way_names_a_source_or_a_recipe():
    for corpus in catalogue.CORPORA.values():
        sources = {source.name for source in corpus.sources}
        assert len(sources) == len(corpus.sources)
        for way in corpus.ways.values():
            if "made" in way:
                assert way["made"] in recipes.RECIPES and set(way.get("of", sources)) <= sources
            else:
                assert (way.get("copy") or way["tar"]).partition(":")[0] in sources


def test_messages_of_a_gettext_catalogue():
    body = ('msgid ""\nmsgstr "head"\n\n#: a\nmsgid "one "\n"two"\nmsgstr "uno\\n"\n"dos"\n\n'
            '#, fuzzy\nmsgid "x"\nmsgstr "y"\n\n#~ msgid "old"\n#~ msgstr "viejo"\n')
    assert list(recipes._messages(body)) == [("", "head"), ("one two", "uno\ndos")]


def test_no_manifest_is_large():
    folder = os.path.join(os.path.dirname(recipes.__file__), "manifests")
    assert all(os.path.getsize(os.path.join(folder, name)) <= 300_000 for name in os.listdir(folder))


def package(members):
    """A Debian package of the given files, and of what else its archive holds."""
    inner = io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w:xz") as tar:
        for name, body in members.items():
            member = tarfile.TarInfo(name)
            if body is None:
                member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
            else:
                member.size = len(body)
            tar.addfile(member, body and io.BytesIO(body))
    head = f"{'data.tar.xz':<16}{'0':<12}{'0':<6}{'0':<6}{'100644':<8}{len(inner.getvalue()):<10}`\n".encode()
    return b"!<arch>\n" + head + inner.getvalue()


def test_a_corpus_of_a_package(server, tmp_path, monkeypatch):
    """What a package holds beside the files wanted, and where it says that they belong, does not matter."""
    body = package({"./usr/share/wordnet/data.noun": b"nouns\n", "./usr/share/wordnet/../../../outside": b"x",
                    "./usr/share/wordnet/index.verb": None, "/etc/cron.d/x": b"x",
                    "./usr/share/doc/wordnet-base/copyright": b"free\n"})
    server.bodies["/second/w.deb"] = body
    addresses = (f"{server.url}/first/w.deb", f"{server.url}/second/w.deb")
    source = catalogue.Archive("package", addresses, digest(body), 0.1)
    files = {"COPYRIGHT": b"free\n", "data.noun.gz": b"nouns\n"}
    made = catalogue.Corpus("small", "words", "example.org", "free", dict.fromkeys(files, "0" * 64), megabytes=0.1,
                            contents={name: digest(text) for name, text in files.items()},
                            ways=dict.fromkeys(files, {"made": "wordnet"}), sources=(source,))
    monkeypatch.setitem(catalogue.CORPORA, "small", made)
    root = tmp_path / "data"
    fetching.fetch("small", root=root, progress=False)
    assert left(tmp_path) == ["data/small/COPYRIGHT", "data/small/NOTICE.jaxsim.txt", "data/small/data.noun.gz"]
    assert server.asked == ["/first/w.deb", "/second/w.deb"]  # the first address has it no more
    shutil.rmtree(root)
    server.bodies["/second/w.deb"] = package({"usr/share/wordnet/data.noun": b"other\n"})
    with pytest.raises(ValueError, match=r"w\.deb: expected a file with SHA-256"):
        fetching.fetch("small", root=root, progress=False)
    assert not left(tmp_path)


def test_a_package_that_is_none():
    for body in (b"", b"!<arch>\n", b"<html>"):
        with pytest.raises(ValueError, match="expected a whole Debian package"):
            packing.deb_members(body)
