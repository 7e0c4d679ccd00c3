# amaranth: UnusedElaboratable=no
"""hw.rtl.punctuator and hw.rtl.combiner in Amaranth's own simulator."""

import random

import pytest

from hw.rtl.collection_tree import MOST_STARS
from hw.rtl.combiner import Combiner
from hw.rtl.punctuator import Punctuator
from hw.spec import NOT, JoinParams
from sim.punctuation import STAR, command_events, context_of, events_of, tagged, tokens_of
from tests.rtl.helpers import no_pause, pauses, run, stream_get, stream_put

PARAMS = JoinParams(
    subwindow=16, partitions=4, lanes=4, probers=2, mergers=2, insert_buffer=16, bands=1, cores=4
)
CORE, LANES = 3, PARAMS.lanes
LONG = random.Random(9)


def long_pauses():
    """Mostly none, sometimes long enough for many stars to gather."""
    return LONG.choice((0, 0, 0, 0, 25))


def plain(value):
    """A constant of a layout as dicts."""
    record = value.record
    return {"record": {"start": record.start, "end": record.end}, "number": value.number,
            "reply": value.reply, "side": value.side, "core": value.core}


def words_of(records):
    words = []
    for first in range(0, len(records), LANES):
        some = [{"start": s, "end": e} for s, e in records[first : first + LANES]]
        # What lies beyond the count is anything.
        data = (some + [{"start": 1, "end": 9}] * LANES)[:LANES]
        words.append({"data": data, "count": len(some), "end": 0})
    return [*words, {"count": 0, "end": 1}]


def punctuate(commands, pause_in=no_pause, pause_out=no_pause):
    """Commands as (context, records, reply); the events and the `ordered` of every result."""
    dut = Punctuator(PARAMS, CORE)
    tokens, ordered = [], []
    expected = sum(len(command_events(*command, CORE)) for command in commands)

    async def contexts(ctx):
        for context, _, _ in commands:
            await stream_put(ctx, dut.contexts, context, pause_in())

    async def records(ctx):
        for context, found, _ in commands:
            for word in words_of(found) if context["probe"] else []:
                await stream_put(ctx, dut.records, word, pause_in())

    async def replies(ctx):
        for _, _, reply in commands:
            await stream_put(ctx, dut.replies, reply, pause_in())

    async def receive(ctx):
        while len(events_of(tokens)) < expected:
            token = await stream_get(ctx, dut.results, pause_out())
            tokens.append({"stars": token.stars, "present": token.present,
                           "data": plain(token.data)})
            if token.present:
                ordered.append(token.ordered)

    run(dut, contexts, records, replies, receive)
    return events_of(tokens), ordered


def command(rng, probe, records, star_every=0, ordered=0):
    side = rng.randrange(2)
    reply = {"opcode": 3 if probe else 2, "side": side, "subwindow": rng.randrange(99),
             "status": rng.randrange(8), "rows": rng.randrange(16)}
    return context_of(probe, side, star_every, ordered), records, reply


def hits(rng, count, share):
    found = []
    for _ in range(count):
        start = rng.randrange(10)
        found.append((start, start + rng.randrange(1, 4) if rng.random() < share else start))
    return found


@pytest.mark.parametrize("star_every", [0, 1, 2, 3, 5, 6, 7, 2 * MOST_STARS, 63, 64, 130])
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_the_punctuator_sends_every_result_between_its_stars(share, star_every):
    rng = random.Random(star_every)
    commands = [
        command(rng, 1, hits(rng, 41 + 2 * star_every, share), star_every, 1),
        command(rng, 0, []),
        command(rng, 1, [], star_every),
        command(rng, 1, hits(rng, 36, share), star_every),
    ]
    for pause_in, pause_out in ((no_pause, long_pauses), (pauses(1), pauses(2))):
        events, ordered = punctuate(commands, pause_in, pause_out)
        assert events == [e for one in commands for e in command_events(*one, CORE)]
        wanted = [one[0]["ordered"] for one in commands
                  for event in command_events(*one, CORE) if event != STAR]
        assert ordered == wanted


def test_a_label_makes_the_punctuator_keep_an_empty_record():
    label = int(NOT)
    commands = [command(random.Random(1), 1, [(0, label), (3, 3 | label), (2, 2)])]
    events, _ = punctuate(commands)
    assert [event["number"] for event in events[:2]] == [0, 1] and len(events) == 4


def test_too_many_lanes_for_the_punctuator_are_refused():
    wide = JoinParams(lanes=16, subwindow=64, partitions=4)
    with pytest.raises(ValueError, match=r"^lanes must be below 15 here, not 16$"):
        Punctuator(wide, 0)


def result(number, reply=0):
    return {"record": {"start": number, "end": number + 1}, "number": number, "reply": reply,
            "side": 0, "core": number % 4}


def combine(commands, most, pause_sides=no_pause, pause=no_pause, pause_out=no_pause):
    """Commands as (side, events); the answers' events."""
    dut = Combiner(PARAMS)
    answers = []
    events = [event for _, found in commands for event in found]
    # A token of stars alone has the data of one before it.
    tokens = tokens_of(events, most, empty=result(0, reply=1))

    async def sides(ctx):
        for side, _ in commands:
            await stream_put(ctx, dut.sides, side, pause_sides())

    async def results(ctx):
        for token in tokens:
            await stream_put(ctx, dut.results, token, pause())

    async def receive(ctx):
        while len(tagged(answers)) < len(events):
            token = await stream_get(ctx, dut.answers, pause_out())
            answers.append({"stars": token.stars, "present": token.present, "side": token.side,
                            "last": token.last, "data": plain(token.data)})

    run(dut, sides, results, receive)
    return tagged(answers)


@pytest.mark.parametrize("most", [1, 2, MOST_STARS])
@pytest.mark.parametrize("seed", range(3))
def test_the_combiner_tags_every_star_and_tells_the_last(most, seed):
    rng = random.Random(seed)
    commands = []
    for _ in range(9):
        events = []
        for _ in range(rng.randrange(5)):
            events += rng.choice(([result(rng.randrange(99))], [STAR], [STAR, STAR]))
        # The replies of all cores, and the last star.
        events += [*(result(rng.randrange(9), reply=1) for _ in range(rng.choice((1, 3)))), STAR]
        commands.append((rng.randrange(2), events))
    expected = []
    for side, events in commands:
        *inner, _ = events
        expected += [(STAR, side, 0) if event == STAR else event for event in inner]
        expected.append((STAR, side, 1))
    for ends in ((), (pauses(seed), no_pause, pauses(4)), (lambda: 3, pauses(1), long_pauses)):
        assert combine(commands, most, *ends) == expected
