"use strict";

/* Elements and numbers. What comes from the data becomes text here, never markup. */

const SVG = "http://www.w3.org/2000/svg";

/** An element of HTML. Functions among the attributes (onclick) are listeners; null, undefined and
 * false leave an attribute or a child out. */
function element(name, attributes, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** An element of SVG. */
function svg(name, attributes, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** Text for screen readers alone. */
function hidden(text) {
  return element("span", { class: "hidden" }, text);
}

const ICONS = {
  right: "M2 7.5 L5.5 11 L12 3",
  wrong: "M3 3 L11 11 M11 3 L3 11",
  none: "M3 7 L11 7",
  up: "M3 9 L7 4.5 L11 9",
  down: "M3 5 L7 9.5 L11 5",
};

/** A sign beside a word; it never stands alone. */
function icon(name) {
  return svg(
    "svg",
    { class: `icon icon-${name}`, viewBox: "0 0 14 14", width: 12, height: 12, "aria-hidden": "true" },
    svg("path", { d: ICONS[name], fill: "none", stroke: "currentColor", "stroke-width": 2 }),
  );
}

const WRITTEN = {
  share: (value) => value.toFixed(3),
  tokens: (value) => Math.round(value).toLocaleString("en"),
  steps: (value) => value.toFixed(1),
  seconds: (value) => seconds(value),
  USD: (value) => value.toFixed(4),
};

/** A value with its unit, as the tables of `score` write it. */
function written(value, unit) {
  if (value === null || value === undefined) return "–";
  const text = WRITTEN[unit](value);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
}

function count(value) {
  return value === null || value === undefined ? "–" : value.toLocaleString("en");
}

function seconds(value) {
  if (value === null || value === undefined) return "–";
  return value >= 10 || value === 0 ? value.toFixed(1) : value.toFixed(2);
}

function plural(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}
