// What is known of the run, as lists; and the costs of several runs as a table.
import { shortNumber } from "./colors";
import type { CompareManifest, Run } from "./data";
import { el } from "./dom";
import { phases, total } from "./plots";

type Fact = [string, string];

function text(value: unknown): string {
  if (value === null || value === undefined) return "–";
  if (typeof value === "number") return Number.isInteger(value) ? value.toLocaleString("en") : shortNumber(value, 4);
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return value.length > 12 ? `${value.length} values` : value.map(text).join(", ");
  if (typeof value === "object") return JSON.stringify(value);
  return String(value);
}

// Nested objects become "outer inner".
function entries(object: Record<string, unknown> | null | undefined, prefix = ""): Fact[] {
  const out: Fact[] = [];
  for (const [name, value] of Object.entries(object ?? {})) {
    const label = (prefix ? `${prefix} ` : "") + name.replaceAll("_", " ");
    if (value && typeof value === "object" && !Array.isArray(value)) out.push(...entries(value as Record<string, unknown>, label));
    else out.push([label, text(value)]);
  }
  return out;
}

function list(title: string, facts: Fact[]): HTMLElement[] {
  if (!facts.length) return [];
  const dl = el("dl");
  for (const [name, value] of facts) dl.append(el("dt", {}, name), el("dd", {}, value));
  return [el("h3", {}, title), dl];
}

const percentile = (sorted: Float32Array, p: number) => sorted[Math.min(sorted.length - 1, Math.floor(p * sorted.length))];

export function timePerStep(run: Run): Fact[] {
  const timed = phases(run.rows);
  if (!timed.length) return [];
  const all = total(timed.map((p) => p.values));
  const sorted = all.slice().sort();
  const mean = all.reduce((a, b) => a + b, 0) / all.length;
  const ms = (v: number) => `${shortNumber(v)} ms`;
  const facts: Fact[] = [["mean", ms(mean)], ["95 % below", ms(percentile(sorted, 0.95))], ["longest", ms(sorted[sorted.length - 1])]];
  for (const p of timed) facts.push([p.name, `${ms(p.mean)} (${Math.round((100 * p.mean) / mean)} %)`]);
  return facts;
}

export function factsOf(run: Run): HTMLElement[] {
  const m = run.manifest;
  const out: HTMLElement[] = [];
  if (m.description) out.push(el("p", { class: "about" }, m.description));
  const steps = m.steps.length ? m.steps[m.steps.length - 1] : 0;
  out.push(
    ...list("Run", [
      ["scene", m.scene || "–"],
      ["method", m.method || "–"],
      ["time step", `${shortNumber(m.h)} s`],
      ["steps", steps.toLocaleString("en")],
      ["frames", `${m.times.length}${m.every > 1 ? ` of ${m.recordedFrames}` : ""}`],
      ["state", m.finished ? "finished" : "not finished"],
      ["limber", m.version],
    ]),
    ...list("Method parameters", entries(m.parameters)),
  );
  const last = m.epochs[m.epochs.length - 1];
  const shown = new Set(["nodes", "elements", "bodies", "links", "joints", "joint velocities", "loops", "gears"]);
  if (last) {
    // Links are drawn with nodes and triangles that nothing computes with: their own numbers say more.
    const { links, nodes, elements } = (m.facts ?? {}) as Record<string, number | undefined>;
    const sizes: Fact[] = [];
    const count = (name: string, value: unknown) => sizes.push([name, text(value)]);
    if (!links) {
      count("nodes", last.totalNodes);
      count(last.plane ? "triangles" : "tetrahedra", last.totalElements);
      count("surface triangles", last.triangles);
    } else if (nodes) {
      count("nodes", nodes);
      count(last.totalElements ? "tetrahedra" : "triangles", last.totalElements || elements);
    }
    for (const name of ["links", "joints", "joint velocities", "loops", "gears"]) if (m.facts?.[name]) count(name, m.facts[name]);
    const parts = last.bodies.map((b) => b.name);
    if (parts.length <= 12) count(links ? "parts" : "bodies", parts.join(", ") || "–");
    if (m.obstacles.length) sizes.push(["obstacles", m.obstacles.map((o) => o.name || o.shape).join(", ")]);
    if (m.epochs.length > 1) sizes.push(["topology changes", String(m.epochs.length - 1)]);
    out.push(...list("Sizes", sizes));
  }
  out.push(...list("Time per step", timePerStep(run)), ...list("Summary", entries(m.summary)), ...list("More", entries(m.facts).filter(([name]) => !shown.has(name))));
  if (last)
    out.push(
      ...list("This page", [
        ["positions", `within ${shortNumber(m.error)} m of the recording, in each coordinate`],
        ["inside", last.inside ? "included: a cut shows it" : last.plane ? "a plane body" : "left out to keep the page small"],
      ]),
    );
  return out;
}

export function comparison(compare: CompareManifest, labels: string[]): HTMLElement[] {
  const distance = el("table");
  distance.append(el("tr", {}, ...["distance to reference", "largest [m]", "at [s]", "at node", "RMS, largest [m]"].map((h) => el("th", {}, h))));
  for (const r of compare.runs)
    distance.append(
      el(
        "tr",
        {},
        ...[labels[r.run], shortNumber(r.worst.max, 4), shortNumber(r.worst.t, 4), String(r.worst.node), shortNumber(r.rms.reduce((a, b) => Math.max(a, b), 0), 4)].map((c) => el("td", {}, c)),
      ),
    );
  const costs = el("table");
  // A column for each run: the panel is narrow.
  compare.costs.columns.forEach((name, k) => {
    const cells = compare.costs.rows.map((row) => row[k]).map((c) => (typeof c === "number" ? shortNumber(c, 4) : c));
    costs.append(el("tr", {}, el(k ? "td" : "th", {}, k ? name : ""), ...cells.map((c) => el(k ? "td" : "th", {}, c))));
  });
  // At a glance: how much faster, and what it keeps of the motion.
  const column = (name: string) => compare.costs.columns.findIndex((c) => c.startsWith(name));
  const glance = compare.costs.rows.flatMap((row, k) => {
    if (k === compare.reference) return [];
    const number = (name: string) => (typeof row[column(name)] === "number" ? (row[column(name)] as number) : NaN);
    const faster = number("times faster");
    const parts = [
      Number.isFinite(faster) ? (faster >= 1 ? `${shortNumber(faster, 2)} times faster` : `${shortNumber(1 / faster, 2)} times slower`) : "",
      Number.isFinite(number("amplitude [%")) ? `${shortNumber(number("amplitude [%"), 3)} % of the amplitude` : "",
      Number.isFinite(number("energy change")) ? `energy ${number("energy change") > 0 ? "+" : ""}${shortNumber(number("energy change"), 2)} %` : "",
      Number.isFinite(number("largest distance")) ? `never farther than ${shortNumber(number("largest distance"), 2)} % of the size` : "",
    ].filter(Boolean);
    return [el("p", { class: "about" }, el("b", {}, `${labels[k]}: `), parts.join(", "))];
  });
  return [
    ...glance,
    el("p", { class: "hint" }, `Reference: ${labels[compare.reference]}. Faster: by simulated time. Energy: change of the total, of the largest kinetic energy. Amplitude: of the node that swings most there, in the second half.`),
    el("div", { class: "table" }, distance),
    el("h3", {}, "Costs"),
    el("div", { class: "table" }, costs),
  ];
}
