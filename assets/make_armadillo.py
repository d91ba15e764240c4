#!/usr/bin/env python3
"""Writes the surface of an armadillo-like creature as overlapping rounded cones (a Wavefront OBJ).

The parts cross each other; `limber mesh tet --wrap` takes what is inside any of them:

    python3 assets/make_armadillo.py > armadillo.obj

Lengths in metres; the creature stands on y = 0 and looks along +z.
"""
import math


def sub(a, b):
    return [a[i] - b[i] for i in range(3)]


def unit(a):
    n = math.sqrt(sum(c * c for c in a))
    return [c / n for c in a]


def cross(a, b):
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


vertices, faces = [], []


def rounded_cone(p, r, q, s, around=28, caps=7, squash=(1, 1, 1)):
    """The hull of a ball (p, r) and a ball (q, s); `squash` scales it about the middle of pq."""
    axis = unit(sub(q, p))
    length = math.sqrt(sum(c * c for c in sub(q, p)))
    side = unit(cross(axis, [0.3, 1.0, 0.2] if abs(axis[1]) < 0.9 else [1.0, 0.1, 0.2]))
    up = cross(axis, side)
    tilt = math.asin(max(-1, min(1, (r - s) / length)))  # where the cone touches the balls
    middle = [(p[i] + q[i]) / 2 for i in range(3)]
    profile = []  # (distance along the axis from p, radius)
    for k in range(1, caps + 1):
        a = -math.pi / 2 + (math.pi / 2 + tilt) * k / caps
        profile.append((r * math.sin(a), r * math.cos(a)))
    for k in range(caps):
        a = tilt + (math.pi / 2 - tilt) * k / caps
        profile.append((length + s * math.sin(a), s * math.cos(a)))

    def add(along, radius, angle):
        point = [p[i] + along * axis[i] + radius * (math.cos(angle) * side[i] + math.sin(angle) * up[i])
                 for i in range(3)]
        vertices.append([middle[i] + squash[i] * (point[i] - middle[i]) for i in range(3)])
        return len(vertices)

    first = add(-r, 0, 0)
    rings = [[add(d, w, 2 * math.pi * k / around) for k in range(around)] for d, w in profile]
    last = add(length + s, 0, 0)
    for k in range(around):
        n = (k + 1) % around
        faces.append((first, rings[0][n], rings[0][k]))
        faces.append((last, rings[-1][k], rings[-1][n]))
        for a, b in zip(rings, rings[1:]):
            faces.append((a[k], a[n], b[n]))
            faces.append((a[k], b[n], b[k]))


def both_sides(p, r, q, s, **more):
    rounded_cone(p, r, q, s, **more)
    rounded_cone([-p[0], p[1], p[2]], r, [-q[0], q[1], q[2]], s, **more)


# Torso, and the shell on its back in five bands.
rounded_cone([0, 0.044, 0.000], 0.0200, [0, 0.072, 0.002], 0.0165)
rounded_cone([0, 0.046, -0.005], 0.0215, [0, 0.068, -0.005], 0.0185)
for k in range(5):
    h = 0.034 + 0.0105 * k
    w = 0.0245 - 0.0011 * abs(k - 1.5) ** 2
    rounded_cone([-0.003, h, -0.0055], w - 0.002, [0.003, h, -0.0055], w - 0.002, squash=(1, 0.38, 0.95))
# Neck, head, snout, ears.
rounded_cone([0, 0.080, 0.003], 0.0105, [0, 0.092, 0.007], 0.0100)
rounded_cone([0, 0.096, 0.006], 0.0125, [0, 0.094, 0.014], 0.0095)
rounded_cone([0, 0.092, 0.016], 0.0080, [0, 0.088, 0.031], 0.0042)
both_sides([0.0075, 0.104, 0.001], 0.0042, [0.0125, 0.119, -0.004], 0.0040, squash=(1, 1, 0.8))
# Arms, hands with three fingers.
both_sides([0.015, 0.075, 0.003], 0.0078, [0.034, 0.066, 0.008], 0.0068)
both_sides([0.034, 0.066, 0.008], 0.0068, [0.044, 0.083, 0.019], 0.0055)
both_sides([0.044, 0.083, 0.019], 0.0055, [0.046, 0.090, 0.022], 0.0060)
for dx, dy, dz in ((0.007, 0.006, 0.001), (0.002, 0.010, 0.003), (-0.006, 0.007, 0.006)):
    both_sides([0.046, 0.090, 0.022], 0.0036, [0.046 + dx, 0.090 + dy, 0.022 + dz], 0.0028)
# Legs, feet with three toes.
both_sides([0.012, 0.036, 0.002], 0.0125, [0.025, 0.023, 0.008], 0.0095)
both_sides([0.025, 0.023, 0.008], 0.0095, [0.026, 0.008, 0.000], 0.0072)
both_sides([0.026, 0.0062, -0.002], 0.0062, [0.029, 0.0052, 0.014], 0.0052)
for dx, dz in ((0.006, 0.006), (0.001, 0.009), (-0.005, 0.007)):
    both_sides([0.029, 0.0044, 0.014], 0.0042, [0.029 + dx, 0.0036, 0.014 + dz], 0.0034)
# Tail.
tail = [([0, 0.034, -0.016], 0.0110), ([0, 0.024, -0.030], 0.0085), ([0.002, 0.014, -0.042], 0.0066),
        ([0.006, 0.008, -0.055], 0.0050), ([0.012, 0.006, -0.067], 0.0036)]
for (p, r), (q, s) in zip(tail, tail[1:]):
    rounded_cone(p, r, q, s)

for v in vertices:
    print("v %.6f %.6f %.6f" % tuple(v))
for f in faces:
    print("f %d %d %d" % f)
