// Partitioners and probers: bounds of sorted blocks of probes in a sorted array.
// Requires: keys[0..count) ascend; keys and every level of the index are padded with KEY_MAX to a
//           whole line, and PADDING more. See ARRAY in hw.opencl.program.
// Ensures:  a bound of x is the number of keys before it: below x, or not above x if `above`.

#define BLOCK 32u
// Arrays that are searched together, block by block.
#define ABREAST 8u
// Probes that are looked for together at the level where a search starts, in two lines of it, and
// the entries that they may span there on average: nearly always, two lines hold all of them then.
#define TOGETHER 16u
#define SPANNED 18u
// As few, at least, are worth looking for in the keys themselves.
#define LEAST_TOGETHER 4u

INLINE bool is_before(key_t key, key_t x, bool above)
{
    return above ? key <= x : key < x;
}

// Number of FAN keys that are before the bound.
INLINE uint bound_in(key16_t keys, key_t x, bool above)
{
    key16_t hits = above ? keys <= (key16_t)(x) : keys < (key16_t)(x);
    return LANES_SET(hits);
}

// The same of 2 * FAN keys.
INLINE uint bound_in_two(key16_t keys, key16_t more, key_t x, bool above)
{
    key16_t hits = above ? keys <= (key16_t)(x) : keys < (key16_t)(x);
    key16_t more_hits = above ? more <= (key16_t)(x) : more < (key16_t)(x);
    return LANES_OF_BOTH(SIGNS(hits, more_hits));
}

INLINE uint line_bound(__global const key_t *line, key_t x, bool above)
{
    return bound_in(LOAD16(key, line), x, above);
}

INLINE uint bound(__global const key_t *keys, uint count, key_t x, bool above)
{
    uint first = 0;
    while (count > 0) {                 // everything before `first` is before the bound
        uint half_count = count / 2;
        bool before = is_before(keys[first + half_count], x, above);
        first = before ? first + half_count + 1 : first;
        count = before ? count - half_count - 1 : half_count;
    }
    return first;
}

// PanJoin III-E: rebounding search of a sorted batch, from the bound of the probe before. Strides
// of one line first, which is where the next probe of a dense batch ends; then doubling ones. It
// also turns back, because explicit intervals need not ascend.
INLINE uint rebound(__global const key_t *index, uint entries, uint cursor, key_t x, bool above)
{
    if (cursor > 0 && !is_before(index[cursor - 1], x, above)) {
        uint last = cursor - 1, step = 1;
        while (last >= step && !is_before(index[last - step], x, above)) {
            last -= step;
            step *= 2;
        }
        uint first = last >= step ? last - step + 1 : 0;
        return first + bound(index + first, last - first, x, above);
    }
    for (uint line = 0; line < 4; line++) {
        uint found = line_bound(index + cursor, x, above);
        cursor = least(cursor + found, entries);
        if (found < FAN || cursor == entries)
            return cursor;
    }
    uint step = FAN;
    while (step <= entries - cursor && is_before(index[cursor + step - 1], x, above)) {
        cursor += step;
        step *= 2;
    }
    return cursor + bound(index + cursor, least(step - 1, entries - cursor), x, above);
}

// The line of the level below that holds the bound, from the number of entries before it.
INLINE uint line_below(uint before)
{
    return (before - (before > 0)) * FAN;
}

typedef struct {
    uint lo, hi;        // entries of the level that are before the last probe's bounds
    bool far;           // runs of the last probes were long
} cursors_t;

// The level of the index at which a batch starts its searches: a few probes then span two lines.
// A dense batch starts at the finest level, one that is sparse against the array near the top of
// the sampled tree.
INLINE uint starting_level(__global const array_t *array, uint probes)
{
    ulong entries = (ulong)array->count / FAN;
    uint level = 0;
    while (entries * TOGETHER > (ulong)probes * SPANNED && level + 1 < array->depth) {
        entries /= FAN;
        level++;
    }
    return level;
}

// How many probes are looked for together in the keys themselves: 0 where the index is the shorter
// way, because the batch is not dense enough against the array.
INLINE uint looked_for_at_once(__global const array_t *array, uint probes)
{
    uint together = TOGETHER;
    while (together >= LEAST_TOGETHER && (ulong)array->count * together > (ulong)probes * SPANNED)
        together /= 2;
    return together >= LEAST_TOGETHER ? together : 0;
}

// Entries of a level of the index; those of the level below are the keys themselves.
INLINE uint entries_of(uint count, uint level)
{
    uint shift = 4 * (level + 1);       // FAN is 16
    return (uint)(((ulong)count + (1ul << shift) - 1) >> shift);
}

INLINE bool ascends(const key_t *x, uint n)
{
    bool falls = false;
    for (uint j = 1; j < n; j++)
        falls |= x[j] < x[j - 1];
    return !falls;
}

// Whether two lines from `first` on hold the entries of ascending bounds.
INLINE bool spans(__global const key_t *level, uint first, key_t from, key_t to, bool above)
{
    return (first == 0 || is_before(level[first - 1], from, above)) &
           !is_before(level[first + 2 * FAN - 1], to, above);
}

// Keys of a level that are before n bounds, looked for `together` at a time. Where two lines of the
// level hold so many, all are counted in these, none waiting for another; elsewhere each starts from
// the one before.
INLINE void find_bounds(__global const key_t *level, uint count, uint together, const key_t *x,
                        bool rises, uint n, bool above, uint *cursor, uint *before)
{
    uint first = *cursor;
    for (uint begin = 0; begin < n; begin += together) {
        uint end = least(n, begin + together);
        if (!spans(level, first, x[begin], x[end - 1], above))
            first = rebound(level, count, first, x[begin], above);
        if (rises && spans(level, first, x[begin], x[end - 1], above)) {
            key16_t keys = LOAD16(key, level + first), more = LOAD16(key, level + first + FAN);
            for (uint j = begin; j < end; j++)
                before[j] = first + bound_in_two(keys, more, x[j], above);
        } else {
            for (uint j = begin; j < end; j++)
                before[j] = first = rebound(level, count, first, x[j], above);
        }
        first = before[end - 1];
    }
    *cursor = first;
}

// Lines of keys that hold n bounds. A rebounding search finds their entries at `level`; from there
// all go down together, line by line, each line under way before it is needed.
INLINE void find_key_lines(const slab_t *slabs, __global const array_t *array, uint level,
                           const key_t *x, bool rises, uint n, bool above, uint *cursor,
                           uint *lines)
{
    __global const key_t *keys = KEYS(array->keys), *index = KEYS(array->index);
    __global const key_t *here = index + array->level[level];
    __global const key_t *below = level > 0 ? index + array->level[level - 1] : keys;
    find_bounds(here, entries_of(array->count, level), TOGETHER, x, rises, n, above, cursor, lines);
    for (uint j = 0; j < n; j++) {
        lines[j] = line_below(lines[j]);
        PREFETCH(below + lines[j]);
    }
    while (level-- > 0) {
        here = below;
        below = level > 0 ? index + array->level[level - 1] : keys;
        uint entries = entries_of(array->count, level);
        for (uint j = 0; j < n; j++) {
            uint before = lines[j] + line_bound(here + lines[j], x[j], above);
            // Only an upper bound of KEY_MAX counts what lies behind the last entry.
            lines[j] = line_below(above ? least(entries, before) : before);
            PREFETCH(below + lines[j]);
        }
    }
}

// Where a run ends that does not end in its first line: one line of the index further on. False
// where that is not far enough.
INLINE bool find_near_end(__global const key_t *keys, __global const key_t *index, uint count,
                          uint line, key_t hi, uint *stop)
{
    uint entries = entries_of(count, 0), cursor = line / FAN + 1;
    uint found = line_bound(index + cursor, hi, true);
    line = line_below(least(entries, cursor + found));
    *stop = least(count, line + line_bound(keys + line, hi, true));
    return found < FAN || cursor + FAN >= entries;
}

// Runs of n <= BLOCK intervals in one array, from the lines of keys in `start`. Most runs are short:
// the line in which one begins is the line in which it ends. Ends that are far away are searched
// for as beginnings are; where the runs before were long, `ends_known`, their lines are in `stop`.
INLINE void find_runs(const slab_t *slabs, __global const array_t *array, uint level,
                      const key_t *lo, const key_t *hi, bool hi_rises, uint n, bool ends_known,
                      cursors_t *cursors, uint *start, uint *stop)
{
    __global const key_t *keys = KEYS(array->keys), *index = KEYS(array->index);
    uint count = array->count;
    bool far = ends_known;
    for (uint j = 0; j < n && ends_known; j++)
        start[j] += line_bound(keys + start[j], lo[j], false);
    for (uint j = 0; j < n && !ends_known; j++) {
        uint line = start[j];
        key16_t in_line = LOAD16(key, keys + line);
        key16_t before = in_line < (key16_t)(lo[j]), behind = in_line > (key16_t)(hi[j]);
        uint signs = SIGNS(before, behind);
        uint last = FAN - LANES_OF_SECOND(signs);
        start[j] = line + LANES_OF_FIRST(signs);
        stop[j] = least(count, line + last);
        // Nothing of the next line is in the run unless its first key is.
        if (index[line / FAN + 1] <= hi[j] && !far)
            far = !find_near_end(keys, index, count, line, hi[j], stop + j);
    }
    cursors->far = far;
    if (!far)
        return;
    if (!ends_known)
        find_key_lines(slabs, array, level, hi, hi_rises, n, true, &cursors->hi, stop);
    uint longest = 0;
    for (uint j = 0; j < n; j++) {
        stop[j] = least(count, stop[j] + line_bound(keys + stop[j], hi[j], true));
        longest = most_of(longest, stop[j] > start[j] ? stop[j] - start[j] : 0);
    }
    cursors->far = longest > FAN * FAN;
}

// The paper's way: one binary search on the index for each bound, one in its partition.
INLINE void find_bounds_singly(const slab_t *slabs, __global const array_t *array,
                               const key_t *x, uint n, bool above, uint *found)
{
    __global const key_t *keys = KEYS(array->keys), *index = KEYS(array->index);
    uint count = array->count, stride = array->stride;
    uint entries = (count + stride - 1) / stride;
    for (uint j = 0; j < n; j++) {
        uint before = bound(index, entries, x[j], above);
        uint first = (before - (before > 0)) * stride;
        found[j] = first + bound(keys + first, least(stride, count - first), x[j], above);
    }
}
