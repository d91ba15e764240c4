// One run on the stage: surface, cut face, marks, obstacles; shows the run at a moment.
import * as THREE from "three";
import { Cap } from "./cap";
import { Carried, uncovered } from "./carried";
import { ClothMarks } from "./cloth";
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
  checkers: boolean; // of a cloth
  sliding: boolean; // its vertices and edges on sharp features
  material: boolean; // the map of its material
  skin: boolean; // surfaces that bodies carry, while nothing is coloured by a field
}

export class RunView {
  readonly group = new THREE.Group();
  readonly uniforms = surfaceUniforms();
  readonly obstacles: Obstacles;
  frame = -1;
  // Positions and values of the page's nodes. A body that the GPU moves has them when somebody asks.
  private knownX: Float32Array = new Float32Array(0);
  private knownValues: Float32Array = new Float32Array(0);
  private staleX = true;
  private staleValues = true;
  private mix = 0;
  private epochIndex = -1;
  private surface!: Surface;
  private cap: Cap | null = null;
  private marks!: Marks;
  private carried: Carried[] = [];
  onLoad = () => {}; // a texture has been decoded
  private field: FieldInfo | null = null;
  private clip: ClipPlane | null = null;
  private readonly worldPlane = new THREE.Plane();
  private showing: Showing = { wire: false, nodes: true, pins: true, fibres: true, obstacles: true, checkers: true, sliding: true, material: true, skin: true };
  private readonly cloth = new ClothMarks();
  material: Float32Array | null = null; // of the shown frame
  conformal: Int32Array = new Int32Array(0);
  private opacity = 1;

  constructor(
    readonly run: Run,
    private readonly size: number,
    grid: number,
  ) {
    this.obstacles = new Obstacles(run.manifest, size, grid);
    this.group.add(this.obstacles.group, this.cloth.group);
    this.useEpoch(0, 0);
    this.show(0, 0, true);
  }

  get x(): Float32Array {
    if (this.staleX && this.shape) {
      const { rest } = this.epoch;
      for (let i = 0; i < rest.length; ++i) this.knownX[i] = rest[i] + this.swing * this.shape[i];
    } else if (this.staleX) {
      this.run.positions(this.frame, this.mix, this.knownX);
    }
    this.staleX = false;
    return this.knownX;
  }

  // A named motion about the rest shape, `swing` as far as it goes [m], in place of the run; null: the run again.
  setShape(index: number, swing: number) {
    const shape = this.epoch.shapes?.[index]?.values ?? null;
    if (!shape && !this.shape) return;
    this.shape = shape;
    this.swing = swing;
    this.show(this.frame, this.mix, true);
  }
  private shape: Float32Array | null = null;
  private swing = 0;

  get values(): Float32Array {
    if (this.staleValues && this.field)
      this.knownValues = this.run.fieldValues(this.field, this.frame, this.field.id === "displacement" ? this.x : this.knownX);
    else if (this.staleValues) this.knownValues = new Float32Array(this.epoch.nodes.length);
    this.staleValues = false;
    return this.knownValues;
  }

  get epoch(): Epoch {
    return this.run.epochs[this.epochIndex];
  }

  private useEpoch(index: number, frame: number) {
    if (index === this.epochIndex) return;
    if (this.epochIndex >= 0) this.dispose();
    this.shape = null; // of another topology
    this.epochIndex = index;
    const epoch = this.epoch;
    this.knownX = new Float32Array(epoch.rest.length);
    this.surface = new Surface(epoch, this.uniforms, this.run.conformalEdges(frame));
    this.marks = new Marks(epoch, this.size);
    this.cap = epoch.tets ? new Cap(epoch, this.uniforms) : null;
    this.carried = epoch.surfaces.map((s) => new Carried(s, () => this.onLoad()));
    this.group.add(this.surface.mesh, this.marks.group, ...this.carried.map((c) => c.mesh));
    if (this.cap) this.group.add(this.cap.mesh);
    if (this.field) this.field = epoch.field(this.field.id) ?? null;
    this.applyShowing();
    this.applyClip();
    this.setOpacity(this.opacity);
    this.setBehind(this.behind);
  }

  // Gives back what the graphics card holds of the shown topology.
  dispose() {
    this.group.remove(this.surface.mesh, this.marks.group);
    this.surface.dispose();
    this.marks.dispose();
    for (const c of this.carried) {
      this.group.remove(c.mesh);
      c.dispose();
    }
    if (!this.cap) return;
    this.group.remove(this.cap.mesh);
    this.cap.dispose();
  }

  // The run between frame and frame + 1 (mix 0..1). `force`: although nothing moved.
  show(frame: number, mix: number, force = false) {
    if (!force && frame === this.frame && mix === this.mix) return;
    this.frame = frame;
    this.mix = mix;
    this.useEpoch(this.run.epochIndex(frame), frame);
    this.staleX = this.staleValues = true;
    const pose = this.surface.skinned && !this.shape ? this.run.coordinates(frame, mix) : null;
    let place = (i: number, out: Float32Array, o: number) => out.set(this.x.subarray(3 * i, 3 * i + 3), o);
    if (pose) {
      this.surface.pose(pose.u, pose.v);
      const skin = this.epoch.skin!;
      place = (i, out, o) => {
        out.set(skin.rest.subarray(3 * i, 3 * i + 3), o);
        skin.add(pose.u, i, out, o);
      };
    } else {
      this.surface.move(this.x);
    }
    for (const c of this.carried) if (c.mesh.visible) c.move(this.x);
    this.marks.move(place, () => this.x, this.run.mark("dynamic", frame), this.run.mark("pinned", frame));
    this.obstacles.move(frame);
    this.showCloth(frame);
    this.repaint();
  }

  private showCloth(frame: number) {
    this.material = this.run.material(frame);
    this.uniforms.uCell.value = this.material && this.showing.checkers ? this.cell : 0;
    if (!this.material) return;
    this.surface.setMaterial(this.material);
    this.conformal = this.run.conformalEdges(frame);
    this.cloth.move(this.x, this.run.mark("eol", frame), this.conformal, 0.004 * this.size);
  }

  // Of the checkers: a round number, about a twentieth of the cloth at the start of the run.
  private get cell() {
    if (!this.cellSize && this.material) {
      let [low, high] = [Infinity, -Infinity];
      for (const m of this.material) {
        low = Math.min(low, m);
        high = Math.max(high, m);
      }
      const raw = (high - low) / 20;
      const power = 10 ** Math.floor(Math.log10(raw));
      this.cellSize = power * (raw / power < 1.5 ? 1 : raw / power < 3.5 ? 2 : raw / power < 7.5 ? 5 : 10);
    }
    return this.cellSize;
  }
  private cellSize = 0;

  private repaint() {
    this.staleValues = true;
    if (this.field && !this.surface.paintSkin(this.field.id)) this.surface.paint(this.values, this.field.per === "element");
    this.updateCap();
  }

  private updateCap() {
    if (!this.cap) return;
    this.cap.mesh.visible = this.clip !== null;
    if (!this.clip) return;
    this.cap.update(this.x, this.values, this.field?.per === "element", this.clip);
  }

  color(field: FieldInfo | null, range: Range | null) {
    this.field = field ? (this.epoch.field(field.id) ?? null) : null;
    const u = this.uniforms;
    u.uMode.value = !this.field ? ColorMode.Plain : this.field.highlight ? ColorMode.Highlight : this.field.categories ? ColorMode.Categories : ColorMode.Numbers;
    if (range) this.setRange(range);
    this.applySkin();
    this.repaint();
  }

  // Carried surfaces in place of their bodies, or the bodies themselves.
  private applySkin() {
    if (!this.carried.length) return;
    const on = this.showing.skin && !this.field;
    for (const c of this.carried) {
      c.mesh.visible = on;
      if (on) c.move(this.x);
    }
    this.surface.showOnly(on ? uncovered(this.epoch) : null);
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
    this.applySkin();
    this.cloth.group.visible = s.sliding && this.material !== null;
    this.uniforms.uCell.value = this.material && s.checkers ? this.cell : 0;
  }

  setOpacity(opacity: number) {
    this.opacity = opacity;
    const m = this.surface.material;
    m.transparent = opacity < 1;
    m.opacity = opacity;
    m.depthWrite = opacity === 1;
    // Of something see-through only the front: backs and fronts would be mixed in the order of the triangles.
    m.side = opacity === 1 || this.material ? THREE.DoubleSide : THREE.FrontSide;
    m.needsUpdate = true;
    for (const c of this.carried) c.setOpacity(opacity);
    this.surface.mesh.castShadow = opacity === 1 && !this.epoch.info.plane;
  }

  // What lies on it is drawn in front, in every picture alike: two bodies in the same place do not flicker.
  setBehind(on: boolean) {
    this.behind = on;
    const m = this.surface.material;
    m.polygonOffset = on;
    m.polygonOffsetFactor = on ? 2 : 0;
    m.polygonOffsetUnits = on ? 8 : 0;
    m.needsUpdate = true;
  }
  private behind = false;

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
    for (const c of this.carried) c.clip(planes);
    this.cloth.clip(planes);
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
