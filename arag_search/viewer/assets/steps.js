/* One step: the query as it was understood, what the reply says, passages, tokens so far. */

/** A step of a run. `at` counts from 0. */
function stepCard(data, result, at) {
  const step = result.steps[at];
  const soFar = result.steps.slice(0, at + 1).reduce((sum, earlier) => sum + earlier.retrieved, 0);
  return element(
    "article",
    { class: `step step-${step.status}`, id: stepId(at), tabindex: -1, "aria-label": `Step ${at + 1}: ${plain(step.tool)}` },
    element(
      "header",
      null,
      element("h3", null, element("span", { class: "ordinal" }, hidden("Step "), at + 1), " ", isolated(step.tool)),
      element(
        "p",
        { class: "meta" },
        step.status === "error"
          ? element("span", { class: "result result-wrong" }, icon("wrong"), step.hits)
          : step.hits,
        ` · ${plural(step.retrieved, "retrieved token")} · ${seconds(step.seconds)} s`,
      ),
    ),
    newEvidence(result, at),
    step.reasoning && element("blockquote", { class: "reasoning", dir: "auto" }, isolated(step.reasoning)),
    queryBlock(data, step),
    argumentList(step),
    replyAbove(step),
    step.passages.length > 0 &&
      element("ol", { class: "passages" }, step.passages.map((passage) => passageItem(data, passage))),
    element(
      "p",
      { class: "so-far" },
      `${count(soFar)} retrieved tokens so far; the reply has ${plural(step.result, "token")}`,
    ),
    step.events && element("ul", { class: "tags", "aria-label": "Context" }, step.events.map((event) => element("li", null, event))),
    replyDetails(data, step),
  );
}

function stepId(at) {
  return `step-${at + 1}`;
}

const SIGHTINGS = ["shown", "text visible", "read"];

/** Which evidence a step is the first to show, to have the text of, to read. */
function newEvidence(result, at) {
  const pieces = result.evidence
    .flat()
    .map(([name, ...places]) => [name, SIGHTINGS.filter((_, which) => places[which] === at)])
    .filter(([, how]) => how.length);
  if (!pieces.length) return null;
  return element(
    "ul",
    { class: "tags", "aria-label": "Evidence first shown here" },
    pieces.map(([name, how]) => element("li", null, element("strong", null, isolated(name)), `: ${how.join(", ")}`)),
  );
}

function queryBlock(data, step) {
  const query = step.query;
  if (!query) return null;
  const read = understood(query);
  const isOther = query.typed !== read && `(${query.typed})` !== read;
  return element(
    "div",
    { class: "query-block" },
    query.pieces.length > 0 &&
      element("p", { class: "query" }, hidden("Query as understood: "), element("code", null, queryPieces(query.pieces, data.kinds))),
    (isOther || !query.pieces.length) && step.tool !== "keyword_search" &&
      element(
        "p",
        { class: query.pieces.length ? "typed" : "query" },
        query.pieces.length > 0 && "typed as ",
        element("code", null, isolated(query.typed)),
      ),
    query.problems.length > 0 &&
      problemList(query.problems),
    query.mended !== null &&
      element("p", { class: "typed" }, "to be written as ", element("code", null, isolated(query.mended))),
  );
}

function argumentList(step) {
  if (!step.arguments.length) return null;
  return element(
    "dl",
    { class: "arguments" },
    step.arguments.map(([name, value]) =>
      element("div", null, element("dt", null, isolated(name || "arguments")), element("dd", null, isolated(value))),
    ),
  );
}

/** A query as its reply repeats it; empty where that is not known. */
function understood(query) {
  return query ? query.pieces.map(([, text]) => text).join("") : "";
}

/** What a reply says above its passages: its notes, or all of it. What its first line says of a
 * search stands above already, as hits and query. */
function replyAbove(step) {
  if (step.query?.problems.length) return null;
  const read = understood(step.query);
  const [first, ...notes] = step.above.split("\n");
  const isRepeated = step.passages.length > 0 && read !== "" && first.includes(read);
  const text = isRepeated ? notes.join("\n") : step.above;
  if (!text) return null;
  return element(
    "p",
    { class: step.status === "error" ? "said said-error" : "said", dir: "auto" },
    isolated(text),
  );
}

function passageItem(data, passage) {
  const title = data.texts[passage.title];
  const text = data.texts[passage.text];
  return element(
    "li",
    passage.removed ? { class: "removed" } : null,
    element(
      "h4",
      null,
      element("span", { class: "id" }, "[", isolated(passage.id), "]"),
      " ",
      marked(title, passage.titleMarks),
      passage.before === "shown" && element("span", { class: "muted" }, " (shown before)"),
      passage.removed && element("span", { class: "muted" }, " (removed from the conversation later)"),
    ),
    passage.about && element("p", { class: "about" }, isolated(passage.about)),
    text && passageText(text, passage.textMarks),
    passage.below && element("p", { class: "below" }, isolated(passage.below)),
  );
}

/** The reply as the model saw it, put together when it is asked for. */
function replyDetails(data, step) {
  const made = element("details", { class: "reply" }, element("summary", null, "The reply as the model saw it"));
  made.addEventListener(
    "toggle",
    () => made.append(element("pre", { dir: "auto" }, isolated(wholeReply(data, step)))),
    { once: true },
  );
  return made;
}

function wholeReply(data, step) {
  if (step.reply !== undefined) return data.texts[step.reply];
  const lines = [step.above];
  for (const passage of step.passages) lines.push(passage.header, passage.about, data.texts[passage.text], passage.below);
  return lines.filter(Boolean).join("\n");
}
