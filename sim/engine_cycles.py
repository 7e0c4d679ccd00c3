"""An engine of many cores as a library that counts its cycles: words in, answers out.

The cores are instances of one module, which Verilator compiles once however many there are.
"""

import ctypes
import fcntl
import hashlib
import importlib.metadata
import os
import re
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from amaranth.hdl import ClockSignal, Instance, Module, ResetSignal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from hw.rtl.combiner import answer_layout
from hw.rtl.digest import library_directory
from hw.rtl.engine import Engine
from hw.rtl.layouts import fields_of
from hw.spec import JoinParams
from sim.elaborate import short_verilog
from sim.verilated import QUICK, compile_library

__all__ = ["Answers", "CountedEngine", "build_counted"]

HARNESS = Path(__file__).with_name("words_harness.cpp")
#: Cycles without a word or an answer after which an engine is taken to hang.
_PATIENCE = 1_000_000


class CoreInstance(wiring.Component):
    """The ports of `core`, which is a Verilog module `name` of its own."""

    def __init__(self, core, name):
        self.name = name
        super().__init__(dict(core.signature.members))

    def elaborate(self, platform):
        ports = {
            ("i_" if member.flow is In else "o_") + "__".join(map(str, path)): Value.cast(value)
            for path, member, value in self.signature.flatten(self)
        }
        m = Module()
        m.submodules.core = Instance(
            self.name, i_clk=ClockSignal(), i_rst=ResetSignal(), **ports
        )
        return m


def build_counted(params: JoinParams, core, *, fan_out=4, where=None):
    """Build the library of an engine of `params.cores` such cores unless it is there; its path.

    core  makes one join core
    """
    where = Path(where or library_directory())
    where.mkdir(parents=True, exist_ok=True)
    model = core()
    engine = Engine(params, lambda: CoreInstance(model, "join_core"), fan_out=fan_out)
    one = re.sub(
        r"(?s)(\nmodule join_core\(.*?\);)", r"\1 /*verilator no_inline_module*/",
        short_verilog(model, "join_core"), count=1,
    )
    text = short_verilog(engine, "core") + one
    made_of = [text, HARNESS.read_text(), QUICK, importlib.metadata.version("verilator")]
    digest = hashlib.sha256("\0".join(made_of).encode()).hexdigest()[:20]
    library = where / f"counted-{digest}.so"
    with open(where / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not library.exists():
            with tempfile.TemporaryDirectory(prefix="counted-", dir=where) as directory:
                made = compile_library(text, HARNESS, Path(directory), optimise=QUICK)
                os.replace(made, library)
    return library


@dataclass(frozen=True)
class Answers:
    """What an engine answered, token by token.

    stamps  the cycle in which each came
    """

    tokens: np.ndarray
    stamps: np.ndarray
    fields: dict

    def __getitem__(self, name) -> np.ndarray:
        """A field of every token."""
        offset, width = self.fields[name]
        first, shift = divmod(offset, 32)
        pieces = self.tokens[:, first : first + 3].astype(object)
        bits = sum(pieces[:, n] << (32 * n) for n in range(pieces.shape[1]))
        return (bits >> shift & ((1 << width) - 1)).astype(np.int64)

    @cached_property
    def ends(self) -> np.ndarray:
        """By command, the cycle in which its answer was complete."""
        return self.stamps[self["last"] == 1]

    @cached_property
    def results(self) -> np.ndarray:
        """Which tokens carry a result that is not a core's reply."""
        return (self["present"] == 1) & (self["data.reply"] == 0)


class CountedEngine:
    """A simulated engine that is fed without a pause and whose answers are taken at once."""

    def __init__(self, params: JoinParams, library: Path):
        self.params = params
        self._library = ctypes.CDLL(str(library))
        pointer, number = ctypes.c_void_p, ctypes.c_uint64
        self._library.engine_open.restype = pointer
        for name in ("engine_close", "engine_word_size", "engine_answer_size"):
            getattr(self._library, name).argtypes = [pointer]
        for name in ("engine_word_size", "engine_answer_size"):
            getattr(self._library, name).restype = number
        self._library.engine_run.restype = ctypes.c_int64
        self._library.engine_run.argtypes = [
            pointer, pointer, number, number, number, pointer, pointer, number, number,
        ]
        self._handle = pointer(self._library.engine_open())
        #: 32-bit pieces of a word.
        self.word_size = self._library.engine_word_size(self._handle)
        self._fields = fields_of(answer_layout(params))["fields"]

    def run(self, words: np.ndarray, commands: int, room: int) -> Answers:
        """The answers to these commands, in words of `word_size` pieces of 32 bits."""
        words = np.ascontiguousarray(words, np.uint32)
        assert words.shape[1] == self.word_size
        tokens = np.zeros((room, self._library.engine_answer_size(self._handle)), np.uint32)
        stamps = np.zeros(room, np.uint64)
        came = self._library.engine_run(
            self._handle, words.ctypes.data, len(words), commands, self._fields["last"][0],
            tokens.ctypes.data, stamps.ctypes.data, room, _PATIENCE,
        )
        if came < 0:
            raise RuntimeError("the engine hung, or answered more than was expected")
        return Answers(tokens[:came], stamps[:came].astype(np.int64), self._fields)

    def restart(self):
        """Forget everything: as after a reset."""
        self.close()
        self._handle = ctypes.c_void_p(self._library.engine_open())

    def close(self):
        self._library.engine_close(self._handle)
