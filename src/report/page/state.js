// What is shown, as the part of the address behind "#": a link has all of it, and the
// browser's back button goes through it.

const DEFAULT_STATE = {
  page: "overview",
  moment: -1,  // number of a tree; -1: the one that says most
  view: "space",
  isInverted: false,
  zoom: 0,  // node
  base: -1,  // number of the tree that another one is compared with; -1: the usual one
  pivot: -1,  // function whose callers are shown; -1: the one of the selected box, or who holds most
  query: "",
  filters: [],
  theme: "",  // "light", "dark", or as the system has it
  sort: "own",
  at: "",  // places in objects.js
  open: "",  // the same: what of a tree is open
};

function stateToHash(state) {
  const parameters = new URLSearchParams();
  const add = (key, value, usual) => value !== usual && parameters.set(key, value);
  add("page", state.page, DEFAULT_STATE.page);
  add("moment", String(state.moment), "-1");
  add("view", state.view, DEFAULT_STATE.view);
  add("up", String(Number(state.isInverted)), "0");
  add("zoom", String(state.zoom), "0");
  add("fn", String(state.pivot), "-1");
  add("base", String(state.base), "-1");
  add("q", state.query, "");
  add("filters", state.filters.length ? JSON.stringify(state.filters) : "none", "");
  add("theme", state.theme, "");
  add("sort", state.sort, DEFAULT_STATE.sort);
  add("at", state.at, "");
  add("open", state.open, "");
  return "#" + parameters.toString();
}

function filtersFromText(text) {
  try {
    const filters = JSON.parse(text);
    return filters
      .filter((filter) => Object.hasOwn(FILTERS, filter.kind) && typeof filter.text === "string")
      .map(({ kind, text: wanted, exact }) => ({ kind, text: wanted, exact: exact === true }));
  } catch {
    return [];
  }
}

// Links come from anywhere: what is not understood is as usual.
function stateFromHash(hash, pages) {
  const parameters = new URLSearchParams(hash.slice(1));
  const oneOf = (key, known, usual) => (known.includes(parameters.get(key)) ? parameters.get(key) : usual);
  const number = (key, usual) => (/^\d{1,9}$/.test(parameters.get(key) || "") ? Number(parameters.get(key)) : usual);
  return {
    page: oneOf("page", pages.map((page) => page.key), DEFAULT_STATE.page),
    moment: number("moment", -1),
    view: oneOf("view", VIEWS.map((view) => view.key), DEFAULT_STATE.view),
    isInverted: parameters.get("up") === "1",
    zoom: number("zoom", 0),
    base: number("base", -1),
    pivot: number("fn", -1),
    query: parameters.get("q") || "",
    filters: filtersFromText(parameters.get("filters") || "[]"),
    theme: oneOf("theme", ["light", "dark"], ""),
    sort: oneOf("sort", ["name", "module", "own", "total"], DEFAULT_STATE.sort),
    at: parameters.get("at") || "",
    open: parameters.get("open") || "",
  };
}
