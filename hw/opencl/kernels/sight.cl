// What a probe sees of a subwindow that its window covers in part: `rows` rids from `first` on,
// modulo 2**32. All probes of a subwindow: uint first[probes] at `place`, each less `base`; then
// uint rows[probes], unless `rows` has the one number of all of them.

#define SEES_ALL 0xFFFFFFFFFFFFFFFFul
#define BY_PROBE 0u
// Positions to a probe, on average, beyond which looking at each costs more than other ways.
#define MOST_LOOKED 4096ul

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
