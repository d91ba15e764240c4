#!/usr/bin/env python3
"""Writes the scenes of subspace condensation: capsule, hand, character and giant, and the shapes of all but the first.

Bodies are round cones (docs/meshes.md); bones are the axes of the cones, cut short at the joints."""
import math
import os
import pathlib
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
from scene_file import write_scene  # noqa: E402
from shape_file import write_shape  # noqa: E402


def write(name, scene, tests):
    head = {"$schema": "../../limber.schema.json", "limber": 1, "name": name}
    write_scene(pathlib.Path(HERE, name + ".json"), {**head, **scene, "tests": tests})


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
    write(name, {
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
                       "radius": 0.05, "friction": 0}],
        "output": {"every": 1, "fields": ["displacement"]}}, tests)


# A hand whose fingers press on a bar one after the other, and leave it in another order. Each bone is trained by itself.
# `squeeze`: after the end fingers close in on each other, two and two (by so much [rad]).
def hand(name, tets, rho, tests, squeeze=0.0):
    press, cones = 0.5, []
    for z in (-0.3, -0.1, 0.1, 0.3):
        cones.append(((-0.55, 0, 0.9 * z), (-0.05, 0, z), 0.12, 0.11))
    bones = [bone("palm", (-0.5, 0, 0), (-0.05, 0, 0), 0.1, cut=(0, 0.25))]
    for k, (finger, z, length) in enumerate((("index", -0.33, 0.62), ("middle", -0.11, 0.7), ("ring", 0.11, 0.66),
                                             ("little", 0.33, 0.52))):
        a, b, c = (0, 0, z), (0.53 * length, 0, z), (length, 0, z)
        cones += [(a, b, 0.085, 0.075), (b, c, 0.075, 0.06)]
        down, up = 0.3 + 0.3 * k, 2.4 - 0.25 * ((k + 2) % 4)  # [s]
        keys = lambda angle: [(0, (0, 0, 0)), (down, (0, 0, 0)), (down + 0.3, (0, 0, -angle)), (up, (0, 0, -angle)),
                              (up + 0.3, (0, 0, 0))]
        side = [(3.2, (0, 0, 0)), (3.6, (0, (-1, 1, -1, 1)[k] * squeeze, 0)), (4.0, (0, 0, 0))] if squeeze else []
        bones.append(bone(finger + "-1", a, b, 0.03, "palm", (0.3, 0.2), keys(press) + side))
        bones.append(bone(finger + "-2", b, c, 0.03, finger + "-1", (0.25, 0.1), keys(0.15)))
    thumb = ((-0.4, 0, -0.3), (-0.12, -0.05, -0.56), (0.08, -0.08, -0.64))
    cones += [(thumb[0], thumb[1], 0.12, 0.085), (thumb[1], thumb[2], 0.085, 0.07)]
    bones.append(bone("thumb", thumb[0], thumb[1], 0.03, "palm", (0.4, 0.0),
                      [(0, (0, 0, 0)), (0.4, (0, 0.35, 0)), (2.4, (0, 0.35, 0)), (2.7, (0, 0, 0))]))
    write_shape(os.path.join(HERE, name), tets, 0.03, cones)
    write(name, {
        "description": "A hand on ten bones presses on a bar finger by finger, and lets go in another order."
                       + (" With body_contact and an end at 4 s fingers then press against each other." if squeeze else ""),
        "time": {"step": 0.033333333333333333, "end": 3},
        "gravity": [0, 0, 0],
        "method": {"type": "condense", "training": "bones", "poses": 6 if squeeze else 10, "modes": 40, "radius": rho},
        "bodies": [{"name": "hand", "mesh": name + ".shape",
                    "material": {"model": "stable-neo-hookean", "young": 1e5, "poisson": 0.45}}],
        "bones": bones,
        "obstacles": [{"name": "bar", "shape": "capsule", "point": [0.3, -0.42, -0.7], "end": [0.3, -0.42, 0.7],
                       "radius": 0.2, "friction": 0}],
        "output": {"every": 1, "fields": ["displacement"]}}, tests)


# A character walks on the spot; three walls crush its head and go away again, with dynamics.
def character(name, tets, rho, tests, **method):
    hips, belly, chest, neck, crown = (0, 1.0, 0), (0, 1.25, 0), (0, 1.55, 0), (0, 1.85, 0), (0, 2.25, 0)
    cones = [(hips, belly, 0.24, 0.26), (belly, chest, 0.26, 0.28), (chest, neck, 0.26, 0.12),
             ((0, 2.15, 0), (0, 2.25, 0), 0.33, 0.33)]
    swing = lambda angle, offset=0.0: [(0, (0, 0, 0)), (0.25, (0, 0, angle + offset)), (0.75, (0, 0, offset - angle)),
                                       (1.25, (0, 0, angle + offset)), (1.75, (0, 0, offset - angle)), (2, (0, 0, 0))]
    bones = [bone("pelvis", hips, belly, 0.12, cut=(0, 0.4)), bone("belly", belly, chest, 0.1, "pelvis", (0.2, 0.3)),
             bone("chest", chest, neck, 0.1, "belly", (0.1, 0.3), [(0, (0, 0, 0)), (0.5, (0, 0.1, 0)), (1.0, (0, -0.1, 0)),
                                                                   (1.5, (0, 0.1, 0)), (2, (0, 0, 0))]),
             bone("head", neck, crown, 0.1, "chest", (0.55, 0.1))]
    for side, z in (("left", 1), ("right", -1)):
        ear = ((0, 2.45, 0.22 * z), (0, 2.75, 0.42 * z))
        cones.append((ear[0], ear[1], 0.13, 0.11))
        shoulder, elbow, wrist, finger = (0, 1.68, 0.3 * z), (0, 1.45, 0.62 * z), (0, 1.2, 0.88 * z), (0, 1.08, 1.0 * z)
        cones += [((0, 1.65, 0.1 * z), shoulder, 0.15, 0.13), (shoulder, elbow, 0.12, 0.1), (elbow, wrist, 0.1, 0.08),
                  (wrist, finger, 0.1, 0.09)]
        bones += [bone(side + "-arm", shoulder, elbow, 0.045, "chest", (0.3, 0.25), swing(-0.4 * z)),
                  bone(side + "-forearm", elbow, wrist, 0.04, side + "-arm", (0.25, 0.25), swing(-0.2 * z)),
                  bone(side + "-hand", wrist, finger, 0.04, side + "-forearm", (0.3, 0.0))]
        hip, knee, ankle, toe = (0, 0.92, 0.17 * z), (0, 0.52, 0.19 * z), (0, 0.12, 0.2 * z), (0.28, 0.08, 0.22 * z)
        cones += [(hip, knee, 0.17, 0.13), (knee, ankle, 0.13, 0.1), (ankle, toe, 0.11, 0.09)]
        bones += [bone(side + "-thigh", hip, knee, 0.06, "pelvis", (0.3, 0.25), swing(0.45 * z)),
                  bone(side + "-shin", knee, ankle, 0.05, side + "-thigh", (0.25, 0.25), swing(0.2 * z, -0.2)),
                  bone(side + "-foot", ankle, toe, 0.05, side + "-shin", (0.3, 0.0))]
    cones.append(((-0.25, 1.0, 0), (-0.6, 0.85, 0), 0.1, 0.07))
    bones.append(bone("tail", (-0.25, 1.0, 0), (-0.6, 0.85, 0), 0.04, "pelvis", (0.3, 0.1)))
    write_shape(os.path.join(HERE, name), tets, 0.04, cones)

    def wall(label, point, size, way):
        keys = [{"t": 0}, {"t": 0.6}, {"t": 1.2, "translation": way}, {"t": 1.5, "translation": way}, {"t": 1.55}]
        return {"name": label, "shape": "box", "point": point, "size": size, "motion": keys, "interpolation": "linear",
                "friction": 0}
    write(name, {
        "description": "A character on seventeen bones walks on the spot while three walls crush its head and let it go.",
        "time": {"step": 0.016666666666666666, "end": 2},
        "gravity": [0, -9.81, 0],
        "method": {"type": "condense", "integrator": "bdf1", "poses": 38, "modes": 40, "radius": rho, **method},
        "damping": {"stiffness": 0.005},
        "bodies": [{"name": "character", "mesh": name + ".shape",
                    "material": {"model": "stable-neo-hookean", "young": 2e5, "poisson": 0.4}}],
        "bones": bones,
        "obstacles": [wall("left wall", [0, 2.3, 0.75], [1.2, 0.9, 0.2], [0, 0, -0.32]),
                      wall("right wall", [0, 2.3, -0.75], [1.2, 0.9, 0.2], [0, 0, 0.32]),
                      wall("ceiling", [0, 3.1, 0], [1.2, 0.2, 0.8], [0, -0.45, 0])],
        "output": {"every": 2, "fields": ["displacement"]}}, tests)


# A giant walks on the spot, stands, and pats its belly. 52 bones: fingers, toes, tail, jaw and ears are bones too.
# `fingers`: without them it has 32, and a coarse mesh will do.
def giant(name, tets, rho, poses, tests, fingers=True):
    hips, belly, chest, neck, crown = (0, 1.1, 0), (0.02, 1.4, 0), (0, 1.75, 0), (0, 2.1, 0), (0.05, 2.5, 0)
    cones = [(hips, belly, 0.36, 0.42), (belly, chest, 0.42, 0.4), (chest, neck, 0.36, 0.2), (neck, crown, 0.24, 0.27),
             ((0.12, 1.38, 0), (0.2, 1.38, 0), 0.34, 0.3), ((0.1, 2.28, 0), (0.24, 2.22, 0), 0.17, 0.13)]
    step = lambda angle, offset=0.0, axis=2: [
        (t, tuple((a if k == axis else 0) for k in range(3)))
        for t, a in ((0, 0), (0.25, angle + offset), (0.75, offset - angle), (1.25, angle + offset), (1.75, offset - angle),
                     (2, 0))]
    pat = lambda *turn: [(2.2, (0, 0, 0)), (2.9, turn), (3.1, tuple(round(0.95 * a, 4) for a in turn)), (3.4, turn),
                         (4.0, (0, 0, 0))]
    bones = [bone("pelvis", hips, belly, 0.16, cut=(0, 0.45)), bone("belly", belly, chest, 0.12, "pelvis", (0.2, 0.3)),
             bone("front", (0.05, 1.38, 0), (0.3, 1.38, 0), 0.06, "belly", (0.4, 0.3)),
             bone("chest", chest, neck, 0.14, "belly", (0.15, 0.35), step(0.08, axis=1)),
             bone("neck", neck, (0.02, 2.25, 0), 0.08, "chest", (0.2, 0.2), step(-0.06, axis=1)),
             bone("head", (0.02, 2.25, 0), crown, 0.11, "neck", (0.3, 0.1)),
             bone("jaw", (0.1, 2.26, 0), (0.24, 2.2, 0), 0.05, "head", (0.3, 0.0), step(0.05))]
    for side, z in (("left", 1), ("right", -1)):
        ear = ((-0.02, 2.62, 0.17 * z), (-0.05, 2.85, 0.28 * z))
        cones.append((ear[0], ear[1], 0.1, 0.06))
        bones.append(bone(side + "-ear", ear[0], ear[1], 0.03, "head", (0.4, 0.1), step(0.15, axis=0)))
        clavicle, shoulder, elbow, wrist = (0, 1.9, 0.12 * z), (0, 1.88, 0.42 * z), (0.05, 1.5, 0.85 * z), (0.12, 1.12, 1.12 * z)
        palm = (0.16, 0.96, 1.2 * z)
        cones += [(clavicle, shoulder, 0.22, 0.2), (shoulder, elbow, 0.17, 0.125), (elbow, wrist, 0.125, 0.11),
                  (wrist, palm, 0.11, 0.11)]
        right = z < 0
        bones += [bone(side + "-clavicle", clavicle, shoulder, 0.06, "chest", (0.3, 0.35)),
                  bone(side + "-arm", shoulder, elbow, 0.06, side + "-clavicle", (0.3, 0.4),
                       step(-0.3 * z) + (pat(-0.35, -0.25, 0.4) if right else [])),
                  bone(side + "-forearm", elbow, wrist, 0.05, side + "-arm", (0.4, 0.25),
                       step(-0.15 * z) + (pat(-1.02, 0.23, -0.21) if right else [])),
                  bone(side + "-hand", wrist, palm, 0.045, side + "-forearm", (0.35, 0.0), step(0.1 * z))]
        along = [b - a for a, b in zip(wrist, palm)]
        size = math.sqrt(sum(a * a for a in along))
        along = [a / size for a in along]
        for k, finger in enumerate(("index", "middle", "ring", "little") if fingers else ()):
            a = [palm[0] + 0.125 * (1.5 - k) / 1.5, palm[1] + 0.08 * along[1], palm[2] + 0.08 * along[2]]
            b, c = ([p + s * d for p, d in zip(a, along)] for s in (0.13, 0.25))
            a, b, c = ([round(v, 4) for v in p] for p in (a, b, c))
            cones += [(a, b, 0.042, 0.038), (b, c, 0.038, 0.032)]
            bones += [bone("%s-%s-1" % (side, finger), a, b, 0.017, side + "-hand", (0.35, 0.2), step(0.1 * z, 0.1 * z, 0)),
                      bone("%s-%s-2" % (side, finger), b, c, 0.016, "%s-%s-1" % (side, finger), (0.3, 0.0))]
        if fingers:
            a = [round(v, 4) for v in (palm[0] + 0.13, palm[1] + 0.06, palm[2])]
            b, c = ([round(p + s * d, 4) for p, d in zip(a, (0.7, -0.6, 0.35 * z))] for s in (0.1, 0.2))
            cones += [(palm, a, 0.08, 0.05), (a, b, 0.048, 0.043), (b, c, 0.043, 0.036)]
            bones += [bone(side + "-thumb-1", a, b, 0.018, side + "-hand", (0.35, 0.2), step(0.1, axis=1)),
                      bone(side + "-thumb-2", b, c, 0.017, side + "-thumb-1", (0.3, 0.0))]
        hip, knee, ankle, ball, toe = ((0, 0.98, 0.24 * z), (0.03, 0.55, 0.27 * z), (0, 0.15, 0.28 * z), (0.22, 0.1, 0.29 * z),
                                       (0.36, 0.09, 0.3 * z))
        cones += [(hip, knee, 0.24, 0.18), (knee, ankle, 0.18, 0.15), (ankle, ball, 0.15, 0.13), (ball, toe, 0.13, 0.1)]
        bones += [bone(side + "-thigh", hip, knee, 0.09, "pelvis", (0.35, 0.25), step(0.35 * z)),
                  bone(side + "-shin", knee, ankle, 0.07, side + "-thigh", (0.25, 0.25), step(0.15 * z, -0.15)),
                  bone(side + "-foot", ankle, ball, 0.06, side + "-shin", (0.3, 0.2)),
                  bone(side + "-toes", ball, toe, 0.05, side + "-foot", (0.3, 0.0), step(0.1 * z, 0.1))]
    spine = [(-0.3 - 0.19 * k, round(1.0 - 0.11 * k + 0.012 * k * k, 4), 0) for k in range(8)]
    for k in range(7):
        ra, rb = (round(0.2 - 0.02 * j, 4) for j in (k, k + 1))
        cones.append((spine[k], spine[k + 1], ra, rb))
        bones.append(bone("tail-%d" % (k + 1), spine[k], spine[k + 1], round(0.5 * rb, 4), "tail-%d" % k if k else "pelvis",
                          (0.3, 0.2), step(0.12, axis=1)))
    assert len(bones) == (52 if fingers else 32)
    write_shape(os.path.join(HERE, name), tets, 0.05, cones)
    write(name, {
        "description": f"A giant on {len(bones)} bones walks on the spot, then pats its belly: a hand and the belly touch, which no "
                       "training pose knows of.",
        "time": {"step": 0.033333333333333333, "end": 4},
        "gravity": [0, 0, 0],
        "method": {"type": "condense", "poses": poses, "modes": 40, "radius": rho, "body_contact": True},
        "contact": {"friction": 0},
        "bodies": [{"name": "giant", "mesh": name + ".shape",
                    "material": {"model": "stable-neo-hookean", "young": 1e5, "poisson": 0.4}}],
        "bones": bones,
        "output": {"every": 1, "fields": ["displacement"]}}, tests)


if __name__ == "__main__":
    capsule("capsule", 0.25, 0.011, {"steps": 24, "elastic_energy": [35.67, 0.36], "inverted": 0})
    capsule("capsule-0.08", 0.08, 0.011, {"steps": 24, "elastic_energy": [35.67, 0.36], "inverted": 0})
    capsule("capsule-small", 0.25, 0.03, {"steps": 30, "max_displacement": [0.5548, 0.0055], "elastic_energy": [64.97, 0.65], "inverted": 0})
    hand("hand-small", 8000, 0.07, {"steps": 24, "elastic_energy": [66.43, 0.66], "inverted": 0})
    # In the step after these 56 a crushed ear snaps, and rounding decides which of two shapes it finds (975 or 1014 J after 66).
    character("character-small", 9000, 0.1, {"steps": 50, "elastic_energy": [164.58, 0.2], "inverted": 0})
    hand("hand", 458000, 0.09, {"steps": 12, "elastic_energy": [27.88, 0.28], "inverted": 0}, squeeze=0.14)
    character("character", 123000, 0.15, {"steps": 30, "elastic_energy": [28.92, 0.29], "inverted": 0}, solver="jacobi")
    giant("giant", 611000, 0.048, 24, {"steps": 12, "inverted": 0})
    giant("giant-small", 20000, 0.06, 24, {"steps": 86, "elastic_energy": [130.2, 1.3], "inverted": 0}, fingers=False)
