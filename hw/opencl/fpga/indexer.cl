// The indexer of core CORE (PanJoin IV): index[p] is the key of the first tuple of partition p. It
// works while the mergers write, not after them, so the index costs no pass over the main array.

// Requires: the target's index array begins at entry `first`.
TASK HERE(index_partitions)(__global key_t *restrict index, uint first)
{
    uint due;
    GET(HERE(entries_due), due);
    uint turn = 0;
    // The mergers are asked in turn and none is waited for: to wait for the first would hold up the
    // others as soon as their channels are full.
    PIPELINE
    while (due > 0) {
        entry_t entry;
        bool came = false;
#define ASK(m) if (turn == m) TRY_GET(OF_LANE(entries, CORE, m), entry, came);
        EACH_MERGER(ASK)
#undef ASK
        if (came) {
            index[first + entry.partition] = entry.key;
            due--;
        }
        turn = turn == MERGERS - 1 ? 0 : turn + 1;
    }
}
