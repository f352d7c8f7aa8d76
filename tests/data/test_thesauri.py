"""Thesauri, WordNet and questions: formats made up here, and the counts of the real files where they are."""

from __future__ import annotations

import gzip
import json
import os

import numpy as np
import pytest

from jaxsim import data
from jaxsim.data import antsynnet, gre, thesauri, thesaurus_books, word_similarity, wordnet
from jaxsim.methods.thesaurus import signed

real = pytest.mark.skipif(not os.path.isdir(os.path.join(os.environ.get("JAXSIM_DATA", ""), "thesauri")),
                          reason="JAXSIM_DATA has no thesauri")


def _jsonl(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_a_thesaurus_of_ones_own_says_what_it_left_out(tmp_path):
    path = _jsonl(tmp_path / "mine.jsonl",
                  {"head": "Hot", "synonyms": ["warm", "WARM", " "], "antonyms": ["cold", "hot", "ice cold"]},
                  {"head": "hot", "synonyms": ["mild"], "antonyms": ["mild", "cool"]},  # contradicts itself
                  {"head": "alone"}, {"head": "self", "antonyms": ["self"]})  # fmt: skip
    mine = thesauri.read(path)
    assert [tuple(entry) for entry in mine.entries] == [
        (("hot", "warm"), ("cold", "ice-cold"), "hot"), (("hot",), ("cool",), "hot")]
    assert mine.name == "mine" and mine.dropped == {"own_antonyms": 3, "empty": 2}
    assert mine.counts["antonym_pairs"] == 3 and mine.counts["terms"] == 5
    path = _jsonl(path, {"head": "hot", "synonyms": ["warm"], "antonym": ["cold"], "id": 3}, {"head": "alone", "id": 4})
    assert thesauri.read(path).dropped == {
        "own_antonyms": 0, "empty": 1, "under the key 'antonym'": 1, "under the key 'id'": 2}


def test_letters_with_marks_are_one_word_in_either_form(tmp_path):
    path = _jsonl(tmp_path / "mine.jsonl", {"head": "caf\u00e9", "synonyms": ["bistro", "cafe\u0301"]})
    assert thesauri.read(path).entries[0].positive == ("caf\u00e9", "bistro")


@pytest.mark.parametrize(("content", "message"), [
    (b'{"head": "hot", "antonyms": "cold"}\n', r"mine\.jsonl, line 1: antonyms: expected a list of strings, got str"),
    (b'{"synonyms": ["warm"]}\n', r"line 1: expected the column 'head'"),
    (b'{"head": "hot"}\n', r"mine\.jsonl: expected at least one entry of two words, got none"),
    (b'{"head": "hot", "antonym": ["cold"]}\n', r"two words, got none; other keys are not read \(antonym\)"),
    (b'\n{"head": "h\xff"}\n', r"line 2: expected UTF-8 text"),
    (b'{"head": "' + b"h" * 10_000_000 + b'"}\n', r"line 1: expected an entry of at most 1,000,000 characters"),
])  # fmt: skip
def test_bad_thesauri_are_refused_by_file_and_line(tmp_path, content, message):
    path = tmp_path / "mine.jsonl"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        thesauri.read(path)


def test_lists_of_antonyms(tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text("hot cold\n\nwell off\tpoor\nsame same\n")
    result = thesauri.read_antonyms(path)
    assert [entry.negative for entry in result.entries] == [("cold",), ("poor",)] and result.dropped["empty"] == 1
    path.write_text("hot cold icy\n")
    with pytest.raises(ValueError, match=r"pairs\.txt, line 1: expected two words, separated by a tab or a blank"):
        thesauri.read_antonyms(path)


def _book(tmp_path, file, text, encoding="utf-8"):
    path = tmp_path / "thesauri" / file
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress(text.encode(encoding)))


def test_layouts_of_the_books(tmp_path):
    _book(tmp_path, "fallows/51155-0.txt.gz", "\r\n".join([
        "\ufeffPreface", "KEY: Abate, Allay.", "SYN: Lessen, {[huh]?},", "depart_from.", "ANT: Grow.", "=",
        "KEY: Abbey.  [See Cloister]", "="]))  # fmt: skip
    fallows = thesaurus_books.load_fallows(root=tmp_path, verify=False)
    entry, = fallows.entries
    assert fallows.corpus == "thesauri"
    assert tuple(entry) == (("abate", "allay", "lessen", "depart-from"), ("grow",), "abate")
    rule = "\n       *       *       *       *       *\n\n"
    _book(tmp_path, "fernald/28900-8.txt.gz", rule.join([
        " PART II.",
        "END.\n\n\nSynonyms:\n\n close,  finish,\n stop.\n\nProse.\n\n\nAntonyms:\n\nSee synonyms for START.\n",
        "START, _v._\n\n\nSynonyms:\n\n begin,\n set out.\n\nMore prose: END.\n", ""]) + "PART II.\n\nQUESTIONS.\n",
          "iso-8859-1")  # fmt: skip
    first, second = thesaurus_books.load_fernald(root=tmp_path, verify=False).entries
    assert first.positive == ("end", "close", "finish", "stop") and first.negative == ("start", "begin", "set-out")
    assert second.positive == ("start", "begin", "set-out")
    _book(tmp_path, "soule/soule_dictionary.htm.gz",
          "<dt><b>Aim</b>, <i>n.</i>&nbsp;&nbsp; <b>1.</b> Direction, (<i>Law.</i>) course.</dt>\n"
          '<dd><b>2.</b> Intention, <span class="x">GOAL</span>.</dd>', "windows-1252")  # fmt: skip
    assert [entry.positive for entry in thesaurus_books.load_soule(root=tmp_path, verify=False).entries] == [
        ("aim", "direction", "course"), ("aim", "intention", "goal")]
    _book(tmp_path, "roget1911/22.txt.gz",
          "     #1. Existence.-- N. being, ens[Lat], entity &c. 494.\n     V. exist, be.\n"
          "     #2. Inexistence.-- N. nonexistence, nothing.\n", "iso-8859-1")  # fmt: skip
    paragraphs = thesaurus_books.load_roget(root=tmp_path, verify=False)
    assert [entry.positive for entry in paragraphs.entries] == [
        ("being", "ens", "entity"), ("exist", "be"), ("nonexistence", "nothing")]
    heads = thesaurus_books.load_roget(antonyms=[("Nothing", "entity")], root=tmp_path, verify=False).entries
    assert "nothing" in heads[0].negative and "exist" in heads[1].negative


def test_opposite_heads_are_the_pairs_of_neighbours_with_most_antonyms_across():
    heads = [[["rich"]], [["poor", "happy"]], [["unhappy", "sad", "dry"]], [["wet", "moist"]], [["sky"]]]
    alone = {1: 2, 2: 1}  # by a prefix
    assert thesaurus_books.opposite_heads(heads) == alone
    pairs = [("rich", "poor"), ("Wet", "dry"), ("dry", "moist")]  # two pairs of them are worth more than the middle one
    assert thesaurus_books.opposite_heads(heads, pairs) == {0: 1, 1: 0, 2: 3, 3: 2}


WORDNET = {
    "adj": ["00000001 00 a 01 hot(a) 0 002 ! 00000002 a 0101 & 00000003 a 0000 | warm",
            "00000002 00 a 01 cold 0 002 ! 00000001 a 0101 & 00000004 a 0000 | not hot",
            "00000003 00 s 02 fiery 0 red_hot 0 001 & 00000001 a 0000 | very hot",
            "00000004 00 s 01 icy 0 002 & 00000002 a 0000 + 00000005 n 0101 | very cold"],
    "noun": ["00000005 00 n 01 ice 0 000 | frozen water"], "verb": [], "adv": [],
}  # fmt: skip


def _wordnet(folder, change=lambda text: text):
    (folder / "wordnet").mkdir(exist_ok=True)
    for part, lines in WORDNET.items():
        body = "  1 licence\n" + "".join(f"{line}\n" for line in lines)
        (folder / "wordnet" / f"data.{part}.gz").write_bytes(gzip.compress(change(body).encode()))
        (folder / "wordnet" / f"{part}.exc.gz").write_bytes(gzip.compress(b"oxen ox\n" if part == "noun" else b""))


def test_wordnet_entries_oppose_a_satellite_to_what_is_around_the_antonym_of_its_head(tmp_path, monkeypatch):
    _wordnet(tmp_path)
    database = wordnet.load(root=tmp_path, verify=False)
    assert database.counts() == {"synsets": 5, "noun": 1, "verb": 0, "adj": 4, "adv": 0, "senses": 6, "lemmas": 6,
                                 "antonym_pointers": 2, "antonym_pairs": 1}
    assert database.exceptions["noun"] == {"oxen": ("ox",)}
    assert database.antonyms() == [("hot", "cold"), ("cold", "hot")]
    assert wordnet.entries(database).counts["antonym_pairs"] == 1
    both = signed.documents([wordnet.entries(database)])
    assert {frozenset(both.words[at] for at in pair) for pair in both.pairs()} == {frozenset(("hot", "cold"))}
    faithful = {entry.positive[0]: entry for entry in wordnet.entries(database).entries}
    assert faithful["fiery"] == (("fiery", "red-hot", "hot"), ("cold", "icy"), "")
    assert faithful["hot"].positive == ("hot", "fiery", "red-hot")  # what is similar to a head
    assert "ice" not in faithful["icy"].positive
    rich = {entry.positive[0]: entry for entry in wordnet.entries(database, rich=True).entries}
    assert rich["icy"].positive == ("icy", "cold", "ice")
    assert rich["hot"].positive == ("hot",)
    _wordnet(tmp_path, lambda text: text.replace("00000002 00 a", "00000002 00 x"))
    with pytest.raises(ValueError, match=r"data\.adj, line 3: expected an offset, a file number and a part of speech"):
        wordnet.load(root=tmp_path, verify=False)
    monkeypatch.setattr(wordnet, "INSTALLED", tmp_path / "none")
    monkeypatch.delenv("JAXSIM_DATA", raising=False)
    with pytest.raises(data.MissingCorpus, match="nor an installed package"):
        wordnet.load()


@pytest.mark.parametrize(("line", "message"), [
    ("adulterate renounce forbid", "expected 'target: choice choice ... :: answer'"),
    ("adulterate: renounce forbid :: purify", "expected an answer among renounce, forbid, got 'purify'"),
])  # fmt: skip
def test_bad_questions_are_refused(tmp_path, line, message):
    path = tmp_path / "questions.txt"
    path.write_text(f"hot: cold warm :: cold\n{line}\n")
    with pytest.raises(ValueError, match=rf"questions\.txt, line 2: {message}"):
        gre.read(path)


@real
def test_counts_of_the_questions_and_judged_pairs():
    sizes = {split: len(gre.load(split)) for split in ("dev", "test", "test790")}
    assert sizes == {"dev": 162, "test": 950, "test790": 790}
    test, asked = gre.load("test"), {split: set(gre.load(split)) for split in sizes}
    assert len({word for one in test for word in (one.target, *one.choices)}) == 3749
    assert np.bincount([one.answer for one in test]).tolist() == [205, 198, 210, 169, 168]
    assert len(asked["dev"] & asked["test"]) == 160 and asked["test790"] == asked["test"] - asked["dev"]
    relations = word_similarity.load("simverb").relations
    assert {kind: relations.count(kind) for kind in ("NONE", "SYNONYMS", "ANTONYMS")} == {
        "NONE": 2093, "SYNONYMS": 306, "ANTONYMS": 111}
    parts = [set(zip(pairs.left, pairs.right, strict=True))
             for pairs in (word_similarity.load(f"simverb{part}") for part in ("", "-dev", "-test"))]
    assert len(parts[1]) == 500 and not parts[1] & parts[2] and parts[1] | parts[2] == parts[0]
    for name in word_similarity.NAMES:
        assert np.all(np.isfinite(word_similarity.load(name).scores))
    labelled = {(part, split): antsynnet.load(part, split).antonyms for part in antsynnet.PARTS
                for split in antsynnet.SPLITS}  # fmt: skip
    assert [len(labelled["adjective", split]) for split in antsynnet.SPLITS] == [5562, 398, 1986]
    assert sum(one.sum() for one in labelled.values()) == 7816 == sum((~one).sum() for one in labelled.values())


@real
def test_counts_of_the_books():
    expected = {  # of the folder's README: raw, then parsed, which move by a few percent with other rules
        "fallows": ({"KEY": 7932, "SYN": 6267, "ANT": 5544},
                    {"with_antonyms": 5498, "synonym_mentions": 45105, "antonym_mentions": 32701, "terms": 19205}),
        "fernald": ({"Antonyms": 444}, {"entries": 619, "synonym_mentions": 6955, "terms": 6466, "with_antonyms": 436}),
        "soule": ({"dt": 23670}, {"synonym_mentions": 137326}),
        "roget": ({"heads": 1043}, {"mentions": 95000, "terms": 59302}),
    }  # fmt: skip
    for name, (raw, parsed) in expected.items():
        counts = getattr(thesaurus_books, f"load_{name}")().counts
        assert {key: counts[key] for key in raw} == raw
        for key, value in parsed.items():
            assert counts[key] == pytest.approx(value, rel=0.06), (name, key)


@real
@pytest.mark.slow
def test_counts_of_wordnet():
    assert wordnet.load().counts() == {
        "synsets": 117659, "noun": 82115, "verb": 13767, "adj": 18156, "adv": 3621, "senses": 206978, "lemmas": 147306,
        "antonym_pointers": 7979, "antonym_pairs": 3556}
