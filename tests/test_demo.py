"""The demo on a few hundred docstrings: it writes a record and a picture and tells the same."""

import json
import warnings

import pytest

from jaxsim import demo, records


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what importing the documented packages warns of is theirs
        return out, demo.run(out, k=30, max_iter=6, num_pairs=700)


def test_the_record_passes_the_check_and_says_what_was_shown(shown):
    out, told = shown
    record = records.read(told["record"])
    table = told["test mates found"]
    assert record["metrics"]["mrr"]["mean"] == pytest.approx(table["s2net"]["mrr"])
    assert set(table) == {"tfidf", "log-tfidf", "lsa", "cl-lsi", "cca", "opca", "s2net"}
    assert json.loads((out / "demo" / "docstrings" / "s2net.json").read_text())["config"]["k"] == 30


def test_training_lowers_the_loss_and_dev_chose_the_best(shown):
    _, told = shown
    start, best = (float(part.split()[0]) for part in told["training loss"].split(", "))
    assert best <= start
    assert told["dev mrr"].count("0.") == 2


def test_the_picture_is_a_png(shown):
    out, _ = shown
    content = (out / "demo.png").read_bytes()
    assert content.startswith(b"\x89PNG") and len(content) > 5_000
