"""Reuters-21578: the SGML of small made-up stories, and the counts of the real collection."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest

from jaxsim import data
from jaxsim.data import reuters21578, word_frequency

HEAD = '<!DOCTYPE lewis SYSTEM "lewis.dtd">\n'


def story(number, inside, *, topics=(), judged="YES", part="TRAIN"):
    labels = "".join(f"<D>{topic}</D>" for topic in topics)
    return (f'<REUTERS TOPICS="{judged}" LEWISSPLIT="{part}" CGISPLIT="TRAINING-SET" OLDID="1" NEWID="{number}">\n'
            f"<TOPICS>{labels}</TOPICS><PLACES><D>usa</D></PLACES>\n<UNKNOWN>&#5;</UNKNOWN>\n{inside}\n</REUTERS>\n")


NORM = "<TEXT>&#2;\n<TITLE>{}</TITLE><DATELINE> LONDON, </DATELINE><BODY>{}\n&#3;</BODY></TEXT>"
STORIES = HEAD + "".join([
    story(3, NORM.format("TEA &lt;TEA.L> UP", "Tea &amp; coffee &amp;lt; caf\xe9 &#127;rose."),
          topics=("tea", "coffee")),
    story(1, '<TEXT TYPE="BRIEF">&#2;\n***<TITLE>GOLD FIXED\n</TITLE>Blah blah blah.\n&#3;</TEXT>', topics=("gold",)),
    story(2, '<TEXT TYPE="UNPROC">&#2;\nWEEKLY REPORT\nReserves 1,137\n&#3;</TEXT>', part="TEST", topics=("money",)),
    story(4, NORM.format("NO TOPIC", "Text."), judged="NO"),
    story(5, "<TEXT><TITLE></TITLE><BODY></BODY></TEXT>", topics=("tea",), part="TEST"),
    story(6, NORM.format("A", "B"), judged="NO", topics=("tea", "tea")),
    story(7, NORM.format("A", "B"), judged="BYPASS", part="NOT-USED"),
])


def folder_of(place, text, name="reut2-000.sgm"):
    place.mkdir(parents=True, exist_ok=True)
    (place / name).write_bytes(text.encode("latin-1"))
    return place


def test_stories_of_every_type_are_read(tmp_path):
    folder_of(tmp_path / "sgm", "not read", "all-topics-strings.lc.txt")
    result = reuters21578.load(folder_of(tmp_path / "sgm", STORIES))
    assert [one.number for one in result.stories] == [1, 2, 3, 4, 5, 6, 7]
    brief, unproc, norm = result.stories[:3]
    assert (brief.kind, brief.title.strip(), brief.body, brief.topics) == ("BRIEF", "GOLD FIXED", "", ("gold",))
    assert (unproc.kind, unproc.title) == ("UNPROC", "")
    assert unproc.body.split() == ["WEEKLY", "REPORT", "Reserves", "1,137"]
    assert norm.title == "TEA <TEA.L> UP" and norm.body == "Tea & coffee &lt; caf\xe9 rose.\n"
    assert norm.topics == ("tea", "coffee") and norm.text.startswith("TEA <TEA.L> UP Tea & coffee")
    assert result.stories[4].text == " " and result.stories[5].topics == ("tea",)
    assert result.counts == {"read": 7, "with_topic": 5, "with_body": 4, "with_neither_title_nor_body": 1, "brief": 1,
                             "unproc": 1}


def test_an_archive_is_read_like_its_folder(tmp_path):
    with tarfile.open(tmp_path / "reuters21578.tar.gz", "w:gz") as archive:
        for name, text in (("reuters21578/reut2-000.sgm", STORIES), ("reuters21578/lewis.dtd", "<REUTERS")):
            info = tarfile.TarInfo(name)
            info.size = len(text.encode("latin-1"))
            archive.addfile(info, io.BytesIO(text.encode("latin-1")))
    packed = reuters21578.load(tmp_path / "reuters21578.tar.gz")
    unpacked = reuters21578.load(folder_of(tmp_path / "sgm", STORIES))
    assert packed.stories == unpacked.stories and packed.sha256 == unpacked.sha256
    other = reuters21578.load(folder_of(tmp_path / "other", STORIES.replace("<D>gold</D>", "<D>silver</D>")))
    assert other.sha256 != packed.sha256


def test_splits_choose_by_judgement_labels_and_length():
    stories = reuters21578.collection(sorted(reuters21578.parse(STORIES, "x"), key=lambda one: one.number)).stories

    def numbers(**options):
        result = reuters21578.rows(stories, **options)
        return {name: [stories[place].number for place in where] for name, where in result.items()}

    assert numbers() == {"train": [1, 3], "test": [2, 5]}
    assert numbers(min_characters=20) == {"train": [3], "test": [2]}
    assert numbers(labelled=False) == {"train": [1, 3], "test": [2, 5]}
    assert numbers(split="ModLewis") == {"train": [1, 3, 6], "test": [2, 5]}
    assert numbers(split="ModLewis", labelled=False)["train"] == [1, 3, 4, 6]
    with pytest.raises(ValueError, match="split: expected one of ModApte, ModLewis, got 'ModHayes'"):
        numbers(split="ModHayes")
    with pytest.raises(ValueError, match="min_characters: expected a number of at least 0, got -1"):
        numbers(min_characters=-1)


WHOLE = story(1, NORM.format("A", "B"))


@pytest.mark.parametrize(("text", "message"), [
    (WHOLE + WHOLE.replace("</REUTERS>", ""), "x, line 8: expected a story that ends in </REUTERS>"),
    (WHOLE.replace("</REUTERS>", "") + WHOLE, "x, line 8: expected </REUTERS> before another story"),
    (WHOLE + "</REUTERS>", "x, line 8: expected <REUTERS ...> before its end"),
    (WHOLE.replace('TOPICS="YES"', 'TOPICS="MAYBE"'), "line 1, attribute TOPICS: expected one of BYPASS, NO, YES, got"),
    (WHOLE.replace('LEWISSPLIT="TRAIN"', ""), "attribute LEWISSPLIT: expected one of NOT-USED, TEST, TRAIN, got None"),
    (WHOLE.replace('NEWID="1"', 'NEWID="one"'), "attribute NEWID: expected a number, got 'one'"),
    (WHOLE.replace("<TEXT>", "<TEXT TYPE=\"ODD\">"), "attribute TYPE: expected one of BRIEF, NORM, UNPROC, got 'ODD'"),
    (WHOLE.replace("<TEXT>", ""), "x, line 1: expected a story with <TEXT>, got none"),
    (WHOLE.replace("</BODY>", ""), "x, line 1: expected <BODY> that ends in </BODY>"),
    (WHOLE.replace("</TEXT>", ""), "x, line 1: expected <TEXT> that ends in </TEXT>"),
])
def test_malformed_sgml_is_refused_by_line(text, message):
    with pytest.raises(ValueError, match=message):
        list(reuters21578.parse(text, "x"))


def test_what_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(ValueError, match="expected every NEWID once, got .3. twice"):
        reuters21578.load(folder_of(tmp_path / "twice", STORIES.replace('NEWID="1"', 'NEWID="3"')))
    with pytest.raises(data.MissingCorpus, match="expected files reut2-000.sgm to reut2-021.sgm, got none"):
        reuters21578.load(folder_of(tmp_path / "none", STORIES, "reuters.sgm"))
    with pytest.raises(data.MissingCorpus, match="expected reuters21578.tar.gz or the folder of its .sgm files"):
        reuters21578.load(tmp_path / "nowhere")
    (tmp_path / "reuters21578").mkdir()
    (tmp_path / "reuters21578" / "reuters21578.tar.gz").write_bytes(b"damaged")
    with pytest.raises(ValueError, match="expected SHA-256 f1d6d3fe"):
        reuters21578.load(root=tmp_path)
    with pytest.raises(ValueError, match="expected a whole tar archive"):
        reuters21578.load(root=tmp_path, verify=False)


def test_word_frequencies_are_read_and_refused(tmp_path):
    path = tmp_path / "word_frequency" / "count_1w_top100k.txt.gz"
    path.parent.mkdir()
    for text, message in (("the\t9\ntea\n", "line 2: expected a word, a tab and a count"), ("", "at least one word")):
        path.write_bytes(gzip.compress(text.encode()))
        with pytest.raises(ValueError, match=message):
            word_frequency.load(root=tmp_path, verify=False)
    path.write_bytes(gzip.compress(b"the\t9\ntea\t2\n"))
    assert word_frequency.load(root=tmp_path, verify=False) == {"the": 9, "tea": 2}
    with pytest.raises(ValueError, match="counts: expected at least one word"):
        word_frequency.of_terms({}, ["tea"])


def _real(name):
    root = os.environ.get("JAXSIM_DATA")
    if not root or not (Path(root) / name).is_dir():
        pytest.skip(f"the corpus {name} is not in a folder that JAXSIM_DATA names")
    return root


def test_counts_of_the_real_collection():
    result = reuters21578.load(root=_real("reuters21578"))
    assert result.counts == {"read": 21_578, "with_topic": 11_367, "with_body": 19_043,
                             "with_neither_title_nor_body": 1, "brief": 1_798, "unproc": 737}
    assert [one.number for one in result.stories] == list(range(1, 21_579))
    assert len({topic for one in result.stories for topic in one.topics}) == 120

    def sizes(**options):
        return tuple(where.size for where in reuters21578.rows(result.stories, **options).values())

    assert sizes(labelled=False) == (9_603, 3_299) and sizes() == (7_775, 3_019)
    assert sizes(split="ModLewis", labelled=False) == (13_625, 6_188) and sizes(split="ModLewis") == (7_780, 3_022)
    assert sizes(min_characters=80) == (7_307, 2_857)


def test_counts_of_the_real_word_frequencies():
    result = word_frequency.load(root=_real("word_frequency"))
    assert len(result) == 100_000 and result["the"] == 23_135_851_162 and min(result.values()) == 99_133
    assert np.all(word_frequency.of_terms(result, ["the", "q z"]) == [23_135_851_162, 99_133])
