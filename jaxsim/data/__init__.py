"""Corpora: one loader a corpus, of pairs, labelled or linked documents, with counts and checksums; splits by group.

Docstrings of installed packages need no download. The other corpora are looked for in the folder that the environment
variable ``JAXSIM_DATA`` (or the argument ``root=``) names; `catalogue` says what they are and where they come from, and
`fetching` downloads what has an address.
"""

from __future__ import annotations

from jaxsim.data import (
    cacm,
    catalogue,
    doc_pairs,
    docstrings,
    europarl,
    fetching,
    httpd_html,
    jsonl,
    judged,
    links,
    mdn,
    mdn_links,
    nfcorpus,
    pairs,
    reuters21578,
    splits,
    wikispeedia,
    word_frequency,
)
from jaxsim.data.files import MissingCorpus, root
from jaxsim.data.pairs import Pairs, concatenate, tokenize

__all__ = [
    "MissingCorpus",
    "Pairs",
    "cacm",
    "catalogue",
    "concatenate",
    "doc_pairs",
    "docstrings",
    "europarl",
    "fetching",
    "httpd_html",
    "jsonl",
    "judged",
    "links",
    "mdn",
    "mdn_links",
    "nfcorpus",
    "pairs",
    "reuters21578",
    "root",
    "splits",
    "tokenize",
    "wikispeedia",
    "word_frequency",
]
