"""The command `train`: from pairs of texts to a model folder."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from jaxsim.cli import options, train_options, train_tuning
from jaxsim.cli.output import explain, naming, nothing_written, say, show_json, show_result
from jaxsim.cli.program import app

Method = StrEnum("Method", {name.upper().replace("-", "_"): name for name in train_options.METHODS})
Precision = StrEnum("Precision", {name.upper(): name for name in ("float32", "tf32", "bfloat16")})
_LOCK = "checkpoint.lock"
Weighting = StrEnum("Weighting", {name.upper(): name for name in ("log_tf_idf", "tf_idf", "tf")})


@app.command(epilog="\b\nExample, with one pair a line and a tab between its texts:\n"
                    "  jaxsim train --pairs pairs.tsv --out model\n"
                    "  jaxsim train --pairs faq.csv --left question --right answer --method opca --dim 100 --out faq\n"
                    "  jaxsim train --pairs graded.tsv --method s2net-mse --label 3 --out model")
def train(
    context: typer.Context,
    pairs: Annotated[str, options.file("TSV, CSV, JSON Lines or Parquet, also .gz, .xz, .bz2; - for stdin.")],
    out: Annotated[Path, options.folder("Folder for the model; an older model is replaced.")],
    method: Annotated[Method, typer.Option(help="How to learn.")] = Method.S2NET,
    dim: Annotated[int, typer.Option(min=1, help="Length of the vectors; less where the data bears less.")] = 300,
    dev: Annotated[str, typer.Option(metavar="SHARE|FILE", help="Share of the pairs that are held out to stop and to "
                                     "measure by, or a file of such pairs; 0: none. Of fewer than 20 pairs none "
                                     "are.")] = "0.1",
    format: options.FormatOption = None,
    left: options.LeftOption = None,
    right: options.RightOption = None,
    label: options.LabelOption = None,
    id: options.IdOption = None,
    languages: Annotated[str, typer.Option(metavar="CODE,CODE", help="Languages of left and right texts: ja is cut by "
                                           "a dictionary, zh, th, lo, km and my into pairs of letters, all others at "
                                           "what is no letter or digit.")] = "en,en",
    weighting: Annotated[Weighting, typer.Option(help="Term weights.")] = Weighting.LOG_TF_IDF,
    drop_top: Annotated[int, typer.Option(min=0, help="Most frequent terms left out.")] = 0,
    max_terms: Annotated[int, typer.Option(min=1, help="Terms kept at most.")] = 50_000,
    min_df: Annotated[int, typer.Option(min=1, help="Texts a term must occur in (1 below 100 training pairs).")] = 2,
    subwords: Annotated[float, typer.Option(min=0.0, max=0.99, help="Share of a word that its character n-grams are: "
                                            "words spelt alike learn together, and unseen words get vectors; try 0.5. "
                                            "Training takes longer.")] = 0.0,
    distill: Annotated[float, typer.Option(min=0.0, max=0.99, help="Share of the bare terms in the scores that the "
                                           "trained vectors then learn to give, such as 0.5, so that they tell more "
                                           "words apart. Held-out pairs often find each other no better: compare the "
                                           "two scores it prints. Takes some minutes.")] = 0.0,
    tune: Annotated[bool, typer.Option("--tune", help="Choose --min-df and --subwords, those not given, by how well "
                                       "held-out pairs find each other, in a few trainings in closed form.")] = False,
    max_iter: Annotated[int | None, typer.Option(min=1, help="Iterations, or epochs, of S2Net, SSI or s2net-mse at "
                                                 "most.")] = None,
    patience: Annotated[int | None, typer.Option(min=1, help="Iterations, or epochs, without a better dev score before "
                                                 "S2Net, SSI or s2net-mse stops.")] = None,
    gamma: Annotated[float, typer.Option(min=1e-6, max=1e6, help="Scale of S2Net's loss: how much near misses "
                                         "count.")] = 10.0,
    batch_size: Annotated[int | None, typer.Option(min=0, help="Pairs a batch of S2Net; 0: all, exactly.")] = None,
    identity: Annotated[float | None, typer.Option(min=0.0, max=1e6, help="Weight b of the words themselves in SSI; 3, "
                                                   "10 or 30, as held-out pairs prefer, unless given.")] = None,
    learning_rate: Annotated[float | None, typer.Option(min=1e-6, max=1e3, help="Of SSI; 0.03 unless given.")] = None,
    seed: Annotated[int, typer.Option(help="Of whatever is random, and of the split.")] = 0,
    all_negatives: Annotated[bool, typer.Option("--all-negatives", help="Near-duplicates are negatives too, of S2Net "
                                                "and SSI.")] = False,
    resume: Annotated[bool, typer.Option(help="Go on from OUT.checkpoint, or delete it and start anew.")] = False,
    precision: Annotated[Precision | None, typer.Option(help="Of the matrix products of S2Net's loss, sums in float32; "
                                                        "the device's default unless given.")] = None,
    devices: Annotated[int | None, typer.Option(min=1, help="Devices that share the pairs of S2Net without batches; "
                                                "all there are unless given.")] = None,
    shard_terms: Annotated[bool, typer.Option("--shard-terms", help="They share the projection too, a row for each "
                                              "term: for vocabularies too large for one device.")] = False,
    json: options.JsonOption = False,
) -> None:
    """Learn a model from pairs of texts. Prints how well held-out texts find their mates, beside bare term weights.

    SSI (--method ssi, or ssi-sym with one matrix for both sides) learns a score that keeps the words; such a model
    searches, but has no vectors for `encode`. cca and s2net-2 learn one projection for left texts and one for right
    ones. s2net-mse learns from grades in the column --label, larger for texts that are more alike, and prints
    Spearman's correlation with them; all other methods learn from the pairs whose label is above 0.

    S2Net, SSI and s2net-mse keep their state in OUT.checkpoint while they train: after an interruption, the same
    command with --resume goes on. An option that the method does not use is refused.

    Without --left and --right, tables give columns 1 and 2, or those of a known pair of names in the first line, such
    as query and document or question and answer; JSON Lines and Parquet give a known pair of keys.
    """
    from jaxsim import checks, io, text
    from jaxsim.train import training

    train_options.expect_used(context, method)
    options.one_stdin(pairs=pairs, dev=dev)
    with naming(out):
        io.check_place(out)
    codes = tuple(code.strip() for code in languages.split(","))
    checks.expect(len(codes) == 2 and all(codes), "--languages", "two language codes such as en,es", languages)
    for code in codes:
        text.tokenizer(code)  # refuses what is no code
    share = _share(dev)
    checks.expect(share is None or 0 <= share < 1, "--dev", "a share in [0, 1), or a file of pairs", dev)
    names = train_tuning.names(context, share) if tune else []
    columns = (codes, format, left, right, label, id)
    graded = method in training.GRADED
    checks.expect(label is not None or not graded, "--label", f"a column of grades, for {method}", "none")
    tables = [options.read_table(pairs, "--pairs", *columns)]
    tables += [options.read_table(dev, "--dev", *columns)] if share is None else []
    read, *held_out = [table.pairs if graded else options.mates(table) for table in tables]
    grades, *dev_grades = [table.labels if graded else None for table in tables]
    settings = training.Settings(
        method=str(method), dim=dim, weighting=str(weighting), drop_top=drop_top, max_terms=max_terms, min_df=min_df,
        max_iter=max_iter, patience=patience, gamma=gamma, batch_size=batch_size, seed=seed,
        all_negatives=all_negatives, precision=precision and str(precision), devices=devices, shard_terms=shard_terms,
        identity=identity, learning_rate=learning_rate, subwords=subwords, distill=distill,
    )  # fmt: skip
    place = _checkpoint(out)
    checkpoint = place if method in train_options.ITERATED else None
    with _held(place):  # closed forms keep nothing there, but must not come between a training and its model
        _begin(place, resume, settings)
        try:
            measured, told = held_out[0] if held_out else share, {}
            if tune:
                settings, told = train_tuning.chosen(checkpoint, read, settings, measured, names)
            model = training.train(read, settings, dev=measured, grades=grades, checkpoint=checkpoint,
                                   dev_grades=dev_grades[0] if dev_grades else None, progress=True,
                                   say=say)  # fmt: skip
            model = replace(model, training={**model.training, "command": _command(context), **told})
            with naming(out):
                model.save(out)
        except KeyboardInterrupt as error:
            if checkpoint is not None and _begun(checkpoint):
                explain(error, f"{checkpoint}: stopped here; the same command with --resume goes on")
            explain(error, nothing_written(out))
            raise
        _empty(place)
    told = model.training["dev"]
    scores = model.training.get("history", {}).get("validation")
    if scores and method in training.S2NET and max(scores) <= scores[0]:
        kept = "what is distilled" if distill else "the model"
        say(f"no step finds held-out pairs better than the start: {kept} is that start, of OPCA")
    score = "spearman" if graded else "mrr"
    if model.params is not None and told and told[score] < told[f"untrained_{score}"]:
        what = "grades of held-out pairs are foretold" if graded else "held-out pairs find each other"
        mixed = " may" if graded or model.bilinear else ", or `jaxsim search --terms 0.5` may"
        say(f"the {what} better by bare term weights: more pairs, another --dim or --method{mixed} help")
    if json:
        show_json({"model": str(out), **model.training})
    else:
        show_result(_shown(model, out))


def _share(dev: str) -> float | None:
    """A share of the pairs, or None for a file."""
    try:
        return float(dev)
    except ValueError:
        return None


def _checkpoint(out: Path) -> Path:
    """The folder of checkpoints."""
    from jaxsim import checks

    folder = out.absolute().with_name(f"{out.absolute().name}.checkpoint")
    folder = Path(os.path.relpath(folder)) if not out.is_absolute() else folder
    others = [path.name for path in folder.iterdir() if not path.name.startswith(("checkpoint.", ".write-test-"))
              ] if folder.is_dir() else []  # fmt: skip
    checks.expect(not others, str(folder), "a folder of checkpoints", f"one with {others[:1]}")
    return folder


@contextlib.contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Keeps other trainings out of a folder of checkpoints, which is made; an empty one is removed after that."""
    import filelock

    folder.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(folder / _LOCK)
    try:
        with contextlib.suppress(NotImplementedError):  # of file systems without locks
            lock.acquire(timeout=0)
    except filelock.Timeout:
        raise ValueError(f"{folder}: expected a training that no other process is at, got one that is running "
                         "(give another --out)") from None
    try:
        yield
    finally:
        lock.release()
        if folder.is_dir() and {path.name for path in folder.iterdir()} <= {_LOCK}:
            shutil.rmtree(folder, ignore_errors=True)


def _empty(folder: Path) -> None:
    """Deletes what a folder of checkpoints holds, all but the lock."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != _LOCK:
            path.unlink()


def _begin(folder: Path, resume: bool, settings) -> None:
    """Empties a folder of checkpoints unless training is to go on."""
    from jaxsim.checks import expect
    from jaxsim.train import settings as kept_settings

    if resume:
        choice, kept = kept_settings.choice_of(settings), kept_settings.kept_choice(folder)
        expect(kept in (None, choice), str(folder), f"a checkpoint of {_chosen(choice)}",
                      f"one of {_chosen(kept or {})} (without --resume it is deleted)")
        say(f"{folder}: {'going on from it' if _begun(folder) else 'nothing there to go on from, starting anew'}")
    elif {path.name for path in folder.iterdir()} - {_LOCK}:
        there = " (--resume would have gone on from it)" * (settings.method in train_options.ITERATED)
        say(f"{folder}: deleted, starting anew{there}")
        _empty(folder)


def _begun(folder: Path) -> bool:
    """Whether anything is kept in a folder of checkpoints: iterations, a start, or settings that were chosen."""
    from jaxsim.train import settings as kept_settings

    return kept_settings.kept_choice(folder) is not None or kept_settings.kept_start(folder) or (
        train_tuning.kept(folder))


def _chosen(choice: dict) -> str:
    """The options that decide which checkpoints a training has."""
    if not choice:
        return "an earlier version"
    method, identity = choice.get("method"), choice.get("identity")
    given = f" --identity {identity:g}" if identity is not None else ""
    return f"--method {method} --dim {choice.get('dim')}" + (
        given or " without --identity" * (method in train_options.SSI))


def _command(context: typer.Context) -> str:
    """The command line without the folders of files."""
    words = ["jaxsim", "train"]
    for option in context.command.params:
        value = context.params.get(option.name)
        if value == option.default or value is None:
            continue
        words.append(option.opts[0])
        if not isinstance(value, bool):
            words.append(str(value.name if isinstance(value, Path) else value))
            if option.name in ("pairs", "dev"):
                words[-1] = Path(words[-1]).name
    return shlex.join(words)


def _shown(model, out: Path) -> dict:
    from jaxsim.checks import counted

    told = model.training
    dev, pairs = told["dev"], told["pairs"]
    rows = {}
    if dev:
        names = [name for name in dev if not name.startswith("untrained_")]
        rows[f"dev ({pairs['dev']:,} pairs)"] = {
            model.method: {name: dev[name] for name in names},
            **({"undistilled": {name: told["distilled"][f"undistilled_{name}"] for name in names}}
               if "distilled" in told else {}),
            "untrained": {name: dev[f"untrained_{name}"] for name in names},
        }
    else:
        rows["dev"] = "no pairs held out"
    if "tuned" in told:
        rows["chosen"] = train_tuning.shown(told)
    shape = counted(told["terms"], "term") + (f", {counted(told['ngrams'], 'n-gram')}" if "ngrams" in told else "")
    shape += "" if model.params is None else f", {counted(model.dim, 'dimension')}"
    return {**rows, "pairs": f"{pairs['train']:,} for training", "size": shape, "seconds": told["seconds"],
            "model": str(out)}  # fmt: skip
