"""Options that several commands share, and the reading of their values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jaxsim.cli.output import say

if TYPE_CHECKING:
    from jaxsim.data.pairs import Pairs
    from jaxsim.data.tables import Table
    from jaxsim.model import Model

Format = StrEnum("Format", {name.upper(): name for name in ("tsv", "csv", "jsonl", "parquet")})
Weights = StrEnum("Weights", {name.upper(): name for name in ("float16", "int8")})
Side = StrEnum("Side", {name.upper(): name for name in ("query", "document")})
_NAME = re.compile(r"[^\W\d]\w*([ .:/-]\w+){0,2}")  # what a column may be called
_JSON = re.compile(r"\s*(\{\s*\"|\[\s*(\{\s*\"|$))")  # how objects, or an array of them, begin
_SAMPLE, _SHOWN = 200, 30  # pairs that are looked at, and characters of a cell in a message


def file(text: str):
    """An option whose value is a file.

    Args:
      text: its help.

    Returns:
      The option.
    """
    return typer.Option(metavar="FILE", help=text)


def folder(text: str):
    """An option whose value is a folder.

    Args:
      text: its help.

    Returns:
      The option.
    """
    return typer.Option(metavar="DIR", help=text)


def column(text: str):
    """An option whose value is a column of a table.

    Args:
      text: its help.

    Returns:
      The option.
    """
    return typer.Option(metavar="COLUMN", help=text)


ModelOption = Annotated[Path, folder("Folder that `jaxsim train` wrote.")]
Words = StrEnum("Words", {name.upper(): name for name in ("bm25", "cosine")})
TermsOption = Annotated[float | None, typer.Option(
    min=0.0, max=1.0, help="Weight of the words themselves beside what was learned: 0 is the model alone, 1 the words "
    "alone. 0.5 unless given; 0 across languages and for SSI.", show_default=False)]
WordsOption = Annotated[Words | None, typer.Option(
    help="How words count: by BM25 over their stems in the searched documents, unless given, or by the cosine of the "
    "model's own term weights.", show_default=False)]
PowerOption = Annotated[float | None, typer.Option(
    min=0.0, max=4.0, help="How strongly dimensions are weighted by the agreement of held-out pairs in them: 1 "
                           "to find documents about the same thing, 0 to find mates. 1, or what judged queries chose, "
                           "unless given.", show_default=False)]
FeedbackOption = Annotated[int | None, typer.Option(
    min=0, help="Search twice: the second time also for what the best documents of the first, this many, hold. 3 finds "
                "more of the relevant documents, but takes longer. 0, or what judged queries chose, unless given.",
    show_default=False)]
CslsOption = Annotated[str | None, file(
    "Texts like the queries, one a line, such as the left texts of the training pairs: documents that are near to "
    "all of them are ranked lower (CSLS). For search across languages.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
JsonLinesOption = Annotated[bool, typer.Option("--json", help="Print JSON, an object a line.")]
FormatOption = Annotated[
    Format | None, typer.Option(help="Format of the pairs; by the file's suffix unless given, else by its first line.")
]
LeftOption = Annotated[str | None, column("Column of the left texts (name, or number from 1).")]
RightOption = Annotated[str | None, column("Column of the right texts (name, or number from 1).")]
LabelOption = Annotated[str | None, column("Column of labels, above 0 for texts that belong together; or of grades.")]
ColumnOption = Annotated[str | None, column("Column of the texts in TSV, CSV or Parquet, which the suffix tells, or "
                                            "their key in JSON Lines.")]
IdOption = Annotated[str | None, column("Column of identifiers.")]
DocumentIdOption = Annotated[str | None, column("Column (or key) of the documents' identifiers, beside --column; they "
                                                "are printed after the line number.")]


def read_table(source: str, option: str, languages, format_, left, right, label=None, id_=None) -> Table:
    """Pairs and labels from a file or standard input.

    Args:
      source: a path, or ``"-"``.
      option: the option that named it, for messages.
      languages: language codes of both sides.
      format_: member of `Format`, or None.
      left: column of the left texts, or None; so for the next ones.
      right: as left.
      label: as left.
      id_: as left.

    Returns:
      `Table`.
    """
    from jaxsim import checks
    from jaxsim.data import tables

    checks.expect(bool(source), option, "a file, or - for standard input", "nothing")
    columns = tables.Columns(left, right, label, id_)
    table = tables.read(source, format=format_ and str(format_), columns=columns, languages=languages)
    both = list(zip(table.pairs.left[:_SAMPLE], table.pairs.right[:_SAMPLE], strict=True))
    first = f"{table.pairs.name}: the first row, {_shown(both[0])}, is taken as a pair"
    if table.guessed is not None:
        one, other, width = table.guessed
        say(f"{first}: columns {one} and {other} of {width} are read; --left and --right choose others, by name or by "
            "number")
    else:
        if not table.named and begins_with_names(both):
            say(f"{first}; if it names columns, give {'them' if left is None else 'their names'} as --left and --right")
    for side, texts, language in zip(("left", "right"), zip(*both, strict=True), languages, strict=True):
        meant = uncut(texts, language)
        if meant is not None:
            say(f"{table.pairs.name}: {side} texts have no spaces between words, where the code {language} cuts them; "
                f"train with the code {meant} for them in --languages")
    return table


def begins_with_names(rows: Sequence[tuple[str, ...]]) -> bool:
    """Whether the first of some rows may name the columns: alone of the first twenty, all of its cells may be names.

    Args:
      rows: of a table.

    Returns:
      Whether it may.

    Example:
      >>> begins_with_names([("id", "body"), ("7", "a, b")]), begins_with_names([("id", "body")])
      (True, False)
    """
    names = [row for row in rows[:20] if all(_NAME.fullmatch(cell) for cell in row)]
    return len(rows) > 1 and names == [*rows[:1]]


def plain(source: str, table: str = "", keys: str = "") -> Iterator[tuple[int, str]]:
    """Texts of a file, one a line; says so if lines of a table or of JSON are taken as they are.

    Args:
      source: a path, or ``"-"``.
      table: how a column of a table would be read, for the message.
      keys: how the text under a key would be.

    Yields:
      Line number, from 1, and text.
    """
    from jaxsim.data import streams, tables

    place, alone, begun = streams.name(source), "give a file of the texts alone", False
    for number, text in streams.texts(source):
        if not begun and text.strip():
            begun = True
            if _JSON.match(text):
                say(f"{place}: JSON is read as plain text; {keys or alone}")
            elif "\t" in text or (tables.kind_of(source) == "csv" and "," in text):
                say(f"{place}: a line is read as a text; {table or alone}")
        yield number, text


def uncut(texts: Iterable[str], language: str) -> str | None:
    """The code of texts without spaces between words that another code would cut at spaces.

    Args:
      texts: a sample of them.
      language: the code that cuts them.

    Returns:
      The code that is meant, or None where all is well.

    Example:
      >>> uncut(["机翼"], "en"), uncut(["机翼"], "zh"), uncut(["wing"], "en")
      ('zh', None, None)
    """
    from jaxsim import text

    at_spaces = text.tokenizer(language) in (text.words, text.words_dotted)
    return text.language_of(texts) if at_spaces else None


def _shown(cells: tuple[str, ...]) -> str:
    """The beginnings of cells."""
    return " and ".join(repr(cell if len(cell) <= _SHOWN else f"{cell[: _SHOWN - 1]}…") for cell in cells)


def excluded(source: str) -> Iterator[tuple[str, str, str]]:
    """Documents that are no answer to a query, from a file of two columns; blank lines are skipped.

    Args:
      source: path, or ``"-"``.

    Yields:
      What messages call the line, query and document.

    Raises:
      ValueError: for a line of another number of columns.
    """
    from jaxsim import checks
    from jaxsim.data import streams

    for number, line in streams.texts(source):
        if not line.strip(" "):
            continue
        fields = line.split("\t")
        where = f"{streams.name(source)}, line {number}"
        checks.expect(len(fields) == 2, where, "query<TAB>document", repr(line[:60]))
        yield where, fields[0], fields[1]


def mates(table: Table, *, weighted: bool = False) -> Pairs:
    """The pairs of a table that belong together; says how many others there are, or that labels leave none out.

    Args:
      table: pairs with or without labels.
      weighted: whether the labels are wanted as weights.

    Returns:
      The pairs, at least one.
    """
    from jaxsim import checks
    from jaxsim.data import tables

    pairs, others = tables.mates(table)
    if others:
        some = f"{others:,} of {checks.counted(len(table.pairs), 'pair')}"
        say(f"{table.pairs.name}: left out {some}, whose label is not above 0")
    elif table.labels is not None and len(pairs) > 0 and not weighted and table.labels.min() < table.labels.max():
        span = f"{table.labels.min():g} to {table.labels.max():g}"
        say(f"{table.pairs.name}: all labels, {span}, are above 0, so that all pairs count as texts that belong "
            "together; s2net-mse and s2net-pref learn from grades")
    checks.expect(len(pairs) > 0, table.pairs.name, "a pair with a label above 0", "none")
    return pairs


def given(context: typer.Context, name: str) -> bool:
    """Whether an option stands on the command line.

    Args:
      context: of the command.
      name: of the option's parameter.

    Returns:
      False where it has its default.
    """
    source = context.get_parameter_source(name)
    return source is not None and source.name not in ("DEFAULT", "DEFAULT_MAP")


def refuse(context: typer.Context, beside: str, *names: str) -> None:
    """Refuses options that were given and that change nothing beside another one.

    Args:
      context: of the command.
      beside: that other option.
      *names: of the parameters of options that change nothing; a flag that is off is none.

    Raises:
      ValueError: naming the options.
    """
    from jaxsim import checks

    idle = [option.opts[0] for option in context.command.params
            if option.name in names and given(context, option.name) and context.params[option.name] is not False]
    checks.expect(not idle, ", ".join(idle), f"no {beside} beside it", "both")


def tell_idle(power: float | None, model: Model, *, terms: float | None = None, csls: str | None = None) -> None:
    """Says which options change nothing: of vectors where words alone count, and of weights that a model has not.

    Args:
      power: as given; None and 0 ask for nothing.
      model: what searches.
      terms: the weight of words.
      csls: as given.
    """
    if terms == 1:
        for name, value in (("--power", power), ("--csls", csls)):
            if value:
                say(f"{name} changes nothing: with --terms 1 the words alone count")
    elif power and model.agreement is None:
        say("--power changes nothing: this model has no weights of its dimensions")


def one_stdin(**sources: str | Path | list[str] | None) -> None:
    """Refuses standard input for two options at once.

    Args:
      **sources: option -> source.
    """
    from jaxsim import checks

    used = [name for name, source in sources.items()
            for one in (source if isinstance(source, list) else [source]) if str(one) == "-"]  # fmt: skip
    checks.expect(len(used) < 2, ", ".join(f"--{name}" for name in dict.fromkeys(used)), "standard input (-) once",
                  "twice")
