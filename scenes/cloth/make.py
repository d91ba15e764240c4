#!/usr/bin/env python3
"""Writes the scenes of this folder: those of the dissertation's Table 2.1 (chapter 2), with the parameters that its authors released.

A cloth of 1 m x 1 m at z = 0, 0.05 kg/m^2, 50 N/m, Poisson's ratio 0.01, bending 1e-5 N m, steps of 5 ms. Where the text says nothing and nothing was
released (WIRE, JAWS, PUSH, THROW, FRICTION), the scenes are ours and show what the chapter's pictures show.
"""
import math
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from scene_file import write_scene  # noqa: E402



def cloth(nodes, pattern="regular", translation=(0, 0, 0), size=(1, 1)):
    return {
        "name": "cloth", "elements": "cloth",
        "mesh": {"shape": "rectangle", "size": list(size), "nodes": list(nodes), "pattern": pattern},
        "translation": list(translation),
        "thickness": 0.001, "area_density": 0.05, "bending": 1e-5,
        "material": {"model": "corotational", "young": 5e4, "poisson": 0.01},
    }


def pull(start, end, step, direction):
    """Keys of the released script: every step v = 0.99 v + 0.1 m/s after `start`."""
    keys, v, s, t = [{"t": start}], 0.0, 0.0, start
    count = 0
    while t < end + step:
        v = 0.99 * v + 0.1
        s += step * v
        t += step
        count += 1
        if count % 4 == 0 or count < 4:
            keys.append({"t": round(t, 6), "translation": [round(s * d, 9) for d in direction]})
    return keys


def scene(name, text, end, body, method, obstacles, constraints=(), step=0.005, more=None):
    out = {
        "$schema": "../../limber.schema.json", "limber": 1, "name": name, "description": text,
        "time": {"step": step, "end": end}, "gravity": [0, 0, -9.8],
        "method": {"type": "cloth", **method},
        "bodies": body if isinstance(body, list) else [body],
        "constraints": list(constraints),
        "obstacles": list(obstacles),
        "output": {"every": 2},
        "tests": {"steps": 40, "inverted": 0, "fallbacks": 60},
    }
    out.update(more or {})
    write_scene(HERE / f"{name}.json", out)


def corners(start, end, direction, points, step=0.005):
    return {"name": "pull", "nodes": {"nearest": [list(p) for p in points]}, "motion": pull(start, end, step, direction),
            "interpolation": "linear"}


BOX = {"name": "box", "shape": "box", "size": [1.2, 1.5, 1.0], "point": [0.9175, 0.4425, -0.549], "friction": 0}
FINE = {"size_min": 0.025, "size_max": 0.06}
LOW = {"size_min": 0.16, "size_max": 0.35}
PULL = [(1, 1, 0), (1, 0, 0)]

# EDGE: the cloth falls onto the edge of a box (x = 0.3175) and is pulled over it by two corners.
edge_end = 0.6
for name, nodes, pattern, method in [
    ("edge-regular", (34, 33), "regular", {"mesh": "static"}),
    ("edge-irregular", (33, 33), "irregular", {"mesh": "static"}),
    ("edge-adaptive", (9, 9), "crossed", {"mesh": "adaptive", **FINE}),
    ("edge-conformal", (9, 9), "crossed", {"mesh": "conformal", **FINE}),
    ("edge-cone", (9, 9), "crossed", {"mesh": "conformal", "normals": "cone", **FINE}),
    ("edge-eol", (9, 9), "crossed", {"eol": True, **FINE}),
]:
    scene(name, f"EDGE of Table 2.1: pulled over the edge of a box ({name[5:]}).", edge_end, cloth(nodes, pattern), method,
          [BOX], [corners(0.35, edge_end, (1, 0, 0), PULL)])

# LO-RES: the same with few triangles.
scene("lores-regular", "LO-RES of Table 2.1: EDGE with 256 triangles that stay as they are.", edge_end, cloth((12, 12), "regular"), {"mesh": "static"}, [BOX],
      [corners(0.35, edge_end, (1, 0, 0), PULL)])
scene("lores-eol", "LO-RES of Table 2.1: EDGE with about 130 triangles and sliding vertices.", edge_end, cloth((3, 3), "crossed"), {"eol": True, **LOW}, [BOX],
      [corners(0.35, edge_end, (1, 0, 0), PULL)])

# WIRE: hangs over a wire, pulled down on one side.
WIRE = {"name": "wire", "shape": "wire", "points": [[0.45, -0.5, -0.02], [0.45, 1.5, -0.02]], "friction": 0}
for name, nodes, pattern, method in [
    ("wire-regular", (32, 32), "regular", {"mesh": "static"}),
    ("wire-irregular", (33, 33), "irregular", {"mesh": "static"}),
    ("wire-adaptive", (9, 9), "crossed", {"mesh": "adaptive", **FINE}),
    ("wire-conformal", (9, 9), "crossed", {"mesh": "conformal", **FINE}),
    ("wire-eol", (9, 9), "crossed", {"eol": True, **FINE}),
]:
    scene(name, f"WIRE of Table 2.1: over a wire, pulled down on one side ({name[5:]}).", 1.2, cloth(nodes, pattern), method, [WIRE],
          [corners(0.5, 1.2, (0.3, 0, -0.6), PULL), {"name": "other", "nodes": {"nearest": [[0, 0, 0], [0, 1, 0]]}, "until": 0.5}])

# NAILS: the released scene.
NAILS = {"name": "nails", "shape": "points", "points": [[0.751, 0.751, -0.005], [0.71, 0.22, -0.005], [0.27, 0.51, -0.005]],
         "normal": [0, 0, 1], "friction": 0}
scene("nails", "NAILS of Table 2.1: pulled over the tips of three nails.", 0.9, cloth((9, 9), "crossed"), {"eol": True, **FINE}, [NAILS],
      [corners(0.25, 0.9, (1, 0, 0), PULL), {"name": "other", "nodes": {"nearest": [[0, 0, 0], [0, 1, 0]]}, "until": 0.25}])


def box(name, size, point, **more):
    return {"name": name, "shape": "box", "size": list(size), "point": list(point), **more}


MEDIUM = {"size_min": 0.03, "size_max": 0.08}

# JAWS: pulled through two rows of teeth.
teeth = []
for k, (x, up) in enumerate([(1.25, -1), (1.55, 1), (1.85, -1)]):
    teeth.append({**box(f"tooth {k}", (0.18, 1.8, 0.18), (x, 0.5, up * 0.14), rotation=[0, math.pi / 4, 0], friction=0)})
scene("jaws", "JAWS of Table 2.1: pulled between three sharp ridges, above and below in turn.", 1.0, cloth((9, 9), "crossed"),
      {"eol": True, **MEDIUM}, teeth,
      [{"name": "pull", "nodes": {"set": "x1"}, "motion": [{"t": 0}, {"t": 1.0, "translation": [1.5, 0, 0]}], "interpolation": "linear"},
       {"name": "rear", "nodes": {"nearest": [[0, 0, 0], [0, 1, 0]]}, "until": 0.15}])

# PUSH: a scripted box comes from below, pushes the hanging cloth aside and goes.
scene("push", "PUSH of Table 2.1: a box pushes into cloth that hangs from its upper corners.", 1.6,
      {**cloth((9, 9), "crossed"), "rotation": [math.pi / 2, 0, 0], "translation": [0, 0, -1]}, {"eol": True, **MEDIUM},
      [{**box("box", (0.4, 0.4, 0.4), (0.5, 0.45, -0.55), friction=0),
        "motion": [{"t": 0}, {"t": 0.8, "translation": [0, -0.5, 0.05]}, {"t": 1.6, "translation": [0, 0, 0]}]}],
      [{"name": "corners", "nodes": {"nearest": [[0, 0, 0], [1, 0, 0]]}}])

# THROW: cloth flies over a turning box.
scene("throw", "THROW of Table 2.1: thrown onto a box that turns and moves.", 1.0,
      {**cloth((9, 9), "crossed", translation=(-0.2, -0.5, 0.35)), "velocity": [1.0, 0, 0]}, {"eol": True, "air_density": 1.2, **MEDIUM},
      [{**box("box", (0.5, 0.5, 0.4), (0.5, 0, -0.1), friction=0),
        "motion": [{"t": 0}, {"t": 0.5, "translation": [0, 0, 0.15], "rotation": [0, 0, 0.5]}, {"t": 1.0, "translation": [0.1, 0, 0], "rotation": [0, 0, 1.0]}]}])

# TURN: thrown onto a box that goes on turning under it, with a floor below.
scene("turn", "Cloth thrown onto a box that turns by 2 rad/s about a slanted axis, and what falls off lies on the floor.", 3.0,
      {**cloth((9, 9), "crossed", translation=(-0.2, -0.5, 0.35)), "velocity": [1.0, 0, 0]}, {"eol": True, "air_density": 1.2, **MEDIUM},
      [{**box("box", (0.5, 0.5, 0.4), (0.5, 0, -0.1), friction=0.3), "interpolation": "linear",
        "motion": [{"t": 0}, {"t": 100, "rotation": [20, 0, 200]}]},
       {"name": "floor", "shape": "plane", "point": [0, 0, -0.5], "normal": [0, 0, 1], "friction": 0.3}])

# FRICTION: dropped between four boxes; it slips through unless friction holds it (0.6 does).
for mu in (0, 0.1, 0.3, 0.6):
    boxes = [box(f"box {k}", (0.4, 0.4, 0.6), (0.5 + 0.32 * sx, 0.5 + 0.32 * sy, -0.35), rotation=[0, 0, 0.3], friction=mu)
             for k, (sx, sy) in enumerate([(-1, -1), (1, -1), (1, 1), (-1, 1)])]
    scene(f"friction-{mu}", f"FRICTION of Table 2.1: dropped between four boxes, friction {mu}.", 1.5, cloth((9, 9), "crossed"),
          {"eol": True, **MEDIUM}, boxes)

# SEESAW: cloth over a link. It falls across one arm of a plank on a pin, weighs it down and slides off over its edges.
seesaw = {**cloth((9, 9), "crossed", translation=(0.12, -0.4, 0.1), size=(0.8, 0.8)), "area_density": 0.2}
scene("seesaw", "Cloth falls across one arm of a seesaw, a link on a pin with a spring, tips it and slides off over its edges.", 2.0, seesaw,
      {"eol": True, "link_friction": 0.1, **MEDIUM},
      [{"name": "floor", "shape": "plane", "point": [0, 0, -0.8], "normal": [0, 0, 1], "friction": 0.4}],
      more={"links": [{"name": "plank", "mass": 0.8, "shapes": {"shape": "box", "size": [1.4, 0.3, 0.04], "contact": True}}],
            "joints": [{"name": "pin", "child": "plank", "axis": [0, 1, 0], "stiffness": 1.0, "damping": 0.05}]})

# FLAG: cloth on a link that a motor turns, in the wind.
scene("flag", "A flag on a pole, a link that a motor swings to and fro, in a wind of 4 m/s.", 4.0,
      {**cloth((13, 9), "crossed", translation=(0.012, 0, 0.6), size=(0.9, 0.6)), "rotation": [math.pi / 2, 0, 0]},
      {"air_density": 1.2, "wind": [4, 0.5, 0], "sharp": False}, [],
      more={"links": [{"name": "pole", "mass": 2, "shapes": {"shape": "cylinder", "radius": 0.012, "length": 1.8, "position": [0, 0, 0.3]}}],
            "joints": [{"name": "foot", "child": "pole", "position": [0, 0, -0.6], "axis": [0, 1, 0],
                        "motor": {"type": "speed", "keys": [[0, 0], [0.5, 0.8], [1.5, -0.8], [2.5, 0.8], [3.5, -0.8], [4, 0]]}}],
            "attachments": [{"link": "pole", "nodes": {"formula": "x < 0.02"}}]})
