// Frontiers: within a batch the windows' edges move by no more than the batch, so that most of a
// subwindow is seen by every probe or by none. A frontier marks the positions that every probe
// sees, one bit to each, and those on the edge, which some may see: there each probe has to look.
// With every MARKED positions go the numbers of such before them, and the rids on the edge lie
// together, by position.
//
// All rids are compared: a machine that compares 16 at once is through before another, which keeps
// the tuples by age, has found those that come and go at the edges.
// Work items of both kernels: (pieces of the marks, frontiers).

#define OPEN_FRONTIER                                                                          \
    const slab_t slabs[] = SLABS_OF_POOL;                                                      \
    __global const frontier_t *frontier =                                                      \
        (__global const frontier_t *)at(slabs, frontiers_place) + get_global_id(1);            \
    __global const uint *rids = UINTS(frontier->rids);                                         \
    __global mark_t *marks = (__global mark_t *)at(slabs, frontier->marks);                    \
    uint piece = get_global_id(0), pieces = get_global_size(0), count = frontier->count;       \
    uint first = piece_start(count / MARKED + 1, piece, pieces);                               \
    uint last = piece_start(count / MARKED + 1, piece + 1, pieces)

// Marks of a line of rids, and those on the edge to `edges`.
INLINE void mark_line(__global const uint *rids, sight_t every, sight_t some, uint place,
                      mark_t *mark, __global uint *edges)
{
    uint16 line = LOAD16(uint, rids);
    uint by_every = SIGNS_OF_16(IS_SEEN_16(line, every));
    uint on_edge = SIGNS_OF_16(IS_SEEN_16(line, some)) & ~by_every;
    PACK_16(line, on_edge, edges + POPCOUNT(mark->edge));
    mark->every |= (ulong)by_every << place;
    mark->edge |= (ulong)on_edge << place;
}

// Marks as they are now, but for the numbers before them; of each piece these numbers, and apart
// from those of the others, its rids on the edge.
__kernel void mark(POOL, ulong frontiers_place)
{
    OPEN_FRONTIER;
    sight_t every = {frontier->every[0], frontier->every[1] - frontier->every[0]};
    sight_t some = {frontier->some[0], frontier->some[1] - frontier->some[0]};
    __global uint *edges = UINTS(frontier->apart) + piece * frontier->room;
    uint of_every = 0, of_edge = 0;
    for (uint entry = first; entry < last; entry++) {
        uint position = entry * MARKED, stop = least(count, position + MARKED);
        mark_t mark = {0, 0, 0, 0};
        uint i = position;
        for (; i + FAN <= stop; i += FAN)
            mark_line(rids + i, every, some, i - position, &mark, edges + of_edge);
        for (; i < stop; i++) {
            bool is = is_seen(rids[i], every), may = is_seen(rids[i], some) & !is;
            edges[of_edge + POPCOUNT(mark.edge)] = rids[i];
            mark.every |= (ulong)is << (i - position);
            mark.edge |= (ulong)may << (i - position);
        }
        marks[entry] = mark;
        of_every += POPCOUNT(mark.every);
        of_edge += POPCOUNT(mark.edge);
    }
    __global uint *sums = UINTS(frontier->sums) + 2 * piece;
    sums[0] = of_every;
    sums[1] = of_edge;
}

// The numbers before the marks, from the pieces' sums, and the rids on the edge together.
__kernel void line_up(POOL, ulong frontiers_place)
{
    OPEN_FRONTIER;
    __global const uint *sums = UINTS(frontier->sums);
    __global const uint *mine = UINTS(frontier->apart) + piece * frontier->room;
    uint every = 0, on_edge = 0;
    for (uint before = 0; before < piece; before++) {
        every += sums[2 * before];
        on_edge += sums[2 * before + 1];
    }
    __global uint *edges = UINTS(frontier->edges) + on_edge;
    for (uint i = 0; i < sums[2 * piece + 1]; i++)
        edges[i] = mine[i];
    for (uint entry = first; entry < last; entry++) {
        marks[entry].every_before = every;
        marks[entry].edge_before = on_edge;
        every += POPCOUNT(marks[entry].every);
        on_edge += POPCOUNT(marks[entry].edge);
    }
}
