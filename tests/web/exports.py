"""Exports read by NumPy, meshio and the standard library, against the recording's formula.  exports.py SAMPLES"""
import glob
import json
import os
import sys
import xml.etree.ElementTree as xml

import meshio
import numpy as np

root = sys.argv[1]
out = os.path.join(root, "export")
truth = json.load(open(os.path.join(root, "bar", "truth.json")))
failures = 0


def check(condition, what):
    global failures
    print(("ok   " if condition else "FAIL ") + what)
    failures += not condition


data = np.load(os.path.join(out, "bar.npz"))
frames, nodes = truth["frames"], data["rest"].shape[0]
check(data["x"].shape == (frames, nodes, 3) and data["x"].dtype == np.float32, "npz: x is frames x nodes x 3")
check(data["v"].shape == (frames, nodes, 3), "npz: v likewise")
check(data["tets"].shape[1] == 4 and data["tets"].max() == nodes - 1, "npz: tets index the nodes")
check(data["energy_density"].shape == (frames, len(data["tets"])), "npz: a number per element and frame")
check(data["young"].shape == (len(data["tets"]),), "npz: constants have no frames")
check(np.allclose(np.diff(data["t"]), 0.02), "npz: times")
for s in truth["samples"]:
    check(np.array_equal(data["x"][s["frame"], s["node"]], np.float32(s["x"])), f"npz: node {s['node']} in frame {s['frame']}")
volume = np.einsum("ij,ij->i", np.cross(*[data["rest"][data["tets"][:, k]] - data["rest"][data["tets"][:, 0]] for k in (1, 2)]),
                   data["rest"][data["tets"][:, 3]] - data["rest"][data["tets"][:, 0]]) / 6
check(abs(volume.sum() - 0.0625) < 1e-6 and volume.min() > 0, "npz: the tets fill the bar")
check(np.allclose(data["displacement"], data["x"] - data["rest"], atol=1e-6), "npz: displacement")
few = np.load(os.path.join(out, "few.npz"))
check(len(few["t"]) == 9 and "young" not in few and "dynamic" not in few and "v" in few, "npz: chosen frames and fields only, compressed")
check(np.array_equal(few["x"][1], data["x"][7]), "npz: every seventh frame")
cut = np.load(os.path.join(out, "cut.npz"))
check(cut["x_1"].shape[1] > cut["x"].shape[1] and len(cut["t"]) == 15 == len(cut["t_1"]), "npz: a cut gives a second set of arrays")

collection = xml.parse(os.path.join(out, "vtu", "bending_bar.pvd")).getroot().findall(".//DataSet")
check(len(collection) == frames and np.isclose(float(collection[10].get("timestep")), 0.2), "pvd: lists all frames with their times")
mesh = meshio.read(os.path.join(out, "vtu", collection[10].get("file")))
check(np.allclose(mesh.points, data["x"][10]), "vtu: points")
check(np.array_equal(mesh.cells_dict["tetra"], data["tets"]), "vtu: tets")
check(np.allclose(mesh.point_data["velocity"], data["v"][10]), "vtu: velocity per node")
check(np.allclose(mesh.cell_data_dict["energy_density"]["tetra"].ravel(), data["energy_density"][10]), "vtu: energy density per element")
check("dynamic" in mesh.point_data and "young" in mesh.cell_data, "vtu: all fields by default")
mesh = meshio.read(sorted(glob.glob(os.path.join(out, "vtu_few", "*.vtu")))[2])
check(set(mesh.point_data) == {"velocity"} and set(mesh.cell_data) == {"energy_density"}, "vtu: chosen fields only, compressed")

surface_nodes = len(np.unique(data["surface"]))
for form in ("obj", "ply"):
    files = sorted(glob.glob(os.path.join(out, form, "*." + form)))
    check(len(files) == frames, f"{form}: a file per frame")
    mesh = meshio.read(files[10])
    check(len(mesh.points) == surface_nodes and len(mesh.cells_dict["triangle"]) == len(data["surface"]), f"{form}: the surface, and no inner nodes")
    expected = data["x"][10][np.unique(data["surface"])]
    check(np.allclose(mesh.points, expected, atol=1e-6), f"{form}: positions")
    p = mesh.points[mesh.cells_dict["triangle"]]
    enclosed = np.einsum("ij,ij->i", p[:, 0], np.cross(p[:, 1], p[:, 2])).sum() / 6
    tets = data["x"][10][data["tets"]]
    filled = np.linalg.det(tets[:, 1:] - tets[:, :1]).sum() / 6
    check(abs(enclosed - filled) < 1e-5 and enclosed > 0, f"{form}: closed and turned outwards")
    before, after = (len(meshio.read(f).points) for f in sorted(glob.glob(os.path.join(out, form + "_cut", "*." + form)))[14:16])
    check(after > before, f"{form}: more nodes after the cut")
ply = meshio.read(sorted(glob.glob(os.path.join(out, "ply", "*.ply")))[10])
check("velocity_x" in ply.point_data and "dynamic" in ply.point_data, "ply: fields per vertex")
sys.exit(1 if failures else 0)
