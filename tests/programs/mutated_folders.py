"""Damages folders of every kind that the library reads, reads them in another process, and counts what comes of it.

Run by hand with a long budget, `python tests/programs/mutated_folders.py --budget 2000`; the tests run a short one. A
mutation may be told as it is, or by somebody who makes the digests anew: then nothing can know that the folder is
another, but no array of it may harm the process. Outcomes:

- same: the result is bit for bit that of the whole folder (a byte was set to itself, or is not looked at);
- refused: an error of one line that names the folder, or, of checkpoints, a step back to the one before;
- changed: another result without a word: a fault, but where digests were made anew;
- traceback, crash, hang: always a fault.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import hashlib
import io as streams
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

FAULTS = ("traceback", "crash", "hang")
_NUMBERS = (0, 1, -1, 2, 7, 10**6, 2**31 - 1, -(2**31), 2**62, float("nan"), float("inf"), 1e38)
_JSON = (*_NUMBERS[:9], 1e308, 10**400, "x", "", "\ud800", None, True, [], {}, ["a", "a"], [[1]], {"a": None})
_SECONDS = 120.0


# What is read. Each kind makes a folder, and gives everything that can be seen of it as bytes.


def _words():
    from jaxsim import text

    return text.Vocabulary(("cat", "dog", "fish", "zwölf"), np.array([2, 3, 2, 1]), 10)


def _model():
    import jax.numpy as jnp

    from jaxsim.methods.projections import Projection
    from jaxsim.model import Model

    weights = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    return Model(_words(), (Projection(jnp.asarray(weights)), Projection(jnp.asarray(-weights))), method="opca")


_TEXTS = ["cat dog dog", "", "zwölf fish", "unheard", "e\u0301 \ud800 dog", "fish cat"]


def _make_corpus(folder: Path) -> None:
    from jaxsim.text.corpus_build import build

    rng = np.random.default_rng(0)
    names = [f"word{i}" for i in range(12)]
    pairs = [tuple(" ".join(rng.choice(names, rng.integers(0, 9))) for _ in range(2)) for _ in range(24)]
    build(folder, pairs, min_df=1, shard_docs=10)


def _read_corpus(folder: Path) -> list:
    import jax.numpy as jnp

    from jaxsim import sparse, text
    from jaxsim.text import corpus

    result = corpus.read(folder)
    seen = [result.vocabulary.terms, result.vocabulary.df, result.vocabulary.num_docs, result.languages]
    for side in (*result.sides, *result.weighted(text.log_tf_idf)):
        rows = side.rows(np.arange(side.num_docs)[::-1])
        product = sparse.project(sparse.from_scipy(rows), jnp.ones((side.num_terms, 2)))
        seen += [side.num_docs, side.lengths(), rows.data, rows.indices, rows.indptr, product]
    return seen


def _unfinished(folder: Path, number: int):
    """The first documents of a corpus that was stopped, or all of them."""
    from jaxsim.text.corpus_build import build

    def documents():
        yield from ((f"word{i % 5} word{i % 3}", f"word{i % 4}") for i in range(number))
        if number < 30:
            raise InterruptedError("stopped, as by a kill")

    return build(folder, documents(), min_df=1, shard_docs=8)


def _make_unfinished(folder: Path) -> None:
    with contextlib.suppress(InterruptedError):
        _unfinished(folder, 20)


def _read_unfinished(folder: Path) -> list:
    _unfinished(folder, 30)
    return _read_corpus(folder)


def _make_model(folder: Path) -> None:
    _model().save(folder)


def _read_model(folder: Path) -> list:
    from jaxsim.model import Model

    result = Model.load(folder)
    return [repr(result), result.card(), result.encode_query(_TEXTS), result.encode_document(_TEXTS),
            result.similarity(_TEXTS, _TEXTS), result.pair_similarity(_TEXTS, _TEXTS)]


def _make_bilinear(folder: Path) -> None:
    import jax.numpy as jnp

    from jaxsim.methods.ssi import bilinear
    from jaxsim.model import Model

    weights = jnp.asarray(np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3))
    Model(_words(), bilinear.sides(weights, -weights, jnp.full(4, 3.0)), method="ssi", strongest=2).save(folder)


def _read_bilinear(folder: Path) -> list:
    from jaxsim.model import Model

    result = Model.load(folder)
    scores, rows = result.search(_TEXTS, result.vectors(_TEXTS), k=3)
    return [repr(result), result.card(), scores, rows, result.pair_similarity(_TEXTS, _TEXTS)]


def _make_index(folder: Path) -> None:
    from jaxsim.model import index

    made = index.encode(_model(), _TEXTS, lines=[1, 2, 4, 5, 8, 20], bm25=True, ids=["a", "b", "", "\u00fc", "b", "f"])
    index.save(folder, made, model="a model")


def _read_index(folder: Path) -> list:
    from jaxsim.evaluate import retrieval
    from jaxsim.model import index, ranker

    seen = []
    result = index.load(folder, bm25=True, num_terms=4)
    seen += [result.bm25.stems, list(result.ids), *ranker.rank(_model(), result, ["dog fish", "cat"], k=3, terms=0.5)]
    for weight in (0, 0.5, 1):
        result = index.load(folder, weights=[weight], num_terms=4)
        query = index.encode(_model(), ["dog fish"], side="query", weights=[weight]).mixed(weight)
        kind = retrieval.dot if query.dense is not None and query.sparse is not None else retrieval.cosine
        scores, rows = retrieval.top_k(query, result.mixed(weight), k=2, similarity=kind)
        seen += [scores, rows, [result.texts[row] for row in rows[0]], result.lines[rows[0]], list(result.texts)]
    return seen


def _make_topics(folder: Path) -> None:
    import jax.numpy as jnp

    from jaxsim.methods.projections import Projection
    from jaxsim.model import Model

    sides = (Projection(jnp.asarray(np.linspace(low, 1, 12, dtype=np.float32).reshape(4, 3))) for low in (0.1, 0.3))
    Model(_words(), tuple(sides), activation="shares", method="cplsa", training={"topics": 3}).save(folder)


def _make_grams(folder: Path) -> None:
    import jax.numpy as jnp

    from jaxsim.methods.projections import Projection
    from jaxsim.model import Model
    from jaxsim.text.subwords import Subwords

    weights = jnp.asarray(np.linspace(-1, 1, 18, dtype=np.float32).reshape(6, 3))
    grams = Subwords((" un", "rd "), np.array([1.5, 0.5], np.float32), 0.5)
    Model(_words(), Projection(weights), subwords=grams, agreement=np.array([1, 0.5, 0.25], np.float32),
          terms_weight=0.25, agreement_power=0.5, feedback=3).save(folder)  # fmt: skip


def _read_searched(folder: Path) -> list:
    from jaxsim.model import Model

    result = Model.load(folder)
    vectors = result.vectors(_TEXTS, power=1.0)
    return [*_read_model(folder), np.asarray(vectors.dense), *result.search(_TEXTS, result.vectors(_TEXTS), k=3)]


_OPPOSITES = ["hot", "warm", "cold", "ice-cold", "cool", "zwölf"]


def _make_words(folder: Path) -> None:
    import scipy.sparse as sp

    from jaxsim.model.words import Words

    signs = sp.csr_matrix(np.array([[1, 1, -1, 0, 0, 0], [0, -1, 1, 1, 1, 0], *[[0, 0, 0, 0, 0, 1]] * 7]))
    vectors = np.array([[1, 0.1], [0.9, 0.3], [-1, 0], [-1, -0.2], [-0.8, 0.1], [0.1, 1]])
    Words.of(_OPPOSITES, vectors, [5, 4, 6, 1, 2, 3], 9, method="pilsa",
             training={"irregular": {"hotter": ["hot"]}}, signs=signs).save(folder)  # fmt: skip


def _read_words(folder: Path) -> list:
    from jaxsim.model.words import Words

    result = Words.load(folder)
    seen = [result.model.card(), result.closest_opposite("hot", ["warm", "cold"]), result.similarity("hot", "cool"),
            result.opposition("warm", _OPPOSITES)]  # fmt: skip
    for word in (*_OPPOSITES, "hotter", "ice"):
        seen += [result.nearest(word, k=4, in_entries=1), result.opposites(word, in_entries=2), result.match(word)]
    return seen


def _make_translation(folder: Path) -> None:
    import scipy.sparse as sp

    from jaxsim.methods.translation import table

    counts = sp.csr_matrix(np.array([[3.0, 1, 0], [0, 2, 1], [1, 0, 5]]))
    table.save(folder, table.from_counts(counts, counts.T.tocsr(), ["a", "b", "c"], ["x", "y", "zwölf"]),
               about={"method": "hmm"})  # fmt: skip


def _read_translation(folder: Path) -> list:
    import scipy.sparse as sp

    from jaxsim.methods.translation import table

    params, about = table.load(folder)
    seen = [about, params.left, params.right, params.left_counts, params.right_counts]
    seen += [params.best(word, reverse=reverse) for word in ("a", "c", "zwölf") for reverse in (False, True)]
    for reverse, source in ((False, params.left), (True, params.right)):
        result = table.between(params, source, ["x", "y", "a", "b"], reverse=reverse)
        seen.append(table.translate(sp.csr_matrix(np.ones((2, len(source)))), result).toarray())
    return [*seen, table.symmetrized(params, "mean").right_given_left.toarray()]


_QUESTIONS = [(f"The {first} and the _____ .", ["cup", "sea"], answer)
              for first, answer in (("tea", 0), ("ship", 1), ("milk", 0), ("wave", 1))]  # fmt: skip


def _complete(folder: Path) -> None:
    """The command `complete`, with texts and questions beside its folder."""
    from jaxsim.cli import complete

    texts, asked = folder.with_name("texts"), folder.with_name("questions.jsonl")
    if not texts.exists():
        texts.mkdir()
        topics = ("tea", "milk", "cup"), ("ship", "sea", "wave")
        lines = [f"The {a} and the {b} are here ." for some in topics for a in some for b in some] * 3
        (texts / "a.txt").write_text("\n\n".join(lines))
        asked.write_text("".join(json.dumps({"question": text, "choices": choices, "answer": answer}) + "\n"
                                 for text, choices, answer in _QUESTIONS))  # fmt: skip
    complete._train(texts, folder, asked, order=3, min_count=1)


def _make_completion(folder: Path) -> None:
    with contextlib.redirect_stderr(streams.StringIO()):
        _complete(folder)


def _read_completion(folder: Path) -> list:
    from jaxsim.cli import complete
    from jaxsim.data import questions

    asked = questions.collect([questions.question(text, choices) for text, choices, _ in _QUESTIONS])
    return [complete._answers(folder, asked)]


def _make_begun(folder: Path) -> None:
    """The folder of `complete` as a kill leaves it: the last model is not there yet."""
    from jaxsim.methods.language import ngram

    save = ngram.save

    def stopped(params, path):
        if "kneser" in str(path):
            raise InterruptedError("stopped, as by a kill")
        save(params, path)

    from jaxsim.cli import complete

    ngram.save = stopped
    try:
        with contextlib.suppress(InterruptedError):
            _make_completion(folder)
    finally:
        ngram.save = save
    complete._unfinished(folder).rename(folder)


def _read_begun(folder: Path) -> list:
    from jaxsim.cli import complete

    folder.rename(complete._unfinished(folder))
    try:
        _complete(folder)
    finally:
        shutil.rmtree(complete._unfinished(folder), ignore_errors=True)
    return _read_completion(folder)


_STATE = {"a": np.arange(6.0).reshape(2, 3), "b": (np.int32(4), np.ones(3, np.float32))}
_META = {"fingerprint": "x", "history": [{"step": 0, "loss": 0.3, "validation": None}], "best_step": 0, "seconds": 1.5}


def _make_checkpoint(folder: Path) -> None:
    from jaxsim.optim import checkpoints

    for _ in range(2):
        checkpoints.save(checkpoints.prepare(folder), _STATE, _META)


def _read_checkpoint(folder: Path) -> list:
    from jaxsim.optim import checkpoints

    state, meta = checkpoints.load(checkpoints.prepare(folder), _STATE, fingerprint="x") or (None, None)
    return [str(state), meta]


def _fit(folder: Path, steps: int):
    import jax.numpy as jnp

    from jaxsim import optim

    def objective(params, data):
        return jnp.sum((params - data) ** 2) + jnp.sum(params**4)

    data = jnp.linspace(-1, 1, 5, dtype=jnp.float32)
    run = optim.Run(max_iter=steps, checkpoint=folder, checkpoint_every=1, tol=0.0)
    return optim.minimize_lbfgs(objective, jnp.ones(5, jnp.float32), data, run=run)


def _make_fit(folder: Path) -> None:
    _fit(folder, 3)


def _read_fit(folder: Path) -> list:
    result = _fit(folder, 5)
    return [result.params, result.loss, result.steps, len(result.history)]


KINDS = {
    "corpus": (_make_corpus, _read_corpus), "unfinished": (_make_unfinished, _read_unfinished),
    "model": (_make_model, _read_model), "bilinear": (_make_bilinear, _read_bilinear),
    "topics": (_make_topics, _read_model), "grams": (_make_grams, _read_searched), "words": (_make_words, _read_words),
    "translation": (_make_translation, _read_translation),
    "completion": (_make_completion, _read_completion), "begun": (_make_begun, _read_begun),
    "index": (_make_index, _read_index),
    "checkpoint": (_make_checkpoint, _read_checkpoint), "fit": (_make_fit, _read_fit),
}  # fmt: skip


# Mutations. Each changes one file of a folder and says how.


def _pick(rng, items):
    return items[int(rng.integers(len(items)))]


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "README.md"]


def _bytes(folder: Path, rng) -> str:
    """A file's bytes: one bit, one byte, cut, longer, empty, two parts exchanged."""
    path = _pick(rng, _files(folder))
    data, how = bytearray(path.read_bytes()), _pick(rng, ["flip", "byte", "truncate", "extend", "empty", "exchange"])
    place = int(rng.integers(max(len(data), 1)))
    if how == "flip" and data:
        data[place] ^= 1 << int(rng.integers(8))
    elif how == "byte" and data:
        data[place] = int(rng.integers(256))
    elif how == "truncate":
        del data[place:]
    elif how == "extend":
        data += bytes(rng.integers(0, 256, int(rng.integers(1, 40)), np.uint8))
    elif how == "empty":
        data.clear()
    else:
        other, size = int(rng.integers(max(len(data), 1))), int(rng.integers(1, 20))
        data[place : place + size], data[other : other + size] = (bytes(data[other : other + size]),
                                                                   bytes(data[place : place + size]))
    path.write_bytes(data)
    return f"{how} {path.name} at {place}"


def _swap(folder: Path, rng) -> str:
    """Two files exchanged, or one left out."""
    files = _files(folder)
    one, other = _pick(rng, files), _pick(rng, files)
    if one == other:
        one.unlink()
        return f"delete {one.name}"
    data = one.read_bytes(), other.read_bytes()
    one.write_bytes(data[1])
    other.write_bytes(data[0])
    return f"swap {one.name} {other.name}"


def _array(array: np.ndarray, rng) -> tuple[np.ndarray, str]:
    """One value, or the type or the shape, of an array."""
    array = np.array(array)
    how = _pick(rng, ["value"] * 6 + ["dtype", "shape", "axis", "cut", "reverse", "fortran"])
    if how == "value" and array.size:
        place = int(rng.integers(array.size))
        old, beside = array.flat[place], array.flat[(place + 1) % array.size]
        with np.errstate(all="ignore"), contextlib.suppress(OverflowError, ValueError):
            value = _pick(rng, [*_NUMBERS, old + 1, old - 1, beside])
            array.flat[place] = np.asarray(value).astype(array.dtype)
        return array, f"[{place}] = {array.flat[place]}"
    if how == "dtype":
        kind = _pick(rng, [np.int8, np.uint64, np.float16, np.float64, np.complex64, np.bool_])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return array.astype(kind), f"as {kind.__name__}"
    if how == "shape":
        return array[None], "one more axis"
    if how == "axis":
        return array.reshape(-1)[:1].reshape(()) if array.size else array, "no axis"
    if how == "cut":
        return array[: max(len(array) - 1, 0)] if array.ndim else array, "cut"
    if how == "reverse":
        return np.ascontiguousarray(array[::-1]) if array.ndim else array, "reversed"
    return np.concatenate([array, array]) if array.ndim else array, "twice"


def _numbers(folder: Path, rng) -> str:
    """A plausible edit of an array in a file of arrays."""
    from safetensors import safe_open
    from safetensors.numpy import save_file

    path = _pick(rng, [path for path in _files(folder) if path.suffix in (".npy", ".npz", ".safetensors")])
    if path.suffix == ".npy":
        array, how = _array(np.load(path), rng)
        np.save(path, array)
        return f"{path.name} {how}"
    if path.suffix == ".npz":
        with np.load(path) as packed:
            arrays = dict(packed)
        name = _pick(rng, sorted(arrays))
        arrays[name], how = _array(arrays[name], rng)
        np.savez(path, **arrays)
        return f"{path.name} {name} {how}"
    with safe_open(path, framework="numpy") as file:
        facts, arrays = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}
    name = _pick(rng, sorted(arrays))
    with contextlib.suppress(KeyError):  # a type that the format lacks
        arrays[name], how = _array(arrays[name], rng)
        with contextlib.suppress(Exception):
            save_file({one: np.ascontiguousarray(array) for one, array in arrays.items()}, path, metadata=facts)
        return f"{path.name} {name} {how}"
    return "nothing"


def _leaves(value, path=()):
    yield path
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(inner, (*path, key))


def _edited(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _edited(copy[path[0]], path[1:], new)
    return copy


def _json_edit(told, rng):
    path = _pick(rng, list(_leaves(told)))
    new = _pick(rng, _JSON)
    return _edited(told, path, new), f"{'.'.join(map(str, path))} = {str(new)[:20]!r}"


def _setting(folder: Path, rng) -> str:
    """One value of a configuration, or of a checkpoint's notes."""
    from safetensors import safe_open
    from safetensors.numpy import save_file

    path = _pick(rng, [path for path in _files(folder) if path.suffix in (".json", ".safetensors")])
    if path.suffix == ".json":
        if rng.random() < 0.05:
            path.write_text("[" * 100_000 + "]" * 100_000)
            return f"{path.name} deep"
        facts, how = _json_edit(json.loads(path.read_bytes()), rng)
        path.write_text(json.dumps(facts))
        return f"{path.name} {how}"
    with safe_open(path, framework="numpy") as file:
        facts, arrays = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}
    if not facts:
        return "nothing"
    key = _pick(rng, sorted(facts))
    if key == "json":
        inner, how = _json_edit(json.loads(facts["json"]), rng)
        facts["json"] = json.dumps(inner)
    else:
        facts[key], how = "0", "0"
    save_file(arrays, path, metadata=facts)
    return f"{path.name} {key} {how}"


MUTATIONS = (_bytes, _swap, _numbers, _setting)


def _seal(path: Path, old):
    from jaxsim.text import corpus

    return corpus.seal(path) if isinstance(old, dict) else hashlib.sha256(path.read_bytes()).hexdigest()


def _sealed_again(folder: Path) -> None:
    """Digests of a changed folder made anew, as far as it can still be read."""
    from safetensors import safe_open
    from safetensors.numpy import save_file

    from jaxsim import io
    from jaxsim.optim import checkpoints

    for path in sorted(folder.rglob("*.json"), key=lambda path: -len(path.parts)):
        with contextlib.suppress(Exception):
            facts = json.loads(path.read_bytes())
            if "digest" not in facts:
                continue
            if facts.get("kind") == "sentences":
                content = np.load(path.parent / "tokens.npy").tobytes() + (path.parent / "words.txt").read_bytes()
                facts["sha256"] = hashlib.sha256(content).hexdigest()
            elif isinstance(facts.get("sha256"), dict):
                facts["sha256"] = {name: _seal(path.parent / name, old) for name, old in facts["sha256"].items()}
            if isinstance(facts.get("tensors"), dict):
                with safe_open(folder / "index.safetensors", framework="numpy") as file:
                    facts["tensors"] = {name: checkpoints.fingerprint(file.get_tensor(name)) for name in file.keys()}
            if isinstance(facts.get("files"), dict):
                facts["files"] = {name: _seal(path.parent / name, old) for name, old in facts["files"].items()}
            path.write_bytes(io.sealed({name: value for name, value in facts.items() if name != "digest"}))
    for path in folder.glob("checkpoint*.safetensors"):
        with contextlib.suppress(Exception):
            with safe_open(path, framework="numpy") as file:
                facts, arrays = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}
            state = [arrays[f"leaf.{i}"] for i in range(len(arrays))]
            save_file(arrays, path, metadata=checkpoints.described(state, json.loads(facts["json"])))


# The process that reads, and the count.


def _fingerprint(seen) -> str:
    result = hashlib.sha256()
    for value in seen:
        array = value if isinstance(value, str | list | tuple | dict) else np.asarray(value)
        facts = array.tobytes() + str((array.dtype, array.shape)).encode() if isinstance(array, np.ndarray) else repr(
            array).encode("utf-8", "surrogatepass")
        result.update(facts)
    return result.hexdigest()


def _worker() -> None:
    """Reads the folders that are named on standard input; says what came of each on standard output."""
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        kind, folder = json.loads(line)
        facts = {}
        with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stderr(streams.StringIO()) as shown:
            warnings.simplefilter("always")
            try:
                facts["seen"] = _fingerprint(KINDS[kind][1](Path(folder)))
            except (ValueError, OSError, ImportError, ArithmeticError) as error:
                facts["refused"] = f"{type(error).__name__}: {error}"
            except BaseException as error:
                facts["traceback"] = f"{type(error).__name__}: {error}"[:300]
        facts["warned"] = [str(one.message) for one in caught] + shown.getvalue().splitlines()
        print(json.dumps(facts), file=answers, flush=True)


class Reader:
    """A process that reads folders, started again when one has killed it."""

    def __init__(self):
        """Starts nothing yet."""
        self._process = None

    def read(self, kind: str, folder: Path) -> dict:
        """What came of one folder."""
        if self._process is None:
            root = str(Path(__file__).parents[2])
            environment = {**os.environ, "PYTHONPATH": root, "JAX_PLATFORMS": "cpu"}
            self._process = subprocess.Popen([sys.executable, __file__, "--worker"], stdin=subprocess.PIPE, text=True,
                                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
        self._process.stdin.write(json.dumps([kind, str(folder)]) + "\n")
        self._process.stdin.flush()
        ready = select.select([self._process.stdout], [], [], _SECONDS)[0]
        line = self._process.stdout.readline() if ready else ""
        if line:
            return json.loads(line)
        self.close()
        return {"crash" if ready else "hang": "no answer"}

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def outcome(told: dict, whole: str, folder: Path, sealed: bool) -> str:
    """One word about what came of a folder."""
    for fault in FAULTS:
        if fault in told:
            return fault
    if "refused" in told:
        one_line = "\n" not in told["refused"] and len(told["refused"]) < 2000
        named = sealed or str(folder) in told["refused"]  # what fits itself, but not the model, is refused in a search
        return "refused" if one_line and named else "traceback"
    back = any("checkpoint" in line and str(folder) in line for line in told["warned"])
    if back:
        return "refused"  # the newest was, and the one before it says no other thing
    return "same" if told["seen"] == whole else "anew" if sealed else "changed"


def mutate(kind: str, budget: int, seed: int, reader: Reader, *, only: int | None = None, said=print
           ) -> collections.Counter:
    """Counts outcomes of ``budget`` mutations of one kind of folder; a number in ``only`` repeats a single one."""
    counts: collections.Counter = collections.Counter()
    with tempfile.TemporaryDirectory(prefix="mutated-") as place:
        first, copy = Path(place) / "whole", Path(place) / "copy"
        KINDS[kind][0](first)
        shutil.copytree(first, copy)
        facts = reader.read(kind, copy)
        whole = facts.get("seen")
        if whole is None:
            raise RuntimeError(f"{kind}: the whole folder was not read: {facts}")
        for number in range(budget) if only is None else [only]:
            rng = np.random.default_rng([seed, number])
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(first, copy)
            mutation = MUTATIONS[number % len(MUTATIONS)]
            sealed = mutation in (_numbers, _setting) and rng.random() < 0.5
            how = mutation(copy, rng)
            if sealed:
                _sealed_again(copy)
            facts = reader.read(kind, copy)
            word = outcome(facts, whole, copy, sealed)
            counts[word] += 1
            if word in (*FAULTS, "changed") or only is not None:
                said(f"{kind} {number}{' sealed' if sealed else ''}: {word}: {how}: {facts}")
    return counts


def main() -> int:
    """Runs every kind; the exit status is 1 if there was a fault."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=int, default=200, help="mutations of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--case", type=int, help="repeat this one alone")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        _worker()
        return 0
    reader, faults = Reader(), 0
    for kind in given.kinds:
        counts = mutate(kind, given.budget, given.seed, reader, only=given.case)
        faults += sum(counts[word] for word in (*FAULTS, "changed"))
        print(f"{kind}: {sum(counts.values())} mutations: " + ", ".join(f"{n} {word}" for word, n in counts.items()),
              flush=True)
    reader.close()
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
