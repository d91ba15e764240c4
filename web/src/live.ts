// `limber live`: the body as the simulation has it now, hands that pull at it, and what can be changed.
import * as THREE from "three";
import type { App } from "./app";
import { shortNumber } from "./colors";
import { DamagedData, fromBase64, inflate, type RunManifest } from "./data";
import { byId, el, icon } from "./dom";
import { Film } from "./film";

interface Grip {
  id: number;
  from: [number, number, number];
  to: [number, number, number];
  force: number;
  stiffness: number;
}

interface Head {
  number: number;
  model: number;
  t: number;
  step: number;
  playing: boolean;
  speed: number;
  rate: number;
  step_ms: number;
  mark: number;
  failure: string;
  said: string;
  pose: number[];
  grips: Grip[];
}

interface Setting {
  path: string;
  label: string;
  value: number | number[] | string | boolean;
  text: string;
  unit?: string;
  values?: string[];
  whole: boolean;
  open: boolean;
  min?: number;
  max?: number;
}

interface Description {
  name: string;
  method: string;
  methods: string[];
  settings: Setting[];
  h: number;
  speed: number;
  nodes: number;
}

type Say = (text: string, plain?: boolean) => void;

const icons = {
  play: '<path d="M7 4.5v15l13-7.5z"/>',
  pause: '<path d="M6 4.5h4v15H6zM14 4.5h4v15h-4z"/>',
  step: '<path d="M6 5v14l9-7zM16.500 5H18v14h-1.500z"/>',
  reset: '<path d="M5 12a7 7 0 1 0 2-5M5 4v4h4"/>',
};

export class LivePage {
  private model = -1;
  private order: Uint32Array = new Uint32Array(0); // page's node -> place in what comes
  private head: Head | null = null;
  private readonly hands = new Map<number, { start: THREE.Vector3; plane: THREE.Plane; id: number; by: number[]; sent: boolean; held: boolean }>();
  private nextHand = 1;
  private readonly lines = new THREE.Group();
  private readonly marks = new Map<number, number>(); // mark -> when the hand moved [ms]
  private lastMark = 0;
  private seenMark = 0;
  private latency = NaN; // [ms]
  private arrivals: number[] = [];
  private strength = 1;
  private thing = "ball"; // that is dropped, and how long it is, of the scene's size
  private thingSize = 0.2;
  private pointed: PointerEvent | null = null;
  private readonly seenBox = new THREE.Box3(); // that the camera frames, with room around it
  private readonly point = new THREE.Vector3();
  private lastFollowed = 0;
  private said = "";
  private widest = 0;
  private lastWidening = 0;
  private readonly film: Film;
  private readonly playButton = el("button", { class: "round main", type: "button", id: "live-play" });
  private readonly clock = el("span");
  private readonly rate = el("small");
  private readonly numbers = el("p", { class: "hint", id: "live-numbers" });
  private readonly panel = el("div", { class: "body" });
  private readonly speed = el("select", { id: "live-speed", "aria-label": "Speed", title: "Simulated seconds per second" });

  constructor(
    private readonly app: App,
    private readonly say: Say,
  ) {
    this.film = new Film(() => `${app.manifest.title || "limber"}-live`);
    this.build();
  }

  // ---- the server ----

  async act(request: Record<string, unknown>): Promise<Record<string, unknown> | null> {
    const answer = await fetch("do", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(request) });
    if (answer.ok) return (await answer.json()) as Record<string, unknown>;
    this.say((await answer.text()) || `the server answers ${answer.status}`);
    return null;
  }

  private async loadShape() {
    const answer = await fetch("shape", { cache: "no-store" });
    if (!answer.ok) throw new Error(await answer.text());
    const shape = (await answer.json()) as { model: number; run: RunManifest; blocks: [string, string][] };
    const blocks = new Map(shape.blocks.map(([id, text]) => [id, fromBase64(id, text)]));
    const { app } = this;
    await app.replaceRun(shape.run, async (id) => {
      const bytes = blocks.get(id);
      if (!bytes) throw new DamagedData(`block ${id} did not come`);
      return inflate(id, bytes);
    });
    this.model = shape.model;
    // Positions come in ascending order of the nodes' numbers.
    const nodes = app.runs[0].epochs[0].nodes;
    const sorted = Array.from(nodes.keys()).sort((a, b) => nodes[a] - nodes[b]);
    this.order = new Uint32Array(nodes.length);
    sorted.forEach((page, k) => (this.order[page] = k));
    app.stage!.root.add(this.lines);
    this.widest = 0;
    byId("message").hidden = true;
  }

  async run() {
    let quiet = false;
    let after = 0;
    for (;;) {
      try {
        if (this.model < 0) {
          await this.loadShape();
          await this.describe();
        }
        const answer = await fetch(`frame?after=${after}`, { cache: "no-store" });
        if (answer.status === 204) continue;
        if (!answer.ok) throw new Error(await answer.text());
        const bytes = await answer.arrayBuffer();
        const length = new DataView(bytes).getUint32(0, true);
        const head = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length))) as Head;
        after = head.number;
        quiet = false;
        if (head.model !== this.model) {
          this.model = -1;
          after = 0;
          continue;
        }
        this.show(head, new Float32Array(bytes, 4 + length));
        // One frame per picture at most.
        await new Promise((resolve) => (document.hidden ? setTimeout(resolve, 200) : requestAnimationFrame(resolve)));
      } catch (error) {
        if (!quiet) this.say(`The simulation does not answer (${(error as Error).message}).`);
        quiet = true;
        await new Promise((resolve) => setTimeout(resolve, 1000));
      }
    }
  }

  private show(head: Head, x: Float32Array) {
    const { app } = this;
    const run = app.runs[0];
    const now = performance.now();
    if (!run.live || run.live.length !== 3 * this.order.length) run.live = new Float32Array(3 * this.order.length);
    for (let i = 0; i < this.order.length; ++i) {
      const k = 3 * this.order[i];
      run.live[3 * i] = x[k];
      run.live[3 * i + 1] = x[k + 1];
      run.live[3 * i + 2] = x[k + 2];
    }
    run.manifest.poses[0] = head.pose;
    this.head = head;
    this.widen(now);
    this.follow(now);
    app.views[0].show(0, 0, true);
    this.drawHands(head);
    app.touch();
    this.arrivals = this.arrivals.filter((t) => t > now - 1000);
    this.arrivals.push(now);
    if (head.mark > this.seenMark) {
      const moved = this.marks.get(head.mark);
      if (moved !== undefined) this.latency = Number.isNaN(this.latency) ? now - moved : 0.7 * this.latency + 0.3 * (now - moved);
      for (const mark of [...this.marks.keys()]) if (mark <= head.mark) this.marks.delete(mark);
      this.seenMark = head.mark;
    }
    this.tell(head);
  }

  // The camera goes along with what leaves the picture, unless somebody has turned it or a hand needs it to stay.
  private follow(now: number) {
    const stage = this.app.stage!;
    if (stage.turned || this.hands.size || now - this.lastFollowed < 400) return;
    this.lastFollowed = now;
    const low = new THREE.Vector3(Infinity, Infinity, Infinity);
    const high = low.clone().negate();
    const x = this.app.runs[0].live!;
    for (let i = 0; i < x.length; i += 3) {
      low.min(this.point.fromArray(x, i));
      high.max(this.point);
    }
    const seen = this.seenBox;
    if (!Number.isFinite(low.x + low.y + low.z + high.x + high.y + high.z) || (!seen.isEmpty() && seen.containsPoint(low) && seen.containsPoint(high))) return;
    const room = 0.15 * low.distanceTo(high);
    seen.set(low, high).expandByScalar(room);
    stage.setBounds({ low, high });
  }

  // The bar follows the largest value so far.
  private widen(now: number) {
    const { app } = this;
    if (!app.field || app.field.constant || app.field.categories || now - this.lastWidening < 300) return;
    this.lastWidening = now;
    let high = 0;
    for (const v of app.views[0].values) if (v > high) high = v;
    if (high <= this.widest || !Number.isFinite(high)) return;
    this.widest = 1.25 * high;
    app.setTypedRange([0, this.widest]);
  }

  private tell(head: Head) {
    this.clock.textContent = `${head.t.toFixed(3)} s`;
    this.rate.textContent = head.failure ? "stopped" : head.playing ? `${shortNumber(head.rate, 2)} × real time` : "paused";
    const fps = this.arrivals.length;
    const parts = [`${fps} frames/s`, `${shortNumber(head.step_ms, 3)} ms a step`];
    if (Number.isFinite(this.latency)) parts.push(`hand to picture ${this.latency.toFixed(0)} ms`);
    for (const g of head.grips) parts.push(`hand ${g.id}: ${shortNumber(g.force, 3)} N, spring of ${shortNumber(g.stiffness, 3)} N/m`);
    this.numbers.textContent = parts.join("  ·  ");
    if (this.speed.value !== String(head.speed) && document.activeElement !== this.speed) {
      if (![...this.speed.options].some((o) => o.value === String(head.speed)))
        this.speed.append(el("option", { value: head.speed }, `${shortNumber(head.speed)} ×`));
      this.speed.value = String(head.speed);
    }
    const shown = this.playButton.dataset.playing;
    if (shown !== String(head.playing)) {
      this.playButton.dataset.playing = String(head.playing);
      this.playButton.replaceChildren(icon(head.playing ? icons.pause : icons.play));
      this.playButton.title = head.playing ? "Pause (space)" : "Go on (space)";
      this.playButton.setAttribute("aria-label", head.playing ? "Pause" : "Go on");
    }
    const said = head.failure || head.said;
    if (said && said !== this.said) this.say(said, !head.failure);
    this.said = said;
  }

  // ---- hands ----

  private drawHands(head: Head) {
    const size = 1 / this.app.stage!.root.scale.x;
    while (this.lines.children.length) {
      const old = this.lines.children[0] as THREE.Mesh;
      old.geometry.dispose();
      this.lines.remove(old);
    }
    for (const g of head.grips) {
      const a = new THREE.Vector3(...g.from);
      const b = new THREE.Vector3(...g.to);
      const line = new THREE.Line(new THREE.BufferGeometry().setFromPoints([a, b]), handLine);
      const ball = new THREE.Mesh(new THREE.SphereGeometry(0.012 * size, 16, 12), handBall);
      ball.position.copy(b);
      const end = new THREE.Mesh(new THREE.SphereGeometry(0.007 * size, 12, 8), handBall);
      end.position.copy(a);
      for (const part of [line, ball, end]) part.renderOrder = 10;
      this.lines.add(line, ball, end);
    }
  }

  // In the body's coordinates.
  private ray(e: PointerEvent) {
    const box = byId("canvas").getBoundingClientRect();
    return this.app.stage!.ray(e.clientX - box.left, e.clientY - box.top, 1);
  }

  private watchHands() {
    const canvas = byId<HTMLCanvasElement>("canvas");
    canvas.addEventListener(
      "pointerdown",
      (e) => {
        const { app } = this;
        if (!app.stage || !app.views.length || e.button !== 0 || e.shiftKey) return;
        const { from, direction } = this.ray(e);
        const hit = app.views[0].hit(from, direction);
        if (!hit) return;
        e.stopImmediatePropagation();
        e.preventDefault();
        canvas.setPointerCapture(e.pointerId);
        const point = from.clone().addScaledVector(direction, hit.distance);
        const inverse = app.stage.root.matrixWorld.clone().invert();
        const towards = app.stage.camera.getWorldDirection(new THREE.Vector3()).transformDirection(inverse);
        const id = this.nextHand++;
        const hand = { start: point, plane: new THREE.Plane().setFromNormalAndCoplanarPoint(towards, point), id, by: [0, 0, 0], sent: true, held: true };
        this.hands.set(e.pointerId, hand);
        app.probing = false;
        void this.act({ do: "grab", id, node: app.views[0].epoch.nodes[hit.node], strength: this.strength }).then((ok) => {
          if (!ok) this.hands.delete(e.pointerId);
          else if (!hand.held) void this.act({ do: "release", id });
        });
      },
      { capture: true },
    );
    canvas.addEventListener("pointermove", (e) => {
      this.pointed = e;
      const hand = this.hands.get(e.pointerId);
      if (!hand) return;
      const { from, direction } = this.ray(e);
      const at = new THREE.Ray(from, direction).intersectPlane(hand.plane, new THREE.Vector3());
      if (!at) return;
      hand.by = at.sub(hand.start).toArray();
      if (hand.sent) void this.sendMove(hand);
      hand.sent = false;
    });
    const release = (e: PointerEvent) => {
      const hand = this.hands.get(e.pointerId);
      if (!hand) return;
      this.hands.delete(e.pointerId);
      this.app.probing = this.hands.size === 0;
      hand.held = false;
      void this.act({ do: "release", id: hand.id });
    };
    canvas.addEventListener("pointerleave", () => (this.pointed = null));
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
  }

  // Something falls on the place under the pointer, or on the middle.
  private async drop(where: PointerEvent | null) {
    const request: Record<string, unknown> = { do: "drop", shape: this.thing, size: this.thingSize };
    const view = this.app.views[0];
    if (where && this.app.stage && view) {
      const { from, direction } = this.ray(where);
      const hit = view.hit(from, direction);
      if (hit) request.above = from.addScaledVector(direction, hit.distance).toArray();
    }
    if (await this.act(request)) setTimeout(() => void this.describe(), 300);
  }

  // The newest place of a hand; one request at a time.
  private async sendMove(hand: { id: number; by: number[]; sent: boolean; held: boolean }) {
    await new Promise((resolve) => requestAnimationFrame(resolve));
    while (!hand.sent && hand.held) {
      hand.sent = true;
      const mark = ++this.lastMark;
      this.marks.set(mark, performance.now());
      await this.act({ do: "move", id: hand.id, by: hand.by, mark });
    }
    hand.sent = true;
  }

  // ---- controls ----

  private build() {
    for (const id of ["section-plots", "section-facts", "legend"]) byId(id).classList.toggle("off", id !== "legend");
    const transport = byId("transport");
    transport.classList.add("live");
    for (const old of [...transport.children]) (old as HTMLElement).hidden = true;
    const round = (path: string, label: string, id: string, click: () => void) =>
      el("button", { class: "round", type: "button", id, title: label, "aria-label": label, click }, icon(path));
    this.playButton.replaceChildren(icon(icons.pause));
    this.playButton.addEventListener("click", () => this.toggle());
    const filmButton = el("button", { class: "plain-button", type: "button", id: "live-film", title: "Record a film of what is shown" }, "film");
    filmButton.addEventListener("click", () => this.toggleFilm());
    this.film.onChange = (on) => {
      filmButton.textContent = on ? "end the film" : "film";
      filmButton.setAttribute("aria-pressed", String(on));
    };
    const { speed } = this;
    for (const s of [0.05, 0.1, 0.25, 0.5, 1, 2]) speed.append(el("option", { value: s }, `${s} ×`));
    speed.addEventListener("change", () => void this.act({ do: "speed", value: +speed.value }));
    transport.append(
      el(
        "div",
        { class: "live-bar" },
        el("div", { class: "play-buttons" }, round(icons.reset, "Begin again", "live-reset", () => void this.reset()), this.playButton, round(icons.step, "One step (.)", "live-step", () => void this.act({ do: "step" }))),
        el("div", { class: "clock" }, this.clock, this.rate),
        speed,
        filmButton,
        el("button", { class: "plain-button", type: "button", id: "live-save", title: "Save what was done as a scene that `limber run` repeats", click: () => void this.save() }, "save scene"),
      ),
      this.numbers,
    );
    byId("section-display").before(el("details", { id: "section-live", open: true }, el("summary", {}, "Hold it"), this.panel));
    this.watchHands();
    window.addEventListener(
      "keydown",
      (e) => {
        if ((e.target as HTMLElement).tagName === "INPUT" || e.ctrlKey || e.metaKey || e.altKey) return;
        if (e.key === " " && (e.target as HTMLElement).tagName !== "BUTTON") this.toggle();
        else if (e.key === ".") void this.act({ do: "step" });
        else if (e.key === "b") void this.drop(this.pointed);
        else return;
        e.preventDefault();
        e.stopImmediatePropagation();
      },
      { capture: true },
    );
  }

  private toggle() {
    void this.act({ do: this.head?.playing ? "pause" : "play" });
  }

  private toggleFilm() {
    try {
      if (this.film.on) this.film.stop();
      else this.film.start();
    } catch (error) {
      this.say((error as Error).message);
    }
  }

  private async reset() {
    this.hands.clear();
    this.seenMark = 0;
    this.marks.clear();
    await this.act({ do: "reset" });
    await this.describe();
  }

  private async save() {
    const answer = await this.act({ do: "save" });
    if (answer) this.say(`${answer.file}: ${answer.steps} steps; limber run repeats them (hash ${answer.hash})`, true);
  }

  private async set(path: string, value: unknown) {
    await this.act({ do: "set", path, value });
    if (path === "/method") setTimeout(() => void this.describe(), 300);
  }

  private async describe() {
    const d = (await this.act({ do: "describe" })) as unknown as Description | null;
    if (!d) return;
    const { app } = this;
    byId("scene-name").textContent = d.name;
    byId("scene-sub").textContent = `${d.method}  ·  ${d.nodes.toLocaleString("en")} nodes  ·  steps of ${shortNumber(d.h)} s`;
    const rows: HTMLElement[] = [el("p", { class: "hint" }, "Drag the body to pull at it; drag beside it (or with Shift) to turn the view.")];
    const grip = el("input", { type: "range", min: -2, max: 0, step: 0.05, value: Math.log10(this.strength), id: "live-strength" });
    const shown = el("output", {}, `${Math.round(100 * this.strength)} %`);
    grip.addEventListener("input", () => {
      this.strength = 10 ** +grip.value;
      shown.textContent = `${Math.round(100 * this.strength)} %`;
    });
    rows.push(el("div", { class: "row" }, el("label", { for: "live-strength", title: "Of the stiffest spring that the body takes; the line below the picture says how stiff it is" }, "grip"), grip, shown));
    rows.push(this.dropRow());
    const method = el("select", { id: "live-method" });
    for (const m of d.methods) method.append(el("option", { value: m }, m));
    method.value = d.method;
    method.addEventListener("change", () => void this.set("/method", { type: method.value }));
    rows.push(el("div", { class: "row" }, el("label", { for: "live-method" }, "method"), method));
    for (const s of d.settings) rows.push(this.row(s));
    this.panel.replaceChildren(...rows);
    app.touch();
  }

  private dropRow(): HTMLElement {
    const thing = el("select", { id: "live-thing", change: () => (this.thing = thing.value) });
    for (const name of ["ball", "box", "ring"]) thing.append(el("option", { value: name }, name));
    thing.value = this.thing;
    const size = el("input", { type: "range", min: 0.05, max: 0.6, step: 0.01, value: this.thingSize, "aria-label": "size of what is dropped", title: "How long it is, of the scene's size" });
    size.addEventListener("input", () => (this.thingSize = +size.value));
    const button = el("button", { class: "plain-button", type: "button", id: "live-drop", title: "It falls on the middle of the bodies; with B, on the place under the pointer", click: () => void this.drop(null) }, "drop (B)");
    return el("div", { class: "row" }, el("label", { for: "live-thing" }, "drop"), thing, size, button);
  }

  private row(s: Setting): HTMLElement {
    const id = `live-${s.path.replaceAll("/", "-")}`;
    const label = el("label", { for: id, title: s.text }, s.label.replaceAll("_", " ").replace("/", ", "));
    if (s.values) {
      const choice = el("select", { id, change: () => void this.set(s.path, choice.value) });
      for (const v of s.values) choice.append(el("option", { value: v }, v));
      choice.value = String(s.value);
      return el("div", { class: "row" }, label, choice);
    }
    if (typeof s.value === "boolean") {
      const box = el("input", { type: "checkbox", id, change: () => void this.set(s.path, box.checked) });
      box.checked = s.value;
      return el("div", { class: "row" }, label, box);
    }
    if (Array.isArray(s.value)) {
      // A vector: how much of it along its own direction.
      const start = new THREE.Vector3(...(s.value as [number, number, number]));
      const most = Math.max(20, 2 * start.length()); // gravity is the reason for 20
      const along = start.length() > 0 ? start.clone().normalize() : new THREE.Vector3(0, -1, 0);
      return this.slider(id, label, s.unit ?? "", { low: -most, high: most, log: false, whole: false }, start.dot(along), (v) =>
        this.set(s.path, along.clone().multiplyScalar(v).toArray()),
      );
    }
    const value = s.value as number;
    const low = s.min ?? (value > 0 ? 0 : -Math.max(1, Math.abs(value)));
    const bounded = s.max !== undefined && Number.isFinite(s.max) && s.max < 1e6;
    const log = !bounded && value > 0 && !s.whole;
    const range = log
      ? { low: value / 30, high: value * 30, log, whole: false }
      : { low, high: bounded ? s.max! : Math.max(2 * Math.abs(value), s.path.startsWith("/damping/stiffness") ? 0.05 : 10), log, whole: s.whole };
    if (bounded && s.open && !s.whole) {
      range.low += 0.001 * (range.high - range.low);
      range.high -= 0.001 * (range.high - range.low);
    }
    return this.slider(id, label, s.unit ?? "", range, value, (v) => this.set(s.path, v));
  }

  private slider(id: string, label: HTMLElement, unit: string, range: { low: number; high: number; log: boolean; whole: boolean }, value: number, change: (v: number) => Promise<void>) {
    const f = (v: number) => (range.log ? Math.log10(v) : v);
    const back = (v: number) => (range.log ? Number((10 ** v).toPrecision(4)) : range.whole ? Math.round(v) : Number(v.toPrecision(6)));
    const input = el("input", { type: "range", id, min: f(range.low), max: f(range.high), step: range.whole ? 1 : "any", value: f(value) });
    const text = (v: number) => (Math.abs(v) >= 1e5 ? v.toExponential(3).replace(/\.?0*e\+?/, "e") : String(Number(v.toPrecision(4)))); // as it fits
    const field = el("input", { type: "number", class: "narrow-number", step: "any", value: text(value), "aria-label": `${label.textContent ?? ""}, number` });
    let busy = false;
    let wanted: number | null = null;
    const send = async (v: number) => {
      wanted = v;
      if (busy) return;
      busy = true;
      while (wanted !== null) {
        const next: number = wanted;
        wanted = null;
        await change(next);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      busy = false;
    };
    input.addEventListener("input", () => {
      const v = back(+input.value);
      field.value = text(v);
      void send(v);
    });
    field.addEventListener("change", () => {
      if (field.value === "" || !Number.isFinite(+field.value)) return;
      input.value = String(f(+field.value));
      void send(+field.value);
    });
    return el("div", { class: "row" }, label, input, field, el("span", { class: "unit" }, unit));
  }
}

const handLine = new THREE.LineBasicMaterial({ color: 0xff5a1f, depthTest: false, transparent: true });
const handBall = new THREE.MeshBasicMaterial({ color: 0xff5a1f, depthTest: false, transparent: true });
