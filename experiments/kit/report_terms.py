"""What a record tells of single terms: the strongest learned extensions, and weights in some documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxsim.pictures import figures

_COLUMNS = 4


def extensions(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """The strongest coefficients between related terms of the first record that has ``config.extensions``.

    Args:
      rows: Records of one table, by path.

    Returns:
      Markdown; empty where no record has any.

    Example:
      >>> record = {"row": "vl-ext", "config": {"extensions": [["oil", "crude", 1.25]]}}
      >>> print(extensions({"a": record}).splitlines()[-1])
      | oil → crude 1.25 |  |  |  |
    """
    for record in rows.values():
        extensions = record["config"].get("extensions", [])
        if record["row"] == "vl-ext" and extensions:
            cells = [f"{source} → {target} {weight:.2f}" for source, target, weight in extensions]
            lines = [cells[start : start + _COLUMNS] for start in range(0, len(cells), _COLUMNS)]
            lines[-1] += [""] * (_COLUMNS - len(lines[-1]))
            text = ["\nStrongest learned extensions (share of the first term's weight that the second is lent, mean "
                    "over seeds):\n", "|" + "  |" * _COLUMNS, "|" + " --- |" * _COLUMNS]
            return "\n".join([*text, *(f"| {' | '.join(line)} |" for line in lines)]) + "\n"
    return ""


def weights(title: str, rows: Mapping[str, Mapping[str, Any]]) -> bytes | None:
    """Own and extended weights of the heaviest terms of some documents.

    Args:
      title: Above the axes.
      rows: Records of one table, by path.

    Returns:
      The SVG file, a pair of axes a document, its heaviest terms first; None where no record has any.

    Example:
      >>> document = {"number": 7, "topics": ["crude"], "terms": [["oil", 0.5, 0.6], ["crude", 0.0, 0.4]]}
      >>> b"oil" in weights("terms", {"a": {"row": "vl-ext", "config": {"documents": [document]}}})
      True
    """
    for record in rows.values():
        documents = record["config"].get("documents", [])
        if record["row"] == "vl-ext" and documents:
            drawn = []
            for document in documents:
                places = range(1, len(document["terms"]) + 1)
                series = {"own weight": [(n, term[1]) for n, term in zip(places, document["terms"], strict=True)],
                          "extended": [(n, term[2]) for n, term in zip(places, document["terms"], strict=True)]}
                label = f"{document['number']} ({', '.join(document['topics'])})"
                named = [term[0] for term in document["terms"]]
                drawn.append(figures.Panel(series, label, "share of length", ticks=named))
            return figures.panels(drawn, title=title, columns=2)
    return None
