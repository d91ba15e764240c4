// Marks of a cloth that slides over sharp features: vertices on them, edges along them; and its material as a map.
import * as THREE from "three";

const lineColor = 0xe0344a;
const vertexColor = 0xff7a1a;

export class ClothMarks {
  readonly group = new THREE.Group();
  private readonly vertices: THREE.InstancedMesh;
  private readonly edges: THREE.InstancedMesh;
  private static readonly capacity = 4000;

  constructor() {
    const mesh = (geometry: THREE.BufferGeometry, color: number) => {
      const m = new THREE.InstancedMesh(geometry, new THREE.MeshStandardMaterial({ color, roughness: 0.4 }), ClothMarks.capacity);
      m.instanceMatrix.setUsage(THREE.DynamicDrawUsage);
      m.frustumCulled = false;
      m.count = 0;
      this.group.add(m);
      return m;
    };
    this.vertices = mesh(new THREE.SphereGeometry(1, 12, 8), vertexColor);
    this.edges = mesh(new THREE.CylinderGeometry(1, 1, 1, 8, 1, true), lineColor);
  }

  // `radius` of the spheres [m].
  move(x: Float32Array, eol: Int32Array | null, pairs: Int32Array, radius: number) {
    const m = new THREE.Matrix4();
    let n = 0;
    if (eol)
      for (let i = 0; i < eol.length && n < ClothMarks.capacity; ++i)
        if (eol[i]) this.vertices.setMatrixAt(n++, m.makeScale(radius, radius, radius).setPosition(x[3 * i], x[3 * i + 1], x[3 * i + 2]));
    this.vertices.count = n;
    n = 0;
    const up = new THREE.Vector3(0, 1, 0);
    const [a, b, scale] = [0, 1, 2].map(() => new THREE.Vector3());
    const turn = new THREE.Quaternion();
    for (let k = 0; k < pairs.length && n < ClothMarks.capacity; k += 2) {
      a.fromArray(x, 3 * pairs[k]);
      b.fromArray(x, 3 * pairs[k + 1]).sub(a);
      const length = b.length();
      if (!(length > 0)) continue;
      a.addScaledVector(b, 0.5);
      turn.setFromUnitVectors(up, b.divideScalar(length));
      this.edges.setMatrixAt(n++, m.compose(a, turn, scale.set(0.4 * radius, length, 0.4 * radius)));
    }
    this.edges.count = n;
    this.vertices.instanceMatrix.needsUpdate = this.edges.instanceMatrix.needsUpdate = true;
  }

  clip(planes: THREE.Plane[] | null) {
    for (const m of [this.vertices, this.edges]) (m.material as THREE.Material).clippingPlanes = planes;
  }
}

// The triangles in the material, with the marks, drawn into a small canvas beside the stage.
export function drawMaterial(
  canvas: HTMLCanvasElement,
  material: Float32Array,
  triangles: Int32Array,
  eol: Int32Array | null,
  pairs: Int32Array,
  dark: boolean,
) {
  const ratio = Math.min(2, window.devicePixelRatio || 1);
  const size = Math.round(canvas.clientWidth * ratio);
  if (!size) return;
  if (canvas.width !== size) canvas.width = canvas.height = size;
  const g = canvas.getContext("2d")!;
  let [x0, y0, x1, y1] = [Infinity, Infinity, -Infinity, -Infinity];
  for (let i = 0; i < material.length; i += 2) {
    x0 = Math.min(x0, material[i]);
    x1 = Math.max(x1, material[i]);
    y0 = Math.min(y0, material[i + 1]);
    y1 = Math.max(y1, material[i + 1]);
  }
  const margin = 8 * ratio;
  const scale = (size - 2 * margin) / (Math.max(x1 - x0, y1 - y0) || 1);
  const at = (i: number): [number, number] => [
    size / 2 + scale * (material[2 * i] - 0.5 * (x0 + x1)),
    size / 2 - scale * (material[2 * i + 1] - 0.5 * (y0 + y1)),
  ];
  g.clearRect(0, 0, size, size);
  g.lineWidth = 0.6 * ratio;
  g.strokeStyle = dark ? "rgba(220,228,236,0.5)" : "rgba(30,38,48,0.5)";
  g.beginPath();
  for (let c = 0; c < triangles.length; ++c) {
    const a = triangles[c];
    const b = triangles[c - (c % 3) + ((c + 1) % 3)];
    g.moveTo(...at(a));
    g.lineTo(...at(b));
  }
  g.stroke();
  g.lineWidth = 2 * ratio;
  g.strokeStyle = "#e0344a";
  g.beginPath();
  for (let k = 0; k < pairs.length; k += 2) {
    g.moveTo(...at(pairs[k]));
    g.lineTo(...at(pairs[k + 1]));
  }
  g.stroke();
  if (!eol) return;
  g.fillStyle = "#ff7a1a";
  for (let i = 0; i < eol.length; ++i) {
    if (!eol[i]) continue;
    g.beginPath();
    g.arc(...at(i), 2.6 * ratio, 0, 2 * Math.PI);
    g.fill();
  }
}
