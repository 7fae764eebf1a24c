/* Texts of the corpus and of models: isolated, with what cannot be seen made visible. */

const CONTROLS =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

function codePoint(character) {
  return `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
}

/** A text for an attribute or the title of the page. */
function plain(text) {
  return text.replace(CONTROLS, (character) => `\u27e8${codePoint(character)}\u27e9`);
}

/** The nodes of a text, control characters written out. */
function visible(text) {
  const nodes = [];
  let start = 0;
  for (const match of text.matchAll(CONTROLS)) {
    if (match.index > start) nodes.push(text.slice(start, match.index));
    nodes.push(element("span", { class: "control" }, codePoint(match[0])));
    start = match.index + match[0].length;
  }
  if (start < text.length) nodes.push(text.slice(start));
  return nodes;
}

/** A text that runs in its own direction and does not change that of what is around it. */
function isolated(text, attributes) {
  return element("bdi", attributes, visible(text));
}

/** A text with the places (start, end, start, end, ...) marked that a query found. */
function marked(text, places) {
  const made = element("bdi");
  let start = 0;
  for (let at = 0; places && at < places.length; at += 2) {
    made.append(...visible(text.slice(start, places[at])));
    made.append(element("mark", null, visible(text.slice(places[at], places[at + 1]))));
    start = places[at + 1];
  }
  made.append(...visible(text.slice(start)));
  return made;
}

const LONG_TEXT = 900;

/** A block of text; a long one is cut off below until it is asked for. */
function passageText(text, places) {
  const block = element("div", { class: "text", dir: "auto" }, marked(text, places));
  if (text.length <= LONG_TEXT) return block;
  block.classList.add("clamped");
  const button = element(
    "button",
    {
      type: "button",
      class: "quiet",
      "aria-expanded": "false",
      onclick: () => {
        const isCut = block.classList.toggle("clamped");
        button.setAttribute("aria-expanded", String(!isCut));
        button.textContent = isCut ? `Show all (${count(text.length)} characters)` : "Show less";
      },
    },
    `Show all (${count(text.length)} characters)`,
  );
  return [block, button];
}

/** The pieces of a query, each with the class of its kind. */
function queryPieces(pieces, kinds) {
  return pieces.map(([kind, text]) =>
    kind === "blank"
      ? text
      : element("span", { class: `piece piece-${kind}`, title: kinds[kind] }, visible(text)),
  );
}

/** The problems of a query, with their columns. */
function problemList(problems) {
  return element(
    "ol",
    { class: "problems", "aria-label": "Problems of the query" },
    problems.map(([column, piece, message]) => element("li", null, `column ${column}, `, element("code", null, isolated(piece)), ": ", isolated(message))),
  );
}
