// The colour bar with its numbers, or the list of categories; and what the marks mean.
import { css, highlight, mapColor, palette, shortNumber, ticks } from "./colors";
import type { FieldInfo } from "./data";
import { el } from "./dom";
import type { Range } from "./runview";

const ramp = () => `linear-gradient(to right, ${Array.from({ length: 17 }, (_, i) => css(mapColor(i / 16))).join(",")})`;

// Round numbers on the bar, and how far apart contour lines are.
export function barTicks(range: Range): number[] {
  if (!range.log) return ticks(range.low, range.high, 4);
  const decades: number[] = [];
  for (let p = Math.ceil(Math.log10(range.low) - 1e-6); p <= Math.log10(range.high) + 1e-6; ++p) decades.push(10 ** p);
  return decades.length >= 2 ? decades : [range.low, range.high];
}

export function colorBar(field: FieldInfo, range: Range, beyond: boolean): HTMLElement[] {
  const unit = el("span", {}, field.unit ? ` [${field.unit.replace("^2", "²").replace("^3", "³")}]` : "");
  const scale = el("div", { class: "scale" }, el("div", { class: "ramp", style: `background:${ramp()}` }));
  const place = (v: number) =>
    range.log
      ? (Math.log10(v) - Math.log10(range.low)) / (Math.log10(range.high) - Math.log10(range.low))
      : (v - range.low) / (range.high - range.low);
  for (const v of barTicks(range)) {
    const at = range.high > range.low ? place(v) : 0;
    const shift = at < 0.06 ? "0" : at > 0.94 ? "-100%" : "-50%";
    scale.append(el("span", { class: "tick", style: `left:${100 * at}%;transform:translateX(${shift})` }, shortNumber(v)));
  }
  const out: HTMLElement[] = [el("h2", {}, field.label, unit), scale];
  if (beyond) out.push(el("div", { class: "over" }, `brightest: ${shortNumber(range.high)} and above`));
  return out;
}

const hatch = (k: number) => {
  const angle = [0, 45, 135, 0][k % 4];
  return k % 4 === 0
    ? "none"
    : `repeating-linear-gradient(${angle}deg, transparent 0 3px, rgb(0 0 0 / 28%) 3px 5px)`;
};

export function categoryList(field: FieldInfo, used: number[], picked: number, pick: (k: number) => void): HTMLElement[] {
  const list = el("div", { class: "categories" });
  for (const k of used) {
    const swatch = el("span", {
      class: "swatch",
      style: field.highlight
        ? `background:${k === 1 ? highlight.red : highlight.plain}`
        : `background:${hatch(k)},${palette[k % palette.length]}`,
    });
    list.append(
      el(
        "button",
        { type: "button", "aria-pressed": String(k === picked), click: () => pick(k === picked ? -1 : k) },
        swatch,
        field.names[k] ?? `${field.label} ${k}`,
      ),
    );
  }
  return [el("h2", {}, field.label), list];
}

export function markList(marks: { dynamic: number; idle: number; pins: number; fibres: boolean; sliding: number }): HTMLElement | null {
  const row = el("div", { class: "marks" });
  if (marks.dynamic) row.append(el("span", {}, el("i", { class: "dynamic" }), `${marks.dynamic} dynamic`));
  if (marks.idle) row.append(el("span", {}, el("i", { class: "idle" }), `${marks.idle} quasistatic`));
  if (marks.pins) row.append(el("span", {}, el("i", { class: "pin" }), "pinned"));
  if (marks.fibres) row.append(el("span", {}, el("i", { class: "fibre" }), "fibres"));
  if (marks.sliding) row.append(el("span", {}, el("i", { class: "dynamic" }), `${marks.sliding} on sharp features`));
  return row.childElementCount ? row : null;
}
