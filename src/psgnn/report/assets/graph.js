// The graph with its anchors, the map of embeddings, and the slider over the choice of anchors.

const state = { run: null, graph: null, step: 0, anchor: 0, colour: "coverage", node: -1, pair: null, playing: null };

function webglWorks() {
  try { return Boolean(document.createElement("canvas").getContext("webgl")); } catch { return false; }
}
const fast = report.webgl && webglWorks();
const POINTS = fast ? "scattergl" : "scatter";

const currentStep = () => state.graph.steps[state.step];
const chosen = () => (currentStep() ? currentStep().anchors : []);
const single = () => state.run.anchors.kind === "nodes";
const lastStep = () => state.graph.steps.length - 1;

// Hops of every drawn node to the nearest of the anchors that are chosen at this step; -1 = none is reached.
function coverage() {
  const { graph } = state;
  if (!state.run.anchors.moves && state.step === lastStep()) return graph.nearest;
  const nearest = new Int32Array(graph.names.length).fill(-1);
  for (const anchor of chosen()) {
    const hops = graph.hops[anchor];
    for (let v = 0; v < nearest.length; v++) {
      if (hops[v] >= 0 && (nearest[v] < 0 || hops[v] < nearest[v])) nearest[v] = hops[v];
    }
  }
  return nearest;
}

// What colours mean at the moment: hops, a group of every node, or degrees.
function colouring() {
  const { graph, colour } = state;
  if (colour === "anchor") return { hops: graph.hops[state.anchor], title: "hops to the anchor" };
  if (colour === "coverage") return { hops: coverage(), title: "hops to the nearest anchor" };
  if (colour === "degree") return { hops: graph.degree, title: "links of the node" };
  return { groups: graph[colour], title: colour };
}

// Where there are two sides, the shape of a node says its side.
const sideName = (side) => (side < 0 ? "in no pair" : state.run.sides[side]);
const shapes = (nodes, symbols, plain) =>
  (state.graph.side ? nodes.map((v) => symbols[state.graph.side[v] + 1]) : plain);

const nodeSize = () => Math.max(4, Math.min(12, 220 / Math.sqrt(state.graph.names.length)));

// Traces of the nodes at the places x, y; the last one is a ring around the node that is looked at.
function nodeTraces(x, y) {
  const found = colouring();
  const size = nodeSize();
  const border = { color: style("--edge"), width: fast ? 0.3 : 0.5 };
  const base = { type: POINTS, mode: "markers", hoverinfo: "none", showlegend: false };
  const traces = [];
  const all = Array.from(state.graph.names, (_, v) => v);
  const symbol = (plain) => shapes(all, ["diamond", "circle", "square"], plain);
  if (found.groups) {
    traces.push({ ...base, x, y, marker: { size, color: Array.from(found.groups, groupColour),
      symbol: symbol(Array.from(found.groups, (group) => SYMBOLS[groupPlace(group)])), line: border } });
  } else {
    const known = Array.from(found.hops, (hops) => (hops < 0 ? null : hops));
    const most = Math.max(1, ...known.filter((hops) => hops !== null));
    const lost = known.map((hops, v) => v).filter((v) => known[v] === null);
    const bar = { title: { text: found.title, side: "right" }, thickness: 12, len: 0.7, outlinewidth: 0,
      tickformat: "d", dtick: most <= 12 ? 1 : undefined };
    traces.push({ ...base, x, y, marker: { size, color: known.map((hops) => hops ?? 0), symbol: symbol("circle"), cmin: 0, cmax: most,
      colorscale: "Viridis", reversescale: state.colour !== "degree", showscale: true, colorbar: bar, line: border } });
    // Drawn over the others: nodes that reach no anchor have no place on the scale.
    traces.push({ ...base, x: lost.map((v) => x[v]), y: lost.map((v) => y[v]), customdata: lost,
      marker: { size, color: "#bbbbbb", symbol: "x", line: border } });
  }
  const stars = starNodes();
  traces.push({ ...base, x: stars.map((v) => x[v]), y: stars.map((v) => y[v]), customdata: stars,
    marker: { size: size + Math.max(3, 8 - stars.length / 12), symbol: shapes(stars, ["star-diamond", "star", "star-square"], "star"), color: "#d55e00", line: { color: style("--ink"), width: fast ? 0.4 : 1 } } });
  const ring = [state.node, ...(state.pair || [])].filter((v) => v >= 0);
  traces.push({ ...base, x: ring.map((v) => x[v]), y: ring.map((v) => y[v]), customdata: ring,
    marker: { size: size + 14, symbol: "circle-open", color: style("--ink"), line: { color: style("--ink"), width: 2.5 } } });
  return traces;
}

// Anchors that are drawn as stars: all that are chosen, or the members of the set that is looked at.
function starNodes() {
  const members = (anchor) => {
    const found = [];
    state.graph.hops[anchor].forEach((hops, v) => { if (hops === 0) found.push(v); });
    return found;
  };
  if (state.run.anchors.kind === "none") return [];
  return single() ? chosen().flatMap(members) : members(state.anchor);
}

function linkTraces() {
  const { graph } = state;
  if (!at("show-links").checked) return [];
  const x = [], y = [];
  for (let i = 0; i < graph.links[0].length; i++) {
    const [u, v] = [graph.links[0][i], graph.links[1][i]];
    x.push(graph.x[u], graph.x[v], null);
    y.push(graph.y[u], graph.y[v], null);
  }
  return [{ type: POINTS, mode: "lines", x, y, hoverinfo: "skip", showlegend: false, ...arrowHeads(x, "--edge"),
    line: { color: style("--edge"), width: graph.names.length > 1000 ? 0.4 : 0.8 } }];
}

// WebGL cannot turn its symbols, so very large graphs have no arrows.
const arrows = () => state.run.directed && !fast;

// Heads at the second of every two ends; null separates the links.
function arrowHeads(ends, colour) {
  if (!arrows()) return {};
  const size = nodeSize();
  return { mode: "lines+markers", marker: { symbol: "arrow", angleref: "previous", standoff: size / 2, opacity: 1,
    size: ends.map((_, i) => (i % 3 === 1 ? Math.max(5, 0.8 * size) : 0)), color: style(colour), line: { width: 0 } } };
}

function pairTraces() {
  const { graph, pair } = state;
  if (!pair) return [];
  return [{ type: POINTS, mode: "lines", x: pair.map((v) => graph.x[v]), y: pair.map((v) => graph.y[v]),
    hoverinfo: "skip", showlegend: false, ...arrowHeads(pair, "--pair"), line: { color: style("--pair"), width: 3, dash: "dash" } }];
}

const bare = { showgrid: false, zeroline: false, showline: false, showticklabels: false, ticks: "" };

function drawGraph() {
  const { run, graph } = state;
  if (!graph) return;
  const text = graphText();
  say("graph-caption", text);
  const before = [...linkTraces(), ...pairTraces()];
  state.offset = before.length;
  draw("graph-plot", [...before, ...nodeTraces(graph.x, graph.y)],
    { xaxis: bare, yaxis: { ...bare, scaleanchor: "x" }, margin: { l: 5, r: 5, t: 5, b: 5 }, hovermode: "closest",
      dragmode: "pan", uirevision: `${state.run.name}/${graph.number}` }, text);
  const shares = run.variance.map(percent);
  const about = `Embeddings of ${whole(graph.names.length)} nodes on their two main directions, which hold ${shares[0]} ` +
    `and ${shares[1]} of the variance.`;
  say("map-note", "Nodes that lie close have similar embeddings. Colours are those of the graph above.");
  say("map-caption", about);
  draw("map-plot", nodeTraces(graph.map[0], graph.map[1]),
    { xaxis: { title: { text: `first direction (${shares[0]})` }, zeroline: false },
      yaxis: { title: { text: `second direction (${shares[1]})` }, zeroline: false }, hovermode: "closest", dragmode: "pan",
      uirevision: `${state.run.name}/${graph.number}` }, about);
  drawLegend();
}

function graphText() {
  const { run, graph } = state;
  const part = graph.names.length < graph.nodes
    ? `${whole(graph.names.length)} of ${whole(graph.nodes)} nodes and ${whole(graph.links[0].length)} of ` +
      `${whole(graph.edges)} links are drawn: those around anchors and predictions, and others by chance.`
    : `${many(graph.nodes, "node")} and ${many(graph.links[0].length, "link")}` +
      (graph.links[0].length < graph.edges ? ` of ${whole(graph.edges)}` : "") + " that the model could see.";
  const pointing = (arrows() ? " Arrows go from source to target." : "") + (run.directed ? " Hops ignore directions." : "");
  if (run.anchors.kind === "none") return part + pointing;
  const counts = coverage();
  let within = 0;
  counts.forEach((hops) => { within += hops >= 0 && hops <= 3; });
  const stars = single() ? `${many(chosen().length, "anchor")} (stars)` : `${many(chosen().length, "set")} of anchors`;
  return `${part}${pointing} ${stars}; ${percent(within / counts.length)} of the drawn nodes are within 3 hops of one.`;
}

function drawLegend() {
  const list = at("legend");
  list.replaceChildren();
  const add = (mark, colour, text) => {
    const item = make("li");
    const swatch = make("span", mark, { class: "swatch", "aria-hidden": "true" });
    swatch.style.color = colour;
    item.append(swatch, make("span", text));
    list.append(item);
  };
  const pointed = state.graph.side ? ` (${state.run.sides[0]}: five points, ${state.run.sides[1]}: four)` : "";
  if (state.run.anchors.kind !== "none") add("★", "#d55e00", (single() ? "anchor" : "member of the chosen set") + pointed);
  if (state.graph.side) state.run.sides.forEach((name, side) => add(MARKS[side], "inherit", name));
  const found = colouring();
  if (!found.groups) {
    add("●", "#440154", `dark: ${state.colour === "degree" ? "few links" : "far"}`);
    add("●", "#b5a800", `light: ${state.colour === "degree" ? "many links" : "near"}`);
    if (Array.prototype.some.call(found.hops, (hops) => hops < 0)) add("✖", "#999999", "reaches no anchor");
    return;
  }
  const sizes = new Map();
  found.groups.forEach((group) => sizes.set(group, (sizes.get(group) || 0) + 1));
  const groups = [...sizes.keys()].sort((a, b) => a - b);
  for (const group of groups.slice(0, 30)) {
    const name = found.title === "side" ? sideName(group) : group < 0 ? "unknown" : `${found.title} ${group}`;
    add(group < 0 || state.graph.side ? "●" : MARKS[groupPlace(group)], groupColour(group), `${name} (${many(sizes.get(group), "node")})`);
  }
  if (groups.length > 30) list.append(make("li", `and ${groups.length - 30} more`));
}

// What is known about a node, as pairs of words.
function facts(v) {
  const { graph } = state;
  const rows = graph.directions ? [["links to", whole(graph.directions[0][v])], ["linked from", whole(graph.directions[1][v])]]
    : [["links", whole(graph.degree[v])]];
  if (graph.side) rows.push(["side", sideName(graph.side[v])]);
  if (graph.class) rows.push(["class", graph.class[v] < 0 ? "unknown" : graph.class[v]]);
  rows.push(["community", graph.community[v]]);
  const near = chosen().map((anchor) => [graph.anchors[anchor], graph.hops[anchor][v]])
    .sort((a, b) => (a[1] < 0 ? 1e9 : a[1]) - (b[1] < 0 ? 1e9 : b[1]));
  for (const [name, hops] of near.slice(0, 8)) rows.push([`to ${name}`, hops < 0 ? "not reached" : many(hops, "hop")]);
  if (near.length > 8) rows.push(["further anchors", near.length - 8]);
  return rows;
}

function showNode(v) {
  const box = at("node-details");
  const title = make("p");
  title.append(make("bdi", state.graph.names[v]));
  const list = make("dl");
  for (const [name, value] of facts(v)) {
    const term = make("dt");
    term.append(make("bdi", name));
    list.append(term, make("dd", value));
  }
  box.replaceChildren(title, list);
}

function nodeOf(point, offset) {
  const custom = point.data.customdata;
  if (custom) return custom[point.pointNumber];
  return point.curveNumber >= offset ? point.pointNumber : -1;
}

function listenToHover(id, offset) {
  const tooltip = at("tooltip");
  at(id).on("plotly_hover", (event) => {
    const v = nodeOf(event.points[0], offset());
    if (v === undefined || v < 0) return;
    showNode(v);
    const lines = facts(v).slice(0, 6).map(([name, value]) => `${name}: ${value}`);
    tooltip.textContent = [state.graph.names[v], ...lines].join("\n");
    tooltip.hidden = false;
    const { clientX, clientY } = event.event;
    tooltip.style.left = `${Math.min(clientX + 14, window.innerWidth - tooltip.offsetWidth - 8)}px`;
    tooltip.style.top = `${Math.min(clientY + 14, window.innerHeight - tooltip.offsetHeight - 8)}px`;
  });
  at(id).on("plotly_unhover", () => { tooltip.hidden = true; });
  at(id).on("plotly_click", (event) => {
    const v = nodeOf(event.points[0], offset());
    if (v === undefined || v < 0) return;
    openNode(v);
  });
}

// Complete what is typed: names that begin with it, then names that hold it.
function completeNames(text) {
  const wanted = text.toLowerCase();
  const { names } = state.graph;
  const most = 12, starts = [], holds = [];
  for (let v = 0; wanted && v < names.length && starts.length < most; v++) {
    const place = names[v].toLowerCase().indexOf(wanted);
    if (place === 0) starts.push(names[v]);
    else if (place > 0 && holds.length < most) holds.push(names[v]);
  }
  const found = [...new Set([...starts, ...holds])].slice(0, most);
  at("find-names").replaceChildren(...found.map((name) => make("option", null, { value: name })));
}

function findNode(text) {
  const { names } = state.graph;
  const wanted = text.toLowerCase();
  let found = names.indexOf(text);
  if (found < 0) found = names.findIndex((name) => name.toLowerCase().startsWith(wanted));
  if (found < 0) found = names.findIndex((name) => name.toLowerCase().includes(wanted));
  if (found < 0) {
    at("node-details").replaceChildren(make("p", `No drawn node has "${text}" in its name.`));
    return;
  }
  openNode(found);
}

function stepText() {
  const { run, graph } = state;
  const step = currentStep();
  const last = lastStep();
  if (!step) return "";
  const names = step.anchors.map((anchor) => graph.anchors[anchor]);
  if (run.anchors.moves) {
    const before = state.step ? new Set(graph.steps[state.step - 1].anchors) : new Set();
    const fresh = step.anchors.filter((anchor) => !before.has(anchor));
    const kept = step.epoch === run.best_epoch ? " (kept)" : "";
    return `epoch ${whole(step.epoch)}${kept}: ${many(step.anchors.length, "anchor")}` +
      (state.step ? `, ${fresh.length} new since the step before` : "");
  }
  if (!single() || last === 0) return `${many(step.anchors.length, single() ? "anchor" : "set")}, fixed before training`;
  const latest = `${step.anchors.length} of ${graph.steps[last].anchors.length} anchors, the latest: ${names[names.length - 1]}`;
  if (step.explained === null) return latest;
  const before = state.step ? graph.steps[state.step - 1].explained : 0;
  return `${latest}, which explains ${percent(step.explained - before)} of the loss; all so far: ${percent(step.explained)}`;
}

function setStep(step) {
  state.step = Math.max(0, Math.min(step, lastStep()));
  at("step").value = state.step;
  say("step-text", stepText());
  at("step").setAttribute("aria-valuetext", stepText());
  fillAnchors();
  drawGraph();
  drawTraining(state.run, state.run.anchors.moves && currentStep() ? currentStep().epoch : null);
}

function fillAnchors() {
  const select = at("anchor");
  const options = chosen().map((anchor) => make("option", state.graph.anchors[anchor], { value: anchor }));
  select.replaceChildren(...options);
  if (!chosen().includes(state.anchor)) state.anchor = chosen()[0] ?? 0;
  select.value = state.anchor;
}

function play(on) {
  clearInterval(state.playing);
  state.playing = null;
  at("play").textContent = on ? "Pause" : "Play";
  if (!on) return;
  if (state.step >= lastStep()) setStep(0);
  state.playing = setInterval(() => {
    if (state.step >= lastStep()) play(false);
    else setStep(state.step + 1);
  }, 700);
}

function showGraph(number) {
  play(false);
  const { run } = state;
  state.graph = { ...run.drawn[number], number };
  state.node = -1;
  state.pair = null;
  at("node").hidden = true;
  const { kind, moves, picker } = run.anchors;
  const colours = [["coverage", "hops to the nearest anchor (coverage)"], ["anchor", "hops to one anchor"],
    ["side", "side"], ["class", "class"], ["community", "community (found by Louvain's method)"], ["degree", "number of links"]]
    .filter(([key]) => (kind !== "none" || !["coverage", "anchor"].includes(key)) && (!["class", "side"].includes(key) || state.graph[key]));
  at("colour").replaceChildren(...colours.map(([key, text]) => make("option", text, { value: key })));
  if (!colours.some(([key]) => key === state.colour)) state.colour = colours[0][0];
  at("colour").value = state.colour;
  at("anchor-label").hidden = kind === "none";
  at("step-controls").hidden = kind === "none";
  const last = lastStep();
  at("step").max = Math.max(last, 0);
  at("step").disabled = at("play").disabled = last < 1;
  say("step-label", moves ? "Training" : last > 0 ? "Anchors, one after another" : "Anchors are fixed: one step");
  say("graph-note", kind === "none" ? "This model has no anchors: it sees links only."
    : moves ? `Training chooses the anchors (picker "${picker}"); the slider moves through it.`
      : `The picker "${picker}" chose the anchors before training, and training does not move them` +
        (last > 0 ? "; the slider shows them one after another, in its order." : "."));
  const kept = state.graph.steps.findIndex((step) => step.epoch === run.best_epoch);
  setStep(moves && kept >= 0 ? kept : last);
}
