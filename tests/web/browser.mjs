// Starts Debian's Chromium and opens pages; collects whatever a page complains about.
import { createRequire } from "node:module";
import { existsSync } from "node:fs";
const require = createRequire(import.meta.url);
const { chromium } = require(`${process.env.NODE_PATH}/playwright-core`);

let failures = 0;
export function check(condition, what) {
  console.log(`${condition ? "ok  " : "FAIL"} ${what}`);
  if (!condition) ++failures;
}
export function finish() {
  if (failures) {
    console.error(`${failures} checks failed`);
    process.exit(1);
  }
}

export async function start() {
  const executablePath = process.env.CHROMIUM ?? ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find(existsSync);
  if (!executablePath) throw new Error("chromium is missing: bin/setup run test installs it");
  return chromium.launch({
    executablePath,
    args: [
      "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
      "--disable-sync", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist",
    ],
  });
}

// A page at `address`; everything that goes wrong in it ends up in page.problems. Requests to anywhere are noted.
export async function open(browser, address, { width = 900, height = 600, offline = true, touch = false, quality = "lowest" } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, hasTouch: touch, isMobile: touch, offline, reducedMotion: "reduce" });
  const page = await context.newPage();
  page.problems = [];
  page.requests = [];
  page.on("console", (m) => {
    if (m.type() === "error" || m.type() === "warning") {
      // Chromium's own remarks about drawing in software.
      if (!/GPU stall|GL Driver Message|swiftshader/i.test(m.text())) page.problems.push(m.text());
    }
  });
  page.on("pageerror", (e) => page.problems.push(e.message));
  page.on("request", (r) => {
    if (!/^(file|data|blob):/.test(r.url())) page.requests.push(r.url());
  });
  // Software drawing on a busy machine is slow: lower quality, much patience.
  page.setDefaultTimeout(240000);
  await page.goto(`${address}#quality=${quality}`);
  return page;
}

export const ready = (page) => page.waitForFunction(() => window.limber?.ready);

// How many different colours the canvas shows, and the share of pixels that differ from its corner.
export function pixels(page) {
  return page.evaluate(() => new Promise((resolve) => {
    window.limber.app.touch();
    requestAnimationFrame(() => requestAnimationFrame(() => {
      const source = document.getElementById("canvas");
      const copy = document.createElement("canvas");
      copy.width = 160;
      copy.height = 120;
      const c = copy.getContext("2d", { willReadFrequently: true });
      c.drawImage(source, 0, 0, 160, 120);
      const { data } = c.getImageData(0, 0, 160, 120);
      const colors = new Set();
      let sum = 0;
      for (let i = 0; i < data.length; i += 4) {
        if (data[i + 3] < 128) continue;
        colors.add((data[i] >> 3) * 1024 + (data[i + 1] >> 3) * 32 + (data[i + 2] >> 3));
        sum = (sum * 31 + data[i] + 7 * data[i + 1] + 13 * data[i + 2]) % 1000000007;
      }
      resolve({ colors: colors.size, sum });
    }));
  }));
}

// The canvas as numbers, made small: red, green, blue of each pixel on white.
export function image(page, width = 180, height = 120) {
  return page.evaluate(({ width, height }) => new Promise((resolve) => {
    window.limber.app.touch();
    requestAnimationFrame(() => requestAnimationFrame(() => {
      const copy = document.createElement("canvas");
      [copy.width, copy.height] = [width, height];
      const c = copy.getContext("2d", { willReadFrequently: true });
      c.fillStyle = "white";
      c.fillRect(0, 0, width, height);
      c.drawImage(document.getElementById("canvas"), 0, 0, width, height);
      resolve(Array.from(c.getImageData(0, 0, width, height).data).filter((_, i) => i % 4 < 3));
    }));
  }), { width, height });
}
