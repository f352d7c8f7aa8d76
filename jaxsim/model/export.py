r"""Models as folders of other tools: sentence-transformers, model2vec, word2vec's text format, and ONNX.

The first three keep one vector a word and average, so the weight of a word is folded into its row: row t is the vector
that the model gives to the text whose only word is t. Averages and sums have the same direction, and unknown words only
scale an average, so the cosine is the model's where the weight is proportional to the count (``tf``, ``tf_idf``).
``log_tf_idf`` counts log2(tf + 1), which no average does: there, similarities are the model's for texts that hold each
known word once. ONNX holds a graph, whose weights and activation are the model's (`onnx`). Weights of float16 and int8
stay what they are there; the other formats hold the same values as float32.

The tokenizer in the folders cuts as `text.words` does, in Turkish and Azeri as `text.words_dotted`. Its word
characters, final sigmas and lower case are those of the Python that exported; they were compared over all code points.
Its regular expressions use only what JavaScript has too, so that Transformers.js reads it. What still differs:

- NFC is that of the ``tokenizers`` package, which follows an older Unicode. It does not know 51 of Python 3.11's
  combining marks and does not reorder them, so a letter, such a mark and an accent stay apart; nor does it compose
  U+11938.
- A ``tokenizers`` package of another version than at the export may lower letters that were new then.
- A capital sigma that more than 100 dots, apostrophes or marks part from the letter before it is lowered to σ there.
- `text.words` puts U+034F into a run of more than 30 marks; ``tokenizers`` does not.
- A lone surrogate, which is no Unicode text, is an error in ``tokenizers`` and no word here.
"""

from __future__ import annotations

import functools
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from safetensors.numpy import save as bytes_from_tensors

from jaxsim import __version__, checks, io, text
from jaxsim.model import onnx, parts
from jaxsim.model.model import WEIGHTINGS, Model
from jaxsim.sparse import narrow
from jaxsim.text import tokens

__all__ = ["FORMATS", "MARKER", "export", "rows"]

FORMATS = ("sentence-transformers", "model2vec", "word2vec", "onnx")
"""What `export` can write."""

MARKER = "jaxsim_export.json"
"""File that says that a folder is an export of this package, and what it holds."""

_EXACT = ("tf", "tf_idf")
_NOTES = {
    True: "Cosines are those of the model.",
    False: "log2(tf + 1) became tf: cosines are those of the model for texts that hold each known word once, and "
           "differ where words repeat.",
}  # fmt: skip
_UNSEEN = ("Words outside the vocabulary, which the model makes of n-grams, are ignored here: texts that have any "
           "differ. A model that is trained with --subwords 0 loses nothing by this.")
_UNKNOWN = "[UNK]"
_PASSED = 100  # marks between a letter and a sigma that ends its word
_WORD = re.compile(r"\w+")


def export(model: Model, to: str, out: str | os.PathLike) -> dict[str, Any]:
    """Writes a model for another tool.

    Args:
      model: one with a projection, or a pair of them, and (but for ONNX) no activation. Weights of its dimensions are
        not written, but for those of `Model.weighed`, which are in the projection.
      to: one of `FORMATS`.
      out: the folder; an older export there is replaced, anything else is left alone. A pair of projections makes two
        folders in it, ``query`` and ``document``, or two files for word2vec.

    Returns:
      ``folder``, ``format``, ``paths`` (side -> what the tool loads; the side is ``"both"`` for one projection),
      ``exact`` (whether cosines are the model's for every text), ``note`` (the same in words), ``weighting``,
      ``weights`` (the type of the weights, which ONNX alone keeps narrow), ``terms`` and ``dim``.

    Raises:
      ValueError: for other formats, models that no table of word vectors can hold, and a place that is taken.
      ImportError: if ``tokenizers`` or ``onnx`` is needed and missing; the message says how to install it.
      OSError: if the folder cannot be written; what was there is as it was.

    Example:
      >>> import pathlib, tempfile
      >>> from jaxsim.methods.projections import Projection
      >>> words = text.Vocabulary(("cat", "dog"), np.array([1, 2]), 4)
      >>> with tempfile.TemporaryDirectory() as place:
      ...     model = Model(words, Projection(np.ones((2, 3), np.float32)))
      ...     told = export(model, "word2vec", pathlib.Path(place) / "vectors")
      ...     print(pathlib.Path(told["paths"]["both"]).read_text())
      2 3
      cat 2 2 2
      dog 1 1 1
      >>> told["exact"], told["terms"]
      (False, 2)
    """
    checks.kind(model, "model", Model)
    checks.expect(to in FORMATS, "to", f"one of {', '.join(FORMATS)}", to)
    words = _exportable(model, to)
    tables = rows(model)
    finite = all(np.isfinite(table).all() for table in tables)
    checks.expect(finite, "model.params", "finite weights", "NaN or infinity")
    if to == "onnx":
        tables = tuple(_kept(side.weights, table, model) for side, table in
                       zip(parts.sides(model.params), tables, strict=True))
    sides = ("both",) if len(tables) == 1 else ("query", "document")
    exact = to == "onnx" or model.weighting in _EXACT
    note = _NOTES[exact] if model.subwords is None else f"{_NOTES[exact]} {_UNSEEN}"
    exact = exact and model.subwords is None
    left_out = model.training.get("left_out", 0)
    if left_out:
        exact = False
        note += (f" Left out: {checks.counted(left_out, 'word')} of several parts, which other tools would cut; texts "
                 "with one have other vectors here.")
    kept = parts.sides(model.params)[0].weights
    kind = "float32"
    if narrow.is_narrow(kept):
        kind = parts.kind_of(kept) if to == "onnx" else "float32"
        note += f" The model's weights are {parts.kind_of(kept)}; here they are {kind}, with the same values."
    if "weighed" in model.training:
        power = model.training["weighed"]["power"]
        note += (f" Every dimension is multiplied by its agreement to the power {power:g}, for documents about the "
                 "same thing.")
    facts = {"format": to, "exact": exact, "note": note, "weighting": model.weighting, "weights": kind,
             "terms": len(words), "dim": model.dim}  # fmt: skip
    contents: dict[str, bytes] = {}
    paths = {}
    for side, table in zip(sides, tables, strict=True):
        if to == "word2vec":
            paths[side] = "vectors.txt" if side == "both" else f"{side}.txt"
            contents[paths[side]] = _word2vec(words, table)
            continue
        paths[side] = "." if side == "both" else side
        cut = _tokenizer(words, model.languages[side == "document"])
        files = _FOLDERS[to](cut, table, model)
        files["README.md"] = _card(model, facts, {side: "."})
        contents |= {name if side == "both" else f"{side}/{name}": data for name, data in files.items()}
    contents["README.md"] = _card(model, facts, paths)
    contents[MARKER] = _json({"library": "jaxsim", "version": __version__, **facts, "paths": paths,
                              "files": sorted(contents)})  # fmt: skip
    folder = io.replace_folder(out, contents, marker=MARKER, what="export")
    return {"folder": str(folder), **facts, "paths": {side: str(folder / path) for side, path in paths.items()}}


def rows(model: Model) -> tuple[np.ndarray, ...]:
    """The vector of each term alone: its weight at a count of one, times its row of the projection.

    Args:
      model: one with a projection or a pair of them.

    Returns:
      One ``[num_terms, dim]`` float32 array a projection, queries first; n-grams of unseen words have none.

    Example:
      >>> from jaxsim.methods.projections import Projection
      >>> words = text.Vocabulary(("cat", "dog"), np.array([1, 2]), 4)
      >>> rows(Model(words, Projection(np.ones((2, 1), np.float32))))[0].tolist()
      [[2.0], [1.0]]
    """
    weights = _weights(model)[:, None]
    return tuple(np.asarray(side.weights, np.float32)[: len(weights)] * weights for side in parts.sides(model.params))


def _weights(model: Model) -> np.ndarray:
    """The weight of each term at a count of one."""
    once = sp.identity(len(model.vocabulary), np.float32, "csr")
    found = WEIGHTINGS[model.weighting](once, model.vocabulary.df, model.vocabulary.num_docs).diagonal()
    return found.astype(np.float32)


def _exportable(model: Model, to: str) -> tuple[str, ...]:
    """The terms of a model that a folder of this format can hold; others are refused."""
    checks.expect(model.params is not None, "model", "one with a projection", f"bare term weights ({model.method})")
    checks.expect(not model.bilinear, "model",
                  "one whose score is the cosine of two vectors (that of SSI is an inner product)",
                  f"{parts.formula(model.params)} ({model.method})")
    checks.expect(not model.topical, "model", "one that is compared by the cosine (no other tool compares topics)",
                  model.method)
    checks.expect(to == "onnx" or model.activation == "none", "model.activation", "none (a table of word vectors has "
                  "no function after the average; onnx has)", model.activation)
    checks.expect(model.activation == "none" or model.subwords is None, "model", "an activation or n-grams of words, "
                  "not both (no graph holds the length of a text with its n-grams)", "both")
    cuts = [text.tokenizer(language) for language in model.languages]
    for language, cut in zip(model.languages, cuts, strict=True):
        checks.expect(cut in (text.words, text.words_dotted), "model",
                      "languages whose words are runs of letters (this one's are cut otherwise)", language)
    alike = to == "word2vec" or cuts[0] is cuts[1] or len(parts.sides(model.params)) == 2
    checks.expect(alike, "model", "a projection for each language, or two languages that lower I alike (a folder has "
                  "one tokenizer)", ", ".join(model.languages))  # fmt: skip
    words = model.vocabulary.terms
    wrong = next((word for word in words if text.words(word, lower=False) != [word]), None)
    checks.expect(wrong is None, "model.vocabulary", "words as text.words cuts them", repr(wrong))
    checks.expect(len(set(words)) == len(words), "model.vocabulary", "every word once", "one more than once")
    return words


def _sentence_transformers(cut: bytes, table: np.ndarray, model: Model) -> dict[str, bytes]:
    """A folder of one `StaticEmbedding`, in the layout that versions from 3.2 on read."""
    modules = [{"idx": 0, "name": "0", "path": ".", "type": "sentence_transformers.models.StaticEmbedding"}]
    config = {"model_type": "SentenceTransformer", "prompts": {"query": "", "document": ""},
              "default_prompt_name": None, "similarity_fn_name": "cosine"}  # fmt: skip
    return {
        "modules.json": _json(modules),
        "config_sentence_transformers.json": _json(config),
        "tokenizer.json": cut,
        "model.safetensors": bytes_from_tensors({"embedding.weight": _with_unknown(table)}),
    }


def _model2vec(cut: bytes, table: np.ndarray, model: Model) -> dict[str, bytes]:
    """A folder of a `StaticModel`: texts of any length are read whole, vectors are of unit length or zero."""
    config = {"model_type": "model2vec", "architectures": ["StaticModel"], "normalize": True, "max_length": None,
              "hidden_dim": table.shape[1], "embedding_dtype": "float32"}  # fmt: skip
    return {
        "config.json": _json(config),
        "tokenizer.json": cut,
        "model.safetensors": bytes_from_tensors({"embeddings": _with_unknown(table)}),
    }


def _onnx(cut: bytes, table: tuple[np.ndarray, np.ndarray | None], model: Model) -> dict[str, bytes]:
    """A folder of a graph and the tokenizer of its input.

    Transformers.js, which runs such graphs, takes the tokens of unknown words and of padding from
    ``tokenizer_config.json``. An added token in ``tokenizer.json`` would be found in texts that have its letters.
    """
    rows, scale = table
    scale = None if scale is None else np.append(scale, np.float32(0))
    once = None if model.activation == "none" else np.append(_weights(model), np.float32(0))
    graph = onnx.graph(_with_unknown(rows), weighting=model.weighting, activation=model.activation, scale=scale,
                       once=once)  # fmt: skip
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": _UNKNOWN, "pad_token": _UNKNOWN}
    return {"model.onnx": graph, "tokenizer.json": cut, "tokenizer_config.json": _json(config)}


_FOLDERS = {"sentence-transformers": _sentence_transformers, "model2vec": _model2vec, "onnx": _onnx}


def _word2vec(words: tuple[str, ...], table: np.ndarray) -> bytes:
    line = "%s " + " ".join(["%.9g"] * table.shape[1])  # nine digits give every float32 back
    lines = (line % (word, *row.tolist()) for word, row in zip(words, table, strict=True))
    return "\n".join([f"{len(words)} {table.shape[1]}", *lines, ""]).encode()


def _kept(weights, table: np.ndarray, model: Model) -> tuple[np.ndarray, np.ndarray | None]:
    """What a graph holds: the rows as the model has them and the factor of each, if they are narrow, else the table."""
    if not narrow.is_narrow(weights):
        return table, None
    scaled = isinstance(weights, narrow.ScaledRows)
    values = weights.values if scaled else np.asarray(weights)
    factor = _weights(model)
    return values[: len(factor)], factor * weights.scale[: len(factor)] if scaled else factor


def _with_unknown(table: np.ndarray) -> np.ndarray:
    return np.concatenate([table, np.zeros((1, table.shape[1]), table.dtype)])


def _json(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()


def _tokenizers():
    try:
        import tokenizers
    except ImportError as error:
        raise ImportError(
            "export: expected the package tokenizers, got none; install it with: pip install 'jaxsim-text[export]'"
        ) from error
    return tokenizers


def _tokenizer(words: Iterable[str], language: str) -> bytes:
    """``tokenizer.json``: from a text in a language to ids in the order of ``words``; the last is of unknown words."""
    library = _tokenizers()
    normalizers, regex = library.normalizers, library.Regex
    ids = {word: column for column, word in enumerate([*words, _UNKNOWN])}
    tokenizer = library.Tokenizer(library.models.WordLevel(ids, unk_token=_UNKNOWN))
    dotted = tokens.DOTTED.items() if text.tokenizer(language) is text.words_dotted else ()
    repairs = [normalizers.Replace(chr(capital), small) for capital, small in dotted]
    repairs += [normalizers.Replace(regex(pattern), by) for pattern, by in _repairs()]
    drawn = normalizers.Replace(regex(f"[{tokens.DRAWN}]"), "")
    tokenizer.normalizer = normalizers.Sequence([drawn, normalizers.NFC(), *repairs, normalizers.Lowercase(),
                                                normalizers.NFC()])
    letters, marks = _ranges(_WORD.match), text.word_marks()
    word = regex(f"[{letters}]+(?:[{marks}]+[{letters}]*)*")
    tokenizer.pre_tokenizer = library.pre_tokenizers.Split(word, behavior="removed", invert=True)
    return (tokenizer.to_str(pretty=False) + "\n").encode()


@functools.cache
def _repairs() -> tuple[tuple[str, str], ...]:
    """Patterns, and what to put in their place before `Lowercase`, so that its words are those of `str.lower`."""
    lower = _tokenizers().normalizers.Lowercase().normalize_str
    result: dict[str, list[str]] = {}
    for char in _characters():
        if _WORD.findall(lower(char)) != _WORD.findall(char.lower()):
            result.setdefault(char.lower() if _WORD.match(char) else " ", []).append(char)
    return ((_final_sigma(), "ς"), *((f"[{''.join(chars)}]", by) for by, chars in result.items()))


def _final_sigma() -> str:
    r"""A capital sigma that ends a word, as `str.lower` has it: after a cased letter, before none, marks passed over.

    JavaScript has no ``\K``, so what stands before is a lookbehind. It looks back over so many marks at most, since
    texts of dots and sigmas would take time quadratic in their length.
    """
    cased = _ranges(_cased)
    passed = _ranges(lambda char: ("A" + char + "Σ").lower()[-1] == "ς" and not _cased(char))
    return rf"Σ(?![{passed}]*[{cased}])(?<=[{cased}][{passed}]{{0,{_PASSED}}}Σ)"


def _cased(char: str) -> bool:
    return (char + "Σ").lower()[-1] == "ς"


def _characters() -> Iterator[str]:
    return (chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000)


@functools.cache
def _ranges(holds: Callable[[str], object]) -> str:
    """The characters that something holds of, as the inside of a character class."""
    return text.character_class([ord(char) for char in _characters() if holds(char)])


_LOAD = {
    "sentence-transformers": "from sentence_transformers import SentenceTransformer\n\n"
                             'SentenceTransformer("{path}").encode(["a text", "another"])',
    "model2vec": "from model2vec import StaticModel\n\n"
                 'StaticModel.from_pretrained("{path}").encode(["a text", "another"], max_length=None)',
    "word2vec": "from gensim.models import KeyedVectors\n\n"
                'KeyedVectors.load_word2vec_format("{path}")  # a text is the sum of its words\' vectors',
    "onnx": "import numpy as np\nimport onnxruntime\nfrom tokenizers import Tokenizer\n\n"
            'tokenizer = Tokenizer.from_file("{path}/tokenizer.json")\ntokenizer.enable_padding()\n'
            'session = onnxruntime.InferenceSession("{path}/model.onnx")\n'
            'texts = tokenizer.encode_batch(["a text", "another"])\n'
            'inputs = {{"input_ids": [text.ids for text in texts],\n'
            '          "attention_mask": [text.attention_mask for text in texts]}}\n'
            "session.run(None, {{name: np.array(rows, np.int64) for name, rows in inputs.items()}})[0]",
}  # fmt: skip


def _card(model: Model, told: dict[str, Any], paths: dict[str, str]) -> bytes:
    """README of an exported folder; its head is what model hubs read."""
    languages = sorted(set(model.languages))
    calls = []
    for side, path in paths.items():
        intro = "" if side == "both" else f"The {side} side:\n\n"
        where = "path/to/this/folder" if path == "." else f"path/to/this/folder/{path}"
        calls.append(f"{intro}```python\n{_LOAD[told['format']].format(path=where)}\n```\n\n")
    holds, title = f"weights ({told['weighting']}) are in the vectors", "Word vectors of a"
    compare = " Compare by cosine: lengths are not the model's."
    if told["format"] == "onnx":
        holds, title, compare = f"the graph weighs words ({told['weighting']})", "Graph of a", ""
    return (
        f"---\nlibrary_name: {told['format']}\nlanguage: {json.dumps(languages)}\n---\n\n"
        f"# {title} text similarity model ({model.method}, {checks.counted(told['dim'], 'dimension')})\n\n"
        f"Exported by jaxsim {__version__} for {told['format']}. {checks.counted(told['terms'], 'word')}; {holds}. "
        f"Languages: {model.languages[0]} (queries), {model.languages[1]} (documents).\n\n"
        f"{''.join(calls)}{told['note']}{compare} Words are the letters, digits and their marks in the lower-case NFC "
        "form; words that the model has not seen add nothing.\n"
    ).encode()
