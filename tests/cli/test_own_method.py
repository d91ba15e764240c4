"""A method that lives outside the library (examples/own-method) can do all that those inside can."""

import json
import os
import subprocess
import unittest

from common import ROOT, CommandTest, rows, untimed

OWN = os.environ["OWN_METHOD"]
SCENE = ROOT / "examples" / "own-method" / "bar.json"


class OwnMethod(CommandTest):
    def own(self, *args, code=0):
        done = subprocess.run([OWN, *map(str, args)], cwd=self.folder, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def test_is_listed_checked_and_documented(self):
        listed = self.own("list", "methods").stdout
        self.assertIn("leapfrog", listed)
        self.assertIn("vanilla", listed)
        self.assertIn("max_substeps", self.own("schema").stdout)
        self.own("check", SCENE)
        wrong = self.own("check", SCENE, "--set", "/method/safety=2", code=2).stderr
        self.assertIn("/method/safety", wrong)
        self.assertIn("(0, 1]", wrong)
        obstacle = self.scene(base=json.loads(SCENE.read_text()), obstacles=[{"shape": "plane"}])
        self.assertIn("does not look at obstacles", self.own("check", obstacle).stdout)
        # The command without it says what it has.
        self.assertIn('"vanilla"', self.limber("check", SCENE, code=2).stderr)

    def test_moves_as_theory_and_other_methods_say(self):
        self.own("run", SCENE, "-q", "-o", "own", "--until", "0.2")
        mine = rows(self.folder / "own")
        self.assertTrue(all(int(float(r["substeps"])) > 1 for r in mine[1:]))
        total = [sum(float(r[e]) for e in ("E_kin", "E_el", "E_grav")) for r in mine]
        most = max(float(r["E_kin"]) + float(r["E_el"]) for r in mine)
        self.assertLess(max(abs(e - total[0]) for e in total), 0.01 * most)
        # An integrator of second order with small steps goes to the same place.
        self.limber("run", SCENE, "-q", "-o", "other", "--until", "0.2", "--set",
                    '/method={"type": "implicit", "integrator": "sdirk2"}', "--set", "/time/step=0.001")
        other = rows(self.folder / "other")
        for own, reference in zip(mine, other[::10]):
            self.assertAlmostEqual(float(own["t"]), float(reference["t"]), 9)
            self.assertAlmostEqual(float(own["cy"]), float(reference["cy"]), delta=2e-4)
        self.assertGreater(max(float(r["max_displacement"]) for r in mine), 0.02)

    def test_resumes_with_the_same_bits(self):
        self.own("run", SCENE, "-q", "-o", "whole", "--steps", 12)
        for stop in (5, 6, 12):
            self.own("run", SCENE, "-q", "-o", "parts", "--steps", stop, "--resume")
        self.assertEqual(untimed(self.folder / "whole"), untimed(self.folder / "parts"))
        # The command without the method says what is wrong with the checkpoint, or with the scene.
        self.limber("run", SCENE, "-q", "-o", "parts", "--resume", code=2)


if __name__ == "__main__":
    unittest.main()
