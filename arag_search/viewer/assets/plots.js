/* Small plots: they show at a glance what the tables say in full. */

const PLOT = { width: 360, height: 96, left: 4, right: 4, top: 8, bottom: 18 };
const MAX_BINS = 24;
const LABELLED_BINS = 12;

/** The mean of a share with its interval on a line from 0 to 1. */
function intervalPlot(estimate) {
  const width = 150;
  const at = (value) => 4 + (width - 8) * value;
  return svg(
    "svg",
    { class: "interval", viewBox: `0 0 ${width} 14`, width, height: 14, "aria-hidden": "true" },
    svg("line", { class: "axis", x1: 4, x2: width - 4, y1: 7, y2: 7 }),
    svg("line", { class: "range", x1: at(estimate.low), x2: at(estimate.high), y1: 7, y2: 7 }),
    svg("line", { class: "mean", x1: at(estimate.value), x2: at(estimate.value), y1: 1, y2: 13 }),
  );
}

/** How values are distributed. */
function histogram(name, unit, values) {
  const all = [...values].sort((a, b) => a - b);
  if (!all.length) return null;
  const bins = binsOf(all);
  const told = `median ${written(quantile(all, 0.5), unit)}`;
  return element(
    "figure",
    { class: "plot" },
    element("figcaption", null, element("strong", null, name), ` ${told}`),
    svg(
      "svg",
      {
        viewBox: `0 0 ${PLOT.width} ${PLOT.height}`,
        role: "img",
        "aria-label": `${name}: ${plural(all.length, "value")} from ${written(all[0], unit)} to ${written(all.at(-1), unit)}; ${told}`,
      },
      bars(countsOf(all, bins), bins, unit),
      axis(bins, unit),
    ),
  );
}

function quantile(sorted, share) {
  const at = (sorted.length - 1) * share;
  const low = Math.floor(at);
  return sorted[low] + (sorted[Math.ceil(at)] - sorted[low]) * (at - low);
}

/** Bins of one round width; of few whole numbers each has its own. */
function binsOf(sorted) {
  const low = sorted[0];
  const high = sorted.at(-1);
  if (sorted.every(Number.isInteger) && high - low < MAX_BINS) {
    return { start: low - 0.5, width: 1, number: high - low + 1 };
  }
  const rough = (high - low || Math.abs(high) || 1) / (MAX_BINS - 4);
  const power = 10 ** Math.floor(Math.log10(rough));
  const width = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999999);
  const start = Math.floor(low / width) * width;
  return { start, width, number: Math.floor((high - start) / width) + 1 };
}

function countsOf(values, bins) {
  const counts = new Array(bins.number).fill(0);
  for (const value of values) {
    counts[Math.min(bins.number - 1, Math.floor((value - bins.start) / bins.width))] += 1;
  }
  return counts;
}

function bars(counts, bins, unit) {
  const highest = Math.max(...counts);
  const room = (PLOT.width - PLOT.left - PLOT.right) / bins.number;
  const width = Math.max(1, Math.min(room, 48) - 2);
  const tall = PLOT.height - PLOT.top - PLOT.bottom;
  return counts.map((number, at) => {
    if (!number) return null;
    const height = Math.max(1, (tall * number) / highest);
    const from = bins.start + at * bins.width;
    const range =
      bins.width === 1 && !Number.isInteger(bins.start)
        ? written(from + 0.5, unit)
        : `${written(from, unit)} to ${written(from + bins.width, unit)}`;
    return svg(
      "rect",
      {
        class: "bar",
        x: PLOT.left + at * room + (room - width) / 2,
        y: PLOT.height - PLOT.bottom - height,
        width,
        height,
      },
      svg("title", null, `${range}: ${count(number)}`),
    );
  });
}

function axis(bins, unit) {
  const base = PLOT.height - PLOT.bottom;
  const isWhole = bins.width === 1 && !Number.isInteger(bins.start);
  const end = bins.start + bins.number * bins.width;
  const room = (PLOT.width - PLOT.left - PLOT.right) / bins.number;
  const label = (x, value, anchor) =>
    svg("text", { class: "tick", x, y: PLOT.height - 4, "text-anchor": anchor }, value);
  const whole = (value) => Math.round(value).toLocaleString("en");
  const isEachLabelled = isWhole && bins.number <= LABELLED_BINS;
  const ends = isWhole
    ? [
        label(PLOT.left + room / 2, whole(bins.start + 0.5), "middle"),
        label(PLOT.width - PLOT.right - room / 2, whole(end - 0.5), "middle"),
      ]
    : [
        label(PLOT.left, written(bins.start, unit), "start"),
        label(PLOT.width - PLOT.right, written(end, unit), "end"),
      ];
  return [
    svg("line", { class: "axis", x1: PLOT.left, x2: PLOT.width - PLOT.right, y1: base, y2: base }),
    isEachLabelled
      ? Array.from({ length: bins.number }, (_, at) =>
          label(PLOT.left + room * (at + 0.5), whole(bins.start + at + 0.5), "middle"),
        )
      : ends,
  ];
}

/** Retrieved tokens step by step, adding up from left to right. */
function tokensPlot(steps) {
  const total = steps.reduce((sum, step) => sum + step.retrieved, 0);
  if (!total) return null;
  const row = 12;
  let before = 0;
  const drawn = steps.map((step, at) => {
    const bar = svg("rect", {
      class: "bar",
      x: (300 * before) / total,
      y: at * row + 2,
      width: Math.max(step.retrieved ? 1.5 : 0, (300 * step.retrieved) / total),
      height: row - 4,
    });
    before += step.retrieved;
    return bar;
  });
  return svg(
    "svg",
    {
      class: "tokens",
      viewBox: `0 0 300 ${steps.length * row}`,
      role: "img",
      "aria-label": `Retrieved tokens by step: ${steps.map((step) => count(step.retrieved)).join(", ")}`,
    },
    svg("line", { class: "axis", x1: 0.5, x2: 0.5, y1: 0, y2: steps.length * row }),
    drawn,
  );
}

/** A bar for a share of a whole, drawn beside its number. */
function shareBar(share) {
  return svg(
    "svg",
    { class: "share", viewBox: "0 0 100 8", width: 100, height: 8, preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { class: "track", x: 0, y: 0, width: 100, height: 8 }),
    svg("rect", { class: "bar", x: 0, y: 0, width: 100 * share, height: 8 }),
  );
}
