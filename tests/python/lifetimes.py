"""Takes arrays from everything that gives some, lets the givers go, and reads the arrays. For memory checkers:

    PYTHONMALLOC=malloc LIMBER_KERNELS=avx2 valgrind --error-exitcode=9 python3 tests/python/lifetimes.py

or with the extension compiled with the address sanitizer (the preset asan). By itself it only compares numbers."""

import gc
import os
import tempfile

import numpy as np

import limber

BAR = {"limber": 1, "time": {"step": 0.01, "end": 0.03}, "method": {"type": "conjac", "dynamic": [{"auto": 2}]},
       "bodies": [{"name": "bar", "mesh": limber.Mesh.box(size=(0.2, 0.05, 0.05), nodes=(5, 2, 2))}],
       "constraints": [{"nodes": {"set": "x0"}}], "obstacles": [{"shape": "plane", "point": [0, -0.02, 0]}]}


def arrays(thing, found):
    """All arrays in nested containers."""
    if isinstance(thing, np.ndarray):
        found.append(thing)
    elif hasattr(thing, "indptr"):
        found += [thing.data, thing.indices, thing.indptr]
    elif isinstance(thing, dict) or hasattr(thing, "keys"):
        for key in thing:
            arrays(thing[key], found)
    elif isinstance(thing, (list, tuple)):
        for item in thing:
            arrays(item, found)
    return found


def gather(folder):
    sim = limber.Simulation(BAR)
    kept = [sim.x, sim.v]
    with sim.record(os.path.join(folder, "run")):
        while not sim.done:
            sim.force = np.full((sim.nodes, 3), 1e-4)
            sim.step()
            kept += [sim.x, sim.v, sim.fields, sim.model, sim.measures, sim.held, sim.force, sim.touching(), sim.touching_next(),
                     sim.bodies_touching(), sim.q]
    # Of a method whose nodes are moved only when somebody looks.
    reduced = limber.Simulation(BAR, set={"/method": {"type": "mixed", "modes": 2}, "/obstacles": []})
    with reduced.record(os.path.join(folder, "reduced")):
        reduced.run()
    kept += [reduced.x, reduced.v, reduced.fields]
    del reduced
    kept.append(list(limber.load(os.path.join(folder, "reduced"))))
    mesh = sim.scene  # keeps files, not arrays
    elements = sim.elements
    x = sim.x
    del sim
    K = elements.stiffness(x)
    kept += [elements.assemble(x), elements.deformation_gradients(x), elements.mass, elements.volume]
    c = limber.Condensation(K, [3, 7], np.arange(3 * elements.nodes) < 12)
    kept += [c.J, c.S, c.dofs, c.solve(np.ones(3 * elements.nodes))]
    free = np.arange(12, 3 * elements.nodes)
    factor = limber.Cholesky(K[free][:, free])
    kept += [factor.solve(np.ones(len(free))), factor.solve(np.ones((len(free), 3)))]
    kept.append(limber.eigenmodes(elements, 4, x))
    run = limber.load(os.path.join(folder, "run"))
    kept += [run.x, run.columns, run.topologies, [frame for frame in run]]
    rubber = limber.Material(young=1e5)
    kept += [rubber.pk1(np.eye(3)), rubber.dpk1(np.eye(3))]
    kept.append(limber.Obstacles([{"shape": "sphere"}]).closest(np.ones((3, 3))))
    shape = limber.Mesh.sphere(0.1, 0.05)
    kept += [shape.vertices, shape.cells, shape.node_sets]
    del mesh, elements, K, c, factor, run, rubber, shape
    return arrays(kept, [])


def main():
    with tempfile.TemporaryDirectory() as folder:
        kept = gather(folder)
        first = [a.tobytes() for a in kept if a.dtype != object]
        gc.collect()
        for _ in range(3):  # so that freed memory is taken by somebody else
            limber.Simulation(BAR).step()
        assert first == [a.tobytes() for a in kept if a.dtype != object]
        for call in (lambda s: s.hold([999]), lambda s: s.restore("nothing"), lambda s: setattr(s, "x", np.zeros(3))):
            try:
                call(limber.Simulation(BAR))
            except limber.Error:
                pass
        print(len(kept), "arrays")


if __name__ == "__main__":
    main()
