// The storage side of join core CORE (SplitJoin, Algorithm 2).
// counters: one row of the core's own, { turn of the left stream, of the right, of tuples that only
// pass, staged }. A turn of its own for each keeps every subwindow's shares equal, within one tuple.

// Requires: `count` tuples come, ascending; with `append` they follow those of the last launch.
// Ensures:  every CORES-th of its stream is in staged[], still ascending; counters are up to date.
TASK HERE(store)(__global tuple_t *restrict staged, __global uint *restrict counters,
                 uint count, uint stream, uint append)
{
    uint turn = counters[CORE * COUNTERS + stream];
    uint stored = append ? counters[CORE * COUNTERS + STAGED] : 0;
    // The turn is a register: no iteration waits for memory.
    PIPELINE
    for (uint i = 0; i < count; i++) {
        tuple_t tuple;
        GET(HERE(tuples), tuple);
        if (turn == CORE)
            staged[stored++] = tuple;
        // Algorithm 2 as printed resets at N, which makes N + 1 turns and one that stores nowhere.
        turn = turn == CORES - 1 ? 0 : turn + 1;
    }
    counters[CORE * COUNTERS + stream] = turn;
    counters[CORE * COUNTERS + STAGED] = stored;
}
