// Films of the canvas, by the browser itself.
import { byId, el } from "./dom";

const kinds = ["video/webm;codecs=vp9", "video/webm;codecs=vp8", "video/webm", "video/mp4"];

export class Film {
  private recorder: MediaRecorder | null = null;
  onChange: (on: boolean) => void = () => {};

  constructor(private readonly name: () => string) {}

  get on() {
    return this.recorder !== null;
  }

  // Throws where the browser cannot.
  start() {
    const kind = typeof MediaRecorder === "undefined" ? undefined : kinds.find((k) => MediaRecorder.isTypeSupported(k));
    if (!kind) throw new Error("this browser cannot record films");
    const stream = byId<HTMLCanvasElement>("canvas").captureStream(30);
    const recorder = new MediaRecorder(stream, { mimeType: kind, videoBitsPerSecond: 8e6 });
    const parts: Blob[] = [];
    recorder.addEventListener("dataavailable", (e) => parts.push(e.data));
    recorder.addEventListener("stop", () => {
      const href = URL.createObjectURL(new Blob(parts, { type: kind }));
      el("a", { href, download: `${this.name()}.${kind.includes("mp4") ? "mp4" : "webm"}`.replaceAll(/[^\w.-]+/g, "-") }).click();
      setTimeout(() => URL.revokeObjectURL(href), 10000);
    });
    recorder.start(1000);
    this.recorder = recorder;
    this.onChange(true);
  }

  stop() {
    this.recorder?.stop();
    this.recorder = null;
    this.onChange(false);
  }
}
