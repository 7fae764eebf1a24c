"use strict";

/* The page to search by hand: what is asked stands in the address, and the server answers it. */

(async () => {
  const WAIT_MS = 150; // after the last key, until a query is read
  const news = document.getElementById("news");
  const asking = new Map(); // by box: what was asked last, and may be called off
  const history = new Map(); // the queries of this visit, by their address
  const windowName = crypto.randomUUID();
  let token = takeToken();
  let about, call, answer;
  let cards = []; // the hits, and the passages beside them
  let chosen = -1; // the hit that the reader shows, or that has the focus

  /** Take the token out of the address, where it would be seen. */
  function takeToken() {
    const given = new URLSearchParams(location.hash.slice(1));
    if (!given.has("token")) return kept("arag-search-token") ?? "-";
    const taken = given.get("token");
    given.delete("token");
    window.history.replaceState(null, "", `#${given}`);
    return taken;
  }

  /** Ask the server; a newer question of the same box takes the place of this one. */
  async function ask(box, question, body) {
    asking.get(box)?.abort();
    const controller = new AbortController();
    asking.set(box, controller);
    const sent = { method: "POST", headers: { Authorization: `Bearer ${token}` }, body: JSON.stringify(body ?? {}), signal: controller.signal };
    const response = await fetch(`ask/${question}`, sent);
    if (!response.ok) throw new Error(await response.text());
    const told = await response.json();
    if (told.problem) throw new Error(told.problem);
    return told;
  }

  /** Do something with an answer, or tell why there is none; one that is no longer wanted is dropped. */
  async function during(question, use, place, end = () => null) {
    let told;
    try {
      told = await question;
    } catch (error) {
      if (error.name === "AbortError") return;
      const text = error instanceof TypeError ? "The server does not answer.\nDo: Start arag-search view again, and open the address that it prints." : error.message;
      (place ?? alert).hidden = false;
      (place ?? alert).replaceChildren(isolated(text));
      news.textContent = "";
      return end();
    }
    alert.hidden = true;
    end();
    use(told);
  }

  const alert = element("p", { class: "alert", role: "alert", hidden: true });
  const query = element("input", { id: "query", type: "search", autocomplete: "off", spellcheck: "false", autocapitalize: "off", placeholder: '"a phrase" AND (word OR begin*) AND NOT title:word' });
  const reading = element("div", { id: "reading", class: "query-block", "aria-live": "polite" });
  const tool = element("select", { id: "tool" });
  const controls = element("div", { class: "filters" });
  const form = element(
    "form",
    { class: "ask", role: "search", "aria-label": "The index" },
    element("div", { class: "line" }, field("Query", query), element("button", { type: "submit" }, "Search")),
    reading,
    element("div", { id: "arguments", class: "filters" }, field("tool", tool), controls),
  );
  const tally = element("span", { class: "muted small" });
  const hits = element("ol", { class: "passages" });
  const pages = element("p", { class: "pager" });
  const title = element("h1", { class: "hidden" });
  const heading = element("h2", { id: "hits-title", tabindex: -1 }, "Hits");
  const list = element("section", { "aria-labelledby": "hits-title" }, element("div", { class: "over" }, heading, tally), hits, pages);

  function field(label, control) {
    return element("div", { class: "field" }, element("label", { for: control.id }, label), control);
  }

  const nameOf = (one) => `${one.preset}/${one.tool}`;
  const toolNamed = (name) => about.tools.find((one) => nameOf(one) === name) ?? about.tools[0];
  const toolOptions = () => about.tools.map((one) => element("option", { value: nameOf(one) }, `${one.tool} (${one.preset})`));

  const narrows = () => toolNamed(tool.value).narrows;

  const panels = searchPanels({
    ask: (question, body) => ask("side", question, { call, ...body }),
    during,
    search: (text) => go({ ...call, query: text }),
    add,
    callOf: (text, name) => callOf(text, toolNamed(name)),
    narrows,
    history,
    toolOptions,
  });

  /** The controls of a tool's arguments, made from their schema; those of the same tool stay. */
  function drawControls(of, given) {
    if (controls.dataset.tool !== nameOf(of)) controls.replaceChildren(...Object.entries(of.controls).map(controlOf));
    controls.dataset.tool = tool.value = nameOf(of);
    for (const [name, schema] of Object.entries(of.controls)) document.getElementById(`argument-${name}`).value = given[name] ?? schema.default ?? "";
  }

  function controlOf([name, schema]) {
    const choices = name === "sort" ? ["", ...about.sorts] : schema.enum;
    const same = { id: `argument-${name}`, title: schema.description, onchange: () => form.requestSubmit() };
    return field(
      name,
      choices
        ? element("select", same, choices.map((choice) => element("option", { value: choice }, choice || "score")))
        : element("input", { ...same, type: schema.type === "integer" ? "number" : "text", min: schema.minimum, max: schema.maximum }),
    );
  }

  /** A call as the form stands, or of another query by another tool. */
  function callOf(text = query.value, of = toolNamed(tool.value)) {
    const values = {};
    for (const [name, schema] of Object.entries(of.controls)) {
      const value = document.getElementById(`argument-${name}`)?.value ?? "";
      if (value !== "" && value !== String(schema.default)) values[name] = schema.type === "integer" ? Number(value) : value;
    }
    return { preset: of.preset, tool: of.tool, query: text, arguments: values, window: windowName };
  }

  function go(next) {
    const address = `#${new URLSearchParams({ q: next.query, tool: nameOf(next), with: JSON.stringify(next.arguments) })}`;
    if (location.hash === address) route();
    else location.hash = address;
  }

  function submit(event) {
    event?.preventDefault();
    if (query.value.trim()) go(callOf());
  }

  /** Add a condition on a field to the query: a value, or a range of them. */
  function add(name, value) {
    during(ask("add", "add", { call: callOf(), field: name, value }), (added) => {
      if (added.argument) document.getElementById(`argument-${added.argument}`).value = added.value;
      else query.value = added.query;
      submit();
    });
  }

  /** Show what the address asks for. */
  function route() {
    const given = new URLSearchParams(location.hash.slice(1));
    const of = toolNamed(given.get("tool"));
    query.value = given.get("q") ?? "";
    const values = argumentsIn(given.get("with"));
    drawControls(of, values);
    call = { ...callOf(), query: query.value, arguments: values };
    document.title = plain(query.value ? `${query.value} · ${about.location}` : about.location);
    clearTimeout(typing);
    for (const box of asking.values()) box.abort();
    if (query.value.trim()) return run(location.hash);
    list.removeAttribute("aria-busy");
    hits.replaceChildren();
    pages.replaceChildren();
    reading.replaceChildren();
    drawAbout();
    panels.show(null, call);
    query.focus();
  }

  function argumentsIn(text) {
    try {
      return { ...JSON.parse(text) };
    } catch {
      return {};
    }
  }

  function run(address) {
    news.textContent = "Searching.";
    list.setAttribute("aria-busy", "true");
    const asked = call;
    during(ask("call", "call", { call }), (found) => {
      answer = found;
      chosen = -1;
      history.delete(address);
      history.set(address, { query: asked.query, tool: asked.tool, tally: tallyText() });
      if (query.value === asked.query) drawReading(found.reading);
      drawHits();
      panels.show(answer, asked);
      if (document.activeElement === document.body) heading.focus();
    }, null, () => list.removeAttribute("aria-busy"));
  }

  let typing = 0;
  query.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => during(ask("reading", "read", { call: callOf() }), drawReading), WAIT_MS);
  });

  function drawReading(read) {
    reading.replaceChildren();
    if (read.pieces.length) {
      reading.append(element("p", { class: "query" }, hidden("Query as understood: "), element("code", null, queryPieces(read.pieces, about.kinds))));
    }
    if (read.problems.length) {
      reading.append(problemList(read.problems));
    }
    if (read.mended !== null) {
      const take = () => {
        query.value = read.mended;
        submit();
      };
      reading.append(element("button", { type: "button", onclick: take }, "Search the corrected query: ", element("code", null, isolated(read.mended))));
    }
  }

  function tallyText() {
    if (answer.status === "error") return "The tool did not search.";
    const unit = answer.total === 1 ? answer.total_unit.slice(0, -1) : answer.total_unit;
    const total = answer.total === null ? "" : `${answer.total_text} ${unit}, `;
    const last = answer.offset + answer.hits.length;
    const noun = answer.documents === undefined ? "hits" : "documents";
    const page = answer.hits.length ? `${noun} ${count(answer.offset + 1)} to ${count(last)}, ` : "";
    return `${total}${page}${plural(answer.tokens, "token")} for a model, ${answer.milliseconds} ms`;
  }

  function drawHits() {
    tally.textContent = news.textContent = tallyText();
    if (answer.status === "error" && !answer.reading.problems.length) {
      alert.hidden = false;
      alert.replaceChildren(isolated(answer.text));
    }
    const nearest = answer.nearest.map((hit) => ({ ...hit, beside: `no hit: misses ${hit.lacks.join(", ") || "one sentence with all"}` }));
    const best = answer.unrepresented.map((hit) => ({ ...hit, beside: `best for ${hit.branch}` }));
    cards = [...answer.hits, ...nearest, ...best];
    hits.replaceChildren(...cards.map(hitCard));
    const { after, offset, ...others } = call.arguments;
    const page = (name, place) => element("button", { type: "button", onclick: () => go({ ...call, arguments: { ...others, ...place } }) }, name);
    pages.replaceChildren(after || offset ? page("First page", {}) : "", answer.next ? page("Next page", answer.next) : "");
  }

  function hitCard(card, at) {
    const name = card.title ? marked(card.title, card.title_marks) : isolated(card.id);
    const part = card.parts > 1 && `part ${count(card.part)} of ${count(card.parts)}`;
    const matches = card.matches && `${count(card.matches)} ${card.matches === 1 ? "match" : "matches"}`;
    const values = Object.entries(card.metadata ?? {}).flatMap(([name, value]) => [value].flat().map((one) => [name, one]));
    return element(
      "li",
      { class: "hit", onfocusin: () => (chosen = at) },
      element("h3", null, element("button", { type: "button", class: "link", onclick: () => open(at) }, name), " ", element("span", { class: "id" }, "[", isolated(card.id), "]")),
      element(
        "p",
        { class: "about" },
        isolated([card.path, part, matches, card.beside].filter(Boolean).join(" · ")),
        card.file && copyButton(card.file, card.file),
      ),
      card.snippet && passageText(card.snippet, card.marks),
      card.left_out > 0 && element("p", { class: "small muted" }, `${count(card.left_out)} more characters: open the passage in the reader.`),
      values.length > 0 && card.snippet && element("ul", { class: "tags", "aria-label": "Metadata" }, values.map(([name, value]) => element("li", null, valueButton(`${name}: ${value}`, about.fields.includes(name) && narrows() && (() => add(name, String(value))))))),
    );
  }

  function open(at) {
    chosen = at;
    for (const [place, item] of [...hits.children].entries()) item.classList.toggle("open", place === at);
    panels.open(cards[at]);
  }

  function step(by) {
    if (!cards.length) return;
    chosen = Math.min(Math.max(chosen + by, 0), cards.length - 1);
    hits.children[chosen].querySelector("h3 button").focus();
  }

  /** What the index holds, before the first search. */
  function drawAbout() {
    const all = about.filter ? `within ${about.filter}` : `in ${plural(about.documents, "document")}`;
    tally.replaceChildren(isolated(`${plural(about.passages, "passage")} ${all}`));
  }

  async function start() {
    await during(ask("about", "about"), (told) => {
      about = told;
      token = told.token;
      keep("arag-search-token", token);
      document.querySelector(".brand").replaceChildren(isolated(about.location));
      title.replaceChildren("Search ", isolated(about.location));
      tool.replaceChildren(...toolOptions());
      document.getElementById("main").replaceChildren(title, form, alert, element("div", { class: "desk" }, list, panels.section));
      if (started) return route();
      started = true;
      setUpFrame(about.kinds, {
        "/": () => (query.focus(), query.select()),
        j: () => step(1),
        k: () => step(-1),
        n: () => panels.turn(1),
        p: () => panels.turn(-1),
        Escape: () => chosen >= 0 && step(0),
      });
      route();
    });
  }

  let started = false;
  form.addEventListener("submit", submit);
  tool.addEventListener("change", () => {
    drawControls(toolNamed(tool.value), call.arguments);
    form.requestSubmit();
  });
  document.getElementById("main").replaceChildren(alert);
  window.addEventListener("hashchange", () => {
    if (about && !location.hash.includes("token=")) return route();
    token = takeToken();
    start();
  });
  await start();
})();
