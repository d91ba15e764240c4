"""What a Python loop over step() costs more than the loop in C++: `limber bench python`.

Both loops take turns in one process, on the same kind of simulation, one link that swings, whose steps are as cheap as any;
the smallest time of all rounds counts. Results must agree to the bit.
"""

import sys
import time

import limber

SCENE = {
    "limber": 1,
    "time": {"step": 1e-3, "end": 1000},
    "method": {"type": "joints"},
    "links": [{"name": "rod", "shapes": [{"shape": "box", "size": [0.1, 0.1, 1]}]}],
    "joints": [{"name": "pivot", "child": "rod", "position": [0, 0, 0.5], "axis": [1, 0, 0], "q": 1}],
}


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20000
    limber.set_threads(1)
    loops = {"C++": [], "Python": [], "Python, with x and energies": []}
    hashes = set()
    for _ in range(7):
        for name, times in loops.items():
            sim = limber.Simulation(SCENE)
            start = time.perf_counter()
            if name == "C++":
                sim.run(steps=steps)
            elif name == "Python":
                for _ in range(steps):
                    sim.step()
            else:
                for _ in range(steps):
                    sim.step()
                    sim.x, sim.energies
            times.append((time.perf_counter() - start) / steps)
            hashes.add(sim.hash)
    assert len(hashes) == 1, "the loops end in different states"
    base = min(loops["C++"])
    print(f"{steps} steps, smallest of 7 rounds")
    for name, times in loops.items():
        print(f"  {name:<28} {1e6 * min(times):8.2f} us a step   {1e6 * (min(times) - base):+7.2f} us")


if __name__ == "__main__":
    main()
