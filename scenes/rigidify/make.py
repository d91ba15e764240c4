#!/usr/bin/env python3
"""Writes the shapes and scenes of this folder: bodies of the sizes, moduli, time steps and thresholds of the paper's Table 1
and figures, made of round cones and generated shapes. Run it here after changes: python3 make.py"""

import json
import math
import re
import sys

sys.path.insert(0, "..")
from shape_file import write_shape  # noqa: E402

# What the first steps of each scene do (limber check --run), as they were measured.
TESTS = {
    "cantilever": {"steps": 60, "max_displacement": [1.065, 0.02131], "kinetic_energy": [2.61, 0.1305], "elastic_energy": [128.5, 6.425], "inverted": 0},
    "cantilever-2d": {"steps": 60, "max_displacement": [1.392, 0.02783], "kinetic_energy": [61.02, 3.051], "elastic_energy": [461.0, 23.05], "inverted": 0},
    "octopus": {"steps": 40, "max_displacement": [0.7545, 0.01509], "kinetic_energy": [184.7, 9.235], "elastic_energy": [49.4, 2.47], "inverted": 0},
    "blob": {"steps": 40, "max_displacement": [0.8035, 0.01607], "kinetic_energy": [460.9, 23.05], "elastic_energy": [165.7, 8.283], "inverted": 0},
    "wheel": {"steps": 40, "max_displacement": [0.1206, 0.002411], "kinetic_energy": [11.83, 0.5915], "elastic_energy": [0.0004409, 2.204e-05], "inverted": 0},
    "pachinko": {"steps": 20, "max_displacement": [0.2058, 0.004116], "kinetic_energy": [86.19, 4.31], "elastic_energy": [4.757e-12, 1e-09], "inverted": 0},
    "forest": {"steps": 30, "max_displacement": [0.01604, 0.0003208], "kinetic_energy": [0.0, 1e-09], "elastic_energy": [66.16, 3.308], "inverted": 0},
    "mattress": {"steps": 60, "max_displacement": [0.1464, 0.002928], "kinetic_energy": [9.736, 0.4868], "elastic_energy": [0.2513, 0.01257], "inverted": 0},
    "hinge": {"steps": 60, "max_displacement": [0.2479, 0.004958], "kinetic_energy": [0.1433, 0.007167], "elastic_energy": [0.5975, 0.02987], "inverted": 0},
}


def write_scene(name, description, step, end, tau_rigid, bodies, damping, **more):
    method = {"type": "rigidify", "tolerance": float(f"{100 * math.sqrt(tau_rigid):.4g}")}
    method.update(more.pop("method", {}))
    scene = {
        "$schema": "../../limber.schema.json",
        "limber": 1,
        "name": name,
        "description": description,
        "time": {"step": step, "end": end},
        "gravity": more.pop("gravity", [0, 0, -9.8]),
        "method": method,
        "bodies": bodies,
        "damping": damping,
        **more,
    }
    scene.setdefault("output", {"every": 5, "fields": ["displacement"]})
    scene["tests"] = TESTS.get(name, {"steps": 20, "inverted": 0})
    text = json.dumps(scene, indent=2)
    # Short lists and objects on one line, "tests" too.
    text = re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda m: "[" + re.sub(r"\s+", " ", m.group(1)) + "]", text)
    text = re.sub(r"\{\s+([^{}]*?)\s+\}", lambda m: "{" + re.sub(r"\s+", " ", m.group(1)) + "}"
                  if len(m.group(1)) < 150 or '"steps"' in m.group(1) else m.group(0), text)
    with open(f"{name}.json", "w") as out:
        out.write(text + "\n")


def material(young, poisson, density, model="stable-neo-hookean"):
    return {"model": model, "young": young, "poisson": poisson, "density": density}


FLOOR = {"name": "floor", "shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}


def cantilever():
    write_scene(
        "cantilever", "A beam falls under gravity, comes to rest, and is pulled at its end (Figure 5, in 3D): parts that stop deforming become rigid.",
        0.01, 7, 1e-6,
        [{"name": "beam", "mesh": {"shape": "bar", "size": [1, 1, 4], "nodes": [7, 7, 25]}, "material": material(5e4, 0.35, 10)}],
        {"mass": 1e-4, "stiffness": 0.05}, gravity=[0, -9.8, 0],
        method={"quiet_steps": 5},
        constraints=[{"name": "root", "nodes": {"set": "z0"}}],
        forces=[{"name": "pull", "nodes": {"set": "z1"}, "force": [0, 50, 0], "from": 4.5, "ramp": 0.25}])
    write_scene(
        "cantilever-2d", "Figure 5: a plane beam of 2,700 triangles falls, comes to rest and is pulled at its end.",
        0.01, 15, 1e-6,
        [{"name": "beam", "mesh": {"shape": "rectangle", "size": [4, 1], "nodes": [76, 19]}, "thickness": 1,
          "material": material(1e5, 0.4, 30, "st-venant-kirchhoff")}],
        {"mass": 1e-4, "stiffness": 0.05}, gravity=[0, -9.8, 0],
        method={"quiet_steps": 5},
        constraints=[{"name": "root", "nodes": {"set": "x0"}}],
        forces=[{"name": "pull", "nodes": {"set": "x1"}, "force": [0, 50, 0], "from": 7, "ramp": 0.25}])


def octopus():
    cones = [([0, 0, 1.0], [0, 0, 2.0], 0.75, 0.85)]
    for k in range(8):
        a = 2 * math.pi * k / 8
        u = [math.cos(a), math.sin(a)]
        points = [([0.5 * u[0], 0.5 * u[1], 0.7], 0.33), ([1.5 * u[0], 1.5 * u[1], 0.25], 0.26), ([2.6 * u[0], 2.6 * u[1], 0.2], 0.17)]
        for (p, rp), (q, rq) in zip(points, points[1:]):
            cones.append((p, q, rp, rq))
    write_shape("octopus", 6170, 0.15, cones)
    write_scene(
        "octopus", "An octopus of 6,122 tetrahedra falls on the floor and comes to rest; at 11 s an arm is pulled up.",
        0.01, 40, 1e-5,
        [{"name": "octopus", "mesh": "octopus.shape", "translation": [0, 0, 0.5], "material": material(5e3, 0.3, 10)}],
        {"mass": 1e-4, "stiffness": 0.1}, obstacles=[FLOOR], contact={"friction": 0.5},
        forces=[{"name": "hand", "nodes": {"sphere": {"center": [2.6, 0, 0.7], "radius": 0.6}}, "acceleration": [30, -20, 50], "from": 11, "until": 11.4}])


def blob():
    # Flat below, with three lobes: it comes to rest where it lands.
    lobes = [([0, 0, 0], [0.75 * math.cos(a), 0.75 * math.sin(a), -0.1], 0.45, 0.35) for a in (0.3, 2.4, 4.4)]
    write_shape("blob", 3193, 0.25, lobes + [([0, 0, 0], [0.05, 0.05, 0.35], 0.5, 0.35)])
    write_scene(
        "blob", "Two soft blobs, 6,272 tetrahedra together, fall on the floor and on each other.",
        0.01, 35, 1e-5,
        [{"name": "lower", "mesh": "blob.shape", "translation": [0, 0, 0.9], "material": material(5e3, 0.22, 40)},
         {"name": "upper", "mesh": "blob.shape", "rotation": [0.2, 0.1, 1.5], "translation": [0.4, 0.2, 2.4], "material": material(5e3, 0.22, 40)}],
        {"mass": 1e-3, "stiffness": 0.01}, method={"body_contact": True}, obstacles=[FLOOR], contact={"friction": 0.3})


def wheel():
    write_scene(
        "wheel", "A wheel with a soft tread (3 kPa) and a stiff hub (1 MPa) rolls over the floor (Figure 1).",
        0.001, 7, 5e-4,
        [{"name": "wheel", "mesh": {"shape": "cylinder", "radius": 1, "length": 0.6, "edge": 0.088}, "rotation": [1.5707963, 0, 0],
          "translation": [0, 0, 1.1], "velocity": [1, 0, 0], "angular_velocity": [0, 2, 0], "material": material(3e3, 0.3, 3),
          "regions": [{"name": "hub", "elements": {"formula": "x*x + (z-1.1)*(z-1.1) < 0.25"}, "young": 1e6, "poisson": 0.4, "density": 10}]}],
        {"mass": 1e-5, "stiffness": 0.05}, obstacles=[FLOOR], contact={"friction": 0.72},
        output={"every": 25, "fields": ["displacement"]})


def pachinko():
    bodies = []
    for k in range(8):
        bodies.append({"name": f"pill{k}", "mesh": {"shape": "capsule", "radius": 0.45, "length": 0.9, "edge": 0.094},
                       "rotation": [0, 1.2 + 0.1 * k, 0.3 * k], "translation": [-1.2 + 2.4 * (k % 2), 0.1 * (k % 3), 7.2 + 1.3 * (k // 2)],
                       "material": material(5e3, 0.35, 5),
                       "regions": [{"name": "stiff", "elements": {"formula": f"x > {-1.2 + 2.4 * (k % 2)}"}, "young": 5e4, "density": 7}]})
    obstacles = [FLOOR]
    for row, z in enumerate([1.6, 3.6, 5.6]):
        for x in ([-2.2, 0, 2.2] if row % 2 == 0 else [-1.1, 1.1]):
            obstacles.append({"name": f"peg {row} {x}", "shape": "capsule", "point": [x, -2, z], "end": [x, 2, z], "radius": 0.3})
    for x in (-3.6, 3.6):
        obstacles.append({"name": f"wall {x}", "shape": "plane", "point": [x, 0, 0], "normal": [-x / 3.6, 0, 0]})
    for y in (-1.3, 1.5):
        obstacles.append({"name": f"pane {y}", "shape": "plane", "point": [0, y, 0], "normal": [0, -1 if y > 0 else 1, 0]})
    write_scene(
        "pachinko", "Eight pills, half of each ten times as stiff as the other, 48,000 tetrahedra together, fall through pegs.",
        0.01, 26, 7e-3, bodies, {"mass": 1e-5, "stiffness": 0.1}, method={"body_contact": True, "quiet_steps": 7},
        obstacles=obstacles, contact={"friction": 0.05})


def forest():
    pine = [([0, 0, 0], [0, 0, 4.2], 0.34, 0.14)]
    for k, z in enumerate([1.6, 2.5, 3.4]):
        pine.append(([0, 0, z], [0, 0, z + 0.9], 0.85 - 0.2 * k, 0.12))
    write_shape("pine", 4039, 0.1, pine)
    tree = [([0, 0, 0], [0, 0, 2.6], 0.36, 0.24), ([0, 0, 3.1], [0.1, 0, 3.5], 0.8, 0.7)]
    for a in (0.3, 2.4, 4.4):
        tree.append(([0, 0, 2.1], [0.8 * math.cos(a), 0.8 * math.sin(a), 3.0], 0.14, 0.35))
    write_shape("tree", 5254, 0.1, tree)
    bodies = []
    for k in range(12):
        x, y = 2.4 * (k % 4) - 3.6, 2.4 * (k // 4) - 2.4
        name = "pine" if (k + k // 4) % 2 == 0 else "tree"
        bodies.append({"name": f"{name}{k}", "mesh": f"{name}.shape", "translation": [x, y, 0],
                       "material": material(2e5 if name == "pine" else 7e5, 0.37, 50 if name == "pine" else 100),
                       "regions": [{"name": "leaves", "elements": {"formula": "z > 2.3"}, "young": 7e5, "density": 1}]})
    keys = [{"t": 0.3}, {"t": 4.5, "translation": [11, 0.3, 0]}]
    write_scene(
        "forest", "Twelve trees, 56,100 tetrahedra together; a ball pushes its way along a row of them.",
        0.005, 5, 5e-3, bodies, {"mass": 1e-5, "stiffness": 0.02}, constraints=[{"name": f"root of {b['name']}", "body": b["name"], "nodes": {"formula": "z < 0.3"}} for b in bodies],
        obstacles=[{"name": "ball", "shape": "sphere", "point": [-5.4, -1.75, 1.3], "radius": 0.5, "motion": keys, "interpolation": "smooth"}],
        contact={"friction": 0.3})


def mattress():
    balls = [{"name": f"ball{k}", "mesh": {"shape": "sphere", "radius": 0.35, "edge": 0.12}, "translation": [x, 1, z],
              "material": material(1e5, 0.4, 40)} for k, (x, z) in enumerate([(1.0, 1.05), (3.0, 2.2)])]
    write_scene(
        "mattress", "Two balls fall on a mattress from two heights: the higher one wakes the larger patch (Figure 8).",
        0.004, 4, 1e-4,
        [{"name": "mattress", "mesh": {"shape": "bar", "size": [4, 2, 0.5], "nodes": [33, 17, 5]}, "material": material(1e3, 0.4, 10)}] + balls,
        {"mass": 1e-4, "stiffness": 0.05}, gravity=[0, 0, -5], method={"body_contact": True}, obstacles=[FLOOR], contact={"friction": 0.8})


def hinge():
    write_scene(
        "hinge", "Figure 2: two stiff plates that meet at a soft neck. Each is a rigid piece of its own, and they share no node.",
        0.01, 4, 1e-3,
        [{"name": "plates", "mesh": {"shape": "rectangle", "size": [2, 0.6], "nodes": [41, 13]},
          "material": material(1e6, 0.3, 100),
          "regions": [{"name": "neck", "elements": {"formula": "(x-1)*(x-1) < 0.011"}, "young": 2e4}]}],
        {"mass": 0.01, "stiffness": 0.002}, gravity=[0, -9.8, 0],
        constraints=[{"name": "wall", "nodes": {"set": "x0"}}])


for make in (cantilever, octopus, blob, wheel, pachinko, forest, mattress, hinge):
    make()
