// A layered layout. Upright: the head on top, producers below their consumers. Otherwise the head is on the right, and
// producers are left of their consumers. Long edges pass through places of their own.
//
// `layer` counts from the head. `across` is the size of an item along its layer; `x` is its place there until the end.

const NODE = { width: 204, height: 72, gap: 18, between: 62, beside: 66, lane: 20 };

function layOut(nodes, edges, upright) {
  const items = new Map();
  const across = upright ? NODE.width : NODE.height;
  for (const id of nodes.keys()) items.set(`n${id}`, { key: `n${id}`, id, width: across, layer: 0, up: [], down: [] });
  const consumers = new Map();
  for (const edge of edges) consumers.set(edge.from, [...(consumers.get(edge.from) || []), edge.to]);
  const depths = new Map();
  const depthOf = (id, trail) => {
    if (depths.has(id)) return depths.get(id);
    if (trail.has(id)) return 0;
    trail.add(id);
    const found = Math.max(0, ...(consumers.get(id) || []).map((above) => depthOf(above, trail) + 1));
    trail.delete(id);
    depths.set(id, found);
    return found;
  };
  for (const item of items.values()) item.layer = depthOf(item.id, new Set());
  const routes = edges.map((edge) => route(edge, items));
  const layers = [];
  for (const item of items.values()) (layers[item.layer] = layers[item.layer] || []).push(item);
  order(layers);
  place(layers);
  const all = [...items.values()];
  const left = Math.min(...all.map((item) => item.x - item.width / 2));
  const span = Math.max(...all.map((item) => item.x + item.width / 2)) - left;
  for (const item of all) {
    const place = item.x - left;
    if (upright) [item.x, item.y] = [place, item.layer * (NODE.height + NODE.between) + NODE.height / 2];
    else [item.x, item.y] = [(layers.length - 1 - item.layer) * (NODE.width + NODE.beside) + NODE.width / 2, place];
  }
  const long = layers.length * (upright ? NODE.height + NODE.between : NODE.width + NODE.beside) - (upright ? NODE.between : NODE.beside);
  return { items, routes, upright, width: upright ? span : long, height: upright ? long : span };
}

// The layout of the two that is larger when it fits the pane.
function layOutFor(nodes, edges, wide, high) {
  const scale = (plan) => Math.min(wide / plan.width, high / plan.height);
  const plans = [true, false].map((upright) => layOut(nodes, edges, upright));
  return scale(plans[1]) > scale(plans[0]) ? plans[1] : plans[0];
}

// The items that an edge passes, from its producer up to its consumer.
function route(edge, items) {
  const from = items.get(`n${edge.from}`), to = items.get(`n${edge.to}`);
  const passed = [from];
  for (let layer = from.layer - 1; layer > to.layer; layer--) {
    const key = `e${edge.from}-${edge.to}-${layer}`;
    const lane = { key, id: null, width: NODE.lane, layer, up: [], down: [] };
    items.set(key, lane);
    passed.push(lane);
  }
  passed.push(to);
  for (let index = 1; index < passed.length; index++) {
    passed[index - 1].up.push(passed[index]);
    passed[index].down.push(passed[index - 1]);
  }
  return { edge, passed };
}

// Few crossings: begin as a walk from the head finds them, then sort by the mean place of the neighbours.
function order(layers) {
  const seen = new Set(), placed = layers.map(() => []);
  const visit = (item) => {
    if (seen.has(item)) return;
    seen.add(item);
    placed[item.layer].push(item);
    item.down.forEach(visit);
  };
  layers.flat().forEach(visit);
  placed.forEach((layer, index) => { layers[index] = layer; });
  const number = () => layers.forEach((layer) => layer.forEach((item, index) => { item.at = index; }));
  const mean = (items) => items.reduce((sum, item) => sum + item.at, 0) / items.length;
  number();
  let best = layers.map((layer) => layer.slice()), fewest = crossings(layers);
  for (let round = 0; round < 12 && fewest > 0; round++) {
    const down = round % 2 === 0;
    const sweep = down ? layers : layers.slice().reverse();
    for (const layer of sweep) {
      for (const item of layer) {
        const near = down ? item.up : item.down;
        item.weight = near.length ? mean(near) : item.at;
      }
      layer.sort((a, b) => a.weight - b.weight || a.at - b.at);
      layer.forEach((item, index) => { item.at = index; });
    }
    const found = crossings(layers);
    if (found < fewest) { fewest = found; best = layers.map((layer) => layer.slice()); }
  }
  best.forEach((layer, index) => { layers[index] = layer; });
  number();
}

function crossings(layers) {
  let count = 0;
  for (const layer of layers) {
    const pairs = layer.flatMap((item) => item.down.map((below) => [item.at, below.at]));
    for (let i = 0; i < pairs.length; i++) {
      for (let j = i + 1; j < pairs.length; j++) {
        if ((pairs[i][0] - pairs[j][0]) * (pairs[i][1] - pairs[j][1]) < 0) count++;
      }
    }
  }
  return count;
}

// Places: everybody wants the middle of the neighbours, and nobody overlaps.
function place(layers) {
  for (const layer of layers) {
    let x = 0;
    for (const item of layer) { item.x = x + item.width / 2; x += item.width + NODE.gap; }
    const middle = (x - NODE.gap) / 2;
    for (const item of layer) item.x -= middle;
  }
  for (let round = 0; round < 24; round++) {
    for (const layer of round % 2 ? layers.slice().reverse() : layers) {
      for (const item of layer) {
        const near = [...item.up, ...item.down];
        if (near.length) item.wish = near.reduce((sum, each) => sum + each.x, 0) / near.length;
        else item.wish = item.x;
      }
      spread(layer);
    }
  }
}

// The nearest places to the wishes that keep the order and the distance: neighbours that collide move as a block.
function spread(layer) {
  const blocks = [];
  for (const item of layer) {
    let block = { items: [item], width: item.width, wish: item.wish - item.width / 2 };
    while (blocks.length) {
      const last = blocks[blocks.length - 1];
      if (last.wish + last.width + NODE.gap <= block.wish) break;
      blocks.pop();
      const count = last.items.length + block.items.length;
      const wish = (last.wish * last.items.length + (block.wish - last.width - NODE.gap) * block.items.length) / count;
      block = { items: [...last.items, ...block.items], width: last.width + NODE.gap + block.width, wish };
    }
    blocks.push(block);
  }
  for (const block of blocks) {
    let x = block.wish;
    for (const item of block.items) { item.x = x + item.width / 2; x += item.width + NODE.gap; }
  }
}
