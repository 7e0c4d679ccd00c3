"""Imports point down: spark_bridge -> host -> hw; sim -> hw; bench -> all of these."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("bench", "host", "hw", "sim", "spark_bridge")
FILES = [
    path
    for package in (*PACKAGES, "tools")
    for path in sorted((ROOT / package).rglob("*.py"))
]

#: Layer (the longest prefix counts) -> the project's own modules that it may import.
ALLOWED = {
    "hw": ("hw",),
    "hw.spec": ("hw.spec",),
    "hw.rtl": ("hw.spec", "hw.rtl"),
    "hw.opencl": ("hw.spec", "hw.bitstreams", "hw.opencl"),
    "hw.boards": ("hw.spec", "hw.bitstreams", "hw.rtl", "hw.boards"),
    "sim": ("hw", "sim"),
    "host": ("hw", "host"),
    "spark_bridge": ("hw", "host", "spark_bridge"),
    "bench": ("hw", "sim", "host", "spark_bridge", "bench"),
    "tools": ("hw", "sim", "host", "spark_bridge", "bench", "tools"),
}
#: Package -> who owns it; nobody else imports it.
OWNERS = {
    "amaranth": ("hw.rtl", "hw.boards", "sim"),
    "amaranth_boards": ("hw.boards",),
    "cocotb": ("sim",),
    "pyopencl": ("hw.opencl", "host.backends"),
    "pyspark": ("spark_bridge", "bench"),
    "sqlglot": ("host",),
    "duckdb": ("bench",),
}


def is_in(name, prefix):
    return name == prefix or name.startswith(prefix + ".")


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(text, module=""):
    """Every module that a file imports, wherever in it; `from a import b` as a.b."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parent = module.split(".")[: -node.level]
                base = ".".join([*parent, base]).strip(".")
            yield from (f"{base}.{alias.name}" for alias in node.names)


def may_use(module, layer, package):
    """Whether a module may import a package that is not of this project."""
    if layer == "hw.spec":
        return package in (*sys.stdlib_module_names, "numpy")
    return any(is_in(module, owner) for owner in OWNERS.get(package, [module]))


def is_engine(name):
    return is_in(name, "host.backends") and "_backend" in name


def faults(text, module):
    """What a module imports and may not."""
    layer = max((name for name in ALLOWED if is_in(module, name)), key=len)
    wrong = []
    for name in imported(text, module):
        package = name.partition(".")[0]
        if package == "tests":
            wrong.append(f"{module} imports {name}")
        elif package in (*PACKAGES, "tools"):
            if not any(is_in(name, below) for below in ALLOWED[layer]):
                wrong.append(f"{module} imports {name}")
        elif not may_use(module, layer, package):
            wrong.append(f"{module} imports {package}")
        if is_in(name, "hw.spec.reference") and layer not in ("hw.spec", "sim"):
            wrong.append(f"{module} imports the reference, which is for tests")
        if is_engine(name) and is_engine(module) and not is_in(name, module):
            wrong.append(f"{module} imports another backend")
    return wrong


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_imports_point_down(path):
    assert faults(path.read_text(), module_name(path)) == []


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("hw.spec.tuples", "import pyarrow"),
        ("hw.spec.tuples", "from hw.rtl import merger"),
        ("hw.rtl.merger", "from host import errors"),
        ("hw.opencl.program", "def f():\n    from hw import rtl"),
        ("host.manager", "import sim.build"),
        ("host.manager", "from spark_bridge import join"),
        ("host.manager", "import bench.suites"),
        ("host.manager", "import amaranth.hdl"),
        ("host.manager", "import pyopencl as cl"),
        ("host.manager", "from pyspark.sql import functions"),
        ("host.manager", "from hw.spec import reference"),
        ("host.manager", "from tests import helpers"),
        ("host.backends.rtl_backend", "from host.backends.numpy_backend import NumpyBackend"),
        ("spark_bridge.join", "from sim import cosim"),
        ("sim.build", "from host import link"),
    ],
)
def test_an_import_that_points_up_is_seen(module, text):
    assert len(faults(text, module)) == 1


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("hw.spec.windows", "import re\nimport numpy as np\nfrom hw.spec.tuples import Side"),
        ("host.backends.choice", "from host.backends.numpy_backend import NumpyBackend"),
        ("sim.scoreboard", "from hw.spec import reference"),
        ("host.backends.opencl_backend", "from hw.opencl import list_devices"),
        ("bench.demo", "import duckdb\nfrom host.__main__ import main"),
    ],
)
def test_an_import_that_points_down_is_not(module, text):
    assert faults(text, module) == []
