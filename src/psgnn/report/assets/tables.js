// Tables: every cell is text; a click on a column's name sorts by it.

// columns: [name, "text" | "number"]; rows: lists of cells; a cell may be {text, sort, element}.
function fillTable(id, columns, rows, own = () => false) {
  const table = at(id);
  const head = make("thead"), line = make("tr"), body = make("tbody");
  columns.forEach(([name, kind], place) => {
    const cell = make("th", null, { scope: "col", class: kind });
    const button = make("button", name, { type: "button" });
    button.addEventListener("click", () => sortTable(table, place, cell));
    cell.append(name ? button : "");
    line.append(cell);
  });
  head.append(line);
  for (const row of rows) {
    const tr = make("tr");
    if (own(row)) tr.className = "own";
    row.forEach((cell, place) => {
      const td = make("td", null, { class: columns[place][1] });
      if (cell instanceof Node) td.append(cell);
      else td.append(make("bdi", cell === null || cell === undefined ? "-" : cell));
      tr.append(td);
    });
    body.append(tr);
  }
  table.replaceChildren(head, body);
}

function sortTable(table, place, cell) {
  const up = cell.getAttribute("aria-sort") !== "ascending";
  for (const other of cell.parentElement.children) other.removeAttribute("aria-sort");
  cell.setAttribute("aria-sort", up ? "ascending" : "descending");
  const value = (tr) => tr.children[place].textContent;
  const number = (text) => (text === "-" ? NaN : Number(text.replaceAll(",", "")));
  const compare = (a, b) => {
    const [x, y] = [number(value(a)), number(value(b))];
    if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1;
    return Number.isNaN(x) ? value(a).localeCompare(value(b)) : x - y;
  };
  const body = table.tBodies[0];
  const rows = [...body.rows].sort((a, b) => (up ? compare(a, b) : compare(b, a)));
  body.append(...rows);
}

function fillRuns() {
  const several = report.runs.length > 1;
  at("runs").hidden = at("runs-link").hidden = at("run-switch").hidden = !several;
  if (!several) return;
  const same = new Set(report.runs.map((run) => run.split)).size === 1;
  say("runs-note", same ? "All runs were measured on the same pairs."
    : "The runs were measured on different pairs (another graph, task or seed): their numbers are not comparable as they stand.");
  fillTable("runs-table",
    [["run", "text"], ["model", "text"], ["preset", "text"], ["task", "text"], ["seed", "number"], ["nodes", "number"],
      ["anchors", "number"], ["test AUC", "number"], ["test average precision", "number"], ["validation AUC", "number"],
      ["best epoch", "number"], ["seconds", "number"]],
    report.runs.map((run) => [run.name, run.model, run.preset, run.task, run.seed, whole(run.nodes), run.anchors.count,
      fixed(run.test.auc), fixed(run.test.ap), fixed(run.val.auc), run.best_epoch, fixed(run.seconds, 1)]));
  drawRuns();
}

function fillPredictions(run) {
  const pair = run.task === "pair";
  say("predictions-note", (pair
    ? "The unlinked pairs that are most likely of the same class, best first."
    : "The unlinked pairs that are most likely missing links, best first.") +
    (run.directed ? " A link goes from source to target. Hops and common neighbours ignore directions." : "") +
    (run.sides ? ` Only pairs of ${run.sides.join(" and ")} are asked about.` : "") +
    " Held-out links are known and left out. Compare scores with other scores of this run only." +
    (run.explanations.length < run.predictions.length ? ` "Why" explains the first ${run.explanations.length}.` : ""));
  const likely = run.expectation.why === null, explained = new Set(run.explanations.map((each) => each.rank));
  const reasons = run.directed || run.sides;
  const several = run.graphs > 1, classes = run.predictions.some((row) => "same_class" in row);
  const columns = [["rank", "number"], ...(several ? [["graph", "number"]] : []), ...(run.sides || ["source", "target"]).map((name) => [name, "text"]),
    ["score", "number"], ...(likely ? [["probability", "number"]] : []), ["hops apart", "number"], ...(run.sides ? [] : [["common neighbours", "number"]]),
    ...(reasons ? [["because", "text"]] : []),
    ...(classes ? [["same class", "text"]] : []), ["", "text"]];
  const places = new Map();
  run.drawn.forEach((graph, number) => graph.ranks.forEach((rank, i) => {
    const ends = [graph.predicted[0][i], graph.predicted[1][i]];
    if (ends.every((v) => v >= 0)) places.set(rank, [number, ends]);
  }));
  fillTable("predictions-table", columns, run.predictions.map((row) => [
    row.rank, ...(several ? [row.graph] : []), row.source, row.target, fixed(row.score), ...(likely ? [chance(row.probability)] : []), row.hops, ...(run.sides ? [] : [row.common]),
    ...(reasons ? [row.because] : []),
    ...(classes ? [row.same_class === null ? null : row.same_class ? "yes" : "no"] : []),
    buttons(places.has(row.rank) ? showButton(row, places.get(row.rank)) : make("span", "not drawn"),
      ...(explained.has(row.rank) ? [whyButton(row)] : [])),
  ]));
  at("why").hidden = true;
  drawExpected(run);
  searchPredictions();
}

function buttons(...several) {
  const cell = make("span", null, { class: "controls" });
  cell.append(...several);
  return cell;
}

function showButton(row, [number, ends]) {
  const button = make("button", "Show", { type: "button", "aria-label": `Show ${row.source}${joining()}${row.target} in the graph` });
  button.addEventListener("click", () => {
    if (state.graph.number !== number) { at("graph-choice").value = number; showGraph(number); }
    state.pair = ends;
    state.node = -1;
    showNode(ends[0]);
    drawGraph();
    at("graph").scrollIntoView();
  });
  return button;
}

function searchPredictions() {
  const wanted = at("search").value.toLowerCase();
  let shown = 0;
  const rows = at("predictions-table").tBodies[0].rows;
  for (const row of rows) {
    const names = [...row.querySelectorAll("td.text")].slice(0, 2).map((cell) => cell.textContent.toLowerCase());
    row.hidden = Boolean(wanted) && !names.some((name) => name.includes(wanted));
    shown += !row.hidden;
  }
  say("search-count", `${whole(shown)} of ${whole(rows.length)} pairs`);
}

function fillDiagnostics(run) {
  const { kind, count, diagnostics, why } = run.anchors;
  say("diagnostics-note", kind === "none" ? "This model has no anchors."
    : `${many(count, kind === "sets" ? "set" : "anchor")}. ` + (why ? `No measures: ${why}.`
      : "Coverage: share of nodes within 3 hops of an anchor. Overlap: share of those that are within 3 hops of " +
        "several. Resolving: distinct distance vectors among all nodes (1: every node has a position of its own). " +
        "Symmetric pairs: anchors that message passing cannot tell apart. Other rules pick as many anchors."));
  at("diagnostics-table").parentElement.hidden = !diagnostics.length;
  fillTable("diagnostics-table", [["anchors", "text"], ["coverage", "number"], ["overlap", "number"],
    ["resolving", "number"], ["symmetric pairs", "number"]],
  diagnostics.map((row) => [row.rule, fixed(row.coverage, 3), fixed(row.overlap, 3), fixed(row.resolving, 3),
    fixed(row.symmetric_pairs, 0)]), (row) => row[0] === "this run");
  drawReach(run);
}

function fillRules(run) {
  const metrics = Object.keys(METRICS).filter((name) => run.rules.rows.some((row) => name in row));
  at("rules-table").parentElement.hidden = run.rules.why !== null;
  fillTable("rules-table", [["method", "text"], ["kind", "text"], ...metrics.map((name) => [METRICS[name], "number"])],
    run.rules.rows.map((row) => [row.name, row.kind, ...metrics.map((name) => fixed(row[name]))]),
    (row) => row[1] === "model");
  drawRules(run);
}

function fillComparison() {
  const found = report.comparison;
  at("comparison").hidden = !found;
  if (!found) return;
  say("comparison-note", `${found.graph}, ${found.task} task, mean over ${many(found.splits, "split")}, ` +
    "from psgnn compare; these are splits of their own, not that of this run.");
  fillTable("comparison-table", [["method", "text"], ["kind", "text"], ["AUC", "number"], ["± sd", "number"],
    ["average precision", "number"], ["seconds", "number"]],
  found.rows.map((row) => [row.name, row.kind, fixed(row.auc), fixed(row.sd), fixed(row.ap), fixed(row.seconds, 2)]));
}

function fillSettings(run) {
  const { text, typed } = run.command;
  say("command", text);
  say("command-note", typed ? "The command that trained this run:"
    : "The run was trained from Python. The same settings on the command line, with your file or dataset for GRAPH:");
  fillTable("settings-table", [["setting", "text"], ["value", "text"]],
    Object.entries(run.settings).map(([key, value]) => [key, value === null ? "-" : String(value)]));
  const more = { ...run.versions, "split (SHA-256)": run.split, "negatives": run.negatives, "seed": run.seed,
    "peak memory, MB": run.peak_memory_mb };
  fillTable("versions-table", [["what", "text"], ["value", "text"]], Object.entries(more));
}

function fillTraining(run) {
  const names = Object.keys(run.history);
  fillTable("training-table", names.map((name) => [METRICS[name] || name, "number"]),
    (run.history.epoch || []).map((_, i) => names.map((name) => (name === "epoch" ? run.history[name][i] : fixed(run.history[name][i])))));
}
