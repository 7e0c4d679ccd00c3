// What a probe sees of a subwindow that its window covers in part: `rows` rids from `first` on.
// Sights of a subwindow are uint first[probes], rows[probes]; their place is SEES_ALL where every
// probe sees the whole.

#define SEES_ALL 0xFFFFFFFFFFFFFFFFul
// Positions to a probe, on average, beyond which looking at each costs more than other ways.
#define MOST_LOOKED 4096ul

typedef struct {
    uint first, rows;
} sight_t;

INLINE sight_t sight_of(const slab_t *slabs, ulong place, uint probes, uint probe)
{
    sight_t sight = {0, 0xFFFFFFFFu};
    if (place != SEES_ALL) {
        sight.first = UINTS(place)[probe];
        sight.rows = UINTS(place)[probes + probe];
    }
    return sight;
}

INLINE bool is_seen(uint rid, sight_t sight)
{
    return rid - sight.first < sight.rows;      // wraps below `first`
}
