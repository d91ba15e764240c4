// The cut face: where the clip plane passes through tetrahedra.
import * as THREE from "three";
import type { Epoch } from "./data";
import { surfaceMaterial, type SurfaceUniforms } from "./material";
import type { ClipPlane } from "./surface";

export class Cap {
  readonly mesh: THREE.Mesh;
  private capacity = 0;
  private position!: Float32Array;
  private normal!: Float32Array;
  private value!: Float32Array;
  private bary!: Uint8Array;
  private side: Float32Array;

  constructor(
    readonly epoch: Epoch,
    uniforms: SurfaceUniforms,
  ) {
    this.side = new Float32Array(epoch.nodes.length);
    this.mesh = new THREE.Mesh(
      new THREE.BufferGeometry(),
      surfaceMaterial(uniforms, { roughness: 0.85, metalness: 0, side: THREE.DoubleSide }),
    );
    this.mesh.frustumCulled = false;
    this.mesh.receiveShadow = true;
    this.reserve(3 * 1024);
  }

  private reserve(corners: number) {
    if (corners <= this.capacity) return;
    this.capacity = Math.max(corners, 2 * this.capacity);
    const grow = <A extends Float32Array | Uint8Array>(old: A | undefined, make: new (n: number) => A, size: number) => {
      const out = new make(size * this.capacity);
      if (old) out.set(old);
      return out;
    };
    this.position = grow(this.position, Float32Array, 3);
    this.normal = grow(this.normal, Float32Array, 3);
    this.value = grow(this.value, Float32Array, 1);
    this.bary = grow(this.bary, Uint8Array, 3);
    const g = this.mesh.geometry;
    g.dispose();
    g.setAttribute("position", new THREE.BufferAttribute(this.position, 3).setUsage(THREE.DynamicDrawUsage));
    g.setAttribute("normal", new THREE.BufferAttribute(this.normal, 3).setUsage(THREE.DynamicDrawUsage));
    g.setAttribute("aValue", new THREE.BufferAttribute(this.value, 1).setUsage(THREE.DynamicDrawUsage));
    g.setAttribute("aBary", new THREE.BufferAttribute(this.bary, 3, true).setUsage(THREE.DynamicDrawUsage));
  }

  // Returns the number of triangles.
  update(x: Float32Array, values: Float32Array, perElement: boolean, clip: ClipPlane): number {
    const tets = this.epoch.tets;
    if (!tets) return 0;
    const { side } = this;
    const { x: nx, y: ny, z: nz } = clip.normal;
    for (let i = 0; i < side.length; ++i) side[i] = nx * x[3 * i] + ny * x[3 * i + 1] + nz * x[3 * i + 2] - clip.offset;

    let corner = 0;
    // The point between nodes a and b on the plane, and its distances to the triangle's drawn edges.
    const emit = (a: number, b: number, e: number, b0: number, b1: number, b2: number) => {
      const s = side[a] / (side[a] - side[b]);
      const o = 3 * corner;
      for (let d = 0; d < 3; ++d) this.position[o + d] = x[3 * a + d] + s * (x[3 * b + d] - x[3 * a + d]);
      this.normal[o] = nx;
      this.normal[o + 1] = ny;
      this.normal[o + 2] = nz;
      this.value[corner] = perElement ? values[e] : values[a] + s * (values[b] - values[a]);
      this.bary[o] = b0;
      this.bary[o + 1] = b1;
      this.bary[o + 2] = b2;
      ++corner;
    };
    const inside: number[] = [];
    const outside: number[] = [];
    for (let t = 0; t < tets.length; t += 4) {
      inside.length = outside.length = 0;
      for (let k = 0; k < 4; ++k) (side[tets[t + k]] <= 0 ? inside : outside).push(tets[t + k]);
      if (inside.length === 0 || outside.length === 0) continue;
      this.reserve(corner + 6);
      const e = t / 4;
      if (inside.length === 2) {
        const [a, b] = inside;
        const [c, d] = outside;
        // The quadrilateral ac, ad, bd, bc; its diagonal is not drawn in the wire frame.
        emit(a, c, e, 255, 255, 0);
        emit(a, d, e, 0, 255, 0);
        emit(b, d, e, 0, 255, 255);
        emit(a, c, e, 255, 0, 255);
        emit(b, d, e, 0, 255, 255);
        emit(b, c, e, 0, 0, 255);
      } else {
        const [one, rest] = inside.length === 1 ? [inside[0], outside] : [outside[0], inside];
        emit(one, rest[0], e, 255, 0, 0);
        emit(one, rest[1], e, 0, 255, 0);
        emit(one, rest[2], e, 0, 0, 255);
      }
    }
    for (let first = 0; first < corner; first += 3) this.turn(first, clip.normal);
    const g = this.mesh.geometry;
    for (const name of ["position", "normal", "aValue", "aBary"]) g.getAttribute(name).needsUpdate = true;
    g.setDrawRange(0, corner);
    return corner / 3;
  }

  // A triangle that is wound the other way would be lit as its back.
  private turn(first: number, n: THREE.Vector3) {
    const p = this.position;
    const o = 3 * first;
    const [ux, uy, uz] = [p[o + 3] - p[o], p[o + 4] - p[o + 1], p[o + 5] - p[o + 2]];
    const [vx, vy, vz] = [p[o + 6] - p[o], p[o + 7] - p[o + 1], p[o + 8] - p[o + 2]];
    if (n.x * (uy * vz - uz * vy) + n.y * (uz * vx - ux * vz) + n.z * (ux * vy - uy * vx) >= 0) return;
    const swap = (a: Float32Array | Uint8Array, i: number, k: number) => ([a[i], a[k]] = [a[k], a[i]]);
    swap(this.value, first + 1, first + 2);
    for (let d = 0; d < 3; ++d) {
      swap(p, o + 3 + d, o + 6 + d);
      swap(this.bary, o + 3 + d, o + 6 + d);
    }
  }

  dispose() {
    this.mesh.geometry.dispose();
    (this.mesh.material as THREE.Material).dispose();
  }
}
