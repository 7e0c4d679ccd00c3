// Probing engine: boundary generator, partitioners and probers, over all listed subwindows in one
// launch. A work item takes a chunk of the sorted batch; a subwindow is two entries of `arrays`,
// its main array and its insertion tier.
// Requires: keys ascend, or `wanted` has explicit intervals.
// Ensures:  empty intervals give runs with start == end.

enum { UNBOUNDED = 0, PLUS = 1, MINUS = 2, NEVER = 3 };     // hw.spec.predicates.Bound

// One end of a band: a probe key moves by `delta`, unless that leaves the type. Keys below `least`
// or above `most` do.
typedef struct {
    ukey_t delta;
    key_t least, most;
    bool open, never;       // no bound at all; nothing lies there
} edge_t;

INLINE edge_t edge_of(ulong offset, uchar way)
{
    edge_t edge = {0, KEY_MIN, KEY_MAX, way == UNBOUNDED, way == NEVER};
    if (way == PLUS) {
        edge.delta = (ukey_t)offset;
        edge.most = (key_t)((ukey_t)KEY_MAX - (ukey_t)offset);
    } else if (way == MINUS) {
        edge.delta = (ukey_t)0 - (ukey_t)offset;
        edge.least = (key_t)((ukey_t)KEY_MIN + (ukey_t)offset);
    }
    return edge;
}

// Boundary generator (PanJoin IV): n closed intervals of one band; an empty one has lo > hi. A
// bound beyond the type's end saturates where it bounds nothing, and leaves nothing elsewhere.
INLINE void generate_bounds(__global const key_t *keys, __global const interval_t *wanted,
                            __global const register_t *band, uint bands, uint n, key_t *lo,
                            key_t *hi)
{
    if (wanted) {
        for (uint j = 0; j < n; j++) {
            lo[j] = wanted[j * bands].lo;
            hi[j] = wanted[j * bands].hi;
        }
        return;
    }
    edge_t lower = edge_of(band->lo, band->lo_bound), upper = edge_of(band->hi, band->hi_bound);
    bool dead = lower.never || upper.never;
    for (uint j = 0; j < n; j++) {
        key_t key = keys[j];
        bool never = dead | (key > lower.most) | (key < upper.least);
        key_t from = (key_t)((ukey_t)key + lower.delta), to = (key_t)((ukey_t)key + upper.delta);
        from = (lower.open | (key < lower.least)) ? KEY_MIN : from;
        to = (upper.open | (key > upper.most)) ? KEY_MAX : to;
        lo[j] = never ? KEY_MAX : from;
        hi[j] = never ? KEY_MIN : to;
    }
}

// What a block of probes asks for.
typedef struct {
    key_t lo[BLOCK], hi[BLOCK];
    bool lo_ascends, hi_ascends;
} block_t;

// What it finds in one array.
typedef struct {
    uint start[BLOCK], stop[BLOCK];
    bool ends_known;        // the lines of the upper bounds are looked for at once
} runs_t;

// The search of a chunk of probes in one array. While one block of them waits for its lines of keys,
// the one before is ended.
typedef struct {
    __global const array_t *array;
    uint level;
    uint dense;             // so many probes are looked for together in the keys; 0 by the index
    cursors_t cursors;
    runs_t runs[2];
} search_t;

INLINE void open_search(__global const array_t *array, uint probes, search_t *search)
{
    search->array = array;
    search->level = starting_level(array, probes);
    search->dense = looked_for_at_once(array, probes);
    search->cursors = (cursors_t){0, 0, false};
}

// Bounds of a block, and in each array the lines of keys that hold the lower ones, which are on
// their way then; those of the upper ones, too, where runs are long. Nothing of an array against
// which the batch is dense: its lines follow one another.
INLINE void begin_block(const slab_t *slabs, __global const key_t *keys,
                        __global const interval_t *wanted, __global const register_t *band,
                        uint bands, uint n, block_t *block, search_t *searches, uint many,
                        uint turn)
{
    generate_bounds(keys, wanted, band, bands, n, block->lo, block->hi);
    block->lo_ascends = ascends(block->lo, n);
    block->hi_ascends = ascends(block->hi, n);
    for (uint a = 0; a < many; a++) {
        search_t *search = searches + a;
        __global const array_t *array = search->array;
        runs_t *runs = search->runs + turn;
        runs->ends_known = search->cursors.far;
        if (array->depth == 0 || search->dense > 0)
            continue;
        find_key_lines(slabs, array, search->level, block->lo, block->lo_ascends, n, false,
                       &search->cursors.lo, runs->start);
        if (runs->ends_known)
            find_key_lines(slabs, array, search->level, block->hi, block->hi_ascends, n, true,
                           &search->cursors.hi, runs->stop);
    }
}

// Runs of a block in one array, as positions in that array.
INLINE void end_block(const slab_t *slabs, const block_t *block, uint n, search_t *search,
                      uint turn)
{
    const key_t *lo = block->lo, *hi = block->hi;
    runs_t *runs = search->runs + turn;
    uint *start = runs->start, *stop = runs->stop;
    if (search->array->stride > 0) {
        find_bounds_singly(slabs, search->array, lo, n, false, start);
        find_bounds_singly(slabs, search->array, hi, n, true, stop);
    } else if (search->dense > 0) {
        __global const key_t *keys = KEYS(search->array->keys);
        cursors_t *cursors = &search->cursors;
        uint count = search->array->count, together = search->dense;
        find_bounds(keys, count, together, lo, block->lo_ascends, n, false, &cursors->lo, start);
        find_bounds(keys, count, together, hi, block->hi_ascends, n, true, &cursors->hi, stop);
    } else {
        find_runs(slabs, search->array, search->level, lo, hi, block->hi_ascends, n,
                  runs->ends_known, &search->cursors, start, stop);
    }
    for (uint j = 0; j < n; j++)
        stop[j] = ((lo[j] > hi[j]) | (stop[j] < start[j])) ? start[j] : stop[j];
}

// The two positions at which an unsorted insertion buffer would be cut are not known: its tuples
// are looked at one by one, as in the paper.
INLINE uint count_in_buffer(const slab_t *slabs, __global const array_t *array, key_t lo, key_t hi,
                            sight_t sight)
{
    __global const key_t *keys = KEYS(array->keys);
    __global const uint *rids = UINTS(array->rids);
    uint hits = 0;
    for (uint i = 0; i < array->count; i++)
        hits += keys[i] >= lo & keys[i] <= hi & is_seen(rids[i], sight);
    return hits;
}

// Tuples of a run from which on they are looked at as lines of 16.
#define FEW 4u

// Where probes see a part of the array: their runs become as long as what they see of them, unless
// that would be too many tuples to look at.
INLINE void keep_seen(const slab_t *slabs, __global const array_t *array,
                      __global const sights_t *sights, uint probes, uint i, uint n,
                      effort_t *effort, runs_t *runs)
{
    __global const uint *rids = UINTS(array->rids), *edges = 0;
    __global const mark_t *marks = 0;
    uint *start = runs->start, *stop = runs->stop;
    uint found[BLOCK], many = 0;        // the probes with a run: to guess which would be wrong
    ulong met = 0;
    for (uint j = 0; j < n; j++) {
        met += stop[j] - start[j];
        found[many] = j;
        many += stop[j] > start[j];
    }
    effort->met += met;
    bool few = met < FEW * many;
    bool has_frontier = sights->marks != NO_FRONTIER;
    if (has_frontier) {
        marks = marks_of(slabs, sights);
        edges = UINTS(sights->edges);
    }
    for (uint k = 0; k < many && effort->looked <= effort->most; k++) {
        uint j = found[k], seen = 0, look = stop[j] - start[j];
        __global const uint *here = rids + start[j];
        if (has_frontier) {
            before_t from = marked_before(marks, array->base + start[j]);
            before_t to = marked_before(marks, array->base + stop[j]);
            seen = to.every - from.every;
            look = to.edge - from.edge;
            here = edges + from.edge;
        }
        effort->looked += look;
        if (effort->looked <= effort->most)
            seen += few ? count_few_seen(here, look, sight_of(slabs, sights, probes, i + j))
                        : count_seen(here, look, sight_of(slabs, sights, probes, i + j));
        stop[j] = start[j] + seen;
    }
}

#define PROBES                                                                              \
    ulong arrays_place, uint subwindows, ulong keys_place, ulong wanted_place, uint explicit, \
        ulong registers_place, uint bands, uint probes
#define OPEN_PROBES                                                                        \
    __global const array_t *arrays = (__global const array_t *)at(slabs, arrays_place);    \
    __global const key_t *keys = KEYS(keys_place);                                         \
    __global const register_t *registers =                                                 \
        (__global const register_t *)at(slabs, registers_place);                           \
    __global const interval_t *wanted =                                                    \
        explicit ? (__global const interval_t *)at(slabs, wanted_place) : 0;               \
    uint first = piece_start(probes, get_global_id(0), get_global_size(0));                \
    uint last = piece_start(probes, get_global_id(0) + 1, get_global_size(0));             \
    block_t blocks[2]

// Each block of a work item's probes, searched for in `many` arrays together: begun while the one
// before is under way, which then is ended by what follows. There `i` is its first probe, `n` their
// number, `turn` that of its runs.
#define BEGIN_BLOCKS                                                                       \
    for (uint next = first, other = 0; next < last + BLOCK; next += BLOCK, other ^= 1) {   \
        if (next < last)                                                                   \
            begin_block(slabs, keys + next,                                                \
                        wanted ? wanted + (ulong)next * bands + band : 0, registers + band, \
                        bands, least(BLOCK, last - next), blocks + other, searches, many,  \
                        other);                                                            \
        if (next == first)                                                                 \
            continue;                                                                      \
        uint i = next - BLOCK, n = least(BLOCK, last - i), turn = other ^ 1;               \
        const block_t *block = blocks + turn;
#define END_BLOCKS }

// records[(subwindow * probes + probe) * bands * tiers + band * tiers + tier].
// Work items: (chunks of the batch, subwindows).
__kernel void probe(POOL, PROBES, uint tiers, uint label, ulong records_place)
{
    const slab_t slabs[] = SLABS_OF_POOL;
    OPEN_PROBES;
    uint subwindow = get_global_id(1), runs = bands * tiers;
    __global record_t *records = (__global record_t *)at(slabs, records_place);
    records += (ulong)subwindow * probes * runs;
    for (uint run = 0; run < runs; run++) {
        uint band = run / tiers;
        __global const array_t *array = arrays + 2 * subwindow + run % tiers;
        uint base = array->base;
        search_t searches[1];
        const uint many = 1;
        open_search(array, probes, searches);
        if (array->count == 0) {
            for (uint i = first; i < last; i++) {
                records[(ulong)i * runs + run].start = base;
                records[(ulong)i * runs + run].end = base | label;
            }
            continue;
        }
        BEGIN_BLOCKS
            __global record_t *into = records + (ulong)i * runs + run;
            end_block(slabs, block, n, searches, turn);
            const runs_t *found = searches->runs + turn;
            for (uint j = 0; j < n; j++) {
                into[j * runs].start = base + found->start[j];
                into[j * runs].end = (base + found->stop[j]) | label;
            }
        END_BLOCKS
    }
}

// Whether an array is searched; an unsorted insertion buffer is not.
INLINE bool in_order(__global const array_t *array)
{
    return array->depth > 0 || array->stride > 0;
}

// Searches in the arrays from `begin` on that hold something, as many as go together. `*end` is the
// first that is not among them. All their keys are fewer than 32 bits count.
INLINE uint open_searches(__global const array_t *arrays, uint begin, uint all, uint probes,
                          search_t *searches, uint *end)
{
    uint many = 0, held = 0, a = begin;
    for (; a < all && many < ABREAST && arrays[a].count <= ~held; a++) {
        held += arrays[a].count;
        if (arrays[a].count > 0)
            open_search(arrays + a, probes, searches + many++);
    }
    *end = a;
    return many;
}

INLINE __global const sights_t *sights_of(__global const sights_t *sights,
                                          __global const array_t *arrays, const search_t *search)
{
    return sights + (search->array - arrays) / 2;
}

// What tells which of the runs' tuples are seen is on its way then: rids, or marks. Which runs are
// empty cannot be guessed: those fetch what is there already.
INLINE void fetch_seen(const slab_t *slabs, __global const sights_t *sights,
                       const search_t *search, uint n, uint turn)
{
    __global const uint *rids = UINTS(search->array->rids);
    const uint *start = search->runs[turn].start, *stop = search->runs[turn].stop;
    if (sights->marks != NO_FRONTIER) {
        __global const mark_t *marks = marks_of(slabs, sights);
        uint base = search->array->base;
        for (uint j = 0; j < n; j++) {
            PREFETCH(marks + (base + start[j]) / MARKED);
            PREFETCH(marks + (base + stop[j]) / MARKED);
        }
        return;
    }
    for (uint j = 0; j < n; j++)
        PREFETCH(rids + (stop[j] > start[j] ? start[j] : 0));
}

// counts[probe]: its matches in all subwindows together. Records never exist. Where probes see a
// subwindow in part, the rids of their runs are looked at; a work item for which these are too
// many gives up. efforts[item] tells.
// Work items: (chunks of the batch, questions).
__kernel void count(POOL, ulong questions_place)
{
    const slab_t slabs[] = SLABS_OF_POOL;
    question_t asked = ((__global const question_t *)at(slabs, questions_place))[get_global_id(1)];
    ulong arrays_place = asked.arrays, keys_place = asked.keys, wanted_place = asked.wanted;
    ulong registers_place = asked.registers, counts_place = asked.counts;
    ulong sights_place = asked.sights, efforts_place = asked.efforts;
    uint subwindows = asked.subwindows, explicit = asked.explicit, bands = asked.bands;
    uint probes = asked.probes, negated = asked.negated;
    OPEN_PROBES;
    __global long *counts = (__global long *)at(slabs, counts_place);
    __global const sights_t *sights = (__global const sights_t *)at(slabs, sights_place);
    effort_t effort = {0, 0, (ulong)(last - first) * MOST_LOOKED};
    long all = 0;
    for (uint a = 0; a < 2 * subwindows; a++)
        all += arrays[a].count;
    search_t searches[ABREAST];
    uint begin = 0, end;
    do {
        for (uint band = 0; band < bands; band++) {
            uint many = open_searches(arrays, begin, 2 * subwindows, probes, searches, &end);
            bool is_first = begin == 0 && band == 0;
            BEGIN_BLOCKS
                uint matches[BLOCK];
                for (uint j = 0; j < n; j++)
                    matches[j] = 0;
                for (uint s = 0; s < many; s++)
                    if (in_order(searches[s].array)) {
                        end_block(slabs, block, n, searches + s, turn);
                        __global const sights_t *seen = sights_of(sights, arrays, searches + s);
                        if (seen->place != SEES_ALL)
                            fetch_seen(slabs, seen, searches + s, n, turn);
                    }
                for (uint s = 0; s < many; s++) {
                    __global const array_t *array = searches[s].array;
                    __global const sights_t *seen = sights_of(sights, arrays, searches + s);
                    runs_t *runs = searches[s].runs + turn;
                    if (!in_order(array))
                        for (uint j = 0; j < n; j++)
                            matches[j] += count_in_buffer(slabs, array, block->lo[j], block->hi[j],
                                                          sight_of(slabs, seen, probes, i + j));
                    if (in_order(array) && seen->place != SEES_ALL)
                        keep_seen(slabs, array, seen, probes, i, n, &effort, runs);
                    for (uint j = 0; j < n && in_order(array); j++)
                        matches[j] += runs->stop[j] - runs->start[j];
                }
                for (uint j = 0; j < n; j++) {
                    long before = !is_first ? counts[i + j] : negated ? all : 0;
                    counts[i + j] = negated ? before - matches[j] : before + matches[j];
                }
            END_BLOCKS
        }
        begin = end;
    } while (begin < 2 * subwindows);
    tell(slabs, efforts_place, &effort);
}
