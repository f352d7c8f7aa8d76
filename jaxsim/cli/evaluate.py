"""The command `evaluate`: a model on pairs or on a test collection, and runs of any system."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jaxsim.cli import options, pictures
from jaxsim.cli.output import expect_other, replacing, say, show_json, show_result
from jaxsim.cli.program import app

if TYPE_CHECKING:
    import numpy as np

    from jaxsim.data.pairs import Pairs
    from jaxsim.data.tables import Table
    from jaxsim.evaluate.trec import Qrels, Run
    from jaxsim.model import Model


_SCORES = 2 * 10**9  # of labelled pairs, at most: what is asked of them first needs one score a pair
_BLOCK = 1024  # queries at a time, at most: the documents are made ready for each
_RANKED = 2**25  # scores at a time, at most: queries rank every document, in several arrays of 8 bytes a score


@app.command(epilog="\b\nExample:\n  jaxsim evaluate --model model --pairs test.tsv\n"
                    "  jaxsim evaluate --model model --pairs links.tsv --terms 0.5 --exclude-self\n"
                    "  jaxsim evaluate --model model --pairs test.tsv --figures figures\n"
                    "  jaxsim evaluate --model model --queries queries.tsv --documents docs.tsv --qrels qrels.txt "
                    "--run-out run.txt\n  jaxsim evaluate --run run.txt --qrels qrels.txt")
def evaluate(
    model: Annotated[Path | None, options.folder("Folder that `jaxsim train` wrote.")] = None,
    pairs: Annotated[str | None, options.file("Table of pairs unseen in training; - for stdin.")] = None,
    queries: Annotated[str | None, options.file("Queries: JSON Lines with id and text, or id<TAB>text.")] = None,
    documents: Annotated[str | None, options.file("Documents, in the same way.")] = None,
    qrels: Annotated[str | None, options.file("Judgements: lines `query 0 document grade`.")] = None,
    run: Annotated[str | None, options.file("A run to judge: `query Q0 document rank score name`.")] = None,
    run_out: Annotated[Path | None, options.file("Write the run here, with 1,000 documents for each query.")] = None,
    figures: Annotated[Path | None, options.folder("With --pairs: draw the pictures of `jaxsim report` here.")] = None,
    examples: pictures.ExamplesOption = None,
    format: options.FormatOption = None,
    left: options.LeftOption = None,
    right: options.RightOption = None,
    label: options.LabelOption = None,
    terms: options.TermsOption = None,
    words: options.WordsOption = None,
    power: options.PowerOption = None,
    feedback: options.FeedbackOption = None,
    exclude_self: Annotated[bool, typer.Option("--exclude-self", help="Leave out the query itself: with "
                                               "--queries a document of its identifier or its text, with --pairs a "
                                               "right text that is equal to it.")] = False,
    exclude: Annotated[str | None, options.file("With --queries: documents to leave out, lines query<TAB>document, "
                                                "such as links that are known.")] = None,
    csls: options.CslsOption = None,
    json: options.JsonOption = False,
) -> None:
    """Measure a model, or a run of any system. Prints means and other figures with 95 % bootstrap intervals.

    Pairs: how often a text's mate is the nearest of all (accuracy, ties are errors) and the mean of 1 / its rank
    (MRR), both directions averaged. If a left text is in several pairs, two more figures take all its right texts as
    correct: the mean of 1 / the rank of the first of them (mrr_any), and the mean of their average precision (map).
    These two and the accuracy of the first place are printed for left texts that search the right ones as `jaxsim
    search` does, if one of its options is given: --terms, --words, --power, --feedback, --csls or --exclude-self. With
    --label: the area under the ROC curve (AUC) and the largest F1 of the similarity (a cosine; for SSI its own score);
    with three or more different labels (grades) also Spearman's correlation; and if a left text has several right
    ones, mrr_any and map, where those of labels above 0 are correct, and all others of the file are not.

    Test collections: MAP, MRR, precision and NDCG of the first 10, over queries that have a relevant document. They are
    searched as `jaxsim search` does, by vectors and words together.

    With --figures, it also draws the pictures of `jaxsim report`.
    """
    from jaxsim import checks
    from jaxsim.evaluate import trec

    ways = {"--pairs": pairs, "--queries": queries, "--run": run}
    given = [name for name, value in ways.items() if value is not None]
    checks.expect(len(given) == 1, ", ".join(ways), "one of them", " and ".join(given) or "none")
    collection = given == ["--queries"]
    of_search = {"--terms": terms, "--words": words, "--power": power, "--feedback": feedback, "--csls": csls,
                 "--exclude-self": exclude_self or None}  # fmt: skip
    rules = (
        ("--model", model, run is None, run is not None), ("--documents", documents, collection, not collection),
        ("--qrels", qrels, pairs is None, pairs is not None), ("--label", label, False, pairs is None),
        ("--run-out", run_out, False, not collection), ("--figures", figures, False, pairs is None),
        ("--exclude", exclude, False, not collection), ("--format", format, False, pairs is None),
        ("--left", left, False, pairs is None), ("--right", right, False, pairs is None),
        *((name, value, False, run is not None) for name, value in of_search.items()),
    )  # fmt: skip
    for name, value, needed, excluded in rules:
        checks.expect(not (needed and value is None), name, f"a value, with {given[0]}", "none")
        checks.expect(not (excluded and value is not None), name, f"no {given[0]} beside it", "both")
    checks.expect(examples is None or figures is not None, "--examples", "--figures as well", "none")
    searching = [name for name, value in of_search.items() if value is not None]
    checks.expect(label is None or not searching, ", ".join(searching), "no --label beside it", "both")
    expect_other("--run-out", run_out, queries=queries, documents=documents, qrels=qrels, exclude=exclude, csls=csls)
    options.one_stdin(pairs=pairs, queries=queries, documents=documents, qrels=qrels, run=run, csls=csls,
                      exclude=exclude)
    drawn: dict[str, str] = {}
    way = {"terms": terms, "words": str(words or options.Words.BM25), "power": power, "feedback": feedback}
    like = None if csls is None else [line for _, line in options.plain(csls)]
    if pairs is not None:
        pictures.check_place(figures, "--figures")
        trained = _load(model)
        table = pictures.read(trained, pairs, format, left, right, label)
        options.tell_idle(power, trained, terms=terms, csls=csls)
        if figures is not None and table.labels is not None:  # the pictures have a curve of both kinds
            checks.expect(0 < (table.labels > 0).mean() < 1, f"{table.pairs.name}, for --figures",
                          "labels above 0 and others", checks.one_kind(table.labels))
        result = _found(trained, table.pairs, way, exclude_self, like) if searching else _pairs(trained, table)
        if figures is not None:
            drawn = pictures.draw(trained, table, figures, examples)
    else:
        judged = trec.read_qrels(qrels)
        if run is None:
            trained = _load(model)
            options.tell_idle(power, trained, terms=terms, csls=csls)
            results, judged = _search(trained, queries, documents, judged, way, exclude, exclude_self, like,
                                      run_out is not None)  # fmt: skip
            if run_out is not None:
                with replacing(run_out) as file:
                    file.writelines(line.encode() for line in trec.run_lines(results))
        else:
            results = trec.read_run(run)
            absent = sum(any(grade > 0 for grade in judged[query].values()) for query in judged.keys() - results.keys())
            if absent:
                say(f"{run}: no results for {checks.counted(absent, 'query', 'queries')} with relevant documents: "
                    "scored 0")
        result = _means(trec.scores(results, judged), "queries")
    if json:
        show_json({**result, **({"figures": drawn} if drawn else {})})
    else:
        _show(result)
        show_result(drawn)


def _load(folder: Path) -> Model:
    from jaxsim.model import Model

    return Model.load(folder)


def _pairs(model: Model, table: Table) -> dict[str, Any]:
    import numpy as np

    from jaxsim import checks, sparse
    from jaxsim.evaluate import mates, metrics

    pairs = table.pairs
    if table.labels is not None:
        positive = table.labels > 0
        both, graded = 0 < positive.sum() < positive.size, np.unique(table.labels).size > 2
        checks.expect(both or graded, pairs.name, "labels above 0 and others", checks.one_kind(table.labels))
        if not both:
            which = "all labels are" if positive.any() else "no label is"
            say(f"{pairs.name}: no auc and no max_f1, as {which} above 0")
        scores = model.pair_similarity(pairs.left, pairs.right)
        results: dict[str, Any] = {"pairs": len(pairs), "positive": int(positive.sum())}
        for name in ("auc", "max_f1") if both else ():
            results[name] = _statistic(getattr(metrics, name), scores, positive, strata=positive)
        results |= {"spearman": _statistic(metrics.spearman, scores, table.labels)} if graded else {}
        return results | (_several(model, pairs, positive) if both else {})
    equal = len(pairs) - len(pairs := mates.once(pairs))
    if equal:
        say(f"{pairs.name}: left out {checks.counted(equal, 'pair')}, equal to an earlier one")
    checks.expect(len(pairs) > 1, pairs.name, "at least two pairs", len(pairs))
    rivals = mates.own_rivals(pairs)
    if 20 * rivals >= len(pairs):  # few of them change little
        say(f"{pairs.name}: {checks.counted(rivals, 'pair')} with a text that another pair has on the other side: it "
            "is nearest to itself, an error each. With --exclude-self left texts search the right ones without it")
    sides = model.vectors(pairs.left, side="query"), model.vectors(pairs.right, side="document")
    lost = int(np.count_nonzero(~(sparse.nonzero(sides[0]) & sparse.nonzero(sides[1]))))
    if lost:
        say(f"{pairs.name}: {checks.counted(lost, 'pair')} with a text without known words, which finds no mate")
    values = mates.per_query(*sides, similarity=model.scorer)
    result = _means({name: np.reshape(value, (2, -1)).mean(axis=0) for name, value in values.items()}, "pairs")
    answers = mates.answers(pairs.left, pairs.right)
    if answers.several:
        say(f"{pairs.name}: {checks.counted(answers.several, 'left text')} of {len(answers.queries):,} with several "
            "right ones: accuracy and mrr count only the one of the pair as right, mrr_any and map count all of them")
        result |= _means(mates.per_left(*sides, answers, similarity=model.scorer), "queries")
    return result


def _several(model: Model, pairs: Pairs, positive: np.ndarray) -> dict[str, Any]:
    """Left texts of labelled pairs as queries among all right texts, where one has several candidates.

    Right are those of labels above 0.
    """
    from jaxsim import checks
    from jaxsim.evaluate import mates

    if len(set(zip(pairs.left, pairs.right, strict=True))) == len(set(pairs.left)):
        return {}
    answers = mates.answers(pairs.left, pairs.right, positive)
    if len(answers.queries) * len(answers.documents) > _SCORES:
        say(f"{pairs.name}: no mrr_any and map, which take more than {_SCORES:,} scores here; fewer pairs have them")
        return {}
    say(f"{pairs.name}: {checks.counted(len(answers.queries), 'left text')} with a right text of a label above 0 "
        f"({answers.several:,} with several): mrr_any and map are theirs, among all right texts")
    sides = model.vectors(pairs.left, side="query"), model.vectors(pairs.right, side="document")
    found = _means(mates.per_left(*sides, answers, similarity=model.scorer), "queries")
    return {name: {"value": one.pop("mean"), **one} if isinstance(one, dict) else one for name, one in found.items()}


def _found(model: Model, pairs: Pairs, way: dict[str, Any], itself: bool, like: list[str] | None) -> dict[str, Any]:
    """Left texts as queries of a search among the right texts, each text once."""
    import numpy as np

    from jaxsim import checks
    from jaxsim.evaluate import mates
    from jaxsim.model import index, ranker

    checks.expect(len(pairs) > 1, pairs.name, "at least two pairs", len(pairs))
    found, alone = mates.answers(pairs.left, pairs.right), 0
    asked, texts = [pairs.left[row] for row in found.queries], [pairs.right[row] for row in found.documents]
    rows = {text: row for row, text in enumerate(texts)}
    both = index.encode(model, texts, csls=like, power=way["power"], **ranker.needed(model, way["terms"], way["words"]))
    values: dict[str, list] = {"accuracy": [], "mrr_any": [], "map": []}
    block = max(1, min(_BLOCK, _RANKED // len(texts)))
    for start in range(0, len(asked), block):
        some, belong = asked[start : start + block], found.right[start : start + block].toarray()
        left_out = [[rows[text]] if itself and text in rows else [] for text in some]
        for right, absent in zip(belong, left_out, strict=True):
            right[absent] = False
        kept = belong.any(axis=1)
        alone += np.count_nonzero(~kept)
        if not kept.any():
            continue
        some, left_out, belong = ([one for one, there in zip(column, kept, strict=True) if there]
                                  for column in (some, left_out, belong))
        belong = np.array(belong)
        scores, order = ranker.rank(model, both, some, k=len(texts), exclude=left_out, **way)
        placed = np.empty_like(scores)
        np.put_along_axis(placed, order, scores, axis=1)
        part = mates.answered(placed, belong)
        for name, column in {"accuracy": (part["mrr_any"] == 1).astype(np.float64), **part}.items():
            values[name].append(column)
    if alone:
        say(f"{pairs.name}: left out {checks.counted(alone, 'left text')}, of which no pair has another right text")
    checks.expect(alone < len(asked), pairs.name, "a left text with another right text, for --exclude-self", "none")
    return _means({name: np.concatenate(columns) for name, columns in values.items()}, "queries")


def _statistic(statistic: Callable, *values: np.ndarray, strata: np.ndarray | None = None) -> dict[str, float]:
    """A statistic of pairs, with an interval where there are two or more; fewer samples of very many pairs."""
    import jax

    from jaxsim.evaluate import significance

    result = {"value": float(statistic(*values))}
    if len(values[0]) > 1:
        samples = min(1_000, max(200, 50_000_000 // len(values[0])))
        low, high = significance.interval(statistic, *values, key=jax.random.key(0), strata=strata, num_samples=samples)
        result |= {"low": low, "high": high}
    return result


def _search(
    model: Model, queries: str, documents: str, qrels: Qrels, way: dict[str, Any], exclude: str | None, itself: bool,
    like: list[str] | None, written: bool,
) -> tuple[Run, Qrels]:
    """The model's run, and the judgements of the queries that are there."""
    import numpy as np

    from jaxsim import checks
    from jaxsim.evaluate import trec
    from jaxsim.model import index, ranker

    wanted, texts = trec.read_texts(queries), trec.read_texts(documents)
    if written:  # said before the search, which may take long
        trec.expect_identifiers([*wanted, *texts], "--run-out")
    judged = {query: grades for query, grades in qrels.items() if query in wanted}
    checks.expect(bool(judged), "--qrels", f"judgements of queries in {queries}", "none of them")
    names = list(texts)
    if len(judged) < len(qrels):
        absent = checks.counted(len(qrels) - len(judged), "judged query is", "judged queries are")
        say(f"{queries}: {absent} not in it, and left out")
    there = [name in texts for grades in judged.values() for name, grade in grades.items() if grade > 0]
    checks.expect(any(there) or not there, "--qrels", f"a relevant document with a text in {documents}", "none")
    unknown = there.count(False)
    if unknown:
        say(f"{documents}: no text for {checks.counted(unknown, 'relevant document')} of the judgements; never found")
    rows = {name: row for row, name in enumerate(names)}
    left_out = [set(some) for some in (trec.same(wanted, texts) if itself else [()] * len(wanted))]
    if exclude is not None:
        places, absent = {query: place for place, query in enumerate(wanted)}, 0
        for _, query, document in options.excluded(exclude):
            there = query in places and document in rows
            absent += not there
            if there:
                left_out[places[query]].add(rows[document])
        if absent:
            say(f"{exclude}: {checks.counted(absent, 'line')} with a query or a document that is not there")
    judged = {query: {name: grade for name, grade in grades.items() if rows.get(name) not in left_out[place]}
              for place, query in enumerate(wanted) if (grades := judged.get(query)) is not None}  # fmt: skip
    both = index.encode(model, list(texts.values()), csls=like, power=way["power"],
                        **ranker.needed(model, way["terms"], way["words"]))  # fmt: skip
    scores, result = ranker.rank(model, both, list(wanted.values()), k=min(trec.DEPTH, len(names)),
                                 exclude=[sorted(one) for one in left_out], **way)  # fmt: skip
    kept = np.isfinite(scores)
    run = {query: trec.ranked({names[row]: float(score)
                               for score, row in zip(scores[i][kept[i]], result[i][kept[i]], strict=True)})
           for i, query in enumerate(wanted) if scores[i][kept[i]].any()}  # fmt: skip
    if len(run) < len(wanted):
        lost = checks.counted(len(wanted) - len(run), "query", "queries")
        say(f"{queries}: {lost} without a known word in common with any document: nothing is found for them")
    return run, judged


def _means(values: Mapping[str, np.ndarray], unit: str) -> dict[str, Any]:
    """Means of one value a query, with intervals where there are two values or more."""
    import jax

    from jaxsim.evaluate.significance import bootstrap_interval

    result: dict[str, Any] = {}
    for name, column in values.items():
        result[unit] = len(column)
        result[name] = {"mean": float(column.mean())}
        if len(column) > 1:
            low, high = bootstrap_interval(column, key=jax.random.key(0))
            result[name] |= {"low": low, "high": high}
    return result


def _show(result: Mapping[str, Any]) -> None:
    """Counts first, then a row a metric."""
    counts = {name: value for name, value in result.items() if isinstance(value, int)}
    show_result(counts)
    show_result({"metric": {name: value for name, value in result.items() if name not in counts}})
