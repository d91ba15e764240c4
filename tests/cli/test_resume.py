"""A run that was stopped, however it was stopped, ends with the same bits as one that was not."""

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import time
import unittest

import numpy as np

from common import BAR, CommandTest, files, manifest, rows, untimed, wait_for

CONJAC = {**BAR, "method": {"type": "conjac", "dynamic": {"auto": 3}}}
# The mesh changes in the middle of the run, between two checkpoints and between two frames.
CUT = {**BAR, "events": [{"time": 0.05, "point": [0.1, 0, 0], "normal": [1, 0, 0]}]}


ADAPTIVE = {**BAR, "method": {"type": "conjac", "dynamic": {"auto": 3}, "adaptive": {}}}
IMPLICIT = {**BAR, "method": {"type": "implicit"}}


def fingerprint(data):
    """The checksum of a checkpoint (limber/sim/hash.cpp)."""
    mask, h = (1 << 64) - 1, 0x6C696D626572
    for at in range(0, len(data), 8):
        part = data[at:at + 8]
        word = int.from_bytes(part, "little")
        if len(part) < 8:
            word ^= (len(part) << 56) & mask
        h = ((h ^ word) * 0x9E3779B97F4A7C15) & mask
        h ^= h >> 32
    h ^= h >> 31
    h = (h * 0xBF58476D1CE4E5B9) & mask
    return h ^ (h >> 29)


def spoil(path, field, change):
    """Replaces the items of a field (bytes) and puts the checksum right."""
    data = path.read_bytes()[:-8]
    at = 24
    at += 8 + int.from_bytes(data[at:at + 8], "little")
    count, at = int.from_bytes(data[at:at + 4], "little"), at + 4
    for _ in range(count):
        size = int.from_bytes(data[at:at + 4], "little")
        name, at = data[at + 4:at + 4 + size].decode(), at + 4 + size
        kind, items = int.from_bytes(data[at:at + 4], "little"), int.from_bytes(data[at + 4:at + 12], "little")
        width = {1: 8, 2: 8, 3: 1, 4: 4}[kind]
        begin, end = at + 12, at + 12 + width * items
        if name == field:
            new = change(data[begin:end])
            data = data[:at + 4] + (len(new) // width).to_bytes(8, "little") + new + data[end:]
            path.write_bytes(data + fingerprint(data).to_bytes(8, "little"))
            return
        at = end
    raise KeyError(field)


class Resume(CommandTest):
    def test_numbers_that_do_not_fit_are_refused(self):
        """Checkpoints with a right checksum and wrong numbers: a message that names them, and never a crash."""
        minus = (-3).to_bytes(8, "little", signed=True)
        cases = [
            (BAR, "contact_pairs", lambda b: b + bytes(80)),
            (BAR, "epoch", lambda b: (1 << 62).to_bytes(8, "little")),
            (BAR, "step", lambda b: minus),
            (BAR, "x", lambda b: b[:24]),
            (BAR, "v", lambda b: b"\xff" * len(b)),
            (BAR, "events_done", lambda b: (1 << 40).to_bytes(8, "little")),
            (ADAPTIVE, "memory/liveliness_window", lambda b: b[:-8]),
            (ADAPTIVE, "memory/liveliness_steps", lambda b: minus),
            (ADAPTIVE, "memory/dynamic", lambda b: b + b"\1"),
            (IMPLICIT, "memory/v_prev", lambda b: b[:-16]),
            (IMPLICIT, "memory/coupled_nodes", lambda b: (99).to_bytes(8, "little") * 4),
            (CUT, "topology/elements", lambda b: (10**6).to_bytes(4, "little") + b[4:]),
            (CUT, "topology/node_from", lambda b: b[:-4]),
            (CUT, "topology/node_weight", lambda b: bytes(len(b))),
        ]
        for base, field, change in cases:
            with self.subTest(field=field):
                scene = self.scene(base=base)
                self.limber("run", scene, "-q", "-o", "run", "--overwrite", "--steps", 27)
                newest = max((self.folder / "run" / "checkpoints").glob("*.lmc"))
                spoil(newest, field, lambda b: b)  # the checksum is understood
                self.limber("run", scene, "-q", "-o", "run", "--steps", 28, "--resume")
                newest = max((self.folder / "run" / "checkpoints").glob("*.lmc"))
                spoil(newest, field, change)
                done = self.limber("run", scene, "-q", "-o", "run", "--steps", 30, "--resume", newest, code=2)
                self.assertIn("checkpoint", done.stderr)

    def assertSameRun(self, a, b):
        self.assertEqual(manifest(b)["status"], "finished")
        self.assertEqual(untimed(a), untimed(b))
        self.assertEqual(files(a, "frames/*"), files(b, "frames/*"))
        self.assertEqual((a / "run.pvd").read_bytes(), (b / "run.pvd").read_bytes())
        self.assertEqual(max(files(a, "checkpoints/*")), max(files(b, "checkpoints/*")))
        self.assertLessEqual(len(files(b, "checkpoints/*")), 3)
        self.assertFalse(list(b.rglob("*.tmp")))

    def whole_and_stopped(self, base, stops):
        scene = self.scene(base=base)
        self.limber("run", scene, "-q", "-o", "whole")
        for stop in stops:
            self.limber("run", scene, "-q", "-o", "parts", "--steps", stop, "--resume")
        self.limber("run", scene, "-q", "-o", "parts", "--resume")
        self.assertSameRun(self.folder / "whole", self.folder / "parts")

    def test_vanilla_in_parts(self):
        self.whole_and_stopped(BAR, [1, 10, 11, 37])

    def test_conjac_in_parts(self):
        self.whole_and_stopped(CONJAC, [5, 31])

    def test_across_a_cut(self):
        self.whole_and_stopped(CUT, [24, 26, 45])
        self.assertEqual({r["epoch"] for r in rows(self.folder / "parts")}, {"0", "1"})

    def test_the_end_is_measured_and_recorded(self):
        """Also where it is no multiple of an interval; and a run that goes on has nothing extra there."""
        output = {"every": 7, "measure_every": 5, "checkpoint_every": 10, "vtu": True, "surface": True}
        scene = self.scene(output=output)
        told = json.loads(self.limber("run", scene, "-q", "-o", "run", "--until", 0.034, "--json").stdout)
        folder = self.folder / "run"
        last = rows(folder)[-1]
        self.assertEqual((last["step"], last["hash"]), ("17", told["hash"]))
        self.assertEqual([float(last["E_kin"]), float(last["E_el"])], [told["kinetic_energy"], told["elastic_energy"]])
        self.assertEqual(list(files(folder, "frames/*")), [f"{k:06}.vtu" for k in (0, 7, 14, 17)])
        self.assertEqual((told["frames"], manifest(folder)["frames"]), (4, 4))
        self.limber("run", scene, "-q", "-o", "run", "--until", 0.034, "--resume")  # nothing to do
        self.assertEqual((rows(folder)[-1]["hash"], len(files(folder, "frames/*"))), (last["hash"], 4))
        self.limber("run", scene, "-q", "-o", "run", "--steps", 18, "--resume")
        self.assertEqual([r["hash"] != "" for r in rows(folder)[15:]], [True, False, False, True])
        self.assertEqual(list(files(folder, "frames/*")), [f"{k:06}.vtu" for k in (0, 7, 14, 18)])
        self.assertEqual(len(files(folder, "surface/*")), 4)
        self.limber("export", "run", "--format", "npz", "-o", "run.npz")
        with np.load(self.folder / "run.npz") as arrays:
            self.assertEqual(arrays["step"].tolist(), [0, 7, 14, 18])
        for base, stops in [(BAR, [1, 10, 11, 37]), (CUT, [24, 26, 45])]:
            self.whole_and_stopped({**base, "output": output}, stops)
            shutil.rmtree(self.folder / "parts")
            shutil.rmtree(self.folder / "whole")

    def test_kill_at_random_moments(self):
        for base in (BAR, CUT):
            with self.subTest(events=len(base.get("events", []))):
                scene = self.scene(base=base, time={"step": 0.002, "end": 0.4},
                                   output={"every": 3, "checkpoint_every": 7, "vtu": True})
                begin = time.monotonic()
                self.limber("run", scene, "-q", "-o", "whole", "--overwrite")
                whole = time.monotonic() - begin
                shutil.rmtree(self.folder / "killed", ignore_errors=True)
                killed = 0
                for _ in range(8):
                    process = self.start("run", scene, "-q", "-o", "killed", "--resume")
                    time.sleep(random.uniform(0.01, 0.5 * whole))
                    process.kill()
                    killed += process.wait() == -signal.SIGKILL
                self.assertGreater(killed, 0)
                self.limber("run", scene, "-q", "-o", "killed", "--resume")
                self.assertSameRun(self.folder / "whole", self.folder / "killed")

    def test_ctrl_c_saves_and_says_how_to_go_on(self):
        scene = self.scene(base=BAR, time={"step": 0.002, "end": 2000})
        process = self.start("run", scene, "-o", "stopped", "--set", "/method/beta=0.9")
        wait_for(lambda: (self.folder / "stopped/run.json").exists() and len(rows(self.folder / "stopped")) > 15)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0)
        command = next(line for line in out.splitlines() if line.startswith("go on with: "))
        stopped = manifest(self.folder / "stopped")
        self.assertEqual(stopped["status"], "interrupted")
        step = stopped["steps"]
        self.assertEqual(len(rows(self.folder / "stopped")), step + 1, "no step is lost")
        # The line is a command that works, with the same overrides.
        words = command.removeprefix("go on with: limber ").split()
        self.limber(*words, "--steps", step + 10, "-q")
        self.limber("run", scene, "-o", "whole", "-q", "--steps", step + 10, "--set", "/method/beta=0.9")
        self.assertEqual(untimed(self.folder / "whole"), untimed(self.folder / "stopped"))
        # Without --resume an unfinished run is not replaced.
        process = self.start("run", scene, "-o", "again", "-q")
        wait_for(lambda: (self.folder / "again/run.json").exists())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=120), 0)
        self.assertIn("unfinished run", self.limber("run", scene, "-o", "again", code=1).stderr)

    def test_damaged_checkpoint_falls_back(self):
        scene = self.scene()
        self.limber("run", scene, "-q", "-o", "whole")
        self.limber("run", scene, "-q", "-o", "hurt", "--steps", 33)
        newest = self.folder / "hurt/checkpoints/000033.lmc"
        data = bytearray(newest.read_bytes())
        data[len(data) // 2] ^= 1
        newest.write_bytes(data)
        done = self.limber("run", scene, "-o", "hurt", "--resume")
        self.assertIn("is damaged", done.stderr)
        self.assertIn("going on from step 30", done.stderr)
        self.assertSameRun(self.folder / "whole", self.folder / "hurt")
        # An explicit checkpoint goes back further.
        self.limber("run", scene, "-q", "-o", "hurt", "--resume", "hurt/checkpoints/000050.lmc")
        self.assertSameRun(self.folder / "whole", self.folder / "hurt")
        # And with no good one left the run begins again.
        for checkpoint in (self.folder / "hurt/checkpoints").iterdir():
            checkpoint.write_bytes(b"")
        self.assertIn("no usable checkpoint", self.limber("run", scene, "-o", "hurt", "--resume").stderr)
        self.assertSameRun(self.folder / "whole", self.folder / "hurt")

    def test_changed_scene_is_refused(self):
        self.limber("run", self.scene(), "-q", "--steps", 20)
        changed = self.scene(gravity=[0, -1, 0])
        self.assertIn("has changed since", self.limber("run", changed, "--resume", code=1).stderr)
        self.limber("run", "-q", "--resume", self.scene(), "--steps", 21)  # the order does not matter
        # A later end and other output are not a change of the motion.
        longer = self.scene(time={"step": 0.002, "end": 0.14}, output={"every": 2, "checkpoint_every": 5, "vtu": True})
        self.limber("run", longer, "--resume", "-q")
        self.assertEqual(len(rows(self.folder / "out/bar")), 71)

    def test_lost_recording_and_rows_do_not_stop_a_run(self):
        scene = self.scene()
        self.limber("run", scene, "-q", "--steps", 20)
        run = self.folder / "out/bar"
        (run / "replay.lmr").unlink()
        done = self.limber("run", scene, "--resume")
        self.assertIn("replay.lmr", done.stderr)
        self.assertEqual(manifest(run)["status"], "finished")


class FullDisk(CommandTest):
    def check_full(self, run, done):
        self.assertIn("go on with: limber run", done.stderr)
        # What was recorded is readable: whole rows, whole frames, a manifest that parses.
        self.assertTrue((run / "steps.csv").read_text().endswith("\n"))
        steps = [int(r["step"]) for r in rows(run)]
        self.assertEqual(steps, list(range(len(steps))))
        for frame in files(run, "frames/*.vtu").values():
            self.assertTrue(frame.rstrip().endswith(b"</VTKFile>"))
        self.assertEqual(manifest(run)["status"], "running")

    def test_file_size_limit(self):
        scene = self.scene()
        self.limber("run", scene, "-q", "-o", "whole")
        limit = (self.folder / "whole/steps.csv").stat().st_size // 2

        def limited():
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        # The recording is larger than steps.csv: leave it the room.
        done = self.limber("run", self.scene(output={"every": 1000, "checkpoint_every": 10}), code=4,
                           preexec_fn=limited)
        self.assertIn("File too large", done.stderr)
        self.check_full(self.folder / "out/bar", done)
        self.limber("run", self.scene(), "-q", "--resume")
        self.assertEqual(untimed(self.folder / "whole"), untimed(self.folder / "out/bar"))

    def test_small_disk(self):
        disk = self.folder / "disk"
        disk.mkdir()
        if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", disk],
                                               capture_output=True).returncode != 0:
            self.skipTest("only root can mount a small disk")
        self.addCleanup(lambda: subprocess.run(["umount", "-l", disk], check=True))
        scene = self.scene(output={"every": 1, "checkpoint_every": 5, "vtu": True})
        self.limber("run", scene, "-q", "-o", "whole")
        done = self.limber("run", scene, "-o", "disk/run", code=4)
        self.assertIn("No space left on device", done.stderr)
        self.check_full(disk / "run", done)
        subprocess.run(["mount", "-o", "remount,size=20m", disk], check=True)
        self.limber("run", scene, "-q", "-o", "disk/run", "--resume")
        self.assertEqual(untimed(self.folder / "whole"), untimed(disk / "run"))
        self.assertEqual(files(self.folder / "whole", "frames/*"), files(disk / "run", "frames/*"))


if __name__ == "__main__":
    unittest.main()
