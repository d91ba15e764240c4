// A reduced method's body: x = rest + sum of functions times coordinates, three numbers for each function. On the
// GPU in the vertex shader; here for what has to know positions (cuts, marks, the pointer).
import * as THREE from "three";

export class Skin {
  constructor(
    readonly rest: Float32Array,
    readonly functions: number,
    readonly basis: Float32Array, // node by node
  ) {}

  // `values`: integers function by function, each relative to that of the node's parent.
  static decode(rest: Float32Array, steps: Float32Array, values: Int32Array, parent: Int32Array) {
    const nodes = rest.length / 3;
    const p = steps.length;
    const basis = new Float32Array(nodes * p);
    const q = new Int32Array(nodes);
    for (let j = 0; j < p; ++j)
      for (let i = 0; i < nodes; ++i) {
        q[i] = (values[j * nodes + i] + (parent[i] < 0 ? 0 : q[parent[i]])) | 0;
        basis[i * p + j] = steps[j] * q[i];
      }
    return new Skin(rest, p, basis);
  }

  // The displacement of node i, added to out[o...].
  add(u: Float32Array, i: number, out: Float32Array, o: number) {
    const { basis, functions: p } = this;
    let [x, y, z] = [0, 0, 0];
    for (let j = 0, b = i * p, k = 0; j < p; ++j, ++b, k += 3) {
      x += basis[b] * u[k];
      y += basis[b] * u[k + 1];
      z += basis[b] * u[k + 2];
    }
    out[o] += x;
    out[o + 1] += y;
    out[o + 2] += z;
  }

  positions(u: Float32Array, out: Float32Array) {
    out.set(this.rest.subarray(0, out.length));
    for (let i = 0; i < out.length / 3; ++i) this.add(u, i, out, 3 * i);
  }

  // |sum of functions times coordinates| of each node: displacements, speeds.
  lengths(u: Float32Array): Float32Array {
    const v = new Float32Array(3);
    return new Float32Array(this.rest.length / 3).map((_, i) => {
      v.fill(0);
      this.add(u, i, v, 0);
      return Math.hypot(v[0], v[1], v[2]);
    });
  }
}

const textureWidth = 4096;

export interface SkinUniforms {
  uSkin: THREE.IUniform<THREE.DataTexture>; // of each point: rest, two tangents, four functions and their slopes, ...
  uPose: THREE.IUniform<THREE.DataTexture>; // first row: coordinates, second: those of the velocity
  uSkinPacks: THREE.IUniform<number>;
  uSkinOn: THREE.IUniform<number>; // 0: the frame has positions after all
  uSkinValue: THREE.IUniform<number>; // what vValue is: 0 the attribute, 1 the displacement, 2 the speed
}

// What the vertex shader needs: points of the surface (corners that share a normal), each with its node and the
// triangles around it. Null: more than textures hold.
export function skinUniforms(skin: Skin, triangles: Int32Array, points: { index: Int32Array; count: number }): SkinUniforms | null {
  const p = skin.functions;
  const packs = Math.ceil(p / 4);
  const stride = 3 + 3 * packs;
  const rows = Math.ceil((points.count * stride) / textureWidth);
  if (rows > 8192) return null;
  const data = new Float32Array(4 * textureWidth * rows);
  const nodeOf = new Int32Array(points.count);
  const normals = new Float32Array(3 * points.count);
  const { rest, basis } = skin;
  const [a, b, c, n, e] = [0, 1, 2, 3, 4].map(() => new THREE.Vector3());
  for (let t = 0; t < triangles.length; t += 3) {
    a.fromArray(rest, 3 * triangles[t]);
    n.subVectors(b.fromArray(rest, 3 * triangles[t + 1]), a).cross(c.fromArray(rest, 3 * triangles[t + 2]).sub(a));
    for (let k = 0; k < 3; ++k) {
      const s = points.index[t + k];
      nodeOf[s] = triangles[t + k];
      normals[3 * s] += n.x;
      normals[3 * s + 1] += n.y;
      normals[3 * s + 2] += n.z;
    }
  }
  const texel = (s: number, k: number) => 4 * (s * stride + k);
  const tangents = new Float32Array(6 * points.count);
  for (let s = 0; s < points.count; ++s) {
    n.fromArray(normals, 3 * s).normalize();
    // The axis that is least along the normal gives the first tangent.
    const [x, y, z] = [Math.abs(n.x), Math.abs(n.y), Math.abs(n.z)];
    e.set(0, 0, 0).setComponent(x <= y && x <= z ? 0 : y <= z ? 1 : 2, 1);
    a.crossVectors(n, e).normalize().toArray(tangents, 6 * s);
    b.crossVectors(n, a).toArray(tangents, 6 * s + 3);
    data.set(rest.subarray(3 * nodeOf[s], 3 * nodeOf[s] + 3), texel(s, 0));
    data.set(tangents.subarray(6 * s, 6 * s + 3), texel(s, 1));
    data.set(tangents.subarray(6 * s + 3, 6 * s + 6), texel(s, 2));
    for (let j = 0; j < p; ++j) data[texel(s, 3 + 3 * (j >> 2)) + (j & 3)] = basis[nodeOf[s] * p + j];
  }
  // Slopes along the tangents: those of the triangles around, by area.
  const area = new Float32Array(points.count);
  const slope = new Float32Array(3); // along one tangent, for the three corners' values
  for (let t = 0; t < triangles.length; t += 3) {
    const corners = [0, 1, 2].map((k) => 3 * triangles[t + k]);
    a.fromArray(rest, corners[0]);
    b.fromArray(rest, corners[1]).sub(a);
    c.fromArray(rest, corners[2]).sub(a);
    n.crossVectors(b, c);
    const twice = n.length();
    if (!(twice > 0)) continue;
    // Gradients of the corners' hat functions are n x (opposite edge) / |n|^2; here times the area.
    const g = [
      new THREE.Vector3().crossVectors(n, e.subVectors(c, b)).divideScalar(2 * twice),
      new THREE.Vector3().crossVectors(n, e.copy(c).negate()).divideScalar(2 * twice),
      new THREE.Vector3().crossVectors(n, b).divideScalar(2 * twice),
    ];
    for (let k = 0; k < 3; ++k) {
      const s = points.index[t + k];
      area[s] += twice / 2;
      for (let d = 0; d < 2; ++d) {
        a.fromArray(tangents, 6 * s + 3 * d);
        for (let m = 0; m < 3; ++m) slope[m] = g[m].dot(a);
        const [i0, i1, i2] = corners.map((i) => (i / 3) * p);
        for (let j = 0; j < p; ++j)
          data[texel(s, 4 + d + 3 * (j >> 2)) + (j & 3)] +=
            slope[0] * basis[i0 + j] + slope[1] * basis[i1 + j] + slope[2] * basis[i2 + j];
      }
    }
  }
  for (let s = 0; s < points.count; ++s)
    if (area[s] > 0) for (let k = 0; k < packs; ++k) for (let m = 4; m < 12; ++m) data[texel(s, 3 + 3 * k) + m] /= area[s];
  const texture = (values: Float32Array, width: number, height: number) => {
    const out = new THREE.DataTexture(values, width, height, THREE.RGBAFormat, THREE.FloatType);
    out.needsUpdate = true;
    return out;
  };
  return {
    uSkin: { value: texture(data, textureWidth, rows) },
    uPose: { value: texture(new Float32Array(4 * 2 * 4 * packs), 4 * packs, 2) },
    uSkinPacks: { value: packs },
    uSkinOn: { value: 0 },
    uSkinValue: { value: 0 },
  };
}

export function setPose(uniforms: SkinUniforms, u: Float32Array, v: Float32Array | null) {
  const texture = uniforms.uPose.value;
  const data = texture.image.data as Float32Array;
  const width = texture.image.width;
  [u, v].forEach((values, row) => {
    for (let j = 0; values && 3 * j < values.length; ++j)
      for (let d = 0; d < 3; ++d) data[4 * (row * width + j) + d] = values[3 * j + d];
  });
  texture.needsUpdate = true;
}

export const skinHead = /* glsl */ `
attribute float aPoint;
uniform highp sampler2D uSkin, uPose;
uniform int uSkinPacks, uSkinOn, uSkinValue;
vec4 skinTexel(int k) { return texelFetch(uSkin, ivec2(k & ${textureWidth - 1}, k >> ${Math.log2(textureWidth)}), 0); }
// Position and normal of the vertex, and its displacement or speed.
void skinned(out vec3 place, out vec3 normal_, out float value) {
  place = position;
  normal_ = normal;
  value = 0.0;
  if (uSkinOn == 0) return;
  int at = int(aPoint + 0.5) * (3 + 3 * uSkinPacks);
  vec3 moved = vec3(0.0), along = skinTexel(at + 1).xyz, across = skinTexel(at + 2).xyz, velocity = vec3(0.0);
  for (int k = 0; k < uSkinPacks; ++k) {
    vec4 w = skinTexel(at + 3 + 3 * k), wa = skinTexel(at + 4 + 3 * k), wb = skinTexel(at + 5 + 3 * k);
    for (int c = 0; c < 4; ++c) {
      vec3 u = texelFetch(uPose, ivec2(4 * k + c, 0), 0).xyz;
      moved += w[c] * u;
      along += wa[c] * u;
      across += wb[c] * u;
      if (uSkinValue == 2) velocity += w[c] * texelFetch(uPose, ivec2(4 * k + c, 1), 0).xyz;
    }
  }
  place = skinTexel(at).xyz + moved;
  normal_ = normalize(cross(along, across));
  value = uSkinValue == 2 ? length(velocity) : length(moved);
}
`;

// For shadows: the depth of the moved surface.
export function skinDepthMaterial(uniforms: SkinUniforms) {
  const material = new THREE.MeshDepthMaterial();
  material.onBeforeCompile = (shader) => {
    Object.assign(shader.uniforms, uniforms);
    shader.vertexShader =
      skinHead +
      shader.vertexShader.replace(
        "#include <begin_vertex>",
        "vec3 transformed, skinNormal;\nfloat skinValue;\nskinned(transformed, skinNormal, skinValue);",
      );
  };
  return material;
}
