// Starts the page: reads the manifest, decodes, shows; or follows a run that is still going.
import { App } from "./app";
import { DamagedData, embeddedBlock, fromBase64, inflate, type Manifest, type RunManifest } from "./data";
import { byId, el } from "./dom";
import { applyAddress } from "./link";
import { LivePage } from "./live";

declare global {
  interface Window {
    limber: unknown; // for tests and for the curious
  }
}

function message(title: string, ...paragraphs: string[]) {
  const box = byId("message");
  box.replaceChildren(el("h2", {}, title), ...paragraphs.map((p) => el("p", {}, p)));
  box.hidden = false;
}

function notice(text: string, plain = false) {
  const host = byId("notices");
  for (const old of host.children) if (old.firstElementChild?.textContent === text) return;
  // What is not a warning is one line, the whole of it at a click, and the last two stay: they must not hide the body.
  if (plain) [...host.querySelectorAll(".plain")].slice(0, -1).forEach((old) => old.remove());
  const words = plain
    ? el("span", { title: text, click: () => box.classList.toggle("open") }, text)
    : el("span", {}, text);
  const box = el("div", { class: plain ? "notice plain" : "notice" }, words);
  box.append(el("button", { type: "button", "aria-label": "Dismiss", click: () => box.remove() }, "×"));
  host.append(box);
}

function readManifest(): Manifest {
  const text = byId("limber-manifest").textContent ?? "";
  try {
    const manifest = JSON.parse(text) as Manifest;
    if (manifest.format !== 1) throw new DamagedData(`format ${manifest.format} is unknown`);
    return manifest;
  } catch (error) {
    throw new DamagedData(`the list of contents cannot be read (${(error as Error).message})`);
  }
}

function preferredLook() {
  const wanted = new URLSearchParams(location.hash.slice(1)).get("look");
  return wanted ? wanted === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

async function follow(app: App) {
  // A live page: the server hands out what is new.
  const blocks = new Map<string, Uint8Array>();
  const source = async (id: string) => {
    const bytes = blocks.get(id);
    if (!bytes) throw new DamagedData(`block ${id} did not come`);
    blocks.delete(id);
    return inflate(id, bytes);
  };
  let since = 0;
  let quiet = false;
  for (;;) {
    try {
      const answer = await fetch(`data?since=${since}`, { cache: "no-store" });
      if (!answer.ok) throw new Error(await answer.text());
      const news = (await answer.json()) as { run: RunManifest | null; blocks: [string, string][]; next: number; ended: boolean };
      since = news.next;
      quiet = false;
      if (!news.run) {
        await pause();
        continue;
      }
      for (const [id, text] of news.blocks) blocks.set(id, fromBase64(id, text));
      if (!app.runs.length) app.addRun(news.run);
      const run = app.runs[0];
      const atEnd = app.player.frame >= app.player.count - 1 && !app.player.playing;
      const grew = news.blocks.length > 0;
      run.manifest = news.run;
      await run.load(source, () => {});
      if (grew) {
        if (!app.stage) firstPicture(app);
        app.refresh();
        if (atEnd) app.player.seek(app.player.count - 1);
      }
      byId("message").hidden = run.frameCount > 0;
      const t = `t = ${(news.run.times.at(-1) ?? 0).toFixed(3)} s`;
      byId("corner").textContent = news.run.finished ? "run finished" : news.ended ? `run stopped at ${t}` : `following the run: ${t}`;
      news.run.notices.forEach((n) => notice(n));
      if (news.run.finished || news.ended) return;
    } catch (error) {
      if (!quiet) notice(`The server does not answer (${(error as Error).message}). What has come so far stays here.`);
      quiet = true;
    }
    await pause();
  }
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 500));

async function start() {
  let manifest: Manifest;
  try {
    manifest = readManifest();
  } catch (error) {
    document.documentElement.dataset.look = preferredLook() ? "dark" : "light";
    message("This page is damaged", `${(error as Error).message}.`, "Make it again with: limber view FOLDER");
    return;
  }
  const app = new App(manifest);
  exposeHook(app);
  app.setLook(preferredLook());
  if (manifest.mode === "failed") {
    message("The recording cannot be shown", manifest.failure ?? "");
    return;
  }
  // On phones the legend goes below the picture, where it covers nothing.
  const narrow = matchMedia("(max-width: 860px)");
  const placeLegend = () => (narrow.matches ? byId("side").prepend(byId("legend")) : byId("stage").append(byId("legend")));
  narrow.addEventListener("change", placeLegend);
  placeLegend();
  requestAnimationFrame(app.tick);
  if (manifest.mode === "hold") {
    message("Waiting for the simulation", "It prepares itself.");
    byId("loading").hidden = true;
    await new LivePage(app, notice).run();
    return;
  }
  if (manifest.mode === "live") {
    message("Waiting for the first frame", "The run has not recorded anything yet; this page follows it.");
    byId("loading").hidden = true;
    await follow(app);
    return;
  }
  const total = manifest.runs.reduce((n, r) => n + r.groups.length, 0);
  let done = 0;
  const bar = byId("loading").firstElementChild as HTMLElement;
  try {
    for (const run of app.runs)
      await run.load(embeddedBlock, () => {
        bar.style.width = `${(100 * ++done) / total}%`;
        if (app.runs.length === 1 && !app.stage) firstPicture(app);
      });
  } catch (error) {
    if (!(error instanceof DamagedData)) throw error;
    message("This page is damaged", `${error.message}.`, "Make it again with: limber view FOLDER");
    byId("loading").hidden = true;
    return;
  }
  byId("loading").hidden = true;
  if (!app.stage) firstPicture(app);
  app.refresh();
  app.player.seek(app.player.frame);
  applyAddress(app);
  for (const run of app.runs) {
    run.manifest.notices.forEach((n) => notice(n));
    if (run.damage.length) notice(`This page is damaged: ${run.damage.join(" ")} Make it again with: limber view FOLDER`);
    if (!run.manifest.finished && run.frameCount > 0) notice("This run was not finished when the page was made.", true);
  }
  if (app.reference.frameCount === 0)
    message(
      "No frames were recorded",
      app.stage ? "The run stopped before its first frame; its rest shape is shown." : "The run stopped before its body was recorded.",
      "The log and steps.csv in the run's folder say why.",
    );
}

function firstPicture(app: App) {
  app.begin();
  if (!app.stage) return;
  const quality = new URLSearchParams(location.hash.slice(1)).get("quality");
  if (quality) app.stage.setQuality(["high", "medium", "low", "lowest"].indexOf(quality));
  app.setColor(app.firstColor());
  const times = app.reference.manifest.times;
  app.controls.transport.chooseSpeed(times.length ? times[times.length - 1] - times[0] : 0);
}

function exposeHook(app: App) {
  window.limber = {
    app,
    get ready() {
      return byId("loading").hidden;
    },
    get frameCount() {
      return app.player.count;
    },
    get frame() {
      return app.player.frame;
    },
    get playing() {
      return app.player.playing;
    },
    get time() {
      return app.player.time;
    },
    seek(frame: number) {
      app.player.playing = false;
      app.player.seek(frame);
      app.showNow();
    },
    play: () => app.player.play(),
    pause: () => app.player.pause(),
    setColor: (id: string | null) => app.setColor(id),
    fields: () => app.fields.map((f) => f.id),
    shapes: () => app.shapes,
    setShape: (index: number) => app.setShape(index),
    // Positions (x y z ...) of the page's nodes at the shown frame, and their numbers in the recording.
    positions: (run = 0) => Array.from(app.views[run].x),
    nodes: (run = 0) => Array.from(app.views[run].epoch.nodes),
    values: (run = 0) => Array.from(app.views[run].values),
    errorBound: (run = 0) => app.runs[run].manifest.error,
  };
}

start().catch((error) => {
  message("Something went wrong", String(error));
  throw error;
});
