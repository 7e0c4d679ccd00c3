// What a probe sees of a subwindow that its window covers in part: `rows` rids from `first` on,
// modulo 2**32. All probes of a subwindow: uint first[probes] at `place`, each less `base`; then
// uint rows[probes], unless `rows` has the one number of all of them.
//
// A subwindow may have a frontier, see kernels/frontier.cl: which positions every probe sees, and
// on the edge, the rids of those that only some of them see. A run is then counted by the marks at
// its two ends, and what is left to be looked at lies together.

#define SEES_ALL 0xFFFFFFFFFFFFFFFFul
#define NO_FRONTIER 0xFFFFFFFFFFFFFFFFul
#define BY_PROBE 0u
// Positions to a probe, on average, beyond which looking at each costs more than other ways.
#define MOST_LOOKED 4096ul
// Positions to a mark.
#define MARKED 64u

typedef struct {
    uint first, rows;
} sight_t;

INLINE sight_t sight_of(const slab_t *slabs, __global const sights_t *sights, uint probes,
                        uint probe)
{
    sight_t sight = {0, 0xFFFFFFFFu};
    if (sights->place != SEES_ALL) {
        __global const uint *firsts = UINTS(sights->place);
        sight.first = firsts[probe] - sights->base;
        sight.rows = sights->rows == BY_PROBE ? firsts[probes + probe] : sights->rows;
    }
    return sight;
}

INLINE bool is_seen(uint rid, sight_t sight)
{
    return rid - sight.first < sight.rows;      // wraps below `first`
}

// What a work item had to do with runs that their probes see in part: positions met in them, and
// looked at one by one, of which there may be `most`.
typedef struct {
    ulong met, looked, most;
} effort_t;

// Two words to a work item: what it met, and whether it gave up because there was too much to look
// at.
INLINE void tell(const slab_t *slabs, ulong efforts_place, const effort_t *effort)
{
    __global ulong *told = (__global ulong *)at(slabs, efforts_place) + 2 * get_global_id(0);
    told[0] = effort->met;
    told[1] = effort->looked > effort->most;
}

// Which of 16 rids the probe sees: a comparison. All are lowered by 2**31, because signed words are
// what machines compare.
#define IS_SEEN_16(rids, sight)                                       \
    (as_int16((rids) + (uint16)(0x80000000u - (sight).first)) <      \
     (int16)((int)((sight).rows - 0x80000000u)))

// Which of n <= 16 rids the probe sees; 16 are read.
INLINE uint seen_of_16(__global const uint *rids, uint n, sight_t sight)
{
    return SIGNS_OF_16(IS_SEEN_16(LOAD16(uint, rids), sight)) & ((1u << n) - 1);
}

// How many of n rids the probe sees. How many there are cannot be guessed: the last few are looked
// at as 16.
INLINE uint count_seen(__global const uint *rids, uint n, sight_t sight)
{
    uint hits = 0, i = 0;
    for (; i + FAN < n; i += FAN)
        hits += POPCOUNT(seen_of_16(rids + i, FAN, sight));
    return hits + POPCOUNT(seen_of_16(rids + i, n - i, sight));
}

// The same where they are mostly one or two: a line of rids often lies in two of the cache.
INLINE uint count_few_seen(__global const uint *rids, uint n, sight_t sight)
{
    uint hits = 0;
    for (uint i = 0; i < n; i++)
        hits += is_seen(rids[i], sight);
    return hits;
}

// Of the positions before one: how many every probe sees, and how many are on the edge.
typedef struct {
    uint every, edge;
} before_t;

INLINE __global const mark_t *marks_of(const slab_t *slabs, __global const sights_t *sights)
{
    return (__global const mark_t *)at(slabs, sights->marks);
}

INLINE before_t marked_before(__global const mark_t *marks, uint position)
{
    __global const mark_t *mark = marks + position / MARKED;
    ulong below = (1ul << position % MARKED) - 1;
    before_t before = {mark->every_before + POPCOUNT(mark->every & below),
                       mark->edge_before + POPCOUNT(mark->edge & below)};
    return before;
}
