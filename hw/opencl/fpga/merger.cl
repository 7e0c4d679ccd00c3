// Merger LANE of core CORE (PanJoin IV, Figure 8): two input streams, one output stream and a
// comparator. Each input stream has a kernel of its own, so that every memory address is a counter:
// a merger that read memory by itself would wait a memory latency for each compare.

CHANNEL(tuple_t, UNIT(from_main), DEPTH)
CHANNEL(tuple_t, UNIT(from_batch), DEPTH)
CHANNEL(entry_t, UNIT(entries), DEPTH)

// Ensures: this merger's piece of the main array flows, in order.
TASK UNIT(feed_main)(__global const key_t *restrict keys, __global const uint *restrict rids)
{
    uint2 piece;
    GET(UNIT(main_piece), piece);
    PIPELINE
    for (uint i = 0; i < piece.y; i++) {
        tuple_t tuple;
        tuple.key = keys[piece.x + i];
        tuple.rid = rids[piece.x + i];
        PUT(UNIT(from_main), tuple);
    }
}

// Ensures: this merger's piece of the batch flows, in order.
TASK UNIT(feed_batch)(__global const tuple_t *restrict staged)
{
    uint2 piece;
    GET(UNIT(batch_piece), piece);
    PIPELINE
    for (uint i = 0; i < piece.y; i++) {
        tuple_t tuple = staged[piece.x + i];
        PUT(UNIT(from_batch), tuple);
    }
}

// Ensures: both pieces are one ascending piece at its place in the target; the main array's tuples
//          go before equal ones of the batch. The first tuple of every partition is announced.
TASK UNIT(merge)(__global key_t *restrict keys, __global uint *restrict rids, uint partition_rows)
{
    uint4 piece;                        // target row, place in the merged array, main, batch
    GET(UNIT(merge_piece), piece);
    uint main_left = piece.z;
    uint batch_left = piece.w;
    uint count = piece.z + piece.w;
    uint partition = (piece.y + partition_rows - 1) / partition_rows;
    uint until_entry = partition * partition_rows - piece.y;
    tuple_t of_main, of_batch;
    bool main_held = false, batch_held = false;
    // One tuple a clock: what an iteration needs of the one before are these registers. Memory is
    // only written, at an address that counts.
    PIPELINE
    for (uint i = 0; i < count; i++) {
        if (!main_held && main_left > 0) {
            GET(UNIT(from_main), of_main);
            main_held = true;
            main_left--;
        }
        if (!batch_held && batch_left > 0) {
            GET(UNIT(from_batch), of_batch);
            batch_held = true;
            batch_left--;
        }
        bool take_main = main_held && (!batch_held || of_main.key <= of_batch.key);
        tuple_t tuple;
        if (take_main)
            tuple = of_main;
        else
            tuple = of_batch;
        main_held = main_held && !take_main;
        batch_held = batch_held && take_main;
        keys[piece.x + piece.y + i] = tuple.key;
        rids[piece.x + piece.y + i] = tuple.rid;
        if (until_entry == 0) {
            entry_t entry;
            entry.partition = partition;
            entry.key = tuple.key;
            PUT(UNIT(entries), entry);
            partition++;
        }
        until_entry = until_entry == 0 ? partition_rows - 1 : until_entry - 1;
    }
}
