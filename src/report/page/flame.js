// The flame graph: the root above, callees below their callers (or the other way around),
// as wide as the memory that goes through them. The work of a picture grows with its size, not with the tree's.

const ROW_HEIGHT = 19;
const LEAST_WIDTH = 2;  // px: narrower neighbours become one grey bar
const TEXT_WIDTH = 36;  // px: narrower boxes have no name
const HUES = 12;
const NO_NAME = HUES;
const ALLOCATOR = HUES + 1;
const WHOLE = HUES + 2;
const MATCH = HUES + 3;
const GREW = HUES + 4;
const GREW_PARTLY = HUES + 5;
const SHRANK = HUES + 6;
const SHRANK_PARTLY = HUES + 7;
const SAME = HUES + 8;
const COLORS = HUES + 9;

const PALETTES = {
  light: {
    boxes: [
      ...Array.from({ length: HUES }, (_, i) => `hsl(${i * 22} 62% ${i % 2 ? 80 : 75}%)`),
      "hsl(220 6% 80%)", "hsl(220 10% 88%)", "hsl(215 25% 84%)", "hsl(300 85% 72%)",
      "hsl(28 95% 62%)", "hsl(30 85% 82%)", "hsl(212 80% 66%)", "hsl(212 70% 86%)", "hsl(220 8% 88%)",
    ],
    text: "#16181d", back: "#ffffff", small: "hsl(220 8% 84%)", outline: "#16181d", line: "hsl(220 10% 70%)", accent: "hsl(212 85% 42%)",
    second: "hsl(25 90% 42%)", range: "hsl(212 85% 42% / 18%)", quiet: "hsl(220 8% 40%)",
  },
  dark: {
    boxes: [
      ...Array.from({ length: HUES }, (_, i) => `hsl(${i * 22} 34% ${i % 2 ? 29 : 33}%)`),
      "hsl(220 4% 30%)", "hsl(220 6% 24%)", "hsl(215 18% 28%)", "hsl(300 55% 38%)",
      "hsl(25 80% 36%)", "hsl(25 42% 25%)", "hsl(212 65% 42%)", "hsl(212 38% 27%)", "hsl(220 5% 24%)",
    ],
    text: "#f1f3f6", back: "#1e2127", small: "hsl(220 6% 26%)", outline: "#ffffff", line: "hsl(220 8% 40%)", accent: "hsl(210 90% 68%)",
    second: "hsl(30 90% 62%)", range: "hsl(210 90% 68% / 22%)", quiet: "hsl(220 10% 68%)",
  },
};

// By function: the colour of its module.
function colorsOf(functions) {
  const hueOfModule = new Map();
  return Uint8Array.from({ length: functions.count }, (_, row) => {
    if (row === ROOT_FUNCTION) return WHOLE;
    if (!functions.isNamed(row) || row === LEFT_OUT_FUNCTION) return NO_NAME;
    if (functions.isAllocator(row)) return ALLOCATOR;
    const module = functions.moduleIds[row];
    if (!hueOfModule.has(module)) {
      let hash = 7;
      for (const letter of cut(functions.moduleName(row), 200)) hash = (hash * 31 + letter.codePointAt(0)) >>> 0;
      hueOfModule.set(module, hash % HUES);
    }
    return hueOfModule.get(module);
  });
}

// As high as its tree, up to `most` px.
function fitTo(graph, most) {
  graph.element.style.height = Math.min(graph.tree.height * ROW_HEIGHT, most) + 2 + "px";
}

class FlameGraph {
  // `handlers`: onZoom(node), onSelect(node), onMenu(node, x, y). `isUpward`: the root is
  // at the bottom. `whole`: of what shares are told.
  constructor(functions, handlers, { isUpward = false, whole = "all", title = "Flame graph" } = {}) {
    Object.assign(this, { functions, handlers, isUpward, whole });
    this.colors = functions.colors = functions.colors || colorsOf(functions);
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.spacer = make("div", { class: "flame-spacer" }, this.canvas);
    this.tip = make("div", { class: "tip", hidden: true });
    this.element = make("div", { class: "flame", tabIndex: 0, role: "application", "aria-label":
      title + ". Arrow keys walk, Enter goes there, Escape goes back." }, this.spacer);
    this.context = this.canvas.getContext("2d");
    this.tree = null;
    this.zoom = 0;
    this.selected = -1;
    this.top = 0;  // px: how far it is scrolled
    this.matches = null;
    this.rectangles = 0;
    this.listen();
  }

  listen() {
    this.element.addEventListener("scroll", () => {
      this.top = this.element.scrollTop;
      this.request();
    });
    new ResizeObserver(() => this.request()).observe(this.element);
    this.canvas.addEventListener("mousemove", (event) => this.hover(event));
    this.canvas.addEventListener("mouseleave", () => (this.tip.hidden = true));
    this.canvas.addEventListener("click", (event) => {
      const node = this.nodeUnder(event);
      if (node < 0) return;
      this.select(node);
      this.handlers.onZoom(node);
    });
    this.canvas.addEventListener("contextmenu", (event) => {
      const node = this.nodeUnder(event);
      if (node <= 0) return;
      event.preventDefault();
      this.select(node);
      this.handlers.onMenu(node, event.clientX, event.clientY);
    });
  }

  // `style`: of nodes, when they are not as their functions: color, text, describe.
  show(tree, unit, palette, zoom, style = null) {
    this.style = style;
    const isNew = tree !== this.tree;
    this.tree = tree;
    this.unit = unit;
    this.palette = palette;
    if (isNew) this.selected = -1;
    const isElsewhere = zoom !== this.zoom || isNew;
    this.zoom = zoom < tree.count ? zoom : 0;
    this.spacer.style.height = tree.height * ROW_HEIGHT + "px";
    if (isElsewhere) this.top = Math.max(0, this.rowOf(tree.depths[this.zoom]) - 3) * ROW_HEIGHT;  // with some rows above
    this.request();
  }

  // Rows are counted from above. Of a row the depth is found in the same way.
  rowOf(depth) {
    return this.isUpward ? this.tree.height - 1 - depth : depth;
  }

  // To be called when the element is in a page (again): it has lost its place.
  restoreScroll() {
    this.element.scrollTop = this.top;
  }

  find(matches) {
    this.matches = matches;
    this.request();
  }

  select(node) {
    this.selected = node;
    this.handlers.onSelect(node);
    this.request();
  }

  // So that the node is seen.
  scrollTo(node) {
    const row = this.rowOf(this.tree.depths[node]) * ROW_HEIGHT;
    this.top = Math.max(Math.min(this.top, row), row + ROW_HEIGHT - this.element.clientHeight);
    this.restoreScroll();
  }

  // Whether it is drawn when it is scrolled to: in the zoomed box, or one of its callers.
  isInZoom(node) {
    const { lefts, widths } = this.tree;
    const { zoom } = this;
    return lefts[node] < lefts[zoom] + widths[zoom] && lefts[node] + widths[node] > lefts[zoom];
  }

  request() {
    if (this.isRequested) return;
    this.isRequested = true;
    requestAnimationFrame(() => {
      this.isRequested = false;
      if (this.tree && this.element.isConnected) this.draw();
    });
  }

  resize() {
    const width = this.element.clientWidth;
    const height = this.element.clientHeight;
    const scale = devicePixelRatio || 1;
    if (this.width !== width || this.height !== height || this.scale !== scale) {
      Object.assign(this, { width, height, scale });
      this.canvas.width = Math.round(width * scale);
      this.canvas.height = Math.round(height * scale);
      this.canvas.style.width = width + "px";
      this.canvas.style.height = height + "px";
    }
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
  }

  draw() {
    this.resize();
    this.context.clearRect(0, 0, this.width, this.height);
    this.layout(this.width, this.height, this.element.scrollTop);
    this.paint(this.context);
    this.drawSelection(this.element.scrollTop);
  }

  // Finds what is seen of a picture of this size that is scrolled to `top`.
  layout(width, height, top) {
    const { tree } = this;
    this.from = tree.lefts[this.zoom];
    this.to = this.from + tree.widths[this.zoom];
    this.perPixel = (this.to - this.from) / width;
    this.boxes = Array.from({ length: COLORS }, () => []);
    this.names = [];
    this.small = [];
    if (this.to <= this.from) return;
    const first = Math.floor(top / ROW_HEIGHT);
    const last = Math.min(tree.height - 1, Math.floor((top + height) / ROW_HEIGHT));
    for (let row = first; row <= last; ++row) this.collectRow(this.rowOf(row), row * ROW_HEIGHT - top, width);
  }

  paint(context) {
    const { palette } = this;
    this.rectangles = 0;
    context.fillStyle = palette.small;
    this.fill(context, this.small);
    this.boxes.forEach((boxes, color) => {
      context.fillStyle = palette.boxes[color];
      this.fill(context, boxes);
    });
    this.drawNames(context);
  }

  // Boxes are x, y, width and node.
  collectRow(depth, y, whole) {
    const { tree, colors, matches } = this;
    const end = tree.rowStarts[depth + 1];
    let at = tree.firstEndingBehind(this.from, tree.rowStarts[depth], end);
    let barFrom = -1;
    let barTo = -1;
    const endBar = () => {
      if (barFrom >= 0) this.small.push(barFrom, y, barTo - barFrom, -1);
      barFrom = barTo = -1;
    };
    while (at < end) {
      const node = tree.rows[at];
      const left = tree.lefts[node];
      if (left >= this.to) break;
      const x = (left - this.from) / this.perPixel;
      const width = tree.widths[node] / this.perPixel;
      if (width < LEAST_WIDTH) {
        if (Math.floor(x) > barTo) {
          endBar();
          barFrom = Math.floor(x);
        }
        barTo = Math.floor(x) + LEAST_WIDTH;
        at = tree.firstEndingBehind(left + LEAST_WIDTH * this.perPixel, at + 1, end);
        continue;
      }
      const x0 = Math.max(0, x);
      const x1 = Math.min(whole, x + width);
      const fn = tree.functions[node];
      this.boxes[matches && matches[fn] ? MATCH : this.style ? this.style.color(node) : colors[fn]].push(x0, y, x1 - x0 - 0.6, node);
      if (x1 - x0 > TEXT_WIDTH) this.names.push(node, x0, y, x1 - x0);
      ++at;
    }
    endBar();
  }

  fill(context, boxes) {
    if (boxes.length === 0) return;
    context.beginPath();
    for (let i = 0; i < boxes.length; i += 4) context.rect(boxes[i], boxes[i + 1], boxes[i + 2], ROW_HEIGHT - 1);
    context.fill();
    this.rectangles += boxes.length / 4;
  }

  drawNames(context) {
    const { names, tree } = this;
    context.fillStyle = this.palette.text;
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    const letter = context.measureText("abcdefghijklmnopqrstuvwxyz::").width / 28;
    for (let i = 0; i < names.length; i += 4) {
      const text = textThatFits(context, this.textOf(names[i], tree), names[i + 3] - 8, letter);
      context.fillText(text, names[i + 1] + 4, names[i + 2] + ROW_HEIGHT / 2);
    }
  }

  textOf(node, tree) {
    if (this.style) return this.style.text(node);
    const name = this.functions.name(tree.functions[node]);
    return node === 0 ? name + " – " + formatValue(tree.total(), this.unit) : name;
  }

  drawSelection(top) {
    const { tree, selected, context } = this;
    if (selected < 0 || selected >= tree.count) return;
    const x0 = Math.max(0, (tree.lefts[selected] - this.from) / this.perPixel);
    const x1 = Math.min(this.width, (tree.lefts[selected] + tree.widths[selected] - this.from) / this.perPixel);
    if (x1 < 0 || x0 > this.width) return;
    context.strokeStyle = this.palette.outline;
    context.lineWidth = 2;
    context.strokeRect(x0 + 1, this.rowOf(tree.depths[selected]) * ROW_HEIGHT - top + 1, Math.max(2, x1 - x0 - 2.6), ROW_HEIGHT - 3);
  }

  nodeUnder(event) {
    const box = this.canvas.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top + this.element.scrollTop) / ROW_HEIGHT);
    const x = this.from + (event.clientX - box.left) * this.perPixel;
    return this.tree && this.perPixel > 0 ? this.tree.nodeAt(this.rowOf(row), x) : -1;
  }

  hover(event) {
    const node = this.nodeUnder(event);
    this.canvas.classList.toggle("over", node >= 0);
    if (node < 0) {
      this.tip.hidden = true;
      return;
    }
    if (!this.tip.isConnected) document.body.append(this.tip);
    this.tip.replaceChildren(...(this.style ? this.style.describe(node) : describeNode(this.tree, node, this.functions, this.unit, this.whole)), make("div", {}, this.handlers.more?.(node)));
    this.tip.hidden = false;
    const { offsetWidth, offsetHeight } = this.tip;
    this.tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - offsetWidth - 8)) + "px";
    const below = event.clientY + 18;
    const isRoom = below + offsetHeight < innerHeight;
    this.tip.style.top = Math.max(4, isRoom ? below : event.clientY - offsetHeight - 10) + "px";
  }

  // The node that an arrow key leads to from the selected one.
  neighbour(key) {
    const { tree } = this;
    const at = this.selected >= 0 ? this.selected : this.zoom;
    if (this.selected < 0) return at;
    if (key === (this.isUpward ? "ArrowDown" : "ArrowUp")) return tree.parents[at];
    if (key === (this.isUpward ? "ArrowUp" : "ArrowDown")) return tree.firstCallee(at);
    return tree.sibling(at, key === "ArrowRight" ? 1 : -1);
  }
}

// As much of a text as is at most `width` wide; `letter` is as wide as letters are on average. Those of some
// scripts are twice as wide.
function textThatFits(context, text, width, letter) {
  let shown = cut(text, Math.floor(width / letter));
  const isSurelyNarrow = shown.length * letter * 3 < width;
  while (!isSurelyNarrow && shown.length > 1 && context.measureText(shown).width > width) shown = cut(text, shown.length - 1);
  return shown;
}

// A node in words, as elements.
function describeNode(tree, node, functions, unit, whole) {
  const fn = tree.functions[node];
  const total = tree.totals[node];
  const own = tree.own[node];
  const figure = (title, value) =>
    make("div", {}, title + " ", make("b", {}, formatValue(value, unit)),
      ` (${formatExactly(value, unit)}), ${formatShare(value, tree.total())} of ${whole}` +
        (tree.parents[node] > 0 && title === "total"
          ? `, ${formatShare(value, tree.totals[tree.parents[node]])} of the caller's` : ""));
  return [
    make("div", { class: "tip-name" }, cut(functions.name(fn), 600)),
    make("div", { class: "quiet" }, cut([functions.place(fn), functions.module(fn)].filter(Boolean).join(" · "), 300)),
    figure("total", total),
    own !== total && own !== 0 ? figure("itself", own) : null,
  ].filter(Boolean);
}
