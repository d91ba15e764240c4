"""Simulations from Python: the same bits as the command, and everything that one may do between steps."""

import gc
import json
import multiprocessing
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import limber
from conftest import ROOT

METHODS = [{"type": "vanilla"}, {"type": "conjac", "dynamic": [{"auto": 4}]}, {"type": "implicit", "integrator": "bdf2"},
           {"type": "static"}]


@pytest.mark.parametrize("method", METHODS + [{"type": "mixed", "modes": 4}], ids=lambda m: m["type"])
def test_same_hash_as_the_command(bar, command, tmp_path, method):
    bar["method"] = method
    (tmp_path / "bar.json").write_text(json.dumps(bar))
    out = json.loads(command("run", "bar.json", "-q", "--json", "-o", "run"))
    for scene in (bar, json.dumps(bar), tmp_path / "bar.json"):
        sim = limber.Simulation(scene)
        sim.run()
        assert (sim.steps, sim.hash) == (out["steps"], out["hash"])
    assert sim.energies.elastic == out["elastic_energy"]


@pytest.mark.parametrize("scene", ["scenes/hello/bar.json", "scenes/joints/chain.json", "scenes/conjac/barcut.json"])
def test_same_hash_as_the_command_for_scenes_of_the_gallery(command, scene):
    out = json.loads(command("run", ROOT / scene, "-q", "--json", "-o", "run", "--steps", 6))
    sim = limber.Simulation(ROOT / scene)
    sim.run(steps=6)
    assert sim.hash == out["hash"]


def test_step_run_and_loops_give_the_same_bits(bar):
    whole, single, counted, watched = (limber.Simulation(bar) for _ in range(4))
    whole.run()
    while not single.done:
        single.step()
    for _ in range(4):
        counted.run(steps=5)
    seen = []
    watched.run(callback=lambda sim: seen.append((sim.steps, sim.hash)) and None)
    assert whole.hash == single.hash == counted.hash == watched.hash
    assert [s for s, _ in seen] == list(range(1, 21)) and seen[-1][1] == whole.hash
    ended = limber.Simulation(bar)
    ended.run(callback=lambda sim: sim.steps == 7)
    assert ended.steps == 7 and not ended.done


def test_any_number_of_threads(bar):
    hashes = set()
    try:
        for n in (1, 2, 5):
            sim = limber.Simulation(bar, threads=n)
            sim.run()
            hashes.add(sim.hash)
    finally:
        limber.set_threads(0)
    assert len(hashes) == 1


def test_state_arrays_are_snapshots_that_outlive_everything(bar):
    sim = limber.Simulation(bar)
    x0, v0 = sim.x, sim.v
    assert x0 is sim.x and x0.shape == (81, 3) and x0.dtype == float
    copy = x0.copy()
    with pytest.raises(ValueError):
        x0[0, 0] = 1
    sim.step()
    assert sim.x is not x0 and np.array_equal(x0, copy) and not np.array_equal(sim.x, x0)
    rest, mass = sim.model.rest, sim.model.mass
    fields = sim.fields["velocity"]
    K = sim.elements.stiffness(sim.x)
    elements = sim.elements
    del sim
    gc.collect()
    assert np.array_equal(x0, copy) and np.array_equal(rest, copy) and np.all(v0 == 0)
    assert mass.sum() == pytest.approx(1000 * 0.2 * 0.05 * 0.05) and np.isfinite(fields).all()
    assert np.isfinite(K.data).all() and abs(elements.energy(x0)) < 1e-20


def test_energies_report_and_fields(bar):
    bar["method"] = {"type": "conjac", "dynamic": [{"auto": 2}, {"set": "x1"}], "adaptive": {"threshold": 0.1}}
    try:
        sim = limber.Simulation(bar)
    except limber.SceneError:
        bar["method"] = {"type": "conjac", "dynamic": [{"auto": 4}]}
        sim = limber.Simulation(bar)
    start = sim.energies
    assert start.kinetic == 0 and abs(start.elastic) < 1e-20
    sim.run(until=0.05)
    e, m = sim.energies, sim.measures
    assert e.total == pytest.approx(e.kinetic + e.elastic + e.gravity + e.contact, rel=1e-12)
    mass = sim.model.mass
    assert e.kinetic == pytest.approx(0.5 * np.sum(mass[:, None] * sim.v**2), rel=1e-12)
    assert e.gravity == pytest.approx(9.81 * np.sum(mass * sim.x[:, 1]), rel=1e-12)
    assert e.elastic == pytest.approx(sim.elements.energy(sim.x), rel=1e-12)
    assert m.momentum == pytest.approx((mass[:, None] * sim.v).sum(axis=0), rel=1e-9)
    assert sim.report.dofs > 0 and sim.report.seconds > 0 and "assemble" in sim.report.phases
    assert "dynamic_nodes" in sim.report.columns and isinstance(sim.report.fallbacks, dict)
    fields = sim.fields
    assert np.array_equal(fields["velocity"], sim.v) and fields["energy_density"].shape == (len(sim.model.cells),)
    assert fields["dynamic"].sum() == sim.report.columns["dynamic_nodes"]
    with pytest.raises(KeyError, match="velocity"):
        fields["no such field"]


def test_liveliness_is_a_field():
    sim = limber.Simulation(ROOT / "scenes/conjac/armadillo.json")
    sim.step()
    assert sim.fields["liveliness"].shape == (len(sim.model.cells),)
    assert sim.fields.units["liveliness"] == "1/s"


@pytest.mark.parametrize("method", METHODS[:3], ids=lambda m: m["type"])
def test_forces_are_those_of_the_scene(bar, method):
    """A force on nodes from outside moves them as the same force of the scene does, to the bit."""
    bar["method"] = method
    scripted = json.loads(json.dumps(bar))
    scripted["forces"] = [{"nodes": {"set": "x1"}, "force": [0.0, 0.0, 0.3]}]
    theirs, mine = limber.Simulation(scripted), limber.Simulation(bar)
    nodes = mine.model.node_sets["bar/x1"]
    share = mine.model.mass[nodes] / mine.model.mass[nodes].sum()
    force = np.zeros((mine.nodes, 3))
    force[nodes, 2] = 0.3 * share
    mine.force = force
    theirs.run(), mine.run()
    assert np.allclose(mine.x, theirs.x, rtol=0, atol=1e-12)
    assert np.array_equal(mine.force, force)
    mine.force = None
    assert mine.force is None


@pytest.mark.parametrize("method", METHODS[:3], ids=lambda m: m["type"])
def test_held_nodes_are_those_of_the_scene(bar, method):
    # Nodes by name: where "auto" puts them depends on what the scene holds.
    named = {"dynamic": [{"nearest": [[0.1, 0.02, 0.02], [0.2, 0.02, 0.02]]}]} if method["type"] == "conjac" else {}
    bar["method"] = {**method, **named}
    scripted = json.loads(json.dumps(bar))
    scripted["constraints"].append({"nodes": {"set": "x1"}, "axes": "yz"})
    theirs, mine = limber.Simulation(scripted), limber.Simulation(bar)
    mine.hold("x1", axes="yz")
    theirs.run(steps=10), mine.run(steps=10)
    assert mine.hash == theirs.hash
    assert mine.held[mine.model.node_sets["bar/x1"]].tolist() == [[False, True, True]] * 9
    mine.release("x1")
    mine.run(steps=3)
    assert not np.allclose(mine.v[mine.model.node_sets["bar/x1"], 1], 0)


def test_held_nodes_move_at_their_velocity(bar):
    bar["gravity"] = [0, 0, 0]
    sim = limber.Simulation(bar)
    end = sim.model.node_sets["bar/x1"]
    before = sim.x[end]
    sim.hold(end, velocity=(0.1, 0, 0))
    sim.run(steps=10)
    assert sim.x[end] - before == pytest.approx(np.tile([0.1 * 10 * 0.005, 0, 0], (9, 1)), abs=1e-12)


@pytest.mark.parametrize("method", METHODS[:3], ids=lambda m: m["type"])
def test_positions_and_velocities_may_be_set(bar, method):
    """A simulation that is put where another one is goes on as it does, but for what the method remembers."""
    bar["method"] = method
    one = limber.Simulation(bar)
    one.run(steps=8)
    two, three = limber.Simulation(bar), limber.Simulation(bar)
    two.set_motion(one.x, one.v)
    assert np.array_equal(two.x, one.x) and np.array_equal(two.v, one.v)
    three.run(steps=3)
    three.x = one.x
    three.v = one.v.ravel()
    assert np.array_equal(three.x, one.x) and np.array_equal(three.v, one.v)
    one.set_motion(one.x, one.v)  # forgets as well
    for sim in (one, two, three):
        sim.run(steps=5)
    assert np.array_equal(one.x, two.x) and np.array_equal(one.x, three.x) and np.array_equal(one.v, two.v)


def test_a_reduced_method_moves_its_nodes_when_somebody_looks(bar):
    bar["method"] = {"type": "mixed", "modes": 4}
    watched, blind = limber.Simulation(bar), limber.Simulation(bar)
    rest = watched.x
    for _ in range(10):
        watched.step()
        watched.x, watched.energies
    blind.run(steps=10)
    assert watched.hash == blind.hash and np.array_equal(watched.x, blind.x) and np.abs(watched.x - rest).max() > 1e-5
    # Its unknowns are not the nodes.
    with pytest.raises(limber.UsageError, match="unknowns of its own"):
        watched.x = rest
    with pytest.raises(limber.UsageError, match="constraints"):
        watched.hold([80])
    with pytest.raises(limber.UsageError, match="forces"):
        watched.force = rest * 0
    watched.step()


def test_wrong_calls_say_what_is_wrong(bar):
    sim = limber.Simulation(bar)
    with pytest.raises(limber.UsageError, match=r"\(80, 3\), expected \(81, 3\)"):
        sim.x = np.zeros((80, 3))
    bad = sim.x.copy()
    bad[3, 1] = np.nan
    with pytest.raises(limber.UsageError, match="not finite"):
        sim.x = bad
    with pytest.raises(limber.UsageError, match="81"):
        sim.hold([0, 81])
    with pytest.raises(limber.UsageError, match="axes"):
        sim.hold([0], axes="w")
    with pytest.raises(limber.UsageError, match="x0"):
        sim.hold("nowhere")
    with pytest.raises(limber.UsageError, match="not both"):
        sim.run(until=1, steps=2)
    with pytest.raises((limber.UsageError, ValueError, TypeError)):
        sim.force = "strong"
    assert sim.steps == 0


def test_a_cut_drops_forces_with_a_notice(bar):
    bar["events"] = [{"type": "cut", "time": 0.02, "point": [0.1, 0, 0], "normal": [1, 0, 0]}]
    sim = limber.Simulation(bar)
    sim.run(until=0.02)
    nodes = sim.nodes
    sim.force = np.zeros((nodes, 3))
    sim.notices
    sim.step()
    assert sim.nodes > nodes and sim.epoch == 1
    assert sim.force is None and any("dropped" in n for n in sim.notices)


def test_checkpoints(bar, tmp_path):
    whole, parts = limber.Simulation(bar), limber.Simulation(bar)
    whole.run()
    parts.run(steps=7)
    parts.save(tmp_path / "a.lmc")
    other = limber.Simulation(bar)
    other.restore(tmp_path / "a.lmc")
    assert other.steps == 7 and other.hash == parts.hash and np.array_equal(other.x, parts.x)
    other.run()
    assert other.hash == whole.hash
    bar["bodies"][0]["material"]["young"] = 6e4
    with pytest.raises(limber.UsageError, match="another scene"):
        limber.Simulation(bar).restore(tmp_path / "a.lmc")
    (tmp_path / "b.lmc").write_bytes((tmp_path / "a.lmc").read_bytes()[:-5])
    with pytest.raises(limber.SceneError, match="checksum|damaged"):
        other.restore(tmp_path / "b.lmc")
    with pytest.raises(limber.FileError):
        other.restore(tmp_path / "none.lmc")


def test_a_failed_step(bar):
    bar["method"] = {"type": "vanilla"}
    sim = limber.Simulation(bar)
    sim.run(steps=3)
    before = sim.hash
    sim.force = np.full((sim.nodes, 3), 1e200)
    with pytest.raises(limber.SimulationError) as caught:
        sim.run()
    e = caught.value
    assert e.step == 3 and e.t == pytest.approx(0.015) and e.cause and e.hint and isinstance(e, RuntimeError)
    assert e.place.split()[0] in ("node", "element"), e.cause
    assert sim.steps == 3 and sim.hash == before
    sim.force = None
    sim.run()


def test_one_thread_at_a_time(bar):
    bar["bodies"][0]["mesh"]["nodes"] = [41, 15, 15]
    sim = limber.Simulation(bar)
    said, ticks = [], []
    worker = threading.Thread(target=lambda: sim.run(steps=4))
    worker.start()
    while worker.is_alive():  # which it would not be able to do, were the interpreter locked
        ticks.append(time.perf_counter())
        try:
            sim.x
        except limber.UsageError as error:
            said.append(str(error))
        time.sleep(0.001)
    worker.join()
    assert any("another thread" in s for s in said) and len(ticks) > 3
    assert sim.steps == 4


def test_simulations_in_several_threads(bar):
    alone = limber.Simulation(bar)
    alone.run()
    sims = [limber.Simulation(bar) for _ in range(4)]
    threads = [threading.Thread(target=s.run) for s in sims]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert {s.hash for s in sims} == {alone.hash}


def _hash_of(bar):
    sim = limber.Simulation(bar)
    sim.run()
    return sim.hash


def test_after_a_fork(bar):
    """Worker threads do not survive a fork; the child must not wait for them."""
    bar["bodies"][0]["mesh"]["nodes"] = [21, 7, 7]
    mine = _hash_of(bar)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(_hash_of, [bar, bar]).get(timeout=120) == [mine, mine]


def test_ctrl_c(tmp_path, bar):
    bar["time"]["end"] = 1e6
    script = tmp_path / "forever.py"
    script.write_text(f"""
import limber
sim = limber.Simulation({bar!r})
try:
    with sim.record({str(tmp_path / "run")!r}):
        print("running", flush=True)
        sim.run()
except KeyboardInterrupt:
    print("interrupted", sim.steps > 0, sim.recording, flush=True)
""")
    process = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "running\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert out == "interrupted True None\n"
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "interrupted"


def test_progress_and_exceptions_of_callbacks(bar, capfd):
    class Mine(Exception):
        pass

    def callback(sim):
        if sim.steps == 5:
            raise Mine

    sim = limber.Simulation(bar)
    with pytest.raises(Mine):
        sim.run(progress=True, callback=callback)
    assert sim.steps == 5


def test_no_memory_is_lost():
    """Ten thousand short simulations, most of them in a process of their own."""
    code = """
import limber, resource, gc
scene = limber.Scene({"limber": 1, "time": {"step": 0.01, "end": 0.02}, "method": {"type": "conjac", "dynamic": [{"auto": 1}]},
                      "bodies": [{"mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "nodes": [2, 2, 2]}}],
                      "constraints": [{"nodes": {"set": "x0"}}]})
def memory():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()
def some(n):
    for _ in range(n):
        sim = limber.Simulation(scene)
        sim.step()
        sim.force = sim.x * 0
        sim.x, sim.v, sim.fields, sim.report, sim.energies, sim.elements.stiffness(sim.x)
        try:
            sim.hold([99])
        except limber.UsageError:
            pass
some(1000)
gc.collect()
before = memory()
some(9000)
gc.collect()
print((memory() - before) / 9000)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    per_simulation = float(done.stdout)
    assert per_simulation < 100, f"{per_simulation:.0f} bytes are lost with every simulation"
