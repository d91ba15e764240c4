"""A real notebook, executed by Jupyter; skipped where it is not installed. Nothing of limber needs it."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("nbconvert")
pytest.importorskip("ipykernel")
nbformat = pytest.importorskip("nbformat")

CELLS = ["""
import limber
bar = limber.Mesh.box(size=(0.2, 0.05, 0.05), nodes=(9, 3, 3))
sim = limber.Simulation({"limber": 1, "name": "notebook", "time": {"step": 0.01, "end": 0.1},
                         "bodies": [{"mesh": bar}], "constraints": [{"nodes": {"set": "x0"}}]})
sim.run(steps=3, progress=True)
sim
""", """
again = limber.Simulation(sim.scene)
with again.record("run"):
    again.run()
limber.show("run")
""", "limber.load('run')", "limber.compare('run', 'run')", "limber.plot('run')"]


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notebook")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text.strip()) for text in CELLS])
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(book, folder / "book.ipynb")
    for target in (["notebook", "--output", "done.ipynb"], ["html", "--output", "done.html"]):
        environment = {k: v for k, v in os.environ.items() if k != "MPLBACKEND"}  # the notebook's own
        done = subprocess.run([sys.executable, "-m", "nbconvert", "--execute", "--to", target[0], *target[1:], "book.ipynb"],
                              cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        shutil.rmtree(folder / "run", ignore_errors=True)
    return folder


def test_cells_show_pages(executed):
    book = json.loads((executed / "done.ipynb").read_text())
    outputs = [[o for o in cell["outputs"] if o["output_type"] in ("execute_result", "display_data")] for cell in book["cells"]]
    for k, scene in ((0, "notebook"), (1, "notebook"), (2, "notebook"), (3, "run")):
        page = "".join(outputs[k][-1]["data"]["text/html"])
        assert page.startswith("<iframe srcdoc=") and scene in page, k
    assert len(outputs[4]) == 1 and "image/png" in outputs[4][0]["data"]
    errors = [o for cell in book["cells"] for o in cell["outputs"] if o["output_type"] == "error"]
    assert not errors
    # Somebody who reads the cell without HTML sees what it is.
    assert "limber.Simulation" in "".join(outputs[0][-1]["data"]["text/plain"])


def test_the_html_needs_nothing_else_of_ours(executed):
    text = (executed / "done.html").read_text()
    frames = re.findall(r"<iframe srcdoc=\"(.*?)\" width", text, re.S)
    assert len(frames) == 4 and all("limber-manifest" in f for f in frames)
