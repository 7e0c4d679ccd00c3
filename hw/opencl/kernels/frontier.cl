// Frontiers: within a batch the windows' edges move by no more than the batch, so that most of a
// subwindow is seen by every probe or by none. A frontier marks the positions that every probe
// sees, one bit to each, and those on the edge, which some see: there each probe has to look. With
// every MARKED positions go the numbers of such before them, and the rids on the edge lie together,
// by position.
//
// From one batch to the next only what comes and goes at the edges changes its marks. To find it
// by its rids, the tuples are also kept by age, which is the rid in 8 bits, and then by position.
// Work items of all kernels: (pieces of the marks, frontiers).

#define AGES 256u
// Room between two ages: where they begin a power of two apart, they would share a few lines of
// the cache.
#define STAGGER 24u

#define OPEN_FRONTIER                                                                          \
    const slab_t slabs[] = SLABS_OF_POOL;                                                      \
    __global const frontier_t *frontier =                                                      \
        (__global const frontier_t *)at(slabs, frontiers_place) + get_global_id(1);            \
    uint piece = get_global_id(0), pieces = get_global_size(0), count = frontier->count;       \
    uint first = piece_start(count / MARKED + 1, piece, pieces);                               \
    uint last = piece_start(count / MARKED + 1, piece + 1, pieces);                            \
    uint begin = least(count, first * MARKED), stop = least(count, last * MARKED)

INLINE uint age_of(__global const frontier_t *frontier, uint rid)
{
    return least(rid >> frontier->shift, AGES - 1);
}

// Tuples of each age in each piece: tallies[piece * AGES + age].
__kernel void tally(POOL, ulong frontiers_place)
{
    OPEN_FRONTIER;
    __global const uint *rids = UINTS(frontier->rids);
    uint found[AGES];
    for (uint age = 0; age < AGES; age++)
        found[age] = 0;
    for (uint i = begin; i < stop; i++)
        found[age_of(frontier, rids[i])]++;
    for (uint age = 0; age < AGES; age++)
        UINTS(frontier->tallies)[piece * AGES + age] = found[age];
}

// Tuples by age, where each age begins and ends, and marks of what every probe sees.
__kernel void deal(POOL, ulong frontiers_place)
{
    OPEN_FRONTIER;
    __global const uint *rids = UINTS(frontier->rids), *tallies = UINTS(frontier->tallies);
    __global uint2 *by_age = (__global uint2 *)at(slabs, frontier->by_age);
    __global uint2 *ages = (__global uint2 *)at(slabs, frontier->ages);
    __global mark_t *marks = (__global mark_t *)at(slabs, frontier->marks);
    sight_t every = {frontier->every[0], frontier->every[1] - frontier->every[0]};
    uint next[AGES], start = 0;
    for (uint age = 0; age < AGES; age++) {
        uint from = start;
        next[age] = start;
        for (uint other = 0; other < pieces; other++) {
            uint found = tallies[other * AGES + age];
            next[age] += other < piece ? found : 0;
            start += found;
        }
        if (piece == 0)
            ages[age] = (uint2)(from, start);
        start += STAGGER;
    }
    for (uint entry = first; entry < last; entry++) {
        ulong seen = 0;
        for (uint i = entry * MARKED; i < least(count, (entry + 1) * MARKED); i++) {
            uint rid = rids[i];
            by_age[next[age_of(frontier, rid)]++] = (uint2)(i, rid);
            seen |= (ulong)is_seen(rid, every) << i % MARKED;
        }
        marks[entry].every = seen;
    }
}

// The first of the tuples of one age that is not before a position.
INLINE uint first_from(__global const uint2 *by_age, uint start, uint stop, uint position)
{
    while (start < stop) {
        uint middle = start + (stop - start) / 2;
        bool before = by_age[middle].x < position;
        start = before ? middle + 1 : start;
        stop = before ? stop : middle;
    }
    return start;
}

// Each tuple of the piece with a rid from span[0] to before span[1]: TAKE(position, rid), which may
// also come with some other rids of the same ages.
#define EACH_OF_SPAN(span, TAKE)                                                               \
    for (uint age = age_of(frontier, span[0]);                                                 \
         span[0] < span[1] && age <= age_of(frontier, span[1] - 1); age++) {                   \
        uint tuple = first_from(by_age, ages[age].x, ages[age].y, begin);                      \
        uint end = first_from(by_age, tuple, ages[age].y, stop);                               \
        for (; tuple < end; tuple++) {                                                         \
            uint position = by_age[tuple].x, rid = by_age[tuple].y;                            \
            TAKE;                                                                              \
        }                                                                                      \
    }

INLINE bool is_in(uint rid, const uint *span)
{
    return rid - span[0] < span[1] - span[0];
}

// Marks as they are now, but for the numbers before them; and those of each piece.
__kernel void mark(POOL, ulong frontiers_place)
{
    OPEN_FRONTIER;
    __global const uint2 *by_age = (__global const uint2 *)at(slabs, frontier->by_age);
    __global const uint2 *ages = (__global const uint2 *)at(slabs, frontier->ages);
    __global mark_t *marks = (__global mark_t *)at(slabs, frontier->marks);
    for (uint entry = first; entry < last; entry++)
        marks[entry].edge = 0;
    for (uint end = 0; end < 4; end += 2) {
        const uint moved[] = {frontier->moved[end], frontier->moved[end + 1]};
        const uint edge[] = {frontier->edge[end], frontier->edge[end + 1]};
        // Mostly they have much in common.
        const uint either[] = {least(moved[0], edge[0]), most_of(moved[1], edge[1])};
        EACH_OF_SPAN(either, __global mark_t *mark = marks + position / MARKED;
                     mark->every ^= (ulong)is_in(rid, moved) << position % MARKED;
                     mark->edge |= (ulong)is_in(rid, edge) << position % MARKED)
    }
    uint every = 0, edge = 0;
    for (uint entry = first; entry < last; entry++) {
        every += POPCOUNT(marks[entry].every);
        edge += POPCOUNT(marks[entry].edge);
    }
    __global uint *sums = UINTS(frontier->sums) + 2 * piece;
    sums[0] = every;
    sums[1] = edge;
}

// The numbers before the marks, from the pieces' sums, and the rids on the edge.
__kernel void line_up(POOL, ulong frontiers_place)
{
    OPEN_FRONTIER;
    __global const uint2 *by_age = (__global const uint2 *)at(slabs, frontier->by_age);
    __global const uint2 *ages = (__global const uint2 *)at(slabs, frontier->ages);
    __global const uint *sums = UINTS(frontier->sums);
    __global mark_t *marks = (__global mark_t *)at(slabs, frontier->marks);
    __global uint *edges = UINTS(frontier->edges);
    uint every = 0, on_edge = 0;
    for (uint before = 0; before < piece; before++) {
        every += sums[2 * before];
        on_edge += sums[2 * before + 1];
    }
    for (uint entry = first; entry < last; entry++) {
        marks[entry].every_before = every;
        marks[entry].edge_before = on_edge;
        every += POPCOUNT(marks[entry].every);
        on_edge += POPCOUNT(marks[entry].edge);
    }
    for (uint end = 0; end < 4; end += 2) {
        const uint edge[] = {frontier->edge[end], frontier->edge[end + 1]};
        EACH_OF_SPAN(edge, if (is_in(rid, edge)) edges[marked_before(marks, position).edge] = rid)
    }
}
