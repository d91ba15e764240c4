"""Stress, reactions, contact forces and probes against theory, for several methods."""

import json
import math
import re
import unittest

import numpy as np

from common import CommandTest, rows

SIZE, SIDE = 0.4, 0.1
MESH = {"shape": "bar", "size": [SIDE, SIDE, SIZE], "nodes": [3, 3, 9]}
DENSITY, G = 1000.0, 9.81
WEIGHT = DENSITY * SIDE * SIDE * SIZE * G


def vector(row, name):
    return [float(row[f"{name}/{axis}"]) for axis in "xyz"]


class Measure(CommandTest):
    def run_scene(self, scene, out="run"):
        path = self.scene(out, base={"limber": 1}, **scene)
        self.limber("run", path, "-q", "-o", out)
        return rows(self.folder / out)

    def close(self, found, expected, relative):
        scale = max(abs(e) for e in expected)
        for f, e in zip(found, expected):
            self.assertAlmostEqual(f, e, delta=relative * scale)

    def test_a_bar_that_is_pulled_has_force_over_area(self):
        # Poisson's ratio 0 and a stress that is linear in the stretch: sigma = E strain, the same everywhere.
        young, strain = 2e5, 0.05
        last = self.run_scene({
            "time": {"step": 0.1, "end": 0.4}, "gravity": [0, 0, 0], "method": {"type": "static"},
            "bodies": [{"name": "bar", "mesh": MESH,
                        "material": {"model": "corotational", "young": young, "poisson": 0}}],
            "constraints": [
                {"name": "root", "nodes": {"set": "z0"}},
                {"name": "pull", "nodes": {"set": "z1"}, "interpolation": "linear",
                 "motion": [{"t": 0}, {"t": 0.4, "translation": [0, 0, strain * SIZE]}]}],
            "probes": [
                {"name": "mises", "value": "von_mises", "reduce": "max"},
                {"name": "least", "value": "von_mises", "reduce": "min"},
                {"name": "stress", "value": "cauchy_stress"},
                {"name": "principal", "value": "principal_stress"},
                {"name": "stretch", "value": "principal_stretches"},
                {"name": "strain", "value": "strain"},
                {"name": "energy", "value": "energy_density", "reduce": "sum"},
                {"name": "tip", "value": "displacement", "nodes": {"set": "z1"}},
                {"name": "held", "value": "reaction", "nodes": {"set": "z0"}}],
            "output": {"fields": ["displacement", "reaction", "von_mises", "principal_stress", "cauchy_stress",
                                  "strain", "principal_stretches"], "vtu": True}})[-1]
        sigma, force = young * strain, young * strain * SIDE * SIDE
        self.close([float(last["probe/mises"]), float(last["probe/least"])], [sigma, sigma], 1e-8)
        self.close([float(last[f"probe/stress/{c}"]) for c in ("xx", "yy", "zz", "xy", "yz", "xz")],
                   [0, 0, sigma, 0, 0, 0], 1e-8)
        self.close([float(last[f"probe/principal/{c}"]) for c in "123"], [sigma, 0, 0], 1e-8)
        self.close([float(last[f"probe/stretch/{c}"]) for c in "123"], [1 + strain, 1, 1], 1e-9)
        self.close([float(last["probe/strain/zz"])], [((1 + strain) ** 2 - 1) / 2], 1e-8)
        self.close([float(last["probe/energy"])], [float(last["E_el"])], 1e-9)
        self.close([float(last[f"probe/tip/{a}"]) for a in "xyz"], [0, 0, strain * SIZE], 1e-9)
        self.close(vector(last, "reaction/pull"), [0, 0, force], 1e-8)
        self.close(vector(last, "reaction/root"), [0, 0, -force], 1e-8)
        self.close([float(last[f"probe/held/{a}"]) for a in "xyz"], [0, 0, -force], 1e-8)
        self.assertLess(float(last["unbalanced"]), 1e-8 * force)
        # The moments about the origin of the two forces, through the middle of the section, are opposite too.
        self.close(vector(last, "moment/pull"), [SIDE / 2 * force, -SIDE / 2 * force, 0], 1e-8)
        self.assertIn('"von_mises"', (self.folder / "run" / "frames" / "000004.vtu").read_text())
        self.exported(sigma, force)

    def exported(self, sigma, force):
        try:
            import numpy
        except ImportError:
            return
        self.limber("export", "run", "--format", "npz")
        data = numpy.load(self.folder / "run" / "run.npz")
        self.assertEqual(data["cauchy_stress"].shape[2], 6)
        self.assertTrue(numpy.allclose(data["von_mises"][-1], sigma, rtol=1e-5))
        self.assertTrue(numpy.allclose(data["reaction"][-1].clip(0).sum(axis=0)[2], force, rtol=1e-5))

    def test_a_body_that_is_squeezed_from_all_sides_has_a_pressure(self):
        young, poisson, scale = 1e5, 0.3, 0.97
        last = self.run_scene({
            "time": {"step": 0.1, "end": 0.2}, "gravity": [0, 0, 0], "method": {"type": "static"},
            "bodies": [{"mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "nodes": [3, 3, 3]},
                        "material": {"model": "corotational", "young": young, "poisson": poisson}}],
            "constraints": [{"name": "all", "nodes": "all", "interpolation": "linear",
                             "motion": [{"t": 0}, {"t": 0.2, "scale": scale}]}],
            "probes": [{"name": "stress", "value": "cauchy_stress"}, {"name": "mises", "value": "von_mises"}],
            "output": {"fields": ["reaction"]}})[-1]
        # P = 3 K (s - 1) on F = s I, and the area has shrunk by s^2.
        pressure = young / (1 - 2 * poisson) * (scale - 1) / scale ** 2
        self.close([float(last[f"probe/stress/{c}"]) for c in ("xx", "yy", "zz", "xy", "yz", "xz")],
                   [pressure, pressure, pressure, 0, 0, 0], 1e-9)
        self.assertLess(float(last["probe/mises"]), 1e-9 * abs(pressure))
        self.assertLess(max(map(abs, vector(last, "reaction/all"))), 1e-9 * abs(pressure))

    def test_what_holds_a_body_at_rest_is_its_weight(self):
        methods = {
            "static": {"type": "static"},
            "quasistatic": {"type": "implicit", "integrator": "quasistatic"},
            "implicit": {"type": "implicit"},
            "vanilla": {"type": "vanilla"},
            "conjac": {"type": "conjac", "static_start": True},
            "rigidify": {"type": "rigidify"},
        }
        for name, method in methods.items():
            with self.subTest(name):
                last = self.run_scene({
                    "time": {"step": 0.02, "end": 1.2}, "method": method, "damping": {"mass": 20},
                    "bodies": [{"mesh": MESH, "material": {"young": 2e6, "density": DENSITY}}],
                    "constraints": [{"name": "root", "nodes": {"set": "z0"}}],
                    "output": {"fields": ["reaction"], "every": 60}}, name)[-1]
                # Pieces that rigidify has frozen hold a little stress that nothing balances.
                self.close(vector(last, "reaction/root"), [0, WEIGHT, 0], 2e-3 if name == "rigidify" else 1e-4)
                # About the origin: the weight acts in the middle of the bar, a little lower than at first.
                self.close([vector(last, "moment/root")[0]], [-WEIGHT * float(last["cz"])], 1e-2)
                self.assertLess(float(last["unbalanced"]), 2e-3 * WEIGHT)

    def test_what_carries_a_body_on_a_slope_is_its_weight(self):
        # Gravity leans by less than friction can hold: normal force and friction together are the weight.
        gravity = [1.5, -9.5, 0]
        methods = {
            "implicit": {"type": "implicit"},
            "vanilla": {"type": "vanilla"},
            "conjac": {"type": "conjac"},
            "rigidify": {"type": "rigidify"},
            "rigidify-bdf1": {"type": "rigidify", "integrator": "bdf1"},
            "rigidify-pgs": {"type": "rigidify", "contact": "pgs"},
            "mixed": {"type": "mixed"},
            "mixed-full": {"type": "mixed", "space": "full"},
        }
        for name, method in methods.items():
            with self.subTest(name):
                run = self.run_scene({
                    "time": {"step": 0.005, "end": 1.0}, "method": method, "gravity": gravity,
                    "damping": {"mass": 10},
                    "bodies": [{"mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "nodes": [4, 4, 4]},
                                "material": {"young": 3e5}}],
                    "obstacles": [{"name": "floor", "shape": "plane"}], "contact": {"friction": 0.5},
                    "output": {"fields": ["contact_force", "reaction"], "every": 200}}, name)
                last = run[-1]
                self.assertGreater(int(last["contacts"]), 3)
                self.close(vector(last, "contact_force/floor"), [-g for g in gravity], 0.02)

    def test_forces_change_momentum_in_every_step(self):
        # A bar that swings: d(momentum)/dt = weight + reaction, to the tolerance of Newton's method.
        run = self.run_scene({
            "time": {"step": 0.005, "end": 0.1}, "method": {"type": "implicit", "integrator": "bdf1"},
            "bodies": [{"mesh": MESH, "material": {"young": 1e5, "density": DENSITY}}],
            "constraints": [{"name": "root", "nodes": {"set": "z0"}}],
            "output": {"fields": ["reaction"], "every": 20}})
        for before, after in zip(run[:-1], run[1:]):
            rate = (float(after["py"]) - float(before["py"])) / 0.005
            self.assertAlmostEqual(rate, float(after["reaction/root/y"]) - WEIGHT, delta=2e-3 * WEIGHT)
        self.assertGreater(max(abs(float(r["reaction/root/y"]) - WEIGHT) for r in run), 0.2 * WEIGHT)

    def test_joints_carry_what_hangs_on_them(self):
        # Two links that hang straight down, at rest: the upper joint carries both; smooth and with friction.
        box = [0.02, 0.1, 0.02]
        mass = 1000 * 0.02 * 0.02 * 0.1
        for bearing in ({}, {"friction": {"mu": 0.3, "radius": 0.005, "height": 0.02}}):
            last = self.run_scene({
                "time": {"step": 0.005, "end": 0.05}, "method": {"type": "joints"},
                "links": [{"name": name, "shapes": {"shape": "box", "size": box, "position": [0, -0.05 - 0.1 * k, 0]}}
                          for k, name in enumerate(("upper", "lower"))],
                "joints": [{"name": "top", "parent": "world", "child": "upper", "position": [0, 0, 0], "axis": [0, 0, 1], **bearing},
                           {"name": "middle", "parent": "upper", "child": "lower", "position": [0, -0.1, 0], "axis": [0, 0, 1], **bearing}],
                "output": {"fields": ["reaction"]}})[-1]
            self.close(vector(last, "joint_force/top"), [0, 2 * mass * G, 0], 1e-9)
            self.close(vector(last, "joint_force/middle"), [0, mass * G, 0], 1e-9)

    def test_flesh_on_bones_tells_what_is_drawn_along_it(self):
        # A ball is pressed into a capsule on a bone and drawn along it: normal force and friction are those of `implicit` where
        # all nodes are in full space, about the same where some are, and the bone holds against both.
        told = {}
        for name, method in {
            "implicit": {"type": "implicit", "integrator": "quasistatic"},
            "full": {"type": "condense", "full": [{"nodes": "all"}], "poses": 2, "linear_modes": 6},
            "condense": {"type": "condense", "radius": 0.2, "poses": 2, "modes": 8, "linear_modes": 12},
        }.items():
            run = self.run_scene({
                "time": {"step": 0.05, "end": 0.4}, "gravity": [0, 0, 0], "method": method,
                "bodies": [{"mesh": {"shape": "capsule", "radius": 0.12, "length": 0.4, "edge": 0.05}, "material": {"young": 1e5}}],
                "bones": [{"name": "core", "head": [0, 0, -0.2], "tail": [0, 0, 0.2], "radius": 0.07,
                           "motion": [{"t": 0}, {"t": 0.4, "rotation": [0, 0, 0.01]}]}],
                "obstacles": [{"name": "ball", "shape": "sphere", "point": [0.2, 0, -0.05], "radius": 0.1, "friction": 0.3,
                               "interpolation": "linear",
                               "motion": [{"t": 0}, {"t": 0.2, "translation": [-0.02, 0, 0]}, {"t": 0.4, "translation": [-0.02, 0, 0.05]}]}],
                "output": {"fields": ["reaction", "contact_force"]}}, name)[-1]
            told[name] = vector(run, "contact_force/ball")
            if name != "condense":
                self.close(vector(run, "reaction/core"), [-f for f in told[name]], 3e-3)
        full = told["implicit"]
        self.assertGreater(abs(full[2]), 0.2 * abs(full[0]))  # it is drawn along
        self.close(told["full"], full, 1e-5)
        self.close(told["condense"], full, 0.1)

    def test_a_link_that_swings_is_held_against_weight_and_spin(self):
        # Let go from the horizontal, a rod turns with 3/2 g / L about its end: its middle falls with 3/4 g, and the pin
        # carries a quarter of the weight.
        rod = 1.0
        run = self.run_scene({
            "time": {"step": 0.0005, "end": 0.0005}, "method": {"type": "joints"},
            "links": [{"name": "rod", "shapes": {"shape": "box", "size": [rod, 0.001, 0.001], "position": [rod / 2, 0, 0]}}],
            "joints": [{"name": "pin", "parent": "world", "child": "rod", "position": [0, 0, 0], "axis": [0, 0, 1]}],
            "output": {"fields": ["reaction"]}})
        mass = 1000 * rod * 1e-6
        self.close(vector(run[-1], "joint_force/pin"), [0, mass * G / 4, 0], 1e-3)

    def test_joints_carry_flesh_too(self):
        # Half of a block is on a bone that hangs on two pins. In every step the upper pin gives what the momentum of
        # flesh and bones gains, less their weight; at rest that is the weight.
        bone, side = [0.04, 0.1, 0.04], 0.04
        flesh = {"name": "flesh", "mesh": {"shape": "box", "size": [2 * side, side, side], "nodes": [5, 3, 3]},
                 "translation": [0, -0.2, -side / 2], "material": {"young": 1e5, "density": DENSITY}}
        weight = G * DENSITY * (2 * bone[0] * bone[1] * bone[2] + 2 * side**3)
        for name, method in (("vanilla", {"type": "vanilla"}), ("conjac", {"type": "conjac"})):
            for rest in (False, True):
                with self.subTest(name, rest=rest):
                    h = 0.005 if rest else 0.0005
                    run = self.run_scene({
                        "time": {"step": h, "end": 4.0 if rest else 0.05}, "method": method,
                        "damping": {"mass": 20 if rest else 0}, "bodies": [flesh],
                        "links": [{"name": n, "shapes": {"shape": "box", "size": bone, "position": [0, -0.05 - 0.1 * k, 0]}}
                                  for k, n in enumerate(("upper", "lower"))],
                        "joints": [{"name": "top", "child": "upper", "axis": [0, 0, 1], "damping": 0.05 * rest, "v": 4 * (not rest)},
                                   {"name": "middle", "parent": "upper", "child": "lower", "position": [0, -0.1, 0],
                                    "axis": [0, 0, 1], "damping": 0.05 * rest}],
                        "attachments": [{"link": "lower", "nodes": {"plane": {"point": [side / 2 + 1e-6, 0, 0],
                                                                               "normal": [-1, 0, 0]}}}],
                        "output": {"fields": ["reaction"], "every": 100}}, f"{name}-{rest}")
                    if rest:
                        self.close(vector(run[-1], "joint_force/top"), [0, weight, 0], 1e-3)
                        self.close(vector(run[-1], "joint_force/middle"), [0, weight - G * DENSITY * math.prod(bone), 0], 1e-3)
                        continue
                    for before, after in list(zip(run[:-1], run[1:]))[10:]:
                        for axis, load in zip("xyz", (0, -weight, 0)):
                            rate = (float(after["p" + axis]) - float(before["p" + axis])) / h
                            self.assertAlmostEqual(float(after["joint_force/top/" + axis]), rate - load,
                                                   delta=5e-3 * weight)
                    self.assertGreater(max(abs(float(r["joint_force/top/y"]) - weight) for r in run), 0.2 * weight)

    def test_nothing_is_added_where_nothing_is_asked_for(self):
        run = self.run_scene({"time": {"end": 0.02}, "bodies": [{"mesh": MESH}], "constraints": [{"nodes": {"set": "z0"}}]})
        self.assertFalse([c for c in run[0] if c.split("/")[0] in ("reaction", "moment", "probe", "unbalanced")])

    def test_probes_that_make_no_sense_are_refused(self):
        for probe, words in (({"name": "a", "value": "von_mises", "nodes": "all"}, 'expected "elements"'),
                             ({"name": "a", "value": "velocity", "elements": "all"}, 'expected "nodes"'),
                             ({"name": "a", "value": "vonmises"}, 'did you mean "von_mises"?'),
                             ({"name": "a", "value": "velocity", "nodes": {"set": "x9"}}, "x9"),
                             ({"value": "velocity"}, '"name" is missing')):
            path = self.scene("bad", base={"limber": 1, "bodies": [{"mesh": MESH}], "probes": [probe]})
            self.assertIn(words, self.limber("check", path, code=2).stderr)

    def test_motions_that_begin_away_from_rest_are_told(self):
        def scene(name, *keys):
            return {"time": {"step": 0.01, "end": 0.1}, "gravity": [0, 0, 0], "method": {"type": "static"},
                    "bodies": [{"mesh": MESH, "material": {"young": 1e5, "poisson": 0.3}}],
                    "constraints": [{"name": "root", "nodes": {"set": "z0"}},
                                    {"name": name, "nodes": {"set": "z1"}, "center": [0.05, 0.05, SIZE],
                                     "motion": list(keys)}],
                    "output": {"fields": ["displacement", "reaction"]}}

        told = {}
        for name, keys in {
                "single": [{"t": 0.1, "translation": [0.2, 0, 0]}],
                "rest": [{"t": 0}, {"t": 0.1, "rotation": [0, 0.2, 0], "translation": [0, 0, 0.01]}],
                "offset": [{"t": 0, "translation": [0, 3, 0]},
                           {"t": 0.1, "rotation": [0, 0.2, 0], "translation": [0, 3, 0.01]}]}.items():
            path = self.scene(name, base={"limber": 1}, **scene(name, *keys))
            told[name] = self.limber("check", path).stdout
        line = 'the motion of constraint "{}" is away from rest when it begins'
        self.assertIn(line.format("single"), told["single"])
        self.assertIn("it moves nothing", told["single"])
        self.assertNotIn("away from rest", told["rest"])
        self.assertIn(line.format("offset"), told["offset"])
        self.assertNotIn("it moves nothing", told["offset"])
        # The two others move nodes alike, and the moment is about where the centre is.
        ends = {}
        for name in ("rest", "offset"):
            self.limber("run", f"{name}.json", "-q", "-o", name)
            ends[name] = rows(self.folder / name)[-1]
        self.assertGreater(abs(vector(ends["rest"], "moment/rest")[1]), 1e-3)
        self.close(vector(ends["offset"], "moment/offset"), vector(ends["rest"], "moment/rest"), 1e-5)

    def test_exports_have_the_fields_that_the_run_has(self):
        scene = self.scene(bodies=[{"name": name, "mesh": {"shape": "bar", "size": [0.2, 0.05, 0.05], "nodes": [5, 3, 3]},
                                    "material": {"density": density, "poisson": 0.3}}
                                   for name, density in (("a", 1000), ("b", 2000))],
                           constraints=[{"body": "a", "nodes": {"set": "x0"}}],
                           output={"every": 4, "vtu": True, "fields": ["displacement", "mass", "material", "force"]})
        self.limber("run", scene, "-q", "-o", "run", "--steps", 8, "--lossless")
        self.limber("export", "run", "--format", "vtu", "-o", "again")
        name = re.compile(r'<DataArray [^>]*Name="([^"]*)"')
        run, again = (set(name.findall(next(p for p in sorted((self.folder / f).glob("*000008.vtu"))).read_text()))
                      for f in ("run/frames", "again"))
        self.assertLessEqual({"mass", "young", "poisson", "density", "body", "force", "pinned"}, again)
        self.assertEqual(run - again, set())
        self.limber("export", "run", "--format", "npz", "-o", "run.npz")
        with np.load(self.folder / "run.npz") as data:
            self.assertEqual(data["density"].tolist(), [1000 if b == 0 else 2000 for b in data["body"]])
            self.assertEqual(set(data["body"]), {0, 1})
            self.assertAlmostEqual(float(data["mass"].sum()), 1.5, places=5)
            self.assertTrue(np.allclose(data["poisson"], 0.3))
            self.assertEqual(data["rest"].dtype, np.float64)
            self.assertTrue(np.array_equal(data["rest"], data["x"][0]))
        self.limber("export", "run", "--format", "npz", "-o", "some.npz", "--fields", "mass,body")
        with np.load(self.folder / "some.npz") as data:
            self.assertTrue({"mass", "body"} <= set(data) and "density" not in data)

    def test_names_with_commas_quotes_and_line_ends_keep_the_columns_in_place(self):
        name = 'left, "upper"\nclamp'
        scene = self.scene(constraints=[{"name": name, "nodes": {"set": "x0"}}],
                           obstacles=[{"name": "floor, wet", "shape": "plane", "point": [0, -1, 0]}],
                           probes=[{"name": "tip", "value": "displacement", "nodes": {"set": "x1"}}],
                           output={"every": 2, "checkpoint_every": 5,
                                   "fields": ["displacement", "reaction", "contact_force"]})
        self.limber("run", scene, "-q", "-o", "run", "--steps", 7)
        self.limber("run", scene, "-q", "-o", "run", "--steps", 9, "--resume")
        table = rows(self.folder / "run")
        self.assertEqual(len((self.folder / "run/steps.csv").read_text().splitlines()), 11)
        self.assertEqual([r["step"] for r in table], [str(k) for k in range(10)])
        for row in table:
            self.assertNotIn(None, row)  # more cells than columns
            self.assertNotIn(None, row.values())
        columns = ['reaction/left, "upper" clamp/y', "contact_force/floor, wet/y", "probe/tip/y"]
        held, floor, tip = (float(table[-1][c]) for c in columns)
        self.assertGreater(held, 0)
        self.assertEqual(floor, 0)
        self.assertLess(tip, 0)

    def test_a_resumed_run_has_the_same_columns(self):
        scene = {"time": {"step": 0.005, "end": 0.1}, "method": {"type": "implicit"},
                 "bodies": [{"mesh": MESH}], "constraints": [{"name": "root", "nodes": {"set": "z0"}}],
                 "probes": [{"name": "tip", "value": "velocity", "nodes": {"set": "z1"}}],
                 "output": {"fields": ["reaction"], "checkpoint_every": 4}}
        whole = self.run_scene(scene, "whole")
        path = self.scene("parts", base={"limber": 1}, **scene)
        for stop in (6, 20):
            self.limber("run", path, "-q", "-o", "parts", "--steps", stop, "--resume")
        for a, b in zip(whole, rows(self.folder / "parts")):
            for column in a:
                if not column.endswith("_ms"):
                    self.assertEqual(a[column], b[column], column)


if __name__ == "__main__":
    unittest.main()
