"""Every scene of the gallery carries expectations of its first steps; those of the short ones are held."""

import json
import os
import re
import subprocess
import unittest

from common import LIMBER, ROOT


def scenes():
    return sorted((ROOT / "scenes").glob("*/*.json"))


# Two to eight seconds each; armadillo.json stands for them, and snail, candy, pendulum and cantilever for mixed.
LONG = re.compile(r"implicit/armadillo-|implicit/bar-|mixed/(quadruped|crab|swordsman|octobot)|rigidify/(forest|pachinko|wheel)|"
                  r"condense/(capsule|capsule-0.08|character|giant|hand).json")


def tests_of(path):
    """Scenes may have comments, so only this line is read."""
    found = re.search(r'^  "tests": (\{.*\}),?$', path.read_text(), re.M)
    return json.loads(found.group(1)) if found else {}


class Gallery(unittest.TestCase):
    def test_every_scene_expects_something(self):
        for path in scenes():
            with self.subTest(scene=str(path.relative_to(ROOT))):
                self.assertTrue(set(tests_of(path)) - {"steps"}, "no \"tests\"")

    def test_the_readme_shows_what_bin_gallery_draws(self):
        """The same scenes with the same options; pictures that are there."""
        readme = (ROOT / "README.md").read_text()
        rows = re.findall(r"^(\S+)\s*\| (scenes/\S+)\s*\| (--.*)$", (ROOT / "bin/gallery").read_text(), re.M)
        self.assertGreater(len(rows), 10)
        for name, scene, options in rows:
            self.assertTrue((ROOT / scene).exists(), scene)
            self.assertIn(f"-o {name}.png --size 600x375 {options.strip()}`", readme)
        shown = set(re.findall(r"`bin/limber run scenes/\S+` <br> `bin/limber render \S+ -o (\S+).png", readme))
        self.assertEqual(shown, {name for name, _, _ in rows})  # bin/gallery makes them all
        for picture in re.findall(r"\((docs/images/[^)]*)\)", readme):
            self.assertTrue((ROOT / picture).exists(), picture)

    def test_short_scenes_hold(self):
        short = [p for p in scenes() if not LONG.search(str(p))]
        self.assertGreater(len(short), 10)
        for path in short:
            with self.subTest(scene=str(path.relative_to(ROOT))):
                done = subprocess.run([LIMBER, "check", "--run", str(path)], capture_output=True, text=True,
                                      env={**os.environ, "NO_COLOR": "1"})
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertRegex(done.stdout, re.compile(r"^  ok ", re.M))
                self.assertNotIn("WRONG", done.stdout)


if __name__ == "__main__":
    unittest.main()
