// The surface's material: three's physically based one, with the colour taken from a field, contour lines at the
// ticks of the colour bar, hatching for categories, and anti-aliased element edges.
import * as THREE from "three";
import { colorTable, highlight, mapSize } from "./colors";
import { type SkinUniforms, skinHead } from "./skin";

export const enum ColorMode {
  Plain = 0,
  Numbers = 1,
  Categories = 2,
  Highlight = 3,
}

export interface SurfaceUniforms {
  uMap: THREE.IUniform<THREE.Texture>;
  uMode: THREE.IUniform<number>;
  uLow: THREE.IUniform<number>;
  uHigh: THREE.IUniform<number>;
  uLog: THREE.IUniform<number>;
  uTick: THREE.IUniform<number>; // distance of contour lines; 0: none
  uPick: THREE.IUniform<number>; // category to point out; -1: none
  uBase: THREE.IUniform<THREE.Color>;
  uRed: THREE.IUniform<THREE.Color>;
  uWire: THREE.IUniform<number>;
  uWireColor: THREE.IUniform<THREE.Color>;
  uCell: THREE.IUniform<number>; // of a cloth's checkers [m]; 0: none
}

let table: THREE.DataTexture | null = null;

function sharedTable() {
  if (!table) {
    table = new THREE.DataTexture(colorTable(), mapSize, 2);
    table.colorSpace = THREE.SRGBColorSpace;
    table.minFilter = table.magFilter = THREE.LinearFilter;
    table.needsUpdate = true;
  }
  return table;
}

// After chooseMap().
export function refreshTable() {
  const t = sharedTable();
  (t.image.data as Uint8Array).set(colorTable());
  t.needsUpdate = true;
}

export function surfaceUniforms(): SurfaceUniforms {
  return {
    uMap: { value: sharedTable() },
    uMode: { value: ColorMode.Plain },
    uLow: { value: 0 },
    uHigh: { value: 1 },
    uLog: { value: 0 },
    uTick: { value: 0 },
    uPick: { value: -1 },
    uBase: { value: new THREE.Color(highlight.plain) },
    uRed: { value: new THREE.Color(highlight.red) },
    uWire: { value: 0 },
    uWireColor: { value: new THREE.Color(0x10151c) },
    uCell: { value: 0 },
  };
}

const vertexHead = /* glsl */ `
attribute float aValue;
attribute vec3 aBary;
attribute vec2 aMaterial;
varying float vValue;
varying vec3 vBary;
varying vec2 vMaterial;
`;

const fragmentHead = /* glsl */ `
uniform sampler2D uMap;
uniform int uMode;
uniform float uLow, uHigh, uLog, uTick, uPick, uWire, uCell;
uniform vec3 uBase, uRed, uWireColor;
varying float vValue;
varying vec3 vBary;
varying vec2 vMaterial;
`;

const fragmentColor = /* glsl */ `
vec3 base = uBase;
if (uMode == 1) {
  float v = uLog > 0.5 ? log(max(vValue, 1e-30)) / log(10.0) : vValue;
  float u = clamp((v - uLow) / max(uHigh - uLow, 1e-30), 0.0, 1.0);
  base = texture2D(uMap, vec2((u * 255.0 + 0.5) / 256.0, 0.25)).rgb;
  if (uTick > 0.0) {
    float s = v / uTick;
    float w = fwidth(s);
    float line = 1.0 - smoothstep(0.5, 1.4, abs(fract(s - 0.5) - 0.5) / max(w, 1e-6));
    // Not where lines would lie on each other, nor where a constant value happens to be a tick.
    base *= 1.0 - 0.45 * line * (1.0 - smoothstep(0.12, 0.35, w)) * smoothstep(2e-5, 2e-4, w);
  }
} else if (uMode == 2) {
  float c = floor(vValue + 0.5);
  base = texelFetch(uMap, ivec2(int(mod(c, 8.0)), 1), 0).rgb;
  // Hatching, so that neighbours differ by more than their colour.
  float k = mod(c, 4.0);
  vec2 direction = k < 1.5 ? vec2(0.7071, 0.7071) : (k < 2.5 ? vec2(0.7071, -0.7071) : vec2(0.0, 1.0));
  float stripe = abs(fract(dot(gl_FragCoord.xy, direction) / 11.0) - 0.5);
  if (k > 0.5) base *= 1.0 - 0.2 * smoothstep(0.18, 0.08, stripe);
  if (uPick >= 0.0 && abs(c - uPick) > 0.5) base = mix(base, vec3(dot(base, vec3(0.3, 0.6, 0.1))), 0.9) * 0.55;
}
if (uMode == 3) base = mix(uBase, uRed, smoothstep(0.4, 0.6, vValue));
if (uCell > 0.0) {
  // Checkers of the material: what slides is seen to slide. Blurred to their mean where they are smaller than pixels.
  vec2 p = vMaterial / uCell;
  vec2 w = max(fwidth(p), vec2(1e-6));
  // The mean of a square wave over a pixel is the difference of a triangular one.
  vec2 before = abs(2.0 * fract(0.5 * p - 0.25 * w) - 1.0), after = abs(2.0 * fract(0.5 * p + 0.25 * w) - 1.0);
  vec2 wave = (after - before) / w;
  float checker = 0.5 + 0.5 * wave.x * wave.y;
  if (!gl_FrontFacing) base = mix(base.bgr, base, 0.35) * 0.86;
  base *= 1.0 - 0.42 * checker;
}
if (uWire > 0.0) {
  vec3 d = vBary / max(fwidth(vBary), vec3(1e-6));
  float edge = min(min(d.x, d.y), d.z);
  float size = max(max(fwidth(vBary.x), fwidth(vBary.y)), fwidth(vBary.z));
  base = mix(base, uWireColor, uWire * (1.0 - smoothstep(0.4, 1.3, edge)) * (1.0 - smoothstep(0.25, 0.6, size)));
}
diffuseColor.rgb = base;
`;

// `skin`: vertices are moved by the shader.
export function surfaceMaterial(
  uniforms: SurfaceUniforms,
  options: THREE.MeshPhysicalMaterialParameters,
  skin: SkinUniforms | null = null,
) {
  const material = new THREE.MeshPhysicalMaterial(options);
  material.onBeforeCompile = (shader) => {
    Object.assign(shader.uniforms, uniforms, skin ?? {});
    shader.vertexShader =
      vertexHead +
      (skin ? skinHead : "") +
      shader.vertexShader
        .replace(
          "#include <beginnormal_vertex>",
          skin
            ? "vec3 skinPlace, objectNormal;\nfloat skinValue;\nskinned(skinPlace, objectNormal, skinValue);"
            : "#include <beginnormal_vertex>",
        )
        .replace(
          "#include <begin_vertex>",
          (skin ? "vec3 transformed = skinPlace;\nvValue = uSkinValue > 0 ? skinValue : aValue;" : "#include <begin_vertex>\nvValue = aValue;") +
            "\nvBary = aBary;\nvMaterial = aMaterial;",
        );
    shader.fragmentShader =
      fragmentHead + shader.fragmentShader.replace("#include <color_fragment>", `#include <color_fragment>\n${fragmentColor}`);
  };
  material.customProgramCacheKey = () => (skin ? "skinned" : "plain");
  return material;
}
