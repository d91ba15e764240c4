"""Run folders: what is in them, and who may replace them."""

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import unittest
import urllib.error
import urllib.request
import xml.etree.ElementTree as xml

from common import LIMBER, CommandTest, files, manifest, rows, untimed, wait_for


class Folder(CommandTest):
    def test_everything_is_there(self):
        done = self.limber("run", self.scene(output={"every": 4, "checkpoint_every": 10, "surface": True}), "--vtu")
        run = self.folder / "out/bar"
        for part in ("assemble", "factor", "results in out/bar", "index.html", "run.pvd", "p95"):
            self.assertIn(part, done.stdout)
        info = manifest(run)
        self.assertEqual(info["status"], "finished")
        self.assertEqual((info["steps"], info["target_steps"], info["frames"]), (60, 60, 16))
        for key in ("limber", "commit", "host", "kernels", "threads", "scene_hash", "started", "wall_s", "timings"):
            self.assertIn(key, info)

        table = rows(run)
        self.assertEqual([int(r["step"]) for r in table], list(range(61)))
        self.assertAlmostEqual(float(table[-1]["t"]), 0.12)
        for column in ("dofs", "contacts", "iterations", "residual", "E_kin", "E_el", "E_grav", "px", "Lz", "fallbacks",
                       "hash", "step_ms", "assemble_ms", "factor_ms", "solve_ms"):
            self.assertIn(column, table[0])
        # The bar swings down: gravity's energy goes into motion and strain.
        first, last = table[0], table[-1]
        self.assertLess(float(last["E_grav"]), float(first["E_grav"]))
        self.assertGreater(float(last["E_el"]), 0)

        steps = list(range(0, 61, 4))
        self.assertEqual(sorted(files(run, "frames/*")), [f"{s:06}.vtu" for s in steps])
        self.assertEqual(sorted(files(run, "surface/*")), [f"bar_{s:06}.ply" for s in steps])
        sets = xml.parse(run / "run.pvd").getroot().findall("./Collection/DataSet")
        self.assertEqual([d.get("file") for d in sets], [f"frames/{s:06}.vtu" for s in steps])
        self.assertAlmostEqual(float(sets[-1].get("timestep")), 0.12)
        # Only the last checkpoints are kept.
        self.assertEqual(sorted(files(run, "checkpoints/*")), ["000040.lmc", "000050.lmc", "000060.lmc"])
        self.assertIn("<html", (run / "index.html").read_text()[:2000].lower())
        self.assertIn("finished at step 60", (run / "log.txt").read_text())
        self.assertFalse(list(run.rglob("*.tmp")))

    def test_frames_are_in_the_recording_without_vtu(self):
        done = self.limber("run", self.scene(output={"every": 4}))
        run = self.folder / "out/bar"
        self.assertEqual(manifest(run)["frames"], 16)
        self.assertIn("16 frames", done.stdout)
        self.assertFalse((run / "run.pvd").exists() or (run / "frames").exists())
        self.limber("export", run, "--format", "vtu", "-o", "vtu")
        self.assertEqual(len(files(self.folder, "vtu/*.vtu")), 16)

    def test_frames_hold_the_fields(self):
        try:
            import meshio
        except ImportError:
            self.skipTest("python3-meshio is not installed")
        fields = ["displacement", "velocity", "energy_density", "volume_ratio", "mass", "force", "material"]
        self.limber("run", self.scene(output={"fields": fields, "vtu": True}), "--steps", 5, "-q")
        grid = meshio.read(self.folder / "out/bar/frames/000005.vtu")
        self.assertEqual(grid.points.shape, (81, 3))
        for name in ("displacement", "velocity", "mass", "force", "pinned"):
            self.assertIn(name, grid.point_data)
        for name in ("energy_density", "volume_ratio", "young", "body"):
            self.assertIn(name, grid.cell_data)
        self.assertAlmostEqual(float(grid.point_data["mass"].sum()), 0.2 * 0.05 * 0.05 * 1000, 5)
        self.assertEqual(int(grid.point_data["pinned"].sum()), 9)
        self.assertAlmostEqual(float(grid.cell_data["volume_ratio"][0].mean()), 1, 2)
        rest = grid.points - grid.point_data["displacement"]
        self.assertAlmostEqual(float(rest.max()), 0.2, 6)

    def test_only_the_wanted_bodies_are_written(self):
        bodies = [{"name": n, "mesh": {"shape": "box", "nodes": [2, 2, 2 + i]}, "translation": [3 * i, 0, 0]}
                  for i, n in enumerate(("left", "right"))]
        scene = self.scene(bodies=bodies, constraints=[], output={"bodies": ["right"], "surface": True, "vtu": True})
        self.limber("run", scene, "--steps", 2, "-q")
        run = self.folder / "out/bar"
        piece = xml.parse(run / "frames/000002.vtu").getroot().find("./UnstructuredGrid/Piece")
        self.assertEqual((piece.get("NumberOfPoints"), piece.get("NumberOfCells")), ("12", "12"))
        self.assertEqual(len(files(run, "surface/right_*.ply")), 3)
        self.assertFalse(files(run, "surface/left_*.ply"))

    def test_resolved_scene_runs_again_with_the_same_bits(self):
        (self.folder / "sub").mkdir()
        (self.folder / "numbers.txt").write_text("\n".join(["5e4"] * 96 + ["9e4"] * 96))
        scene = self.scene()
        data = json.loads(scene.read_text())
        data["bodies"][0]["material"]["young"] = {"file": "../numbers.txt"}
        scene = self.folder / "sub/bar.json"
        scene.write_text(json.dumps(data))
        self.limber("run", scene, "-q", "-o", "first", "--set", "/method/beta=0.7", "--steps", 20)
        self.limber("run", "first/scene.resolved.json", "-q", "-o", "second", "--steps", 20)
        self.assertEqual(untimed(self.folder / "first"), untimed(self.folder / "second"))

    def test_threads_do_not_change_a_bit(self):
        scene = self.scene()
        for n in (1, 2):
            self.limber("run", scene, "-q", "-o", f"t{n}", "--threads", n)
        self.assertEqual(untimed(self.folder / "t1"), untimed(self.folder / "t2"))
        self.assertEqual(files(self.folder / "t1", "frames/*"), files(self.folder / "t2", "frames/*"))

    def test_options(self):
        scene = self.scene()
        out = json.loads(self.limber("run", scene, "--until", 0.03, "--every", 5, "--json", "-q").stdout)
        self.assertEqual((out["status"], out["steps"], out["frames"]), ("finished", 15, 4))
        self.assertIn("step", out["timings"])
        self.assertEqual(len(out["hash"]), 16)
        again = json.loads(self.limber("run", scene, "--steps", 15, "--json").stdout)
        self.assertEqual(again["hash"], out["hash"])
        quiet = self.limber("run", scene, "-q", "--steps", 3)
        self.assertEqual((quiet.stdout, quiet.stderr), ("", ""))
        self.assertEqual(self.limber("run", scene, "--solver", "abacus", code=2).stdout, "")
        other = json.loads(self.limber("run", scene, "--json", "--solver", "native", "--steps", 15).stdout)
        self.assertEqual(other["hash"], out["hash"], "native is what auto means")

    def test_progress_is_redrawn_on_a_terminal(self):
        scene = self.scene(time={"step": 0.002, "end": 0.6})
        ours, theirs = pty.openpty()
        process = subprocess.Popen([LIMBER, "run", scene], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=theirs)
        os.close(theirs)
        text = b""
        with contextlib.suppress(OSError):  # the terminal closes with the program
            while part := os.read(ours, 65536):
                text += part
        os.close(ours)
        self.assertEqual(process.wait(timeout=120), 0)
        lines = text.decode().split("\r")
        self.assertRegex(lines[-2], r"^step 300/300  t 0\.600  [\d.e+]+ ms( \((\w+ \d+% ?)+\))?  dof \d+/243  it \d+  "
                                    r"eta 0:00\x1b\[K$")
        self.assertEqual(lines[-1], "\x1b[K", "the line is taken away at the end")

    def viewing(self, browser, *args):
        """A run with --view that finds this Python script as its browser."""
        bin = self.folder / "bin"
        bin.mkdir(exist_ok=True)
        (bin / "xdg-open").write_text(f"#!{sys.executable}\nimport json, os, sys, time, urllib.request\n"
                                      "get = lambda where: urllib.request.urlopen(where, timeout=60).read()\n"
                                      "def note(name, what):\n"
                                      f"  path = {str(self.folder)!r} + '/' + name\n"
                                      "  open(path + '.part', 'wb').write(what)\n"
                                      "  os.replace(path + '.part', path)\n"
                                      + browser)
        (bin / "xdg-open").chmod(0o755)
        return self.start("run", *args, "--view",
                          env={**os.environ, "PATH": f"{bin}:{os.environ['PATH']}", "DISPLAY": ":7"})

    # Asks for the page and then for data, as the page does, until it is told that the run is over.
    WATCH = ("note('page', get(sys.argv[1]))\n"
             "next = 0\n"
             "while True:\n"
             "  news = json.loads(get(f'{sys.argv[1]}data?since={next}'))\n"
             "  next = news['next']\n"
             "  if news['run']: times = news['run']['times']; note('times', json.dumps(times).encode())\n"
             "  if news['ended'] or (news['run'] and news['run']['finished']): break\n"
             "  time.sleep(0.05)\n"
             "note('last', json.dumps([news['ended'], news['run']['finished'], times]).encode())\n")

    def test_view_follows_the_run(self):
        process = self.viewing(self.WATCH, self.scene())
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, err)
        self.assertRegex(err, r"follow the run at http://127\.0\.0\.1:\d+/[0-9a-f]{32}/\n")
        self.assertIn("done: 60 steps", out)
        wait_for((self.folder / "last").exists)
        _, finished, times = json.loads((self.folder / "last").read_text())
        self.assertTrue(finished)
        self.assertEqual(len(times), 16)  # 60 steps, every 4th, and the start
        self.assertAlmostEqual(times[-1], 0.12)
        self.assertIn(b"<html", (self.folder / "page").read_bytes()[:2000].lower())

    def test_view_ends_with_ctrl_c(self):
        process = self.viewing(self.WATCH, self.scene(time={"step": 0.002, "end": 2000}))
        frames = lambda: len(json.loads((self.folder / "times").read_text()))
        wait_for(lambda: (self.folder / "times").exists() and frames() > 3)  # while the run is going
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("go on with: limber run", out)
        wait_for((self.folder / "last").exists)
        ended, finished, times = json.loads((self.folder / "last").read_text())
        self.assertEqual((ended, finished), (True, False))
        self.assertEqual(len(times), manifest(self.folder / "out/bar")["frames"])
        address = re.search(r"http://\S+", err)[0]
        with self.assertRaises(urllib.error.URLError):  # the server has gone with the run
            urllib.request.urlopen(address, timeout=5)

    def test_view_without_a_browser_is_no_error(self):
        for environment in ({"PATH": "/nowhere", "DISPLAY": ":7"}, {"PATH": os.environ["PATH"]}):
            kept = {k: v for k, v in os.environ.items() if k not in ("PATH", "DISPLAY", "WAYLAND_DISPLAY")}
            done = self.limber("run", self.scene(), "--steps", 2, "--overwrite", "--view", "-q",
                               env={**kept, **environment})
            self.assertRegex(done.stderr, r"^follow the run at http://127\.0\.0\.1:\d+/[0-9a-f]{32}/\n"
                                          r"no browser could be started: open this address on this machine\n$")

    def test_who_may_replace_a_run(self):
        scene = self.scene()
        self.limber("run", scene, "-q", "--steps", 3)
        # Finished, same scene: replaced, and said so.
        self.assertIn("replacing the finished run", self.limber("run", scene, "--steps", 3).stderr)
        other = self.scene("other")
        self.assertIn("another scene", self.limber("run", other, "--steps", 3, "-o", "out/bar", code=1).stderr)
        self.limber("run", other, "--steps", 3, "-o", "out/bar", "--overwrite", "-q")
        (self.folder / "papers").mkdir()
        (self.folder / "papers/thesis.tex").write_text("years of work")
        self.assertIn("thesis.tex", self.limber("run", scene, "-o", "papers", "--overwrite", code=1).stderr)
        self.assertEqual((self.folder / "papers/thesis.tex").read_text(), "years of work")

    def test_only_one_limber_writes_into_a_folder(self):
        scene = self.scene(time={"step": 0.002, "end": 1000})
        first = self.start("run", scene, "-q")
        wait_for(lambda: (self.folder / "out/bar/run.json").exists())
        self.assertIn("another limber is writing", self.limber("run", scene, "--overwrite", code=4).stderr)
        first.send_signal(signal.SIGINT)
        self.assertEqual(first.wait(timeout=120), 0)


if __name__ == "__main__":
    unittest.main()
