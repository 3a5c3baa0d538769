// Trees made of others: filtered ones, and bottom-up ones.

// A tree under construction: nodes are found by parent and function. Each holds figures,
// one in each of `columns`.
class TreeMaker {
  constructor(capacity, { root = ROOT_FUNCTION, columns = 1 } = {}) {
    let size = 1024;
    while (size < capacity) size *= 2;
    this.count = 1;
    this.parents = new Int32Array(size);
    this.functions = new Uint32Array(size);
    this.columns = Array.from({ length: columns }, () => new Float64Array(size));
    this.slots = new Int32Array(2 * size);  // node, or 0
    this.parents[0] = -1;
    this.functions[0] = root;
  }

  slotOf(parent, fn) {
    const { slots, parents, functions } = this;
    const mask = slots.length - 1;
    let at = (Math.imul(parent + 1, 0x9e3779b1) ^ Math.imul(fn + 7, 0x85ebca6b)) & mask;
    for (;;) {
      const node = slots[at];
      if (node === 0 || (parents[node] === parent && functions[node] === fn)) return at;
      at = (at + 1) & mask;
    }
  }

  callee(parent, fn) {
    const at = this.slotOf(parent, fn);
    if (this.slots[at] !== 0) return this.slots[at];
    if (this.count === this.parents.length) {
      this.grow();
      return this.callee(parent, fn);
    }
    const node = this.count++;
    this.slots[at] = node;
    this.parents[node] = parent;
    this.functions[node] = fn;
    return node;
  }

  add(node, value, column = 0) {
    this.columns[column][node] += value;
  }

  grow() {
    const doubled = (array) => {
      const larger = new array.constructor(2 * array.length);
      larger.set(array);
      return larger;
    };
    this.parents = doubled(this.parents);
    this.functions = doubled(this.functions);
    this.columns = this.columns.map(doubled);
    this.slots = new Int32Array(2 * this.slots.length);
    for (let node = 1; node < this.count; ++node)
      this.slots[this.slotOf(this.parents[node], this.functions[node])] = node;
  }

  // A tree of the report. `figures`: pairs of a column here and what its nodes have there.
  // `groups`: by function, which ones are the same.
  addTree(tree, groups, figures) {
    const path = [0];  // by depth: the node here
    for (let node = 1; node < tree.count; ++node) {
      const depth = tree.depths[node];
      const at = this.callee(path[depth - 1], groups[tree.functions[node]]);
      path[depth] = at;
      for (const [column, values] of figures) this.columns[column][at] += values[node];
    }
  }

  // Callees come behind their callers.
  sumCallees(columns = this.columns) {
    for (const column of columns) for (let node = this.count - 1; node > 0; --node) column[this.parents[node]] += column[node];
  }

  // Depth first, callees by size; those without memory are left out. The tree holds `own`,
  // and has all columns in its order (`columns`).
  finish(own = this.columns[0]) {
    const { count, parents } = this;
    const sizes = own.slice(0, count).map(Math.abs);
    this.sumCallees([sizes]);
    const firsts = new Int32Array(count);
    const nexts = new Int32Array(count);
    for (let node = 1; node < count; ++node) {
      if (sizes[node] === 0) continue;
      nexts[node] = firsts[parents[node]];
      firsts[parents[node]] = node;
    }
    const order = new Uint32Array(count);
    const depths = new Uint32Array(count);
    const waiting = [0, 0];
    let made = 0;
    while (waiting.length > 0) {
      const depth = waiting.pop();
      const node = waiting.pop();
      order[made] = node;
      depths[made++] = depth;
      const callees = [];
      for (let callee = firsts[node]; callee > 0; callee = nexts[callee]) callees.push(callee);
      if (callees.length > 1) callees.sort((a, b) => sizes[a] - sizes[b] || b - a);
      for (const callee of callees) waiting.push(callee, depth + 1);
    }
    const ordered = (array) => {
      const result = new array.constructor(made);
      for (let i = 0; i < made; ++i) result[i] = array[order[i]];
      return result;
    };
    return Object.assign(new Tree(depths.slice(0, made), ordered(this.functions), ordered(own)), { columns: this.columns.map(ordered) });
  }
}

// What filters do to a stack. Each has a text or /regular expression/ that names must
// match; "internals" stands for functions of allocators and containers.
const FILTERS = {
  keep: { label: "Only stacks with", menu: "Only stacks with this function" },
  hide: { label: "Without stacks with", menu: "Hide stacks with this function" },
  merge: { label: "Merged into callers:", menu: "Merge this function into its callers" },
  from: { label: "From", menu: "Show from this function on" },
};
const INTERNALS = "(internals)";

// A test of names from what a person types: text in any case, or /regular expression/.
// null: it is no regular expression.
function nameTest(pattern) {
  const regular = /^\/(.*)\/i?$/s.exec(pattern);
  try {
    const expression = regular ? new RegExp(regular[1], "i") : null;
    const text = pattern.toLowerCase();
    return expression ? (name) => expression.test(name) : (name) => name.toLowerCase().includes(text);
  } catch {
    return null;
  }
}

// By function: 1 when the filter is about it. A whole name means that name.
function matchesOf(filter, functions) {
  const matches = new Uint8Array(functions.count);
  const test = filter.exact ? (name) => name === filter.text : nameTest(filter.text) || (() => false);
  for (let row = LEFT_OUT_FUNCTION + 1; row < functions.count; ++row) {
    const group = functions.groups[row];
    if (group !== row) matches[row] = matches[group];
    else matches[row] = Number(filter.text === INTERNALS ? functions.isAllocator(row) : test(functions.name(row)));
  }
  return matches;
}

// The tree through one filter after the other.
function filtered(tree, filters, functions) {
  for (const filter of filters) tree = applyFilter(tree, filter.kind, matchesOf(filter, functions));
  return tree;
}

function applyFilter(tree, kind, matches) {
  const columns = tree.columns || [tree.own];
  const maker = new TreeMaker(tree.count, { columns: columns.length });
  const made = new Int32Array(tree.count);  // by node: its new one; -1: not shown
  const isInside = new Uint8Array(tree.count);  // of a match, or one itself
  made[0] = 0;
  for (let node = 1; node < tree.count; ++node) {
    const fn = tree.functions[node];
    const parent = tree.parents[node];
    const isMatch = matches[fn] !== 0;
    isInside[node] = isInside[parent] | Number(isMatch);
    if (kind === "merge" && isMatch && parent > 0) made[node] = made[parent];
    else if (kind === "hide" && isInside[node]) made[node] = -1;
    else if (kind === "from" && !isInside[node]) made[node] = -1;
    else made[node] = maker.callee(Math.max(made[parent], 0), fn);
    if (made[node] < 0 || (kind === "keep" && !isInside[node])) continue;
    for (let i = 0; i < columns.length; ++i) maker.add(made[node], columns[i][node], i);
  }
  return maker.finish();
}

// Memory from where it is outward: below each function its callers. `nodes` and `values`:
// which memory, and where in the tree it is; `made`: where in the new one. Only functions
// that hold at least `least` are followed to their callers, so that the work does not
// grow with the depth of all stacks.
function followCallers(tree, functions, maker, { nodes, values, made, count }, least) {
  while (count > 0) {
    const sums = new Float64Array(maker.count);  // of new nodes; those of this level count
    for (let i = 0; i < count; ++i) sums[made[i]] += Math.abs(values[i]);
    let kept = 0;
    for (let i = 0; i < count; ++i) {
      const parent = tree.parents[nodes[i]];
      if (parent <= 0 || sums[made[i]] < least) {
        maker.add(made[i], values[i]);
      } else {
        made[kept] = maker.callee(made[i], functions.groups[tree.functions[parent]]);
        nodes[kept] = parent;
        values[kept++] = values[i];
      }
    }
    count = kept;
  }
}

// The tree from the allocations outward: callers below what they call.
function inverted(tree, functions, leastShare) {
  const maker = new TreeMaker(1 << 14);
  const found = { nodes: new Uint32Array(tree.count), values: new Float64Array(tree.count), made: new Uint32Array(tree.count), count: 0 };
  for (let node = 1; node < tree.count; ++node) {
    const value = tree.own[node];
    if (value === 0) continue;
    found.nodes[found.count] = node;
    found.values[found.count] = value;
    found.made[found.count++] = maker.callee(0, functions.groups[tree.functions[node]]);
  }
  followCallers(tree, functions, maker, found, Math.abs(tree.total()) * leastShare);
  return maker.finish();
}
