// SplitJoin's collection (Algorithm 5): the results of all cores become one stream, and the stars
// of all cores become one star.
//   NONE    as they come, one star at the end
//   OUTER   all results of a probe before those of the next
//   STRICT  and those of a probe by core, so that two runs give the same stream

// Requires: bases[s * CORES + c] = where core c's tuples begin in the order of subwindow s.
// Ensures:  table[s][probe][band * CORES + c] is that record, untouched where it is empty; with
//           `keep` the stream is in results[] with its stars, and length[0] says how long it is.
TASK collect(__global const uint *restrict bases, __global record_t *restrict table,
             __global result_t *restrict results, __global uint *restrict length,
             uint probes, uint bands, uint subwindows, uint negated, uint order, uint keep)
{
    const uint all = (1u << CORES) - 1;
    // A frame ends with one star of every core: a probe, or with NONE everything. The final stars
    // are a frame of their own.
    uint frames = order == NONE ? 1 : probes * subwindows + 1;
    uint open = all, turn = 0, written = 0;
    // Registers decide whom to ask, memory is only written, at addresses that come from the word.
    PIPELINE
    while (frames > 0) {
        result_t result;
        bool came = false;
#define ASK(core) \
        if (turn == core && (open >> core & 1)) TRY_GET(OF_CORE(results, core), result, came);
        EACH_CORE(ASK)
#undef ASK
        bool star = came && result.run == STAR;
        uint core = turn;
        if (star)
            open &= ~(1u << core);
        bool closes = open == 0;
        if (came && !star) {
            uint base = bases[result.subwindow * CORES + core];
            result.run = result.run * CORES + core;
            result.start += base;
            result.end = (result.end + base) | (negated ? NOT : 0);
            record_t record;
            record.start = result.start;
            record.end = result.end;
            table[(result.subwindow * probes + result.probe) * (CORES * bands) + result.run] =
                record;
        }
        if (keep && came && (!star || closes)) {
            results[written] = result;
            written++;
        }
        frames -= closes ? 1 : 0;
        // With STRICT a core is asked until its star, and core 0 first; a core that has sent its
        // star is passed over until the others have too.
        bool stays = order == STRICT && !star;
        turn = closes || (!stays && turn == CORES - 1) ? 0 : stays ? turn : turn + 1;
        open = closes ? all : open;
    }
    length[0] = written;
}
