"""`TextProjection` among scikit-learn's own tools, and scikit-learn's checks of estimators.

Those checks feed tables of numbers. `OfNumbers` writes each row as a text, so that all but a few of them apply;
`SKIPPED` names the few and says why.
"""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest

sklearn = pytest.importorskip("sklearn")

from sklearn.base import clone  # noqa: E402
from sklearn.exceptions import NotFittedError, SkipTestWarning  # noqa: E402
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import Normalizer  # noqa: E402
from sklearn.utils import estimator_checks  # noqa: E402
from sklearn.utils.validation import check_is_fitted, validate_data  # noqa: E402

from jaxsim.data import docstrings, splits  # noqa: E402  # noqa: E402
from jaxsim.data.pairs import make, tokenize  # noqa: E402  # noqa: E402
from jaxsim.train import Settings, TextProjection, train  # noqa: E402


@pytest.fixture(scope="module")
def pairs():
    return docstrings.load().take(range(200))


@pytest.fixture(scope="module")
def fitted(pairs):
    return TextProjection("opca", 12, max_terms=400).fit(pairs.left, pairs.right)


def test_it_is_the_model_that_train_makes(pairs, fitted):
    same = make("texts", map(str, range(200)), pairs.left, pairs.right, languages=("en", "en"))  # ids decide the split
    model = train(same, Settings(method="opca", dim=12, max_terms=400))
    result = fitted.transform(pairs.left)
    assert result.dtype == np.float32 and result.shape == (200, 12) and fitted.n_features_out_ == 12
    np.testing.assert_array_equal(result, model.encode(pairs.left))
    assert fitted.model_.training["dev"] == model.training["dev"]
    assert fitted.get_feature_names_out().tolist() == [f"textprojection{i}" for i in range(12)]


def test_several_held_out_sets_are_a_list(pairs):
    sets = [0.2, make("own", "123", pairs.left[:3], pairs.right[:3], languages=("en", "en"))]
    projection = clone(TextProjection("opca", 12, max_terms=400, subwords=0.0, dev=sets))
    result = projection.fit(pairs.left, pairs.right).model_.training["dev_sets"]
    assert [(one["name"], one["pairs"] > 0) for one in result] == [("held out", True), ("own", True)]


def test_the_settings_reach_the_training():
    given = {"dim": 7, "weighting": "tf_idf", "drop_top": 3, "max_terms": 99, "min_df": 4, "noise": 1e-3, "gamma": 5.0,
             "max_iter": 2, "batch_size": 16, "random_state": 11, "dev": 0.2}  # fmt: skip
    pairs = docstrings.load().take(range(160))
    model = TextProjection("s2net", **given).fit(pairs.left, pairs.right).model_
    settings = model.training["settings"]
    assert settings["seed"] == given.pop("random_state") and given.pop("dev") == 0.2
    assert given == {name: settings[name] for name in given} and settings["method"] == "s2net"
    assert len(model.vocabulary) == 99 and 20 <= model.training["pairs"]["dev"] <= 44


@pytest.mark.parametrize("method", ["s2net", "s2net-2", "cca", "cl-lsi", "lsa"])
def test_every_method_is_better_than_chance(pairs, method):
    projection = TextProjection(method, 12, max_iter=3, max_terms=4000 if method == "lsa" else 400)
    assert projection.fit_transform(pairs.left, pairs.right).shape == (200, 12)
    assert 1 >= projection.score(pairs.left, pairs.right) > 0.15  # chance is .03
    assert projection.n_iter_ >= 1


@pytest.mark.parametrize("method", ["jplsa", "plsa"])
def test_topics_are_compared_by_what_they_share_and_counted_in_iterations(pairs, method):
    projection = TextProjection(method, 12, max_iter=7, max_terms=400, dev=0.0).fit(pairs.left, pairs.right)
    left, right = projection.transform(pairs.left), projection.transform_mates(pairs.right)
    shared = 1 - np.abs(left[:, None].astype(float) - right[None]).sum(axis=2) / 2
    ranks = [np.sum(table >= np.diagonal(table)[:, None] - 1e-6, axis=1) for table in (shared, shared.T)]
    assert projection.score(pairs.left, pairs.right) == pytest.approx(np.mean([(1 / rank).mean() for rank in ranks]),
                                                                      abs=0.01)
    assert projection.n_iter_ == 7 and projection.model_.training["fit"]["steps"] == 1
    again = TextProjection(method, 12, max_iter=21, max_terms=400, dev=0.0).fit(pairs.left, pairs.right)
    assert 15 <= again.n_iter_ <= 21 and again.model_.training["fit"]["steps"] < again.n_iter_


def test_two_sides_are_encoded_by_their_own_projections(pairs):
    projection = TextProjection("cca", 12, max_terms=400).fit(pairs.left, pairs.right)
    assert isinstance(projection.model_.params, tuple)
    np.testing.assert_array_equal(projection.transform(pairs.left), projection.model_.encode_query(pairs.left))
    np.testing.assert_array_equal(
        projection.transform_mates(pairs.right), projection.model_.encode_document(pairs.right)
    )
    assert not np.allclose(projection.transform(pairs.left), projection.transform_mates(pairs.left))


def test_lsa_does_without_mates(pairs):
    alone = TextProjection("lsa", 12, min_df=3).fit(pairs.right)
    assert alone.model_.vocabulary.df.min() >= 6  # every text counts twice, as its own mate
    assert alone.transform(pairs.right).shape == (200, 12)
    with pytest.raises(ValueError, match="min_df: expected a whole number of at least 0, got 1.5"):
        TextProjection("lsa", min_df=1.5).fit(pairs.right)


def test_pipelines_clones_and_pickles(pairs, fitted):
    pipeline = make_pipeline(clone(fitted), Normalizer()).fit(pairs.left, pairs.right)
    result = pipeline.transform([*pairs.left, ""])
    np.testing.assert_allclose(np.linalg.norm(result, axis=1), [1.0] * 200 + [0.0], rtol=1e-5)
    np.testing.assert_allclose(result[:200], fitted.model_.encode(pairs.left, normalize=True), atol=1e-6)
    assert not hasattr(clone(fitted), "model_") and clone(fitted).get_params() == fitted.get_params()
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(pairs.right), fitted.transform(pairs.right))
    assert again.score(pairs.left, pairs.right) == fitted.score(pairs.left, pairs.right)


@pytest.mark.programs
@pytest.mark.programs
def test_a_grid_search_by_the_rank_of_mates(pairs):
    left, right = list(pairs.left[:120]), np.array(pairs.right[:120], object)
    search = GridSearchCV(TextProjection("opca", max_terms=200, dev=0.0), {"dim": [1, 15]}, cv=2, error_score="raise")
    assert search.fit(left, right).best_params_ == {"dim": 15} and search.transform(["an array"]).shape == (1, 15)
    pipeline = make_pipeline(search.best_estimator_, Normalizer())
    groups = splits.group_near_duplicates(*tokenize(pairs.take(range(120))))
    scores = cross_val_score(pipeline, left, right, groups=groups, cv=GroupKFold(2), error_score="raise",
                             scoring=lambda fitted, X, y: fitted[0].score(X, y))  # fmt: skip
    assert (scores > 0.05).all()


def test_random_state_is_what_scikit_learn_takes(pairs):
    seeds = [TextProjection(random_state=given)._seed() for given in (7, np.int64(7), np.random.RandomState(0), None)]
    assert seeds[:2] == [7, 7] and seeds[2] == np.random.RandomState(0).randint(2**31 - 1)


@pytest.mark.parametrize(
    ("settings", "left", "right", "message"),
    [
        ({"method": "tfidf"}, ["a b"], ["a b"], "method: expected one of s2net, s2net-2, opca, .*, got tfidf"),
        ({"method": "ssi"}, ["a b"], ["a b"], "method: expected one of s2net, s2net-2, opca, cca, .*, got ssi"),
        ({"method": "s2net-mse"}, ["a b"], ["a b"], "method: expected one of s2net, s2net-2, .*, got s2net-mse"),
        ({}, ["a b"], None, r"y: expected the mates of X \(s2net learns from pairs\), got None"),
        ({}, ["a b", "c"], ["a b"], "y: expected 2 texts, one for each of X, got 1"),
        ({}, "a b", ["a b"], "X: expected a list of texts, got a str"),
        ({}, np.array([["a"], ["b"]]), ["a", "b"], "X: expected a list of texts, got a ndarray"),
        ({}, ["a", None], ["a", "b"], "X: expected texts, got None"),
        ({}, ["a", "b"], ["a", 3.0], "y: expected texts, got a float"),
        ({"weighting": "bm25"}, ["a b"] * 9, ["a b"] * 9, "weighting: expected one of"),
    ],
)
def test_refusals(settings, left, right, message):
    with pytest.raises(ValueError, match=message):
        TextProjection(**settings).fit(left, right)


def test_nothing_works_before_fit_and_scores_need_mates(fitted):
    for call in ("transform", "transform_mates", "score"):
        with pytest.raises(NotFittedError):
            getattr(TextProjection(), call)(["a"])
    with pytest.raises(ValueError, match="y: expected the mates of X, got None"):
        fitted.score(["a"])
    with pytest.raises(ValueError, match="X: expected at least one text, got none"):
        fitted.score([], [])


def test_a_missing_scikit_learn_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "jaxsim.train.estimator")
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    with pytest.raises(ImportError, match="pip install scikit-learn"):
        import jaxsim.train.estimator  # noqa: F401


class OfNumbers(TextProjection):
    """Rows of numbers, written as texts and taken as their own mates."""

    def __sklearn_tags__(self):  # noqa: D105
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.string, tags.target_tags.required = True, False, False
        return tags

    def _written(self, X, reset):  # noqa: N803
        numbers = validate_data(self, X, reset=reset, dtype=np.float64)
        return [" ".join(f"c{j}_{'m' if x < 0 else 'p'}{abs(round(10 * x))}" for j, x in enumerate(row))
                for row in numbers]  # fmt: skip

    def fit(self, X, y=None):  # noqa: N803
        texts = self._written(X, True)
        return super().fit(texts, texts)

    def transform(self, X):  # noqa: N803
        check_is_fitted(self, "model_")
        return super().transform(self._written(X, False))

    def score(self, X, y=None):  # noqa: N803
        texts = self._written(X, False)
        return super().score(texts, texts)


ON_TEXTS = (
    "check_estimator_cloneable", "check_estimator_tags_renamed", "check_valid_tag_types", "check_estimator_repr",
    "check_no_attributes_set_in_init", "check_do_not_raise_errors_in_init_or_set_params", "check_mixin_order",
    "check_parameters_default_constructible", "check_get_params_invariance", "check_set_params",
)  # fmt: skip
SKIPPED = {
    "check_fit2d_1sample": "one pair is refused, in this library's words and not with '1 sample'",
    "check_array_api_input": "texts are no arrays of another library",
    "check_requires_y_none": "missing mates are refused in this library's words",
}


CHECKS = [check for check in estimator_checks._yield_all_checks(OfNumbers(), True)
          if estimator_checks._check_name(check) not in ON_TEXTS]  # fmt: skip
CHECKS += [estimator_checks.check_set_output_transform, estimator_checks.check_transformer_get_feature_names_out]


@pytest.mark.parametrize("name", ON_TEXTS)
def test_scikit_learns_checks_of_parameters_and_tags(name):
    getattr(estimator_checks, name)("TextProjection", TextProjection("opca", 5))


@pytest.mark.slow
@pytest.mark.programs
@pytest.mark.parametrize("check", CHECKS, ids=estimator_checks._check_name)
def test_scikit_learns_checks_of_data(check):
    name = estimator_checks._check_name(check)
    if name in SKIPPED:
        pytest.skip(f"{name}: {SKIPPED[name]}")
    check("OfNumbers", OfNumbers("opca", 2, dev=0.0))


def test_the_tags_say_that_texts_go_in():
    tags = TextProjection().__sklearn_tags__()
    assert tags.input_tags.string and not tags.input_tags.two_d_array and tags.target_tags.required
    assert not TextProjection("lsa").__sklearn_tags__().target_tags.required
    with pytest.warns(SkipTestWarning, match="Can't test estimator TextProjection"):
        assert not list(estimator_checks._yield_all_checks(TextProjection(), True))
