// Memory over time: what is known at dumps, the peak, and what the kernel said about the
// process. Dumps are diamonds, the peak is a triangle; those with a tree can be chosen,
// and a range of them by dragging.

const LEAST_RANGE = 8;  // px: less is a click
const TIMELINE_MARGIN = { left: 76, right: 18, top: 12, bottom: 24 };

// Of the process's heaps of the other kind the one with most memory: beside a native heap
// the managed one and the other way around.
function dumpsOfOtherKind(report, upid, dumps) {
  const isOther = (dump) => dump.upid === upid && dumps.length > 0 && isManaged(dump) !== isManaged(dumps[0]);
  const others = report.dumps.filter(isOther);
  const most = others.reduce((best, dump) => (best && best.live_size >= dump.live_size ? best : dump), null);
  return others.filter((dump) => dump.heap_name === most.heap_name);
}

// What there is to draw of one heap: `points` of its own line, `others`, `resident`, in `unit`; `areas`, one upon
// the other, have a value for each point. Times are seconds since its recording began.
function timelineOf(report, upid, heapName) {
  const dumps = report.dumps.filter((dump) => dump.upid === upid && dump.heap_name === heapName);
  const others = dumpsOfOtherKind(report, upid, dumps);
  const start = -largest([...dumps, ...others].map((dump) => -(dump.start_ts ?? dump.ts)));
  const seconds = (ts) => (ts - start) / 1e9;
  const points = dumps.map((dump) => ({ time: seconds(dump.ts), value: dump.live_size, dump: dump.id, isPeak: dump.is_peak === 1 }));
  const last = dumps[dumps.length - 1];
  if (last && last.peak_ts !== null && last.peak_size > 0)
    points.push({ time: seconds(last.peak_ts), value: last.peak_size, dump: last.id, isPeak: true });
  if (last && last.from_startup) points.push({ time: 0, value: 0, dump: -1, isPeak: false });
  points.sort((a, b) => a.time - b.time);
  // Of a process that is gone the file has what was seen last, at the time when that was written.
  const end = last && last.disconnected ? seconds(last.ts) : Infinity;
  const resident = report.memory
    .filter((row) => row.upid === upid)
    .map((row) => ({ time: Math.min(seconds(row.ts), end), value: row.value }))
    .filter((point) => point.time >= 0);
  const otherPoints = others.map((dump) => ({ time: seconds(dump.ts), value: dump.live_size, dump: dump.id, isPeak: dump.is_peak === 1, isOther: true }))
    .sort((a, b) => a.time - b.time);
  const otherTitle = others.length === 0 ? "" : isManaged(others[0]) ? "managed heap" : others[0].heap_name;
  return { points, others: otherPoints, otherTitle, resident: resident.length > 1 ? resident : [], areas: [], unit: "bytes", seconds };
}

// What is written below: each text once, and none where the file does not tell times.
function timeScale(end) {
  const times = end < 1e-6 ? [] : [0, 0.25, 0.5, 0.75, 1].map((share) => end * share);
  return times.map((time) => [formatSeconds(time), time]).filter(([text], i, all) => i === 0 || text !== all[i - 1][0]);
}

class Timeline {
  // `onPick(point)`: a diamond or the triangle was clicked. `onRange(from, to)`: a range of
  // points was dragged over.
  constructor(onPick, onRange) {
    this.canvas = make("canvas", { role: "img", "aria-label": "Memory over time; [ and ] go through the dumps" });
    this.element = make("div", { class: "timeline" }, this.canvas);
    this.range = null;  // px, while it is dragged: from, to
    this.data = null;
    this.context = this.canvas.getContext("2d");
    new ResizeObserver(() => this.draw()).observe(this.element);
    this.canvas.addEventListener("pointerdown", (event) => {
      if (!event.isPrimary || event.button !== 0) return;
      this.range = [event.offsetX, event.offsetX];
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (!this.range) return;
      this.range[1] = event.offsetX;
      this.draw();
    });
    this.canvas.addEventListener("pointerup", (event) => {
      const range = this.range;
      this.range = null;
      if (!range) return;
      this.draw();
      const point = this.pointUnder(event);
      if (Math.abs(range[1] - range[0]) > LEAST_RANGE) this.endRange(...range.sort((a, b) => a - b), onRange);
      else if (point) onPick(point);
    });
    this.canvas.addEventListener("pointercancel", () => {
      this.range = null;
      this.draw();
    });
    this.canvas.addEventListener("mousemove", (event) => {
      const point = this.pointUnder(event);
      this.canvas.classList.toggle("over", point !== null);
      this.canvas.title = point
        ? (point.isPeak ? "peak" : point.isOther ? "dump of " + this.data.otherTitle : "dump") + " at " + formatSeconds(point.time) + ": " + formatExactly(point.value, this.data.unit)
        : "";
    });
  }

  // The dumps that are nearest to both ends.
  endRange(from, to, onRange) {
    const points = this.data.points.filter((point) => this.hasTree(point));
    const nearest = (x) => points.reduce((best, point) => (Math.abs(this.x(point.time) - x) < Math.abs(this.x(best.time) - x) ? point : best), points[0]);
    if (points.length > 0 && nearest(from) !== nearest(to)) onRange(nearest(from), nearest(to));
  }

  // `isChosen(point)` tells which of them is shown.
  // `hasTree(point)` which of them can be.
  show(data, palette, isChosen, hasTree) {
    Object.assign(this, { data, palette, isChosen, hasTree });
    this.draw();
  }

  draw() {
    const { data, context, canvas, element } = this;
    const width = element.clientWidth;
    const height = element.clientHeight;
    if (!data || width === 0 || height === 0) return;
    const scale = devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
    context.setTransform(scale, 0, 0, scale, 0, 0);
    const all = [...data.points, ...data.others, ...data.resident];
    const most = Math.max(1, ...all.map((point) => point.value)) * 1.08;
    const end = Math.max(1e-9, ...all.map((point) => point.time));
    const { left, right, top, bottom } = TIMELINE_MARGIN;
    this.x = (time) => left + (time / end) * (width - left - right);
    this.y = (value) => height - bottom - (value / most) * (height - top - bottom);
    this.drawAreas();
    this.drawScales(most, end, width);
    this.drawLine(data.resident, this.palette.second, [4, 3]);
    this.drawLine(data.points, this.palette.accent, []);
    this.drawLine(data.others, this.palette.quiet, [1, 3]);
    for (const point of [...data.others, ...data.points]) this.drawPoint(point);
    if (data.areas.length === 0) this.drawLegend(width);  // theirs is a table
    if (this.range) {
      context.fillStyle = this.palette.range;
      context.fillRect(Math.min(...this.range), top, Math.abs(this.range[1] - this.range[0]), height - top - bottom);
    }
  }

  drawScales(most, end, width) {
    const { context, palette } = this;
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = palette.quiet;
    context.strokeStyle = palette.line;
    context.lineWidth = 0.5;
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (const share of [0, 0.5, 1]) {
      const value = (most / 1.08) * share;
      context.beginPath();
      context.moveTo(TIMELINE_MARGIN.left, this.y(value));
      context.lineTo(width - TIMELINE_MARGIN.right, this.y(value));
      context.stroke();
      context.fillText(formatValue(value, this.data.unit), TIMELINE_MARGIN.left - 8, this.y(value));
    }
    context.textAlign = "center";
    context.textBaseline = "top";
    for (const [text, time] of timeScale(end)) context.fillText(text, Math.min(this.x(time), width - 24), this.y(0) + 8);
  }

  // Each has its number where it is highest, if there is room.
  drawAreas() {
    const { context, palette, data: { areas, points } } = this;
    const tops = points.map(() => 0);
    context.font = "bold 11px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    areas.forEach((values, i) => {
      const at = values.indexOf(largest(values));
      const low = tops.map((value) => this.y(value));
      const high = values.map((value, j) => this.y((tops[j] += value)));
      context.beginPath();
      high.forEach((y, j) => context.lineTo(this.x(points[j].time), y));
      for (let j = low.length; j-- > 0; ) context.lineTo(this.x(points[j].time), low[j]);
      context.fillStyle = seriesColor(palette, i);
      context.fill();
      context.fillStyle = palette.text;
      if (low[at] - high[at] > 12) context.fillText(seriesName(i), Math.max(this.x(points[at].time) - 10, TIMELINE_MARGIN.left + 8), (low[at] + high[at]) / 2);
    });
  }

  drawLine(points, color, dashes) {
    if (points.length < 2) return;
    const { context } = this;
    context.strokeStyle = color;
    context.lineWidth = 1.5;
    context.setLineDash(dashes);
    context.beginPath();
    points.forEach((point, i) => (i ? context.lineTo(this.x(point.time), this.y(point.value)) : context.moveTo(this.x(point.time), this.y(point.value))));
    context.stroke();
    context.setLineDash([]);
  }

  drawPoint(point) {
    if (point.dump < 0) return;
    const { context, palette } = this;
    const x = this.x(point.time);
    const y = this.y(point.value);
    const size = this.isChosen(point) ? 7 : 5;
    context.beginPath();
    if (point.isPeak) {
      context.moveTo(x, y - size);
      context.lineTo(x + size, y + size - 1);
      context.lineTo(x - size, y + size - 1);
    } else {
      context.moveTo(x, y - size);
      context.lineTo(x + size, y);
      context.lineTo(x, y + size);
      context.lineTo(x - size, y);
    }
    context.closePath();
    context.fillStyle = point.isOther ? palette.back : palette.accent;
    context.fill();
    if (point.isOther) {
      context.strokeStyle = palette.quiet;
      context.lineWidth = 1.5;
      context.stroke();
    }
    if (this.isChosen(point)) {
      context.strokeStyle = palette.outline;
      context.lineWidth = 2;
      context.stroke();
    }
  }

  drawLegend(width) {
    const { context, palette, data } = this;
    context.textAlign = "right";
    context.textBaseline = "top";
    let x = width - TIMELINE_MARGIN.right;
    const entries = [["live heap", palette.accent]];
    if (data.others.length > 0) entries.push(["◇ " + data.otherTitle, palette.quiet]);
    if (data.resident.length > 0) entries.push(["resident (RSS)", palette.second]);
    for (const [text, color] of entries) {
      context.fillStyle = color;
      context.fillText("— " + text, x, 0);
      x -= context.measureText("— " + text).width + 16;
    }
  }

  pointUnder(event) {
    if (!this.data || !this.x) return null;
    const box = this.canvas.getBoundingClientRect();
    let best = null;
    let least = 14;  // px
    for (const point of [...this.data.points, ...this.data.others]) {
      const distance = Math.hypot(this.x(point.time) - event.clientX + box.left, this.y(point.value) - event.clientY + box.top);
      if (point.dump >= 0 && distance < least) {
        least = distance;
        best = point;
      }
    }
    return best;
  }
}
