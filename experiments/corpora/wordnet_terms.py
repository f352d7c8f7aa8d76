"""Terms of a collection in WordNet: their parts of speech, and which of them are related by Lin's measure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxsim.data import wordnet
from jaxsim.methods.thesaurus.lexicon import Lexicon

TAGS = ("noun", "verb", "adjective", "adverb", "name", "number", "pronoun or determiner",
        "preposition or conjunction", "other")
"""Nine parts of speech, as many as 001 Table 1 has; it does not print which."""
_PART = {"noun": 0, "verb": 1, "adj": 2, "adv": 3}
_PRONOUNS = frozenset(
    "i me my mine myself you your yours yourself he him his himself she her hers herself it its itself we us our ours "
    "ourselves they them their theirs themselves this that these those who whom whose which what a an the each every "
    "either neither some any no all both such another other others one ones none".split())
_PREPOSITIONS = frozenset(
    "of in to for on at by with from into onto over under above below between among through during before after since "
    "until till against about around across along behind beside besides beyond despite down up off out per than toward "
    "towards upon via within without and or but nor yet so if because although though while whereas unless whether as "
    "when where".split())
_GENERAL = 400
"""Concepts of more terms than so many relate none: what they have in common is too general to come first."""


def senses(database: wordnet.WordNet, terms: Sequence[str]) -> list[list[int]]:
    """The synsets of every term, as written or of its base form; none where WordNet does not have it."""
    of: dict[str, list[int]] = {}
    for at, synset in enumerate(database.synsets):
        for word in dict.fromkeys(synset.words):
            of.setdefault(word, []).append(at)
    exceptions: dict[str, tuple[str, ...]] = {}
    for forms in database.exceptions.values():
        for form, bases in forms.items():
            exceptions[form] = (*exceptions.get(form, ()), *bases)
    lexicon = Lexicon(list(of), exceptions)
    found = (lexicon.match(term) for term in terms)
    return [[at for word in match.words for at in of[word]] if match.how in ("as written", "base form") else []
            for match in found]


def tags(database: wordnet.WordNet, terms: Sequence[str], capitals: Sequence[float]) -> np.ndarray:
    """The part of speech of every term, ``[num_terms]``, as rows of `TAGS`: that of most of its senses in WordNet.

    Closed classes are lists. A term that WordNet lacks is a name where ``capitals``, the share of its documents that
    write it with a capital, is above one half. The words around a term tell nothing.
    """
    result = np.full(len(terms), TAGS.index("other"))
    for row, (term, found) in enumerate(zip(terms, senses(database, terms), strict=True)):
        if any(character.isdigit() for character in term):
            result[row] = TAGS.index("number")
        elif term in _PRONOUNS:
            result[row] = TAGS.index("pronoun or determiner")
        elif term in _PREPOSITIONS:
            result[row] = TAGS.index("preposition or conjunction")
        elif found:
            result[row] = np.bincount([_PART[database.synsets[at].part] for at in found]).argmax()
        elif capitals[row] > 0.5:
            result[row] = TAGS.index("name")
    return result


def related(database: wordnet.WordNet, terms: Sequence[str], frequency: Sequence[float], *, num: int):
    """Pairs of terms by Lin's measure (Lin 1998), ``(sources, targets)``, each pair in both directions.

    Two senses are as similar as what they share is informative: 2 log P(c) / (log P(a) + log P(b)) of the concept c
    above both that is the rarest; two terms are as similar as their most similar senses. A term's occurrences
    (``frequency``, positive) are shared out equally among its senses, and P(c) counts those at or below c. Of equally
    similar pairs those of frequent terms come first. Nouns and verbs alone have concepts above them.
    """
    own, size = senses(database, terms), len(terms)
    above = _Above(database)
    information = _information(above, own, frequency)
    codes, scores = [], []
    for concept, of in _below(above, own, information).items():
        if 1 < len(of) <= _GENERAL:
            some, theirs = np.array(list(of)), np.array(list(of.values()))
            low, high = np.triu_indices(len(some), 1)
            codes.append(np.minimum(some[low], some[high]) * size + np.maximum(some[low], some[high]))
            total = theirs[low] + theirs[high]
            scores.append(np.where(total > 0, 2 * information[concept] / np.where(total > 0, total, 1), 0))
    code, score = np.concatenate(codes), np.concatenate(scores)
    often = np.log(np.asarray(frequency, float))
    code = code[np.lexsort((code, -(often[code // size] + often[code % size]), -np.round(score, 6)))]
    code = code[np.sort(np.unique(code, return_index=True)[1])[:num]]  # a pair counts where it is the most similar
    low, high = code // size, code % size
    return np.stack([low, high], axis=1).ravel(), np.stack([high, low], axis=1).ravel()


class _Above(dict):
    """Synset -> itself and all synsets above it."""

    def __init__(self, database: wordnet.WordNet):
        super().__init__()
        self.synsets = database.synsets

    def __missing__(self, at: int) -> frozenset[int]:
        parents = [pointer.target for pointer in self.synsets[at].pointers if pointer.symbol in ("@", "@i")]
        self[at] = frozenset([at]).union(*(self[parent] for parent in parents))
        return self[at]


def _information(above: _Above, own: list[list[int]], frequency: Sequence[float]) -> np.ndarray:
    """-log P of every synset; 0 of one that no term is at or below."""
    weight, part = np.zeros(len(above.synsets)), np.array([_PART[synset.part] for synset in above.synsets])
    totals = np.zeros(len(_PART))
    for count, found in zip(frequency, own, strict=True):
        for at in found:
            totals[part[at]] += count / len(found)
            for concept in above[at]:
                weight[concept] += count / len(found)
    return -np.log(np.where(weight > 0, weight / np.maximum(totals[part], 1e-300), 1))


def _below(above: _Above, own: list[list[int]], information: np.ndarray) -> dict[int, dict[int, float]]:
    """Concept -> term at or below it -> information of the term's least informative sense there."""
    result: dict[int, dict[int, float]] = {}
    for term, found in enumerate(own):
        for at in found:
            for concept in above[at]:
                of = result.setdefault(concept, {})
                of[term] = min(of.get(term, np.inf), information[at])
    return result
