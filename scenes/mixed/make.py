#!/usr/bin/env python3
"""Writes the shapes and scenes of this folder: bodies of the sizes, moduli, modes and points of the paper's figures,
made of round cones. Run it here after changes: python3 make.py"""

import json
import math
import re
import sys

sys.path.insert(0, "..")
from shape_file import write_shape  # noqa: E402


# What the first steps of each scene do (limber check --run), as they were measured.
TESTS = {
    "quadruped": {"steps": 20, "max_displacement": [0.1961, 0.003923], "kinetic_energy": [178.6, 8.929], "elastic_energy": [468.9, 23.45], "inverted": 0},
    "crab": {"steps": 20, "max_displacement": [0.2902, 0.005803], "kinetic_energy": [43.18, 2.159], "elastic_energy": [0.6849, 0.03425], "inverted": 0},
    "swordsman": {"steps": 20, "max_displacement": [0.07019, 0.001404], "kinetic_energy": [5.611, 0.2806], "elastic_energy": [11.78, 0.5891], "inverted": 0},
    "octobot": {"steps": 40, "max_displacement": [0.2616, 0.005233], "kinetic_energy": [0.1454, 0.007268], "elastic_energy": [0.1718, 0.008591], "inverted": 0},
    "snail": {"steps": 30, "max_displacement": [0.5556, 0.01111], "kinetic_energy": [85.62, 4.281], "elastic_energy": [27.96, 1.398], "inverted": 0},
    "candy": {"steps": 30, "max_displacement": [0.07722, 0.001544], "kinetic_energy": [0.571, 0.02855], "elastic_energy": [112.9, 5.643], "inverted": 0},
    "pendulum": {"steps": 30, "max_displacement": [0.2572, 0.005145], "kinetic_energy": [4.123, 0.2061], "elastic_energy": [2.237, 0.1118], "inverted": 0},
    "cantilever": {"steps": 30, "max_displacement": [0.5558, 0.01112], "kinetic_energy": [13.91, 0.6953], "elastic_energy": [6.405, 0.3202], "inverted": 0},
}


def write_scene(name, description, shape, modes, points, young, regions, constraints=(), forces=(), obstacles=(), **more):
    method = {"type": "mixed", "modes": modes, "points": points, "iterations": more.pop("iterations", 2)}
    method.update(more.pop("method", {}))
    scene = {
        "$schema": "../../limber.schema.json",
        "limber": 1,
        "name": name,
        "description": description,
        "time": more.pop("time", {"step": 0.01, "end": 2}),
        "gravity": more.pop("gravity", [0, -9.81, 0]),
        "method": method,
        "bodies": [{
            "name": name,
            "mesh": shape,
            "material": {"model": "fixed-corotated", "young": young, "poisson": 0.45, "density": 1000},
            "regions": [{"elements": {"set": region}, "young": value} for region, value in regions],
            **more.pop("body", {}),
        }],
        "constraints": list(constraints),
        "forces": list(forces),
        "obstacles": list(obstacles),
        "output": {"every": 2, "fields": ["displacement"]},
        **more,
    }
    scene = {key: value for key, value in scene.items() if value != []}
    if not scene["bodies"][0]["regions"]:
        del scene["bodies"][0]["regions"]
    tests = {"tests": TESTS[name]} if name in TESTS else {}
    text = json.dumps(scene, indent=2)
    # Lists and objects of numbers in one line.
    for _ in range(3):
        text = re.sub(r"([\[{])\n\s+([^\[\]{}]*(?:[\[{][^\[\]{}\n]*[\]}][^\[\]{}]*)*)\n\s+([\]}])",
                      lambda m: m[1] + re.sub(r"\n\s+", " ", m[2]) + m[3] if len(m[2]) < 110 else m[0], text)
    with open(f"{name}.json", "w") as out:
        out.write(text[:-2] + "".join(f',\n  "{k}": {json.dumps(v)}' for k, v in tests.items()) + "\n}\n")


def quadruped():
    cones, regions = [], []

    def limb(a, b, ra, rb, bone):
        cones.append((a, b, ra, rb))
        regions.append(("bone", a, b, bone, bone))

    def joint(p, r):
        regions.append(("joint", p, p, r, r))

    limb((-.45, .75, 0), (.4, .8, 0), .2, .22, .05)
    limb((.4, .8, 0), (.62, .95, 0), .16, .12, .04)
    limb((.62, .95, 0), (.82, .92, 0), .13, .1, .045)
    at = (.9, .88, 0)
    for k in range(6):
        after = (at[0] + .03 + .01 * k, at[1] - .1, 0)
        cones.append((at, after, .055 - .005 * k, .05 - .005 * k))
        at = after
    joint((.4, .8, 0), .14)
    for x in (-.38, .32):
        for z in (-.16, .16):
            limb((x, .68, z), (x + .03, .38, z * 1.15), .1, .07, .03)
            limb((x + .03, .38, z * 1.15), (x, .05, z * 1.15), .07, .055, .025)
            joint((x, .68, z), .08)
            joint((x + .03, .38, z * 1.15), .075)
    write_shape("quadruped", 531565, .05, cones, regions)
    # The back bone is shaken up and down and sideways; limbs and trunk follow.
    keys = [{"t": 0}]
    for k in range(1, 17):
        keys.append({"t": .25 * k, "translation": [0, round(.18 * math.sin(.5 * math.pi * k), 4),
                                                   round(.12 * math.sin(.8 * k), 4)]})
    write_scene("quadruped", "A four-legged animal of about 98,000 nodes and 531,000 tets with bones (1e10 Pa), joints (1e5) and "
                "muscle (5e5), shaken by its back bone.", "quadruped.shape", 16, 581, 5e5, [("joint", 1e5), ("bone", 1e10)],
                constraints=[{"name": "back", "nodes": {"box": {"min": [-.3, .73, -.05], "max": [.2, .83, .05]}}, "motion": keys}],
                iterations=1, time={"step": 1 / 120, "end": 4})


def crab():
    cones, regions = [((-.12, 0, 0), (.12, 0, 0), .12, .12)], []
    for k in range(4):
        for side in (-1, 1):
            x = -.15 + .1 * k
            hip, knee, foot = (x, 0, .1 * side), (1.3 * x, .1, .28 * side), (1.6 * x, -.15, .42 * side)
            along = lambda t: tuple(h + t * (q - h) for h, q in zip(hip, knee))
            cones += [(hip, knee, .03, .026), (knee, foot, .026, .016)]
            regions += [("joint", along(.25), along(.4), .045, .045), ("joint", knee, knee, .04, .04)]
    write_shape("crab", 223565, .02, cones, regions)
    write_scene("crab", "A crab with a hard shell (1e10 Pa) and soft joints (1e6 Pa) hangs by the tip of a hind leg and falls.",
                "crab.shape", 16, 342, 1e10, [("joint", 1e6)],
                constraints=[{"name": "tip", "nodes": {"nearest": [[-.24, -.165, .42]]}}])


def swordsman():
    cones = [((0, .4, 0), (0, .75, 0), .14, .12), ((0, .8, .02), (0, .9, .12), .1, .06), ((-.08, .35, 0), (-.1, .05, 0), .07, .05),
             ((.08, .35, 0), (.1, .05, 0), .07, .05), ((0, .35, -.1), (0, .15, -.5), .09, .03), ((-.12, .7, 0), (-.3, .55, .1), .05, .04),
             ((.12, .7, 0), (.3, .6, .15), .05, .045), ((.3, .6, .15), (.36, 1.1, .25), .022, .015)]
    write_shape("swordsman", 227035, .04, cones, [("sword", (.31, .66, .16), (.36, 1.1, .25), .04, .04)])
    write_scene("swordsman", "A soft animal (5e5 Pa) with a stiff sword (1e12 Pa) is pulled back by its tail and let go.",
                "swordsman.shape", 10, 192, 5e5, [("sword", 1e12)],
                constraints=[{"name": "feet", "nodes": {"box": {"min": [-.3, -.1, -.2], "max": [.3, .04, .2]}}},
                             {"name": "tail", "nodes": {"sphere": {"center": [0, .15, -.5], "radius": .05}}, "until": 1,
                              "interpolation": "linear", "motion": [{"t": 0}, {"t": 1, "translation": [0, 0, -.35]}]}],
                time={"step": 0.01, "end": 3}, gravity=[0, 0, 0], iterations=3)


def octobot():
    cones, regions = [((0, .1, 0), (0, .25, 0), .16, .18)], [("stiff", (0, .1, 0), (0, .25, 0), .1, .12)]
    for k in range(8):
        c, s = math.cos(math.pi / 4 * k), math.sin(math.pi / 4 * k)
        cones += [((.12 * c, .05, .12 * s), (.35 * c, -.1, .35 * s), .05, .04), ((.35 * c, -.1, .35 * s), (.6 * c, -.05, .6 * s), .04, .02)]
        regions.append(("stiff", (.35 * c, -.1, .35 * s), (.42 * c, -.09, .42 * s), .06, .06))
    write_shape("octobot", 132124, .03, cones, regions)
    write_scene("octobot", "A soft head with eight arms (1e5 Pa, stiff rings 1e7 Pa) drops on the floor.", "octobot.shape", 5, 227, 1e5,
                [("stiff", 1e7)], obstacles=[{"name": "floor", "shape": "plane", "point": [0, -.4, 0], "normal": [0, 1, 0]}],
                damping={"mass": .5}, iterations=10,
                method={"contact_damping": .005, "contact_samples": 2000})


def snail():
    cones = [((-.35, 0, 0), (.3, 0, 0), .06, .08), ((.3, .02, 0), (.42, .14, 0), .07, .06), ((.42, .16, .03), (.46, .3, .06), .018, .012),
             ((.42, .16, -.03), (.46, .3, -.06), .018, .012), ((-.02, .18, -.03), (-.02, .18, .03), .16, .16)]
    write_shape("snail", 100000, .03, cones, [("shell", (-.02, .18, -.03), (-.02, .18, .03), .17, .17)])
    write_scene("snail", "A soft snail (1e5 Pa) under a stiff shell (1e9 Pa), held at its foot, nods.", "snail.shape", 12, 240, 1e5,
                [("shell", 1e9)], constraints=[{"name": "foot", "nodes": {"box": {"min": [-.5, -.1, -.1], "max": [-.25, -.02, .1]}}}])


def candy():
    cones = [((-.12, 0, 0), (.12, 0, 0), .13, .13), ((-.2, 0, 0), (-.42, 0, 0), .05, .12), ((.2, 0, 0), (.42, 0, 0), .05, .12)]
    write_shape("candy", 60000, .04, cones, [("middle", (-.13, 0, 0), (.13, 0, 0), .14, .14)])
    turn = [{"t": 0}, {"t": 1.5, "rotation": [6.283, 0, 0]}, {"t": 2, "rotation": [6.283, 0, 0]}]
    write_scene("candy", "A candy with a hard middle (1e10 Pa) and soft ends (1e6 Pa); both ends are twisted by springs.", "candy.shape", 16,
                192, 1e6, [("middle", 1e10)],
                constraints=[{"name": "left", "nodes": {"box": {"min": [-.6, -.2, -.2], "max": [-.44, .2, .2]}}, "motion": turn},
                             {"name": "right", "nodes": {"box": {"min": [.44, -.2, -.2], "max": [.6, .2, .2]}},
                              "motion": [{**k, "rotation": [-6.283, 0, 0]} if "rotation" in k else k for k in turn]}],
                gravity=[0, 0, 0], time={"step": 0.01, "end": 2.5})


def pendulum():
    cones, y = [], 0.
    for k in range(4):
        cones += [((0, y, 0), (0, y - .12, 0), .02, .02), ((-.06, y - .2, 0), (.06, y - .2, 0), .07, .07)]
        y -= .28
    write_shape("pendulum", 60000, .01, cones, [])
    write_scene("pendulum", "Blocks on thin necks, one material (5e5 Pa): the lowest block is twisted, then let go; one iteration a step.",
                "pendulum.shape", 16, 400, 5e5, [],
                constraints=[{"name": "top", "nodes": {"box": {"min": [-.1, -.01, -.1], "max": [.1, .1, .1]}}},
                             {"name": "twist", "nodes": {"box": {"min": [-.2, -1.2, -.1], "max": [.2, -1.0, .1]}}, "until": 1,
                              "motion": [{"t": 0}, {"t": .8, "rotation": [0, 9, 0]}]}],
                iterations=1, time={"step": 0.01, "end": 4})


def cantilever():
    write_scene("cantilever", "A cantilever of 48,000 tets in stiff (1e7 Pa) and soft (1e5 Pa) stretches, with 5 modes.",
                {"shape": "bar", "size": [1, .1, .1], "nodes": [81, 11, 11]}, 5, 100, 1e7, [],
                constraints=[{"name": "root", "nodes": {"set": "x0"}}], damping={"mass": 1},
                body={"regions": [{"elements": {"formula": "sin(30 * x) > 0.6"}, "young": 1e5}]})


for make in (quadruped, crab, swordsman, octobot, snail, candy, pendulum, cantilever):
    make()
