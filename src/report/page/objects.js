// Objects of a managed heap: which classes retain what, as the tree of dominators merged by class; and, where
// heap_profile view answers, single objects with what they refer to and what refers to them. Part of pages with
// such a heap only.

const RETAINED_HEAP = "managed, by dominator (retained)";
const MOST_CALLEES = 100;  // shown below a class
const MOST_OPEN = 200;  // classes of which that is shown
const MOST_INDENTED = 16;  // levels
const MOST_OBJECTS = 100;  // of a class, and references of an object
const MOST_STEPS = 5000;  // of a path
const STEPS_SHOWN = 100;  // those at its ends
const MOST_PLACES = 30;  // that one can go back to

// The tree of dominators of the graph that is shown; undefined: it is of another heap.
function retainedMoment({ allMoments, moment: { dump } }) {
  return allMoments.find((one) => one.dump.heap_name === RETAINED_HEAP && isManaged(one.dump) && isManaged(dump) &&
    [0, 1].includes(one.dump.id - dump.id));  // of a graph the paths come first
}

// With each class once below a node, and its second column the number of objects.
function dominatorTree(app, { index, tree }) {
  return app.remember("objects " + index, () => {
    const maker = new TreeMaker(tree.count, { columns: 2 });
    maker.addTree(tree, app.report.functions.groups, [[0, tree.own("space")], [1, tree.own("objects")]]);
    return maker.finish();
  });
}

// The largest first.
function calleesOf({ rows, rowStarts, depths, height, parents }, node) {
  const depth = depths[node] + 1;
  if (depth >= height) return [];
  let [begin, end] = [rowStarts[depth], rowStarts[depth + 1]];
  while (begin < end) {
    const middle = (begin + end) >> 1;
    if (rows[middle] > node) end = middle;
    else begin = middle + 1;
  }
  for (end = begin; end < rowStarts[depth + 1] && parents[rows[end]] === node;) ++end;
  return rows.subarray(begin, end);
}

// What is seen of a tree, from above: node and level, or nodes that have no room.
function shownRows(tree, tops, open) {
  const rows = [];
  const waiting = [];
  const add = (nodes, level) => {
    if (nodes.length > MOST_CALLEES) waiting.push({ rest: nodes.slice(MOST_CALLEES), level });
    for (let i = Math.min(nodes.length, MOST_CALLEES) - 1; i >= 0; --i) waiting.push({ node: nodes[i], level });
  };
  add(tops, 1);
  while (waiting.length > 0) {
    const row = waiting.pop();
    rows.push(row);
    if (open.has(row.node)) add(calleesOf(tree, row.node), row.level + 1);
  }
  return rows;
}

// ---- Questions. Numbers are the page's own; texts go into them as the digits of their bytes.

const CLASS_NAME = "coalesce(c.deobfuscated_name, c.name)";
const FIELD_NAME = "substr(coalesce(r.deobfuscated_field_name, r.field_name), 1, 300) AS field";
const OBJECT = `o.id, substr(${CLASS_NAME}, 1, 1000) AS class, o.type_id, iif(o.address IS NULL, NULL, printf('0x%x', o.address)) AS address, ` +
  "o.self_size, o.native_size, o.retained_size, o.reachable, o.root_type";
const REFERRERS = "FROM heap_graph_reference r CROSS JOIN heap_graph_object o ON o.id = r.owner_id CROSS JOIN heap_graph_class c ON c.id = o.type_id";
// As in tables/heap_graph.cc, by which objects have their distance from a root.
const HOLDS = "NOT (r.field_name = 'java.lang.ref.Reference.referent' AND c.kind IN ('KIND_WEAK_REFERENCE', 'KIND_FINALIZER_REFERENCE', 'KIND_PHANTOM_REFERENCE'))";

const objectSql = (id, graph) => `SELECT ${OBJECT}, o.reference_set_id, o.root_distance, substr(o.heap_type, 11) AS heap_type, o.object_data_id IS NOT NULL AS has_data, ` +
  `EXISTS (SELECT 1 FROM heap_graph g WHERE g.id = ${graph} AND g.upid = o.upid AND g.ts = o.graph_sample_ts) AS is_shown ` +
  `FROM heap_graph_object o JOIN heap_graph_class c ON c.id = o.type_id WHERE o.id = ${id}`;

const referencesSql = (id, first) => `SELECT ${FIELD_NAME}, ${OBJECT} FROM heap_graph_reference r LEFT JOIN heap_graph_object o ON o.id = r.owned_id ` +
  `LEFT JOIN heap_graph_class c ON c.id = o.type_id WHERE r.id BETWEEN ${first} AND ${first + MOST_OBJECTS} AND r.owner_id = ${id} ORDER BY r.id`;

const referrersSql = (id) => `SELECT ${FIELD_NAME}, ${OBJECT} ${REFERRERS} WHERE r.owned_id = ${id} LIMIT ${MOST_OBJECTS + 1}`;

// From the object to the root, each with the reference to the one before.
const pathSql = (id) => `WITH RECURSIVE path(step, object, distance, reference) AS (SELECT 0, id, root_distance, NULL FROM heap_graph_object ` +
  `WHERE id = ${id} UNION ALL SELECT step + 1, f.owner_id, distance - 1, f.id FROM path CROSS JOIN heap_graph_reference f ON f.id = ` +
  `(SELECT r.id ${REFERRERS} WHERE r.owned_id = path.object AND o.root_distance = distance - 1 AND ${HOLDS} LIMIT 1) ` +
  `WHERE distance > 0 LIMIT ${MOST_STEPS}) SELECT ${FIELD_NAME}, ${OBJECT}, distance FROM path JOIN heap_graph_object o ON o.id = path.object ` +
  "JOIN heap_graph_class c ON c.id = o.type_id LEFT JOIN heap_graph_reference r ON r.id = path.reference ORDER BY step";

// Numbers that are fields of an object, and what a string or an array of numbers is.
const VALUES = ["bool", "byte", "char", "short", "int", "long", "float", "double"].map((type) => `p.${type}_value`).join();
const valuesSql = (id) => `SELECT p.field_name AS field, p.field_type AS type, coalesce(${VALUES}) AS value FROM heap_graph_object o ` +
  "CROSS JOIN heap_graph_object_data d ON d.id = o.object_data_id CROSS JOIN heap_graph_primitive p ON p.field_set_id = d.field_set_id " +
  `WHERE o.id = ${id} LIMIT ${MOST_OBJECTS}`;
const textSql = (id) => "SELECT substr(d.value_string, 1, 1000) AS text, d.array_element_type AS type, d.array_element_count AS count " +
  `FROM heap_graph_object o CROSS JOIN heap_graph_object_data d ON d.id = o.object_data_id WHERE o.id = ${id}`;

// `names`: of classes, in SQL; `graph`: row of heap_graph.
const ofClassSql = (names, graph) => "FROM heap_graph g CROSS JOIN heap_graph_object o ON +o.upid = g.upid AND +o.graph_sample_ts = g.ts " +
  `CROSS JOIN heap_graph_class c ON c.id = o.type_id WHERE g.id = ${graph} AND o.type_id IN (SELECT c.id FROM heap_graph_class c WHERE ${CLASS_NAME} IN (${names}))`;

class ObjectsPage {
  constructor(app) {
    this.app = app;
    this.selected = 0;
    this.labels = new Map();  // of places
    this.crumbs = make("nav", { class: "crumbs", "aria-label": "Places" });
    this.content = make("div", { id: "inspected" });
    // Before those of the app, which has other uses for the same keys.
    addEventListener("keydown", (event) => this.key(event), true);
    // What is searched is the tree.
    app.search.addEventListener("input", () => app.state.page === "objects" && this.places().length > 0 && this.goBack(0));
  }

  // ---- Where one is: "n12" is a class by its function, "c5" a class and "o7" an object by their rows in SQL.

  places() {
    const { state, report } = this.app;
    return report.isServed ? state.at.split(",").filter((place) => /^[nco]\d{1,9}$/.test(place)) : [];
  }

  go(place) {
    const places = this.places();
    if (places[places.length - 1] !== place) this.app.set({ at: [...places, place].slice(-MOST_PLACES).join() });
  }

  goBack(to = this.places().length - 1) {
    this.app.set({ at: this.places().slice(0, to).join() });
  }

  label(place) {
    const { functions } = this.app.report;
    return this.labels.get(place) || (place[0] === "n" ? functions.name(Number(place.slice(1)) % functions.count)
      : (place[0] === "o" ? "object " : "class ") + place.slice(1));
  }

  showCrumbs() {
    const places = this.places();
    const shown = places.slice(-6);
    this.crumbs.replaceChildren(button("All classes", {}, () => this.goBack(0)), places.length > shown.length ? " › …" : "",
      ...shown.flatMap((place, i) => [" › ", button(cut(this.label(place), 40), {}, () => this.goBack(places.length - shown.length + i + 1))]));
  }

  render(main) {
    const places = this.places();
    this.moment = retainedMoment(this.app);
    if (!this.moment) {
      const moments = this.app.heaps.flatMap((heap) => (heap.name === RETAINED_HEAP && isManaged(heap.end.dump) ? [heap.end] : []));
      const empty = emptyCard("This heap has no objects", "Memory of malloc is in stacks. Objects are those of:");
      main.append(fill(empty, ...moments.slice(0, 10).map((moment) => button(processTitle(this.app.report.processById.get(moment.heap.upid) || {}) +
        ", managed heap: " + formatBytes(this.app.totalOf(moment, "space")), {}, () => this.app.showMoment(moment)))));
      return;
    }
    this.tree = dominatorTree(this.app, this.moment);
    if (places.length === 0) return this.renderTree(main);
    this.showCrumbs();
    main.append(this.crumbs, this.content);
    this.load(places[places.length - 1]);
  }

  // ---- The tree of classes.

  // In the address with the moment, whose nodes they are.
  openNodes() {
    const [moment, ...nodes] = (this.app.state.open.match(/\d{1,9}/g) || []).map(Number);
    return new Set(moment === this.moment.index ? nodes : []);
  }

  toggle(node) {
    const open = this.openNodes();
    if (!open.delete(node)) open.add(node);
    this.selected = node;
    const top = document.getElementById("page").scrollTop;
    this.app.set({ open: [this.moment.index, ...[...open].slice(-MOST_OPEN)].join(".") });
    document.getElementById("page").scrollTop = top;
    this.select(node);
  }

  name(node) {
    const fn = this.tree.functions[node];
    return fn === LEFT_OUT_FUNCTION ? "(smaller classes)" : this.app.report.functions.name(fn);
  }

  // From the class outward.
  holders(node) {
    return this.tree.pathOf(node).reverse().map((at) => this.name(at));
  }

  renderTree(main) {
    const { tree, app } = this;
    const test = app.state.query ? nameTest(app.state.query) : null;
    const tops = test ? findFunctions(tree, app.report.functions, test).nodes : calleesOf(tree, 0);
    this.open = this.openNodes();
    this.rows = shownRows(tree, tops, this.open);
    this.nodes = this.rows.flatMap(({ node }) => (node ? [node] : []));
    if (!this.nodes.includes(this.selected)) this.selected = this.nodes[0] || 0;
    const grid = table(["Class", "Retained", "Share", "Itself", "Objects"], this.rows.map((row) => this.cells(row, Boolean(test))),
      { numbers: [1, 2, 3, 4], className: "objects", rowAt: (at) => this.rowProperties(this.rows[at]) });
    grid.setAttribute("role", "treegrid");
    grid.setAttribute("aria-label", "Classes by what they retain");
    fill(main,
      make("div", { class: "toolbar" },
        button("Copy path", { title: "Of the chosen class, with figures (c)" }, () => this.copyPath()),
        button("Show in the flame graph", { title: "The chosen class in its place" }, () => this.showFlame(this.selected)),
        make("span", { class: "quiet" }, `→ ← open and close, ↑ ↓ walk, Enter ${app.report.isServed ? "shows the objects of a class" : "goes to its flame graph"}, c copies the path.`)),
      quiet(test ? `${countedExactly(tops.length, "place", "places")} of classes that the search has found, the largest first. `
        : "What is below a class is held by its objects alone: it would be freed with them. Objects that no other holds alone are on the top. ",
        app.unfiltered()),
      this.nodes.length ? grid : test ? emptyCard("No class is found", "The search looks for names of classes.")
        : emptyCard("Nothing is held", "No root leads to an object of this dump."),
      make("div", { class: "status", id: "object-path" }));
    this.select(this.selected, false);
  }

  cells({ node, rest, level }, isFound) {
    const { tree } = this;
    const [indent, total] = [make("span", { class: "indent" }), tree.total()];
    indent.style.paddingLeft = 18 * (Math.min(level, MOST_INDENTED) - 1) + (rest ? 18 : 0) + "px";
    if (rest) {
      const sum = rest.reduce((all, one) => all + tree.totals[one], 0);
      return [fill(indent, make("span", { class: "quiet" }, `and ${grouped(rest.length)} more; a search finds them`)), figure(sum, "bytes"), formatShare(sum, total), "", ""];
    }
    const isOpen = this.open.has(node);
    const twisty = make("span", { class: "twisty", "aria-hidden": "true", onclick: () => this.toggle(node) }, this.hasCallees(node) ? (isOpen ? "▾" : "▸") : "");
    const name = tree.functions[node] === LEFT_OUT_FUNCTION ? this.name(node) : button(cut(this.name(node), 240), { class: "link", tabIndex: -1 }, () => this.follow(node));
    fill(indent, twisty, make("span", {}, name, isFound && level === 1 && tree.depths[node] > 1
      ? make("span", { class: "quiet" }, cut(this.holders(node).slice(1, 5).map((one) => " ← " + cut(one, 60)).join(""), 300)) : ""));
    return [indent, figure(tree.totals[node], "bytes"), formatShare(tree.totals[node], total), figure(tree.own[node], "bytes"), figure(tree.columns[1][node], "objects")];
  }

  hasCallees(node) {
    return this.tree.firstCallee(node) > 0;
  }

  rowProperties({ node, level }) {
    if (!node) return { "aria-level": level };
    return { id: "node-" + node, tabIndex: -1, "aria-level": level, onclick: () => this.select(node),
      ...(this.hasCallees(node) ? { "aria-expanded": String(this.open.has(node)) } : {}) };
  }

  // The one that keys are about.
  select(node, isFocused = true) {
    this.selected = node;
    for (const row of document.querySelectorAll(".objects tr[id]")) {
      const isIt = row.id === "node-" + node;
      row.tabIndex = isIt ? 0 : -1;
      row.setAttribute("aria-selected", String(isIt));
      if (isIt && isFocused) {
        row.focus({ preventScroll: true });
        row.scrollIntoView({ block: "nearest" });
      }
    }
    const path = document.getElementById("object-path");
    if (path && node) path.textContent = cut(this.holders(node).map((one) => cut(one, 120)).join(" ← "), 1000);
  }

  follow(node) {
    const fn = this.tree.functions[node];
    this.selected = node;
    if (fn > LEFT_OUT_FUNCTION && this.app.report.isServed) this.go("n" + fn);
    else if (node) this.showFlame(node);
  }

  showFlame(node) {
    const { app, moment, tree } = this;
    const { shown } = app.treesOf(moment, { ...app.state, isInverted: false });
    app.set({ page: "flame", moment: moment.index, isInverted: false, query: "", zoom: shown.nodeLike(tree, node, app.report.functions.groups) });
  }

  copyPath() {
    const { tree, selected } = this;
    this.app.copy(`${formatExactly(tree.totals[selected], "bytes")} retained (${formatShare(tree.totals[selected], tree.total())}), ` +
      `${countedExactly(tree.columns[1][selected], "object", "objects")}\n${this.holders(selected).join("\n")}\n`);
  }

  // ---- Keys.

  key(event) {
    const { app } = this;
    if (app.state.page !== "objects" || !this.moment || event.ctrlKey || event.metaKey || event.altKey || app.menu || document.querySelector("dialog") ||
        event.target.closest?.("input, select, textarea")) return;
    const action = this.places().length > 0 ? this.inspectorAction(event.key) : this.treeAction(event.key, event.target);
    if (!action) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    action();
  }

  treeAction(key, target) {
    const { nodes, selected, tree } = this;
    const at = nodes.indexOf(selected);
    if (at < 0 || (key === "Enter" && target.closest?.("button"))) return null;
    const isFocused = Boolean(target.closest?.(".objects"));
    const to = (node) => () => this.select(node);
    const level = this.rows.find((row) => row.node === selected).level;
    return {
      ArrowDown: to(nodes[isFocused ? Math.min(at + 1, nodes.length - 1) : at]),
      ArrowUp: to(nodes[isFocused ? Math.max(at - 1, 0) : at]),
      Home: to(nodes[0]),
      End: to(nodes[nodes.length - 1]),
      ArrowRight: !this.hasCallees(selected) ? to(selected) : this.open.has(selected) ? to(calleesOf(tree, selected)[0]) : () => this.toggle(selected),
      ArrowLeft: this.open.has(selected) ? () => this.toggle(selected) : to(level > 1 ? tree.parents[selected] : selected),
      Enter: () => this.follow(selected),
      Escape: this.app.state.query ? () => this.app.set({ query: "" }) : null,
      c: () => this.copyPath(),
    }[key];
  }

  inspectorAction(key) {
    if (key === "Escape") return () => this.goBack();
    if (key !== "ArrowDown" && key !== "ArrowUp") return null;
    const links = [...this.content.querySelectorAll("button")];
    const at = links.indexOf(document.activeElement) + (key === "ArrowDown" ? 1 : -1);
    return links[at] ? () => links[at].focus() : null;
  }

  // ---- Single objects.

  async ask(sql, signal) {
    const answer = await ask("sql", { limit: MOST_STEPS + 1 }, { method: "POST", body: sql, signal });
    this.app.addWarnings(answer.warnings || []);
    return rowsOf(answer);
  }

  load(place) {
    const key = place + " " + this.moment.index;
    if (key === this.loaded) return;
    this.loaded = key;
    this.asking?.abort();
    this.asking = new AbortController();
    const { signal } = this.asking;
    const [kind, id] = [place[0], Number(place.slice(1))];
    // Each is filled when its answer is there. What was asked for another place is nobody's.
    const part = async (title, produce) => {
      const element = card(title, quiet("Asking…"));
      this.content.append(element);
      try {
        const children = await produce(element);
        if (!signal.aborted) element.replaceChildren(...children.filter(Boolean));
      } catch (error) {
        if (signal.aborted) return;
        element.replaceChildren(...errorText(error));
        this.loaded = "";
      }
    };
    this.content.replaceChildren();
    if (kind === "o") this.loadObject(place, id, part, signal);
    else part("Objects", () => this.classParts(place, this.namesOf(kind, id), signal));
  }

  // What classes of a place are called, in SQL. The memory outside the heap that objects own is one of those that own it.
  namesOf(kind, id) {
    if (kind === "c") return `(SELECT ${CLASS_NAME} FROM heap_graph_class c WHERE c.id = ${id})`;
    const { nameIds, texts, count } = this.app.report.functions;
    const text = nameIds[id % count];
    const bytes = texts.bytes.subarray(texts.ends[text] - texts.lengthOf(text), texts.ends[text]);
    const literal = (from) => `CAST(x'${Array.from(bytes.subarray(from), (byte) => byte.toString(16).padStart(2, "0")).join("")}' AS TEXT)`;
    const native = "[native] ";
    return texts.get(text).startsWith(native) ? `${literal(0)}, ${literal(native.length)}` : literal(0);
  }

  graph() {
    return (this.moment.dump.id - this.app.report.counts.dumps - 1) / 2;
  }

  async classParts(place, names, signal) {
    const from = ofClassSql(names, this.graph());
    const [all] = await this.ask(`SELECT count(*) AS count, sum(o.self_size) AS own, substr(min(${CLASS_NAME}), 1, 1000) AS class ${from}`, signal);
    const rows = await this.ask(`SELECT ${OBJECT} ${from} ORDER BY o.retained_size DESC, o.id LIMIT ${MOST_OBJECTS}`, signal);
    const name = all.class || this.label(place);
    this.learn(place, name);
    const total = this.tree.total();
    const isOutside = rows.some((row) => row.native_size !== 0);
    return [make("h2", {}, cut(name, 1000)),
      make("p", { id: "of-class", "data-value": all.count }, `${countedExactly(all.count, "object", "objects")} of ${formatBytes(all.own || 0)} themselves` +
        (rows.length < all.count ? `; the ${rows.length} that retain most:` : ", those that retain most first:") + " ",
        button("Show in the flame graph", { class: "link" }, () => this.app.showNamed(name, { moment: this.moment.index }))),
      rows.length ? table(["Object", "Retained", "Share", "Itself", ...(isOutside ? ["Outside the heap"] : [])], rows.map((row) =>
        [this.objectLink(row), this.retainedCell(row), formatShare(row.retained_size, total), figure(row.self_size, "bytes"), ...(isOutside ? [figure(row.native_size, "bytes")] : [])]),
      { numbers: [1, 2, 3, 4] }) : quiet("The heap has none.")];
  }

  async loadObject(place, id, part, signal) {
    let object;
    await part("Object", async () => {
      [object] = await this.ask(objectSql(id, this.graph()), signal);
      if (!object) return [make("h2", {}, "There is no object " + id)];
      this.learn(place, object.class + " " + this.addressOf(object));
      return this.objectParts(object);
    });
    if (!object || signal.aborted) return;
    part("Nearest path to a root", async () => this.pathParts(object.reachable ? await this.ask(pathSql(id), signal) : []));
    if (object.has_data) part("Values", async () => this.valueParts((await this.ask(textSql(id), signal))[0] || {}, await this.ask(valuesSql(id), signal)));
    const references = (title, sql, count) => part(title, async () => this.referenceParts(title, await this.ask(sql, signal),
      async () => (await this.ask(`SELECT count(*) AS count FROM heap_graph_reference WHERE ${count} = ${id}`, signal))[0].count));
    references("It refers to", object.reference_set_id === null ? "SELECT 1 LIMIT 0" : referencesSql(id, object.reference_set_id), "owner_id");
    references("It is referred to by", referrersSql(id), "owned_id");
  }

  objectParts(object) {
    const facts = [
      ["Class", this.classLink(object)], ["Address", object.address], ["Itself", formatExactly(object.self_size, "bytes")],
      ["Outside the heap", object.native_size ? formatExactly(object.native_size, "bytes") : ""],
      ["Retained", object.reachable ? formatExactly(object.retained_size, "bytes") + (object.is_shown ? `, ${formatShare(object.retained_size, this.tree.total())} of all` : "")
        : "unreachable: the next collection frees it"],
      ["Root", object.root_type], ["From a root", object.root_distance > 0 ? countedExactly(object.root_distance, "reference", "references") : ""],
      ["Heap", object.heap_type || ""],
    ].filter(([, value]) => value);
    return [make("h2", {}, cut(`${object.class} ${this.addressOf(object)}`, 1000)),
      object.is_shown ? null : quiet("It is of another dump than the one that is chosen above."),
      make("dl", { class: "facts" }, ...facts.flatMap(([title, value]) => [make("dt", {}, title), make("dd", {}, value)]))];
  }

  pathParts(steps) {
    const title = make("h2", {}, "Nearest path to a root");
    if (steps.length === 0) return [title, quiet("There is none: nothing that is held refers to it.")];
    const rows = steps.map((row, i) => {
      const above = steps[i + 1];
      return [above ? this.fieldCell(above) : make("b", {}, row.root_type || "…"), this.objectLink(row), this.classLink(row), this.retainedCell(row)];
    }).reverse();
    const hidden = rows.length - STEPS_SHOWN;
    if (hidden > 0) rows.splice(STEPS_SHOWN / 2, hidden, [make("span", { class: "quiet" }, `… ${grouped(hidden)} more objects`), "", "", ""]);
    return [title, table(["Field", "Object", "Class", "Retained"], rows, { numbers: [3], className: "leaks" })];
  }

  valueParts({ text, type, count }, rows) {
    return [make("h2", {}, "Values"), type ? make("p", {}, `${type}[${grouped(count)}]`) : null,
      typeof text === "string" ? make("p", { class: "value" }, `“${text}”`) : null,
      rows.length ? table(["Field", "Type", "Value"], rows.map((row) => [this.fieldCell(row), row.type, String(row.value ?? "?")]), { className: "leaks" })
        : type || typeof text === "string" ? null : quiet("No numbers and texts.")];
  }

  async referenceParts(title, rows, count) {
    const all = rows.length > MOST_OBJECTS ? await count() : rows.length;
    return [make("h2", {}, `${title} (${grouped(all)})`), rows.length === 0 ? quiet("Nothing.")
      : table(["Field", "Object", "Class", "Itself", "Retained"], rows.slice(0, MOST_OBJECTS).map((row) => (row.id === null
        ? [this.fieldCell(row), make("span", { class: "quiet" }, "null"), "", "", ""]
        : [this.fieldCell(row), this.objectLink(row), this.classLink(row), figure(row.self_size, "bytes"), this.retainedCell(row)])),
      { numbers: [3, 4], className: "leaks" }), moreRows(all, MOST_OBJECTS, "more references")];
  }

  learn(place, label) {
    this.labels.set(place, label);
    this.showCrumbs();
  }

  addressOf({ address, id }) {
    return address || "#" + id;
  }

  objectLink(row) {
    return button(this.addressOf(row), { class: "link", "data-object": row.id }, () => this.go("o" + row.id));
  }

  classLink(row) {
    return button(cut(row.class, 240), { class: "link", title: "The objects of this class" }, () => this.go("c" + row.type_id));
  }

  // Elements of arrays have no names.
  fieldCell({ field }) {
    return field ? cut(field, 200) : make("span", { class: "quiet" }, "an element");
  }

  retainedCell(row) {
    return row.reachable ? figure(row.retained_size, "bytes") : make("td", { class: "number quiet" }, "unreachable");
  }
}

addPage({
  key: "objects", letter: "g", title: "Objects", needs: (report) => report.dumps.some((dump) => isManaged(dump) && dump.heap_name === RETAINED_HEAP),
  render: (app, main) => {
    app.objects = app.objects || new ObjectsPage(app);
    app.objects.render(main);
  },
});
