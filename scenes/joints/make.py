#!/usr/bin/env python3
"""Writes chain.json, chain-2r.json and klann.json: mechanisms whose many links are tedious to write by hand.

    python3 scenes/joints/make.py
"""
import json
import math
import pathlib

HERE = pathlib.Path(__file__).resolve().parent


def write(name, scene):
    # One line per link, joint or loop.
    lines = []
    for key, value in scene.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            items = ",\n    ".join(json.dumps(v) for v in value)
            lines.append(f'  "{key}": [\n    {items}\n  ]')
        else:
            lines.append(f'  "{key}": {json.dumps(value)}')
    (HERE / name).write_text("{\n" + ",\n".join(lines) + "\n}\n")


def rounded(*v):
    return [round(x, 9) + 0.0 for x in v]


# ---- chain: horizontal at the start, axes at 45 degrees to gravity (Figure 3.2)

def chain(radius, count=10, length=0.1, side=0.02, mu=0.2):
    links, joints = [], []
    for i in range(count):
        links.append({"name": f"link{i}", "shapes": {"shape": "box", "size": [length, side, side],
                                                     "position": rounded((i + 0.5) * length, 0, 0)}})
        joints.append({"name": f"pin{i}", "parent": f"link{i - 1}" if i else "world", "child": f"link{i}",
                       "position": rounded(i * length, 0, 0), "axis": [0, 1, 1],
                       "friction": {"mu": mu, "radius": radius, "height": side}})
    return {"$schema": "../../limber.schema.json", "limber": 1,
            "description": f"A chain of {count} links on rough pins of radius {1000 * radius:g} mm, axes at 45 "
                           "degrees to gravity: friction is strongest at the root, which stops first.",
            "time": {"step": 0.005, "end": 6}, "method": {"type": "joints"}, "output": {"every": 4},
            "links": links, "joints": joints}


# ---- klann: six legs of US 6,260,862 on two crankshafts (Figure 3.3)

SCALE = 0.2  # [m] per unit of the patent
CRANK, UPPER, LOWER = (1.599, 0.750), (1.366, 1.366), (1.009, 0.574)
DISTANCE = 0.9  # between the crankshafts [units]
WIDTH = 0.16    # between the planes of the legs [m]


def meet(p, r, q, s, side):
    """Where circles around p and q meet."""
    dx, dy = q[0] - p[0], q[1] - p[1]
    d = math.hypot(dx, dy)
    a = (r * r - s * s + d * d) / (2 * d)
    h = side * math.sqrt(r * r - a * a)
    return (p[0] + (a * dx - h * dy) / d, p[1] + (a * dy + h * dx) / d)


def leg_points(angle):
    pin = (CRANK[0] + 0.268 * math.cos(angle), CRANK[1] + 0.268 * math.sin(angle))
    knee = meet(pin, 0.590, LOWER, 0.3206, -1)  # coupler and lower rocker
    hip = meet(knee, 0.5221, pin, 1.1051, 1)    # coupler and leg
    top = meet(UPPER, 0.5177, hip, 0.8966, -1)  # upper rocker and leg
    foot = meet(hip, 0.8966, top, 1.732, -1)
    return pin, knee, hip, top, foot


def klann(mu=0.4, angle=math.pi / 2, speed=4.0, radius=0.008, height=0.016, foot=0.02):
    middle = CRANK[0] + 0.5 * DISTANCE
    floor = min(p[4][1] for p in (leg_points(angle), leg_points(angle + math.pi)))

    def place(p, mirrored, z):
        x = 2 * middle - p[0] if mirrored else p[0]
        return rounded(SCALE * (x - middle), SCALE * (p[1] - floor) + foot, z)

    def bar(a, b, thick=0.016, density=800):
        d = [b[k] - a[k] for k in range(3)]
        return {"shape": "box", "size": rounded(math.dist(a, b), thick, thick),
                "position": rounded(*(0.5 * (a[k] + b[k]) for k in range(3))),
                "rotation": rounded(0, 0, math.atan2(d[1], d[0])), "density": density}

    bearing = {"mu": mu, "radius": radius, "height": height}
    links, joints, loops = [], [], []

    def link(name, *shapes):
        links.append({"name": name, "shapes": list(shapes)})

    def pin(name, parent, child, at):
        joints.append({"name": name, "parent": parent, "child": child, "position": at, "friction": bearing})

    def close(name, a, b, at):
        loops.append({"name": name, "a": a, "b": b, "position": at, "friction": bearing})

    frame = []
    for z in (-0.5 * WIDTH, 0.5 * WIDTH):
        for point in (UPPER, LOWER, CRANK):
            frame.append(bar(place(point, False, z), place(point, True, z), 0.02))
        for mirrored in (False, True):
            frame.append(bar(place(UPPER, mirrored, z), place(LOWER, mirrored, z), 0.02))
            frame.append(bar(place(UPPER, mirrored, z), place(CRANK, mirrored, z), 0.02))
    frame.append({"shape": "box", "size": [SCALE * DISTANCE, 0.1, WIDTH], "density": 500,
                  "position": place((middle, CRANK[1] + 0.3), False, 0)})
    for mirrored in (False, True):
        for point in (UPPER, LOWER):
            frame.append({"shape": "cylinder", "radius": 0.006, "length": 2 * WIDTH + 0.05, "density": 2000,
                          "position": place(point, mirrored, 0)})
    link("frame", *frame)
    joints.append({"name": "frame", "type": "free", "child": "frame", "position": place((middle, 1), False, 0)})
    for mirrored, end in ((False, "back"), (True, "front")):
        # Two sets of three feet take turns: outer legs at one end and the middle leg at the other.
        turns = [angle + (math.pi if (z == 0) != mirrored else 0) for z in (-1, 0, 1)]
        if mirrored:
            turns = [math.pi - t for t in turns]  # the mirror image of a leg, with the crank at t
        shaft = [{"shape": "cylinder", "radius": 0.008, "length": 2 * WIDTH + 0.05, "density": 2000,
                  "position": place(CRANK, mirrored, 0)}]
        for z, t in zip((-WIDTH, 0.0, WIDTH), turns):
            shaft.append(bar(place(CRANK, mirrored, z), place(leg_points(t)[0], mirrored, z)))
        link(f"{end}-crank", *shaft)
        joints.append({"name": f"{end}-motor", "parent": "frame", "child": f"{end}-crank",
                       "position": place(CRANK, mirrored, 0), "friction": bearing,
                       "motor": {"type": "speed", "keys": [[0, 0], [0.5, speed]]}})
        for side, z, t in zip(("left", "middle", "right"), (-WIDTH, 0.0, WIDTH), turns):
            name = f"{end}-{side}"
            p, knee, hip, top, toe = (place(q, mirrored, z) for q in leg_points(t))
            upper, lower = place(UPPER, mirrored, z), place(LOWER, mirrored, z)
            link(f"{name}-coupler", bar(p, knee), bar(knee, hip))
            link(f"{name}-lower", bar(lower, knee))
            link(f"{name}-upper", bar(upper, top))
            link(f"{name}-leg", bar(top, hip), bar(hip, toe),
                 {"shape": "sphere", "radius": foot, "position": toe, "density": 800, "contact": True})
            pin(f"{name}-crank-pin", f"{end}-crank", f"{name}-coupler", p)
            pin(f"{name}-lower-axle", "frame", f"{name}-lower", lower)
            pin(f"{name}-hip", f"{name}-coupler", f"{name}-leg", hip)
            pin(f"{name}-upper-axle", "frame", f"{name}-upper", upper)
            close(f"{name}-knee", f"{name}-coupler", f"{name}-lower", knee)
            close(f"{name}-top", f"{name}-leg", f"{name}-upper", top)
    return {"$schema": "../../limber.schema.json", "limber": 1,
            "description": "A walker on six Klann legs: 26 joints, 12 loop closures, two motors at constant speed, "
                           "friction in every pin. --set /method/mu=0.8 changes the friction of all of them.",
            "time": {"step": 0.005, "end": 20}, "method": {"type": "joints"}, "output": {"every": 8},
            "links": links, "joints": joints, "loops": loops,
            "obstacles": [{"name": "floor", "shape": "plane", "friction": 0.8}]}


if __name__ == "__main__":
    write("chain.json", chain(0.01))
    write("chain-2r.json", chain(0.02))
    write("klann.json", klann())
