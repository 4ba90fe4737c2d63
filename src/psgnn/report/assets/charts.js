// Charts of numbers: curves, bars, histograms.

const CONFIG = { displaylogo: false, responsive: true, modeBarButtonsToRemove: ["lasso2d", "select2d", "toggleSpikelines"] };

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function layout(extra = {}) {
  const axis = { gridcolor: style("--plot-grid"), zerolinecolor: style("--plot-grid"), linecolor: style("--line"),
    automargin: true };
  const { xaxis, yaxis, ...rest } = extra;
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: style("--ink"), size: 13, family: "system-ui, sans-serif" },
    margin: { l: 56, r: 20, t: 16, b: 48 },
    legend: { orientation: "h", y: 1.12, x: 0 },
    hoverlabel: { bgcolor: style("--panel"), font: { color: style("--ink") } },
    xaxis: { ...axis, ...xaxis }, yaxis: { ...axis, ...yaxis }, ...rest,
  };
}

function draw(id, traces, extra, description) {
  at(id).setAttribute("aria-label", description);
  return Plotly.react(at(id), traces, layout(extra), CONFIG);
}

function headline(run) {
  return ["auc", "hits@20", "mrr"].find((name) => run.history[name]) || null;
}

// Loss and validation metric by epoch; `epoch` is where the slider stands.
function drawTraining(run, epoch) {
  const curve = run.history;
  const epochs = curve.epoch || [];
  if (!epochs.length) {
    say("training-caption", "This run has no history of training.");
    at("training-plot").hidden = true;
    return;
  }
  at("training-plot").hidden = false;
  const metric = headline(run);
  const title = METRICS[metric] || metric;
  const mode = epochs.length > 60 ? "lines" : "lines+markers";
  const traces = [
    { x: epochs, y: curve.loss, name: "training loss", mode, line: { color: COLOURS[1], dash: "dot" },
      marker: { symbol: "square", size: 5 }, yaxis: "y2", hovertemplate: "epoch %{x}: loss %{y:.4f}<extra></extra>" },
  ];
  if (metric) {
    traces.push({ x: epochs, y: curve[metric], name: `validation ${title}`, mode, line: { color: COLOURS[0] },
      marker: { size: 5 }, hovertemplate: `epoch %{x}: ${title} %{y:.4f}<extra></extra>` });
    const kept = epochs.indexOf(run.best_epoch);
    if (kept >= 0) {
      traces.push({ x: [run.best_epoch], y: [curve[metric][kept]], name: "epoch that was kept", mode: "markers",
        marker: { color: COLOURS[0], size: 13, symbol: "star", line: { color: style("--ink"), width: 1 } },
        hovertemplate: "kept: epoch %{x}, %{y:.4f}<extra></extra>" });
    }
  }
  const shapes = epoch === null ? [] : [{ type: "line", x0: epoch, x1: epoch, yref: "paper", y0: 0, y1: 1,
    line: { color: style("--soft"), width: 1.5, dash: "dash" } }];
  const extra = { shapes, xaxis: { title: { text: "epoch" } }, yaxis: { title: { text: `validation ${title}` } },
    yaxis2: { title: { text: "loss" }, overlaying: "y", side: "right", rangemode: "tozero", showgrid: false, tickmode: "auto",
      automargin: true }, margin: { l: 60, r: 60, t: 16, b: 48 } };
  const last = epochs.length - 1;
  const values = metric ? curve[metric] : [];
  const text = `Training loss from ${fixed(curve.loss[0], 3)} to ${fixed(curve.loss[last], 3)} in ` +
    `${whole(epochs[last])} epochs` + (metric ? `; best validation ${title} ${fixed(Math.max(...values))}, ` +
    `epoch ${run.best_epoch} was kept.` : ".");
  say("training-caption", text + (epoch === null ? "" : ` The dashed line is where the slider stands: epoch ${epoch}.`));
  draw("training-plot", traces, extra, text);
}

function drawRules(run) {
  const rules = run.rules;
  const hidden = rules.why !== null;
  at("rules-plot").hidden = hidden;
  if (hidden) {
    say("rules-note", `No comparison: ${rules.why}.`);
    say("rules-caption", "");
    return;
  }
  const rows = [...rules.rows].reverse();
  const best = rules.rows.find((row) => row.kind === "rule");
  say("rules-note", `Training-free rules see the same graph and score the same ${whole(rules.pairs)} test pairs` +
    (rules.whole ? "" : " (a random part of all)") + ": what a model has to beat.");
  const traces = ["rule", "model"].map((kind, i) => {
    const own = rows.filter((row) => row.kind === kind);
    return { mode: "markers+text", name: kind === "rule" ? "training-free rule" : "this run",
      x: own.map((row) => row.auc), y: own.map((row) => plainLabel(row.name)), cliponaxis: false,
      marker: { color: i ? COLOURS[0] : COLOURS[1], symbol: i ? "circle" : "diamond", size: 12 },
      text: own.map((row) => fixed(row.auc, 3)), textposition: own.map((row) => (row.auc > 0.6 ? "middle left" : "middle right")),
      hovertemplate: "%{y}: AUC %{x:.4f}<extra></extra>" };
  });
  const least = Math.min(...rows.map((row) => row.auc));
  const text = `Test AUC: this run ${fixed(rules.rows.find((row) => row.name === "this run").auc)}, ` +
    `best rule ${best.name} ${fixed(best.auc)}.`;
  say("rules-caption", text);
  draw("rules-plot", traces, { margin: { l: 170, r: 20, t: 16, b: 48 },
    xaxis: { title: { text: "test AUC (0.5 is chance)" }, range: [Math.max(0, Math.min(0.5, least) - 0.05), 1.01] },
    yaxis: { categoryorder: "array", categoryarray: rows.map((row) => plainLabel(row.name)) } }, text);
}

function drawScores(run) {
  const scores = run.scores;
  const hidden = scores.why !== null;
  for (const id of ["scores-plot", "scores-details", "reliability-plot"]) at(id).hidden = hidden;
  if (hidden) {
    say("scores-note", `No histogram: ${scores.why}.`);
    say("scores-caption", "");
    say("reliability-caption", "");
    return;
  }
  drawReliability(run);
  const [yes, no] = POSITIVE[run.task];
  say("scores-note", "The further the two hills are apart, the better the model tells the pairs from one another. " +
    "Higher scores mean more likely; the few beyond the ends are counted in the last bins.");
  const edges = Array.from(scores.edges);
  const middle = edges.slice(1).map((edge, i) => (edge + edges[i]) / 2);
  const width = edges[1] - edges[0];
  const bars = (counts, name, colour) => ({ type: "bar", x: middle, y: Array.from(counts), width, name,
    marker: { color: colour, opacity: 0.65, line: { color: style("--ground"), width: 0.5 } },
    hovertemplate: `%{y} ${name} around %{x:.2f}<extra></extra>` });
  const sum = (counts) => counts.reduce((a, b) => a + b, 0);
  const text = `Scores of ${whole(sum(scores.positives))} ${yes} and ${whole(sum(scores.negatives))} ${no} ` +
    `of the test pairs, from ${fixed(edges[0], 2)} to ${fixed(edges[edges.length - 1], 2)}.`;
  say("scores-caption", text);
  draw("scores-plot", [bars(scores.positives, yes, COLOURS[0]), bars(scores.negatives, no, COLOURS[1])],
    { barmode: "overlay", bargap: 0, xaxis: { title: { text: "score" } }, yaxis: { title: { text: "pairs" } } }, text);
  fillTable("scores-table", [["from", "number"], ["to", "number"], [yes, "number"], [no, "number"]],
    middle.map((_, i) => [fixed(edges[i], 3), fixed(edges[i + 1], 3), scores.positives[i], scores.negatives[i]]));
}

// How often pairs of a probability are what they are said to be.
function drawReliability(run) {
  const [yes, no] = POSITIVE[run.task];
  const { probability, share, pairs, error } = run.scores.reliability;
  const text = `The score as a chance among as many ${yes} as ${no}, and the share of ${yes} at that chance. ` +
    `On the dashed line both agree; they are ${fixed(error, 3)} apart on average.` +
    (run.task === "link" ? " Missing links are much rarer: their probabilities are among the predictions." : "");
  say("reliability-caption", text);
  draw("reliability-plot", [
    { mode: "lines", x: [0, 1], y: [0, 1], hoverinfo: "skip", showlegend: false,
      line: { dash: "dash", color: style("--line") } },
    { mode: "lines+markers", x: Array.from(probability), y: Array.from(share), name: "this run", cliponaxis: false,
      customdata: Array.from(pairs), marker: { color: COLOURS[0], size: 9 }, line: { color: COLOURS[0] }, showlegend: false,
      hovertemplate: "probability %{x:.2f}: %{y:.2f} of %{customdata} pairs<extra></extra>" },
  ], { xaxis: { title: { text: "chance that the score gives" }, range: [0, 1] },
    yaxis: { title: { text: `share of ${yes}` }, range: [0, 1.02] } }, text);
}

function drawReach(run) {
  const { reached, unreached, kind } = run.anchors;
  at("reach-plot").hidden = kind === "none";
  say("reach-caption", "");
  if (kind === "none") return;
  const x = reached.map((_, hops) => String(hops)).concat(unreached ? ["none"] : []);
  if (reached.length === 20) x[19] = "19+";
  const y = reached.concat(unreached ? [unreached] : []);
  const text = `Nodes by hops to the nearest anchor: ${y.map((count, i) => `${x[i]}: ${whole(count)}`).join(", ")}.`;
  say("reach-caption", text);
  draw("reach-plot", [{ type: "bar", x, y, marker: { color: COLOURS[0] },
    hovertemplate: "%{x} hops: %{y} nodes<extra></extra>" }],
  { xaxis: { title: { text: "hops to the nearest anchor" }, type: "category" }, yaxis: { title: { text: "nodes" } } }, text);
}

function drawRuns() {
  const traces = report.runs.map((run, i) => {
    const metric = headline(run);
    return { x: run.history.epoch || [], y: metric ? run.history[metric] : [], mode: "lines",
      name: plainLabel(run.name), line: { color: COLOURS[i % COLOURS.length],
        dash: ["solid", "dash", "dot", "dashdot"][Math.floor(i / COLOURS.length) % 4] },
      hovertemplate: "epoch %{x}: %{y:.4f}" };
  });
  const text = `Validation curves of ${report.runs.length} runs.`;
  say("runs-caption", text);
  draw("runs-plot", traces, { xaxis: { title: { text: "epoch" } }, yaxis: { title: { text: "validation metric" } } }, text);
}
