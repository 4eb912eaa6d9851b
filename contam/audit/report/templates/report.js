"use strict";
(function () {
  const print = (begins) => { for (const each of document.querySelectorAll("details")) {
    if (begins) { each.dataset.open = each.open; each.open = true; } else each.open = each.dataset.open === "true";
  } };
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const list = document.getElementById("items");
  if (!list) return;
  const rows = read("rows");
  rows.forEach((row, at) => { row.at = at; });
  let perPage = 50;
  addEventListener("beforeprint", () => { perPage = 1000; show(); });
  addEventListener("afterprint", () => { perPage = 50; show(); });
  const pageItems = Number(list.dataset.pageItems);
  const cache = new Map();
  const state = { sort: "at", down: false, page: 0 };
  const form = document.getElementById("filters");
  const body = list.tBodies[0];
  const said = document.getElementById("count");
  const headings = new Set([...list.tHead.rows[0].cells].map((th) => th.dataset.sort));
  const filters = [...form.querySelectorAll("select")].map((select) => select.name);
  const things = list.dataset.things;

  function make(name, text, kind) {
    const node = document.createElement(name);
    if (text !== undefined) node.textContent = text;
    if (kind) node.className = kind;
    return node;
  }
  function evidence(at) {
    const page = Math.floor(at / pageItems);
    if (!cache.has(page)) cache.set(page, read("page-" + page));
    return cache.get(page)[at % pageItems];
  }
  function wanted() {
    const text = form.elements.text.value.trim().toLowerCase();
    const chosen = filters.map((name) => [name, form.elements[name].value]);
    return rows.filter((row) => {
      for (const [name, value] of chosen) {
        if (!value) continue;
        if (name === "label" ? !Object.values(row.labels).includes(value) : row[name] !== value) return false;
      }
      if (!text) return true;
      return [row.item, row.benchmark, row.source].some((field) => field.toLowerCase().includes(text));
    });
  }
  function ordered(found) {
    const name = state.sort;
    const value = (row) => (name === "label" ? Object.values(row.labels)[0] : row[name]);
    const sign = state.down ? -1 : 1;
    return found.slice().sort((a, b) => {
      const x = value(a), y = value(b);
      if (x === null || y === null) return (x === null) - (y === null) || a.at - b.at;
      if (typeof x === "number") return sign * (x - y) || a.at - b.at;
      return sign * x.localeCompare(y, "en", { numeric: true }) || a.at - b.at;
    });
  }
  function cell(tr, label, text, kind) {
    const td = make("td", undefined, kind);
    td.dataset.label = label;
    td.append(make("bdi", text));
    tr.append(td);
    return td;
  }
  function quote(marks) {
    const box = make("div", undefined, "quote");
    box.dir = "auto";
    box.tabIndex = 0;
    for (const [kind, value] of marks) {
      if (kind === "gap") box.append(make("span", " [" + value.toLocaleString("en") + " characters not shown] ", "gap"));
      else box.append(make(kind === "match" ? "mark" : "span", value));
    }
    return box;
  }
  function side(title, marks, missing) {
    const box = make("div", undefined, "side");
    box.append(make("h4", title));
    box.append(marks.length ? quote(marks) : make("p", missing, "soft"));
    return box;
  }
  const DATED = { leak: "not older than the benchmark", shared_source: "older than the benchmark", unknown: "date unknown or undecided" };
  function detail(row) {
    const shown = evidence(row.at);
    const tr = make("tr", undefined, "detail");
    const td = make("td");
    td.colSpan = list.tHead.rows[0].cells.length;
    const reasons = make("ul");
    for (const [policy, reason] of Object.entries(shown.reasons)) {
      const chance = shown.chance[policy];
      reasons.append(make("li", policy + ": " + reason + (chance ? "; " + chance : "")));
    }
    td.append(reasons);
    for (const doc of shown.documents) {
      const box = make("section", undefined, "document");
      const title = make("h3");
      title.append(make("bdi", doc.id));
      box.append(title);
      const dated = headings.has("date") ? DATED[doc.dated] : "";
      const facts = [doc.date ? ["date " + doc.date, dated].filter(Boolean).join(", ") : DATED.unknown, doc.source, doc.url, "shard " + doc.shard + ", row " + doc.row];
      const line = make("p", undefined, "soft small");
      facts.filter(Boolean).forEach((fact, i) => { if (i) line.append(" · "); line.append(make("bdi", fact)); });
      box.append(line);
      if (doc.problem) box.append(make("p", "The document could not be read again: " + doc.problem));
      for (const part of doc.parts) {
        const sides = make("div", undefined, "sides");
        const words = part.part + ", " + (part.mark ? "named by its " + part.mark : part.tokens + " tokens");
        sides.append(side("Item: " + words, part.item, "The item's text is not in this report."));
        sides.append(side("Document", part.document, "The document's text is not in this report."));
        box.append(sides);
      }
      td.append(box);
    }
    if (shown.more) td.append(make("p", shown.more + " more documents are in evidence.parquet."));
    tr.append(td);
    return tr;
  }
  function show() {
    const found = ordered(wanted());
    const last = Math.max(0, Math.ceil(found.length / perPage) - 1);
    state.page = Math.min(state.page, last);
    const begin = state.page * perPage;
    body.replaceChildren();
    for (const row of found.slice(begin, begin + perPage)) {
      const tr = make("tr");
      const first = make("td");
      const open = make("button", undefined, "open");
      open.type = "button";
      open.setAttribute("aria-expanded", "false");
      open.append(make("bdi", row.item));
      open.addEventListener("click", () => {
        const next = tr.nextElementSibling;
        const isOpen = open.getAttribute("aria-expanded") === "true";
        if (isOpen) next.remove(); else tr.after(detail(row));
        open.setAttribute("aria-expanded", String(!isOpen));
      });
      first.append(open);
      tr.append(first);
      cell(tr, "benchmark", row.benchmark + (row.split ? " / " + row.split : ""));
      cell(tr, "verdict", Object.entries(row.labels).map(([p, l]) => p + ": " + l.replace("_", " ")).join(", "));
      cell(tr, "score", row.score === null ? "–" : row.score.toFixed(2), "n");
      if (headings.has("q")) cell(tr, "q", row.q === null ? "not estimated" : row.q < 0.001 ? "<0.001" : row.q.toFixed(3), "n");
      cell(tr, "leaked", row.exposure);
      cell(tr, "kind", row.kind);
      cell(tr, "documents", row.documents.toLocaleString("en"), "n");
      if (headings.has("date")) cell(tr, "dated", row.date.replace("_", " "));
      cell(tr, "source", row.source);
      body.append(tr);
    }
    said.textContent = found.length ? (begin + 1) + "–" + Math.min(begin + perPage, found.length) + " of " + found.length.toLocaleString("en") + " " + things : "No item fits.";
    document.getElementById("before").disabled = state.page === 0;
    document.getElementById("after").disabled = state.page >= last;
  }
  for (const name of filters) {
    const values = new Set();
    rows.forEach((row) => (name === "label" ? Object.values(row.labels) : [row[name]]).forEach((v) => v && values.add(v)));
    for (const value of [...values].sort()) {
      const option = make("option", value.replace("_", " "));
      option.value = value;
      form.elements[name].append(option);
    }
  }
  form.addEventListener("input", () => { state.page = 0; show(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => { state.page = 0; show(); }));
  document.getElementById("before").addEventListener("click", () => { state.page -= 1; show(); });
  document.getElementById("after").addEventListener("click", () => { state.page += 1; show(); });
  for (const th of list.tHead.rows[0].cells) {
    const button = th.querySelector("button");
    button.addEventListener("click", () => {
      state.down = state.sort === th.dataset.sort ? !state.down : false;
      state.sort = th.dataset.sort;
      for (const other of list.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      th.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      state.page = 0;
      show();
    });
  }
  show();
})();
