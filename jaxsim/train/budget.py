"""A search over methods and settings within a budget of time: what ``jaxsim train --tune --budget 5m`` does.

Trainings in closed form come first, the cheapest before the others. A training at the largest dimension contains those
at all smaller ones. S2Net follows, from the settings of the best OPCA, and then with another γ and from other noise;
then SSI, and S2Net from random numbers. The values of a setting are tried one after the other along its ladder, as long
as the score rises.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jaxsim import checks
from jaxsim.data.pairs import Pairs
from jaxsim.evaluate import mates
from jaxsim.methods.projections import truncate
from jaxsim.model import parts
from jaxsim.optim import closed_form
from jaxsim.train import apart, held_out, linked, s2net, training, tuning
from jaxsim.train.held_out import Dev
from jaxsim.train.judged import Judged
from jaxsim.train.problem import Learned
from jaxsim.train.settings import DISTILLED, S2NET, SSI, STARTS, TUNED, Settings, check, fields

FREE = ("method", "dim", "min_df", "subwords", "noise", "start", "gamma")
"""Settings that the search chooses."""
METHODS = ("opca", "lsa", "s2net")
"""Methods that it tries where the method is free, within a language; between two ``cca`` takes the place of ``lsa``."""
DIMENSIONS = (25, 50, 100, 200, 300, 500, 750, 1000)
FIRST = 300
"""The largest dimension of the first trainings; larger ones are tried where it is the best of theirs."""
SEARCH = {"dim": 600, "min_df": 1}
"""Where a search begins that chooses for a search: OPCA with these settings, if they are free, stays unless another
candidate is better by more than `CHANCE` standard errors of the difference. The row ``opca-search`` of
``experiments.peers.title_search`` is a search with them alone."""
CHANCE = 2.0
LADDERS = {"noise": (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0), "gamma": (1.25, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0)}
SCORES = ("mrr", apart.METRIC)
"""What held-out pairs can choose by."""
_LINKS = "ssi"  # which is tried beside `METHODS`
_NAMES = tuple(field.name for field in fields())
_CLOSED = 0.6
"""Share of the budget after which S2Net begins."""
_DEARER = {"subwords": 4.0, "dim": 5.0}
"""How many times as long a training takes with n-grams, or at the largest dimension, at most: measured roughly."""


class _Late(Exception):
    """The budget ended within a training."""


def search(
    pairs: Pairs,
    settings: Settings | None = None,
    *,
    seconds: float,
    dev: Dev = 0.1,
    free: Sequence[str] = FREE,
    judged: Judged | None = None,
    stop_by: Judged | None = None,
    by: str = "mrr",
    unpaired: Sequence[str] = (),
    clock: Callable[[], float] = time.monotonic,
    say: Callable[[str], None] = lambda message: None,
) -> tuple[Settings, list[dict[str, Any]]]:
    """Chooses a method and its settings by held-out pairs, or by judged queries, within some seconds.

    A training begins only if, judging by those before it, it should end in time; S2Net is stopped at the end of the
    budget, and SSI, which is tried within a language, counts only if it ends before. At least one training is made. So
    what is tried depends on the speed of the machine; what a training gives does not. The score of the chosen settings
    is a little too good for new texts.

    Args:
      pairs: as for `training.train`; of more than `tuning.MOST_PAIRS` training pairs, as many of them.
      settings: where it begins, and what is not free; `Settings()` unless given.
      seconds: the budget. The training with what was chosen comes after it.
      dev: share of the pairs to choose by, near-duplicates kept together; or pairs of your own. Or a list of these, a
        set each, with one share at most: the mean of their scores chooses.
      free: what to choose, of `FREE`.
      judged: queries with judgements to choose by; held-out pairs then weigh dimensions for search, and stop S2Net,
        where there are any.
      stop_by: queries with judgements that stop S2Net and SSI, as for `training.train`; they choose too, unless
        ``judged`` are given.
      by: of `SCORES`, without judged queries: how held-out texts find their mates, ``"mrr"``; or, for search,
        ``"apart"``, how they do without the words that both share (`apart`). The latter says less of a search than
        many judged queries would, so what it begins with (`SEARCH`) stays unless something is clearly better.
      unpaired: more texts of the pairs' language, as for `training.train`.
      clock: seconds, from any moment on.
      say: told the score of each training, and what there was no time to try.

    Returns:
      ``(settings, tried)``: the best, the first of equals (see ``by``); and every candidate with its score, the best
      first, and ``cut`` where the budget ended within its training. Where there is nothing to choose by, neither
      held-out pairs nor judged queries, the settings as they were, and nothing tried.

    Raises:
      ValueError: for a budget that is not positive, a method that is not tuned, nothing free, or as `training.train`.

    Example:
      >>> from jaxsim.data import docstrings
      >>> few = docstrings.load().take(range(200))
      >>> found, tried = search(few, Settings(method="opca", dim=20), seconds=1e-9, dev=0.2, free=("dim", "noise"))
      >>> found.dim == tried[0]["dim"], found.method, found.noise
      (True, 'opca', 0.0001)
    """
    settings = Settings() if settings is None else settings
    checks.kind(pairs, "pairs", Pairs)
    checks.kind(settings, "settings", Settings)
    check(settings)
    checks.expect(seconds > 0, "seconds", "a positive budget", seconds)
    checks.expect(by in SCORES, "by", f"one of {', '.join(SCORES)}", by)
    judged = stop_by if judged is None else judged
    checks.kind(stop_by, "stop_by", Judged, type(None))
    checks.expect(not settings.shard_terms, "shard_terms", "False, within a budget", settings.shard_terms)
    checks.expect(by == SCORES[0] or judged is None, "by", f"{SCORES[0]}, with judged queries", by)
    checks.expect(settings.method in TUNED, "method", f"one of {', '.join(TUNED)}, to tune", settings.method)
    free = [name for name in FREE if name in free and not (name == "subwords" and settings.drop_top)]
    checks.expect(len(free) > 0, "free", f"some of {', '.join(FREE)}", "none")
    begun = clock()
    some = tuning.some(pairs, settings.seed, dev, say)
    texts = mates.read(some)
    held = training.split(texts, dev, replace(settings, distill=0.0), training.Grades(None, None), say)
    if len(held.dev) < 2 and judged is None:
        say("no setting is chosen: no pairs are held out to choose by")
        return settings, []
    if len(held.dev) < 2:
        say("without held-out pairs the dimensions of candidates are not weighed; where those of the model are, its "
            "score is another")
    training.expect_choosers(settings, held.dev, stop_by)
    result = _Search(texts, held, settings, free, judged, stop_by, by, begun, seconds, clock, say, unpaired)
    best = result.run()
    if result.untried:
        left = [f"{name} {', '.join(map(str, values))}" for name, values in result.untried.items()]
        say(f"the budget ended before these were tried: {'; '.join(left)}")
    made, what = (len(held.dev), "held-out pair") if judged is None else (len(judged.asked), "judged query")
    made, what = (sum(result.counted), "held-out left text") if result.counted else (made, what)
    if made < tuning.ENOUGH and not result.too_few:
        say(f"{checks.counted(made, what, 'judged queries' if judged else None)} made this choice: small differences "
            "are chance")
    return replace(best, distill=settings.distill), sorted(result.tried, key=lambda entry: -entry[result.metric])


def table(tried: Sequence[dict[str, Any]], most: int = 12) -> list[str]:
    """Candidates as lines of a table.

    Args:
      tried: of `search`, or of `grid.sweep`.
      most: rows.

    Returns:
      Lines of columns, the names first; a last line says how many candidates are left out, where some are.

    Example:
      >>> table([{"method": "lsa", "dim": 25, "mrr": 0.5}, {"method": "opca", "dim": 100, "noise": 0.1, "mrr": 0.25}])
      ['method   dim  noise     mrr', 'lsa       25      -  0.5000', 'opca     100    0.1  0.2500']
      >>> table([{"dim": 25, "mrr": 0.5}, {"dim": 50, "mrr": 0.25}], most=1)
      ['dim     mrr', '25   0.5000', 'and 1 more']
    """
    every = [name for entry in tried for name in entry]
    names = list(dict.fromkeys([*(name for name in FREE if name in every), *(name for name in every if name in _NAMES),
                                *every]))  # fmt: skip
    rows = [names, *([_cell(name, entry.get(name)) for name in names] for entry in tried[:most])]
    widths = [max(len(row[column]) for row in rows) for column in range(len(names))]
    lines = ["  ".join(cell.rjust(width) if column else cell.ljust(width)
                       for column, (cell, width) in enumerate(zip(row, widths, strict=True))) for row in rows]
    left = len(tried) - most
    return [*lines, f"and {left} more"] if left > 0 else lines


def _cell(name: str, value) -> str:
    """A value of a candidate: a score, if it is no setting."""
    if value is None:
        return "-"
    if isinstance(value, str | bool):
        return str(value)
    return f"{value:g}" if name in _NAMES else f"{value:.1f}" if name == "seconds" else f"{value:.4f}"


class _Search:
    """The candidates that were tried, and the time that is left."""

    def __init__(self, texts, held, settings, free, judged, stop_by, by, begun, seconds, clock, say, unpaired):
        self.texts, self.held, self.clock, self.say, self.unpaired = texts, held, clock, say, unpaired
        self.settings, self.free = training.effective(replace(settings, distill=0.0), held), free
        self.distilled = settings.distill > 0  # what is chosen, after the search
        self.spelt = bool(settings.subwords)  # asked for, and not by default
        self.last = begun + seconds
        iterated = settings.method in S2NET or "method" in free
        self.end = begun + seconds * (_CLOSED if iterated else 1.0)
        self.metric = by if judged is None else judged.metric
        self.score = None if judged is None else lambda model: judged.best(model).score
        self.stop_by = stop_by
        self.ranks, self.counted = None, []  # in each set, left texts that have words to rank by
        if by == apart.METRIC:
            left = apart.without_shared(held.dev)
            self.ranks = apart.values(held.dev, left, held.sizes)
            self.counted = [sum(bool(left[row]) for row in rows)
                            for rows in held_out.spans(held.sizes or [len(left)])]
        self.found: dict[Settings, list[np.ndarray]] = {}  # what `ranks` has given
        self.beginning: Settings | None = None
        self.tried: list[dict[str, Any]] = []
        self.scores: list[tuple[float, Settings]] = []
        self.costs: dict[bool, float] = {}  # seconds of the fastest training in closed form, without and with n-grams
        self.untried: dict[str, list] = {}  # setting -> values for which no time was left
        self._weighted: tuple = ()

    @property
    def too_few(self) -> bool:
        """Whether hardly any left text has words to rank by, so that nothing can be chosen."""
        return max(self.counted, default=2) < 2

    def tell(self) -> None:
        """Says how many left texts choose."""
        if not self.counted:
            return
        some = f"{sum(self.counted):,} of {len(self.held.dev):,} held-out left texts"
        if not self.too_few:
            self.say(f"settings are chosen by {some}, those with words that their right texts lack")
            return
        self.say(f"no setting is chosen, those that a search begins with are taken: {some} have words that their right "
                 "texts lack. A title that its own text repeats has none: cut it out of the text, or choose by judged "
                 "queries")

    def run(self) -> Settings:
        """The best settings."""
        self.tell()
        given, several = self.settings, len(set(self.texts.pairs.languages)) > 1
        if self.ranks is not None:
            given = replace(given, **{name: value for name, value in SEARCH.items() if name in self.free})
        methods = tuple("cca" if several and method == "lsa" else method for method in METHODS)
        methods = tuple(method for method in methods if method in DISTILLED or not self.distilled)
        methods = methods if "method" in self.free else (given.method,)
        if self.too_few:
            return replace(given, method=methods[0], dim=self.first(given))
        self.begin(given, methods)
        for values in ({"subwords": (0.0, 0.5), "min_df": (1, 2)}, {"subwords": (0.75, 0.25)}):
            self.features(values)
        self.climb("noise")
        self.larger()
        self.end = self.last
        for method in methods:
            if method in S2NET and self.refined(method):
                self.climb("gamma", S2NET)
                self.climb("noise", S2NET)  # what is best for OPCA alone need not be best for a start
            elif method in S2NET:
                self.untried.setdefault("method", []).append(method)
        # SSI has no n-grams and nothing to distil.
        if "method" in self.free and not several and not self.spelt and not self.distilled:
            methods += (_LINKS,)
            self.linked()
        self.random()
        allowed = [entry for entry in self.scores if entry[1].method in methods]
        best = max(allowed or self.scores, key=lambda entry: round(entry[0], 4))[1]  # as they are shown
        if self.beginning in [settings for _, settings in allowed]:
            best = self.clearly(best)
        return best if allowed else replace(best, method=given.method)

    def begin(self, given: Settings, methods: tuple[str, ...]) -> None:
        """The first trainings, in closed form."""
        closed = ["opca" if method in S2NET else method for method in methods[:2]]
        for method in dict.fromkeys(closed):
            if not self.scores or self.allows(self.cost(given), method=method):
                self.closed(replace(given, method=method, dim=self.first(given)))
                self.beginning = self.beginning or self.scores[-1][1]  # at its largest dimension

    def clearly(self, best: Settings) -> Settings:
        """The best, or what a choice for a search has begun with, where it may be as good."""
        if self.ranks is None or best == self.beginning:
            return best
        difference, error = apart.gain(self.found[best], self.found[self.beginning])
        if difference > CHANCE * error:
            return best
        self.say("kept is what was tried first: the best is better by no more than chance may give "
                 f"({difference:.4f}, standard error {error:.4f})")
        return self.beginning

    def cost(self, settings: Settings) -> float:
        """Seconds that a training in closed form should take."""
        grams = settings.subwords > 0
        other = self.costs.get(not grams, 0.0)  # words alone take no longer
        return self.costs.get(grams, other * (_DEARER["subwords"] if grams else 1.0))

    def allows(self, seconds: float, **candidate) -> bool:
        """Whether so many seconds are left to try a value of a setting; where not, that is noted."""
        enough = self.clock() + seconds <= self.end
        for name, value in candidate.items() if not enough else ():
            self.untried.setdefault(name, []).append(value)
        return enough

    def best(self, methods: Sequence[str] | None = None) -> Settings:
        """The best settings so far, of some methods."""
        return max((entry for entry in self.scores if methods is None or entry[1].method in methods),
                   key=lambda entry: entry[0])[1]

    def top(self) -> float:
        """The best score so far."""
        return max(score for score, _ in self.scores)

    def first(self, given: Settings) -> int:
        """The dimension of the first trainings."""
        largest = FIRST if self.ranks is None else SEARCH["dim"]
        return largest if "dim" in self.free else given.dim

    def features(self, values: dict[str, tuple]) -> None:
        """N-grams and rare words, one after the other."""
        for name, candidates in values.items():
            if name not in self.free or name == "min_df" and len(self.held.rows) < training.RARE_COUNT:
                continue
            begin = self.best()
            for value in candidates:
                candidate = replace(begin, **{name: value}, dim=max(begin.dim, self.first(begin)))
                if value != getattr(begin, name) and self.allows(self.cost(candidate), **{name: value}):
                    self.closed(candidate)

    def climb(self, name: str, methods: Sequence[str] | None = None) -> None:
        """A setting of the best of some methods along its ladder, upwards and downwards, as long as it gains."""
        begin = self.best(methods)
        uses = next(field.option.methods for field in fields() if field.name == name)
        alone = methods is not None or "method" not in self.free
        needless = name == "noise" and alone and begin.start == STARTS[1]  # of no OPCA that is learned from
        if name not in self.free or begin.method not in uses or needless:
            return
        ladder = sorted({*LADDERS[name], getattr(begin, name)})
        said = f"{name} of S2Net's start" if name == "noise" and begin.method in S2NET else name
        for step in (1, -1):
            place, top = ladder.index(getattr(begin, name)) + step, self.top_of(begin)
            gained = False
            cost = 0 if begin.method in S2NET else self.cost(begin)
            while 0 <= place < len(ladder) and self.allows(cost, **{said: ladder[place]}):
                candidate = replace(begin, **{name: ladder[place]})
                score = self.refine(candidate) if begin.method in S2NET else self.closed(
                    replace(candidate, dim=max(begin.dim, self.first(begin))))
                if not score > top:
                    break
                top, place, gained = score, place + step, True
            if gained:
                return

    def top_of(self, settings: Settings) -> float:
        """The score of a candidate that was tried."""
        return next(score for score, tried in self.scores if tried == settings)

    def larger(self) -> None:
        """Dimensions above the first ones, where the largest of those was the best."""
        best = self.best()
        if "dim" in self.free and best.dim >= self.first(best) and self.allows(_DEARER["dim"] * self.cost(best),
                                                                               dim=DIMENSIONS[-1]):
            self.closed(replace(best, dim=DIMENSIONS[-1]))

    def weighted(self, settings: Settings):
        """The texts, weighed; those of the last settings are kept."""
        wanted = (settings.min_df, settings.subwords)
        if not self._weighted or self._weighted[0] != wanted:
            self._weighted = ()  # two of them may not fit
            quiet = self.say if not self.scores else _silent
            self._weighted = (wanted, training.weigh(self.texts, self.held, settings, quiet, unpaired=self.unpaired,
                                                     stop_by=self.stop_by))  # fmt: skip
        return self._weighted[1]

    def closed(self, settings: Settings) -> float:
        """The best score of a training in closed form, of all dimensions up to that of the settings."""
        begun = self.clock()
        weighted = self.weighted(settings)
        quiet = self.say if not self.scores else _silent
        params = training.fit(weighted, self.held, settings, None, False, quiet).fit.params
        width = parts.sides(params)[0].weights.shape[1]
        smaller = [dim for dim in DIMENSIONS if dim < width] if "dim" in self.free else []
        known = {tried for _, tried in self.scores}
        result = [self.record(replace(settings, dim=dim), truncate(params, dim), weighted)
                  for dim in (*smaller, width) if replace(settings, dim=dim) not in known]
        spent, grams = self.clock() - begun, settings.subwords > 0
        if settings.dim <= self.first(settings):
            self.costs[grams] = min(self.costs.get(grams, spent), spent)
        return max(result, default=-np.inf)

    def refined(self, method: str) -> bool:
        """Whether S2Net was tried from the best OPCA."""
        starts = [entry for entry in self.scores if entry[1].method == "opca"]
        if not starts or self.clock() >= self.end:
            return False
        best = max(starts, key=lambda entry: entry[0])[1]
        return self.refine(replace(best, method=method, gamma=self.settings.gamma)) > -np.inf

    def refine(self, settings: Settings) -> float:
        """The score of S2Net, as far as it comes in time; its own few iterations, where there is nothing to stop by."""
        weighted, kept, cut = self.weighted(settings), [], False
        score = training.validator(weighted, self.held, settings)

        def watched(params) -> float:
            value = score(params)
            if not kept or value > kept[0]:
                kept[:] = [value, params]
            if self.clock() > self.end:
                raise _Late
            return value

        try:
            whole = training.fit(weighted, self.held, settings, None, False, _silent, validate=score and watched,
                                 callback=None if score else self.watched)  # fmt: skip
            if score is None:
                kept = [None, whole.fit.params]
        except _Late:
            self.say("the budget ended during this training")
            cut = True
        return self.record(settings, kept[1], weighted, cut) if kept else -np.inf

    def watched(self, name: str, entry: dict) -> None:
        """Ends a training with the budget."""
        if self.clock() > self.end:
            raise _Late

    def linked(self) -> None:
        """SSI from the best OPCA's settings, if it comes in time; its own trainings choose b and the rate."""
        begin = replace(self.best(("opca",)), method=_LINKS, subwords=0.0, gamma=self.settings.gamma)
        if not self.allows(0, method=_LINKS):
            return

        weighted = self.weighted(begin)
        try:
            params = training.fit(weighted, self.held, begin, None, False, _silent, callback=self.watched).fit.params
        except _Late:
            self.untried.setdefault("method", []).append(_LINKS)
        except (ValueError, FloatingPointError) as error:  # pairs of which it has no negatives, say
            self.say(f"{_LINKS} cannot learn from these pairs: {error}")
        else:
            self.record(begin, params, weighted)

    def random(self) -> None:
        """The best S2Net from random numbers."""
        tried = [settings for _, settings in self.scores if settings.method in S2NET]
        if tried and "start" in self.free and self.allows(0, start=STARTS[1]):
            self.refine(replace(self.best(S2NET), start=STARTS[1]))

    def record(self, settings: Settings, params, weighted, cut: bool = False) -> float:
        """The score of a candidate; ``cut`` where the budget ended within its training."""
        learned = Learned(closed_form(params))
        if self.ranks is not None:
            self.found[settings] = self.ranks(training.assemble(weighted, learned, settings, self.held))
            score = apart.mean(self.found[settings])
        elif self.score is None:
            activation = settings.activation if settings.method in S2NET else "none"
            validator = linked.validator if settings.method in SSI else functools.partial(
                mates.validator, activation=s2net.activation_of(activation))  # fmt: skip
            score = float(held_out.averaged(validator, weighted.dev, self.held.sizes)(params))
        else:
            score = self.score(training.assemble(weighted, learned, settings, self.held))
        self.scores.append((score, settings))
        used = {field.name for field in fields() if settings.method in field.option.methods}
        entry = {name: getattr(settings, name) for name in FREE if name in used}
        self.tried.append({**entry, self.metric: round(score, 4)} | ({"cut": True} if cut else {}))
        self.say(", ".join(f"{name} {value}" for name, value in self.tried[-1].items() if name != "cut"))
        return score


def _silent(message: str) -> None:
    """Says nothing."""
