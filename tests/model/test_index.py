"""Documents that are encoded once and searched many times: the same results, and nothing wrong is ever searched."""

from __future__ import annotations

import json
import re

import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy
import scipy.sparse as sp

from jaxsim import io, sparse, text
from jaxsim.evaluate import retrieval
from jaxsim.methods.projections import Projection
from jaxsim.model import Model, index
from jaxsim.sparse import Vectors

WORDS = text.Vocabulary(("cat", "dog", "fish", "日本", "zwölf"), np.array([2, 3, 2, 1, 1]), 10)
TEXTS = ["cat dog dog", "", "zwölf fish", "日本 cat \U0001f431", "unheard", "e\u0301 \ud800 dog", "fish cat"]
LINES = [1, 2, 4, 5, 7, 8, 20]


@pytest.fixture(params=["one", "two", "bare"])
def model(request, rng):
    """Models with a projection for both sides, with one for each, and with none."""
    sides = [Projection(jnp.asarray(rng.normal(size=(5, 3)), jnp.float32)) for _ in range(2)]
    return Model(WORDS, {"one": sides[0], "two": tuple(sides), "bare": None}[request.param])


def equal(first, second):
    """Whether two arrays, sparse matrices or Vectors are the same bit for bit, in type and shape too."""
    if first is None or second is None:
        return first is second
    if isinstance(first, Vectors):
        parts = [one if one is None else sparse.to_scipy(one) for one in (first.sparse, second.sparse)]
        return equal(first.dense, second.dense) and equal(*parts)
    if sp.issparse(first):
        return first.shape == second.shape and all(
            equal(getattr(first, part), getattr(second, part)) for part in ("data", "indices", "indptr"))  # fmt: skip
    first, second = np.asarray(first), np.asarray(second)
    return first.dtype == second.dtype and first.shape == second.shape and first.tobytes() == second.tobytes()


def saved(folder, model, texts=TEXTS, lines=LINES, **given):
    return index.save(folder / "kept", index.encode(model, texts, lines=lines, **given), model="one model")


def test_what_is_saved_is_read_bit_for_bit(model, tmp_path):
    made = index.encode(model, TEXTS, lines=LINES)
    found = index.load(saved(tmp_path, model))
    assert list(found.texts) == TEXTS and found.texts[-1] == TEXTS[-1] and found.texts[1:3] == TEXTS[1:3]
    assert found.lines.tolist() == LINES and equal(found.vectors, made.vectors) and equal(found.words, made.words)
    with pytest.raises(IndexError):
        found.texts[7]
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == [index.MARKER, index.TENSORS]


@pytest.mark.parametrize("weight", [0, 0.3, 1])
def test_a_search_is_the_same_bit_for_bit_and_that_of_the_cosines(weight, model, tmp_path):
    saved(tmp_path, model)
    found = index.load(tmp_path / "kept", weights=[weight])
    fresh = index.encode(model, TEXTS, weights=[weight])
    query = index.encode(model, ["dog fish"], side="query", weights=[weight]).mixed(weight)
    both = query.dense is not None and query.sparse is not None
    kind = retrieval.dot if both else retrieval.cosine
    first, second = (retrieval.top_k(query, one.mixed(weight), k=7, similarity=kind) for one in (found, fresh))
    assert equal(first[0], second[0]) and equal(first[1], second[1])
    bare = Model(WORDS, None)
    cosines = [one.similarity("dog fish", TEXTS) for one in (model, bare)]
    expected = cosines[0] if model.params is None else (1 - weight) * cosines[0] + weight * cosines[1]
    np.testing.assert_allclose(first[0][0], expected[first[1][0]], atol=2e-6)


def test_only_what_a_search_needs_is_kept_in_memory(rng, tmp_path):
    model = Model(WORDS, Projection(jnp.asarray(rng.normal(size=(5, 3)), jnp.float32)))
    folder = saved(tmp_path, model)
    for read in (lambda weights: index.load(folder, weights=weights), lambda weights: index.encode(
            model, TEXTS, weights=weights)):  # fmt: skip
        parts = [(one.vectors is None, one.words is None) for one in (read([0]), read([1]), read([0.5]), read([0, 1]))]
        assert parts == [(False, True), (True, False), (False, False), (False, False)]


def test_an_index_knows_its_documents_and_its_model(model, tmp_path):
    told = index.described(saved(tmp_path, model))
    assert (told["model"], told["documents"]) == ("one model", 7) and index.holds(told, TEXTS, LINES)
    for texts, lines in (
        (TEXTS[::-1], LINES), (TEXTS, [*LINES[:-1], 21]), (TEXTS[:-1], LINES[:-1]), ([*TEXTS, ""], [*LINES, 21]),
        (["cat dog", " dog", *TEXTS[2:]], LINES), (["cat dog do", "g", *TEXTS[2:]], LINES), ([], []),
    ):  # fmt: skip
        assert not index.holds(told, texts, lines)


def test_documents_without_a_letter_or_a_known_word(model, tmp_path):
    for number, texts in enumerate((["", ""], ["unheard"], ["\0"])):
        folder = index.save(tmp_path / str(number), index.encode(model, texts), model="")
        found = index.load(folder)
        assert list(found.texts) == texts and found.lines.tolist() == list(range(1, len(texts) + 1))
        query = index.encode(model, ["cat"], side="query").mixed(0)
        assert not retrieval.top_k(query, found.mixed(0), k=len(texts))[0].any()


def test_an_older_index_is_replaced_and_nothing_else_is(model, tmp_path):
    saved(tmp_path, model)
    saved(tmp_path, model, TEXTS[:2], LINES[:2])
    assert list(index.load(tmp_path / "kept").texts) == TEXTS[:2]
    place = model.save(tmp_path / "model")
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.txt").write_text("years of work")
    for name in ("model", "thesis"):
        with pytest.raises(ValueError, match=r"index: expected a new folder, or one that holds an older index of ours"):
            index.save(tmp_path / name, index.encode(model, ["cat"]), model="")
    with pytest.raises(ValueError, match="out: expected a new folder, or one that holds an older model of ours"):
        model.save(tmp_path / "kept")
    (tmp_path / "kept" / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"index: expected nothing in .* but the older index .*, got mine.txt"):
        saved(tmp_path, model)
    assert (tmp_path / "kept" / "mine.txt").read_text() == "mine"
    assert equal(Model.load(place).vectors(TEXTS), model.vectors(TEXTS))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "model", "thesis"]


def test_every_altered_byte_and_every_cut_is_told(rng, tmp_path):
    model = Model(WORDS, Projection(jnp.asarray(rng.normal(size=(5, 3)), jnp.float32)))
    path = saved(tmp_path, model) / index.TENSORS
    whole = path.read_bytes()
    begin = 8 + int.from_bytes(whole[:8], "little")
    places = [0, 7, 9, *range(begin, len(whole), 5), len(whole) - 1]
    for broken in (*(whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :] for i in places),
                   *(whole[:i] for i in (0, 5, 40, begin, len(whole) - 1)), whole + b"x"):  # fmt: skip
        path.write_bytes(broken)
        with pytest.raises(ValueError, match=r"index.safetensors: expected the file that was saved, got an altered or"):
            index.load(tmp_path / "kept")
    path.unlink()
    with pytest.raises(FileNotFoundError, match="index.safetensors: expected a file of the index, got none"):
        index.load(tmp_path / "kept")


@pytest.mark.parametrize(("content", "message"), [
    ("", "index.json: expected JSON"),
    ("[]", 'index.json: expected a configuration with "library": "jaxsim"'),
    ('{"library": "other"}', 'index.json: expected a configuration with "library": "jaxsim"'),
    (io.sealed({"library": "jaxsim", "format": index.FORMAT + 1}).decode(), "index.json: format: expected 1 to 4 "),
    (None, "index.json: expected the configuration that was saved, got an altered one"),
])  # fmt: skip
def test_another_description_is_refused(content, message, model, tmp_path):
    path = saved(tmp_path, model) / index.MARKER
    path.write_text(json.dumps(json.loads(path.read_text()) | {"model": "x"}) if content is None else content)
    with pytest.raises(ValueError, match=re.escape(message)):
        index.load(tmp_path / "kept")


def with_(array, place, value):
    array = np.array(array)
    array[place] = value
    return array


@pytest.mark.parametrize(("name", "alter", "message"), [
    ("words.columns", lambda a: with_(a, 2, 2**31 - 1), "words: expected columns from 0 to 4, got 2147483647"),
    ("words.columns", lambda a: with_(a, 2, -5), "words: expected columns from 0 to 4, got -5"),
    ("words.columns", lambda a: a[::-1].copy(), "words: expected columns that rise within each row"),
    ("words.columns", lambda a: a[:-1], r"words: expected int32 or int64 of shape"),
    ("words.columns", lambda a: a.astype(float), r"words: expected int32 or int64 of shape"),
    ("words.starts", lambda a: with_(a, 3, 10**6), "words: expected row pointers that rise"),
    ("words.starts", lambda a: with_(a, -1, 10**6), "words: expected row pointers from 0 to"),
    ("words.starts", lambda a: with_(a, 0, -1), "words: expected row pointers from 0 to"),
    ("words.values", lambda a: with_(a, 0, np.nan), "words: expected finite values"),
    ("dense", lambda a: with_(a, (0, 0), np.inf), "dense: expected finite values"),
    ("dense", lambda a: a[:-1], r"dense: expected float32 or float64 of shape \(7, any\), got float32 of"),
    ("lines", lambda a: a[:-1], "lines: expected int64 of shape"),
    ("ends", lambda a: with_(a, 2, 10**9), "ends: expected ends of texts that rise to"),
    ("ends", lambda a: with_(a, 2, a[1] + 3), "texts: expected texts in UTF-8"),
    ("ends", lambda a: with_(a, 2, a[2] + 1), "texts: expected texts in UTF-8"),
    ("texts", lambda a: with_(a, 4, 255), "texts: expected texts in UTF-8"),
    ("stems.texts", np.zeros_like, "stems.texts: expected every stem once, got one more than once"),
])  # fmt: skip
def test_no_array_reaches_a_search_unchecked_whoever_wrote_the_digests(name, alter, message, rng, tmp_path):
    folder = saved(tmp_path, Model(WORDS, Projection(jnp.asarray(rng.normal(size=(5, 3)), jnp.float32))), bm25=True)
    arrays = safetensors.numpy.load_file(folder / index.TENSORS)
    arrays[name] = np.ascontiguousarray(alter(arrays[name]))
    safetensors.numpy.save_file(arrays, folder / index.TENSORS)
    told = {key: value for key, value in json.loads((folder / index.MARKER).read_text()).items() if key != "digest"}
    told["tensors"] = {key: index.fingerprint(array) for key, array in arrays.items()}
    (folder / index.MARKER).write_bytes(io.sealed(told))
    with pytest.raises(ValueError, match=f"index.safetensors: {message}"):
        index.load(folder, bm25=True)


@pytest.mark.parametrize(("change", "message"), [
    ({"documents": -1}, "documents: expected a whole number of at least 0, got -1"),
    ({"documents": 8}, r"ends: expected int64 of shape \(8,\)"),
    ({"columns": {}}, "tensors: expected dense or sparse, ends, lines, texts, got "),
    ({"columns": {"words": 3}}, "words: expected columns from 0 to 2"),
    ({"columns": {"words": "5"}}, "columns: expected a whole number"),
    ({"columns": {"words": 2**31 - 1}}, "columns: expected at most 100,000,000 terms, got 2,147,483,647"),
    ({"tensors": None}, "tensors: expected dense or sparse"),
    ({"model": 3}, "model: expected a digest, got an int"),
])  # fmt: skip
def test_a_description_of_another_index_is_refused(change, message, rng, tmp_path):
    folder = saved(tmp_path, Model(WORDS, Projection(jnp.asarray(rng.normal(size=(5, 3)), jnp.float32))))
    told = {key: value for key, value in json.loads((folder / index.MARKER).read_text()).items() if key != "digest"}
    (folder / index.MARKER).write_bytes(io.sealed(told | change))
    with pytest.raises(ValueError, match=message):
        index.load(folder)


@pytest.mark.parametrize("power", [10**400, float("nan"), float("inf"), -5, True, "1", None])
def test_hubs_of_no_power_are_refused(power, rng, tmp_path):
    model = Model(WORDS, Projection(jnp.asarray(rng.normal(size=(5, 3)), jnp.float32)))
    folder = saved(tmp_path, model, csls=["cat", "dog"], power=2)
    assert index.load(folder).hubs.power == 2
    told = {key: value for key, value in json.loads((folder / index.MARKER).read_text()).items() if key != "digest"}
    (folder / index.MARKER).write_bytes(io.sealed(told | {"csls": told["csls"] | {"power": power}}))
    for read in (index.load, index.described):
        with pytest.raises(ValueError, match="index.json: csls: power: expected a number of at least 0, got"):
            read(folder)


def test_an_index_of_another_vocabulary_is_refused(rng, tmp_path):
    folder = saved(tmp_path, Model(WORDS, Projection(jnp.asarray(rng.normal(size=(5, 3)), jnp.float32))))
    assert index.load(folder, num_terms=5).lines.tolist() == LINES
    with pytest.raises(ValueError, match=r"index.json: columns: expected 4 terms \(as the model\), got 5"):
        index.load(folder, num_terms=4)


def test_places_without_an_index_are_named(tmp_path):
    (tmp_path / "file").write_text("")
    for name, got in (("nowhere", "nothing"), ("file", "a file"), (".", "a folder without index.json")):
        with pytest.raises(FileNotFoundError, match=f"expected an index, got {got}$"):
            index.load(tmp_path / name)


def test_an_index_without_vectors_is_not_saved(rng, tmp_path):
    model = Model(WORDS, Projection(jnp.asarray(rng.normal(size=(5, 3)), jnp.float32)))
    made = index.encode(model, TEXTS, weights=[1.0])
    with pytest.raises(ValueError, match=r"index: expected one with vectors \(encode .*\), got one of words alone"):
        index.save(tmp_path / "kept", made, model="")
    assert not list(tmp_path.iterdir())


def test_mix_refuses_what_it_cannot_weigh():
    both = Vectors(jnp.ones((1, 2)), sparse.from_scipy(sp.csr_matrix([[1.0]])))
    with pytest.raises(ValueError, match="weight: expected 0 or 1, for a model that has words beside its projection"):
        index.mix(both, sp.csr_matrix([[1.0]]), 0.5)
    with pytest.raises(ValueError, match=r"weight: expected a number in \[0, 1\], got 2"):
        index.mix(both, None, 2)
    with pytest.raises(ValueError, match=r"lines: expected 2 numbers, as texts, got \(1,\)"):
        index.encode(Model(WORDS, None), ["a", "b"], lines=[1])


def test_an_index_that_another_process_replaces_is_read_whole(tmp_path, monkeypatch):
    bare, safe_open, swaps = Model(WORDS, None), index.safe_open, []
    folder = saved(tmp_path, bare)

    def replaced(path, **given):
        if len(swaps) < 2:  # between the two files, once with other contents and once with the same
            swaps.append(index.save(folder, index.encode(bare, ["dog", "cat fish"]), model="another"))
        if len(swaps) == 2:
            swaps.append((tmp_path / "kept").rename(tmp_path / ".kept.1.a.old"))
            raise FileNotFoundError(path)
        return safe_open(path, **given)

    def back(seconds):
        if (tmp_path / ".kept.1.a.old").is_dir():
            (tmp_path / ".kept.1.a.old").rename(folder)

    monkeypatch.setattr(index, "safe_open", replaced)
    monkeypatch.setattr(io.time, "sleep", back)
    assert list(index.load(folder).texts) == ["dog", "cat fish"] and len(swaps) == 3
    swaps[2] = (tmp_path / "kept").rename(tmp_path / ".kept.1.a.old")
    assert index.described(folder)["model"] == "another"
    with pytest.raises(ValueError, match="index.json: model: expected the model of before, got another"):
        index.load(folder, model="of before")
