"""`Model`: texts in, vectors and similarities out; the class for those who have texts rather than sparse rows."""

from __future__ import annotations

import functools
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from jaxsim import checks, sparse, text
from jaxsim.data.corpora import thesauri
from jaxsim.evaluate import retrieval
from jaxsim.methods import topics
from jaxsim.methods.projections import Projection
from jaxsim.methods.ssi.bilinear import Bilinear
from jaxsim.model import folders, parts
from jaxsim.sparse import Vectors
from jaxsim.text.subwords import Subwords, slots

WEIGHTINGS: dict[str, Callable[..., sp.csr_matrix]] = {
    "log_tf_idf": text.log_tf_idf,
    "tf_idf": text.tf_idf,
    "tf": lambda counts, df, num_docs: counts,
}
ACTIVATIONS: dict[str, Callable | None] = {"none": None, "tanh": jnp.tanh, "sigmoid": jax.nn.sigmoid}
"""Functions of a model's vectors that are learned of texts of length 1, so that others are scaled first."""
OUTPUTS = ACTIVATIONS | {"shares": topics.shares}
"""All functions of a model's vectors; ``shares``, of topic models, scales them to sum to 1 instead of to length 1."""
WORDS = "words"
"""What ``training["kind"]`` says of a model whose texts are single words (`words.Words`)."""
_BATCH = 1024


@dataclass(frozen=True, eq=False)
class Model:
    """A trained similarity model with everything it needs to read text.

    Attributes:
      vocabulary: terms with their document frequencies.
      params: `Projection`; a pair of them where queries and documents have their own; a pair of `Bilinear`, the sides
        of W = UᵀV + D or UᵀU + D (SSI); None for bare term weights.
      weighting: name in `WEIGHTINGS`.
      activation: name in `OUTPUTS`; with ``shares`` a projection holds the topics of each word, and texts are compared
        by the share of their topics that they have in common.
      languages: language codes of queries and documents, which choose the word splitters.
      method: what it was trained by, for people.
      training: counts, settings, dev metric, command and history of the training, for people; JSON-compatible.
      strongest: terms of a text that the low-rank part of W sees at most; None for all. Of `Bilinear` alone.
      subwords: n-grams of the words that the vocabulary does not hold, the last rows of a projection; or None.
      agreement: ``[dim]`` weights in [0, 1] of the dimensions of a projection for search
        (`projections.agreement`); or None.
      terms_weight: weight in [0, 1] of words beside the vectors in search, where judged queries chose one; or None.
      agreement_power: power in [0, 4] of `agreement` in search, where judged queries chose one; or None.
      feedback: how many of the best documents a second search is also after (`ranker.rank`), where judged queries chose
        some; or None: there is no second search.
    """

    vocabulary: text.Vocabulary
    params: parts.Params
    weighting: str = "log_tf_idf"
    activation: str = "none"
    languages: tuple[str, str] = ("en", "en")
    method: str = "unknown"
    training: dict[str, Any] = field(default_factory=dict)
    strongest: int | None = None
    subwords: Subwords | None = None
    agreement: np.ndarray | None = None
    terms_weight: float | None = None
    agreement_power: float | None = None
    feedback: int | None = None

    def __post_init__(self):
        """Checks that the parts fit each other."""
        checks.expect(self.weighting in WEIGHTINGS, "weighting", f"one of {', '.join(WEIGHTINGS)}", self.weighting)
        checks.expect(self.activation in OUTPUTS, "activation", f"one of {', '.join(OUTPUTS)}", self.activation)
        checks.expect(len(self.languages) == 2, "languages", "two language codes", self.languages)
        with checks.within("languages"):
            for language in self.languages:
                text.tokenizer(language)
        parts.check(self.params, len(self.vocabulary), self.subwords)
        checks.whole(self.strongest, "strongest", 1, or_none=True)
        plain = not self.bilinear or self.activation == "none"
        checks.expect(plain, "activation", "none, for W = UᵀV + D", self.activation)
        if self.agreement is not None:
            parts.check_agreement(self.agreement, self.params)
        share = self.terms_weight is None or 0 <= self.terms_weight <= 1
        checks.expect(share, "terms_weight", "None, or a number in [0, 1]", self.terms_weight)
        fits = self.agreement_power is None or 0 <= self.agreement_power <= 4
        checks.expect(fits, "agreement_power", "None, or a number in [0, 4]", self.agreement_power)
        checks.whole(self.feedback, "feedback", 1, or_none=True)

    def __repr__(self) -> str:
        """A short form, since the vocabulary and the weights are long."""
        shape = "" if self.params is None else f", dim={self.dim}"
        return f"Model(method={self.method!r}, terms={len(self.vocabulary)}{shape}, languages={self.languages})"

    @property
    def _sides(self) -> tuple[Projection, ...] | tuple[Bilinear, ...]:
        return parts.sides(self.params)

    @property
    def bilinear(self) -> bool:
        """Whether a score is qᵀWd, W = UᵀV + D (SSI): vectors have a dense and a sparse part."""
        return bool(self._sides) and isinstance(self._sides[0], Bilinear)

    @property
    def scorer(self) -> Callable:
        """What compares `vectors`: `retrieval.dot` for W = UᵀV + D, `l1` for topics, else `retrieval.cosine`."""
        return retrieval.dot if self.bilinear else retrieval.l1 if self.topical else retrieval.cosine

    @property
    def topical(self) -> bool:
        """Whether vectors are shares of topics, and a score is the share that two texts have in common."""
        return self.activation == "shares"

    @property
    def search_power(self) -> float:
        """The power of `agreement` that a search takes unless given: what judged queries chose, or 1."""
        return 1.0 if self.agreement_power is None else self.agreement_power

    @property
    def dim(self) -> int:
        """Length of a vector (of its dense part); the number of terms where there is no projection."""
        return int(self._sides[0].weights.shape[1]) if self._sides else len(self.vocabulary)

    @property
    def two_sided(self) -> bool:
        """Whether queries and documents are encoded differently."""
        first, second = map(text.tokenizer, self.languages)
        return (len(self._sides) == 2 and not self._symmetric) or first is not second

    @functools.cached_property
    def _symmetric(self) -> bool:
        return parts.symmetric(self.params)

    def term_vectors(self, texts: Sequence[str], *, side: str = "document") -> sp.csr_matrix:
        """Weighted term vectors, before any projection.

        Args:
          texts: ``n`` strings; words that the vocabulary does not hold are ignored.
          side: ``"query"`` or ``"document"``.

        Returns:
          ``[n, num_terms]`` float32.

        Raises:
          ValueError: for another side, or texts that are not strings.
        """
        return self._slots(texts, side, None)

    def _slots(self, texts: Sequence[str], side: str, subwords: Subwords | None) -> sp.csr_matrix:
        split = self.splitter(side)
        return slots(map(split, text.strings(texts)), self.vocabulary, subwords, WEIGHTINGS[self.weighting])

    def splitter(self, side: str = "document") -> Callable[[str], list[str]]:
        """What cuts a text into words.

        Args:
          side: ``"query"`` or ``"document"`` (another is a ValueError).

        Returns:
          Function from a text to its words, each as often as it occurs, known or not. A model of single words
          (`words.Words`) leaves an entry of several parts whole.

        Example:
          >>> Model(text.Vocabulary(("cat",), np.array([1]), 2), None).splitter()("A cat, cats")
          ['a', 'cat', 'cats']
        """
        checks.expect(side in ("query", "document"), "side", "'query' or 'document'", side)
        split = text.tokenizer(self.languages[side == "document"])
        split = text.pieces if split is text.words else split  # equal words need not be one string here
        return functools.partial(_whole_or_cut, self.vocabulary, split) if self.training.get("kind") == WORDS else split

    def vectors(
        self, texts: Iterable[str], *, side: str = "document", power: float = 0.0, batch_size: int = _BATCH
    ) -> Vectors:
        """What `retrieval` takes: dense for projections, sparse for bare term weights, both for W = UᵀV + D.

        Args:
          texts: ``n`` strings (anything else is a ValueError).
          side: ``"query"`` or ``"document"`` (another is a ValueError).
          power: of `agreement`, by which the dimensions are multiplied: 1 to find documents about the same thing, 0 to
            find mates. Queries and documents take the same. Models without `agreement` have plain vectors.
          batch_size: texts a batch.

        Returns:
          `Vectors` of ``n`` documents.
        """
        checks.positive_int(batch_size, "batch_size")
        checks.expect(not isinstance(texts, str), "texts", "a list of strings", "one string")
        checks.expect(isinstance(texts, Iterable), "texts", "a list of strings", type(texts).__name__)
        _expect_power(power)
        dense, bare = self._parts(list(texts), side, batch_size)
        dense = self._by_agreement(dense, power)
        return Vectors(None if dense is None else jax.device_put(dense),
                       None if bare is None else sparse.from_scipy(bare))

    def _by_agreement(self, dense: np.ndarray | None, power: float) -> np.ndarray | None:
        """Dense vectors as `vectors` says of ``power``."""
        return parts.weighed(dense, self.agreement, power) if power and self.agreement is not None else dense

    def _parts(self, texts: list[str], side: str, batch_size: int) -> tuple[np.ndarray | None, sp.csr_matrix | None]:
        """The dense and the sparse part of the vectors, on the host."""
        if self.params is None:
            return None, self.term_vectors(texts, side=side)
        checks.positive_int(batch_size, "batch_size")
        params = self._sides[-1 if side == "document" else 0]
        result, sparse = np.zeros((len(texts), self.dim), np.float32), []
        for start in range(0, max(len(texts), 1), batch_size):
            rows = self._slots(texts[start : start + batch_size], side, self.subwords)
            if self.bilinear:
                rows, whole = parts.rows_seen(params, rows, self.strongest)
                sparse.append(whole)
            result[start : start + batch_size] = self.project(params, rows)
        return result, sp.vstack(sparse, format="csr") if sparse else None

    def project(self, side: Projection | Bilinear, rows: sp.csr_matrix) -> np.ndarray:
        """Weighted texts through a projection of the model, and its activation.

        Args:
          side: of `params`.
          rows: ``[n, num_terms]`` float32, with the n-grams of `subwords` after the terms. For `ACTIVATIONS` other than
            none, they are scaled to the length one that texts have in training; the cosine of others needs no length.

        Returns:
          ``[n, dim]`` float32.

        Example:
          >>> words = text.Vocabulary(("cat",), np.array([1]), 2)
          >>> model = Model(words, Projection(jnp.ones((1, 1))), activation="tanh")
          >>> model.project(model.params, sp.csr_matrix([[0.5], [2.0]])).round(3).tolist()
          [[0.762], [0.762]]
        """
        if ACTIVATIONS.get(self.activation) is not None:
            rows = text.unit_rows(rows, None if self._spread is None else rows @ self._spread)
        return parts.project(side.weights, rows, OUTPUTS[self.activation])

    @functools.cached_property
    def _spread(self) -> sp.csr_matrix | None:
        """The map from slots to the texts that were learned of."""
        return None if self.subwords is None else self.subwords.spread(self.vocabulary)

    def encode(self, texts: str | Iterable[str], *, normalize: bool = False, power: float = 0.0,
               batch_size: int = _BATCH) -> np.ndarray:  # fmt: skip
        """Vectors of texts.

        Args:
          texts: one string, or ``n`` of them.
          normalize: whether to scale vectors to length one; a text without known words stays zero.
          power: of `agreement`, as `vectors` takes it: 1 for an index of another tool that looks for documents about
            the same thing.
          batch_size: texts a batch.

        Returns:
          ``[k]`` for one string, else ``[n, k]``, float32.

        Raises:
          ValueError: for models whose two sides differ (`encode_query` and `encode_document` serve them), as
            `expect_projection`, and for texts that are not strings.

        Example:
          >>> words = text.Vocabulary(("cat", "dog"), np.array([1, 1]), 2)
          >>> model = Model(words, Projection(jnp.eye(2)))
          >>> model.encode(["cat", "dog dog dog", "bird"]).tolist()
          [[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]
        """
        self.expect_projection()
        checks.expect(not self.two_sided, "model", "one with equal sides (or encode_query, encode_document)",
                      "one that encodes queries and documents differently")
        return self._encoded(texts, "document", normalize, power, batch_size)

    def encode_query(self, texts: str | Iterable[str], *, normalize: bool = False, power: float = 0.0,
                     batch_size: int = _BATCH) -> np.ndarray:  # fmt: skip
        """Vectors of queries, the left side of the pairs; arguments and result of `encode`."""
        return self._encoded(texts, "query", normalize, power, batch_size)

    def encode_document(self, texts: str | Iterable[str], *, normalize: bool = False, power: float = 0.0,
                        batch_size: int = _BATCH) -> np.ndarray:  # fmt: skip
        """Vectors of documents, the right side of the pairs; arguments and result of `encode`."""
        return self._encoded(texts, "document", normalize, power, batch_size)

    def weighed(self, power: float | None = None) -> Model:
        """The model with its dimensions multiplied by their `agreement`, for tools that know no such weights.

        Args:
          power: of `agreement`; `search_power` unless given.

        Returns:
          A model without `agreement`, whose plain vectors are what this one's `vectors` are with ``power``, and whose
          ``training`` says so under ``weighed``. Weights of float16 and int8 become float32, since they would be
          rounded twice; `rounding.rounded` narrows them again. This model itself where it has no `agreement`, or the
          power is 0.

        Raises:
          ValueError: for a power that is no number of at least 0, and with an activation, after which dimensions are
            multiplied.

        Example:
          >>> words = text.Vocabulary(("cat", "dog"), np.array([1, 1]), 2)
          >>> model = Model(words, Projection(jnp.eye(2)), agreement=np.array([1.0, 0.5]))
          >>> model.encode("dog").tolist(), model.encode("dog", power=1).tolist()
          ([0.0, 1.0], [0.0, 0.5])
          >>> model.weighed().encode("dog").tolist()
          [0.0, 0.5]
        """
        power = self.search_power if power is None else power
        _expect_power(power)
        if not power or self.agreement is None:
            return self
        checks.expect(self.activation == "none", "power", f"0, since the dimensions of this model are multiplied after "
                      f"its activation ({self.activation})", power)  # fmt: skip
        params = parts.weighed_params(self.params, self.agreement, power)
        about = {name: value for name, value in self.training.items() if name != "weights"}  # what rounding lost
        about["weighed"] = {"power": power}
        return replace(self, params=params, agreement=None, agreement_power=None, training=about)

    def expect_projection(self) -> None:
        """Refuses models whose vectors are no dense arrays. Those of W = UᵀV without D are; W is their inner product.

        Raises:
          ValueError: for bare term weights and for W = UᵀV + D; `vectors`, `similarity` and `search` serve both.
        """
        checks.expect(self.params is not None, "model", "one with a projection (or search and similarity)",
                      f"bare term weights ({self.method})")
        checks.expect(not parts.has_diagonal(self.params), "model",
                      "one with a projection alone (or search and similarity)",
                      f"{parts.formula(self.params)} ({self.method}), whose score needs the words too")

    def _encoded(self, texts, side: str, normalize: bool, power: float, batch_size: int) -> np.ndarray:
        self.expect_projection()
        _expect_power(power)
        result = self._parts([texts] if isinstance(texts, str) else list(texts), side, batch_size)[0]
        result = self._by_agreement(result, power)
        result = parts.unit_dense(result) if normalize else result
        return result[0] if isinstance(texts, str) else result

    def similarity(self, queries: str | Sequence[str], documents: str | Sequence[str]) -> np.ndarray:
        """Cosine (qᵀWd for SSI, common topics) of every query with every document; 0 where either has no known words.

        Args:
          queries: one string or ``n``.
          documents: one string or ``m``.

        Returns:
          ``[n, m]`` float32, without the axes of single strings; cosines are in [-1, 1].

        Example:
          >>> words = text.Vocabulary(("cat", "dog"), np.array([1, 1]), 2)
          >>> float(Model(words, Projection(jnp.ones((2, 1)))).similarity("cat", "dog"))
          1.0
        """
        sides = [
            self.vectors([given] if isinstance(given, str) else given, side=side)
            for given, side in ((queries, "query"), (documents, "document"))
        ]
        result = np.zeros((sides[0].num_docs, sides[1].num_docs), np.float32)
        if result.size:
            result = self._within(np.asarray(self.scorer(*sides)(np.arange(sides[0].num_docs)), np.float32))
        result = result[0] if isinstance(queries, str) else result
        return result[..., 0] if isinstance(documents, str) else result

    def pair_similarity(self, queries: Sequence[str], documents: Sequence[str]) -> np.ndarray:
        """Cosine (qᵀWd for SSI) of every query with the document of its own row; 0 where either has no known words.

        Args:
          queries: ``n`` strings.
          documents: ``n`` strings.

        Returns:
          ``[n]`` float32.
        """
        for name, some in (("queries", queries), ("documents", documents)):
            checks.expect(not isinstance(some, str), name, "a list of texts", "one text (similarity takes one)")
        checks.expect(len(queries) == len(documents), "documents", f"{len(queries)} (as queries)", len(documents))
        left, right = (self._parts(list(texts), side, _BATCH)
                       for texts, side in ((queries, "query"), (documents, "document")))  # fmt: skip
        both = parts.inner(left, right)
        if self.bilinear:
            return both.astype(np.float32)
        if self.topical:
            return np.minimum(left[0], right[0]).sum(axis=1)
        squares = parts.inner(left, left), parts.inner(right, right)
        norm = np.sqrt(squares[0]) * np.sqrt(squares[1])
        return np.divide(both, norm, out=np.zeros_like(both), where=norm > 0).clip(-1, 1).astype(np.float32)

    def search(self, queries: Sequence[str], documents: Vectors, *, k: int = 10) -> tuple[np.ndarray, np.ndarray]:
        """The ``k`` nearest documents of every query by cosine (for SSI by qᵀWd), exactly.

        Args:
          queries: ``n`` strings.
          documents: from ``vectors(texts)``, made once for many searches.
          k: how many, at most the number of documents.

        Returns:
          ``(scores, indices)``, ``[n, k]``, the best first; ties go to the lower index, and cosines are in [-1, 1].
        """
        asked = self.vectors(queries, side="query")
        scores, rows = retrieval.top_k(asked, documents, k=k, similarity=self.scorer)
        scores = self._within(scores)
        order = np.lexsort((rows, -scores), axis=-1)  # what differed by rounding above 1 is a tie now
        return np.take_along_axis(scores, order, axis=-1), np.take_along_axis(rows, order, axis=-1)

    def _within(self, scores: np.ndarray) -> np.ndarray:
        """Scores as they are, but cosines in [-1, 1], out of which rounding may bring them."""
        return scores if self.bilinear or self.topical else scores.clip(-1, 1)

    def save(self, path: str | os.PathLike) -> Path:
        """Writes the model as a folder: safetensors, vocabulary, configuration, and a README for people.

        Args:
          path: the folder; an older model there is replaced, anything else is left alone.

        Returns:
          The folder.

        Raises:
          ValueError: if something else is there, and for what `load` would refuse: weights that are not finite or of
            other types, terms that are there twice, a record of the training that JSON cannot hold.
          OSError: if it cannot be written; what was there is as it was.
        """
        return folders.save(path, **self.contents())

    def contents(self) -> dict[str, Any]:
        """What a folder of the model holds.

        Returns:
          Arguments of `folders.save`.

        Raises:
          ValueError: for what no folder of a model has, such as weights that are not finite.
        """
        df = _whole(self.vocabulary.df, "model.vocabulary.df")
        checks.expect(df.shape == (len(self.vocabulary),), "model.vocabulary.df",
                      f"one number for each of {len(self.vocabulary)} terms", f"shape {df.shape}")
        num_docs = int(_whole(self.vocabulary.num_docs, "model.vocabulary.num_docs"))
        tensors = parts.to_tensors(self.params) | {"df": df}
        try:
            json.dumps(self.training)
        except TypeError as error:
            raise ValueError("model.training: expected numbers, texts, lists and dictionaries alone, as JSON has them, "
                             f"got another value ({error})") from None  # fmt: skip
        words, layout = self.vocabulary.terms, 1 + self.bilinear
        config = {
            "method": self.method, "dim": self.dim, "weighting": self.weighting, "activation": self.activation,
            "languages": list(self.languages), "num_docs": num_docs, "training": self.training,
        } | ({"strongest": self.strongest and int(self.strongest)} if self.bilinear else {})  # fmt: skip
        if self.terms_weight is not None:
            config["terms_weight"] = float(self.terms_weight)  # JSON holds no scalars of NumPy
        if self.agreement_power is not None:
            config["agreement_power"] = float(self.agreement_power)
        if self.feedback is not None:
            config["feedback"] = int(self.feedback)
        if self.subwords is not None:
            layout, words, config["subwords"] = 3, words + self.subwords.grams, float(self.subwords.share)
            tensors["gram_idf"] = np.asarray(self.subwords.idf)
        if self.agreement is not None:
            tensors["agreement"] = np.asarray(self.agreement, np.float32)
        if any(array.dtype == np.int8 for array in tensors.values()):
            layout = 4
        # No file of ours has bfloat16, or the bytes of other machines.
        tensors = {name: array.astype(np.float32 if array.dtype.name == "bfloat16" else array.dtype.newbyteorder("="),
                                      copy=False) for name, array in tensors.items()}  # fmt: skip
        with checks.within("model"):
            parts.check_folder(tensors, config, words)
        return {"tensors": tensors, "config": config, "vocabulary": words, "card": self.card(), "layout": layout}

    @classmethod
    def load(cls, path: str | os.PathLike) -> Model:
        """Reads a folder that `save` wrote.

        Args:
          path: the folder.

        Returns:
          The model; its vectors are the same, bit for bit.

        Raises:
          FileNotFoundError: if the folder or a file of it is missing.
          ValueError: if a file was altered, or was written by another program or a newer version; and if an array is
            not of the type and shape of a model's, or has NaN in it, whoever wrote it.
        """
        contents = folders.load(path)
        with checks.within(str(path)):
            return cls.of_contents(*contents)

    @classmethod
    def of_contents(cls, tensors: Mapping[str, np.ndarray], config: Mapping[str, Any], words: Sequence[str]) -> Model:
        """The model of a folder that was read.

        Args:
          tensors: as `folders.load` returns them.
          config: likewise.
          words: likewise.

        Returns:
          The model.

        Raises:
          ValueError: as `load`, naming the part.
        """
        parts.check_folder(tensors, config, words)
        number, share = len(tensors["df"]), config.get("subwords")
        vocabulary = text.Vocabulary(tuple(words[:number]), tensors["df"], config["num_docs"])
        grams = None if share is None else Subwords(tuple(words[number:]), tensors["gram_idf"], share)
        return cls(vocabulary, parts.from_tensors(tensors), config["weighting"], config["activation"],
                   tuple(config["languages"]), config["method"], config["training"], config.get("strongest"), grams,
                   tensors.get("agreement"), config.get("terms_weight"), config.get("agreement_power"),
                   config.get("feedback"))

    def card(self) -> str:
        """The model card: what it is, what it was trained on, how to use it.

        Returns:
          Markdown.
        """
        return parts.card(self)


def _whole(values, argument: str) -> np.ndarray:
    """Numbers of documents as int64, of whatever type they are."""
    numbers = np.asarray(values)
    checks.expect(numbers.dtype.kind in "biuf", argument, "whole numbers", numbers.dtype)
    with np.errstate(invalid="ignore"):  # of NaN and infinity
        whole = numbers.astype(np.int64)
    wrong = numbers[numbers != whole]
    checks.expect(not wrong.size, argument, "whole numbers", wrong[:1])
    return whole


def _expect_power(power: float) -> None:
    checks.expect(math.isfinite(power) and power >= 0, "power", "a number of at least 0", power)


def _whole_or_cut(vocabulary: text.Vocabulary, split: Callable[[str], list[str]], words: str) -> list[str]:
    """A word of several parts is one word where a thesaurus has it; every other text is cut."""
    whole = thesauri.normal(words)
    return [whole] if whole in vocabulary.index else split(words)
