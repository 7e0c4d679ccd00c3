// Distribution step (SplitJoin): every core sees the whole batch and keeps the tuples whose turn
// is its own, counted by each for itself; there is no coordinator.
// Requires: a batch in order of keys; room for `count` + 1 tuples to a core.
// Ensures:  each core's tuples keep that order; kept[core] is their number.
__kernel void distribute(POOL, ulong keys_place, ulong rids_place, uint count, uint turn,
                         ulong out_place, ulong out_rids_place, ulong kept_place)
{
    const slab_t slabs[] = SLABS_OF_POOL;
    uint core = get_global_id(0), cores = get_global_size(0);
    __global const key_t *keys = KEYS(keys_place);
    __global const uint *rids = UINTS(rids_place);
    __global key_t *out = KEYS(out_place) + (ulong)core * (count + 1);
    __global uint *out_rids = UINTS(out_rids_place) + (ulong)core * (count + 1);
    uint kept = 0;
    for (uint i = 0; i < count; i++) {
        out[kept] = keys[i];            // written over unless it is this core's turn
        out_rids[kept] = rids[i];
        kept += (rids[i] + turn) % cores == core;
    }
    UINTS(kept_place)[core] = kept;
}
