"use strict";

/* What the page to search by hand shows beside the hits: reply, reader, why, fields, another call, history. */

/** A button that copies a text. */
function copyButton(name, text) {
  const button = element("button", { type: "button", class: "quiet small", title: "Copy", onclick: () => navigator.clipboard.writeText(text).then(() => button.append(" (copied)")) }, isolated(name));
  return button;
}

/** A value as a button that adds it to the query as a condition, if it can be added. */
function valueButton(text, add) {
  if (!add) return isolated(text);
  return element("button", { type: "button", class: "link", title: "Add to the query", onclick: add }, isolated(text));
}

function tableOf(caption, heads, rows) {
  const cells = (row) => row.map((cell, at) => element(at ? "td" : "th", at ? null : { scope: "row" }, typeof cell === "number" ? count(cell) : cell));
  return element(
    "div",
    { class: "scroll" },
    element(
      "table",
      null,
      element("caption", null, caption),
      element("thead", null, element("tr", null, heads.map((head) => element("th", { scope: "col" }, head)))),
      element("tbody", null, rows.map((row) => element("tr", null, cells(row)))),
    ),
  );
}

/** The panels, each drawn when it is shown. */
function searchPanels({ ask, during, search, add, callOf, narrows, history, toolOptions }) {
  const NAMES = { reply: "What a model sees", reader: "Reader", why: "Why", fields: "Fields", beside: "Side by side", history: "History" };
  const DRAW = { reply: drawReply, reader: drawReader, why: drawWhy, fields: drawFields, beside: drawBeside, history: drawHistory };
  const panel = element("div", { class: "panel card", role: "tabpanel", id: "panel", tabindex: 0 });
  const tabs = Object.entries(NAMES).map(([name, text]) =>
    element("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "panel", onclick: () => choose(name) }, text),
  );
  const tablist = element("div", { class: "tabs", role: "tablist", "aria-label": "Beside the hits", onkeydown: moveTab }, tabs);
  let shown = "reply";
  let answer, call, opened, text;
  let isFirst = true; // whether nothing was searched yet
  let other = null; // the tool and the query at the other side

  function moveTab(event) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const names = Object.keys(NAMES);
    choose(names[(names.indexOf(shown) + by + names.length) % names.length]);
    document.getElementById(`tab-${shown}`).focus();
  }

  function choose(name) {
    shown = name;
    for (const tab of tabs) {
      const isShown = tab.id === `tab-${name}`;
      tab.setAttribute("aria-selected", String(isShown));
      tab.tabIndex = isShown ? 0 : -1;
    }
    panel.setAttribute("aria-labelledby", `tab-${name}`);
    if (!call) return;
    if (answer || name === "fields" || name === "history") DRAW[name]();
    else fill(element("p", null, "Search first."));
  }

  function fill(...content) {
    const hadFocus = panel.contains(document.activeElement);
    panel.removeAttribute("aria-busy");
    panel.replaceChildren(element("h2", null, NAMES[shown]), ...content.flat(Infinity).filter(Boolean));
    if (hadFocus) panel.focus({ preventScroll: true });
  }

  /** Fill the panel from an answer; what was chosen meanwhile stays. */
  function fillFrom(question, body, draw) {
    const name = shown;
    fill(element("p", { class: "muted" }, "Asking."));
    panel.setAttribute("aria-busy", "true");
    const place = panel.lastElementChild;
    return during(ask(question, body), (told) => name === shown && draw(told), place, () => panel.removeAttribute("aria-busy"));
  }

  function drawReply() {
    fill(
      element("p", { class: "muted small" }, `${plural(answer.tokens, "token")} (o200k), by ${call.tool} of the preset ${call.preset}, as the first call of a conversation.`),
      element("pre", { dir: "auto", tabindex: 0, "aria-label": "Reply" }, isolated(answer.text)),
      Object.entries(answer.commands).map(([name, code]) => [element("h3", null, name, " ", copyButton("Copy", code)), element("pre", { tabindex: 0, "aria-label": name }, isolated(code))]),
    );
  }

  function drawReader() {
    if (!opened) return fill(element("p", null, "Open a hit: its document is shown here, around the passage."));
    fillFrom("open", opened, (told) => {
      text = told;
      drawLines();
    });
  }

  function drawLines() {
    const { matches, at } = text;
    const place = matches.filter((line) => line <= at).length;
    const button = (name, by, key) => element("button", { type: "button", disabled: nextMatch(by) === undefined, onclick: () => turn(by) }, name, " ", element("kbd", null, key));
    const lines = element("ol", { class: "lines", tabindex: 0, "aria-label": "Lines of the document" }, text.lines.map(lineItem));
    fill(
      element("h3", null, isolated(text.title || text.document)),
      element("p", { class: "small muted" }, isolated(text.document), ` · ${plural(text.count, "line")}, ${matches.length ? `match ${count(place)} of ${count(matches.length)} lines` : "no line matches"}`),
      element("p", { class: "pager" }, button("Previous match", -1, "p"), button("Next match", 1, "n"), pageButton("Lines before", text.first - 1), pageButton("Lines after", text.first + text.lines.length)),
      lines,
    );
    const here = lines.querySelector(".here");
    if (here) lines.scrollTop = here.offsetTop - lines.offsetTop - 60;
  }

  function lineItem(line, place) {
    const isHere = text.first + place === text.at;
    return element("li", { class: isHere ? "here" : null, "aria-current": isHere ? "true" : null }, element("span", { class: "number" }, line.name), element("span", { dir: "auto" }, marked(line.text, line.marks)));
  }

  function pageButton(name, line) {
    const isThere = line >= 0 && line < text.count;
    return element("button", { type: "button", class: "quiet", disabled: !isThere, onclick: () => openLine(line) }, name);
  }

  function nextMatch(by) {
    return by > 0 ? text?.matches.find((line) => line > text.at) : text?.matches.findLast((line) => line < text.at);
  }

  function openLine(line) {
    text.at = line; // the next key goes on from here
    opened = { document: text.document, line };
    const isThere = line >= text.first && line < text.first + text.lines.length;
    if (isThere) drawLines();
    else drawReader();
  }

  function turn(by) {
    const line = shown === "reader" ? nextMatch(by) : undefined;
    if (line !== undefined) openLine(line);
  }

  function drawWhy() {
    fillFrom("why", {}, ({ parts, hits }) => {
      const alone = (part) => element("button", { type: "button", class: "link", onclick: () => search(part) }, element("code", null, isolated(part)));
      const words = (counts) => Object.entries(counts).map(([word, passages]) => `${word} ${count(passages)}`).join(", ");
      const rows = parts.map((part) => {
        const near = Object.keys(part.nearest).flatMap((word) => [alone(word), " "]);
        const forms = [words(part.forms), part.other_forms && `others ${count(part.other_forms)}`].filter(Boolean).join(", ");
        return [alone(part.word), part.passages, part.title ?? "", part.text ?? "", near.length ? ["nearest: ", near] : isolated(forms)];
      });
      const scores = (hit) => [
        ...(hit.explanation ?? []).map(({ leaf, scores: by }) => `${leaf}: ${Object.entries(by).map(([name, score]) => `${name} ${score.toFixed(3)}`).join(", ") || "no match"}`),
        ...(hit.rules ?? []).map(({ factor, says }) => `times ${factor.toPrecision(3)}, because ${says}`),
      ];
      fill(
        rows.length > 0 && tableOf("Each part alone: passages that have it", ["part", "passages", "in titles", "in texts", "written forms"], rows),
        !rows.length && element("p", null, "This tool ranks all passages: no part is counted."),
        hits.length > 0 &&
          tableOf("Scores of the hits", ["hit", "score", "by part and field"], hits.map((hit) => [isolated(hit.title || hit.id), hit.score.toFixed(4), element("ul", null, scores(hit).map((line) => element("li", null, isolated(line))))])),
      );
    });
  }

  function drawFields() {
    fillFrom("fields", {}, ({ passages, where, fields }) =>
      fill(
        element("p", { class: "muted small" }, `${where !== null ? "Of the passages that match the query" : "Of all passages"}: ${count(passages)}. A value is added to the query as a condition.`),
        !fields.length && element("p", null, "The index declares no metadata fields."),
        fields.map((field) => [
          element("h3", null, isolated(field.name), element("span", { class: "muted small" }, ` ${plural(field.passages, "passage")}${field.distinct === null ? "" : `, ${plural(field.distinct, "value")}`}`)),
          element(
            "ul",
            { class: "values" },
            field.values.map(([value, number]) => element("li", null, valueButton(value, narrows() && (() => add(field.name, value))), ` ${count(number)}`)),
            field.least !== null && element("li", null, valueButton(`${field.least} to ${field.greatest}`, narrows() && (() => add(field.name, [field.least, field.greatest])))),
          ),
        ]),
      ),
    );
  }

  function drawBeside() {
    const query = element("input", { id: "other-query", type: "search", value: other?.query ?? call.query, autocomplete: "off" });
    const tool = element("select", { id: "other-tool" }, toolOptions());
    tool.value = other?.tool ?? `${call.preset}/${call.tool}`;
    const result = element("div", { class: "panel", "aria-live": "polite" });
    const compare = () => {
      other = { query: query.value, tool: tool.value };
      during(ask("call", { call: callOf(query.value, tool.value) }), (told) => drawComparison(result, told), result);
    };
    const form = element(
      "form",
      { class: "filters", onsubmit: (event) => (event.preventDefault(), compare()) },
      element("div", { class: "field" }, element("label", { for: "other-query" }, "other query"), query),
      element("div", { class: "field" }, element("label", { for: "other-tool" }, "other tool"), tool),
      element("button", { type: "submit" }, "Compare"),
    );
    fill(form, result);
    if (other) compare();
  }

  /** What this call and another have in common. Of a further page, only its place differs. */
  function drawComparison(result, found) {
    if (found.status === "error") return result.replaceChildren(found.reading.problems.length ? problemList(found.reading.problems) : isolated(found.text));
    const sides = [answer, found];
    const row = (name, value) => [name, ...sides.map(value)];
    const orders = sides.map((side) => side.hits.map((hit) => hit.id));
    const titles = new Map(sides.flatMap((side) => side.hits.map((hit) => [hit.id, hit.title])));
    const titled = (id) => (id === undefined ? "–" : isolated(titles.get(id) ? `${titles.get(id)} [${id}]` : id));
    const shared = orders[0].filter((id) => orders[1].includes(id)).length;
    const places = Array.from({ length: Math.max(...orders.map((order) => order.length)) }, (_, at) => at);
    const differences = places.filter((at) => orders[0][at] !== orders[1][at]);
    result.replaceChildren(
      tableOf("Two calls", ["", "this", "other"], [row("tokens", (side) => side.tokens), row("total", (side) => side.total_text ?? "–"), row("hits", (side) => `${side.hits.length}, from ${count(side.offset + 1)} on`), row("milliseconds", (side) => side.milliseconds)]),
      element("p", null, `${count(shared)} of ${plural(titles.size, "hit")} in both.`),
      differences.length ? tableOf("First differences of the order", ["place", "this", "other"], differences.slice(0, 10).map((at) => [String(at + 1), titled(orders[0][at]), titled(orders[1][at])])) : element("p", null, "Both orders are the same."),
    );
  }

  function drawHistory() {
    const entries = [...history].reverse();
    fill(element("ol", { class: "panel" }, entries.map(([address, { query, tool, tally }]) => element("li", null, element("a", { href: address }, isolated(query)), element("p", { class: "muted small" }, isolated(`${tool}: ${tally}`))))));
  }

  choose(shown);
  return {
    section: element("section", { class: "side", "aria-label": "Beside the hits" }, tablist, panel),
    turn,
    show: (found, of) => {
      [answer, call, opened, text] = [found, of, null, null];
      choose(found === null ? "fields" : shown === "reader" || isFirst ? "reply" : shown);
      isFirst = found === null;
    },
    open: (card) => {
      opened = { passage: card.id };
      choose("reader");
      panel.focus();
    },
  };
}
