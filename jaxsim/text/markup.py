"""The prose of Markdown and HTML pages, without what would give away which translations belong together."""

from __future__ import annotations

import re

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_TITLE = re.compile(r"^(title|localeTitle)[ \t]*:[ \t]*(.*(?:\n[ \t]+.*)*)", re.MULTILINE)
# Applied in this order; the order matters (a URL inside a link target goes with the target, one in <...> with the tag).
_MARKUP = (
    # Fenced code, also inside a list item or a quotation; a fence that is never closed runs to the end of the text.
    re.compile(
        r"^[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)?(`{3,}|~{3,})[^`\n]*\n(?:.*?^[ \t>]*\1[`~]*[ \t]*$|.*)",
        re.DOTALL | re.MULTILINE,
    ),
    re.compile(r"<pre\b[^>]*>.*?</pre\s*>", re.DOTALL | re.IGNORECASE),
    re.compile(r"(?<!`)(`+)(?!`)(?:(?!\n[ \t]*\n).)+?(?<!`)\1(?!`)", re.DOTALL),
    re.compile(r"<!--.*?-->|</?[A-Za-z!?][^<>]*>", re.DOTALL),
    # Includes and imports name files, anchors and link definitions have identifiers: equal on both sides.
    re.compile(r"\[!(?:INCLUDE|code)[^\[\]]*\[[^\]]*\][^\]\n]*\]", re.IGNORECASE),
    re.compile(r"\{\*.*?\*\}|\{[ ]?#[\w-]+[ ]?\}"),
    re.compile(r"^(?:import|export)\b.*\bfrom[ ]+['\"].*$", re.MULTILINE),
    re.compile(r"^[ \t]*\[[^\]\n]+\]:[^\n]*$", re.MULTILINE),
    re.compile(r"(?<=\])\((?:[^()\n]|\([^()\n]*\))*\)"),
    re.compile(r"\{\{.*?\}\}", re.DOTALL),
    re.compile(r"\b(?:https?|ftp)://\S+|\bwww\.\S+", re.IGNORECASE),
)


def _title(front_matter: str) -> str:
    found = {name: " ".join(value.split()) for name, value in _TITLE.findall(front_matter)}
    value = found.get("localeTitle") or found.get("title", "")
    value = re.sub(r"^[>|][-+]?\s+", "", value)
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value


def prose(text: str) -> str:
    r"""The prose of a Markdown or HTML page, without the parts that are the same in every language.

    Removed, in this order: the leading ``---`` block (its ``title:`` value stays, as the first line; ``localeTitle:``,
    the translated title of some collections, goes before it), fenced code, ``<pre>`` blocks, inline code, HTML tags,
    includes (``[!INCLUDE[...]]``, ``{* ... *}``), lines of imports (MDX), link targets and definitions, heading
    anchors (``{#id}``), ``{{...}}`` macros, bare URLs. Each removed part leaves one space.

    Args:
      text: the page as it stands in its source; line ends may be ``\n``, ``\r\n`` or ``\r``.

    Returns:
      The stripped text; stripping it once more changes nothing in ordinary pages.

    Example:
      >>> prose("---\ntitle: Maps\nslug: Web/Map\n---\nSee [the guide](/en/map) and `Map()`.").split()
      ['Maps', 'See', '[the', 'guide]', 'and', '.']
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    title = ""
    front = _FRONT_MATTER.match(text)
    if front:
        title = _title(front.group(1))
        text = text[front.end() :]
    for pattern in _MARKUP:
        text = pattern.sub(" ", text)
    return f"{title}\n{text}" if title else text
