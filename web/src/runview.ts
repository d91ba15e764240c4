// One run on the stage: surface, cut face, marks, obstacles; shows the run at a moment.
import * as THREE from "three";
import { Cap } from "./cap";
import type { Epoch, FieldInfo, Run } from "./data";
import { Marks } from "./marks";
import { ColorMode, surfaceUniforms } from "./material";
import { Obstacles } from "./obstacles";
import { type ClipPlane, Surface } from "./surface";

export interface Range {
  low: number;
  high: number;
  log: boolean;
  tick: number;
}

export interface Showing {
  wire: boolean;
  nodes: boolean;
  pins: boolean;
  fibres: boolean;
  obstacles: boolean;
}

export class RunView {
  readonly group = new THREE.Group();
  readonly uniforms = surfaceUniforms();
  readonly obstacles: Obstacles;
  x: Float32Array = new Float32Array(0);
  values: Float32Array = new Float32Array(0);
  frame = -1;
  private mix = 0;
  private epochIndex = -1;
  private surface!: Surface;
  private cap: Cap | null = null;
  private marks!: Marks;
  private field: FieldInfo | null = null;
  private clip: ClipPlane | null = null;
  private readonly worldPlane = new THREE.Plane();
  private showing: Showing = { wire: false, nodes: true, pins: true, fibres: true, obstacles: true };
  private opacity = 1;

  constructor(
    readonly run: Run,
    private readonly size: number,
    grid: number,
  ) {
    this.obstacles = new Obstacles(run.manifest, size, grid);
    this.group.add(this.obstacles.group);
    this.useEpoch(0);
    this.show(0, 0, true);
  }

  get epoch(): Epoch {
    return this.run.epochs[this.epochIndex];
  }

  private useEpoch(index: number) {
    if (index === this.epochIndex) return;
    if (this.epochIndex >= 0) {
      this.group.remove(this.surface.mesh, this.marks.group);
      this.surface.dispose();
      this.marks.dispose();
      if (this.cap) {
        this.group.remove(this.cap.mesh);
        this.cap.dispose();
      }
    }
    this.epochIndex = index;
    const epoch = this.epoch;
    this.x = new Float32Array(epoch.rest.length);
    this.surface = new Surface(epoch, this.uniforms);
    this.marks = new Marks(epoch, this.size);
    this.cap = epoch.tets ? new Cap(epoch, this.uniforms) : null;
    this.group.add(this.surface.mesh, this.marks.group);
    if (this.cap) this.group.add(this.cap.mesh);
    if (this.field) this.field = epoch.field(this.field.id) ?? null;
    this.applyShowing();
    this.applyClip();
    this.setOpacity(this.opacity);
  }

  // The run between frame and frame + 1 (mix 0..1). `force`: although nothing moved.
  show(frame: number, mix: number, force = false) {
    if (!force && frame === this.frame && mix === this.mix) return;
    this.frame = frame;
    this.mix = mix;
    this.useEpoch(this.run.epochIndex(frame));
    this.run.positions(frame, mix, this.x);
    this.surface.move(this.x);
    this.marks.move(this.x, this.run.mark("dynamic", frame), this.run.mark("pinned", frame));
    this.obstacles.move(frame);
    this.repaint();
  }

  private repaint() {
    if (this.field) {
      this.values = this.run.fieldValues(this.field, this.frame, this.x);
      this.surface.paint(this.values, this.field.per === "element");
    }
    this.updateCap();
  }

  private updateCap() {
    if (!this.cap) return;
    this.cap.mesh.visible = this.clip !== null;
    if (!this.clip) return;
    const values = this.field ? this.values : new Float32Array(this.epoch.nodes.length);
    this.cap.update(this.x, values, this.field?.per === "element", this.clip);
  }

  color(field: FieldInfo | null, range: Range | null) {
    this.field = field ? (this.epoch.field(field.id) ?? null) : null;
    const u = this.uniforms;
    u.uMode.value = !this.field ? ColorMode.Plain : this.field.categories ? ColorMode.Categories : ColorMode.Numbers;
    if (range) this.setRange(range);
    this.repaint();
  }

  setRange(range: Range) {
    const u = this.uniforms;
    u.uLow.value = range.log ? Math.log10(range.low) : range.low;
    u.uHigh.value = range.log ? Math.log10(range.high) : range.high;
    u.uLog.value = range.log ? 1 : 0;
    u.uTick.value = range.tick;
  }

  setShowing(showing: Showing) {
    this.showing = { ...showing };
    this.applyShowing();
  }

  private applyShowing() {
    const s = this.showing;
    this.uniforms.uWire.value = s.wire ? 0.8 : 0;
    this.marks.dynamic.group.visible = this.marks.candidates.group.visible = s.nodes;
    this.marks.pins.group.visible = s.pins;
    if (this.marks.fibres) this.marks.fibres.visible = s.fibres;
    this.obstacles.group.visible = s.obstacles;
  }

  setOpacity(opacity: number) {
    this.opacity = opacity;
    const m = this.surface.material;
    m.transparent = opacity < 1;
    m.opacity = opacity;
    m.depthWrite = opacity === 1;
    m.needsUpdate = true;
    this.surface.mesh.castShadow = opacity === 1 && !this.epoch.info.plane;
  }

  // `toWorld`: from the run's coordinates to the stage's.
  setClip(clip: ClipPlane | null, toWorld: THREE.Matrix4) {
    this.clip = clip;
    if (clip) {
      this.worldPlane.normal.copy(clip.normal).negate();
      this.worldPlane.constant = clip.offset;
      this.worldPlane.applyMatrix4(toWorld);
    }
    this.applyClip();
    this.updateCap();
  }

  private applyClip() {
    const planes = this.clip ? [this.worldPlane] : null;
    this.surface.material.clippingPlanes = planes;
    this.marks.clip(planes);
  }

  hit(from: THREE.Vector3, direction: THREE.Vector3) {
    return this.surface.hit(this.x, from, direction, this.clip);
  }

  valueAt(node: number, triangle: number): number {
    if (!this.field) return NaN;
    return this.field.per === "element" ? this.values[this.epoch.triangleElement[triangle]] : this.values[node];
  }

  get colored(): FieldInfo | null {
    return this.field;
  }
}
