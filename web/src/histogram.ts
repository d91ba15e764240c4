// How many elements have which strain rate, in the step that is shown (adaptive rigidification). Rows have a
// column "rate_elastic/0.1" for the measured rates of elastic elements from 0.1 times the tolerance to the next
// column's number, and "rate_rigid/0.1" for the predicted ones of rigid elements.
import { shortNumber } from "./colors";
import type { Rows } from "./data";
import { el } from "./dom";

export interface HistogramSpec {
  t: ArrayLike<number>;
  from: number[]; // lower ends of the bins, in tolerances
  elastic: ArrayLike<number>[];
  rigid: ArrayLike<number>[];
}

export const isHistogram = (group: string) => group === "rate_elastic" || group === "rate_rigid";

export function histogramSpec(rows: Rows): HistogramSpec | null {
  const t = rows.get("t");
  const columns = (group: string) =>
    [...rows].filter(([name]) => name.startsWith(`${group}/`)).sort((a, b) => Number(a[0].split("/")[1]) - Number(b[0].split("/")[1]));
  const elastic = columns("rate_elastic");
  const rigid = columns("rate_rigid");
  if (!t || !elastic.length || elastic.length !== rigid.length) return null;
  return { t, from: elastic.map(([name]) => Number(name.split("/")[1])), elastic: elastic.map(([, v]) => v), rigid: rigid.map(([, v]) => v) };
}

// Bars with elastic elements below and rigid ones on top; heights are roots of counts, or the few that matter would not be seen.
export class Histogram {
  readonly box = el("div", { class: "plot histogram" });
  private readonly bars = el("div", { class: "bars", role: "img" });
  private shown = -1;

  constructor(private readonly spec: HistogramSpec) {
    const ends = el("div", { class: "ends" });
    for (const v of spec.from) ends.append(el("span", {}, v === 0 ? "0" : shortNumber(v, 2)));
    this.box.append(
      el("h3", {}, "Elements by strain rate", el("span", {}, " [tolerances]")),
      this.bars,
      ends,
      el("div", { class: "series" }, el("span", {}, el("i", { class: "elastic" }), "elastic, measured"), el("span", {}, el("i", { class: "rigid" }), "rigid, predicted")),
    );
  }

  follow(index: number) {
    if (index === this.shown) return;
    this.shown = index;
    const { from, elastic, rigid } = this.spec;
    const at = (v: ArrayLike<number>) => (Number.isFinite(v[index]) ? v[index] : 0);
    const most = Math.max(1, ...from.map((_, k) => at(elastic[k]) + at(rigid[k])));
    this.bars.replaceChildren(
      ...from.map((_, k) => {
        const [e, r] = [at(elastic[k]), at(rigid[k])];
        const height = 100 * Math.sqrt((e + r) / most);
        const part = (kind: string, n: number) => el("div", { class: kind, style: `height:${e + r > 0 ? (height * n) / (e + r) : 0}%` });
        return el("div", { title: `${e} elastic, ${r} rigid` }, part("rigid", r), part("elastic", e));
      }),
    );
    this.bars.setAttribute(
      "aria-label",
      `Elements by strain rate in tolerances: ${from.map((v, k) => `from ${shortNumber(v, 2)}: ${at(elastic[k])} elastic, ${at(rigid[k])} rigid`).join("; ")}`,
    );
  }
}
