// One function: who calls it and what it calls, with the memory that went through.

// Sums by function of memory that several nodes above each other may have in common:
// the outermost one counts.
class OnceSums {
  constructor(count) {
    this.sums = new Map();
    this.active = new Uint32Array(count);
  }

  enter(group, value) {
    if (this.active[group]++ === 0) this.sums.set(group, (this.sums.get(group) || 0) + value);
  }

  leave(group) {
    --this.active[group];
  }

  // Largest first.
  rows() {
    return [...this.sums].filter(([, value]) => value !== 0).sort((a, b) => b[1] - a[1]);
  }
}

// By caller and by callee of a group of functions: the memory of such calls. A caller
// that is ROOT_FUNCTION: nobody.
function callsOf(tree, functions, group) {
  const callers = new OnceSums(functions.count);
  const callees = new OnceSums(functions.count);
  const path = [];  // by depth: group, and caller and callee that were entered there, or -1
  let own = 0;
  for (let node = 1; node < tree.count; ++node) {
    while (path.length / 3 >= tree.depths[node]) {
      const callee = path.pop();
      const caller = path.pop();
      path.pop();
      if (callee >= 0) callees.leave(callee);
      if (caller >= 0) callers.leave(caller);
    }
    const at = functions.groups[tree.functions[node]];
    const above = path.length > 0 ? path[path.length - 3] : ROOT_FUNCTION;
    const caller = at === group ? above : -1;
    const callee = above === group ? at : -1;
    if (caller >= 0) callers.enter(caller, tree.totals[node]);
    if (callee >= 0) callees.enter(callee, tree.totals[node]);
    if (at === group) own += tree.own[node];
    path.push(at, caller, callee);
  }
  return { own, callers: callers.rows(), callees: callees.rows() };
}

// Two trees that begin with a group of functions: what it calls, and who calls it. Below
// recursive calls memory is that of the outermost one.
function treesAround(tree, functions, group) {
  const callees = new TreeMaker(1 << 10, { root: group });
  const callers = new TreeMaker(1 << 10, { root: group });
  const found = { nodes: [], values: [], made: [], count: 0 };
  const made = new Int32Array(tree.count).fill(-1);  // by node: the one below the function
  for (let node = 1; node < tree.count; ++node) {
    const above = made[tree.parents[node]];
    const at = functions.groups[tree.functions[node]];
    if (above >= 0) {
      made[node] = callees.callee(above, at);
    } else if (at === group) {
      made[node] = 0;
      found.nodes.push(node);
      found.values.push(tree.totals[node]);
      found.made.push(0);
      ++found.count;
    }
    if (made[node] >= 0) callees.add(made[node], tree.own[node]);
  }
  const total = found.values.reduce((sum, value) => sum + value, 0);
  followCallers(tree, functions, callers, found, Math.abs(total) * INVERT_SHARE);
  return { total, callees: callees.finish(), callers: callers.finish() };
}

const MOST_CALLS = 200;  // rows of a table

function callTable(app, title, rows, total) {
  const nobody = app.state.filters.some(({ kind }) => kind === "from") ? "(nobody that the filters leave)" : "(nobody: it is outermost)";
  const name = (group) => (group > ROOT_FUNCTION ? app.linkTo(group)
    : make("span", { class: "quiet" }, group === ROOT_FUNCTION ? nobody : "(itself)"));
  return card(title, rows.length === 0 ? quiet("None.") : table([], rows.slice(0, MOST_CALLS).map(([group, value]) =>
    [figure(value, app.view.unit), formatShare(value, total), name(group)]), { numbers: [0, 1] }), moreRows(rows.length, MOST_CALLS));
}

// Why there is nothing of a function.
function absenceOf({ report: { functions: { groups } }, state, wholeTree: { functions, totals } }, group) {
  const isThere = functions.some((fn, node) => groups[fn] === group && totals[node] !== 0);
  return isThere && state.filters.length ? "The filters leave nothing of it. " : "At this moment there is nothing of it in this value. ";
}

function renderCallers(app, main) {
  const { report: { functions }, view, state } = app;
  const group = app.pivot();
  const tree = app.filteredTree();
  const around = app.remember(["around", app.moment.index, state.view, group, JSON.stringify(state.filters)].join(" "), () =>
    ({ ...callsOf(tree, functions, group), trees: treesAround(tree, functions, group) }));
  const { total } = around.trees;
  const ofFunction = `${formatValue(total, view.unit)}, ${formatShare(total, tree.total())} of all; itself ${formatValue(around.own, view.unit)}`;
  main.append(
    filterBar(app),
    make("section", { class: "card" },
      make("h2", { id: "pivot" }, cut(functions.name(group), 1000)),
      quiet(cut([functions.place(group), functions.module(group)].filter(Boolean).join(" · "), 400)),
      make("p", { id: "around", title: formatExactly(total, view.unit), "data-value": String(total) }, ofFunction + " ",
        button("Show in the flame graph", { class: "link" }, () => app.showNamed(functions.name(group))))),
    ...["callers", "callees"].map((side) => {
      const graph = app.graphsAround[side];
      graph.show(around.trees[side], view.unit, app.palette, 0);
      fitTo(graph, 260);
      return card(side === "callers" ? "Who calls it: its callers above it" : "What it calls: callees below it", graph.element);
    }),
    make("div", { class: "columns even" },
      callTable(app, "Callers", around.callers, total),
      callTable(app, "Callees", (around.own === 0 ? [] : [[-1, around.own]]).concat(around.callees).sort((a, b) => b[1] - a[1]), total)),
    quiet((around.callers.length ? "" : absenceOf(app, group)) +
      (state.filters.length ? "Figures are of the stacks that filters leave: between two functions others may be merged. " : "") +
      "A click on a function makes it the one that is shown. Recursion is counted once, at the outermost call."));
}
