// Reads what limber/view/page_data.cpp writes: a manifest and blocks of deflated bytes.
import { Skin } from "./skin";

export interface FieldInfo {
  id: string;
  label: string;
  unit: string;
  per: "node" | "element";
  constant: boolean;
  categories: boolean;
  names: string[];
  highlight?: boolean; // 0 and 1: what is 1 is drawn in red, the rest as without a colour
}

export interface ArrayLayout {
  name: string;
  type: "f32" | "i32" | "z32";
  count: number;
}

// A surface that a body carries, shown in its place.
export interface SurfaceManifest {
  body: string;
  smooth: number; // groups of corners that share a normal
  materials: { name: string; color: [number, number, number]; image?: string }[];
  pieces: { first: number; count: number; material: number }[]; // of corners
}

// Motions that the method names (modes of vibration), as if each were a frame of positions.
interface ShapesManifest extends CodedManifest {
  names: string[];
  levels: number;
  block: string;
}

export interface EpochManifest {
  topology: number;
  step: number;
  totalNodes: number;
  totalElements: number;
  nodes: number;
  surfaceNodes: number;
  elements: number;
  triangles: number;
  inside: boolean;
  functions: number; // of a reduced method; 0: it is none
  plane: boolean;
  origin: [number, number, number];
  bodies: { name: string; begin: number; end: number }[];
  surfaces?: SurfaceManifest[];
  fields: FieldInfo[];
  shapes?: ShapesManifest;
  block: string;
  layout: ArrayLayout[];
}

interface CodedManifest {
  order: number;
  spatial: boolean;
  planes: number;
}

interface GroupField extends CodedManifest {
  id: string;
  same?: boolean; // in all frames of the group, and there once
  per: "node" | "element";
  map: "exact" | "root" | "linear";
  low: number;
  range: number;
  levels: number;
}

interface GroupManifest {
  epoch: number;
  first: number;
  count: number;
  block: string;
  low: [number, number, number]; // bounding box of all its frames [m]
  high: [number, number, number];
  x?: CodedManifest; // positions
  u?: { velocity: boolean }; // or coordinates of the epoch's functions, and of velocities
  fields: GroupField[];
}

export interface ObstacleManifest {
  name: string;
  shape: "plane" | "sphere" | "capsule" | "box" | "mesh";
  point: [number, number, number];
  radius: number;
  end?: [number, number, number];
  normal?: [number, number, number];
  size?: [number, number, number];
  nodes?: number[];
  triangles?: number[];
}

export interface RunManifest {
  label?: string;
  scene: string;
  description: string;
  method: string;
  version: string;
  h: number;
  end: number;
  gravity: [number, number, number];
  parameters: Record<string, unknown> | null;
  facts: Record<string, unknown> | null;
  summary: Record<string, unknown> | null;
  finished: boolean;
  obstacles: ObstacleManifest[];
  epochs: EpochManifest[];
  groups: GroupManifest[];
  times: number[];
  steps: number[];
  poses: number[][];
  quantum: number;
  error: number;
  every: number;
  recordedFrames: number;
  notices: string[];
  rows: { block: string; layout: ArrayLayout[]; every: number };
}

export interface CompareManifest {
  reference: number;
  runs: { run: number; t: number[]; max: number[]; rms: number[]; worst: { max: number; t: number; node: number } }[];
  costs: { columns: string[]; rows: (string | number)[][] };
}

export interface Manifest {
  format: number;
  mode: "run" | "compare" | "live" | "hold" | "failed";
  generator: string;
  title: string;
  failure?: string;
  runs: RunManifest[];
  compare?: CompareManifest;
}

export class DamagedData extends Error {}

export type BlockSource = (id: string) => Promise<Uint8Array>;

// A block of the page itself: base64 text in a <script id="limber-ID">, then zlib.
export async function embeddedBlock(id: string): Promise<Uint8Array> {
  const element = document.getElementById(`limber-${id}`);
  if (!element) throw new DamagedData(`block ${id} is missing`);
  return inflate(id, fromBase64(id, element.textContent ?? ""));
}

export function fromBase64(id: string, text: string): Uint8Array {
  let binary: string;
  try {
    binary = atob(text.trim());
  } catch {
    throw new DamagedData(`block ${id} is not base64`);
  }
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; ++i) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

export async function inflate(id: string, bytes: Uint8Array): Promise<Uint8Array> {
  try {
    const stream = new Blob([bytes as BlobPart]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  } catch {
    throw new DamagedData(`block ${id} cannot be unpacked (its checksum does not fit)`);
  }
}

// Splits a block of 4-byte numbers in byte planes into its arrays.
export function readArrays(id: string, bytes: Uint8Array, layout: ArrayLayout[]) {
  const out = new Map<string, Float32Array | Int32Array>();
  let at = 0;
  for (const { name, type, count } of layout) {
    if (at + 4 * count > bytes.length) throw new DamagedData(`block ${id} is too short`);
    const words = new Uint32Array(count);
    for (let i = 0; i < count; ++i)
      words[i] =
        bytes[at + i] | (bytes[at + count + i] << 8) | (bytes[at + 2 * count + i] << 16) | (bytes[at + 3 * count + i] << 24);
    at += 4 * count;
    if (type === "f32") {
      out.set(name, new Float32Array(words.buffer));
    } else {
      const values = new Int32Array(count);
      const differences = type === "i32";
      let last = 0;
      for (let i = 0; i < count; ++i) values[i] = last = ((differences ? last : 0) + unzigzag(words[i])) | 0;
      out.set(name, values);
    }
  }
  return out;
}

const unzigzag = (v: number) => (v >>> 1) ^ -(v & 1);

// Undoes encode_frames() of limber/view/codec.cpp: the quantised values of each frame.
function decodeFrames(
  bytes: Uint8Array,
  at: number,
  coded: CodedManifest,
  frames: number,
  items: number,
  components: number,
  reference: Int32Array | null,
  parent: Int32Array,
): { values: Int32Array[]; next: number } {
  const perFrame = items * components;
  const total = frames * perFrame;
  const next = at + total * coded.planes;
  if (next > bytes.length) throw new DamagedData("a group of frames is too short");
  const values: Int32Array[] = [];
  const residual = new Int32Array(perFrame);
  for (let f = 0; f < frames; ++f) {
    for (let d = 0; d < components; ++d) {
      const from = at + f * perFrame + d * items;
      for (let i = 0; i < items; ++i) {
        let word = 0;
        for (let p = 0; p < coded.planes; ++p) word |= bytes[from + p * total + i] << (8 * p);
        residual[i * components + d] = unzigzag(word >>> 0);
      }
    }
    if (coded.spatial)
      for (let i = 0; i < items; ++i) {
        const p = parent[i];
        if (p >= 0)
          for (let d = 0; d < components; ++d)
            residual[i * components + d] = (residual[i * components + d] + residual[p * components + d]) | 0;
      }
    const q = new Int32Array(perFrame);
    if (f === 0) {
      for (let i = 0; i < perFrame; ++i) q[i] = ((reference ? reference[i] : 0) + residual[i]) | 0;
    } else if (coded.order === 0) {
      q.set(residual);
    } else if (coded.order === 1 || f === 1) {
      const a = values[f - 1];
      for (let i = 0; i < perFrame; ++i) q[i] = (a[i] + residual[i]) | 0;
    } else {
      const a = values[f - 1];
      const b = values[f - 2];
      for (let i = 0; i < perFrame; ++i) q[i] = (2 * a[i] - b[i] + residual[i]) | 0;
    }
    values.push(q);
  }
  return { values, next };
}

// One topology.
export class Epoch {
  readonly rest: Float32Array;
  readonly nodes: Int32Array; // page node -> node of the recording
  readonly parent: Int32Array;
  readonly triangles: Int32Array;
  readonly triangleElement: Int32Array;
  readonly tets: Int32Array | null;
  readonly fibreTets: Int32Array | null;
  readonly fibreDirection: Float32Array | null;
  readonly candidates: Int32Array | null;
  readonly constants = new Map<string, Float32Array>();
  readonly quantisedRest: Int32Array;
  readonly skin: Skin | null;
  shapes: { name: string; values: Float32Array }[] | null = null; // the longest vector has length 1
  readonly surfaces: { info: SurfaceManifest; nodes: Int32Array; weights: Float32Array; points: Int32Array; groups: Int32Array; uv: Float32Array | null }[];

  constructor(
    readonly info: EpochManifest,
    quantum: number,
    arrays: Map<string, Float32Array | Int32Array>,
  ) {
    const ints = (name: string) => arrays.get(name) as Int32Array;
    this.rest = arrays.get("rest") as Float32Array;
    this.nodes = ints("nodes");
    this.parent = ints("parent");
    this.triangles = ints("triangles");
    this.triangleElement = ints("triangleElement");
    this.tets = ints("tets") ?? null;
    this.fibreTets = ints("fibreTets") ?? null;
    this.fibreDirection = (arrays.get("fibreDirection") as Float32Array) ?? null;
    this.candidates = ints("candidates") ?? null;
    this.surfaces = (info.surfaces ?? []).map((s, k) => ({
      info: s,
      nodes: ints(`surface${k}:nodes`),
      weights: arrays.get(`surface${k}:weights`) as Float32Array,
      points: ints(`surface${k}:points`),
      groups: ints(`surface${k}:groups`),
      uv: (arrays.get(`surface${k}:uv`) as Float32Array) ?? null,
    }));
    for (const [name, values] of arrays)
      if (name.startsWith("field:")) this.constants.set(name.slice(6), values as Float32Array);
    this.quantisedRest = new Int32Array(this.rest.length);
    for (let i = 0; i < this.rest.length; ++i)
      this.quantisedRest[i] = Math.floor((this.rest[i] - info.origin[i % 3]) / quantum + 0.5);
    this.skin = info.functions
      ? Skin.decode(this.rest, arrays.get("basisStep") as Float32Array, ints("basis"), this.parent)
      : null;
  }

  readShapes(bytes: Uint8Array, info: ShapesManifest) {
    const { values } = decodeFrames(bytes, 0, info, info.names.length, this.nodes.length, 3, null, this.parent);
    this.shapes = values.map((q, k) => ({ name: info.names[k], values: Float32Array.from(q, (v) => v / info.levels) }));
  }

  field(id: string): FieldInfo | undefined {
    return this.info.fields.find((f) => f.id === id);
  }
}

interface FrameField {
  coding: GroupField;
  values: Int32Array;
}

interface Frame {
  epoch: number;
  x: Int32Array | null;
  u: Float32Array | null; // instead of x
  v: Float32Array | null;
  fields: Map<string, FrameField>;
}

// Columns of numbers over the steps.
export type Rows = Map<string, Float32Array>;

export class Run {
  readonly epochs: Epoch[] = [];
  readonly frames: (Frame | null)[] = []; // null: not yet decoded, or damaged
  rows: Rows = new Map();
  readonly damage: string[] = [];
  private rowsBlock = "";
  private groupsDone = 0;

  constructor(public manifest: RunManifest) {}

  get frameCount() {
    return this.manifest.times.length;
  }

  // Decodes what the manifest lists and has not been decoded; `progress` is called after every group.
  async load(source: BlockSource, progress: () => void) {
    const m = this.manifest;
    for (let e = this.epochs.length; e < m.epochs.length; ++e) {
      const info = m.epochs[e];
      this.epochs.push(new Epoch(info, m.quantum, readArrays(info.block, await source(info.block), info.layout)));
    }
    for (let e = 0; e < this.epochs.length; ++e) {
      const shapes = m.epochs[e].shapes;
      if (!shapes || this.epochs[e].shapes) continue;
      this.epochs[e].shapes = []; // whatever comes of it, once
      try {
        this.epochs[e].readShapes(await source(shapes.block), shapes);
      } catch (error) {
        this.noteDamage(error, "its modes cannot be shown");
      }
    }
    if (m.rows && m.rows.block !== this.rowsBlock) {
      try {
        this.rows = readArrays(m.rows.block, await source(m.rows.block), m.rows.layout) as Rows;
      } catch (error) {
        this.noteDamage(error, "the plots cannot be shown");
      }
      this.rowsBlock = m.rows.block;
    }
    while (this.frames.length < m.times.length) this.frames.push(null);
    for (; this.groupsDone < m.groups.length; ++this.groupsDone) {
      const group = m.groups[this.groupsDone];
      try {
        this.decodeGroup(group, await source(group.block));
      } catch (error) {
        this.noteDamage(error, `frames ${group.first} to ${group.first + group.count - 1} cannot be shown`);
      }
      progress();
    }
  }

  private noteDamage(error: unknown, consequence: string) {
    if (!(error instanceof DamagedData)) throw error;
    this.damage.push(`${error.message}: ${consequence}.`);
  }

  private decodeGroup(group: GroupManifest, bytes: Uint8Array) {
    const epoch = this.epochs[group.epoch];
    const nodes = epoch.nodes.length;
    const x = group.x ? decodeFrames(bytes, 0, group.x, group.count, nodes, 3, epoch.quantisedRest, epoch.parent) : null;
    let at = x?.next ?? 0;
    const width = 3 * epoch.info.functions;
    let u: Float32Array | null = null;
    if (group.u) {
      const count = width * group.count * (group.u.velocity ? 2 : 1);
      u = readArrays(group.block, bytes, [{ name: "u", type: "f32", count }]).get("u") as Float32Array;
      at = 4 * count;
    }
    const fields = group.fields.map((coding) => {
      const items = coding.per === "node" ? nodes : epoch.info.elements;
      const decoded = decodeFrames(bytes, at, coding, coding.same ? 1 : group.count, items, 1, null, epoch.parent);
      at = decoded.next;
      return { coding, values: coding.same ? Array<Int32Array>(group.count).fill(decoded.values[0]) : decoded.values };
    });
    const row = (f: number) => u!.subarray(width * f, width * (f + 1));
    for (let f = 0; f < group.count; ++f)
      this.frames[group.first + f] = {
        epoch: group.epoch,
        x: x?.values[f] ?? null,
        u: u && row(f),
        v: group.u?.velocity ? row(group.count + f) : null,
        fields: new Map(fields.map(({ coding, values }) => [coding.id, { coding, values: values[f] }])),
      };
  }

  available(frame: number) {
    return frame >= 0 && frame < this.frames.length && this.frames[frame] !== null;
  }

  epochOf(frame: number): Epoch {
    return this.epochs[this.frames[frame]?.epoch ?? 0];
  }

  epochIndex(frame: number): number {
    return this.frames[frame]?.epoch ?? 0;
  }

  // Coordinates of displacements and velocities between frame and frame + 1, where the run has them.
  coordinates(frame: number, mix: number): { u: Float32Array; v: Float32Array | null } | null {
    const a = this.frames[frame];
    if (!a?.u) return null;
    const b = mix > 0 ? this.frames[frame + 1] : null;
    if (!b?.u || b.epoch !== a.epoch) return { u: a.u, v: a.v };
    const between = (p: Float32Array, q: Float32Array) => p.map((value, i) => value + mix * (q[i] - value));
    return { u: between(a.u, b.u), v: a.v && b.v ? between(a.v, b.v) : null };
  }

  // Where the page's nodes are now, of a simulation that runs live; there is one frame then.
  live: Float32Array | null = null;

  // Displacement of a node (its number in the recording) at every frame, three numbers each; NaN where it is not there.
  path(node: number): Float32Array[] {
    const out = [0, 1, 2].map(() => new Float32Array(this.frameCount).fill(NaN));
    const places = this.epochs.map((e) => e.nodes.indexOf(node));
    const x = new Float32Array(3);
    this.frames.forEach((frame, f) => {
      const i = frame ? places[frame.epoch] : -1;
      if (!frame || i < 0) return;
      const epoch = this.epochs[frame.epoch];
      if (frame.x) for (let d = 0; d < 3; ++d) x[d] = epoch.info.origin[d] + this.manifest.quantum * frame.x[3 * i + d];
      else {
        x.set(epoch.skin!.rest.subarray(3 * i, 3 * i + 3));
        epoch.skin!.add(frame.u!, i, x, 0);
      }
      for (let d = 0; d < 3; ++d) out[d][f] = x[d] - epoch.rest[3 * i + d];
    });
    return out;
  }

  // Positions of the page's nodes between frame and frame + 1 (mix 0..1); the rest shape where there is no frame.
  positions(frame: number, mix: number, out: Float32Array) {
    if (this.live?.length === out.length) {
      out.set(this.live);
      return;
    }
    const a = this.frames[frame];
    if (!a) {
      out.set(this.epochs[0].rest.subarray(0, out.length));
      return;
    }
    if (!a.x) {
      this.epochs[a.epoch].skin!.positions(this.coordinates(frame, mix)!.u, out);
      return;
    }
    const [ox, oy, oz] = this.epochs[a.epoch].info.origin;
    const q = this.manifest.quantum;
    const b = mix > 0 ? this.frames[frame + 1] : null;
    if (b?.x && b.epoch === a.epoch) {
      const A = a.x;
      const B = b.x;
      for (let i = 0; i < out.length; i += 3) {
        out[i] = ox + q * (A[i] + mix * (B[i] - A[i]));
        out[i + 1] = oy + q * (A[i + 1] + mix * (B[i + 1] - A[i + 1]));
        out[i + 2] = oz + q * (A[i + 2] + mix * (B[i + 2] - A[i + 2]));
      }
    } else {
      const A = a.x;
      for (let i = 0; i < out.length; i += 3) {
        out[i] = ox + q * A[i];
        out[i + 1] = oy + q * A[i + 1];
        out[i + 2] = oz + q * A[i + 2];
      }
    }
  }

  // Values of a field per node or element. `x` are the positions of the same moment (for the displacement).
  fieldValues(field: FieldInfo, frame: number, x: Float32Array): Float32Array {
    const epoch = this.epochOf(frame);
    if (field.id === "displacement") {
      const rest = epoch.rest;
      const out = new Float32Array(rest.length / 3);
      for (let i = 0; i < out.length; ++i)
        out[i] = Math.hypot(x[3 * i] - rest[3 * i], x[3 * i + 1] - rest[3 * i + 1], x[3 * i + 2] - rest[3 * i + 2]);
      return out;
    }
    const constant = epoch.constants.get(field.id);
    if (constant) return constant;
    const v = this.frames[frame]?.v;
    if (field.id === "speed" && v) return epoch.skin!.lengths(v);
    const out = new Float32Array(field.per === "node" ? epoch.nodes.length : epoch.info.elements);
    const stored = this.frames[frame]?.fields.get(field.id);
    if (stored) {
      const { low, range, levels, map } = stored.coding;
      const q = stored.values;
      for (let i = 0; i < out.length; ++i) {
        const u = q[i] / levels;
        out[i] = low + range * (map === "root" ? u * u : u);
      }
    }
    return out;
  }

  // A mark ("dynamic", "pinned") per node, or null where the run has none.
  mark(id: string, frame: number): Int32Array | null {
    return this.frames[frame]?.fields.get(id)?.values ?? null;
  }

  // Material coordinates (u v u v ...) of a cloth's nodes [m], or null.
  material(frame: number): Float32Array | null {
    const fields = this.frames[frame]?.fields;
    const parts = ["material_u", "material_v"].map((id) => fields?.get(id));
    if (!parts[0] || !parts[1]) return null;
    const out = new Float32Array(2 * parts[0].values.length);
    parts.forEach((part, k) => {
      const { low, range, levels } = part!.coding;
      for (let i = 0; i < part!.values.length; ++i) out[2 * i + k] = low + (range * part!.values[i]) / levels;
    });
    return out;
  }

  // Edges of a cloth that follow sharp features (pairs of nodes), by the marks of its nodes: positive on lines,
  // negative on corners and nails.
  conformalEdges(frame: number): Int32Array {
    const eol = this.mark("eol", frame);
    if (!eol) return new Int32Array(0);
    const { triangles } = this.epochOf(frame);
    const out: number[] = [];
    const seen = new Set<number>();
    for (let c = 0; c < triangles.length; ++c) {
      const a = triangles[c];
      const b = triangles[c - (c % 3) + ((c + 1) % 3)];
      if (!eol[a] || !eol[b] || (eol[a] !== eol[b] && eol[a] > 0 === eol[b] > 0) || (eol[a] < 0 && eol[b] < 0)) continue;
      const key = Math.min(a, b) * eol.length + Math.max(a, b);
      if (seen.has(key)) continue;
      seen.add(key);
      out.push(a, b);
    }
    return new Int32Array(out);
  }
}
