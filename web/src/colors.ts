// Colours: one perceptual map for numbers, one palette for categories, and round ticks for the bar.
// limber/view/color.cpp computes the same map for pictures.

// OKLab to sRGB, both 0..1 (Ottosson's matrices).
function oklch(L: number, C: number, h: number): [number, number, number] {
  const a = C * Math.cos(h);
  const b = C * Math.sin(h);
  const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
}

const gamma = (v: number) => (v <= 0.0031308 ? 12.92 * v : 1.055 * v ** (1 / 2.4) - 0.055);

// From dark violet through teal to light yellow: lightness grows evenly, so that order is visible without hue.
export function sequential(t: number): [number, number, number] {
  const L = 0.3 + 0.63 * t;
  const h = ((300 - 195 * t) * Math.PI) / 180;
  let low = 0;
  let high = 0.14;
  for (let k = 0; k < 20; ++k) {
    const mid = (low + high) / 2;
    const inside = oklch(L, mid, h).every((v) => v >= 0 && v <= 1);
    if (inside) low = mid;
    else high = mid;
  }
  return oklch(L, low, h).map((v) => gamma(Math.min(1, Math.max(0, v)))) as [number, number, number];
}

const mixed = (stops: [number, number, number][]) => (t: number) => {
  const at = Math.min(stops.length - 1.000001, Math.max(0, t * (stops.length - 1)));
  const k = Math.floor(at);
  return [0, 1, 2].map((d) => stops[k][d] + (at - k) * (stops[k + 1][d] - stops[k][d])) as [number, number, number];
};

// Maps for numbers, by name; the first is the one of pictures (`limber render`).
export const maps: Record<string, (t: number) => [number, number, number]> = {
  even: sequential,
  grey: (t) => [0.1 + 0.85 * t, 0.1 + 0.85 * t, 0.1 + 0.85 * t],
  heat: mixed([[0.05, 0.02, 0.1], [0.45, 0.06, 0.25], [0.85, 0.2, 0.13], [0.98, 0.6, 0.1], [1, 0.96, 0.75]]),
  "blue-red": mixed([[0.13, 0.27, 0.62], [0.45, 0.65, 0.88], [0.93, 0.93, 0.92], [0.92, 0.55, 0.42], [0.62, 0.08, 0.14]]),
  rainbow: mixed([[0.19, 0.07, 0.55], [0.1, 0.55, 0.9], [0.15, 0.8, 0.45], [0.95, 0.85, 0.2], [0.95, 0.35, 0.1], [0.55, 0.03, 0.05]]),
};
let chosen = "even";
export const mapName = () => chosen;
export function chooseMap(name: string) {
  if (maps[name]) chosen = name;
}
export const mapColor = (t: number) => maps[chosen](t);

export const palette = ["#e69f00", "#56b4e9", "#009e73", "#f0e442", "#4f7fd9", "#d55e00", "#cc79a7", "#9aa5b1"];

export const highlight = { plain: "#c9b8a3", red: "#d7261e" };

export const mapSize = 256;

// 8-bit RGBA of the map; the second row holds the palette.
export function colorTable(): Uint8Array {
  const out = new Uint8Array(mapSize * 2 * 4);
  for (let i = 0; i < mapSize; ++i) {
    const rgb = mapColor(i / (mapSize - 1));
    for (let d = 0; d < 3; ++d) out[4 * i + d] = Math.round(255 * rgb[d]);
    out[4 * i + 3] = 255;
    const hex = palette[i % palette.length];
    for (let d = 0; d < 3; ++d) out[4 * (mapSize + i) + d] = parseInt(hex.slice(1 + 2 * d, 3 + 2 * d), 16);
    out[4 * (mapSize + i) + 3] = 255;
  }
  return out;
}

export function css(rgb: [number, number, number]) {
  return `rgb(${rgb.map((v) => Math.round(255 * v)).join(",")})`;
}

// A number with few digits: 0.0123, 4.56, 1.2e6.
export function shortNumber(v: number, digits = 3): string {
  if (!Number.isFinite(v)) return "–";
  if (v === 0) return "0";
  const a = Math.abs(v);
  if (a < 1e-3 || a >= 1e5) return v.toExponential(digits - 1).replace("e+", "e").replace(/\.?0+e/, "e");
  return String(+v.toPrecision(digits));
}

// Round numbers between low and high, about `count` of them.
export function ticks(low: number, high: number, count: number): number[] {
  if (!(high > low)) return [low];
  const raw = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw)!;
  const out: number[] = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; ++k) out.push(+(k * step).toPrecision(12));
  return out;
}
