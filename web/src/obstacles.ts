// Obstacles: balls, capsules, boxes and meshes in a quiet grey; planes as a floor with a grid.
import * as THREE from "three";
import type { RunManifest } from "./data";
import { floorMesh } from "./floor";

export class Obstacles {
  readonly group = new THREE.Group();
  readonly hasFloor: boolean;
  private readonly parts: THREE.Object3D[] = [];
  private readonly material = new THREE.MeshStandardMaterial({ color: 0x8e979f, roughness: 0.8, metalness: 0.05 });

  constructor(
    private readonly run: RunManifest,
    size: number, // of the scene [m]
    grid: number, // spacing of the floor's grid [m]
  ) {
    let floor = false;
    for (const o of run.obstacles) {
      const part = new THREE.Group();
      let shape: THREE.Object3D;
      const mesh = (geometry: THREE.BufferGeometry) => {
        const m = new THREE.Mesh(geometry, this.material);
        m.castShadow = m.receiveShadow = true;
        return m;
      };
      if (o.shape === "plane") {
        shape = floorMesh(4 * size, grid);
        shape.quaternion.setFromUnitVectors(new THREE.Vector3(0, 1, 0), new THREE.Vector3(...(o.normal ?? [0, 1, 0])).normalize());
        floor = true;
      } else if (o.shape === "sphere") {
        shape = mesh(new THREE.SphereGeometry(o.radius, 64, 40));
      } else if (o.shape === "box") {
        shape = mesh(new THREE.BoxGeometry(...(o.size ?? [1, 1, 1])));
      } else if (o.shape === "capsule") {
        const a = new THREE.Vector3(...o.point);
        const b = new THREE.Vector3(...(o.end ?? o.point));
        const axis = b.clone().sub(a);
        shape = mesh(new THREE.CapsuleGeometry(o.radius, axis.length(), 16, 40));
        if (axis.length() > 0) shape.quaternion.setFromUnitVectors(new THREE.Vector3(0, 1, 0), axis.normalize());
        shape.position.copy(a.add(b).multiplyScalar(0.5));
      } else {
        const geometry = new THREE.BufferGeometry();
        geometry.setAttribute("position", new THREE.Float32BufferAttribute(o.nodes ?? [], 3));
        geometry.setIndex(o.triangles ?? []);
        geometry.computeVertexNormals();
        shape = mesh(geometry);
      }
      if (o.shape !== "capsule" && o.shape !== "mesh") shape.position.set(...o.point);
      part.add(shape);
      this.parts.push(part);
      this.group.add(part);
    }
    this.hasFloor = floor;
  }

  move(frame: number) {
    const pose = this.run.poses[Math.min(frame, this.run.poses.length - 1)];
    if (!pose) return;
    this.parts.forEach((part, k) => {
      const p = pose.slice(8 * k, 8 * k + 8);
      part.position.set(p[0], p[1], p[2]);
      part.quaternion.set(p[3], p[4], p[5], p[6]);
      part.scale.setScalar(p[7]);
    });
  }
}
