// The timeline: attempts as bars, in lanes of the machine that ran them, or of their stage. Drag to zoom in.

const LANE = { gutter: 168, high: 15, flat: 6, low: 5, gap: 2, group: 10, axis: 30, right: 16 };
const MOST_BARS = 20000;

function drawTimeline(facts, select) {
  const state = { by: "machine", from: null, to: null };
  const bars = facts.attempts.filter((each) => each.ended_at && each.started_at);
  if (!bars.length) return null;
  bars.sort((a, b) => beginOf(a) - beginOf(b));
  const draw = () => drawLanes(facts, bars, state, select, draw);
  const choice = (by, text) => element("button", {
    type: "button", class: "choice", "data-by": by,
    onclick: () => { state.by = by; draw(); },
  }, text);
  byId("timeline-tools").replaceChildren(
    choice("machine", "by machine"), choice("stage", "by stage"),
    element("button", { type: "button", id: "all-time", onclick: () => { state.from = state.to = null; draw(); } }, "all time"),
  );
  byId("timeline-legend").replaceChildren(
    element("span", {}, "colour: stage"),
    ...[["failed", "failed"], ["idle", "given up or stopped"]].map(([name, text]) =>
      element("span", {}, [element("i", { class: `swatch ${name}` }), text])),
    element("span", { class: "faint" }, "drag to zoom"),
  );
  draw();
  new ResizeObserver(draw).observe(byId("timeline"));
  return draw;
}

const beginOf = (attempt) => attempt.started_at;
// every hue but red, which means that an attempt failed
const stageColour = (stage) => `oklch(var(--bar-light) var(--bar-chroma) ${(((stage * 0.618 + 0.5) % 1) * 260 + 75).toFixed(0)})`;
const machineOf = (attempt) => (attempt.worker === "" ? "coordinator" : attempt.worker || "unknown machine");

function groupsOf(facts, bars, by) {
  const groups = new Map();
  for (const bar of bars) {
    const name = by === "machine" ? machineOf(bar) : nameOf(facts, bar);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(bar);
  }
  if (by === "stage") return [...groups];
  const rank = (name) => (name === "coordinator" ? 0 : name === "unknown machine" ? 2 : 1);
  return [...groups].sort((a, b) => rank(a[0]) - rank(b[0]) || a[0].localeCompare(b[0], "en", { numeric: true }));
}

function nameOf(facts, bar) {
  const name = bar.stage === HEAD ? "Head" : `Stage ${bar.stage}`;
  return (bar.run || 1) < facts.runs ? `${name}, before the restart` : name;
}

// The lane of each bar: the first one that is free when it begins.
function fillLanes(bars) {
  const ends = [];
  const lanes = bars.map((bar) => {
    const free = ends.findIndex((end) => end <= beginOf(bar) + 1e-6);
    const lane = free < 0 ? ends.length : free;
    ends[lane] = bar.ended_at;
    return lane;
  });
  return [lanes, ends.length];
}

function drawLanes(facts, bars, state, select, redraw) {
  const pane = byId("timeline");
  const query = facts.model.query;
  const first = Math.min(query.started_at || Infinity, ...bars.slice(0, 1).map(beginOf));
  const last = bars.reduce((end, bar) => Math.max(end, bar.ended_at), query.ended_at || 0);
  const from = state.from === null ? first : state.from, to = state.to === null ? last : state.to;
  const width = Math.max(480, pane.clientWidth - 2), room = width - LANE.gutter - LANE.right;
  const x = (at) => LANE.gutter + ((at - from) / Math.max(1e-6, to - from)) * room;
  const groups = groupsOf(facts, bars, state.by).map(([name, members]) => [name, members, ...fillLanes(members)]);
  const total = groups.reduce((sum, group) => sum + group[3], 0);
  const high = Math.max(LANE.low, Math.min(state.by === "stage" ? LANE.flat : LANE.high, Math.floor(1400 / total)));
  const axis = drawn("g"), body = drawn("g", { "clip-path": "url(#inside)" }), names = drawn("g");
  let y = LANE.axis + 4, left = MOST_BARS;
  for (const [name, members, lanes, count] of groups) {
    const tall = Math.max(LANE.high, count * (high + LANE.gap));
    const busy = members.reduce((sum, bar) => sum + bar.ended_at - beginOf(bar), 0);
    names.append(laneName(name, members, busy, y, width, tall));
    members.slice(0, left).forEach((bar, index) => {
      if (bar.ended_at >= from && beginOf(bar) <= to) body.append(drawBar(facts, bar, x, y + lanes[index] * (high + LANE.gap), high, select));
    });
    left = Math.max(0, left - members.length);
    y += tall + LANE.group;
  }
  const svg = drawn("svg", { width, height: y, role: "group", "aria-label": "timeline of attempts" });
  svg.append(drawn("defs", {}, [
    drawn("clipPath", { id: "inside" }, drawn("rect", { x: LANE.gutter, y: 0, width: room + 2, height: y })),
    drawn("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      [drawn("rect", { width: 6, height: 6, class: "hatch-back" }), drawn("rect", { width: 2.5, height: 6, class: "hatch-line" })]),
  ]));
  drawAxis(axis, from, to, first, x, y);
  drawMarks(facts, body, x, y);
  svg.append(axis, names, body);
  addBrush(svg, state, x, from, to, room, y, redraw);
  const rest = bars.length > MOST_BARS ? element("p", { class: "faint" }, `${plural(bars.length - MOST_BARS, "attempt")} more are not drawn`) : null;
  pane.replaceChildren(...[svg, rest].filter(Boolean));
  for (const button of document.querySelectorAll("#timeline-tools .choice")) {
    button.setAttribute("aria-pressed", String(button.dataset.by === state.by));
  }
  byId("all-time").disabled = state.from === null;
  markSelected(facts);
}

function laneName(name, members, busy, y, width, tall) {
  const group = drawn("g", { class: "lane", ...withTip(() => [name, `${plural(members.length, "attempt")}, ${showTime(busy)} of work`]) });
  group.append(drawn("line", { x1: 0, x2: width, y1: y - LANE.group / 2, y2: y - LANE.group / 2 }));
  const title = drawn("text", { x: 4, y: y + 11 });
  title.textContent = shorten(name, 24);
  const more = drawn("text", { x: 4, y: y + 25, class: "faint" });
  more.textContent = tall > 26 ? `${plural(members.length, "attempt")}, ${showTime(busy)}` : "";
  group.append(title, more);
  return group;
}

function drawBar(facts, bar, x, y, high, select) {
  const begin = x(beginOf(bar)), wide = Math.max(1.5, x(bar.ended_at) - begin);
  const bad = bar.outcome === "failed" || bar.outcome === "retried";
  const idle = bar.outcome === "given up" || bar.outcome === "stopped";
  const group = drawn("g", {
    class: `attempt ${bad ? "failed" : idle ? "idle" : "fine"}${bar.attempt ? " again" : ""}`, "data-stage": bar.stage,
    onclick: () => select(bar.stage), ...withTip(() => barTip(facts, bar)),
  });
  const colour = bad || idle ? null : `fill:${stageColour(bar.stage)}`;
  group.append(drawn("rect", { x: begin, y, width: wide, height: high, rx: Math.min(3, high / 3), style: colour }));
  if (wide > 34 && high >= 12) {
    const text = drawn("text", { x: begin + 5, y: y + 11 });
    const label = bar.stage === HEAD ? "head" : `${bar.stage}.${bar.task}`;
    text.textContent = bar.attempt ? `${label} #${bar.attempt + 1}` : label;
    if (wide > 8 + 6.4 * text.textContent.length) group.append(text);
  }
  return group;
}

function barTip(facts, bar) {
  const query = facts.model.query, waited = bar.started_at && bar.ordered_at ? bar.started_at - bar.ordered_at : 0;
  return [
    bar.stage === HEAD ? "Head" : `${nameOf(facts, bar)}, task ${bar.task}${bar.attempt ? `, attempt ${bar.attempt + 1}` : ""}`,
    `${bar.outcome === "retried" ? "failed, retried" : bar.outcome} on ${machineOf(bar)}`,
    `${showTime(bar.ended_at - beginOf(bar))}, from ${showTime(beginOf(bar) - (query.started_at || beginOf(bar)))} on`,
    waited > 0.001 && `waited ${showTime(waited)} for its turn`,
    bar.rows !== undefined && `${showCount(bar.rows)} rows${bar.bytes ? `, ${showBytes(bar.bytes)}` : ""}`,
    bar.earlier_attempts && `${plural(bar.earlier_attempts, "attempt")} before this one, of which Spark tells no times`,
    bar.message && shorten(bar.message, 240),
  ];
}

function drawAxis(group, from, to, zero, x, height) {
  const span = Math.max(1e-6, to - from);
  const rough = span / 8, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const digits = Math.max(0, -Math.floor(Math.log10(step)));
  for (let tick = Math.ceil((from - zero) / step); tick * step <= to - zero + 1e-9; tick++) {
    const at = tick * step, place = x(zero + at);
    group.append(drawn("line", { class: "tick", x1: place, x2: place, y1: LANE.axis - 8, y2: height }));
    const text = drawn("text", { class: "tick", x: place, y: 15, "text-anchor": "middle" });
    text.textContent = step >= 1 || span > 3 ? `${at.toFixed(Math.min(digits, 3))} s` : `${(at * 1e3).toFixed(Math.max(0, digits - 3))} ms`;
    group.append(text);
  }
}

// Planning, and what was decided, where it happened.
function drawMarks(facts, body, x, height) {
  const query = facts.model.query;
  if (query.started_at && query.planning_seconds) {
    const begin = x(query.started_at), end = x(query.started_at + query.planning_seconds);
    body.append(drawn("rect", { class: "planning", x: begin, y: LANE.axis - 6, width: Math.max(1.5, end - begin), height: height,
      ...withTip(() => ["Planning", showTime(query.planning_seconds)]) }));
  }
  for (const each of facts.model.decided || []) {
    const place = x(each.at);
    const mark = drawn("g", { class: "mark", ...withTip(() => [decisionTitle(each), shorten(each.reason, 300)]) });
    mark.append(drawn("line", { x1: place, x2: place, y1: LANE.axis - 4, y2: height }),
      drawn("path", { d: `M${place},${LANE.axis - 11}l5,5l-5,5l-5,-5z` }));
    body.append(mark);
  }
}

function addBrush(svg, state, x, from, to, room, height, redraw) {
  const at = (event) => {
    const place = event.clientX - svg.getBoundingClientRect().left;
    return from + Math.max(0, Math.min(1, (place - LANE.gutter) / room)) * (to - from);
  };
  let begun = null, shade = null;
  svg.addEventListener("pointerdown", (event) => {
    if (event.button === 0 && event.clientX - svg.getBoundingClientRect().left > LANE.gutter) begun = at(event);
  });
  svg.addEventListener("pointermove", (event) => {
    if (begun === null) return;
    const [a, b] = [begun, at(event)].sort((p, q) => p - q);
    if (!shade) svg.append(shade = drawn("rect", { class: "brush", y: 0, height }));
    shade.setAttribute("x", x(a));
    shade.setAttribute("width", Math.max(0, x(b) - x(a)));
  });
  const end = (event) => {
    if (begun === null) return;
    const [a, b] = [begun, at(event)].sort((p, q) => p - q);
    begun = null;
    if (shade) { shade.remove(); shade = null; }
    if (x(b) - x(a) > 6) { state.from = a; state.to = b; redraw(); }
  };
  svg.addEventListener("pointerup", end);
  svg.addEventListener("pointerleave", end);
  svg.addEventListener("dblclick", () => { state.from = state.to = null; redraw(); });
}
