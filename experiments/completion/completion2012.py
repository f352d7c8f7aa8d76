"""Sentence completion (Zweig et al., ACL 2012): Table 6 on the Holmes questions and on SAT questions, and perplexities.

Tables: `holmes` has 1,040 questions from Sherlock Holmes books and 519 other novels, less seven second copies, to train
on; the first 520 questions are for development, ``accuracy`` is that of the last 520, ``accuracy@all`` that of all.
`sat` has 152 questions of SAT practice tests, with an encyclopedia, newswire, speeches and documentation as training
text in place of the paper's 1.1 billion words of newspapers; its halves have 76 questions, so ``accuracy@all`` is the
figure to look at where nothing is chosen. `sat-novels` has the same questions with the novels as training text, and
`sat-sources` the 3-gram model by source (Table 1; no text stands for Encarta). `sat-models`, `sat-lsa` and
`sat-combined` are Tables 2, 4 and 5, of the same fits as `sat`. `sat-equal` is Table 3: three million tokens of
sentences that hold an option, drawn at random from the text of `sat`, and the same vocabulary for all models;
`perplexity` the same on novels. Every figure counts a tie as an error.

The text of `sat` (function `general`) is the articles of Wikipedia for schools, Reuters newswire of 1987, the English
side of every third day of the European Parliament from 1996 to 2001, and the English pages of MDN and of other
documentation that have a Spanish translation. Left out of it are the novels, which `sat-novels` has alone; English
pages with a translation into other languages only; patents, product pages, abstracts and questions of the search
collections; single sentences of collections of paraphrases; dictionaries, thesauri and WordNet's glosses.

A single row chooses its settings by the first half of the questions (76 of SAT), which its ``accuracy@all`` contains;
only combinations are pooled over five folds, so that no question is answered by weights that it trained. The settings
of their inputs are still those of the first half. Claims about rows with such settings are therefore tested on the
second half, by weights of the first one; the paper's own test, of all questions, stands beside.

The rows that are trained step by step stand in `neural`, a function each, since they also have checkpoints and a curve:
the paper's recurrent network (`rnn-lm`) and a GRU (`gru`), from left to right; the former with a second one that reads
backward (`rnn-lm-both`); the published LSTM in one direction
(`lstm`) and in both (`lstm-both`), where there is an accelerator; a log-bilinear model of the words around a gap
(`log-bilinear`) beside gensim's continuous bag of words (`gensim-cbow`); Model M (`model-m`). A choice's score is the
log-probability of its sentence, or of the gap.

The paper has on Holmes, all questions: Good–Turing n-grams .39, a recurrent network .45, total similarity .49,
reconstruction .41, LSA-LM .42, their combination .52. Its best one blends total similarity, n-grams and the network;
`combination` here has no network; `combination-network` has it, and no record yet. One standard error is 1.5 points.
The row `combination-weighted` is the one that was tested once: its sets of inputs were fixed before, with the first
520 questions.

    JAXSIM_DATA=/path/to/corpora python -m experiments.completion.completion2012 --preset full
    python -m experiments.completion.completion2012 --preset quick --out /tmp/quick     # synthetic text and questions

Time: about an hour on one core, 3 GB; then an hour and a quarter of two cores for `rnn-lm` and `rnn-lm-both`, which
have two hours and which only their names ask for: give one of them to each core, and the second finds the first one's
network. The text is read once into runs/sentences.
"""

from __future__ import annotations

import dataclasses
import io as memory
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np

from experiments import kit
from experiments.completion import neural
from jaxsim import io
from jaxsim.data import doc_pairs, europarl, mdn, novels, questions, reuters21578, sentences, wikispeedia
from jaxsim.data.corpora.questions import Filled, Questions
from jaxsim.data.corpora.sentences import Sentences
from jaxsim.evaluate import completion
from jaxsim.methods.language import (
    combination,
    documents,
    lsa_lm,
    lsa_recon,
    lsa_totsim,
    ngram,
    pmi_weighted,
    pmi_window,
)
from jaxsim.optim import Fit, closed_form

ABOUT = {"holmes": ("MSR Sentence Completion Challenge", "same", "completion Table 6, Holmes"),
         "sat": ("SAT practice tests", "substitute: other SAT questions; an encyclopedia, newswire, speeches "
                 "and documentation for newspapers", "completion Table 6, SAT"),
         "sat-novels": ("SAT practice tests", "substitute: other SAT questions; novels for newspapers",
                        "completion Table 6, SAT")}  # fmt: skip
ABOUT |= {name: (*ABOUT["sat"][:2], f"completion Table {number}") for name, number in
          {"sat-sources": 1, "sat-models": 2, "sat-equal": 3, "sat-lsa": 4, "sat-combined": 5}.items()}
CACHE = Path(__file__).resolve().parents[2] / "runs" / "sentences"
RULES = 1  # by which texts were cut for the records; by later ones the novels have the same tokens, other texts do not
SEED = 0


@dataclass(frozen=True)
class Settings:
    """What a preset fixes. Where a field has several values, development questions choose.

    Attributes:
      order: Longest n-grams.
      min_count: Words that are rarer are unknown.
      dimensions: Of the words' space.
      eps: Pseudo-counts of mutual information.
      reach: How far from the blank words count, in tokens; 0 for the whole sentence.
      bands: Distances at which mutual information is counted apart, for the combination.
      shares: Weights of the words' space in the LSA language model.
      most: Sentences per option, at most, that the reconstruction reads.
      curve: Numbers of training tokens on the learning curve, whose last point has all tokens.
      train: Training tokens, at most, of the tables `perplexity` and `sat-equal`; None for all.
      rare: Share of the text up to which an option stands in the gaps that teach weights of mutual information.
      synthetic: Whether text and questions are made up.
    """

    order: int = 4
    min_count: int = 3
    dimensions: tuple[int, ...] = (50, 100, 200, 300, 400, 600)
    eps: tuple[float, ...] = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
    reach: tuple[int, ...] = (0, 10)
    bands: tuple[tuple[int, int], ...] = ((1, 3), (4, 10), (11, 25))
    shares: tuple[float, ...] = (0.003, 0.01, 0.03, 0.1, 0.3, 0.5)
    most: int = 1000
    curve: tuple[int, ...] = (1_000_000, 5_000_000, 10_000_000)
    train: int | None = None
    rare: float = 1e-4
    synthetic: bool = False


FULL = Settings()
NOVELS = Settings(order=3, dimensions=(100, 200, 300, 600), curve=())
SAT = dataclasses.replace(NOVELS, dimensions=(12, 25, 50, 100, 200, 300, 600), reach=(3, 5, 10, 20, 1000),
                          eps=(0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0))
EQUAL = dataclasses.replace(NOVELS, train=3_000_000)
HELD = 100_000
"""Held-out tokens of `sat-equal`."""
COMMON = 300
"""The most frequent words of the text: as a part of an option, these do not bring a sentence into `sat-equal`."""
QUICK = Settings(min_count=1, dimensions=(5, 10), eps=(0.1, 0.5), shares=(0.1, 0.3), most=50, curve=(2000,),
                 rare=1.0, synthetic=True)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Task:
    """Text, questions, and which of them are for development.

    Attributes:
      text: The training text.
      questions: In their order.
      filled: Every choice filled in.
      num_dev: How many of the first questions are for development.
      held: Held-out tokens for perplexity.
    """

    text: Sentences
    questions: Questions
    filled: Filled
    num_dev: int
    held: np.ndarray | None = None

    @property
    def known(self) -> str:
        """What fits of this task depend on: text and questions."""
        return f"{self.text.sha256} {self.questions.sha256}"


def load(name: str, settings: Settings) -> kit.Data:
    """Text and questions of a table."""
    if settings.synthetic:
        return synthetic(name)
    text = novel_text() if name in ("holmes", "sat-novels", "perplexity") else general_text()
    if name == "sat-equal":
        return equal_data(text, settings)
    if name == "perplexity":
        held = text.tokens[-500_000:]
        held = np.array(held[np.flatnonzero(held == sentences.START)[0] :])
        train = text.head(min(settings.train or len(text.tokens), len(text.tokens) - len(held)))
        asked = questions.load_holmes()
        content = Task(train, asked, questions.encode(asked, text.numbers), questions.NUM_DEV, held)
        counts = {"training_tokens": len(train.tokens), "held_out_tokens": len(held)}
        return kit.Data(content, "novels of the Sentence Completion Challenge", train.sha256[:64], counts=counts,
                        differs="substitute: novels for the Los Angeles Times", paper="completion Table 3")  # fmt: skip
    asked = questions.load_holmes() if name == "holmes" else questions.load_sat()
    filled = questions.encode(asked, text.numbers)
    num_dev = questions.NUM_DEV if name == "holmes" else len(asked) // 2
    counts = {**asked.counts, "texts": text.source["documents"],
              "sentences": text.source["sentences"], "tokens": text.source["tokens"],
              "words": len(text.vocabulary)}  # fmt: skip
    title, differs, paper = ABOUT[name]
    return kit.Data(Task(text, asked, filled, num_dev), title, asked.sha256, differs, counts, paper=paper)


def built(name: str, make: Callable[[Path], Sentences]) -> Sentences:
    """Sentences as numbers, read once and then kept."""
    folder = CACHE / f"{name}-{RULES}"
    return sentences.load(folder) if folder.exists() else make(folder)


def novel_text() -> Sentences:
    """The challenge's novels."""
    return built("novels", lambda out: novels.build(out, progress=True))


def general_text() -> Sentences:
    """What `general` yields."""
    return built("general", lambda out: sentences.build(general(), out, version=RULES, progress=True))


def source_text(name: str) -> Sentences:
    """The text of a row of `sat-sources`."""
    if name in ("novels", "all"):
        return novel_text() if name == "novels" else general_text()
    return built(name, lambda out: sentences.build(SOURCES[name](), out, version=RULES, progress=True))


def encyclopedia() -> Iterator[tuple[str, str]]:
    """Articles of Wikipedia for schools."""
    articles = wikispeedia.load()
    yield from zip(articles.ids, articles.texts, strict=True)


def newswire() -> Iterator[tuple[str, str]]:
    """Stories of Reuters of 1987."""
    for story in reuters21578.load().stories:
        yield f"reuters {story.number}", story.text


SOURCES = {"wikipedia": encyclopedia, "newspapers": newswire}


def equal_data(text: Sentences, settings: Settings) -> kit.Data:
    """Sentences that hold an option: the last ones held out, the others for every model alike (completion §5.3)."""
    asked = questions.load_sat()
    filled = questions.encode(asked, text.numbers)
    name = f"options-{settings.train}"
    some = built(name, lambda out: sentences.build(options_of(text, filled, settings.train), out, version=RULES))
    held = some.tokens[-HELD:]
    held = np.array(held[np.flatnonzero(held == sentences.START)[0] :])
    train = some.head(len(some.tokens) - len(held))
    content = Task(train, asked, questions.encode(asked, some.numbers), len(asked) // 2, held)
    counts = {**asked.counts, "training_tokens": len(train.tokens), "held_out_tokens": len(held),
              "words": some.size(settings.min_count)}
    title, differs, paper = ABOUT["sat-equal"]
    return kit.Data(content, title, train.sha256[:64], differs, counts, paper=paper)


def options_of(text: Sentences, filled: Filled, most: int) -> Iterator[tuple[str, str]]:
    """One document: as many sentences with an option, in random order, as have ``most`` tokens."""
    terms = documents.terms_of(filled, text)
    is_option = np.zeros(len(text.vocabulary), bool)
    is_option[terms.words[terms.options]] = True
    is_option[: len(sentences.MARKS) + COMMON] = False
    tokens = np.asarray(text.tokens)
    starts = np.flatnonzero(tokens == sentences.START)
    ends = np.append(starts[1:], len(tokens))
    order = np.random.default_rng(SEED).permutation(np.flatnonzero(np.add.reduceat(is_option[tokens], starts)))
    order = order[np.cumsum((ends - starts)[order]) <= most]
    yield "options", "\n\n".join(" ".join(text.vocabulary[number] for number in tokens[starts[at] + 1 : ends[at] - 1])
                                 for at in order)


def general() -> Iterator[tuple[str, str]]:
    """An encyclopedia for schools, newswire, sessions of a parliament, documentation: texts for SAT questions."""
    yield from encyclopedia()
    yield from newswire()
    for pairs in (europarl.load_blocks(range(1996, 2002)), mdn.load("es"), doc_pairs.load("es")):
        yield from zip(pairs.ids, pairs.left, strict=True)


def contained(text: Sentences, asked: Questions, filled: Filled) -> list[str]:
    """Names of the questions whose sentence, with its answer, stands in the text: all words in their order."""
    is_word = np.array([word[0].isalpha() for word in text.vocabulary])
    answered = filled.tokens[np.arange(len(asked)), asked.answers]
    # A sentence with a word that the text lacks cannot be in it.
    rows = {at: row[(row >= 0) & is_word[row]] for at, row in enumerate(answered)
            if not (row == sentences.UNKNOWN).any()}  # fmt: skip
    names, short, wanted = [], min(map(len, rows.values()), default=1), defaultdict(list)
    key = np.random.default_rng(SEED).integers(1, 2**61, (short, len(text.vocabulary)), dtype=np.int64)
    for number, row in rows.items():
        wanted[sum(int(key[at, row[at]]) for at in range(short)) % 2**63].append(number)
    listed = np.array(sorted(wanted), np.int64)
    for begin in range(0, len(text.tokens), 1 << 22):
        block = np.asarray(text.tokens[begin : begin + (1 << 22) + 200])
        block = block[is_word[block]]
        sums = sum(key[at][block[at : len(block) - short + 1 + at]] for at in range(short)) & (2**63 - 1)
        for place in np.flatnonzero(np.isin(sums, listed)):
            names += [asked.questions[at].name for at in wanted[int(sums[place])]
                      if np.array_equal(block[place : place + len(rows[at])], rows[at])]  # fmt: skip
    return sorted(set(names))


def synthetic(name: str) -> kit.Data:
    """Sentences of made-up topics, and questions whose answer is the word of the topic."""
    rng = np.random.default_rng(SEED)
    letters = "abcdefghij"
    topics = [[f"{letter}{a}{b}" for a in letters[:3] for b in letters[:4]] for letter in letters]
    frames = ["the {} and the {} met a {} near the {} .", "a {} of the {} saw {} in {} .", "{} , said the {} to {} ."]

    def sentence() -> tuple[list[str], int]:
        topic = int(rng.integers(len(topics)))
        frame = frames[int(rng.integers(len(frames)))]
        return frame.format(*rng.choice(topics[topic], frame.count("{}"), replace=False)).split(), topic

    lines = [" ".join(sentence()[0]) for _ in range(4000)]
    folder = CACHE / "synthetic"
    text = sentences.build([("synthetic", "\n\n".join(lines))], folder)
    rows = []
    for number in range(60):
        words, topic = sentence()
        places = [at for at, word in enumerate(words) if len(word) == 3 and word in topics[topic]]
        at = places[int(rng.integers(len(places)))]
        others = [word for other, listed in enumerate(topics) if other != topic for word in listed]
        choices = [words[at], *rng.choice(others, 4, replace=False)]
        order = rng.permutation(5)
        stem = " ".join([*words[:at], questions.BLANK, *words[at + 1 :]])
        rows.append(questions.question(stem, [str(choices[one]) for one in order], name=str(number),
                                       answer=int(np.flatnonzero(order == 0)[0])))  # fmt: skip
    asked = questions.collect(rows)
    held = np.array(text.tokens[-3000:])
    held = held[np.flatnonzero(held == sentences.START)[0] :]
    content = Task(text, asked, questions.encode(asked, text.numbers), 30, held)
    return kit.Data(content, "made-up topics", None, "synthetic: sentences of ten topics", counts=asked.counts)


def tested(table: kit.Table, scores: np.ndarray) -> dict:
    """What a `Row` says of the scores of all questions: 1 for a right answer, else 0; of the test half, all, dev."""
    task = table.data
    values = completion.correct(scores, task.questions.answers)
    parts = completion.halves(len(values), task.num_dev)
    result = {"per_query": {"accuracy": values[parts["test"]], "accuracy@all": values,
                            "accuracy@dev": values[parts["dev"]]}}  # fmt: skip
    if len(set(task.questions.num_blanks)) > 1:
        blanks = task.questions.num_blanks
        result["by_group"] = {name: {"accuracy@all": float(values[blanks == number].mean())}
                              for number, name in ((1, "one blank"), (2, "two blanks"))}  # fmt: skip
        right = completion.correct(scores, corrected(task.questions))
        result["by_group"]["with the key of question 133 corrected"] = {"accuracy@all": float(right.mean())}
    return result


def corrected(asked: Questions) -> np.ndarray:
    """Answers with the one wrong key put right."""
    return np.array([questions.MISKEYED.get(one.name, one.answer) for one in asked.questions])


def dev_accuracy(table: kit.Table, scores: np.ndarray) -> float:
    """Accuracy on the development questions."""
    task = table.data
    return float(completion.correct(scores, task.questions.answers)[: task.num_dev].mean())


def chance(table: kit.Table) -> kit.Row:
    """Five choices drawn at random; and whether sentences of the questions stand in the training text."""
    task = table.data
    inside = contained(task.text, task.questions, task.filled)
    if table.name == "holmes" and not table.settings.synthetic and inside not in ([], ["593"]):
        # Number 593, "What is the meaning of it all", is a commonplace.
        raise ValueError(f"novels: expected none of the questions but a commonplace, got questions {inside[:5]}")
    scores = np.random.default_rng(SEED).random(task.filled.tokens.shape[:2])
    return kit.Row({"seed": SEED, "questions whose sentence is in the training text": inside}, **tested(table, scores))


def token_logs(task: Task, *, smoothing: str, order: int, min_count: int, tokens: int | None = None) -> Fit:
    """Log-probabilities of all tokens of the questions under an n-gram model, which itself is not kept."""
    text = task.text if tokens is None else task.text.head(tokens)
    model = ngram.fit(text, smoothing=smoothing, order=order, min_count=min_count).params
    inside = task.filled.tokens >= 0
    values = np.zeros(task.filled.tokens.shape, np.float32)
    values[inside] = ngram.log_probs(model, task.filled.tokens[inside])
    return closed_form({"values": values, "ngrams": [len(part) for part in model.log_prob],
                        "discounts": [list(part) for part in model.discounts]})  # fmt: skip


def logs_of(table: kit.Table, smoothing: str, *, order: int | None = None, tokens: int | None = None) -> Mapping:
    """The kept log-probabilities under an n-gram model."""
    settings, task = table.settings, table.data
    function = cached(token_logs, task)
    return table.fit(function, reads=[task.known, ngram.VERSION])(
        smoothing=smoothing, order=order or settings.order, min_count=settings.min_count, tokens=tokens).params


def cached(function: Callable, task: Task) -> Callable:
    """A function of the task and settings as one of settings alone: the task is known to the cache by its digests."""

    def of_settings(**settings) -> Fit:
        return function(task, **settings)

    of_settings.__name__ = of_settings.__qualname__ = function.__name__
    of_settings.__module__ = function.__module__
    return of_settings


def ngrams(table: kit.Table, smoothing: str) -> kit.Row:
    """A back-off model of the training text, the orders up to the table's, and a learning curve. Nothing is chosen."""
    settings, task = table.settings, table.data
    params = logs_of(table, smoothing)
    scores = params["values"].astype(np.float64).sum(axis=-1)
    curve = [{"tokens": len(task.text.tokens), "split": "test",
              "accuracy@all": float(completion.correct(scores, task.questions.answers).mean())}]
    for tokens in settings.curve[::-1]:
        points = logs_of(table, smoothing, tokens=tokens)["values"].astype(np.float64).sum(axis=-1)
        values = completion.accuracies(points, task.questions.answers, num_dev=task.num_dev)
        curve.insert(0, {"tokens": tokens, "accuracy@all": values["accuracy@all"], "split": "test"})
    config = {"smoothing": smoothing, "order": settings.order, "min_count": settings.min_count,
              "ngrams": params["ngrams"]}  # fmt: skip
    return kit.Row(config, **tested(table, scores), curve=curve, methods=(ngram,))


def good_turing(table: kit.Table) -> kit.Row:
    """Katz's back-off model with Good-Turing discounts (completion §3.1)."""
    return ngrams(table, "good-turing")


def kneser_ney(table: kit.Table) -> kit.Row:
    """Interpolated modified Kneser-Ney, which the paper lacks."""
    return ngrams(table, "kneser-ney")


def window_scores(task: Task, *, window: tuple[int, int], eps: tuple[float, ...], reach: tuple[int, ...]) -> Fit:
    """Mutual information within a window, ``[num_eps, num_reach, num_questions, num_choices]``."""
    params = pmi_window.fit(task.text, task.filled, window=window).params
    return closed_form(np.array([[pmi_window.scores(params._replace(eps=one, reach=far), task.filled) for far in reach]
                                 for one in eps]))  # fmt: skip


def near(table: kit.Table, window: tuple[int, int]) -> tuple[np.ndarray, kit.Choice]:
    """Mutual information within a window, with the pseudo-count and the reach that development questions choose."""
    settings, task = table.settings, table.data
    make = table.fit(cached(window_scores, task), reads=[task.known, pmi_window.VERSION])
    values = make(window=window, eps=settings.eps, reach=settings.reach).params
    scores = {(eps, reach): values[at, far] for at, eps in enumerate(settings.eps)
              for far, reach in enumerate(settings.reach)}  # fmt: skip
    choice = kit.choose([{"eps": eps, "reach": reach} for eps, reach in scores],
                        lambda eps, reach: dev_accuracy(table, scores[eps, reach]), by="accuracy@dev",
                        split="dev")  # fmt: skip
    return scores[choice.best["eps"], choice.best["reach"]], choice


def pmi_scores(table: kit.Table) -> tuple[np.ndarray, kit.Choice]:
    """Mutual information within ten words."""
    return table.once("pmi", lambda: near(table, (1, 10)))


def bands(table: kit.Table, most: int) -> list[np.ndarray]:
    """Mutual information at the first ``most`` bands of distances, an input each."""
    return [table.once(("band", window), lambda window=window: near(table, window)[0])
            for window in table.settings.bands[:most]]  # fmt: skip


def pmi(table: kit.Table) -> kit.Row:
    """Pointwise mutual information of a choice with the words within ten tokens (ours). Chosen: `eps`, `reach`."""
    scores, choice = pmi_scores(table)
    return kit.Row({"window": 10, **choice.best}, **tested(table, scores), dev={"grid": choice.tried},
                   methods=(pmi_window,))  # fmt: skip


def weighted_scores(task: Task, *, rare: float) -> Fit:
    """Scores by mutual information with weights from the text."""
    fit = pmi_weighted.fit(task.text, task.filled, key=jax.random.key(SEED), rare=rare)
    return fit._replace(params=pmi_weighted.scores(fit.params, task.filled))


def weighted_fit(table: kit.Table) -> Fit:
    """The kept fit, whose params are the scores."""
    make = table.fit(cached(weighted_scores, table.data), reads=[table.data.known, pmi_weighted.VERSION])
    return table.once("pmi-weighted", lambda: make(rare=table.settings.rare))


def weighted(table: kit.Table) -> kit.Row:
    """Mutual information by distance, with stems, its weights learned from gaps of the training text (ours).

    No question teaches the weights. Which inputs there are was settled on the development questions alone.
    """
    fit = weighted_fit(table)
    return kit.Row({"gaps": 25_000, "rare": table.settings.rare, "l2": 0.01}, **tested(table, fit.params),
                   fit=fit._replace(params=None), methods=(pmi_weighted,))  # fmt: skip


def word_space(task: Task, *, k: int) -> Fit:
    """The words' space of the sentences that hold an option, rows of U."""
    terms = documents.terms_of(task.filled, task.text)
    found = documents.collect(task.text, terms)
    size = len(terms.words)
    return lsa_totsim.fit(found, k=min(k, size - 1), scaled=False, key=jax.random.key(SEED))


def space_of(table: kit.Table) -> lsa_totsim.WordVectors:
    """The kept space with the most dimensions of the grid."""
    k = max(table.settings.dimensions)
    reads = [table.data.known, lsa_totsim.VERSION]
    return table.once("space", lambda: table.fit(cached(word_space, table.data), reads=reads)(k=k).params)


def lsa_inputs(table: kit.Table, *, scaled: bool) -> tuple[np.ndarray, kit.Choice]:
    """The three inputs of the words' space; development questions choose its dimensions by total similarity.

    They are total similarity, the cosine of the sums of vectors of a choice and of the rest, and how many words of the
    choice have no vector.
    """
    space, inputs = space_of(table), {}

    def score(k: int) -> float:
        inputs[k] = lsa_totsim.inputs(space.cut(k, scaled=scaled), table.data.filled)
        return dev_accuracy(table, inputs[k][..., 0])

    choice = kit.choose([{"k": k} for k in table.settings.dimensions if k <= len(space.singular)], score,
                        by="accuracy@dev", split="dev")  # fmt: skip
    points = [{"k": k, "accuracy@all": float(completion.correct(values[..., 0], table.data.questions.answers).mean()),
               "split": "test"} for k, values in inputs.items()]  # fmt: skip
    table.once(("lsa curve", scaled), lambda: points)
    return inputs[choice.best["k"]], choice


def similarity(table: kit.Table, *, scaled: bool) -> kit.Row:
    """Total similarity (completion §4.1): the sum of cosines of a choice with the other words of the sentence."""
    inputs, choice = table.once(("lsa", scaled), lambda: lsa_inputs(table, scaled=scaled))
    points = table.once(("lsa curve", scaled), list)
    return kit.Row({**choice.best, "rows": "US" if scaled else "U"}, **tested(table, inputs[..., 0]),
                   curve=[*choice.tried, *points], dev={"grid": choice.tried}, methods=(lsa_totsim,))  # fmt: skip


def total_u_300(table: kit.Table) -> kit.Row:
    """Rows of U with 300 dimensions, whatever development questions say."""
    space = space_of(table)
    k = min(300, len(space.singular))
    values = lsa_totsim.inputs(space.cut(k, scaled=False), table.data.filled)[..., 0]
    return kit.Row({"k": k, "rows": "U"}, **tested(table, values), methods=(lsa_totsim,))


def total_us(table: kit.Table) -> kit.Row:
    """Total similarity with rows of US, as the paper has it."""
    return similarity(table, scaled=True)


def total_u(table: kit.Table) -> kit.Row:
    """Total similarity with rows of U: directions of equal weight."""
    return similarity(table, scaled=False)


def reconstruction_errors(
    task: Task, *, unit_length: bool, most: int, checkpoint: Path, longest: int = 3
) -> Fit:
    """Reconstruction errors of all choices; ``checkpoint`` keeps those that are done."""
    checkpoint.mkdir(parents=True, exist_ok=True)
    path = checkpoint / "errors.npy"
    rows = list(np.load(path)) if path.exists() else []
    start = np.array(rows) if rows else None
    found = documents.collect(task.text, documents.terms_of(task.filled, task.text, longest=longest))

    def done(at: int, errors: np.ndarray) -> None:
        rows.append(errors)
        if len(rows) % 50 == 0:
            content = memory.BytesIO()
            np.save(content, np.array(rows))
            io.write_bytes(path, content.getvalue())

    return closed_form(lsa_recon.errors(found, task.filled, unit_length=unit_length, most=most, start=start, done=done,
                                        rng=np.random.default_rng(SEED), progress=True))  # fmt: skip


def recon_scores(table: kit.Table) -> tuple[np.ndarray, kit.Choice]:
    """Negative reconstruction errors. Development questions choose from three combinations of two settings.

    The settings are the longest terms (1: words; 3: n-grams of up to three words as well), and whether documents are
    scaled to unit length.
    """
    task, scores = table.data, {}
    make = table.fit(cached(reconstruction_errors, task), reads=[task.known, lsa_recon.VERSION], checkpoint=True)

    def score(longest: int, unit_length: bool) -> float:
        words = {} if longest == 3 else {"longest": longest}
        scores[longest, unit_length] = -make(unit_length=unit_length, most=table.settings.most, **words).params
        return dev_accuracy(table, scores[longest, unit_length])

    grid = [{"longest": longest, "unit_length": unit} for longest, unit in ((1, True), (3, True), (3, False))]
    choice = kit.choose(grid, score, by="accuracy@dev", split="dev")
    return scores[choice.best["longest"], choice.best["unit_length"]], choice


def recon(table: kit.Table) -> kit.Row:
    """Reconstruction error in a space made for each question (completion §4.2). Chosen: as `recon_scores` says."""
    scores, choice = table.once("recon", lambda: recon_scores(table))
    return kit.Row({"factor": 1.2, "most": table.settings.most, **choice.best}, **tested(table, scores),
                   dev={"grid": choice.tried}, methods=(lsa_recon.errors,))  # fmt: skip


def lsa_lm_scores(table: kit.Table) -> tuple[np.ndarray, kit.Choice]:
    """The Good-Turing model mixed with the words' space.

    Chosen on development questions: rows of US or of U, each with the dimensions that `lsa_inputs` chose, and the
    weight of the space.
    """
    task, scores = table.data, {}
    logs = logs_of(table, "good-turing")["values"]
    shares = {}
    for scaled in (True, False):
        _, choice = table.once(("lsa", scaled), lambda scaled=scaled: lsa_inputs(table, scaled=scaled))
        vectors = space_of(table).cut(choice.best["k"], scaled=scaled)
        shares[scaled] = lsa_lm.history_shares(vectors, task.filled)

    def score(scaled: bool, share: float) -> float:
        scores[scaled, share] = lsa_lm.mixed(logs, shares[scaled], task.filled, share=share)
        return dev_accuracy(table, scores[scaled, share])

    grid = [{"scaled": scaled, "share": share} for scaled in (True, False) for share in table.settings.shares]
    choice = kit.choose(grid, score, by="accuracy@dev", split="dev")
    return scores[choice.best["scaled"], choice.best["share"]], choice


def lsa_language_model(table: kit.Table) -> kit.Row:
    """LSA-LM (completion §4.3): Good-Turing n-grams mixed with the words' space. Chosen: its rows and its weight."""
    scores, choice = table.once("lsa-lm", lambda: lsa_lm_scores(table))
    return kit.Row(choice.best, **tested(table, scores), dev={"grid": choice.tried}, methods=(lsa_lm.mixed,))


def paper_inputs(table: kit.Table) -> list[np.ndarray]:
    """The paper's systems: three inputs of the space, reconstruction, the n-gram model and LSA-LM."""
    space, _ = table.once(("lsa", False), lambda: lsa_inputs(table, scaled=False))
    errors, _ = table.once("recon", lambda: recon_scores(table))
    mixture, _ = table.once("lsa-lm", lambda: lsa_lm_scores(table))
    return [*np.moveaxis(space, -1, 0), combination.signed_log(errors), language(table, "good-turing"), mixture]


def language(table: kit.Table, smoothing: str) -> np.ndarray:
    """Log-probabilities of the sentences."""
    return logs_of(table, smoothing)["values"].astype(np.float64).sum(axis=-1)


def combined(table: kit.Table, inputs: Mapping[str, Iterable[np.ndarray]]) -> kit.Row:
    """A combination by RankNet. Chosen: the set of inputs, by the cross-validated loss on development questions.

    For ``accuracy``, weights are trained on the development questions. For ``accuracy@all`` and ``accuracy@dev``, the
    questions of each of five folds are answered with weights trained on the other folds.
    """
    task, key = table.data, jax.random.key(SEED)
    answers, dev = task.questions.answers, slice(0, task.num_dev)
    tried, stacks = [], {}
    for name, columns in inputs.items():
        stacks[name] = np.stack(list(columns), axis=-1)
        l2, losses = combination.choose(stacks[name][dev], answers[dev], key=key)
        tried.append({"inputs": name, "l2": l2, "loss": min(entry["loss"] for entry in losses)})
    best = min(tried, key=lambda entry: entry["loss"])
    stack = stacks[best["inputs"]]
    fit = combination.fit(stack[dev], answers[dev], l2=best["l2"])
    result = tested(table, combination.scores(fit.params, stack))
    pooled, chosen = combination.pooled(stack, answers, key=key)
    folds = tested(table, pooled)
    result["per_query"]["accuracy@all"] = folds["per_query"]["accuracy@all"]
    result["per_query"]["accuracy@dev"] = folds["per_query"]["accuracy@dev"]
    if "by_group" in folds:
        result["by_group"] = folds["by_group"]
    config = {**{name: best[name] for name in ("inputs", "l2")},
              "weights": [round(float(weight), 4) for weight in fit.params.weights],
              "l2_of_folds": chosen, "accuracy": "trained on the development questions",
              "accuracy@all, accuracy@dev": "pooled over five folds, none tested on its training part"}  # fmt: skip
    return kit.Row(config, **result, dev={"grid": tried}, fit=fit, methods=(combination,))


def equal(table: kit.Table) -> kit.Table:
    """The table `sat-equal`, for rows of other tables: their networks and Model M are trained on its text alone."""
    def make() -> kit.Table:
        data = load("sat-equal", EQUAL)
        return dataclasses.replace(table, name="sat-equal", settings=EQUAL, loaded=data, _made={})

    return table.once("equal", make)


def small_network(table: kit.Table) -> kit.Row:
    """The recurrent network, trained on the text of `sat-equal`."""
    return neural.recurrent(equal(table), tested, "tanh", perplexity=False)


def small_exponential(table: kit.Table) -> kit.Row:
    """Model M, trained on the text of `sat-equal`."""
    return dataclasses.replace(neural.exponential(equal(table), tested), metrics={})


def with_network(table: kit.Table) -> kit.Row:
    """The three inputs, the Good-Turing model and the recurrent network (completion Table 5)."""
    space, _ = table.once(("lsa", False), lambda: lsa_inputs(table, scaled=False))
    network = neural.last_scores(neural.network_fit(equal(table), "tanh"))
    return combined(table, {"space, ngram-gt, rnn": [*np.moveaxis(space, -1, 0), language(table, "good-turing"),
                                                     network]})


def of_source(name: str) -> Callable[[kit.Table], kit.Row]:
    """A row of `sat-sources`: Good-Turing n-grams of one source of training text. Nothing is chosen."""
    def row(table: kit.Table) -> kit.Row:
        text, settings, asked = source_text(name), table.settings, table.data.questions
        task = dataclasses.replace(table.data, text=text, filled=questions.encode(asked, text.numbers))
        params = table.fit(cached(token_logs, task), reads=[task.known, ngram.VERSION])(
            smoothing="good-turing", order=settings.order, min_count=settings.min_count, tokens=None).params
        scores = params["values"].astype(np.float64).sum(axis=-1)
        ties = int(((scores == scores.max(axis=1, keepdims=True)).sum(axis=1) > 1).sum())
        config = {"order": settings.order, "min_count": settings.min_count, "texts": text.source["documents"],
                  "tokens": len(text.tokens), "ngrams": params["ngrams"], "ties": ties}
        return kit.Row(config, **tested(table, scores), methods=(ngram,), notes=[
            f"In {ties} questions the best choices tie, mostly as words that this text lacks; a tie is an error."])

    return row


def three_inputs(table: kit.Table) -> kit.Row:
    """The three inputs of the words' space alone (completion Table 5)."""
    space, _ = table.once(("lsa", False), lambda: lsa_inputs(table, scaled=False))
    return combined(table, {"space": np.moveaxis(space, -1, 0)})


def space_and_ngram(table: kit.Table) -> kit.Row:
    """The three inputs and the Good-Turing model (completion Table 5)."""
    space, _ = table.once(("lsa", False), lambda: lsa_inputs(table, scaled=False))
    return combined(table, {"space, ngram-gt": [*np.moveaxis(space, -1, 0), language(table, "good-turing")]})


def paper_combination(table: kit.Table) -> kit.Row:
    """The paper's systems without its recurrent network."""
    return combined(table, {"space, recon, ngram-gt, lsa-lm": paper_inputs(table)})


def network_combination(table: kit.Table) -> kit.Row:
    """The paper's systems with its recurrent network."""
    network = neural.last_scores(neural.network_fit(table, "tanh"))
    return combined(table, {"space, recon, ngram-gt, lsa-lm, rnn": [*paper_inputs(table), network]})


def best_combination(table: kit.Table) -> kit.Row:
    """The paper's kinds of inputs and ours: mutual information, also near and farther apart, and Kneser-Ney."""
    scores, _ = pmi_scores(table)
    katz, kn = language(table, "good-turing"), language(table, "kneser-ney")
    space, _ = table.once(("lsa", False), lambda: lsa_inputs(table, scaled=False))
    space = list(np.moveaxis(space, -1, 0))
    return combined(table, {"pmi-window, ngram-gt": [scores, katz], "pmi-window, mkn, space": [scores, kn, *space],
                            "two pmi bands, mkn": [*bands(table, 2), kn],
                            "two pmi bands, mkn, space": [*bands(table, 2), kn, *space]})  # fmt: skip


def band_combination(table: kit.Table) -> kit.Row:
    """Mutual information within ten words and at bands of distances, both n-gram models and the words' space.

    The row was added after the test figure of `best_combination` had been seen, so that its own is optimistic.
    """
    scores, _ = pmi_scores(table)
    katz, kn = language(table, "good-turing"), language(table, "kneser-ney")
    space, _ = table.once(("lsa", False), lambda: lsa_inputs(table, scaled=False))
    several = bands(table, len(table.settings.bands))
    common = [scores, kn, katz, *np.moveaxis(space, -1, 0)]
    return combined(table, {"pmi-window, far pmi, mkn, ngram-gt, space": [*common, several[-1]],
                            "pmi-window, pmi bands, mkn, ngram-gt, space": [*common, *several]})  # fmt: skip


def weighted_combination(table: kit.Table) -> kit.Row:
    """The weighted mutual information with the n-gram models, the window and the words' space.

    The four sets of inputs were written down before any of them was tested; one run took the set with the lowest
    held-out loss on the development questions to the last 520.
    """
    ours, (window, _) = weighted_fit(table).params, pmi_scores(table)
    katz, kn = language(table, "good-turing"), language(table, "kneser-ney")
    space, _ = table.once(("lsa", False), lambda: lsa_inputs(table, scaled=False))
    space = list(np.moveaxis(space, -1, 0))
    return combined(table, {"pmi-weighted, mkn": [ours, kn], "pmi-weighted, mkn, space": [ours, kn, *space],
                            "pmi-weighted, mkn, ngram-gt, pmi-window": [ours, kn, katz, window],
                            "pmi-weighted, mkn, ngram-gt, pmi-window, space": [ours, kn, katz, window,
                                                                               *space]})  # fmt: skip


def trained_combination(table: kit.Table) -> kit.Row:
    """Mutual information at bands of distances and Kneser-Ney with the log-bilinear model and the GRU."""
    kn, trained = language(table, "kneser-ney"), neural.inputs(table)
    space, _ = table.once(("lsa", False), lambda: lsa_inputs(table, scaled=False))
    several = bands(table, len(table.settings.bands))
    return combined(table, {"pmi bands, mkn, log-bilinear": [*several, kn, trained[0]],
                            "pmi bands, mkn, log-bilinear, gru": [*several, kn, *trained],
                            "pmi bands, mkn, space, log-bilinear, gru": [*several, kn, *trained,
                                                                         *np.moveaxis(space, -1, 0)]})  # fmt: skip


def held_out(task: Task, *, smoothing: str, order: int, min_count: int) -> Fit:
    """Perplexity of an n-gram model on the held-out text."""
    model = ngram.fit(task.text, smoothing=smoothing, order=order, min_count=min_count).params
    return closed_form(ngram.perplexity(ngram.log_probs(model, task.held), task.held))


def perplexity(table: kit.Table, smoothing: str) -> kit.Row:
    """Perplexity on held-out sentences (completion Table 3): ends of sentences are tokens, rare words are one word."""
    task, settings = table.data, table.settings
    make = table.fit(cached(held_out, task), reads=[task.known, ngram.VERSION])
    value = make(smoothing=smoothing, order=settings.order, min_count=settings.min_count).params
    answers = tested(table, language(table, smoothing)) if table.name == "sat-equal" else {}
    return kit.Row({"smoothing": smoothing, "order": settings.order, "min_count": settings.min_count},
                   **answers, metrics={"perplexity": float(value)}, methods=(ngram,))  # fmt: skip


def perplexity_katz(table: kit.Table) -> kit.Row:
    """Katz with Good-Turing discounts."""
    return perplexity(table, "good-turing")


def perplexity_kneser_ney(table: kit.Table) -> kit.Row:
    """Modified Kneser-Ney."""
    return perplexity(table, "kneser-ney")


ROWS = {"chance": chance, "pmi-window": pmi, "lsa-totsim": total_us, "lsa-totsim-u": total_u,
        "lsa-3-input": three_inputs, "ngram-gt": good_turing, "lsa+ngram-gt": space_and_ngram, "mkn": kneser_ney,
        "lsa-lm": lsa_language_model, "lsa-recon": recon, "combination": paper_combination,
        "combination-best": best_combination, "combination-bands": band_combination}  # fmt: skip
PERPLEXITY = {"ngram-gt": perplexity_katz, "mkn": perplexity_kneser_ney}
HOLMES = ROWS | {"lsa-totsim-u-300": total_u_300, "pmi-weighted": weighted,
                 "combination-weighted": weighted_combination}
HOLMES |= neural.rows(tested) | {"combination-trained": trained_combination,
                                 "combination-network": network_combination}
PERPLEXITY["model-m"] = lambda table: neural.exponential(table, tested)
EQUAL_ROWS = PERPLEXITY | {"rnn-lm": lambda table: neural.recurrent(table, tested, "tanh")}
TABLES = {"holmes": kit.Plan(HOLMES, {"quick": QUICK, "full": FULL, "accelerator": FULL},
                            on_request=("accelerator",),
                            rows_on_request=("rnn-lm", "rnn-lm-both", "gru", "gensim-cbow", "combination-trained",
                                             "combination-network"), needs=neural.NEEDS),
          "sat": kit.Plan(ROWS | {"rnn-lm": small_network}, {"full": SAT}),
          "sat-novels": kit.Plan(ROWS, {"full": NOVELS}),
          "sat-sources": kit.Plan({name: of_source(name) for name in (*SOURCES, "novels", "all")}, {"full": NOVELS}),
          "sat-equal": kit.Plan(EQUAL_ROWS, {"quick": Settings(order=3, min_count=1, synthetic=True), "full": EQUAL},
                                rows_on_request=("model-m", "rnn-lm")),
          "sat-models": kit.Plan({"ngram-gt": good_turing, "model-m": small_exponential, "rnn-lm": small_network,
                                  "lsa-lm": lsa_language_model}, {"full": SAT}),
          "sat-lsa": kit.Plan({"lsa-totsim": total_us, "lsa-totsim-u": total_u, "lsa-recon": recon}, {"full": SAT}),
          "sat-combined": kit.Plan({"lsa-3-input": three_inputs, "lsa+ngram-gt": space_and_ngram,
                                    "combination": with_network}, {"full": SAT}),
          "perplexity": kit.Plan(PERPLEXITY, {"quick": Settings(order=3, min_count=1, synthetic=True),
                                              "full": Settings(order=3, train=5_000_000)},
                                rows_on_request=("model-m",))}  # fmt: skip

PRINTED = {"ngram-gt": (0.42, 0.39), "rnn-lm": (0.42, 0.45), "lsa-totsim": (0.46, 0.49), "lsa-recon": (0.41, 0.41),
           "lsa-lm": (0.44, 0.42), "combination": (0.53, 0.52), "lsa+ngram-gt": (0.53,)}  # fmt: skip
NAMES = {"ngram-gt": "the Good–Turing n-gram model", "lsa-totsim": "LSA total similarity",
         "lsa-totsim-u": "LSA total similarity, here with rows of U,", "lsa-recon": "the reconstruction error",
         "lsa-lm": "the LSA language model", "rnn-lm": "the recurrent network",
         "combination": "the combination",
         "lsa+ngram-gt": "the combination of LSA and n-grams"}  # fmt: skip
CHOSEN = {"lsa-totsim", "lsa-totsim-u", "lsa-recon", "lsa-lm", "combination", "lsa+ngram-gt"}
"""Rows with a setting, or with weights, that the first half of the questions chose."""
CAPPED = "the network stops after four passes, its cap, with held-out perplexity still falling"


WHY = {
    ("lsa-totsim", "ngram-gt", "holmes"): "similarities with rows of US as printed. With rows of U the same method "
                                          "answers more than the n-grams (row `lsa-totsim-u`, .485)",
    ("lsa-totsim", "rnn-lm", "holmes"): "as against the n-grams: rows of US; with rows of U the same method is level "
                                        "with the network (.485 and .467)",
    **{("lsa-totsim", row, "holmes"): f"as against the n-grams: rows of US; with rows of U the same method has .485, "
                                      f"and {NAMES[row]} {ours}, where the paper has {printed}"
       for row, ours, printed in (("lsa-recon", ".521", ".41"), ("lsa-lm", ".398", ".42"))},
    ("combination", "lsa-recon", "holmes"): "level: the reconstruction error alone has .521 here, where the paper has "
                                            ".41, and the combination .517",
    ("combination", "rnn-lm", "holmes"): "the difference is .05, the paper's .07: 520 questions show it before p is "
                                         "adjusted for the ledger, not after",
    ("lsa-lm", "ngram-gt", "holmes"): "not known; 520 questions would show the paper's difference, .03",
    ("lsa-totsim", "ngram-gt", "sat"): "both are near chance (.2): 76 questions, and 43 million words to train on "
                                       "in place of 1.1 billion words of newspapers",
}
"""Why a verdict is against the paper, as far as the records tell."""


def above(better: str, worse: str, tables: tuple[str, ...], place: str) -> kit.Claim:
    """That one row answers more questions than another, none of which chose its settings.

    The paper's test, McNemar's at level .02, is of all questions, and so are its figures.
    """
    column = 0 if tables[0] == "sat" else 1
    metric = "accuracy" if CHOSEN.intersection((better, worse)) else "accuracy@all"
    return kit.Claim(f"completion-{tables[0]}-{better}-{worse}", place=place, tables=tables, better=better, worse=worse,
                     sentence=f"{NAMES[better]} answers more questions than {NAMES[worse]}", metric=metric,
                     printed={row: PRINTED[row.removesuffix("-u")][column] for row in (better, worse)}, test="mcnemar",
                     metric_of_test="accuracy@all", alpha=0.02, own=better.endswith("-u"),
                     why=_why(better, worse, tables))  # fmt: skip


def _why(better: str, worse: str, tables: tuple[str, ...]) -> dict[str, str]:
    if (better, worse, tables[0]) == ("lsa-totsim-u", "ngram-gt", "sat"):
        return {"sat": "the difference, .1, is more than twice the paper's; 76 questions do not show it"}
    return {table: WHY[better, worse, table] for table in tables if (better, worse, table) in WHY}


def less_perplexed(better: str, worse: str, printed: tuple[float, float]) -> kit.Claim:
    """That one model has a lower perplexity than another on the same text; one figure each, so no test."""
    def holds(rows) -> tuple[bool, str]:
        low, high = (rows[row]["metrics"]["perplexity"]["mean"] for row in (better, worse))
        return low < high, f"{better} {low:.1f}, {worse} {high:.1f}"

    names = {**NAMES, "model-m": "Model M"}
    return kit.Claim(f"completion-sat-equal-{better}-{worse}", place="completion §5.3, Table 3", tables=("sat-equal",),
                     better=better, worse=worse, metric="perplexity", lower=True, holds=holds,
                     why={"sat-equal": CAPPED} if better == "rnn-lm" else {},
                     printed=dict(zip((better, worse), printed, strict=True)),
                     sentence=f"{names[better]} has a lower perplexity than {names[worse]}")  # fmt: skip


CLAIMS = [
    above("lsa-totsim", "ngram-gt", ("holmes",), "completion §6, Table 6"),
    above("lsa-totsim-u", "ngram-gt", ("holmes",), "completion §6, Table 6"),
    above("lsa-totsim", "rnn-lm", ("holmes",), "completion §6, Table 6"),
    above("rnn-lm", "ngram-gt", ("holmes",), "completion §6, Table 6"),
    above("combination", "lsa-totsim", ("holmes",), "completion §6, Table 6"),
    above("combination", "ngram-gt", ("holmes",), "completion §6, Table 6"),
    *(above("combination", row, ("holmes",), "completion §5.6, Table 6") for row in ("lsa-recon", "rnn-lm", "lsa-lm")),
    *(above("lsa-totsim", row, ("holmes",), "completion §5.6, Table 6") for row in ("lsa-recon", "lsa-lm")),
    above("lsa-lm", "ngram-gt", ("holmes",), "completion Table 6"),
    above("lsa-recon", "ngram-gt", ("holmes",), "completion Table 6"),
    above("combination", "ngram-gt", ("sat",), "completion Table 6"),
    above("lsa+ngram-gt", "ngram-gt", ("sat",), "completion §6, Table 5"),
    above("lsa-totsim", "ngram-gt", ("sat",), "completion Table 6"),
    above("lsa-totsim-u", "ngram-gt", ("sat",), "completion Table 6"),
    kit.Claim("completion-sat-sources-newspapers-wikipedia", tables=("sat-sources",), metric="accuracy@all",
              sentence="newspapers are better to train on for the SAT than an encyclopedia", better="newspapers",
              worse="wikipedia", place="completion §5.1, Table 1", printed={"newspapers": 0.42, "wikipedia": 0.31},
              test="mcnemar", alpha=0.02,
              why={"sat-sources": "3.4 million words of newswire stand for 1.1 billion of newspapers"}),
    less_perplexed("model-m", "ngram-gt", (175, 190)),
    less_perplexed("rnn-lm", "model-m", (144, 175)),
]
EXPERIMENT = kit.Experiment("completion2012", __doc__, load, TABLES, CLAIMS)

if __name__ == "__main__":
    kit.run(EXPERIMENT)
