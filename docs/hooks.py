"""What MkDocs needs to show this repository: pages that lie outside docs/, and docstrings as the site reads them.

README.md becomes the front page; BENCHMARKS.md, CONTRIBUTING.md and CHANGELOG.md become pages beside it. Their links
are written for the repository and are rewritten here. A link to a file that is no page (a script, a record, a
notebook) is shown as its text, since the site does not know where the repository is hosted.
"""

from __future__ import annotations

import re
from pathlib import Path

import griffe
from latex2mathml.converter import convert
from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
PAGES = {"README.md": "index.md"} | {name: name for name in ("BENCHMARKS.md", "CONTRIBUTING.md", "CHANGELOG.md")}
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
_IMAGE = re.compile(r"(!\[[^\]]*\]\(|src=\")(?:\.\./)?docs/")
_MATHS = re.compile(r"^( *)\.\. math:: *(.*(?:\n\1 +\S.*)*)", re.MULTILINE)
_INLINE_MATHS = re.compile(r":math:`([^`]+)`")


def on_files(files, config):
    """Adds the pages that lie at the root of the repository."""
    for source, page in PAGES.items():
        if (ROOT / source).exists():
            files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown, page, config, files):
    """Turns links between files of the repository into links between pages."""
    source = next((name for name, target in PAGES.items() if target == page.file.src_uri), None)
    here = (ROOT / source if source else ROOT / "docs" / page.file.src_uri).parent

    def link(match):
        text, target = match.groups()
        path, hash_, anchor = target.partition("#")
        if not path or re.match(r"[a-z]+:", target):
            return match[0]
        found = (here / path).resolve()
        if found.is_relative_to(ROOT) and found.exists():
            name = found.relative_to(ROOT).as_posix()
            uri = PAGES.get(name) or name.removeprefix("docs/")
            if (name in PAGES or name.startswith("docs/")) and files.get_file_from_path(uri):
                up = "../" * page.file.src_uri.count("/")
                return f"[{text}]({up}{uri}{hash_}{anchor})"
            return text
        return match[0]  # leads nowhere: strict mode says so

    markdown = _IMAGE.sub(r"\1", markdown) if source else markdown
    return _LINK.sub(link, markdown)


class Docstrings(griffe.Extension):
    """Gives examples and formulas a form that Markdown knows."""

    def on_object(self, *, obj, **kwargs):
        """Rewrites the docstring of a module, class or function; strict mode fails where a public one has none."""
        if obj.docstring is None:
            if not obj.is_attribute and not any(name.startswith("_") for name in obj.path.split(".")):
                griffe.logger.warning(f"{obj.path}: no docstring")
        else:
            text = re.sub(r"^( *)Example:$", r"\1Examples:", obj.docstring.value, flags=re.MULTILINE)
            text = _MATHS.sub(lambda match: f'{match[1]}<div class="maths">{_mathml(match[2], "block")}</div>\n', text)
            obj.docstring.value = _INLINE_MATHS.sub(lambda match: _mathml(match[1], "inline"), text)


def _mathml(formula: str, display: str) -> str:
    return convert(" ".join(formula.split()), display=display)
