"""What is refused, and how it is said: files that are no files, numbers that are no numbers, meshes that are too large."""

import json
import os
import resource
import socket
import unittest

from common import BAR, CommandTest, manifest, rows, untimed

TET = """$MeshFormat
2.2 0 8
$EndMeshFormat
$Nodes
4
1 0 0 0
2 0.1 0 0
3 0 0.1 0
4 0 0 0.1
$EndNodes
$Elements
1
1 4 0 %s
$EndElements
"""
LINKS = {"limber": 1, "time": {"step": 0.01, "end": 0.1}, "method": {"type": "joints"}}


class Files(CommandTest):
    def assertRefused(self, what, *args, code):
        # A reader that waits for a pipe would run into the time limit of limber().
        err = self.limber(*args, code=code).stderr
        self.assertIn(what, err)
        self.assertIn("expected an ordinary file", err)

    def test_pipes_and_devices_are_refused(self):
        os.mkfifo(self.folder / "pipe")
        os.mkfifo(self.folder / "pipe.msh")
        os.mkfifo(self.folder / "half.ele")
        (self.folder / "half.node").write_text("0 3 0 0\n")
        (self.folder / "zero.msh").symlink_to("/dev/zero")
        bar = BAR["bodies"][0]
        for command in ("check", "run"):
            scene = self.scene(bodies=[{"mesh": "pipe.msh"}], constraints=[])
            self.assertRefused(f"/bodies/0/mesh: {self.folder / 'pipe.msh'} is a pipe", command, scene, code=2)
            scene = self.scene(bodies=[{"mesh": "zero.msh"}], constraints=[])
            self.assertRefused("zero.msh is a device", command, scene, code=2)
            scene = self.scene(bodies=[{"mesh": "half.node"}], constraints=[])
            self.assertRefused("half.ele: is a pipe", command, scene, code=4)
            scene = self.scene(bodies=[{**bar, "material": {"young": {"file": "pipe"}}}])
            self.assertRefused("is a pipe", command, scene, code=2)
            scene = self.scene(base=LINKS, robots=[{"name": "r", "file": "pipe"}])
            self.assertRefused("is a pipe", command, scene, code=2)
            scene = self.scene(obstacles=[{"shape": "mesh", "mesh": "pipe"}])
            self.assertRefused("is a pipe", command, scene, code=2)
            scene = self.scene(include="pipe")
            self.assertRefused("pipe: is a pipe", command, scene, code=2)
        self.assertRefused("pipe.msh: is a pipe", "mesh", "info", "pipe.msh", code=4)
        (self.folder / "run").mkdir()
        os.mkfifo(self.folder / "run/replay.lmr")
        self.assertIn("has no replay.lmr", self.limber("view", "--no-open", "run", code=4).stderr)
        scene = self.scene()
        self.limber("run", scene, "-q", "--steps", 2)
        self.assertRefused("pipe: is a pipe", "run", scene, "--resume", "pipe", code=4)

    def test_too_large_files_are_refused_before_they_are_read(self):
        with open(self.folder / "large.msh", "wb") as f:
            f.truncate(5 << 30)  # a hole: takes no room on the disk
        err = self.limber("mesh", "info", "large.msh", code=4).stderr
        self.assertIn("large.msh: is larger than 4096 MiB, the most that is read here", err)
        err = self.limber("check", "/dev/zero", code=4).stderr
        self.assertIn("is larger than 64 MiB", err)

    def test_a_scene_may_come_through_a_pipe(self):
        scene = self.scene().read_text()
        self.assertIn("good", self.limber("check", "/dev/stdin", input=scene).stdout)

    def test_empty_scenes(self):
        (self.folder / "empty.json").write_text("")
        (self.folder / "blank.json").write_text("\n  \n")
        for name in ("empty", "blank"):
            err = self.limber("check", f"{name}.json", code=2).stderr
            self.assertIn(f"{name}.json:1: the file is empty; a scene is an object", err)
        scene = self.scene(include="empty.json")
        self.assertIn("the file is empty", self.limber("check", scene, code=2).stderr)

    def test_planar_tetgen_meshes(self):
        (self.folder / "plane.node").write_text("3 2 0 0\n1 0 0\n2 1 0\n3 0 1\n")
        (self.folder / "plane.ele").write_text("1 3 0\n1 1 2 3\n")
        err = self.limber("mesh", "info", "plane.node", code=2).stderr
        self.assertIn("plane.node:1: found 2 as the dimension, expected 3", err)


class Meshes(CommandTest):
    def test_inverted_tets_are_turned_with_a_notice(self):
        (self.folder / "good.msh").write_text(TET % "1 2 3 4")
        (self.folder / "bad.msh").write_text(TET % "2 1 3 4")
        scene = self.scene(bodies=[{"mesh": "bad.msh"}], constraints=[])
        self.assertIn("bad.msh: turned 1 tet that was inverted", self.limber("check", scene).stdout)
        self.assertIn("bad.msh: turned 1 tet that was inverted", self.limber("run", scene, "--steps", 1).stderr)
        self.assertIn("turned 1 tet", (self.folder / "out/bar/log.txt").read_text())
        info = self.limber("mesh", "info", "bad.msh").stdout
        self.assertRegex(info, "note: 1 tet inverted.*; turned when the mesh is used")
        self.assertNotIn("turned", self.limber("check", self.scene(bodies=[{"mesh": "good.msh"}], constraints=[])).stdout)

    def test_size_is_estimated_before_it_is_made(self):
        # 60^3 nodes cut into eight four times: 5e9 elements. Memory is limited to far less than they need.
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))

        bar = {"shape": "bar", "size": [1, 1, 1], "nodes": [60, 60, 60]}
        scene = self.scene(bodies=[{"mesh": bar, "refine": 4}], constraints=[])
        err = self.limber("check", scene, "--threads", 1, code=2, preexec_fn=limit).stderr
        self.assertRegex(err, r"bar.json: /bodies/0/refine: the scene would have about 5e\+09 elements")
        bar["nodes"] = [1000, 1000, 1000]
        err = self.limber("check", self.scene(bodies=[{"mesh": bar}], constraints=[]), "--threads", 1, code=2,
                          preexec_fn=limit).stderr
        self.assertRegex(err, r"/bodies/0/mesh: the scene would have about 6e\+09 elements")
        ball = {"shape": "sphere", "radius": 1, "edge": 1e-4}
        err = self.limber("check", self.scene(bodies=[{"mesh": ball}], constraints=[]), "--threads", 1, code=2,
                          preexec_fn=limit).stderr
        self.assertIn("/bodies/0/mesh: the scene would have about", err)

    def test_negative_poisson(self):
        scene = self.folder / "auxetic.json"
        scene.write_text('{"limber": 1,\n "bodies": [{"mesh": {"shape": "box"}, "material": {\n  "poisson": -0.2}}]}')
        err = self.limber("check", scene, code=2).stderr
        self.assertIn('auxetic.json:3: /bodies/0/material/poisson: expected a number in [0, 0.5) for the model '
                      '"stable-neo-hookean", found -0.2', err)
        for model in ("stable-neo-hookean-log", "corotational", "arap", "st-venant-kirchhoff"):
            self.assertIn(model, err)
            self.limber("run", scene, "--set", f"/bodies/0/material/model={model}", "--steps", 2, "-q",
                        "--overwrite")
        self.limber("check", scene, "--set", "/bodies/0/material/model=fixed-corotated", code=2)
        # By element, where it is a formula.
        err = self.limber("check", scene, "--set", "/bodies/0/material/poisson=0.1 - x", code=2).stderr
        self.assertIn("expected [0, 0.5)", err)
        self.limber("check", scene, "--set", "/bodies/0/material/poisson=0.1 - x", "--set",
                    "/bodies/0/material/model=corotational")

    def test_check_refuses_what_run_refuses(self):
        scene = self.scene(method={"type": "conjac", "dynamic": [{"auto": 1000}]})
        for command in ("check", "run"):
            err = self.limber(command, scene, code=2).stderr
            self.assertRegex(err, r"bar.json: /method/dynamic/0: expected at most 72, the nodes that nothing holds, "
                                  r"found 1000")
        self.assertFalse((self.folder / "out").exists())

    def test_thousands_of_bodies_without_names(self):
        cube = {"mesh": {"shape": "box", "size": [0.1, 0.1, 0.1]}}
        bodies = [{**cube, "translation": [i, 0, 0]} for i in range(4000)]
        bodies[7]["name"] = "box-3"
        out = self.limber("check", self.scene(bodies=bodies, constraints=[{"body": "box-4000", "nodes": "all"}]),
                          "--set", "/constraints/-={\"body\": \"box-3\", \"nodes\": \"all\"}").stdout
        self.assertIn("4000 bodies, 32000 nodes", out)
        # The names that are given are not given twice.
        self.assertIn("16 held nodes", out)


class Numbers(CommandTest):
    def test_numbers_of_the_command_line(self):
        scene = self.scene()
        for option, value, expected in (
                ("--until", "nan", "expected a finite number, at least 0, found nan"),
                ("--until", "inf", "expected a finite number, at least 0, found inf"),
                ("--until", "-1", "expected a finite number, at least 0, found -1"),
                ("--until", "1e300", "a run has at most 1e+12"),
                ("--steps", "99999999999999999999", "expected a whole number from 0 to 1000000000000"),
                ("--steps", "-3", "expected a whole number from 0 to 1000000000000, found -3"),
                ("--steps", "2.5", "found 2.5"),
                ("--threads", "100000", "expected a whole number from 1 to 1024, found 100000"),
                ("--threads", "0", "expected a whole number from 1 to 1024, found 0"),
                ("--every", "0", "expected a whole number from 1 to")):
            with self.subTest(option=option, value=value):
                err = self.limber("run", scene, f"{option}={value}", code=1).stderr
                self.assertIn(expected, err)
                self.assertIn(option, err)
        self.limber("check", scene, "--threads=100000", code=1)
        self.assertIn("expected a finite number more than 0, found 0",
                      self.limber("mesh", "convert", "a.msh", "b.msh", "--scale=0", code=1).stderr)
        self.assertFalse((self.folder / "out").exists())

    def test_no_run_has_more_steps_than_can_be_counted(self):
        err = self.limber("check", self.scene(time={"step": 1e-3, "end": 1e300}), code=2).stderr
        self.assertIn("/time/end: 1e+300 s is 1e+303 steps of 0.001 s; a run has at most 1e+12", err)


class RunFolders(CommandTest):
    def test_a_refused_folder_stays_as_it_was(self):
        (self.folder / "thesis").mkdir()
        (self.folder / "thesis/chapter.tex").write_text("")
        self.assertIn("not a run", self.limber("run", self.scene(), "-o", "thesis", code=1).stderr)
        self.assertEqual(os.listdir(self.folder / "thesis"), ["chapter.tex"])
        self.limber("run", self.scene(), "-q", "--steps", 2)
        (self.folder / "out/bar/.lock").unlink()
        before = sorted(os.listdir(self.folder / "out/bar"))
        self.assertIn("another scene", self.limber("run", self.scene("other"), "-o", "out/bar", code=1).stderr)
        self.assertEqual(sorted(os.listdir(self.folder / "out/bar")), before)

    def test_manifests_of_the_wrong_form(self):
        scene = self.scene()
        self.limber("run", scene, "-q", "--steps", 20)
        file = self.folder / "out/bar/run.json"
        good = json.loads(file.read_text())
        for key, value in (("status", 3), ("scene_file", []), ("steps", "many"), ("target_steps", {}), ("resumed", 3),
                           ("started", 5), ("wall_s", "x"), ("fallbacks", 3)):
            with self.subTest(key=key):
                file.write_text(json.dumps({**good, "status": "running", key: value}))
                err = self.limber("run", scene, "-q", code=1).stderr
                self.assertRegex(err, "another scene|unfinished")
                self.limber("run", scene, "-q", "--resume", "--steps", 21)
        for text in ("", "[]", "3", "{", "\xff"):
            with self.subTest(text=text):
                file.write_text(text)
                self.assertIn("another scene (unknown)", self.limber("run", scene, "-q", code=1).stderr)
                self.limber("run", scene, "-q", "--resume", "--steps", 21)

    def test_damaged_rows_are_dropped_on_resume(self):
        scene = self.scene()
        self.limber("run", scene, "-q", "--steps", 20)
        file = self.folder / "out/bar/steps.csv"
        lines = file.read_bytes().split(b"\n")
        lines[6] = lines[6][:10] + b"\x00\x81x" + lines[6][13:]
        lines[9] = lines[9].replace(b",", b";", 1)
        file.write_bytes(b"\n".join(lines))
        err = self.limber("run", scene, "--resume").stderr
        self.assertIn("steps.csv: 2 damaged rows were removed", err)
        self.assertNotIn(b"\x00", file.read_bytes())
        self.assertEqual([int(r["step"]) for r in rows(self.folder / "out/bar")],
                         [s for s in range(61) if s not in (5, 8)])
        # Going on once more loses nothing more.
        self.limber("run", scene, "-q", "--resume", "--until", 0.14)
        self.assertEqual(len(rows(self.folder / "out/bar")), 69)

    def test_counts_are_the_same_after_a_resume(self):
        for solver in ("hybrid-l0", "qlb", "auto"):
            scene = self.scene(solver, method={"type": "implicit", "solver": solver},
                               output={"every": 20, "checkpoint_every": 7})
            self.limber("run", scene, "-q", "-o", f"{solver}-whole", "--steps", 30)
            for steps in (3, 15, 22, 30):
                self.limber("run", scene, "-q", "-o", f"{solver}-parts", "--resume", "--steps", steps)
            whole, parts = (untimed(self.folder / f"{solver}-{name}") for name in ("whole", "parts"))
            for row in whole + parts:
                del row["analyses"]  # so far, by this process
            self.assertEqual(whole, parts)

    def test_fallbacks_are_summed_up_at_the_end(self):
        # A tenth of a second for a bar that swings faster than that, with few iterations: the step is halved.
        scene = self.scene(time={"step": 0.1, "end": 0.3}, gravity=[0, -200, 0],
                           method={"type": "implicit", "max_iterations": 5, "max_halvings": 8,
                                   "solver": "newton-direct"},
                           output={"checkpoint_every": 1})
        out = self.limber("run", scene).stdout
        found = manifest(self.folder / "out/bar")["fallbacks"]
        self.assertGreater(found["halved_step"], 0)
        counted = {}
        for row in rows(self.folder / "out/bar"):
            for item in filter(None, row["fallbacks"].split(";")):
                name, count = item.split(":")
                counted[name] = counted.get(name, 0) + int(count)
        self.assertEqual(found, counted)
        self.assertIn(f"fallbacks: {', '.join(f'{n} {c}' for n, c in sorted(counted.items()))} (log.txt", out)
        self.limber("run", scene, "-q", "-o", "parts", "--steps", 2)
        again = json.loads(self.limber("run", scene, "-o", "parts", "--resume", "--json").stdout)
        self.assertEqual(again["fallbacks"], counted)
        self.assertNotIn("fallbacks:", self.limber("run", self.scene("plain"), "--steps", 2).stdout)

    def test_obstacles_without_a_name_are_called_by_their_shape(self):
        # Nodes move 2 m in a step, through a plate of 1 cm.
        plate = {"shape": "box", "point": [0.1, -1, 0], "size": [9, 0.01, 9]}
        scene = self.scene(constraints=[], time={"step": 0.01, "end": 0.02}, obstacles=[plate, plate],
                           bodies=[{**BAR["bodies"][0], "velocity": [0, -200, 0]}])
        err = self.limber("run", scene).stderr
        self.assertIn('obstacle "box"', err)
        self.assertIn('obstacle "box-2"', err)
        self.assertNotIn('obstacle ""', err)


class Serve(CommandTest):
    def test_only_run_folders_are_served(self):
        err = self.limber("view", "/etc", "--serve", "--no-open", code=4).stderr
        self.assertIn("/etc: is not the output folder of a run", err)

    def test_silent_connections_do_not_keep_a_page_out(self):
        self.limber("run", self.scene(), "-q", "--steps", 2)
        server = self.start("view", "out/bar", "--serve", "--no-open")
        address = server.stdout.readline().split()[-1]
        host, port = address.split("/")[2].split(":")
        silent = []
        try:
            for _ in range(40):
                silent.append(socket.create_connection((host, int(port)), timeout=5))
            with socket.create_connection((host, int(port)), timeout=5) as page:
                page.sendall(f"GET {address[address.index(port) + len(port):]} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
                self.assertTrue(page.recv(100).startswith(b"HTTP/1.1 200"))
        finally:
            for s in silent:
                s.close()

    def test_a_page_that_does_not_read_does_not_keep_others_waiting(self):
        self.limber("run", self.scene(), "-q", "--steps", 2)
        server = self.start("view", "out/bar", "--serve", "--no-open")
        address = server.stdout.readline().split()[-1]
        host, port = address.split("/")[2].split(":")
        request = f"GET {address[address.index(port) + len(port):]} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()
        lazy = []
        try:
            for _ in range(4):
                lazy.append(socket.socket())
                lazy[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # far less than the page
                lazy[-1].connect((host, int(port)))
                lazy[-1].sendall(request)
            # One after the other they would keep it busy for twenty seconds.
            with socket.create_connection((host, int(port)), timeout=5) as page:
                page.sendall(request)
                page.settimeout(5)
                text = b""
                while piece := page.recv(1 << 16):
                    text += piece
            self.assertTrue(text.rstrip().endswith(b"</html>"))
        finally:
            for s in lazy:
                s.close()


if __name__ == "__main__":
    unittest.main()
