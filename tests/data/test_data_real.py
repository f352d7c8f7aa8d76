"""Loaders on the real corpora; they run where the environment variable JAXSIM_DATA names the folder that holds them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from jaxsim import data, text
from jaxsim.data import doc_pairs, europarl, mdn, splits, wikispeedia


def _folder(name):
    root = os.environ.get("JAXSIM_DATA")
    if not root:
        pytest.skip("JAXSIM_DATA names no data folder: the real corpora are not read")
    if not (Path(root) / name).is_dir():
        pytest.skip(f"the corpus {name} is not in the folder that JAXSIM_DATA names")
    return Path(root)


def _untranslated_mrr(left, right, weigh=text.tf_idf):
    """Mean reciprocal rank of the mate by cosine, the right side as query, idf of the left side."""
    vocabulary = text.Vocabulary.build(left, drop_top=0, max_terms=10**7)
    sides = []
    for tokens in (right, left):
        weights = weigh(text.counts(tokens, vocabulary), vocabulary.df, vocabulary.num_docs)
        norms = np.sqrt(np.asarray(weights.multiply(weights).sum(1)).ravel())
        sides.append(sp.diags_array(1 / np.where(norms > 0, norms, 1)) @ weights)
    scores = (sides[0] @ sides[1].T).toarray()
    return float((1 / (scores >= np.diag(scores)[:, None]).sum(1)).mean())


@pytest.mark.parametrize(("source", "pairs", "figure"), [("xquad_wikipedia", 240, 0.431), ("tico19", 30, 0.775)])
def test_untranslated_scores_match_the_published_ones(source, pairs, figure):
    loaded = doc_pairs.load("es", sources=[source], root=_folder("doc_pairs"))
    assert len(loaded) == pairs
    assert abs(_untranslated_mrr(*data.tokenize(loaded)) - figure) < 0.01


@pytest.mark.parametrize(("language", "pairs"), [("fr", 1948), ("de", 1440)])
def test_doc_pairs_counts(language, pairs):
    assert doc_pairs.load(language, root=_folder("doc_pairs")).counts["read"] == pairs


def test_mdn_counts_and_twins():
    root = _folder("mdn")
    loaded = mdn.load("es", root=root)
    assert len(loaded) == 2336 and loaded.counts["empty_after_stripping"] == 0
    groups = splits.group_near_duplicates(*data.tokenize(loaded))
    sizes = np.bincount(groups)
    assert 0.05 < (sizes[groups] > 1).mean() < 0.12
    assert len(mdn.links(root=root)) == 90_445


def test_europarl_counts():
    root = _folder("europarl_en_it")
    blocks = europarl.load_blocks(1996, root=root)
    assert blocks.counts["days"] == 17 and blocks.counts["lines"] == 23_181
    assert sum("President" in block.split("\n")[0][:20] for block in blocks.left) > 1400
    assert len(europarl.load_speeches(2000, root=root)) == 2696
    assert len(europarl.load_lines(2000, root=root, max_pairs=10_000)) == 10_000


def test_release_counts():
    loaded = europarl.load_release(_folder("europarl_en_fr_tagged") / "europarl_en_fr_tagged", "en", "fr")
    assert len(loaded) + loaded.counts["too_short"] == 505
    assert loaded.counts["on_one_side"] == loaded.counts["repeated_numbers"] == 0
    assert loaded.left[1].startswith("Madam President, on a point of order.")
    assert loaded.right[1].startswith("Madame la Présidente")


def test_wikispeedia_counts():
    root = _folder("wikispeedia")
    articles = wikispeedia.load(root=root)
    assert articles.counts == {"articles": 4598, "without_text": 6, "links_read": 119_882, "links_without_text": 3,
                               "self_links": 110, "links_twice": 0, "links": 119_769}
    assert not any("#copyright" in body or "Wikipedia Selection. Related" in body for body in articles.texts)
    aachen = articles.texts[articles.ids.index("Aachen")].split()
    assert aachen[:2] == ["Aachen", "Coordinates:"]
    clicks = wikispeedia.clicks(articles, root=root)
    assert clicks.shape == (49_632, 3) and clicks[:, 2].sum() == 253_898
    known = {(a, b) for a, b in articles.links.tolist()}
    assert all((a, b) in known for a, b, _ in clicks.tolist())
