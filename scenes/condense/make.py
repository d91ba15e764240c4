#!/usr/bin/env python3
"""Writes the scenes of subspace condensation: capsule, hand and character, and the shapes of the last two.

Bodies are round cones (docs/meshes.md); bones are the axes of the cones, cut short at the joints."""
import json
import math
import os

HERE = os.path.dirname(os.path.abspath(__file__))


def write_scene(name, scene, tests):
    """The expectations are the last line, as tests/cli/test_gallery.py reads them."""
    head = {"$schema": "../../limber.schema.json", "limber": 1, "name": name}
    text = json.dumps({**head, **scene}, indent=2)
    with open(os.path.join(HERE, name + ".json"), "w") as f:
        f.write(text[:-2] + ',\n  "tests": %s\n}\n' % json.dumps(tests))


def write_shape(name, tets, blend, cones):
    with open(os.path.join(HERE, name + ".shape"), "w") as f:
        f.write("# written by make.py\ntets %d\nblend %g\n" % (tets, blend))
        for a, b, ra, rb in cones:
            f.write("cone %g %g %g %g %g %g %g %g\n" % (*a, *b, ra, rb))


def between(a, b, s):
    return [round(x + s * (y - x), 6) for x, y in zip(a, b)]


def bone(name, a, b, radius, parent=None, cut=(0.0, 0.0), motion=None):
    """A bone along a-b that turns about a; its ends are cut by these shares of its length."""
    out = {"name": name}
    if parent:
        out["parent"] = parent
    out.update(joint=list(a), head=between(a, b, cut[0]), tail=between(a, b, 1 - cut[1]), radius=radius)
    if motion:
        out["motion"] = [dict(t=t, rotation=r) if any(r) else dict(t=t) for t, r in motion]
    return out


# The capsule bends down on a pipe and comes back up.
def capsule(name, rho, edge, tests):
    angle = 1.2
    along, under = (0, -math.sin(angle), math.cos(angle)), (0, -math.cos(angle), -math.sin(angle))
    pipe = [round(0.3 * a + 0.12 * u, 4) for a, u in zip(along, under)]
    write_scene(name, {
        "description": "A capsule on two bones bends down on a pipe and up again; contacts reach %g of its length." % rho,
        "time": {"step": 0.033333333333333333, "end": 2},
        "gravity": [0, 0, 0],
        "method": {"type": "condense", "poses": 24, "modes": 11, "least_spread": 1e-8, "radius": rho},
        "bodies": [{"name": "capsule", "mesh": {"shape": "capsule", "radius": 0.12, "length": 0.76, "edge": edge},
                    "material": {"model": "stable-neo-hookean", "young": 1e5, "poisson": 0.45}}],
        "bones": [
            {"name": "lower", "head": [0, 0, -0.4], "tail": [0, 0, -0.1], "radius": 0.035},
            {"name": "upper", "parent": "lower", "joint": [0, 0, 0], "head": [0, 0, 0.1], "tail": [0, 0, 0.4],
             "radius": 0.035,
             "motion": [{"t": 0}, {"t": 1, "rotation": [angle, 0, 0]}, {"t": 2}]}],
        "obstacles": [{"name": "pipe", "shape": "capsule", "point": [-0.5, *pipe[1:]], "end": [0.5, *pipe[1:]],
                       "radius": 0.05, "friction": 0.2}],
        "output": {"every": 1, "fields": ["displacement"]}}, tests)


if __name__ == "__main__":
    capsule("capsule", 0.25, 0.011, {"steps": 24, "elastic_energy": [35.67, 0.36], "inverted": 0})
    capsule("capsule-0.08", 0.08, 0.011, {"steps": 24, "elastic_energy": [35.67, 0.36], "inverted": 0})
    capsule("capsule-small", 0.25, 0.03, {"steps": 30, "max_displacement": [0.5538, 0.0055], "elastic_energy": [65.73, 0.66], "inverted": 0})
