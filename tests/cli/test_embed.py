"""A surface that the tetrahedra carry along: exact for affine motions, and what other programs get of it."""

import json
import math
import os
import re
import shutil
import struct
import unittest
import zlib

import numpy as np

from common import CommandTest, ROOT


def png(width=2, height=2, first=b"\xff\x00\x00"):
    """A tiny image: red, green / blue, white."""
    pixels = [first + b"\x00\xff\x00", b"\x00\x00\xff\xff\xff\xff"]
    raw = b"".join(b"\x00" + row for row in pixels)
    def chunk(tag, data):
        return struct.pack(">I", len(data)) + tag + data + struct.pack(">I", zlib.crc32(tag + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


# A box of six quads around the body (outside of it), with texture coordinates, normals and two materials, and an open flap.
POINTS = [(x, y, z) for z in (-0.01, 0.11) for y in (-0.01, 0.11) for x in (-0.01, 0.11)] + [(0.05, 0.2, 0.05)]
QUADS = [(0, 2, 3, 1), (4, 5, 7, 6), (0, 1, 5, 4), (2, 6, 7, 3), (0, 4, 6, 2), (1, 3, 7, 5)]


def write_statue(folder):
    lines = ["mtllib statue.mtl"] + ["v %g %g %g" % p for p in POINTS]
    lines += ["vt 0 0", "vt 1 0", "vt 1 1", "vt 0 1"] + [f"vn {n}" for n in ("0 0 -1", "0 0 1", "0 -1 0", "0 1 0", "-1 0 0", "1 0 0")]
    for k, quad in enumerate(QUADS):
        lines.append("usemtl " + ("painted" if k < 4 else "plain red"))
        lines.append("f " + " ".join(f"{i + 1}/{c + 1}/{k + 1}" for c, i in enumerate(quad)))
    lines += ["usemtl painted", "f 3/1/4 4/2/4 9/3/4"]
    (folder / "statue.obj").write_text("\n".join(lines) + "\n")
    (folder / "statue.mtl").write_text("newmtl painted\nKd 1 1 1\nmap_Kd colours.png\nnewmtl plain red\nKd 0.8 0.1 0.1\n")
    (folder / "colours.png").write_bytes(png())


class Embed(CommandTest):
    BODY = {"name": "box", "mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "nodes": [3, 3, 3]}, "embed": "statue.obj"}
    ANGLE, SHIFT, SCALE = 0.7, (0.02, -0.03, 0.05), 1.2

    def affine(self):
        write_statue(self.folder)
        key = {"t": 0.1, "rotation": [0, 0, self.ANGLE], "translation": list(self.SHIFT), "scale": self.SCALE}
        path = self.scene("affine", base={"limber": 1}, time={"step": 0.02, "end": 0.1}, gravity=[0, 0, 0],
                          method={"type": "static"}, bodies=[self.BODY],
                          constraints=[{"nodes": "all", "motion": [{"t": 0}, key], "interpolation": "linear"}])
        self.limber("run", path, "-q", "-o", "run")

    def moved(self, p):
        c, s = math.cos(self.ANGLE), math.sin(self.ANGLE)
        x = (self.SCALE * (c * p[0] - s * p[1]), self.SCALE * (s * p[0] + c * p[1]), self.SCALE * p[2])
        return [a + b for a, b in zip(x, self.SHIFT)]

    def compare(self, points, tolerance=1e-6):
        self.assertEqual(len(points), len(POINTS))
        for found, rest in zip(points, POINTS):
            for a, b in zip(found, self.moved(rest)):
                self.assertAlmostEqual(a, b, delta=tolerance)

    def test_affine_motions_carry_it_exactly_into_every_format(self):
        self.affine()
        # OBJ: the same points, faces, texture coordinates, materials and image.
        self.limber("export", "run", "--format", "obj")
        lines = (self.folder / "run" / "obj" / "affine_000005.obj").read_text().splitlines()
        self.compare([list(map(float, l.split()[1:])) for l in lines if l.startswith("v ")])
        faces = [[c.split("/") for c in l.split()[1:]] for l in lines if l.startswith("f ")]
        self.assertEqual([c[:2] for c in faces[0]], [["1", "1"], ["3", "2"], ["4", "3"], ["2", "4"]])
        # Normals of where it is now: the faces are flat, and the file's normals keep them apart (but for the flap).
        points = np.array([list(map(float, l.split()[1:])) for l in lines if l.startswith("v ")])
        normals = np.array([list(map(float, l.split()[1:])) for l in lines if l.startswith("vn ")])
        for face in faces[:3] + faces[4:6]:
            a, b, c = (points[int(corner[0]) - 1] for corner in face[:3])
            across = np.cross(b - a, c - a)
            for corner in face:
                self.assertGreater(normals[int(corner[2]) - 1] @ across / np.linalg.norm(across), 0.999)
        self.assertEqual([len(f) for f in faces], [4] * 6 + [3])
        self.assertEqual((self.folder / "run" / "obj" / "colours.png").read_bytes(), png())
        self.assertIn("map_Kd colours.png", (self.folder / "run" / "obj" / "affine.mtl").read_text())

        # PC2 and MDD, read back.
        self.limber("export", "run", "--format", "pc2")
        data = (self.folder / "run" / "run.pc2").read_bytes()
        magic, version, count, start, rate, samples = struct.unpack_from("<12siiffi", data)
        self.assertEqual((magic, version, count, start, rate, samples), (b"POINTCACHE2\0", 1, 9, 0, 1, 6))
        self.assertEqual(len(data), 32 + 12 * count * samples)
        last = struct.unpack_from(f"<{3 * count}f", data, 32 + 12 * count * (samples - 1))
        self.compare([last[k:k + 3] for k in range(0, len(last), 3)])
        self.limber("export", "run", "--format", "mdd")
        data = (self.folder / "run" / "run.mdd").read_bytes()
        frames, points = struct.unpack_from(">ii", data)
        self.assertEqual((frames, points), (6, 9))
        times = struct.unpack_from(f">{frames}f", data, 8)
        self.assertAlmostEqual(times[-1], 0.1, 6)
        last = struct.unpack_from(f">{3 * points}f", data, 8 + 4 * frames + 12 * points * (frames - 1))
        self.compare([last[k:k + 3] for k in range(0, len(last), 3)])

        # PLY: polygons.
        self.limber("export", "run", "--format", "ply")
        header = (self.folder / "run" / "ply" / "affine_000005.ply").read_bytes().split(b"end_header\n")
        self.assertIn(b"element face 7", header[0])
        flat = struct.unpack_from("<27f", header[1])
        self.compare([flat[k:k + 3] for k in range(0, 27, 3)])

        # glTF: texture coordinates, the image, a primitive for each material.
        self.limber("export", "run", "--format", "glb")
        glb = (self.folder / "run" / "run.glb").read_bytes()
        length = struct.unpack_from("<I", glb, 12)[0]
        gltf = json.loads(glb[20:20 + length])
        self.assertEqual(gltf["images"][0]["mimeType"], "image/png")
        view = gltf["bufferViews"][gltf["images"][0]["bufferView"]]
        begin = 20 + length + 8 + view["byteOffset"]
        self.assertEqual(glb[begin:begin + view["byteLength"]], png())
        primitives = gltf["meshes"][0]["primitives"]
        self.assertEqual(len(primitives), 2)
        self.assertTrue(all("TEXCOORD_0" in p["attributes"] for p in primitives))
        painted = [m for m in gltf["materials"] if m["name"] == "painted"][0]
        self.assertIn("baseColorTexture", painted["pbrMetallicRoughness"])
        # The page has the image too.
        self.assertIn("data:image/png;base64," , (self.folder / "run" / "index.html").read_text())

    def test_a_cut_takes_the_faces_that_it_goes_through(self):
        write_statue(self.folder)
        path = self.scene("cut", base={"limber": 1}, time={"step": 0.01, "end": 0.06}, gravity=[0, 0, 0],
                          method={"type": "vanilla"}, bodies=[self.BODY], output={"every": 1},
                          constraints=[{"nodes": {"set": end}, "interpolation": "linear",
                                        "motion": [{"t": 0}, {"t": 0.06, "translation": [way, 0, 0]}]}
                                       for end, way in (("x0", -0.02), ("x1", 0.02))],
                          events=[{"time": 0.03, "point": [0.05, 0, 0], "normal": [1, 0, 0]}])
        self.limber("run", path, "-q", "-o", "run")
        self.limber("export", "run", "--format", "obj")
        self.limber("export", "run", "--format", "glb")
        for frame, expected in ((0, 7), (2, 7), (4, 2), (6, 2)):  # the ends of the box are left
            lines = (self.folder / "run" / "obj" / f"cut_{frame:06}.obj").read_text().splitlines()
            faces = [l for l in lines if l.startswith("f ")]
            points = [[float(w) for w in l.split()[1:]] for l in lines if l.startswith("v ")]
            self.assertEqual((len(faces), len(points)), (expected, len(POINTS)), frame)
            for face in faces:  # none is stretched between the halves
                side = np.array([points[int(w.split("/")[0]) - 1] for w in face.split()[1:]])
                if expected == 2:
                    self.assertLess(np.ptp(side[:, 0]), 0.02)
        self.assertGreater(max(p[0] for p in points) - min(p[0] for p in points), 0.12 + 0.02)

    def test_a_page_without_the_inside_still_carries_it(self):
        self.affine()
        self.limber("view", "run", "-o", "small.html", "--no-open", "--no-inside")
        self.assertIn("data:image/png", (self.folder / "small.html").read_text())

    def test_says_what_is_wrong(self):
        write_statue(self.folder)
        def problem(text=None, **body):
            if text is not None:
                (self.folder / "statue.obj").write_text(text)
            scene = self.scene("bad", base={"limber": 1}, bodies=[{**self.BODY, **body}])
            return self.limber("run", scene, "-q", code=None).stderr
        self.assertIn("nowhere.obj", problem(embed="nowhere.obj"))
        self.assertIn("statue.obj:5", problem("v 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nf 1 2 4\n"))
        self.assertIn("texture coordinate 3", problem("v 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nf 1/1 2/1 3/3\n"))
        self.assertIn("at least 3", problem("v 0 0 0\nv 1 0 0\nf 1 2\n"))
        self.assertIn("no faces", problem("v 0 0 0\nv 1 0 0\n"))
        self.assertIn("needs a body of tetrahedra",
                      problem("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", mesh={"shape": "rectangle", "size": [1, 1], "nodes": [3, 3]}))

    def test_missing_materials_are_told_and_do_no_harm(self):
        write_statue(self.folder)
        (self.folder / "colours.png").write_text("no image")
        scene = self.scene("odd", base={"limber": 1}, time={"end": 0.01}, bodies=[{**self.BODY, "translation": [5, 0, 0]}])
        self.limber("run", scene, "-q", "-o", "odd")
        self.assertIn("neither PNG nor JPEG", (self.folder / "odd" / "log.txt").read_text())
        (self.folder / "statue.mtl").unlink()
        self.limber("run", scene, "-q", "-o", "odd")
        self.assertIn("plain colour", (self.folder / "odd" / "log.txt").read_text())

    def test_sheets_become_bodies(self):
        """A flat square, a ball without its upper third, and a ball with a fin: the surface is near the tets everywhere."""
        def write(name, points, faces):
            text = [f"v {x} {y} {z}" for x, y, z in points] + ["f " + " ".join(str(i + 1) for i in f) for f in faces]
            (self.folder / name).write_text("\n".join(text) + "\n")
        n = 12
        sheet = [(i / n - 0.5, 0.0, j / n - 0.5) for j in range(n + 1) for i in range(n + 1)]
        squares = [(j * (n + 1) + i, (j + 1) * (n + 1) + i, (j + 1) * (n + 1) + i + 1, j * (n + 1) + i + 1)
                   for j in range(n) for i in range(n)]
        ball, rings = [], []
        for j in range(13):
            for i in range(24):
                a, b = np.pi * j / 12, 2 * np.pi * i / 24
                ball.append((0.3 * np.sin(a) * np.cos(b), 0.3 * np.cos(a), 0.3 * np.sin(a) * np.sin(b)))
        for j in range(12):
            for i in range(24):
                k = (i + 1) % 24
                rings.append((24 * j + i, 24 * j + k, 24 * j + 24 + k, 24 * j + 24 + i))
        write("sheet.obj", sheet, squares)
        write("cup.obj", ball, rings[24 * 4:])
        write("fin.obj", ball + sheet, rings + [tuple(len(ball) + i for i in f) for f in squares])
        self.assertIn("--thin", self.limber("mesh", "tet", "sheet.obj", "-o", "no.msh", "--wrap", code=2).stderr)
        for name in ["sheet", "cup", "fin"]:
            with self.subTest(surface=name):
                done = self.limber("jelly", f"{name}.obj", "-q", "--vertices", 400, "--seconds", 0.05)
                self.assertNotIn("does the surface belong", (self.folder / "jelly" / name / "run" / "log.txt").read_text())
                self.assertIn("index.html", done.stdout)

    def test_materials_and_images_of_the_same_name_stay_apart(self):
        """As `usemtl` names them, in the .mtl with one entry each, and every image with its own bytes."""
        images = {name: png(first=bytes([k, 9, 9])) for k, name in enumerate(["A", "B", "C"])}
        for name, image in images.items():
            (self.folder / name).mkdir()
            (self.folder / name / "color.png").write_bytes(image)
        # The third one has the image of the first once more.
        wanted = {"m a": "A", "m_a": "B", "M_A": "A", "plain": "B"}
        (self.folder / "s.mtl").write_text("".join(f"newmtl {m}\nmap_Kd {i}/color.png\n" for m, i in wanted.items()))
        corners = "v 0 0 0\nv .1 0 0\nv 0 .1 0\nvt 0 0\nvt 1 0\nvt 0 1\n"
        face = "f 1/1 2/2 3/3\n"
        (self.folder / "s.obj").write_text("mtllib s.mtl\n" + corners + face + "".join(f"usemtl {m}\n{face}" for m in wanted))
        (self.folder / "t.mtl").write_text("newmtl m_a\nmap_Kd C/color.png\n")
        (self.folder / "t.obj").write_text("mtllib t.mtl\n" + corners + "usemtl m_a\n" + face)

        def of_faces(text, folder):
            """The images of an .obj's faces, in their order."""
            library = (folder / re.search(r"mtllib (\S+)", text)[1]).read_text()
            names = re.findall(r"newmtl (\S+)", library)
            self.assertEqual(len(names), len(set(names)), library)
            image = dict(re.findall(r"newmtl (\S+)\nKd [^\n]*\nmap_Kd (\S+)", library))
            return [(folder / image[n]).read_bytes() if n in image else None for n in re.findall(r"usemtl (\S+)", text)]

        def exported(name, *args):
            self.limber("export", "run", "--format", "obj", "-o", name, "--last", 0, *args)
            return [of_faces(p.read_text(), self.folder / name) for p in sorted((self.folder / name).glob("*.obj"))]
        first, second = [None, *(images[i] for i in wanted.values())], [images["C"]]
        other = {**self.BODY, "name": "other", "embed": "t.obj", "translation": [0.3, 0, 0]}
        for bodies, args, expected in [([{**self.BODY, "embed": "s.obj"}], [], [first]),
                                       ([{**self.BODY, "embed": "s.obj"}, other], [], [first + second]),
                                       ([{**self.BODY, "embed": "s.obj"}, other], ["--each-body"], [first, second])]:
            with self.subTest(bodies=len(bodies), args=args):
                path = self.scene("two", base={"limber": 1}, time={"step": 0.01, "end": 0.01}, bodies=bodies)
                self.limber("run", path, "-q", "-o", "run", "--overwrite")
                self.assertEqual(exported(f"out{len(bodies)}{len(args)}", *args), expected)
        self.assertEqual(len(list((self.folder / "out10").glob("*.png"))), 2)  # the same image is written once

    def test_another_surface_is_noticed(self):
        write_statue(self.folder)
        scene = self.scene("far", base={"limber": 1}, time={"end": 0.01},
                           bodies=[{**self.BODY, "mesh": {"shape": "box", "size": [0.01, 0.01, 0.01], "nodes": [2, 2, 2]}}])
        self.limber("run", scene, "-q", "-o", "far")
        self.assertIn("does the surface belong to this mesh?", (self.folder / "far" / "log.txt").read_text())

    @unittest.skipUnless(shutil.which("tetgen"), "tetgen is not installed")
    def test_jelly_is_solid_whichever_way_its_parts_face(self):
        faces = [(1, 4, 3, 2), (5, 6, 7, 8), (1, 2, 6, 5), (2, 3, 7, 6), (3, 4, 8, 7), (4, 1, 5, 8)]
        corners = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1)]

        def box(x, turned):
            lines = [f"v {x + 0.2 * a} {0.2 * b} {0.2 * c}" for a, b, c in corners]
            for k, face in enumerate(faces):
                lines.append("f " + " ".join(str(i - 9) for i in (face[::-1] if turned(k) else face)))
            return "\n".join(lines) + "\n"

        inwards, never, alternate = (lambda k: True), (lambda k: False), (lambda k: k % 2 == 0)
        for name, text, volume in [("inward", box(0, inwards), 0.008), ("flipped", box(0, alternate), 0.008),
                                   ("mixed", box(0, never) + box(0.3, inwards), 0.016)]:
            with self.subTest(name):
                (self.folder / f"{name}.obj").write_text(text)
                for environment in ({**os.environ, "PATH": "/nowhere"}, None):  # without and with TetGen
                    done = self.limber("jelly", f"{name}.obj", "-q", "--vertices", 600, "--seconds", 0.01,
                                       env=environment)
                    self.assertIn("turned ", done.stderr)
                    told = self.limber("mesh", "info", f"jelly/{name}/{name}.msh").stdout
                    self.assertLess(abs(float(re.search("volume ([0-9.]+)", told)[1]) / volume - 1), 0.03, told)

    def test_jelly_makes_all_of_it_in_one_command(self):
        write_statue(self.folder)
        done = self.limber("jelly", "statue.obj", "-q", "--vertices", 200, "--seconds", 0.2)
        for name in ("run/index.html", "statue.glb", "statue.json", "statue.msh"):
            self.assertTrue((self.folder / "jelly" / "statue" / name).exists(), done.stdout)
        self.limber("check", "jelly/statue/statue.json")
        self.assertIn("nothing.obj", self.limber("jelly", "nothing.obj", code=4).stderr)
        (self.folder / "empty.obj").write_text("v 0 0 0\n")
        self.assertIn("no faces", self.limber("jelly", "empty.obj", code=2).stderr)


if __name__ == "__main__":
    unittest.main()
