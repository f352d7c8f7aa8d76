"""Models for mteb, the benchmark of text embeddings: its `EncoderProtocol` and its `SearchProtocol`.

For data of your own, write a subclass of one of mteb's abstract tasks; the test of this module has one whose texts are
set in memory. mteb is not needed to train or to search: ``pip install 'jaxsim-text[mteb]'``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from jaxsim import checks
from jaxsim.model import folders, index, parts, ranker
from jaxsim.model.model import Model

ORGANISATION = "jaxsim"
"""Of the names that results are kept under, as ``jaxsim/NAME``."""


class Encoder:
    """A model as mteb's `EncoderProtocol`: for classification, clustering, similarity of texts and the like.

    In tasks of retrieval its vectors alone are compared, by their cosine. `Search` puts the words beside them.

    Attributes:
      model: the model.
      name: what results are kept under.
      revision: of the model: the digest of its folder where it was read from one.

    Example:
      >>> from jaxsim import text
      >>> from jaxsim.methods.projections import Projection
      >>> words = text.Vocabulary(("cat", "dog"), np.array([1, 1]), 2)
      >>> encoder = Encoder(Model(words, Projection(np.eye(2, dtype=np.float32))), name="pets")
      >>> encoder.encode([{"text": ["cats and a dog", "cat"]}, {"text": ["dog"]}]).tolist()
      [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
    """

    def __init__(self, model: Model | str | os.PathLike, revision: str | None = None, *, name: str | None = None,
                 device: str | None = None, **_: Any):
        """Takes a model, or reads its folder.

        Args:
          model: the model, or the folder that `jaxsim train` wrote.
          revision: of a model that is not read from a folder.
          name: of the model; that of its folder unless given, or its method.
          device: for mteb, which passes it on; JAX chooses its own.

        Raises:
          ValueError: for a model that has no vectors, such as bare term weights or SSI (`Search` takes these).
        """
        del device
        folder = None if isinstance(model, Model) else os.path.basename(os.path.abspath(model))
        self.revision = revision or (None if folder is None else folders.digest(model))
        self.model = model if folder is None else Model.load(model)
        self.name = name or folder or self.model.method
        self._check()

    def _check(self) -> None:
        self.model.expect_projection()
        checks.expect(not self.model.bilinear, "model", "one whose vectors are compared by their cosine (or Search)",
                      f"{parts.formula(self.model.params)} ({self.model.method})")

    def encode(self, inputs: Iterable[Mapping[str, Any]], *, prompt_type: Any = None, **_: Any) -> np.ndarray:
        """Vectors of texts, of length one.

        Args:
          inputs: batches; the texts of each are under ``"text"``.
          prompt_type: queries where its value is ``"query"``, else documents. A model with one side takes both alike.

        Returns:
          ``[n, dim]`` float32; a text without known words is zero.
        """
        texts = [text for batch in inputs for text in batch["text"]]
        asked = getattr(prompt_type, "value", prompt_type) == "query"
        one_side = self.model.encode_query if asked else self.model.encode_document
        return one_side(texts, normalize=True)

    def similarity(self, embeddings1, embeddings2) -> np.ndarray:
        """Cosines of all with all.

        Args:
          embeddings1: ``[n, dim]`` of `encode`.
          embeddings2: ``[m, dim]``.

        Returns:
          ``[n, m]`` float32.
        """
        return _unit(embeddings1) @ _unit(embeddings2).T

    def similarity_pairwise(self, embeddings1, embeddings2) -> np.ndarray:
        """Cosines row by row.

        Args:
          embeddings1: ``[n, dim]`` of `encode`.
          embeddings2: ``[n, dim]``.

        Returns:
          ``[n]`` float32.
        """
        return (_unit(embeddings1) * _unit(embeddings2)).sum(axis=-1)

    @property
    def mteb_model_meta(self):
        """What mteb writes beside its results.

        Raises:
          ImportError: without mteb.
        """
        from mteb.models.model_meta import ModelMeta

        facts = {"name": f"{ORGANISATION}/{self.name}", "revision": self.revision or "in-memory", "framework": ["JAX"],
                 "embed_dim": self.model.dim, "similarity_fn_name": "cosine", "use_instructions": False,
                 "open_weights": False, "n_parameters": sum(int(side.weights.size) for side in
                                                           parts.sides(self.model.params))}  # fmt: skip
        return ModelMeta.create_empty(overwrites=facts)


class Search(Encoder):
    """A model as mteb's `SearchProtocol` too: tasks of retrieval are searched as `jaxsim search` does.

    Attributes:
      options: of `ranker.rank`: ``terms``, ``words``, ``power``, ``feedback``.

    Example:
      >>> from jaxsim import text
      >>> search = Search(Model(text.Vocabulary(("cat", "dog"), np.array([1, 1]), 2), None), terms=1.0)
      >>> search.index([{"id": "a", "title": "Pets", "text": "a dog"}, {"id": "b", "title": "", "text": "a cat"}])
      >>> list(search.search([{"id": "q", "text": "cats"}], top_k=1)["q"])
      ['b']
    """

    def __init__(self, model: Model | str | os.PathLike, revision: str | None = None, *, name: str | None = None,
                 device: str | None = None, **options: Any):
        """As `Encoder`, with options; any model is accepted.

        Args:
          model: as for `Encoder`.
          revision: as for `Encoder`.
          name: as for `Encoder`.
          device: as for `Encoder`.
          **options: ``terms``, ``words``, ``power`` and ``feedback`` of `ranker.rank`.
        """
        known = ("terms", "words", "power", "feedback")
        unknown = sorted(set(options) - set(known))
        checks.expect(not unknown, "options", f"some of {', '.join(known)}", ", ".join(unknown))
        super().__init__(model, revision, name=name, device=device)
        self.options, self._documents, self._ids = options, None, []

    def _check(self) -> None:
        """Takes any model."""

    def index(self, corpus: Iterable[Mapping[str, Any]], **_: Any) -> None:
        """Encodes documents.

        Args:
          corpus: documents with ``id`` and ``text``, and perhaps a ``title`` that comes before the text.
        """
        rows = list(corpus)
        self._ids = [str(row["id"]) for row in rows]
        texts = [f"{row.get('title') or ''} {row['text']}".strip() for row in rows]
        parts = ranker.needed(self.model, self.options.get("terms"), self.options.get("words", "bm25"))
        self._documents = index.encode(self.model, texts, **parts)

    def search(self, queries: Iterable[Mapping[str, Any]], *, top_k: int,
               top_ranked: Mapping[str, Iterable[str]] | None = None, **_: Any) -> dict[str, dict[str, float]]:
        """The best documents of every query.

        Args:
          queries: with ``id`` and ``text``.
          top_k: documents a query.
          top_ranked: query -> the documents that are to be ordered, where only some are.

        Returns:
          Query -> document -> score, also of documents that score 0; none for a query where all do, as no word of it
          is known.

        Raises:
          ValueError: before `index`, or for a query that is no text.
        """
        checks.expect(self._documents is not None, "search", "documents, by index", "none")
        rows = list(queries)
        strange = [row["id"] for row in rows if not isinstance(row["text"], str)]
        checks.expect(not strange, "queries", "texts", f"another kind ({strange[:1]})")
        exclude = None
        if top_ranked is not None:
            wanted = [set(map(str, top_ranked.get(row["id"], ()))) for row in rows]
            exclude = [[place for place, name in enumerate(self._ids) if name not in some] for some in wanted]
        scores, result = ranker.rank(self.model, self._documents, [row["text"] for row in rows],
                                     k=min(top_k, len(self._ids)), exclude=exclude, **self.options)  # fmt: skip
        kept = np.isfinite(scores)  # the others are not to be ordered
        return {str(row["id"]): {self._ids[place]: float(score) for score, place in zip(one[some], places[some],
                                                                                       strict=True) if one[some].any()}
                for row, one, places, some in zip(rows, scores, result, kept, strict=True)}  # fmt: skip


def _unit(vectors) -> np.ndarray:
    """Rows of length one; zero rows stay."""
    return parts.unit_dense(np.atleast_2d(np.asarray(vectors, np.float32)))
