/* What the pages have in common: keys, colours, help, and the way past the header. */

/** Set up the frame. `keys` are functions by key; they rest while somebody types or reads the help. */
function setUpFrame(kinds, keys) {
  const help = document.getElementById("help");
  const openHelp = () => help.showModal();
  const all = { ...keys, "?": openHelp };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    const isTyping = event.target.closest("input, select, textarea") !== null;
    if (isTyping && event.key === "Escape") {
      event.preventDefault(); // which would clear the field
      event.target.blur();
    }
    if (isTyping || !Object.hasOwn(all, event.key)) return;
    if (all[event.key](event) === false) return; // the key keeps its meaning
    event.preventDefault();
  });

  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById("main").focus();
  });
  document.getElementById("open-help").addEventListener("click", openHelp);
  document.getElementById("legend").append(
    ...Object.entries(kinds)
      .filter(([kind]) => kind !== "blank")
      .flatMap(([kind, word]) => [element("span", { class: `piece piece-${kind}` }, word), " "]),
  );

  const theme = document.getElementById("theme");
  theme.addEventListener("change", () => setTheme(theme.value));
  function setTheme(value) {
    theme.value = value;
    document.documentElement.dataset.theme = value;
    keep("arag-search-theme", value);
  }
  setTheme(kept("arag-search-theme") ?? "");
}

/** Keep a text for further visits. A page from disk may have no storage: then it holds for this one. */
function keep(name, text) {
  try {
    localStorage.setItem(name, text);
  } catch {
    return;
  }
}

/** A text that was kept, or null. */
function kept(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}
