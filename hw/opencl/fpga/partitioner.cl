// Partitioner LANE of core CORE (PanJoin IV): for each bound, the few rows of the main array where
// it falls. The index array is in on-chip memory while a subwindow is probed.

CHANNEL(target_t, UNIT(targets), DEPTH)
CHANNEL(uint2, UNIT(fetches), DEPTH)

#define BEFORE(stored, bound, above) ((above) ? (stored) <= (bound) : (stored) < (bound))

// Bounds of one subwindow that come to this lane.
uint UNIT(share)(uint probes, uint bands)
{
    uint blocks = probes / BLOCK;
    uint rows = (blocks / LANES + (LANE < blocks % LANES ? 1 : 0)) * BLOCK;
    rows += blocks % LANES == LANE ? probes % BLOCK : 0;
    return rows * bands * 2;
}

// Requires: areas[s] = { first row, tuples, first index entry, rows a partition } of subwindow s,
//           whose index array has PARTITIONS entries at most.
// Ensures:  a target for each bound, and one that closes; rows to scan are asked for once for all
//           bounds of a sequence that fall into them. Partitions longer than scan_rows are searched
//           first, down to that many rows.
TASK UNIT(partition)(__global const key_t *restrict index, __global const key_t *restrict keys,
                     __global const uint4 *restrict areas,
                     uint probes, uint bands, uint subwindows, uint scan_rows)
{
    __local key_t entry[PARTITIONS];
    const uint expected = UNIT(share)(probes, bands);
    for (uint subwindow = 0; subwindow < subwindows; subwindow++) {
        uint4 area = areas[subwindow];
        uint entries = (area.y + area.w - 1) / area.w;
        PIPELINE
        for (uint i = 0; i < entries; i++)
            entry[i] = index[area.z + i];
        uint reached[2 * BANDS];        // by sequence: where its last search ended
        for (uint sequence = 0; sequence < 2 * BANDS; sequence++)
            reached[sequence] = 0;
        uint scanned = 0, scanned_count = 0;        // the rows that the prober has
        uint last_sequence = 2 * BANDS;
        key_t last_key = KEY_MIN;
        // After the last bound one more target closes, so that each channel has a single call site.
        uint closings = subwindow == subwindows - 1 ? 1 : 0;
        for (uint i = 0; i < expected + closings; i++) {
            bool closing = i == expected;
            bound_t bound = {KEY_MIN, 0, true};
            if (!closing)
                GET(UNIT(bounds), bound);
            bool above = bound.sequence % 2;
            // Rebounding search (PanJoin, Figure 6): forward in doubled steps from where the last
            // bound of the sequence ended, backward in halved ones. Each step reads on-chip memory
            // at an address that the last compare chose: some clocks a step, few steps, since
            // neighbours fall near each other. Bounds that do not ascend begin anew.
            uint first = reached[bound.sequence];
            if (first > 0 && !BEFORE(entry[first - 1], bound.key, above))
                first = 0;
            uint step = bound.empty ? 0 : 1;
            bool forward = true;
            while (step > 0) {
                uint next = first + step;
                bool before = next <= entries && BEFORE(entry[next - 1], bound.key, above);
                first = before ? next : first;
                forward = forward && before;
                step = forward ? step * 2 : step / 2;
            }
            if (!bound.empty)
                reached[bound.sequence] = first;
            // Partitions before `first` begin before the bound, so it falls into the last of them.
            target_t target;
            target.key = bound.key;
            target.above = above;
            target.closing = closing;
            target.known = bound.empty || first == 0;
            uint row = target.known ? 0 : (first - 1) * area.w;
            uint count = target.known ? 0 : min(area.w, area.y - row);
            while (count > scan_rows) {             // search: a memory latency a step
                uint half_count = count / 2;
                bool before = BEFORE(keys[area.x + row + half_count], bound.key, above);
                row = before ? row + half_count : row;
                count = before ? count - half_count : half_count;
            }
            bool shared = bound.sequence == last_sequence && bound.key >= last_key
                       && row == scanned && count == scanned_count;
            target.fresh = !target.known && !shared;
            target.first = row;
            target.count = count;
            // The target goes first: the prober then empties the channel that the rows need.
            PUT(UNIT(targets), target);
            if (target.fresh || closing) {
                uint2 fetch = (uint2)(area.x + row, count);     // no rows: the end
                PUT(UNIT(fetches), fetch);
                scanned = row;
                scanned_count = count;
            }
            last_sequence = target.known ? last_sequence : bound.sequence;
            last_key = target.known ? last_key : bound.key;
        }
    }
}
