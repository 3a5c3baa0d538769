// Trees made of others: filtered ones, and bottom-up ones.

// A tree under construction: nodes are found by parent and function.
class TreeMaker {
  constructor(capacity) {
    this.parents = [-1];
    this.functions = [ROOT_FUNCTION];
    this.own = [0];
    let size = 1024;
    while (size < capacity * 2) size *= 2;
    this.slots = new Int32Array(size);  // node, or 0
  }

  slotOf(parent, fn) {
    const mask = this.slots.length - 1;
    let at = (Math.imul(parent + 1, 0x9e3779b1) ^ Math.imul(fn + 7, 0x85ebca6b)) & mask;
    for (;;) {
      const node = this.slots[at];
      if (node === 0 || (this.parents[node] === parent && this.functions[node] === fn)) return at;
      at = (at + 1) & mask;
    }
  }

  callee(parent, fn) {
    const at = this.slotOf(parent, fn);
    if (this.slots[at] !== 0) return this.slots[at];
    const node = this.parents.length;
    this.slots[at] = node;
    this.parents.push(parent);
    this.functions.push(fn);
    this.own.push(0);
    if (node * 2 > this.slots.length) this.grow();
    return node;
  }

  grow() {
    this.slots = new Int32Array(this.slots.length * 2);
    for (let node = 1; node < this.parents.length; ++node)
      this.slots[this.slotOf(this.parents[node], this.functions[node])] = node;
  }

  // Callees by size; those without memory are left out.
  finish() {
    const { parents } = this;
    const sizes = Float64Array.from(this.own, Math.abs);
    for (let node = parents.length - 1; node > 0; --node) sizes[parents[node]] += sizes[node];
    const callees = new Map();
    for (let node = 1; node < parents.length; ++node) {
      if (sizes[node] === 0) continue;
      const list = callees.get(parents[node]);
      if (list) list.push(node);
      else callees.set(parents[node], [node]);
    }
    const order = [];
    const depths = [];
    const waiting = [[0, 0]];
    while (waiting.length > 0) {
      const [node, depth] = waiting.pop();
      order.push(node);
      depths.push(depth);
      const list = callees.get(node) || [];
      list.sort((a, b) => sizes[a] - sizes[b]);
      for (const callee of list) waiting.push([callee, depth + 1]);
    }
    return new Tree(
      Uint32Array.from(depths),
      Uint32Array.from(order, (node) => this.functions[node]),
      Float64Array.from(order, (node) => this.own[node]),
    );
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
  const maker = new TreeMaker(tree.count);
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
    if (made[node] >= 0 && (kind !== "keep" || isInside[node])) maker.own[made[node]] += tree.own[node];
  }
  return maker.finish();
}

// The tree from the allocations outward: callers below what they call. Only functions
// that hold `leastShare` of the memory are followed to their callers, so that the work
// does not grow with the depth of all stacks.
function inverted(tree, functions, leastShare) {
  const maker = new TreeMaker(1 << 16);
  const least = Math.abs(tree.total()) * leastShare;
  // Of each new node that is to be followed: the nodes of `tree` whose memory came there.
  let level = new Map();
  const add = (next, made, node, value) => {
    const entry = next.get(made) || { nodes: [], values: [], sum: 0 };
    entry.nodes.push(node);
    entry.values.push(value);
    entry.sum += Math.abs(value);
    next.set(made, entry);
  };
  const groupOf = (node) => functions.groups[tree.functions[node]];
  for (let node = 1; node < tree.count; ++node) {
    if (tree.own[node] !== 0) add(level, maker.callee(0, groupOf(node)), node, tree.own[node]);
  }
  while (level.size > 0) {
    const next = new Map();
    for (const [made, entry] of level) {
      entry.nodes.forEach((node, i) => {
        const parent = tree.parents[node];
        if (parent <= 0 || entry.sum < least) maker.own[made] += entry.values[i];
        else add(next, maker.callee(made, groupOf(parent)), parent, entry.values[i]);
      });
    }
    level = next;
  }
  return maker.finish();
}
