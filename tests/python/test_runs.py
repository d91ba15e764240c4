"""Recording as the command does, and reading it back."""

import json
import os
import pathlib

import numpy as np
import pytest

import limber


def untimed(path):
    columns = limber.load(path).columns
    return {k: v.tolist() for k, v in columns.items() if not k.endswith("_ms")}


def same(a, b):
    assert a.keys() == b.keys()
    for k in a:
        np.testing.assert_array_equal(np.asarray(a[k]), np.asarray(b[k]), err_msg=k)


def test_a_recording_is_that_of_the_command(bar, command, tmp_path):
    bar["output"] = {"every": 4, "checkpoint_every": 10, "surface": True}
    (tmp_path / "bar.json").write_text(json.dumps(bar))
    command("run", "bar.json", "-q", "-o", "theirs")
    sim = limber.Simulation(tmp_path / "bar.json")
    with sim.record(tmp_path / "mine") as recording:
        sim.run()
    assert not recording.open and sim.recording is None
    files = [{str(p.relative_to(tmp_path / n)) for p in (tmp_path / n).rglob("*") if p.is_file()} for n in ("theirs", "mine")]
    assert files[0] == files[1]
    for name in files[0]:
        if name.startswith(("frames/", "surface/")) or name in ("run.pvd", "scene.resolved.json"):
            assert (tmp_path / "theirs" / name).read_bytes() == (tmp_path / "mine" / name).read_bytes(), name
    same(untimed(tmp_path / "theirs"), untimed(tmp_path / "mine"))
    manifests = [json.loads((tmp_path / n / "run.json").read_text()) for n in ("theirs", "mine")]
    assert manifests[0].keys() == manifests[1].keys()
    for key in ("status", "steps", "scene_hash", "nodes", "target_steps", "frames", "scene_file"):
        assert manifests[0][key] == manifests[1][key], key


def test_command_and_python_resume_each_other(bar, command, tmp_path):
    bar["output"] = {"checkpoint_every": 5}
    (tmp_path / "bar.json").write_text(json.dumps(bar))
    command("run", "bar.json", "-q", "-o", "whole")
    sim = limber.Simulation(tmp_path / "bar.json")
    recording = sim.record(tmp_path / "parts")
    sim.run(steps=7)
    recording.finish("interrupted")
    command("run", "bar.json", "-q", "-o", "parts", "--resume", "--steps", 12)
    sim = limber.Simulation(tmp_path / "bar.json")
    with sim.record(tmp_path / "parts", resume=True):
        assert sim.steps == 12
        sim.run()
    same(untimed(tmp_path / "whole"), untimed(tmp_path / "parts"))


def test_arrays_of_a_scene_stay_in_the_run(bar, command, tmp_path):
    mesh = limber.Mesh.box(size=(0.2, 0.05, 0.05), nodes=(9, 3, 3))
    bar["bodies"][0].update(mesh=mesh)
    bar["bodies"][0]["material"]["young"] = np.linspace(2e4, 9e4, len(mesh.cells))
    sim = limber.Simulation(bar)
    with sim.record(tmp_path / "run"):
        sim.run()
    end = sim.hash
    del sim
    assert len(list((tmp_path / "run" / "inputs").iterdir())) == 2
    # The command runs it again from there, in a copy and without us, and resumes it.
    os.rename(tmp_path / "run", tmp_path / "moved")
    out = json.loads(command("run", tmp_path / "moved" / "scene.resolved.json", "-q", "--json", "-o", "again"))
    assert out["hash"] == end
    again = limber.Simulation(bar)
    with again.record(tmp_path / "moved", resume=True):
        assert again.done and again.hash == end


def test_folders_are_refused_as_by_the_command(bar, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("")
    sim = limber.Simulation(bar)
    with pytest.raises(limber.UsageError, match="thesis.tex"):
        sim.record(tmp_path / "full")
    with sim.record(tmp_path / "run"):
        with pytest.raises(limber.UsageError, match="already"):
            sim.record(tmp_path / "other")
        with pytest.raises(limber.FileError, match="another limber"):
            limber.Simulation(bar).record(tmp_path / "run")
        sim.run(steps=2)
    with pytest.raises(limber.UsageError, match="before step"):
        sim.record(tmp_path / "third")


def test_a_failure_is_recorded(bar, tmp_path):
    sim = limber.Simulation(bar)
    with pytest.raises(limber.SimulationError):
        with sim.record(tmp_path / "run"):
            sim.run(steps=3)
            sim.force = np.full((sim.nodes, 3), 1e200)
            sim.step()
    run = limber.load(tmp_path / "run")
    assert run.manifest["status"] == "failed" and "step 3" in run.manifest["why"]
    assert run.columns["step"].tolist() == [0, 1, 2, 3]


def test_load(bar, tmp_path):
    bar["output"] = {"every": 5}
    bar["method"] = {"type": "conjac", "dynamic": [{"auto": 3}]}
    sim = limber.Simulation(bar)
    positions = [sim.x]
    with sim.record(tmp_path / "run"):
        sim.run(callback=lambda s: positions.append(s.x) and None)
    run = limber.load(tmp_path / "run")
    assert len(run) == 5 and run.frame_steps.tolist() == [0, 5, 10, 15, 20] and run.t == pytest.approx(run.frame_steps * 0.005)
    assert run.x.shape == (5, 81, 3) and run.x.dtype == np.float32
    for k, frame in enumerate(run):
        assert frame.x == pytest.approx(positions[5 * k], abs=1e-7)
        assert frame.node_fields["dynamic"].shape == (81,)
    assert run.field("velocity").shape == (5, 81, 3) and run[-1].step == 20
    assert len(run.columns["t"]) == 21 and run.columns["hash"][-1] == sim.hash
    assert run.topologies[0]["cells"].shape == (len(sim.model.cells), 4) and run.scene["method"]["type"] == "conjac"
    with pytest.raises(IndexError):
        run[5]
    with pytest.raises(KeyError, match="velocity"):
        run.field("smell")
    steps = run.steps
    assert list(steps["step"]) == list(range(21))
    with pytest.raises(limber.FileError):
        limber.load(tmp_path / "nothing")
    kept = run.x
    del run
    assert np.isfinite(kept).all()


def test_compare_and_plot(bar, tmp_path):
    for name, method in (("a", {"type": "vanilla"}), ("b", {"type": "implicit"}), ("c", {"type": "vanilla"})):
        bar["method"] = method
        sim = limber.Simulation(bar)
        with sim.record(tmp_path / name):
            sim.run()
    both = limber.compare(tmp_path / "a", tmp_path / "b", tmp_path / "c", output=tmp_path / "compare.html")
    assert len(both.distances) == 2 and both.distances[0].max[-1] > 0 and np.all(both.distances[1].max == 0)
    assert [c["label"] for c in both.costs] == ["a", "b", "c"] and (tmp_path / "compare.html").stat().st_size > 1e5
    assert both._repr_html_().startswith("<iframe srcdoc=")
    with pytest.raises(limber.UsageError):
        limber.compare(tmp_path / "a")
    pytest.importorskip("matplotlib")
    figure = limber.plot(tmp_path / "a")
    assert [line.get_label() for line in figure.axes[0].lines] == ["E_kin", "E_el", "E_grav", "total"]
    figure.savefig(tmp_path / "plot.png")
    assert limber.plot(limber.load(tmp_path / "b"), ["cy"]).axes[0].lines[0].get_xdata().size == 21
    with pytest.raises(KeyError, match="E_kin"):
        limber.plot(tmp_path / "a", ["nothing"])


def test_notebooks_show_a_page_that_needs_nothing_else(bar, tmp_path, monkeypatch):
    sim = limber.Simulation(bar)
    sim.run(steps=3)
    still = sim._repr_html_()
    assert still.startswith("<iframe srcdoc=") and len(still) > 1e5
    text = sim.page()
    assert "<html" in text and "https://" not in text.split("<body")[0].replace("https://www.w3.org", "")
    sim = limber.Simulation(bar)
    with sim.record(tmp_path / "run"):
        sim.run(steps=5)
        assert len(sim.page()) > len(text) // 2
        sim.run()
    assert limber.load(tmp_path / "run")._repr_html_().startswith("<iframe")
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    limber.show(tmp_path / "run")
    assert opened == [(tmp_path / "run" / "index.html").as_uri()]


def test_a_run_that_nobody_finished_is_interrupted(bar, tmp_path):
    import subprocess
    import sys
    code = f"import limber; s = limber.Simulation({bar!r}); s.record({str(tmp_path / 'run')!r}); s.run(steps=4)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    run = limber.load(pathlib.Path(tmp_path / "run"))
    assert run.manifest["status"] == "interrupted" and run.manifest["steps"] == 4
    assert (tmp_path / "run" / "index.html").exists()
    sim = limber.Simulation(bar)
    sim.record(tmp_path / "dropped")
    sim.run(steps=2)
    del sim
    assert limber.load(tmp_path / "dropped").manifest["status"] == "interrupted"


def test_a_reduced_run_is_recorded_by_coordinates(bar, command, tmp_path):
    """Positions and velocities come back from them; and poses of a run may train the points of another one."""
    bar["method"] = {"type": "mixed", "modes": 4}
    bar["output"] = {"every": 5, "fields": ["displacement"]}
    sim = limber.Simulation(bar)
    seen = [(sim.x, sim.v)]
    with sim.record(tmp_path / "run"):
        sim.run(callback=lambda s: seen.append((s.x, s.v)) and None)
    run = limber.load(tmp_path / "run")
    assert len(run) == 5
    for k, frame in enumerate(run):
        x, v = seen[5 * k]
        assert frame.x == pytest.approx(x, abs=1e-6) and frame.node_fields["velocity"] == pytest.approx(v, abs=1e-5)
    assert np.abs(seen[-1][1]).max() > 1e-3
    bar["method"].update(points=40, training=run.x[1:].astype(float))
    trained = limber.Simulation(bar)
    weights = trained.fields["cubature_weight"]
    assert 0 < np.count_nonzero(weights) <= 40
    with trained.record(tmp_path / "trained"):
        trained.run()
    out = json.loads(command("run", tmp_path / "trained" / "scene.resolved.json", "-q", "--json", "-o", "again"))
    assert out["hash"] == trained.hash
