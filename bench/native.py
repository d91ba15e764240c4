#!/usr/bin/env python3
"""What one binary for every machine costs against a build for this one: bench/native.py [scene [steps [rounds]]].

Builds the command twice (presets release and native: -march=native), lets both take turns on one scene, and compares the
smallest mean time of a step; how far the results are apart stands beside it (-march=native fuses other products).
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def step_seconds(preset, kernels, scene, steps):
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, **({"LIMBER_KERNELS": kernels} if kernels else {}))
        done = subprocess.run([ROOT / f"build/{preset}/apps/limber/limber", "run", scene, "--steps", str(steps), "--json",
                               "-o", f"{folder}/run", "--set", "/output/vtu=false", "--every", str(steps)],
                              env=env, check=True, capture_output=True, text=True)
        out = json.loads(done.stdout)
        return 1e-3 * out["timings"]["step"]["mean_ms"], out


def main():
    scene = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "scenes/conjac/dragon.json")
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    for preset in ("release", "native"):
        subprocess.run([ROOT / "bin/build", preset, "limber_cli"], check=True)
    variants = [("native", "native", ""), ("one binary", "release", "")]
    flags = Path("/proc/cpuinfo").read_text()
    if "avx512f" in flags:
        variants += [("native, kernels avx2", "native", "avx2"), ("one binary, kernels avx2", "release", "avx2")]
    best, outs = {}, {}
    for _ in range(rounds):
        for name, preset, kernels in variants:
            seconds, out = step_seconds(preset, kernels, scene, steps)
            best[name] = min(best.get(name, seconds), seconds)
            outs[name] = out
    print(f"{Path(scene).name}, {steps} steps, smallest of {rounds} rounds")
    reference = outs["native"]
    for name, _, _ in variants:
        base = best["native, kernels avx2" if "avx2" in name else "native"]
        apart = abs(outs[name]["max_displacement"] / reference["max_displacement"] - 1)
        print(f"  {name:<26} {1e3 * best[name]:8.3f} ms a step   {best[name] / base:6.3f} of native   "
              f"largest displacement differs by {apart:.1e}")


if __name__ == "__main__":
    main()
