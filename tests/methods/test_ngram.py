"""N-gram models: sums to one, a slow version written from the papers, cut-offs, ARPA files and other programs."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from jaxsim.data import questions, sentences
from jaxsim.methods.language import ngram

COUNTS = [1, 1, 1, 2, 2]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """A few hundred sentences of a small language with rare and frequent words."""
    rng = np.random.default_rng(3)
    words = [f"w{chr(97 + at)}" for at in range(24)]
    chain = rng.dirichlet(np.full(24, 0.15), size=24)
    lines = []
    for _ in range(500):
        row = [rng.integers(24)]
        for _ in range(rng.integers(1, 9)):
            row.append(rng.choice(24, p=chain[row[-1]]))
        lines.append(" ".join(words[at] for at in row))
    return sentences.build([("a", "\n\n".join(lines))], tmp_path_factory.mktemp("text") / "tokens")


def rows_of(text):
    """Sentences with their marks as tuples of numbers."""
    row, rows = [], []
    for token in text.tokens.tolist():
        row.append(token)
        if token == sentences.END:
            rows.append(tuple(row))
            row = []
    return rows


def grams_of(rows, n):
    return Counter(row[at : at + n] for row in rows for at in range(len(row) - n + 1))


class Katz:
    """Katz's model with Good-Turing discounts, from dictionaries."""

    def __init__(self, rows, size, order, cutoffs):  # noqa: D107
        self.size, self.grams = size, {n: grams_of(rows, n) for n in range(1, order + 1)}
        self.cutoffs, self.factors = cutoffs, {}
        for n in range(2, order + 1):
            of = Counter(self.grams[n].values())
            for k in range(7, 0, -1):
                if all(of[c] for c in range(1, k + 2)):
                    a = (k + 1) * of[k + 1] / of[1]
                    factors = {c: ((c + 1) * of[c + 1] / of[c] / c - a) / (1 - a) for c in range(1, k + 1)}
                    if all(0 < factor < 1 for factor in factors.values()):
                        self.factors[n] = factors
                        break
        singles = sum(count == 1 for gram, count in self.grams[1].items() if gram[0] != sentences.START)
        total = sum(count for gram, count in self.grams[1].items() if gram[0] != sentences.START)
        unknown = total * max(singles, 0.5) / (total - singles)
        self.base = np.zeros(size)
        for (word,), count in self.grams[1].items():
            self.base[word] = count
        self.base[sentences.UNKNOWN], self.base[sentences.START] = unknown, 0
        self.base /= self.base.sum()

    def probability(self, history, word):
        n = len(history) + 1
        if n == 1:
            return self.base[word]
        listed = {gram[-1]: count for gram, count in self.grams[n].items() if gram[:-1] == history}
        total, factors = sum(listed.values()), self.factors[n]
        discounted = {one: count * factors.get(count, 1) for one, count in listed.items()}
        total += bool(listed) and total - sum(discounted.values()) < 1e-6
        kept = {one: discounted[one] / total for one, count in listed.items() if count >= self.cutoffs[n - 1]}
        if word in kept:
            return kept[word]
        rest = 1 - sum(self.probability(history[1:], one) for one in kept)
        return (1 - sum(kept.values())) / rest * self.probability(history[1:], word)


class KneserNey:
    """Interpolated modified Kneser-Ney, from dictionaries; no cut-offs."""

    def __init__(self, rows, size, order):  # noqa: D107
        self.size, raw = size, {n: grams_of(rows, n) for n in range(1, order + 1)}
        self.counts = {order: raw[order]}
        for n in range(1, order):
            before = Counter(gram[1:] for gram in raw[n + 1])
            self.counts[n] = {gram: raw[n][gram] if gram[0] == sentences.START else before[gram] for gram in raw[n]}
        self.counts[1] = {gram: count for gram, count in self.counts[1].items() if gram[0] != sentences.START}
        self.discounts = {}
        for n in range(1, order + 1):
            listed = self.counts[n] if n > 1 else {g: c for g, c in raw[1].items() if g[0] > sentences.END}
            of = Counter(listed.values())
            enough = all(of[c] for c in (1, 2, 3, 4))
            y = of[1] / (of[1] + 2 * of[2]) if enough else 0
            self.discounts[n] = ([c - (c + 1) * y * of[c + 1] / of[c] for c in (1, 2, 3)] if enough else [0.5, 1, 1.5])

    def probability(self, history, word):
        n = len(history) + 1
        lower = 1 / (self.size - 1) if n == 1 else self.probability(history[1:], word)
        listed = {gram[-1]: count for gram, count in self.counts[n].items() if gram[:-1] == history}
        if not listed:
            return lower
        total = sum(listed.values())
        taken = {one: self.discounts[n][min(count, 3) - 1] for one, count in listed.items()}
        return ((listed[word] - taken[word]) / total if word in listed else 0) + sum(taken.values()) / total * lower


def test_katz_equals_a_slow_version(text):
    size, cutoffs = text.size(), (1, 1, 2)
    model = ngram.fit(text, order=3, min_count=1, cutoffs=cutoffs).params
    slow, row = Katz(rows_of(text), size, 3, cutoffs), np.array([1, 5, 3, 4, 0, 3, 9, 2])
    expected = [np.log(slow.probability(tuple(row[max(0, at - 2) : at].tolist()), row[at])) for at in range(1, 8)]
    assert np.allclose(ngram.log_probs(model, row)[1:], expected, atol=1e-5)


def test_kneser_ney_equals_a_slow_version(text):
    model = ngram.fit(text, order=4, min_count=1, smoothing="kneser-ney", cutoffs=(1, 1, 1, 1)).params
    slow, rows = KneserNey(rows_of(text), text.size(), 4), rows_of(text)[:3]
    for row in (*rows, (1, 5, 0, 3, 9, 2)):
        expected = [np.log(slow.probability(row[max(0, at - 3) : at], row[at])) for at in range(1, len(row))]
        assert np.allclose(ngram.log_probs(model, np.array(row))[1:], expected, atol=1e-5)


@pytest.mark.parametrize(("smoothing", "order", "min_count", "cutoffs"), [
    ("good-turing", 5, 1, COUNTS), ("kneser-ney", 5, 1, COUNTS), ("good-turing", 4, 200, (1, 2, 2, 3)),
    ("kneser-ney", 3, 200, (1, 2, 4)), ("good-turing", 2, 1, (1, 10_000)),
])
def test_probabilities_after_any_history_sum_to_one(text, smoothing, order, min_count, cutoffs):
    model = ngram.fit(text, order=order, smoothing=smoothing, min_count=min_count, cutoffs=cutoffs).params
    for history in [(1,), (1, 5), (1, 5, 3, 4), (1, 4, 0, 0, 7), (1, 6, 6, 6), tuple(rows_of(text)[0][:4])]:
        rows = np.array([[*history, word] for word in range(model.size) if word != sentences.START])
        logs = ngram.log_probs(model, rows.ravel()).reshape(rows.shape)[:, -1]
        assert np.exp(logs).sum() == pytest.approx(1, abs=1e-5)


def test_five_grams_are_counted_right(text):
    grams = ngram._count(np.asarray(text.tokens), text.size(), 5)
    expected = grams_of(rows_of(text), 5)
    four = grams.prefix[3]
    assert grams.counts[3].sum() == sum(expected.values()) and len(four) == len(expected)
    words = [grams.last[3]]
    for at in (2, 1, 0):
        words.append(grams.last[at][four])
        four = grams.prefix[at][four]
    listed = np.stack([four, *words[::-1]], axis=1).tolist()
    assert {tuple(row): count for row, count in zip(listed, grams.counts[3].tolist(), strict=True)} == dict(expected)


def test_discounted_counts_are_those_of_nltk(rng):
    probability = pytest.importorskip("nltk.probability", reason="nltk is not installed (pip install nltk): no oracle "
                                      "of Good-Turing was asked")
    counts = rng.zipf(1.7, size=40_000)
    oracle = probability.SimpleGoodTuringProbDist(probability.FreqDist(dict(enumerate(counts.tolist()))), bins=50_000)
    factors, n = ngram._turing(counts), np.bincount(np.minimum(counts, 9))
    share = 8 * n[8] / n[1]
    ours = [(factor * (1 - share) + share) * c for c, factor in enumerate(factors, start=1)]
    compared = min(oracle._switch_at - 1, 7)  # above, nltk smooths the counts of counts
    assert len(factors) == 7 and compared >= 2
    assert np.allclose(ours[:compared], [oracle._prob_measure(c) * counts.sum() for c in range(1, compared + 1)])


def test_perplexity_is_below_the_vocabulary_and_falls_with_the_order(text):
    held = text.tokens[: len(text.tokens) // 5]
    held = held[: np.flatnonzero(held == sentences.END)[-1] + 1]
    models = [ngram.fit(text, order=order, min_count=1).params for order in (2, 3)]
    values = [ngram.perplexity(ngram.log_probs(model, held), held) for model in models]
    assert text.size() > values[0] > values[1] > 1


def test_scores_prefer_the_sentence_of_the_text(text):
    row = max(rows_of(text), key=len)[1:-1]
    words = [text.vocabulary[number] for number in row]
    choices = [words[2], *(word for word in text.vocabulary[3:6] if word != words[2])]
    one = questions.collect([questions.question(" ".join([*words[:2], "_____", *words[3:]]), choices)])
    values = ngram.scores(ngram.fit(text, min_count=1).params, questions.encode(one, text.numbers))
    assert values.shape == (1, len(choices)) and values[0].argmax() == 0 and np.isfinite(values).all()


@pytest.mark.parametrize("smoothing", ngram.SMOOTHINGS)
def test_choices_outside_the_vocabulary_share_the_probability_of_unknown_words(text, smoothing):
    model = ngram.fit(text, smoothing=smoothing, min_count=int(text.counts[-3])).params
    rare = [*text.vocabulary[model.size :], "qqq"]
    choices = [text.vocabulary[3], *rare]
    filled = questions.encode(questions.collect([questions.question("_____", choices)]), text.numbers)
    whole, found = (ngram.scores(model, filled, counts=counts)[0] for counts in (None, text.counts))
    assert len(rare) >= 3 and np.ptp(whole[1:]) == 0 and found[0] == whole[0]
    assert np.exp(found[1:]).sum() == pytest.approx(np.exp(whole[1]))
    counts = [*text.counts[model.size :], 0]
    np.testing.assert_allclose(np.exp(found[1:] - found[-1]), np.add(counts, 1))


@pytest.mark.parametrize("smoothing", ngram.SMOOTHINGS)
def test_arpa_files_are_read_back(text, tmp_path, smoothing):
    model = ngram.fit(text, smoothing=smoothing, min_count=1).params
    ngram.write_arpa(model, text.vocabulary, tmp_path / "model.arpa")
    back, vocabulary = ngram.read_arpa(tmp_path / "model.arpa")
    assert vocabulary == text.vocabulary
    row = np.array([*text.tokens[:200], 1, 0, 5, 2])
    assert np.allclose(ngram.log_probs(back, row), ngram.log_probs(model, row), atol=1e-5)


@pytest.mark.parametrize("smoothing", ngram.SMOOTHINGS)
def test_kenlm_gives_the_same_probabilities(text, tmp_path, smoothing):
    kenlm = pytest.importorskip("kenlm", reason="kenlm is not installed (pip install kenlm, with a C++ compiler): no "
                                "parity of ARPA files was tested")
    model = ngram.fit(text, smoothing=smoothing, min_count=1).params
    ngram.write_arpa(model, text.vocabulary, tmp_path / "model.arpa")
    peer = kenlm.Model(str(tmp_path / "model.arpa"))
    for row in (*rows_of(text)[:20], (1, 7, 0, 5, 5, 9, 2)):
        words = " ".join("zzz" if number == 0 else text.vocabulary[number] for number in row[1:-1])
        expected = [log * np.log(10) for log, _, _ in peer.full_scores(words)]
        assert np.allclose(ngram.log_probs(model, np.array(row))[1:], expected, atol=1e-4)


@pytest.mark.parametrize(("content", "message"), [
    ("\\data\\\n\n\\1-grams:\n-1\ta\t0\n\n\\2-grams:\n-1\ta a\n", "no end"),
    ("\\1-grams:\n-1\ta\n\\2-grams:\n-1\ta b\n\\end\\\n", "words of the 1-grams, got 'b' in the 2-grams"),
    ("\\1-grams:\n-1\ta b\n\\2-grams:\n\\end\\\n", "line 2: expected a logarithm, 1 word"),
    ("\\1-grams:\nx\ta\n\\2-grams:\n\\end\\\n", "line 2"),
    ("\\1-grams:\n-1\n\\2-grams:\n\\end\\\n", "line 2: expected a logarithm, 1 word"),
    ("\\data\\\nngram 1=2\nngram 2=0\n\\1-grams:\n-1\ta\n\\2-grams:\n\\end\\\n", "expected 2 1-grams, .* got 1"),
    ("\\1-grams:\n-1\ta\n-1\ta\n\\2-grams:\n\\end\\\n", "expected every 1-gram once"),
    ("\\1-grams:\n-1\ta\n\\2-grams:\n-1\ta a\n-2\ta a\n\\end\\\n", "expected every 2-gram once"),
    ("\\1-grams:\n-1\ta\n\\2-grams:\n\\3-grams:\n-1\ta a a\n\\end\\\n", "the first words of each 3-gram"),
])
def test_damaged_arpa_files_are_refused(tmp_path, content, message):
    (tmp_path / "x.arpa").write_text(content)
    with pytest.raises(ValueError, match=message):
        ngram.read_arpa(tmp_path / "x.arpa")


@pytest.mark.parametrize(("options", "message"), [
    ({"order": 6}, "order: expected 2 to 5"), ({"order": 1}, "order"), ({"smoothing": "none"}, "smoothing"),
    ({"cutoffs": (1, 2, 1, 1)}, "cutoffs"), ({"cutoffs": (1, 1)}, "cutoffs"),
    ({"cutoffs": (1, float("nan")), "order": 2}, "cutoffs: expected 2 whole numbers"),
    ({"cutoffs": (1, 1.5), "order": 2}, "cutoffs: expected 2 whole numbers"), ({"min_count": 0}, "min_count"),
])
def test_settings_out_of_range_are_refused(text, options, message):
    with pytest.raises(ValueError, match=message):
        ngram.fit(text, **options)


def test_a_text_of_one_word_is_enough(tmp_path):
    text = sentences.build([("a", "tea")], tmp_path / "tokens")
    for smoothing, order in itertools.product(ngram.SMOOTHINGS, (2, 3, 4, 5)):
        model = ngram.fit(text, order=order, smoothing=smoothing, min_count=1).params
        assert np.isfinite(ngram.log_probs(model, np.array([1, 3, 3, 0, 2]))).all()


_EDITS = {"keys_0": lambda keys: keys[0], "keys_1": lambda keys: keys[::-1], "log_prob_0": lambda logs: logs[0],
          "log_prob_1": lambda logs: logs + 5, "log_backoff_0": lambda logs: np.append(logs, np.nan)}  # fmt: skip


@pytest.mark.parametrize("name", _EDITS)
def test_no_array_of_a_file_is_looked_up_unchecked(text, tmp_path, name):
    params, path = ngram.fit(text, order=3).params, tmp_path / "model.npz"
    ngram.save(params, path)
    tokens = text.tokens[:200]
    np.testing.assert_array_equal(ngram.log_probs(ngram.load(path), tokens), ngram.log_probs(params, tokens))
    with np.load(path) as packed:
        arrays = dict(packed)
    np.savez(path, **{**arrays, name: _EDITS[name](arrays[name])})
    with pytest.raises(ValueError, match=rf"model\.npz: {name}: expected"):
        ngram.load(path)
