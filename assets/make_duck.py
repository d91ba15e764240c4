#!/usr/bin/env python3
"""Writes the surface of a duck as overlapping ellipsoids (a Wavefront OBJ); with the argument `bowl` a bowl; with
`scene N` the scene of N ducks that fall into it, layer by layer.

    python3 assets/make_duck.py > duck.obj
    limber mesh tet duck.obj -o assets/duck.msh --ascii --vertices 160 --wrap --feature-angle 180 --fit 0.1 --stand
    python3 assets/make_duck.py bowl > assets/bowl.obj
    python3 assets/make_duck.py scene 100 > scenes/implicit/ducks.json
    python3 assets/make_duck.py scene 50 > scenes/implicit/ducks-50.json

Lengths in metres; +y is up, the duck looks along +x.
"""
import math
import random
import sys

vertices, faces = [], []


def revolve(profile, place, around):
    """A closed surface: `profile` is (radius, height) from the lower pole to the upper one."""
    first = len(vertices) + 1
    vertices.append(place(0, profile[0][1], 0))
    rings = []
    for r, y in profile[1:-1]:
        rings.append(len(vertices) + 1)
        for k in range(around):
            a = 2 * math.pi * k / around
            vertices.append(place(r * math.cos(a), y, r * math.sin(a)))
    last = len(vertices) + 1
    vertices.append(place(0, profile[-1][1], 0))
    for k in range(around):
        n = (k + 1) % around
        faces.append((first, rings[0] + k, rings[0] + n))
        faces.append((last, rings[-1] + n, rings[-1] + k))
        for a, b in zip(rings, rings[1:]):
            faces.append((a + k, b + n, a + n))
            faces.append((a + k, b + k, b + n))


def ellipsoid(center, axes, tilt=0.0):
    """`tilt` turns it about z [radians]."""
    c, s = math.cos(tilt), math.sin(tilt)

    def place(x, y, z):
        x, y, z = axes[0] * x, axes[1] * y, axes[2] * z
        return (center[0] + c * x - s * y, center[1] + s * x + c * y, center[2] + z)

    steps = 16
    revolve([(math.sin(math.pi * k / steps), -math.cos(math.pi * k / steps)) for k in range(steps + 1)], place, 24)



def scene(count):
    random.seed(7)
    bodies = []
    for n in range(count):
        layer, place = divmod(n, 20)
        shift = 0.01 if layer % 2 else 0.0  # so that no duck stands exactly on another
        at = (0.1 * (place % 4) - 0.15 + shift, 0.16 + 0.085 * layer, 0.07 * (place // 4) - 0.14 + shift)
        turn = [round(random.uniform(-0.25, 0.25), 3) for _ in range(3)]
        bodies.append('    {"name": "duck%d", "mesh": "../../assets/duck.msh", "rotation": %s, "translation": '
                      '[%.3f, %.3f, %.3f],\n     "material": {"young": 5e4, "poisson": 0.49, "density": 1000}}'
                      % (n, turn, *at))
    name = "ducks" if count == 100 else "ducks-%d" % count
    print("""{
  "$schema": "../../limber.schema.json",
  "limber": 1,
  "name": "%s",
  "description": "%d soft ducks of 157 nodes fall into a bowl and come to rest on each other (assets/make_duck.py).",
  "time": {"step": 0.01, "end": 2},
  "gravity": [0, -9.81, 0],
  "method": {"type": "implicit", "integrator": "sdirk2", "solver": "auto", "strain_damping": 2e-3,
             "body_contact": true, "contact_damping": 5e-3, "slip_speed": 0.02},
  "contact": {"friction": 0.3},
  "obstacles": [{"name": "bowl", "shape": "mesh", "mesh": "../../assets/bowl.obj"}],
  "bodies": [
%s
  ],
  "output": {"every": 2}
}""" % (name, count, ",\n".join(bodies)))


if "scene" in sys.argv[1:]:
    scene(int(sys.argv[2]))
elif "bowl" in sys.argv[1:]:
    # Half a ball of radius 0.28 m inside, 0.05 m thick, with a rounded rim.
    inner, wall, steps = 0.28, 0.05, 16
    profile = []
    for k in range(steps + 1):
        a = math.pi / 2 * k / steps
        profile.append(((inner + wall) * math.sin(a), inner - (inner + wall) * math.cos(a)))
    for k in range(1, 6):
        a = math.pi * k / 6
        profile.append((inner + wall / 2 + wall / 2 * math.cos(a), inner + wall / 2 * math.sin(a)))
    for k in range(steps, -1, -1):
        a = math.pi / 2 * k / steps
        profile.append((inner * math.sin(a), inner - inner * math.cos(a)))
    revolve(profile, lambda x, y, z: (x, y, z), 48)
else:
    ellipsoid((0.000, 0.000, 0), (0.044, 0.030, 0.034))  # body
    ellipsoid((0.024, 0.042, 0), (0.025, 0.025, 0.024))  # head
    ellipsoid((0.020, 0.018, 0), (0.017, 0.022, 0.018))  # neck
    ellipsoid((0.052, 0.037, 0), (0.017, 0.008, 0.015))  # beak
    ellipsoid((-0.044, 0.018, 0), (0.024, 0.012, 0.018), -0.75)  # tail

for v in vertices:
    print("v %.6f %.6f %.6f" % v)
for f in faces:
    print("f %d %d %d" % f)
