// The page from disk, with the network off.  node page.mjs SAMPLES
import { readFileSync } from "node:fs";
import { check, finish, image, open, pixels, ready, start } from "./browser.mjs";

const root = process.argv[2];
const file = (name) => `file://${root}/${name}`;
const json = (name) => JSON.parse(readFileSync(`${root}/${name}`, "utf8"));
const browser = await start();
const quiet = (page, what) => {
  check(page.problems.length === 0, `${what}: no complaints in the console ${page.problems.join(" | ")}`);
  check(page.requests.length === 0, `${what}: nothing is asked of the network ${page.requests.join(" ")}`);
};

// Positions of known nodes against the recording, within the error that the page states.
async function positionsAgree(page, truth, what) {
  const bound = await page.evaluate(() => window.limber.errorBound());
  let worst = 0;
  let found = 0;
  for (const { frame, node, x } of truth.samples) {
    const shown = await page.evaluate(({ frame, node }) => {
      window.limber.seek(frame);
      const k = window.limber.nodes().indexOf(node);
      return k < 0 ? null : window.limber.positions().slice(3 * k, 3 * k + 3);
    }, { frame, node });
    if (!shown) continue; // an inner node of a page without its inside
    ++found;
    shown.forEach((v, d) => (worst = Math.max(worst, Math.abs(v - x[d]))));
  }
  check(found >= truth.samples.length / 2, `${what}: ${found} of ${truth.samples.length} sampled nodes are on the page`);
  check(bound > 0 && bound < 1e-3, `${what}: the stated error is ${bound} m`);
  check(worst <= bound * 1.0001 + 2e-7, `${what}: positions are within ${worst} m of the recording`);
}

{
  const page = await open(browser, file("bar/index.html"));
  await ready(page);
  check((await page.title()).startsWith("bending bar"), "bar: the title names the scene");
  check((await page.evaluate(() => window.limber.frameCount)) === json("bar/truth.json").frames, "bar: all frames are there");
  await positionsAgree(page, json("bar/truth.json"), "bar");

  // Drawn, and different from frame to frame and from field to field.
  await page.evaluate(() => window.limber.seek(0));
  const first = await pixels(page);
  check(first.colors > 60, `bar: the canvas shows ${first.colors} colours`);
  await page.evaluate(() => window.limber.seek(12));
  const later = await pixels(page);
  check(later.sum !== first.sum, "bar: another frame is another picture");
  const fields = await page.evaluate(() => window.limber.fields());
  for (const id of ["displacement", "speed", "energy_density", "young", "region"]) check(fields.includes(id), `bar: can be coloured by ${id}`);
  const sums = new Set();
  for (const id of fields) {
    await page.selectOption("#color", id);
    sums.add((await pixels(page)).sum);
    check((await page.textContent("#legend")).length > 3, `bar: ${id} has a legend: ${(await page.textContent("#legend")).slice(0, 60)}`);
  }
  check(sums.size === fields.length, `bar: ${fields.length} fields give ${sums.size} pictures`);
  // Values: the displacement on the page is the one of its positions.
  const displacement = await page.evaluate(() => {
    window.limber.setColor("displacement");
    const { epoch, x } = window.limber.app.views[0];
    const values = window.limber.values();
    return values.reduce((worst, v, i) => Math.max(worst, Math.abs(v - Math.hypot(...[0, 1, 2].map((d) => x[3 * i + d] - epoch.rest[3 * i + d])))), 0);
  });
  check(displacement < 1e-6, "bar: displacements fit the positions");

  // Playback by button and keys.
  await page.evaluate(() => window.limber.seek(0));
  await page.click("button[aria-label=Play]");
  await page.waitForFunction(() => window.limber.time > 0.05);
  check(await page.evaluate(() => window.limber.playing), "bar: plays");
  await page.click("button[aria-label=Pause]");
  check(!(await page.evaluate(() => window.limber.playing)), "bar: pauses");
  await page.evaluate(() => window.limber.seek(5));
  await page.focus("#canvas");
  await page.keyboard.press("ArrowRight");
  check((await page.evaluate(() => window.limber.frame)) === 6, "bar: the right arrow goes one frame on");
  await page.keyboard.press("Shift+ArrowRight");
  check((await page.evaluate(() => window.limber.frame)) === 16, "bar: with Shift ten");
  await page.keyboard.press("End");
  check((await page.evaluate(() => window.limber.frame)) === 59, "bar: End goes to the last frame");
  await page.fill("#scrub", "30");
  check((await page.evaluate(() => window.limber.frame)) === 30, "bar: the slider scrubs");
  check((await page.textContent(".clock")).includes("frame 30 of 59"), "bar: the clock says so");

  // Plots: drawn, the line follows, a click seeks.
  const plots = await page.$$eval(".plot h3", (h) => h.map((e) => e.textContent));
  for (const name of ["Energy", "Liveliness", "Unknowns", "Time per step"]) check(plots.some((p) => p.startsWith(name)), `bar: has a plot of ${name}`);
  const place = () => page.$eval(".plot .now", (e) => parseFloat(e.style.left));
  const before = await place();
  await page.evaluate(() => window.limber.seek(50));
  check((await place()) > before + 20, "bar: the line in the plots follows the frame");
  const area = await (await page.$(".plot .u-over")).boundingBox();
  await page.mouse.click(area.x + area.width * 0.25, area.y + area.height / 2);
  const sought = await page.evaluate(() => window.limber.frame);
  check(sought > 10 && sought < 20, `bar: a click in a plot goes there (frame ${sought})`);

  // The cut shows the inside.
  await page.evaluate(() => window.limber.seek(20));
  const uncut = await pixels(page);
  await page.selectOption("#clip", "2");
  const cut = await pixels(page);
  const triangles = await page.evaluate(() => window.limber.app.views[0].cap.mesh.geometry.drawRange.count / 3);
  check(cut.sum !== uncut.sum && triangles > 100, `bar: a cut shows ${triangles} triangles inside`);
  const turned = await page.evaluate(() => {
    const { geometry } = window.limber.app.views[0].cap.mesh;
    const [p, n] = [geometry.getAttribute("position").array, geometry.getAttribute("normal").array];
    let wrong = 0;
    for (let o = 0; o < 3 * geometry.drawRange.count; o += 9) {
      const u = [0, 1, 2].map((d) => p[o + 3 + d] - p[o + d]);
      const v = [0, 1, 2].map((d) => p[o + 6 + d] - p[o + d]);
      if (n[o] * (u[1] * v[2] - u[2] * v[1]) + n[o + 1] * (u[2] * v[0] - u[0] * v[2]) + n[o + 2] * (u[0] * v[1] - u[1] * v[0]) < 0) ++wrong;
    }
    return wrong;
  });
  check(turned === 0, `bar: all triangles of the cut face the viewer (${turned} do not)`);
  await page.selectOption("#clip", "-1");
  for (const label of ["edges", "dynamic nodes", "pins", "fibres", "obstacles"]) {
    const with_ = await pixels(page);
    await page.click(`button.chip:text-is("${label}")`);
    check((await pixels(page)).sum !== with_.sum, `bar: ${label} can be switched`);
    await page.click(`button.chip:text-is("${label}")`);
  }
  const look = await page.evaluate(() => document.documentElement.dataset.look);
  await page.keyboard.press("d");
  check((await page.evaluate(() => document.documentElement.dataset.look)) !== look, "bar: the look changes");
  await page.keyboard.press("?");
  check(await page.isVisible("dialog#help"), "bar: ? shows the keys");
  await page.keyboard.press("Escape");

  // The camera moves with the mouse, and the body answers to it.
  const still = (await pixels(page)).sum;
  const canvas = await (await page.$("#canvas")).boundingBox();
  await page.mouse.move(canvas.x + canvas.width / 2, canvas.y + canvas.height / 2);
  await page.waitForFunction(() => !document.getElementById("probe").hidden);
  check(/node \d+/.test(await page.textContent("#probe")), `bar: pointing shows numbers: ${(await page.textContent("#probe")).replaceAll("\n", " ")}`);
  await page.mouse.down();
  await page.mouse.move(canvas.x + canvas.width / 2 + 120, canvas.y + canvas.height / 2 + 40, { steps: 4 });
  await page.mouse.up();
  check((await pixels(page)).sum !== still, "bar: dragging turns the view");
  const facts = await page.textContent("#facts");
  for (const word of ["formula", "window", "208", "surface triangles", "assemble", "within"]) check(facts.includes(word), `bar: the facts have "${word}"`);
  quiet(page, "bar");
  await page.context().close();
}
{
  // A body that the vertex shader moves looks like the same motion from positions.
  const pictures = async (name) => {
    const page = await open(browser, file(`${name}/index.html`));
    await ready(page);
    await positionsAgree(page, json(`${name}/truth.json`), name);
    const out = {};
    for (const color of ["displacement", "speed", "young"])
      for (const frame of [0, 17]) {
        // The same colours for both: the bar of colours is chosen from what is there.
        await page.evaluate(({ color, frame }) => {
          window.limber.seek(frame);
          window.limber.setColor(color);
          for (const v of window.limber.app.views) v.setRange(color === "young" ? { low: 1e5, high: 1e6, log: false, tick: 0 } : { low: 0, high: color === "speed" ? 1 : 0.1, log: false, tick: 0 });
        }, { color, frame });
        out[`${color} ${frame}`] = await image(page);
      }
    out.values = await page.evaluate(() => {
      window.limber.seek(17);
      window.limber.setColor("speed");
      return window.limber.values();
    });
    out.skinned = await page.evaluate(() => window.limber.app.views[0].surface.skinned);
    await page.selectOption("#clip", "2");
    out.cut = await page.evaluate(() => window.limber.app.views[0].cap.mesh.geometry.drawRange.count / 3);
    await page.selectOption("#clip", "-1");
    await page.evaluate(() => window.limber.seek(0));
    await page.click("button[aria-label=Play]");
    await page.waitForFunction(() => window.limber.time > 0.05);
    check(true, `${name}: plays`);
    quiet(page, name);
    await page.context().close();
    return out;
  };
  const [skin, plain] = [await pictures("reduced"), await pictures("positions")];
  check(skin.skinned && !plain.skinned, "reduced: the vertex shader moves it");
  const apart = (a, b) => a.reduce((sum, v, i) => sum + Math.abs(v - b[i]), 0) / a.length;
  for (const key of Object.keys(skin).filter((k) => Array.isArray(skin[k]) && k !== "values"))
    check(apart(skin[key], plain[key]) < 1, `reduced: ${key} looks the same (mean difference ${apart(skin[key], plain[key]).toFixed(3)} of 255)`);
  check(apart(skin["displacement 0"], skin["displacement 17"]) > 2, "reduced: another frame is another picture");
  const fastest = Math.max(...plain.values);
  check(skin.values.every((v, i) => Math.abs(v - plain.values[i]) < 0.005 * fastest), `reduced: speeds agree (up to ${fastest.toFixed(3)} m/s)`);
  check(skin.cut > 100 && skin.cut === plain.cut, `reduced: a cut shows ${skin.cut} triangles inside`);
}
{
  const page = await open(browser, file("cut/index.html"));
  await ready(page);
  await positionsAgree(page, json("cut/truth.json"), "cut");
  const nodes = await page.evaluate(() => [14, 15].map((f) => (window.limber.seek(f), window.limber.nodes().length)));
  check(nodes[1] > nodes[0], `cut: the topology changes between frames (${nodes.join(" and ")} nodes)`);
  const a = await pixels(page);
  await page.evaluate(() => window.limber.seek(14));
  check((await pixels(page)).sum !== a.sum && a.colors > 60, "cut: both sides of the change are drawn");
  check((await page.textContent("#facts")).includes("topology changes"), "cut: the facts say so");
  quiet(page, "cut");
  await page.context().close();
}
{
  // Cloth that is remeshed in every frame, and slides over an edge.
  const page = await open(browser, file("cloth/index.html"));
  await ready(page);
  await positionsAgree(page, json("cloth/truth.json"), "cloth");
  const seen = await page.evaluate(() => {
    const out = [];
    for (const f of [0, 10, 39]) {
      window.limber.seek(f);
      const v = window.limber.app.views[0];
      let length = 0;
      let off = 0;
      for (let k = 0; k < v.conformal.length; k += 2) {
        const [a, b] = [v.conformal[k], v.conformal[k + 1]];
        length += Math.abs(v.x[3 * a + 1] - v.x[3 * b + 1]);
        off = Math.max(off, Math.abs(v.x[3 * a] - 0.55) + Math.abs(v.x[3 * a + 2]), Math.abs(v.material[2 * a] - (0.55 - 0.01 * f)));
      }
      out.push({ epoch: v.run.epochIndex(f), length, off });
    }
    return out;
  });
  check(new Set(seen.map((s) => s.epoch)).size === 3, `cloth: its topology changes (${seen.map((s) => s.epoch)})`);
  for (const s of seen) check(Math.abs(s.length - 1) < 1e-3 && s.off < 2e-3, `cloth: edges along the box's are 1 m long (${s.length}) and on it (${s.off} m)`);
  await page.evaluate(() => window.limber.seek(30));
  const grid = await pixels(page);
  await page.click('button.chip:text-is("checkers")');
  check((await pixels(page)).sum !== grid.sum && grid.colors > 60, "cloth: checkers are drawn, and can be switched off");
  const map = () => page.evaluate(() => {
    const c = document.getElementById("material");
    if (c.hidden) return -1;
    const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
    let red = 0;
    for (let i = 0; i < d.length; i += 4) red += d[i] > 180 && d[i + 1] < 130 && d[i + 3] > 128 ? 1 : 0;
    return red;
  });
  const red = await map();
  check(red > 100, `cloth: its material is drawn beside it, with the edge in ${red} pixels`);
  await page.click('button.chip:text-is("material")');
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  check((await map()) === -1, "cloth: and can be switched off");
  check((await page.textContent("#legend")).includes("on sharp features"), "cloth: the legend counts vertices on sharp features");
  quiet(page, "cloth");
  await page.context().close();
}
{
  const page = await open(browser, file("small/index.html"));
  await ready(page);
  const m = await page.evaluate(() => ({ every: window.limber.app.runs[0].manifest.every, frames: window.limber.frameCount, bound: window.limber.errorBound(), inside: window.limber.app.runs[0].manifest.epochs[0].inside }));
  check(!m.inside && m.frames > 20, `small: a tight page keeps ${m.frames} frames, error ${m.bound} m, no inside`);
  if (m.every === 1) await positionsAgree(page, json("small/truth.json"), "small");
  const floor = await pixels(page);
  await page.click('button.chip:text-is("floor")');
  check((await pixels(page)).sum !== floor.sum, "small: a scene without a floor gets one, which can be switched off");
  await page.selectOption("#clip", "0");
  check((await page.textContent("#display")).includes("inside is not in this page"), "small: the cut says that the inside is missing");
  quiet(page, "small");
  await page.context().close();
}
{
  const page = await open(browser, file("compare.html"));
  await ready(page);
  const truth = json("compare.json");
  const colored = await page.evaluate(() => window.limber.app.field.id);
  check(colored === "distance", "compare: coloured by the distance");
  const worst = await page.evaluate((frame) => {
    window.limber.seek(frame);
    return Math.max(...window.limber.values(1));
  }, 20);
  check(Math.abs(worst - truth.max[20]) < 0.01 * truth.max[20] + 1e-6, `compare: the largest distance on the page is ${worst}, computed ${truth.max[20]}`);
  // And from the two runs' positions on the page.
  const apart = await page.evaluate(() => {
    const [a, b] = [window.limber.positions(0), window.limber.positions(1)];
    let worst = 0;
    for (let i = 0; i < a.length; i += 3) worst = Math.max(worst, Math.hypot(a[i] - b[i], a[i + 1] - b[i + 1], a[i + 2] - b[i + 2]));
    return worst;
  });
  check(Math.abs(apart - truth.max[20]) < 5e-5, `compare: and from the positions ${apart}`);
  const side = await pixels(page);
  await page.selectOption("#layout", "overlay");
  const over = await pixels(page);
  check(side.colors > 60 && over.colors > 60 && side.sum !== over.sum, "compare: side by side and overlaid are drawn");
  check((await page.textContent("#labels")).includes("bent more"), "compare: the runs are named");
  check((await page.textContent("#costs")).includes("times faster"), "compare: there is a table of costs");
  for (const words of ["s per simulated s", "energy change", "amplitude", "of the size"])
    check((await page.textContent("#costs")).includes(words), `compare: the table has "${words}"`);
  check((await page.$$eval(".plot h3", (h) => h.map((e) => e.textContent))).some((p) => p.startsWith("Distance")), "compare: the distance is plotted");
  quiet(page, "compare");
  await page.context().close();
}
{
  // What can be set by hand, and the link that remembers it.
  const page = await open(browser, file("bar/index.html"));
  await ready(page);
  check(!(await page.evaluate(() => window.limber.playing)), "bar: it does not play by itself where people want less motion");
  await page.selectOption("#range", "typed");
  const ends = await page.$$('#display input[type="number"]');
  await ends[0].fill("0.01");
  await ends[1].fill("0.02");
  await ends[1].dispatchEvent("change");
  check((await page.textContent("#legend")).includes("0.02"), "bar: a typed range is on the bar");
  const before = await pixels(page);
  await page.selectOption("#map", "grey");
  check((await pixels(page)).sum !== before.sum, "bar: another colour map draws other colours");
  const plots = (await page.$$(".plot")).length;
  await page.evaluate(() => window.limber.app.plotNode(window.limber.nodes()[3]));
  check((await page.$$(".plot")).length === plots + 1, "bar: a node gets a plot over time");
  const same = await page.evaluate(() => {
    const { app } = window.limber;
    const node = window.limber.nodes()[3];
    const path = app.reference.path(node);
    const f = app.player.frame;
    return Math.max(...[0, 1, 2].map((d) => Math.abs(path[d][f] + app.views[0].epoch.rest[9 + d] - window.limber.positions()[9 + d])));
  });
  check(same < 1e-6, `bar: and its values are the positions' (${same})`);
  await page.evaluate(() => { window.limber.seek(7); window.limber.app.stage.place = [1, 2, 3, 0.1, 0, 0]; });
  await page.click("#tool-link");
  const hash = await page.evaluate(() => location.hash);
  await page.context().close();
  const again = await open(browser, `${file("bar/index.html")}${hash}&quality=lowest&x=`);
  await ready(again);
  const state = await again.evaluate(() => ({ frame: window.limber.frame, place: window.limber.app.stage.place, range: window.limber.app.typedRange, map: document.getElementById("map").value, nodes: window.limber.app.plottedNodes.length }));
  check(state.frame === 7 && state.range?.[1] === 0.02 && state.map === "grey" && state.nodes === 1, `bar: the link brings all of it back ${JSON.stringify(state)}`);
  check(Math.hypot(...state.place.map((v, k) => v - [1, 2, 3, 0.1, 0, 0][k])) < 0.01, "bar: and the camera");
  quiet(again, "bar by link");
  await again.context().close();
  const context = await browser.newContext({ viewport: { width: 600, height: 400 } });
  const moving = await context.newPage();
  await moving.goto(`${file("bar/index.html")}#quality=lowest`);
  await ready(moving);
  await moving.waitForFunction(() => window.limber.playing);
  check(true, "bar: elsewhere the page plays at once");
  await context.close();
}
for (const [name, words] of [
  ["empty/index.html", ["No frames were recorded", "rest shape"]],
  ["nothing/index.html", ["No frames were recorded"]],
  ["garbage/index.html", ["cannot be shown", "is not a recording"]],
  ["damaged/topology.html", ["damaged", "limber view"]],
  ["damaged/manifest.html", ["damaged", "limber view"]],
]) {
  const page = await open(browser, file(name));
  await page.waitForSelector("#message:not([hidden])");
  const text = await page.textContent("#message");
  for (const w of words) check(text.includes(w), `${name}: says "${w}"`);
  quiet(page, name);
  if (name.startsWith("empty")) check((await pixels(page)).colors > 30, "empty: the rest shape is drawn");
  await page.context().close();
}
{
  const page = await open(browser, file("truncated/index.html"));
  await ready(page);
  await page.waitForSelector(".notice");
  check((await page.textContent("#notices")).includes("Damaged recording"), "truncated: the page says that the recording is damaged");
  const frames = await page.evaluate(() => window.limber.frameCount);
  check(frames > 10 && frames < 60, `truncated: ${frames} frames are still shown`);
  quiet(page, "truncated");
  await page.context().close();
}
{
  const page = await open(browser, file("damaged/index.html"));
  await ready(page);
  await page.waitForSelector(".notice");
  check(/damaged.*frames 32 to 59/s.test(await page.textContent("#notices")), "damaged: the page names the frames that are lost");
  await page.evaluate(() => window.limber.seek(10));
  check((await pixels(page)).colors > 60, "damaged: the others are drawn");
  await page.evaluate(() => window.limber.seek(40));
  quiet(page, "damaged");
  await page.context().close();
}
{
  const page = await open(browser, file("escape/index.html"));
  await ready(page);
  check((await page.evaluate(() => window.broken)) === undefined, "escape: names cannot run scripts");
  check((await page.textContent("#scene-name")).startsWith("</script>"), "escape: and are shown as they are");
  quiet(page, "escape");
  await page.context().close();
}
{
  const page = await open(browser, file("bar/index.html"), { width: 390, height: 780, touch: true });
  await ready(page);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  check(wide <= 390, `phone: nothing sticks out sideways (${wide} of 390 pixels)`);
  const [stage, legend] = await page.evaluate(() => ["stage", "legend"].map((id) => document.getElementById(id).getBoundingClientRect().toJSON()));
  check(legend.top >= stage.bottom && legend.height > 10, "phone: the legend lies below the picture and covers nothing of it");
  check((await pixels(page)).colors > 60, "phone: the body is drawn");
  const small = await page.$$eval("button:not(.u-over), select, summary", (all) =>
    all.filter((e) => e.offsetParent && e.getBoundingClientRect().height < 30).map((e) => e.textContent || e.id || e.className));
  check(small.length === 0, `phone: everything is large enough for a finger ${small.join(", ")}`);
  const canvas = await (await page.$("#canvas")).boundingBox();
  await page.touchscreen.tap(canvas.x + canvas.width / 2, canvas.y + canvas.height / 2);
  await page.waitForFunction(() => !document.getElementById("probe").hidden);
  check(true, "phone: a tap shows numbers");
  await page.tap("button[aria-label=Play]");
  await page.waitForFunction(() => window.limber.time > 0.02);
  check(true, "phone: plays");
  quiet(page, "phone");
  await page.context().close();
}
{
  // limber render's PNG under somebody else's decoder.
  const page = await open(browser, file("picture.png"));
  const picture = await page.evaluate(() => {
    const image = document.querySelector("img");
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
    const c = canvas.getContext("2d");
    c.drawImage(image, 0, 0);
    const colors = new Set();
    const { data } = c.getImageData(0, 0, canvas.width, canvas.height);
    for (let i = 0; i < data.length; i += 4) colors.add(`${data[i] >> 3},${data[i + 1] >> 3},${data[i + 2] >> 3}`);
    return { width: canvas.width, height: canvas.height, colors: colors.size };
  }).catch((e) => ({ error: e.message }));
  check(picture.width === 320 && picture.height === 200 && picture.colors > 200, `picture: the browser reads it (${JSON.stringify(picture)})`);
  await page.context().close();
}
await browser.close();
finish();
