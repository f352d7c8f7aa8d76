"""A search over methods and settings within a budget of time: what is tried, what is chosen, and when it ends."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from command_line import refused, run

from jaxsim import cli, text
from jaxsim.data import docstrings, pairs
from jaxsim.methods.projections import Projection
from jaxsim.model import Model, ranker
from jaxsim.train import Settings, apart, budget, linked, training
from jaxsim.train import judged as judging
from jaxsim.train.judged import Judged

GIVEN = Settings(method="opca", dim=20, min_df=1, subwords=0.0)
QUERIES = {"a": "the cats", "b": "dogs", "none": "rivers"}
DOCUMENTS = {"1": "a cat sat", "2": "the dog ran", "3": "cat and dog and bird", "4": "fish"}
QRELS = {"a": {"1": 1, "2": 0}, "b": {"2": 2, "gone": 1}, "unknown": {"1": 1}}


class Clock:
    """A second for every look at it."""

    now = 0

    def __call__(self):
        self.now += 1
        return self.now


@pytest.fixture(scope="module")
def corpus():
    return docstrings.load().take(range(160))


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(budget, "DIMENSIONS", (5, 10, 20, 40))
    monkeypatch.setattr(budget, "FIRST", 20)
    monkeypatch.setattr(budget, "SEARCH", {"dim": 20, "min_df": 1})


def searched(corpus, seconds, **changes):
    given = {"settings": GIVEN, "dev": 0.2, "clock": Clock(), "free": ("dim", "noise"), **changes}
    return budget.search(corpus, given.pop("settings"), seconds=seconds, **given)


def test_one_training_gives_all_smaller_dimensions_as_trainings_of_their_own_have_them(corpus):
    best, tried = searched(corpus, 1)
    assert sorted(one["dim"] for one in tried) == [5, 10, 20] and {one["noise"] for one in tried} == {1e-4}
    for one in tried:
        alone = training.train(corpus, replace(GIVEN, dim=one["dim"]), dev=0.2).training["dev"]["mrr"]
        assert one["mrr"] == pytest.approx(alone, abs=2e-4)
    scores = [one["mrr"] for one in tried]
    assert scores == sorted(scores, reverse=True) and best == replace(GIVEN, dim=tried[0]["dim"])


def test_noise_goes_on_along_its_ladder_until_it_no_longer_gains(corpus, monkeypatch):
    def score(search, settings, *_):
        value = -abs(np.log10(settings.noise) + 1) - abs(settings.dim - 10)  # the best is .1, three steps up
        search.scores.append((value, settings))
        search.tried.append({"dim": settings.dim, "noise": settings.noise, "mrr": value})
        return value

    monkeypatch.setattr(budget._Search, "record", score)
    best, tried = searched(corpus, 1e9)
    assert (best.noise, best.dim) == (0.1, 10) and {one["noise"] for one in tried} == {1e-4, 1e-3, 1e-2, 1e-1, 1.0}
    assert len({(one["dim"], one["noise"]) for one in tried}) == len(tried)


def test_the_noise_of_the_start_of_s2net_is_chosen_again(corpus, monkeypatch):
    def score(search, settings, *_):
        best = -2 if settings.method == "s2net" else -5  # powers of ten
        value = -abs(np.log10(settings.noise) - best) - (settings.method == "lsa")
        search.scores.append((value, settings))
        search.tried.append({"method": settings.method, "noise": settings.noise, "mrr": value})
        return value

    monkeypatch.setattr(budget._Search, "record", score)
    monkeypatch.setattr(budget._Search, "refine", lambda search, settings: search.record(settings, None, None))
    given = replace(GIVEN, method="s2net")
    best, tried = searched(corpus, 1e9, settings=given, free=("noise",))
    assert best == replace(given, noise=1e-2)
    assert [one["noise"] for one in tried if one["method"] == "opca"][0] == 1e-5
    assert {one["noise"] for one in tried if one["method"] == "s2net"} == {1e-5, 1e-4, 1e-3, 1e-2, 1e-1}
    best, tried = searched(corpus, 1e9, settings=replace(given, start="random"), free=("noise",))  # without OPCA
    assert [(one["method"], one["noise"]) for one in tried] == [("opca", 1e-4), ("s2net", 1e-4)]


def test_noise_that_was_not_tried_for_s2net_is_told_apart(corpus, monkeypatch):
    clock, messages, refine = Clock(), [], budget._Search.refine

    def slow(search, settings):
        clock.now += 1e6
        return refine(search, settings)

    monkeypatch.setattr(budget._Search, "refine", slow)
    searched(corpus, 1e6, clock=clock, settings=replace(GIVEN, method="s2net", max_iter=1), free=("noise",),
             say=messages.append)
    left = [part for message in messages if message.startswith("the budget ended before")
            for part in message.removeprefix("the budget ended before these were tried: ").split("; ")]
    assert len(left) == 1 and left[0].startswith("noise of S2Net's start ") and left[0].count(",") == 1


def test_s2net_comes_last_is_stopped_in_time_and_counts_with_the_best_it_had(corpus, monkeypatch):
    seen, fit = [], training.fit

    def watched(*given, validate=None, **named):
        if given[2].method != "s2net":
            return fit(*given, **named)
        validate_all = lambda params: seen.append(validate(params)) or seen[-1]  # noqa: E731
        return fit(*given, validate=validate_all, **named)

    monkeypatch.setattr(training, "fit", watched)
    messages = []
    _, tried = searched(corpus, 25, settings=Settings(dim=20, min_df=1), free=("method",), say=messages.append)
    refined = [one for one in tried if one["method"] == "s2net"]
    assert [one["method"] for one in tried if one not in refined] and refined[0]["gamma"] == 10
    assert "the budget ended during this training" in messages and 0 < len(seen) < 25
    assert refined[0]["mrr"] == pytest.approx(max(seen), abs=1e-4) and refined[0]["cut"] is True
    assert not any("cut" in one for one in tried if one not in refined)
    assert budget.table(tried)[0].split()[-1] == "cut" and not any(message.endswith("True") for message in messages)


@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
def test_a_candidate_has_the_score_of_its_training_with_an_activation(corpus, activation):
    given = replace(GIVEN, method="s2net", dim=8, activation=activation, max_iter=2)
    _, tried = searched(corpus, 1e6, settings=given, free=("gamma",))
    candidates = [one for one in tried if one["method"] == "s2net"]
    assert len(candidates) > 1
    for one in candidates[:2]:
        alone = training.train(corpus, replace(given, gamma=one["gamma"]), dev=0.2, cross_fit=False).training
        assert one["mrr"] == pytest.approx(alone["dev"]["mrr"], abs=2e-4)


def test_what_a_short_budget_had_no_time_for_is_said(corpus):
    messages = []
    _, tried = searched(corpus, 1, settings=Settings(dim=20, min_df=1), free=budget.FREE, say=messages.append)
    assert {one["method"] for one in tried} == {"opca"}
    left = next(message for message in messages if message.startswith("the budget ended before these were tried: "))
    for part in ("method lsa, s2net", "subwords 0.0, 0.75, 0.25", "noise 0.001, 1e-05"):
        assert part in left
    messages.clear()
    searched(corpus, 1e9, settings=Settings(method="lsa", dim=7, min_df=1), free=("subwords",), say=messages.append)
    assert not any(message.startswith("the budget ended") for message in messages)


@pytest.mark.programs
def test_ssi_and_random_numbers_are_tried_after_s2net(corpus, monkeypatch):
    """SSI as a training of its own would have it; one that does not end in time is named."""
    for name, values in {"IDENTITIES": (3.0,), "LEARNING_RATES": (0.03,)}.items():
        monkeypatch.setattr(linked, name, values)
    given, messages = Settings(dim=5, min_df=1, max_iter=2, max_terms=300), []
    best, tried = searched(corpus, 1e9, settings=given, free=("method", "start"))
    assert {one["method"] for one in tried} == {"opca", "lsa", "s2net", "ssi"}
    assert [one["start"] for one in sorted(tried, key=lambda one: one.get("start", "")) if "start" in one] == [
        "opca", "random"]
    alone = training.train(corpus, replace(given, method="ssi"), dev=0.2).training["dev"]["mrr"]
    (ssi,) = [one for one in tried if one["method"] == "ssi"]
    assert ssi == {"method": "ssi", "dim": 5, "min_df": 1, "mrr": pytest.approx(alone, abs=1e-4)}
    assert (best.method, best.start) == (tried[0]["method"], tried[0].get("start", "opca"))

    def late(*given, callback=None, **named):
        if given[2].method == "ssi":
            clock.now = 1e9
            callback("ssi", {})
        return fit(*given, callback=callback, **named)

    fit, clock = training.fit, Clock()
    monkeypatch.setattr(training, "fit", late)
    _, tried = searched(corpus, 1000, settings=given, free=("method", "start"), clock=clock, say=messages.append)
    assert "ssi" not in {one["method"] for one in tried}
    assert "the budget ended before these were tried: method ssi; start random" in messages
    def refused(*given, **named):
        if given[2].method == "ssi":
            raise ValueError("pairs: expected right texts that differ, got all alike")
        return fit(*given, **named)

    monkeypatch.setattr(training, "fit", refused)
    _, tried = searched(corpus, 1e12, settings=given, free=("method", "start"), say=messages.append)
    assert {one["method"] for one in tried} == {"opca", "lsa", "s2net"} and any(
        message.startswith("ssi cannot learn from these pairs: pairs: expected") for message in messages)
    _, tried = searched(corpus, 1e12, settings=replace(given, subwords=0.5), free=("method",), clock=Clock())
    assert {one["method"] for one in tried} == {"opca", "lsa", "s2net"}  # SSI has no n-grams
    best, tried = searched(corpus, 1e12, settings=replace(given, distill=0.3), free=("method",), clock=Clock())
    assert {one["method"] for one in tried} == {"opca", "lsa", "s2net"} and best.distill == 0.3  # nor a projection


def test_of_scores_that_are_shown_as_equal_the_first_is_taken(corpus, monkeypatch):
    def score(search, settings, *_):
        value = 0.5 + 1e-6 * settings.dim
        search.scores.append((value, settings))
        search.tried.append({"dim": settings.dim, "mrr": round(value, 4)})
        return value

    monkeypatch.setattr(budget._Search, "record", score)
    best, tried = searched(corpus, 1)
    assert best.dim == tried[0]["dim"] == 5


def test_options_that_are_not_free_stay(corpus):
    best, tried = searched(corpus, 1e9, settings=Settings(method="lsa", dim=7, min_df=1), free=("subwords",))
    assert {one["method"] for one in tried} == {"lsa"} and {one["dim"] for one in tried} == {7}
    assert {one["subwords"] for one in tried} == {0.0, 0.25, 0.5, 0.75}
    assert best == Settings(method="lsa", dim=7, min_df=1, subwords=best.subwords)


def test_without_pairs_to_hold_out_nothing_is_chosen(corpus):
    messages = []
    assert searched(corpus.take(range(9)), 5, say=messages.append) == (GIVEN, [])
    assert messages[-1] == "no setting is chosen: no pairs are held out to choose by"


@pytest.mark.programs
def test_judged_queries_choose_where_no_pairs_are_held_out(corpus, monkeypatch):
    """S2Net then has its few iterations, or the queries stop it; with no time for these few it is left out."""
    judged = Judged({"a": corpus.left[0]}, dict(enumerate(map(str, corpus.right))), {"a": {0: 1}})
    given = {"dev": 0, "judged": judged, "settings": replace(GIVEN, dim=5, max_iter=1), "free": ("method",)}
    few = corpus.take(range(40))
    best, tried = searched(few, 1e9, **given)
    assert {one["method"] for one in tried} == {"opca", "lsa", "s2net", "ssi"} and all("map" in one for one in tried)
    one = replace(given["settings"], method="s2net")
    best, tried = searched(few, 1e9, **{**given, "settings": one, "free": ("dim",), "stop_by": judged})
    assert best.method == tried[-1]["method"] == "s2net"
    clock, fit, messages = Clock(), training.fit, []

    def slow(weighted, held, settings, *rest, **options):
        clock.now += 1e9 * (settings.method == "s2net")
        return fit(weighted, held, settings, *rest, **options)

    monkeypatch.setattr(training, "fit", slow)
    _, tried = searched(few, 1e6, clock=clock, say=messages.append, **given)
    assert {one["method"] for one in tried} == {"opca", "lsa"}
    assert "the budget ended during this training" in messages
    assert messages[-2] == "the budget ended before these were tried: method s2net, ssi"
    assert messages[-1] == "1 judged query made this choice: small differences are chance"


@pytest.mark.parametrize(("changes", "message"), [
    ({"seconds": 0}, "seconds: expected a positive budget"), ({"free": ()}, "free: expected some of"),
    ({"settings": Settings(blend=True, activation="tanh"), "free": ("gamma",)}, "blend: expected False, with an"),
    ({"settings": Settings(method="ssi")}, "method: expected one of"), ({"settings": 3}, "settings: expected Settings"),
])
def test_what_cannot_be_searched_is_refused(corpus, changes, message):
    with pytest.raises(ValueError, match=message):
        searched(corpus, changes.pop("seconds", 5), **changes)


def plain():
    return Model(text.Vocabulary(("cat", "dog", "bird"), np.array([1, 1, 1]), 3), None)


def test_judged_queries_measure_as_a_run_does_and_choose_the_weight_of_words():
    judged = Judged(QUERIES, DOCUMENTS, QRELS)
    assert set(judged.qrels) == {"a", "b"}
    # Query b: its document is first; the judged one without a text is never found.
    assert judged.score(plain(), terms=1.0) == pytest.approx((1 + 0.5) / 2)
    score, weight, power = judged.best(plain())
    assert score == max(judged.score(plain(), terms=one) for one in (0.0, 0.1, 0.5, 1.0)) and 0 <= weight <= 1
    assert power is None  # it has no dimensions to weigh
    for metric in ("ndcg@10", "mrr", "mrr@10"):
        assert 0 < Judged(QUERIES, DOCUMENTS, QRELS, metric).score(plain(), terms=1.0) <= 1
    assert judged.sha256 != Judged(QUERIES, DOCUMENTS, QRELS, "mrr").sha256
    with pytest.raises(ValueError, match="qrels: expected a relevant document"):
        Judged(QUERIES, DOCUMENTS, {"a": {"gone": 1}})
    with pytest.raises(ValueError, match="metric: expected one of map"):
        Judged(QUERIES, DOCUMENTS, QRELS, "recall")


@pytest.mark.parametrize(("query", "agreement", "power"), [("cat bird", [1, 1, 0.01], 1.0),
                                                           ("cat cat bird", [0.01, 0.01, 1], 0.0)])  # fmt: skip
def test_judged_queries_choose_the_power_too(query, agreement, power, monkeypatch):
    """A dimension of its own for each word: what is right has those that are weighed up, or those that are not."""
    model = Model(text.Vocabulary(("cat", "dog", "bird"), np.array([1, 1, 1]), 3), Projection(np.eye(3)),
                  agreement=np.array(agreement, np.float32))  # fmt: skip
    monkeypatch.setattr(judging, "WEIGHTS", (0.0,))
    judged = Judged({"q": query}, {"2": "bird", "1": "cat"}, {"q": {"1": 1}})
    best = judged.best(replace(model, terms_weight=0.0))
    assert best == (1.0, 0.0, power) and judged.score(replace(model, terms_weight=0.0), power=power) == 1
    chosen = replace(model, terms_weight=0.0, agreement_power=power)
    assert judged.score(chosen) == 1 == judged.best(chosen).score
    other = replace(chosen, agreement_power=1 - power)
    assert judged.score(other) == 0.5 and other.search_power == 1 - power


def test_judged_queries_choose_weight_and_power_together(monkeypatch):
    """At the power that the model has, a weight that is the best at no other."""
    scores = {(0.1, 1.0): 0.5, (0.7, 0.0): 0.6, (0.7, 1.0): 0.1, (0.1, 0.0): 0.2}
    monkeypatch.setattr(Judged, "_scorer", lambda *_: lambda terms, power: scores.get((terms, power), 0.0))
    model = Model(text.Vocabulary(("cat", "dog", "bird"), np.array([1, 1, 1]), 3), Projection(np.eye(3)),
                  agreement=np.ones(3, np.float32), agreement_power=1.0)  # fmt: skip
    assert Judged({"q": "cat"}, {"1": "cat"}, {"q": {"1": 1}}).best(model) == (0.6, 0.7, 0.0)


def test_judged_queries_choose_whether_to_search_twice(monkeypatch):
    """The second relevant document has no word of the query, but those of the first; or there is none."""
    words = text.Vocabulary(("cat", "dog", "bird", "fish"), np.array([1, 1, 1, 1]), 4)
    model = Model(words, Projection(np.eye(4)), terms_weight=0.0)
    documents = {"1": "cat dog", "2": "dog dog fish", "3": "bird"}  # of equal scores the later name comes first
    judged = Judged({"q": "cat"}, documents, {"q": {"1": 1, "2": 1}})
    assert judged.feedback(model) == (1, 1.0) and judged.score(model, feedback=0) < 1
    chosen = replace(model, feedback=1)
    assert judged.score(chosen) == 1 == judged.score(model, feedback=1) and judged.best(chosen).score < 1
    assert Judged({"q": "cat"}, documents, {"q": {"1": 1}}).feedback(model) == (None, 1.0)
    monkeypatch.setattr(judging, "WORTH", 1.0)  # more than it adds
    assert judged.feedback(model) == (None, pytest.approx(judged.score(model, feedback=0), abs=1e-6))
    assert judged.feedback(Model(words, None))[0] is None
    bare = Model(words, None, feedback=3)
    assert ranker.default_feedback(bare, 0.0) == 0 and ranker.default_feedback(bare, 1.0) == 3
    assert judged.score(bare) == judged.score(bare, feedback=0)


def test_the_query_itself_is_no_answer_where_it_is_left_out():
    documents = {**DOCUMENTS, "a": "a cat again", "5": "the cats"}  # "a" by its identifier, "5" by its text
    qrels = {"a": {"a": 1, "5": 1, "1": 1}, "b": {"2": 1}}
    whole, without = (Judged(QUERIES, documents, qrels, "map", itself) for itself in (False, True))
    assert without.qrels == {"a": {"1": 1}, "b": {"2": 1}} and whole.qrels == qrels
    assert without.score(plain(), terms=1.0) == 1 and without.sha256 != whole.sha256
    with pytest.raises(ValueError, match="qrels: expected a relevant document"):
        Judged(QUERIES, documents, {"a": {"a": 1, "5": 1}}, exclude_self=True)


def test_the_chosen_weight_is_kept_in_the_folder_and_taken_by_searches(tmp_path):
    model = replace(plain(), terms_weight=0.7, agreement_power=0.5, feedback=3)
    model.save(tmp_path / "m")
    read = Model.load(tmp_path / "m")
    assert read.feedback == 3 and plain().feedback is None
    with pytest.raises(ValueError, match="feedback: expected a whole number of at least 1, or None, got 0"):
        replace(plain(), feedback=0)
    assert ranker.default_terms(read) == 0.7 and read.search_power == 0.5 and plain().search_power == 1
    with pytest.raises(ValueError, match="agreement_power: expected None, or a number"):
        replace(plain(), agreement_power=-1)
    with pytest.raises(ValueError, match="terms_weight: expected None, or a number"):
        replace(plain(), terms_weight=1.5)


def test_judged_queries_that_are_training_pairs_are_told_and_what_a_search_does_with_words(folder, capsys):
    pairs = [line.split("\t") for line in (folder / "pairs.tsv").read_text().splitlines()]
    lefts = [*(left for left, _ in pairs[:6]), "red boats"]
    (folder / "q.tsv").write_text("".join(f"{i}\t{left}\n" for i, left in enumerate(lefts)))
    (folder / "d.tsv").write_text("".join(f"{i}\t{right}\n" for i, (_, right) in enumerate(pairs)))
    (folder / "qrels.txt").write_text("".join(f"{i} 0 {i} 1\n" for i in range(6)) + "6 0 9 1\n")
    judged = ["--dev-queries", "q.tsv", "--dev-documents", "d.tsv", "--dev-qrels", "qrels.txt"]
    words = ["train", "--pairs", "pairs.tsv", "--out", "model", "--method", "opca", "--dim", "2", "--dev", "0.3"]
    for more, told in ((judged, True), ([], False)):
        assert cli.main([*words, *more]) == 0
        assert ("6 of 7 judged queries are training pairs" in capsys.readouterr().err) == told


@pytest.mark.parametrize(("languages", "weight", "said"), [
    (("en", "en"), None, "`jaxsim search` puts words beside"), (("en", "en"), 0.0, "with --terms 0.5 puts words"),
    (("en", "es"), None, "with --terms 0.5 puts words beside the vectors")])
def test_what_a_search_does_with_words_is_told_as_it_is(languages, weight, said, capsys):
    from jaxsim.cli import train as command

    record = {"dev": {"mrr": 0.1, "untrained_mrr": 0.2}, "settings": {}}
    bare, some = plain(), Projection(np.ones((3, 1), np.float32))
    command._compare(replace(bare, params=some, languages=languages, terms_weight=weight, training=record))
    assert said in capsys.readouterr().err


@pytest.mark.programs
def test_the_command_line_searches_and_measures_by_judged_queries(folder, capsys):
    (folder / "q.tsv").write_text("1\t" + (folder / "texts.txt").read_text().splitlines()[0] + "\n")
    lines = (folder / "texts.txt").read_text().splitlines()
    (folder / "d.tsv").write_text("".join(f"{i}\t{line}\n" for i, line in enumerate(lines, start=1)))
    (folder / "qrels.txt").write_text("1 0 1 1\n")
    files = ["--dev-queries", "q.tsv", "--dev-documents", "d.tsv", "--dev-qrels", "qrels.txt"]
    words = ["train", "--pairs", "pairs.tsv", "--out", "model", "--dev", "0.3", "--tune", "--dim", "5", *files]
    result = json.loads(run(capsys, *words, "--budget", "2s", "--json"))
    assert result["search"]["map"] == 1 and result["tuned"][0]["map"] == 1 and result["settings"]["dim"] == 5
    assert Model.load("model").terms_weight == result["search"]["terms"]
    assert Model.load("model").agreement_power == result["search"].get("power")
    assert Model.load("model").feedback == result["search"].get("feedback")
    assert refused(capsys, *words, "--budget", "2s", "--dev-exclude-self").startswith(
        "--dev-qrels: expected a relevant document")  # fmt: skip
    alone = refused(capsys, *words[:7], "--dev-exclude-self")
    assert alone == "--dev-exclude-self: expected --dev-queries as well, got none"
    assert refused(capsys, *words[:-2]).startswith("--dev-qrels: expected a file, with --dev-queries")
    for wrong in ("soon", "0s", "-3", "5 days"):
        assert refused(capsys, *words, "--budget", wrong).startswith("--budget: expected a time such as 90s")
    words.remove("--tune")
    assert refused(capsys, *words, "--budget", "5m") == "--budget: expected --tune as well, got none"


def own(left, right):
    return pairs.make("own", map(str, range(len(left))), left, right, languages=("en", "en"))


def test_without_the_words_that_both_texts_share():
    given = own(["The cats sat", "dogs", "of the", "running fish", ""], ["a cat", "one dog", "the", "run", "x"])
    assert apart.without_shared(given) == ["the sat", "", "of", "fish", ""]
    spanish = pairs.make("es", "12", ["los gatos grandes", "perro"], ["the gatos", "dog"], languages=("es", "en"))
    assert apart.without_shared(spanish)[1] == "perro"


def test_what_is_left_of_a_text_finds_its_mate(rng):
    """Ranks of the definition: only texts of which something is left count, and each set by itself."""
    given = own(["cat fish", "dog bird", "bird", "fish dog", "cat"], ["cat", "dog fish", "bird", "bird", "dog"])
    model = Model(text.Vocabulary(("cat", "dog", "bird", "fish"), np.ones(4, np.int64), 4),
                  Projection(np.asarray(rng.normal(size=(4, 3)), np.float32)),
                  agreement=np.array([1, 0.5, 0.1], np.float32))  # fmt: skip
    sides = [model.encode(texts) * model.agreement for texts in (apart.without_shared(given), list(given.right))]
    left, right = (side / np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-30) for side in sides)

    def slow(rows):
        scores = left[rows] @ right[rows].T
        found = [1 / (1 + np.count_nonzero(np.delete(one, place) >= one[place] - 1e-6))
                 for place, one in enumerate(scores) if apart.without_shared(given)[rows[place]]]  # fmt: skip
        return float(np.mean(found))

    rest = apart.without_shared(given)
    assert apart.mean(apart.values(given, rest)(model)) == pytest.approx(slow(np.arange(5)))
    both = (slow(np.arange(2)) + slow(np.arange(2, 5))) / 2
    assert apart.mean(apart.values(given, rest, (2, 3))(model)) == pytest.approx(both)
    assert apart.mean(apart.values(own(["cat", "dog"], ["cat", "dog"]), ["", ""])(model)) == 0


@pytest.mark.parametrize("method", ["opca", "s2net"])
def test_titles_that_their_own_texts_repeat_choose_nothing_for_a_search(corpus, method):
    whole = [f"{left} {right}" for left, right in zip(corpus.left, corpus.right, strict=True)]
    repeated = pairs.make("repeated", corpus.ids, corpus.left, whole, languages=corpus.languages)
    given, said = replace(GIVEN, method=method, subwords=0.0), []
    chosen, tried = searched(repeated, 1e9, by="apart", settings=given, free=("dim", "noise", "gamma"), say=said.append)
    (line,) = said
    assert line.startswith("no setting is chosen, those that a search begins with are taken: 0 of ") and not tried
    assert chosen == replace(given, dim=20)
    other = corpus.take(range(100, 160))
    held = [pairs.make("whole", other.ids, other.left, other.left, languages=other.languages), other]
    chosen, tried = searched(corpus.take(range(100)), 1, by="apart", dev=held, settings=given, say=said.append)
    assert any(one.startswith("settings are chosen by ") for one in said)
    assert all(0 < one["apart"] < 1 for one in tried)


def test_pairs_choose_for_search_too(corpus):
    by, mates = (searched(corpus, 1, by=one, settings=replace(GIVEN, subwords=0.0)) for one in budget.SCORES[::-1])
    assert {one["dim"] for one in by[1]} == {5, 10, 20} and all(0 < one["apart"] < 1 for one in by[1])
    assert [one["apart"] for one in by[1]] == sorted((one["apart"] for one in by[1]), reverse=True)
    assert max(one["apart"] for one in by[1]) < min(one["mrr"] for one in mates[1])  # it is the harder task
    with pytest.raises(ValueError, match="by: expected one of mrr, apart, got map"):
        searched(corpus, 1, by="map")
    with pytest.raises(ValueError, match="by: expected mrr, with judged queries, got apart"):
        searched(corpus, 1, by="apart", judged=Judged(QUERIES, DOCUMENTS, QRELS))


def test_a_choice_for_search_stays_with_what_it_begins_with_unless_something_is_clearly_better(corpus, monkeypatch):
    given, said = replace(GIVEN, subwords=0.0), []
    chosen, tried = searched(corpus, 1, by="apart", settings=given, free=("dim", "noise"), say=said.append)
    scores = {(one["dim"], one["noise"]): one["apart"] for one in tried}
    assert scores[5, given.noise] != scores[20, given.noise] and chosen.dim == 20 and chosen.min_df == given.min_df
    best = max(tried, key=lambda one: one["apart"])
    kept = chosen == replace(given, dim=20)
    assert kept == (any("kept is what was tried first" in one for one in said) or best["dim"] == 20)
    monkeypatch.setattr(budget, "CHANCE", -np.inf)
    chosen, again = searched(corpus, 1, by="apart", settings=given, free=("dim", "noise"))
    assert again == tried and {name: getattr(chosen, name) for name in ("dim", "noise")} == {
        name: again[0][name] for name in ("dim", "noise")}  # fmt: skip


def test_a_method_that_is_given_is_not_changed(corpus):
    given = replace(GIVEN, method="s2net", max_iter=2)
    chosen, tried = searched(corpus, 1e9, by="apart", settings=given, free=("dim",))
    assert chosen.method == "s2net" and {one["method"] for one in tried} == {"opca", "s2net"}


def test_the_gain_of_a_model_and_its_error(rng):
    one, other = rng.random((2, 30)), rng.random((2, 30))
    difference, error = apart.gain(list(one), list(other))
    apart_by = one - other
    assert difference == pytest.approx(np.mean(apart_by))
    assert error == pytest.approx(np.sqrt(sum(np.var(each, ddof=1) / 30 for each in apart_by)) / 2)
    assert apart.gain([np.zeros(1)], [np.ones(1)]) == (0.0, np.inf)


def test_the_command_line_chooses_for_search(folder, capsys):
    words = ["train", "--pairs", "pairs.tsv", "--out", "model", "--method", "opca", "--dim", "5", "--dev", "0.3"]
    result = json.loads(run(capsys, *words, "--tune", "--budget", "1s", "--tune-for", "search", "--json"))
    assert "apart" in result["tuned"][0] and "mrr" not in result["tuned"][0]
    assert refused(capsys, *words, "--tune", "--tune-for", "search").startswith("--tune-for: expected --budget as well")
