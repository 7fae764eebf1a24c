/* One question: its answer with what it cites, its evidence, its tokens, its steps. */

/** The page of a question. `place` says where it stands among those chosen. */
function questionSections(data, question, place) {
  return [
    element(
      "header",
      { class: "title" },
      pager(place),
      element("h1", { tabindex: -1, dir: "auto" }, isolated(question.text)),
      element(
        "p",
        { class: "muted" },
        element("span", { class: "id" }, isolated(question.id)),
        question.type !== null && [" · ", isolated(question.type)],
      ),
      goldLine(question),
    ),
    resultSections(data, question.result),
  ];
}

function pager(place) {
  const link = (target, word, key) =>
    target === null
      ? element("span", { class: "off" }, word)
      : element("a", { href: target, "aria-keyshortcuts": key }, word, " ", element("kbd", { "aria-hidden": "true" }, key));
  return element(
    "nav",
    { class: "pager", "aria-label": "Questions" },
    element("a", { href: "#/" }, "All questions"),
    link(place.previous, "Previous", "k"),
    link(place.next, "Next", "j"),
    element("span", { class: "muted" }, place.text),
  );
}

function goldLine(question) {
  if (!question.answerable) return element("p", { class: "gold" }, "There is no answer: to say so is right.");
  if (!question.gold.length) return null;
  return element(
    "p",
    { class: "gold" },
    "Gold answer: ",
    question.gold.map((one, at) => [at > 0 && " or ", element("strong", null, isolated(one))]),
  );
}

function resultSections(data, shown) {
  return element(
    "div",
    { class: "columns" },
    element("div", { class: "aside" }, answerCard(data, shown), evidenceCard(shown), tokensCard(shown)),
    element(
      "section",
      { class: "steps", "aria-labelledby": "steps" },
      element("h2", { id: "steps" }, "Steps"),
      noSteps(shown),
      element("ol", null, (shown.steps ?? []).map((_, at) => element("li", null, stepCard(data, shown, at)))),
    ),
  );
}

function noSteps(shown) {
  if (shown.steps?.length) return null;
  const why = shown.status === "missing" ? "There is no record of this question yet." : "It was answered without a step.";
  return element("p", { class: "muted" }, shown.status === "failed" ? "It failed before the first step." : why);
}

function answerCard(data, shown) {
  const titles = titlesById(data, shown);
  return element(
    "section",
    { class: "card answer-card", "aria-label": "Answer" },
    element("p", { class: "over" }, resultBadge(shown), " ", statusText(shown), shown.exact && element("span", { class: "muted" }, "exact match")),
    shown.failure !== null && shown.failure !== undefined && element("p", { class: "said said-error", dir: "auto" }, isolated(shown.failure)),
    shown.answer && element("p", { class: "short", dir: "auto" }, isolated(shown.answer)),
    shown.explanation && element("p", { class: "explanation", dir: "auto" }, isolated(shown.explanation)),
    shown.failureKind && element("p", { class: "small" }, "Why it is wrong: ", element("strong", null, shown.failureKind), `, ${meaningOf(data, shown.failureKind)}.`),
    shown.judged && element("p", { class: "small" }, "By verdict: ", element("strong", null, shown.judged), "."),
    shown.asked !== undefined && element("p", { class: "said said-error" }, "The run asked: ", isolated(shown.asked)),
    shown.cited?.length > 0 && [
      element("h3", null, "Cites"),
      element("ul", { class: "cited" }, shown.cited.map((one) => citation(one, titles))),
    ],
    shown.warning && element("p", { class: "said said-error" }, isolated(shown.warning)),
    shown.reply && replyOfModel(shown),
  );
}

function meaningOf(data, kind) {
  return data.overview.categories.find(([name]) => name === kind)[1];
}

function replyOfModel(shown) {
  return element(
    "details",
    { class: "reply" },
    element("summary", null, "The answer as the model wrote it"),
    element("pre", { dir: "auto" }, isolated(shown.reply)),
  );
}

function citation([id, at, score, isReused], titles) {
  return element(
    "li",
    null,
    element("span", { class: "id" }, "[", isolated(id), "]"),
    " ",
    titles.has(id) && isolated(titles.get(id)),
    score !== undefined && element("span", { class: "muted" }, ` helps ${score.toFixed(2)}`),
    " ",
    isReused
      ? element("span", { class: "muted" }, "found for an earlier question")
      : at === null
      ? element("span", { class: "result result-wrong" }, icon("wrong"), "never shown")
      : ["first shown in ", stepLink(at)],
  );
}

function titlesById(data, shown) {
  const titles = new Map();
  for (const step of shown.steps ?? []) {
    for (const one of step.passages) {
      if (data.texts[one.title] && !one.before && !titles.has(one.id)) titles.set(one.id, data.texts[one.title]);
    }
  }
  return titles;
}

/** Goes to a step of the question. */
function stepLink(at) {
  return element(
    "button",
    {
      type: "button",
      class: "link",
      onclick: () => {
        const step = document.getElementById(stepId(at));
        step.scrollIntoView({ block: "start" });
        step.focus({ preventScroll: true });
      },
    },
    `step ${at + 1}`,
  );
}

function evidenceCard(shown) {
  if (!shown.evidence.length) return null;
  const hasReads = shown.steps.some((one) => one.tool === "chunk_read");
  const heads = ["evidence", "first shown", "text visible", hasReads && "first read"].filter(Boolean);
  const cell = (at) =>
    element("td", null, at === null ? element("span", { class: "result result-none" }, icon("none"), "never") : stepLink(at));
  return element(
    "section",
    { class: "card", "aria-label": "Evidence" },
    element("h3", null, "Gold evidence"),
    shown.evidence.map((set, at) =>
      element(
        "table",
        { class: "evidence" },
        element("caption", { class: shown.evidence.length > 1 ? "small" : "hidden" }, shown.evidence.length > 1 ? `Set ${at + 1}; any set would do` : "When each piece was met"),
        element(
          "thead",
          null,
          element("tr", null, heads.map((head) => element("th", { scope: "col" }, head))),
        ),
        element(
          "tbody",
          null,
          set.map(([name, ...met]) =>
            element("tr", null, element("th", { scope: "row" }, isolated(name)), met.slice(0, heads.length - 1).map(cell)),
          ),
        ),
      ),
    ),
  );
}

function tokensCard(shown) {
  if (!shown.steps) return null;
  const [prompt, completion, isCounted] = shown.usage;
  return element(
    "section",
    { class: "card", "aria-label": "Tokens and time" },
    element("h3", null, "Tokens and time"),
    element(
      "p",
      null,
      element("strong", null, count(shown.retrieved)),
      ` retrieved tokens in ${plural(shown.steps.length, "step")}, ${seconds(shown.seconds)} s`,
    ),
    tokensPlot(shown.steps),
    element(
      "p",
      { class: "small muted" },
      `${plural(prompt, "prompt token")}, ${plural(completion, "completion token")}`,
      isCounted && " (counted by us)",
      shown.cost !== null && `, $${shown.cost.toFixed(4)}`,
      ".",
    ),
  );
}
