// Play, pause, scrub, speed, step, loop.
import { shortNumber } from "./colors";
import { byId, el, icon } from "./dom";
import type { Player } from "./player";

const icons = {
  play: '<path d="M7 4.5v15l13-7.5z"/>',
  pause: '<path d="M6 4.5h4v15H6zM14 4.5h4v15h-4z"/>',
  back: '<path d="M18 5v14l-9-7zM6 5h1.5v14H6z"/>',
  forward: '<path d="M6 5v14l9-7zM16.500 5H18v14h-1.500z"/>',
  loop: '<path d="M5 11a6 6 0 0 1 6-5h8m0 0-3-3m3 3-3 3M19 13a6 6 0 0 1-6 5H5m0 0 3 3m-3-3 3-3"/>',
};
const speeds = [0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2, 4];

export class Transport {
  private readonly scrub = el("input", { id: "scrub", type: "range", min: 0, max: 0, step: 1, value: 0, "aria-label": "Frame" });
  private readonly playButton = el("button", { class: "round main", type: "button" });
  private readonly back = el("button", { class: "round", type: "button", title: "One frame back (←)", "aria-label": "One frame back" }, icon(icons.back));
  private readonly forward = el("button", { class: "round", type: "button", title: "One frame on (→)", "aria-label": "One frame on" }, icon(icons.forward));
  private readonly loop = el("button", { class: "round line", type: "button", title: "Loop (L)", "aria-label": "Loop", "aria-pressed": "true" }, icon(icons.loop));
  private readonly speed = el("select", { id: "speed", "aria-label": "Speed", title: "Speed, 1 × is real time (+ and −)" });
  private readonly time = el("span");
  private readonly count = el("small");
  private shownPlaying: boolean | null = null;

  constructor(private readonly player: Player) {
    for (const s of speeds) this.speed.append(el("option", { value: String(s) }, `${s} ×`));
    const clock = el("div", { class: "clock", "aria-live": "off" }, this.time, this.count);
    byId("transport").append(el("div", { class: "play-buttons" }, this.back, this.playButton, this.forward), this.scrub, clock, this.speed, this.loop);
    this.playButton.addEventListener("click", () => player.toggle());
    const step = (d: number) => {
      if (player.playing) player.pause();
      player.seek(player.frame + d);
    };
    this.back.addEventListener("click", () => step(-1));
    this.forward.addEventListener("click", () => step(1));
    this.scrub.addEventListener("input", () => {
      player.playing = false;
      player.seek(+this.scrub.value);
    });
    this.speed.addEventListener("change", () => {
      player.speed = +this.speed.value;
    });
    this.loop.addEventListener("click", () => this.toggleLoop());
    this.update();
  }

  // Short runs are shown slower than they were, so that there is something to see.
  chooseSpeed(duration: number) {
    const wanted = duration > 0 ? duration / 2.5 : 1;
    this.player.speed = wanted >= 1 ? 1 : [...speeds].reverse().find((s) => s <= wanted) ?? speeds[0];
    this.update();
  }

  changeSpeed(d: number) {
    const at = speeds.indexOf(this.player.speed) + d;
    if (speeds[at] !== undefined) this.player.speed = speeds[at];
    this.update();
  }

  toggleLoop() {
    this.player.loop = !this.player.loop;
    this.loop.setAttribute("aria-pressed", String(this.player.loop));
  }

  update() {
    const p = this.player;
    const last = Math.max(0, p.count - 1);
    this.scrub.max = String(last);
    this.scrub.value = String(p.frame);
    this.scrub.disabled = this.playButton.disabled = this.back.disabled = this.forward.disabled = p.count < 2;
    const t = p.time.toFixed(3);
    this.time.textContent = `${t} s`;
    this.count.textContent = p.count ? `frame ${p.frame} of ${last}` : "no frames";
    this.scrub.setAttribute("aria-valuetext", `frame ${p.frame} of ${last}, ${shortNumber(p.time)} seconds`);
    this.speed.value = String(p.speed);
    if (this.shownPlaying !== p.playing) {
      this.shownPlaying = p.playing;
      this.playButton.replaceChildren(icon(p.playing ? icons.pause : icons.play));
      this.playButton.title = p.playing ? "Pause (space)" : "Play (space)";
      this.playButton.setAttribute("aria-label", p.playing ? "Pause" : "Play");
    }
  }
}
