"""The include rules of docs/architecture.md, held against the code."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text()


def table():
    """Folder -> folders that it may include, from the third column of the table under "Folders"."""
    rows = re.findall(r"^\| (`[^|]*`) \|[^|]*\| ([^|]*) \|$", PAGE.split("## Folders")[1].split("\n## ")[0], re.M)
    out = {}
    for names, allowed in rows:
        for name in re.findall(r"`(?:limber|apps)/(\w+)`", names):
            out[name] = set() if allowed.startswith("nothing") else set(re.findall(r"\w+", allowed))
    return out


def closure(rules):
    """What a folder may include, its includes may include as well."""
    done = {name: set(allowed) for name, allowed in rules.items()}
    changed = True
    while changed:
        changed = False
        for name, allowed in done.items():
            more = set().union(*(done.get(a, set()) for a in allowed)) - allowed
            changed |= bool(more)
            allowed |= more
    return done


def sources(folder):
    return sorted(p for p in folder.rglob("*") if p.suffix in (".hpp", ".cpp"))


class Includes(unittest.TestCase):
    def test_every_folder_has_a_row(self):
        folders = {p.name for p in (ROOT / "limber").iterdir() if p.is_dir()}
        self.assertEqual(folders - set(table()), set(), "not in the table of docs/architecture.md")

    def test_no_folder_includes_what_it_may_not(self):
        allowed = closure(table())
        wrong = []
        for folder in sorted(p for p in (ROOT / "limber").iterdir() if p.is_dir()):
            for path in sources(folder):
                for number, line in enumerate(path.read_text().splitlines(), 1):
                    found = re.match(r"#include [<\"]limber/(\w+)/", line)
                    if found and found.group(1) not in allowed[folder.name] | {folder.name}:
                        wrong.append(f"{path.relative_to(ROOT)}:{number}: {line}")
        self.assertEqual(wrong, [])

    def test_no_circles(self):
        for name, allowed in closure(table()).items():
            self.assertNotIn(name, allowed)

    def test_json_stays_where_it_is_read(self):
        sentence = re.search(r"^JSON is read in (.*?) only\.", PAGE, re.M | re.S)
        allowed = set(re.findall(r"`(\w+)`", sentence.group(1)))
        wrong = [str(p.relative_to(ROOT)) for folder in (ROOT / "limber").iterdir() if folder.is_dir()
                 and folder.name not in allowed for p in sources(folder) if "#include <nlohmann" in p.read_text()]
        self.assertEqual(wrong, [])

    def test_headers_only_hand_json_on(self):
        """Whoever includes a header does not compile the JSON library for it."""
        headers = [p for p in sources(ROOT / "limber") if p.suffix == ".hpp"]
        wrong = [str(p.relative_to(ROOT)) for p in headers if "\n#include <nlohmann/json.hpp>" in p.read_text()]
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
