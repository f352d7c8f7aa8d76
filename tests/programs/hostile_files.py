"""Gives every command files that nobody means to give, and counts what comes of it.

Each option of a command that takes a file gets one of `CONTENTS` while the other options have good files: no bytes,
random bytes, another encoding, brackets ten thousand deep, numbers of 5,000 digits, NaN, a line of two million letters,
a folder, cut archives. What may come back is an answer (status 0), or status 2 with a last line on stderr that names
the file or its option. Anything else is a fault. `python tests/programs/hostile_files.py` runs all;
`--only thesaurus` those of a command.
"""

from __future__ import annotations

import argparse
import bz2
import collections
import contextlib
import gzip
import io as streams
import json
import lzma
import sys
import tempfile
import traceback
from pathlib import Path

import numpy as np

WORDS = ["cat", "dog", "fish", "bird", "tree", "leaf", "stone", "river", "cloud", "rain"]
_LONG = "word" * 500_000
_DEEP = "[" * 10_000 + "]" * 10_000


def _json_lines(*rows: object) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


CONTENTS: dict[str, bytes | None] = {
    "empty": b"", "newline": b"\n", "blanks": b" \t \n\t\n", "nul": b"\0" * 100 + b"\n",
    "latin-1": b"caf\xe9\tth\xe9\n",
    "random": np.random.default_rng(0).bytes(500), "utf-16": "a\tb\ncat\tdog\n".encode("utf-16"),
    "bom": b"\xef\xbb\xbf", "nan": b"nan\tnan\tnan\nNaN\t-inf\tNaN\n", "long": f"{_LONG}\t{_LONG}\n".encode(),
    "marks": ("a" + "\u0301" * 20_000 + "\tb\n").encode(), "deep": f'{{"text": {_DEEP}}}\n'.encode(),
    "digits": b'{"id": ' + b"9" * 5_000 + b', "text": 1}\n', "json": _json_lines([1], None, {"text": None}, "x"),
    "question": _json_lines({"question": "A _____ .", "choices": [None, {"a": 1}], "answer": 1e400}),
    "head": _json_lines({"head": "", "synonyms": "hot", "antonyms": {"a": 1}}, {"head": "b", "synonyms": [[], 3]}),
    "many columns": b"\t".join([b"x"] * 5_000) + b"\n", "quotes": b'"a\t"b\n"', "folder": None,
    ".gz": gzip.compress(b"cat\tdog\n" * 50, mtime=0)[:-6], ".xz": lzma.compress(b"cat\tdog\n" * 50)[:-6],
    ".bz2": bz2.compress(b"cat\tdog\n" * 50)[:-6], ".parquet": b"PAR1" + b"\0" * 40 + b"PAR1",
}  # fmt: skip


def _good(place: Path) -> dict[str, Path]:
    """Good files and models for the other options."""
    rng = np.random.default_rng(0)

    def text() -> str:
        return " ".join(rng.choice(WORDS, 5))

    pairs = [(one := text(), f"{one} {text()}") for _ in range(40)]
    result = {name: place / name for name in (
        "pairs.tsv", "texts.txt", "queries.jsonl", "documents.jsonl", "qrels.txt", "run.txt", "entries.jsonl",
        "antonyms.tsv", "dictionary.txt", "questions.jsonl", "novels")}  # fmt: skip
    result["pairs.tsv"].write_text("".join(f"{left}\t{right}\n" for left, right in pairs))
    result["texts.txt"].write_text("".join(f"{right}\n" for _, right in pairs))
    for name, at in (("queries.jsonl", 0), ("documents.jsonl", 1)):
        result[name].write_bytes(_json_lines(*({"id": str(i), "text": pair[at]} for i, pair in enumerate(pairs))))
    result["qrels.txt"].write_text("".join(f"{i} 0 {i} 1\n" for i in range(40)))
    result["run.txt"].write_text("".join(f"{i} Q0 {i} 1 0.5 mine\n" for i in range(40)))
    result["entries.jsonl"].write_bytes(_json_lines(
        *({"head": a, "synonyms": [b], "antonyms": [c]} for a, b, c in zip(WORDS, WORDS[1:], WORDS[2:], strict=False))))
    result["antonyms.tsv"].write_text("cat\tdog\ntree\tstone\n")
    result["dictionary.txt"].write_text("cat\tgato\ndog\tperro\n")
    result["questions.jsonl"].write_bytes(_json_lines({"question": "The cat _____ .", "choices": ["dog", "fish"]}))
    result["novels"].mkdir()
    (result["novels"] / "a.txt").write_text("\n\n".join(f"The {left} ." for left, _ in pairs))
    opca = ["--dim", "3", "--drop-top", "0", "--min-df", "1"]
    made = {"model": ["train", "--pairs", result["pairs.tsv"], "--method", "opca", *opca],
            "words": ["thesaurus", "--file", result["entries.jsonl"], "--dim", "3", "--no-refine"],
            "table": ["translate-table", "--dictionary", result["dictionary.txt"]],
            "completion": ["complete", "--texts", result["novels"], "--min-count", "1", "--order", "2"]}  # fmt: skip
    for name, command in made.items():
        result[name] = place / name
        status, facts = ran([*command, "--out", result[name]])
        if status:
            raise RuntimeError(f"{name}: {facts}")
    return result


def commands(good: dict[str, Path], out: Path) -> dict[str, tuple[list, dict[str, Path]]]:
    """Command -> its words, and its options that take a file or a folder of texts."""
    few = ["--dim", "2", "--drop-top", "0", "--min-df", "1", "--out", out]
    model, pairs = ["--model", good["model"]], {"--pairs": good["pairs.tsv"]}
    judged = {f"--{name}": good[file] for name, file in
              (("queries", "queries.jsonl"), ("documents", "documents.jsonl"), ("qrels", "qrels.txt"))}
    return {
        "train": (["train", "--method", "opca", *few], {**pairs, "--dev": good["pairs.tsv"]}),
        "train grams": (["train", "--method", "lsa", "--subwords", "0.5", *few],
                        {**pairs, "--texts": good["texts.txt"]}),
        "train judged": (["train", "--method", "s2net-pref", "--max-iter", "1", *few], judged),
        "train budget": (["train", "--tune", "--budget", "1s", "--max-terms", "20", "--out", out],
                         {**pairs, **{f"--dev-{name[2:]}": file for name, file in judged.items()}}),
        "topics": (["topics", *few, "--method", "plsa", "--max-iter", "1"], pairs),
        "encode": (["encode", *model], {"--input": good["texts.txt"]}),
        "similarity": (["similarity", *model, "--json"], pairs),
        "search": (["search", *model, "--k", "1", "--json"],
                   {"--documents": good["texts.txt"], "--queries": good["texts.txt"]}),
        "search index": (["search", *model, "--query", "cat", "--k", "1", "--index", out],
                         {"--documents": good["texts.txt"]}),
        "evaluate": (["evaluate", *model, "--json"], pairs), "evaluate judged": (["evaluate", *model], judged),
        "evaluate run": (["evaluate"], {"--run": good["run.txt"], "--qrels": good["qrels.txt"]}),
        "evaluate exclude": (["evaluate", *model, *(word for pair in judged.items() for word in pair)],
                             {"--exclude": good["run.txt"]}),
        "report": (["report", *model, "--out", out, "--html"], pairs),
        "thesaurus": (["thesaurus", "--dim", "2", "--no-refine", "--out", out],
                      {"--file": good["entries.jsonl"], "--antonyms": good["antonyms.tsv"]}),
        "complete": (["complete", "--min-count", "1", "--order", "2", "--out", out],
                     {"--questions": good["questions.jsonl"], "--texts": good["novels"]}),
        "complete asked": (["complete", "--model", good["completion"], "--json"],
                           {"--questions": good["questions.jsonl"]}),
        "translate-table": (["translate-table", "--aligner", "ibm1", "--max-iter", "1", "--out", out], pairs),
        "translate-table pages": (["translate-table", "--unit", "paragraphs", "--max-iter", "1", "--out", out], pairs),
        "dictionary": (["translate-table", "--out", out, "--word", "cat"], {"--dictionary": good["dictionary.txt"]}),
    }  # fmt: skip


def ran(words: list) -> tuple[int | str, str]:
    """Status of a command and what it says; ``"traceback"`` for what no command says."""
    from jaxsim import cli

    with contextlib.redirect_stdout(streams.StringIO()), contextlib.redirect_stderr(streams.StringIO()) as facts:
        try:
            return cli.main([str(word) for word in words]), facts.getvalue()
        except BaseException:
            return "traceback", traceback.format_exc()


def _written(place: Path, name: str, content: bytes | None) -> Path:
    path = place / f"hostile{name if name.startswith('.') else '.' + name.replace(' ', '-')}"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    return path


def tried(only: str = "", contents: list[str] | None = None, said=print) -> collections.Counter:
    """Counts answers, refusals and faults; the faults are told."""
    counts: collections.Counter = collections.Counter()
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        place = Path(folder)
        good = _good(place)
        for name in contents or CONTENTS:
            path = _written(place, name, CONTENTS[name])
            for command, (_, options) in commands(good, place).items():
                for option in options if only in command else ():
                    out = place / f"out{sum(counts.values())}"
                    outcome, facts = _tried(*commands(good, out)[command], option, path)
                    left = [one.name for one in place.rglob(".*") if one.suffix in (".part", ".tmp", ".old")]
                    counts["fault" if left else outcome] += 1
                    if left or outcome == "fault":
                        said(f"{command} {option} {name}: {left} {facts[-600:]}")
    return counts


def _tried(words: list, options: dict[str, Path], option: str, path: Path) -> tuple[str, str]:
    """What comes of one file in the place of a good one, in a word, and what is said."""
    wanted = _in_folder(path) if options[option].is_dir() and path.is_file() else path
    given = [word for one, file in options.items() for word in (one, wanted if one == option else file)]
    status, facts = ran([*words, *given])
    last = next(iter(facts.strip().splitlines()[-1:]), "")
    named = any(name in last for name in (path.name, *options))  # a file may be told not to fit another
    line = last.startswith("jaxsim: ") and named
    return "answered" if status == 0 else "refused" if status == 2 and line else "fault", f"{status}: {facts}"


def _in_folder(path: Path) -> Path:
    """A folder with a text file of these bytes."""
    folder = path.with_name(f"texts-{path.name}")
    if not folder.exists():
        folder.mkdir()
        (folder / f"{path.name}.txt").write_bytes(path.read_bytes())
    return folder


def main() -> int:
    """Runs all; the exit status is 1 if there was a fault."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="commands whose name has this in it")
    parser.add_argument("--contents", nargs="*", choices=list(CONTENTS))
    given = parser.parse_args()
    counts = tried(given.only, given.contents)
    print(", ".join(f"{number} {word}" for word, number in sorted(counts.items())))
    return int(counts["fault"] > 0)


if __name__ == "__main__":
    sys.exit(main())
