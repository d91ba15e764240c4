// The controls beside and below the stage, and the keys.
import type * as THREE from "three";
import { Vector3 } from "three";
import type { App, Layout } from "./app";
import { mapName, maps, shortNumber } from "./colors";
import { byId, chip, el } from "./dom";
import { Film } from "./film";
import { addressOf } from "./link";
import type { Showing } from "./runview";
import { Transport } from "./transport";

const keys: [string, string][] = [
  ["Space", "play or pause"],
  ["← →", "one frame back or on (with Shift: ten)"],
  ["Home End", "first or last frame"],
  ["+ −", "faster or slower"],
  ["L", "loop"],
  ["C", "next colour field (with Shift: previous)"],
  ["E", "element edges"],
  ["N P F O G", "dynamic nodes, pins, fibres, obstacles, floor"],
  ["K V M", "of cloth: checkers, vertices and edges on sharp features, map of its material"],
  ["U", "surfaces that bodies carry (coloured \"plain\"), or the bodies themselves"],
  ["X", "cut: off, x, y, z"],
  ["[ ]", "move the cut"],
  ["1 2 3 4", "camera: three-quarter, front, side, top"],
  ["R", "reset the camera"],
  ["D", "dark or light look"],
  ["S", "save a picture"],
  ["T", "plot the node under the pointer over time (or double-click it)"],
  ["?", "this list"],
];

export class Controls {
  readonly transport: Transport;
  showing: Showing = { wire: false, nodes: true, pins: true, fibres: true, obstacles: true, checkers: true, sliding: true, material: true, skin: true };
  floor = true;
  clipAxis = -1;
  clipAt = 0.5;
  clipFlip = false;
  private low = new Vector3();
  private high = new Vector3(1, 1, 1);
  private select: HTMLSelectElement | null = null;
  private shapeSelect: HTMLSelectElement | null = null;
  private shapeRow: HTMLElement | null = null;
  private rangeRow: HTMLElement | null = null;
  private mapRow: HTMLElement | null = null;
  private showTyped: () => void = () => {};
  private readonly film: Film;
  private readonly chips = new Map<string, (on: boolean) => void>();
  private clipSelect: HTMLSelectElement | null = null;
  private clipSlider: HTMLInputElement | null = null;
  private clipNote: HTMLElement | null = null;

  constructor(private readonly app: App) {
    this.transport = new Transport(app.player);
    byId("tool-view").addEventListener("click", () => app.stage?.look("three-quarter"));
    byId("tool-look").addEventListener("click", () => app.setLook(!app.dark));
    byId("tool-picture").addEventListener("click", () => this.savePicture());
    byId("tool-help").addEventListener("click", () => this.help());
    byId("tool-link").addEventListener("click", () => void this.copyLink());
    this.film = new Film(() => app.manifest.title || "limber");
    this.film.onChange = (on) => byId("tool-film").setAttribute("aria-pressed", String(on));
    byId("tool-film").addEventListener("click", () => this.recordFilm());
    window.addEventListener("keydown", (e) => this.key(e));
  }

  // The display section, with what this run has.
  build(low: THREE.Vector3, high: THREE.Vector3) {
    this.low.copy(low);
    this.high.copy(high);
    const { app } = this;
    const body = byId("display");
    body.replaceChildren();
    const view = app.views[0];

    this.select = el("select", { id: "color", change: () => app.setColor(this.select!.value || null) });
    for (const f of app.fields) this.select.append(el("option", { value: f.id }, f.unit ? `${f.label} [${f.unit.replace("^3", "³")}]` : f.label));
    this.select.append(el("option", { value: "" }, "plain"));
    body.append(el("div", { class: "row" }, el("label", { for: "color" }, "Colour by"), this.select));

    this.shapeSelect = el("select", { id: "shape", change: () => app.setShape(+this.shapeSelect!.value) });
    this.shapeRow = el("div", { class: "row", hidden: true }, el("label", { for: "shape" }, "Motion"), this.shapeSelect);
    body.append(this.shapeRow);
    this.listShapes();

    const range = el("select", { id: "range" });
    range.append(el("option", { value: "run" }, "whole run"), el("option", { value: "frame" }, "shown frame"), el("option", { value: "typed" }, "typed"));
    const ends = ["lowest", "highest"].map((which) => el("input", { type: "number", step: "any", class: "narrow-number", "aria-label": `${which} value of the bar`, hidden: true }));
    range.addEventListener("change", () => {
      const typed = range.value === "typed";
      if (typed && app.range) ends.forEach((e, k) => (e.value = String(+(k ? app.range!.high : app.range!.low).toPrecision(4))));
      ends.forEach((e) => (e.hidden = !typed));
      range.classList.toggle("narrow", typed);
      app.typedRange = null;
      app.setRangeOfFrame(range.value === "frame");
    });
    for (const e of ends)
      e.addEventListener("change", () => {
        const [low, high] = ends.map((v) => +v.value);
        if (ends.every((v) => v.value !== "") && low < high) app.setTypedRange([low, high]);
      });
    this.showTyped = () => {
      const typed = app.typedRange;
      range.value = typed ? "typed" : app.rangeOfFrame ? "frame" : "run";
      range.classList.toggle("narrow", typed !== null);
      ends.forEach((e, k) => {
        e.hidden = !typed;
        if (typed && document.activeElement !== e) e.value = String(+typed[k].toPrecision(4));
      });
    };
    this.rangeRow = el("div", { class: "row" }, el("label", { for: "range" }, "Range of"), range, ...ends);
    body.append(this.rangeRow);

    const map = el("select", { id: "map", change: () => app.setMap(map.value) });
    for (const name of Object.keys(maps)) map.append(el("option", { value: name }, name === "even" ? "even steps" : name));
    map.value = mapName();
    this.mapRow = el("div", { class: "row" }, el("label", { for: "map" }, "Colours"), map);
    body.append(this.mapRow);

    if (app.runs.length > 1) {
      const layout = el("select", { id: "layout", change: () => app.setLayout((Number.isNaN(+layout.value) ? layout.value : +layout.value) as Layout) });
      layout.append(el("option", { value: "side" }, "side by side"), el("option", { value: "overlay" }, "overlaid"));
      app.runs.forEach((_, k) => layout.append(el("option", { value: String(k) }, `only ${app.label(k)}`)));
      body.append(el("div", { class: "row" }, el("label", { for: "layout" }, "Runs"), layout));
    }

    const chips = el("div", { class: "chips" });
    const add = (id: string, label: string, key: string, on: boolean, change: (on: boolean) => void) => {
      const c = chip(label, key, on, change);
      this.chips.set(id, c.set);
      chips.append(c.button);
    };
    const mark = (id: keyof Showing, label: string, key: string) =>
      add(id, label, key, this.showing[id], (on) => {
        this.showing[id] = on;
        app.setShowing();
      });
    mark("wire", "edges", "E");
    add("contours", "contours", "", true, (on) => app.setContours(on));
    // A full method, in which every node is dynamic, has nothing to point out.
    const some = app.views.some((v) => {
      const dynamic = v.run.mark("dynamic", v.frame);
      return v.epoch.candidates !== null || (dynamic !== null && !dynamic.every((d) => d !== 0));
    });
    this.showing.nodes = some;
    if (some) mark("nodes", "dynamic nodes", "N");
    if (app.views.some((v) => v.run.mark("pinned", v.frame)?.some((p) => p !== 0))) mark("pins", "pins", "P");
    if (app.views.some((v) => v.epoch.fibreTets)) mark("fibres", "fibres", "F");
    if (app.views.some((v) => v.epoch.surfaces.length)) mark("skin", "own surface", "U");
    if (app.views.some((v) => v.material)) {
      mark("checkers", "checkers", "K");
      mark("sliding", "on sharp features", "V");
      mark("material", "material", "M");
    }
    if (view.run.manifest.obstacles.length) mark("obstacles", "obstacles", "O");
    if (!view.epoch.info.plane && !view.obstacles.hasFloor)
      add("floor", "floor", "G", true, (on) => {
        this.floor = on;
        app.setShowing();
      });
    body.append(el("div", { class: "row" }, el("span", { class: "name" }, "Show"), chips));

    if (!view.epoch.info.plane) {
      this.clipSelect = el("select", { id: "clip", class: "narrow", change: () => this.setClip(+this.clipSelect!.value) });
      ["off", "across x", "across y", "across z"].forEach((label, k) => this.clipSelect!.append(el("option", { value: String(k - 1) }, label)));
      this.clipSlider = el("input", { type: "range", min: 0, max: 1, step: 0.002, value: 0.5, "aria-label": "Position of the cut" });
      this.clipSlider.addEventListener("input", () => {
        this.clipAt = +this.clipSlider!.value;
        if (this.clipAxis < 0) this.setClip(0);
        else this.applyClip();
      });
      const flip = el("button", { class: "plain-button", type: "button", click: () => this.flip() }, "flip");
      body.append(el("div", { class: "row" }, el("label", { for: "clip" }, "Cut"), this.clipSelect, this.clipSlider, flip));
      this.clipNote = el("p", { class: "hint" });
      body.append(this.clipNote);
    }
    const cameras = el("div", { class: "chips" });
    for (const from of ["three-quarter", "front", "side", "top"] as const)
      cameras.append(el("button", { class: "plain-button", type: "button", click: () => app.stage?.look(from) }, from));
    body.append(el("div", { class: "row" }, el("span", { class: "name" }, "Camera"), cameras));
    app.setShowing();
    this.applyClip();
  }

  // The run itself, or a motion that its method names.
  listShapes() {
    const { shapes } = this.app;
    if (!this.shapeSelect || !this.shapeRow || this.shapeSelect.options.length === shapes.length + 1) return;
    const names = shapes.map((name) => name.replace(/^\d+ /, "")); // the number only keeps their order
    this.shapeSelect.replaceChildren(...["of the run", ...names].map((name, k) => el("option", { value: String(k - 1) }, name)));
    this.shapeRow.hidden = shapes.length === 0;
  }

  shapeChanged() {
    if (this.shapeSelect) this.shapeSelect.value = String(this.app.shape);
  }

  colorChanged() {
    if (this.select) this.select.value = this.app.field?.id ?? "";
    if (this.rangeRow) this.rangeRow.hidden = !this.app.field || this.app.field.categories;
    if (this.mapRow) this.mapRow.hidden = !this.app.field || this.app.field.categories;
    if (this.app.typedRange) this.showTyped();
  }

  setClip(axis: number) {
    this.clipAxis = axis;
    if (this.clipSelect) this.clipSelect.value = String(axis);
    this.applyClip();
  }

  flip() {
    this.clipFlip = !this.clipFlip;
    if (this.clipAxis < 0) this.setClip(0);
    else this.applyClip();
  }

  applyClip() {
    const { app, clipAxis: axis } = this;
    if (!app.stage) return;
    if (this.clipSlider) this.clipSlider.value = String(this.clipAt);
    if (axis < 0) {
      app.setClip(null);
      if (this.clipNote) this.clipNote.hidden = true;
      return;
    }
    const at = this.low.getComponent(axis) + this.clipAt * (this.high.getComponent(axis) - this.low.getComponent(axis));
    const sign = this.clipFlip ? -1 : 1;
    const normal = new Vector3().setComponent(axis, sign);
    app.setClip({ normal, offset: sign * at });
    if (this.clipNote) {
      this.clipNote.hidden = false;
      this.clipNote.textContent = `cut at ${"xyz"[axis]} = ${shortNumber(at)} m${app.views[0].epoch.tets ? "" : "; the inside is not in this page (see Facts)"}`;
    }
  }

  // The run from its first frame to its last, once.
  private recordFilm() {
    const { player } = this.app;
    if (this.film.on) return this.film.stop();
    if (player.count < 2) return;
    try {
      this.film.start();
    } catch (error) {
      byId("corner").textContent = (error as Error).message;
      return;
    }
    const loop = player.loop;
    player.loop = false;
    player.seek(0);
    player.play();
    const wait = setInterval(() => {
      if (player.playing && this.film.on) return;
      clearInterval(wait);
      player.loop = loop;
      if (this.film.on) setTimeout(() => this.film.stop(), 300);
    }, 100);
  }

  // The address with all that is set.
  private async copyLink() {
    history.replaceState(null, "", addressOf(this.app));
    const corner = byId("corner");
    const before = corner.textContent;
    try {
      await navigator.clipboard.writeText(location.href);
      corner.textContent = "the link to this view is copied";
    } catch {
      corner.textContent = "the address has this view now";
    }
    setTimeout(() => (corner.textContent = before), 2500);
  }

  private savePicture() {
    const { stage } = this.app;
    if (!stage) return;
    stage.changed = true;
    const link = el("a", { download: `${this.app.manifest.title || "limber"}-${this.app.player.frame}.png`.replaceAll(/[^\w.-]+/g, "-") });
    byId<HTMLCanvasElement>("canvas").toBlob((blob) => {
      if (!blob) return;
      link.href = URL.createObjectURL(blob);
      link.click();
      URL.revokeObjectURL(link.href);
    });
  }

  help() {
    const dialog = byId<HTMLDialogElement>("help");
    const list = el("dl");
    for (const [key, what] of keys) {
      const dt = el("dt");
      key.split(" ").forEach((k) => dt.append(el("kbd", {}, k), " "));
      list.append(dt, el("dd", {}, what));
    }
    list.append(
      el("dt", {}, "mouse"), el("dd", {}, "drag turns, right-drag moves, wheel zooms, resting on the body shows its numbers"),
      el("dt", {}, "touch"), el("dd", {}, "one finger turns, two move and zoom, a tap shows numbers"),
    );
    const form = el("form", { method: "dialog" }, el("button", { class: "plain-button" }, "Close"));
    dialog.replaceChildren(el("h2", {}, "Keys and gestures"), list, form);
    dialog.showModal();
  }

  private toggle(id: keyof Showing | "floor") {
    if (!this.chips.has(id)) return;
    if (id === "floor") this.floor = !this.floor;
    else this.showing[id] = !this.showing[id];
    this.chips.get(id)!(id === "floor" ? this.floor : this.showing[id]);
    this.app.setShowing();
  }

  private key(e: KeyboardEvent) {
    const { app } = this;
    const { player } = app;
    const target = e.target as HTMLElement;
    if (e.ctrlKey || e.metaKey || e.altKey || byId<HTMLDialogElement>("help").open) return;
    if (target.tagName === "SELECT" || (target.tagName === "BUTTON" && (e.key === " " || e.key === "Enter"))) return;
    const inSlider = target.tagName === "INPUT";
    const views = ["three-quarter", "front", "side", "top"] as const;
    const step = e.shiftKey ? 10 : 1;
    const jump = (frame: number) => {
      if (player.playing) player.pause();
      player.seek(frame);
    };
    switch (e.key) {
      case " ": player.toggle(); break;
      case "ArrowLeft": if (inSlider) return; jump(player.frame - step); break;
      case "ArrowRight": if (inSlider) return; jump(player.frame + step); break;
      case "Home": jump(0); break;
      case "End": jump(player.count - 1); break;
      case "+": case "=": this.transport.changeSpeed(1); break;
      case "-": case "−": this.transport.changeSpeed(-1); break;
      case "l": case "L": this.transport.toggleLoop(); break;
      case "c": case "C": {
        const ids = [...app.fields.map((f) => f.id), null];
        const at = ids.indexOf(app.field?.id ?? null);
        app.setColor(ids[(at + (e.key === "C" ? ids.length - 1 : 1)) % ids.length]);
        break;
      }
      case "e": case "w": this.toggle("wire"); break;
      case "n": this.toggle("nodes"); break;
      case "p": this.toggle("pins"); break;
      case "f": this.toggle("fibres"); break;
      case "o": this.toggle("obstacles"); break;
      case "u": this.toggle("skin"); break;
      case "k": this.toggle("checkers"); break;
      case "v": this.toggle("sliding"); break;
      case "m": this.toggle("material"); break;
      case "g": this.toggle("floor"); break;
      case "x": if (this.clipSelect) this.setClip(this.clipAxis >= 2 ? -1 : this.clipAxis + 1); break;
      case "[": case "]":
        this.clipAt = Math.min(1, Math.max(0, this.clipAt + (e.key === "[" ? -0.02 : 0.02)));
        this.applyClip();
        break;
      case "1": case "2": case "3": case "4": app.stage?.look(views[+e.key - 1]); break;
      case "r": app.stage?.look(views[0]); break;
      case "d": app.setLook(!app.dark); break;
      case "s": this.savePicture(); break;
      case "t": app.plotPointed(); break;
      case "?": this.help(); break;
      default: return;
    }
    e.preventDefault();
  }
}

