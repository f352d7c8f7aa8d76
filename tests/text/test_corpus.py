"""Corpora on disk: the same vocabulary, counts and training as in memory; kills, other texts and damaged shards."""

import collections
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from command_line import waiting_pool

from jaxsim import io, sparse, text
from jaxsim.methods import s2net_sgd
from jaxsim.methods.s2net.exact import random_init
from jaxsim.text import corpus
from jaxsim.text.corpus_build import _Words, build
from jaxsim.text.corpus_words import count

WORDS = [f"word{i}" for i in range(400)] + ["été", "हिन्दी", "Groß"]


@pytest.fixture
def pairs(rng):
    """Pairs of texts with words by Zipf's law, some empty."""
    share = 1 / (1 + np.arange(len(WORDS)))

    def one():
        return " ".join(rng.choice(WORDS, rng.integers(0, 12), p=share / share.sum()))

    return [(one(), one()) for _ in range(700)]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A corpus of three shards of 20 documents, built once."""
    texts = [(f"{WORDS[i % 7]} {WORDS[i % 5]} {WORDS[i % 3]}", WORDS[i % 4] * (i % 3)) for i in range(60)]
    place = tmp_path_factory.mktemp("built")
    build(place, texts, shard_docs=20)
    return place


@pytest.fixture
def kept(built, tmp_path):
    """A copy of it."""
    return Path(shutil.copytree(built, tmp_path / "kept"))


def in_memory(pairs, **settings):
    sides = [[text.words(pair[side]) for pair in pairs] for side in (0, 1)]
    vocabulary = text.Vocabulary.build([*sides[0], *sides[1]], **settings)
    return vocabulary, [text.counts(side, vocabulary) for side in sides]


def same(found, pairs, **settings):
    vocabulary, sides = in_memory(pairs, **settings)
    assert found.vocabulary.terms == vocabulary.terms and found.vocabulary.num_docs == vocabulary.num_docs
    assert found.vocabulary.df.tolist() == vocabulary.df.tolist()
    for side, expected in zip(found.sides, sides, strict=True):
        assert (side.rows(slice(None)) != expected).nnz == 0
        assert side.lengths().tolist() == np.diff(expected.indptr).tolist()


@pytest.mark.parametrize("settings", [{}, {"drop_top": 3, "max_terms": 50, "min_df": 3}, {"max_terms": 7}])
def test_same_as_in_memory(tmp_path, pairs, settings):
    settings = {"drop_top": 0, "max_terms": 50_000, "min_df": 2, **settings}
    numbers = {name: np.int64(value) for name, value in ({"shard_docs": 64} | settings).items()}
    same(build(tmp_path / "c", pairs, **numbers), pairs, **settings)


def test_workers_change_nothing(tmp_path, pairs, monkeypatch):
    handed = []
    monkeypatch.setattr("jaxsim.text.corpus_build._BATCH", 100)
    monkeypatch.setattr("jaxsim.parallel.workers.ProcessPoolExecutor", waiting_pool(handed))
    one, two = (build(tmp_path / str(n), pairs, shard_docs=250, workers=n) for n in (1, 2))
    same(two, pairs, drop_top=0, max_terms=50_000, min_df=2)
    for path in sorted((tmp_path / "1").iterdir()):
        assert path.read_bytes() == (tmp_path / "2" / path.name).read_bytes(), path.name
    assert len(one.sides[0].shards) == 3 and handed


def test_more_workers_than_batches_change_nothing(tmp_path, pairs):
    same(build(tmp_path, pairs, workers=4), pairs, drop_top=0, max_terms=50_000, min_df=2)


def test_rows_in_any_order_and_batches(tmp_path, pairs):
    side = build(tmp_path, pairs, shard_docs=100).sides[1]
    everything = side.rows(slice(None))
    chosen = np.array([699, 0, 350, 350])
    assert (side.rows(chosen) != everything[chosen]).nnz == 0
    sizes = [batch.shape[0] for batch in side.batches(300)]
    assert sizes == [300, 300, 100] and side.rows([]).shape == (0, side.num_terms)
    with pytest.raises(ValueError, match=r"chosen: expected documents from 0 to 699, got \[700\]"):
        side.rows([3, 700])
    with pytest.raises(ValueError, match=r"got \[-1\]"):
        side.rows([-1])
    for wrong in (np.arange(700) < 3, [0.5], [[3]], 3):
        with pytest.raises(ValueError, match="chosen: expected a slice, or whole numbers"):
            side.rows(wrong)


class Stopped(Exception):
    pass


def until(pairs, number):
    yield from pairs[:number]
    raise Stopped


@pytest.mark.parametrize("limit", [5_000_000, 150])
def test_an_unfinished_corpus_goes_on(tmp_path, pairs, monkeypatch, limit):
    monkeypatch.setattr("jaxsim.text.corpus_build._BATCH", 40)
    settings = {"shard_docs": 100, "min_df": 1, "max_words": limit}
    for number in (150, 420):
        with pytest.raises(Stopped):
            build(tmp_path / "c", until(pairs, number), **settings)
        assert len(list((tmp_path / "c" / "reading").glob("*.json"))) == 1 + number // 100
    with pytest.raises(ValueError, match=r"expected a finished corpus .* got an unfinished one"):
        corpus.read(tmp_path / "c")
    build(tmp_path / "c", pairs, **settings)
    build(tmp_path / "whole", pairs, **settings)
    for path in sorted((tmp_path / "whole").iterdir()):
        assert path.read_bytes() == (tmp_path / "c" / path.name).read_bytes(), path.name


def remembering(texts, shard_docs, limit):
    """Terms and document frequencies where words are forgotten, the slow way."""
    frequency, df = collections.Counter(), collections.Counter()
    for start in range(0, len(texts), shard_docs):
        kept = sorted(frequency, key=lambda word: (-frequency[word], word))[:limit]
        frequency, df = ({word: counter[word] for word in kept} for counter in (frequency, df))
        frequency, df = collections.Counter(frequency), collections.Counter(df)
        for one in texts[start : start + shard_docs]:
            frequency.update(one.split())
            df.update(set(one.split()))
    terms = sorted(frequency, key=lambda word: (-frequency[word], word))
    return terms, [df[word] for word in terms]


@pytest.mark.parametrize("limit", [1, 40, 150, 1000])
def test_the_most_frequent_words_are_remembered_from_shard_to_shard(tmp_path, rng, limit):
    texts = [" ".join(rng.choice(WORDS, 9)) for _ in range(250)]
    found = build(tmp_path, texts, min_df=1, max_words=limit, shard_docs=60).vocabulary
    assert (list(found.terms), found.df.tolist()) == remembering([one.lower() for one in texts], 60, limit)


def test_words_of_equal_frequency_are_not_forgotten_together(tmp_path):
    texts = ["e a d b c", "f", "g"]
    assert build(tmp_path / "one", texts, min_df=1, max_words=3).vocabulary.terms == tuple("abcdefg")
    found = build(tmp_path / "three", texts, min_df=1, max_words=3, shard_docs=1).vocabulary
    assert found.terms == tuple("abcg")


def test_the_memory_of_words_does_not_grow_with_the_shards(tmp_path, monkeypatch):
    room, use = [], _Words.use
    monkeypatch.setattr(_Words, "use", lambda words, *counts: room.append(len(words.df)) or use(words, *counts))
    texts = [f"often rare{number} seldom{number}" for number in range(300)]
    build(tmp_path, texts, max_words=5, shard_docs=10, min_df=1)
    assert max(room) <= 2 * (5 + 2 * 10 + 1)


def test_more_words_than_have_numbers_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("jaxsim.text.corpus_build._NUMBERS", 5)
    with pytest.raises(ValueError, match=r"documents: expected at most 5 words, where .* \(take a larger max_words"):
        build(tmp_path, ["a b c", "d e f"], max_words=2, shard_docs=1)


def test_an_unfinished_corpus_that_forgot_other_words_does_not_go_on(tmp_path, pairs, monkeypatch):
    with monkeypatch.context() as patched, pytest.raises(Stopped):
        patched.setattr("jaxsim.text.corpus_build._Words.prune", lambda words: words.numbers.clear())
        build(tmp_path, until(pairs, 450), shard_docs=200)
    with pytest.raises(ValueError, match="00001.words: expected words that were not there before, got others; delete"):
        build(tmp_path, pairs, shard_docs=200)


@pytest.mark.programs
def test_a_killed_build_goes_on(tmp_path, pairs):
    (tmp_path / "pairs.json").write_text(json.dumps(pairs))
    program = (
        "import json, os, signal, sys\nfrom jaxsim.text.corpus_build import build\n"
        "def stream():\n"
        "    for i, pair in enumerate(json.load(open('pairs.json'))):\n"
        "        if i == 450: os.kill(os.getpid(), signal.SIGKILL)\n"
        "        yield pair\n"
        "if __name__ == '__main__': build('c', stream(), shard_docs=200)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    assert not list((tmp_path / "c").glob("*.json"))
    same(build(tmp_path / "c", pairs, shard_docs=200), pairs, drop_top=0, max_terms=50_000, min_df=2)


NOBODY = 2**22 + 1  # number of no process: systems number fewer


def left_over(folder, pid):
    """What a killed process of that number leaves in a folder, in files of any name."""
    (folder / "reading").mkdir(parents=True, exist_ok=True)
    names = (".corpus.json", "reading/.plan.json", "reading/.shard-00000-0-ends.npy", ".shard-00007-1-terms.npy")
    paths = [folder / f"{name}.{pid}.0123abcd.part" for name in names]
    for path in paths:
        path.write_bytes(b"half")
    return paths


@pytest.mark.parametrize("finished", [False, True])
def test_what_killed_builds_left_is_removed_and_what_others_write_is_not(tmp_path, pairs, finished):
    with pytest.raises(Stopped):
        build(tmp_path, until(pairs, 450), shard_docs=200)
    if finished:
        build(tmp_path, pairs, shard_docs=200)
    stale, others = left_over(tmp_path, NOBODY), left_over(tmp_path, os.getpid())
    stream = iter(pairs)

    def looked_at():  # while the build runs
        yield next(stream)
        yield next(stream)
        assert not any(path.exists() for path in stale)
        assert [path.exists() for path in others] == [not finished or path.parent == tmp_path for path in others]
        yield from stream

    build(tmp_path, looked_at(), shard_docs=200)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name[0] == "." or path.is_dir()) == sorted(
        path.name for path in others if path.parent == tmp_path)


def test_a_second_build_into_a_folder_is_refused_while_the_first_one_runs(tmp_path, pairs):
    def texts():
        for number, pair in enumerate(pairs):
            if number == 250:  # two shards are written
                with pytest.raises(ValueError, match="expected no other build into this folder, got one that is run"):
                    build(tmp_path, pairs, shard_docs=100)
            yield pair

    settings = {"drop_top": 0, "max_terms": 50_000, "min_df": 2}
    same(build(tmp_path, texts(), shard_docs=100, **settings), pairs, **settings)
    assert not (tmp_path / "reading").exists()


def test_a_full_disk_is_named_with_its_file(tmp_path, pairs, monkeypatch):
    def full(file, array):
        raise OSError(f"{array.size} requested and 0 written")  # as NumPy says it

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(OSError, match=r"ends.*: expected a disk that takes [\d,]+ bytes, got one that does not \("):
        build(tmp_path, pairs, shard_docs=100)


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path, pairs, monkeypatch):
    def full(file, array):
        file.write(b"half")
        raise OSError("no room")

    with monkeypatch.context() as patched, pytest.raises(OSError, match="no room"):
        patched.setattr("jaxsim.text.corpus_build.np.save", full)
        build(tmp_path, pairs)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["plan.json"]


def test_more_texts_than_those_that_were_counted_to_their_end_are_refused(tmp_path, pairs, monkeypatch):
    monkeypatch.setattr("jaxsim.text.corpus_build._BATCH", 40)
    with monkeypatch.context() as patched, pytest.raises(Stopped):
        patched.setattr("jaxsim.text.corpus_build._finish", lambda *_: next(until([], 0)))
        build(tmp_path, pairs[:180], shard_docs=100)
    for others in (pairs, pairs[:181]):
        with pytest.raises(ValueError, match="expected the texts counted .*, which end with shard 1, got more"):
            build(tmp_path, others, shard_docs=100)
    same(build(tmp_path, pairs[:180], shard_docs=100), pairs[:180], drop_top=0, max_terms=50_000, min_df=2)


def test_other_texts_or_settings_are_refused(tmp_path, pairs):
    with pytest.raises(Stopped):
        build(tmp_path, until(pairs, 450), shard_docs=200)
    changed = [*pairs[:150], ("new", "texts"), *pairs[151:]]
    with pytest.raises(ValueError, match="expected the texts of shard 0, counted before into .*, got others"):
        build(tmp_path, changed, shard_docs=200)
    with pytest.raises(ValueError, match="unfinished corpus of the same settings and texts, got min_df 2 there"):
        build(tmp_path, pairs, shard_docs=200, min_df=1)
    first = build(tmp_path, pairs, shard_docs=200)
    assert build(tmp_path, pairs, shard_docs=200).vocabulary.terms == first.vocabulary.terms
    with pytest.raises(ValueError, match="a corpus of the same settings and texts, got max_terms 50000 there"):
        build(tmp_path, pairs, shard_docs=200, max_terms=3)
    # Each of them has the first document of before, and the second the same documents in another order.
    for others, message in ((changed, "one of other texts; build it in a new folder, or open this one by corpus.read"),
                            ([*pairs[:7], pairs[8], pairs[7], *pairs[9:]], "one of other texts"),
                            (pairs[:-1], f"one of {len(pairs)} documents, not {len(pairs) - 1}; build it in a new")):
        with pytest.raises(ValueError, match=f"a corpus of the same settings and texts, got {message}"):
            build(tmp_path, others, shard_docs=200)


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([], "documents: expected at least one document, got none"),
        ([("a", "b"), ("a",)], r"documents: expected 2 texts in every document .*, got \('a',\) \(document 2\)"),
        (["a", None], r"documents: expected 1 texts in every document \(as in the first\), got None"),
        ([None], r"documents: expected 1 texts in every document \(as in the first\), got None"),
        ([()], "documents: expected at least one text in every document"),
        ("texts.txt", "documents: expected texts, got one string; a file's name is none of them"),
        (["a b c".split()], "languages: expected a code for every text where documents are lists of more .*, got none"),
    ],
)
def test_bad_documents(tmp_path, documents, message):
    with pytest.raises(ValueError, match=message):
        build(tmp_path, documents)


def test_a_string_is_not_a_sequence_of_languages(tmp_path):
    with pytest.raises(ValueError, match=r"languages: expected a sequence of codes, such as \('en',\), got a string"):
        build(tmp_path, [("a", "b")], languages="en")


def test_lists_of_more_than_two_texts_are_taken_with_their_languages(tmp_path):
    result = build(tmp_path, [["a dog", "un perro", "ein Hund"]], languages=("en", "es", "de"), min_df=1)
    assert len(result.sides) == 3 and len(result.vocabulary) == 6


def test_nothing_but_empty_texts(tmp_path):
    result = build(tmp_path, ["", " ", "\n"])
    assert len(result.vocabulary) == 0 and result.sides[0].rows(slice(None)).nnz == 0 and result.sides[0].num_docs == 3


def test_a_shard_without_a_word_among_others(tmp_path):
    result = build(tmp_path, ["a b", "b", "", "", "b a", "a"], shard_docs=2, min_df=1)
    assert result.sides[0].starts.tolist() == [0, 2, 4, 6]
    assert result.sides[0].rows([2, 1, 3]).toarray().sum(axis=1).tolist() == [0, 1, 0]
    assert [rows.nnz for rows in result.sides[0].batches(2)] == [3, 0, 3]


def test_damaged_shards(tmp_path, pairs):
    build(tmp_path, pairs, shard_docs=300)
    path = tmp_path / corpus.shard_file(1, 0, "counts")
    whole = path.read_bytes()
    for left in (len(whole) // 2, 0):
        path.write_bytes(whole[:left])
        with pytest.raises(ValueError, match=r"shard-00001-0-counts.npy: expected a whole shard .* got a truncated"):
            corpus.read(tmp_path)
    path.unlink()
    with pytest.raises(ValueError, match=r"shard-00001-0-counts.npy: expected a shard's file, got none"):
        corpus.read(tmp_path)


def edited(path, place, value):
    array = np.load(path)
    array[place] = value
    np.save(path, array)


def resealed(folder, *, earlier=False):
    """A corpus as somebody would hand it on who changed a file and knows the format; or one of format 1."""
    config = json.loads((folder / corpus.CONFIG).read_text())
    config = {name: value for name, value in config.items() if name != "digest"}
    if earlier:
        config = {name: value for name, value in config.items() if name not in ("files", "library", "texts")}
        config["format"] = 1
        (folder / corpus.CONFIG).write_text(json.dumps(config))
        return
    config["files"] = {name: corpus.seal(folder / name) for name in config["files"]}
    (folder / corpus.CONFIG).write_bytes(io.sealed(config))


def read_all(folder):
    return [side.rows(slice(None)) for side in corpus.read(folder).sides]


def test_a_corpus_of_the_first_format_is_read_as_ever(tmp_path, pairs):
    build(tmp_path, pairs, shard_docs=300)
    resealed(tmp_path, earlier=True)
    same(corpus.read(tmp_path), pairs, drop_top=0, max_terms=50_000, min_df=2)
    assert len(build(tmp_path, pairs, shard_docs=300).sides) == 2
    assert len(build(tmp_path, pairs[:9], shard_docs=300).sides) == 2  # which texts it has is not known


@pytest.mark.parametrize(("what", "place", "value", "message"), [
    ("ends", 5, 10**6, "ends.npy: expected row pointers that rise, got a fall after document"),
    ("ends", 5, -1, "ends.npy: expected row pointers that rise"),
    ("ends", 0, 1, "ends.npy: expected 20 documents and as many terms as counts"),
    ("ends", -1, 2**62, "ends.npy: expected 20 documents and as many terms as counts"),
    ("terms", 7, 2**31 - 1, r"terms.npy: expected columns from 0 to \d+, got 2147483647"),
    ("terms", 7, -1, r"terms.npy: expected columns from 0 to \d+, got -1"),
    ("terms", 8, 0, "terms.npy: expected columns that rise within each row"),
    ("counts", 3, 0, "counts.npy: expected counts of at least 1, got 0"),
])  # fmt: skip
@pytest.mark.parametrize("how", ["as it is", "sealed again", "format 1"])
def test_one_value_of_a_shard_is_never_read_in_silence(kept, what, place, value, message, how):
    name = corpus.shard_file(0, 0, what)
    edited(kept / name, place, value)
    if how != "as it is":
        resealed(kept, earlier=how == "format 1")
    opening = what == "ends" and place in (0, -1)
    if how == "as it is" and not opening:
        message = f"{name}: expected the file that was written, got an altered"
    with pytest.raises(ValueError, match=message):
        read_all(kept)
    with pytest.raises(ValueError, match=message):
        corpus.read(kept).sides[0].lengths() if what == "ends" else read_all(kept)


def test_a_shard_is_looked_at_when_it_is_first_used_and_once(kept, monkeypatch):
    read, digest = [], io.file_digest
    monkeypatch.setattr(io, "file_digest", lambda path: read.append(path.name) or digest(path))
    side = corpus.read(kept).sides[0]
    assert sorted(read) == ["df.npy", "vocabulary.json"]
    for _ in range(3):
        side.rows([0, 5])
    assert sorted(read[2:]) == [corpus.shard_file(0, 0, what) for what in ("counts", "ends", "terms")]


def test_more_shards_than_files_may_be_open_are_built_and_read_and_hashed_once(tmp_path):
    program = (
        "import resource\nimport numpy as np\nfrom jaxsim import io\nfrom jaxsim.text import corpus, corpus_build\n"
        "_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))\n"
        "digest, read = io.file_digest, []\n"
        "io.file_digest = lambda path: read.append(path.name) or digest(path)\n"
        "pairs = [(f'a b{number % 7}', 'a c') for number in range(180)]\n"
        "corpus_build.build('c', pairs, min_df=1, shard_docs=1)\n"
        "sides = corpus.read('c').sides\n"
        "read.clear()\n"
        "for side in sides:\n"
        "    whole = side.rows(slice(None))\n"
        "    assert whole.nnz == 360 and side.lengths().sum() == 360\n"
        "    for _ in range(3):\n"
        "        chosen = np.random.default_rng(0).permutation(180)\n"
        "        assert (side.rows(chosen) != whole[chosen]).nnz == 0\n"
        "assert len(read) == len(set(read)) == 6 * 180\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, check=False,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_system_that_opens_no_more_files_is_not_taken_for_an_altered_shard(kept, monkeypatch):
    def full(*_):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(np.lib.format, "read_magic", full)
    monkeypatch.setattr(np.lib.format, "open_memmap", full)
    with pytest.raises(OSError, match="Too many open files"):
        corpus.read(kept)


def test_a_file_that_is_put_in_place_of_one_that_was_looked_at_is_looked_at(kept, monkeypatch):
    monkeypatch.setattr(corpus, "_most", lambda: 3)
    side = corpus.read(kept).sides[0]
    before = side.rows([0])
    side.rows([25])  # of another shard: the first one is let go
    assert (side.rows([0]) != before).nnz == 0
    side.rows([25])
    edited(kept / corpus.shard_file(0, 0, "counts"), 0, 9)
    with pytest.raises(ValueError, match="shard-00000-0-counts.npy: expected the file that was written, got an alt"):
        side.rows([0])


def test_a_corpus_of_a_relative_folder_is_read_from_every_folder(kept, monkeypatch):
    monkeypatch.chdir(kept.parent)
    side = corpus.read(kept.name).sides[0]
    monkeypatch.chdir("/")
    assert side.rows([0]).nnz > 0


@pytest.mark.parametrize(("name", "content", "message"), [
    (corpus.VOCABULARY, b"[]", "vocabulary.json: expected the file that was written, got an altered one"),
    (corpus.DF, b"", "df.npy: expected the file that was written, got an altered one"),
    (corpus.CONFIG, b"[" * 100_000, "corpus.json: expected JSON, got lists and objects too deep in each other"),
    (corpus.CONFIG, b"[" + b"9" * 5_000 + b"]", "corpus.json: expected JSON, got Exceeds the limit"),
    (corpus.CONFIG, b'{"format": 1}', "corpus.json: languages: expected a list of language codes, got None"),
    (corpus.CONFIG, io.sealed({"library": "jaxsim", "format": 3}), "corpus.json: format: expected 1 to 2 "),
])  # fmt: skip
def test_a_changed_description_is_refused(kept, name, content, message):
    (kept / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        corpus.read(kept)


@pytest.mark.parametrize("name", ["00000.json", "00000.words", corpus.shard_file(0, 1, "terms"), "plan.json"])
def test_an_unfinished_corpus_that_was_altered_does_not_go_on(tmp_path, pairs, name):
    with pytest.raises(Stopped):
        build(tmp_path, until(pairs, 450), shard_docs=200)
    path = tmp_path / "reading" / name
    path.write_bytes(path.read_bytes().replace(b"1", b"2") + b" ")
    with pytest.raises(ValueError, match=f"{name}|of the same settings"):
        build(tmp_path, pairs, shard_docs=200)
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(ValueError, match=f"{name}: expected .*delete the folder .*reading to begin anew"):
        build(tmp_path, pairs, shard_docs=200)


def test_training_from_disk_is_training_from_memory(tmp_path, pairs):
    result = build(tmp_path, pairs, shard_docs=300)
    sides = result.weighted(text.log_tf_idf)
    memory = [sparse.from_scipy(side.rows(slice(None))) for side in sides]
    settings = {"init": random_init(sides[0].num_terms, 5, key=jax.random.key(1)), "key": jax.random.key(2),
                "batch_size": 64, "max_iter": 2}
    one, two = s2net_sgd.fit(*sides, **settings), s2net_sgd.fit(*memory, **settings)
    assert np.array_equal(one.params.weights, two.params.weights)
    assert one.history[-1]["loss"] < one.history[1]["loss"]


def test_a_checkpoint_of_a_training_from_disk_tells_its_corpus_from_another(tmp_path, pairs):
    settings = {"key": jax.random.key(2), "batch_size": 64, "max_iter": 1, "checkpoint": tmp_path / "checkpoint"}
    one, two = (build(tmp_path / name, some).weighted(text.log_tf_idf)
                for name, some in (("one", pairs), ("two", [(left, right) for left, right in pairs[::-1]])))
    settings["init"] = random_init(one[0].num_terms, 5, key=jax.random.key(1))
    assert s2net_sgd.fit(*one, **settings).loss == s2net_sgd.fit(*one, **settings).loss
    for sides, change in ((two, {}), (one, {"max_iter": 2})):  # the rate falls over all epochs: others are another fit
        with pytest.raises(ValueError, match="checkpoint: expected a checkpoint of the same data"):
            s2net_sgd.fit(*sides, **settings | change)
    with pytest.raises(ValueError, match="checkpoint: expected a folder, got an empty string"):
        s2net_sgd.fit(*one, **settings | {"checkpoint": ""})


def test_digests_tell_texts_apart_and_counts_are_of_words():
    result = count([("Zwei zwei drei",)], ("de",))
    assert result.words == ["zwei", "drei"] and result.sides[0].toarray().tolist() == [[2, 1]]


def test_counts_are_those_of_the_tokeniser_whatever_the_alphabet():
    texts = ["Plain words, plain", "", "naïve plain",
             "a\0b \x85c_1", "हिन्दी में a", "\0", "ÉCOLE école 3²", "tab\tand\x1fmore"]
    documents = [(one, other) for one in texts for other in reversed(texts)]
    result = count(documents, ("en", "zh"))
    assert len(set(result.words)) == len(result.words)
    for side, cut in enumerate((text.words, text.tokenizer("zh"))):
        for row, document in zip(result.sides[side], documents, strict=True):
            facts = {result.words[i]: n for i, n in zip(row.indices, row.data, strict=True)}
            assert facts == collections.Counter(cut(document[side]))
