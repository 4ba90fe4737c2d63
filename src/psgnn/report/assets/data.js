// The summary, unpacked; and small things that every part uses.

const KINDS = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f4: Float32Array };

function unpack(value) {
  if (Array.isArray(value)) return value.map(unpack);
  if (value === null || typeof value !== "object") return value;
  if (value.packed) {
    const text = atob(value.bytes);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    const raw = new KINDS[value.packed](bytes.buffer);
    const flat = value.packed === "f4" || value.low === 0 ? raw : Int32Array.from(raw, (each) => each + value.low);
    if (value.shape.length === 1) return flat;
    const width = value.shape[1];
    return Array.from({ length: value.shape[0] }, (_, row) => flat.subarray(row * width, (row + 1) * width));
  }
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, unpack(each)]));
}

const report = unpack(JSON.parse(document.getElementById("data").textContent));
const at = (id) => document.getElementById(id);

// An element with text in it: never HTML, whatever the text is.
function make(tag, text, options = {}) {
  const element = document.createElement(tag);
  if (text !== undefined && text !== null) element.textContent = String(text);
  for (const [key, value] of Object.entries(options)) element.setAttribute(key, value);
  return element;
}

// Text for plotly.js, which reads some HTML in its labels.
const plainLabel = (text) =>
  String(text).replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);

const say = (id, text) => { at(id).textContent = text; };
const whole = (number) => Number(number).toLocaleString("en");
const fixed = (number, digits = 4) => (number === null || number === undefined ? "-" : Number(number).toFixed(digits));
const percent = (share) => `${(100 * share).toFixed(1)}%`;
const many = (count, one, several) => `${whole(count)} ${count === 1 ? one : several || `${one}s`}`;

// Okabe and Ito's colours, safe for the colour-blind; a symbol tells those apart that share one.
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c8c8c"];
const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "cross", "x", "pentagon"];
const MARKS = ["●", "■", "◆", "▲", "✚", "✖", "⬟"];
const groupColour = (group) => (group < 0 ? "#bbbbbb" : COLOURS[group % COLOURS.length]);
const groupPlace = (group) => (group < 0 ? 0 : Math.floor(group / COLOURS.length) % SYMBOLS.length);

// A link or a path in words: arrows where links have directions.
const ARROWS = { "->": " → ", "<-": " ← ", "<->": " ↔ ", "-": " – " };
const METRICS = { auc: "AUC", auc_pooled: "AUC, pooled", ap: "average precision", mrr: "MRR, pooled", "hits@20": "Hits@20, pooled" };
const PER_NODE = [["mrr_per_node", "test MRR per node"], ["recall@20_per_node", "test recall@20 per node"]];
const POSITIVE = { link: ["links", "non-links"], pair: ["same class", "different class"] };
