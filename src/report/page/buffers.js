// Direct buffers of Java: memory outside the Java heap that objects in it stand for. Who
// holds them there, and which native stacks have allocated them. Part of pages with a managed heap only.

const MOST_STACKS = 5;  // of an owner

// By who holds them, the largest first: name, sum and the rows.
function ownersOf(rows) {
  const owners = new Map();
  for (const row of rows) owners.set(row.owner, [...(owners.get(row.owner) || []), row]);
  return [...owners].map(([name, stacks]) => ({ name, stacks, ...sumOfBuffers(stacks) })).sort((a, b) => b.bytes - a.bytes);
}

function bufferStack(app, { stack, buffers, bytes }) {
  const names = (stack || "").split("←");
  return make("div", {}, formatBytes(bytes) + ` in ${grouped(buffers)}: `,
    stack === null ? make("span", { class: "quiet" }, "without a stack")
      : app.linkToName(names[0]),
    make("span", { class: "quiet" }, " " + cut(names.slice(1, 6).map((name) => "← " + cut(name, 60)).join(" "), 330)));
}

function renderBuffers(app, main) {
  const rows = buffersOf(app);
  const sum = sumOfBuffers(rows);
  if (!sum) {
    main.append(emptyCard("This process has no direct buffers", "Choose another one at the top."));
    return;
  }
  const hasStacks = rows.some((row) => row.stack !== null);
  main.append(
    card("Memory outside the Java heap that its objects stand for",
      make("p", {}, `${formatCounted(sum.buffers, "direct buffer", "direct buffers")} (java.nio.DirectByteBuffer) with `, make("b", {}, formatBytes(sum.bytes)),
        ", by the nearest class that holds them alone and is not of Java's own."),
      quiet(hasStacks ? "Beside it the native stacks of those whose block of malloc is a sample. Without a stack: not sampled, allocated before or after the recording, or not by malloc."
        : "No native stacks are known: record with heap_profile --with-java, from the start of the program.")),
    table(["Held by", "Bytes", "Share", "Buffers", "Allocated by"], ownersOf(rows).map((owner) => [
      cut(owner.name, 240), figure(owner.bytes, "bytes"), formatShare(owner.bytes, sum.bytes), grouped(owner.buffers),
      make("td", {}, ...owner.stacks.slice(0, MOST_STACKS).map((row) => bufferStack(app, row)),
        moreRows(owner.stacks.length, MOST_STACKS, "more stacks") || "")]), { numbers: [1, 2, 3], className: "leaks" }));
}

function buffersCsv({ buffers }) {
  return ["held by,bytes,buffers,allocated by\n", ...buffers.map((row) =>
    `${csvText(row.owner)},${row.bytes},${row.buffers},${csvText(row.stack || "")}\n`)];
}

// Before those that ask a server.
function addPage(page) {
  PAGES.splice(PAGES.findIndex(({ key }) => key === "source"), 0, page);
}

addPage({ key: "buffers", letter: "j", title: "Direct buffers", render: renderBuffers, needs: (report) => report.buffers.length > 0 });
EXPORTS.push({ name: "buffers.csv", title: "Direct buffers as CSV", note: "of the process, by who holds and who has allocated them", type: "text/csv",
  make: buffersCsv, needs: (app) => buffersOf(app).length > 0 });
