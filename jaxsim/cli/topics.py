"""The command `topics`: topics of pairs of texts, as a page for people and as a model."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jaxsim import io
from jaxsim.cli import options, train, train_choice
from jaxsim.cli.output import naming, say, show, show_json
from jaxsim.cli.program import app
from jaxsim.train.settings import TOPICS, Settings

if TYPE_CHECKING:
    from jaxsim.model import Model

Method = StrEnum("Method", {name.upper(): name for name in TOPICS})


@app.command(epilog="\b\nExample, with one pair a line and a tab between its texts:\n"
                    "  jaxsim topics --pairs pairs.tsv --languages en,es --dim 50 --out topics\n"
                    "  jaxsim search --model topics --documents texts.txt --query 'invert a matrix'\n"
                    "  jaxsim evaluate --model topics --pairs test.tsv")
def topics(
    pairs: Annotated[str, options.file("TSV, CSV, JSON Lines or Parquet, also .gz, .xz, .bz2; - for stdin.")],
    out: Annotated[Path, options.folder("Folder for the model and topics.html; an older model is replaced.")],
    method: Annotated[Method, typer.Option(
        case_sensitive=False, help="cplsa couples the topics of a pair, jplsa has one vector a pair, plsa takes all "
                                   "texts as documents of one language.")] = Method.CPLSA,
    dim: Annotated[int, typer.Option(min=1, help="Number of topics; fewer if the data does not support as many.")] = 50,
    words: Annotated[int, typer.Option(min=1, help="Number of words to print for each topic and language.")] = 10,
    documents: Annotated[int, typer.Option(min=1, help="Number of pairs to show for each topic on the page.")] = 5,
    dev: Annotated[str, typer.Option(metavar="SHARE|FILE", help="Share of the pairs to hold out, to stop by, or a file "
                                     "of such pairs; 0: none.")] = "0.1",
    max_iter: Annotated[int | None, typer.Option(min=1, help="Largest number of iterations.")] = None,
    drop_top: Annotated[int, typer.Option(min=0, help="Number of most frequent terms to leave out.")] = 50,
    max_terms: Annotated[int, typer.Option(min=1, help="Largest number of terms in the vocabulary.")] = 20_000,
    min_df: Annotated[int, typer.Option(min=1, help="Smallest number of texts that a term must occur in (1 "
                                                         "with fewer than 100 training pairs).")] = 2,
    seed: Annotated[int, typer.Option(help="Seed of the start, and of the split.")] = 0,
    format: options.FormatOption = None,
    left: options.LeftOption = None,
    right: options.RightOption = None,
    languages: Annotated[str, typer.Option(metavar="CODE,CODE", help="Languages of left and right texts.")] = "en,en",
    resume: Annotated[bool, typer.Option("--resume/--no-resume", help="Continue from OUT.checkpoint; without this "
                                                                      "option it is deleted.")] = False,
    json: options.JsonLinesOption = False,
) -> None:
    """Find the topics of pairs of texts. Prints the words of each topic in both languages, the largest topic first.

    A line has the topic's number, its share of all text, its coherence in both languages (NPMI of these words, from -1
    to 1; unknown where fewer than two occur), and its words. OUT/topics.html shows the same with a map of the topics
    and the pairs that have most of each. OUT is a model too: `search`, `similarity`, `encode` and `evaluate` take it,
    and compare texts by the share of topics that they have in common.

    The state is kept in OUT.checkpoint while topics are learned: after an interruption, the same command with --resume
    continues.
    """
    from jaxsim.pictures import topics_page

    options.one_stdin(pairs=pairs, dev=dev)
    with naming(out):
        io.check_place(out)
    settings = Settings(method=str(method), dim=dim, max_iter=max_iter, drop_top=drop_top, max_terms=max_terms,
                        min_df=min_df, seed=seed)
    columns = (train.codes(languages), format, left, right, None, None)
    data = train.read(pairs, "--pairs", columns, False)
    held_out = train.unseen([dev], [train.share_of(dev)], columns, False)
    described = []

    def page(model: Model) -> None:
        described.extend(topics_page.describe(model, data.pairs, words=words, documents=documents))
        with naming(out / io.PAGE):
            say(f"{topics_page.write(out, described, model, data.pairs)}: written")

    train.trained(data, held_out, settings, train_choice.Choice([]), out, resume,
                  f"jaxsim topics --method {method} --dim {dim}", then=page)
    for topic in described:
        if json:
            sides = {name: {"words": list(side.words), "npmi": None if side.npmi != side.npmi else side.npmi}
                     for name, side in zip(("left", "right"), topic.sides, strict=True)}
            show_json({"topic": topic.number, "share": topic.share, **sides})
            continue
        npmi = "\t".join("unknown" if side.npmi != side.npmi else f"{side.npmi:.3f}" for side in topic.sides)
        show(f"{topic.number}\t{topic.share:.4f}\t{npmi}\t{' '.join(topic.sides[0].words)}\t"
             f"{' '.join(topic.sides[1].words)}")
