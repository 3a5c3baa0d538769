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
    const { count, depths } = this;
    const path = [];
    const parents = new Int32Array(count);
    for (let node = 0; node < count; ++node) {
      const depth = depths[node];
      parents[node] = depth === 0 ? -1 : path[depth - 1];
      path[depth] = node;
    }
    this.parents = parents;
    this.height = path.length;
  }

  // A program can free more than a profile has seen it allocate: such nodes have no width.
  sum() {
    const sumsOf = (own) => {
      const { parents } = this;
      const sums = new Float64Array(own);
      for (let node = this.count - 1; node > 0; --node) sums[parents[node]] += sums[node];
      return sums;
    };
    this.totals = this.widths = sumsOf(this.own);
    if (this.own.some((value) => value < 0)) this.widths = sumsOf(this.own.map((value) => Math.max(value, 0)));
  }

  // From the left, and by row: the nodes of a depth are in the order of their places.
  place() {
    const { count, depths, parents, widths } = this;
    const lefts = new Float64Array(count);
    const next = new Float64Array(this.height + 1);  // by depth: where the next callee goes
    for (let node = 0; node < count; ++node) {
      const depth = depths[node];
      const left = next[depth];
      lefts[node] = left;
      next[depth] = left + widths[node];
      next[depth + 1] = left;
    }
    const starts = new Uint32Array(this.height + 1);
    for (let node = 0; node < count; ++node) ++starts[depths[node] + 1];
    for (let depth = 0; depth < this.height; ++depth) starts[depth + 1] += starts[depth];
    const rows = new Uint32Array(count);
    const at = starts.slice();
    for (let node = 0; node < count; ++node) rows[at[depths[node]]++] = node;
    Object.assign(this, { lefts, rows, rowStarts: starts });
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

  // The node that the path to another tree's leads to, as far as it is there. `groups`: by
  // function, which ones are the same.
  nodeLike(other, at, groups) {
    let node = 0;
    for (const wanted of other.pathOf(at)) {
      const group = groups[other.functions[wanted]];
      let callee = this.firstCallee(node);
      while (callee >= 0 && groups[this.functions[callee]] !== group) callee = this.sibling(callee, 1);
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
  const { depths, own } = tree;
  const { flags, groups } = functions;
  const holders = new Uint32Array(tree.height + 1);  // by depth, of the stack at hand
  // By group of functions.
  const sums = new Float64Array(functions.count);
  const variances = new Float64Array(functions.count);
  const most = new Float64Array(functions.count);  // of what one node holds, and which one
  const nodes = new Uint32Array(functions.count);
  for (let node = 1; node < tree.count; ++node) {
    const depth = depths[node];
    const isInside = depth > 1 && (flags[tree.functions[node]] & 1) !== 0;
    holders[depth] = isInside ? holders[depth - 1] : node;
    if (own[node] === 0) continue;
    // Nothing but allocators: the innermost one.
    const holder = isInside && functions.isAllocator(tree.functions[holders[depth]]) ? node : holders[depth];
    const group = groups[tree.functions[holder]];
    sums[group] += own[node];
    if (errors) variances[group] += errors[node] ** 2;
    if (nodes[group] === 0 || own[node] > most[group]) {
      most[group] = own[node];
      nodes[group] = holder;
    }
  }
  const least = sums.slice().sort()[Math.max(0, sums.length - count)];
  const rows = [];
  for (let group = 0; group < sums.length; ++group) {
    if (sums[group] > 0 && sums[group] >= least)
      rows.push({ function: group, value: sums[group], variance: variances[group], node: nodes[group] });
  }
  return rows.sort((a, b) => b.value - a.value).slice(0, count);
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
