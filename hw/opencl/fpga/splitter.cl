// Cuts the merge of core CORE into balanced pieces, one for each merger (PanJoin III-G3: "balance
// the size of each piece of the partially merged main array"), by merge path.

#define DECLARE(merger) \
    CHANNEL(uint2, OF_LANE(main_piece, CORE, merger), 16) \
    CHANNEL(uint2, OF_LANE(batch_piece, CORE, merger), 16) \
    CHANNEL(uint4, OF_LANE(merge_piece, CORE, merger), 16)
EACH_MERGER(DECLARE)
#undef DECLARE
CHANNEL(uint, HERE(entries_due), 16)

// How many of the first `diagonal` merged tuples come from the main array. On equal keys those go
// first: they arrived earlier.
uint HERE(main_share)(__global const key_t *restrict keys, uint main_count,
                      __global const tuple_t *restrict staged, uint batch_count, uint diagonal)
{
    uint lo = diagonal > batch_count ? diagonal - batch_count : 0;
    uint hi = min(diagonal, main_count);
    // The next address hangs on the last compare, so a step costs a memory latency: MERGERS *
    // log2(rows) steps a launch, against `rows` clocks of merging.
    while (lo < hi) {
        uint middle = lo + (hi - lo) / 2;
        bool main_first = keys[middle] <= staged[diagonal - middle - 1].key;
        lo = main_first ? middle + 1 : lo;
        hi = main_first ? hi : middle;
    }
    return lo;
}

// Requires: the core's staged tuples and its main array, `count` keys from row `first`, ascend.
// Ensures:  the mergers know which parts of both make [from, to) of the merged array, which begins
//           at row `target`; the indexer knows how many entries they will send, one every
//           partition_rows tuples.
TASK HERE(split)(__global const key_t *restrict keys, __global const tuple_t *restrict staged,
                 __global const uint *restrict counters,
                 uint first, uint count, uint target, uint from, uint to, uint partition_rows)
{
    uint batch_count = counters[CORE * COUNTERS + STAGED];
    uint due = (to + partition_rows - 1) / partition_rows
             - (from + partition_rows - 1) / partition_rows;
    PUT(HERE(entries_due), due);
    uint main_at = HERE(main_share)(keys + first, count, staged, batch_count, from);
    uint merged = from;
    for (uint merger = 0; merger < MERGERS; merger++) {
        uint next = from + (uint)((ulong)(to - from) * (merger + 1) / MERGERS);
        uint main_next = HERE(main_share)(keys + first, count, staged, batch_count, next);
        uint2 of_main = (uint2)(first + main_at, main_next - main_at);
        uint2 of_batch = (uint2)(merged - main_at, (next - merged) - (main_next - main_at));
        uint4 piece = (uint4)(target, merged, of_main.y, of_batch.y);
#define SEND(m) \
        if (merger == m) { \
            PUT(OF_LANE(main_piece, CORE, m), of_main); \
            PUT(OF_LANE(batch_piece, CORE, m), of_batch); \
            PUT(OF_LANE(merge_piece, CORE, m), piece); \
        }
        EACH_MERGER(SEND)
#undef SEND
        main_at = main_next;
        merged = next;
    }
}
