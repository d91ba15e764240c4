// Marks on nodes and elements: dynamic nodes (large spheres), candidates (small ones), pins (cubes on a corner),
// fibres (short lines). What lies inside the body shines through faintly.
import * as THREE from "three";
import type { Epoch } from "./data";

class Markers {
  readonly group = new THREE.Group();
  private readonly solid: THREE.InstancedMesh;
  private readonly faint: THREE.InstancedMesh;

  constructor(geometry: THREE.BufferGeometry, color: number, capacity: number, faint: number) {
    this.solid = new THREE.InstancedMesh(
      geometry,
      new THREE.MeshStandardMaterial({ color, roughness: 0.35, metalness: 0 }),
      capacity,
    );
    this.faint = new THREE.InstancedMesh(
      geometry,
      new THREE.MeshBasicMaterial({ color, transparent: true, opacity: faint, depthFunc: THREE.GreaterDepth, depthWrite: false }),
      capacity,
    );
    this.faint.instanceMatrix = this.solid.instanceMatrix;
    this.solid.instanceMatrix.setUsage(THREE.DynamicDrawUsage);
    this.faint.renderOrder = 2;
    this.solid.frustumCulled = this.faint.frustumCulled = false;
    this.solid.castShadow = false;
    this.group.add(this.solid, this.faint);
  }

  set(count: number, place: (k: number, out: Float32Array, at: number) => void, radius: number) {
    const m = this.solid.instanceMatrix.array as Float32Array;
    for (let k = 0; k < count; ++k) {
      const o = 16 * k;
      m.fill(0, o, o + 16);
      m[o] = m[o + 5] = m[o + 10] = radius;
      m[o + 15] = 1;
      place(k, m, o + 12);
    }
    this.solid.count = this.faint.count = count;
    this.solid.instanceMatrix.needsUpdate = true;
  }

  get materials() {
    return [this.solid.material as THREE.Material, this.faint.material as THREE.Material];
  }

  dispose() {
    for (const mesh of [this.solid, this.faint]) {
      mesh.geometry.dispose();
      (mesh.material as THREE.Material).dispose();
      mesh.dispose();
    }
  }
}

const maxMarks = 20000;

export class Marks {
  readonly group = new THREE.Group();
  readonly dynamic: Markers;
  readonly candidates: Markers;
  readonly pins: Markers;
  readonly fibres: THREE.Group | null;
  private readonly radius: number;
  private readonly weights: Float32Array | null = null;
  private readonly lines: THREE.BufferAttribute | null = null;

  constructor(
    readonly epoch: Epoch,
    size: number, // of the body [m]
  ) {
    const capacity = Math.min(maxMarks, epoch.nodes.length);
    this.radius = Math.min(0.016 * size, Math.max(0.004 * size, 0.28 * meanEdge(epoch)));
    this.dynamic = new Markers(new THREE.SphereGeometry(1, 20, 14), 0xff7a1a, capacity, 0.2);
    this.candidates = new Markers(new THREE.SphereGeometry(1, 10, 8), 0x8b97a6, capacity, 0.06);
    this.pins = new Markers(new THREE.OctahedronGeometry(1), 0x2d6cdf, capacity, 0.12);
    this.group.add(this.dynamic.group, this.candidates.group, this.pins.group);

    const { fibreTets, fibreDirection, rest } = epoch;
    if (fibreTets && fibreDirection) {
      const count = fibreTets.length / 4;
      this.weights = new Float32Array(3 * count);
      const edges = new THREE.Matrix3();
      const a = new THREE.Vector3();
      const e1 = new THREE.Vector3();
      const e2 = new THREE.Vector3();
      for (let k = 0; k < count; ++k) {
        const [i, j, l, m] = [0, 1, 2, 3].map((c) => 3 * fibreTets[4 * k + c]);
        if (l === m) {
          // A triangle. The direction lies in it: w from the two equations e_k . (e1 w1 + e2 w2) = e_k . d.
          e1.fromArray(rest, j).sub(a.fromArray(rest, i));
          e2.fromArray(rest, l).sub(a);
          const length = 0.45 * Math.sqrt(0.5 * a.crossVectors(e1, e2).length());
          a.fromArray(fibreDirection, 3 * k).multiplyScalar(length);
          const [a11, a12, a22, b1, b2] = [e1.dot(e1), e1.dot(e2), e2.dot(e2), e1.dot(a), e2.dot(a)];
          const det = a11 * a22 - a12 * a12;
          a.set((a22 * b1 - a12 * b2) / det, (a11 * b2 - a12 * b1) / det, 0).toArray(this.weights, 3 * k);
          continue;
        }
        const column = (n: number, d: number) => rest[n + d] - rest[i + d];
        edges.set(
          column(j, 0), column(l, 0), column(m, 0),
          column(j, 1), column(l, 1), column(m, 1),
          column(j, 2), column(l, 2), column(m, 2),
        );
        const length = 0.45 * Math.cbrt(6 * Math.abs(edges.determinant()) / 6);
        // x-> x + sum w_k (x_k - x_0): how the line's half moves with its element.
        a.fromArray(fibreDirection, 3 * k).multiplyScalar(length).applyMatrix3(edges.invert());
        a.toArray(this.weights, 3 * k);
      }
      this.lines = new THREE.BufferAttribute(new Float32Array(6 * count), 3).setUsage(THREE.DynamicDrawUsage);
      const geometry = new THREE.BufferGeometry().setAttribute("position", this.lines);
      const solid = new THREE.LineSegments(geometry, new THREE.LineBasicMaterial({ color: 0xe0344a }));
      const faint = new THREE.LineSegments(
        geometry,
        new THREE.LineBasicMaterial({
          color: 0xe0344a, transparent: true, opacity: 0.28, depthFunc: THREE.GreaterDepth, depthWrite: false,
        }),
      );
      solid.frustumCulled = faint.frustumCulled = false;
      faint.renderOrder = 1;
      this.fibres = new THREE.Group().add(solid, faint);
      this.group.add(this.fibres);
    } else {
      this.fibres = null;
    }
  }

  // `place` writes the position of a node; `x` all of them, which only fibres need.
  move(
    place: (node: number, out: Float32Array, at: number) => void,
    x: () => Float32Array,
    dynamic: Int32Array | null,
    pinned: Int32Array | null,
  ) {
    const at = (nodes: number[] | Int32Array) => (k: number, out: Float32Array, o: number) => place(nodes[k], out, o);
    const chosen = (flags: Int32Array | null, keep: (i: number) => boolean) => {
      const out: number[] = [];
      if (flags) for (let i = 0; i < flags.length && out.length < maxMarks; ++i) if (flags[i] && keep(i)) out.push(i);
      return out;
    };
    // Where all nodes are dynamic, spheres would only hide the body.
    const live = dynamic?.every((d) => d !== 0) ? [] : chosen(dynamic, () => true);
    this.dynamic.set(live.length, at(live), this.radius);
    const idle: number[] = [];
    if (this.epoch.candidates)
      for (const i of this.epoch.candidates) if (!dynamic?.[i] && idle.length < maxMarks) idle.push(i);
    this.candidates.set(idle.length, at(idle), 0.45 * this.radius);
    // Pins inside the body would only hide each other.
    const surface = this.epoch.info.surfaceNodes;
    const pins = chosen(pinned, (i) => i < surface);
    this.pins.set(pins.length, at(pins), 0.8 * this.radius);

    if (this.lines && this.weights) this.moveFibres(x());
  }

  private moveFibres(x: Float32Array) {
    if (this.lines && this.weights) {
      const tets = this.epoch.fibreTets!;
      const out = this.lines.array as Float32Array;
      for (let k = 0; k < tets.length / 4; ++k)
        for (let d = 0; d < 3; ++d) {
          const x0 = x[3 * tets[4 * k] + d];
          const x1 = x[3 * tets[4 * k + 1] + d] - x0;
          const x2 = x[3 * tets[4 * k + 2] + d] - x0;
          const x3 = x[3 * tets[4 * k + 3] + d] - x0;
          const centre = tets[4 * k + 2] === tets[4 * k + 3] ? x0 + (x1 + x2) / 3 : x0 + (x1 + x2 + x3) / 4;
          const half = this.weights[3 * k] * x1 + this.weights[3 * k + 1] * x2 + this.weights[3 * k + 2] * x3;
          out[6 * k + d] = centre - half;
          out[6 * k + 3 + d] = centre + half;
        }
      this.lines.needsUpdate = true;
    }
  }

  clip(planes: THREE.Plane[] | null) {
    const lines = (this.fibres?.children ?? []).map((line) => (line as THREE.LineSegments).material as THREE.Material);
    for (const m of [...this.dynamic.materials, ...this.candidates.materials, ...this.pins.materials, ...lines]) m.clippingPlanes = planes;
  }

  dispose() {
    this.dynamic.dispose();
    this.candidates.dispose();
    this.pins.dispose();
    this.fibres?.children.forEach((line) => ((line as THREE.LineSegments).material as THREE.Material).dispose());
    (this.fibres?.children[0] as THREE.LineSegments | undefined)?.geometry.dispose();
  }
}

function meanEdge(epoch: Epoch) {
  const { triangles, rest } = epoch;
  let sum = 0;
  for (let t = 0; t < triangles.length; t += 3) {
    const a = 3 * triangles[t];
    const b = 3 * triangles[t + 1];
    sum += Math.hypot(rest[a] - rest[b], rest[a + 1] - rest[b + 1], rest[a + 2] - rest[b + 2]);
  }
  return triangles.length ? sum / (triangles.length / 3) : 1;
}
