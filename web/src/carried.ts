// A surface that a body carries along: every point goes with four nodes. Drawn with its own materials and textures.
import * as THREE from "three";
import type { Epoch, SurfaceManifest } from "./data";

// Textures are decoded once, whatever the number of topologies.
const textures = new Map<string, THREE.Texture>();
function texture(uri: string, loaded: () => void): THREE.Texture {
  let known = textures.get(uri);
  if (!known) {
    known = new THREE.TextureLoader().load(uri, loaded);
    known.colorSpace = THREE.SRGBColorSpace;
    known.wrapS = known.wrapT = THREE.RepeatWrapping;
    known.anisotropy = 8;
    textures.set(uri, known);
  }
  return known;
}

export class Carried {
  readonly mesh: THREE.Mesh;
  private readonly materials: THREE.MeshStandardMaterial[];
  private readonly points: Float32Array;
  private readonly sums: Float32Array;
  private readonly position: THREE.BufferAttribute;
  private readonly normal: THREE.BufferAttribute;

  constructor(
    private readonly surface: { info: SurfaceManifest; nodes: Int32Array; weights: Float32Array; points: Int32Array; groups: Int32Array; uv: Float32Array | null },
    redraw: () => void,
  ) {
    const corners = surface.points.length;
    this.points = new Float32Array((3 * surface.nodes.length) / 4);
    this.sums = new Float32Array(3 * surface.info.smooth);
    const attribute = () => new THREE.BufferAttribute(new Float32Array(3 * corners), 3).setUsage(THREE.DynamicDrawUsage);
    this.position = attribute();
    this.normal = attribute();
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute("position", this.position);
    geometry.setAttribute("normal", this.normal);
    if (surface.uv) geometry.setAttribute("uv", new THREE.BufferAttribute(surface.uv, 2));
    this.materials = surface.info.pieces.map(({ material }) => {
      const m = surface.info.materials[material];
      const color = new THREE.Color();
      if (m && !m.image) color.setRGB(m.color[0], m.color[1], m.color[2], THREE.SRGBColorSpace);
      else if (!m) color.set(0xd2bfa7);
      return new THREE.MeshStandardMaterial({
        color,
        map: m?.image && surface.uv ? texture(m.image, redraw) : null,
        roughness: 0.65,
        metalness: 0,
        side: THREE.DoubleSide,
        clipShadows: true,
      });
    });
    surface.info.pieces.forEach((piece, k) => geometry.addGroup(piece.first, piece.count, k));
    this.mesh = new THREE.Mesh(geometry, this.materials);
    this.mesh.castShadow = this.mesh.receiveShadow = true;
    this.mesh.frustumCulled = false;
  }

  // Positions of the page's nodes.
  move(x: Float32Array) {
    const { nodes, weights, points: corner, groups } = this.surface;
    const p = this.points;
    for (let i = 0; 3 * i < p.length; ++i)
      for (let d = 0; d < 3; ++d) {
        let sum = 0;
        for (let c = 4 * i; c < 4 * i + 4; ++c) sum += weights[c] * x[3 * nodes[c] + d];
        p[3 * i + d] = sum;
      }
    const { sums } = this;
    sums.fill(0);
    for (let t = 0; t < corner.length; t += 3) {
      const a = 3 * corner[t];
      const b = 3 * corner[t + 1];
      const c = 3 * corner[t + 2];
      const [ux, uy, uz] = [p[b] - p[a], p[b + 1] - p[a + 1], p[b + 2] - p[a + 2]];
      const [vx, vy, vz] = [p[c] - p[a], p[c + 1] - p[a + 1], p[c + 2] - p[a + 2]];
      const n = [uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx];
      for (let k = 0; k < 3; ++k) for (let d = 0; d < 3; ++d) sums[3 * groups[t + k] + d] += n[d];
    }
    const out = this.position.array as Float32Array;
    const normal = this.normal.array as Float32Array;
    for (let c = 0; c < corner.length; ++c) {
      const s = 3 * groups[c];
      const length = Math.hypot(sums[s], sums[s + 1], sums[s + 2]) || 1;
      for (let d = 0; d < 3; ++d) {
        out[3 * c + d] = p[3 * corner[c] + d];
        normal[3 * c + d] = sums[s + d] / length;
      }
    }
    this.position.needsUpdate = this.normal.needsUpdate = true;
  }

  clip(planes: THREE.Plane[] | null) {
    for (const m of this.materials) m.clippingPlanes = planes;
  }

  setOpacity(opacity: number) {
    for (const m of this.materials) {
      m.transparent = opacity < 1;
      m.opacity = opacity;
      m.depthWrite = opacity === 1;
      m.needsUpdate = true;
    }
  }

  dispose() {
    this.mesh.geometry.dispose();
    for (const m of this.materials) m.dispose();
  }
}

// Ranges of corners of the drawn triangles that belong to bodies without a carried surface.
export function uncovered(epoch: Epoch): [number, number][] {
  const covered = new Set((epoch.info.surfaces ?? []).map((s) => s.body));
  const hidden = epoch.info.bodies.filter((b) => covered.has(b.name));
  const ranges: [number, number][] = [];
  const element = epoch.triangleElement;
  for (let t = 0; t < element.length; ++t) {
    if (hidden.some((b) => element[t] >= b.begin && element[t] < b.end)) continue;
    const last = ranges[ranges.length - 1];
    if (last && last[0] + last[1] === 3 * t) last[1] += 3;
    else ranges.push([3 * t, 3]);
  }
  return ranges;
}
