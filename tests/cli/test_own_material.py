"""Materials of one's own: a program's (examples/own-material) and a scene's formula."""

import json
import os
import subprocess
import unittest

from common import ROOT, CommandTest, rows

OWN = os.environ["OWN_MATERIAL"]
SCENE = ROOT / "examples" / "own-material" / "block.json"
# The same energy as a formula.
FORMULA = "mu/2*(0.7*(I1*J^(-2/3) - 3) + 0.3*(I2*J^(-4/3) - 3)) + (lambda + 2*mu/3)/2*(J - 1)^2"


class OwnMaterial(CommandTest):
    def own(self, *args, code=0):
        done = subprocess.run([OWN, *map(str, args)], cwd=self.folder, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def test_is_listed_and_checked(self):
        self.assertIn("mooney-rivlin", self.own("list", "materials").stdout)
        self.assertIn("mooney-rivlin", self.own("schema").stdout)
        self.own("check", SCENE)
        self.assertIn('"stable-neo-hookean"', self.limber("check", SCENE, code=2).stderr)

    def test_program_and_formula_agree(self):
        self.own("run", SCENE, "-q", "-o", "own")
        scene = json.loads(SCENE.read_text())
        scene["bodies"][0]["material"] = {"energy": FORMULA, "young": 1e6, "poisson": 0.45}
        self.limber("run", self.scene("formula", base=scene), "-q", "-o", "formula")
        mine, theirs = rows(self.folder / "own")[-1], rows(self.folder / "formula")[-1]
        for column in ("E_el", "reaction/above/x", "reaction/above/y", "max_displacement"):
            self.assertAlmostEqual(float(mine[column]), float(theirs[column]), delta=1e-9 * abs(float(mine[column])))
        # What is sheared by 0.05 m in 0.1 m resists about as linear elasticity says: G A shear = 1e6/2.9 * 0.01 * 0.5.
        self.assertAlmostEqual(float(mine["reaction/above/x"]), 1e6 / 2.9 * 0.01 * 0.5, delta=300)

    def test_a_formula_moves_as_the_model_it_spells_out(self):
        bar = {"limber": 1, "time": {"step": 0.005, "end": 0.05},
               "bodies": [{"mesh": {"shape": "bar", "size": [0.3, 0.05, 0.05], "nodes": [7, 3, 3]}, "material": {"young": 1e5}}],
               "constraints": [{"nodes": {"set": "x0"}}]}
        for method in ("vanilla", "implicit", "conjac", "rigidify"):
            with self.subTest(method):
                last = []
                for material in ({"young": 1e5}, {"young": 1e5, "energy": "mu/2*(I1 - 3) - mu*(J - 1) + (lambda + mu)/2*(J - 1)^2"}):
                    bar["bodies"][0]["material"] = material
                    self.limber("run", self.scene("bar", base=bar, method={"type": method}), "-q", "--overwrite", "-o", "bar")
                    last.append(rows(self.folder / "bar")[-1])
                for column in ("E_el", "max_displacement", "cy"):
                    a, b = float(last[0][column]), float(last[1][column])
                    self.assertAlmostEqual(a, b, delta=1e-6 * abs(a))

    def test_says_what_is_wrong(self):
        def problem(material, method="vanilla"):
            scene = self.scene("bad", base={"limber": 1}, method={"type": method},
                               bodies=[{"mesh": {"shape": "box", "nodes": [2, 2, 2]}, "material": material}])
            return self.limber("run", scene, "-q", code=2).stderr
        self.assertIn("at character 17", problem({"energy": "mu/2*(I1 - 3) + foo"}))
        self.assertIn("/bodies/0/material/energy", problem({"energy": "mu/2*(I1 - 3"}))
        self.assertIn("not free of stress", problem({"energy": "mu/2*(I1 - 3) + lambda/2*(J - 1)^2"}))
        self.assertIn("leave one of the two out", problem({"energy": "mu/2*(I1 - 3) - mu*log(J)", "model": "arap"}))
        self.assertIn("built-in materials only", problem({"energy": "mu/2*(I1 - 3) - mu*log(J)"}, "mixed"))


if __name__ == "__main__":
    unittest.main()
