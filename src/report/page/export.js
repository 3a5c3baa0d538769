// What is shown, as files for other programs.

const MOST_BYTES = 1 << 28;  // of a file: browsers have their limits, too

// The text of a file, piece by piece.
class FileText {
  constructor() {
    this.pieces = [];
    this.length = 0;
  }

  add(...texts) {
    for (const text of texts) {
      this.length += text.length;
      if (this.length > MOST_BYTES) throw new Error("it would be too large; a filter or another format makes it smaller");
      this.pieces.push(text);
    }
  }
}

// Calls `take(node, path)` for all that hold memory (of which `own` is more than 0), with the functions
// from the outermost inward; `path` is the same array each time.
function eachStack(tree, own, take) {
  const path = [];
  for (let node = 1; node < tree.count; ++node) {
    path.length = tree.depths[node] - 1;
    path.push(tree.functions[node]);
    if (own[node] > 0) take(node, path);
  }
}

function foldedText({ shown, functions }) {
  const text = new FileText();
  const names = new Map();
  const nameOf = (fn) => {  // what separates frames and values may not be in a name
    if (!names.has(fn)) names.set(fn, functions.name(fn).replace(/;/g, ":").replace(/\s/g, " "));
    return names.get(fn);
  };
  eachStack(shown, shown.own, (node, path) => text.add(path.map(nameOf).join(";"), ` ${Math.round(shown.own[node])}\n`));
  return text.pieces;
}

function speedscopeText({ shown, functions, view, title }) {
  const rows = new Map();
  const frames = [];
  const rowOf = (fn) => {
    if (!rows.has(fn)) {
      rows.set(fn, frames.length);
      const file = functions.texts.get(functions.fileIds[fn]);
      frames.push({ name: functions.name(fn), ...(file && { file, line: functions.lines[fn] || undefined }) });
    }
    return rows.get(fn);
  };
  const samples = new FileText();
  const weights = [];
  let total = 0;
  eachStack(shown, shown.own, (node, path) => {
    samples.add(weights.length ? "," : "", "[" + path.map(rowOf).join() + "]");
    weights.push(Math.round(shown.own[node]));
    total += weights[weights.length - 1];
  });
  const profile = JSON.stringify({ type: "sampled", name: title, unit: view.unit === "bytes" ? "bytes" : "none", startValue: 0, endValue: total });
  return [`{"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"heap_profile","name":${JSON.stringify(title)},` +
    `"shared":{"frames":${JSON.stringify(frames)}},"profiles":[${profile.slice(0, -1)},"samples":[`, ...samples.pieces,
  `],"weights":[${weights.join()}]}]}\n`];
}

// A cell. Spreadsheets run what begins like a formula, quoted or not; names come from hostile programs.
function csvText(text) {
  return `"${text.replace(/^[=+\-@\t\r]/, "'$&").replace(/"/g, '""')}"`;
}

function functionsCsv({ shown, functions }) {
  const text = new FileText();
  text.add("function,module,place,itself,total\n");
  for (const row of sumByFunction(shown, functions).sort((a, b) => b.own - a.own || b.total - a.total))
    text.add([functions.name(row.function), functions.module(row.function), functions.place(row.function)].map(csvText).join(), `,${Math.round(row.own)},${Math.round(row.total)}\n`);
  return text.pieces;
}

// A message of Protocol Buffers.
class ProtoWriter {
  constructor() {
    this.bytes = new Uint8Array(256);
    this.length = 0;
  }

  room(count) {
    if (this.length + count <= this.bytes.length) return;
    if (this.length + count > MOST_BYTES) throw new Error("this file would be too large");
    const larger = new Uint8Array(2 * (this.length + count));
    larger.set(this.taken());
    this.bytes = larger;
  }

  taken() {
    return this.bytes.subarray(0, this.length);
  }

  varint(value) {
    this.room(10);
    for (; value >= 128; value = Math.floor(value / 128)) this.bytes[this.length++] = (value % 128) + 128;
    this.bytes[this.length++] = value;
  }

  number(field, value) {
    if (value === 0) return;
    this.varint(field * 8);
    this.varint(value);
  }

  data(field, bytes) {
    this.varint(field * 8 + 2);
    this.varint(bytes.length);
    this.room(bytes.length);
    this.bytes.set(bytes, this.length);
    this.length += bytes.length;
  }

  message(field, fill) {
    const message = new ProtoWriter();
    fill(message);
    this.data(field, message.taken());
  }

  packed(field, values) {
    this.message(field, (message) => values.forEach((value) => message.varint(value)));
  }
}

// perftools.profiles.Profile, in the order of values in which all our exports have them.
const PPROF_TYPES = [["alloc_objects", "count"], ["alloc_space", "bytes"], ["objects", "count"], ["space", "bytes"]];

class PprofWriter {
  constructor(functions) {
    this.functions = functions;
    this.out = new ProtoWriter();
    this.strings = new Map([["", 0]]);
    this.locations = new Set();
    this.modules = new Map();
  }

  string(text) {
    if (!this.strings.has(text)) this.strings.set(text, this.strings.size);
    return this.strings.get(text);
  }

  moduleOf(fn) {
    const module = this.functions.module(fn);
    if (!module) return 0;
    if (!this.modules.has(module)) {
      this.modules.set(module, this.modules.size + 1);
      this.out.message(3, (mapping) => {
        mapping.number(1, this.modules.get(module));
        mapping.number(5, this.string(module));
        mapping.number(7, 1);  // functions are known; addresses are not
      });
    }
    return this.modules.get(module);
  }

  // Location and function have the same number.
  locationOf(fn) {
    const id = fn + 1;
    if (this.locations.has(fn)) return id;
    this.locations.add(fn);
    const { functions, out } = this;
    const name = this.string(functions.name(fn));
    out.message(5, (message) => {
      message.number(1, id);
      message.number(2, name);
      message.number(3, name);
      message.number(4, this.string(functions.texts.get(functions.fileIds[fn])));
    });
    const module = this.moduleOf(fn);
    out.message(4, (location) => {
      location.number(1, id);
      location.number(2, module);
      location.message(4, (line) => {
        line.number(1, id);
        line.number(2, functions.lines[fn]);
      });
    });
    return id;
  }

  // `tree`: a StoredTree. `types`: not none.
  write(tree, types, comment) {
    const { out } = this;
    for (const [type, unit] of types)
      out.message(1, (message) => {
        message.number(1, this.string(type));
        message.number(2, this.string(unit));
      });
    const columns = types.map(([type]) => tree.own(type).map((value) => Math.max(value, 0)));
    const any = columns[0].map((_, node) => Number(columns.some((column) => column[node] > 0)));
    eachStack(tree, any, (node, path) => {
      const ids = path.map((fn) => this.locationOf(fn)).reverse();
      out.message(2, (sample) => {
        sample.packed(1, ids);
        sample.packed(2, columns.map((column) => column[node]));
      });
    });
    out.number(13, this.string(comment));
    out.number(14, this.string(["space", "alloc_space", "objects", "alloc_objects"].find((name) => types.some(([type]) => type === name))));
    for (const text of this.strings.keys()) out.data(6, new TextEncoder().encode(text));
    return out.taken();
  }
}

async function pprofFile({ moment, functions, title }) {
  const types = moment.tree.about.is_peak ? PPROF_TYPES.slice(2)
    : PPROF_TYPES.filter(([type]) => isTold(moment, VIEWS.find((view) => view.key === type)));
  const bytes = new PprofWriter(functions).write(moment.tree, types, title);
  const packed = new Blob([bytes]).stream().pipeThrough(new CompressionStream("gzip"));
  return [await new Response(packed).arrayBuffer()];
}

const PICTURE_WIDTH = 1400;  // px
const MOST_ROWS = 800;  // of a picture: browsers draw no larger canvas

function escapeXml(text) {
  return text.replace(/[\ud800-\udfff\ufffe\uffff]/gu, "\ufffd")
    .replace(/[&<>"]/g, (letter) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[letter]);
}

function svgText({ flame, view }) {
  const { tree, palette, functions } = flame;
  const rows = Math.min(tree.height, MOST_ROWS);
  flame.layout(PICTURE_WIDTH, rows * ROW_HEIGHT, 0);
  const text = new FileText();
  const box = (x, y, width, color) => `<rect x="${x.toFixed(1)}" y="${y}" width="${width.toFixed(1)}" height="${ROW_HEIGHT - 1}" fill="${color}"`;
  text.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${PICTURE_WIDTH} ${rows * ROW_HEIGHT}" font-family="system-ui,sans-serif" font-size="12">\n` +
    `<rect width="100%" height="100%" fill="${palette.back}"/>\n`);
  for (let i = 0; i < flame.small.length; i += 4) text.add(box(flame.small[i], flame.small[i + 1], flame.small[i + 2], palette.small), "/>\n");
  flame.boxes.forEach((boxes, color) => {
    for (let i = 0; i < boxes.length; i += 4) {
      const node = boxes[i + 3];
      const title = `${cut(functions.name(tree.functions[node]), 600)}: ${formatExactly(tree.totals[node], view.unit)}, ${formatShare(tree.totals[node], tree.total())}`;
      text.add(box(boxes[i], boxes[i + 1], boxes[i + 2], palette.boxes[color]), `><title>${escapeXml(title)}</title></rect>\n`);
    }
  });
  for (let i = 0; i < flame.names.length; i += 4) {
    const name = cut(flame.textOf(flame.names[i], tree), Math.floor((flame.names[i + 3] - 8) / 7));
    text.add(`<text x="${(flame.names[i + 1] + 4).toFixed(1)}" y="${flame.names[i + 2] + 14}" fill="${palette.text}" pointer-events="none">${escapeXml(name)}</text>\n`);
  }
  text.add("</svg>\n");
  flame.request();
  return text.pieces;
}

async function pngFile({ flame }) {
  const height = Math.min(flame.tree.height, MOST_ROWS) * ROW_HEIGHT;
  const canvas = make("canvas", { width: PICTURE_WIDTH, height });
  const context = canvas.getContext("2d");
  context.fillStyle = flame.palette.back;
  context.fillRect(0, 0, PICTURE_WIDTH, height);
  flame.layout(PICTURE_WIDTH, height, 0);
  flame.paint(context);
  flame.request();
  const picture = await new Promise((done) => canvas.toBlob(done));
  if (picture === null)
    throw new Error("this browser draws no picture as large; save it as SVG");
  return [picture];
}

const EXPORTS = [
  { name: "pb.gz", title: "pprof profile", note: "all of the moment, in all its values, without filters", type: "application/octet-stream", make: pprofFile },
  { name: "folded", title: "Folded stacks", note: "of the value, with the filters: flamegraph.pl, speedscope", type: "text/plain", make: foldedText },
  { name: "speedscope.json", title: "speedscope JSON", note: "of the value, with the filters", type: "application/json", make: speedscopeText },
  { name: "csv", title: "Functions as CSV", note: "of the value, with the filters", type: "text/csv", make: functionsCsv },
  { name: "svg", title: "Flame graph as SVG", note: "as it is zoomed, with the filters", type: "image/svg+xml", make: svgText },
  { name: "png", title: "Flame graph as PNG", note: "the same as pixels", type: "image/png", make: pngFile },
];

function saveFile(name, blob) {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

// What files are made of.
function exportSource(app) {
  const { moment, view, flame, report: { functions } } = app;
  const process = app.report.processById.get(app.heap.upid);
  const program = (process && process.name) || app.report.files[0] || "heap";
  return { moment, view, flame, functions, shown: app.filteredTree(), buffers: buffersOf(app), title: `${cut(program, 200)}: ${view.title.toLowerCase()}, ${moment.title}` };
}

function fileNameOf(source, kind) {
  const plain = (text) => text.slice(text.lastIndexOf("/") + 1).replace(/[^A-Za-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60);
  return [plain(source.title.split(":")[0]) || "heap", kind.name === "pb.gz" ? "" : source.view.key, plain(source.moment.title)].filter(Boolean).join(".") + "." + kind.name;
}

async function saveAs(app, kind) {
  const source = exportSource(app);
  saveFile(fileNameOf(source, kind), new Blob(await kind.make(source), { type: kind.type }));
}

function showExports(app) {
  const status = make("p", { class: "bad", role: "status" });
  const dialog = make("dialog", { class: "help", onclose: (event) => event.target.remove() }, make("h2", {}, "Save as a file"),
    quiet(`${app.view.title}, ${app.moment.title}`),
    make("dl", {}, ...EXPORTS.filter(({ needs }) => !needs || needs(app)).flatMap((kind) => [
      make("dt", {}, button(kind.title, { "data-export": kind.name }, () => saveAs(app, kind).then(() => dialog.close(), (error) => {
        status.textContent = `This cannot be saved: ${error.message}`;
      }))),
      make("dd", { class: "quiet" }, kind.note)])),
    app.report.isServed ? exportLinks(app) : null,
    status, button("Close", {}, () => dialog.close()));
  document.body.append(dialog);
  dialog.showModal();
}
