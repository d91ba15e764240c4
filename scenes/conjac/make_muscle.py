#!/usr/bin/env python3
"""Writes muscle.vtk, a spindle of triangles between two points: 37 x 7 nodes along and across.

    python3 scenes/conjac/make_muscle.py
"""
import math
import pathlib

ORIGIN, INSERTION = (0.014, -0.035), (0.05, -0.287)  # middles of the ends [m]
ALONG, ACROSS = 37, 7
THIN, THICK = 0.012, 0.06  # width at the ends and in the middle [m]

nodes, triangles = [], []
dx, dy = INSERTION[0] - ORIGIN[0], INSERTION[1] - ORIGIN[1]
length = math.hypot(dx, dy)
side = (-dy / length, dx / length)
for i in range(ALONG):
    s = i / (ALONG - 1)
    # Tendons at both ends; the belly bulges away from the bone.
    belly = math.sin(math.pi * min(1, max(0, (s - 0.12) / 0.76))) ** 2
    width = THIN + (THICK - THIN) * belly
    for j in range(ACROSS):
        t = (j / (ACROSS - 1) - 0.5) * width + 0.022 * belly
        nodes.append((ORIGIN[0] + s * dx + t * side[0], ORIGIN[1] + s * dy + t * side[1]))
for i in range(ALONG - 1):
    for j in range(ACROSS - 1):
        a, b = i * ACROSS + j, (i + 1) * ACROSS + j
        # Diagonals alternate, so that the mesh has no preferred direction.
        quad = (a, b, b + 1, a + 1)
        if (i + j) % 2:
            triangles += [(quad[0], quad[1], quad[2]), (quad[0], quad[2], quad[3])]
        else:
            triangles += [(quad[0], quad[1], quad[3]), (quad[1], quad[2], quad[3])]


def area(t):
    (ax, ay), (bx, by), (cx, cy) = (nodes[k] for k in t)
    return (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)


triangles = [t if area(t) > 0 else (t[0], t[2], t[1]) for t in triangles]
with open(pathlib.Path(__file__).resolve().parent / "muscle.vtk", "w") as f:
    f.write("# vtk DataFile Version 3.0\nmuscle\nASCII\nDATASET UNSTRUCTURED_GRID\n")
    f.write(f"POINTS {len(nodes)} double\n")
    f.writelines(f"{x:.9g} {y:.9g} 0\n" for x, y in nodes)
    f.write(f"CELLS {len(triangles)} {4 * len(triangles)}\n")
    f.writelines("3 {} {} {}\n".format(*t) for t in triangles)
    f.write(f"CELL_TYPES {len(triangles)}\n" + "5\n" * len(triangles))
