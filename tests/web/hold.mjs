// The page of `limber live` in a real browser: a hand pulls with the mouse, and lets go.  node hold.mjs LIMBER SCENE FOLDER
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { createInterface } from "node:readline";
import { check, finish, open, pixels, start } from "./browser.mjs";

const [limber, scene, folder] = process.argv.slice(2);
rmSync(`${folder}/hello-live.json`, { force: true }); // of an earlier time: it would not be replaced
mkdirSync(folder, { recursive: true });
const child = spawn(limber, ["live", scene, "--no-open", "-o", folder], { stdio: ["ignore", "pipe", "inherit"] });
const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
const address = (await lines.next()).value.match(/http\S+/)[0];
const browser = await start();
try {
  const page = await open(browser, address, { offline: false });
  await page.waitForFunction(() => document.getElementById("live-numbers")?.textContent.includes("frames/s"));
  check((await pixels(page)).colors > 60, "the body is drawn");
  check((await page.$$("#section-live .row")).length > 6, "there are sliders");
  const moving = await page.evaluate(() => window.limber.app.runs[0].live.slice());
  await page.waitForFunction((before) => window.limber.app.runs[0].live.some((v, i) => Math.abs(v - before[i]) > 1e-6), Array.from(moving));
  check(true, "it moves");
  // Paused while the mouse goes there: a bar that swings on would be gone before the button is down.
  const toggle = () => page.evaluate(() => document.getElementById("live-play").click());
  await toggle();
  await page.waitForFunction(() => document.getElementById("live-play").dataset.playing === "false");
  const at = await page.evaluate(() => {
    const { app } = window.limber;
    const c = document.getElementById("canvas").getBoundingClientRect();
    const found = [];
    for (let k = 0; k < 2500; ++k) {
      const [px, py] = [c.width * ((k % 50) + 0.5) / 50, c.height * (Math.floor(k / 50) + 0.5) / 50];
      const { from, direction } = app.stage.ray(px, py, 1);
      if (app.views[0].hit(from, direction)) found.push({ x: c.left + px, y: c.top + py });
    }
    return found[Math.floor(found.length / 2)];
  });
  await page.mouse.move(at.x, at.y);
  await page.mouse.down();
  await toggle();
  await page.mouse.move(at.x + 10, at.y - 40);
  await page.mouse.move(at.x + 20, at.y - 80);
  await page.waitForFunction(() => /hand 1: .* N, spring of .* N\/m/.test(document.getElementById("live-numbers").textContent));
  check(true, "the page says how the hand pulls");
  await page.waitForFunction(() => document.getElementById("live-numbers").textContent.includes("hand to picture"));
  check(true, "and how long it takes to be seen");
  await page.mouse.up();
  await page.waitForFunction(() => !document.getElementById("live-numbers").textContent.includes("spring of"));
  check(true, "it lets go");
  await page.fill("#live--gravity + input", "1");
  await page.dispatchEvent("#live--gravity + input", "change");
  await page.waitForFunction(() => document.getElementById("notices").textContent.includes("/gravity"));
  check(true, "gravity changes, and the page says so");
  const nodes = await page.evaluate(() => window.limber.app.runs[0].epochs[0].nodes.length);
  await page.selectOption("#live-thing", "ring");
  await page.click("#live-drop");
  await page.waitForFunction((before) => window.limber.app.runs[0].epochs[0].nodes.length > before, nodes);
  check((await page.evaluate(() => window.limber.app.views[0].epoch.info.bodies.length)) === 2, "a ring is dropped");
  await page.click("#live-save");
  await page.waitForFunction(() => document.getElementById("notices").textContent.includes("hash"));
  const saved = JSON.parse(readFileSync(`${folder}/hello-live.json`, "utf8"));
  check(saved.forces.at(-1).spring.keys.length > 1 && ["/gravity", "/bodies/-"].every((path) => saved.events.some((e) => e.path === path)), "what was done is in the saved scene");
  check(page.problems.length === 0, `no complaints in the console ${page.problems.join(" | ")}`);
  check(page.requests.every((r) => r.startsWith(address.slice(0, -1))), "nothing else is asked of the network");
} finally {
  child.kill();
  await browser.close();
}
finish();
