// The data of the report, as src/report/report_data.h writes it.

class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = 0;
  }

  take(size) {
    if (size > this.bytes.length - this.at) throw new Error("the data ends too early");
    this.at += size;
    return this.bytes.subarray(this.at - size, this.at);
  }

  number() {
    this.take(4);
    return this.view.getUint32(this.at - 4, true);
  }

  block() {
    return this.take(this.number());
  }
}

// Fills `into` (a typed array of 0) with the numbers of a column; null: one is more than `most`.
function readColumn(bytes, into, most = Infinity) {
  if (bytes.length === 0) return into;
  let at = 0;
  for (let row = 0; row < into.length; ++row) {
    let byte = bytes[at++];
    let value = byte & 127;
    if (byte > 127) {
      byte = bytes[at++];
      value |= (byte & 127) << 7;
      for (let unit = 16384; byte > 127; unit *= 128) {
        byte = bytes[at++];
        value += (byte & 127) * unit;
      }
    }
    if (value > most) return null;
    into[row] = value;
  }
  return into;
}

// Of a column with numbers of either sign. Most are small, and half as large in memory.
function readSignedColumn(bytes, count) {
  const small = readColumn(bytes, new Uint32Array(count), 0xfffffffe);
  if (small) {
    const result = new Int32Array(small.buffer);
    for (let row = 0; row < count; ++row) result[row] = (small[row] >>> 1) ^ -(small[row] & 1);
    return result;
  }
  const large = readColumn(bytes, new Float64Array(count));
  return large.map((value) => (value % 2 === 0 ? value / 2 : -(value + 1) / 2));
}

// From how much less each depth is than one more than that of the node before; null: one
// has no room in `depths`.
function readDepths(bytes, depths) {
  const most = depths instanceof Uint16Array ? 0xffff : 0xffffffff;
  if (!readColumn(bytes, depths, most)) return null;
  for (let node = 1; node < depths.length; ++node) {
    const depth = depths[node - 1] + 1 - depths[node];
    if (depth > most) return null;
    depths[node] = depth;
  }
  return depths;
}

// Memory that is not needed any more is returned now, not when somebody collects garbage.
function release(buffer) {
  if (buffer.transfer) buffer.transfer(0);
}

// Characters that would steer what is around them (other directions of writing, controls)
// stand for nothing but themselves, and lines do not end.
function printable(text) {
  return text.replace(/[\t\n\r]/g, " ").replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, "\ufffd");
}

// Texts become strings when they are needed: most never are.
class Texts {
  constructor(reader) {
    const count = reader.number();
    const lengths = readColumn(reader.block(), new Uint32Array(count));
    this.bytes = reader.block();
    this.ends = lengths;
    for (let id = 1; id < count; ++id) this.ends[id] += this.ends[id - 1];
    this.strings = new Array(count);
    this.decoder = new TextDecoder();
  }

  lengthOf(id) {
    return this.ends[id] - (id === 0 ? 0 : this.ends[id - 1]);
  }

  get(id) {
    let text = this.strings[id];
    if (text === undefined) {
      text = printable(this.decoder.decode(this.bytes.subarray(id === 0 ? 0 : this.ends[id - 1], this.ends[id])));
      this.strings[id] = text;
    }
    return text;
  }
}

const ROOT_FUNCTION = 0;
const LEFT_OUT_FUNCTION = 1;

// The functions of all trees. Rows that differ in their source line only are one group,
// named by its first row.
class Functions {
  constructor(reader, texts) {
    this.texts = texts;
    this.count = reader.number();
    const column = (Numbers = Uint32Array) => readColumn(reader.block(), new Numbers(this.count));
    this.nameIds = column();
    this.moduleIds = column();
    this.fileIds = column();
    this.lines = column();
    this.flags = column(Uint8Array);
    this.unnamed = this.findUnnamed();
    this.groups = new Uint32Array(this.count);
    const first = new Map();
    for (let row = 0; row < this.count; ++row) {
      const key = row <= LEFT_OUT_FUNCTION ? -1 - row : this.nameIds[row] * 0x4000000 + this.moduleIds[row];
      if (!first.has(key)) first.set(key, row);
      this.groups[row] = first.get(key);
    }
  }

  // By row: the first one with its name in a file of the same name. Two builds of a program
  // lie in different directories.
  alike() {
    if (this.alikes) return this.alikes;
    const first = new Map();
    this.alikes = this.groups.map((group) => {
      if (group <= LEFT_OUT_FUNCTION) return group;
      const key = this.nameIds[group] + " " + this.moduleName(group);
      if (!first.has(key)) first.set(key, group);
      return first.get(key);
    });
    return this.alikes;
  }

  // By row: 1 where nobody knows the name; Perfetto's traces say "unknown".
  findUnnamed() {
    const unnamed = new Uint8Array(this.count);
    for (let row = LEFT_OUT_FUNCTION + 1; row < this.count; ++row) {
      const id = this.nameIds[row];
      unnamed[row] = Number(id === 0 || (this.texts.lengthOf(id) === 7 && this.texts.get(id) === "unknown"));
    }
    return unnamed;
  }

  module(row) {
    return this.texts.get(this.moduleIds[row]);
  }

  moduleName(row) {
    const module = this.module(row);
    return module.slice(module.lastIndexOf("/") + 1);
  }

  // For people: never empty.
  name(row) {
    if (row === ROOT_FUNCTION) return "all";
    if (row === LEFT_OUT_FUNCTION) return "(smaller callees)";
    return this.isNamed(row) ? this.texts.get(this.nameIds[row]) : "[" + (this.moduleName(row) || "unknown") + "]";
  }

  // "src/cache.cc:118", or "".
  place(row) {
    const file = this.texts.get(this.fileIds[row]);
    return file && file + (this.lines[row] ? ":" + this.lines[row] : "");
  }

  // The first one of this name; 0: there is none.
  rowOf(name) {
    this.rows = this.rows || new Map(Array.from(this.nameIds, (id, row) => [this.texts.get(id), row]).reverse());
    return this.rows.get(name) || 0;
  }

  isNamed(row) {
    return this.unnamed[row] === 0;
  }

  isAllocator(row) {
    return (this.flags[row] & 1) !== 0;
  }
}

const VIEWS = [
  { key: "space", title: "Live bytes", short: "live", unit: "bytes", column: "live_size" },
  { key: "alloc_space", title: "Allocated bytes", short: "allocated", unit: "bytes", column: "alloc_size" },
  { key: "objects", title: "Live objects", short: "live", unit: "objects", column: "live_count" },
  { key: "alloc_objects", title: "Allocated objects", short: "allocated", unit: "objects", column: "alloc_count" },
];

// False: the file does not give this figure. Trees of a peak or a thread are of recordings, which do.
const isTold = (moment, view) => moment.tree.about.is_peak || moment.tid || moment.dump[view.column] !== null;

// One moment of one heap. The columns of figures are read when they are looked at.
class StoredTree {
  constructor(reader, about) {
    this.about = about;
    this.count = reader.number();
    const allIsLive = reader.number() === 1;
    const steps = reader.block();
    this.depths = readDepths(steps, new Uint16Array(this.count)) || readDepths(steps, new Uint32Array(this.count));
    const functions = reader.block();
    this.functions = readColumn(functions, new Uint16Array(this.count), 0xffff) || readColumn(functions, new Uint32Array(this.count));
    const [liveSize, liveCount] = [reader.block(), reader.block()];
    const [allocSize, allocCount] = allIsLive ? [liveSize, liveCount] : [reader.block(), reader.block()];
    this.figures = { space: liveSize, objects: liveCount, alloc_space: allocSize, alloc_objects: allocCount };
    this.errors = reader.block();
  }

  // What each node holds itself, in a view of VIEWS.
  own(key) {
    return readSignedColumn(this.figures[key], this.count);
  }

  ownErrors() {
    return readColumn(this.errors, new Float64Array(this.count));
  }
}

// Rows of an answer to a query as objects.
function rowsOf(answer) {
  const cell = (value) => (typeof value === "string" ? printable(value) : value);
  return answer.rows.map((row) => Object.fromEntries(answer.columns.map((column, i) => [column, cell(row[i])])));
}

// The last of several at one time is the last one in the file, as in SQL.
const byTime = (a, b) => a.ts - b.ts || a.id - b.id;

class Report {
  constructor(bytes) {
    const reader = new Reader(bytes);
    if (new TextDecoder().decode(reader.take(8)) !== "hpdrep1\n") throw new Error("the data is of another version");
    const facts = JSON.parse(new TextDecoder().decode(reader.block()));
    this.version = facts.version;
    this.isServed = facts.is_served;
    this.exportFormats = facts.export_formats;  // of a served page
    this.examples = facts.examples;  // titles and queries, where SQL is answered
    this.source = facts.source;  // answers and texts, where they are in the page
    this.files = facts.files.map(printable);
    this.fileEnds = facts.file_ends;  // by file: one behind its last process
    this.warnings = facts.warnings.map(printable);
    for (const name of ["dumps", "errors", "processes", "threads", "memory", "quality", "histogram", "temporary", "size_holders", "idle_sums", "idle", "buffers", "remedies"])
      this[name] = rowsOf(facts[name]);
    this.dumps.sort(byTime);
    this.memory.sort((a, b) => a.ts - b.ts);
    this.counts = rowsOf(facts.counts)[0];
    this.texts = new Texts(reader);
    this.functions = new Functions(reader, this.texts);
    this.dumpById = new Map(this.dumps.map((dump) => [dump.id, dump]));
    this.trees = facts.trees.map((about) => new StoredTree(reader, about)).filter((tree) => this.dumpById.has(tree.about.dump));
    this.processById = new Map(this.processes.map((process) => [process.upid, process]));
    this.errorById = new Map(this.errors.map((error) => [error.dump_id, error]));
  }
}

// Of the data as they lie in the page.
async function unpack(text) {
  const packed = Uint8Array.fromBase64
    ? Uint8Array.fromBase64(text)
    : Uint8Array.from(atob(text), (digit) => digit.charCodeAt(0));
  // The last four bytes are how much it becomes.
  const bytes = new Uint8Array(new DataView(packed.buffer, packed.byteOffset).getUint32(packed.length - 4, true));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  release(packed.buffer);
  let length = 0;
  for (const reader = stream.getReader(); ;) {
    const { done, value } = await reader.read();
    if (done) break;
    bytes.set(value, length);
    length += value.length;
    release(value.buffer);
  }
  return bytes.subarray(0, length);
}

// A promise that fails with a text for people. A served page has no data in it.
async function loadReport() {
  const element = document.getElementById("data");
  const text = element.textContent;
  element.remove();
  if (typeof DecompressionStream === "undefined" || !Object.hasOwn)
    throw new Error("this browser is too old: it takes Chrome 93, Firefox 113 or Safari 16.4");
  return new Report(await (text === "" ? askForData() : unpack(text)));
}
