"""Loaders of distributed corpora, on small made-up texts in the same formats."""

from __future__ import annotations

import io
import json
import lzma
import tarfile

import pytest

from jaxsim import data
from jaxsim.data import doc_pairs, europarl, mdn, release


def _jsonl(path, records):
    path.parent.mkdir(parents=True, exist_ok=True)
    with lzma.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


def _archive(path, members, mode="w:xz"):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, mode) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content.encode())
            archive.addfile(info, io.BytesIO(content.encode()))


def test_doc_pairs_strips_markup_and_counts_what_is_left_out(tmp_path):
    _jsonl(
        tmp_path / "doc_pairs" / "astro.en_es.jsonl.xz",
        [
            {
                "id": "astro/a",
                "en": "---\ntitle: A page\n---\nText `leak`",
                "es": "---\ntitle: Una página\n---\nTexto `leak`",
            },
            {"id": "astro/b", "en": "`leak`", "es": "Texto"},
        ],
    )
    _jsonl(tmp_path / "doc_pairs" / "tldr.en_es.jsonl.xz", [{"id": "tldr/c", "en": "Lists", "es": "Lista"}])
    loaded = doc_pairs.load("es", sources=["tldr", "astro"], root=tmp_path, verify=False)
    assert loaded.ids == ("astro/a", "tldr/c") and loaded.sources == ("astro", "tldr")
    assert loaded.left[0].split() == ["A", "page", "Text"] and loaded.right[0].split() == ["Una", "página", "Texto"]
    assert loaded.languages == ("en", "es")
    assert loaded.counts["read"] == 3 and loaded.counts["empty_after_stripping"] == 1


def test_doc_pairs_names_what_is_wrong(tmp_path):
    with pytest.raises(ValueError, match="language: expected one of es, ja, fr, de, got 'xx'"):
        doc_pairs.load("xx", root=tmp_path)
    with pytest.raises(ValueError, match="sources: expected some of astro, .*, got 'bible'"):
        doc_pairs.load("fr", sources=["bible"], root=tmp_path)
    with pytest.raises(data.MissingCorpus, match=r"tico19\.en_fr\.jsonl\.xz: expected the corpus 'doc_pairs'"):
        doc_pairs.load("fr", sources=["tico19"], root=tmp_path)
    _jsonl(tmp_path / "doc_pairs" / "tico19.en_fr.jsonl.xz", [{"id": "a", "en": "One side only"}])
    with pytest.raises(ValueError, match="line 1: expected the column 'fr'"):
        doc_pairs.load("fr", sources=["tico19"], root=tmp_path, verify=False)
    with pytest.raises(ValueError, match="expected SHA-256"):
        doc_pairs.load("fr", sources=["tico19"], root=tmp_path)


def test_every_spanish_source_is_human_or_machine_translated():
    named = {*doc_pairs.HUMAN_SOURCES, *doc_pairs.MACHINE_SOURCES}
    assert named == {*doc_pairs.available("es"), "mdn"}
    assert not set(doc_pairs.HUMAN_SOURCES) & set(doc_pairs.MACHINE_SOURCES)


def test_mdn_joins_by_id(tmp_path):
    _jsonl(tmp_path / "mdn" / "en.jsonl.xz", [{"id": key, "text": f"Page {key}"} for key in "abc"])
    _jsonl(
        tmp_path / "mdn" / "es.jsonl.xz", [{"id": "c", "text": "Página c {{leak}}"}, {"id": "a", "text": "Página a"}]
    )
    loaded = mdn.load("es", root=tmp_path, verify=False)
    assert loaded.ids == ("mdn/c", "mdn/a") and loaded.left == ("Page c", "Page a")
    assert "leak" not in loaded.right[0] and set(loaded.sources) == {"mdn"}
    _jsonl(tmp_path / "mdn" / "fr.jsonl.xz", [{"id": "a", "text": "Page a"}, {"id": "z", "text": "Page z"}])
    with pytest.raises(ValueError, match=r"fr\.jsonl\.xz, line 2: expected an id of en\.jsonl\.xz, got 'z'"):
        mdn.load("fr", root=tmp_path, verify=False)
    with pytest.raises(ValueError, match="language: expected one of"):
        mdn.load("it", root=tmp_path)


def test_mdn_links(tmp_path):
    (tmp_path / "mdn").mkdir()
    with lzma.open(tmp_path / "mdn" / "links.tsv.xz", "wt") as file:
        file.write("a\tb\tmd\nb\ta\tmacro\n")
    assert mdn.links(root=tmp_path, verify=False) == [("mdn/a", "mdn/b", "md"), ("mdn/b", "mdn/a", "macro")]
    with lzma.open(tmp_path / "mdn" / "links.tsv.xz", "wt") as file:
        file.write("a\tb\n")
    with pytest.raises(ValueError, match=r"links\.tsv\.xz, line 1: expected 3 fields with tabs between, got 2"):
        mdn.links(root=tmp_path, verify=False)


DAYS = {
    "ep-96-04-15": (
        "Opening .\nMr President , thanks .\nMore .\nMrs President , no .\n",
        "Apertura .\nGrazie .\nAncora .\nNo .\n",
    ),
    "ep-00-01-17": ("One two three .\n \nMadam President , four .\n", "Uno due tre .\nVuoto .\nQuattro .\n"),
}


@pytest.fixture
def days(tmp_path):
    folder = tmp_path / "europarl_en_it"
    for side, language in enumerate(("en", "it")):
        _archive(folder / f"{language}.tar.xz", {f"{language}/{day}.al": DAYS[day][side] for day in DAYS})
    return tmp_path


def test_blocks_cut_at_the_president(days):
    loaded = europarl.load_blocks([2000, 1996], root=days, verify=False)
    assert loaded.ids == ("ep-96-04-15/1", "ep-96-04-15/2", "ep-96-04-15/4", "ep-00-01-17/1", "ep-00-01-17/3")
    assert loaded.left[1] == "Mr President , thanks .\nMore ." and loaded.right[1] == "Grazie .\nAncora ."
    assert loaded.sources == ("1996",) * 3 + ("2000",) * 2 and loaded.languages == ("en", "it")
    assert loaded.counts["days"] == 2 and loaded.counts["lines"] == 7


def test_blocks_of_fixed_size_and_lines(days):
    fixed = europarl.load_blocks(1996, root=days, cut="fixed", size=3, verify=False)
    assert fixed.ids == ("ep-96-04-15/1", "ep-96-04-15/4") and "3 lines" in fixed.name
    alone = europarl.load_blocks(2000, root=days, cut="fixed", size=1, verify=False)
    assert alone.counts["empty"] == 1 and alone.ids == ("ep-00-01-17/1", "ep-00-01-17/3")
    lines = europarl.load_lines((1996, 2000), min_words=3, root=days, verify=False)
    assert lines.ids == ("ep-00-01-17/1",) and lines.left == ("One two three .",)
    every = europarl.load_lines((1996, 2000), min_words=1, root=days, verify=False)
    some = europarl.load_lines((1996, 2000), min_words=1, max_pairs=3, root=days, verify=False)
    assert len(every) == 6 and len(some) == 3 and some.counts["long_enough"] == 6
    assert list(some.ids) == [key for key in every.ids if key in some.ids]


def test_europarl_refuses_bad_arguments_and_days(days):
    with pytest.raises(ValueError, match=r"years: expected some of 1996 \.\.\. 2001, got \[1995\]"):
        europarl.load_blocks([1995, 1996], root=days)
    with pytest.raises(ValueError, match="cut: expected one of president, fixed, got 'speaker'"):
        europarl.load_blocks(1996, root=days, cut="speaker")
    with pytest.raises(ValueError, match="size: expected"):
        europarl.load_blocks(1996, root=days, cut="fixed", size=0)
    with pytest.raises(ValueError, match="max_pairs: expected"):
        europarl.load_lines(1996, root=days, max_pairs=0)
    folder = days / "europarl_en_it"
    _archive(
        folder / "it.tar.xz", {"it/ep-96-04-15.al": "Una sola riga .\n", "it/ep-00-01-17.al": DAYS["ep-00-01-17"][1]}
    )
    with pytest.raises(ValueError, match=r"ep-96-04-15\.al: expected equally many lines on both sides, got \(4, 1\)"):
        europarl.load_blocks(1996, root=days, verify=False)
    _archive(folder / "it.tar.xz", {"it/ep-96-04-15.al": DAYS["ep-96-04-15"][1]})
    with pytest.raises(ValueError, match=r"every session day in en\.tar\.xz and it\.tar\.xz, got \['ep-00-01-17'\]"):
        europarl.load_blocks((1996, 2000), root=days, verify=False)


def test_speeches(tmp_path):
    path = tmp_path / "europarl_en_it" / "speeches_2000_2001.en_it.jsonl.xz"
    rows = [("ep-00-01-17/1", "One", "Uno"), ("ep-01-01-15/1", "Two", "Due"), ("ep-01-01-15/2", "Three", "...")]
    _jsonl(path, [{"id": key, "en": en, "it": it} for key, en, it in rows])
    assert europarl.load_speeches(root=tmp_path, verify=False).ids == ("ep-00-01-17/1", "ep-01-01-15/1")
    later = europarl.load_speeches(2001, root=tmp_path, verify=False)
    assert later.right == ("Due",) and later.counts["empty"] == 1
    with pytest.raises(ValueError, match="years: expected 2000, 2001 or both"):
        europarl.load_speeches(1999, root=tmp_path)
    _jsonl(path, [{"id": "speech", "en": "One", "it": "Uno"}])
    with pytest.raises(ValueError, match="line 1: expected an id such as ep-00-01-17/6, got 'speech'"):
        europarl.load_speeches(root=tmp_path, verify=False)


ENGLISH = """<CHAPTER ID=1>
Title
<SPEAKER ID=1 NAME="President">
First words.
<P>
More words.
<SPEAKER ID=2 LANGUAGE="EN" NAME="A">
<CHAPTER ID=2>
<SPEAKER ID=1 NAME="B">
Second chapter.
<SPEAKER ID=4 NAME="C">
Only English.
<SPEAKER ID=5 NAME="D">
Twice.
<SPEAKER ID=5 NAME="D">
Twice again.
"""
FRENCH = """<CHAPTER ID="001">
Titre
<SPEAKER ID="1" NAME="La Présidente">
Premiers mots.
<SPEAKER ID="2" NAME="A">
Rien.
<CHAPTER ID="002">
<SPEAKER ID="1" NAME="B">
Second chapitre.
<SPEAKER ID="5" NAME="D">
Deux fois.
"""


def _release(folder, kind):
    if kind in ("folders", "txt folders"):
        for language, body in (("en", ENGLISH), ("fr", FRENCH)):
            place = folder / ("txt" if kind == "txt folders" else "") / language
            place.mkdir(parents=True)
            (place / "ep-99-01-17.txt").write_text(body, encoding="utf-8")
            (place / "readme").write_text("not a day")
        return folder
    bodies = {"en/ep-99-01-17.txt": ENGLISH, "fr/ep-99-01-17.txt": FRENCH}
    if kind == "archives":
        for name, body in bodies.items():
            _archive(folder / f"{name[:2]}.tar.gz", {name: body}, mode="w:gz")
        return folder
    _archive(folder / "europarl.tgz", {f"txt/{name}": body for name, body in bodies.items()}, mode="w:gz")
    return folder / "europarl.tgz"


@pytest.mark.parametrize("kind", ["folders", "txt folders", "archives", "one archive"])
def test_release_aligns_by_day_chapter_and_speaker(tmp_path, kind):
    loaded = europarl.load_release(_release(tmp_path, kind), "en", "fr")
    assert loaded.ids == ("ep-99-01-17/1/1", "ep-99-01-17/2/1") and loaded.sources == ("1999", "1999")
    assert loaded.left == ("First words.\nMore words.", "Second chapter.")
    assert loaded.right == ("Premiers mots.", "Second chapitre.") and loaded.languages == ("en", "fr")
    numbers = {key: loaded.counts[key] for key in ("days", "on_one_side", "repeated_numbers", "too_short")}
    assert numbers == {"days": 1, "on_one_side": 2, "repeated_numbers": 2, "too_short": 1}


def test_release_years_and_errors(tmp_path):
    folder = _release(tmp_path / "r", "folders")
    with pytest.raises(ValueError, match="expected session days in both 'en' and 'fr'"):
        europarl.load_release(folder, years=[2000])
    with pytest.raises(
        data.MissingCorpus, match=r"expected the source release of Europarl \(www\.statmt\.org/europarl\)"
    ):
        europarl.load_release(folder, "en", "es")
    with pytest.raises(ValueError, match="right: expected another language than 'en', got 'en'"):
        europarl.load_release(folder, "en", "en")
    (folder / "fr" / "ep-99-01-17.txt").write_bytes(b"<CHAPTER ID=1>\n<SPEAKER ID=1>\n\xe9t\xe9\n")
    with pytest.raises(ValueError, match=r"ep-99-01-17\.txt, line 3: expected utf-8 text"):
        europarl.load_release(folder)
    with pytest.raises(ValueError, match=r"day, line 2: expected <SPEAKER ID=\.\.\.>"):
        release.speeches("<CHAPTER ID=1>\n<SPEAKER NAME='x'>\n", "day")
