"""Cycle figures of whole engines: exact, so that they hold to the digit on every machine.

Commands are sent as a manager sends them, without a pause: of each batch the keys probe the other
stream's subwindows, the oldest first, and then its tuples go into the newest of their own.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hw.rtl.block_core import BlockCore
from hw.rtl.nested_loop_core import NestedLoopCore
from hw.spec import Band, JoinParams, Predicate, Side, tuple_dtype
from hw.spec.commands import Opcode
from hw.spec.predicates import registers
from sim.engine_commands import EngineCommands
from sim.engine_cycles import Answers, CountedEngine, build_counted
from sim.stream_bfm import Codec

__all__ = [
    "BISORT", "NESTED_LOOP", "ONE_CORE", "ORDERS", "Sizes", "block_engine", "comparisons",
    "nested_engine", "one_core", "output_limited", "sustained",
]

#: One core of the sustained figure: a merger of 4 lanes, 8 probers, index entries for each word.
BISORT = JoinParams(
    subwindow=1 << 10, partitions=1 << 8, insert_buffer=1 << 8, lanes=4, probers=8, cores=8, bands=1
)
BISORT_SLOTS = 7
#: One such core alone, with the largest window of the comparison, and the nested-loop cores.
ONE_CORE = replace(
    BISORT, subwindow=1 << 14, partitions=1 << 12, insert_buffer=1 << 10, cores=1
)
NESTED_LOOP = replace(BISORT, subwindow=1 << 14, partitions=1 << 12)
#: Name of an order -> records between two stars where a probe has one record.
ORDERS = {"none": 0, "strict outer": 1}
EQUAL = Predicate((Band(0, 0),))


@dataclass(frozen=True)
class Sizes:
    """A workload: `batch` tuples of each stream in turn, windows of `window` tuples."""

    batch: int
    window: int
    domain: int
    batches: int
    seed: int = 1


def block_engine(params: JoinParams = BISORT, slots: int = BISORT_SLOTS) -> CountedEngine:
    """An engine of BI-Sort cores with their block RAM."""
    library = build_counted(params, lambda: BlockCore(params, slots=slots))
    return CountedEngine(params, library)


def nested_engine(params: JoinParams = NESTED_LOOP) -> CountedEngine:
    """An engine of the cores that SplitJoin printed."""
    return CountedEngine(params, build_counted(params, lambda: NestedLoopCore(params)))


@dataclass
class Script:
    """Commands for an engine as an array of words; it finds the engine empty."""

    engine: CountedEngine
    parts: list[np.ndarray] = field(default_factory=list)
    commands: int = 0
    records: int = 0

    def __post_init__(self) -> None:
        self.engine.restart()
        self._make = EngineCommands(self.engine.params)
        self._data_bits = 64 * self.engine.params.lanes
        self._count_bits = self.engine.params.lanes.bit_length()

    def head(self, opcode: Opcode, side: Side, number: int, count: int, **more: Any) -> None:
        codec = Codec(self._make.word.shape)
        rows = []
        for word in self._make.words(opcode, side, number, count, **more):
            bits = codec.pack(word["data"]) | word["count"] << self._data_bits
            size = 4 * self.engine.word_size
            rows.append(np.frombuffer(bits.to_bytes(size, "little"), np.uint32))
        self.parts.append(np.stack(rows))
        self.commands += 1

    def insert(self, side: Side, number: int, tuples: np.ndarray) -> None:
        self.head(Opcode.INSERT, side, number, len(tuples))
        self._payload(tuples)

    def probe(
        self, stored: Side, number: int, keys: np.ndarray, predicate: Predicate, **more: Any
    ) -> None:
        words = registers(predicate, stored.other, self.engine.params.key_bits)
        names = ("lo", "hi", "lo_bound", "hi_bound")
        bands = [{name: int(word[name]) for name in names} for word in words]
        unused = [dict.fromkeys(names, 0)] * (self.engine.params.bands - len(bands))
        self.head(
            Opcode.PROBE, stored, number, len(keys), band_count=len(bands), bands=bands + unused,
            chunk_words=2, **more,
        )
        tuples = np.zeros(len(keys), tuple_dtype(32))
        tuples["key"] = keys
        self._payload(tuples)
        self.records += len(keys)

    def _payload(self, tuples: np.ndarray) -> None:
        lanes, size = self.engine.params.lanes, self.engine.word_size
        count = -(-len(tuples) // lanes)
        words = np.zeros((count + 1, size), np.uint32)
        filled = np.zeros((count, 2 * lanes), np.uint32)
        filled.reshape(-1)[: 2 * len(tuples)] = tuples.view(np.uint32)
        words[:-1, : 2 * lanes] = filled
        counts = np.minimum(lanes, len(tuples) - lanes * np.arange(count))
        words[:-1, 2 * lanes] = counts
        words[-1, 2 * lanes] = 1 << self._count_bits
        self.parts.append(words)

    def run(self) -> Answers:
        # Every record and every reply in every core, and as many tokens of stars alone.
        cores = self.engine.params.cores
        room = 2 * cores * (self.records + self.commands) + 1000
        return self.engine.run(np.concatenate(self.parts), self.commands, room)


class Windows:
    """Both streams' subwindows, as a manager keeps them."""

    def __init__(self, script: Script, sizes: Sizes, star_every: int) -> None:
        self.script, self.sizes, self.star_every = script, sizes, star_every
        params = script.engine.params
        self.rows = params.subwindow * params.cores
        self.most = params.insert_buffer * params.cores
        self.live: dict[Side, list[list[int]]] = {side: [] for side in Side}
        self.stored: dict[Side, list[np.ndarray]] = {side: [] for side in Side}
        self.numbers = 0
        self.matches = 0

    def batch(self, side: Side, keys: np.ndarray) -> None:
        """Probe the other stream with the batch and store it."""
        keys = np.sort(keys)
        for position, (number, _) in enumerate(self.live[side.other]):
            self.script.probe(side.other, number, keys, EQUAL, star_every=self.star_every)
            stored = np.sort(self.stored[side.other][position])
            self.matches += int(
                (np.searchsorted(stored, keys, "right") - np.searchsorted(stored, keys)).sum()
            )
        if not self.live[side] or self.live[side][-1][1] == self.rows:
            self._create(side)
        tuples = np.zeros(len(keys), tuple_dtype(32))
        tuples["key"] = keys
        for first in range(0, len(tuples), self.most):
            self.script.insert(side, self.live[side][-1][0], tuples[first : first + self.most])
        self.live[side][-1][1] += len(keys)
        self.stored[side][-1] = np.concatenate([self.stored[side][-1], keys])
        held = sum(rows for _, rows in self.live[side])
        if held - self.live[side][0][1] >= self.sizes.window:
            self.script.head(Opcode.EXPIRE, side, self.live[side].pop(0)[0], 0)
            self.stored[side].pop(0)

    def _create(self, side: Side) -> None:
        self.numbers += 1
        self.script.head(Opcode.CREATE, side, self.numbers, self.rows)
        self.live[side].append([self.numbers, 0])
        self.stored[side].append(np.empty(0, np.int32))


def sustained(engine: CountedEngine, sizes: Sizes, order: str = "none") -> dict[str, Any]:
    """Tuples of both streams a cycle once both windows are full, and what was found."""
    rng = np.random.default_rng(sizes.seed)
    script = Script(engine)
    windows = Windows(script, sizes, ORDERS[order])
    # Full, and then as far as whole subwindows came and went.
    warm = -(-sizes.window // sizes.batch) + windows.rows // sizes.batch
    for number in range(warm + sizes.batches):
        if number == warm:
            begun = script.commands
        for side in (Side.LEFT, Side.RIGHT):
            windows.batch(side, rng.integers(0, sizes.domain, sizes.batch).astype(np.int32))
    answers = script.run()
    found = int((answers["data.record.end"] - answers["data.record.start"])[answers.results].sum())
    assert found == windows.matches, (found, windows.matches)
    cycles = int(answers.ends[-1] - answers.ends[begun - 1])
    tuples = 2 * sizes.batches * sizes.batch
    counted = answers.stamps > answers.ends[begun - 1]
    return {
        "order": order, "cores": engine.params.cores, "batch": sizes.batch,
        "window": sizes.window, "tuples": tuples, "cycles": cycles,
        "tuples_a_cycle": round(tuples / cycles, 4),
        "results_a_tuple": round(int((answers.results & counted).sum()) / tuples, 4),
    }


def output_limited(engine: CountedEngine, sizes: Sizes, order: str = "none") -> dict[str, Any]:
    """Results a cycle of one probe that finds something in every core for every key."""
    rng = np.random.default_rng(sizes.seed)
    script = Script(engine)
    cores = engine.params.cores
    script.head(Opcode.CREATE, Side.LEFT, 1, sizes.window)
    step = engine.params.insert_buffer * cores
    for first in range(0, sizes.window, step):
        tuples = np.zeros(min(step, sizes.window - first), tuple_dtype(32))
        tuples["key"] = np.sort(rng.integers(0, sizes.domain, len(tuples)))
        script.insert(Side.LEFT, 1, tuples)
    keys = np.sort(rng.integers(0, sizes.domain, sizes.batch)).astype(np.int32)
    for _ in range(sizes.batches):
        script.probe(Side.LEFT, 1, keys, EQUAL, star_every=ORDERS[order])
    answers = script.run()
    begun = answers.ends[-1 - sizes.batches]
    results = int((answers.results & (answers.stamps > begun)).sum())
    cycles = int(answers.ends[-1] - begun)
    return {
        "order": order, "cores": cores, "batch": sizes.batch, "results": results,
        "cycles": cycles, "results_a_cycle": round(results / cycles, 4),
        "results_a_probe": round(results / sizes.batches / sizes.batch, 4),
    }


def comparisons(engine: CountedEngine, windows: list[int], probes: int = 8) -> list[dict[str, Any]]:
    """Comparisons a core and cycle of nested-loop cores, by the tuples that each of them holds."""
    found = []
    for window in windows:
        script = Script(engine)
        keys = np.zeros(probes, np.int32)
        for _ in range(2):  # the second begins when the first is at work
            script.probe(Side.LEFT, 1, keys, EQUAL, scan=window)
        ends = script.run().ends
        cycles = int(ends[1] - ends[0])
        found.append({
            "window": window, "cycles_a_tuple": round(cycles / probes, 3),
            "comparisons_a_core_and_cycle": round(probes * window / cycles, 4),
        })
    return found


def one_core(engine: CountedEngine, windows: list[int]) -> list[dict[str, Any]]:
    """Cycles a tuple of one BI-Sort core whose window is one subwindow: its batch is merged into
    the subwindow, on the average while that fills, and probes a full one.
    """
    rng = np.random.default_rng(1)
    found = []
    for number, window in enumerate(windows):
        batch = min(engine.params.insert_buffer, window // 4)
        script = Script(engine)
        script.head(Opcode.CREATE, Side.LEFT, number, window)
        fills = [batch] * (window // batch)
        for size in fills:
            tuples = np.zeros(size, tuple_dtype(32))
            tuples["key"] = np.sort(rng.integers(0, 16 * window, size))
            script.insert(Side.LEFT, number, tuples)
        keys = np.sort(rng.integers(0, 16 * window, batch)).astype(np.int32)
        for _ in range(2):
            script.probe(Side.LEFT, number, keys, EQUAL)
        script.head(Opcode.EXPIRE, Side.LEFT, number, 0)
        ends = script.run().ends
        inserts = np.diff(ends[: len(fills) + 1])
        probe = int(ends[len(fills) + 2] - ends[len(fills) + 1])
        found.append({
            "window": window, "batch": batch,
            "insert_cycles_a_tuple": round(float(inserts.mean()) / batch, 4),
            "probe_cycles_a_tuple": round(probe / batch, 4),
            "cycles_a_tuple": round((float(inserts.mean()) + probe) / batch, 4),
        })
    return found
