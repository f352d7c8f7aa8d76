"""What is shown in short, since a notebook shows what a cell ends in."""

from __future__ import annotations

import dataclasses
import inspect
import pkgutil
from importlib import import_module

import jax
import numpy as np
import pytest
import scipy.sparse

import jaxsim.data.corpora
from jaxsim import checks, sparse, text
from jaxsim.data import docstrings
from jaxsim.model import index
from jaxsim.train import Settings, train
from jaxsim.train.judged import Judged


def test_a_corpus_a_model_and_its_index_are_shown_in_a_line():
    pairs = docstrings.load().take(range(120))
    model = train(pairs, Settings(method="opca", dim=5, subwords=0.5), dev=0.2)
    documents = {str(row): document for row, document in enumerate(pairs.right)}
    judged = Judged({"q": "a list"}, documents, {"q": {"1": 1}})
    for value in (pairs, model, model.vocabulary, model.subwords, index.encode(model, pairs.right), judged):
        assert len(repr(value)) < 500 and repr(value).startswith(type(value).__name__)
    assert "ids=<120 items>" in repr(pairs) and "'a list'" in repr(judged) and "<120 items>" in repr(judged)


def test_every_corpus_is_shown_in_short():
    modules = [import_module(f"jaxsim.data.corpora.{found.name}") for found in pkgutil.iter_modules(
        jaxsim.data.corpora.__path__)]  # fmt: skip
    held = {found for module in modules for found in vars(module).values()
            if inspect.isclass(found) and dataclasses.is_dataclass(found)
            and "sha256" in {field.name for field in dataclasses.fields(found)}}  # fmt: skip
    assert len(held) > 9
    for found in held:
        assert found.__repr__ is checks.brief or found.__name__ == "Thesaurus", found


@pytest.mark.parametrize(("value", "shown"), [
    ("x" * 61, "'" + "x" * 59 + "…'"), ("x" * 60, "'" + "x" * 60 + "'"), ([], "[]"), ((), "()"), ({}, "{}"),
    ((1, None, "a"), "(1, None, 'a')"), (("y" * 61,), "<1 item>"), ({"a": {}}, "<1 item>"), ([1] * 5, "<5 items>"),
    (np.zeros((2, 0), np.int8), "int8[2, 0]"), (np.array(3.0), "float64[]"),
])
def test_fields_are_shown_as_they_are_where_they_are_short(value, shown):
    made = dataclasses.make_dataclass("Made", ["field"])(value)
    assert checks.brief(made) == f"Made(field={shown})"


def test_traced_terms_are_shown():
    seen = []
    terms = sparse.from_scipy(scipy.sparse.csr_matrix(np.eye(3, dtype=np.float32)))
    jax.jit(lambda terms: seen.append(repr(terms)) or terms.values)(terms)
    assert seen[0] == repr(terms) and "values=float32[3]" in seen[0] and "num_terms=3" in seen[0]
    assert repr(text.Vocabulary(("a",), np.ones(1, int), 1)) == "Vocabulary(terms=('a',), df=int64[1], num_docs=1)"
