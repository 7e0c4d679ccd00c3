// Collection step (SplitJoin): records of many subwindows become one stream of matches.
// Requires: records[(subwindow * probes + probe) * runs + run] as `probe` wrote them, `tiers` runs
//           to a band, and the same `arrays`. `arrival` lists the probes in the order wanted.
// The stream's order is that of the records, or with `by_probe` all matches of a probe before
// those of the next, oldest subwindow first. Offsets count matches before each record, by prefix
// sums over equal pieces of the sequence.

#define RUNS                                                                                  \
    ulong records_place, ulong arrays_place, uint subwindows, uint probes, uint runs, uint tiers, \
        uint negated, uint by_probe, ulong arrival_place

// A place in the sequence of records.
typedef struct {
    uint subwindow, turn, run;
} walk_t;

typedef struct {
    __global const record_t *records;
    __global const array_t *arrays;
    __global const uint *arrival;
    uint subwindows, probes, runs, tiers;
    bool negated, by_probe;
} source_t;

#define OPEN_RUNS                                                                      \
    const slab_t slabs[] = SLABS_OF_POOL;                                              \
    const source_t source = {(__global const record_t *)at(slabs, records_place),      \
                             (__global const array_t *)at(slabs, arrays_place),        \
                             UINTS(arrival_place), subwindows, probes, runs, tiers,    \
                             negated != 0, by_probe != 0};                             \
    uint sequence = subwindows * probes * runs

INLINE walk_t walk_from(const source_t *source, uint k)
{
    walk_t walk = {0, 0, k % source->runs};
    k /= source->runs;
    walk.subwindow = source->by_probe ? k % source->subwindows : k / source->probes;
    walk.turn = source->by_probe ? k / source->subwindows : k % source->probes;
    return walk;
}

INLINE void walk_on(const source_t *source, walk_t *walk)
{
    if (++walk->run < source->runs)
        return;
    walk->run = 0;
    if (source->by_probe) {
        walk->subwindow = walk->subwindow + 1 < source->subwindows ? walk->subwindow + 1 : 0;
        walk->turn += walk->subwindow == 0;
    } else {
        walk->turn = walk->turn + 1 < source->probes ? walk->turn + 1 : 0;
        walk->subwindow += walk->turn == 0;
    }
}

INLINE uint probe_of(const source_t *source, const walk_t *walk)
{
    return source->by_probe ? source->arrival[walk->turn] : walk->turn;
}

// What a record stands for: positions [first, first + before), then from `second` on, `all` in
// total. A run is its own positions; with NOT, those of its array around it.
typedef struct {
    uint first, before, second, all;
} matches_t;

INLINE matches_t matches_at(const source_t *source, const walk_t *walk)
{
    ulong row = (ulong)walk->subwindow * source->probes + probe_of(source, walk);
    record_t record = source->records[row * source->runs + walk->run];
    uint end = record.end & ~NOT;
    if (!source->negated) {
        matches_t matches = {record.start, end - record.start, end, end - record.start};
        return matches;
    }
    __global const array_t *array =
        source->arrays + 2 * walk->subwindow + walk->run % source->tiers;
    matches_t matches = {array->base, record.start - array->base, end,
                         array->count - (end - record.start)};
    return matches;
}

// Prefix sums, first pass: the matches of each piece of the sequence.
__kernel void sum_runs(POOL, RUNS, ulong sums_place)
{
    OPEN_RUNS;
    uint k = piece_start(sequence, get_global_id(0), get_global_size(0));
    uint stop = piece_start(sequence, get_global_id(0) + 1, get_global_size(0));
    walk_t walk = walk_from(&source, k);
    ulong sum = 0;
    for (; k < stop; k++) {
        sum += matches_at(&source, &walk).all;
        walk_on(&source, &walk);
    }
    ((__global ulong *)at(slabs, sums_place))[get_global_id(0)] = sum;
}

// Second pass: offsets[k] for each record, and the total behind the last.
__kernel void scan_runs(POOL, RUNS, ulong sums_place, ulong offsets_place)
{
    OPEN_RUNS;
    __global const ulong *sums = (__global const ulong *)at(slabs, sums_place);
    __global ulong *offsets = (__global ulong *)at(slabs, offsets_place);
    uint k = piece_start(sequence, get_global_id(0), get_global_size(0));
    uint stop = piece_start(sequence, get_global_id(0) + 1, get_global_size(0));
    walk_t walk = walk_from(&source, k);
    ulong sum = 0;
    for (uint piece = 0; piece < get_global_id(0); piece++)
        sum += sums[piece];
    for (; k < stop; k++) {
        offsets[k] = sum;
        sum += matches_at(&source, &walk).all;
        walk_on(&source, &walk);
    }
    if (stop == sequence)
        offsets[sequence] = sum;
}

// The last record whose matches begin at or before `offset`.
INLINE uint record_before(__global const ulong *offsets, uint count, ulong offset)
{
    uint first = 0;
    while (count > 0) {
        uint half_count = count / 2;
        bool before = offsets[first + half_count] <= offset;
        first = before ? first + half_count + 1 : first;
        count = before ? count - half_count - 1 : half_count;
    }
    return first - 1;
}

// Matches [from, from + count) of the stream: probe (its place in the batch), rid, and where
// `names_subwindows`, the subwindow's place in the list.
__kernel void expand(POOL, RUNS, ulong offsets_place, ulong from, uint count,
                     ulong probes_place, ulong rids_place, uint names_subwindows,
                     ulong subwindows_place)
{
    OPEN_RUNS;
    __global const ulong *offsets = (__global const ulong *)at(slabs, offsets_place);
    __global uint *out_probes = UINTS(probes_place), *out_rids = UINTS(rids_place);
    __global uint *out_subwindows = UINTS(subwindows_place);
    uint out = piece_start(count, get_global_id(0), get_global_size(0));
    uint stop = piece_start(count, get_global_id(0) + 1, get_global_size(0));
    if (out == stop)
        return;
    uint k = record_before(offsets, sequence, from + out);
    uint skipped = (uint)(from + out - offsets[k]);
    walk_t walk = walk_from(&source, k);
    while (out < stop) {
        matches_t matches = matches_at(&source, &walk);
        __global const uint *rids = UINTS(source.arrays[2 * walk.subwindow].rids);
        uint n = least(matches.all - skipped, stop - out), probe = probe_of(&source, &walk);
        uint before = skipped < matches.before ? least(n, matches.before - skipped) : 0;
        __global const uint *first = rids + matches.first + skipped;
        for (uint i = 0; i < before; i++)
            out_rids[out + i] = first[i];
        if (before < n) {
            __global const uint *second =
                rids + matches.second + (skipped + before - matches.before);
            for (uint i = before; i < n; i++)
                out_rids[out + i] = second[i - before];
        }
        for (uint i = 0; i < n; i++)
            out_probes[out + i] = probe;
        if (names_subwindows)
            for (uint i = 0; i < n; i++)
                out_subwindows[out + i] = walk.subwindow;
        out += n;
        skipped = 0;
        walk_on(&source, &walk);
    }
}

INLINE void sift_down(__global uint *rids, uint root, uint count)
{
    uint rid = rids[root];
    for (uint child = 2 * root + 1; child < count; child = 2 * root + 1) {
        if (child + 1 < count && rids[child] < rids[child + 1])
            child++;
        if (rids[child] <= rid)
            break;
        rids[root] = rids[child];
        root = child;
    }
    rids[root] = rid;
}

// Inner order (SplitJoin, definition 2): the matches of one probe in one subwindow, already
// together, by order of arrival. Requires whole groups of records [first, stop); heap sort, so
// that a group of any size needs no other memory.
__kernel void order_groups(POOL, uint runs, uint first, uint stop, ulong offsets_place,
                           ulong rids_place)
{
    const slab_t slabs[] = SLABS_OF_POOL;
    __global const ulong *offsets = (__global const ulong *)at(slabs, offsets_place);
    __global uint *out = UINTS(rids_place);
    uint groups = (stop - first) / runs;
    uint last = piece_start(groups, get_global_id(0) + 1, get_global_size(0));
    for (uint g = piece_start(groups, get_global_id(0), get_global_size(0)); g < last; g++) {
        uint k = first + g * runs;
        __global uint *rids = out + (offsets[k] - offsets[first]);
        uint count = (uint)(offsets[k + runs] - offsets[k]);
        for (uint root = count / 2; root-- > 0;)
            sift_down(rids, root, count);
        for (uint end = count; end-- > 1;) {
            uint largest = rids[0];
            rids[0] = rids[end];
            rids[end] = largest;
            sift_down(rids, 0, end);
        }
    }
}
