// Paper mode (PanJoin III-D): index array and unsorted insertion buffer, the benchmarks' baseline.

// The index array: one entry to `stride` keys. Task: array.
__kernel void sample(POOL, ulong tasks_place)
{
    const slab_t slabs[] = SLABS_OF_POOL;
    ulong array_place = task_of(slabs, tasks_place)[0];
    __global const array_t *array = (__global const array_t *)at(slabs, array_place);
    __global const key_t *keys = KEYS(array->keys);
    __global key_t *index = KEYS(array->index);
    uint entries = (array->count + array->stride - 1) / array->stride;
    uint stop = piece_start(entries, get_global_id(0) + 1, get_global_size(0));
    for (uint i = piece_start(entries, get_global_id(0), get_global_size(0)); i < stop; i++)
        index[i] = keys[i * array->stride];
}

// The insertion buffer in order of keys, equal ones in order of arrival. A tuple's
// place is the number of tuples that come before it. Task: keys, rids, their number, and where both
// go.
__kernel void sort(POOL, ulong tasks_place)
{
    const slab_t slabs[] = SLABS_OF_POOL;
    __global const ulong *task = task_of(slabs, tasks_place);
    ulong keys_place = task[0], rids_place = task[1], out_place = task[3], out_rids_place = task[4];
    uint count = task[2];
    __global const key_t *keys = KEYS(keys_place);
    uint stop = piece_start(count, get_global_id(0) + 1, get_global_size(0));
    for (uint i = piece_start(count, get_global_id(0), get_global_size(0)); i < stop; i++) {
        key_t key = keys[i];
        uint place = 0;
        for (uint k = 0; k < i; k++)
            place += keys[k] <= key;
        for (uint k = i + 1; k < count; k++)
            place += keys[k] < key;
        KEYS(out_place)[place] = key;
        UINTS(out_rids_place)[place] = UINTS(rids_place)[i];
    }
}
