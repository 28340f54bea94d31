// The page: reads the model, draws everything, and keeps one stage selected in all drawings.

let selected = null;

function markSelected() {
  for (const marked of document.querySelectorAll("[data-stage]")) {
    marked.classList.toggle("selected", Number(marked.dataset.stage) === selected);
  }
  for (const edge of document.querySelectorAll("path.edge[data-from]")) {
    edge.classList.toggle("near", Number(edge.dataset.from) === selected || Number(edge.dataset.to) === selected);
  }
}

// Draw again if there is much more or less room: a frame of a notebook gets its size after its page has begun.
function fitAgain(pane, draw) {
  let width = pane.clientWidth;
  new ResizeObserver(() => {
    if (Math.abs(pane.clientWidth - width) < 40) return;
    width = pane.clientWidth;
    draw();
  }).observe(pane);
}

function drawModel(model) {
  const facts = gatherFacts(model);
  const select = (id, scroll) => {
    selected = id;
    drawDetails(facts, id);
    markSelected();
    if (scroll) byId("graph-section").scrollIntoView({ behavior: "smooth", block: "nearest" });
  };
  const show = (id) => { byId(`${id}-section`).hidden = false; };
  drawTop(facts);
  if (model.distributed !== false && facts.nodes.size > 1) {
    show("graph");
    show("stages");
    drawGraph(facts, select);
    fitAgain(byId("graph").parentElement, () => { drawGraph(facts, select); markSelected(); });
    drawStages(facts, select);
    const costly = [...facts.nodes.values()].reduce((best, node) => ((node.seconds || 0) > (best.seconds || 0) ? node : best));
    select(costly.seconds ? costly.id : Math.max(...facts.nodes.keys()));
  }
  if (facts.attempts.length) {
    show("timeline");
    drawTimeline(facts, select);
  }
  if ((model.decided || []).length) { show("decided"); drawDecided(facts, select); }
  if ((model.feeds || []).length) { show("feeds"); drawFeeds(facts); }
  if ((model.plan || []).length) { show("plan"); byId("plan").textContent = model.plan.join("\n"); }
}

function start() {
  const begin = () => {
    try {
      drawModel(JSON.parse(byId("model").textContent));
      document.documentElement.dataset.drawn = "yes";
    } catch (error) {
      document.documentElement.dataset.drawn = "no";
      byId("top").append(element("p", { class: "error" }, `This page cannot draw its data: ${error.message}`));
      throw error;
    }
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
}
