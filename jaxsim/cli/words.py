"""Commands about opposites: `thesaurus` makes a model of words, `words` looks words up in it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jaxsim.cli import options
from jaxsim.cli.output import keeping, naming, nothing_written, say, show, show_json, show_result
from jaxsim.cli.program import app


@app.command(epilog="\b\nExample:\n  jaxsim thesaurus --sources wordnet-rich,fallows,fernald,soule,roget --out words\n"
                    "  jaxsim thesaurus --file mine.jsonl --antonyms pairs.tsv --out words --dim 100\n"
                    "Lines of mine.jsonl: {\"head\": \"hot\", \"synonyms\": [\"warm\"], \"antonyms\": [\"cold\"]}")
def thesaurus(
    context: typer.Context,
    out: Annotated[Path, options.folder("Folder to write; an older model is replaced.")],
    sources: Annotated[str, typer.Option(metavar="NAMES", help="Some of wordnet, wordnet-rich, fallows, fernald, "
                                         "soule, roget, commas between them.")] = "",
    file: Annotated[list[str] | None, options.file("A thesaurus of your own, JSON Lines; may be repeated.")] = None,
    antonyms: Annotated[list[str] | None, options.file("Pairs of antonyms, two words a line; may be repeated.")] = None,
    dim: Annotated[int, typer.Option(min=1, help="Dimension.")] = 300,
    refine: Annotated[bool, typer.Option("--refine/--no-refine", help="After PILSA, train S2Net on the "
                                                                      "antonyms.")] = True,
    epochs: Annotated[int, typer.Option(min=1, help="Largest number of epochs of S2Net.")] = 300,
    resume: Annotated[Path | None, options.folder("Folder of S2Net's checkpoints; training continues from a state "
                                                       "found there.")] = None,
    root: Annotated[Path | None, options.folder("The data folder; JAXSIM_DATA unless given.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    json: options.JsonOption = False,
) -> None:
    """Make a model of words and their opposites from thesauri. Synonyms get cosines near 1, opposites near -1."""
    import jax

    from jaxsim import checks, io
    from jaxsim.train import opposites

    names = [name.strip() for name in sources.split(",") if name.strip()]
    checks.expect(bool(names or file or antonyms), "--sources, --file, --antonyms", "at least one of them", "none")
    if not refine:  # S2Net is what goes on
        options.refuse(context, "--no-refine", "resume", "epochs")
    with naming(out):
        io.check_place(out, argument="--out")
    result, irregular = opposites.read(names, files=file or (), antonyms=antonyms or (), root=root)
    for source in result:
        odd = {what.replace("_", " "): number for what, number in source.dropped.items() if number}
        facts = "; left out: " + ", ".join(f"{number:,} {what}" for what, number in odd.items()) if odd else ""
        say(f"{source.name}: {checks.counted(len(source.entries), 'entry', 'entries')}{facts}")
    words = opposites.build(result, key=jax.random.key(seed), k=dim, refine=refine, irregular=irregular,
                            max_iter=epochs, checkpoint=resume, progress=True)
    with naming(out), keeping(nothing_written(out)):
        words.save(out)
    if words.model.dim < dim:
        say(f"dimension {words.model.dim}: the thesauri support no more")
    lost = words.without_vector()
    if lost:
        some = ", ".join(lost[:5]) + ", …" * (len(lost) > 5)
        say(f"{checks.counted(len(lost), 'word')} without a vector: {some} (what is in every entry tells nothing about "
            "any, and words that share no entries with most others are beyond the leading dimensions; more entries, or "
            "a larger --dim, help)")
    if refine and words.model.method == "pilsa":
        pairs = checks.counted(words.model.training["antonym_pairs"], "pair", "pairs")
        say(f"without S2Net: it is trained on {opposites.LEAST} pairs of opposites or more, and there are {pairs}")
    facts = {"folder": str(out), "method": words.model.method, "words": len(words.model.vocabulary),
             "entries": words.model.vocabulary.num_docs, "dim": words.model.dim}  # fmt: skip
    return show_json(facts) if json else show_result(facts)


@app.command(epilog="\b\nExample:\n  jaxsim words --model words --opposite-of generous\n"
                    "  jaxsim words --model words --like mourning --k 5 --json\n"
                    "  jaxsim words --model words --opposite-of adulterate --among renounce,forbid,purify")
def words(
    context: typer.Context,
    model: Annotated[Path, options.folder("Folder that `jaxsim thesaurus` wrote.")],
    opposite_of: Annotated[str | None, typer.Option(metavar="WORD", help="Print the opposites of this word, and its "
                                                                         "nearest words.")] = None,
    like: Annotated[str | None, typer.Option(metavar="WORD", help="Print only the nearest words of this word.")] = None,
    among: Annotated[str | None, typer.Option(metavar="WORDS", help="Choose the opposite among these, commas between "
                                              "them.")] = None,
    k: Annotated[int, typer.Option(min=1, help="Number of words in a list.")] = 10,
    in_entries: Annotated[int | None, typer.Option(min=1, help="List only words that are in at least this many "
                                                               "entries; 5 unless given, or 1 if the thesauri have "
                                                               "fewer than 1,000.")] = None,
    json: options.JsonOption = False,
) -> None:
    """Print words that mean the opposite of a word, or the same, with their cosines.

    With --among the cosines are those of the two most opposite senses, where the folder has the entries: a word has one
    for every entry that lists it.

    A word that the thesauri lack is looked up by its base form, its stem, without hyphens or as a part of compounds;
    stderr says how.
    """
    from jaxsim import checks
    from jaxsim.model.words import Words

    checks.expect((opposite_of is None) != (like is None), "--opposite-of, --like", "one of them",
                  "neither" if like is None else "both")
    checks.expect(among is None or opposite_of is not None, "--among", "--opposite-of as well", "--like")
    if among is not None:
        options.refuse(context, "--among", "k", "in_entries")
    some = Words.load(model)
    word = like if opposite_of is None else opposite_of
    match = some.match(word)
    option = "--like" if opposite_of is None else "--opposite-of"
    checks.expect(match.how != "unknown", option, "a word that the thesauri have, or a form of one", repr(word))
    _say_how(word, match)
    of_senses = among is not None and some.senses is not None and some.senses.of(word).any()
    checks.expect(of_senses or some.similarity(word, word) != 0, option, "a word with a vector",
                  f"{word!r}, whose vector is zero")  # fmt: skip
    if among is not None:
        return _chosen(some, word, match, [one.strip() for one in among.split(",") if one.strip()], json=json)
    lists = {} if opposite_of is None else {"opposites": some.opposites(word, k=k, in_entries=in_entries)}
    lists["nearest"] = some.nearest(word, k=k, in_entries=in_entries)
    for name, result in lists.items():
        if not result:
            say(f"{word}: no {'opposite' if name == 'opposites' else 'word alike'} among the words with enough entries "
                "(--in-entries)")
    if json:
        shown = {name: [{"word": one.word, "cosine": round(one.cosine, 6)} for one in result]
                 for name, result in lists.items()}  # fmt: skip
        return show_json({"word": word, "how": match.how, "as": list(match.words), **shown})
    for name, result in lists.items():
        for rank, one in enumerate(result, start=1):
            show(f"{name}\t{rank}\t{one.cosine:.4f}\t{one.word}")


def _say_how(word: str, match) -> None:
    """Says by which rule a word was found, unless it stands in the thesauri as it is."""
    if match.how not in ("as written", "unknown"):
        say(f"{word}: not in the thesauri; by its {match.how}, as {', '.join(match.words[:5])}"
            + ", …" * (len(match.words) > 5))  # fmt: skip


def _chosen(some, word: str, match, choices: list[str], *, json: bool) -> None:
    """Prints the cosines of choices, of the most opposite senses, and which is the opposite."""
    from jaxsim import checks

    checks.expect(bool(choices), "--among", "words, commas between them", "none")
    if some.entries is None:
        say("compared by one vector a word: the folder has no entries, by which senses are told apart (`jaxsim "
            "thesaurus` writes them now)")
    answer = some.closest_opposite(word, choices)
    checks.expect(answer is not None, "--among", "at least one word that the thesauri have", ", ".join(choices))
    cosines = dict(zip(choices, some.opposition(word, choices), strict=True))
    tied = sum(cosine == cosines[answer] for cosine in cosines.values())
    if tied > 1:
        say(f"{tied} choices tie, and the first of them is given as the answer")
    found = {choice: some.match(choice) for choice in choices}
    for choice, its in found.items():
        _say_how(choice, its)
    if json:
        shown = {choice: {"how": its.how, "as": list(its.words)} for choice, its in found.items()}
        return show_json({"word": word, "how": match.how, "as": list(match.words), "answer": answer, "cosines": cosines,
                          "choices": shown})
    for choice, cosine in cosines.items():
        told = "unknown" if cosine is None else f"{round(cosine, 4) + 0.0:.4f}"  # no -0.0000
        show(f"{'*' if choice == answer else ' '}\t{told}\t{choice}")
