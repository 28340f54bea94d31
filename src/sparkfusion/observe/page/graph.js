// The stage graph: a box for each stage, tinted by its time; an edge for each exchange, as wide as its bytes.

const EDGE = { thinnest: 1.5, widest: 16 };
const GRAPH = { lowest: 440, tallest: 1100, smallest: 0.62, largest: 1.15 };

function drawGraph(facts, select) {
  const pane = byId("graph");
  const plan = layOutFor(facts.nodes, facts.edges, pane.clientWidth || 900, GRAPH.tallest);
  const margin = 18, width = plan.width + 2 * margin, height = plan.height + 2 * margin;
  const svg = drawn("svg", { viewBox: `${-margin} ${-margin} ${width} ${height}`, role: "group", "aria-label": "stage graph" });
  const under = drawn("g"), labels = drawn("g"), over = drawn("g");
  for (const { edge, passed } of plan.routes) under.append(drawEdge(facts, edge, passed, plan.upright));
  for (const node of facts.nodes.values()) {
    const item = plan.items.get(`n${node.id}`);
    over.append(drawNode(facts, node, item, select));
    if (node.output && item.up.length) labels.append(drawLabel(facts, node, item, plan.upright));
  }
  svg.append(under, labels, over);
  pane.replaceChildren(svg);
  addZoom(pane, svg, width, height, plan.upright, plan.items.get(`n${HEAD}`));
  byId("graph-legend").replaceChildren(...graphLegend(facts));
}

function edgeWidth(facts, node) {
  if (!node.metrics || !facts.mostBytes) return 2;
  return EDGE.thinnest + (EDGE.widest - EDGE.thinnest) * Math.sqrt(node.metrics.bytes / facts.mostBytes);
}

function drawEdge(facts, edge, passed, upright) {
  const producer = facts.nodes.get(edge.from);
  const half = (item) => (item.id === null ? 0 : upright ? NODE.height / 2 : NODE.width / 2);
  let path = "";
  passed.slice(1).forEach((to, index) => {
    const from = passed[index];
    if (upright) {
      const y1 = from.y - half(from), y2 = to.y + half(to), bend = (y1 - y2) / 2;
      path += `${index ? "" : `M${from.x},${y1}`}C${from.x},${y1 - bend} ${to.x},${y2 + bend} ${to.x},${y2}`;
    } else {
      const x1 = from.x + half(from), x2 = to.x - half(to), bend = (x2 - x1) / 2;
      path += `${index ? "" : `M${x1},${from.y}`}C${x1 + bend},${from.y} ${x2 - bend},${to.y} ${x2},${to.y}`;
    }
  });
  const kind = facts.skipped.has(edge.from) ? "skipped" : edge.exchange.kind;
  return drawn("path", {
    d: path, class: `edge ${kind}`, "stroke-width": edgeWidth(facts, producer).toFixed(1), "data-from": edge.from, "data-to": edge.to,
    ...withTip(() => [
      `${producer.name} → ${facts.nodes.get(edge.to).name}`,
      exchangeText(edge.exchange) + (edge.exchange.kind === "shuffle" ? ` into ${edge.exchange.partitions}` : ""),
      producer.metrics && `${showCount(producer.metrics.rows)} rows, ${showBytes(producer.metrics.bytes)}`,
    ]),
  });
}

function drawLabel(facts, node, item, upright) {
  const text = !node.metrics ? node.output.kind : node.metrics.bytes ? showBytes(node.metrics.bytes) : `${showCount(node.metrics.rows)} rows`;
  const off = edgeWidth(facts, node) / 2;
  const place = upright ? { x: item.x + off + 7, y: item.y - NODE.height / 2 - 9 } : { x: item.x + NODE.width / 2 + 5, y: item.y - off - 5 };
  const label = drawn("text", { class: "edge-label", ...place });
  label.textContent = text;
  return label;
}

function drawNode(facts, node, item, select) {
  const share = facts.mostSeconds && node.seconds ? node.seconds / facts.mostSeconds : 0;
  const skipped = facts.skipped.has(node.id), failures = failuresOf(node);
  const group = drawn("g", {
    class: `node${skipped ? " skipped" : ""}${node.id === HEAD ? " head" : ""}`, "data-stage": node.id, tabindex: 0, role: "button",
    transform: `translate(${item.x - NODE.width / 2},${item.y - NODE.height / 2})`,
    "aria-label": `${node.name}, ${plural(node.tasks, "task")}${node.seconds ? `, ${showTime(node.seconds)}` : ""}`,
    onclick: () => select(node.id),
    onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); select(node.id); } },
    ...withTip(() => nodeTip(facts, node)),
  });
  const heat = `color-mix(in oklab, var(--cool), var(--hot) ${(share * 100).toFixed(0)}%)`;
  group.append(drawn("rect", { class: "box", width: NODE.width, height: NODE.height, rx: 9, style: facts.ran ? `fill:${heat}` : null }));
  const inside = NODE.width - 24;
  const text = (name, x, y, content, anchor) => {
    const made = drawn("text", { class: name, x, y, "text-anchor": anchor });
    made.textContent = content;
    group.append(made);
    return made;
  };
  text("name", 12, 21, node.name);
  const ran = node.metrics ? node.metrics.tasks : node.tasks;
  text("tasks", NODE.width - 12, 21, skipped ? "skipped" : node.id === HEAD ? "coordinator" : plural(ran, "task"), "end");
  text("what", 12, 40, shorten(summaryOf(node), 30));
  if (node.metrics) {
    const bytes = node.metrics.bytes ? showBytes(node.metrics.bytes) : "";
    text("numbers", 12, 59, [`${showCount(node.metrics.rows)} rows`, bytes].filter(Boolean).join(" · "));
    text("time", NODE.width - 12, 59, showTime(node.seconds), "end");
  } else if (node.stage.scan_bytes) {
    text("numbers", 12, 59, `scans ${showBytes(node.stage.scan_bytes)}`);
  }
  if (failures) {
    group.append(drawn("circle", { class: "badge", cx: NODE.width - 2, cy: 2, r: 9 }));
    text("badge-text", NODE.width - 2, 6, failures > 9 ? "9+" : String(failures), "middle");
  }
  if ((node.stage.decisions || []).length) {
    group.append(drawn("path", { class: "decided", d: `M${inside / 2 + 6},${NODE.height - 5}l6,5l-6,5l-6,-5z` }));
  }
  return group;
}

function nodeTip(facts, node) {
  const failures = failuresOf(node), span = spanOf(node);
  return [
    `${node.name}: ${summaryOf(node)}`,
    node.output && `writes a ${exchangeText(node.output)}`,
    node.metrics && `${showCount(node.metrics.rows)} rows${node.metrics.bytes ? `, ${showBytes(node.metrics.bytes)}` : ""}`,
    node.metrics && `${showTime(node.seconds)} in ${plural(node.metrics.tasks, "task")}, skew ${node.metrics.skew.toFixed(1)}`,
    span && `${showTime(span[1] - span[0])} from its first task to its last`,
    failures && `${plural(failures, "attempt")} failed`,
    ...(node.stage.decisions || []).map((each) => `decided: ${shorten(each, 160)}`),
  ];
}

function graphLegend(facts) {
  const kinds = [...new Set(facts.edges.map((edge) => edge.exchange.kind))].sort();
  const line = (kind) => [drawn("svg", { width: 26, height: 10, "aria-hidden": true },
    drawn("path", { d: "M1,5H25", class: `edge ${kind}`, "stroke-width": 3 })), kind];
  const found = kinds.map((kind) => element("span", {}, line(kind)));
  if (facts.ran) {
    found.push(element("span", {}, ["width: bytes"]));
    found.push(element("span", {}, [element("i", { class: "heat" }), `time of all tasks, to ${showTime(facts.mostSeconds)}`]));
  }
  return found;
}

// Zoom: by buttons, and by the wheel with Ctrl; drag to move. The graph begins whole if it is readable then; otherwise
// at its head.
function addZoom(pane, svg, width, height, upright, head) {
  const whole = (high) => Math.min(GRAPH.largest, (pane.clientWidth - 4) / width, high / height);
  let scale = Math.max(GRAPH.smallest, whole(GRAPH.tallest));
  const high = Math.max(GRAPH.lowest, Math.min(GRAPH.tallest, height * scale + 4));
  pane.parentElement.style.setProperty("--graph-height", `${high}px`);
  const apply = (wanted) => {
    scale = Math.max(0.1, Math.min(2.5, wanted));
    svg.setAttribute("width", width * scale);
    svg.setAttribute("height", height * scale);
  };
  apply(scale);
  pane.scrollLeft = head.x * scale - (upright ? pane.clientWidth / 2 : 0);
  pane.scrollTop = upright ? 0 : head.y * scale - pane.clientHeight / 2;
  const button = (text, title, click) => element("button", { type: "button", title, onclick: click }, text);
  byId("graph-tools").replaceChildren(
    button("−", "smaller", () => apply(scale / 1.25)),
    button("+", "larger", () => apply(scale * 1.25)),
    button("whole graph", "show everything", () => apply(whole(pane.clientHeight - 4))),
    button("100%", "text at its own size", () => apply(1)),
  );
  pane.onpointermove = (event) => {
    if (!(event.buttons & 1)) return;
    pane.scrollLeft -= event.movementX;
    pane.scrollTop -= event.movementY;
  };
  pane.onwheel = (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    apply(scale * (event.deltaY < 0 ? 1.1 : 1 / 1.1));
  };
}
