"""`TextProjection`: learned projections of texts as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from jaxsim import checks
from jaxsim.data import pairs
from jaxsim.evaluate import mates
from jaxsim.train.settings import GRADED, LEARNED, SSI, Settings
from jaxsim.train.training import train

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import check_is_fitted
except ImportError as error:
    raise ImportError(
        "jaxsim.train.estimator: expected the package scikit-learn, got none; install it with: pip install scikit-learn"
    ) from error

__all__ = ["TextProjection"]

# SSI makes no dense vectors alone, and y has no grades.
_PROJECTIONS = tuple(method for method in LEARNED if method not in (*SSI, *GRADED))


class TextProjection(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Texts to vectors, learned from pairs of texts that belong together.

    ``X`` are the texts of one side (queries) and ``y`` their mates (documents), in the same order. `score` is the mean
    reciprocal rank of the mates, so that `GridSearchCV` needs no scorer of its own. Near-duplicates on both sides of a
    split flatter it; `data.splits.group_near_duplicates` makes the groups that a ``GroupKFold`` keeps together.

    Args:
      method: ``"s2net"``, ``"s2net-2"``, ``"opca"``, ``"cca"``, ``"cl-lsi"``, ``"jplsa"``, ``"cplsa"``, ``"plsa"``, or
        ``"lsa"``, which can do without ``y``.
      dim: dimension; smaller where the data bears less.
      weighting: ``"log_tf_idf"``, ``"tf_idf"`` or ``"tf"``.
      drop_top: most frequent terms left out.
      max_terms: terms kept at most.
      min_df: documents a term must occur in.
      subwords: share of a word that its character n-grams are, so that unseen words have vectors; none for CL-LSI. .5
        unless given, with fewer than 20,000 pairs and no ``drop_top``.
      distill: share of the bare terms in the scores that the vectors then learn to give; for S2Net, OPCA and LSA.
      noise: of OPCA, also as S2Net's start; the ridge of CCA.
      gamma: scale of S2Net's loss.
      max_iter: iterations of S2Net (or its epochs) and of topics at most; by the number of pairs unless given.
      batch_size: pairs a batch of S2Net; 0 for all at once, by the number of pairs unless given.
      random_state: seed of whatever is random, and of the split off dev pairs; an integer, None or a ``RandomState``.
      dev: share of the pairs that S2Net stops by, or pairs of your own. They are kept from the fit. Or a list of these,
        a set each, with one share at most: S2Net stops by the mean of their scores.
      languages: language codes of ``X`` and ``y``, which choose the word splitters.

    Attributes:
      model_: the `Model`, for search, saving and export.
      n_features_out_: length of a vector.
      n_iter_: steps that S2Net took, or iterations of topics; 1 for the closed forms.

    Example:
      >>> from jaxsim.data import docstrings
      >>> pairs = docstrings.load().take(range(300))
      >>> projection = TextProjection("opca", dim=20).fit(pairs.left, pairs.right)
      >>> projection.transform(["the sum of an array", "the mean"]).shape
      (2, 20)
      >>> projection.score(pairs.left, pairs.right) > 0.2
      True
    """

    def __init__(
        self,
        method: str = Settings.method,
        dim: int = Settings.dim,
        *,
        weighting: str = Settings.weighting,
        drop_top: int = Settings.drop_top,
        max_terms: int = Settings.max_terms,
        min_df: int = Settings.min_df,
        subwords: float | None = Settings.subwords,
        distill: float = Settings.distill,
        noise: float = Settings.noise,
        gamma: float = Settings.gamma,
        max_iter: int | None = None,
        batch_size: int | None = None,
        random_state: Any = 0,
        dev: Any = 0.1,
        languages: tuple[str, str] = ("en", "en"),
    ):
        """Keeps the settings; `fit` looks at them."""
        self.method = method
        self.dim = dim
        self.weighting = weighting
        self.drop_top = drop_top
        self.max_terms = max_terms
        self.min_df = min_df
        self.subwords = subwords
        self.distill = distill
        self.noise = noise
        self.gamma = gamma
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.random_state = random_state
        self.dev = dev
        self.languages = languages

    def fit(self, X: Iterable[str], y: Iterable[str] | None = None) -> TextProjection:  # noqa: N803
        """Learns the projection.

        Args:
          X: ``n`` texts.
          y: their mates, ``n`` texts. Without them LSA takes ``X`` alone; all other methods need them.

        Returns:
          Itself.

        Raises:
          ValueError: for bad settings, no mates, or texts that are not strings.
        """
        checks.expect(self.method in _PROJECTIONS, "method", f"one of {', '.join(_PROJECTIONS)}", self.method)
        left = _texts(X, "X")
        alone = y is None and self.method == "lsa"
        checks.expect(y is not None or alone, "y", f"the mates of X ({self.method} learns from pairs)", "None")
        right = left if alone else _texts(y, "y")
        as_many = f"{checks.counted(len(left), 'text')}, one for each of X"
        checks.expect(len(right) == len(left), "y", as_many, len(right))
        checks.whole(self.min_df, "min_df", 0)  # before it is doubled
        settings = Settings(
            method=self.method, dim=self.dim, weighting=self.weighting, drop_top=self.drop_top,
            max_terms=self.max_terms, noise=self.noise, gamma=self.gamma, max_iter=self.max_iter,
            subwords=self.subwords, distill=self.distill,
            # As its own mate a text counts twice.
            min_df=2 * self.min_df if alone else self.min_df, batch_size=self.batch_size, seed=self._seed(),
        )  # fmt: skip
        given = pairs.make("texts", map(str, range(len(left))), left, right, languages=self.languages)
        self.model_ = train(given, settings, dev=0.0 if alone else self.dev, cross_fit=False)
        self.n_features_out_ = self.model_.dim
        facts = self.model_.training
        self.n_iter_ = facts.get("iterations", facts.get("fit", {}).get("steps", 1))
        return self

    def transform(self, X: Iterable[str]) -> np.ndarray:  # noqa: N803
        """Vectors of texts, as queries where the two sides differ.

        Args:
          X: ``n`` texts.

        Returns:
          ``[n, n_features_out_]`` float32; a text without known words is zero.

        Raises:
          NotFittedError: before `fit`.
          ValueError: for texts that are not strings.
        """
        check_is_fitted(self, "model_")
        return self.model_.encode_query(_texts(X, "X"))

    def transform_mates(self, y: Iterable[str]) -> np.ndarray:
        """Vectors of texts of the other side; those of `transform` where the sides do not differ.

        Args:
          y: ``n`` texts.

        Returns:
          ``[n, n_features_out_]`` float32.

        Raises:
          NotFittedError: before `fit`.
          ValueError: for texts that are not strings.
        """
        check_is_fitted(self, "model_")
        return self.model_.encode_document(_texts(y, "y"))

    def score(self, X: Iterable[str], y: Iterable[str] | None = None) -> float:  # noqa: N803
        """Mean reciprocal rank of mates, both directions averaged; ties are errors.

        Vectors are compared as the model's search compares them: by the cosine, topics by the share that both have.

        Args:
          X: ``n`` texts.
          y: their mates.

        Returns:
          A number in (0, 1].

        Raises:
          NotFittedError: before `fit`.
          ValueError: without mates, and for texts that are not strings.
        """
        check_is_fitted(self, "model_")
        checks.expect(y is not None, "y", "the mates of X", "None")
        left, right = _texts(X, "X"), _texts(y, "y")
        as_many = f"{checks.counted(len(left), 'text')}, one for each of X"
        checks.expect(len(right) == len(left), "y", as_many, len(right))
        checks.expect(len(left) > 0, "X", "at least one text", "none")
        sides = self.model_.vectors(left, side="query"), self.model_.vectors(right, side="document")
        return mates.scores(*sides, similarity=self.model_.scorer)["mrr"]

    @property
    def _n_features_out(self) -> int:
        """What the names of `get_feature_names_out` are counted by."""
        return self.n_features_out_

    def _seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def __sklearn_tags__(self):
        """Says that texts go in, and that their mates are needed."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = self.method != "lsa"
        tags.transformer_tags.preserves_dtype = []
        return tags


def _texts(given: Iterable[str], argument: str) -> list[str]:
    """A list of strings from a list, an array or a column of a table."""
    fits = not isinstance(given, str) and getattr(given, "ndim", 1) == 1 and hasattr(given, "__iter__")
    checks.expect(fits, argument, "a list of texts", checks.a_kind(given))
    texts = list(given)
    wrong = next((one for one in texts if not isinstance(one, str)), "")
    checks.expect(isinstance(wrong, str), argument, "texts", checks.a_kind(wrong))
    return texts
