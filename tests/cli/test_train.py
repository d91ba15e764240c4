"""`limber train` keeps what it makes, and runs take it from there."""

import os
import subprocess
import tempfile
import unittest

from common import LIMBER, ROOT

SCENE = str(ROOT / "scenes" / "condense" / "capsule-small.json")
COARSE = ["--set", "/bodies/0/mesh/edge=0.03", "--set", "/method/poses=4"]


class Train(unittest.TestCase):
    def limber(self, *words, cache):
        return subprocess.run([LIMBER, *words], capture_output=True, text=True,
                              env={**os.environ, "NO_COLOR": "1", "LIMBER_CACHE": cache})

    def test_second_time_is_from_the_cache(self):
        with tempfile.TemporaryDirectory() as cache:
            first = self.limber("train", SCENE, *COARSE, cache=cache)
            self.assertEqual(first.returncode, 0, first.stderr)
            self.assertIn("pose 1 of", first.stderr)
            self.assertIn("is prepared", first.stdout)
            second = self.limber("train", SCENE, *COARSE, cache=cache)
            self.assertIn("subspace from the cache", second.stderr)
            # A training that was broken off: without the whole, the poses are still there.
            for name in os.listdir(cache):
                if name.startswith("condense-") and not name.startswith("condense-pose"):
                    os.remove(os.path.join(cache, name))
            third = self.limber("train", SCENE, *COARSE, cache=cache)
            self.assertNotIn("from the cache", third.stderr)
            end = [line.split("subspace")[-1] for line in (first.stderr, third.stderr)]
            self.assertEqual(end[0], end[1])
            with tempfile.TemporaryDirectory() as out:
                run = self.limber("run", SCENE, *COARSE, "-o", os.path.join(out, "r"), "--until", "0.1", cache=cache)
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertNotIn("training", run.stderr)

    def test_check_does_not_train(self):
        with tempfile.TemporaryDirectory() as cache:
            words = ["check", SCENE, "--set", "/method/poses=5000"]  # hours
            done = self.limber(*words, cache=cache)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("prepared: not yet", done.stdout)
            self.assertEqual([name for name in os.listdir(cache) if name.startswith("condense")], [])
            self.limber("train", SCENE, *COARSE, cache=cache)
            done = self.limber("check", SCENE, *COARSE, cache=cache)
            self.assertIn("prepared: subspace from the cache", done.stdout)

    def test_body_that_its_bones_do_not_hold(self):
        """So coarse that all fixed nodes are on the axis, about which the body is free to turn."""
        with tempfile.TemporaryDirectory() as cache:
            done = self.limber("train", SCENE, "--set", "/bodies/0/mesh/edge=0.05", "--set", "/method/poses=4", cache=cache)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("on one line", done.stderr)

    def test_nowhere_to_keep_it(self):
        done = self.limber("train", SCENE, cache="")
        self.assertEqual(done.returncode, 1)
        self.assertIn("LIMBER_CACHE", done.stderr)

    def test_scene_without_skeleton(self):
        done = self.limber("train", str(ROOT / "scenes" / "hello" / "bar.json"), "--set", '/method={"type": "condense"}',
                           "--set", "/constraints=[]", cache="")
        self.assertNotEqual(done.returncode, 0)
        with tempfile.TemporaryDirectory() as cache:
            done = self.limber("train", str(ROOT / "scenes" / "hello" / "bar.json"), "--set",
                               '/method={"type": "condense"}', "--set", "/constraints=[]", cache=cache)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("skeleton", done.stderr)


if __name__ == "__main__":
    unittest.main()
