"""One page with every figure of every record: rows to sort and to filter, the paper's figure beside ours.

The page holds all that it shows and asks for nothing on the network. Without JavaScript it is one long table.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Mapping
from typing import Any

from experiments.kit import papers, report_tables

FILE = "all.html"
COLUMNS = ("experiment", "paper", "table", "row", "metric", "printed", "ours", "sd", "seeds", "notes")
_NUMBERS = ("printed", "ours", "sd", "seeds")  # columns 6 to 9: the style names them by their places
_CHOSEN = ("experiment", "paper", "table", "metric")
_STYLE = """\
:root { color-scheme: light dark; --page: #ffffff; --ink: #1b1b1b; --line: #b9b9b9; --head: #eeeeee; }
@media (prefers-color-scheme: dark) { :root { --page: #14171a; --ink: #e6e6e6; --line: #4a4f55; --head: #23282d; } }
body { background: var(--page); color: var(--ink); font: 1rem/1.4 system-ui, sans-serif; margin: 1rem; }
form { display: flex; flex-wrap: wrap; gap: 0.5rem 1rem; margin: 1rem 0; }
label { display: grid; }
select, input, button { font: inherit; color: inherit; background: var(--page); border: 1px solid var(--line);
  padding: 0.3rem; max-width: 16rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { border-bottom: 1px solid var(--line); padding: 0.2rem 0.6rem; text-align: left; }
th { background: var(--head); position: sticky; top: 0; }
th button { border: 0; background: none; font-weight: bold; cursor: pointer; padding: 0.3rem 0; }
th[aria-sort="ascending"] button::after { content: " \\25B2"; }
th[aria-sort="descending"] button::after { content: " \\25BC"; }
td:nth-child(n+6):nth-child(-n+9) { text-align: right; font-variant-numeric: tabular-nums; } /* the numbers */
"""
_SCRIPT = """\
const body = document.querySelector("tbody");
const rows = [...body.rows];
const fields = [...document.querySelectorAll("[data-column]")];
const told = document.getElementById("told");
function show() {
  let shown = 0;
  for (const row of rows) {
    row.hidden = !fields.every(field => {
      const text = row.cells[Number(field.dataset.column)].textContent;
      if (!field.value) return true;
      return field.tagName === "SELECT" ? text === field.value : text.includes(field.value.trim());
    });
    shown += row.hidden ? 0 : 1;
  }
  told.textContent = shown + " of " + rows.length + " figures";
}
fields.forEach(field => field.addEventListener("input", show));
document.querySelector("#all").addEventListener("click", () => { document.querySelector("form").reset(); show(); });
document.querySelectorAll("th button").forEach((button, column) => button.addEventListener("click", () => {
  const head = button.parentElement;
  const down = head.getAttribute("aria-sort") === "ascending";
  document.querySelectorAll("th").forEach(other => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const number = head.classList.contains("number");
  const key = row => row.cells[column].textContent;
  rows.sort((a, b) => {
    const [one, other] = [key(a), key(b)];
    if (number && (one === "" || other === "")) return (one === "") - (other === "");
    const order = number ? Number(one) - Number(other) : one.localeCompare(other);
    return down ? -order : order;
  });
  body.append(...rows);
}));
document.querySelector("form").hidden = false;
show();
"""


def lines(found: Mapping[str, Mapping[str, Any]], codes: Mapping[str, list[str]]) -> list[dict[str, str]]:
    """A line for each metric of each record.

    Args:
      found: records by path.
      codes: path -> the row's codes (`notes.codes`).

    Returns:
      The `COLUMNS` of each, numbers as they are shown; what there is none of is empty.
    """
    made = []
    for path, record in sorted(found.items()):
        table = papers.TABLES.get(record["paper"])
        row = None if table is None else table.beside.get(record["row"])
        quoted = {} if row is None else dict(zip(table.metrics, row.figures, strict=True))
        for metric, value in record["metrics"].items():
            printed = quoted.get(metric)
            made.append({
                "experiment": record["experiment"], "paper": "" if record["paper"] == "none" else record["paper"],
                "table": record["table"], "row": record["row"], "metric": report_tables.metric_name(metric),
                "printed": "" if printed is None else f"{printed:g}", "ours": f"{value['mean']:.4f}",
                "sd": f"{value['sd']:.4f}" if len(record["seeds"]) > 1 else "",
                "seeds": str(len(record["seeds"])) if record["seeds"] else "", "notes": ", ".join(codes.get(path, [])),
            })  # fmt: skip
    return made


def page(found: Mapping[str, Mapping[str, Any]], codes: Mapping[str, list[str]], warning: str = "") -> str:
    """The page.

    Args:
      found: as for `lines`.
      codes: as for `lines`.
      warning: A paragraph of Markdown to stand at the top, if any; its marks are left out.

    Returns:
      HTML, the same for the same records.
    """
    made = lines(found, codes)
    kinds = ['class="number" ' if name in _NUMBERS else "" for name in COLUMNS]
    heads = "".join(f'<th {kind}scope="col"><button type="button">{name}</button></th>'
                    for name, kind in zip(COLUMNS, kinds, strict=True))  # fmt: skip
    body = "\n".join("<tr>" + "".join(f"<td>{html.escape(line[name])}</td>" for name in COLUMNS) + "</tr>"
                     for line in made)  # fmt: skip
    fields = []
    for name in _CHOSEN:
        values = sorted({line[name] for line in made} - {""})
        options = "".join(f"<option>{html.escape(value)}</option>" for value in values)
        fields.append(f'<label>{name}<select data-column="{COLUMNS.index(name)}"><option value="">all</option>{options}'
                      "</select></label>")  # fmt: skip
    fields += [f'<label>{name} holds<input type="search" data-column="{COLUMNS.index(name)}" autocomplete="off">'
               "</label>" for name in ("row", "notes")]  # fmt: skip
    told = f"<p>{html.escape(warning.translate(dict.fromkeys(map(ord, '*`'))).strip())}</p>\n" if warning else ""
    digest = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<!-- Made by `python experiments/report.py` from the records. -->
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; \
script-src 'sha256-{digest}'">
<title>All figures</title>
<style>
{_STYLE}</style>
</head>
<body>
<h1>All figures of all records</h1>
{told}\
<p>One line a metric of a row of a table: as the paper printed it, where it did, and ours on test data, the mean over
seeds. The papers' data are not ours: compare the order of rows, not the figures.</p>
<form hidden>
{chr(10).join(fields)}
<button type="button" id="all">all</button>
</form>
<p id="told" role="status">{len(made)} figures</p>
<div class="wide"><table>
<thead><tr>{heads}</tr></thead>
<tbody>
{body}
</tbody>
</table></div>
<script>{_SCRIPT}</script>
</body>
</html>
"""
