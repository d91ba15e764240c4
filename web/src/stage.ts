// Renderer, light, floor and camera. The world is turned and scaled so that "up" is +y and the scene has size 1.
import * as THREE from "three";
import { OrbitControls } from "three/examples/jsm/controls/OrbitControls.js";
import { RoomEnvironment } from "three/examples/jsm/environments/RoomEnvironment.js";
import { floorMesh, setFloorLook } from "./floor";

export type ViewFrom = "three-quarter" | "front" | "side" | "top";

export interface Bounds {
  low: THREE.Vector3;
  high: THREE.Vector3;
}

// What is given up, step by step, where drawing is slow: resolution, shadows, and at last the light of a room around the
// scene, which takes seconds to prepare without a GPU.
const qualities = [
  { ratio: 2, shadow: 2048, room: true },
  { ratio: 1, shadow: 1024, room: true },
  { ratio: 0.75, shadow: 512, room: true },
  { ratio: 0.5, shadow: 0, room: false },
];

export class Stage {
  readonly renderer: THREE.WebGLRenderer;
  readonly scene = new THREE.Scene();
  readonly camera = new THREE.PerspectiveCamera(32, 1, 0.01, 60);
  readonly controls: OrbitControls;
  readonly root = new THREE.Group(); // the run's coordinates -> the stage's
  readonly grid: number; // spacing of the floor's grid [m]
  private readonly key: THREE.DirectionalLight;
  private readonly sky: THREE.HemisphereLight; // in place of the room
  private room: THREE.Texture | null = null; // made when it is first needed
  private readonly floor: THREE.Mesh;
  private corners: THREE.Vector3[] = []; // of the box that the run stays in
  private readonly target = new THREE.Vector3();
  private columns = 1; // pictures side by side
  private from: ViewFrom = "three-quarter";
  private moved = false; // by the user
  private readonly flat: boolean;
  private delays: number[] = [];
  quality = 0;
  changed = true;

  constructor(
    readonly canvas: HTMLCanvasElement,
    bounds: Bounds,
    gravity: [number, number, number],
    flat: boolean,
  ) {
    this.flat = flat;
    this.renderer = new THREE.WebGLRenderer({ canvas, antialias: true, alpha: true, preserveDrawingBuffer: true });
    this.renderer.shadowMap.enabled = true;
    this.renderer.shadowMap.type = THREE.PCFShadowMap;
    this.renderer.localClippingEnabled = true;

    const up = new THREE.Vector3(...gravity).negate();
    if (up.length() === 0) up.set(0, 1, 0);
    this.root.quaternion.setFromUnitVectors(up.normalize(), new THREE.Vector3(0, 1, 0));
    const centre = bounds.low.clone().add(bounds.high).multiplyScalar(0.5);
    const size = Math.max(bounds.high.distanceTo(bounds.low), 1e-9);
    const scale = 1 / size;
    this.root.scale.setScalar(scale);
    this.root.position.copy(centre).applyQuaternion(this.root.quaternion).multiplyScalar(-scale);
    this.root.updateMatrixWorld(true);
    this.scene.add(this.root);

    const raw = size / 8;
    const power = 10 ** Math.floor(Math.log10(raw));
    this.grid = [1, 2, 5, 10].map((m) => m * power).find((g) => g >= raw)!;
    this.floor = floorMesh(4, this.grid * scale);
    this.scene.add(this.floor);

    this.sky = new THREE.HemisphereLight(0xffffff, 0x8d8880, 1);
    this.scene.add(this.sky);
    this.key = new THREE.DirectionalLight(0xfff4e8, 1.5);
    this.key.position.set(1.1, 2.2, 1.3);
    this.key.castShadow = true;
    this.key.shadow.radius = 5;
    this.key.shadow.bias = -0.0008;
    this.key.shadow.normalBias = 0.006;
    const c = this.key.shadow.camera;
    c.left = c.bottom = -1.1;
    c.right = c.top = 1.1;
    c.near = 0.1;
    c.far = 6;
    this.scene.add(this.key, this.key.target);
    const rim = new THREE.DirectionalLight(0xdfe9ff, 0.45);
    rim.position.set(-1.5, 0.8, -1.2);
    this.scene.add(rim);

    this.controls = new OrbitControls(this.camera, canvas);
    this.controls.enableDamping = true;
    this.controls.dampingFactor = 0.12;
    this.controls.minDistance = 0.05;
    this.controls.maxDistance = 12;
    this.controls.addEventListener("change", () => (this.changed = true));
    this.controls.addEventListener("start", () => (this.moved = true));
    this.from = flat ? "front" : "three-quarter";
    this.setBounds(bounds);
    this.setQuality(0);
  }

  // What the camera frames and the floor lies under; a run that is still going grows.
  // Somebody has turned the camera.
  get turned() {
    return this.moved;
  }

  setBounds({ low, high }: Bounds) {
    this.corners = [];
    for (let k = 0; k < 8; ++k)
      this.corners.push(new THREE.Vector3(k & 1 ? high.x : low.x, k & 2 ? high.y : low.y, k & 4 ? high.z : low.z).applyMatrix4(this.root.matrixWorld));
    this.floor.position.y = Math.min(...this.corners.map((c) => c.y)) - 0.004;
    this.target.copy(this.corners[0]).add(this.corners[7]).multiplyScalar(0.5);
    if (!this.moved) this.look(this.from);
  }

  // 0 is best.
  setQuality(level: number) {
    this.quality = Math.min(qualities.length - 1, Math.max(0, level));
    const q = qualities[this.quality];
    this.renderer.setPixelRatio(Math.min(window.devicePixelRatio, q.ratio));
    this.key.castShadow = q.shadow > 0;
    this.key.shadow.mapSize.setScalar(q.shadow || 512);
    this.key.shadow.map?.dispose();
    this.key.shadow.map = null;
    this.changed = true;
  }

  // Told how long the last picture took to come while playing [s]; gives up quality when they are slow.
  noteDelay(seconds: number) {
    this.delays.push(seconds);
    if (this.delays.length < 24) return;
    const median = this.delays.sort((a, b) => a - b)[12];
    this.delays = [];
    if (median > 0.045 && this.quality < qualities.length - 1) this.setQuality(this.quality + 1);
  }

  showFloor(visible: boolean) {
    this.floor.visible = visible && !this.flat;
    this.changed = true;
  }

  setLook(dark: boolean) {
    setFloorLook(dark);
    this.scene.environmentIntensity = dark ? 0.4 : 0.46;
    this.sky.intensity = dark ? 1.8 : 2.1;
    this.key.intensity = dark ? 1.5 : 1.6;
    this.changed = true;
  }

  look(from: ViewFrom) {
    const directions = { "three-quarter": [0.62, 0.42, 1], front: [0, 0, 1], side: [1, 0, 0], top: [0, 1, 0.001] };
    this.from = from;
    this.moved = false;
    // As near as all corners of the box stay in the picture.
    const aspect = Math.max(0.2, this.canvas.clientWidth / this.columns / Math.max(1, this.canvas.clientHeight));
    const towards = new THREE.Vector3().fromArray(directions[from]).normalize();
    const right = new THREE.Vector3(0, 1, 0).cross(towards).normalize();
    const above = towards.clone().cross(right);
    const slope = 0.84 * Math.tan((this.camera.fov * Math.PI) / 360); // the rest is margin, and the legend's
    let distance = 0.2;
    for (const corner of this.corners) {
      const c = corner.clone().sub(this.target);
      distance = Math.max(distance, c.dot(towards) + Math.max(Math.abs(c.dot(above)), Math.abs(c.dot(right)) / aspect) / slope);
    }
    this.controls.target.copy(this.target);
    this.camera.position.copy(towards).multiplyScalar(distance).add(this.target);
    this.controls.update();
    this.changed = true;
  }

  // Where the camera is and what it looks at, in the stage's coordinates.
  get place(): number[] {
    return [...this.camera.position.toArray(), ...this.controls.target.toArray()].map((v) => +v.toFixed(3));
  }
  set place(numbers: number[]) {
    if (numbers.length !== 6 || !numbers.every(Number.isFinite)) return;
    this.camera.position.fromArray(numbers);
    this.controls.target.fromArray(numbers, 3);
    this.moved = true;
    this.controls.update();
    this.changed = true;
  }

  setColumns(columns: number) {
    this.columns = columns;
    if (!this.moved) this.look(this.from);
  }

  // Fits the drawing buffer to the canvas; true when it changed.
  fit(): boolean {
    const { clientWidth: w, clientHeight: h } = this.canvas;
    const ratio = this.renderer.getPixelRatio();
    if (this.canvas.width === Math.floor(w * ratio) && this.canvas.height === Math.floor(h * ratio)) return false;
    this.renderer.setSize(w, h, false);
    if (!this.moved) this.look(this.from);
    this.changed = true;
    return true;
  }

  private lightRoom() {
    const wanted = qualities[this.quality].room;
    if (wanted && !this.room) {
      const pmrem = new THREE.PMREMGenerator(this.renderer);
      // Bodies are rough: small pictures of the room light them as well.
      this.room = pmrem.fromScene(new RoomEnvironment(), 0.06, 0.1, 100, { size: 64 }).texture;
      pmrem.dispose();
    }
    this.scene.environment = wanted ? this.room : null;
    this.sky.visible = !wanted;
  }

  // Draws the scene once, or once per column with only that column's group visible.
  draw(columns: THREE.Object3D[] | null) {
    this.lightRoom();
    const { clientWidth: w, clientHeight: h } = this.canvas;
    const r = this.renderer;
    if (!columns || columns.length < 2) {
      this.camera.aspect = w / Math.max(1, h);
      this.camera.updateProjectionMatrix();
      r.setScissorTest(false);
      r.setViewport(0, 0, w, h);
      r.render(this.scene, this.camera);
      return;
    }
    const width = w / columns.length;
    this.camera.aspect = width / Math.max(1, h);
    this.camera.updateProjectionMatrix();
    r.setScissorTest(true);
    columns.forEach((column, k) => {
      columns.forEach((other) => (other.visible = other === column));
      r.setViewport(k * width, 0, width, h);
      r.setScissor(k * width, 0, width, h);
      r.render(this.scene, this.camera);
    });
    columns.forEach((other) => (other.visible = true));
    r.setScissorTest(false);
  }

  // A ray in the run's coordinates through a point of the canvas (CSS pixels); `columns` side by side.
  ray(px: number, py: number, columns: number) {
    const { clientWidth: w, clientHeight: h } = this.canvas;
    const width = w / columns;
    const column = Math.min(columns - 1, Math.floor(px / width));
    const ndc = new THREE.Vector2(((px - column * width) / width) * 2 - 1, 1 - (py / h) * 2);
    const caster = new THREE.Raycaster();
    caster.setFromCamera(ndc, this.camera);
    const inverse = this.root.matrixWorld.clone().invert();
    const from = caster.ray.origin.clone().applyMatrix4(inverse);
    const direction = caster.ray.direction.clone().transformDirection(inverse);
    return { from, direction, column };
  }
}
