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
    question.gold.map((answer, at) => [at > 0 && " or ", element("strong", null, isolated(answer))]),
  );
}

function resultSections(data, result) {
  return element(
    "div",
    { class: "columns" },
    element("div", { class: "aside" }, answerCard(data, result), evidenceCard(result), tokensCard(result)),
    element(
      "section",
      { class: "steps", "aria-labelledby": "steps" },
      element("h2", { id: "steps" }, "Steps"),
      noSteps(result),
      element("ol", null, (result.steps ?? []).map((_, at) => element("li", null, stepCard(data, result, at)))),
    ),
  );
}

function noSteps(result) {
  if (result.steps?.length) return null;
  const why = result.status === "missing" ? "There is no record of this question yet." : "It was answered without a step.";
  return element("p", { class: "muted" }, result.status === "failed" ? "It failed before the first step." : why);
}

function answerCard(data, result) {
  const titles = titlesById(data, result);
  return element(
    "section",
    { class: "card answer-card", "aria-label": "Answer" },
    element("p", { class: "over" }, resultBadge(result), " ", statusText(result), result.exact && element("span", { class: "muted" }, "exact match")),
    result.failure !== null && result.failure !== undefined && element("p", { class: "said said-error", dir: "auto" }, isolated(result.failure)),
    result.answer && element("p", { class: "short", dir: "auto" }, isolated(result.answer)),
    result.explanation && element("p", { class: "explanation", dir: "auto" }, isolated(result.explanation)),
    result.failureKind && element("p", { class: "small" }, "Why it is wrong: ", element("strong", null, result.failureKind), `, ${meaningOf(data, result.failureKind)}.`),
    result.judged && element("p", { class: "small" }, "By verdict: ", element("strong", null, result.judged), "."),
    result.asked !== undefined && element("p", { class: "said said-error" }, "The run asked: ", isolated(result.asked)),
    result.cited?.length > 0 && [
      element("h3", null, "Cites"),
      element("ul", { class: "cited" }, result.cited.map((cited) => citation(cited, titles))),
    ],
    result.warning && element("p", { class: "said said-error" }, isolated(result.warning)),
    result.reply && replyOfModel(result),
  );
}

function meaningOf(data, kind) {
  return data.overview.categories.find(([name]) => name === kind)[1];
}

function replyOfModel(result) {
  return element(
    "details",
    { class: "reply" },
    element("summary", null, "The answer as the model wrote it"),
    element("pre", { dir: "auto" }, isolated(result.reply)),
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

function titlesById(data, result) {
  const titles = new Map();
  for (const step of result.steps ?? []) {
    for (const passage of step.passages) {
      if (data.texts[passage.title] && !passage.before && !titles.has(passage.id)) titles.set(passage.id, data.texts[passage.title]);
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

function evidenceCard(result) {
  if (!result.evidence.length) return null;
  const hasReads = result.steps.some((step) => step.tool === "chunk_read");
  const heads = ["evidence", "first shown", "text visible", hasReads && "first read"].filter(Boolean);
  const cell = (at) =>
    element("td", null, at === null ? element("span", { class: "result result-none" }, icon("none"), "never") : stepLink(at));
  return element(
    "section",
    { class: "card", "aria-label": "Evidence" },
    element("h3", null, "Gold evidence"),
    result.evidence.map((set, at) =>
      element(
        "table",
        { class: "evidence" },
        element("caption", { class: result.evidence.length > 1 ? "small" : "hidden" }, result.evidence.length > 1 ? `Set ${at + 1}; any set would do` : "When each piece was first shown"),
        element(
          "thead",
          null,
          element("tr", null, heads.map((head) => element("th", { scope: "col" }, head))),
        ),
        element(
          "tbody",
          null,
          set.map(([name, ...steps]) =>
            element("tr", null, element("th", { scope: "row" }, isolated(name)), steps.slice(0, heads.length - 1).map(cell)),
          ),
        ),
      ),
    ),
  );
}

function tokensCard(result) {
  if (!result.steps) return null;
  const [prompt, completion, isCounted, cached, thoughts, warning] = result.usage;
  return element(
    "section",
    { class: "card", "aria-label": "Tokens and time" },
    element("h3", null, "Tokens and time"),
    element(
      "p",
      null,
      element("strong", null, count(result.retrieved)),
      ` retrieved tokens in ${plural(result.steps.length, "step")}, ${seconds(result.seconds)} s`,
    ),
    tokensPlot(result.steps),
    element(
      "p",
      { class: "small muted" },
      `${plural(prompt, "prompt token")}${cached ? ` (${count(cached)} cached)` : ""}, `,
      `${plural(completion, "completion token")}${thoughts ? ` (${count(thoughts)} of thoughts)` : ""}`,
      isCounted && " (counted by us)",
      result.cost !== null && `, $${result.cost.toFixed(4)}`,
      ".",
    ),
    warning && element("p", { class: "small" }, warning),
  );
}
