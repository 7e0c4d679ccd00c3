"""SlotTable in Amaranth's simulator, against a table in Python, through random commands."""

import random

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from hw.rtl.join_core import command_layout
from hw.rtl.slot_table import SlotTable
from hw.spec import JoinParams, Side
from tests.rtl.helpers import run

PARAMS = JoinParams(
    subwindow=8, partitions=4, lanes=2, probers=2, mergers=1, insert_buffer=8, bands=1
)
SLOTS = 3
STEPS = ("rest", "forget", "look", "create", "inserted", "expire", "survey")


class Stepper(wiring.Component):
    """A slot table that takes one step a cycle, as the core's states would."""

    def __init__(self):
        super().__init__(
            {"step": In(range(len(STEPS))), "turn": In(range(SLOTS + 1)), "rows": In(4),
             "command": In(command_layout(PARAMS))}
        )
        self.table = None

    def elaborate(self, platform):
        m = Module()
        self.table = table = SlotTable(m, PARAMS, SLOTS)
        arguments = {
            "rest": (), "forget": (), "look": (self.turn, self.command),
            "create": (self.command,), "inserted": (self.rows,), "expire": (),
            "survey": (self.turn, self.command.side),
        }
        with m.Switch(self.step):
            for number, name in enumerate(STEPS[1:], 1):
                with m.Case(number):
                    getattr(table, name)(*arguments[name])
        return m


class Driver:
    """Leads the table and the model through the same commands and compares what they tell."""

    def __init__(self, dut, ctx):
        self.dut, self.ctx = dut, ctx
        self.held = {}  # (side, subwindow) -> [rows, capacity, what its main array is]
        self.memory = {}  # word address of a main array -> what was written there

    def told(self, name):
        return self.ctx.get(getattr(self.dut.table, name))

    async def step(self, name, turn=0):
        self.ctx.set(self.dut.step, STEPS.index(name))
        self.ctx.set(self.dut.turn, turn)
        await self.ctx.tick()
        self.ctx.set(self.dut.step, 0)

    async def find(self, side, number, count=0):
        command = {"side": side, "subwindow": number, "count": count}
        self.ctx.set(self.dut.command, command)
        await self.step("forget")
        for turn in range(SLOTS + 1):
            await self.step("look", turn)
        entry = self.held.get((side, number))
        assert self.told("found") == (entry is not None)
        assert self.told("free") == (len(self.held) < SLOTS)
        if entry is not None:
            rows, capacity, written = entry
            assert (self.told("rows"), self.told("capacity")) == (rows, capacity)
            assert self.told("address") != self.told("spare_address")
            assert rows == 0 or self.memory[self.told("address")] == written
        return entry

    async def survey(self, side, rows):
        assert self.told("rows") == rows
        for turn in range(SLOTS + 1):
            await self.step("survey", turn)
        mine = [self.held[key] for key in sorted(self.held) if key[0] == side]
        assert self.told("any") == bool(mine)
        assert self.told("newest_full") == (bool(mine) and mine[-1][0] == mine[-1][1])
        assert self.told("oldest_empty") == (bool(mine) and mine[0][0] == 0)

    async def create(self, side, number, capacity):
        if await self.find(side, number, capacity) is None and len(self.held) < SLOTS:
            await self.step("create")
            self.held[side, number] = [0, capacity, None]
            await self.survey(side, 0)

    async def insert(self, side, number, rows, written):
        entry = await self.find(side, number)
        if entry is not None and entry[0] + rows <= entry[1]:
            spare = self.told("spare_address")
            assert spare % (PARAMS.subwindow // PARAMS.lanes) == 0
            self.memory[spare] = written
            entry[0], entry[2] = entry[0] + rows, written
            self.ctx.set(self.dut.rows, entry[0])
            await self.step("inserted")
            await self.survey(side, entry[0])

    async def expire(self, side, number):
        if await self.find(side, number) is not None:
            await self.step("expire")
            del self.held[side, number]
            await self.survey(side, 0)


def test_subwindows_are_found_with_their_tuples_until_they_expire():
    dut, rng = Stepper(), random.Random(5)

    async def process(ctx):
        driver = Driver(dut, ctx)
        for written in range(400):
            side, number = rng.choice(list(Side)), rng.randrange(5)
            what = rng.choice(("create", "insert", "insert", "expire"))
            if what == "create":
                await driver.create(side, number, rng.randrange(1, PARAMS.subwindow + 1))
            elif what == "insert":
                await driver.insert(side, number, rng.randrange(4), written)
            else:
                await driver.expire(side, number)

    run(dut, process, cycles=8_000)
