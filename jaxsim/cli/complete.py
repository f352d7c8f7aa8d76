"""The command `complete`: which word fills the blank in a sentence, by models of a folder of texts."""

from __future__ import annotations

import contextlib
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jaxsim.cli import options
from jaxsim.cli.output import keeping, naming, say, show_json, show_result
from jaxsim.cli.program import app

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from jaxsim.data.corpora.questions import Filled, Questions
    from jaxsim.data.corpora.sentences import Sentences

FORMAT, KIND = 3, "completion"
_BEGUN = "begun.json"
MODELS = ("n-gram, Good-Turing", "n-gram, Kneser-Ney", "pmi-window", "lsa-totsim", "pmi-weighted")
_SPACE, _WEIGHTS = "space.npz", "weights.npz"
_WORDS, _DIMENSIONS = 8000, 300  # the most frequent words have vectors in the space, and those of --questions
_OPTIONS, _AROUND = 2000, 5000  # words whose gaps teach weights of mutual information, and words around them
_ROUNDING, _TIE = 1e-6, 1e-5  # of a question's scores, as a share of the largest, and of combinations
_FEW = 50  # options that are rare; with fewer, frequent ones teach too
_SMOOTHINGS = {"n-gram, Good-Turing": "good-turing", "n-gram, Kneser-Ney": "kneser-ney"}


@app.command(epilog="\b\nExamples:\n"
                    "  jaxsim complete --texts novels/ --questions mine.jsonl --out model/\n"
                    '  jaxsim complete --model model/ --question "He drank his _____ ." --choices tea,hat,moon\n'
                    "  jaxsim complete --model model/ --questions new.jsonl --json")
def complete(
    context: typer.Context,
    model: Annotated[Path | None, options.folder("Folder that `jaxsim complete --out` wrote.")] = None,
    question: Annotated[str | None, typer.Option(help="A sentence with a blank: _____ in place of a word.")] = None,
    choices: Annotated[str | None, typer.Option(
        help="Words for the blank, with commas between; for two blanks, a / between the two words of a "
             "choice.")] = None,
    questions: Annotated[Path | None, options.file(
        'JSON Lines: {"question": ..., "choices": [...], "answer": ...}; with --out answers train the combination.',
    )] = None,  # fmt: skip
    texts: Annotated[Path | None, options.folder("Folder of .txt files to train on.")] = None,
    out: Annotated[Path | None, options.folder("Where to write a new model.")] = None,
    order: Annotated[int, typer.Option(min=2, max=5, help="Longest n-grams.")] = 4,
    min_count: Annotated[int, typer.Option(min=1, help="Words that occur fewer times count as unknown.")] = 3,
    json: options.JsonOption = False,
) -> None:
    """Choose the word that fills the blank in a sentence.

    With --texts and --out, models are trained on a folder of texts: two n-gram models, a space of latent semantic
    analysis, and the text itself, from which mutual information is counted for each question: within ten words, and
    with weights that gaps in the text have taught. With --model, every choice of a question gets a score from each
    model and from their combination; higher is better.
    """
    from jaxsim import checks

    if texts is not None or out is not None:
        checks.expect(texts is not None and out is not None, "--texts, --out", "both, to train", "one")
        checks.expect(model is None and question is None, "--out", "no --model and no --question beside it", "one")
        options.refuse(context, "--out", "choices", "json")
        kept = f"what is finished is kept in {_unfinished(out)}: the same command continues from it"
        with keeping(kept):
            _train(texts, out, questions, order=order, min_count=min_count)
        return
    checks.expect(model is not None, "--model", "a folder (or --texts and --out, to train)", "nothing")
    options.refuse(context, "--model", "order", "min_count")
    if questions is not None and question is None:
        options.refuse(context, "--questions", "choices")
    asked = _asked(question, choices, questions)
    results = _answers(model, asked)
    known = [(row["tied"], list(one.choices[one.answer])) for row, one in zip(results, asked.questions, strict=True)
             if one.answer is not None]  # fmt: skip
    if known:  # of n choices that tie, the right one counts 1 / n
        right = sum((answer in tied) / len(tied) for tied, answer in known)
        say(f"right: {round(right, 1):g} of {len(known)} with an answer")
    if json:
        show_json(results)
        return
    for one in results:
        show_result({one["question"]: {**{" / ".join(row["choice"]): row["scores"] for row in one["choices"]}},
                     "best": " / ".join(one["best"])})  # fmt: skip


def _asked(question: str | None, choices: str | None, path: Path | None) -> Questions:
    """The questions of the command line, or of a file."""
    from jaxsim import checks
    from jaxsim.data import questions

    checks.expect((question is None) != (path is None), "--question, --questions", "one of the two",
                  "none" if path is None else "both")  # fmt: skip
    if path is not None:
        return questions.read(path)
    checks.expect(bool(choices), "--choices", "words with commas between", "nothing")
    listed = [choice.strip() for choice in choices.split(",")]
    several = all(listed) and len(set(listed)) == len(listed) > 1
    checks.expect(several, "--choices", "at least two different choices, with commas between", repr(choices))
    rows = [choice.split("/") if "/" in choice else choice for choice in listed]
    return questions.collect([questions.question(question, rows)])


def _train(texts: Path, out: Path, path: Path | None, *, order: int, min_count: int) -> None:
    """Builds a model folder beside its place; stages that an earlier, interrupted command finished are kept."""
    import hashlib
    import shutil

    from jaxsim import checks, io
    from jaxsim.data import novels, questions, sentences
    from jaxsim.methods.language import combination, ngram

    _expect_place(out, texts)
    asked = questions.read(path) if path is not None else None
    settings: dict[str, Any] = {"order": order, "min_count": min_count, "rules": sentences.VERSION,
                                "questions": asked.sha256 if asked is not None else None}
    digest, some = hashlib.sha256(), False
    for name, text in novels.read_folder(texts):  # also refuses bad texts before anything is written
        digest.update(f"{name}\0{text}\0".encode())
        some = some or bool(sentences.split(text))
    checks.expect(some, str(texts), "at least one sentence", "none")
    state = {"library": "jaxsim", "format": FORMAT, "kind": KIND, "texts": digest.hexdigest(), "settings": settings}
    files = ["sentences/config.json", "sentences/tokens.npy", "sentences/words.txt", *map(_file, _SMOOTHINGS), _SPACE,
             _WEIGHTS]
    place, out = out, _unfinished(out)
    for left in out.glob(".sentences.*.part"):  # of a command that was killed
        shutil.rmtree(left, ignore_errors=True)
    done = _begun(out, state, files)
    text = _text(texts, out, state, done)
    for name, smoothing in _SMOOTHINGS.items():
        if not _kept(out, done, _file(name)):
            params = ngram.fit(text, order=order, smoothing=smoothing, min_count=min_count).params
            ngram.save(params, out / _file(name))
            say(f"{name}: {sum(map(len, params.log_prob)):,} n-grams")
            _note(out, state, done, _file(name))
    if not _kept(out, done, _SPACE):
        _save_space(text, asked, out / _SPACE)
        say("latent semantic analysis: written")
        _note(out, state, done, _SPACE)
    if not _kept(out, done, _WEIGHTS):
        _save_weights(text, asked, out / _WEIGHTS)
        _note(out, state, done, _WEIGHTS)
    weights = None
    if asked is not None and all(one.answer is not None for one in asked.questions):
        import jax

        inputs = _standard(_scores(out, text, asked))
        l2 = combination.choose(inputs, asked.answers, num_parts=min(5, len(asked)), key=jax.random.key(0))[0] \
            if len(asked) >= 10 else 0.1  # fmt: skip
        fit = combination.fit(inputs, asked.answers, l2=l2)
        weights = (fit.params.weights / fit.params.scale).tolist()
    elif asked is not None:
        say("the combination was not trained: not every question has an answer")
    config = {**state, "models": list(MODELS), "weights": weights, "files": [_BEGUN, *files], "sha256": done}
    io.write_bytes(out / io.CONFIG, io.sealed(config))
    io.put_folder(out, place, what="completion model")
    (place / _BEGUN).unlink()  # after that, since the same command continues from it
    say(f"{place}: {len(text.tokens):,} tokens, {text.size(min_count):,} words")


def _text(texts: Path, out: Path, state: dict[str, Any], done: dict[str, str]) -> Sentences:
    """The sentences that an earlier command wrote, or, where they are missing or damaged, new ones."""
    from jaxsim.data import novels, sentences

    folder, names = out / "sentences", ("sentences/config.json", "sentences/words.txt")
    if _kept(out, done, names[0]):
        with contextlib.suppress(FileNotFoundError, ValueError):
            return sentences.load(folder)
    for name in (*names, "sentences/tokens.npy"):
        (out / name).unlink(missing_ok=True)  # what is damaged could stand in the way
    text = sentences.build(novels.read_folder(texts), folder, progress=True)
    say("sentences: written")
    _note(out, state, done, *names)
    return text


def _expect_place(out: Path, texts: Path) -> None:
    """Refuses a place that holds something else, and one among the texts: the next training would read its words."""
    from jaxsim import checks, io

    with naming(out):
        io.check_place(out, what="completion model")
    inside = texts.resolve() in (out.resolve(), *out.resolve().parents)
    checks.expect(not inside, "--out", f"a folder outside --texts ({texts}), whose .txt files are all read as texts",
                  f"{out}; write the model elsewhere")  # fmt: skip


def _unfinished(out: Path) -> Path:
    """Where a model is built that belongs into ``out``, whose older model is usable until then."""
    place = out.resolve()
    return place.with_name(f"{place.name}.unfinished")


def _begun(out: Path, state: dict[str, Any], files: list[str]) -> dict[str, str]:
    """Digests of what an interrupted command with the same texts and settings wrote; else empties the folder."""
    import shutil

    from jaxsim import io

    path = out / _BEGUN
    told = io.unsealed(path, newest=FORMAT, remedy="; delete its folder") if path.exists() else {}
    if {name: told.get(name) for name in state} == state:
        done = told.get("sha256")
        return {name: one for name, one in done.items() if name in files} if isinstance(done, dict) else {}
    found = {one.relative_to(out).as_posix() for one in out.rglob("*") if not one.is_dir()} if told else set()
    if told.get("kind") == KIND and found <= {_BEGUN, *files}:  # of other texts or settings, and nothing else is there
        shutil.rmtree(out)
    with naming(out):
        io.check_place(out, marker=_BEGUN, what="completion model")
    out.mkdir(parents=True, exist_ok=True)
    for name in (io.CONFIG, _BEGUN, *files):
        (out / name).unlink(missing_ok=True)
    _note(out, state, {})
    return {}


def _kept(out: Path, done: dict[str, str], name: str) -> bool:
    """Whether an earlier command wrote a file that is as it was then."""
    from jaxsim import io

    return name in done and (out / name).is_file() and io.file_digest(out / name) == done[name]


def _note(out: Path, state: dict[str, Any], done: dict[str, str], *names: str) -> None:
    """Adds files to those that are done, and writes down which are."""
    from jaxsim import io

    done |= {name: io.file_digest(out / name) for name in names}
    io.write_bytes(out / _BEGUN, io.sealed({**state, "sha256": done}))


def _file(name: str) -> str:
    return f"{_SMOOTHINGS[name]}.npz"


def _models(config: dict[str, Any]) -> tuple[str, ...]:
    """Names of a model's scores: folders of format 1 have no space, those before format 3 no learned weights."""
    return MODELS[: {1: 3, 2: 4}.get(config["format"], len(MODELS))]


def _save_space(text: Sentences, asked: Questions | None, path: Path) -> None:
    """Vectors of the most frequent words and of those of some questions: rows of U of the text's sentences."""
    import io as memory

    import jax
    import numpy as np

    from jaxsim import io
    from jaxsim.data import questions, sentences
    from jaxsim.methods.language import documents, lsa_totsim

    is_word = np.array([word[0].isalpha() for word in text.vocabulary])
    is_word[: len(sentences.MARKS)] = False
    words = np.flatnonzero(is_word)[:_WORDS]
    if asked is not None:
        more = np.unique(questions.encode(asked, text.numbers).tokens)
        words = np.union1d(words, more[(more >= 0) & is_word[more]])
    vectors, singular = np.zeros((len(words), 1), np.float32), np.zeros(1, np.float32)
    if len(words) > 1:
        none = np.zeros(0, np.int64)
        terms = documents.Terms(words.astype(np.int32), none, none, np.arange(len(words), dtype=np.int32))
        space = lsa_totsim.fit(documents.collect(text, terms), k=min(_DIMENSIONS, max(1, len(words) // 4)),
                               scaled=False, key=jax.random.key(0)).params  # fmt: skip
        vectors, singular = space.vectors, space.singular
    content = memory.BytesIO()
    np.savez(content, words=words.astype(np.int32), vectors=vectors, singular=singular)
    io.write_bytes(path, content.getvalue())


def _save_weights(text: Sentences, asked: Questions | None, path: Path) -> None:
    """Weights of mutual information, from gaps of the choices of some questions, or of words throughout the text.

    Where the text has too few sentences for any gap, all are 0.
    """
    import io as memory

    import jax
    import numpy as np

    from jaxsim import io
    from jaxsim.data import questions, sentences
    from jaxsim.data.corpora.questions import Filled
    from jaxsim.methods.language import pmi_weighted

    is_word = np.array([word[0].isalpha() for word in text.vocabulary])
    is_word[: len(sentences.MARKS)] = False
    share = text.counts / max(int(text.counts.sum()), 1)
    options = around = np.zeros(0, np.int64)
    if asked is not None:
        filled = questions.encode(asked, text.numbers)
        options, around = (np.unique(filled.tokens[part & (filled.tokens >= len(sentences.MARKS))])
                           for part in (filled.chosen, filled.tokens >= 0))  # fmt: skip
    rare = np.flatnonzero(is_word & (share <= pmi_weighted.CLASSES[0]))
    more = rare if len(rare) >= _FEW else np.flatnonzero(is_word)
    # Words of all frequencies: the vocabulary is in their order.
    more = more[np.unique(np.linspace(0, len(more) - 1, max(0, _OPTIONS - len(options))).astype(int))] \
        if len(more) else more  # fmt: skip
    options = np.union1d(options, more)
    frequent = np.arange(len(sentences.MARKS), len(share))[: max(0, _AROUND - len(around))]
    around = np.union1d(around, frequent)
    tokens = np.concatenate([options, around]).astype(np.int32)[None, None]
    chosen = np.arange(tokens.size)[None, None] < len(options)
    few = np.sum(share[options] <= pmi_weighted.CLASSES[0]) < _FEW
    weights = np.zeros(pmi_weighted.NUM_WEIGHTS)
    try:
        weights = pmi_weighted.fit(text, Filled(tokens, np.full((1, 1), tokens.size, np.int32), chosen),
                                   key=jax.random.key(0), rare=1.0 if few else pmi_weighted.CLASSES[0]).params.weights
        say("weights of mutual information: learned")
    except ValueError as error:  # a text without sentences of a usual length, or with hardly a word
        say(f"weights of mutual information: none, too little text ({error})")
    content = memory.BytesIO()
    np.savez(content, weights=weights)
    io.write_bytes(path, content.getvalue())


def _arrays(path: Path, what: str, *names: str) -> list[np.ndarray]:
    """Arrays of an archive in a folder."""
    import numpy as np

    try:
        with np.load(path) as packed:
            return [np.asarray(packed[name]) for name in names]
    except OSError:
        raise
    except Exception as error:  # a damaged archive raises anything
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{path}: expected {what}, got {reason}") from error


def _weighted(path: Path, text: Sentences, filled: Filled) -> np.ndarray:
    """``[num_questions, num_choices]``: mutual information with the weights of a folder."""
    from jaxsim import checks
    from jaxsim.methods.language import pmi_weighted

    (weights,) = _arrays(path, "weights of mutual information", "weights")
    checks.array(weights, f"{path}: weights", "float64", (pmi_weighted.NUM_WEIGHTS,))
    return pmi_weighted.scores(pmi_weighted.count(text, filled, weights), filled)


def _similarities(path: Path, filled: Filled, size: int) -> np.ndarray:
    """``[num_questions, num_choices]``: total similarity in the space of a folder, of a text of ``size`` words."""
    import numpy as np

    from jaxsim import checks
    from jaxsim.methods.language import documents, lsa_totsim

    words, vectors, singular = _arrays(path, "the vectors of words", "words", "vectors", "singular")
    checks.array(words, f"{path}: words", "int32", (None,))
    checks.array(vectors, f"{path}: vectors", "float32", (len(words), None))
    checks.array(singular, f"{path}: singular", "float32 float64", (vectors.shape[1],))
    inside = len(words) == 0 or (words[0] >= 0 and words[-1] < size and bool(np.all(np.diff(words) > 0)))
    checks.expect(inside, f"{path}: words", f"ascending numbers of the {size:,} words of the text", "others")
    none = np.zeros(0, np.int64)
    terms = documents.Terms(words, none, none, np.arange(len(words), dtype=np.int32))
    return lsa_totsim.scores(lsa_totsim.WordVectors(terms, vectors, singular, False), filled)


def _scores(folder: Path, text: Sentences, asked: Questions, models: Sequence[str] = MODELS) -> np.ndarray:
    """``[num_questions, num_choices, num_models]`` scores, in the order of the models."""
    import numpy as np

    from jaxsim.data import questions
    from jaxsim.methods.language import ngram, pmi_window

    filled = questions.encode(asked, text.numbers)
    columns = [ngram.scores(ngram.load(folder / _file(name)), filled, counts=text.counts) for name in _SMOOTHINGS]
    known = bool((filled.tokens[filled.chosen] > 0).any())
    near = pmi_window.scores(pmi_window.fit(text, filled).params, filled) if known else np.zeros_like(columns[0])
    columns.append(near)
    if "lsa-totsim" in models:
        columns.append(_similarities(folder / _SPACE, filled, len(text.vocabulary)))
    if "pmi-weighted" in models:
        columns.append(_weighted(folder / _WEIGHTS, text, filled) if known else np.zeros_like(columns[0]))
    return np.stack(columns, axis=-1)


def _standard(scores: np.ndarray) -> np.ndarray:
    """Scores as deviations from a question's mean, so that questions of different lengths compare.

    What is impossible is below all that is possible, by -1e4 unless a sentence is so long that possible words are, too.
    Choices that a model finds equal but for the rounding of float32 have 0.
    """
    import numpy as np

    least = np.min(scores, axis=1, keepdims=True, initial=0, where=np.isfinite(scores))
    bounded = np.where(np.isneginf(scores), np.where(least > -1e4, -1e4, 2 * least), scores)
    centred = bounded - bounded.mean(axis=1, keepdims=True)
    largest = np.abs(bounded).max(axis=1, keepdims=True)
    return np.where(np.abs(centred).max(axis=1, keepdims=True) > _ROUNDING * largest, centred, 0.0)


def _opened(folder: Path) -> dict[str, Any]:
    """The settings of a model, whose files are those that were written."""
    import math

    from jaxsim import checks, io

    path, remedy = folder / io.CONFIG, "; train it again"
    wanted = "the folder of a completion model (`jaxsim complete --texts TEXTS --out MODEL` makes one)"
    begun = "one that is not finished (run its command again)" if (_unfinished(folder) / _BEGUN).is_file() else None
    checks.expect(folder.exists(), "--model", wanted, begun or f"{folder}, which does not exist")
    checks.expect(path.is_file(), "--model", wanted, f"another folder ({folder})")
    config = io.unsealed(path, newest=FORMAT, remedy=remedy)
    checks.expect(config.get("kind") == KIND, "--model", wanted, f"a model of another command ({folder})")
    weights, told = config.get("weights"), config.get("sha256", {})  # folders of earlier versions have no digests
    models = _models(config)
    numbers = isinstance(weights, list) and len(weights) == len(models)
    numbers = numbers and all(isinstance(one, int | float) and math.isfinite(one) for one in weights)
    checks.expect(weights is None or numbers, f"{path}: weights", f"{len(models)} numbers, or none", weights)
    names = ["sentences/config.json", "sentences/words.txt", *map(_file, _SMOOTHINGS), _SPACE, _WEIGHTS]
    checks.expect(isinstance(told, dict) and set(told) <= set(names), f"{path}: sha256", "digests of the files", told)
    for name, digest in told.items():
        checks.expect((folder / name).is_file(), str(folder / name), "a file of the model", f"none{remedy}")
        checks.expect(io.file_digest(folder / name) == digest, str(folder / name), "the file that was written",
                      f"an altered one{remedy}")  # fmt: skip
    return config


def _answers(folder: Path, asked: Questions) -> list[dict[str, Any]]:
    """For each question every choice with its scores, and the best by the combination."""
    import numpy as np

    from jaxsim.data import sentences

    config = _opened(folder)
    text = sentences.load(folder / "sentences")
    models = _models(config)
    scores = _scores(folder, text, asked, models)
    centred = _standard(scores)
    spread = np.sqrt((centred**2).mean(axis=1, keepdims=True))
    combined = (centred @ np.array(config["weights"]) if config["weights"]
                else (centred / np.where(spread > 0, spread, 1)).sum(axis=-1))  # fmt: skip
    results = []
    for at, one in enumerate(asked.questions):
        place = one.where or f"question {at + 1}"
        unknown = [sorted({word for part in choice for word in sentences.words(part) if word not in text.numbers})
                   for choice in one.choices]  # fmt: skip
        if any(unknown):
            say(f"{place}: not in the training text: "
                f"{', '.join(sorted(set(chain.from_iterable(unknown))))}")  # fmt: skip
        # Nothing is known of such a word but that it is rare: others come first.
        last = np.array([bool(words) and not all(unknown) for words in unknown])
        rows = [{"choice": list(choice), "scores": {**{name: float(scores[at, row, column])
                                                       for column, name in enumerate(models)},
                                                    "combination": float(combined[at, row])}}
                for row, choice in enumerate(one.choices)]  # fmt: skip
        first = np.where(last, -np.inf, combined[at])
        tied = [row["choice"] for row, score in zip(rows, first, strict=True) if score >= first.max() - _TIE]
        if len(tied) > 1:
            say(f"{place}: {len(tied)} choices tie, and the first of them is given as the best")
        results.append({"question": "_____".join(one.parts), "choices": rows, "best": tied[0], "tied": tied})
    return results
