"""The prose of Markdown and HTML pages, without what would give away which translations belong together."""

from __future__ import annotations

import re

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_TITLE = re.compile(r"^(title|localeTitle)[ \t]*:[ \t]*(.*(?:\n[ \t]+.*)*)", re.MULTILINE)


class _Closed:
    """A pattern that something closes, looked for up to the last of these: not from every open one to the end."""

    def __init__(self, pattern: str, closing: str, flags: int = 0, *, behind: str = ""):
        """``behind`` is what the pattern also finds without it, in the rest of a text."""
        both = f"{pattern}|{behind}" if behind else pattern
        self.pattern, self.closing = re.compile(both, flags), re.compile(closing, flags)
        self.behind = re.compile(behind, flags) if behind else None

    def sub(self, by: str, text: str) -> str:
        """As that of regular expressions."""
        end = max((found.end() for found in self.closing.finditer(text)), default=0)
        rest = text[end:]
        return self.pattern.sub(by, text[:end]) + (self.behind.sub(by, rest) if self.behind else rest)


# Applied in this order; the order matters (a URL inside a link target goes with the target, one in <...> with the tag).
_MARKUP = (
    # Fenced code, also inside a list item or a quotation; a fence that is never closed runs to the end of the text.
    re.compile(
        r"^[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)?(`{3,}|~{3,})[^`\n]*\n(?:.*?^[ \t>]*\1[`~]*[ \t]*$|.*)",
        re.DOTALL | re.MULTILINE,
    ),
    _Closed(r"<pre\b[^<>]*>.*?</pre\s*>", r"</pre\s*>", re.DOTALL | re.IGNORECASE),
    re.compile(r"(?<!`)(`+)(?!`)(?:(?!\n[ \t]*\n).)+?(?<!`)\1(?!`)", re.DOTALL),
    _Closed(r"<!--.*?-->", "-->", re.DOTALL, behind=r"</?[A-Za-z!?][^<>]*>"),
    # Includes and imports name files, anchors and link definitions have identifiers: equal on both sides.
    re.compile(r"\[!(?:INCLUDE|code)[^\[\]]*\[[^\[\]]*\][^\]\n]*\]", re.IGNORECASE),
    _Closed(r"\{\*.*?\*\}", r"\*\}", behind=r"\{[ ]?#[\w-]+[ ]?\}"),
    re.compile(r"^(?:import|export)\b.*\bfrom[ ]+['\"].*$", re.MULTILINE),
    re.compile(r"^[ \t]*\[[^\]\n]+\]:[^\n]*$", re.MULTILINE),
    re.compile(r"(?<=\])\((?:[^()\n]|\([^()\n]*\))*\)"),
    _Closed(r"\{\{.*?\}\}", r"\}\}", re.DOTALL),
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
