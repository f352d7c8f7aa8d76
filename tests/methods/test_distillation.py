"""Distillation of a projection and the bare terms into one projection: against slow float64 loops, and as trained."""

from __future__ import annotations

import dataclasses
import functools
import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from command_line import OPCA, refused, run

from jaxsim import optim, sparse
from jaxsim.data import docstrings, pairs
from jaxsim.evaluate import metrics
from jaxsim.methods.projections import Projection
from jaxsim.methods.s2net import distillation
from jaxsim.train import distilled, train
from jaxsim.train import settings as given
from jaxsim.train.problem import Problem

# Few words, since eigenvalues of thousands of them would take most of the time.
Settings = functools.partial(given.Settings, max_terms=400)

SHARE, SCALE = 0.4, 15.0


@pytest.fixture(scope="module")
def corpus():
    return docstrings.load().take(range(400))


@pytest.fixture
def quick(monkeypatch):
    """A few small batches: for tests that do not look at how well it learns."""
    monkeypatch.setattr(distillation, "fit", functools.partial(distillation.fit, queries=32, max_iter=2))


@pytest.fixture
def texts():
    """Seven left texts and five right ones over nine slots, one of each side empty, and what slots are made of."""
    left, right = (scipy.sparse.random(rows, 9, 0.5, random_state=rows).toarray() for rows in (7, 5))
    left[3] = right[4] = 0
    left, right = map(scipy.sparse.csr_matrix, (left, right))
    spread = scipy.sparse.hstack([scipy.sparse.identity(9), scipy.sparse.random(9, 4, 0.6, random_state=3)], "csr")
    return sparse.from_scipy(left), sparse.from_scipy(right), spread


def first_lesson(monkeypatch, *sides, **settings) -> tuple[Projection, distillation.Lesson]:
    """The start of a fit and its first batch."""
    seen = []

    def minimize(objective, params, batches, *, key, **_):
        seen.append((params, next(iter(batches(key)))))

    with monkeypatch.context() as patched:
        patched.setattr(optim, "minimize_sgd", minimize)
        distillation.fit(*sides, share=SHARE, key=jax.random.key(5), queries=20, **settings)
    return seen[0]


def cosine(a, b) -> float:
    lengths = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(x * x for x in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / lengths if lengths else 0.0


def divergence(told, found) -> float:
    """KL of the softmax of one list of scores from that of another."""
    def softmax(scores):
        each = [math.exp(SCALE * score) for score in scores]
        return [one / sum(each) for one in each]

    return sum(p * math.log(p / q) for p, q in zip(softmax(told), softmax(found), strict=True))


@pytest.mark.parametrize("made_of", [True, False])
def test_teacher_and_objective_are_those_of_plain_loops(texts, rng, monkeypatch, made_of):
    *sides, spread = texts
    spread = spread if made_of else None
    base = rng.normal(size=(13 if made_of else 9, 3))
    start, lesson = first_lesson(monkeypatch, *sides, base=Projection(base), spread=spread)
    slots, weights = map(np.asarray, distillation.draw(lesson))
    own = np.eye(9) if spread is None else spread.toarray()
    documents = [np.concatenate([sparse.to_scipy(side).toarray() for side in sides])[row] @ own for row in range(12)]
    parts = {True: [], False: []}
    student = np.asarray(start.weights)
    scores = np.asarray(distillation.teacher(lesson, jnp.asarray(slots), jnp.asarray(weights)))
    for query in range(20):
        words = [(slot, weight) for slot, weight in zip(slots[query], weights[query], strict=True) if weight]
        made = sum((weight * own[slot] for slot, weight in words), np.zeros(own.shape[1]))
        length = math.sqrt(sum(weight**2 for _, weight in words))
        told = [(1 - SHARE) * cosine(made @ base, document @ base)
                + SHARE * (sum(weight * cosine(own[slot], document) for slot, weight in words) / length if words else 0)
                for document in documents]
        np.testing.assert_allclose(scores[query], told, atol=2e-3)  # bare cosines are kept in half precision
        result = [cosine(made @ student, document @ student) for document in documents]
        for left, part in ((True, slice(0, 7)), (False, slice(7, 12))):
            parts[left].append(divergence(scores[query][part], result[part]))
    expected = (np.mean(parts[True]) + np.mean(parts[False])) / 2
    np.testing.assert_allclose(float(distillation.objective(start, lesson)), expected, rtol=1e-9)


def test_a_student_that_is_the_teacher_loses_nothing(texts, rng, monkeypatch):
    *sides, spread = texts
    base = Projection(jnp.asarray(rng.normal(size=(13, 3))))
    start, lesson = first_lesson(monkeypatch, *sides, base=base, spread=spread)
    alone = dataclasses.replace(lesson, share=jnp.zeros(()))
    assert abs(float(distillation.objective(base, alone))) < 1e-12 < float(distillation.objective(start, alone))


def test_queries_are_words_of_one_text_each_and_new_in_every_batch(texts, monkeypatch, rng):
    *sides, spread = texts
    _, lesson = first_lesson(monkeypatch, *sides, base=Projection(rng.normal(size=(13, 3))), spread=spread, words=6)
    rows = [[{slot: value for slot, value in zip(row.indices, row.data, strict=True) if slot < 6}
             for row in sparse.to_scipy(side)] for side in sides]  # fmt: skip
    drawn = []
    for number in range(30):
        slots, weights = map(np.asarray, distillation.draw(dataclasses.replace(lesson, key=jax.random.key(number))))
        assert slots.shape == weights.shape == (20, 8)
        for query in range(20):
            words = [(slot, weight) for slot, weight in zip(slots[query], weights[query], strict=True) if weight]
            assert len(dict(words)) == len(words) <= 8  # no word twice
            assert any(dict(words).items() <= row.items() for row in rows[query >= 10])
            drawn.append(tuple(sorted(words)))
    longest = max(len(row) for side in rows for row in side)
    assert {len(words) for words in drawn} == set(range(longest + 1)) and len(set(drawn)) > 40


def test_queries_have_every_number_of_words_as_often(monkeypatch, rng):
    texts = sparse.from_scipy(scipy.sparse.csr_matrix(rng.random((4, 3000))))  # so many that hardly one is drawn twice
    _, lesson = first_lesson(monkeypatch, texts, texts, base=Projection(rng.normal(size=(3000, 2))))
    lesson = dataclasses.replace(lesson, queries=7000)
    number = np.bincount(np.count_nonzero(distillation.draw(lesson)[1], axis=1), minlength=9)
    assert not number[:2].any() and np.all(np.abs(number[2:] - 1000) < 5 * 1000**0.5)


def test_only_words_of_the_texts_take_memory(monkeypatch, rng):
    texts = sparse.from_scipy(scipy.sparse.csr_matrix(np.eye(3, 500) + np.eye(3, 500, 490)))
    base = rng.normal(size=(500, 2))
    _, lesson = first_lesson(monkeypatch, texts, texts, base=Projection(base))
    assert lesson.bare.shape == (6, 6) and lesson.known.shape == (6, 2)
    spelt = [0, 1, 2, 490, 491, 492]
    np.testing.assert_array_equal(lesson.known[lesson.places[np.asarray(spelt)]], base[spelt])
    alone = jnp.asarray([[490] + [0] * 7]), jnp.asarray([[1.0] + [0.0] * 7])
    bare = distillation.teacher(dataclasses.replace(lesson, share=jnp.ones(())), *alone)
    np.testing.assert_allclose(bare, [[0.5**0.5, 0, 0] * 2], atol=1e-3)


def test_it_learns_and_a_stopped_one_goes_on_bit_for_bit(texts, rng, tmp_path, monkeypatch):
    *sides, spread = texts
    given = {"base": Projection(rng.normal(size=(13, 3))), "share": SHARE, "key": jax.random.key(5), "spread": spread,
             "queries": 64, "max_iter": 4}  # fmt: skip
    whole = distillation.fit(*sides, **given)
    losses = [entry["loss"] for entry in whole.history[1:]]
    assert len(losses) == 4 and losses[-1] < 0.8 * losses[0]
    replace, calls = dataclasses.replace, []

    def stopping(*parts, **changes):
        calls.append(changes)
        if len(calls) == 25:
            raise KeyboardInterrupt
        return replace(*parts, **changes)

    monkeypatch.setattr(distillation.dataclasses, "replace", stopping)
    with pytest.raises(KeyboardInterrupt):
        distillation.fit(*sides, **given, checkpoint=tmp_path)
    monkeypatch.undo()
    again = distillation.fit(*sides, **given, checkpoint=tmp_path)
    np.testing.assert_array_equal(again.params.weights, whole.params.weights)
    assert [entry["loss"] for entry in again.history[1:]] == losses
    with pytest.raises(ValueError, match="checkpoint"):
        distillation.fit(*sides, **{**given, "share": 0.5}, checkpoint=tmp_path)


@pytest.mark.parametrize(("change", "message"), [
    ({"share": 1.0}, "share: expected a number between 0 and 1, got 1.0"),
    ({"share": float("nan")}, "share: expected a number between 0 and 1, got nan"),
    ({"scale": 0.0}, "scale: expected a positive number, got 0.0"),
    ({"learning_rate": float("inf")}, "learning_rate: expected a positive number, got inf"),
    ({"queries": 1}, "queries: expected a whole number of at least 2, got 1"),
    ({"max_iter": 0}, "max_iter: expected a whole number of at least 1, got 0"),
    ({"words": 10}, "words: expected between 1 and 9 slots, got 10"),
    ({"base": Projection(np.ones((9, 2)))}, r"base: expected weights of shape \(13, k\), got \(9, 2\)"),
    ({"base": Projection(np.full((13, 2), np.nan))}, "base: expected finite weights, got NaN or infinity"),
    ({"base": Projection(np.zeros((13, 2)))}, "base: expected a projection that is not zero for every text, got 0"),
])  # fmt: skip
def test_bad_settings_are_refused(texts, change, message):
    *sides, spread = texts
    given = {"base": Projection(np.ones((13, 2))), "share": SHARE, "key": jax.random.key(0), "spread": spread}
    with pytest.raises(ValueError, match=f"^{message}"):
        distillation.fit(*sides, **{**given, **change})


@pytest.mark.parametrize(("method", "dim"), [("opca", 5), ("lsa", 8)])
def test_words_that_no_pair_shares_are_kept_apart_by_a_few_dimensions(method, dim):
    topics = ["sparse matrix row", "random seed draw", "plot axis colour", "file path folder", "date month leap"]
    left = [f"{topics[i % 5].split()[i % 3]} in {topics[i % 5]}" for i in range(100)]
    right = [f"name{i} of {topics[i % 5]}" for i in range(100)]
    named = pairs.make("named", map(str, range(100)), left, right, languages=("en", "en"))
    result = []
    for share in (0.0, 0.5):
        model = train(named, Settings(method=method, dim=dim, min_df=1, distill=share, subwords=0), dev=0)
        scores = model.similarity([f"name{i}" for i in range(100)], right)
        result.append(float(metrics.reciprocal_rank(scores, np.arange(100)).mean()))
    assert result[0] < 0.3 and result[1] > 0.9


def test_texts_without_a_word_to_draw_are_refused(texts):
    *_, spread = texts
    bare = sparse.from_scipy(scipy.sparse.csr_matrix(np.eye(9)[6:]))
    with pytest.raises(ValueError, match="left, right: expected texts with words to draw queries from, got none"):
        distillation.fit(bare, bare, base=Projection(np.ones((13, 2))), share=SHARE, key=jax.random.key(0),
                         spread=spread, words=6)  # fmt: skip


@pytest.mark.programs
@pytest.mark.parametrize("subwords", [0.0, 0.5])
def test_scores_before_and_after_are_told_and_one_seed_gives_one_model(corpus, subwords, quick):
    plain, distilled, again = (train(corpus, Settings(method="opca", dim=20, subwords=subwords, distill=share), dev=0.2)
                               for share in (0.0, 0.5, 0.5))  # fmt: skip
    facts = distilled.training["distilled"]
    for name in ("accuracy", "mrr"):
        assert facts[f"undistilled_{name}"] == plain.training["dev"][name]
    assert facts["last_loss"] < facts["first_loss"] and distilled.dim == 20 and facts["share"] == 0.5
    np.testing.assert_array_equal(again.params.weights, distilled.params.weights)


@pytest.mark.programs
@pytest.mark.programs
def test_a_stopped_training_of_s2net_goes_on_with_its_distillation(corpus, tmp_path, monkeypatch, quick):
    settings = Settings(method="s2net", dim=5, max_iter=2, distill=0.3)
    some = corpus.take(range(60))
    whole = train(some, settings, dev=0.2)
    real, calls = distillation.fit, []

    def stopped(*_, **__):
        calls.append(None)
        raise KeyboardInterrupt

    monkeypatch.setattr(distillation, "fit", stopped)
    with pytest.raises(KeyboardInterrupt):
        train(some, settings, dev=0.2, checkpoint=tmp_path)
    monkeypatch.setattr(distillation, "fit", real)
    again = train(some, settings, dev=0.2, checkpoint=tmp_path)
    assert calls and len(list(tmp_path.glob("checkpoint.distilled-0.3-*"))) == 1
    np.testing.assert_array_equal(again.params.weights, whole.params.weights)


def test_a_distillation_of_what_is_trained_on_begins_anew(corpus, tmp_path, quick):
    some = corpus.take(range(60))
    settings = [Settings(method="opca", dim=5, distill=0.3, noise=noise) for noise in (0.1, 1.0)]
    first, second = (train(some, one, dev=0.2, checkpoint=tmp_path) for one in settings)
    assert len(list(tmp_path.glob("checkpoint.distilled-0.3-*"))) == 2
    assert not np.array_equal(first.params.weights, second.params.weights)
    for one, result in zip(settings, (first, second), strict=True):
        np.testing.assert_array_equal(train(some, one, dev=0.2).params.weights, result.params.weights)


def test_of_many_texts_some_are_ranked(corpus, monkeypatch, quick):
    sizes = []
    monkeypatch.setattr(distilled, "MOST", 50)
    real = distillation.fit
    monkeypatch.setattr(distillation, "fit", lambda left, right, **given: (
        sizes.append((left.num_docs, right.num_docs)), real(left, right, **given))[1])
    train(corpus, Settings(method="lsa", dim=5, distill=0.5), dev=0)
    assert sizes == [(50, 50)]


def test_unicode_empty_texts_and_very_few_pairs_are_distilled(quick):
    left = ["naïve étude", "", "日本 tokyo", "naïve étude", "\ud800 x"]
    right = ["étude", "tokyo", "", "x naïve", "日本 x"]
    few = pairs.make("few", map(str, range(5)), left, right, languages=("en", "en"))
    model = train(few, Settings(method="opca", dim=2, min_df=1, distill=0.9), dev=0)
    assert np.isfinite(model.encode(["étude", "", "nowhere"])).all() and set(model.training["distilled"]) == {
        "share", "first_loss", "last_loss", "seconds"}


@pytest.mark.parametrize(("losses", "scores", "told"), [
    ((0.4, 0.2), (0.3, 0.5), ["mrr of held-out pairs 0.3000 before, 0.5000 distilled"]),
    ((0.4, 0.2), (0.5, 0.5), ["mrr of held-out pairs 0.5000 before, 0.5000 distilled: no better, so the model "
                              "stays as it was before"]),
    ((0.2, 0.4), None, ["the loss did not fall (0.2 in the first epoch, 0.4 in the last): leave --distill out",
                        "no pairs are held out to say whether distillation helps: compare searches of your own"]),
])
def test_what_a_distillation_is_worth_is_said(monkeypatch, losses, scores, told):
    history = [{"step": i, "loss": loss} for i, loss in enumerate((math.nan, *losses))]
    start, other = optim.closed_form(Projection(jnp.eye(2))), Projection(2 * jnp.eye(2))
    monkeypatch.setattr(distillation, "fit", lambda *_, **__: start._replace(params=other, history=history))
    values = iter(scores or ())
    sides = (sparse.from_scipy(scipy.sparse.identity(2, np.float32, format="csr")),) * 2
    messages = []
    counts = (scipy.sparse.identity(2, format="csr"),) * 2
    problem = Problem(counts, sides, np.zeros((2, 2)), None if scores is None else lambda _: next(values), 2,
                  Settings(method="opca", distill=0.5), dev=sides, say=messages.append)  # fmt: skip
    learned = distilled.distilled(start, problem)
    notes = learned.notes
    assert learned.fit.params is (start.params if scores and scores[0] >= scores[1] else other)
    assert messages == told and notes["distilled"]["first_loss"] == losses[0]


@pytest.mark.parametrize(("settings", "message"), [
    ({"distill": 1.0}, r"distill: expected a share in \[0, 1\), got 1.0"),
    ({"distill": "0.5"}, r"distill: expected a share in \[0, 1\), got 0.5"),
    ({"distill": 0.5, "method": "cca"}, r"distill: expected 0, for cca \(it is for s2net, opca, lsa\), got 0.5"),
    ({"distill": 0.5, "activation": "tanh"}, "activation: expected none, with distill, got tanh"),
    ({"distill": 0.5, "shard_terms": True}, "shard_terms: expected False, with distill, got True"),
])
def test_what_cannot_be_distilled_is_refused(corpus, settings, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        train(corpus, Settings(**settings))


def test_the_command_line_distills_and_tells_it(folder, capsys, quick):
    words = ["train", "--pairs", "pairs.tsv", "--out", "model", "--dev", "0.2", "--json"]
    facts = run(capsys, *words, *OPCA, "--distill", "0.5")
    assert '"distilled": {' in facts and '"distill": 0.5' in facts
    table = [line.split() for line in run(capsys, *words[:-1], *OPCA, "--distill", "0.5").splitlines()]
    assert [line[0] for line in table[:4]] == ["dev", "opca", "undistilled", "untrained"] and len(table[2]) == 3
    card = (folder / "model" / "README.md").read_text(encoding="utf-8")
    result = re.search("- distilled: share 0.5, first_loss ([0-9.]+), last_loss ", card)[1]
    assert len(result) <= len("0.123456")
    facts = refused(capsys, *words, "--method", "cca", "--distill", "0.5")
    assert facts.startswith("--distill: expected a method that uses it")
    assert "'--distill'" in refused(capsys, *words, *OPCA, "--distill", "1")
    assert refused(capsys, *words, "--shard-terms", "--devices", "1", "--distill", "0.5").startswith("--shard-terms: ")
