// A floor that takes shadows, carries a grid of known spacing, and fades out with distance.
import * as THREE from "three";

const colors = { floor: { value: new THREE.Color() }, line: { value: new THREE.Color() } };

export function setFloorLook(dark: boolean) {
  colors.floor.value.set(dark ? 0x3a424c : 0xe3e7ec);
  colors.line.value.set(dark ? 0x66727f : 0x9aa5b1);
}

// In the plane y = 0 of its own frame, facing +y.
export function floorMesh(radius: number, grid: number): THREE.Mesh {
  const material = new THREE.MeshStandardMaterial({ roughness: 1, metalness: 0, transparent: true, depthWrite: false });
  material.onBeforeCompile = (shader) => {
    Object.assign(shader.uniforms, { uFloor: colors.floor, uLine: colors.line, uGrid: { value: grid }, uRadius: { value: radius } });
    shader.vertexShader =
      "varying vec2 vFloor;\n" +
      shader.vertexShader.replace("#include <begin_vertex>", "#include <begin_vertex>\nvFloor = position.xz;");
    shader.fragmentShader =
      "varying vec2 vFloor;\nuniform vec3 uFloor, uLine;\nuniform float uGrid, uRadius;\n" +
      shader.fragmentShader.replace(
        "#include <color_fragment>",
        /* glsl */ `
        vec2 cell = vFloor / uGrid;
        vec2 w = fwidth(cell);
        vec2 d = abs(fract(cell - 0.5) - 0.5) / max(w, vec2(1e-6));
        float line = (1.0 - smoothstep(0.4, 1.3, min(d.x, d.y))) * (1.0 - smoothstep(0.15, 0.5, max(w.x, w.y)));
        float far = length(vFloor) / uRadius;
        diffuseColor.rgb = mix(uFloor, uLine, 0.5 * line);
        diffuseColor.a = 1.0 - smoothstep(0.25, 0.95, far);`,
      );
  };
  const geometry = new THREE.CircleGeometry(radius, 96).rotateX(-Math.PI / 2);
  const mesh = new THREE.Mesh(geometry, material);
  mesh.receiveShadow = true;
  mesh.renderOrder = -1;
  return mesh;
}
