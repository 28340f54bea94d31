// Everything that is text: the title, one stage with its operators, tables of stages, decisions and feeds.

function drawTop(facts) {
  const { model } = facts, query = model.query;
  const stages = (model.stages || []).length;
  const failed = facts.attempts.filter((each) => each.outcome === "failed" || each.outcome === "retried").length
    + facts.attempts.reduce((sum, each) => sum + (each.earlier_attempts || 0), 0);
  const tasks = facts.ran ? new Set(facts.attempts.filter((each) => each.stage && (each.run || 1) === facts.runs).map((each) => `${each.stage}.${each.task}`)).size
    : (model.stages || []).reduce((sum, stage) => sum + stage.tasks, 0);
  const figure = (value, name, bad) => (value ? element("div", { class: bad ? "figure bad" : "figure" }, [element("b", {}, value), element("span", {}, name)]) : null);
  const title = element("div", { class: "title" }, [
    element("h1", {}, query.id ? `Query ${query.id}` : "Query"),
    element("span", { class: `status ${query.status}` }, query.status === "planned" ? "not run" : query.status),
    query.started_at ? element("time", { class: "faint" }, new Date(query.started_at * 1e3).toISOString().replace("T", " ").slice(0, 19) + " UTC") : null,
  ]);
  const figures = element("div", { class: "figures" }, [
    figure(showTime(query.seconds), "from start to end"),
    figure(showTime(query.planning_seconds), "of it planning"),
    figure(query.rows === undefined ? "" : showCount(query.rows), "rows returned"),
    figure(stages ? String(stages) : "", stages === 1 ? "stage" : "stages"),
    figure(tasks ? tasks.toLocaleString("en-US") : "", tasks === 1 ? "task" : "tasks"),
    figure(failed ? String(failed) : "", failed === 1 ? "failed attempt" : "failed attempts", true),
  ]);
  const notes = [
    model.distributed === false ? `Not distributed: ${model.reason}` : null,
    model.place ? `Tasks run ${model.place}.` : null, ...(model.notes || []), ...(model.tables || []),
  ].filter(Boolean);
  byId("top").replaceChildren(...[
    title, figures,
    query.error ? element("p", { class: "error" }, query.error) : null,
    query.text ? sqlText(query.text) : null,
    notes.length ? element("ul", { class: "notes" }, notes.map((note) => element("li", {}, note))) : null,
  ].filter(Boolean));
}

function sqlText(text) {
  const long = text.trim().split("\n").length > 6 || text.length > 600;
  const shown = element("pre", { class: "sql" }, text.trim());
  return long ? element("details", {}, [element("summary", {}, `SQL: ${shorten(text.trim().replace(/\s+/g, " "), 110)}`), shown]) : shown;
}

// ---- one stage

function drawDetails(facts, id) {
  const node = facts.nodes.get(id);
  const pane = byId("details");
  if (!node) { pane.replaceChildren(); return; }
  const metrics = node.metrics, span = spanOf(node), failures = failuresOf(node);
  const pairs = [
    ["output", node.output ? exchangeText(node.output) + (node.output.kind === "shuffle" ? ` into ${node.output.partitions}` : "") : "rows for the consumer"],
    ["tasks", metrics ? `${metrics.tasks}${metrics.tasks !== node.tasks && node.id !== HEAD ? ` (${node.tasks} planned)` : ""}` : String(node.tasks)],
    ["rows", metrics ? metrics.rows.toLocaleString("en-US") : ""],
    ["bytes", metrics && metrics.bytes ? showBytes(metrics.bytes) : ""],
    ["time of tasks", metrics ? `${showTime(metrics.seconds)}${metrics.tasks > 1 ? `, skew ${metrics.skew.toFixed(1)}` : ""}` : ""],
    ["from first to last", span ? showTime(span[1] - span[0]) : ""],
    ["scans", node.stage.scan_bytes ? showBytes(node.stage.scan_bytes) : ""],
    ["failed attempts", failures ? String(failures) : ""],
    ["recomputed inputs", metrics && metrics.recomputed_inputs ? String(metrics.recomputed_inputs) : ""],
    ["fetched", metrics ? metrics.fetched.map((each) => `${showBytes(each.bytes)} in ${showTime(each.seconds)}`).join(", ") : ""],
  ].filter((pair) => pair[1]);
  pane.replaceChildren(...[
    element("h3", {}, [element("i", { class: "swatch", style: `background:${stageColour(id)}` }), node.name, element("span", { class: "faint" }, shorten(summaryOf(node), 150))]),
    element("dl", {}, pairs.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)])),
    ...(node.stage.decisions || []).map((each) => element("p", { class: "decision" }, `decided: ${each}`)),
    ...(node.stage.from_spark || []).map((each) => element("p", { class: "decision" }, `from Spark: ${each}`)),
    operatorTable(node),
    leafList(node.stage.leaves || []),
  ].filter(Boolean));
  pane.scrollTop = 0;
}

function operatorTable(node) {
  if (!node.operators.length) return element("p", { class: "faint" }, "It passes the rows of its input on.");
  const measured = node.operators.some((each) => each.metrics);
  const longest = Math.max(0, ...node.operators.map((each) => (each.metrics && each.metrics.compute_seconds) || 0));
  const rows = node.operators.map(({ depth, name, rest, metrics }) => {
    const seconds = metrics ? metrics.compute_seconds : null;
    const share = longest && seconds ? (100 * seconds) / longest : 0;
    return element("tr", {}, [
      element("td", { class: "operator", style: `padding-left:${6 + depth * 12}px`, title: rest }, [element("b", {}, name.replace(/Exec$/, "")), rest ? element("span", {}, rest) : null]),
      measured ? element("td", { class: "number" }, metrics && metrics.rows !== null ? showCount(metrics.rows) : "") : null,
      measured ? element("td", { class: "number meter", style: `--share:${share.toFixed(0)}%` },
        [showTime(seconds), metrics && metrics.spilled_bytes ? element("em", {}, ` spilled ${showBytes(metrics.spilled_bytes)}`) : null]) : null,
    ]);
  });
  const headings = ["operator", ...(measured ? ["rows", "time"] : [])];
  return element("table", { class: "operators" }, [
    element("thead", {}, element("tr", {}, headings.map((name, index) => element("th", { class: index ? "number" : "" }, name)))),
    element("tbody", {}, rows),
  ]);
}

function leafList(leaves) {
  const found = leaves.map((files, task) => [task, files]).filter((pair) => pair[1]);
  if (!found.length) return null;
  return element("details", { class: "leaves" }, [
    element("summary", {}, `what ${plural(found.length, "task")} ${found.length === 1 ? "reads" : "read"}`),
    element("ol", {}, found.slice(0, 200).map(([task, files]) => element("li", { value: task }, shorten(files, 400)))),
    found.length > 200 ? element("p", { class: "faint" }, `and ${found.length - 200} more`) : null,
  ]);
}

// ---- tables

function drawStages(facts, select) {
  const zero = facts.model.query.started_at || 0;
  const columns = [
    ["stage", (node) => node.id, (node) => node.name],
    ["what", (node) => summaryOf(node), (node) => shorten(summaryOf(node), 70)],
    ["output", (node) => (node.output ? exchangeText(node.output) : ""), (node) => (node.output ? shorten(exchangeText(node.output), 40) : "")],
    ["tasks", (node) => (node.metrics ? node.metrics.tasks : node.tasks)],
    ["rows", (node) => (node.metrics ? node.metrics.rows : null), (node) => showCount(node.metrics && node.metrics.rows)],
    ["bytes", (node) => (node.metrics ? node.metrics.bytes : null), (node) => showBytes((node.metrics && node.metrics.bytes) || null)],
    ["time", (node) => node.seconds, (node) => showTime(node.seconds)],
    ["skew", (node) => (node.metrics && node.metrics.tasks > 1 ? node.metrics.skew : null), (node) => (node.metrics && node.metrics.tasks > 1 ? node.metrics.skew.toFixed(1) : "")],
    ["began", (node) => (spanOf(node) || [null])[0], (node) => (spanOf(node) ? showTime(Math.max(0, spanOf(node)[0] - zero)) : "")],
    ["took", (node) => (spanOf(node) ? spanOf(node)[1] - spanOf(node)[0] : null), (node) => (spanOf(node) ? showTime(spanOf(node)[1] - spanOf(node)[0]) : "")],
    ["failed", (node) => failuresOf(node), (node) => String(failuresOf(node) || "")],
  ].filter((column, index) => facts.ran || index < 4);
  const state = { column: facts.ran ? 6 : 0, down: facts.ran };
  const draw = () => {
    const [, key] = columns[state.column];
    const rows = [...facts.nodes.values()].sort((a, b) => {
      const [p, q] = [key(a), key(b)];
      const found = typeof p === "string" ? p.localeCompare(q) : (p ?? -Infinity) - (q ?? -Infinity);
      return (state.down ? -1 : 1) * found || a.id - b.id;
    });
    const heading = ([name], index) => element("th", { class: index > 2 ? "number" : "", "aria-sort": index === state.column ? (state.down ? "descending" : "ascending") : null },
      element("button", { type: "button", onclick: () => { state.down = state.column === index ? !state.down : index > 2; state.column = index; draw(); } }, name));
    const line = (node) => element("tr", { "data-stage": node.id, onclick: () => select(node.id, true) },
      columns.map(([, value, show], index) => element("td", { class: index > 2 ? "number" : "" }, String((show || value)(node) ?? ""))));
    byId("stages").replaceChildren(element("table", { class: "stages" }, [element("thead", {}, element("tr", {}, columns.map(heading))), element("tbody", {}, rows.map(line))]));
    markSelected(facts);
  };
  draw();
}

const decisionTitle = (each) => `${each.kind}${each.stage ? ` (stage ${each.stage})` : ""}`;

function drawDecided(facts, select) {
  const zero = facts.model.query.started_at || 0;
  byId("decided").replaceChildren(element("table", {}, [
    element("thead", {}, element("tr", {}, ["after", "stage", "kind", "what and why"].map((name) => element("th", {}, name)))),
    element("tbody", {}, facts.model.decided.map((each) => element("tr", { onclick: () => each.stage && select(each.stage, true) }, [
      element("td", { class: "time" }, showTime(Math.max(0, each.at - zero))), element("td", {}, each.stage ? String(each.stage) : ""),
      element("td", {}, each.kind), element("td", { class: "wide" }, each.reason),
    ]))),
  ]));
}

function drawFeeds(facts) {
  const columns = [
    ["table", (feed) => feed.table], ["found", (feed) => showCount(feed.found)], ["handed out", (feed) => showCount(feed.handed)], ["read", (feed) => showCount(feed.done)],
    ["replayed", (feed) => showCount(feed.replayed)], ["failed", (feed) => showCount(feed.failed)], ["most waiting", (feed) => showCount(feed.most_waiting)],
    ["first unit after", (feed) => showTime(feed.first_unit_seconds)], ["tasks waited", (feed) => showTime(feed.wait_seconds)],
    ["of the provider", (feed) => Object.entries(feed.provider || {}).map(([name, value]) => `${name} ${value}`).join(", ")],
  ];
  byId("feeds").replaceChildren(element("table", {}, [
    element("thead", {}, element("tr", {}, columns.map(([name], index) => element("th", { class: index && index < 9 ? "number" : "" }, name)))),
    element("tbody", {}, facts.model.feeds.map((feed) => element("tr", {}, columns.map(([, show], index) => element("td", { class: index && index < 9 ? "number" : "" }, show(feed)))))),
  ]));
}
