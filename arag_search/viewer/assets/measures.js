/* The overview above the table: what the run is, what it is worth, how values lie. */

/** All of it, for the page's data. */
function overviewSections(data) {
  return [
    element(
      "header",
      { class: "title" },
      element("h1", null, runName(data.run)),
      runFacts(data.run),
      noteList(data.notes),
    ),
    element(
      "div",
      { class: "figures" },
      element(
        "section",
        { class: "card measures", "aria-labelledby": "measures" },
        element("h2", { id: "measures" }, "Measures"),
        measuresTable(data),
        typesTable(data),
      ),
      element(
        "div",
        { class: "beside" },
        distributions(data),
        whyWrong(data),
        howSearched(data),
      ),
    ),
  ];
}

/** What a run is called: how it answers, and who. */
function runName(run) {
  return [isolated(run.preset), element("span", { class: "muted" }, " by ", isolated(run.model))];
}

function runFacts(run) {
  return element(
    "div",
    { class: "run" },
    element(
      "dl",
      { class: "facts" },
      run.facts.map(([name, value]) =>
        element("div", null, element("dt", null, name), element("dd", null, isolated(value))),
      ),
    ),
    noteList(run.notes),
  );
}

function noteList(notes) {
  if (!notes.length) return null;
  return element(
    "ul",
    { class: "notes" },
    notes.map((note) => element("li", null, isolated(note))),
  );
}

function measuresTable(data) {
  const { measures, level } = data.overview;
  const hasIntervals = measures.some((measure) => measure.low !== null);
  const whole = data.questions.length;
  return element(
    "table",
    { class: "numbers alone" },
    element(
      "caption",
      null,
      meansText(measures, whole),
      hasIntervals && `, with ${level * 100} % intervals (bootstrap over questions)`,
      ".",
    ),
    tableHead("measure", ["mean"]),
    element("tbody", null, measures.map((measure) => measureRow(measure, whole))),
  );
}

/** The head of a table of figures: what its rows are, and what its columns are. */
function tableHead(rows, columns) {
  return element(
    "thead",
    null,
    element(
      "tr",
      null,
      element("th", { scope: "col" }, rows),
      columns.map((column) => element("th", { scope: "col", class: "figure" }, column)),
    ),
  );
}

/** What the figures of the table are, and over how many questions. */
function meansText(measures, whole) {
  const text = `Means over ${plural(whole, "question")}`;
  return measures.some((measure) => measure.counted !== whole) ? `${text}, or over as many as stand under the figure` : text;
}

function measureRow(measure, whole) {
  return element(
    "tr",
    null,
    element(
      "th",
      { scope: "row" },
      measure.name,
      element("span", { class: "meaning" }, measure.meaning),
    ),
    estimateCell(measure, whole),
  );
}

function estimateCell(measure, whole) {
  const hasInterval = measure.low !== null && measure.low !== measure.high;
  return element(
    "td",
    { class: "figure" },
    element(
      "div",
      { class: "estimate" },
      element("span", { class: "value" }, written(measure.value, measure.unit)),
      hasInterval &&
        element(
          "span",
          { class: "bounds" },
          hidden("interval from "),
          `${written(measure.low, measure.unit)} to ${written(measure.high, measure.unit)}`,
        ),
      hasInterval && measure.unit === "share" && intervalPlot(measure),
    ),
    measure.counted !== whole && element("div", { class: "counted" }, `over ${count(measure.counted)}`),
  );
}

function typesTable(data) {
  const { measures, types } = data.overview;
  if (types.length < 2) return null;
  return element(
    "details",
    { class: "types" },
    element("summary", null, "By type of question"),
    element(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "Means by type of question" },
      element(
        "table",
        { class: "numbers" },
        element("caption", null, "In brackets, over how many questions where it is not all."),
        tableHead("type", ["questions", ...measures.map((measure) => measure.name)]),
        element(
          "tbody",
          null,
          types.map((row) =>
            element(
              "tr",
              null,
              element("th", { scope: "row" }, isolated(row.type)),
              element("td", { class: "figure" }, count(row.questions)),
              measures.map((measure) =>
                element(
                  "td",
                  { class: "figure" },
                  written(row.values[measure.name], measure.unit),
                  row.counted[measure.name] !== row.questions && element("span", { class: "muted" }, ` (${count(row.counted[measure.name])})`),
                ),
              ),
            ),
          ),
        ),
      ),
    ),
  );
}

function distributions(data) {
  const drawn = [
    ["Steps", "stepCount", "tokens"],
    ["Retrieved tokens", "retrieved", "tokens"],
    ["Seconds", "seconds", "seconds"],
  ].map(([name, field, unit]) => histogram(name, unit, valuesOf(data, field)));
  if (!drawn.some(Boolean)) return null;
  return element(
    "section",
    { class: "card", "aria-labelledby": "distributions" },
    element("h2", { id: "distributions" }, "Distributions"),
    element("p", { class: "small muted" }, "Questions with a record."),
    drawn,
  );
}

function valuesOf(data, field) {
  return data.questions
    .map((question) => question.result[field])
    .filter((value) => value !== null && value !== undefined);
}

function whyWrong(data) {
  const counts = data.overview.failures.all;
  const wrong = Object.values(counts).reduce((sum, count) => sum + count, 0);
  if (!wrong) return null;
  const rows = data.overview.categories
    .filter(([name]) => counts[name])
    .map(([name, meaning]) => [name, meaning, counts[name], wrong]);
  return countsTable("Why answers are wrong", ["category", "answers"], rows);
}

function howSearched(data) {
  const rows = Object.entries(data.overview.tools).flatMap(([name, use]) => [
    [name, "all searches", use.searches],
    ...Object.entries(use.arguments).map(([argument, number]) => [name, `with ${argument}`, number, use.searches]),
  ]);
  return rows.length ? countsTable("Tools and their arguments", ["tool", "searches"], rows) : null;
}

/* A table of counts. A row is [name, meaning, count, total]; a bar shows the share of the total, where
   there is one. */
function countsTable(title, [rowHead, columnHead], rows) {
  const id = title.toLowerCase().replaceAll(" ", "-");
  return element(
    "section",
    { class: "card", "aria-labelledby": id },
    element("h2", { id }, title),
    element(
      "table",
      { class: "numbers" },
      tableHead(rowHead, [columnHead]),
      element(
        "tbody",
        null,
        rows.map(([name, meaning, number, total]) =>
          element(
            "tr",
            null,
            element("th", { scope: "row" }, name, element("span", { class: "meaning" }, meaning)),
            element(
              "td",
              { class: "figure" },
              element("span", { class: "value" }, count(number)),
              total > 0 && shareBar(number / total),
            ),
          ),
        ),
      ),
    ),
  );
}
