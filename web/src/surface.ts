// The moving surface of one topology: triangle corners, smooth normals that stop at creases, values to colour by.
import * as THREE from "three";
import type { Epoch } from "./data";
import { surfaceMaterial, type SurfaceUniforms } from "./material";
import { setPose, skinDepthMaterial, skinUniforms, type SkinUniforms } from "./skin";

const creaseCosine = Math.cos((48 * Math.PI) / 180);

// Corners of neighbouring triangles share a normal unless the rest shape has a sharp edge between them, or they are on
// both sides of a crease (pairs of nodes).
function smoothGroups(rest: Float32Array, triangles: Int32Array, creases: Int32Array) {
  const corners = triangles.length;
  const group = new Int32Array(corners).map((_, i) => i);
  const find = (i: number) => {
    while (group[i] !== i) i = group[i] = group[group[i]];
    return i;
  };
  const normals = faceNormals(rest, triangles, new Float32Array(corners));
  for (let i = 0; i < corners; i += 3) {
    const length = Math.hypot(normals[i], normals[i + 1], normals[i + 2]) || 1;
    for (let d = 0; d < 3; ++d) normals[i + d] /= length;
  }
  const edges = new Map<number, number>(); // directed edge -> corner at its start
  const nodeCount = rest.length / 3;
  const creased = new Set<number>();
  for (let k = 0; k < creases.length; k += 2)
    creased.add(Math.min(creases[k], creases[k + 1]) * nodeCount + Math.max(creases[k], creases[k + 1]));
  for (let c = 0; c < corners; ++c) {
    const t = c - (c % 3);
    edges.set(triangles[c] * nodeCount + triangles[t + ((c + 1) % 3)], c);
  }
  for (let c = 0; c < corners; ++c) {
    const t = c - (c % 3);
    const next = t + ((c + 1) % 3);
    const other = edges.get(triangles[next] * nodeCount + triangles[c]); // starts at `next`, ends at `c`
    if (other === undefined) continue;
    const [a, b] = [triangles[c], triangles[next]];
    if (creased.size && creased.has(Math.min(a, b) * nodeCount + Math.max(a, b))) continue;
    const u = other - (other % 3);
    const cosine = normals[t] * normals[u] + normals[t + 1] * normals[u + 1] + normals[t + 2] * normals[u + 2];
    if (cosine < creaseCosine) continue;
    group[find(next)] = find(other);
    group[find(c)] = find(u + ((other + 1) % 3));
  }
  const index = new Int32Array(corners);
  const number = new Map<number, number>();
  for (let c = 0; c < corners; ++c) {
    const root = find(c);
    let n = number.get(root);
    if (n === undefined) number.set(root, (n = number.size));
    index[c] = n;
  }
  return { index, count: number.size };
}

// Twice the area times the normal of each triangle.
function faceNormals(x: Float32Array, triangles: Int32Array, out: Float32Array) {
  for (let t = 0; t < triangles.length; t += 3) {
    const a = 3 * triangles[t];
    const b = 3 * triangles[t + 1];
    const c = 3 * triangles[t + 2];
    const ux = x[b] - x[a];
    const uy = x[b + 1] - x[a + 1];
    const uz = x[b + 2] - x[a + 2];
    const vx = x[c] - x[a];
    const vy = x[c + 1] - x[a + 1];
    const vz = x[c + 2] - x[a + 2];
    out[t] = uy * vz - uz * vy;
    out[t + 1] = uz * vx - ux * vz;
    out[t + 2] = ux * vy - uy * vx;
  }
  return out;
}

export class Surface {
  readonly mesh: THREE.Mesh;
  readonly material: THREE.MeshPhysicalMaterial;
  private readonly triangles: Int32Array;
  private readonly smooth: { index: Int32Array; count: number };
  private readonly faces: Float32Array;
  private readonly sums: Float32Array;
  private readonly position: THREE.BufferAttribute;
  private readonly normal: THREE.BufferAttribute;
  private readonly value: THREE.BufferAttribute;
  private readonly skin: SkinUniforms | null; // moved by the vertex shader

  constructor(
    readonly epoch: Epoch,
    uniforms: SurfaceUniforms,
    creases: Int32Array = new Int32Array(0),
  ) {
    this.triangles = epoch.triangles;
    const corners = this.triangles.length;
    this.smooth = smoothGroups(epoch.rest, this.triangles, creases);
    this.faces = new Float32Array(corners);
    this.sums = new Float32Array(3 * this.smooth.count);
    const attribute = (size: number) =>
      new THREE.BufferAttribute(new Float32Array(size * corners), size).setUsage(THREE.DynamicDrawUsage);
    this.position = attribute(3);
    this.normal = attribute(3);
    this.value = attribute(1);
    const bary = new Uint8Array(3 * corners);
    for (let c = 0; c < corners; ++c) bary[3 * c + (c % 3)] = 255;
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute("position", this.position);
    geometry.setAttribute("normal", this.normal);
    geometry.setAttribute("aValue", this.value);
    geometry.setAttribute("aBary", new THREE.BufferAttribute(bary, 3, true));
    this.skin = epoch.skin ? skinUniforms(epoch.skin, this.triangles, this.smooth) : null;
    if (this.skin) geometry.setAttribute("aPoint", new THREE.BufferAttribute(new Float32Array(this.smooth.index), 1));
    this.material = surfaceMaterial(
      uniforms,
      {
        roughness: 0.52,
        metalness: 0,
        clearcoat: 0.18,
        clearcoatRoughness: 0.5,
        side: THREE.DoubleSide,
        clipShadows: true,
      },
      this.skin,
    );
    this.mesh = new THREE.Mesh(geometry, this.material);
    if (this.skin) this.mesh.customDepthMaterial = skinDepthMaterial(this.skin);
    this.mesh.castShadow = !epoch.info.plane;
    this.mesh.receiveShadow = !epoch.info.plane;
    this.mesh.frustumCulled = false;
  }

  // Whether pose() moves it; else move() has to.
  get skinned() {
    return this.skin !== null;
  }

  // Coordinates of displacements and of velocities.
  pose(u: Float32Array, v: Float32Array | null) {
    if (!this.skin) return;
    this.skin.uSkinOn.value = 1;
    this.speeds = v !== null;
    setPose(this.skin, u, v);
  }
  private speeds = false;

  // Coloured by what the shader knows by itself; false: paint() has to.
  paintSkin(field: string): boolean {
    if (!this.skin) return false;
    const known = field === "displacement" ? 1 : field === "speed" && this.speeds ? 2 : 0;
    this.skin.uSkinValue.value = this.skin.uSkinOn.value ? known : 0;
    return this.skin.uSkinValue.value > 0;
  }

  move(x: Float32Array) {
    if (this.skin) this.skin.uSkinOn.value = 0;
    const { triangles, faces, sums } = this;
    const { index } = this.smooth;
    faceNormals(x, triangles, faces);
    sums.fill(0);
    for (let c = 0; c < triangles.length; ++c) {
      const t = c - (c % 3);
      const s = 3 * index[c];
      sums[s] += faces[t];
      sums[s + 1] += faces[t + 1];
      sums[s + 2] += faces[t + 2];
    }
    for (let s = 0; s < sums.length; s += 3) {
      const length = Math.hypot(sums[s], sums[s + 1], sums[s + 2]) || 1;
      sums[s] /= length;
      sums[s + 1] /= length;
      sums[s + 2] /= length;
    }
    const p = this.position.array as Float32Array;
    const n = this.normal.array as Float32Array;
    for (let c = 0; c < triangles.length; ++c) {
      const i = 3 * triangles[c];
      const s = 3 * index[c];
      const o = 3 * c;
      p[o] = x[i];
      p[o + 1] = x[i + 1];
      p[o + 2] = x[i + 2];
      n[o] = sums[s];
      n[o + 1] = sums[s + 1];
      n[o + 2] = sums[s + 2];
    }
    this.position.needsUpdate = this.normal.needsUpdate = true;
  }

  // Only these ranges of corners; null: all.
  showOnly(ranges: [number, number][] | null) {
    const { geometry } = this.mesh;
    geometry.clearGroups();
    this.mesh.visible = !ranges || ranges.length > 0;
    for (const [first, count] of ranges ?? []) geometry.addGroup(first, count, 0);
    this.mesh.material = ranges ? [this.material] : this.material;
  }

  // Material coordinates of a cloth's nodes.
  setMaterial(material: Float32Array) {
    if (!this.checkers) {
      this.checkers = new THREE.BufferAttribute(new Float32Array(2 * this.triangles.length), 2).setUsage(THREE.DynamicDrawUsage);
      this.mesh.geometry.setAttribute("aMaterial", this.checkers);
    }
    const out = this.checkers.array as Float32Array;
    for (let c = 0; c < this.triangles.length; ++c) {
      out[2 * c] = material[2 * this.triangles[c]];
      out[2 * c + 1] = material[2 * this.triangles[c] + 1];
    }
    this.checkers.needsUpdate = true;
  }
  private checkers: THREE.BufferAttribute | null = null;

  // One number per node or per element.
  paint(values: Float32Array, perElement: boolean) {
    const out = this.value.array as Float32Array;
    const { triangles } = this;
    const element = this.epoch.triangleElement;
    if (perElement) for (let c = 0; c < out.length; ++c) out[c] = values[element[(c / 3) | 0]];
    else for (let c = 0; c < out.length; ++c) out[c] = values[triangles[c]];
    this.value.needsUpdate = true;
  }

  // The first triangle that a ray hits on the kept side of the clip plane: distance, triangle, nearest node.
  hit(x: Float32Array, from: THREE.Vector3, direction: THREE.Vector3, clip: ClipPlane | null) {
    const { triangles } = this;
    let best: { distance: number; triangle: number; node: number } | null = null;
    const ray = new THREE.Ray(from, direction);
    const [a, b, c, point] = [0, 1, 2, 3].map(() => new THREE.Vector3());
    for (let t = 0; t < triangles.length; t += 3) {
      a.fromArray(x, 3 * triangles[t]);
      b.fromArray(x, 3 * triangles[t + 1]);
      c.fromArray(x, 3 * triangles[t + 2]);
      if (!ray.intersectTriangle(a, b, c, false, point)) continue;
      if (clip && clip.normal.dot(point) > clip.offset) continue;
      const distance = point.distanceTo(from);
      if (best && distance >= best.distance) continue;
      const d = [a, b, c].map((p) => p.distanceTo(point));
      best = { distance, triangle: t / 3, node: triangles[t + d.indexOf(Math.min(...d))] };
    }
    return best;
  }

  dispose() {
    this.mesh.geometry.dispose();
    this.material.dispose();
    this.mesh.customDepthMaterial?.dispose();
    this.skin?.uSkin.value.dispose();
    this.skin?.uPose.value.dispose();
  }
}

// What lies at normal . x > offset is cut away.
export interface ClipPlane {
  normal: THREE.Vector3;
  offset: number;
}
