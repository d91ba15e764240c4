"""What the command-line tests share: running limber as a user would, and reading what it leaves behind."""

import csv
import json
import os
import pathlib
import subprocess
import tempfile
import time
import unittest

LIMBER = os.environ["LIMBER"]
ROOT = pathlib.Path(__file__).resolve().parents[2]

# A bar that swings; small enough that hundreds of steps take a second.
BAR = {
    "limber": 1,
    "time": {"step": 0.002, "end": 0.12},
    "bodies": [{"name": "bar", "mesh": {"shape": "bar", "size": [0.2, 0.05, 0.05], "nodes": [9, 3, 3]},
                "material": {"young": 5e4}}],
    "constraints": [{"nodes": {"set": "x0"}}],
    "output": {"every": 4, "checkpoint_every": 10, "vtu": True},
}


class CommandTest(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory(prefix="limber-cli-")
        self.addCleanup(self._folder.cleanup)
        self.folder = pathlib.Path(self._folder.name)

    def scene(self, name="bar", base=BAR, **changes):
        scene = json.loads(json.dumps(base))
        scene.update(changes)
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(scene, indent=1))
        return path

    def limber(self, *args, code=0, **options):
        done = subprocess.run([LIMBER, *map(str, args)], cwd=self.folder, capture_output=True, text=True,
                              timeout=300, **options)
        if code is not None:
            self.assertEqual(done.returncode, code,
                             f"limber {' '.join(map(str, args))}\n--- stdout\n{done.stdout}\n--- stderr\n{done.stderr}")
        return done

    def start(self, *args, **options):
        process = subprocess.Popen([LIMBER, *map(str, args)], cwd=self.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, **options)
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdout.close(), process.stderr.close()))
        return process


def wait_for(condition):
    """Until it holds; a minute is far more than anything here takes."""
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("waited for a minute")
        time.sleep(0.02)


def rows(folder):
    with open(folder / "steps.csv", newline="") as f:
        return list(csv.DictReader(f))


def untimed(folder):
    """The rows without the columns that no two runs share."""
    return [{k: v for k, v in row.items() if not k.endswith("_ms")} for row in rows(folder)]


def manifest(folder):
    return json.loads((folder / "run.json").read_text())


def files(folder, pattern):
    return {p.name: p.read_bytes() for p in sorted(folder.glob(pattern))}
