"""Model folders: bit-identical round trips, and nothing good is lost whatever goes wrong."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from jaxsim import io
from jaxsim.data.corpora import sentences
from jaxsim.model import folders

TENSORS = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "df": np.array([1, 2])}
WORDS = ["élan", "日本", "\udc80", 'quote"', "ß"]


def save(folder, **changes):
    given = {"tensors": TENSORS, "config": {"dim": 3}, "vocabulary": WORDS, "card": "# card\n"} | changes
    return folders.save(folder, **given)


def test_what_is_saved_is_loaded_bit_for_bit(tmp_path):
    tensors, config, vocabulary = folders.load(save(tmp_path / "deep" / "model"))
    assert vocabulary == WORDS and config["dim"] == 3 and config["format"] == 1
    for name, array in TENSORS.items():
        assert tensors[name].dtype == array.dtype
        np.testing.assert_array_equal(tensors[name], array)
    assert sorted(path.name for path in (tmp_path / "deep").iterdir()) == ["model"]


def test_an_older_model_is_replaced_and_nothing_else_is(tmp_path):
    save(tmp_path / "model")
    save(tmp_path / "model", config={"dim": 4})
    assert folders.load(tmp_path / "model")[1]["dim"] == 4
    (tmp_path / "empty").mkdir()
    save(tmp_path / "empty")
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.txt").write_text("years of work")
    (tmp_path / "file").write_text("a file")
    for place in ("thesis", "file"):
        with pytest.raises(ValueError, match="out: expected a new folder, or one that holds an older model"):
            save(tmp_path / place)
    assert (tmp_path / "thesis" / "chapter1.txt").read_text() == "years of work"
    assert sorted(os.listdir(tmp_path)) == ["empty", "file", "model", "thesis"]


@pytest.mark.parametrize("names", [["notes.md"], ["deep/pairs.tsv"], [".git/HEAD"], ["a", "b", "c", "d"]])
def test_files_of_others_in_a_model_folder_are_not_lost(tmp_path, names):
    place = save(tmp_path / "model")
    for name in names:
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text("mine")
    (place / ".DS_Store").write_text("litter")
    facts = ", ".join(names[:3]) + ", …" * (len(names) > 3)
    message = re.escape(f"out: expected nothing in {place} but the older model (it would be lost), got {facts}") + "$"
    for write in (save, io.check_place):
        with pytest.raises(ValueError, match=message):
            write(place)
    assert all((place / name).read_text() == "mine" for name in names) and folders.load(place)[1]["dim"] == 3
    for name in names:
        (place / name).unlink()
    assert folders.load(save(place, config={"dim": 4}))[1]["dim"] == 4 and os.listdir(tmp_path) == ["model"]


def test_the_working_folder_is_not_taken_from_under_anybody(tmp_path, monkeypatch):
    (tmp_path / "model").mkdir()
    monkeypatch.chdir(tmp_path / "model")
    for out in (".", tmp_path / "model", "../model"):
        with pytest.raises(ValueError, match="out: expected a folder other than the working one .*, got"):
            save(out)
    monkeypatch.chdir(tmp_path)
    assert save("model").name == "model" and folders.load("model")[1]["dim"] == 3


@pytest.mark.parametrize("marker", [b"[" * 100_000, b'{"library": "jaxsim", "x": ' + b"[" * 100_000, b"\xff"])
def test_a_marker_that_cannot_be_read_is_not_one_of_ours(tmp_path, marker):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / folders.CONFIG).write_bytes(marker)
    for write in (save, io.check_place):
        with pytest.raises(ValueError, match="out: expected a new folder, or one that holds an older model of ours"):
            write(tmp_path / "model")
    assert (tmp_path / "model" / folders.CONFIG).read_bytes() == marker


@pytest.mark.parametrize("files", [3, None, ["notes.md"]])
def test_a_marker_says_which_files_are_ours(tmp_path, files):
    place = tmp_path / "export"
    place.mkdir()
    (place / "marker.json").write_text(json.dumps({"library": "jaxsim", "files": files}))
    (place / "notes.md").write_text("")
    if files == ["notes.md"]:
        assert io.replace_folder(place, {"new": b""}, marker="marker.json") == place and os.listdir(place) == ["new"]
    else:
        with pytest.raises(ValueError, match=r"expected nothing in .* but the older export .*, got notes.md"):
            io.replace_folder(place, {"new": b""}, marker="marker.json", what="export")


def test_a_folder_that_another_process_takes_away_while_it_is_looked_at_is_written_anew(tmp_path, monkeypatch):
    place, marker = tmp_path / "export", {"marker.json": json.dumps({"library": "jaxsim"}).encode()}
    io.replace_folder(place, marker, marker="marker.json")
    scan, looks = os.scandir, []

    def slow(path="."):
        looks.append(path)
        if len(looks) == 1:
            place.rename(tmp_path / "taken")  # as another process that replaces it
        return scan(path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", slow)
        io.replace_folder(place, marker, marker="marker.json")
    assert looks and os.listdir(place) == ["marker.json"]


def test_a_failed_write_leaves_the_older_model(tmp_path, monkeypatch):
    save(tmp_path / "model")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save(tmp_path / "model", config={"dim": 4})
    monkeypatch.undo()
    assert folders.load(tmp_path / "model")[1]["dim"] == 3
    assert os.listdir(tmp_path) == ["model"]


def test_what_is_called_an_older_model_is_whole(tmp_path, monkeypatch):
    save(tmp_path / "model")
    removed = []
    monkeypatch.setattr(io.shutil, "rmtree", lambda path, **_: removed.append(path))  # as if killed
    save(tmp_path / "model", config={"dim": 4})
    left = [path.name for path in tmp_path.iterdir() if path.name != "model"]
    assert len(left) == 1 and left[0].endswith(".part") and removed[-1].name == left[0]


@pytest.mark.programs
def test_kill_9_in_the_middle_of_saving_leaves_a_whole_model(tmp_path):
    save(tmp_path / "model")
    program = (
        "import sys, numpy as np\nfrom jaxsim.model import folders\nprint('ready', flush=True)\n"
        "tensors = {'a': np.ones((300, 300))}\n"
        "while True: folders.save(sys.argv[1], tensors=tensors, config={'dim': 9}, vocabulary=['x'], card='')"
    )
    with subprocess.Popen([sys.executable, "-c", program, tmp_path / "model"], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        time.sleep(0.3)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL  # it was saving until then
    left = [path for path in tmp_path.iterdir() if path.name == "model" or path.suffix == ".old"]
    assert left
    assert all(folders.load(folder)[1]["dim"] in (3, 9) for folder in left)


@pytest.mark.parametrize("name", [folders.TENSORS, folders.VOCABULARY])
def test_missing_altered_and_truncated_files_are_named(tmp_path, name):
    path = save(tmp_path / "model") / name
    whole = path.read_bytes()
    for broken in (whole[:-1], whole[:-1] + b"x", b""):
        path.write_bytes(broken)
        with pytest.raises(ValueError, match=f"{name}: expected the file that was saved"):
            folders.load(tmp_path / "model")
    path.unlink()
    with pytest.raises(FileNotFoundError, match=f"{name}: expected a file of the model, got none"):
        folders.load(tmp_path / "model")


def config_of(folder, **changes):
    path = folder / folders.CONFIG
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_an_altered_configuration_is_refused_and_one_of_an_earlier_version_is_not(tmp_path):
    folder = save(tmp_path / "model", config={"dim": 3, "shares": (0.1, 1e-30), "by": {2: "è"}})
    assert folders.load(folder)[1]["by"] == {"2": "è"}
    config_of(folder, dim=4)
    with pytest.raises(ValueError, match="config.json: expected the configuration that was saved, got an altered one"):
        folders.load(folder)
    earlier = json.loads((folder / folders.CONFIG).read_text())
    (folder / folders.CONFIG).write_text(json.dumps({name: earlier[name] for name in earlier if name != "digest"}))
    assert folders.load(folder)[1]["dim"] == 4


@pytest.mark.parametrize(("changes", "message"), [
    ({"format": folders.FORMAT + 1}, f"format: expected 1 to .*newer jaxsim-text.*got {folders.FORMAT + 1}"),
    ({"format": "1"}, "format: expected 1 to"),
    ({"library": "other"}, 'expected a configuration with "library": "jaxsim"'),
    ({"files": {}}, "files: expected digests of"),
    ({"files": {folders.TENSORS: "", folders.VOCABULARY: "", "../x": ""}}, "files: expected digests of"),
])
def test_configurations_of_others_are_refused(tmp_path, changes, message):
    path = save(tmp_path / "model") / folders.CONFIG
    facts = {name: value for name, value in json.loads(path.read_text()).items() if name != "digest"}
    path.write_bytes(io.sealed(facts | changes))
    with pytest.raises(ValueError, match=message):
        folders.load(tmp_path / "model")


def test_places_without_a_model_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere: expected a model folder, got nothing"):
        folders.load(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="expected a model folder, got one without config.json"):
        folders.load(tmp_path)
    (tmp_path / folders.CONFIG).write_text("{")
    with pytest.raises(ValueError, match="config.json: expected JSON"):
        folders.load(tmp_path)


def test_a_place_is_checked_and_its_parents_are_made_only_with_the_model(tmp_path):
    io.check_place(tmp_path / "new" / "a" / "model")
    assert not os.listdir(tmp_path)
    (tmp_path / "file").write_text("")
    for write in (save, io.check_place):
        message = re.escape(f"{tmp_path}/file/model: expected a place in a folder, got one in a file ({tmp_path}/file)")
        with pytest.raises(ValueError, match=message):
            write(tmp_path / "file" / "model")
    assert save(tmp_path / "new" / "a" / "model").is_dir()


def test_of_two_writers_at_once_the_last_one_is_found(tmp_path, monkeypatch):
    place, rename, others = save(tmp_path / "model"), os.rename, []

    def slow(source, target):
        rename(source, target)
        if str(target).endswith(".old") and not others:  # in the instant without a folder another process puts its own
            others.append(save(place, config={"dim": 5}))

    monkeypatch.setattr(os, "rename", slow)
    save(place, config={"dim": 4})
    assert others and folders.load(place)[1]["dim"] == 4 and os.listdir(tmp_path) == ["model"]


def test_a_folder_that_another_writer_moves_away_is_no_error(tmp_path, monkeypatch):
    place, rename, exists, others = save(tmp_path / "model"), os.rename, Path.exists, []

    def seen(path, **given):
        there = exists(path, **given)
        if path == place and sys._getframe(1).f_code.co_name == "_put" and not others:
            others.append(rename(place, tmp_path / ".model.other"))
        return there

    monkeypatch.setattr(Path, "exists", seen)
    save(place, config={"dim": 4})
    assert others and folders.load(place)[1]["dim"] == 4 and sorted(os.listdir(tmp_path)) == [".model.other", "model"]
    others.clear()

    def told(path, what, told=io._told):
        found = told(path, what)
        if not others:
            others.append(found)
            return None  # as if it had been looked for in the instant between two renames
        return found

    monkeypatch.setattr(io, "_told", told)
    assert folders.load(save(place, config={"dim": 6}))[1]["dim"] == 6 and others


def test_a_model_that_another_process_replaces_is_read_whole(tmp_path, monkeypatch):
    place, read_bytes, swaps = save(tmp_path / "model"), Path.read_bytes, []

    def replaced(path):
        if path == place / folders.TENSORS and len(swaps) < 2:
            if not swaps:  # between its files
                swaps.append(save(place, tensors={"a": np.ones(4)}, config={"dim": 4}))
            else:  # and in the instant between two renames
                swaps.append(place.rename(tmp_path / ".model.1.a.old"))
        return read_bytes(path)

    def back(seconds):
        if (tmp_path / ".model.1.a.old").is_dir():
            (tmp_path / ".model.1.a.old").rename(place)

    monkeypatch.setattr(Path, "read_bytes", replaced)
    monkeypatch.setattr(io.time, "sleep", back)
    assert folders.load(place)[1]["dim"] == 4 and len(swaps) == 2
    digest = folders.digest(place)
    place.rename(tmp_path / ".model.1.a.old")
    assert folders.digest(place) == digest


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_who_may_read_what_is_written_is_as_the_umask_says(mask, tmp_path):
    before = os.umask(mask)
    try:
        io.write_bytes(tmp_path / "file", b"1")
        save(tmp_path / "model")
        sentences.build([("a", "one two. three four.")], tmp_path / "tokens")
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (*tmp_path.iterdir(), tmp_path / "model" / io.CONFIG)}
    assert modes == {"file": 0o666 & ~mask, "model": 0o777 & ~mask, "tokens": 0o777 & ~mask, io.CONFIG: 0o666 & ~mask}


def test_an_older_model_is_looked_for_by_its_name_alone(tmp_path):
    (tmp_path / ".model1.7.x.old").mkdir()
    (tmp_path / ".model[1].7.x.old").mkdir()
    with pytest.raises(FileNotFoundError, match=r"got nothing; an older model is at .*model\[1\]\.7\.x\.old"):
        folders.load(tmp_path / "model[1]")
    with pytest.raises(FileNotFoundError, match="got nothing$"):
        folders.load(tmp_path / "model?")


@pytest.mark.parametrize(("number", "refused"), [(errno.ENOLCK, False), (errno.ENOTSUP, False), (errno.EACCES, True)])
def test_where_the_file_system_has_no_locks_there_is_none(number, refused):
    class Lock:
        def acquire(self, timeout):
            raise OSError(number, os.strerror(number))

    if not refused:
        io.acquire(Lock())
        return
    with pytest.raises(PermissionError):
        io.acquire(Lock())
