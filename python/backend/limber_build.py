"""Builds limber's wheel with CMake (PEP 517). There is no build requirement to download.

Settings (pip install . --config-settings NAME=VALUE):
  build-dir   folder to build in, kept and used again; without it a temporary one
  jobs        compilers at a time
"""

import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUMMARY = "Soft bodies that move with far fewer unknowns than their meshes have"


def version():
    return re.search(r"project\(limber VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)


def metadata():
    return (f"Metadata-Version: 2.1\nName: limber\nVersion: {version()}\nSummary: {SUMMARY}\nLicense: MIT\n"
            "Requires-Python: >=3.9\nRequires-Dist: numpy\nProvides-Extra: sparse\nRequires-Dist: scipy; extra == \"sparse\"\n"
            "Provides-Extra: plot\nRequires-Dist: matplotlib; extra == \"plot\"\n"
            "Description-Content-Type: text/markdown\n\n" + (ROOT / "README.md").read_text())


def tag():
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return f"{python}-{python}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def get_requires_for_build_wheel(config_settings=None):
    return []


def get_requires_for_build_sdist(config_settings=None):
    return []


def run(*command):
    try:
        subprocess.run(command, check=True)
    except FileNotFoundError:
        sys.exit(f"limber: {command[0]} is missing; on Debian: bin/setup run python")
    except subprocess.CalledProcessError as error:
        sys.exit(f"limber: the build failed ({error}); docs/building.md lists what it needs")


def build(folder, settings):
    """The folder with the extension and the Python files in it."""
    folder = pathlib.Path(folder).resolve()
    if not (folder / "CMakeCache.txt").exists():
        run("cmake", "-S", str(ROOT), "-B", str(folder), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DLIMBER_UNITY=ON",
            "-DLIMBER_PYTHON_MODULE=ON", "-DLIMBER_TESTS=OFF", "-DLIMBER_COMMAND=OFF", "-DLIMBER_BENCH=OFF",
            f"-DPython_EXECUTABLE={sys.executable}")
    jobs = ["-j", str(settings["jobs"])] if "jobs" in settings else []
    run("cmake", "--build", str(folder), "--target", "limber_python", *jobs)
    return folder / "python" / "limber"


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    name = f"limber-{version()}.dist-info"
    folder = pathlib.Path(metadata_directory) / name
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(metadata())
    (folder / "WHEEL").write_text(wheel_text())
    return name


def wheel_text():
    return f"Wheel-Version: 1.0\nGenerator: limber_build\nRoot-Is-Purelib: false\nTag: {tag()}\n"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    settings = config_settings or {}
    with tempfile.TemporaryDirectory(prefix="limber-build-") as scratch:
        built = build(settings.get("build-dir", scratch), settings)
        files = {f"limber/{p.name}": p.read_bytes() for p in sorted(built.iterdir())
                 if p.suffix in (".py", ".pyi", ".so") or p.name == "py.typed"}
    if not any(name.endswith(".so") for name in files):
        sys.exit("limber: the extension was not built: python3-dev or pybind11-dev is missing (bin/setup run python)")
    return pack(wheel_directory, files)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """pip install -e: Python reads the files of the build folder, whose .py files are those of the source."""
    settings = dict(config_settings or {})
    settings.setdefault("build-dir", str(ROOT / "build" / "editable"))
    built = build(settings["build-dir"], settings)
    return pack(wheel_directory, {"limber.pth": (str(built.parent) + "\n").encode()})


get_requires_for_build_editable = get_requires_for_build_wheel
prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def pack(wheel_directory, files):
    info = f"limber-{version()}.dist-info"
    files[f"{info}/METADATA"] = metadata().encode()
    files[f"{info}/WHEEL"] = wheel_text().encode()
    files[f"{info}/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    name = f"limber-{version()}-{tag()}.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if path.endswith(".so") else 0o644) << 16
            archive.writestr(entry, data)
    return name


def build_sdist(sdist_directory, config_settings=None):
    """What is needed to build and to read: no assets, scenes, tests."""
    base = f"limber-{version()}"
    with tarfile.open(os.path.join(sdist_directory, f"{base}.tar.gz"), "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for name in ("CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md", "pyproject.toml", "apps", "cmake",
                     "limber", "python", "web/dist"):
            archive.add(ROOT / name, f"{base}/{name}", filter=lambda m: None if "__pycache__" in m.name else m)
        scratch = tempfile.NamedTemporaryFile("w", suffix=".txt")
        with scratch:
            scratch.write(metadata())
            scratch.flush()
            archive.add(scratch.name, f"{base}/PKG-INFO")
    return f"{base}.tar.gz"
