// A call tree as it is drawn: nodes depth first, each with its total and its place. No
// step depends on recursion: stacks are as deep as a program makes them.

class Tree {
  // `own`: what each node holds itself.
  constructor(depths, functions, own) {
    this.count = depths.length;
    this.depths = depths;
    this.functions = functions;
    this.own = own;
    this.findParents();
    this.sum();
    this.place();
  }

  findParents() {
    const path = [];
    this.parents = new Int32Array(this.count);
    for (let node = 0; node < this.count; ++node) {
      const depth = this.depths[node];
      this.parents[node] = depth === 0 ? -1 : path[depth - 1];
      path[depth] = node;
    }
    this.height = path.length;
  }

  // A program can free more than a profile has seen it allocate: such nodes have no width.
  sum() {
    const { parents } = this;
    this.totals = new Float64Array(this.own);
    let isNegative = false;
    for (let node = this.count - 1; node > 0; --node) {
      this.totals[parents[node]] += this.totals[node];
      isNegative = isNegative || this.own[node] < 0;  // ||= would keep older browsers from saying that they are too old
    }
    this.widths = this.totals;
    if (!isNegative) return;
    this.widths = new Float64Array(this.own).map((value) => Math.max(value, 0));
    for (let node = this.count - 1; node > 0; --node) this.widths[parents[node]] += this.widths[node];
  }

  // From the left, and by row: the nodes of a depth are in the order of their places.
  place() {
    const { count, depths, parents, widths } = this;
    this.lefts = new Float64Array(count);
    const next = new Float64Array(this.height + 1);  // by depth: where the next callee goes
    for (let node = 0; node < count; ++node) {
      const depth = depths[node];
      const left = next[depth];
      this.lefts[node] = left;
      next[depth] = left + widths[node];
      next[depth + 1] = left;
    }
    this.rowStarts = new Uint32Array(this.height + 1);
    for (let node = 0; node < count; ++node) ++this.rowStarts[depths[node] + 1];
    for (let depth = 0; depth < this.height; ++depth) this.rowStarts[depth + 1] += this.rowStarts[depth];
    this.rows = new Uint32Array(count);
    const at = this.rowStarts.slice();
    for (let node = 0; node < count; ++node) this.rows[at[depths[node]]++] = node;
  }

  total() {
    return this.totals[0];
  }

  // The first place in rows[begin..end) whose node ends to the right of `x`.
  firstEndingBehind(x, begin, end) {
    while (begin < end) {
      const middle = (begin + end) >> 1;
      const node = this.rows[middle];
      if (this.lefts[node] + this.widths[node] > x) end = middle;
      else begin = middle + 1;
    }
    return begin;
  }

  // The node of a row at a place; -1: there is none.
  nodeAt(depth, x) {
    if (depth < 0 || depth >= this.height) return -1;
    const at = this.firstEndingBehind(x, this.rowStarts[depth], this.rowStarts[depth + 1]);
    const node = at < this.rowStarts[depth + 1] ? this.rows[at] : -1;
    return node >= 0 && this.lefts[node] <= x ? node : -1;
  }

  // One behind the last node below this one.
  endOf(node) {
    let end = node + 1;
    while (end < this.count && this.depths[end] > this.depths[node]) ++end;
    return end;
  }

  // The next (step 1) or previous (-1) node with the same parent; -1: there is none.
  sibling(node, step) {
    if (node <= 0) return -1;
    const depth = this.depths[node];
    for (let other = step > 0 ? this.endOf(node) : node - 1; other > 0 && other < this.count; other += step) {
      if (this.depths[other] < depth) return -1;
      if (this.depths[other] === depth) return other;
    }
    return -1;
  }

  firstCallee(node) {
    return node + 1 < this.count && this.depths[node + 1] > this.depths[node] ? node + 1 : -1;
  }

  // From the outermost function to the node, without the root.
  pathOf(node) {
    const path = [];
    for (let at = node; at > 0; at = this.parents[at]) path.push(at);
    return path.reverse();
  }

  // The node that functions lead to, from the outermost inward, as far as they are there.
  nodeOf(functions) {
    let node = 0;
    for (const fn of functions) {
      let callee = this.firstCallee(node);
      while (callee >= 0 && this.functions[callee] !== fn) callee = this.sibling(callee, 1);
      if (callee < 0) break;
      node = callee;
    }
    return node;
  }
}

// Sums by group of functions: what they hold themselves, and with what they call
// (recursion counted once). Largest first.
function sumByFunction(tree, functions) {
  const own = new Float64Array(functions.count);
  const total = new Float64Array(functions.count);
  const active = new Uint32Array(functions.count);
  const isThere = new Uint8Array(functions.count);
  const path = [];
  for (let node = 1; node < tree.count; ++node) {
    while (path.length >= tree.depths[node]) --active[path.pop()];
    const group = functions.groups[tree.functions[node]];
    own[group] += tree.own[node];
    if (active[group]++ === 0) total[group] += tree.totals[node];
    path.push(group);
    isThere[group] = 1;
  }
  const rows = [];
  for (let group = 0; group < functions.count; ++group) {
    if (isThere[group] && (own[group] !== 0 || total[group] !== 0))
      rows.push({ function: group, own: own[group], total: total[group] });
  }
  return rows;
}

// Who holds memory: the first function, from the allocation outward, that is no
// allocator's or container's own; with the callers in its largest stack. Largest first.
// `errors`: standard errors of what nodes hold, or null.
function topHolders(tree, functions, count, errors) {
  const holders = [0];  // by depth, of the stack at hand
  const sums = new Map();
  for (let node = 1; node < tree.count; ++node) {
    const depth = tree.depths[node];
    holders[depth] = functions.isAllocator(tree.functions[node]) && depth > 1 ? holders[depth - 1] : node;
    if (tree.own[node] === 0) continue;
    // Nothing but allocators: the innermost one.
    const holder = functions.isAllocator(tree.functions[holders[depth]]) ? node : holders[depth];
    const group = functions.groups[tree.functions[holder]];
    const sum = sums.get(group) || { function: group, value: 0, variance: 0, largest: -Infinity, node: holder };
    sum.value += tree.own[node];
    if (errors) sum.variance += errors[node] ** 2;
    if (tree.own[node] > sum.largest) {
      sum.largest = tree.own[node];
      sum.node = holder;
    }
    sums.set(group, sum);
  }
  return [...sums.values()]
    .filter((sum) => sum.value > 0)
    .sort((a, b) => b.value - a.value)
    .slice(0, count);
}

// What a search finds: which functions, and the memory that goes through them, each byte
// once. `test(name)` tells.
function findFunctions(tree, functions, test) {
  const matches = new Uint8Array(functions.count);
  let names = 0;
  for (let row = 0; row < functions.count; ++row) {
    const group = functions.groups[row];
    if (group !== row) {
      matches[row] = matches[group];
    } else if (row > LEFT_OUT_FUNCTION && test(functions.name(row))) {
      matches[row] = 1;
      ++names;
    }
  }
  const isInside = new Uint8Array(tree.count);
  const nodes = [];
  let value = 0;
  for (let node = 1; node < tree.count; ++node) {
    if (isInside[tree.parents[node]]) {
      isInside[node] = 1;
    } else if (matches[tree.functions[node]]) {
      isInside[node] = 1;
      value += tree.totals[node];
      nodes.push(node);
    }
  }
  nodes.sort((a, b) => tree.totals[b] - tree.totals[a]);
  return { matches, names, value, nodes };
}
