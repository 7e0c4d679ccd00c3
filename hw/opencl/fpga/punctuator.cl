// The result side of join core CORE: positions become records <start, end>, and stars mark where
// the results of a probe end (SplitJoin 5.1).

CHANNEL(result_t, HERE(results), DEPTH)

// Ensures: the non-empty records of every probe in the batch's order, all of them if `negated`; a
//          star after each probe unless the order is NONE; and always a final star, also where
//          nothing was stored: Algorithm 3 as printed sends none then, and its merger would wait
//          for ever.
TASK HERE(punctuate)(uint probes, uint bands, uint subwindows, uint negated, uint order)
{
    __local uint position[2 * BANDS * BLOCK];
    const uint words = order == NONE ? bands : bands + 1;
    uint lane = 0;
    uint first = 0, subwindow = 0;
    bool more = true;
    while (more) {
        bool last = subwindow == subwindows;
        uint count = last ? 0 : min((uint)BLOCK, probes - first);
        PIPELINE
        for (uint i = 0; i < count * bands * 2; i++) {
            uint found;
#define TAKE(l) if (lane == l) GET(OF_LANE(found, CORE, l), found);
            EACH_LANE(TAKE)
#undef TAKE
            position[i] = found;
        }
        uint row = 0, word = 0;
        PIPELINE
        for (uint i = 0; i < (last ? 1 : count * words); i++) {
            bool star = last || word == bands;
            result_t result;
            result.subwindow = subwindow;
            result.probe = last ? 0 : first + row;
            result.run = star ? STAR : word;
            result.start = star ? 0 : position[2 * word * count + row];
            result.end = star ? 0 : position[(2 * word + 1) * count + row];
            if (star || negated || result.start < result.end)
                PUT(HERE(results), result);
            row = word == words - 1 ? row + 1 : row;
            word = word == words - 1 ? 0 : word + 1;
        }
        more = !last;
        bool ends = first + BLOCK >= probes;        // of this subwindow
        lane = ends || lane == LANES - 1 ? 0 : lane + 1;
        first = ends ? 0 : first + BLOCK;
        subwindow = ends ? subwindow + 1 : subwindow;
    }
}
