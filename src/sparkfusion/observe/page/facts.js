// What the drawings need to know of a model, computed once.

const HEAD = 0;
const PASSING = /^(Projection|CoalesceBatches|CoalescePartitions|Repartition|Cooperative|SortPreservingMerge|ExchangeSource|Buffer|OutputRequirement)/;

function gatherFacts(model) {
  const metrics = new Map((model.metrics || []).map((each) => [each.stage, each]));
  const exchanges = new Map((model.exchanges || []).map((each) => [each.id, each]));
  const attempts = (model.attempts || []).slice();
  const runs = Math.max(1, ...attempts.map((each) => each.run || 1));
  const nodes = new Map();
  const head = model.head || { inputs: [], operators: [] };
  nodes.set(HEAD, { id: HEAD, name: "Head", tasks: 1, stage: head, inputs: head.inputs });
  for (const stage of model.stages || []) {
    nodes.set(stage.id, { id: stage.id, name: `Stage ${stage.id}`, tasks: stage.tasks, stage, inputs: stage.inputs });
  }
  const edges = [];
  for (const node of nodes.values()) {
    node.metrics = metrics.get(node.id) || null;
    node.attempts = attempts.filter((each) => each.stage === node.id && (each.run || 1) === runs);
    node.output = node.id === HEAD ? null : exchanges.get(node.stage.output) || null;
    node.operators = operatorsOf(node);
    node.seconds = node.metrics ? node.metrics.seconds : null;
    for (const input of new Set(node.inputs || [])) {
      const exchange = exchanges.get(input);
      if (exchange && nodes.has(exchange.producer)) edges.push({ from: exchange.producer, to: node.id, exchange });
    }
  }
  const ran = metrics.size > 0 || attempts.length > 0;
  const skipped = new Set((model.decided || []).filter((each) => each.kind === "skipped").map((each) => each.stage));
  const most = (of) => Math.max(0, ...[...nodes.values()].map((node) => (node.metrics ? node.metrics[of] : 0)));
  return { model, nodes, edges, attempts, runs, ran, skipped, mostSeconds: most("seconds"), mostBytes: most("bytes") };
}

// The operators of a stage with what they did. The names of a run are used where a task ran a plan of another shape.
function operatorsOf(node) {
  const lines = (node.stage.operators || []).map((line) => {
    const text = line.trimStart();
    return { depth: (line.length - text.length) / 2, text };
  });
  const measured = (node.metrics && node.metrics.operators) || [];
  const source = measured.length && measured.length !== lines.length
    ? measured.map((each) => ({ depth: each.depth, text: withoutPaths(each.name) })) : lines;
  return source.map((line, index) => {
    const colon = line.text.indexOf(":");
    const name = colon < 0 ? line.text : line.text.slice(0, colon);
    const rest = colon < 0 ? "" : line.text.slice(colon + 1).trim();
    return { depth: line.depth, name, rest, metrics: measured.length ? measured[index] : null };
  });
}

// What a task read is named by files that are gone; how many groups of them there were is enough.
const withoutPaths = (text) => text.replace(/file_groups=\{(\d+) groups?: \[.*?\]\}/, "file_groups=$1");

// A stage in a few words: what it computes, and what it reads.
function summaryOf(node) {
  if (node.id === HEAD && node.stage.streams) return "passes rows on";
  const words = [];
  for (const { name, rest } of node.operators) {
    const short = name.replace(/Exec$/, "");
    if (PASSING.test(short)) continue;
    if (short === "DataSource") words.push(`Scan ${columnsOf(rest)}`.trim());
    else if (short === "FeedScan") words.push(`Feed ${rest.split(",")[0]}`);
    else if (short === "Aggregate") words.push(`${/mode=Partial/.test(rest) ? "partial " : ""}Aggregate`);
    else words.push(short);
  }
  const all = words.length ? words : node.operators.slice(0, 1).map((each) => each.name.replace(/Exec$/, ""));
  return [...new Set(all)].join(" · ");
}

function columnsOf(rest) {
  const found = /projection=\[([^\]]*)\]/.exec(rest);
  return found ? found[1].split(",").map((name) => name.trim().split(" as ")[0].split("@")[0]).join(", ") : "";
}

function exchangeText(exchange) {
  const keys = exchange.keys && exchange.keys.length ? ` by ${exchange.keys.map((key) => key.split("@")[0]).join(", ")}` : "";
  return exchange.kind + keys;
}

const failuresOf = (node) =>
  node.attempts.filter((each) => each.outcome === "failed" || each.outcome === "retried").length
  + node.attempts.reduce((sum, each) => sum + (each.earlier_attempts || 0), 0);

function spanOf(node) {
  const ran = node.attempts.filter((each) => each.started_at && each.ended_at);
  const begun = ran.map((each) => each.started_at), ended = ran.map((each) => each.ended_at);
  return ran.length ? [Math.min(...begun), Math.max(...ended)] : null;
}
