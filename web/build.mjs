// Bundles src/ into dist/page.html: one file, no network. `node build.mjs --check` only compares.
import { build } from "esbuild";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const result = await build({
  entryPoints: { page: join(here, "src/main.ts"), style: join(here, "src/style.css") },
  bundle: true,
  minify: true,
  write: false,
  outdir: "out",
  format: "iife",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
});
const output = (suffix) => result.outputFiles.find((f) => f.path.endsWith(suffix)).text.trim();
// Replacement by function: "$&" in the bundle must stay what it is.
const script = output(".js").replaceAll("</script", "<\\/script");
const licences =
  "<!-- Contains three.js (c) three.js authors and uPlot (c) Leon Sorokin, both under the MIT licence. -->";
const page = (await readFile(join(here, "page.html"), "utf8"))
  .replace("<meta charset", () => `${licences}\n<meta charset`)
  .replace("/*STYLE*/", () => output(".css"))
  .replace("/*SCRIPT*/", () => script);
const target = join(here, "dist/page.html");
if (process.argv.includes("--check")) {
  if ((await readFile(target, "utf8")) !== page) {
    console.error("web/dist/page.html is not what web/src gives: run `npm run build` in web/ and commit it");
    process.exit(1);
  }
} else {
  await mkdir(dirname(target), { recursive: true });
  await writeFile(target, page);
  console.log(`${target}: ${(page.length / 1e3).toFixed(0)} kB`);
}
