/* The page of a run: which view stands in the address, keys, where the focus is. */

(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const main = document.getElementById("main");
  const news = document.getElementById("news");
  const title = plain(document.title);
  const places = new Map(data.questions.map((question, at) => [question.id, at]));
  const table = new QuestionTable(data);
  const overview = element("div", { class: "overview" }, overviewSections(data), table.section());
  let current = null; // the number of the question that is shown
  let scrolled = 0; // how far down the overview was

  function route() {
    const match = /^#\/question\/(.*)$/s.exec(location.hash);
    const at = match === null ? undefined : places.get(decoded(match[1]));
    if (at !== undefined) showQuestion(at);
    else showOverview(match !== null);
  }

  function decoded(text) {
    try {
      return decodeURIComponent(text);
    } catch {
      return null;
    }
  }

  function showOverview(isUnknown) {
    const before = current;
    current = null;
    document.title = title;
    if (!overview.isConnected) main.replaceChildren(overview); // else the focus would be lost
    news.textContent = isUnknown ? "There is no such question on this page." : "";
    if (before === null) return;
    window.scrollTo(0, scrolled);
    table.focus(before);
  }

  function showQuestion(at) {
    if (current === null) scrolled = window.scrollY;
    current = at;
    news.textContent = "";
    const question = data.questions[at];
    document.title = `${plain(question.text)} · ${title}`;
    main.replaceChildren(element("div", { class: "question" }, questionSections(data, question, placeOf(at))));
    window.scrollTo(0, 0);
    main.querySelector("h1").focus({ preventScroll: true });
  }

  /** Where a question stands among those that are chosen, and its neighbours there. */
  function placeOf(at) {
    const place = table.order.indexOf(at);
    const address = (other) => (other === undefined ? null : questionAddress(data.questions[other]));
    const isChosen = place >= 0;
    return {
      previous: isChosen ? address(table.order[place - 1]) : null,
      next: address(table.order[isChosen ? place + 1 : 0]),
      text: isChosen ? `${count(place + 1)} of ${count(table.order.length)}` : "not among those chosen",
    };
  }

  function go(direction) {
    const from = current === null ? { next: questionAddress(data.questions[table.order[0]] ?? data.questions[0]), previous: null } : placeOf(current);
    if (from[direction] !== null) location.hash = from[direction];
    else news.textContent = direction === "next" ? "This is the last question." : "This is the first question.";
  }

  function toSearch() {
    if (current !== null) {
      location.hash = "#/";
      route();
    }
    table.search.focus();
    table.search.select();
  }

  const KEYS = {
    j: () => go("next"),
    n: () => go("next"),
    k: () => go("previous"),
    p: () => go("previous"),
    "/": toSearch,
    Escape: () => {
      if (current !== null) location.hash = "#/";
    },
  };

  setUpFrame(data.kinds, KEYS);

  const brand = document.querySelector(".brand");
  brand.replaceChildren(isolated(brand.textContent));
  window.addEventListener("hashchange", route);
  route();
})();
