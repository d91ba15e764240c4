// Settings in the address: #frame=10&color=speed&range=0,2&map=grey&look=dark&clip=x:0.5&camera=...&quality=low&play
import type { App } from "./app";
import { mapName } from "./colors";

export function applyAddress(app: App) {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const numbers = (name: string) => (wanted.get(name) ?? "").split(",").map(Number);
  const clip = wanted.get("clip")?.match(/^([xyz])(?::([\d.]+))?$/);
  if (clip) {
    app.controls.clipAt = clip[2] ? +clip[2] : 0.5;
    app.controls.setClip("xyz".indexOf(clip[1]));
  }
  if (wanted.has("color")) app.setColor(wanted.get("color") || null);
  if (wanted.has("range")) {
    const [low, high] = numbers("range");
    if (low < high) app.setTypedRange([low, high]);
  }
  if (wanted.has("map")) app.setMap(wanted.get("map")!);
  if (wanted.has("layout")) app.setLayout(wanted.get("layout") === "overlay" ? "overlay" : "side");
  if (wanted.has("camera") && app.stage) app.stage.place = numbers("camera");
  for (const node of wanted.get("nodes")?.split(",") ?? []) if (/^\d+$/.test(node)) app.plotNode(+node);
  if (wanted.has("frame")) app.player.seek(+wanted.get("frame")!);
  if (wanted.has("play")) app.player.play();
  else if (!wanted.has("frame") && app.player.count > 1 && !matchMedia("(prefers-reduced-motion: reduce)").matches) {
    // The page plays at once, from where something is to be seen.
    app.player.seek(app.firstSeen);
    app.player.play();
  }
}

export function addressOf(app: App): string {
  const out: string[] = [`frame=${app.player.frame}`, `color=${app.field?.id ?? ""}`];
  if (app.typedRange) out.push(`range=${app.typedRange.map((v) => +v.toPrecision(6)).join(",")}`);
  if (mapName() !== "even") out.push(`map=${mapName()}`);
  out.push(`look=${app.dark ? "dark" : "light"}`);
  if (app.controls.clipAxis >= 0) out.push(`clip=${"xyz"[app.controls.clipAxis]}:${+app.controls.clipAt.toFixed(3)}`);
  if (app.layout === "overlay") out.push("layout=overlay");
  if (app.plottedNodes.length) out.push(`nodes=${app.plottedNodes.join(",")}`);
  if (app.stage) out.push(`camera=${app.stage.place.join(",")}`);
  return `#${out.join("&")}`;
}
