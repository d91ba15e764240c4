// Time: which frame is shown, and how it moves on.
export class Player {
  frame = 0;
  mix = 0; // 0..1 between frame and frame + 1, while playing
  playing = false;
  loop = true;
  speed = 1; // seconds of the run per second
  onChange: () => void = () => {};
  private at = 0; // time in the run while playing [s]

  constructor(
    private times: number[],
    private readonly available: (frame: number) => boolean,
  ) {}

  setTimes(times: number[]) {
    this.times = times;
    this.onChange();
  }

  get count() {
    return this.times.length;
  }

  get time() {
    const t = this.times;
    if (!t.length) return 0;
    return this.mix > 0 ? t[this.frame] + this.mix * (t[this.frame + 1] - t[this.frame]) : t[this.frame];
  }

  seek(frame: number) {
    if (!this.count) return;
    this.frame = Math.min(this.count - 1, Math.max(0, Math.round(frame)));
    this.mix = 0;
    this.at = this.times[this.frame];
    this.onChange();
  }

  // The frame nearest to a time of the run.
  seekTime(t: number) {
    const i = this.before(t);
    this.seek(i + 1 < this.count && this.times[i + 1] - t < t - this.times[i] ? i + 1 : i);
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  play() {
    if (this.count < 2) return;
    if (this.frame >= this.count - 1) this.seek(0);
    this.at = this.time;
    this.playing = true;
    this.onChange();
  }

  pause() {
    this.playing = false;
    this.seek(this.frame + (this.mix > 0.5 ? 1 : 0));
  }

  advance(seconds: number) {
    if (!this.playing) return;
    const end = this.times[this.count - 1];
    const next = this.at + seconds * this.speed;
    if (next >= end) {
      if (!this.loop) {
        this.playing = false;
        this.seek(this.count - 1);
        return;
      }
      this.at = this.times[0];
    } else {
      const i = this.before(next);
      if (!this.available(i) || !this.available(Math.min(i + 1, this.count - 1))) return; // still being unpacked
      this.at = next;
    }
    this.frame = this.before(this.at);
    const span = this.frame + 1 < this.count ? this.times[this.frame + 1] - this.times[this.frame] : 0;
    this.mix = span > 0 ? (this.at - this.times[this.frame]) / span : 0;
    this.onChange();
  }

  // The last frame at or before t.
  private before(t: number) {
    let low = 0;
    let high = this.count - 1;
    while (low < high) {
      const mid = (low + high + 1) >> 1;
      if (this.times[mid] <= t) low = mid;
      else high = mid - 1;
    }
    return low;
  }
}
