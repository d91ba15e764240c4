// Plots over time with a line at the shown frame; a click goes there.
import uPlot from "uplot";
import { shortNumber } from "./colors";
import type { Rows } from "./data";
import { Histogram, type HistogramSpec, isHistogram } from "./histogram";

export interface Series {
  label: string;
  values: ArrayLike<number>;
}

export interface PlotSpec {
  title: string;
  unit: string;
  t: ArrayLike<number>;
  series: Series[];
}

const strokes = {
  light: ["#1f5fd0", "#b4470a", "#0c7d5a", "#8a3a8f", "#6b5b00", "#47525e", "#a51c3a"],
  dark: ["#86b4ff", "#ffa46b", "#5fd6a9", "#e39be6", "#e6cf5a", "#b4c0cc", "#ff8fa3"],
};
const dashes = [[], [7, 4], [2, 3], [9, 3, 2, 3], [12, 5], [4, 2], [1, 4]];

const groups: Record<string, { title: string; unit: string }> = {
  energy: { title: "Energy", unit: "J" },
  mode_energy: { title: "Energy of the modes", unit: "J" },
  liveliness: { title: "Liveliness", unit: "1/s" },
  activation: { title: "Activation of the fibres", unit: "" },
  torque: { title: "Torque of the motors", unit: "N m" },
  power: { title: "Power", unit: "W" },
  friction: { title: "Friction in the joints", unit: "N m" },
  reaction: { title: "Reactions", unit: "N" },
  moment: { title: "Moments of the reactions", unit: "N m" },
  unbalanced: { title: "Forces out of balance on free nodes", unit: "N" },
  joint_force: { title: "Forces of the joints", unit: "N" },
  contact_force: { title: "Contact forces", unit: "N" },
  phase: { title: "Time per step, by phase", unit: "ms" },
  dofs: { title: "Unknowns", unit: "" },
  full_share: { title: "Share of nodes in full space", unit: "" },
  iterations: { title: "Iterations", unit: "" },
  contacts: { title: "Contacts", unit: "" },
  residual: { title: "Residual", unit: "N" },
};
const order = ["energy", "activation", "torque", "power", "friction", "reaction", "moment", "joint_force", "contact_force", "unbalanced", "mode_energy", "liveliness", "full_share", "dofs", "phase", "contacts", "iterations", "residual"];
const maxSeries = 7;

const mean = (v: ArrayLike<number>) => {
  let sum = 0;
  let n = 0;
  for (let i = 0; i < v.length; ++i)
    if (Number.isFinite(v[i])) {
      sum += v[i];
      ++n;
    }
  return n ? sum / n : 0;
};

// Top-level phases ("assemble", not "assemble/gather"), longest first.
export function phases(rows: Rows): { name: string; values: Float32Array; mean: number }[] {
  return [...rows]
    .filter(([name]) => name.startsWith("phase/") && name.split("/").length === 2)
    .map(([name, values]) => ({ name: name.slice(6), values, mean: mean(values) }))
    .sort((a, b) => b.mean - a.mean);
}

// Sum over the columns, row by row.
export function total(columns: ArrayLike<number>[]): Float32Array {
  const out = new Float32Array(columns[0]?.length ?? 0);
  for (const c of columns) for (let i = 0; i < out.length; ++i) out[i] += Number.isFinite(c[i]) ? c[i] : 0;
  return out;
}

export function plotSpecs(rows: Rows): PlotSpec[] {
  const t = rows.get("t");
  if (!t || t.length === 0) return [];
  const byGroup = new Map<string, Series[]>();
  for (const [name, values] of rows) {
    if (name === "t" || name === "step") continue;
    const slash = name.indexOf("/");
    const group = slash < 0 ? name : name.slice(0, slash);
    if (group === "phase" || isHistogram(group)) continue;
    if (!groups[group] && slash < 0 && constant(values)) continue; // nothing to see
    if (!byGroup.has(group)) byGroup.set(group, []);
    byGroup.get(group)!.push({ label: (slash < 0 ? name : name.slice(slash + 1)).replaceAll("_", " "), values });
  }
  const energy = byGroup.get("energy");
  if (energy) fromStart(energy);
  if (energy && energy.length > 1 && !energy.some((s) => s.label === "total"))
    energy.unshift({ label: "total", values: total(energy.map((s) => s.values)) });
  const timed = phases(rows);
  if (timed.length) {
    const series: Series[] = timed.slice(0, maxSeries - 1).map((p) => ({ label: p.name, values: p.values }));
    if (timed.length > series.length)
      series.push({ label: "other", values: total(timed.slice(series.length).map((p) => p.values)) });
    byGroup.set("phase", series);
  }
  // A probe is called "tip: displacement [m]": its unit is in its name (with | for /), and it comes first.
  const probe = (g: string) => /^(.*: .*?)(?: \[(.*)\])?$/.exec(g);
  const rank = (g: string) => (probe(g) ? -1 : order.indexOf(g) < 0 ? order.length : order.indexOf(g));
  return [...byGroup]
    .filter(([group, series]) => !["contacts", "iterations", "residual"].includes(group) || !series.every((s) => constant(s.values)))
    .sort((a, b) => rank(a[0]) - rank(b[0]))
    .map(([group, series]) => ({
      title:
        (groups[group]?.title ?? probe(group)?.[1] ?? capital(group.replaceAll("_", " "))) +
        (series.length > maxSeries ? `, ${maxSeries} largest of ${series.length}` : ""),
      unit: groups[group]?.unit ?? probe(group)?.[2]?.replaceAll("|", "/") ?? "",
      t,
      series: largest(series),
    }));
}

// As many as fit, by their largest values, in their own order.
function largest(series: Series[]): Series[] {
  if (series.length <= maxSeries) return series;
  const size = (s: Series) => Array.prototype.reduce.call(s.values, (a, v) => Math.max(a as number, Math.abs(v as number) || 0), 0) as number;
  const least = series.map(size).sort((a, b) => b - a)[maxSeries - 1];
  return series.filter((s) => size(s) >= least).slice(0, maxSeries);
}

// The height that gravity's energy is counted from is arbitrary, and a large constant would flatten all curves.
function fromStart(energy: Series[]) {
  const gravity = energy.find((s) => s.label === "gravity");
  const start = gravity?.values[0] ?? 0;
  if (!gravity || !Number.isFinite(start) || start === 0) return;
  for (const s of energy)
    if (s === gravity || s.label === "total") s.values = Float32Array.from(s.values, (v) => v - start);
  gravity.label = "gravity since the start";
}

const capital = (s: string) => s.charAt(0).toUpperCase() + s.slice(1);

// Where a time axis ends: a step that the machine held up would flatten all others.
function peakCut(spec: PlotSpec): number | null {
  if (spec.unit !== "ms") return null;
  let usual = 0;
  let highest = 0;
  for (const s of spec.series) {
    const sorted = Array.from(s.values).filter(Number.isFinite).sort((a, b) => a - b);
    usual = Math.max(usual, sorted[Math.floor(0.98 * (sorted.length - 1))] ?? 0);
    highest = Math.max(highest, sorted[sorted.length - 1] ?? 0);
  }
  return usual > 0 && highest > 4 * usual ? 2 * usual : null;
}

function constant(v: ArrayLike<number>) {
  for (let i = 1; i < v.length; ++i) if (v[i] !== v[0]) return false;
  return true;
}

interface Plot {
  spec: PlotSpec;
  chart: uPlot;
  line: HTMLElement;
  values: HTMLElement[];
}

export class Plots {
  private plots: Plot[] = [];
  private specs: PlotSpec[] = [];
  private dark = false;
  private time = 0;
  private histogram: { spec: HistogramSpec; view: Histogram } | null = null;
  onSeek: (t: number) => void = () => {};

  constructor(private readonly host: HTMLElement) {
    new ResizeObserver(() => this.resize()).observe(host);
  }

  set(specs: PlotSpec[], dark: boolean, histogram: HistogramSpec | null = this.histogram?.spec ?? null) {
    this.specs = specs;
    this.dark = dark;
    for (const p of this.plots) p.chart.destroy();
    this.host.replaceChildren();
    this.plots = [];
    if (!specs.length) {
      const empty = document.createElement("p");
      empty.className = "hint";
      empty.textContent = "The recording has no rows to plot.";
      this.host.append(empty);
    }
    this.histogram = histogram ? { spec: histogram, view: new Histogram(histogram) } : null;
    if (this.histogram) this.host.append(this.histogram.view.box);
    for (const spec of specs) this.plots.push(this.make(spec));
    this.follow(this.time);
  }

  setLook(dark: boolean) {
    if (dark !== this.dark) this.set(this.specs, dark);
  }

  private make(spec: PlotSpec): Plot {
    const box = document.createElement("div");
    box.className = "plot";
    const title = document.createElement("h3");
    title.textContent = spec.title;
    const cut = peakCut(spec);
    if (spec.unit) {
      const unit = document.createElement("span");
      unit.textContent = ` [${spec.unit}]${cut === null ? "" : ", peaks cut off"}`;
      title.append(unit);
    }
    const area = document.createElement("div");
    area.setAttribute("role", "img");
    area.setAttribute(
      "aria-label",
      `${spec.title} over time: ${spec.series.map((s) => `${s.label} from ${shortNumber(s.values[0])} to ${shortNumber(s.values[s.values.length - 1])}`).join(", ")}`,
    );
    const legend = document.createElement("div");
    legend.className = "series";
    box.append(title, area, legend);
    this.host.append(box);

    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--soft").trim();
    const grid = { stroke: style.getPropertyValue("--line").trim(), width: 1 };
    const colors = this.dark ? strokes.dark : strokes.light;
    const axis = { stroke: ink, grid, ticks: { ...grid, size: 4 }, font: "11px system-ui, sans-serif" };
    const values: HTMLElement[] = [];
    const chart = new uPlot(
      {
        width: Math.max(200, this.host.clientWidth - 36),
        height: 132,
        padding: [8, 16, 0, 0],
        legend: { show: false },
        scales: { x: { time: false }, y: cut === null ? {} : { range: [0, cut] } },
        cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
        axes: [
          { ...axis, size: 26, values: (_u, v) => v.map((x) => `${shortNumber(x)} s`), space: 70 },
          { ...axis, size: 54, values: (_u, v) => v.map((x) => shortNumber(x)), space: 28 },
        ],
        series: [
          {},
          ...spec.series.map((s, k) => ({
            label: s.label,
            stroke: colors[k % colors.length],
            width: 1.6,
            dash: dashes[k % dashes.length],
            points: { show: false },
            spanGaps: true,
          })),
        ],
        hooks: {
          setCursor: [(u: uPlot) => this.writeValues(spec, values, u.cursor.idx ?? null)],
        },
      },
      // Steps that were not measured are gaps.
      [spec.t, ...spec.series.map((s) => Array.from(s.values, (v) => (Number.isFinite(v) ? v : null)))] as unknown as uPlot.AlignedData,
      area,
    );
    spec.series.forEach((s, k) => {
      const item = document.createElement("span");
      item.innerHTML = `<svg viewBox="0 0 24 8" aria-hidden="true"><path d="M0 4h24" stroke="${colors[k % colors.length]}" stroke-width="2.2" stroke-linecap="butt" stroke-dasharray="${dashes[k % dashes.length].join(" ")}"/></svg>`;
      const value = document.createElement("b");
      item.append(s.label, value);
      values.push(value);
      legend.append(item);
    });
    const line = document.createElement("div");
    line.className = "now";
    chart.over.append(line);
    chart.over.addEventListener("click", (e) => {
      const x = e.clientX - chart.over.getBoundingClientRect().left;
      this.onSeek(chart.posToVal(x, "x"));
    });
    chart.over.addEventListener("pointerleave", () => this.follow(this.time));
    return { spec, chart, line, values };
  }

  private writeValues(spec: PlotSpec, targets: HTMLElement[], index: number | null) {
    if (index === null) return;
    spec.series.forEach((s, k) => {
      if (targets[k]) targets[k].textContent = shortNumber(known(s.values, index));
    });
  }

  // Moves the line to time t.
  follow(t: number) {
    this.time = t;
    this.histogram?.view.follow(nearest(this.histogram.spec.t, t));
    for (const p of this.plots) {
      p.line.style.left = `${p.chart.valToPos(t, "x") - 1}px`;
      if (p.chart.cursor.left === undefined || p.chart.cursor.left < 0)
        this.writeValues(p.spec, p.values, nearest(p.spec.t, t));
    }
  }

  resize() {
    const width = this.host.clientWidth - 36;
    if (width < 100) return;
    for (const p of this.plots) if (Math.abs(p.chart.width - width) > 1) p.chart.setSize({ width, height: 132 });
    this.follow(this.time);
  }
}

// The last number that was measured at or before `index`.
function known(values: ArrayLike<number>, index: number) {
  while (index > 0 && !Number.isFinite(values[index])) --index;
  return values[index];
}

function nearest(t: ArrayLike<number>, x: number) {
  let low = 0;
  let high = t.length - 1;
  while (high - low > 1) {
    const mid = (low + high) >> 1;
    if (t[mid] <= x) low = mid;
    else high = mid;
  }
  return x - t[low] < t[high] - x ? low : high;
}
