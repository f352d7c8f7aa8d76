"""Running text as numbers: tokens, sentences, the folder on disk, and texts that are refused."""

from __future__ import annotations

import hashlib
import io as memory
import json
import os
import tarfile

import numpy as np
import pytest

from jaxsim import io
from jaxsim.data import novels, sentences

TEXTS = [("a", "The cat sat. The dog--a cat?--ran!\n\nTea"), ("b", ""), ("c", "  ...\x01 "), ("d", "Zebra cat")]


def test_tokens_are_sentences_between_marks_by_descending_count(tmp_path):
    built = sentences.build(TEXTS, tmp_path / "tokens")
    words = [built.vocabulary[number] for number in built.tokens]
    text = " ".join(words)
    assert text == ("<s> the cat sat . </s> <s> the dog -- a cat ? -- ran ! </s> <s> tea </s> <s> . . . </s> "
                    "<s> zebra cat </s>")
    assert built.vocabulary[:7] == ("<unk>", "<s>", "</s>", ".", "cat", "--", "the")
    assert built.counts[:8].tolist() == [0, 5, 5, 4, 3, 2, 2, 1] and built.source["sentences"] == 5
    assert built.tokens.dtype == np.int32 and isinstance(built.tokens, np.memmap)
    assert (built.size(), built.size(2), built.size(3), built.size(9)) == (len(built.vocabulary), 7, 5, 3)
    assert built.encode(["cat", "mouse"]).tolist() == [4, 0]


def test_two_builds_are_equal_and_an_older_one_is_replaced(tmp_path):
    first = sentences.build(TEXTS, tmp_path / "tokens").sha256
    assert sentences.build(TEXTS[::-1], tmp_path / "tokens").sha256 != first
    assert sentences.build(TEXTS, tmp_path / "tokens").sha256 == first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tokens"]


def test_a_build_that_fails_leaves_what_was_there(tmp_path):
    first = sentences.build(TEXTS, tmp_path / "tokens").sha256

    def broken():
        yield TEXTS[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sentences.build(broken(), tmp_path / "tokens")
    assert sentences.load(tmp_path / "tokens").sha256 == first and len(list(tmp_path.iterdir())) == 1


def test_the_head_has_whole_sentences(tmp_path):
    head = sentences.build(TEXTS, tmp_path / "tokens").head(12)
    assert len(head.tokens) == 6 and head.tokens[-1] == sentences.END and head.size(2) == 7


@pytest.mark.parametrize(("text", "expected"), [
    ("Mr. J. Hale came. He left.", 2), ("He said no. No. 5 is it.", 2), ("It was I. We ran.", 2),
    ('"Go!" he said. "Why?" (She ran.)', 3), ("one\ntwo\n \nthree", 2), ("At 5.30 p.m. exactly", 1),
])
def test_sentences_end_where_a_reader_ends_them(text, expected):
    assert len(sentences.split(text)) == expected


@pytest.mark.parametrize(("text", "number"), [
    ("\u201cGo home,\u201d she said. \u201cI am.\u201d He left. \u201cWhy?\u201d \u201cOh.\u201d She came.", 6),
    ("\u00ab Va ! \u00bb Elle part. \u00ab Oui. \u00bb", 3), ("\u201eGeh!\u201c \u00bbJa.\u00ab Er ging.", 3),
    ("\u00bfQu\u00e9? \u00a1No! \u00bfS\u00ed?", 3), ("\u0414\u0430. \u041d\u0435\u0442. \u0434\u0430", 2),
    ("\u039d\u03b1\u03af. \u1f49 \u1f41\u03b4\u03cc\u03c2. \u017dena. \u0130ki.", 4),
    ("\u201cNo. five,\u201d said he", 1),
])
def test_quotes_and_capitals_of_other_languages_end_sentences(text, number):
    assert len(sentences.split(text)) == number


@pytest.mark.parametrize(("text", "expected"), [
    ("E\u0301le\u0301phant Nai\u0308ve", ["\u00e9l\u00e9phant", "na\u00efve"]), ("co\u00adop\u200der", ["cooper"]),
    ("\u0130stanbul", ["i\u0307stanbul"]),
    ("\u0939\u093f\u0928\u094d\u0926\u0940", ["\u0939\u093f\u0928\u094d\u0926\u0940"]),
    ("o\u0304\u0301n-x\u0303's \u0301 2\u0301", ["\u1e53n-x\u0303's", "2"]),
    ("\U0001112c\U0001110c\U00011127a", ["\U0001110c\U00011127a"]),
])
def test_marks_and_soft_hyphens_cut_no_word(text, expected):
    assert sentences.words(text) == expected and sentences.split(text) == [expected]


def test_a_text_is_cut_by_the_rules_of_before_where_they_are_asked_for(tmp_path):
    texts = [("a", "\u201cGo!\u201d \u201cNo, nai\u0308ve.\u201d")]
    for version, expected in ((1, "go ! no , nai ve ."), (sentences.VERSION, "go ! </s> <s> no , na\u00efve .")):
        built = sentences.build(texts, tmp_path / str(version), version=version)
        assert " ".join(built.vocabulary[number] for number in built.tokens) == f"<s> {expected} </s>"
        assert built.source["version"] == version
    with pytest.raises(ValueError, match="version: expected 1 or 2, got 3"):
        sentences.build(texts, tmp_path / "no", version=3)


@pytest.mark.parametrize("texts", [[], [("a", " \n")]])
def test_nothing_to_read_is_refused(tmp_path, texts):
    with pytest.raises(ValueError, match="documents: expected at least one sentence"):
        sentences.build(texts, tmp_path / "tokens")
    assert not list(tmp_path.iterdir())


def test_a_damaged_folder_is_refused(tmp_path):
    sentences.build(TEXTS, tmp_path / "tokens")
    place = tmp_path / "tokens" / "tokens.npy"
    place.write_bytes(place.read_bytes()[:-8])
    with pytest.raises(ValueError, match=r"tokens\.npy"):
        sentences.load(tmp_path / "tokens")


def test_one_number_is_never_another_in_silence_and_none_lacks_a_word(tmp_path):
    folder = tmp_path / "tokens"
    sentences.build(TEXTS, folder)
    tokens, facts = np.load(folder / "tokens.npy"), json.loads((folder / "config.json").read_bytes())
    for number, message in ((4, "the tokens and words that were written"), (10**6, "numbers from 0 to")):
        tokens[1] = number
        np.save(folder / "tokens.npy", tokens)
        if number > 4:  # with a digest made anew
            digest = hashlib.sha256(tokens.tobytes() + (folder / "words.txt").read_bytes()).hexdigest()
            (folder / "config.json").write_bytes(io.sealed({**facts, "sha256": digest}))
        with pytest.raises(ValueError, match=message):
            sentences.load(folder)


def test_what_a_killed_building_left_goes(tmp_path):
    left = tmp_path / f".tokens.{2**22 + 1}.abc.part"  # of no process: systems number fewer
    left.mkdir()
    sentences.build(TEXTS, tmp_path / "tokens")
    assert os.listdir(tmp_path) == ["tokens"]


def test_a_folder_of_texts_is_read_in_order_and_licences_are_cut(tmp_path):
    tea = "Licence\n*END*THE SMALL PRINT! x\nTea is hot and not for all.\nEnd of the Project Gutenberg"
    (tmp_path / "b.txt").write_text(tea)
    (tmp_path / "a.TXT").write_text("Caf\u00e9", "utf-8")
    (tmp_path / "c.md").write_text("no")
    texts = [(name, text.strip()) for name, text in novels.read_folder(tmp_path)]
    assert texts == [("a.TXT", "Caf\u00e9"), ("b.txt", "Tea is hot and not for all.")]


LICENCE = "Section 1. General Terms of Use and Redistributing.\n" * 200


@pytest.mark.parametrize(("start", "end"), [
    ("*** START OF THE PROJECT GUTENBERG EBOOK TEA ***", "*** END OF THE PROJECT GUTENBERG EBOOK TEA ***"),
    ("***START OF THE PROJECT GUTENBERG EBOOK TEA, BY\nJ. HALE***", "***END OF THE PROJECT GUTENBERG EBOOK TEA***"),
    ("  *** START OF THIS PROJECT GUTENBERG EBOOK TEA\n", "*** END OF THIS PROJECT GUTENBERG EBOOK TEA\n"),
    ("*** START OF THE PROJECT GUTENBERG EBOOK TEA ***\n\n",
     "End of the Project Gutenberg EBook of Tea\n\n*** END OF THE PROJECT GUTENBERG EBOOK TEA ***"),
])
def test_marks_of_an_ebook_are_cut_off_with_what_is_outside(start, end):
    book = f"The Project Gutenberg eBook of Tea\n\n{start}\nTea is hot.\n\n* * *\n\nIt cools.\n{end}\n{LICENCE}"
    assert novels.prose(book).split() == "Tea is hot. * * * It cools.".split()
    assert novels.prose(f"{book}\n{book}").split() == 2 * "Tea is hot. * * * It cools.".split()


@pytest.mark.parametrize(("content", "message"), [
    (None, "at least one .txt file, got none"), ("Caf\u00e9".encode()[:-1], r"book\.txt, line 1: expected utf-8"),
    (b"THE SIGN OF THE FOUR by A. Conan Doyle", "no Sherlock Holmes book in training"),
    (b"x " * 3000 + b"said Sherlock Holmes. " * 30, "names Sherlock 30 times"),
])
def test_folders_that_cannot_be_trained_on_are_refused_by_name(tmp_path, content, message):
    if content is not None:
        (tmp_path / "book.txt").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        list(novels.read_folder(tmp_path))


def archive(place, members):
    with tarfile.open(place, "w:xz") as file:
        for name, body in members.items():
            info = tarfile.TarInfo(f"holmes_training_data/{name}.TXT")
            info.size = len(body)
            file.addfile(info, memory.BytesIO(body))
    return place


def test_archives_lose_second_copies_and_refuse_holmes(tmp_path):
    path = archive(tmp_path / "a.tar.xz", {"ALAD10": b"Copy.", "TEA10": b"END THE SMALL PRINT\nTea, caf\xe9."})
    assert [(name, text.strip()) for name, text in novels.documents([path])] == [("TEA10", "Tea, caf\u00e9.")]
    with pytest.raises(ValueError, match=r"HOUND10\.TXT: expected no Sherlock Holmes book"):
        list(novels.documents([archive(tmp_path / "b.tar.xz", {"HOUND10": b"The Hound of the Baskervilles"})]))
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match="expected a whole tar archive"):
        list(novels.documents([path]))
