// Numbers and elements for people.

// Three significant digits: "16.0", "128", "1.44".
function threeDigits(value) {
  const size = Math.abs(value);
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

// Of what a file does not tell, null, each of these says so.
function formatBytes(bytes) {
  if (bytes === null) return "unknown";
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let unit = 0;
  while (Math.abs(bytes) >= 1023.5 && unit + 1 < units.length) {
    bytes /= 1024;
    ++unit;
  }
  return (unit === 0 ? String(Math.round(bytes)) : threeDigits(bytes)) + " " + units[unit];
}

// What is at least `low` and less than `end`, each given by `format`.
function formatRange(low, end, format) {
  return (low > 0 ? format(low) + " to " : "") + "under " + format(end);
}

function formatCount(count) {
  if (count === null) return "unknown";
  const units = ["", " k", " M", " G", " T"];
  let unit = 0;
  while (Math.abs(count) >= 999.5 && unit + 1 < units.length) {
    count /= 1000;
    ++unit;
  }
  return (unit === 0 ? String(Math.round(count)) : threeDigits(count)) + units[unit];
}

function formatCounted(count, one, many) {
  const number = formatCount(count);
  return number + " " + (number === "1" ? one : many);
}

function formatValue(value, unit) {
  return unit === "bytes" ? formatBytes(value) : formatCount(value);
}

// Of a whole number: "16,777,216"; toLocaleString would first load what the browser knows of languages.
function grouped(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ",");
}

// To the last digit: "16,777,216 bytes".
function formatExactly(value, unit) {
  if (value === null) return "the file does not tell";
  return grouped(Math.round(value)) + " " + (unit === "bytes" ? "bytes" : "objects");
}

function formatShare(part, whole) {
  if (!whole) return "–";
  const percent = (100 * part) / whole;
  return percent.toFixed(percent !== 0 && Math.abs(percent) < 9.95 ? 1 : 0) + "%";
}

function formatSeconds(seconds) {
  if (seconds < 0.9995) return Math.round(seconds * 1000) + " ms";
  if (seconds < 59.95) return threeDigits(seconds) + " s";
  const whole = Math.round(seconds);
  const minutes = Math.floor(whole / 60);
  return minutes < 60
    ? minutes + " min " + (whole % 60) + " s"
    : Math.floor(minutes / 60) + " h " + (minutes % 60) + " min";
}

// A figure's 95 % interval as the summary at the terminal has it: "±1.8%", its longer side; "≤15.0 KiB", its
// upper end, where that side is longer than the figure; "" when nothing is left to chance.
function formatLimits(value, low, high, unit = "bytes") {
  const side = Math.max(high - value, value - low);
  if (side < 0.5) return "";
  return side >= value ? "≤" + formatValue(high, unit) : "±" + formatShare(side, value);
}

// The same of a sum with a standard error; "" when it is not known.
function formatError(error, value, unit = "bytes") {
  return error > 0 && value > 0 ? formatLimits(value, value - 1.96 * error, value + 1.96 * error, unit) : "";
}

// Of any number of values; as arguments of Math.max they would have to fit the stack.
function largest(values, least = -Infinity) {
  return values.reduce((most, value) => Math.max(most, value), least);
}

// "server (pid 7)"; files need not tell a pid.
function processTitle(process) {
  return cut(process.name || process.cmdline || "process", 50) + (process.pid > 0 ? ` (pid ${process.pid})` : "");
}

// Texts of a profile are cut to what can be shown.
function cut(text, length) {
  return text.length <= length ? text : text.slice(0, length - 1) + "…";
}

// An element with properties ("class", "on...", "data-...", or of the element) and
// children. Texts become text, whatever is in them.
function make(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name.includes("-") || name === "role") element.setAttribute(name, value);
    else element[name] = value;
  }
  return fill(element, ...children);
}

// What is null or "" among the children is none.
function fill(element, ...children) {
  element.append(...children.filter(Boolean));
  return element;
}

function quiet(...texts) {
  return make("p", { class: "quiet" }, ...texts);
}

function card(title, ...children) {
  return make("section", { class: "card" }, make("h2", {}, title), ...children);
}

// Instead of a page.
function emptyCard(title, ...texts) {
  return make("section", { class: "card empty", id: "empty" }, make("h2", {}, title), ...texts.map((text) => make("p", {}, text)));
}

// A cell of a table, with its exact value for the pointer.
function figure(value, unit, ...more) {
  return make("td", { class: "number", title: formatExactly(value, unit) }, formatValue(value, unit), ...more);
}

// Columns' titles and rows of cells: texts, elements, or whole cells. `numbers`: which columns are figures.
// `rowAt`: properties of rows.
function table(titles, rows, { numbers = [], className = "", rowAt = () => ({}) } = {}) {
  const cellOf = (tag, properties) => (content, i) => (content?.tagName === tag ? content
    : make(tag, { class: content?.className === "share" ? "size-bar" : numbers.includes(i) ? "number" : "", ...properties }, content));
  return make("table", { class: className },
    titles.length ? make("thead", {}, make("tr", {}, ...titles.map(cellOf("TH", { scope: "col" })))) : null,
    make("tbody", {}, ...rows.map((cells, at) => make("tr", rowAt(at), ...cells.map(cellOf("TD"))))));
}

function shareBar(part) {
  const bar = make("span", { class: "share" });
  bar.style.width = 100 * part + "%";
  return bar;
}

// "1 row", "1,234 rows".
function countedExactly(count, one, many) {
  return grouped(count) + " " + (count === 1 ? one : many);
}

// What is left out of a table that shows at most `most` of its rows; null: nothing.
function moreRows(count, most, what = "more") {
  return count > most ? quiet(`and ${grouped(count - most)} ${what}`) : null;
}

// By which a person knows a control again.
function nameOf(element) {
  return element.id || element.getAttribute("aria-label") || element.textContent;
}

// A list that one of `items` is chosen from: `pick(item)`.
function chooser(label, items, chosen, textOf, pick) {
  return make("select", { "aria-label": label, onchange: (event) => pick(items[event.target.value]) },
    ...items.map((item, i) => make("option", { value: String(i), selected: item === chosen }, textOf(item))));
}

function button(text, properties, action) {
  return make("button", { type: "button", onclick: action, ...properties }, text);
}
