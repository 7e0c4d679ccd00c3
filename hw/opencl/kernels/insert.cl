// Insertion engine: mergers and indexer. A sorted batch enters a sorted array of keys and rids;
// among equal keys, what the array holds comes first, so that order of arrival is kept.
//
// Two mergers. `move` works in place: from the last key backwards, each run of old tuples between
// two new ones moves up by as many places as new ones are still to come. It touches each line
// once, the speed of a memory move. `merge` writes to other memory, for batches so large against
// the array that runs are a few tuples long. Both are split into pieces of equal output by merge
// path (PanJoin III-G3: balance the size of each piece). Work items: (pieces, insertions).

// The arguments of a task: TASK_WORDS words to each of those that a launch does side by side.
INLINE __global const ulong *task_of(const slab_t *slabs, ulong tasks_place)
{
    return (__global const ulong *)at(slabs, tasks_place) + TASK_WORDS * get_global_id(1);
}

// How many of the first `diagonal` merged tuples come from the batch.
INLINE uint batch_share(__global const key_t *keys, uint count, __global const key_t *batch,
                        uint batch_count, uint diagonal)
{
    uint first = diagonal > count ? diagonal - count : 0;
    uint last = least(diagonal, batch_count);
    while (first < last) {
        uint middle = (first + last) / 2;
        bool comes = batch[middle] < keys[diagonal - middle - 1];
        first = comes ? middle + 1 : first;
        last = comes ? last : middle;
    }
    return first;
}

// Indexer: every FAN-th key, and every FAN-th of those, of the positions [start, stop) that were
// just written and are still in the cache.
INLINE void index_keys(__global const key_t *keys, __global const array_t *array,
                       __global key_t *index, uint start, uint stop)
{
    uint depth = array->depth;
    if (depth == 0)                     // paper mode: `sample` follows
        return;
    for (uint entry = (start + FAN - 1) / FAN; entry < (stop + FAN - 1) / FAN; entry++) {
        key_t key = keys[entry * FAN];
        index[entry] = key;
        uint of_level = entry;
        for (uint level = 1; level < depth && of_level % FAN == 0; level++) {
            of_level /= FAN;
            index[array->level[level] + of_level] = key;
        }
    }
}

// Searches read whole lines: what lies behind the last key must not look like one.
INLINE void pad(__global key_t *keys, __global const array_t *array, __global key_t *index,
                uint count)
{
    for (uint i = count; i < round_up(count, FAN) + PADDING; i++)
        keys[i] = KEY_MAX;
    uint entries = count;
    for (uint level = 0; level < array->depth; level++) {
        entries = (entries + FAN - 1) / FAN;
        for (uint i = entries; i < round_up(entries, FAN) + PADDING; i++)
            index[array->level[level] + i] = KEY_MAX;
    }
}

// Tuples from `from` on to the places from `into` on, `n` of them, either memory apart.
INLINE void copy_tuples(__global const key_t *keys, __global const uint *rids,
                        __global key_t *into_keys, __global uint *into_rids, uint n)
{
    for (uint i = 0; i < n; i++)
        into_keys[i] = keys[i];
    for (uint i = 0; i < n; i++)
        into_rids[i] = rids[i];
}

// A merger at work: the next old and new tuple, and where they end. Writes to i + j.
typedef struct {
    uint i, j, last_i, last_j;
} merger_t;

// One tuple, whose selection does not branch.
INLINE void merge_one(merger_t *merger, __global const key_t *keys, __global const uint *rids,
                      __global const key_t *batch, __global const uint *batch_rids,
                      __global key_t *out, __global uint *out_rids)
{
    uint i = merger->i, j = merger->j;
    key_t old = keys[i], new = batch[j];
    bool takes_new = new < old;
    out[i + j] = takes_new ? new : old;
    out_rids[i + j] = *(takes_new ? batch_rids + j : rids + i);
    merger->j = j + takes_new;
    merger->i = i + !takes_new;
}

// Tuples that a merger can take without looking for the end of either side.
INLINE uint surely(const merger_t *merger)
{
    return least(merger->last_i - merger->i, merger->last_j - merger->j);
}

// The old tuples up to the next new one and that one, or a whole line of old ones. The line is
// written whole either way: what comes next is written over the rest of it. No branch has to be
// guessed, however long the run is.
INLINE void merge_line(merger_t *merger, __global const key_t *keys, __global const uint *rids,
                       __global const key_t *batch, __global const uint *batch_rids,
                       __global key_t *out, __global uint *out_rids)
{
    uint i = merger->i, j = merger->j, o = i + j;
    key16_t old = LOAD16(key, keys + i);
    key_t new = batch[j];
    uint run = bound_in(old, new, true);
    STORE16(key, old, out + o);
    STORE16(uint, LOAD16(uint, rids + i), out_rids + o);
    out[o + run] = new;                 // behind a whole line it is written over, too
    out_rids[o + run] = batch_rids[j];
    merger->i = i + run;
    merger->j = j + (run < FAN);
}

// Lines that a merger can take so: all that they write is its own.
INLINE uint surely_lines(const merger_t *merger)
{
    return least((merger->last_i - merger->i) / FAN, merger->last_j - merger->j);
}

INLINE void merge_rest(merger_t *merger, __global const key_t *keys, __global const uint *rids,
                       __global const key_t *batch, __global const uint *batch_rids,
                       __global key_t *out, __global uint *out_rids)
{
    while (surely(merger) > 0)
        merge_one(merger, keys, rids, batch, batch_rids, out, out_rids);
    uint i = merger->i, j = merger->j, o = i + j;
    copy_tuples(keys + i, rids + i, out + o, out_rids + o, merger->last_i - i);
    o += merger->last_i - i;
    copy_tuples(batch + j, batch_rids + j, out + o, out_rids + o, merger->last_j - j);
}

// array + batch -> out, whose `count` and index are those of the result. One item to one piece,
// in four mergers side by side: each waits for its own last selection, and none for another's.
// Task: array, rids, batch, rids of the batch, number of those, out.
__kernel void merge(POOL, ulong tasks_place)
{
    const slab_t slabs[] = SLABS_OF_POOL;
    __global const ulong *task = task_of(slabs, tasks_place);
    ulong array_place = task[0], rids_place = task[1], batch_place = task[2];
    ulong batch_rids_place = task[3], out_place = task[5];
    uint batch_count = task[4];
    __global const array_t *array = (__global const array_t *)at(slabs, array_place);
    __global const array_t *out = (__global const array_t *)at(slabs, out_place);
    __global const key_t *keys = KEYS(array->keys), *batch = KEYS(batch_place);
    __global const uint *rids = UINTS(rids_place), *batch_rids = UINTS(batch_rids_place);
    __global key_t *out_keys = KEYS(out->keys), *out_index = KEYS(out->index);
    __global uint *out_rids = UINTS(out->rids);
    uint piece = get_global_id(0), pieces = get_global_size(0);
    uint count = array->count, total = count + batch_count;
    uint cut[5], from_batch[5];
    // Cuts that are a power of two apart would share a few lines of the cache: 17 lines more.
    uint stagger = total / pieces > 1u << 14 ? 17 * FAN : 0;
    for (uint k = 0; k < 5; k++) {
        cut[k] = piece_start(total, 4 * piece + k, 4 * pieces) + k % 4 * stagger;
        from_batch[k] = batch_share(keys, count, batch, batch_count, cut[k]);
    }
#define MERGER(k)                                                                        \
    {cut[k] - from_batch[k], from_batch[k], cut[k + 1] - from_batch[k + 1], from_batch[k + 1]}
#define TUPLES keys, rids, batch, batch_rids, out_keys, out_rids
    merger_t a = MERGER(0), b = MERGER(1), c = MERGER(2), d = MERGER(3);
    for (;;) {
        uint steps = least(least(surely_lines(&a), surely_lines(&b)),
                           least(surely_lines(&c), surely_lines(&d)));
        if (steps == 0)
            break;
        for (uint step = 0; step < steps; step++) {
            merge_line(&a, TUPLES);
            merge_line(&b, TUPLES);
            merge_line(&c, TUPLES);
            merge_line(&d, TUPLES);
        }
    }
    merge_rest(&a, TUPLES);
    merge_rest(&b, TUPLES);
    merge_rest(&c, TUPLES);
    merge_rest(&d, TUPLES);
    index_keys(out_keys, out, out_index, cut[0], cut[4]);
    if (piece == pieces - 1)
        pad(out_keys, out, out_index, total);
}

typedef struct {
    uint i, j;      // first old and first new tuple of a piece
} split_t;

// Where the old tuples of a piece begin that its neighbour below does not overwrite.
INLINE uint zone_end(split_t split)
{
    return round_up(split.i + split.j + (split.j > 0 ? FAN : 0), FAN);
}

// What lies before the first new tuple stays where it is: whole lines of it.
INLINE uint unmoved(__global const key_t *keys, uint count, key_t first_new)
{
    return bound(keys, count, first_new, true) / FAN * FAN;
}

// Before `move`: cuts the work into pieces, and saves each piece's zone, the first old tuples,
// because the piece below writes there. splits[0] holds the number of pieces, the rest where
// each begins. Also saves `saved_count` rids that lie where `move` or `merge` will write.
// Task: array, batch, number of its tuples, splits, zones, their rids, room of a zone, rids, where
// they are saved, number of those.
__kernel void save(POOL, ulong tasks_place)
{
    const slab_t slabs[] = SLABS_OF_POOL;
    __global const ulong *task = task_of(slabs, tasks_place);
    ulong array_place = task[0], batch_place = task[1], splits_place = task[3];
    ulong zones_place = task[4], zone_rids_place = task[5], rids_place = task[7];
    ulong saved_place = task[8];
    uint batch_count = task[2], zone_room = task[6], saved_count = task[9];
    uint piece = get_global_id(0), most = get_global_size(0);
    uint first = piece_start(saved_count, piece, most);
    uint stop = piece_start(saved_count, piece + 1, most);
    __global const uint *rids = UINTS(rids_place);
    __global uint *saved = UINTS(saved_place);
    for (uint i = first; i < stop; i++)
        saved[i] = rids[i];
    if (batch_count == 0)
        return;
    __global const array_t *array = (__global const array_t *)at(slabs, array_place);
    __global const key_t *keys = KEYS(array->keys), *batch = KEYS(batch_place);
    __global split_t *splits = (__global split_t *)at(slabs, splits_place);
    uint count = array->count;
    uint still = unmoved(keys, count, batch[0]);
    uint moving = count - still + batch_count;
    // A zone must lie inside its piece: no piece is smaller than the longest shift.
    uint pieces = least(most, most_of(1u, moving / (batch_count + 4 * FAN)));
    if (piece >= pieces)
        return;
    uint start = piece_start(moving, piece, pieces);
    split_t split;
    split.j = batch_share(keys + still, count - still, batch, batch_count, start);
    split.i = still + start - split.j;
    splits[1 + piece] = split;
    copy_tuples(keys + split.i, UINTS(array->rids) + split.i,
                KEYS(zones_place) + (ulong)piece * zone_room,
                UINTS(zone_rids_place) + (ulong)piece * zone_room, zone_end(split) - split.i);
    if (piece == pieces - 1) {
        splits[0].i = pieces;
        splits[1 + pieces].i = count;
        splits[1 + pieces].j = batch_count;
    }
}

// keys[start..stop) to keys[start + shift..), from the end. From a shift of one line on, the last
// step may move a few tuples too many: they lie below what is final and above what is still to
// be read, and are overwritten.
#define MOVE_UP(NAME, TYPE, VECTOR)                                                                 \
    INLINE void NAME(__global TYPE *data, uint start, uint stop, uint shift)                  \
    {                                                                                         \
        uint i = stop;                                                                        \
        uint floor = shift >= FAN ? start : start + FAN - 1;                                  \
        while (i > floor && i >= FAN) {                                                       \
            i -= FAN;                                                                         \
            STORE16(VECTOR, LOAD16(VECTOR, data + i), data + i + shift);                      \
        }                                                                                     \
        while (i > start) {                                                                   \
            i--;                                                                              \
            data[i + shift] = data[i];                                                        \
        }                                                                                     \
    }
MOVE_UP(move_keys, key_t, key)
MOVE_UP(move_rids, uint, uint)

// Number of keys of the line that are below `stop` and not above x. What lies from `stop` on may
// be new already.
INLINE uint line_bound_below(__global const key_t *keys, uint line, uint stop, key_t x)
{
    const key16_t lane = (key16_t)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    key16_t hits = (LOAD16(key, keys + line) <= (key16_t)(x)) & (lane < (key16_t)(stop - line));
    return LANES_SET(hits);
}

// Rebounding search downwards: entries of index[least..most) that are not above x.
INLINE uint rebound_down(__global const key_t *index, uint least, uint most, key_t x)
{
    for (uint line = 0; line < 4 && most >= least + FAN; line++) {
        uint found = line_bound(index + most - FAN, x, true);
        if (found > 0)
            return most - FAN + found;
        most -= FAN;
    }
    uint step = 1;
    while (most >= least + step && index[most - step] > x) {
        most -= step;
        step *= 2;
    }
    uint first = most >= least + step ? most - step + 1 : least;
    return first + bound(index + first, most - first, x, true);
}

// Old tuples to a new one, on average, up to which `move` goes through them line by line.
#define NEAR 96u

// Moves up from the end what lies from `zone` on, line by line: the old tuples behind the last new
// one, and that one before them, or a whole line of old ones. As in merge_line, what is written too
// much is written over by what comes next, and nothing has to be guessed. Ends where less than a
// line of either is left.
INLINE void move_lines(__global key_t *keys, __global uint *rids, __global const key_t *batch,
                       __global const uint *batch_rids, uint zone, uint first_j, uint most,
                       uint *stop, uint *j)
{
    uint to = *stop, new_j = *j, floor_j = most_of(first_j, FAN - 1);
    for (uint line = 0; line < most && to >= zone + FAN && new_j > floor_j; line++) {
        uint from = to - FAN;
        key16_t old = LOAD16(key, keys + from);
        uint16 old_rids = LOAD16(uint, rids + from);
        key_t new = batch[new_j - 1];
        uint run = FAN - bound_in(old, new, true);
        STORE16(key, old, keys + from + new_j);
        STORE16(uint, old_rids, rids + from + new_j);
        to -= run;
        keys[to + new_j - 1] = new;
        rids[to + new_j - 1] = batch_rids[new_j - 1];
        new_j -= run < FAN;
    }
    *stop = to;
    *j = new_j;
}

// The mergers, in place. Requires what `save` left, unless there is one piece. One item to one
// piece.
// Task: array, batch, rids of the batch, number of those, splits, zones, their rids, room of a zone.
__kernel void move(POOL, ulong tasks_place)
{
    const slab_t slabs[] = SLABS_OF_POOL;
    __global const ulong *task = task_of(slabs, tasks_place);
    ulong array_place = task[0], batch_place = task[1], batch_rids_place = task[2];
    ulong splits_place = task[4], zones_place = task[5], zone_rids_place = task[6];
    uint batch_count = task[3], zone_room = task[7];
    bool alone = get_global_size(0) == 1;
    __global const split_t *splits = (__global const split_t *)at(slabs, splits_place);
    uint piece = get_global_id(0), pieces = alone ? 1 : splits[0].i;
    if (piece >= pieces)
        return;
    __global const array_t *array = (__global const array_t *)at(slabs, array_place);
    __global key_t *keys = KEYS(array->keys), *index = KEYS(array->index);
    __global uint *rids = UINTS(array->rids);
    __global const key_t *batch = KEYS(batch_place);
    __global const uint *batch_rids = UINTS(batch_rids_place);
    split_t first, last;
    if (alone) {
        first.i = unmoved(keys, array->count, batch[0]);
        first.j = 0;
        last.i = array->count;
        last.j = batch_count;
    } else {
        first = splits[1 + piece];
        last = splits[2 + piece];
    }
    uint zone = zone_end(first), stop = last.i, j = last.j;
    uint line[BLOCK], place[BLOCK];
    if (piece == pieces - 1)
        pad(keys, array, index, stop + j);
    if (stop - zone <= NEAR * (j - first.j)) {
        for (uint written = 0; written != stop + j;) {
            written = stop + j;
            move_lines(keys, rids, batch, batch_rids, zone, first.j, 8 * BLOCK, &stop, &j);
            index_keys(keys, array, index, stop + j, written);
        }
    }
    uint entry = (stop + FAN - 1) / FAN;
    for (bool above_zone = true; above_zone && j > first.j;) {
        uint n = least(BLOCK, j - first.j), written = stop + j, below = stop;
        for (uint k = 0; k < n; k++) {
            entry = rebound_down(index, zone / FAN, entry, batch[j - 1 - k]);
            line[k] = most_of(entry, zone / FAN + 1) * FAN - FAN;
            PREFETCH(keys + line[k]);
        }
        for (uint k = 0; k < n; k++) {
            below = least(below, line[k] + line_bound_below(keys, line[k], below, batch[j - 1 - k]));
            place[k] = below;
        }
        for (uint k = 0; k < n; k++) {
            above_zone = place[k] > zone;
            if (!above_zone)
                break;
            move_keys(keys, place[k], stop, j);
            move_rids(rids, place[k], stop, j);
            stop = place[k];
            j--;
            keys[stop + j] = batch[j];
            rids[stop + j] = batch_rids[j];
        }
        index_keys(keys, array, index, stop + j, written);
    }
    if (j > 0) {
        move_keys(keys, zone, stop, j);
        move_rids(rids, zone, stop, j);
    }
    merger_t merger = {0, 0, zone - first.i, j - first.j};
    uint from = first.i + first.j;
    merge_rest(&merger, KEYS(zones_place) + (ulong)piece * zone_room,
               UINTS(zone_rids_place) + (ulong)piece * zone_room, batch + first.j,
               batch_rids + first.j, keys + from, rids + from);
    index_keys(keys, array, index, first.i + first.j, stop + j);
}
