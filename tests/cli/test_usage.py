"""Exit codes, messages, and the commands that only look."""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import unittest

from common import BAR, CommandTest, LIMBER, ROOT, manifest


class Usage(CommandTest):
    def test_help_and_version(self):
        self.assertIn("Subcommands", self.limber().stdout)
        self.assertIn("--resume", self.limber("run", "--help").stdout)
        self.assertRegex(self.limber("--version").stdout, r"^\d+\.\d+\.\d+\n$")

    def test_wrong_usage_is_1(self):
        self.assertIn('no command "rnu", did you mean "run"?', self.limber("rnu", code=1).stderr)
        self.assertIn("scene", self.limber("run", code=1).stderr)
        scene = self.scene()
        self.assertIn("limber run --help", self.limber("run", scene, "--stepz", 3, code=1).stderr)
        self.limber("run", scene, "--steps", 3, "--until", 1, code=1)
        self.limber("run", scene, "--steps", "many", code=1)
        self.limber("list", "everything", code=1)

    def test_bench_lists_and_runs_benchmarks(self):
        if not (pathlib.Path(LIMBER).parent / "../../bench/bench_factor_reuse").exists():
            self.skipTest("built without benchmarks")
        self.assertIn("factor-reuse\n", self.limber("bench").stdout)
        self.assertIn("--figure", self.limber("bench", "factor-reuse", "--help").stdout)
        self.assertIn('did you mean "factor-reuse"?', self.limber("bench", "factor-resue", code=1).stderr)

    def test_bench_compares_chosen_solvers_with_newton_direct(self):
        if not (pathlib.Path(LIMBER).parent / "../../bench/bench_factor_reuse").exists():
            self.skipTest("built without benchmarks")
        out = self.limber("bench", "factor-reuse", "--figure", "5.7", "--solver", "qlb", "--scale", "7", "--steps", "2",
                          "--out", "tables").stdout
        table = [line.split("|")[1:] for line in out.splitlines() if line.startswith("| ")]
        self.assertEqual([row[0].strip() for row in table], ["solver", "newton-direct", "qlb"])
        self.assertEqual(float(table[1][3]), 1)  # the speed-up of newton-direct is relative to itself
        self.assertIn("times faster than newton-direct", (self.folder / "tables/figure-5.7-1.svg").read_text())

    def test_bad_scene_is_2_with_all_problems(self):
        scene = self.folder / "bad.json"
        scene.write_text('{"limber": 1,\n"time": {"step": -1},\n"bodies": [{"mesh": {"shape": "box"},\n'
                         '"material": {\n"youngs": 3}}]}')
        for command in ("check", "run"):
            err = self.limber(command, "bad.json", code=2).stderr
            self.assertIn('bad.json:5: /bodies/0/material/youngs: unknown key, did you mean "young"? [Pa]', err)
            self.assertIn("bad.json:2: /time/step: expected a number more than 0 [s], found -1", err)
            self.assertIn("2 problems", err)
        self.assertFalse((self.folder / "out").exists())

    def test_references_are_checked_against_the_mesh(self):
        scene = self.scene(constraints=[{"nodes": {"set": "left"}}])
        err = self.limber("check", scene, code=2).stderr
        self.assertIn('there is no set "left"', err)
        self.assertIn("/constraints/0/nodes", err)
        scene = self.scene(constraints=[{"nodes": {"box": {"min": [5, 5, 5], "max": [6, 6, 6]}}}])
        self.assertIn("selects nothing", self.limber("check", scene, code=2).stderr)

    def test_unreadable_mesh_is_2_and_missing_file_4(self):
        (self.folder / "bad.msh").write_text("$MeshFormat\nnonsense")
        scene = self.scene(bodies=[{"mesh": "bad.msh"}], constraints=[])
        self.assertIn("bad.msh", self.limber("run", scene, code=2).stderr)
        self.assertIn("cannot", self.limber("run", "nothing.json", code=4).stderr)
        self.assertIn("is a folder", self.limber("check", self.folder, code=4).stderr)

    def test_remesh_a_surface_with_a_border(self):
        coarse, fine = self.folder / "coarse.obj", self.folder / "fine.obj"
        self.limber("mesh", "generate", "rectangle", "--size", 1, 1, "--nodes", 4, 4, "-o", coarse)
        self.assertIn("splits", self.limber("mesh", "remesh", coarse, "-o", fine, "--size-max", 0.1).stdout)
        out = self.limber("mesh", "info", fine).stdout
        self.assertIn("area 1 m^2", out)
        err = self.limber("mesh", "remesh", coarse, "-o", fine, "--size-min", 1, "--size-max", 0.1, code=1).stderr
        self.assertIn("--size-max 0.1: expected at least --size-min 1", err)
        # Two triangles that meet in a point.
        coarse.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv -1 0 0\nv 0 -1 0\nf 1 2 3\nf 1 4 5\n")
        self.assertIn("meet in a point", self.limber("mesh", "remesh", coarse, "-o", fine, code=2).stderr)

    def test_failed_simulation_is_3(self):
        # One Newton iteration cannot find the equilibrium of a soft bar.
        scene = self.scene(method={"type": "static", "max_iterations": 1})
        err = self.limber("run", scene, "--dump-on-failure", code=3).stderr
        self.assertIn("failure.lmc", err)
        run = self.folder / "out/bar"
        self.assertEqual(manifest(run)["status"], "failed")
        self.assertTrue((run / "failure.lmc").exists())
        self.assertEqual(json.loads((run / "failure.json").read_text())["step"], 0)
        # A failed run may be replaced without being asked.
        self.scene()
        self.limber("run", scene, "--steps", 2, "-q")

    def test_unwritable_output_is_4(self):
        scene = self.scene()
        (self.folder / "file").write_text("")
        self.assertIn("cannot make the run folder", self.limber("run", scene, "-o", "file/run", code=4).stderr)
        self.assertIn("proc", self.limber("run", scene, "-o", "/proc/limber", code=4).stderr)


class Look(CommandTest):
    def test_check_describes_a_good_scene(self):
        out = self.limber("check", self.scene()).stdout
        self.assertIn("good", out)
        self.assertIn("81 nodes, 192 elements", out)
        self.assertIn("9 held nodes", out)
        falling = self.limber("check", self.scene(constraints=[])).stdout
        self.assertIn("it will fall", falling)
        touching = self.limber("check", self.scene(obstacles=[{"shape": "plane"}], method={"type": "static"})).stdout
        self.assertIn("does not look at obstacles", touching)
        beside = dict(links=[{"name": "plate", "shapes": {"shape": "box", "size": [1, 0.1, 1], "contact": True}}],
                      joints=[{"name": "slide", "type": "prismatic", "child": "plate", "axis": [0, 1, 0]}])
        for method, passes in ("rigidify", True), ("vanilla", False):
            said = self.limber("check", self.scene(method={"type": method}, **beside)).stdout
            self.assertEqual("they pass through the link \"plate\"" in said, passes, said)
        large = json.loads(json.dumps(BAR["bodies"]))
        large[0]["scale"] = 1000
        self.assertIn("not in metres", self.limber("check", self.scene(bodies=large)).stdout)

    def test_check_run_compares_expectations(self):
        # Free fall: the distance after 50 steps of symplectic order is h^2 n (n + 1) / 2 g, the energy is known.
        fall = dict(constraints=[], gravity=[0, -10, 0])
        distance = 10 * 0.002**2 * 50 * 51 / 2
        good = self.scene("good", tests={"steps": 50, "max_displacement": [distance, 1e-9], "max_speed": [1.0, 1e-9],
                                         "elastic_energy": [0, 1e-12], "inverted": 0, "fallbacks": 0}, **fall)
        self.assertIn("ok    max_displacement", self.limber("check", "--run", good).stdout)
        bad = self.scene("bad", tests={"steps": 50, "max_displacement": [2 * distance, 1e-9]}, **fall)
        done = self.limber("check", "--run", bad, code=3)
        self.assertIn("WRONG max_displacement", done.stdout)
        self.assertIn("expectations do not hold", done.stderr)

    def test_overrides(self):
        scene = self.scene()
        out = self.limber("check", scene, "--set", "/time/end=0.5", "--set", "/method/type=static").stdout
        self.assertIn("static for 0.5 s", out)
        err = self.limber("check", scene, "--set", "/method/beta=-1", code=2).stderr
        self.assertIn("--set: /method/beta: expected a number at least 0, found -1", err)

    def test_list_names_everything(self):
        out = self.limber("list").stdout
        for name in ("vanilla", "conjac", "stable-neo-hookean", "fung", "torus"):
            self.assertIn(name, out)

    def test_info_passes_its_self_test(self):
        info = json.loads(self.limber("info", "--json").stdout)
        self.assertTrue(info["self_test"]["same_bits"])
        self.assertIn("native", info["solvers"])
        self.assertGreaterEqual(info["threads"], 1)
        self.assertIn("kernels", self.limber("info", "--no-test").stdout)

    def test_generated_files_are_what_the_command_prints(self):
        self.assertEqual(self.limber("schema").stdout, (ROOT / "limber.schema.json").read_text())
        self.assertEqual(self.limber("schema", "--reference").stdout, (ROOT / "docs/scene-reference.md").read_text())


class Documentation(CommandTest):
    def test_scenes_in_the_documentation_run(self):
        blocks = []
        for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
            if page.exists():
                blocks += [(page.name, b.split("```")[0]) for b in page.read_text().split("```json\n")[1:]]
        ran = 0
        for name, block in blocks:
            if '"limber"' not in block:
                continue
            with self.subTest(page=name):
                # File names in the documentation are meant from the project's folder.
                (self.folder / "assets").exists() or (self.folder / "assets").symlink_to(ROOT / "assets")
                scene = self.folder / f"block{ran}.json"
                scene.write_text(block)
                self.limber("run", scene, "--steps", 1, "-q")
                ran += 1
        self.assertGreaterEqual(ran, 2)


class Schema(CommandTest):
    """The JSON Schema and limber's own checks agree on what is a scene."""

    def test_agreement(self):
        try:
            import jsonschema
        except ImportError:
            self.skipTest("python3-jsonschema is not installed")
        schema = json.loads((ROOT / "limber.schema.json").read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(schema)
        body = BAR["bodies"][0]

        def with_body(**changes):
            return dict(bodies=[{**body, **changes}])

        good = [
            {}, dict(gravity=[0, 0, 0]), dict(method={"beta": 0.5}),
            dict(method={"type": "conjac"}), dict(method={"type": "conjac", "dynamic": {"auto": 2}}),
            dict(method={"type": "conjac", "dynamic": [{"nearest": [[0, 0, 0]]}, {"set": "x1", "body": "bar"}]}),
            with_body(material={"young": "1e5 * (1 + x)"}),
            with_body(material={"young": {"layers": {"axis": "x", "bounds": [0.1], "values": [1e5, 2e5]}}}),
            with_body(scale=2), with_body(scale=[1, 2, 3]),
            with_body(node_sets={"tip": {"nearest": [[1, 0, 0]]}}),
            dict(constraints=[{"nodes": {"any": ["all", {"not": {"ids": [0]}}]}, "axes": "x"}]),
            dict(obstacles=[{"shape": "sphere", "point": [0, -9, 0], "radius": 1}]),
            dict(output={"fields": []}), dict(tests={"max_speed": [1, 2]}),
        ]
        bad = [
            dict(limber=2), dict(colour=1), dict(time={"step": 0}), dict(gravity=[0, 1]), dict(gravity="down"),
            dict(method={"gamma": 0.5}), dict(method={"type": "magic"}),
            with_body(mesh={"shape": "box", "radius": 1}), with_body(mesh={"shape": "bar", "nodes": [1, 2, 2]}),
            with_body(mesh={}), with_body(mesh=3), with_body(name="a b"), with_body(scale=0),
            with_body(material={"young": -1}), with_body(material={"young": {"file": "a", "field": "b"}}),
            with_body(material={"poisson": 0.5}), with_body(material={"fibre": {"stiffness": 1}}),
            dict(bodies=[]), dict(bodies={}), dict(constraints=[{"nodes": "top"}]), dict(constraints=[{"nodes": {}}]),
            dict(constraints=[{}]), dict(constraints=[{"nodes": "all", "axes": "xw"}]),
            dict(output={"every": 0}), dict(output={"every": 1.5}), dict(output={"vtu": "yes"}),
            dict(tests={"max_speed": 3}), dict(obstacles=[{"shape": "plane", "radius": 1}]),
        ]
        for expected, cases in ((True, good), (False, bad)):
            for changes in cases:
                with self.subTest(changes=changes):
                    path = self.scene(**changes)
                    self.assertEqual(validator.is_valid(json.loads(path.read_text())), expected)
                    self.limber("check", path, code=0 if expected else 2)

class Itself(CommandTest):
    """What the command says about itself, all from one table."""

    def test_the_manual_names_every_option(self):
        manual = self.limber("man").stdout.replace("\\-", "-")
        self.assertTrue(manual.startswith(".TH LIMBER 1"))
        commands = re.findall(r"^  (\w[\w-]*)  ", self.limber("--help").stdout.partition("Subcommands:")[2], re.M)
        self.assertGreater(len(commands), 12)
        for command in commands:
            self.assertIn(f".SS limber {command}\n", manual)
            for option in re.findall(r"^  (?:-\w,)?(--[\w-]+)", self.limber(command, "--help").stdout, re.M):
                if option != "--help":
                    self.assertIn(option, manual)

    def test_help_says_nothing_about_parsing(self):
        for command in ["run", "live", "compare", "export", "render", "view"]:
            text = self.limber(command, "--help").stdout
            for noise in ["Excludes", "Needs", "REQUIRED", " INT", " FLOAT", "Exit codes", "{"]:
                self.assertNotIn(noise, text, command)

    def test_commands_to_copy_are_quoted(self):
        done = self.limber("run", self.scene(base={**BAR, "output": {"every": 30}}), "-o", "my run's")
        command = next(line for line in done.stdout.splitlines() if "limber export" in line).split("ParaView: limber ")[1]
        self.limber(*shlex.split(command))
        self.assertTrue((self.folder / "my run's/vtu").is_dir())

    def test_bash_completes(self):
        script = self.folder / "limber.bash"
        script.write_text(self.limber("completion", "bash").stdout)
        (self.folder / "bin").mkdir()
        (self.folder / "bin/limber").symlink_to(LIMBER)

        def completed(*words):
            line = " ".join(f"'{w}'" for w in ["limber", *words])
            done = subprocess.run(["bash", "-c", f"source limber.bash; COMP_WORDS=({line}); COMP_CWORD={len(words)}; "
                                   'declare -F _limber >/dev/null && _limber; printf "%s\\n" "${COMPREPLY[@]}"'],
                                  cwd=self.folder, capture_output=True, text=True, check=True,
                                  env={**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"})
            return done.stdout.split()
        self.assertEqual(completed("r"), ["run", "render"])
        self.assertEqual(completed("run", "--th"), ["--threads"])
        self.assertEqual(completed("mesh", "te"), ["tet"])
        self.assertIn("--spacing", completed("mesh", "tet", "--s"))
        self.assertIn("scenes/hello/bar.json", completed("run", "scenes/he"))
        for given in [("--format", "v"), ("--format", "=", "v")]:
            self.assertEqual(completed("export", "run", *given), ["vtu"])
        for given in [("--format", ""), ("--format", "=")]:
            self.assertEqual(completed("export", "run", *given), ["obj", "ply", "vtu", "glb", "pc2", "mdd", "npz"])
        self.assertEqual(completed("export", "run", "--format", "vtu", "--com"), ["--compress"])
        self.assertEqual(completed("completion", "ba"), ["bash"])
        self.assertEqual(completed("completion", "z"), ["zsh"])

    def test_zsh_has_every_command(self):
        text = self.limber("completion", "zsh").stdout
        self.assertTrue(text.startswith("#compdef limber"))
        for command in ["run", "live", "mesh"]:
            self.assertRegex(text, rf"(?m)^    '{command}:")
        self.assertRegex(text, r"'--format\[.*\]:TEXT:\(obj ply vtu glb pc2 mdd npz\)'")
        self.assertIn("'1:TEXT:(bash zsh)'", text)
        if shutil.which("zsh"):
            subprocess.run(["zsh", "-n"], input=text, text=True, check=True)

    def test_scenes_have_the_same_names_everywhere(self):
        listed = self.limber("list", "scenes").stdout
        self.assertIn("  scenes/hello/bar.json ", listed)
        self.assertNotIn(str(ROOT), listed)
        self.limber("check", "scenes/hello/bar.json")  # from a folder without scenes


if __name__ == "__main__":
    unittest.main()
