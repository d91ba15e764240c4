// A page that follows a run while it is recorded.  node live.mjs SAMPLES VIEW_SAMPLES
import { spawn } from "node:child_process";
import http from "node:http";
import { createInterface } from "node:readline";
import { check, finish, open, pixels, start } from "./browser.mjs";

const child = spawn(process.argv[3], ["--live", `${process.argv[2]}/live`], { stdio: ["pipe", "pipe", "inherit"] });
const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
const line = async () => (await lines.next()).value;
const browser = await start();
try {
  const address = await line();
  const { port, pathname } = new URL(address);
  check(/^http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]{32}\/$/.test(address), "the address is on the loopback and has a token");
  const status = (path, headers = {}, method = "GET") => new Promise((resolve) => {
    http.request({ host: "127.0.0.1", port, path, headers, method }, (r) => { r.resume(); r.on("end", () => resolve(r.statusCode)); }).end();
  });
  check((await status("/")) === 404, "without the token there is nothing");
  check((await status(`${pathname.slice(0, -2)}${pathname.at(-2) === "0" ? 1 : 0}/data?since=0`)) === 404, "with a wrong token neither");
  check((await status(`${pathname}../../etc/passwd`)) === 404, "other files are not served");
  check((await status(pathname, { Host: "evil.example" })) === 403, "another host name is refused");
  check((await status(pathname, {}, "POST")) === 405, "only GET is answered");
  check((await status(`${pathname}data?since=x`)) === 400, "a wrong number is refused");
  check((await status(pathname)) === 200, "with it, the page");

  const page = await open(browser, address, { offline: false });
  check((await page.textContent("#message")).includes("Waiting"), "before the first frame the page waits");
  let last;
  for (let k = 0; k < 3; ++k) {
    child.stdin.write("frame\n");
    last = await line();
  }
  await page.waitForFunction(() => window.limber.frameCount === 3);
  check(true, "three frames arrive");
  check((await page.textContent("#scene-name")) === "live run", "the run's name arrives");
  for (let k = 0; k < 4; ++k) {
    child.stdin.write("frame\n");
    last = await line();
  }
  await page.waitForFunction(() => window.limber.frameCount === 7 && window.limber.frame === 6);
  check(true, "four more arrive, and the page stays at the newest");
  // The newest frame is drawn with the page's next picture, which a busy machine makes late.
  const same = await page.waitForFunction((expected) => {
    const nodes = window.limber.nodes();
    const k = nodes.indexOf(Math.max(...nodes));
    return Math.abs(window.limber.positions()[3 * k + 1] - expected) <= window.limber.errorBound() + 2e-7;
  }, +last.split(" ")[1], { timeout: 20000 }).then(() => true, () => false);
  check(same, "positions are those of the recording");
  check((await pixels(page)).colors > 60, "the body is drawn");
  check((await page.$$(".plot")).length > 0, "plots are drawn");
  child.stdin.write("end\n");
  await page.waitForFunction(() => document.getElementById("corner").textContent === "run finished");
  check(true, "the page learns that the run is finished");
  check(page.problems.length === 0, `no complaints in the console ${page.problems.join(" | ")}`);
  check(page.requests.every((r) => r.startsWith(address)), "nothing else is asked of the network");
} finally {
  child.stdin.end();
  child.kill();
  await browser.close();
}
finish();
