// The boundary generator of core CORE (PanJoin IV): probe keys and the predicate's registers become
// lower and upper bounds of stored keys. See hw.spec.predicates for the registers' meaning.
//
// Bounds leave in blocks of BLOCK probes, block n to lane n mod LANES. Inside a block all lower
// bounds of a band go first, then its upper ones: each such sequence ascends as the probes do.

#define DECLARE(lane) CHANNEL(bound_t, OF_LANE(bounds, CORE, lane), DEPTH)
EACH_LANE(DECLARE)
#undef DECLARE

// [key + lo, key + hi] in the key's type: a bound that leaves the type saturates, and an interval
// that lies wholly beyond it is empty (PanJoin's v+ overflows there).
interval_t HERE(interval_of)(key_t key, register_t word)
{
    ukey_t above = (ukey_t)KEY_MAX - (ukey_t)key;       // room to either end: exact, any key
    ukey_t below = (ukey_t)key - (ukey_t)KEY_MIN;
    ukey_t lo = (ukey_t)word.lo, hi = (ukey_t)word.hi;
    interval_t interval;
    interval.lo = word.lo_bound == PLUS ? (key_t)((ukey_t)key + lo)
                : word.lo_bound == MINUS && lo <= below ? (key_t)((ukey_t)key - lo) : KEY_MIN;
    interval.hi = word.hi_bound == MINUS ? (key_t)((ukey_t)key - hi)
                : word.hi_bound == PLUS && hi <= above ? (key_t)((ukey_t)key + hi) : KEY_MAX;
    bool nowhere = word.lo_bound == NEVER || word.hi_bound == NEVER
                || (word.lo_bound == PLUS && lo > above) || (word.hi_bound == MINUS && hi > below);
    interval.lo = nowhere ? KEY_MAX : interval.lo;
    interval.hi = nowhere ? KEY_MIN : interval.hi;
    return interval;
}

// Requires: 1 <= bands <= BANDS. A probe is one word that the registers turn into `bands` intervals;
//           with `intervals` it is that many words.
TASK HERE(bound)(__global const register_t *restrict registers,
                 uint probes, uint bands, uint intervals, uint subwindows)
{
    __local interval_t held[BLOCK * BANDS];
    register_t words[BANDS];
    for (uint band = 0; band < (intervals ? 0 : bands); band++)
        words[band] = registers[band];
    for (uint subwindow = 0; subwindow < subwindows; subwindow++) {
        uint lane = 0;
        for (uint first = 0; first < probes; first += BLOCK) {
            uint count = min((uint)BLOCK, probes - first);
            uint band = 0, row = 0;
            interval_t word;
            // An interval a clock. On-chip memory is only written here and only read below.
            PIPELINE
            for (uint i = 0; i < count * bands; i++) {
                if (intervals || band == 0)
                    GET(HERE(probes), word);
                interval_t interval = word;
                if (!intervals)
                    interval = HERE(interval_of)(word.lo, words[band]);
                held[band * BLOCK + row] = interval;
                row = band == bands - 1 ? row + 1 : row;
                band = band == bands - 1 ? 0 : band + 1;
            }
            uint sequence = 0;
            row = 0;
            PIPELINE
            for (uint i = 0; i < count * bands * 2; i++) {
                interval_t interval = held[(sequence / 2) * BLOCK + row];
                bound_t bound;
                bound.sequence = sequence;
                bound.key = sequence % 2 ? interval.hi : interval.lo;
                bound.empty = interval.lo > interval.hi;
#define DEAL(l) if (lane == l) PUT(OF_LANE(bounds, CORE, l), bound);
                EACH_LANE(DEAL)
#undef DEAL
                sequence = row == count - 1 ? sequence + 1 : sequence;
                row = row == count - 1 ? 0 : row + 1;
            }
            lane = lane == LANES - 1 ? 0 : lane + 1;
        }
    }
}
