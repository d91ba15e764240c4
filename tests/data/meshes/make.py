#!/usr/bin/env python3
"""Makes the mesh files in this folder with programs that know nothing of Limber. See README.md.

Needs the Debian packages gmsh, tetgen, python3-meshio and python3-vtk9; run in this folder."""
import subprocess

import meshio
import numpy as np
import vtk


def gmsh(*options):
    subprocess.run(["gmsh", "-v", "2", *options], check=True)


# Gmsh itself.
for name, fmt, binary in (("gmsh22_text", "msh22", 0), ("gmsh22_binary", "msh22", 1), ("gmsh40_text", "msh40", 0),
                          ("gmsh41_text", "msh41", 0), ("gmsh41_binary", "msh41", 1)):
    gmsh("solid.geo", "-3", "-format", fmt, *(["-bin"] if binary else []), "-o", name + ".msh")
gmsh("solid.geo", "-3", "-order", "2", "-format", "msh41", "-o", "gmsh41_order2.msh")
gmsh("solid.geo", "-2", "-format", "msh41", "-bin", "-o", "gmsh41_surface.msh")
gmsh("solid.geo", "-3", "-format", "mesh", "-o", "gmsh.mesh")
gmsh("solid.geo", "-3", "-format", "vtk", "-o", "gmsh_text.vtk")
gmsh("solid.geo", "-3", "-format", "vtk", "-bin", "-o", "gmsh_binary.vtk")
open("cube.geo", "w").write('SetFactory("OpenCASCADE"); Box(1) = {0, 0, 0, 1, 1, 1};\n'
                            "Mesh.MeshSizeMin = 1; Mesh.MeshSizeMax = 1;\n")
gmsh("cube.geo", "-2", "-format", "stl", "-o", "gmsh_text.stl")
gmsh("cube.geo", "-2", "-format", "stl", "-bin", "-o", "gmsh_binary.stl")
gmsh("cube.geo", "-2", "-format", "msh22", "-o", "cube_surface.msh")

# meshio, from Gmsh's mesh: tets only, with a number per cell and a vector per point.
source = meshio.read("gmsh41_text.msh")
tets = np.vstack([c.data for c in source.cells if c.type == "tetra"])
region = np.concatenate([source.cell_data["gmsh:physical"][i] for i, c in enumerate(source.cells) if c.type == "tetra"])
solid = meshio.Mesh(source.points, [("tetra", tets)], cell_data={"region": [region.astype(np.int32)]},
                    point_data={"position": source.points})
meshio.write("meshio_text.vtu", solid, binary=False)
meshio.write("meshio_plain.vtu", solid, compression=None)
meshio.write("meshio_zlib.vtu", solid, compression="zlib")
for binary in (False, True):
    meshio.write("meshio_%s.vtk" % ("binary" if binary else "text"), solid, file_format="vtk42", binary=binary)
medit = meshio.Mesh(source.points, [("tetra", tets)], cell_data={"medit:ref": [region]})
meshio.write("meshio.mesh", medit)
meshio.write("meshio.node", meshio.Mesh(source.points, [("tetra", tets)]))
surface = meshio.read("cube_surface.msh")
triangles = np.vstack([c.data for c in surface.cells if c.type == "triangle"])
cube = meshio.Mesh(surface.points, [("triangle", triangles)])
meshio.write("meshio.obj", cube)
meshio.write("meshio.off", cube)
meshio.write("meshio_text.ply", cube, binary=False)
meshio.write("meshio_binary.ply", cube, binary=True)

# VTK.
grid = vtk.vtkUnstructuredGrid()
points = vtk.vtkPoints()
points.SetDataTypeToDouble()
for p in source.points:
    points.InsertNextPoint(*p)
grid.SetPoints(points)
for t in tets:
    ids = vtk.vtkIdList()
    for v in t:
        ids.InsertNextId(int(v))
    grid.InsertNextCell(vtk.VTK_TETRA, ids)
number = vtk.vtkDoubleArray()
number.SetName("region")
for r in region:
    number.InsertNextValue(float(r))
grid.GetCellData().AddArray(number)
for name, mode, compress, order, header in (
        ("vtk_text", "ascii", False, "little", 32), ("vtk_inline", "binary", False, "little", 32),
        ("vtk_inline_zlib", "binary", True, "little", 64), ("vtk_raw", "appended", False, "little", 64),
        ("vtk_raw_zlib", "appended", True, "big", 32), ("vtk_base64", "append64", False, "big", 64),
        ("vtk_base64_zlib", "append64", True, "little", 32)):
    w = vtk.vtkXMLUnstructuredGridWriter()
    w.SetInputData(grid)
    w.SetFileName(name + ".vtu")
    {"ascii": w.SetDataModeToAscii, "binary": w.SetDataModeToBinary, "appended": w.SetDataModeToAppended,
     "append64": w.SetDataModeToAppended}[mode]()
    w.SetEncodeAppendedData(mode == "append64")
    w.SetCompressorTypeToZLib() if compress else w.SetCompressorTypeToNone()
    w.SetByteOrderToBigEndian() if order == "big" else w.SetByteOrderToLittleEndian()
    w.SetHeaderTypeToUInt32() if header == 32 else w.SetHeaderTypeToUInt64()
    w.Write()
for binary in (False, True):
    w = vtk.vtkUnstructuredGridWriter()
    w.SetInputData(grid)
    w.SetFileName("vtk_%s.vtk" % ("binary" if binary else "text"))
    w.SetFileTypeToBinary() if binary else w.SetFileTypeToASCII()
    w.Write()
poly = vtk.vtkPolyData()
corners = vtk.vtkPoints()
for p in surface.points:
    corners.InsertNextPoint(*p)
poly.SetPoints(corners)
faces = vtk.vtkCellArray()
for t in triangles:
    faces.InsertNextCell(3)
    for v in t:
        faces.InsertCellPoint(int(v))
poly.SetPolys(faces)
for order in ("big", "little"):
    w = vtk.vtkPLYWriter()
    w.SetInputData(poly)
    w.SetFileName("vtk_%s.ply" % order)
    w.SetDataByteOrderToBigEndian() if order == "big" else w.SetDataByteOrderToLittleEndian()
    w.SetFileTypeToBinary()
    w.Write()
w = vtk.vtkPolyDataWriter()
w.SetInputData(poly)
w.SetFileName("vtk_polydata.vtk")
w.SetFileTypeToBinary()
w.Write()

# TetGen, from the cube's surface; numbers start at 1.
with open("tetgen.smesh", "w") as f:
    f.write("%d 3 0 0\n" % len(surface.points))
    for i, p in enumerate(surface.points):
        f.write("%d %g %g %g\n" % (i + 1, *p))
    f.write("%d 1\n" % len(triangles))
    for t in triangles:
        marker = 5 if all(surface.points[t][:, 0] == 0) else 3
        f.write("3 %d %d %d %d\n" % (t[0] + 1, t[1] + 1, t[2] + 1, marker))
    f.write("0\n1\n1 0.5 0.5 0.5 11 0\n")
subprocess.run(["tetgen", "-pq1.4AQ", "tetgen.smesh"], check=True)
for part in ("node", "ele", "face"):
    subprocess.run(["mv", "tetgen.1." + part, "tetgen." + part], check=True)
subprocess.run("rm -f tetgen.smesh tetgen.1.* cube.geo cube_surface.msh", shell=True, check=True)
