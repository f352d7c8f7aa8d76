"""What `Model` is made of: parameters and what they make of weighted texts, their tensors in a folder, the card."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
import scipy.sparse as sp

from jaxsim import checks, sparse, text
from jaxsim.methods import projections
from jaxsim.methods.projections import Projection
from jaxsim.methods.ssi import bilinear
from jaxsim.methods.ssi.bilinear import Bilinear
from jaxsim.sparse import dense, host, narrow
from jaxsim.sparse.narrow import ScaledRows
from jaxsim.sparse.precision import EVALUATION
from jaxsim.sparse.sizes import DOCUMENTS, SLOTS
from jaxsim.text.subwords import Subwords

Params = Projection | tuple[Projection, Projection] | tuple[Bilinear, Bilinear] | None
"""A projection, one a side, both sides of W = UᵀV + D (of V = U, the same weights twice), or bare term weights."""


def sides(params: Params) -> tuple[Projection, ...] | tuple[Bilinear, ...]:
    """The parameters of queries and of documents; one where they are the same, none of bare term weights.

    Args:
      params: of a model.

    Returns:
      A tuple of 0, 1 or 2.

    Example:
      >>> len(sides(None)), len(sides(Projection(jnp.ones((2, 1)))))
      (0, 1)
    """
    if params is None:
        return ()
    return (params,) if isinstance(params, Projection) else tuple(params)


def check(params: Params, num_terms: int, subwords: Subwords | None = None) -> None:
    """Refuses parameters that do not fit the vocabulary or each other.

    Args:
      params: of a model.
      num_terms: of its vocabulary.
      subwords: n-grams that have rows after those, of projections alone; or None.

    Raises:
      ValueError: naming ``params``.
    """
    if subwords is not None:
        checks.kind(subwords, "subwords", Subwords)
        plain = all(isinstance(side, Projection) for side in sides(params)) and params is not None
        checks.expect(plain, "subwords", "none, without a projection", f"{len(subwords)} n-grams")
        num_terms += len(subwords)
    for side in sides(params):
        whole = isinstance(side, Projection | Bilinear) and all(part is not None for part in side)
        expected = "None, a Projection, or a pair of Projection or of Bilinear with weights and scale"
        checks.expect(whole, "params", expected, type(side).__name__)
        shape = tuple(side.weights.shape)
        fits = len(shape) == 2 and shape[0] == num_terms
        checks.expect(fits, "params", f"weights of {num_terms} terms (as vocabulary)", shape)
        if isinstance(side, Bilinear):
            shape = tuple(side.scale.shape)
            checks.expect(shape == (num_terms,), "params", f"a scale of {num_terms} terms (as vocabulary)", shape)
    kinds = [type(side).__name__ for side in sides(params)]
    fits = len(set(kinds)) < 2 and (len(kinds) == 2 or kinds in ([], ["Projection"]))
    checks.expect(fits, "params", "one Projection, or two sides of one kind", " and ".join(kinds))
    dims = [int(side.weights.shape[1]) for side in sides(params)]
    checks.expect(len(set(dims)) < 2, "params", "two sides of as many dimensions", " and ".join(map(str, dims)))


def check_agreement(agreement: np.ndarray, params: Params) -> None:
    """Refuses weights of dimensions that do not fit a projection.

    Args:
      agreement: of a model.
      params: of the same.

    Raises:
      ValueError: naming ``agreement``.

    Example:
      >>> check_agreement(np.array([1.0, 0.5]), Projection(jnp.ones((3, 2))))
    """
    found = sides(params)
    plain = bool(found) and isinstance(found[0], Projection)
    checks.expect(plain, "agreement", "None, without a projection", np.shape(agreement))
    shape = (int(found[0].weights.shape[1]),)
    checks.expect(np.shape(agreement) == shape, "agreement", f"shape {shape} (as params)", np.shape(agreement))
    inside = bool(np.all((np.asarray(agreement) >= 0) & (np.asarray(agreement) <= 1)))
    checks.expect(inside, "agreement", "numbers in [0, 1]", "others")


def weighed(dense, agreement: np.ndarray, power: float):
    """Vectors with their dimensions multiplied by a power of their agreement.

    Args:
      dense: ``[n, k]`` array of NumPy or JAX.
      agreement: ``[k]`` in [0, 1].
      power: at least 0.

    Returns:
      ``[n, k]``, of the same kind.

    Example:
      >>> weighed(np.ones((1, 2)), np.array([1.0, 0.5]), 2).tolist()
      [[1.0, 0.25]]
    """
    return dense * (np.asarray(agreement, dense.dtype) ** dense.dtype.type(power))[None, :]


def weighed_params(params: Params, agreement: np.ndarray, power: float) -> Params:
    """Projections with their dimensions multiplied by a power of their agreement.

    Args:
      params: a projection or a pair; narrow weights are widened, so that nothing is rounded twice.
      agreement: ``[k]`` in [0, 1].
      power: at least 0.

    Returns:
      As ``params``; sides that are one array stay one.

    Example:
      >>> weighed_params(Projection(np.ones((1, 2), np.float32)), np.array([1.0, 0.5]), 2).weights.tolist()
      [[1.0, 0.25]]
    """
    made: dict[int, Any] = {}
    found = []
    for side in sides(params):
        if id(side.weights) not in made:
            made[id(side.weights)] = weighed(narrow.full(side.weights), agreement, power)
        found.append(side._replace(weights=made[id(side.weights)]))
    return found[0] if len(found) == 1 else tuple(found)


def symmetric(params: Params) -> bool:
    """Whether queries and documents have one W = UᵀU + D.

    Args:
      params: of a model.

    Returns:
      False for projections and bare term weights too.

    Example:
      >>> one = jnp.ones((2, 1))
      >>> [symmetric(bilinear.sides(one, other, jnp.ones(2))) for other in (one, 2 * one)]
      [True, False]
    """
    both = sides(params)
    if not both or not isinstance(both[0], Bilinear):
        return False
    left, right = (side.weights for side in both)
    return left is right or bool(np.array_equal(narrow.full(left), narrow.full(right)))


def kind_of(weights) -> str:
    """The name of the weights' type.

    Args:
      weights: an array of NumPy or JAX, or `ScaledRows`.

    Returns:
      ``"int8"`` for `ScaledRows`, else NumPy's name.

    Example:
      >>> kind_of(jnp.ones((2, 1), jnp.float32)), kind_of(narrow.narrowed(np.ones((2, 1)), "int8"))
      ('float32', 'int8')
    """
    return "int8" if isinstance(weights, ScaledRows) else np.dtype(weights.dtype).name


def has_diagonal(params: Params) -> bool:
    """Whether W = UᵀV + D has a D that is not zero, so that a score needs the words.

    Args:
      params: of a model.

    Returns:
      False for projections and bare term weights too.

    Example:
      >>> one = jnp.ones((2, 1))
      >>> [has_diagonal(bilinear.sides(one, one, jnp.full(2, b))) for b in (0.0, 3.0)]
      [False, True]
    """
    both = sides(params)
    return bool(both) and isinstance(both[0], Bilinear) and bool(np.any(np.asarray(both[0].scale)))


def formula(params: Params) -> str:
    """What W is, for messages about such a model.

    Args:
      params: of a model.

    Returns:
      A formula.

    Example:
      >>> one = jnp.ones((2, 1))
      >>> formula(bilinear.sides(one, one, jnp.ones(2)))
      'W = UᵀU + b·I'
    """
    return f"W = {'UᵀU' if symmetric(params) else 'UᵀV'} + b·I"


def rows_seen(params: Bilinear, rows: sp.csr_matrix, strongest: int | None) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Weighted texts as the two parts of W see them, which takes them at unit length.

    Args:
      params: one side.
      rows: ``[n, num_terms]`` weighted texts.
      strongest: terms of a text that the low-rank part sees at most; None for all.

    Returns:
      ``(low rank, sparse)``, each ``[n, num_terms]``: the strongest terms, to be projected, and all of them times their
      scale, as they stand in `Vectors`.

    Example:
      >>> query, document = bilinear.sides(jnp.ones((2, 1)), jnp.ones((2, 1)), jnp.full(2, 10.0))
      >>> [part.toarray().round(1).tolist() for part in rows_seen(query, sp.csr_matrix([[3.0, 4.0]]), 1)]
      [[[0.0, 1.0]], [[6.0, 8.0]]]
    """
    rows = text.unit_rows(rows)
    few = rows
    if strongest is not None and rows.shape[0] and np.diff(rows.indptr).max() > strongest:
        few = sparse.to_scipy(bilinear.strongest(sparse.from_scipy(rows), strongest))
    scale = sp.diags_array(np.asarray(params.scale, rows.dtype))
    return few, sp.csr_matrix(rows @ scale)


def project(weights: jax.Array | ScaledRows, rows: sp.csr_matrix, activation: Callable | None = None) -> np.ndarray:
    """Weighted texts through a projection, by `sparse.host` where it is available, else on the device.

    Args:
      weights: ``[num_terms, k]``; of float16 and of `ScaledRows` the sums are float32, on the host.
      rows: ``[n, num_terms]`` weighted texts.
      activation: function of the result, row by row, or None; rows of zeros stay zero.

    Returns:
      ``[n, k]``.

    Example:
      >>> project(jnp.ones((2, 1)), sp.csr_matrix([[3.0, 4.0]])).tolist()
      [[7.0]]
    """
    if narrow.is_narrow(weights):
        found = narrow.rows_product(rows, weights)
        return found if activation is None else np.asarray(sparse.activated(jax.device_put(found), activation))
    if activation is None and host.compiled() is not None:
        return host.rows_product(rows, np.asarray(weights))
    documents = sparse.from_scipy(rows, pad_docs=sparse.size_class(rows.shape[0], DOCUMENTS),
                                  pad_nnz=sparse.size_class(rows.nnz, SLOTS))  # fmt: skip
    if dense.fits(documents):  # one product: not worth cutting documents for
        documents = sparse.filled(documents)
    with jax.default_matmul_precision(EVALUATION):
        found = _project(Projection(weights), documents, activation)
    return np.asarray(found)[: rows.shape[0]]


@functools.partial(jax.jit, static_argnames="activation")
def _project(params: Projection, documents: sparse.Terms, activation: Callable | None) -> jax.Array:
    return projections.encode(params, documents, activation=activation).dense


def unit_dense(dense: np.ndarray) -> np.ndarray:
    """Rows scaled to length one, on the host; zero rows stay zero.

    Args:
      dense: ``[n, k]`` floating.

    Returns:
      The same shape and type.

    Example:
      >>> unit_dense(np.array([[3.0, 4.0], [0.0, 0.0], [3e-30, 4e-30]])).round(6).tolist()
      [[0.6, 0.8], [0.0, 0.0], [0.6, 0.8]]
    """
    length = np.sqrt(np.sum(np.square(dense, dtype=np.float64), axis=1, keepdims=True))
    return np.divide(dense, length, out=np.zeros_like(dense), where=length > 0, casting="same_kind")


def inner(left: tuple, right: tuple) -> np.ndarray:
    """Inner products of the rows of two collections, row by row, in float64.

    Args:
      left: ``(dense, sparse)``, arrays of ``n`` rows; either may be None.
      right: the same parts.

    Returns:
      ``[n]``.

    Example:
      >>> inner((np.ones((1, 2)), sp.csr_matrix([[3.0]])), (np.ones((1, 2)), sp.csr_matrix([[2.0]]))).tolist()
      [8.0]
    """
    found = 0.0
    for one, other in zip(left, right, strict=True):
        if one is not None:
            one, other = one.astype(np.float64), other.astype(np.float64)
            both = one.multiply(other) if sp.issparse(one) else one * other
            found = found + np.asarray(both.sum(axis=1)).ravel()
    return found


def to_tensors(params: Params) -> dict[str, np.ndarray]:
    """Arrays by name, for a folder.

    Args:
      params: of a model.

    Returns:
      ``weights``; or ``query_weights`` and ``document_weights`` (``both_weights`` of W = UᵀU + D), for W also
      ``query_scale`` and ``document_scale``; nothing for bare term weights. Beside weights of int8, under their name
      and ``_of_rows``, the scale of each row.

    Example:
      >>> sorted(to_tensors(bilinear.sides(jnp.ones((2, 1)), jnp.zeros((2, 1)), jnp.ones(2))))
      ['document_scale', 'document_weights', 'query_scale', 'query_weights']
      >>> sorted(to_tensors(bilinear.sides(jnp.ones((2, 1)), jnp.ones((2, 1)), jnp.ones(2))))
      ['both_weights', 'document_scale', 'query_scale']
    """
    found = sides(params)
    prefixes = ("",) if len(found) == 1 else ("query_", "document_")
    named = {f"{prefix}{name}": array for prefix, side in zip(prefixes, found, strict=False)
             for name, array in side._asdict().items()}  # fmt: skip
    if symmetric(params):  # kept once
        named["both_weights"] = named.pop("query_weights")
        del named["document_weights"]
    scales = {f"{name}{_OF_ROWS}": array.scale for name, array in named.items() if isinstance(array, ScaledRows)}
    return {name: array.values if isinstance(array, ScaledRows) else np.asarray(array)
            for name, array in named.items()} | scales  # fmt: skip


def from_tensors(tensors: Mapping[str, np.ndarray]) -> Params:
    """What `to_tensors` was given.

    Args:
      tensors: of a folder; others are ignored.

    Returns:
      Parameters, bit for bit.

    Raises:
      KeyError: if one side is there and the other is not.

    Example:
      >>> from_tensors({"weights": np.ones((2, 1))}).weights.shape
      (2, 1)
    """
    tensors = {
        name: ScaledRows(array, tensors[f"{name}{_OF_ROWS}"]) if array.dtype == np.int8 else jax.device_put(array)
        for name, array in tensors.items() if name in _ARRAYS
    }  # fmt: skip
    if "weights" in tensors:
        return Projection(tensors["weights"])
    if "both_weights" in tensors:
        tensors |= {"query_weights": tensors["both_weights"], "document_weights": tensors["both_weights"]}
    names = [name for name in ("weights", "scale") if f"query_{name}" in tensors or f"document_{name}" in tensors]
    if not names:
        return None
    kind = Bilinear if "scale" in names else Projection
    fields = kind._fields
    return tuple(kind(*(tensors[f"{side}_{name}"] for name in fields)) for side in ("query", "document"))


_OF_ROWS = "_of_rows"
"""Ends the name of a tensor with the scales of the rows of another, of int8."""
_SIDES = {f"{side}_{name}" for side in ("query", "document", "both") for name in Bilinear._fields}
_ARRAYS = _SIDES | {"weights"}
_LARGEST = float(np.finfo(np.float32).max)
_MOST = 2**53
"""A float holds every whole number below it."""
_SETTINGS = {"method": str, "weighting": str, "activation": str, "languages": list, "training": dict}


def _check_settings(config: Mapping[str, Any]) -> None:
    for name in ("num_docs", *_SETTINGS):
        checks.expect(name in config, "config.json", f"a model with '{name}'", "one without")
    for name, kind in _SETTINGS.items():
        checks.kind(config[name], f"config.json: {name}", kind)
    checks.expect(all(isinstance(one, str) for one in config["languages"]), "config.json: languages", "strings",
                  config["languages"])
    checks.whole(config["num_docs"], "config.json: num_docs", 0)
    checks.expect(config["num_docs"] < _MOST, "config.json: num_docs", f"a number below {_MOST:,}", config["num_docs"])
    for name in ("subwords", "terms_weight", "agreement_power"):
        number = config.get(name)
        checks.expect(number is None or _real(number), f"config.json: {name}", "a number, or nothing", number)
    checks.whole(config.get("feedback"), "config.json: feedback", 1, or_none=True)
    sets, weighed = (config["training"].get(name) for name in ("dev_sets", "weighed"))  # cards and exports look into
    checks.expect(isinstance(sets, list | tuple | None), "config.json: training: dev_sets", "a list",
                  checks.a_kind(sets))
    fits = weighed is None or isinstance(weighed, dict) and _real(weighed.get("power"))
    checks.expect(fits, "config.json: training: weighed", "a number as 'power'", weighed)


def _real(value: Any) -> bool:
    return isinstance(value, float) or type(value) is int and abs(value) < _MOST


def check_folder(tensors: Mapping[str, np.ndarray], config: Mapping[str, Any], words: Sequence[str]) -> None:
    """Refuses what no model has in its folder; `Model` checks whether the parts fit each other.

    Args:
      tensors: of the folder.
      config: its settings.
      words: terms, then n-grams.

    Raises:
      ValueError: naming what is missing, or of another type or shape; and for weights that are not finite.
    """
    _check_settings(config)
    checks.expect(all(isinstance(word, str) for word in words), "vocabulary.json", "a list of words", "another one")
    share = config.get("subwords")
    for name, array in tensors.items():
        if name == "df":
            checks.array(array, "df", "int64", (None,))
        elif name in ("gram_idf", "agreement") or (name in _SIDES and name.endswith("scale")):
            checks.array(array, name, "float32 float64", (None,))
        elif name in _ARRAYS:
            checks.array(array, name, "float32 float64 float16 int8", (None, None))
            checks.expect(array.dtype != np.int8 or f"{name}{_OF_ROWS}" in tensors, "model.safetensors",
                          f"a model with '{name}{_OF_ROWS}', the scales of '{name}'", "one without")
        elif name.removesuffix(_OF_ROWS) in _ARRAYS:
            mate = tensors.get(name.removesuffix(_OF_ROWS))
            fits = mate is not None and mate.dtype == np.int8
            checks.expect(fits, name, "weights of int8 beside it", "none" if mate is None else mate.dtype)
            checks.array(array, name, "float32", (len(mate),))
            checks.expect(bool(np.all(array >= 0)), name, "numbers of at least 0", "others")
            checks.expect(bool(np.all(array <= _LARGEST / 128)), name, "scales of numbers that float32 holds",
                          "larger ones")
        if array.dtype == np.float64:  # vectors are float32
            fits = max(array.max(initial=0), -array.min(initial=0)) <= _LARGEST
            checks.expect(bool(fits), name, "numbers that float32 holds", "larger ones")
    for name in ["df"] + ["gram_idf"] * (share is not None):
        checks.expect(name in tensors, "model.safetensors", f"a model with '{name}'", "one without")
    df, number = tensors["df"], len(words)
    fits = len(df) <= number if share is not None else len(df) == number
    checks.expect(fits, "df", f"one number for each of {number} words", len(df))
    once = len(set(words[: len(df)])) == len(df)  # n-grams may be spelt as words are
    checks.expect(once, "vocabulary.json", "every word once", "one more than once")
    fits = bool(np.all((df >= 0) & (df <= config["num_docs"])))
    checks.expect(fits, "df", f"numbers of documents, from 0 to {config['num_docs']}", "others")
    for side in _SIDES & set(tensors):
        prefix, name = side.split("_")
        mate = {"query": "document", "document": "query"}.get(prefix)
        fits = mate is None or f"{mate}_{name}" in tensors
        checks.expect(fits, "model.safetensors", f"a model with '{mate}_{name}'", "one without")
        fits = mate is None or {f"{prefix}_weights", "both_weights"} & set(tensors)
        checks.expect(bool(fits), "model.safetensors", f"a model with '{prefix}_weights'", "one without")


def card(model: Any) -> str:
    """The model card: what it is, what it was trained on, how to use it.

    Args:
      model: a `Model`.

    Returns:
      Markdown.
    """
    long = ("history", "irregular", "sketch")  # of the training, and thousands of forms of words and of digests
    shown = {name: value for name, value in model.training.items() if name not in long}
    several = {"dev": f"dev, mean of {len(shown['dev_sets'])} sets"} if "dev_sets" in shown else {}
    told = "\n".join(f"- {several.get(name, name)}: {_words(value)}" for name, value in shown.items())
    told = told or "- not recorded"
    call = 'model.encode(["a text", "another"])'
    if model.two_sided:
        call = 'model.encode_query(["a text"])  # and encode_document for the other side'
    score = "share of topics in common" if model.topical else "cosine similarity"
    if model.bilinear:
        call = 'model.search(["a text"], model.vectors(["another", "a third"]), k=1)'
        low = "U'U" if symmetric(model.params) else "U'V"
        score = f"a score is the inner product q'({low} + D)d of texts of unit length"
        score += f", of which {low} sees the {model.strongest} strongest terms" if model.strongest else ""
        score += ", and orders the documents of one query"
    if model.params is None:
        call = 'model.vectors(["a text", "another"])'
    unseen = "ignored"
    if model.subwords is not None:
        unseen = f"made of {checks.counted(len(model.subwords), 'n-gram')} of letters"
    shape = "term weights" if model.params is None else checks.counted(model.dim, "dimension")
    return (
        f"# Text similarity model ({model.method}, {shape})\n\n"
        f"{checks.counted(len(model.vocabulary), 'term')}, weighted by {model.weighting}; {score}. "
        f"Languages: {model.languages[0]} (queries), {model.languages[1]} (documents). Words outside its "
        f"vocabulary are {unseen}; a text without known words has the zero vector and similarity 0.\n\n"
        f"```python\nfrom jaxsim import Model\n\nmodel = Model.load(\"path/to/this/folder\")\n{call}\n"
        'model.similarity("a text", "another")\n```\n\n'
        f"## Training\n\n{told}\n"
    )


def _words(value: Any) -> str:
    """A value for people: of a mapping, what was given."""
    if isinstance(value, list):
        return "; ".join(map(_words, value)) or "none"
    if not isinstance(value, Mapping):
        return str(float(f"{value:.6g}") if isinstance(value, float) else value)
    return ", ".join(f"{name} {_words(one)}" for name, one in value.items() if one is not None) or "none"
