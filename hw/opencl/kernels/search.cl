// Partitioners and probers: bounds of sorted blocks of probes in a sorted array.
// Requires: keys[0..count) ascend; keys and every level of the index are padded with KEY_MAX to a
//           whole line, and one line more. See ARRAY in hw.opencl.program.
// Ensures:  a bound of x is the number of keys before it: below x, or not above x if `above`.

#define BLOCK 32u
// Below this many keys for each probe, neighbours in the batch are neighbours in the index.
#define SPARSE 1024u

inline bool is_before(key_t key, key_t x, bool above)
{
    return above ? key <= x : key < x;
}

// Number of the FAN keys from `line` on that are before the bound.
inline uint line_bound(__global const key_t *line, key_t x, bool above)
{
    key16_t keys = vload16(0, line);
    key16_t hits = above ? keys <= (key16_t)(x) : keys < (key16_t)(x);
    key8_t by_8 = hits.lo + hits.hi;
    key4_t by_4 = by_8.lo + by_8.hi;
    key2_t by_2 = by_4.lo + by_4.hi;
    return (uint)-(by_2.x + by_2.y);
}

inline uint bound(__global const key_t *keys, uint count, key_t x, bool above)
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
inline uint rebound(__global const key_t *index, uint entries, uint cursor, key_t x, bool above)
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
        cursor = min(cursor + found, entries);
        if (found < FAN || cursor == entries)
            return cursor;
    }
    uint step = FAN;
    while (step <= entries - cursor && is_before(index[cursor + step - 1], x, above)) {
        cursor += step;
        step *= 2;
    }
    return cursor + bound(index + cursor, min(step - 1, entries - cursor), x, above);
}

// The line of the level below that holds the bound, from the number of entries before it.
inline uint line_below(uint before)
{
    return (before - (before > 0)) * FAN;
}

// Bounds of n <= BLOCK probes in one array. `cursor` is where the block before ended.
// Dense batches go over the finest level, block by block, so that lines of the main array are
// under way before they are needed; sparse ones go down the sampled tree level by level.
inline void find_bounds(const slab_t *slabs, __global const array_t *array, bool sparse,
                        const key_t *x, uint n, bool above, uint *cursor, uint *found)
{
    __global const key_t *keys = KEYS(array->keys), *index = KEYS(array->index);
    uint count = array->count;
    if (!sparse) {
        uint entries = (count + FAN - 1) / FAN;
        for (uint j = 0; j < n; j++) {
            *cursor = rebound(index, entries, *cursor, x[j], above);
            found[j] = line_below(*cursor);
            PREFETCH(keys + found[j]);
        }
    } else {
        uint level = array->depth - 1, unit = 4 * (level + 1);      // FAN is 16
        uint entries = (uint)(((ulong)count + (1ul << unit) - 1) >> unit);
        __global const key_t *top = index + array->level[level];
        for (uint j = 0; j < n; j++)
            found[j] = line_below(bound(top, entries, x[j], above));
        while (level-- > 0) {
            unit -= 4;
            entries = (uint)(((ulong)count + (1ul << unit) - 1) >> unit);
            __global const key_t *keys_of_level = index + array->level[level];
            for (uint j = 0; j < n; j++)
                PREFETCH(keys_of_level + found[j]);
            for (uint j = 0; j < n; j++) {
                uint here = found[j] + line_bound(keys_of_level + found[j], x[j], above);
                found[j] = line_below(min(entries, here));
            }
        }
        for (uint j = 0; j < n; j++)
            PREFETCH(keys + found[j]);
    }
    for (uint j = 0; j < n; j++)
        found[j] = min(count, found[j] + line_bound(keys + found[j], x[j], above));
}

// The paper's way: one binary search on the index for each bound, one in its partition.
inline void find_bounds_singly(const slab_t *slabs, __global const array_t *array,
                               const key_t *x, uint n, bool above, uint *found)
{
    __global const key_t *keys = KEYS(array->keys), *index = KEYS(array->index);
    uint count = array->count, stride = array->stride;
    uint entries = (count + stride - 1) / stride;
    for (uint j = 0; j < n; j++) {
        uint before = bound(index, entries, x[j], above);
        uint first = (before - (before > 0)) * stride;
        found[j] = first + bound(keys + first, min(stride, count - first), x[j], above);
    }
}
