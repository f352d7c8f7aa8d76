"""The tables of docs/data.md, made from the catalogue: `python docs/corpora.py` writes them, `--check` compares."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from urllib.parse import urlsplit

from jaxsim.data import catalogue, fetching

PAGE = Path(__file__).parent / "data.md"
USED = {
    "docstrings": "mates.platt2010, mates.yih2011, mates.hubs, peers.peers, scale.many_pairs, speed.speed",
    "doc_pairs": "mates.platt2010, mates.yih2011, mates.hubs, peers.peers, completion.completion2012, "
                 "tweak.tweak2009_phrases",
    "mdn": "mates.platt2010, mates.yih2011, mates.hubs, peers.peers, peers.title_search, classes.platt2010_classes, "
           "links.bai2010_links, links.bai2010_cross_language, completion.completion2012, tweak.tweak2009_phrases",
    "europarl_en_it": "mates.platt2010, mates.yih2011, scale.many_pairs, completion.completion2012",
    "nfcorpus": "peers.peers, peers.title_search, peers.hard_negatives, links.bai2010_queries, ads.yih2011_ads, "
                "tweak.tweak2009_phrases, tweak.verbose_queries",
    "reuters21578": "reuters.yih2010_reuters, completion.completion2012, tweak.tweak2009_phrases",
    "word_frequency": "reuters.yih2010_reuters, tweak.tweak2009_html, tweak.tweak2009_search, tweak.verbose_queries",
    "us_patent_phrases": "tweak.tweak2009_phrases, ads.yih2011_ads",
    "crowdflower_search": "tweak.tweak2009_search, ads.yih2011_ads, tweak.tweak2009_phrases",
    "httpd_html": "tweak.tweak2009_html, tweak.tweak2009_phrases",
    "wikispeedia": "peers.title_search, links.bai2010_links, links.bai2010_queries, links.bai2010_clicks, "
                   "tweak.tweak2009_phrases, pilsa.pilsa2012, completion.completion2012",
    "classic_ir": "peers.title_search, links.bai2010_links, tweak.tweak2009_phrases, tweak.verbose_queries",
    "gre_antonyms": "pilsa.pilsa2012",
    "word_similarity": "pilsa.pilsa2012",
    "thesauri": "pilsa.pilsa2012",
    "wordnet": "pilsa.pilsa2012, reuters.yih2010_reuters",
    "sentence_completion": "completion.completion2012",
    "sat_questions": "completion.completion2012",
    "dictionary_en_es": "mates.platt2010, links.bai2010_cross_language",
    "europarl_release": "mates.platt2010, preset `paper`, which no committed table is of",
}  # fmt: skip
"""Corpus -> the experiments whose tables read it."""


def sizes() -> str:
    """What there is: sizes in MB, and from whom."""
    rows = ["| corpus | what | keeps, MB | downloads, MB | from | used by |", "|---|---|---|---|---|---|"]
    for name, corpus in catalogue.CORPORA.items():
        hosts = dict.fromkeys(urlsplit(url).hostname for url in fetching.providers(name))
        kept = f"{corpus.megabytes:g}" if corpus.files else "–"
        got = f"{fetching.download_megabytes(name)}" if corpus.files else "–"
        rows.append(f"| `{name}` | {corpus.title} | {kept} | {got} | {', '.join(hosts) or 'installed packages'} | "
                    f"{USED.get(name, '–')} |")
    return "\n".join(rows)


def repositories() -> str:
    """What is read of whom."""
    rows = ["| corpus | repository or address | commit |", "|---|---|---|"]
    for name, corpus in catalogue.CORPORA.items():
        rows += [f"| `{name}` | {source.url} | {getattr(source, 'commit', '–')} |" for source in corpus.sources]
        rows += [f"| `{name}` | {url} | – |" for url in corpus.addresses.values()]
    return "\n".join(rows)


def terms() -> str:
    """Licences, and what to read first."""
    rows = ["| corpus | licence | read first |", "|---|---|---|"]
    rows += [f"| `{name}` | {corpus.licence} | {corpus.terms or '–'} |" for name, corpus in catalogue.CORPORA.items()]
    return "\n".join(rows)


def compared() -> str:
    """What came out where a recipe was tried."""
    rows = ["| corpus | files | compared with the corpus behind the tables |", "|---|---|---|"]
    rows += [f"| `{name}` | {len(corpus.files)} | {corpus.compared} |"
             for name, corpus in catalogue.CORPORA.items() if corpus.files]  # fmt: skip
    return "\n".join(rows)


def page(text: str) -> str:
    """The page with its tables made anew."""
    for table in (sizes, repositories, terms, compared):
        begin, end = f"<!-- {table.__name__} -->", f"<!-- end of {table.__name__} -->"
        text, made = re.subn(f"{begin}\n.*{end}", lambda _, t=table, b=begin, e=end: f"{b}\n\n{t()}\n\n{e}", text,
                             flags=re.DOTALL)  # fmt: skip
        if made != 1:
            raise ValueError(f"{PAGE.name}: expected the marks {begin} and {end} once, got {made}")
    return text


if __name__ == "__main__":
    old = PAGE.read_text(encoding="utf-8")
    new = page(old)
    if "--check" in sys.argv[1:]:
        sys.exit(f"{PAGE.name}: expected what docs/corpora.py makes, got other tables" if new != old else 0)
    PAGE.write_text(new, encoding="utf-8")
