/* The table of questions: filtered, sorted, and the order in which a reader goes through them. */

const ROWS_AT_ONCE = 150;
const RESULTS = { right: "right", wrong: "wrong", untold: "not told" };

/** What an answer is worth, as a word. */
function worthOf(result) {
  if (result.right === null) return "untold";
  return result.right ? "right" : "wrong";
}

/** The same with its sign. */
function resultBadge(result) {
  const worth = worthOf(result);
  const word = result.refused && worth === "wrong" ? "wrong (no answer)" : RESULTS[worth];
  const sign = worth === "untold" ? "none" : worth;
  return element("span", { class: `result result-${sign}` }, icon(sign), word);
}

class QuestionTable {
  constructor(data) {
    this.data = data;
    this.columns = columnsOf(data);
    this.filters = filtersOf(data);
    this.chosen = Object.fromEntries(this.filters.map((filter) => [filter.name, ""]));
    this.text = "";
    this.sort = { column: this.columns[0], ascending: true };
    this.rows = new Map();
    this.order = data.questions.map((_, at) => at);
    this.searched = data.questions.map(searchedText);
    this.arrange();
  }

  /** The section, made once; its rows are moved about afterwards. */
  section() {
    if (!this.made) this.made = this.make();
    this.show();
    return this.made;
  }

  make() {
    this.search = element("input", {
      type: "search",
      id: "search",
      placeholder: "question, answer or id",
      oninput: () => {
        this.text = this.search.value;
        this.change();
      },
    });
    this.tally = element("p", { class: "tally", role: "status" });
    this.heads = this.columns.map((column) => this.head(column));
    this.body = element("tbody", { role: "rowgroup" });
    this.more = element("button", { type: "button", onclick: () => this.showMore() }, "More questions");
    new IntersectionObserver((entries) => {
      if (entries.some((entry) => entry.isIntersecting)) this.showMore();
    }, { rootMargin: "800px" }).observe(this.more);
    return element(
      "section",
      { class: "questions", "aria-labelledby": "questions" },
      element("div", { class: "over" }, element("h2", { id: "questions" }, "Questions"), this.tally),
      element(
        "form",
        { class: "filters", role: "search", "aria-label": "Questions", onsubmit: (event) => event.preventDefault() },
        labelled("Search", this.search),
        this.filters.map((filter) => this.select(filter)),
        this.sortSelect(),
        element("button", { type: "button", class: "quiet", onclick: () => this.clear() }, "Show all"),
      ),
      (this.list = element(
        "table",
        { class: "list", role: "table", "aria-labelledby": "questions" },
        element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, this.heads)),
        this.body,
      )),
      this.more,
    );
  }

  head(column) {
    const button = element(
      "button",
      { type: "button", onclick: () => this.sortBy(column) },
      column.head,
      element("span", { class: "arrow" }),
    );
    return element(
      "th",
      { scope: "col", role: "columnheader", class: column.isNumber ? "figure" : null, "aria-sort": "none" },
      button,
    );
  }

  select(filter) {
    filter.select = element(
      "select",
      {
        onchange: () => {
          this.chosen[filter.name] = filter.select.value;
          this.change();
        },
      },
      element("option", { value: "" }, "all"),
      filter.options.map(([value, word]) => element("option", { value }, plain(word))),
    );
    return labelled(filter.head, filter.select);
  }

  /** Where the heads of columns are not to be seen. */
  sortSelect() {
    this.sorting = element(
      "select",
      {
        onchange: () => {
          const [at, way] = this.sorting.value.split(" ");
          this.sortBy(this.columns[Number(at)], way === "ascending");
        },
      },
      this.columns.flatMap((column, at) =>
        ["ascending", "descending"].map((way) =>
          element("option", { value: `${at} ${way}` }, `${column.word ?? column.head}, ${way}`),
        ),
      ),
    );
    return labelled("Sorted by", this.sorting, "narrow");
  }

  clear() {
    this.text = this.search.value = "";
    for (const filter of this.filters) this.chosen[filter.name] = filter.select.value = "";
    this.change();
  }

  sortBy(column, ascending) {
    const isSame = this.sort.column === column;
    this.sort = { column, ascending: ascending ?? (isSame ? !this.sort.ascending : true) };
    this.change();
  }

  change() {
    this.arrange();
    this.show();
  }

  /** Choose and order the questions. */
  arrange() {
    const words = this.text.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = this.filters.filter((filter) => this.chosen[filter.name] !== "");
    this.order = this.data.questions
      .map((_, at) => at)
      .filter((at) => {
        const question = this.data.questions[at];
        return (
          words.every((word) => this.searched[at].includes(word)) &&
          wanted.every((filter) => filter.values(question).includes(this.chosen[filter.name]))
        );
      });
    const { column, ascending } = this.sort;
    const keys = new Map(this.order.map((at) => [at, column.key(this.data.questions[at], at)]));
    const sign = ascending ? 1 : -1;
    this.order.sort((a, b) => compared(keys.get(a), keys.get(b), sign) || a - b);
  }

  /** The first rows in the order as it is; the others come when the reader has scrolled so far. */
  show() {
    const way = this.sort.ascending ? "ascending" : "descending";
    this.body.replaceChildren();
    this.showMore();
    this.list.setAttribute("aria-rowcount", this.order.length + 1);
    this.columns.forEach((column, at) => {
      const isSorted = column === this.sort.column;
      this.heads[at].setAttribute("aria-sort", isSorted ? way : "none");
      const arrow = this.heads[at].querySelector(".arrow");
      arrow.replaceChildren(...(isSorted ? [icon(this.sort.ascending ? "up" : "down")] : []));
    });
    this.sorting.value = `${this.columns.indexOf(this.sort.column)} ${way}`;
    const all = this.data.questions.length;
    this.tally.textContent =
      this.order.length === all ? plural(all, "question") : `${count(this.order.length)} of ${plural(all, "question")}`;
  }

  showMore() {
    const present = this.body.childElementCount;
    this.body.append(...this.order.slice(present, present + ROWS_AT_ONCE).map((at) => this.rowOf(at)));
    this.more.hidden = this.body.childElementCount === this.order.length;
  }

  rowOf(at) {
    let row = this.rows.get(at);
    if (row === undefined) {
      const cells = this.columns.map((column) => cellOf(column, this.data.questions[at], at));
      row = element("tr", { role: "row" }, cells);
      this.rows.set(at, row);
    }
    return row;
  }

  /** Put the focus on a question, if it is among those chosen. */
  focus(at) {
    const place = this.order.indexOf(at);
    if (place < 0) return;
    while (this.body.childElementCount <= place) this.showMore();
    this.rowOf(at).querySelector("a").focus();
  }
}

/** A control under its label. */
function labelled(text, control, kind = "") {
  control.id ||= `choose-${text.toLowerCase().replaceAll(" ", "-")}`;
  return element("div", { class: `field ${kind}` }, element("label", { for: control.id }, text), control);
}

/** Values without a number stand last, whichever way. */
function compared(a, b, sign) {
  const isNone = (value) => value === null || value === undefined;
  if (isNone(a) || isNone(b)) return Number(isNone(a)) - Number(isNone(b));
  if (typeof a === "string") return sign * a.localeCompare(b, "en", { numeric: true });
  return sign * (a - b);
}

function searchedText(question) {
  return [question.id, question.text, ...question.gold, question.result.answer].join("\n").toLowerCase();
}

function cellOf(column, question, at) {
  const attributes = {
    role: column.isRowHead ? "rowheader" : "cell",
    scope: column.isRowHead ? "row" : null,
    class: column.isNumber ? "figure" : `cell-${column.name}`,
    "data-label": column.word ?? column.head,
  };
  return element(column.isRowHead ? "th" : "td", attributes, column.cell(question, at));
}

/** Every column: name, head (and word where the head is no name), key to sort by, cell. */
function columnsOf(data) {
  const any = (test) => data.questions.some((question) => test(question.result));
  const columns = [
    { name: "number", head: "#", word: "number", isNumber: true, key: (_, at) => at, cell: (_, at) => count(at + 1) },
    {
      name: "question",
      head: "question",
      isRowHead: true,
      key: (question) => question.text,
      cell: questionCell,
    },
  ];
  if (data.questions.some((question) => question.type !== null)) {
    columns.push({ name: "type", head: "type", key: (question) => question.type, cell: (question) => isolated(question.type ?? "–") });
  }
  return [...columns, ...resultColumns(any)];
}

function resultColumns(any) {
  const of = (field) => (question) => question.result[field] ?? null;
  const columns = [];
  if (any((result) => result.right !== null)) {
    columns.push({
      name: "result",
      head: "result",
      key: (question) => worthOf(question.result),
      cell: (question) => resultBadge(question.result),
    });
  }
  columns.push({ name: "status", head: "status", key: of("status"), cell: (question) => statusText(question.result) });
  if (any((result) => result.recall !== null)) {
    columns.push(number("evidence", "evidence", of("recall"), (value) => value?.toFixed(2) ?? "–"));
  }
  columns.push(number("steps", "steps", of("stepCount"), count));
  columns.push(number("tokens", "tokens", of("retrieved"), count));
  columns.push(number("seconds", "seconds", of("seconds"), seconds));
  return columns;
}

function number(name, head, key, write) {
  return { name, head, isNumber: true, key, cell: (question) => write(key(question)) };
}

function statusText(result) {
  return element("span", { class: `status status-${result.status}` }, result.status, result.withoutSearch && " without a search", result.fromMemory && " not grounded");
}

function questionCell(question) {
  const { answer } = question.result;
  return [
    element("a", { href: questionAddress(question) }, isolated(question.text)),
    element("span", { class: "answers" }, answer && element("span", { class: "answer" }, isolated(answer))),
  ];
}

function questionAddress(question) {
  return `#/question/${encodeURIComponent(question.id)}`;
}

/** What can be chosen, of what there is more than one of. */
function filtersOf(data) {
  const fieldOf = (field) => (question) => [question.result[field] ?? ""].filter(Boolean);
  const filters = [
    { name: "result", head: "Result", values: (question) => [worthOf(question.result)], words: RESULTS },
    { name: "status", head: "Status", values: fieldOf("status") },
    { name: "type", head: "Type", values: (question) => (question.type === null ? [] : [question.type]) },
    { name: "why", head: "Why wrong", values: fieldOf("failureKind") },
  ];
  for (const filter of filters) {
    const values = new Set(data.questions.flatMap(filter.values));
    const known = filter.words ? Object.keys(filter.words).filter((value) => values.has(value)) : [...values].sort();
    filter.options = known.map((value) => [value, filter.words?.[value] ?? value]);
  }
  return filters.filter((filter) => filter.options.length > 1);
}
