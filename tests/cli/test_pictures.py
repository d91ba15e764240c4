"""The README's pictures are what its commands draw: those of short runs are made again and compared."""

import re
import unittest

import numpy as np
from PIL import Image

from common import ROOT, CommandTest

# Of bin/gallery, one for each kind of thing to be drawn; all would take minutes (bin/gallery makes them).
SHORT = ["dragon", "hello", "twist", "muscle", "edge-eol"]


def pixels(path):
    return np.asarray(Image.open(path).convert("RGB")).astype(int)


class Pictures(CommandTest):
    def test_pictures_are_current(self):
        rows = re.findall(r"^(\S+)\s*\| (scenes/\S+)\s*\| (--.*)$", (ROOT / "bin/gallery").read_text(), re.M)
        of = {name: (scene, options.split()) for name, scene, options in rows}
        for name in SHORT:
            with self.subTest(picture=name):
                scene, options = of[name]
                self.limber("run", ROOT / scene, "-o", name, "-q")
                self.limber("render", name, "-o", f"{name}.png", "--size", "600x375", *options)
                new, old = pixels(self.folder / f"{name}.png"), pixels(ROOT / f"docs/images/{name}.png")
                self.assertEqual(new.shape, old.shape)
                differs = np.abs(new - old).max(axis=2) > 24
                self.assertLess(differs.mean(), 0.005,
                                f"docs/images/{name}.png is not what its commands draw: bin/gallery {name}, and look at it")

    def test_runs_side_by_side(self):
        """Runs that go differently far are drawn at the same scale, each with its title."""
        self.limber("run", self.scene(gravity=[0, -1, 0]), "-o", "little", "-q")
        self.limber("run", self.scene("far", gravity=[0, -30, 0]), "-o", "far", "-q")

        def first_frame(run, *options):
            self.limber("render", run, "-o", "p.png", "--size", "300x200", "--frame", "0", "--color", "plain", "--no-legend",
                        *options)
            return pixels(self.folder / "p.png")

        alone = first_frame("little")
        self.assertGreater((alone != first_frame("far")).mean(), 0.01)
        self.assertTrue((first_frame("little", "--beside", "far") == first_frame("far", "--beside", "little")).all())
        titled = (first_frame("little", "--title", "little") != alone).any(axis=2)
        self.assertTrue(titled[:30, :100].any())
        self.assertFalse(titled[30:].any())


if __name__ == "__main__":
    unittest.main()
