"""pip install, types, documentation."""

import doctest
import inspect
import os
import pathlib
import re
import subprocess
import sys

import pytest

import limber
from conftest import ROOT

BUILD = os.environ["LIMBER_BUILD"]


def sub(*command, cwd, **options):
    done = subprocess.run([str(c) for c in command], cwd=cwd, capture_output=True, text=True, timeout=500, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_pip_installs_it_without_the_network(tmp_path):
    """With the build folder of the tests, so that nothing is compiled again."""
    pytest.importorskip("venv")
    environment = {**os.environ, "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONPATH": ""}
    environment.pop("PYTHONPATH")
    sub("/usr/bin/python3", "-m", "venv", "--system-site-packages", "env", cwd=tmp_path)
    python = tmp_path / "env/bin/python"
    sub(python, "-m", "pip", "install", "-q", "--config-settings", f"build-dir={BUILD}", ROOT, cwd=tmp_path, env=environment)
    code = ("import limber; s = limber.Simulation({'limber': 1, 'bodies': [{'mesh': {'shape': 'box'}}]}); s.step(); "
            "print(limber.__version__, limber.__file__, s.hash)")
    version, file, state = sub(python, "-c", code, cwd=tmp_path, env=environment).split()
    assert version == limber.__version__ and pathlib.Path(file).is_relative_to(tmp_path)
    mine = limber.Simulation({"limber": 1, "bodies": [{"mesh": {"shape": "box"}}]})
    mine.step()
    assert state == mine.hash
    shown = sub(python, "-m", "pip", "show", "-f", "limber", cwd=tmp_path, env=environment)
    assert "py.typed" in shown and "_limber.pyi" in shown and f"Version: {version}" in shown
    sub(python, "-m", "pip", "uninstall", "-q", "-y", "limber", cwd=tmp_path, env=environment)
    assert not (pathlib.Path(file)).exists()


def test_the_source_package_is_complete(tmp_path):
    sys.path.insert(0, str(ROOT / "python/backend"))
    import limber_build
    import tarfile
    name = limber_build.build_sdist(tmp_path)
    with tarfile.open(tmp_path / name) as archive:
        names = archive.getnames()
        archive.extractall(tmp_path)
    base = name[:-7]
    assert f"{base}/limber/limber.hpp" in names and f"{base}/web/dist/page.html" in names
    sub("cmake", "-S", tmp_path / base, "-B", tmp_path / "build", "-G", "Ninja", "-DLIMBER_PYTHON_MODULE=ON", "-DLIMBER_TESTS=OFF",
        "-DLIMBER_COMMAND=OFF", cwd=tmp_path)
    assert "limber_python" in sub("ninja", "-C", tmp_path / "build", "-t", "targets", "all", cwd=tmp_path)


MODULES = ["limber", "limber.errors", "limber._mesh", "limber._parts", "limber._runs", "limber._scene", "limber._simulation"]


@pytest.mark.parametrize("module", MODULES)
def test_examples_in_docstrings(module):
    __import__(module)
    failed, _ = doctest.testmod(sys.modules[module], optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


def test_help_reads_well():
    """Everything public has a text, and nothing in it shows what is behind."""
    for name in limber.__all__:
        thing = getattr(limber, name)
        assert inspect.getdoc(thing), name
        if inspect.isclass(thing) and not issubclass(thing, (tuple, Exception)):
            for member, value in vars(thing).items():
                if member.startswith("_") or not (callable(value) or isinstance(value, (property, classmethod))):
                    continue
                function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
                documented = inspect.getdoc(function) or len(inspect.signature(function).parameters) >= 1
                assert documented, f"{name}.{member}"
    text = subprocess.run([sys.executable, "-c", "import limber; help(limber)"], capture_output=True, text=True, check=True).stdout
    assert "Limber: soft bodies" in text and "class Simulation" in text
    text = subprocess.run([sys.executable, "-c", "import limber; help(limber.Simulation)"], capture_output=True, text=True, check=True).stdout
    assert "arg0" not in text and not re.search(r"^ \|  _[a-z]\w*\(", text, re.M), "what is behind shows"


def test_types():
    pytest.importorskip("mypy")
    code = """
import limber
sim = limber.Simulation({"limber": 1})
sim.run(until=1.0, progress=True)
height: float = float(sim.x[0, 1])
wrong: int = sim.hash
"""
    environment = {**os.environ, "MYPYPATH": str(ROOT / "python")}
    done = subprocess.run([sys.executable, "-m", "mypy", "--no-error-summary", "--cache-dir=/dev/null", "--ignore-missing-imports",
                           "-c", code], capture_output=True, text=True, env=environment, cwd=ROOT / "python", timeout=300)
    lines = [line for line in done.stdout.splitlines() if "error" in line]
    assert len(lines) == 1 and "wrong" not in lines[0] and 'expression has type "str"' in lines[0], done.stdout + done.stderr


def test_stubs_name_what_is_there():
    from limber import _limber
    text = (ROOT / "python/limber/_limber.pyi").read_text()
    stubbed = set(re.findall(r"^(?:class|def) (\w+)", text, re.M))
    assert stubbed == {n for n in dir(_limber) if not n.startswith("_")}
    for name, body in re.findall(r"^class (\w+)[^\n]*:\n((?:    .*\n)+)", text, re.M):
        methods = set(re.findall(r"def (\w+)\(", body)) - {"__init__"}
        have = {n for n in vars(getattr(_limber, name)) if not n.startswith("__")}
        assert methods == have, name


def snippets():
    """The blocks of docs/python.md, in their order: one goes on where the other has ended."""
    page = (ROOT / "docs/python.md").read_text()
    return re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)


def test_the_page_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("webbrowser.open", lambda url: True)
    limber.Mesh.box(size=(0.3, 0.1, 0.1), nodes=(7, 3, 3)).write(tmp_path / "statue.msh")
    names = {"__name__": "page"}
    blocks = snippets()
    assert len(blocks) == 6
    for number, block in enumerate(blocks):
        exec(compile(block, f"docs/python.md, block {number}", "exec"), names)
