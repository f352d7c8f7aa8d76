"""Word translation: the aligners against slow ones, tables, readers, and what they refuse."""

from __future__ import annotations

import itertools
import json
import tracemalloc
from collections import defaultdict

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

from jaxsim import io, sparse, text
from jaxsim.methods.translation import bitext, dictionary, hmm, ibm1, links, table


def sentences(rng, number=60, words=12, longest=21):
    """Pairs of sentences of many lengths; word i on the left mostly stands for word i on the right."""
    left, right = [], []
    for _ in range(number):
        one = rng.integers(words, size=rng.integers(1, longest))
        other = np.where(rng.random(one.size) < 0.8, one, rng.integers(words, size=one.size))
        left.append([f"l{i}" for i in one])
        right.append([f"r{i}" for i in other[rng.random(other.size) < 0.9]] or ["r0"])
    return left, right


def slow_model1(left, right, iterations):
    """t(e | f) of Model 1, token by token in float64; None is the empty word."""
    words = {e for sentence in right for e in sentence}
    t = defaultdict(lambda: 1 / len(words))
    for _ in range(iterations):
        counts, total = defaultdict(float), defaultdict(float)
        for source, target in zip(left, right, strict=True):
            for e in target:
                whole = sum(t[e, f] for f in [None, *source])
                for f in [None, *source]:
                    counts[e, f] += t[e, f] / whole
                    total[f] += t[e, f] / whole
        t = defaultdict(float, {pair: count / total[pair[1]] for pair, count in counts.items()})
    return t


def as_dict(found: table.Translation):
    coordinates = found.right_given_left.tocoo()
    return {(found.right[e], found.left[f]): p for f, e, p in zip(coordinates.row, coordinates.col, coordinates.data,
                                                                  strict=True)}  # fmt: skip


def test_model_1_is_the_slow_one(rng):
    left, right = sentences(rng)
    fit = ibm1.fit(bitext.from_words(left, right), max_iter=4, threshold=0.0)
    found, slow = as_dict(fit.params), slow_model1(left, right, 4)
    assert len(found) == sum(f is not None and p > 0 for (_, f), p in slow.items())
    for pair, p in found.items():
        assert p == pytest.approx(slow[pair], abs=1e-10)
    losses = [entry["loss"] for entry in fit.history[1:]]
    assert all(later < before for before, later in itertools.pairwise(losses))  # likelihood never falls


def test_model_1_is_nltks(rng):
    ibm = pytest.importorskip("nltk.translate.ibm1")
    from nltk.translate import AlignedSent

    left, right = sentences(rng)
    right = [sorted(set(one)) for one in right]  # NLTK divides twice by the sum of a target word that stands twice
    found = as_dict(ibm1.fit(bitext.from_words(left, right), max_iter=4, threshold=0.0).params)
    other = ibm.IBMModel1([AlignedSent(b, a) for a, b in zip(left, right, strict=True)], 4).translation_table
    for (e, f), p in found.items():
        assert p == pytest.approx(other[e][f], abs=1e-6)


def test_both_directions_are_learned_at_once(rng):
    left, right = sentences(rng)
    there, back = (ibm1.fit(bitext.from_words(*sides), threshold=0.0).params
                   for sides in ((left, right), (right, left)))  # fmt: skip
    np.testing.assert_allclose(there.left_given_right.toarray(), back.right_given_left.toarray(), atol=1e-12)


def test_posteriors_of_the_hidden_markov_model_are_sums_over_all_alignments(rng):
    places, length = 3, 4
    source = jnp.array([[5, 2, 7, 0]])  # the last place is padding
    jumps = jnp.asarray(rng.random((8, 2 * hmm.WIDEST + 1)))
    emit = rng.random((length, places + 1))
    emit[:, places] = 0
    none = rng.random(length)
    move = np.asarray(hmm.transitions(jumps, source))[0]
    weight = np.array([[jumps[source[0, i], hmm.WIDEST + j - i] for j in range(places)] for i in range(places)])
    np.testing.assert_allclose(move[:places, :places], weight / weight.sum(axis=1, keepdims=True), rtol=1e-6)
    start = jnp.array([[1 / 3, 1 / 3, 1 / 3, 0]])
    at, without, moves, likely = hmm.posteriors(jnp.asarray(emit)[:, None], jnp.asarray(none)[:, None],
                                                jnp.asarray(move)[None], start)
    total, real, empty = 0.0, np.zeros((length, places)), np.zeros(length)
    jumped = np.zeros((places, places))
    for path in itertools.product(range(2 * places), repeat=length):  # a place, with a source or without
        p = 1 / places
        for j, state in enumerate(path):
            place, is_none = state % places, state >= places
            if is_none and j and place != path[j - 1] % places:
                p = 0.0
            if not is_none:
                p *= (1 - hmm.EMPTY) * emit[j, place] * (move[path[j - 1] % places, place] if j else 1)
            else:
                p *= hmm.EMPTY * none[j]
        total += p
        for j, state in enumerate(path):
            if state < places:
                real[j, state] += p
                if j:
                    jumped[path[j - 1] % places, state] += p
            else:
                empty[j] += p
    np.testing.assert_allclose(at[:, 0, :places], real / total, rtol=1e-6)
    np.testing.assert_allclose(without[:, 0], empty / total, rtol=1e-6)
    np.testing.assert_allclose(moves[0, :places, :places], jumped / total, rtol=1e-6)
    assert float(likely) == pytest.approx(np.log(total), rel=1e-6)


@pytest.mark.parametrize("word_jumps", [False, True])
def test_places_tell_apart_words_that_always_stand_together(word_jumps):
    # "a" and "b" always stand together, but in one order: Model 1 cannot tell them apart.
    order = [["a", "b"], ["a", "b", "c"], ["c", "a", "b"]] * 4
    text_ = bitext.from_words(order, [[word.upper() for word in one] for one in order])
    model1 = dict(ibm1.fit(text_, max_iter=10).params.best("a"))
    assert model1["A"] == pytest.approx(model1["B"])
    fit = hmm.fit(text_, max_iter=12, word_jumps=word_jumps)
    assert dict(fit.params.best("a"))["A"] > 0.75 and dict(fit.params.best("B", reverse=True))["b"] > 0.75
    assert fit.history[-1]["loss"] < fit.history[6]["loss"]


@pytest.mark.parametrize("word_jumps", [False, True])
@pytest.mark.parametrize("sides", [("house dog", "casa perro"), ("house dog", "la casa;el perro")])
def test_sentences_of_one_word_have_no_jumps_and_are_aligned(sides, word_jumps):
    left, right = ([one.split() for one in side.split(";" if ";" in side else " ")] for side in sides)
    fit = hmm.fit(bitext.from_words(left, right), word_jumps=word_jumps)
    assert len(fit.history) == 10 and fit.params.best("house")[0][0] in right[0]
    np.testing.assert_allclose(hmm.weights(jnp.zeros((1, 2 * hmm.WIDEST + 1)), 1.0), 1 / (2 * hmm.WIDEST + 1))


def test_the_best_iteration_is_kept_and_stops_the_fit(rng):
    text_ = bitext.from_words(*sentences(rng))
    seen = []

    def score(params):
        seen.append(params)
        return -abs(len(seen) - 4)

    fit = ibm1.fit(text_, max_iter=20, patience=2, validate=score)
    assert (fit.steps, fit.converged) == (5, True)
    np.testing.assert_array_equal(fit.params.right_given_left.toarray(), seen[3].right_given_left.toarray())


def test_a_checkpoint_of_another_bitext_is_refused(tmp_path, rng):
    ibm1.fit(bitext.from_words(*sentences(rng)), checkpoint=tmp_path, max_iter=2)
    with pytest.raises(ValueError, match="checkpoint: expected a checkpoint of the same data"):
        ibm1.fit(bitext.from_words(*sentences(rng)), checkpoint=tmp_path, max_iter=2)


def test_unknown_words_stay_and_roots_raise_rare_translations():
    params = dictionary.fit([("house", "casa"), ("home", "casa"), ("book", "libro")]).params
    terms = ("casa", "2024", "libro", "house", "home", "book", "verde")
    whole = table.between(params, terms, terms)
    assert whole.shape == (7, 7)
    assert whole[0].toarray().tolist() == [[0, 0, 0, 0.5, 0.5, 0, 0]]
    assert whole[1, 1] == whole[6, 6] == whole[3, 3] == 1
    assert table.between(params, terms, terms, power=0.5)[0, 3] == pytest.approx(0.5**0.5)
    assert table.between(params, terms, terms, keep_unknown=False)[1].nnz == 0
    assert table.between(params, terms, terms, reverse=False)[5, 2] == 1


@pytest.mark.parametrize("way", table.SYMMETRIZE)
def test_the_combined_table_keeps_the_threshold(rng, way):
    lines = bitext.from_words(*sentences(rng))
    found = ibm1.fit(lines, symmetrize=way, threshold=0.1).params
    for one in (found.right_given_left, found.left_given_right):
        assert one.data.min() >= 0.1
        sums = np.asarray(one.sum(axis=1)).ravel()
        np.testing.assert_allclose(sums[sums > 0], 1)


def slow_links(lines):
    """Every pair of words that occur in one pair of sentences, by the left word."""
    sides = [np.split(side.words, side.indptr[1:-1]) for side in (lines.left, lines.right)]
    return sorted({pair for one, other in zip(*sides, strict=True) for pair in itertools.product(one, other)})


@pytest.mark.parametrize("at_once", [1, 500, 2**21])
def test_links_are_numbered_some_sentences_at_a_time(rng, monkeypatch, at_once):
    monkeypatch.setattr(links, "_AT_ONCE", at_once)
    lines = bitext.from_words(*sentences(rng))
    pairs = slow_links(lines)
    for found, side, wanted in zip(links.both(lines), (lines.left, lines.right),
                                   (pairs, sorted((b, a) for a, b in pairs)), strict=True):
        first = len(found.rows) - len(pairs)
        named = list(zip(np.asarray(found.rows)[first:] - 1, found.columns[first:], strict=True))
        assert named == wanted and found.num_source == len(side.vocabulary)
        tokens = 0
        for block in found.blocks:
            link, null, source = (np.asarray(part) for part in block)
            there = (null > 0)[..., :, None] & (source > 0)[..., None, :]
            assert ((link > 0) == there).all()
            rows, columns = np.asarray(found.rows)[link], found.columns[link]
            assert (rows == np.where(there, source[..., None, :], 0)).all()
            assert (columns == np.where(there, null[..., :, None] - 1, 0)).all()
            tokens += int((null > 0).sum())
        assert tokens == found.tokens


def test_numbering_links_takes_little_more_memory_than_they_do(rng):
    lines = bitext.from_words(*([[f"w{i}" for i in rng.integers(300, size=30)] for _ in range(4000)]
                                for _ in range(2)))  # fmt: skip
    tracemalloc.start()
    kept = sum(block.links.nbytes for one in links.both(lines) for block in one.blocks)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 * kept, peak / kept


def test_documents_are_weighted_before_or_after_they_are_translated(rng):
    counts = sp.csr_matrix(rng.integers(0, 3, (5, 4)).astype(np.float64))
    columns = sp.csr_matrix(rng.random((4, 6)))
    df, num_docs = np.array([1, 2, 3, 4, 5, 6]), 8
    after = table.encode(columns, sparse.from_scipy(counts), df=df, num_docs=num_docs).sparse
    np.testing.assert_allclose(sparse.to_scipy(after).toarray(),
                               np.log2((counts @ columns).toarray() + 1) * np.log2(num_docs / df), rtol=1e-5)
    before = table.encode(columns, sparse.from_scipy(counts)).sparse
    np.testing.assert_allclose(sparse.to_scipy(before).toarray(), (counts @ columns).toarray(), rtol=1e-6)


def test_a_table_is_the_same_after_a_round_trip(tmp_path, rng):
    params = hmm.fit(bitext.from_words(*sentences(rng))).params
    table.save(tmp_path / "table", params, about={"method": "hmm"})
    table.save(tmp_path / "table", params, about={"method": "hmm"})  # replaces it
    found, about = table.load(tmp_path / "table")
    assert about == {"method": "hmm"} and found.left == params.left and found.right == params.right
    for name in ("right_given_left", "left_given_right"):
        np.testing.assert_allclose(getattr(found, name).toarray(), getattr(params, name).toarray(), rtol=1e-6)
    (tmp_path / "table" / "table.npz").write_bytes(b"PK")
    with pytest.raises(ValueError, match="table.npz: expected the file that was saved, got an altered one"):
        table.load(tmp_path / "table")
    with pytest.raises(ValueError, match="expected the folder of a translation table, got none"):
        table.load(tmp_path)


_EDITS = {"left_given_right.indices": (0, 10**6, "columns from 0 to"), "right_given_left.indptr": (1, -1, "pointers"),
          "right_given_left.data": (0, np.nan, "finite"), "left_counts": (0, -1.0, "at least 0")}  # fmt: skip


@pytest.mark.parametrize("name", _EDITS)
def test_no_array_of_a_table_reaches_a_product_unchecked_whoever_wrote_the_digests(tmp_path, rng, name):
    place, value, message = _EDITS[name]
    table.save(tmp_path / "table", hmm.fit(bitext.from_words(*sentences(rng)), max_iter=1).params)
    with np.load(tmp_path / "table" / "table.npz") as packed:
        arrays = dict(packed)
    arrays[name][place] = value
    np.savez(tmp_path / "table" / "table.npz", **arrays)
    told = json.loads((tmp_path / "table" / "translation.json").read_bytes())
    told["files"] = {"table.npz": io.file_digest(tmp_path / "table" / "table.npz")}
    del told["digest"]
    (tmp_path / "table" / "translation.json").write_bytes(io.sealed(told))
    with pytest.raises(ValueError, match=message):
        table.load(tmp_path / "table")


def test_pages_give_their_lines_where_they_have_equally_many():
    left = ["One two three.\nFour.", "One.\nTwo.", "A b c d e.\n\nF."]
    right = ["Uno dos tres.\n\nCuatro.", "Uno.", "A.\nF."]
    found = bitext.from_pages(left, right, words=(text.words, text.words))
    assert found.counts == {"sentences": 3, "empty": 0, "cut": 0, "pages": 3, "unequal": 1, "uneven": 1}
    assert "tres" in found.right.vocabulary and "d" not in found.left.vocabulary
    assert bitext.from_pages(left, right, words=(text.words, text.words), most=2).counts["sentences"] == 2


def test_very_long_sentences_are_cut_and_counted():
    found = bitext.from_words([["a"] * 10_000, ["a"]], [["b"] * 10_000, ["b"]])
    assert found.counts["cut"] == 1 and len(found.left.words) == bitext.MAX_WORDS + 1
    whole = bitext.from_words([["a"] * 200], [["b"] * 140], max_words=1000)
    assert ibm1.fit(whole).params.best("a") == [("b", 1.0)]


def test_dictionaries_leave_phrases_out_and_count_them(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("# a comment\nHouse {n} (place) :: casa {f}, hogar; casa grande\nice cream :: helado\nodd ::\n")
    pairs, counts = dictionary.read(path)
    assert pairs == [("house", "casa"), ("house", "hogar")]
    assert counts == {"entries": 3, "phrases": 2, "empty": 1}
    path.write_text("house :: casa (feminine, singular), hogar\ncat\tgato {m, f}; felino\n")
    assert dictionary.read(path)[0] == [("house", "casa"), ("house", "hogar"), ("cat", "gato"), ("cat", "felino")]
    path.write_text("cafe\u0301\tcafe\u0301, cafe\u0301 solo\nsoft\u00adware\t\u200d, programas\n", "utf-8")
    assert dictionary.read(path)[0] == [("caf\u00e9", "caf\u00e9"), ("software", "programas")]  # as texts have them
    path.write_text("house\tcasa\nhouse casa\n")
    with pytest.raises(ValueError, match=r"words\.txt, line 2: expected a word, '::' and its translations"):
        dictionary.read(path)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: bitext.from_words([["a"]], []), "right: expected 1 sentences"),
    (lambda: bitext.from_words([["a"], []], [[], ["b"]]), "left, right: expected a pair of sentences with words"),
    (lambda: bitext.from_words(["a b"], [["a"]]), "left: expected a list of words for each sentence, got a string"),
    (lambda: bitext.from_pages(["a"], ["b", "c"], words=(str.split, str.split)), "right: expected 1 pages"),
    (lambda: bitext.from_pages(["a\nb"], ["b"], words=(str.split, str.split)), "equally many lines on both sides"),
    (lambda: ibm1.fit([["a"]]), "bitext: expected"),
    (lambda: ibm1.fit(bitext.from_words([["a"]], [["b"]]), symmetrize="both"), "symmetrize: expected one of"),
    (lambda: ibm1.fit(bitext.from_words([["a"]], [["b"]]), threshold=1.0), "threshold: expected a probability"),
    (lambda: hmm.fit(bitext.from_words([["a"]], [["b"]]), model1=0), "model1: expected"),
    (lambda: dictionary.fit([]), "pairs: expected at least one pair of words, got none"),
    (lambda: table.translate(sp.csr_matrix((1, 2)), sp.csr_matrix((3, 1))), "documents: expected 3 terms"),
])  # fmt: skip
def test_bad_input_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_word_that_was_never_linked_has_no_translation_and_no_warning():
    counts = sp.csr_matrix(np.array([[3.0, 1.0], [0.0, 0.0]]))
    found = table.from_counts(counts, counts.T.tocsr(), ["a", "b"], ["x", "y"])
    assert found.best("a") == [("x", 0.75), ("y", 0.25)] and found.best("b") == []


def test_symmetrized_counts_are_those_of_both_directions(tmp_path):
    ahead, back = np.array([[3.0, 1.0], [0.0, 4.0]]), np.array([[1.0, 0.0], [2.0, 4.0]])
    params = table.from_counts(sp.csr_matrix(ahead), sp.csr_matrix(back), ["a", "b"], ["x", "y"])
    for way, both in (("mean", (ahead + back.T) / 2), ("geometric", np.sqrt(ahead * back.T))):
        found = table.symmetrized(params, way).right_given_left.toarray()
        np.testing.assert_allclose(found, both / both.sum(axis=1, keepdims=True), atol=1e-12)
    table.save(tmp_path / "table", params, about={})
    config = json.loads((tmp_path / "table" / table.MARKER).read_text())
    newer = {name: value for name, value in config.items() if name != "digest"} | {"format": 2}
    (tmp_path / "table" / table.MARKER).write_bytes(io.sealed(newer))
    with pytest.raises(ValueError, match="format: expected 1 to 1"):
        table.load(tmp_path / "table")
