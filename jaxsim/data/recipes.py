"""From source files to corpus files: one pure function each, for what is neither a copy nor an archive of the sources.

A recipe takes the files of every source (name of the source -> path -> bytes) and gives corpus files, not compressed.
What a selection of pages needs to be the same everywhere, their names, stands in ``manifests``.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping

from jaxsim import checks
from jaxsim.data import packing

Sources = Mapping[str, Mapping[str, bytes]]

_HOLMES = "data/raw_data/Holmes_Training_Data/"
_HOLMES_LEFT_OUT = ("RHOLM10.TXT", "RHOLM11B.TXT", "STUDY10.TXT")  # stories of Sherlock Holmes, as the questions are
_HOLMES_PARTS = (118, 139, 135, 127)


def crowdflower_search(sources: Sources) -> dict[str, bytes]:
    """The ten parts in one table, by id, with the number of the part in the column ``fold``."""
    rows, header = [], None
    for fold in range(1, 11):
        text = sources["folds"][f"ValidationFolds/{fold}-test.csv"].decode("utf-8")
        header, *part = csv.reader(io.StringIO(text, newline=""))
        rows.extend([*row, str(fold)] for row in part)
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows([[*header, "fold"], *sorted(rows, key=lambda row: int(row[0]))])
    return {"train.csv.gz": out.getvalue().encode()}


def wikispeedia_paths(sources: Sources) -> dict[str, bytes]:
    """The finished games, a line each: titles with ``;`` between, from the numbers of the articles."""
    folder, game = "workspace/wikispeedia/", sources["game"]
    listed = game[f"{folder}raw_input_data/articles.tsv"].decode().splitlines()
    titles = [line for line in listed if line and not line.startswith("#")]
    steps = [int(line.split()[0]) for line in game[f"{folder}observations.txt"].decode().splitlines()]
    lengths = [int(line.split()[1]) for line in game[f"{folder}lengths.txt"].decode().splitlines()]
    checks.expect(sum(lengths) == len(steps), "lengths.txt", f"{len(steps)} steps in all", sum(lengths))
    lines, start = [], 0
    for length in lengths:
        lines.append(";".join(titles[number] for number in steps[start : start + length]))
        start += length
    return {"paths_finished_articles.tsv.gz": "".join(f"{line}\n" for line in lines).encode()}


def europarl_days(sources: Sources) -> dict[str, bytes]:
    """Every third session day, in UTF-8, an archive for each language."""
    days = sources["days"]
    names = sorted(path.rpartition("/")[2] for path in days if path.startswith("it-en/en/"))[::3]
    return {
        f"{language}.tar.xz": packing.tar(
            {f"{language}/{name}": days[f"it-en/{language}/{name}"].decode("latin-1").encode() for name in names}
        )
        for language in ("en", "it")
    }


def semeval(sources: Sources) -> dict[str, bytes]:
    """The sets of 2012 to 2016 with their notices, without a script."""
    folder = "data/sts/semeval-sts/"
    kept = {f"sts_semeval/{path.removeprefix(folder)}": body for path, body in sources["sentences"].items()
            if path.startswith(f"{folder}201") and not path.endswith(".pl")}  # fmt: skip
    return {"sts_semeval/sts_semeval_2012-2016.tar.gz": packing.tar(kept)}


def holmes(sources: Sources) -> dict[str, bytes]:
    """The training texts in four archives, without the stories of Sherlock Holmes."""
    texts = {path.removeprefix(_HOLMES): body for path, body in sources["novels"].items()}
    names = sorted(texts.keys() - set(_HOLMES_LEFT_OUT))
    checks.expect(len(names) == sum(_HOLMES_PARTS), "novels", f"{sum(_HOLMES_PARTS)} texts", len(names))
    made = {}
    for number, size in enumerate(_HOLMES_PARTS, start=1):
        part, names = names[:size], names[size:]
        made[f"training/part{number}.tar.xz"] = packing.tar({f"holmes_training_data/{one}": texts[one] for one in part})
    return made


def wordnet(sources: Sources) -> dict[str, bytes]:
    """The database files of Debian's package, one by one."""
    (package,) = sources["package"].values()
    members = packing.deb_members(package)
    made = {f"{path.rpartition('/')[2]}.gz": body for path, body in members.items()
            if path.startswith("usr/share/wordnet/") and path.rpartition("/")[2].partition(".")[0] in
            ("data", "index", "noun", "verb", "adj", "adv")}  # fmt: skip
    return made | {"COPYRIGHT": members["usr/share/doc/wordnet-base/copyright"]}


RECIPES: dict[str, Callable[[Sources], dict[str, bytes]]] = {
    recipe.__name__: recipe
    for recipe in (crowdflower_search, wikispeedia_paths, europarl_days, semeval, holmes, wordnet)
}
