// The page: puts the runs on the stage and connects the controls.
import * as THREE from "three";
import { barTicks, categoryList, colorBar, markList } from "./legend";
import { chooseMap, mapName, shortNumber } from "./colors";
import { Controls } from "./controls";
import { drawMaterial } from "./cloth";
import { type FieldInfo, type Manifest, Run, type RunManifest } from "./data";
import { byId, el } from "./dom";
import { histogramSpec } from "./histogram";
import { comparison, factsOf } from "./facts";
import { refreshTable } from "./material";
import { Player } from "./player";
import { type PlotSpec, Plots, phases, plotSpecs, total } from "./plots";
import { type Range, RunView } from "./runview";
import { Stage } from "./stage";
import type { ClipPlane } from "./surface";

export type Layout = "side" | "overlay" | number; // number: only that run

export class App {
  readonly runs: Run[];
  readonly player: Player;
  readonly plots: Plots;
  readonly controls: Controls;
  stage: Stage | null = null;
  views: RunView[] = [];
  dark = false;
  field: FieldInfo | null = null;
  range: Range | null = null;
  rangeOfFrame = false;
  layout: Layout = "side";
  private picked = -1;
  private lastDraw = 0;
  private pointer: { x: number; y: number } | null = null;
  probing = true; // numbers beside the pointer

  constructor(readonly manifest: Manifest) {
    this.runs = manifest.runs.map((r) => new Run(r));
    this.player = new Player(this.reference?.manifest.times ?? [], (f) => this.reference.available(f));
    this.plots = new Plots(byId("plots"));
    this.plots.onSeek = (t) => this.player.seekTime(t);
    this.controls = new Controls(this);
    this.player.onChange = () => {
      this.controls.transport.update();
      this.plots.follow(this.player.time);
    };
    this.nameIt();
  }

  private nameIt() {
    const title = this.manifest.title || this.runs[0]?.manifest.scene;
    byId("scene-name").textContent = title || "Limber";
    document.title = `${title || "run"} · Limber`;
    byId("scene-sub").textContent = this.subtitle();
  }

  // The run of a live page, which comes after the page.
  addRun(run: RunManifest) {
    this.runs.push(new Run(run));
    this.nameIt();
  }

  // Another body in the place of the one that is shown; the camera stays.
  async replaceRun(manifest: RunManifest, source: (id: string) => Promise<Uint8Array>) {
    const run = new Run(manifest);
    await run.load(source, () => {});
    for (const v of this.views) {
      this.stage?.root.remove(v.group);
      v.dispose();
    }
    this.runs.splice(0, this.runs.length, run);
    const first = !this.stage;
    if (first) this.begin();
    else this.views = [new RunView(run, 1 / this.stage!.root.scale.x, this.stage!.grid)];
    for (const v of this.views) {
      this.stage!.root.add(v.group);
      v.onLoad = () => this.touch();
    }
    const field = first ? this.firstColor() : (this.field?.id ?? null);
    this.setLook(this.dark);
    this.setShowing();
    this.controls.applyClip();
    this.setColor(field);
  }

  // What says most at first sight.
  firstColor(): string | null {
    if (this.fields.some((f) => f.id === "distance")) return "distance";
    const pointed = this.fields.find((f) => f.highlight);
    const drawn = this.views.some((v) => v.material || v.epoch.surfaces.length); // checkers and textures say more than a colour
    return pointed ? pointed.id : drawn ? null : "displacement";
  }

  get reference(): Run {
    return this.runs[this.manifest.compare?.reference ?? 0];
  }

  label(k: number) {
    const m = this.runs[k].manifest;
    return m.label || m.method || `run ${k + 1}`;
  }

  private subtitle() {
    if (this.runs.length > 1) return this.runs.map((_, k) => this.label(k)).join("  ·  ");
    const m = this.runs[0]?.manifest;
    if (!m) return "";
    const sizes = m.epochs[0];
    const { links, nodes } = (m.facts ?? {}) as Record<string, number | undefined>;
    const bodies = links ? nodes : sizes?.totalNodes;
    return [m.method, bodies ? `${bodies.toLocaleString("en")} nodes` : "", links ? `${links} links` : "", `limber ${m.version}`].filter(Boolean).join("  ·  ");
  }

  // The box that all runs stay in.
  private bounds() {
    const low = new THREE.Vector3(Infinity, Infinity, Infinity);
    const high = low.clone().negate();
    for (const run of this.runs) {
      for (const g of run.manifest.groups) {
        low.min(new THREE.Vector3(...g.low));
        high.max(new THREE.Vector3(...g.high));
      }
      const rest = run.epochs[0].rest;
      for (let i = 0; i < rest.length; i += 3) {
        const p = new THREE.Vector3().fromArray(rest, i);
        low.min(p);
        high.max(p);
      }
    }
    return { low, high };
  }

  // Called when the first frames of every run can be shown.
  begin() {
    if (this.stage || !this.runs.length || this.runs.some((r) => r.epochs.length === 0)) return;
    const flat = this.runs.every((r) => r.epochs[0].info.plane);
    const { low, high } = this.bounds();
    this.stage = new Stage(byId<HTMLCanvasElement>("canvas"), { low, high }, this.reference.manifest.gravity, flat);
    const size = low.distanceTo(high);
    this.views = this.runs.map((run) => new RunView(run, size, this.stage!.grid));
    this.views.forEach((v) => {
      this.stage!.root.add(v.group);
      v.onLoad = () => this.touch();
    });
    byId("corner").textContent = flat ? "" : `grid ${shortNumber(this.stage.grid)} m`;
    this.controls.build(low, high);
    this.setLook(this.dark);
    this.setLayout(this.layout);
    this.watchPointer();
  }

  // Called when all data have been decoded, or more of a live run has come.
  refresh() {
    this.player.setTimes(this.reference?.manifest.times ?? []);
    if (this.manifest.mode === "live") this.stage?.setBounds(this.bounds());
    this.drawPlots();
    byId("facts").replaceChildren(...this.runs.flatMap((r, k) => (this.runs.length > 1 ? [el("h2", {}, this.label(k))] : []).concat(factsOf(r) as HTMLHeadingElement[])));
    if (this.manifest.compare) {
      byId("section-costs").hidden = false;
      byId("costs").replaceChildren(...comparison(this.manifest.compare, this.runs.map((_, k) => this.label(k))));
    }
    this.setColor(this.field?.id ?? null);
    this.controls.listShapes();
    this.plots.follow(this.player.time);
  }

  private drawPlots() {
    const specs = this.runs.length > 1 ? this.compareSpecs() : plotSpecs(this.reference.rows);
    const histogram = this.runs.map((run) => histogramSpec(run.rows)).find((h) => h) ?? null;
    this.plots.set([...this.plottedNodes.map((n) => this.nodeSpec(n)), ...specs], this.dark, histogram);
    this.plots.follow(this.player.time);
  }

  // The displacement of a node over time, as a plot; a second call takes it away.
  plotNode(node: number) {
    const at = this.plottedNodes.indexOf(node);
    if (at >= 0) this.plottedNodes.splice(at, 1);
    else this.plottedNodes.unshift(node);
    this.plottedNodes.splice(4);
    this.drawPlots();
  }
  readonly plottedNodes: number[] = [];

  private nodeSpec(node: number): PlotSpec {
    const t = this.reference.manifest.times;
    if (this.runs.length === 1) {
      const path = this.reference.path(node);
      return { title: `Displacement of node ${node}`, unit: "m", t, series: ["x", "y", "z"].map((label, d) => ({ label, values: path[d] })) };
    }
    const series = this.runs.map((run, k) => {
      const [x, y, z] = run.path(node);
      return { label: this.label(k), values: resample(run.manifest.times, x.map((v, i) => Math.hypot(v, y[i], z[i])), t) };
    });
    return { title: `How far node ${node} is from its rest place`, unit: "m", t, series };
  }

  private compareSpecs(): PlotSpec[] {
    const specs: PlotSpec[] = [];
    for (const r of this.manifest.compare?.runs ?? [])
      specs.push({
        title: `Distance of ${this.label(r.run)} to ${this.label(this.manifest.compare!.reference)}`,
        unit: "m",
        t: r.t,
        series: [
          { label: "largest", values: r.max },
          { label: "RMS", values: r.rms },
        ],
      });
    // One number of every run in one plot, on the reference's times.
    const together = (title: string, unit: string, of: (run: Run) => ArrayLike<number> | null) => {
      const t = this.reference.rows.get("t");
      if (!t) return;
      const series = this.runs.flatMap((run, k) => {
        const values = of(run);
        const times = run.rows.get("t");
        return values && times ? [{ label: this.label(k), values: resample(times, values, t) }] : [];
      });
      if (series.length) specs.push({ title, unit, t, series });
    };
    together("Total energy", "J", (run) => {
      const parts = [...run.rows].filter(([n]) => n.startsWith("energy/") && n !== "energy/total").map(([, v]) => v);
      return parts.length ? total(parts) : null;
    });
    const times = (run: Run) => {
      const parts = phases(run.rows).map((p) => p.values);
      return parts.length ? total(parts) : null;
    };
    together("Time per step", "ms", times);
    // The reference's time for a second of the simulation over each run's, step by step.
    const t = this.reference.rows.get("t");
    const cost = times(this.reference);
    const faster = this.runs.flatMap((run, k) => {
      const [at, ms] = [run.rows.get("t"), times(run)];
      if (run === this.reference || !t || !cost || !at || !ms) return [];
      const own = resample(at, ms, t);
      const steps = run.manifest.h / this.reference.manifest.h;
      return [{ label: this.label(k), values: own.map((v, i) => (v > 0 ? (steps * cost[i]) / v : NaN)) }];
    });
    if (t && faster.length) specs.push({ title: `Times as fast as ${this.label(this.manifest.compare!.reference)}`, unit: "", t, series: faster });
    together("Unknowns", "", (run) => run.rows.get("dofs") ?? null);
    return specs;
  }

  // ---- colour ----

  get fields(): FieldInfo[] {
    const out: FieldInfo[] = [];
    for (const run of this.runs)
      for (const epoch of run.epochs) for (const f of epoch.info.fields) if (!out.some((o) => o.id === f.id)) out.push(f);
    return out;
  }

  setColor(id: string | null) {
    this.field = this.fields.find((f) => f.id === id) ?? null;
    this.picked = -1;
    if (this.typedRange && this.typedFor !== this.field?.id) this.typedRange = null;
    this.range = this.field && !this.field.categories ? this.rangeOf(this.field) : null;
    for (const v of this.views) {
      v.color(this.field, this.range);
      v.uniforms.uPick.value = -1;
    }
    this.controls.colorChanged();
    this.drawLegend();
    this.touch();
  }

  // A range of the user's own for the field that is shown; null: from its values.
  setTypedRange(range: [number, number] | null) {
    this.typedRange = range;
    this.typedFor = this.field?.id;
    this.setColor(this.field?.id ?? null);
  }
  typedRange: [number, number] | null = null;
  private typedFor: string | undefined = undefined;

  // Over the whole run: the largest value but for the topmost 0.2 %, so that one spike does not darken the rest.
  private rangeOf(field: FieldInfo): Range {
    if (this.typedRange) {
      const range: Range = { low: this.typedRange[0], high: this.typedRange[1], log: false, tick: 0 };
      const at = barTicks(range);
      range.tick = at.length > 1 ? at[1] - at[0] : 0;
      return range;
    }
    const sample: number[] = [];
    const collect = (run: Run, frame: number) => {
      const epoch = run.epochOf(frame);
      const info = epoch.field(field.id);
      if (!info) return;
      const x = new Float32Array(epoch.rest.length);
      run.positions(frame, 0, x);
      const values = run.fieldValues(info, frame, x);
      const stride = Math.max(1, Math.floor(values.length / 2000));
      for (let i = 0; i < values.length; i += stride) if (Number.isFinite(values[i])) sample.push(values[i]);
    };
    this.runs.forEach((run, k) => {
      if (this.rangeOfFrame) collect(run, this.views[k]?.frame ?? 0);
      else {
        const count = Math.max(1, run.frameCount);
        const stride = Math.max(1, Math.floor(count / 16));
        for (let f = 0; f < count; f += stride) if (run.available(f) || run.frameCount === 0) collect(run, f);
        if (run.available(count - 1)) collect(run, count - 1);
      }
    });
    sample.sort((a, b) => a - b);
    const least = sample[0] ?? 0;
    let high = sample[Math.min(sample.length - 1, Math.floor(0.998 * sample.length))] ?? 1;
    let low = field.constant || least < 0 ? least : 0;
    if (!(high > low)) {
      if (field.constant) low = high / 2;
      high = low > 0 ? 2 * low : 1;
    }
    const log = field.constant && least > 0 && high / least > 30;
    if (log) low = least;
    const range: Range = { low, high, log, tick: 0 };
    const at = barTicks(range);
    range.tick = log ? 1 : at.length > 1 ? at[1] - at[0] : 0;
    return range;
  }

  setContours(on: boolean) {
    this.contours = on;
    this.applyRange();
  }
  private contours = true;

  private applyRange() {
    if (this.range) for (const v of this.views) v.setRange(this.contours ? this.range : { ...this.range, tick: 0 });
    this.touch();
  }

  setMap(name: string) {
    chooseMap(name);
    refreshTable();
    const choice = document.getElementById("map") as HTMLSelectElement | null;
    if (choice) choice.value = mapName();
    this.drawLegend();
    this.touch();
  }

  setRangeOfFrame(on: boolean) {
    this.rangeOfFrame = on;
    this.setColor(this.field?.id ?? null);
  }

  drawLegend() {
    const legend = byId("legend");
    const parts: HTMLElement[] = [];
    if (this.field && this.range) parts.push(...colorBar(this.field, this.range, !this.rangeOfFrame && !this.field.constant));
    if (this.field?.categories) {
      const used = new Set<number>();
      for (const v of this.views) if (v.colored) for (const k of v.values) used.add(Math.round(k));
      parts.push(
        ...categoryList(this.field, [...used].sort((a, b) => a - b).slice(0, 40), this.picked, (k) => {
          this.picked = k;
          for (const v of this.views) v.uniforms.uPick.value = k;
          this.drawLegend();
          this.touch();
        }),
      );
    }
    const showing = this.controls.showing;
    // Of several runs, the one in which some nodes are dynamic and some are not.
    const partly = (flags: Int32Array | null) => flags?.some((f) => f !== 0) && flags.some((f) => f === 0);
    const v = this.views.find((w) => partly(w.run.mark("dynamic", w.frame))) ?? this.views[0];
    if (v) {
      const count = (flags: Int32Array | null) => flags?.reduce((a, b) => a + (b ? 1 : 0), 0) ?? 0;
      const dynamic = count(v.run.mark("dynamic", v.frame));
      const candidates = v.epoch.candidates?.length ?? 0;
      const marks = markList({
        dynamic: showing.nodes ? dynamic : 0,
        idle: showing.nodes && candidates ? Math.max(0, candidates - dynamic) : 0,
        pins: showing.pins ? count(v.run.mark("pinned", v.frame)) : 0,
        fibres: showing.fibres && v.epoch.fibreTets !== null,
        sliding: showing.sliding ? count(v.run.mark("eol", v.frame)) : 0,
      });
      if (marks) parts.push(marks);
    }
    legend.replaceChildren(...parts);
  }

  // ---- display ----

  setLook(dark: boolean) {
    this.dark = dark;
    document.documentElement.dataset.look = dark ? "dark" : "light";
    this.stage?.setLook(dark);
    this.plots.setLook(dark);
    for (const v of this.views) v.uniforms.uBase.value.set(dark ? 0xcbb9a2 : 0xd2bfa7);
    this.touch();
  }

  setLayout(layout: Layout) {
    this.layout = layout;
    const choice = document.getElementById("layout") as HTMLSelectElement | null;
    if (choice) choice.value = String(layout);
    this.views.forEach((v, k) => {
      v.group.visible = typeof layout !== "number" || layout === k;
      const reference = k === (this.manifest.compare?.reference ?? 0);
      v.setOpacity(layout === "overlay" && !reference ? 0.45 : 1);
      v.setBehind(layout === "overlay" && reference);
      // One floor and one set of obstacles is enough where runs share a picture.
      v.obstacles.group.visible = this.controls.showing.obstacles && (layout !== "overlay" || k === 0);
    });
    this.stage?.setColumns(layout === "side" ? this.views.length : 1);
    const labels = byId("labels");
    labels.replaceChildren();
    labels.className = layout === "overlay" ? "stacked" : "";
    if (this.runs.length > 1)
      this.runs.forEach((_, k) => {
        if (typeof layout === "number" && layout !== k) return;
        const how = layout === "overlay" ? (k === (this.manifest.compare?.reference ?? 0) ? " (solid)" : " (see-through)") : "";
        labels.append(el("span", {}, el("b", {}, this.label(k) + how)));
      });
    this.touch();
  }

  setShowing() {
    for (const v of this.views) v.setShowing(this.controls.showing);
    // A scene with a plane has its own floor.
    this.stage?.showFloor(this.controls.floor && !this.views.some((v) => v.obstacles.hasFloor));
    this.setLayout(this.layout);
    this.drawLegend();
    this.touch();
  }

  setClip(clip: ClipPlane | null) {
    for (const v of this.views) v.setClip(clip, this.stage!.root.matrixWorld);
    this.touch();
  }

  touch() {
    if (this.stage) this.stage.changed = true;
  }

  // ---- time ----

  // The names of the motions that the first run's method has, and which of them is shown instead of the run; -1: none.
  get shapes(): string[] {
    return this.views[0]?.epoch.shapes?.map((s) => s.name) ?? [];
  }

  setShape(index: number) {
    if ((index < 0) !== (this.shape < 0)) {
      // A motion is coloured by how far it goes.
      if (index >= 0) this.player.pause();
      this.setColor("displacement");
      this.setTypedRange(index >= 0 ? [0, this.swing] : null);
    }
    this.shape = index;
    this.phase = 0.5 * Math.PI;
    if (index < 0) for (const v of this.views) v.setShape(-1, 0);
    this.controls.shapeChanged();
    this.touch();
  }
  shape = -1;
  private phase = 0;

  // How far a motion is shown to go [m].
  private get swing() {
    const box = new THREE.Box3().setFromArray(Array.from(this.views[0].epoch.rest));
    return 0.1 * box.getSize(new THREE.Vector3()).length();
  }

  private showShape(seconds: number) {
    if (this.shape < 0) return;
    this.phase += Math.PI * seconds;
    this.views[0].setShape(this.shape, this.swing * Math.sin(this.phase));
    this.touch();
  }

  tick = (now: number) => {
    requestAnimationFrame(this.tick);
    const delay = (now - this.lastDraw) / 1000;
    this.lastDraw = now;
    if (this.player.playing && this.shape >= 0) this.setShape(-1);
    this.showShape(Math.min(0.1, delay));
    this.player.advance(Math.min(0.1, delay));
    const stage = this.stage;
    if (!stage) return;
    if (this.player.playing && !document.hidden) stage.noteDelay(delay);
    this.showNow();
    stage.controls.update();
    stage.fit();
    if (!stage.changed) return;
    stage.changed = false;
    const columns = this.layout === "side" && this.views.length > 1 ? this.views.map((v) => v.group) : null;
    stage.draw(columns);
    this.drawMap();
    this.probe();
  };

  // The material of the first cloth that is shown.
  private drawMap() {
    const canvas = byId<HTMLCanvasElement>("material");
    const v = this.views.find((w) => w.group.visible && w.material);
    canvas.hidden = !v || !this.controls.showing.material;
    if (v?.material && !canvas.hidden)
      drawMaterial(canvas, v.material, v.epoch.triangles, v.run.mark("eol", v.frame), v.conformal, this.dark);
  }

  // Brings every run to the player's time.
  showNow() {
    const { frame, mix, time } = this.player;
    this.views.forEach((v) => {
      let [f, m] = [frame, mix];
      if (v.run !== this.reference) [f, m] = frameAt(v.run, time);
      else if (!v.run.available(f) && v.run.frameCount > 0) f = nearestAvailable(v.run, f);
      if (v.frame === f && m === 0 && this.shownMix === 0) return;
      const before = v.frame;
      v.show(f, m);
      if (before !== f) {
        if (this.rangeOfFrame && this.field && !this.field.categories) {
          this.range = this.rangeOf(this.field);
          this.applyRange();
        }
        this.drawLegend();
      }
      this.touch();
    });
    this.shownMix = mix;
  }
  private shownMix = 0;

  // The first frame in which something has moved, or shortly before it; 0 where nothing does.
  get firstSeen(): number {
    const run = this.reference;
    const count = run.frameCount;
    const stride = Math.max(1, Math.floor(count / 60));
    const far = 0.004 / (this.stage?.root.scale.x ?? 1);
    const start = new Float32Array(run.epochs[0].rest.length);
    run.positions(0, 0, start);
    for (let f = stride; f < count; f += stride) {
      if (run.epochIndex(f) !== 0) return Math.max(0, f - stride);
      const x = new Float32Array(start.length);
      run.positions(f, 0, x);
      for (let i = 0; i < x.length; ++i) if (Math.abs(x[i] - start[i]) > far) return Math.max(0, f - stride);
    }
    return 0;
  }

  // ---- probing ----

  private watchPointer() {
    const canvas = byId<HTMLCanvasElement>("canvas");
    const at = (e: PointerEvent) => {
      const box = canvas.getBoundingClientRect();
      return { x: e.clientX - box.left, y: e.clientY - box.top };
    };
    let down: { x: number; y: number } | null = null;
    canvas.addEventListener("pointerdown", (e) => {
      down = at(e);
      this.pointer = null;
      this.probe();
    });
    canvas.addEventListener("pointermove", (e) => {
      if (e.buttons || e.pointerType === "touch") return;
      this.pointer = at(e);
      this.probe();
    });
    canvas.addEventListener("pointerup", (e) => {
      const p = at(e);
      if (e.pointerType === "touch" && down && Math.hypot(p.x - down.x, p.y - down.y) < 8) {
        this.pointer = p;
        this.probe();
      }
    });
    canvas.addEventListener("dblclick", (e) => {
      if (this.manifest.mode === "hold") return;
      this.pointer = at(e as PointerEvent);
      this.plotPointed();
    });
    canvas.addEventListener("pointerleave", (e) => {
      if (e.pointerType === "touch") return;
      this.pointer = null;
      this.probe();
    });
  }

  plotPointed() {
    const found = this.underPointer();
    if (found) this.plotNode(found.view.epoch.nodes[found.hit.node]);
  }

  private underPointer() {
    if (!this.stage || !this.pointer) return null;
    const columns = this.layout === "side" ? this.views.length : 1;
    const { from, direction, column } = this.stage.ray(this.pointer.x, this.pointer.y, columns);
    const view = this.layout === "side" ? this.views[column] : this.views[typeof this.layout === "number" ? this.layout : 0];
    const hit = view.hit(from, direction);
    return hit ? { view, hit } : null;
  }

  // The node under the pointer, with its numbers.
  private probe() {
    const tip = byId("probe");
    const stage = this.stage;
    tip.hidden = true;
    if (!stage || !this.pointer || this.player.playing || !this.probing) return;
    const found = this.underPointer();
    if (!found) return;
    const { view, hit } = found;
    const x = [0, 1, 2].map((d) => shortNumber(view.x[3 * hit.node + d], 4));
    const lines = [`node ${view.epoch.nodes[hit.node]}`, `x = (${x.join(", ")}) m`];
    if (view.colored) {
      const value = view.valueAt(hit.node, hit.triangle);
      const name = view.colored.categories ? view.colored.names[Math.round(value)] : undefined;
      lines.push(`${view.colored.label}: ${name ?? shortNumber(value, 4)} ${view.colored.unit.replace("^3", "³").replace("^2", "²")}`);
    }
    tip.textContent = lines.join("\n");
    tip.hidden = false;
    const box = byId("stage").getBoundingClientRect();
    tip.style.left = `${Math.min(this.pointer.x + 14, box.width - tip.offsetWidth - 8)}px`;
    tip.style.top = `${Math.min(this.pointer.y + 16, box.height - tip.offsetHeight - 8)}px`;
  }
}

function frameAt(run: Run, t: number): [number, number] {
  const times = run.manifest.times;
  if (!times.length) return [0, 0];
  let f = 0;
  while (f + 1 < times.length && times[f + 1] <= t + 1e-9) ++f;
  const next = times[f + 1];
  const mix = next !== undefined && t > times[f] && run.epochIndex(f) === run.epochIndex(f + 1) ? (t - times[f]) / (next - times[f]) : 0;
  return [f, mix < 1e-6 ? 0 : mix];
}

function nearestAvailable(run: Run, frame: number) {
  for (let d = 1; d < run.frameCount; ++d) {
    if (run.available(frame - d)) return frame - d;
    if (run.available(frame + d)) return frame + d;
  }
  return frame;
}

// Values of a run at the times of another, linear between its own.
function resample(times: ArrayLike<number>, values: ArrayLike<number>, at: ArrayLike<number>): Float32Array {
  const out = new Float32Array(at.length);
  let k = 0;
  for (let i = 0; i < at.length; ++i) {
    while (k + 1 < times.length && times[k + 1] <= at[i]) ++k;
    const span = k + 1 < times.length ? times[k + 1] - times[k] : 0;
    out[i] = span > 0 && at[i] > times[k] ? values[k] + ((at[i] - times[k]) / span) * (values[k + 1] - values[k]) : values[k];
    if (at[i] > times[times.length - 1] + 1e-6) out[i] = NaN;
  }
  return out;
}
