/* The overview above the table: what the runs are, what they are worth, how values lie. */

/** All of it, for the page's data. */
function overviewSections(data) {
  return [
    element(
      "header",
      { class: "title" },
      element("h1", null, data.runs.length === 2 ? "Two runs compared" : runName(data.runs[0])),
      element("div", { class: "runs" }, data.runs.map((run) => runFacts(run, data.runs.length))),
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
        data.overview.types.map((types, at) => typesTable(data, types, at)),
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

function runFacts(run, runs) {
  return element(
    "div",
    { class: "run" },
    runs === 2 && element("p", { class: "name" }, runLabel(run), " ", runName(run)),
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

/** A or B. */
function runLabel(run) {
  return element("span", { class: `label label-${run.label}` }, hidden("run "), run.label);
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
  const isTwo = data.runs.length === 2;
  const hasIntervals = measures.some((one) => one.runs.some((run) => run.low !== null));
  const heads = data.runs.map((run) => (isTwo ? ["mean of ", runLabel(run)] : "mean"));
  if (isTwo) heads.push("B less A");
  const wholes = wholesOf(data);
  return element(
    "table",
    { class: isTwo ? "numbers compared" : "numbers alone" },
    element(
      "caption",
      null,
      meansText(measures, wholes),
      hasIntervals && `, with ${level * 100} % intervals (bootstrap over questions)`,
      ".",
    ),
    tableHead("measure", heads),
    element("tbody", null, measures.map((one) => measureRow(one, wholes))),
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
function meansText(measures, wholes) {
  const [, other, both] = wholes;
  const text =
    both === undefined
      ? `Means over ${plural(wholes[0], "question")}`
      : `Means over ${plural(wholes[0], "question")} of A and ${count(other)} of B, differences over the ${count(both)} in both`;
  const isFewer = measures.some((each) => estimatesOf(each).some((mean, at) => mean.counted !== wholes[at]));
  return isFewer ? `${text}, or over as many as stand under the figure` : text;
}

function estimatesOf(measure) {
  return measure.difference ? [...measure.runs, measure.difference] : measure.runs;
}

/** Over how many questions means are where all of them count: of each run, and of both. */
function wholesOf(data) {
  const each = data.overview.types.map(([all]) => all.questions);
  const shared = data.questions.filter((one) => one.runs.every(Boolean)).length;
  return each.length === 2 ? [...each, shared] : each;
}

function measureRow(measure, wholes) {
  return element(
    "tr",
    null,
    element(
      "th",
      { scope: "row" },
      measure.name,
      element("span", { class: "meaning" }, measure.meaning),
    ),
    estimatesOf(measure).map((one, at) => estimateCell(measure, one, wholes[at], at === 2)),
  );
}

function estimateCell(measure, estimate, whole, isDifference) {
  const value = estimate.value;
  const sign = isDifference && value > 0 ? "+" : "";
  const hasInterval = estimate.low !== null && estimate.low !== estimate.high;
  return element(
    "td",
    { class: "figure" },
    element(
      "div",
      { class: "estimate" },
      element("span", { class: "value" }, sign, written(value, measure.unit)),
      hasInterval &&
        element(
          "span",
          { class: "bounds" },
          hidden("interval from "),
          `${written(estimate.low, measure.unit)} to ${written(estimate.high, measure.unit)}`,
        ),
      hasInterval && measure.unit === "share" && intervalPlot(estimate, isDifference),
    ),
    estimate.counted !== whole && element("div", { class: "counted" }, `over ${count(estimate.counted)}`),
  );
}

function typesTable(data, types, at) {
  if (types.length < 2) return null;
  const { measures } = data.overview;
  return element(
    "details",
    { class: "types" },
    element(
      "summary",
      null,
      "By type of question",
      data.runs.length === 2 && [", ", runLabel(data.runs[at])],
    ),
    element(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "Means by type of question" },
      element(
        "table",
        { class: "numbers" },
        element("caption", null, "In brackets, over how many questions where it is not all."),
        tableHead("type", ["questions", ...measures.map((one) => one.name)]),
        element(
          "tbody",
          null,
          types.map((row) =>
            element(
              "tr",
              null,
              element("th", { scope: "row" }, isolated(row.type)),
              element("td", { class: "figure" }, count(row.questions)),
              measures.map((one) =>
                element(
                  "td",
                  { class: "figure" },
                  written(row.values[one.name], one.unit),
                  row.counted[one.name] !== row.questions && element("span", { class: "muted" }, ` (${count(row.counted[one.name])})`),
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
  ].map(([name, field, unit]) => histogram(name, unit, seriesOf(data, field)));
  if (!drawn.some(Boolean)) return null;
  return element(
    "section",
    { class: "card", "aria-labelledby": "distributions" },
    element("h2", { id: "distributions" }, "Distributions"),
    element("p", { class: "small muted" }, "Questions with a record", data.runs.length === 2 && "; A is filled, B is outlined", "."),
    drawn,
  );
}

function seriesOf(data, field) {
  return data.runs.map((run, at) => ({
    label: data.runs.length === 2 ? run.label : "",
    values: data.questions
      .map((one) => one.runs[at]?.[field])
      .filter((value) => value !== null && value !== undefined),
  }));
}

function whyWrong(data) {
  const totals = data.overview.failures.map((counts) => counts.all);
  const wrong = totals.map((counts) => Object.values(counts).reduce((sum, count) => sum + count, 0));
  if (!wrong.some(Boolean)) return null;
  const rows = data.overview.categories
    .filter(([name]) => totals.some((counts) => counts[name]))
    .map(([name, meaning]) => [name, meaning, totals.map((counts) => counts[name] ?? 0)]);
  return countsOfRuns(data, "Why answers are wrong", ["category", "answers"], rows, wrong);
}

function howSearched(data) {
  const tools = data.overview.tools;
  const rows = [];
  for (const name of namesIn(tools)) {
    const uses = tools.map((byName) => byName[name] ?? { searches: 0, arguments: {} });
    const searches = uses.map((use) => use.searches);
    rows.push([name, "all searches", searches]);
    for (const argument of namesIn(uses.map((use) => use.arguments))) {
      rows.push([name, `with ${argument}`, uses.map((use) => use.arguments[argument] ?? 0), searches]);
    }
  }
  return rows.length ? countsOfRuns(data, "Tools and their arguments", ["tool", "searches"], rows) : null;
}

function namesIn(mappings) {
  return [...new Set(mappings.flatMap(Object.keys))];
}

/* A table of counts, a column for each run. A row is [name, meaning, counts, totals]; a bar shows the
   share of the total of its run, where there is one. */
function countsOfRuns(data, title, [rowHead, columnHead], rows, totalsOfAll = []) {
  const id = title.toLowerCase().replaceAll(" ", "-");
  return element(
    "section",
    { class: "card", "aria-labelledby": id },
    element("h2", { id }, title),
    element(
      "table",
      { class: "numbers" },
      element(
        "thead",
        null,
        element(
          "tr",
          null,
          element("th", { scope: "col" }, rowHead),
          data.runs.map((run) =>
            element("th", { scope: "col", class: "figure" }, data.runs.length === 2 ? runLabel(run) : columnHead),
          ),
        ),
      ),
      element(
        "tbody",
        null,
        rows.map(([name, meaning, counts, totals = totalsOfAll]) =>
          element(
            "tr",
            null,
            element("th", { scope: "row" }, name, element("span", { class: "meaning" }, meaning)),
            counts.map((number, at) =>
              element(
                "td",
                { class: "figure" },
                element("span", { class: "value" }, count(number)),
                totals[at] > 0 && shareBar(number / totals[at]),
              ),
            ),
          ),
        ),
      ),
    ),
  );
}
