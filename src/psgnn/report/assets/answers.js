// Answers: a node's page, why a pair is predicted, how many predictions are expected to be right.

const chance = (value) => (value === null ? "-" : value >= 0.1 ? value.toFixed(2) : value.toPrecision(2));

// The fragment of a node, such as #node=Ada; run, graph and place only where the name alone is not enough.
function fragmentOf(v) {
  const { names, number } = state.graph;
  const parts = [`node=${encodeURIComponent(names[v])}`];
  if (names.indexOf(names[v]) !== v) parts.push(`place=${v}`);
  if (number) parts.push(`graph=${number + 1}`);
  if (state.run !== report.runs[0]) parts.push(`run=${report.runs.indexOf(state.run) + 1}`);
  return `#${parts.join("&")}`;
}

function goTo(fragment) {
  if (window.location.hash !== fragment) window.history.pushState(null, "", fragment);
  readFragment();
}

const openNode = (v) => goTo(fragmentOf(v));

// Show what the address asks for: #node=Ada or #prediction=3.
function readFragment() {
  const asked = new URLSearchParams(window.location.hash.slice(1).replaceAll("+", "%2B"));
  const node = asked.get("node"), rank = Number(asked.get("prediction"));
  if (node === null && !rank) return;
  const run = Number(asked.get("run") || 1) - 1;
  if (report.runs[run] && state.run !== report.runs[run]) showRun(run);
  if (rank) { showWhy(rank); return; }
  const graphs = state.run.drawn.map((_, g) => g);
  const wanted = asked.has("graph") ? [Number(asked.get("graph")) - 1] : [state.graph.number, ...graphs];
  const found = wanted.find((g) => state.run.drawn[g] && state.run.drawn[g].names.includes(node));
  if (found === undefined) {
    at("node-details").replaceChildren(make("p", `No drawn node is called "${node}".`));
    at("graph").scrollIntoView();
    return;
  }
  if (state.graph.number !== found) { at("graph-choice").value = found; showGraph(found); }
  const place = Number(asked.get("place"));
  fillNode(state.graph.names[place] === node ? place : state.graph.names.indexOf(node));
}

// A button that opens the page of a node, or its name alone where it is not drawn.
function nodeButton(name, place = state.graph.names.indexOf(name)) {
  if (place < 0) return make("bdi", name);
  const button = make("button", null, { type: "button", class: "name" });
  button.append(make("bdi", name));
  button.addEventListener("click", () => openNode(place));
  return button;
}

function neighboursOf(v) {
  const found = [], { directed } = state.run;
  for (const [links, note] of [[state.graph.links, ""], [state.graph.held_out, " (held out)"]]) {
    for (let i = 0; i < links[0].length; i++) {
      const [a, b] = [links[0][i], links[1][i]];
      if (a === v || b === v) found.push([a === v ? b : a, note, !directed ? "" : a === v ? "→ " : "← "]);
    }
  }
  return found;
}

function fillNode(v) {
  const { graph, run } = state;
  const name = graph.names[v];
  state.node = v;
  state.pair = null;
  showNode(v);
  drawGraph();
  at("node").hidden = false;
  at("node-name").replaceChildren(make("bdi", name));
  const near = neighboursOf(v);
  const [to, from] = graph.directions || [];
  say("node-note", (graph.side ? `${sideName(graph.side[v])}, ` : "") +
    (to ? `links to ${many(to[v], "node")} and is linked from ${whole(from[v])}` : many(graph.degree[v], "link")) + " in training" +
    (graph.class && graph.class[v] >= 0 ? `, class ${graph.class[v]}` : "") + `, community ${graph.community[v]}` +
    (run.anchors.kind === "none" ? "." : graph.nearest[v] < 0 ? ", no anchor in reach."
      : `, ${many(graph.nearest[v], "hop")} from the nearest anchor.`));
  fillPartners(v, "partners");
  fillPartners(v, "partners_in");
  const most = 60;
  say("neighbours-note", near.length ? (near.length > most ? `The first ${most} of ${near.length} drawn ones:` : "")
    : "None of its links is drawn.");
  if (near.length && run.directed) at("neighbours-note").append(" →: this node links there. ←: that node links here.");
  at("neighbours").replaceChildren(...near.slice(0, most).map(([u, note, way]) => {
    const item = make("li");
    item.append(way, nodeButton(graph.names[u], u), note);
    return item;
  }));
  fillPosition(v);
  at("node").scrollIntoView();
  at("node-name").focus({ preventScroll: true });
}

// Best partners; where links have directions, those the node will link to (`partners`) or that will link to it.
function fillPartners(v, key) {
  const { graph, run } = state;
  const back = key === "partners_in", id = key.replace("_", "-");
  const asked = !graph.side || graph.side[v] === (back ? 1 : 0) || (!run.directed && graph.side[v] === 1);
  at(id).hidden = !graph[key] || !asked;
  if (at(id).hidden) return;
  const among = graph.side ? `, of the side ${sideName(1 - graph.side[v])}` : "";
  say(`${id}-title`, !run.directed ? "Best partners" : back ? "Who will link to it" : "Whom it will link to");
  const found = graph[key].find((each) => each.node === v);
  at(`${id}-table`).parentElement.hidden = !found;
  const other = back ? "" : "psgnn predict RUN --for NAME looks at all of them.";
  if (!found) {
    say(`${id}-note`, `The page has no partners of this node (it has those of ${many(graph[key].length, "node")}). ${other}`);
    return;
  }
  say(`${id}-note`, (run.task === "pair" ? "Nodes that are most likely of the same class"
    : !run.directed ? "Nodes that are most likely missing links"
      : back ? "Nodes that most likely have a missing link to it" : "Nodes to which a link from it is most likely missing") + among +
    (graph.partners_whole && run.directed ? `, among all that ${back ? "do not link to it" : "it does not link to"}.` : graph.partners_whole ? ", among all that are not linked to it." : `, among nodes two and three hops away. ${other}`) +
    (run.expectation.why ? ` No probabilities: ${run.expectation.why}.` : ""));
  fillTable(`${id}-table`, [[back ? "source" : run.directed ? "target" : "partner", "text"], ["probability", "number"], ["score", "number"], ["because", "text"]],
    found.rows.map((row) => [nodeButton(row.place < 0 ? row.name : graph.names[row.place], row.place),
      chance(row.probability), fixed(row.score), row.because]));
}

// Where the node is: the anchors by their hops to it.
function fillPosition(v) {
  const { graph } = state;
  const byHops = new Map();
  for (const anchor of chosen()) {
    const hops = graph.hops[anchor][v];
    byHops.set(hops, [...(byHops.get(hops) || []), graph.anchors[anchor]]);
  }
  const order = [...byHops.keys()].sort((a, b) => (a < 0 ? 1e9 : a) - (b < 0 ? 1e9 : b));
  say("position-note", order.length
    ? "Hops in the graph that training saw, without the held-out links."
    : "This model has no anchors, so a node has no position.");
  at("position-table").parentElement.hidden = !order.length;
  fillTable("position-table", [["hops", "number"], ["anchors at this distance", "text"]],
    order.map((hops) => [hops < 0 ? "not reached" : hops, byHops.get(hops).join(", ")]));
}

const joining = () => (state.run.directed ? " → " : " and ");

function whyButton(row) {
  const button = make("button", "Why", { type: "button", "aria-label": `Why ${row.source}${joining()}${row.target}` });
  const run = state.run === report.runs[0] ? "" : `&run=${report.runs.indexOf(state.run) + 1}`;
  button.addEventListener("click", () => goTo(`#prediction=${row.rank}${run}`));
  return button;
}

function showWhy(rank) {
  const { run } = state;
  const row = run.predictions.find((each) => each.rank === rank);
  const found = run.explanations.find((each) => each.rank === rank);
  at("why").hidden = !row || !found;
  if (!row || !found) return;
  at("why-name").replaceChildren("Why ", make("bdi", row.source), joining(), make("bdi", row.target));
  say("why-note", `Rank ${rank}, score ${fixed(row.score, 2)}` +
    (row.probability === null ? "" : `, probability ${chance(row.probability)}`) +
    `; ${found.hops === null ? "no path between them" : found.linked_back ? "linked the other way" : `${many(found.hops, "hop")} apart`}.` +
    (run.directed ? " Hops and shared neighbours ignore directions." : ""));
  const lines = [];
  const add = (title, names, between) => {
    const line = make("li", `${title}: `);
    names.forEach((name, i) => { if (i) line.append(between(i)); line.append(make("bdi", name)); });
    lines.push(line);
  };
  if (found.num_shared) {
    const more = found.num_shared - found.shared.length;
    add(many(found.num_shared, "shared neighbour"), [...found.shared, ...(more > 0 ? [`and ${whole(more)} more`] : [])], () => ", ");
  }
  found.paths.forEach((path, p) => add("Shortest path", path, (i) => ARROWS[run.directed ? found.ways[p][i - 1] : "-"]));
  const hops = ([name, a, b]) => `${name} (${a} and ${b} hops)`;
  for (const [kind, title] of [["together", "Anchors as far from both"], ["apart", "Anchors nearer to one"]]) {
    const anchors = found.anchors ? found.anchors[kind] : [];
    if (anchors.length) add(title, anchors.map(hops), () => ", ");
  }
  if (!found.anchors) lines.push(make("li", "This model has no single anchors to compare them by."));
  at("why-facts").replaceChildren(...lines);
  at("why-plot").hidden = !found.contributions;
  state.why = found;
  if (found.contributions) drawWhy();
  else say("why-caption", "This model reads all evidence at once, so no kind of it has a share of its own.");
  at("why").scrollIntoView();
  at("why-name").focus({ preventScroll: true });
}

function drawWhy() {
  const found = state.why;
  if (!found || !found.contributions) return;
  const parts = Object.entries(found.contributions).sort((a, b) => Math.abs(a[1]) - Math.abs(b[1]));
  const text = `An average unlinked pair scores ${fixed(found.base, 2)}. ` +
    `${[...parts].reverse().map(([group, value]) => `${group} ${value < 0 ? "−" : "+"}${fixed(Math.abs(value), 2)}`).join(", ")}. ` +
    `Together that is the score, ${fixed(found.score, 2)}.`;
  say("why-caption", text);
  const names = ["score", ...parts.map(([group]) => group), "average pair"];
  const values = [found.score, ...parts.map(([, value]) => value), found.base];
  draw("why-plot", [{ type: "bar", orientation: "h", y: names, x: values, text: values.map((value) => fixed(value, 2)),
    textposition: "auto", marker: { color: values.map((value, i) =>
      (i === 0 || i === names.length - 1 ? COLOURS[6] : COLOURS[value < 0 ? 1 : 0])) },
    hovertemplate: "%{y}: %{x:.3f}<extra></extra>" }],
  { xaxis: { title: { text: "what it adds to the score" } }, margin: { l: 110, r: 20, t: 16, b: 48 },
    yaxis: { categoryorder: "array", categoryarray: names } }, text);
}

// Of the first n predictions, how many are expected to be missing links.
function drawExpected(run) {
  const { why, missing, reliability } = run.expectation;
  const known = why === null && run.predictions.length > 0;
  at("expected-plot").hidden = !known;
  at("real-plot").hidden = !known || !reliability;
  say("real-caption", "");
  if (!known) {
    say("expected-caption", why ? `No expected precision: ${why}.` : "");
    return;
  }
  const rows = run.predictions;
  const place = Math.min(50, rows.length);
  const text = `Of the first ${place} about ${Math.round(place * rows[place - 1].expected_precision)} are expected to be missing links, ` +
    `if ${whole(Math.round(missing))} links are missing (a tenth of the known ones).`;
  say("expected-caption", text);
  draw("expected-plot", [{ mode: "lines", x: rows.map((row) => row.rank), y: rows.map((row) => row.expected_precision),
    line: { color: COLOURS[0] }, customdata: rows.map((row) => row.rank * row.expected_precision), showlegend: false,
    hovertemplate: "of the first %{x} about %{customdata:.1f}<extra></extra>" }],
  { xaxis: { title: { text: "rank" } }, yaxis: { title: { text: "expected precision" }, range: [0, 1.02] } }, text);
  if (reliability) drawReal(reliability);
}

function drawReal({ probability, share, pairs, hidden }) {
  const text = "How far to trust them: links were hidden and looked for among all unlinked pairs. The share that was found, " +
    "by the probability that was given; half of the pairs judge what the other half gave. On the dashed line both agree.";
  say("real-caption", text);
  const bins = Array.from(probability, (_, i) => i).filter((i) => share[i] > 0 && probability[i] > 0);
  const ends = [Math.min(1e-4, ...bins.map((i) => Math.min(probability[i], share[i]))), 1];
  draw("real-plot", [
    { mode: "lines", x: ends, y: ends, hoverinfo: "skip", showlegend: false, line: { dash: "dash", color: style("--line") } },
    { mode: "lines+markers", x: bins.map((i) => probability[i]), y: bins.map((i) => share[i]), showlegend: false,
      text: bins.map((i) => `${whole(pairs[i])} pairs, ${whole(hidden[i])} hidden links`), marker: { color: COLOURS[0], size: 9 },
      line: { color: COLOURS[0] }, cliponaxis: false,
      hovertemplate: "probability %{x:.2g}: share %{y:.2g}<br>%{text}<extra></extra>" },
  ], { xaxis: { type: "log", dtick: 1, exponentformat: "power", title: { text: "probability that is given" } },
    yaxis: { type: "log", dtick: 1, exponentformat: "power", title: { text: "share of missing links" } } }, text);
}
