// The page: one run at a time, and what a person can press.

function verdict(run) {
  const [yes, no] = run.task === "link" ? ["a link", "a non-link"] : ["a pair of one class", "a pair of two"];
  const text = `Among the test pairs the model ranks ${yes} above ${no} in ${percent(run.test.auc)} of the cases ` +
    `(AUC ${fixed(run.test.auc, 3)}; chance is 50%).`;
  const rule = run.rules.rows.find((row) => row.kind === "rule");
  if (!rule) return text;
  const own = run.rules.rows.find((row) => row.name === "this run");
  const gap = own.auc - rule.auc;
  return `${text} The best rule that needs no training, ${rule.name}, reaches ${percent(rule.auc)}` +
    (gap > 0 ? "." : gap === 0 ? " too." : ": on this split the model does not beat it.");
}

function showRun(number) {
  const run = report.runs[number];
  state.run = run;
  at("run").value = number;
  say("verdict", verdict(run));
  const cards = [["run", run.name], ["model", `${run.model} (${run.preset})`],
    ["task", run.task === "link" ? "link prediction" : "same class or not"], ["test AUC", fixed(run.test.auc)],
    ["test average precision", fixed(run.test.ap)],
    ...PER_NODE.filter(([key]) => key in run.test).map(([key, name]) => [name, fixed(run.test[key])]),
    ["read as", run.read_as], ["nodes", whole(run.nodes)], ["visible links", whole(run.edges)],
    ["anchors", whole(run.anchors.count)], ["kept epoch", `${run.best_epoch} of ${run.epochs_run}`],
    ["training time", `${fixed(run.seconds, 1)} s`]];
  if (run.graphs > 1) cards.splice(cards.findIndex(([name]) => name === "nodes"), 0, ["graphs", whole(run.graphs)]);
  at("cards").replaceChildren(...cards.map(([name, value]) => {
    const card = make("div"), text = make("dd");
    text.append(make("bdi", value));
    card.append(make("dt", name), text);
    return card;
  }));
  at("which-graph").hidden = run.drawn.length < 2;
  at("graph-choice").replaceChildren(...run.drawn.map((graph, g) =>
    make("option", `${g + 1} (${many(graph.nodes, "node")})`, { value: g })));
  if (run.drawn.length < run.graphs) {
    at("which-graph").title = `the first ${run.drawn.length} of ${run.graphs} graphs are drawn`;
  }
  at("find").value = at("search").value = "";
  at("node-details").replaceChildren(make("p", "Point at a node, or find one by its name."));
  showGraph(0);
  fillTraining(run);
  fillRules(run);
  drawScores(run);
  fillPredictions(run);
  fillDiagnostics(run);
  fillSettings(run);
}

function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  at("theme").setAttribute("aria-pressed", String(dark));
  if (!state.run) return;
  setStep(state.step);
  drawWhy();
  for (const redraw of [drawRules, drawScores, drawReach, drawExpected]) redraw(state.run);
  if (report.runs.length > 1) drawRuns();
}

function listen() {
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  setTheme(system.matches);
  system.addEventListener("change", (event) => setTheme(event.matches));
  at("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme !== "dark"));
  at("run").addEventListener("change", (event) => showRun(Number(event.target.value)));
  at("graph-choice").addEventListener("change", (event) => showGraph(Number(event.target.value)));
  at("colour").addEventListener("change", (event) => { state.colour = event.target.value; drawGraph(); });
  at("anchor").addEventListener("change", (event) => {
    state.anchor = Number(event.target.value);
    if (["coverage", "side", "class", "community", "degree"].includes(state.colour)) {
      state.colour = at("colour").value = "anchor";
    }
    drawGraph();
  });
  at("show-links").addEventListener("change", drawGraph);
  at("step").addEventListener("input", (event) => { play(false); setStep(Number(event.target.value)); });
  at("play").addEventListener("click", () => play(state.playing === null));
  at("find").addEventListener("keydown", (event) => { if (event.key === "Enter" && event.target.value) findNode(event.target.value); });
  at("find").addEventListener("input", (event) => completeNames(event.target.value));
  window.addEventListener("hashchange", readFragment);
  at("search").addEventListener("input", searchPredictions);
  at("copy").addEventListener("click", copyCommand);
}

function copyCommand() {
  const range = document.createRange();
  range.selectNodeContents(at("command"));
  const selection = window.getSelection();
  selection.removeAllRanges();
  selection.addRange(range);
  const done = () => say("copied", "copied");
  const failed = () => say("copied", "selected: press Ctrl-C");
  if (navigator.clipboard) navigator.clipboard.writeText(at("command").textContent).then(done, failed);
  else failed();
}

function start() {
  at("run").replaceChildren(...report.runs.map((run, i) => make("option", run.name, { value: i })));
  say("made", `Made by psgnn ${report.psgnn}. This file holds everything it shows and loads nothing from anywhere.`);
  listen();
  fillRuns();
  showRun(0);
  fillComparison();
  listenToHover("graph-plot", () => state.offset);
  listenToHover("map-plot", () => 0);
  readFragment();
  document.documentElement.dataset.ready = "true";
}

try {
  start();
} catch (error) {
  at("problem").hidden = false;
  say("problem", `The page could not be drawn: ${error.message}`);
  throw error;
}
