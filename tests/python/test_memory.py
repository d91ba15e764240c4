"""Nothing that Python holds reads memory that is gone: lifetimes.py under valgrind, or under the address sanitizer where
the tests are compiled with it."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
# Reads a block that has been freed, as an array that has outlived its owner would.
STALE = """
import ctypes, numpy
c = ctypes.CDLL(None)
c.malloc.restype = ctypes.c_void_p
p = c.malloc(4096)
a = numpy.ctypeslib.as_array(ctypes.cast(p, ctypes.POINTER(ctypes.c_double)), (512,))
a[:] = 1
c.free(ctypes.c_void_p(p))
a.tobytes()
"""


def checked(*arguments):
    """What the checker says to a program: its end, and whether it has seen memory that is gone."""
    if "asan" in os.environ.get("LD_PRELOAD", ""):
        done = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=550,
                              env={**os.environ, "PYTHONMALLOC": "malloc"})
        return done, "AddressSanitizer: heap-use-after-free" in done.stderr
    if not shutil.which("valgrind"):
        pytest.skip("valgrind is not installed")
    environment = {**os.environ, "PYTHONMALLOC": "malloc", "LIMBER_KERNELS": "avx2", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(["valgrind", "-q", "--error-exitcode=9", f"--suppressions={HERE / 'loader.supp'}", sys.executable,
                           *map(str, arguments)], capture_output=True, text=True, env=environment, timeout=550)
    return done, done.returncode == 9 and "Invalid read" in done.stderr


def test_arrays_never_read_memory_that_is_gone():
    done, seen = checked(HERE / "lifetimes.py")
    assert not seen and done.returncode == 0 and "arrays" in done.stdout, done.stderr[-5000:]


def test_the_checker_sees_arrays_that_do():
    done, seen = checked("-c", STALE)
    assert seen and done.returncode != 0, done.stderr[-2000:]
