"""The command `translate-table`: makes a table of word translations, and prints the best translations of words."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jaxsim.cli import options, train, train_folder
from jaxsim.cli.output import explain, keeping, naming, nothing_written, say, show, show_json
from jaxsim.cli.program import app

if TYPE_CHECKING:
    from jaxsim.methods.translation import Bitext, Translation

Unit = StrEnum("Unit", {name.upper(): name for name in ("sentences", "paragraphs")})
Aligner = StrEnum("Aligner", {"HMM": "hmm", "WDHMM": "wdhmm", "IBM1": "ibm1"})
Way = StrEnum("Way", {name.upper(): name for name in ("none", "mean", "geometric")})
_OF_PAIRS = ("unit", "aligner", "symmetrize", "threshold", "max_iter", "max_words", "format", "left", "right",
             "languages", "resume")  # what says how pairs are read, and how a table is learned from them


@app.command("translate-table", epilog="\b\nExample, sentences and their translations with a tab between:\n"
             "  jaxsim translate-table --pairs lines.tsv --languages en,es --out words\n"
             "  jaxsim translate-table --table words --word house\n"
             "  jaxsim translate-table --table words --word casa --reverse --k 3\n"
             "Pages, of which those with equally many lines on both sides are read line by line:\n"
             "  jaxsim translate-table --pairs pages.jsonl --unit paragraphs --languages en,es --out words\n"
             "A dictionary, with a headword, a tab or ::, and its translations on a line:\n"
             "  jaxsim translate-table --dictionary words.txt --out words")
def translate_table(
    context: typer.Context,
    table: Annotated[Path | None, options.folder("Folder of an existing table.")] = None,
    out: Annotated[Path | None, options.folder("Folder for a new table; an older table is replaced.")] = None,
    pairs: Annotated[str | None, options.file("Texts and their translations to learn from: TSV, CSV, JSON Lines or "
                                              "Parquet, also .gz, .xz, .bz2; - for stdin.")] = None,
    dictionary: Annotated[str | None, options.file("Dictionary to take the table from; phrases are left out.")] = None,
    word: Annotated[list[str] | None, typer.Option(metavar="WORD", help="Word to translate; may be repeated.")] = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="From right to left.")] = False,
    k: Annotated[int, typer.Option(min=1, help="Number of translations of each word.")] = 10,
    unit: Annotated[Unit, typer.Option(help="Whether a pair is of sentences, or of pages with a paragraph on each "
                                            "line.")] = Unit.SENTENCES,
    aligner: Annotated[Aligner, typer.Option(help="How to learn: a hidden Markov model, the same with jumps that "
                                                  "depend on the word, or IBM Model 1, which ignores the order of "
                                                  "words.")] = Aligner.HMM,
    symmetrize: Annotated[Way, typer.Option(help="How the tables of both directions are combined.")] = Way.GEOMETRIC,
    threshold: Annotated[float, typer.Option(min=0.0, max=0.99, help="Least probability of a translation.")] = 0.01,
    max_iter: Annotated[int | None, typer.Option(min=1, help="Iterations; 9 (5 for ibm1) unless given.")] = None,
    max_words: Annotated[int, typer.Option(min=1, help="Number of words of a sentence that are read.")] = 128,
    format: options.FormatOption = None,
    left: options.LeftOption = None,
    right: options.RightOption = None,
    languages: Annotated[str, typer.Option(metavar="CODE,CODE", help="Languages of left and right texts.")] = "en,en",
    resume: Annotated[bool, typer.Option("--resume/--no-resume", help="Continue from OUT.checkpoint; without this "
                                                                      "option it is deleted.")] = False,
    json: options.JsonLinesOption = False,
) -> None:
    """Make a table of word translations, or print the best translations of words.

    A table is learned from pairs of sentences (or of pages), or taken from a dictionary, and written to --out. Every
    --word is looked up in that table, or in the one of --table, and printed with its translations: lines of word,
    translation and probability, tabs between. A line on stderr names a word that is unknown.
    """
    from jaxsim import checks, io
    from jaxsim.methods.translation import table as tables

    sources = [name for name, value in (("--table", table), ("--pairs", pairs), ("--dictionary", dictionary))
               if value is not None]
    checks.expect(len(sources) == 1, "--table, --pairs, --dictionary", "one of them", " and ".join(sources) or "none")
    checks.expect((out is not None) == (table is None), "--out", "a folder, with --pairs or --dictionary alone",
                  out or "none")
    checks.expect(bool(word) or table is None, "--word", "a word to translate", "none")
    if pairs is None:
        options.refuse(context, sources[0], *_OF_PAIRS)
    shown = (("--reverse", reverse), ("--k", options.given(context, "k")), ("--json", json))
    idle = [name for name, there in shown if there]
    checks.expect(bool(word) or not idle, ", ".join(idle), "--word beside it, the word to translate", "none")
    if table is not None:
        params = tables.load(table)[0]
    else:
        with naming(out):
            io.check_place(out, marker=tables.MARKER, what="translation table")
        if dictionary is not None:
            params, about = _of_dictionary(dictionary)
            _save(out, params, about)
        else:
            bitext = _bitext(pairs, (train.codes(languages), format, left, right), unit, max_words)
            settings = {"symmetrize": str(symmetrize), "threshold": threshold, "max_iter": max_iter}
            params = _learned(bitext, aligner, settings, out, resume)
        say(f"{out}: {checks.counted(len(params.left), 'left word')}, "
            f"{checks.counted(len(params.right), 'right word')}")
    _print(params, word or [], reverse, k, json)


def _of_dictionary(path: str) -> tuple[Translation, dict]:
    """The table of a dictionary; says what was left out."""
    from jaxsim import checks
    from jaxsim.methods.translation import dictionary

    pairs, counts = dictionary.read(path)
    checks.expect(bool(pairs), str(path), "single words with single words as translations", "none")
    say(f"{path}: {checks.counted(counts['entries'], 'entry', 'entries')}, left out "
        f"{checks.counted(counts['phrases'], 'phrase')} of several words")
    return dictionary.fit(pairs).params, {"method": "dictionary", **counts}


def _bitext(source: str, columns: tuple, unit: Unit, max_words: int) -> Bitext:
    """The sentences of pairs of texts; says what was left out or cut."""
    from jaxsim import checks, text
    from jaxsim.data.pairs import tokenize
    from jaxsim.methods.translation import bitext

    pairs = options.read_table(source, "--pairs", *columns).pairs
    checks.expect(len(pairs) > 0, pairs.name, "at least one pair", "none")
    with checks.within(pairs.name):
        if unit == Unit.SENTENCES:
            found = bitext.from_words(*tokenize(pairs), max_words=max_words)
        else:
            words = tuple(text.tokenizer(language) for language in pairs.languages)
            found = bitext.from_pages(pairs.left, pairs.right, words=words, max_words=max_words)
    if unit == Unit.PARAGRAPHS:
        say(f"{checks.counted(found.counts['pages'], 'page')}, of which {found.counts['unequal']:,} left out, with "
            f"unequal numbers of lines; {checks.counted(found.counts['uneven'], 'line')} left out, with more than "
            "twice the words of the other")
    say(f"{checks.counted(found.counts['sentences'], 'pair')} of sentences, {found.counts['empty']:,} left out without "
        f"words, {found.counts['cut']:,} cut after {max_words} words")
    return found


def _learned(bitext: Bitext, aligner: Aligner, settings: dict, out: Path, resume: bool) -> Translation:
    """Learns a table from sentences and saves it; an interrupted training keeps its checkpoint."""
    from jaxsim.methods.translation import hmm, ibm1

    checkpoint = train_folder.beside(out)
    settings = {name: value for name, value in settings.items() if value is not None}
    with train_folder.locked(checkpoint):
        if resume:
            train_folder.expect_state(checkpoint, out, "table")
            train_folder.tell_state(checkpoint)
        else:
            train_folder.empty_and_tell(checkpoint, resumable=True)
        try:
            if aligner == Aligner.IBM1:
                fit = ibm1.fit(bitext, checkpoint=checkpoint, progress=True, **settings)
            else:
                fit = hmm.fit(bitext, word_jumps=aligner == Aligner.WDHMM, checkpoint=checkpoint, progress=True,
                              **settings)  # fmt: skip
        except KeyboardInterrupt as error:
            if train_folder.holds(checkpoint):
                explain(error, f"{checkpoint}: stopped here; the same command with --resume goes on")
            explain(error, nothing_written(out))
            raise
        _save(out, fit.params, {"method": str(aligner), **settings, **bitext.counts, "loss": fit.loss,
                                "steps": fit.steps})  # fmt: skip
        train_folder.empty(checkpoint)
    return fit.params


def _save(out: Path, params: Translation, about: dict) -> None:
    """Writes the folder of a table."""
    from jaxsim.methods.translation import table

    with naming(out), keeping(nothing_written(out)):
        table.save(out, params, about=about)


def _print(params: Translation, words: list[str], reverse: bool, k: int, json: bool) -> None:
    """Translations of words."""
    from jaxsim.text.tokens import composed, lowered

    for one in map(str.strip, words):
        best = params.best(lowered(composed(one)), reverse=reverse, k=k)
        if not best:
            say(f"{one}: not in the table{', or only from right to left (--reverse)' * (not reverse)}")
        if json:
            show_json({"word": one, "translations": [{"word": other, "probability": round(p, 6)} for other, p in best]})
            continue
        for other, p in best:
            show(f"{one}\t{other}\t{p:.4f}")
