"""The command `topics`, and what other commands do with its model."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from jaxsim import Model, cli, io
from jaxsim.cli import train_folder
from jaxsim.data import tables
from jaxsim.methods.topics import training
from jaxsim.pictures import topics_page

SUBJECTS = {"cook": "coser", "music": "sonido", "law": "norma"}


def texts(rng, number=60):
    """Pairs about one of three subjects, each with eight words a language; the last has no words."""
    lines = []
    for i in range(number):
        one, other = list(SUBJECTS.items())[i % 3]
        left, right = (" ".join(f"{name}{number}" for number in rng.integers(0, 8, 25)) for name in (one, other))
        lines.append(f"{left}\t{right}\n")
    return "".join([*lines, "<b>!!!</b> unknown\t???\n"])


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with pairs, and the topics of them."""
    folder = tmp_path_factory.mktemp("topics")
    (folder / "pairs.tsv").write_text(texts(np.random.default_rng(0)))
    assert cli.main(["topics", "--pairs", str(folder / "pairs.tsv"), "--out", str(folder / "model"), "--dim", "3",
                     "--languages", "en,es", "--drop-top", "0", "--words", "8", "--max-iter", "60"]) == 0
    return folder


def run(capsys, *words):
    status = cli.main([str(word) for word in words])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_topics_are_the_subjects_in_both_languages(place, capsys):
    status, out, _ = run(capsys, "topics", "--pairs", place / "pairs.tsv", "--out", place / "again", "--dim", 3,
                         "--languages", "en,es", "--drop-top", 0, "--words", 8, "--max-iter", 60, "--json")
    assert status == 0
    result = [json.loads(line) for line in out.splitlines()]
    pairs = {tuple(re.match(r"[a-z]+", one[side]["words"][0])[0] for side in ("left", "right")) for one in result}
    assert pairs == set(SUBJECTS.items())
    for one in result:
        names = {re.match(r"[a-z]+", word)[0] for side in ("left", "right") for word in one[side]["words"]}
        assert len(names) == 2 and one["left"]["npmi"] > 0.3
    np.testing.assert_allclose(sum(one["share"] for one in result), 1, atol=1e-5)


@pytest.mark.parametrize(("method", "most", "each"), [
    ("jplsa", 1, [1]), ("jplsa", 7, [7]), ("plsa", 13, [6, 6]), ("cplsa", 3, [3]), ("cplsa", 9, [3, 3, 3]),
    ("jplsa", 20, [10, 10]), ("cplsa", 10, [5, 5]),
])  # fmt: skip
def test_no_more_iterations_are_run_than_are_asked_for(place, tmp_path, monkeypatch, method, most, each):
    iteration, number = training.iterations, []

    def counted(*given):
        advance = iteration(*given)
        return lambda state: number.append(1) or advance(state)

    monkeypatch.setattr(training, "iterations", counted)
    assert cli.main(["topics", "--pairs", str(place / "pairs.tsv"), "--out", str(tmp_path / "model"), "--dim", "3",
                     "--drop-top", "0", "--dev", "0", "--max-iter", str(most), "--method", method]) == 0
    assert len(number) == sum(each) <= most
    assert Model.load(tmp_path / "model").training["fit"]["steps"] == len(each)


def test_the_coherence_of_one_word_is_unknown(place, tmp_path, capsys):
    command = ["topics", "--pairs", place / "pairs.tsv", "--out", tmp_path / "model", "--dim", 3, "--drop-top", 0,
               "--dev", 0, "--max-iter", 2, "--words", 1]  # fmt: skip
    _, out, _ = run(capsys, *command)
    assert [line.split("\t")[2:4] for line in out.splitlines()] == [["unknown", "unknown"]] * 3


class Page(HTMLParser):
    """What a page is made of."""

    def __init__(self):
        """Nothing is seen yet."""
        super().__init__()
        self.tags, self.links = [], []

    def handle_starttag(self, tag, attrs):
        """Notes it."""
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("href", "src")]


def test_the_page_shows_every_topic_and_asks_for_nothing(place):
    text = (place / "model" / "topics.html").read_text()
    page = Page()
    page.feed(text)
    assert page.tags.count("section") == 3 and page.tags.count("circle") == 3 and "script" not in page.tags
    assert all(link.startswith("#topic-") for link in page.links) and "<b>" not in text
    io.check_place(place / "model")  # the page is ours: the folder may be replaced
    assert "cook" in text and "sonido" in text and "Content-Security-Policy" in text


def test_search_and_evaluate_take_the_model(place, capsys):
    (place / "texts.txt").write_text("norma1 norma2\nsonido3 sonido1\ncoser5\n")
    status, out, _ = run(capsys, "search", "--model", place / "model", "--documents", place / "texts.txt", "--query",
                         "music4 music5", "--k", 3)
    rows = [line.split("\t") for line in out.splitlines()]
    assert status == 0 and rows[0][3] == "sonido3 sonido1" and float(rows[0][1]) > 0.8 > 0.5 > float(rows[1][1])
    status, _, err = run(capsys, "search", "--model", place / "model", "--documents", place / "texts.txt", "--query",
                         "unheard")
    assert status == 0 and "no word of it is known" in err
    status, out, err = run(capsys, "evaluate", "--model", place / "model", "--pairs", place / "pairs.tsv", "--json")
    assert status == 0 and json.loads(out)["mrr"]["mean"] > 0.1 and "1 pair with a text without known words" in err
    model = Model.load(place / "model")
    both = model.similarity(["law1 law2", ""], ["norma3", "coser1"])
    assert both[0, 0] > 0.8 and both[0, 1] < 0.3 and not both[1].any()
    np.testing.assert_allclose(model.pair_similarity(["law1 law2"], ["norma3"]), both[0, :1], atol=1e-6)
    np.testing.assert_allclose(model.vectors(["law1 law2"], side="query").dense.sum(), 1, atol=1e-5)


@pytest.mark.parametrize("to", ["word2vec", "onnx"])
def test_no_other_tool_compares_topics(place, capsys, to):
    status, _, err = run(capsys, "export", "--model", place / "model", "--to", to, "--out", place / "exported")
    assert status == 2 and "compared by the cosine" in err and len(err.splitlines()) == 1


@pytest.mark.parametrize("method", ["plsa", "jplsa"])
def test_train_takes_topic_models_and_goes_on(place, capsys, method):
    words = ["train", "--pairs", place / "pairs.tsv", "--out", place / method, "--method", method, "--dim", 3,
             "--max-iter", 20, "--languages", "en,es"]
    status, out, _ = run(capsys, *words, "--json")
    record = json.loads(out)
    assert status == 0 and record["settings"]["weighting"] == "tf" and record["fit"]["steps"] > 0
    model = Model.load(place / method)
    assert model.topical
    pairs = tables.read(place / "pairs.tsv", languages=("en", "es")).pairs
    result = topics_page.describe(model, pairs, words=3)
    assert [len(side.words) for one in result for side in one.sides] == [3] * 2 * model.dim


def test_a_stop_before_the_page_can_be_resumed(place, tmp_path, capsys, monkeypatch):
    words = ["topics", "--pairs", place / "pairs.tsv", "--out", tmp_path / "model", "--dim", 3, "--languages", "en,es",
             "--drop-top", 0, "--words", 8, "--max-iter", 60]  # fmt: skip
    with monkeypatch.context() as patched:
        patched.setattr(topics_page, "write", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        status, out, err = run(capsys, *words)
    assert status == 2 and out == "" and not (tmp_path / "model" / io.PAGE).exists()
    assert f"{tmp_path / 'model.checkpoint'}: stopped here; the same command with --resume goes on" in err
    status, out, _ = run(capsys, *words, "--resume")
    assert status == 0 and len(out.splitlines()) == 3 and (tmp_path / "model" / io.PAGE).is_file()
    assert not (tmp_path / "model.checkpoint").exists()
    np.testing.assert_array_equal(*(Model.load(one / "model").encode_query(["cook1 cook2", "music3"])
                                    for one in (place, tmp_path)))  # fmt: skip


@pytest.mark.parametrize(("words", "message"), [
    (["--dim", "0"], "--dim"),
    (["--method", "lsa"], "--method"),
    (["--languages", "en"], "--languages: expected two language codes"),
    (["--languages", "en,Spanish"], "--languages: expected a code"),
    (["--dev", "2"], "--dev: expected a share"),
    (["--left", "9"], "--left"),
])
def test_bad_options_are_one_line(place, capsys, words, message):
    status, _, err = run(capsys, "topics", "--pairs", place / "pairs.tsv", "--out", place / "bad", *words)
    assert status == 2 and message in err and len(err.strip().splitlines()) == 1


@pytest.mark.parametrize(("held_out", "got"), [("a\tb\n", "got 1"), ("a\tb\n" * 3, "got copies of one")])
def test_pairs_that_judge_nothing_are_refused_before_a_state_is_deleted(place, capsys, monkeypatch, held_out, got):
    monkeypatch.setattr(train_folder, "begin", pytest.fail)
    (place / "few.tsv").write_text(held_out)
    words = ["--out", place / "bad", "--drop-top", 0, "--dev", place / "few.tsv"]
    status, _, err = run(capsys, "topics", "--pairs", place / "pairs.tsv", *words)
    assert status == 2 and "--dev: expected at least two" in err and got in err


def test_a_language_without_words_is_refused(place, capsys):
    (place / "empty.tsv").write_text("".join(f"cook{i % 5} music{i % 3}\t!!!\n" for i in range(30)))
    status, _, err = run(capsys, "topics", "--pairs", place / "empty.tsv", "--out", place / "bad", "--drop-top", 0,
                         "--dim", 2)
    assert status == 2 and "known words on both sides" in err.strip().splitlines()[-1]


@pytest.mark.parametrize("method", ["jplsa", "cplsa"])
def test_the_number_of_topics_that_the_words_allow_is_told(tmp_path, capsys, method):
    few = "".join(f"one{i % 4} one{i % 3}\tuno{i % 3} uno{i % 2}\n" for i in range(40))
    (tmp_path / "few.tsv").write_text(few)
    status, _, err = run(capsys, "topics", "--pairs", tmp_path / "few.tsv", "--out", tmp_path / "model", "--dim", 10,
                         "--languages", "en,es", "--drop-top", 0, "--max-iter", 3, "--method", method, "--dev", 0)
    assert status == 0 and "dimension 3: 3 different words on a side support no more\n" in err
    assert Model.load(tmp_path / "model").dim == 3
