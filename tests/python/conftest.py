"""What the tests of the Python module share."""

import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMBER = os.environ["LIMBER"]
os.environ["LIMBER_CACHE"] = ""  # what methods prepare is made again, and left nowhere

BAR = {
    "limber": 1,
    "name": "bar",
    "time": {"step": 0.005, "end": 0.1},
    "bodies": [{"name": "bar", "mesh": {"shape": "bar", "size": [0.2, 0.05, 0.05], "nodes": [9, 3, 3]},
                "material": {"young": 5e4}}],
    "constraints": [{"nodes": {"set": "x0"}}],
}


@pytest.fixture
def bar():
    return json.loads(json.dumps(BAR))


@pytest.fixture
def command(tmp_path):
    """Runs the command in a folder of its own."""
    def run(*args, code=0):
        done = subprocess.run([LIMBER, *map(str, args)], cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout
    return run
