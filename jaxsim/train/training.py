"""From pairs of texts to a `Model` in four stages: read, split, weigh, fit. What ``jaxsim train`` calls.

`evaluate.mates.read` cuts the texts into words; `split` holds pairs out; `weigh` counts and weighs the words of both
parts; `fit` learns from them. Each stage is a function of what the stages before it returned; `train` runs them.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy.sparse as sp

from jaxsim import checks, sparse, text
from jaxsim.checks import counted
from jaxsim.data import sketches, splits
from jaxsim.data.pairs import Pairs
from jaxsim.evaluate import mates, metrics, retrieval
from jaxsim.linalg.row_space import distinct_rows
from jaxsim.methods.projections import Projection
from jaxsim.methods.projections.agreement import FEWEST, agreement, cross_fitted
from jaxsim.model import WEIGHTINGS, Model, bm25, parts, rounding
from jaxsim.optim import Fit, history
from jaxsim.sparse import Terms, Vectors
from jaxsim.text.subwords import SIZES, Subwords, slots
from jaxsim.train import distilled, graded, held_out, linked, resume, s2net, topical
from jaxsim.train.fits import FITS
from jaxsim.train.held_out import Dev
from jaxsim.train.judged import Judged
from jaxsim.train.problem import Learned, Problem, Searched, stopped_by
from jaxsim.train.settings import (
    BARE,
    CLOSED,
    FEW,
    GRADED,
    S2NET,
    SHARE,
    SSI,
    STOPPED,
    TOPICS,
    TUNED,
    Settings,
    asks,
    check,
)

RARE_COUNT = 100
"""With fewer training pairs every word is learned, whatever ``min_df`` is."""
NEGATIVES = 5
"""Documents that are mined as negatives of each left text, unless given."""
FOLDS = 3
"""Parts of the training pairs, each left out of one more fit, that weigh the dimensions where too few are held out."""
EQUALLY = "search weights all dimensions equally"
"""How a training begins to say why nothing weighs the dimensions of its model."""
_FEWEST = 20  # pairs of which some are held out


def train(
    pairs: Pairs,
    settings: Settings | None = None,
    *,
    dev: Dev = 0.1,
    grades=None,
    dev_grades=None,
    stop_by: Judged | None = None,
    pair_weights=None,
    unpaired: Sequence[str] = (),
    documents: Sequence[str] = (),
    negatives: int = NEGATIVES,
    weights: str | None = None,
    checkpoint=None,
    progress: bool = False,
    say: Callable[[str], None] = lambda message: None,
    callback: Callable[[str, dict], None] | None = None,
    cross_fit: bool = True,
) -> Model:
    """Learns a model from pairs of texts.

    Args:
      pairs: left texts are queries, right texts the documents that belong to them.
      settings: how; `Settings()` unless given.
      dev: share of the pairs to stop and to measure by, near-duplicates kept together; or pairs of your own. 0: none.
        With fewer than 20 pairs, or where nearly all are near-duplicates of each other, none are held out. Or a list
        of these, a set each, with one share at most: training stops by the mean of their scores.
      grades: one number a pair, the larger the more alike its texts are, for ``s2net-mse`` and ``s2net-pref`` and no
        other method; scaled as `train.graded` says. Equal pairs count once, with the mean of their grades.
      dev_grades: the same of ``dev``, where it is pairs.
      stop_by: queries with judgements that a training of S2Net or SSI stops by, in place of the held-out pairs: by how
        well its own score, of S2Net that of the vectors alone, finds relevant documents (`Judged.score_vectors`).
        Whatever else is chosen in a training, they choose too: SSI's b, rate and start, how to blend, and whether a
        distilled model is kept. The held-out pairs then measure the model and weigh its dimensions for search.
      pair_weights: one number of at least 0 a pair, on any scale, for ``s2net`` and ``s2net-2``: in the loss, a pair of
        weight 3 counts three times (`s2net.fit`). Weights of equal pairs add up. The start and the dev scores take all
        pairs alike.
      unpaired: more texts of the pairs' language. They add words to the vocabulary and count in how rare words are; LSA
        learns from them as from any text.
      documents: texts of the right side's language to mine negatives from, for S2Net on all pairs (`s2net.mined`);
        those that are right answers may be among them.
      negatives: documents that are mined for each left text.
      weights: ``"float16"`` or ``"int8"`` to round the finished model's weights (`model.rounding`); dev scores are
        those of the rounded model.
      checkpoint: folder for checkpoints of S2Net and SSI; training goes on where it stopped.
      progress: whether to show bars on a terminal's stderr.
      say: is given progress messages.
      callback: function of the name of what is fitted and of an entry of its history (`optim.Run.callback`), called
        after every step of a method in iterations; a `logs.Log`, say.
      cross_fit: whether closed forms and S2Net weigh their dimensions for search by `FOLDS` more fits, where too few
        pairs are held out for that. Those of S2Net take as many iterations as its own best one.

    Returns:
      `Model`; ``model.training`` holds counts, settings, dev scores, seconds and the history of S2Net or SSI.

    Raises:
      ValueError: for bad settings, no pairs, texts without words, grades that are missing, all equal or not asked
        for, weights that are none or not asked for, queries to stop a method by that has no steps, or a checkpoint of
        another method or ``identity``, or that was stopped by other held-out pairs or queries.

    Example:
      >>> from jaxsim.data import docstrings
      >>> model = train(docstrings.load().take(range(300)), Settings(method="opca", dim=20))
      >>> model.dim, model.training["dev"]["mrr"] > 0.2
      (20, True)
    """
    begun = time.perf_counter()
    settings = Settings() if settings is None else settings
    check(settings)
    checks.expect(len(pairs) > 0, "pairs", "at least one pair", "none")
    checks.expect(not len(documents) or settings.method in S2NET, "documents", f"none, for {settings.method} (they are "
                  f"for {' and '.join(S2NET)})", "some")  # fmt: skip
    checks.kind(stop_by, "stop_by", Judged, type(None))
    checks.expect(stop_by is None or asks(settings), "stop_by", f"None, for {settings.method} (it is for "
                  f"{', '.join(STOPPED)}, and for what is distilled)", "queries")  # fmt: skip
    expect_choosers(settings, dev, stop_by)
    checks.positive_int(negatives, "negatives")
    kinds = (None, *rounding.KINDS)
    checks.expect(weights in kinds, "weights", f"one of {', '.join(map(str, kinds))}", weights)
    checks.expect(weights is None or settings.method in FITS, "weights", f"None, for {settings.method}", weights)
    given = _grades(settings.method, pairs, grades, dev, dev_grades)
    times = _pair_weights(settings, pairs, pair_weights)
    say(f"{counted(len(pairs), 'pair')}: reading words …")

    texts = mates.read(pairs)
    held = split(texts, dev, settings, given, say)._replace(weights=_of_equals(texts, times))
    asked, settings = settings, effective(settings, held)
    several = _several(texts, held, settings, say)
    weighted = weigh(texts, held, settings, say, unpaired=unpaired, documents=documents, stop_by=stop_by)
    if asked.subwords is None and weighted.subwords is not None and len(weighted.subwords):
        say(f"{counted(len(weighted.subwords), 'n-gram')} of the words learn too, as with fewer than {FEW:,} pairs: a "
            "longer training and a larger model (--subwords 0 leaves them out)")
    mining = None
    if len(documents):
        mining = Mining(weighted.documents, _right_among(texts.words(held.rows), documents, pairs.languages), negatives)
    del texts  # the word lists, which may be most of the memory
    learned = fit(weighted, held, settings, checkpoint, progress, say, callback=callback, mining=mining)

    model = assemble(weighted, learned, settings, held)
    crossed: dict[str, Any] = {}
    if model.agreement is None and _can_be_weighed(model):
        found, reason = None, "three more fits, which would weigh them, are left out"
        again = _again(settings, learned)
        if cross_fit and again is None:
            reason = f"this training of {settings.method} is not repeated without parts of the pairs"
        elif cross_fit:
            problem = _problem(weighted, held, again, model.dim, mining, checkpoint=checkpoint, progress=progress)
            found, reason = _cross_fitted(problem, weighted, model.activation, [pairs.ids[row] for row in held.rows],
                                          say)  # fmt: skip
        if found is None:
            above = "" if held.grades.dev is None else " above the lowest grade"
            say(f"{EQUALLY}: fewer than {FEWEST} pairs{above} are held out to weigh them by"
                + " in each set" * (len(held.sets) > 0) + f", and {reason}")
        else:
            model, crossed = replace(model, agreement=found), {"cross_fitted": FOLDS}
    if weights is not None:
        model = rounding.rounded(model, weights)
    return replace(model, training={
        **model.training,
        "pairs": {"all": len(pairs), "train": len(held.rows), "dev": len(held.dev)},
        **({"unpaired": len(unpaired)} if len(unpaired) else {}),
        **several, "terms": len(weighted.vocabulary),
        **({} if weighted.subwords is None else {"ngrams": len(weighted.subwords)}),
        **({} if learned is None else learned.notes), **crossed,
        "settings": asdict(settings), "data": {"name": pairs.name, "sha256": pairs.sha256,
                                                "texts_sha256": [pairs.texts_sha256]}, "sketch": sketches.of(pairs),
        **_dev_scores(model, held), **_course(learned), "seconds": round(time.perf_counter() - begun, 1),
    })  # fmt: skip


def expect_choosers(settings: Settings, dev: Dev, stop_by: Judged | None) -> None:
    """Refuses to blend where there is nothing to choose by, before anything is trained.

    Args:
      settings: of a training.
      dev: as for `train`.
      stop_by: as for `train`.

    Raises:
      ValueError: for ``blend`` without held-out pairs and judged queries.

    Example:
      >>> expect_choosers(Settings(blend=True), 0, None)
      Traceback (most recent call last):
      ...
      ValueError: blend: expected held-out pairs or judged queries to choose by, got none
    """
    some = isinstance(dev, Pairs) and len(dev) > 0 or not isinstance(dev, Pairs) and held_out.listed(dev) != [0]
    checks.expect(some or stop_by is not None or not settings.blend or settings.method not in S2NET, "blend",
                  "held-out pairs or judged queries to choose by", "none")  # fmt: skip


class Grades(NamedTuple):
    """Grades of all pairs, and of dev pairs of one's own; both None for methods that take none."""

    all: np.ndarray | None
    dev: np.ndarray | None


class Split(NamedTuple):
    """Which pairs are trained on, and which are held out.

    Attributes:
      rows: ``[m]`` rows of the training pairs.
      groups: ``[m, 2]`` group numbers of near-duplicates among their left and among their right texts.
      dev: held-out pairs, perhaps none.
      grades: grades of all pairs and of the held-out ones; equal pairs have the mean of theirs.
      weights: how often each of all pairs counts, equal pairs with the sum of theirs; None: all the same.
      sets: name and number of pairs of the sets that ``dev`` consists of, where they are several.
    """

    rows: np.ndarray
    groups: np.ndarray
    dev: Pairs
    grades: Grades
    weights: np.ndarray | None = None
    sets: tuple[tuple[str, int], ...] = ()

    @property
    def sizes(self) -> tuple[int, ...]:
        """Pairs of each set, where they are several."""
        return tuple(number for _, number in self.sets)


def split(
    texts: mates.Texts, dev: Dev, settings: Settings, grades: Grades, say: Callable
) -> Split:
    """Holds pairs out to stop and to measure by.

    Args:
      texts: the pairs.
      dev: as for `train`.
      settings: of the training; the seed salts the split.
      grades: as given.
      say: is given progress messages.

    Returns:
      `Split`.

    Raises:
      ValueError: for a share out of [0, 1), or bad dev pairs.
    """
    duplicates = int(np.count_nonzero(~texts.keep))
    if duplicates:
        bare = sum(not texts.left[row] and not texts.right[row] for row in np.flatnonzero(~texts.keep))
        words = f" ({counted(bare, 'of these has', 'of these have')} no words)" if bare else ""
        say(f"left out {counted(duplicates, 'pair')}, equal to an earlier one{words}")
    everything = np.flatnonzero(texts.keep)
    if settings.method == "s2net-pref":  # candidates of a query stay together, also where queries share candidates
        texts = texts._replace(groups=texts.twins[:, 0])
    rows, dev_rows, of_dev, parts, names = everything, everything[:0], grades.dev, [], []
    given = held_out.listed(dev)
    for number, one in enumerate(given):
        name = held_out.called(dev, number)
        if isinstance(one, Pairs):
            _check_dev(texts.pairs, one, name, say)
            parts.append(one if grades.dev is not None else _once(one, name, say))
            names.append(one.name)
        else:
            found = _share_held_out(texts, one, settings.seed, name, say)
            rows, dev_rows = found or (everything, everything[:0])
            parts += [texts.pairs.take(dev_rows)] * (len(dev_rows) > 0 or len(given) == 1)
            names += ["held out"] * (len(parts) - len(names))
            of_dev = None
    held = held_out.together(parts)
    sets = tuple((name, len(part)) for name, part in zip(names, parts, strict=True)) if len(parts) > 1 else ()
    if grades.all is not None:
        averages = graded.averaged(*(map(tuple, side) for side in (texts.left, texts.right)), grades.all)
        if of_dev is None:
            of_dev = averages[dev_rows]
            queries = [tuple(texts.left[row]) for row in dev_rows]
            reason = "those chosen all have one grade" if np.unique(of_dev).size < 2 else (
                "no left text of those chosen has right ones of different grades"
                if settings.method == "s2net-pref" and not graded.orders(queries, of_dev) else "")  # fmt: skip
            if len(held) and reason:
                say(f"no pairs held out: {reason}; give dev pairs of your own to stop by")
                rows, held = everything, texts.pairs.take([])
        grades = Grades(averages, of_dev)
    return Split(rows, texts.twins[rows], held, grades, sets=sets)


def _once(dev: Pairs, name: str, say: Callable) -> Pairs:
    """Held-out pairs without equal ones."""
    found = mates.once(dev)
    if len(found) < len(dev):
        say(f"{name}: left out {counted(len(dev) - len(found), 'pair')}, equal to an earlier one")
    checks.expect(len(found) >= 2, name, f"at least two different pairs in {dev.name} (one alone always finds its "
                  "mate)", len(found))  # fmt: skip
    rivals = mates.own_rivals(found)
    if rivals and 20 * rivals >= len(found):  # few of them change little
        say(f"{name}: {counted(rivals, 'pair')} with a text that another pair has on the other side: it is nearest to "
            "itself, an error each, so the scores of mates tell little. Judged queries tell more (--dev-queries and "
            "--dev-exclude-self)")
    return found


class Mining(NamedTuple):
    """Documents to mine negatives from, rows of them that are right for each training pair, and how many to take."""

    documents: Terms
    answers: Sequence[set[int]]
    negatives: int


def _right_among(words: tuple, documents: Sequence[str], languages: tuple[str, str]) -> list[set[int]]:
    """For each training pair the documents with the words of a right text of its left text."""
    known: dict[tuple, set[int]] = {}
    for row, one in enumerate(map(text.tokenizer(languages[1]), text.strings(documents))):
        known.setdefault(tuple(one), set()).add(row)
    answers: dict[tuple, set[int]] = {}
    sides = [[tuple(one) for one in side] for side in words]
    for left, right in zip(*sides, strict=True):
        answers.setdefault(left, set()).update(known.get(right, ()))
    return [answers[left] for left in sides[0]]


class Weighted(NamedTuple):
    """Texts as they are learned from.

    Attributes:
      vocabulary: terms of the training pairs.
      subwords: n-grams of their words, or None.
      spread: the n-grams that words are made of (`Subwords.spread`), or None.
      counts: counts of the training pairs, left and right.
      slots: their weighted words, and n-grams of unknown words (`subwords.slots`), at unit length once the n-grams of
        known words are added; None without n-grams.
      train: the training pairs at unit length.
      dev: the held-out pairs at unit length; None without any.
      unpaired: texts without a mate at unit length; None without any.
      documents: documents to mine negatives from, at unit length; None without any.
      searched: judged queries to stop by; None without any.
    """

    vocabulary: text.Vocabulary
    subwords: Subwords | None
    spread: sp.csr_matrix | None
    counts: tuple[sp.csr_matrix, sp.csr_matrix]
    slots: tuple[sp.csr_matrix, sp.csr_matrix] | None
    train: tuple[Terms, Terms]
    dev: tuple[Terms, Terms] | None
    unpaired: Terms | None = None
    documents: Terms | None = None
    searched: Searched | None = None


def weigh(
    texts: mates.Texts, held: Split, settings: Settings, say: Callable, *, unpaired: Sequence[str] = (),
    documents: Sequence[str] = (), stop_by: Judged | None = None,
) -> Weighted:
    """Counts the words of the training pairs, and weighs those of all.

    Args:
      texts: the pairs.
      held: which of them are trained on.
      settings: of the training.
      say: is given progress messages.
      unpaired: as for `train`.
      documents: as for `train`; the vocabulary is that of the pairs.
      stop_by: as for `train`; the vocabulary is that of the pairs.

    Returns:
      `Weighted`.

    Raises:
      ValueError: if no term is left, or for unpaired texts with pairs of two languages.
    """
    words = texts.words(held.rows)
    languages = texts.pairs.languages
    checks.expect(not len(unpaired) or len(set(languages)) == 1, "unpaired", "none, for pairs of two languages",
                  f"{len(unpaired)} texts")  # fmt: skip
    more = list(map(text.tokenizer(languages[0]), text.strings(unpaired)))
    vocabulary = mates.vocabulary_of([*words[0], *words[1], *more], drop_top=settings.drop_top,
                                     max_terms=settings.max_terms, min_df=settings.min_df)  # fmt: skip
    counts = tuple(text.counts(side, vocabulary) for side in words)
    say(f"{counted(len(held.rows), 'training pair')}, {counted(len(held.dev), 'dev pair')}, "
        f"{counted(len(vocabulary), 'term')}")
    weighting = WEIGHTINGS[settings.weighting]
    subwords = Subwords.build(vocabulary, share=settings.subwords) if settings.subwords else None
    slots_of = functools.partial(slots, vocabulary=vocabulary, subwords=subwords, weigh=weighting)
    dev = [slots_of(map(text.tokenizer(language), side)) for language, side in
           zip(texts.pairs.languages, (held.dev.left, held.dev.right), strict=True)]  # fmt: skip
    rest = [slots_of(more)] if more else []
    mined = [slots_of(map(text.tokenizer(languages[1]), text.strings(documents)))] if len(documents) else []
    asked = [] if stop_by is None else [
        slots_of(map(text.tokenizer(language), text.strings(list(side.values()))))
        for language, side in zip(languages, (stop_by.asked, stop_by.documents), strict=True)]  # fmt: skip
    if subwords is None:
        spread = in_slots = None
        train = [weighting(side, vocabulary.df, vocabulary.num_docs) for side in counts]
    else:
        if not len(subwords) and len(held.rows) > 1:  # one pair is refused later
            say(f"no two words share {SIZES[0]} to {SIZES[-1]} letters in a row that tell texts apart: words are "
                "learned without n-grams, as with --subwords 0, and words that are new to the model are ignored")
        spread = subwords.spread(vocabulary)
        in_slots = tuple(map(slots_of, words))
        train, dev, rest, mined, asked = ([side @ spread for side in sides]
                                          for sides in (in_slots, dev, rest, mined, asked))  # fmt: skip
        in_slots = tuple(text.unit_rows(*both) for both in zip(in_slots, train, strict=True))
    _tell_unknown(dev, held, say)
    if asked:
        _tell_unasked(asked, stop_by, say)
    return Weighted(vocabulary, subwords, spread, counts, in_slots, tuple(map(mates.unit_terms, train)),
                    tuple(map(mates.unit_terms, dev)) if len(held.dev) else None,
                    mates.unit_terms(rest[0]) if rest else None,
                    mates.unit_terms(mined[0]) if mined else None,
                    Searched(stop_by, tuple(map(mates.unit_terms, asked))) if asked else None)  # fmt: skip


def _tell_unknown(dev: Sequence[sp.csr_matrix], held: Split, say: Callable) -> None:
    """Says which held-out sets measure hardly anything: most of their pairs have a text of unknown words."""
    lost = np.logical_or(*(np.asarray(abs(side).sum(axis=1)).ravel() == 0 for side in dev))
    for number, rows in enumerate(held_out.spans(held.sizes or (len(held.dev),))):
        bare = int(np.count_nonzero(lost[rows]))
        if 2 * bare > len(rows):
            which, score = "dev pairs", "the dev score says little of the model"
            if held.sets:
                which = f"pairs of dev {number + 1} ({held.sets[number][0]})"
                score = "its score says little of the model, but counts in the mean as any other"
            say(f"{bare:,} of the {len(rows):,} {which} have a text without known words, similar to none: {score}")


def _tell_unasked(sides: Sequence[sp.csr_matrix], judged: Judged, say: Callable) -> None:
    """Says how many judged queries and relevant documents a training cannot be measured by."""
    bare = [int(np.count_nonzero(abs(side).sum(axis=1) == 0)) for side in sides]
    for number, side, what in zip(bare, sides, (("judged query", "judged queries"), ("document", "documents")),
                                  strict=True):  # fmt: skip
        if 2 * number > side.shape[0]:
            say(f"{number:,} of {counted(side.shape[0], *what)} to stop by without known words: what they stop by says "
                "little of the model")  # fmt: skip
    if judged.without_text:
        say(f"{counted(judged.without_text, 'relevant document')} of the judged queries without a text, never found")


def fit(
    weighted: Weighted, held: Split, settings: Settings, checkpoint, progress: bool, say: Callable, *,
    validate: Callable | None = None,
    callback: Callable | None = None,
    mining: Mining | None = None,
) -> Learned | None:
    """Learns from the training pairs by the method of the settings.

    Args:
      weighted: texts of the training pairs and of the held-out ones.
      held: near-duplicates and grades of the training pairs.
      settings: of the training.
      checkpoint: as for `train`.
      progress: as for `train`.
      say: is given progress messages.
      validate: what to stop by, a function of parameters; `validator` unless given.
      callback: as for `train`.
      mining: documents to mine negatives from, or None.

    Returns:
      `Learned`; None for bare term weights, which learn nothing more.

    Raises:
      ValueError: for pairs that the method cannot learn from.
    """
    bare = _without_words(weighted.counts, say)
    if settings.method not in FITS:
        return None
    m, num_terms = len(held.rows), len(weighted.vocabulary)
    checks.expect(m > 1, "pairs", "at least two training pairs that differ", m)
    checks.expect(num_terms > 1, "pairs, max_terms", "at least two terms", num_terms)
    checks.expect(bare < m or settings.method == "lsa", "pairs", "a pair with known words on both sides", "none")
    k = _dimension(weighted, settings, say)
    say(f"training {settings.method} …")
    validate = validator(weighted, held, settings) if validate is None else validate
    problem = _problem(weighted, held, settings, k, mining, validate=validate, checkpoint=checkpoint, progress=progress,
                       dev=weighted.dev, say=say, callback=callback, sets=held.sizes,
                       searched=weighted.searched)  # fmt: skip
    notes: dict[str, Any] = {}
    if held.grades.all is not None:
        low, high = graded.scale(graded.checked(held.grades.all, len(held.grades.all)))  # means of equal pairs
        notes["grades"] = {"lowest": low, "highest": high}
        scaled = (held.grades.all[held.rows] - low) / (high - low)
        problem = replace(problem, grades=scaled, dev_grades=held.grades.dev)
    if problem.weights is not None:
        some = problem.weights
        above = int(np.count_nonzero(some))
        checks.expect(above >= min(len(some), 2), "pair_weights", "two training pairs with weights above 0",
                      above or "none")  # fmt: skip
        notes["pair_weights"] = {"lowest": float(some.min()), "highest": float(some.max())}
    if checkpoint is not None:
        dev = held_out.digest(held.dev, held.sizes, held.grades.dev)
        resume.keep_choice(checkpoint, settings, dev,
                           "" if weighted.searched is None else weighted.searched.judged.sha256)
    learned = FITS[settings.method](problem)
    notes |= learned.notes
    if settings.distill:
        say(f"distilling {settings.method} and bare terms, {settings.distill:g} of the score …")
        every = map(held.dev.take, held_out.spans(held.sizes or (len(held.dev),)) if len(held.dev) else ())
        learned = distilled.distilled(learned.fit, problem, [mates.answers(one.left, one.right) for one in every])
        notes |= learned.notes
    if weighted.searched is not None and asks(settings):
        judged = weighted.searched.judged
        notes["stop_by"] = {"metric": judged.metric, "queries": len(judged.asked), "sha256": judged.sha256,
                            "score": round(_best_score(learned.fit, notes, judged.metric), 4)}  # fmt: skip
    return Learned(learned.fit, notes)


def _best_score(fit: Fit, notes: dict[str, Any], metric: str) -> float:
    """The score that what was learned has by the judged queries."""
    if "distilled" in notes:
        found = notes["distilled"]["judged"]
        return found["distilled" if notes["distilled"]["kept"] else "undistilled"]
    if "blend" in notes:
        return max(notes["blend"][metric].values())
    return max(entry["validation"] for entry in fit.history if entry.get("validation") is not None)


def validator(weighted: Weighted, held: Split, settings: Settings) -> Callable | None:
    """What projections are stopped by.

    Args:
      weighted: texts.
      held: the held-out pairs.
      settings: of the training.

    Returns:
      As `problem.stopped_by`.
    """
    make = functools.partial(mates.validator, activation=s2net.activation_of(settings.activation))
    return stopped_by(make, weighted.dev, held.sizes, weighted.searched)


def _problem(
    weighted: Weighted, held: Split, settings: Settings, k: int, mining: Mining | None, *,
    validate: Callable | None = None, **options,
) -> Problem:
    """What a method is fitted on, with the weights of the training pairs and the documents to mine from, if any."""
    mined = {} if mining is None else {"documents": mining.documents, "answers": mining.answers,
                                       "negatives": mining.negatives}  # fmt: skip
    return Problem(weighted.counts, weighted.train, held.groups, validate, k, settings, slots=weighted.slots,
                   spread=weighted.spread, unpaired=weighted.unpaired,
                   weights=None if held.weights is None else held.weights[held.rows], **mined, **options)  # fmt: skip


def _grades(method: str, pairs: Pairs, grades, dev, dev_grades) -> Grades:
    """The checked grades."""
    if method not in GRADED:
        for name, values in (("grades", grades), ("dev_grades", dev_grades)):
            expected = f"none, for {method} ({' and '.join(GRADED)} learn from grades)"
            checks.expect(values is None, name, expected, "some")
        return Grades(None, None)
    given = held_out.listed(dev)
    checks.expect(len(given) == 1, "dev", f"one share or set of pairs, for {method}", len(given))
    if isinstance(given[0], Pairs):
        dev = given[0]
        dev_grades = graded.checked(dev_grades, len(dev), "dev_grades")
        checks.expect(method != "s2net-pref" or graded.orders(_queries(dev), dev_grades), "dev_grades",
                      "a left text with right ones of different grades, for s2net-pref", "none")  # fmt: skip
    else:
        checks.expect(dev_grades is None, "dev_grades", "none, without dev pairs", "some")
    return Grades(graded.checked(grades, len(pairs)), dev_grades)


def _queries(pairs: Pairs) -> list[tuple[str, ...]]:
    """The words of left texts, by which candidates belong to one query."""
    return list(map(tuple, map(text.tokenizer(pairs.languages[0]), pairs.left)))


def _pair_weights(settings: Settings, pairs: Pairs, weights) -> np.ndarray | None:
    """The checked weights of pairs."""
    if weights is None:
        return None
    method = settings.method
    checks.expect(method in S2NET, "pair_weights", f"none, for {method} ({' and '.join(S2NET)} take them)", "some")
    checks.expect(not settings.shard_terms, "shard_terms", "False, with pair_weights", settings.shard_terms)
    checks.expect(settings.devices in (None, 1), "devices", "1, with pair_weights", settings.devices)
    result = checks.real(weights, "pair_weights")
    checks.expect(result.shape == (len(pairs),), "pair_weights", f"{counted(len(pairs), 'number')}, one a pair",
                  result.shape)
    sound = np.isfinite(result) & (result >= 0)
    checks.expect(bool(sound.all()), "pair_weights", "finite numbers of at least 0",
                  None if sound.all() else float(result[~sound][0]))
    return result


def _of_equals(texts: mates.Texts, weights: np.ndarray | None) -> np.ndarray | None:
    """Weights in which equal pairs have the sum of theirs, since only one of them is learned from."""
    if weights is None:
        return None
    number = graded.numbered(*(map(tuple, side) for side in (texts.left, texts.right)))
    return np.bincount(number, weights)[number]


def _check_dev(pairs: Pairs, dev: Pairs, name: str, say: Callable) -> None:
    """Refuses dev pairs that cannot measure, and counts those that are trained on."""
    checks.expect(dev.languages == pairs.languages, name, f"languages {pairs.languages} (as pairs)", dev.languages)
    checks.expect(len(dev) >= 2, name, "at least two pairs (one alone always finds its mate)", len(dev))
    known = set(map(sketches.alike, pairs.left, pairs.right))
    both = sum(pair in known for pair in map(sketches.alike, dev.left, dev.right))
    if both:
        which, score = ("dev pairs", "the dev score") if name == "dev" else (f"pairs of {name}", "its score")
        say(f"{both:,} of the {len(dev):,} {which} are training pairs too: {score} is not that of new pairs")


def _share_held_out(texts: mates.Texts, share: float, seed: int, name: str, say: Callable) -> tuple | None:
    """Rows of the training and of the dev pairs; None where no pairs are held out."""
    if share == 0:
        return None
    alone = name == "dev"
    none = "no pairs held out" if alone else f"{name}: no pairs held out beside those of the other sets"
    if len(texts.pairs) < _FEWEST:
        say(f"{none}: there are fewer than {_FEWEST}")
        return None
    number, salt = int(np.count_nonzero(texts.keep)), "" if seed == 0 else str(seed)
    rows = mates.split(texts, shares=(1 - share, share, 0.0), salt=salt)
    if not _near(len(rows["dev"]) / number, share):
        # Links chain: a text of many pairs ties all their other texts together, and most pairs are one group.
        some = mates.split(texts._replace(groups=texts.twins[:, 0]), shares=(1 - share, share, 0.0), salt=salt)
        if _near(len(some["dev"]) / number, share):
            say(f"{len(some['dev']) / number:.1%} of the pairs held out by their left texts alone: shared texts tie "
                "nearly all pairs together, so right texts of held-out pairs may be in the training pairs too")
            return some["train"], some["dev"]
        if len(rows["dev"]) > 1:
            say(f"{len(rows['dev']) / number:.1%} of the pairs held out, for a share of {share:g}: near-duplicates are "
                "kept together")
    if not len(rows["train"]) or len(rows["dev"]) < 2:
        say(f"{none}: a share of {share:g}, near-duplicates kept together, leaves none to train on or fewer than two "
            "to measure by; give another share" + ", or dev pairs of your own" * alone)
        return None
    return rows["train"], rows["dev"]


def _several(texts: mates.Texts, held: Split, settings: Settings, say: Callable) -> dict[str, Any]:
    """How many left texts of the training pairs have several right ones; says what becomes of these."""
    if settings.method in (*GRADED, *BARE):
        return {}
    words = [[tuple(one) for one in side] for side in texts.words(held.rows)]
    answers = mates.answers(*words)
    if not answers.several:
        return {}
    messages = f"{counted(answers.several, 'left text')} of {len(answers.queries):,} with several right ones"
    if settings.method in (*S2NET, *SSI):
        messages += ", which are no negatives of each other"
    if settings.method in S2NET and answers.shared:
        messages += (f"; a text that is right for other left texts too may still be a negative there ("
                     f"{counted(answers.shared, 'case')} at most)")
    say(messages)
    return {"several": {"left": answers.several, "of": len(answers.queries), "shared": answers.shared}}


def _near(got: float, asked: float) -> bool:
    """Whether a share is within a factor of two of what is asked for."""
    return asked / 2 <= got <= 2 * asked


def effective(settings: Settings, held: Split) -> Settings:
    """The settings as they take effect with these pairs.

    Args:
      settings: as they are given.
      held: the pairs.

    Returns:
      The same, but for what few pairs and the method do not leave open.
    """
    if len(held.rows) < RARE_COUNT:
        settings = replace(settings, min_df=1)
    if settings.method == "tfidf":
        settings = replace(settings, weighting="tf_idf")
    if settings.method in TOPICS:
        settings = replace(settings, weighting="tf")
    share = settings.subwords
    if share is None:
        fit = settings.method in TUNED and not settings.drop_top and not settings.shard_terms
        share = SHARE if fit and len(held.rows) < FEW else 0.0
    return replace(settings, subwords=float(share))


def _without_words(counts: tuple, say: Callable) -> int:
    """How many training pairs have no known word on a side."""
    m = counts[0].shape[0]
    bare = int(np.count_nonzero((np.diff(counts[0].indptr) == 0) | (np.diff(counts[1].indptr) == 0)))
    if bare:
        say(f"{counted(bare, 'training pair')} without a word of the vocabulary on a side"
            + f", which is {'all' if bare == m else 'most'} of them: are these the right columns?" * (2 * bare > m))
    return bare


def _dimension(weighted: Weighted, settings: Settings, say: Callable) -> int:
    """The dimension that is asked for, or the largest that the data supports."""
    counts = weighted.counts
    m, num_terms = counts[0].shape
    limit, basis = min(m, num_terms) - 1, counted(m, "training pair")
    if settings.method == "lsa":  # takes both sides as documents, no matter which belong together
        different = len(distinct_rows(sp.vstack([side[np.diff(side.indptr) > 0] for side in counts]))[0])
        different += 0 if weighted.unpaired is None else weighted.unpaired.num_docs
        limit, basis = min(different, num_terms), counted(different, "different text")
    basis += f" and {counted(num_terms, 'term')}"
    if settings.method in TOPICS and 0 < (words := topical.most(counts, settings.method)) < limit:
        limit, basis = words, counted(words, "different word") + " on a side" * (settings.method != "plsa")
    if limit < settings.dim:
        say(f"dimension {limit}: {basis} support no more")
    return min(settings.dim, limit)


def assemble(weighted: Weighted, learned: Learned | None, settings: Settings, held: Split) -> Model:
    """The model of what was learned, without its record of the training.

    Args:
      weighted: texts that it was learned from.
      learned: by `fit`.
      settings: of the training.
      held: held-out pairs, which weigh the dimensions for search if they are enough; of pairs with grades those that
        `graded.belong` counts.

    Returns:
      `Model`.
    """
    model = _model(weighted, learned, settings, held.dev.languages)
    return replace(model, agreement=_agreement(model, held))


def _model(weighted: Weighted, learned: Learned | None, settings: Settings, languages: tuple[str, str]) -> Model:
    """The same without the weights of dimensions."""
    params = None if learned is None else learned.fit.params
    if params is not None and not isinstance(params, Projection):
        params = tuple(params)
    if params is not None and weighted.spread is not None:  # rows of known words, and of the n-grams of others
        folded = [Projection(jax.device_put(weighted.spread @ np.asarray(side.weights)))
                  for side in parts.sides(params)]
        params = folded[0] if isinstance(params, Projection) else tuple(folded)
    activation = settings.activation if settings.method in S2NET else "none"
    return Model(
        weighted.vocabulary, params, settings.weighting, "shares" if settings.method in TOPICS else activation,
        languages, settings.method, strongest=linked.STRONGEST if settings.method in SSI else None,
        subwords=weighted.subwords,
    )  # fmt: skip


def _can_be_weighed(model: Model) -> bool:
    """Whether a model has the dimensions of a projection."""
    return not (model.params is None or model.bilinear or model.topical)


def _agreement(model: Model, held: Split) -> np.ndarray | None:
    """Weights of the dimensions for search, by the held-out pairs; None for few pairs, and without a projection.

    Of several sets it is the mean: what differs between them is no agreement of mates. Of pairs with grades those alone
    count whose texts belong together (`graded.belong`): that others agree is no merit of a dimension.
    """
    every = held_out.spans(held.sizes or (len(held.dev),))
    if held.grades.dev is not None:
        together = graded.belong(held.grades.dev, held.grades.all)
        every = [rows[together[rows]] for rows in every]
    every = [rows for rows in every if len(rows) >= FEWEST]
    if not _can_be_weighed(model) or not every:
        return None
    sides = model.encode_query(held.dev.left), model.encode_document(held.dev.right)
    return np.mean([agreement(*(side[rows] for side in sides)) for rows in every], axis=0)


def _again(settings: Settings, learned: Learned | None) -> Settings | None:
    """Settings of the fits that leave out a part of the pairs; None for methods that are not fitted again.

    S2Net takes as many iterations as the model had when its dev score was best: there is nothing to stop these by.
    """
    if settings.distill or settings.blend or settings.shard_terms or settings.method not in (*CLOSED, *S2NET):
        return None
    if settings.method in CLOSED:
        return settings
    if learned is None or not learned.fit.history:
        return None
    scored = [entry for entry in learned.fit.history if entry.get("validation") is not None]
    best = max(scored, key=lambda entry: entry["validation"])["step"] if scored else learned.fit.steps
    if not best:  # the start is the model
        return replace(settings, method="opca") if settings.start == "opca" else None
    return replace(settings, max_iter=int(best))


def _cross_fitted(
    problem: Problem, weighted: Weighted, activation: str, ids: Sequence[str], say: Callable
) -> tuple[np.ndarray | None, str]:
    """Agreement of the dimensions by fits that each leave out a part of the training pairs; or None, and why."""
    some = np.flatnonzero(np.logical_and(*(np.diff(side.indptr) > 0 for side in problem.counts)))
    if len(some) < FOLDS * FEWEST:
        return None, f"too few are trained on for {FOLDS} more fits ({counted(len(some), 'pair')} with known words)"
    groups, names = splits.merge(*problem.groups.T)[some], [ids[row] for row in some]
    dealt = splits.split(groups, names, shares=dict.fromkeys(map(str, range(FOLDS)), 1 / FOLDS))
    least = min(map(len, dealt.values()))
    if least < FEWEST:
        return None, (f"the least of {FOLDS} parts of the training pairs, near-duplicates kept together, has "
                      f"{counted(least, 'pair')}, too few to weigh them by")  # fmt: skip
    folds = np.zeros(len(some), int)
    for number, rows in enumerate(dealt.values()):
        folds[rows] = number
    settings = problem.settings
    say(f"weighing the dimensions for search by {FOLDS} more fits, each of the training pairs without a part of them: "
        f"fewer than {FEWEST} pairs are held out, which would weigh them without another fit"
        + " (--no-cross-fit leaves this out)" * (settings.method in S2NET))

    def fit(rows: np.ndarray) -> Callable:
        chosen, left_out = some[rows], int(folds[np.setdiff1d(np.arange(len(some)), rows)[0]])
        slots = problem.slots and tuple(side[chosen] for side in problem.slots)
        part = weighted._replace(counts=tuple(side[chosen] for side in problem.counts))
        params = FITS[settings.method](replace(
            problem, counts=part.counts, train=tuple(sparse.take(side, chosen) for side in problem.train), slots=slots,
            groups=problem.groups[chosen], k=min(problem.k, _dimension(part, settings, lambda message: None)),
            checkpoint=problem.checkpoint and Path(problem.checkpoint) / f"checkpoint.without-{left_out}",
            answers=[problem.answers[row] for row in chosen] if problem.answers else (),
            weights=None if problem.weights is None else problem.weights[chosen],
        )).fit.params  # fmt: skip
        return lambda rest: tuple(np.asarray(side.dense) for side in mates.encode(
            params, tuple(sparse.take(side, some[rest]) for side in problem.train),
            activation=s2net.activation_of(activation)))  # fmt: skip

    try:
        found = cross_fitted(fit, folds)
    except (ValueError, FloatingPointError) as error:  # what is left may be too much alike for a fit of its own
        if str(error).startswith("checkpoint"):
            raise
        return None, f"a fit without a part of the pairs failed ({error})"
    return np.pad(found, (0, problem.k - len(found)), mode="edge"), ""  # fewer pairs may support fewer dimensions


def _dev_scores(model: Model, held: Split) -> dict[str, Any]:
    """``dev``, the scores of the held-out pairs; of several sets their means, and ``dev_sets``, those of each set."""
    if not held.sets:
        return {"dev": _scores(model, held)}
    every = [_scores(model, held._replace(dev=held.dev.take(rows))) for rows in held_out.spans(held.sizes)]
    means = {name: round(value, 4) for name, value in held_out.mean(every).items()}
    return {"dev": means, "dev_sets": [{"name": name, "pairs": number, **scores}
                                       for (name, number), scores in zip(held.sets, every, strict=True)]}  # fmt: skip


def _scores(model: Model, held: Split) -> dict[str, float]:
    """Scores of the held-out pairs, of mates or correlations with grades, and those of bare term weights and BM25."""
    untrained = Model(model.vocabulary, None, model.weighting, languages=model.languages, method=model.method)
    scores: dict[str, float] = {}
    dev = held.dev
    answers = mates.answers(dev.left, dev.right)
    for prefix, scored in (("", model), ("untrained_", untrained)) if len(dev) > 1 else ():
        if held.grades.dev is not None:
            cosines = np.asarray(scored.pair_similarity(dev.left, dev.right))
            if model.method == "s2net-pref":
                words = _queries(dev)
                numbers = {query: number for number, query in enumerate(dict.fromkeys(words))}
                queries = np.array([numbers[query] for query in words])
                result = graded.ranking_scores(cosines, queries, np.asarray(held.grades.dev))
            else:
                result = {"spearman": metrics.spearman(cosines, held.grades.dev)}
        else:
            sides = scored.vectors(dev.left, side="query"), scored.vectors(dev.right, side="document")
            result = held_out.mate_scores(*sides, answers, scored.scorer)
        scores |= {f"{prefix}{name}": round(float(value), 4) for name, value in result.items()}
    if scores and held.grades.dev is None:
        found = held_out.mate_scores(*_bm25(dev), answers, retrieval.dot)
        scores |= {f"bm25_{name}": round(float(value), 4) for name, value in found.items()}
    return scores


def _bm25(pairs: Pairs) -> tuple[Vectors, Vectors]:
    """Left texts as queries and right ones as documents, whose inner products are BM25."""
    language = pairs.languages[1]  # of the words that two languages share
    words = bm25.weigh(pairs.right, language=language)
    sides = words.counts(pairs.left, language=language), words.weights
    if not words.stems:
        sides = [sp.csr_matrix((len(pairs), 1), dtype=np.float32)] * 2
    return tuple(Vectors(sparse=sparse.from_scipy(side)) for side in sides)


def _course(learned: Learned | None) -> dict[str, Any]:
    """The history of a method in iterations."""
    if learned is None or not learned.fit.history:
        return {}
    compact = history.compact(learned.fit.history)
    loss = learned.fit.loss if math.isfinite(learned.fit.loss) else None  # SSI has none before its first epoch
    return {"history": compact, "fit": {"steps": learned.fit.steps, "loss": loss, "start_loss": compact["loss"][0]}}
