"use strict";
// The search box of the page: finds texts by their words, and shows the documents nearest to the one that is chosen.
const data = JSON.parse(document.getElementById("data").textContent);
const SHOWN = 20, NEAREST = 10;
const bytes = text => Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
const vectors = data.vectors && new Int8Array(bytes(data.vectors).buffer);
const scales = data.scales && new Float32Array(bytes(data.scales).buffer);
const queries = data.queries.length;
const texts = [...data.queries, ...(vectors ? data.documents : [])];
const plain = text => text.normalize("NFKC").toLowerCase();
const words = texts.map(plain);
const search = document.getElementById("search");
let chosen = -1;

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function language(number) {
  return { lang: data.languages[number < queries ? 0 : 1], dir: "auto" };
}

// Cosine of the rounded vectors of two texts; their rows have unit length.
function cosine(a, b) {
  let sum = 0;
  for (let i = 0; i < data.dim; i++) sum += vectors[a * data.dim + i] * vectors[b * data.dim + i];
  return sum * scales[a] * scales[b];
}

// The nearest documents of a text, the best first: [number of the document, score].
function nearest(number) {
  if (!vectors) return data.nearest[number];
  const found = data.documents.map((_, i) => [i, cosine(number, queries + i)]).filter(([i]) => queries + i !== number);
  return found.sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, NEAREST);
}

function show(number) {
  chosen = number;
  const place = document.getElementById("nearest"), table = document.createElement("table");
  const mates = new Set(number < queries ? data.mates[number] : []);
  const title = document.createElement("blockquote");
  title.append(element("span", texts[number] || "(an empty text)", { class: "text", ...language(number) }));
  table.append(element("caption", "Nearest documents"));
  const head = table.createTHead().insertRow(), body = table.createTBody();
  for (const name of ["Rank", data.score, "Document"]) head.append(element("th", name, { scope: "col" }));
  nearest(number).forEach(([i, score], rank) => {
    const row = body.insertRow(), cell = document.createElement("td");
    row.append(element("th", String(rank + 1), { scope: "row" }));
    row.append(element("td", (Math.round(score * 1000) / 1000 + 0).toFixed(3), { class: "number" }), cell);
    if (mates.has(i)) {
      row.className = "mate";
      cell.append(element("strong", "Mate."), " ");
    }
    cell.append(element("span", data.documents[i] || "(an empty text)", { class: "text", ...language(queries + i) }));
  });
  place.replaceChildren(title, table);
  for (const button of document.querySelectorAll("#matches button"))
    button.setAttribute("aria-pressed", String(Number(button.dataset.number) === number));
}

function find() {
  const wanted = plain(search.value).split(/\s+/).filter(Boolean);
  const found = [];
  words.forEach((text, i) => { if (wanted.every(word => text.includes(word))) found.push(i); });
  const shown = found.slice(0, SHOWN);
  document.getElementById("found").textContent =
    `${found.length} of ${texts.length} texts` + (found.length > SHOWN ? `, the first ${SHOWN} are shown` : "");
  document.getElementById("matches").replaceChildren(...shown.map(number => {
    const item = document.createElement("li");
    const button = element("button", texts[number] || "(an empty text)", { type: "button", ...language(number) });
    button.dataset.number = number;
    button.setAttribute("aria-pressed", String(number === chosen));
    button.addEventListener("click", () => show(number));
    item.append(button);
    return item;
  }));
}

search.addEventListener("input", find);
find();
if (texts.length) show(0);
