"""From thesauri to `Words`: signed entries, PILSA, and S2Net on their antonyms."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxsim import checks
from jaxsim.data import thesauri, thesaurus_books, wordnet
from jaxsim.data.corpora.thesauri import Thesaurus
from jaxsim.methods import pilsa, s2net_antonym
from jaxsim.methods.thesaurus import encode, signed
from jaxsim.model.words import Words
from jaxsim.optim import Run

SOURCES = ("wordnet", "wordnet-rich", "fallows", "fernald", "soule", "roget")
"""Thesauri that `read` knows by name."""
WEIGHTS = {"fallows": 2.0, "fernald": 2.0}
"""Factors of their rows, where the union of all answered most questions for development; 1 for others, and of files."""
LEAST = 10
"""Pairs of opposites that S2Net is trained on at least."""
_HELD_OUT = 0.1


def read(
    sources: Sequence[str] = (),
    *,
    files: Sequence[str | os.PathLike] = (),
    antonyms: Sequence[str | os.PathLike] = (),
    root: str | os.PathLike | None = None,
) -> tuple[list[Thesaurus], dict[str, tuple[str, ...]]]:
    """Thesauri by name and from files, and irregular forms of words.

    Args:
      sources: of `SOURCES`.
      files: JSON Lines of ``head``, ``synonyms`` and ``antonyms``; called by the file's name, or by its path where
        that name is one of `SOURCES` or of another file.
      antonyms: lists of two words a line.
      root: the data folder; see `jaxsim.data.root`.

    Returns:
      The thesauri, and form -> base forms (empty unless WordNet is among the sources).

    Raises:
      MissingCorpus: a source is not there.
      ValueError: an unknown or repeated source, none at all, or a damaged file.
    """
    for name in sources:
        checks.expect(name in SOURCES, "sources", f"some of {', '.join(SOURCES)}", repr(name))
    checks.expect(len(set(sources)) == len(sources), "sources", "each source once", ", ".join(sources))
    checks.expect(bool(sources or files or antonyms), "sources", "at least one source or file", "none")
    database = wordnet.load(root=root) if any("wordnet" in name for name in sources) else None
    books = {"fallows": thesaurus_books.load_fallows, "fernald": thesaurus_books.load_fernald,
             "soule": thesaurus_books.load_soule, "roget": thesaurus_books.load_roget}  # fmt: skip
    result = [wordnet.entries(database, rich=name == "wordnet-rich") if name.startswith("wordnet") else
              books[name](root=root) for name in sources]  # fmt: skip
    taken = set(SOURCES)
    for reader, paths in ((thesauri.read, files), (thesauri.read_antonyms, antonyms)):
        for path in paths:
            result.append(reader(path, name=_name(path, taken)))
            taken.add(result[-1].name)
    irregular: dict[str, tuple[str, ...]] = {}
    for forms in database.exceptions.values() if database is not None else ():
        for word, bases in forms.items():
            irregular[word] = (*irregular.get(word, ()), *bases)
    return result, irregular


def _name(path: str | os.PathLike, taken: set[str]) -> str:
    """What a file is called: by its name, its path, or its path with a number."""
    numbered = (f"{path} ({number})" for number in itertools.count(2))
    names = itertools.chain([Path(path).name.split(".")[0], str(path)], numbered)
    return next(name for name in names if name and name not in taken)


def build(
    sources: Sequence[Thesaurus],
    *,
    key: jax.Array,
    k: int = 300,
    refine: bool = True,
    irregular: dict[str, tuple[str, ...]] | None = None,
    learning_rate: float = 0.001,
    run: Run | None = None,
    **options: Any,
) -> Words:
    """Learns word vectors from thesauri. The defaults are what the record of all of `SOURCES` together has chosen.

    A word that shares no entry, by however many steps, with those of the leading dimensions gets the zero vector.

    Args:
      sources: the thesauri; rows of Fallows and Fernald, from the catalogue, count twice.
      key: PRNG key: which pairs of antonyms are held out, and the order of the others.
      k: dimension; fewer where the thesauri have fewer words or entries.
      refine: whether S2Net continues from PILSA; it is left out where there are fewer than 10 pairs of antonyms.
      irregular: form -> base forms, for words that the thesauri lack.
      learning_rate: of S2Net.
      run: how S2Net runs; it stops at the lowest loss of held-out pairs.
      **options: fields of `optim.Run`, in place of those of ``run``.

    Returns:
      `Words`.

    Raises:
      ValueError: for thesauri without entries, or bad settings.

    Example:
      >>> mine = thesauri.thesaurus("mine", [("hot", ["warm"], ["cold", "icy"]), ("cold", ["icy"], ["hot"]),
      ...                                    ("big", ["large"], ["small"])])
      >>> words = build([mine], key=jax.random.key(0), k=2)
      >>> words.opposites("hot", k=1, in_entries=1)[0].word in ("cold", "icy")
      True
    """
    checks.random_key(key)
    checks.positive_int(k, "k")
    weights = [WEIGHTS.get(source.name, 1.0) if source.corpus else 1.0 for source in sources]
    entries = signed.documents(sources, weights=weights)
    terms = entries.terms()
    k = min(k, terms.num_docs, terms.num_terms)
    params = pilsa.without_rest(pilsa.fit(terms, k=k).params, entries)
    pairs, fit = entries.pairs(), None
    if refine and len(pairs) >= LEAST:
        drawn, order_key = jax.random.split(key)
        order = np.asarray(jax.random.permutation(drawn, len(pairs)))
        held, train = np.split(pairs[order], [max(2, int(_HELD_OUT * len(pairs)))])
        run = Run.of(run, options, Run(max_iter=300, patience=2, checkpoint_every=1))
        fit = s2net_antonym.fit(terms, train, init=params, key=order_key, learning_rate=learning_rate, run=run,
                                validate=s2net_antonym.held_out_loss(terms, held))  # fmt: skip
        params = fit.params
    vectors = np.asarray(encode(params, terms).dense)
    known = frozenset(entries.words)
    facts = {
        "sources": entries.sources, "entries": int(entries.tf.shape[0]), "antonym_pairs": len(pairs),
        "dropped": {name: source.dropped for name, source in zip(entries.sources, sources, strict=True)},
        "epochs": 0 if fit is None else fit.steps,
        "irregular": {form: list(bases) for form, bases in sorted((irregular or {}).items()) if known & set(bases)},
    }  # fmt: skip
    return Words.of(entries.words, vectors, np.diff(entries.columns.indptr), entries.tf.shape[0],
                    method="pilsa" if fit is None else "s2net-antonym", training=facts, signs=entries.tf)
