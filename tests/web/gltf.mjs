// Exported .glb files under the Khronos validator, and their motion against the recording.  node gltf.mjs SAMPLES
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { check, finish } from "./browser.mjs";
const require = createRequire(import.meta.url);
const validator = require(`${process.env.NODE_PATH}/gltf-validator`);

const root = process.argv[2];
for (const name of ["bar", "cut", "few"]) {
  const bytes = new Uint8Array(readFileSync(`${root}/export/${name}.glb`));
  const report = await validator.validateBytes(bytes, { maxIssues: 20 });
  const { numErrors, numWarnings, messages } = report.issues;
  check(numErrors === 0 && numWarnings === 0, `${name}.glb: ${numErrors} errors, ${numWarnings} warnings ${JSON.stringify(messages.filter((m) => m.severity < 2))}`);
  check(report.info.animationCount === 1 && report.info.hasMorphTargets, `${name}.glb: is animated by morph targets`);
}

// Undo the morphing by hand: the vertices of a frame lie where the recording has its surface nodes.
const data = readFileSync(`${root}/export/bar.glb`);
const length = data.readUInt32LE(12);
const gltf = JSON.parse(data.subarray(20, 20 + length).toString());
const binary = data.subarray(20 + length + 8);
const numbers = (accessor) => {
  const a = gltf.accessors[accessor];
  const v = gltf.bufferViews[a.bufferView];
  const width = { SCALAR: 1, VEC3: 3, VEC4: 4 }[a.type];
  return new Float32Array(binary.buffer.slice(binary.byteOffset + v.byteOffset, binary.byteOffset + v.byteOffset + 4 * width * a.count));
};
const channel = gltf.animations[0].channels.find((c) => c.target.path === "weights");
const sampler = gltf.animations[0].samplers[channel.sampler];
const [times, weights] = [numbers(sampler.input), numbers(sampler.output)];
const primitive = gltf.meshes[gltf.nodes[channel.target.node].mesh].primitives[0];
const base = numbers(primitive.attributes.POSITION);
const targets = primitive.targets.map((t) => numbers(t.POSITION));
check(weights.every((w) => w >= 0 && w <= 1), "bar.glb: weights are from 0 to 1, as Blender wants them");
check(times.length === 60 && weights.length === 60 * targets.length, `bar.glb: 60 frames from ${targets.length} shapes`);
check(targets.length < 20, "bar.glb: a bending bar needs few shapes");
const truth = JSON.parse(readFileSync(`${root}/bar/truth.json`, "utf8"));
for (const { frame, node, x } of truth.samples) {
  let nearest = Infinity;
  for (let i = 0; i < base.length; i += 3) {
    const p = [0, 1, 2].map((d) => targets.reduce((sum, t, k) => sum + weights[frame * targets.length + k] * t[i + d], base[i + d]));
    nearest = Math.min(nearest, Math.hypot(p[0] - x[0], p[1] - x[1], p[2] - x[2]));
  }
  // Inner nodes are not part of the surface; all sampled ones but those are.
  if (nearest < 0.02) check(nearest < 1.2e-3, `bar.glb: node ${node} in frame ${frame} is within ${nearest.toExponential(1)} m`);
}
finish();
