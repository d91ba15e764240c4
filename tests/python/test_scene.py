"""Scenes from files, text, dicts and arrays."""

import json
import os

import numpy as np
import pytest

import limber
from conftest import ROOT


def test_arrays_are_the_scene_that_a_file_would_be(bar, tmp_path):
    """A mesh, materials, sets and keys from arrays: the bits of the same scene from shapes, formulas and sets."""
    plain = json.loads(json.dumps(bar))
    plain["bodies"][0]["material"] = {"young": "2e4 + 1e6 * x", "poisson": 0.3, "density": 900}
    plain["constraints"].append({"nodes": {"set": "x1"}, "until": 0.05,
                                 "motion": [{"t": 0}, {"t": 0.05, "translation": [0, 0.01, 0], "rotation": [0.4, 0, 0]}]})
    mesh = limber.Mesh.box(size=(0.2, 0.05, 0.05), nodes=(9, 3, 3))
    arrays = json.loads(json.dumps(bar))
    arrays["bodies"][0]["mesh"] = mesh
    arrays["bodies"][0]["material"] = {"young": 2e4 + 1e6 * mesh.centers[:, 0], "poisson": np.float64(0.3),
                                       "density": np.full(len(mesh.cells), 900.0)}
    arrays["constraints"] = [
        {"nodes": mesh.node_sets["x0"]},
        {"nodes": lambda x: x[:, 0] > 0.199, "until": 0.05,
         "motion": np.array([[0, 0, 0, 0, 0, 0, 0], [0.05, 0, 0.01, 0, 0.4, 0, 0]])}]
    a, b = limber.Simulation(plain), limber.Simulation(arrays)
    assert np.array_equal(a.model.cells, b.model.cells) and np.allclose(a.model.young, b.model.young, rtol=1e-14)
    a.run(), b.run()
    assert np.allclose(a.x, b.x, rtol=0, atol=1e-11)
    masked = dict(arrays)
    masked["constraints"] = [{"nodes": mesh.vertices[:, 0] == 0}, dict(arrays["constraints"][1])]
    masked["constraints"][1]["motion"] = limber.keyframes([0, 0.05], translation=[[0, 0, 0], [0, 0.01, 0]],
                                                          rotation=[[0, 0, 0], [0.4, 0, 0]])
    c = limber.Simulation(masked)
    c.run()
    assert c.hash == b.hash and c.scene.hash == b.scene.hash


def test_predicates_see_where_the_scene_puts_the_body(bar):
    bar["bodies"][0].update(rotation=[0, 0, np.pi / 2], translation=[1, 2, 3], name="turned")
    bar["bodies"].append({"name": "other", "mesh": {"shape": "box", "size": [0.1, 0.1, 0.1]}})
    bar["constraints"] = [{"body": "turned", "nodes": lambda x: x[:, 1] > 2.199},
                          {"body": "other", "nodes": lambda x: np.ones(len(x), bool)}]
    sim = limber.Simulation(bar)
    held = sim.held.all(axis=1)
    expected = (sim.x[:, 1] > 2.199) | (sim.model.body_of_node == 1)
    assert np.array_equal(held, expected) and held.sum() == 9 + 8


def test_meshes_of_every_kind(bar, tmp_path):
    vertices = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]]
    cells = [[0, 1, 2, 3], [1, 2, 3, 4]]  # the first is the right way round, whichever the second is
    bar["bodies"][0]["mesh"] = (vertices, cells)
    bar["constraints"] = [{"nodes": np.array([0, 1, 2])}]
    sim = limber.Simulation(bar)
    assert sim.nodes == 5 and np.array_equal(sim.model.rest, vertices)
    meshio = pytest.importorskip("meshio")
    box = limber.Mesh.box(nodes=(3, 3, 3))
    points = np.vstack([[[9, 9, 9]], box.vertices])  # one that no tetrahedron uses
    io = meshio.Mesh(points, [("triangle", box.cells[:2, :3] + 1), ("tetra", box.cells + 1)],
                     point_sets={"left": box.node_sets["x0"] + 1})
    mesh = limber.Mesh.from_meshio(io)
    assert np.array_equal(mesh.vertices, box.vertices) and np.array_equal(mesh.cells, box.cells)
    bar["bodies"][0]["mesh"] = io
    bar["constraints"] = [{"nodes": {"set": "left"}}]
    assert limber.Simulation(bar).held[:, 0].sum() == 9
    box.write(tmp_path / "box.msh")
    again = limber.Mesh.read(tmp_path / "box.msh")
    assert np.array_equal(again.cells, box.cells) and set(again.node_sets) == set(box.node_sets)
    sheet = limber.Mesh.rectangle(size=(0.2, 0.1), nodes=(5, 3))
    bar["bodies"][0].update(mesh=sheet)
    bar["constraints"] = [{"nodes": sheet.node_sets["x0"]}]
    sim = limber.Simulation(bar)
    sim.run(steps=3)
    assert np.all(sim.x[:, 2] == 0) and sim.x[:, 1].min() < 0


def test_bad_meshes_are_refused():
    with pytest.raises(limber.UsageError, match="there is no number 7"):
        limber.Mesh(np.eye(4, 3), [[0, 1, 2, 7]])
    with pytest.raises(limber.UsageError, match=r"\(1, 5\)"):
        limber.Mesh(np.eye(4, 3), [[0, 1, 2, 3, 3]])
    with pytest.raises(limber.SceneError):
        limber.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], [[0, 1, 2, 3]])  # flat
    with pytest.raises(limber.SceneError, match="belongs to no tet: 4"):
        limber.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [5, 5, 5]], [[0, 1, 2, 3]])  # a node without element


def test_problems_have_pointers_and_hints(bar, tmp_path):
    bar["bodies"][0]["material"] = {"yuong": 1e5, "poisson": 0.7}
    with pytest.raises(limber.SceneError) as caught:
        limber.Simulation(bar)
    e = caught.value
    assert isinstance(e, ValueError) and isinstance(e, limber.Error)
    assert e.pointer == "/bodies/0/material/yuong" and "young" in e.hint
    assert [p.pointer for p in e.problems] == ["/bodies/0/material/yuong", "/bodies/0/material/poisson"]
    assert "0.7" in str(e) and "scene.json" not in str(e)
    (tmp_path / "wrong.json").write_text(json.dumps(bar, indent=1))
    with pytest.raises(limber.SceneError) as caught:
        limber.Scene(tmp_path / "wrong.json")
    assert caught.value.problems[0].line > 1 and caught.value.problems[0].file.endswith("wrong.json")
    assert "wrong.json:" in str(caught.value)
    # What only the model knows.
    with pytest.raises(limber.SceneError) as caught:
        limber.Simulation({"limber": 1, "bodies": [{"mesh": {"shape": "box"}}], "constraints": [{"nodes": {"set": "x9"}}]})
    assert caught.value.pointer == "/constraints/0/nodes"
    with pytest.raises(limber.FileError):
        limber.Scene(tmp_path / "none.json")
    with pytest.raises(limber.SceneError):
        limber.Scene("{ not JSON")
    with pytest.raises(limber.UsageError, match="int"):
        limber.Scene(7)


def test_values_may_be_set(bar):
    scene = limber.Scene(bar, set={"/time/step": 0.001, "/method": {"type": "conjac", "gamma": 0.5, "dynamic": []}})
    assert scene.step == 0.001 and scene.method == "conjac" and scene.resolved["method"]["gamma"] == 0.5
    again = limber.Scene(scene, set={"/time/end": 3, "/name": "7"})
    assert again.end == 3 and again.step == 0.001 and again.name == "7"
    with pytest.raises(limber.SceneError) as caught:
        limber.Scene(bar, set={"/time/stpe": 0.001})
    assert caught.value.pointer == "/time/stpe"


def test_files_are_found_from_the_folder(bar, tmp_path, monkeypatch):
    limber.Mesh.box(nodes=(3, 3, 3)).write(tmp_path / "box.msh")
    bar["bodies"][0]["mesh"] = "box.msh"
    assert limber.Simulation(limber.Scene(bar, folder=tmp_path)).nodes == 27
    monkeypatch.chdir(tmp_path)
    assert limber.Simulation(bar).nodes == 27
    bar["bodies"][0]["material"]["young"] = np.full(48, 3e4)  # a file of ours beside one of theirs
    assert limber.Simulation(bar).model.young.tolist() == [3e4] * 48


def test_the_scenes_files_go_with_it(bar):
    bar["bodies"][0]["mesh"] = limber.Mesh.box(nodes=(3, 3, 3))
    scene = limber.Scene(bar)
    folder = scene._files.name
    assert os.listdir(folder)
    sim = limber.Simulation(scene)
    del scene
    assert os.path.isdir(folder)
    del sim
    assert not os.path.isdir(folder)


def test_fibres_from_arrays(bar):
    mesh = limber.Mesh.box(size=(0.2, 0.05, 0.05), nodes=(9, 3, 3))
    bar["bodies"][0].update(mesh=mesh)
    bar["bodies"][0]["material"]["fibre"] = {"stiffness": 1e5, "direction": np.tile([1.0, 0, 0], (len(mesh.cells), 1)),
                                             "activation": "pull"}
    bar["activations"] = [{"name": "pull", "keys": np.array([[0, 0], [0.05, 0.2]])}]
    bar["gravity"] = np.zeros(3)
    sim = limber.Simulation(bar)
    sim.run()
    assert sim.x[:, 0].max() < 0.199


def test_initial_positions(bar):
    mesh = limber.Mesh.box(size=(0.2, 0.05, 0.05), nodes=(9, 3, 3))
    bar["bodies"][0].update(mesh=mesh, initial=mesh.vertices * [1.1, 1, 1])
    sim = limber.Simulation(bar)
    assert np.allclose(sim.x, mesh.vertices * [1.1, 1, 1]) and sim.energies.elastic > 0


def test_every_scene_of_the_gallery_loads():
    scenes = sorted((ROOT / "scenes").rglob("*.json"))
    assert len(scenes) > 15
    for path in scenes:
        scene = limber.Scene(path)
        assert scene.resolved["limber"] == 1


def test_vectors_per_node_from_arrays(bar, command, tmp_path):
    """Velocities, accelerations and forces of each node: the same as formulas of the rest position."""
    mesh = limber.Mesh.box(size=(0.2, 0.05, 0.05), nodes=(9, 3, 3))
    bar["bodies"][0]["mesh"] = mesh
    bar["gravity"] = [0, 0, 0]
    plain, arrays = dict(bar), dict(bar)
    x, zero = mesh.vertices[:, 0], np.zeros(len(mesh.vertices))
    plain["bodies"] = [{**bar["bodies"][0], "velocity": [0, "3 * x", 0]}]
    arrays["bodies"] = [{**bar["bodies"][0], "velocity": np.c_[zero, 3 * x, zero]}]
    plain["forces"] = [{"nodes": {"set": "x1"}, "acceleration": [0, 0, "5 * x"]},
                       {"nodes": "all", "force_per_node": ["0.01 * x", 0, 0]}]
    arrays["forces"] = [{"nodes": {"set": "x1"}, "acceleration": np.c_[zero, zero, 5 * x]},
                        {"nodes": "all", "force_per_node": np.c_[0.01 * x, zero, zero]}]
    a, b, still = limber.Simulation(plain), limber.Simulation(arrays), limber.Simulation(bar)
    assert np.array_equal(a.v, b.v) and b.v[-1, 1] == pytest.approx(0.6)
    with b.record(tmp_path / "run"):
        b.run()
    a.run(), still.run()
    assert np.allclose(a.x, b.x, rtol=0, atol=1e-12) and np.abs(b.x - still.x).max() > 1e-3
    # The command runs it from what the run has kept.
    out = json.loads(command("run", tmp_path / "run" / "scene.resolved.json", "-q", "--json", "-o", "again"))
    assert out["hash"] == b.hash and len(list((tmp_path / "run" / "inputs").glob("*.npy"))) == 3
    arrays["bodies"][0]["velocity"] = np.zeros((7, 3))
    with pytest.raises(limber.SceneError, match="/bodies/0/velocity"):
        limber.Simulation(arrays)


def test_faces_of_a_cut_from_arrays(bar):
    mesh = limber.Mesh.box(size=(0.2, 0.05, 0.05), nodes=(9, 3, 3))
    middle = np.isclose(mesh.vertices[:, 0], 0.1)
    faces = np.vstack([np.delete(mesh.cells, k, axis=1) for k in range(4)])
    faces = np.unique(np.sort(faces[middle[faces].all(axis=1)], axis=1), axis=0)
    bar["bodies"][0]["mesh"] = mesh
    bar["events"] = [{"type": "cut", "time": 0.02, "face_set": faces}]
    sim = limber.Simulation(bar)
    sim.run()
    assert sim.nodes == 81 + 9 and sim.epoch == 1
    bar["events"][0]["face_set"] = faces * 0.5
    with pytest.raises(limber.UsageError, match="/events/0/face_set"):
        limber.Simulation(bar)


def test_an_obstacle_from_arrays(bar):
    ball = limber.Mesh.sphere(0.05, 0.02)
    for mesh in (ball, (ball.vertices, ball.cells)):
        things = limber.Obstacles([{"shape": "mesh", "mesh": mesh}])
        assert things.closest([[0.2, 0, 0]]).distance == pytest.approx([0.15], abs=2e-3)
    bar["obstacles"] = [{"shape": "mesh", "mesh": ball, "translation": [0.18, -0.06, 0.025]}]
    try:
        sim = limber.Simulation(bar)
    except limber.SceneError as error:
        pytest.fail(str(error))
    sim.run()
    assert sim.report.contacts >= 0
