"""The command `train`: from pairs of texts to a model folder."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from jaxsim import io
from jaxsim.cli import options, train_choice, train_folder, train_options
from jaxsim.cli.output import explain, naming, nothing_written, say, show_json, show_result
from jaxsim.cli.program import app
from jaxsim.train.settings import GRADED, ITERATED, S2NET, SSI, STOPPED, Settings, asks, check

if TYPE_CHECKING:
    import numpy as np

    from jaxsim.data.pairs import Pairs
    from jaxsim.model import Model
    from jaxsim.train.judged import Judged
    from jaxsim.train.logs import Log


Score = train_options.choice("score", ("map", "ndcg@10", "mrr", "mrr@10"))
"""What judged queries are measured by."""
StopBy = train_options.choice("stop_by", ("pairs", "queries"))
"""What a training stops by."""
TuneFor = train_options.choice("tune_for", ("mates", "search"))
"""What held-out pairs choose settings for."""
_FILES = ("pairs", "dev", "queries", "documents", "qrels", "dev_queries", "dev_documents", "dev_qrels",
          "texts")


@app.command(epilog="\b\nExample, with one pair a line and a tab between its texts:\n"
                    "  jaxsim train --pairs pairs.tsv --out model\n"
                    "  jaxsim train --pairs faq.csv --left question --right answer --method opca --dim 100 --out faq\n"
                    "  jaxsim train --pairs graded.tsv --method s2net-mse --label 3 --out model\n"
                    "Graded candidates of queries, as a table or as TREC's judgements:\n"
                    "  jaxsim train --pairs graded.tsv --method s2net-pref --label 3 --out model\n"
                    "  jaxsim train --queries queries.tsv --documents documents.tsv --qrels qrels.txt "
                    "--method s2net-pref --out model")
@train_options.with_settings
def train(
    context: typer.Context,
    out: Annotated[Path, options.folder("Folder for the model; an older model is replaced.")],
    settings: Settings,
    pairs: Annotated[str | None, options.file("TSV, CSV, JSON Lines or Parquet, also .gz, .xz, .bz2; - for "
                                              "stdin.")] = None,
    queries: Annotated[str | None, options.file("Queries with identifiers, in place of --pairs.")] = None,
    documents: Annotated[str | None, options.file("With --queries: documents with identifiers. With --pairs: "
                                                  "documents, one a line, in which to look for negatives of "
                                                  "S2Net.")] = None,
    qrels: Annotated[str | None, options.file("Judgements: lines `query 0 document grade`.")] = None,
    negatives: Annotated[int | None, typer.Option(min=0, help="Number of negatives of each query. With --queries: "
                                                              "documents without a judgement, drawn at random as "
                                                              "grade 0; 30 unless given. With --pairs: mined from "
                                                              "--documents; 5 unless given.",
                                                  show_default=False)] = None,
    dev: Annotated[list[str] | None, typer.Option(metavar="SHARE|FILE", help="Share of the pairs to hold out, 0.1 "
                                                  "unless given, or a file of pairs: training stops by their score, "
                                                  "and they measure the model. 0 holds out none; so do fewer than 20 "
                                                  "pairs. Given several times, such as for pairs of several domains: "
                                                  "the mean of the sets' scores counts.",
                                                  show_default=False)] = None,
    format: options.FormatOption = None,
    left: options.LeftOption = None,
    right: options.RightOption = None,
    label: options.LabelOption = None,
    label_weights: Annotated[bool, typer.Option("--label-weights", help="Take the labels as weights: in S2Net's loss, "
                                                "a pair with the label 3 counts three times.")] = False,
    id: options.IdOption = None,
    languages: Annotated[str, typer.Option(metavar="CODE,CODE", help="Languages of left and right texts: ja is split "
                                           "by a dictionary, zh, th, lo, km and my into pairs of letters, all others "
                                           "at everything but letters, digits and underscores.")] = "en,en",
    texts: Annotated[str | None, options.file("More texts of the pairs' language, one a line. They count when the "
                                              "rarity of a word is measured, and lsa learns from them.")] = None,
    tune: Annotated[bool, typer.Option("--tune", help="Choose --min-df and --subwords, unless given, by the scores of "
                                       "held-out pairs in a few trainings in closed form.")] = False,
    budget: Annotated[str | None, typer.Option(metavar="TIME", help="With --tune: choose the method (opca, lsa or cca, "
                                               "s2net, ssi), --dim, --noise, --start and --gamma as well, unless "
                                               "given, in as many trainings as end in this time, such as 90s or "
                                               "5m.")] = None,
    grid: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE,...", help="Train with every combination of "
                                                   "these values, such as 'dim=100,300 gamma=5,10', print a table, and "
                                                   "keep the best model by the held-out pairs.")] = None,
    dev_queries: Annotated[str | None, options.file("Queries with identifiers, to measure search by and, with "
                                                    "--budget, --grid or --stop-by, to choose by.")] = None,
    dev_documents: Annotated[str | None, options.file("Documents with identifiers, with --dev-queries.")] = None,
    dev_qrels: Annotated[str | None, options.file("Judgements: lines `query 0 document grade`.")] = None,
    dev_score: Annotated[Score, typer.Option(help="Score by which judged queries choose.")] = Score.MAP,
    tune_for: Annotated[TuneFor, typer.Option(help="What --tune --budget chooses for, without judged queries: `mates` "
                                              "are found by held-out texts; for `search` they are so without the words "
                                              "that both texts share.")] = TuneFor.MATES,
    stop_by: Annotated[StopBy, typer.Option(help="What S2Net and SSI stop by, and what decides about --distill and "
                                            "--blend: the score of held-out `pairs`, or that of the judged `queries` "
                                            "(--dev-queries). Queries rank all documents after every iteration or "
                                            "epoch, by S2Net's vectors or SSI's score alone.")] = StopBy.PAIRS,
    dev_exclude_self: Annotated[bool, typer.Option("--dev-exclude-self", help="With --dev-queries: leave out the "
                                                   "query itself, a document of its identifier or text.")] = False,
    weights: Annotated[options.Weights | None, typer.Option(help="Round the finished model's weights to 16 or 8 "
                                                            "bits, and print how far that changes scores.")] = None,
    cross_fit: Annotated[bool, typer.Option("--cross-fit/--no-cross-fit", help="Where fewer than 20 pairs are held "
                                            "out, opca, cca, lsa, cl-lsi and S2Net weigh their dimensions for search "
                                            "by three more fits, without a third of the pairs each.")] = True,
    resume: Annotated[bool, typer.Option("--resume/--no-resume", help="Continue from OUT.checkpoint; without this "
                                                                      "option it is deleted.")] = False,
    log: Annotated[Path | None, options.folder("Write step, loss and score after every iteration to DIR/log.csv and, "
                                               "with tensorboardX, as event files of TensorBoard. An existing log is "
                                               "replaced; with --resume it is continued.")] = None,
    json: options.JsonOption = False,
) -> None:
    """Learn a model from pairs of texts. Prints how well held-out texts find their mates, beside bare term weights.

    SSI (--method ssi, or ssi-sym with one matrix for both sides) learns a score that keeps the words; such a model
    can search, but has no vectors for `encode`. cca and s2net-2 learn one projection for left texts and one for right
    ones. s2net-mse learns from grades in the column --label, larger for texts that are more alike, and prints
    Spearman's correlation with them; s2net-pref learns the order of the right texts of each left text by their grades,
    and prints AUC and NDCG. All other methods learn from the pairs whose label is above 0, and take these alike unless
    --label-weights is given.

    jplsa, cplsa and plsa learn topics; `jaxsim topics` shows them too. Texts are then compared by the share of topics
    that they have in common.

    S2Net, SSI, methods of grades and topic models keep their state in OUT.checkpoint while they train: after an
    interruption, the same command with --resume continues. An option that the method does not use is refused.

    Without --left and --right, tables give columns 1 and 2, or those of a known pair of names in the first line, such
    as query and document or question and answer; JSON Lines and Parquet give a known pair of keys.
    """
    from jaxsim import checks

    train_options.expect_used(context, settings.method)
    dev = dev or ["0.1"]
    mined = pairs is not None and documents is not None
    judged = {"--queries": queries, "--documents": None if mined else documents, "--qrels": qrels}
    _expect_mined(mined, pairs is not None, negatives, settings.method, grid, tune)
    _expect_source(pairs, judged, settings.method)
    options.one_stdin(pairs=pairs, dev=dev, queries=queries, documents=documents, qrels=qrels,
                      dev_queries=dev_queries, dev_documents=dev_documents, dev_qrels=dev_qrels, texts=texts)
    searched = {"--dev-queries": dev_queries, "--dev-documents": dev_documents, "--dev-qrels": dev_qrels}
    _expect_all(searched)
    _expect_judges(context, dev_queries is not None, settings, grid is not None)
    seconds = train_choice.seconds(budget, tune)
    of_pairs = seconds is not None and dev_queries is None
    checks.expect(of_pairs or tune_for == TuneFor.MATES, "--tune-for", "--budget as well, and no --dev-queries",
                  "no --budget" if seconds is None else "both")  # fmt: skip
    with naming(out):
        io.check_place(out)
    _devices(settings)
    log_of_steps = _log(log, out)
    shares = _shares(dev, settings.method)
    share = shares[0]
    _expect_possible(settings, share != 0 or stop_by == StopBy.QUERIES, grid is not None)
    chooses = None if dev_queries is not None and seconds is not None else share  # judged queries need no pairs
    names = train_choice.names(context, chooses, seconds is not None) if tune else []
    graded = settings.method in GRADED
    checks.expect(label is not None or not graded or pairs is None, "--label",
                  f"a column of grades, for {settings.method}", "none")  # fmt: skip
    _expect_weights(label_weights, label, tune)
    columns = (codes(languages), format, left, right, label, id)
    drawn = 30 if negatives is None else negatives
    data = _judged(*judged.values(), drawn, settings.seed, columns[0]) if pairs is None else read(
        pairs, "--pairs", columns, graded, weighted=label_weights)
    held_out = unseen(dev, shares, columns, graded)
    values = _grid(context, grid, settings, tune=tune, resume=resume, log=log,
                   dev=held_out.pairs if dev_queries is None else None)
    judged_dev = None if dev_queries is None else _collection(
        *searched.values(), str(dev_score), dev_exclude_self)
    known = 0 if judged_dev is None else judged_dev.known(data.pairs)
    if known:
        asked = checks.counted(len(judged_dev.asked), "judged query", "judged queries")
        say(f"{known:,} of {asked} are training pairs with a relevant document: what they choose, and their score, is "
            "not that of new queries")
    by = "apart" if tune_for == TuneFor.SEARCH else "mrr"
    choice = train_choice.Choice(names, seconds, judged_dev, values, by,
                                 judged_dev if stop_by == StopBy.QUERIES else None)  # fmt: skip
    more = {"unpaired": _unpaired(texts, columns[0]), "weights": None if weights is None else str(weights),
            "cross_fit": cross_fit}  # fmt: skip
    if label_weights:
        more["pair_weights"] = data.weights
    if mined:
        more |= {"documents": _texts(documents), **({} if negatives is None else {"negatives": negatives})}
    model = trained(data, held_out, settings, choice, out, resume, _command(context), more, log_of_steps)
    _compare(model)
    if json:
        show_json({"model": str(out)} | {name: value for name, value in model.training.items() if name != "sketch"})
    else:
        show_result(_shown(model, out))


def _grid(
    context: typer.Context, texts: list[str] | None, settings: Settings, *, tune: bool, resume: bool, log: Path | None,
    dev
):
    """The values of a sweep, or None; ``dev`` is what chooses, None for judged queries."""
    from jaxsim import checks
    from jaxsim.train import grid

    if not texts:
        return None
    for name, given in (("--tune", tune), ("--resume", resume), ("--log", log is not None)):
        checks.expect(not given, name, "no --grid beside it", "both")
    none = isinstance(dev, int | float) and dev == 0
    checks.expect(not none, "--dev", "pairs to choose by, with --grid", "0")
    values = grid.parsed(texts)
    options.refuse(context, "--grid of it", *(name for name in values if name in context.params))
    try:
        grid.combinations(settings, values)
        grid.expect_comparable(values, 0 if dev is None else dev, dev is None)
    except ValueError as error:
        raise ValueError(str(error).replace("values", "--grid", 1)) from None
    return values


def _devices(settings: Settings) -> None:
    """Refuses more devices than there are before anything is deleted."""
    from jaxsim.parallel import sharding

    if settings.devices is not None and not settings.batch_size:  # with batches there is another refusal
        sharding.local_mesh(settings.devices, devices=settings.devices)


class Data(NamedTuple):
    """Pairs to train on or to hold out, or the share to hold out.

    Attributes:
      pairs: the pairs, a share, or several sets of both.
      grades: of the pairs, or None.
      weights: of the pairs, or None.
      table: digest of the texts of the whole file, where pairs that do not belong together are left out; else None.
    """

    pairs: Pairs | float | list
    grades: np.ndarray | None
    weights: np.ndarray | None = None
    table: str | None = None


def read(source: str, option: str, columns: tuple, graded: bool, *, weighted: bool = False) -> Data:
    """Pairs of a table: all, with their grades, or those that belong together.

    Args:
      source: a path, or ``"-"``.
      option: the option that named it.
      columns: languages, format and columns, as for `options.read_table`.
      graded: whether grades are wanted.
      weighted: whether the labels are wanted as weights of those that belong together.

    Returns:
      `Data`.
    """
    table = options.read_table(source, option, *columns)
    if graded:
        return Data(table.pairs, table.labels)
    pairs = options.mates(table, weighted=weighted)
    whole = None if pairs is table.pairs else table.pairs.texts_sha256
    return Data(pairs, None, table.labels[table.labels > 0] if weighted else None, whole)


def _shares(dev: list[str], method: str) -> list[float | None]:
    """The shares of what is to be held out, None for files; refuses what cannot stand together."""
    from jaxsim import checks

    shares, got = [share_of(one) for one in dev], " and ".join(dev)
    checks.expect(len(dev) == 1 or method not in GRADED, "--dev", f"one share or file, for {method}", got)
    checks.expect(len(dev) - shares.count(None) < 2, "--dev", "one share at most", got)
    checks.expect(len(dev) == 1 or 0 not in shares, "--dev", "no share of 0 beside files", got)
    return shares


def unseen(dev: list[str], shares: list[float | None], columns: tuple, graded: bool) -> Data:
    """Pairs to hold out, or the share of them; or several sets, one after the other."""
    from jaxsim import checks
    from jaxsim.train import held_out

    sets = [Data(share, None) if share is not None else read(one, "--dev", columns, graded)
            for one, share in zip(dev, shares, strict=True)]
    for path, one in zip(dev, sets, strict=True):  # before anything is deleted
        few = not isinstance(one.pairs, float) and len(one.pairs) < 2
        checks.expect(not few, "--dev", f"at least two pairs in {path} (one alone always finds its mate)",
                      None if isinstance(one.pairs, float) else len(one.pairs))
        same = not isinstance(one.pairs, float) and not graded and not held_out.varied(one.pairs)
        checks.expect(not same, "--dev", f"at least two different pairs in {path} (one alone always finds its mate)",
                      "copies of one")
    return sets[0] if len(sets) == 1 else Data([one.pairs for one in sets], None)


def _expect_judges(context: typer.Context, given: bool, settings: Settings, swept: bool) -> None:
    """Refuses options of judged queries without any, and queries where they decide about nothing."""
    from jaxsim import checks

    by_queries = context.params["stop_by"] == StopBy.QUERIES
    for name, wanted in (("--dev-exclude-self", context.params["dev_exclude_self"]),
                         ("--dev-score", options.given(context, "dev_score"))):
        checks.expect(given or not wanted, name, "--dev-queries as well", "none")
    checks.expect(not given or settings.method not in GRADED, "--dev-queries",
                  "a method that learns from pairs, not from grades", f"--method {settings.method}")
    checks.expect(given or not by_queries, "--stop-by", "--dev-queries as well, to stop by queries", "none")
    # A method that is given is not changed by --tune.
    checks.expect(asks(settings) or swept or not by_queries, "--stop-by", "a method in steps, or --distill",
                  f"--method {settings.method}")  # fmt: skip


def _expect_possible(settings: Settings, chosen: bool, swept: bool) -> None:
    """Refuses settings that no training can have before anything is tried or deleted; of a sweep each is looked at."""
    from jaxsim import checks

    if not swept:
        check(settings)
        checks.expect(chosen or not settings.blend, "--blend",
                      "held-out pairs or judged queries to choose by (--stop-by queries)", "none")  # fmt: skip


def _expect_weights(wanted: bool, label: str | None, tune: bool) -> None:
    """Refuses weights without a column of them, or beside trainings that do not take them."""
    from jaxsim import checks

    checks.expect(not wanted or label is not None, "--label-weights", "--label as well", "none")
    checks.expect(not (wanted and tune), "--label-weights", "no --tune beside it", "both")


def _expect_mined(
    mined: bool, pairs: bool, negatives: int | None, method: str, grid: list[str] | None, tune: bool
) -> None:
    """Refuses documents to mine from, or a number of negatives, where nothing is mined."""
    from jaxsim import checks

    checks.expect(not pairs or mined or negatives is None, "--negatives",
                  "--documents as well, with --pairs (negatives are mined from them)", "none")  # fmt: skip
    if mined:
        checks.expect(not tune and grid is None, "--documents", "no --tune or --grid beside it, with --pairs",
                      "both")
        checks.expect(method in S2NET, "--documents",
                      f"a method that uses it with --pairs ({' and '.join(S2NET)})", f"--method {method}")  # fmt: skip
        checks.expect(negatives != 0, "--negatives", "at least 1, with --pairs", 0)


def _texts(source: str) -> list[str]:
    """Documents of a file, at least one."""
    from jaxsim import checks
    from jaxsim.data import streams

    found = [line for _, line in options.plain(source)]
    checks.expect(len(found) > 0, streams.name(source), "documents", "an empty file")
    return found


def _expect_source(pairs: str | None, judged: dict[str, str | None], method: str) -> None:
    """Refuses anything but pairs, or all three files of judgements with a method of preferences."""
    from jaxsim import checks

    given = [name for name, value in judged.items() if value is not None]
    names = ", ".join(judged)
    checks.expect(pairs is not None or len(given) == len(judged), "--pairs", f"a file (or all of {names})",
                  f"{' and '.join(given)} alone" if given else "none")
    checks.expect(pairs is None or not given, ", ".join(given), "no --pairs beside it", "both")
    checks.expect(pairs is not None or method == "s2net-pref", "--qrels",
                  "a method that uses it (s2net-pref)", f"--method {method}")  # fmt: skip


def _judged(queries: str, documents: str, qrels: str, negatives: int, seed: int, languages: tuple[str, str]) -> Data:
    """Graded pairs of a test collection; says what was left out."""
    from jaxsim import checks
    from jaxsim.evaluate import trec
    from jaxsim.train import judgements

    found, grades, counts = judgements.graded_pairs(
        trec.read_texts(queries), trec.read_texts(documents), trec.read_qrels(qrels), negatives=negatives, seed=seed,
        languages=languages)  # fmt: skip
    say(f"{checks.counted(len(found), 'graded pair')} of {checks.counted(counts['queries'], 'query', 'queries')}, "
        f"{counts['drawn']:,} drawn; left out {checks.counted(counts['unknown'], 'judgement')} without a text")
    return Data(found, grades)


def _unpaired(source: str | None, languages: tuple[str, str]) -> list[str]:
    """Texts of a file; none without one."""
    from jaxsim import checks

    if source is None:
        return []
    checks.expect(len(set(languages)) == 1, "--texts", "pairs of one language", ",".join(languages))
    found = [line for _, line in options.plain(source)]
    say(f"{checks.counted(len(found), 'text')} beside the pairs")
    return found


def _expect_all(files: dict[str, str | None]) -> None:
    """Refuses some of several files without the others."""
    from jaxsim import checks

    given = [name for name, value in files.items() if value is not None]
    checks.expect(len(given) in (0, len(files)), next((name for name in files if name not in given), ""),
                  f"a file, with {' and '.join(given)}", "none")


def _collection(queries: str, documents: str, qrels: str, metric: str, itself: bool) -> Judged:
    """Judged queries to choose and to measure by."""
    from jaxsim.evaluate import trec
    from jaxsim.train.judged import Judged

    found = trec.read_texts(queries), trec.read_texts(documents), trec.read_qrels(qrels)
    try:
        return Judged(*found, metric, itself)
    except ValueError as error:  # its argument is another option here
        told = str(error)
        raise ValueError(f"--dev-{told}" if told.startswith("qrels: ") else told) from error


def _searched(model: Model, judged: Judged) -> tuple[Model, dict]:
    """The model with the weight of words, the power and the feedback that judged queries choose, and their scores."""
    from jaxsim.checks import counted

    _, weight, power = judged.best(model)
    model = replace(model, terms_weight=weight, agreement_power=power)
    feedback, score = judged.feedback(model)
    at = "" if power is None else f" and a power of {power:g} for the agreement of dimensions"
    again = "" if feedback is None else f" and a second search with {counted(feedback, 'document')} of the first"
    say(f"{counted(len(judged.qrels), 'judged query', 'judged queries')}: {judged.metric} {score:.4f} with a weight of "
        f"{weight:g} for words{at}{again}, which `jaxsim search` uses from now on")
    words = judged.score(model, terms=1.0)
    return replace(model, feedback=feedback), {
        judged.metric: round(score, 4), "terms": weight, **({} if power is None else {"power": power}),
        **({} if feedback is None else {"feedback": feedback}),
        f"{judged.metric} of bm25": round(words, 4)}  # fmt: skip


def codes(codes: str) -> tuple[str, str]:
    """Two language codes.

    Args:
      codes: as the user wrote them.

    Returns:
      Those of left and of right texts.

    Raises:
      ValueError: for another number, or an unknown code.
    """
    from jaxsim import checks, text

    parts = (code.strip().partition("-") for code in codes.split(","))
    languages = tuple("".join((code.lower(), *rest)) for code, *rest in parts)
    checks.expect(len(languages) == 2 and all(languages), "--languages", "two language codes such as en,es", codes)
    try:
        for language in languages:
            text.tokenizer(language)  # refuses an unknown code
    except ValueError as error:
        raise ValueError(str(error).replace("language: ", "--languages: ", 1)) from error
    return languages


def share_of(dev: str) -> float | None:
    """A share of the pairs.

    Args:
      dev: the option.

    Returns:
      A share, or None for a file.

    Raises:
      ValueError: for a number out of [0, 1).
    """
    from jaxsim import checks

    try:
        share = float(dev)
    except ValueError:
        return None
    checks.expect(0 <= share < 1, "--dev", "a share in [0, 1), or a file of pairs", dev)
    return share


def trained(
    data: Data, held_out: Data, settings: Settings, choice: train_choice.Choice, out: Path, resume: bool, command: str,
    more: Mapping[str, Any] | None = None, log: Log | None = None, then: Callable[[Model], None] | None = None,
) -> Model:
    """Trains and saves a model; an interrupted training keeps its checkpoints.

    Args:
      data: pairs to train on.
      held_out: pairs to hold out, or their share.
      settings: of the training.
      choice: what is chosen first, and by what.
      out: folder of the model.
      resume: whether to go on from the checkpoints.
      command: for the model's record.
      more: texts without a mate, documents to mine from, or whether to cross-fit, as `training.train` takes them.
      log: of its steps, or None.
      then: what is made of the saved model before the checkpoints go; where it fails, the training can be resumed.

    Returns:
      The model.
    """
    from jaxsim.train import training

    folder = train_folder.beside(out)
    checkpoint = folder if settings.method in ITERATED else None
    # Closed forms keep nothing there, but must not come between a training and its model.
    with log or contextlib.nullcontext(), train_folder.locked(folder):
        train_folder.begin(folder, resume, settings, out)
        try:
            notes = {}
            if choice.names:
                settings, notes = train_choice.chosen(checkpoint, data.pairs, settings, held_out.pairs, choice,
                                                       (more or {}).get("unpaired", ()))
                checkpoint = folder if settings.method in ITERATED else None
            given = {"dev": held_out.pairs, "grades": data.grades, "dev_grades": held_out.grades,
                     "progress": True, **(more or {})}  # fmt: skip
            if choice.grid is not None or asks(settings):  # --budget may choose a closed form
                given["stop_by"] = choice.stop_by
            if choice.grid is not None:
                model, notes = train_choice.swept(data.pairs, settings, choice, **given)
            else:
                model = training.train(data.pairs, settings, checkpoint=checkpoint, say=say, callback=log, **given)
            if log is not None and not log.written:  # --budget may choose another method
                say(f"{log.folder}: nothing to log, {settings.method} has no steps")
            if choice.judged is not None:
                model, searched = _searched(model, choice.judged)
                notes = {**notes, "search": searched}
            if data.table is not None:  # by which other commands know the file, whether they are told of labels or not
                facts = model.training["data"]
                notes = {**notes, "data": {**facts, "texts_sha256": [*facts["texts_sha256"], data.table]}}
            model = replace(model, training={**model.training, "command": command, **notes})
            with naming(out):
                model.save(out)
            if then is not None:
                then(model)
        except KeyboardInterrupt as error:
            if train_folder.holds(folder):  # of a closed form, the settings that were chosen
                explain(error, f"{folder}: stopped here; the same command with --resume goes on")
            explain(error, nothing_written(out))
            raise
        train_folder.empty(folder)
    return model


def _log(folder: Path | None, out: Path) -> Log | None:
    """The log of the steps, in a folder that the model does not replace."""
    from jaxsim import checks
    from jaxsim.train import logs

    if folder is None:
        return None
    places = out.resolve(), train_folder.beside(out).resolve()
    inside = any(place in (folder.resolve(), *folder.resolve().parents) for place in places)
    checks.expect(not inside, "--log", "a folder outside --out and its checkpoints", folder)
    with naming(folder):
        return logs.Log(folder, say=say)


START_OF_SSI = {(True, True): "OPCA beside the words", (False, True): "which knows no more than the words",
                (True, False): "OPCA", (False, False): "random numbers"}  # fmt: skip
"""Whether SSI starts from OPCA, and whether words count in its score -> what its start is called."""


START_OF_GRADED = {"s2net-mse": "random numbers", "s2net-pref": "LSA or random numbers"}
"""Method of grades -> what its start is called."""


def _compare(model: Model) -> None:
    """Says so where the training, or the model, is no better than what it started from."""
    from jaxsim.model import ranker

    record = model.training
    scores = record.get("history", {}).get("validation")
    if scores and model.method in (*STOPPED, *GRADED) and max(scores) <= scores[0]:
        kept = "what is distilled" if "distilled" in record else "the model"
        start, step = "OPCA" if record["settings"].get("start") != "random" else "random numbers", "iteration"
        if model.method in SSI:
            start, step = START_OF_SSI[record["start"] == "opca", record["identity"] > 0], "epoch"
        start = START_OF_GRADED.get(model.method, start)
        judges = "judged queries" if "stop_by" in record else "held-out pairs"
        say(f"no {step} has a better score on {judges} than the start: {kept} is that start, {start}")
    dev, graded = record["dev"], model.method in GRADED
    score = next(iter(dev), "mrr")  # the first is what a training stops by
    score = "mrr" if "mrr" in dev else score
    if model.params is not None and dev and dev[score] < dev[f"untrained_{score}"]:
        what = "agree better with the grades of held-out pairs" if graded else "find more mates of held-out pairs"
        words = "puts" if ranker.default_terms(model) > 0 else "with --terms 0.5 puts"
        mixed = "" if graded or model.bilinear else f"; `jaxsim search` {words} words beside the vectors"
        say(f"bare term weights {what}: more pairs, another --dim or --method may help{mixed}")


def _command(context: typer.Context) -> str:
    """The command line without the folders of files, as for a training from the start.

    A value that is the default counts too where it was given: ``--tune`` leaves it alone.
    """
    words = ["jaxsim", "train"]
    for option in context.command.params:
        value = context.params.get(option.name)
        default = value == option.default and not options.given(context, option.name)
        if default or value is None or option.name == "resume":
            continue
        for one in value if isinstance(value, list | tuple) else [value]:
            words.append((option.secondary_opts if one is False else option.opts)[0])
            if not isinstance(one, bool):
                words.append(str(one.name if isinstance(one, Path) else one))
                if option.name in _FILES:
                    words[-1] = Path(words[-1]).name
    return shlex.join(words)


def _shown(model: Model, out: Path) -> dict:
    """What is printed of a model."""
    from jaxsim.checks import counted
    from jaxsim.model.rounding import told

    record = model.training
    dev, pairs = record["dev"], record["pairs"]
    rows = {}
    if dev:
        names = [name for name in dev if not name.startswith(("untrained_", "bm25_"))]

        def table(found: dict, more: dict) -> dict:
            return {model.method: {name: found[name] for name in names}, **more,
                    **{other: {name: found[f"{other}_{name}"] for name in names} for other in ("untrained", "bm25")
                       if f"{other}_{names[0]}" in found}}  # fmt: skip

        sets = record.get("dev_sets", [])
        whole = f"dev, mean of {len(sets)} sets" if sets else f"dev ({pairs['dev']:,} pairs)"
        before = {"undistilled": {name: record["distilled"][f"undistilled_{name}"] for name in names}
                  } if "distilled" in record else {}  # fmt: skip
        rows[whole] = table(dev, before)
        rows |= {f"dev {number}: {one['name']} ({one['pairs']:,} pairs)": table(one, {})
                 for number, one in enumerate(sets, 1)}  # fmt: skip
    else:
        rows["dev"] = "no pairs held out"
    if "stop_by" in record:
        found = record["stop_by"]
        rows["stopped by"] = (f"{found['metric']} {found['score']} of "
                              f"{counted(found['queries'], 'judged query', 'judged queries')}, without BM25")
    if "search" in record:
        rows["search"] = ", ".join(f"{name} {value}" for name, value in record["search"].items())
    if "tuned" in record:
        rows["chosen"] = train_choice.shown(record)
    sizes = [counted(record["terms"], "term")]
    sizes += [counted(record["ngrams"], "n-gram")] if "ngrams" in record else []
    sizes += [] if model.params is None else [counted(model.dim, "dimension")]
    if "weights" in record:
        rows["weights"] = told(record["weights"], "score" if model.bilinear or model.topical else "cosine")
    return {**rows, "pairs": f"{pairs['train']:,} for training", "size": ", ".join(sizes),
            "seconds": record["seconds"], "model": str(out)}  # fmt: skip
