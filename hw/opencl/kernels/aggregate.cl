// Aggregates over matches: count, sum, least and largest value of a column of the stored side for
// each probe, from runs of positions and never from pairs.
// A column of a subwindow is its values by position, prefix sums over them, and levels of
// {sum, least, largest} over FAN, FAN**2, ... positions. value_t is long, or double if FLOATING.
// Sums of integers wrap, so that differences of prefix sums are exact. Sums of floats carry their
// rounding error in a second number; and where a subwindow has an infinity or NaN, its runs are
// summed over the levels, so that no value is felt outside the runs it is in.
// Order of values as in Spark: NaN is the largest.
// Where a subwindow has a frontier, its sums of integers have one, too: the values that every probe
// sees, summed over each mark and before it, and those on the edge.

#ifdef FLOATING
typedef double2 sum_t;
#define LARGEST NAN
#define SMALLEST (-INFINITY)

INLINE bool is_below(value_t a, value_t b)
{
    return a < b || (isnan(b) && !isnan(a));
}

INLINE bool is_special(value_t value)
{
    return !isfinite(value);
}

// Knuth's two-sum: the exact rounding error of total.x + value goes to total.y.
INLINE sum_t plus(sum_t total, value_t value)
{
    double sum = total.x + value, shadow = sum - total.x;
    double error = (total.x - (sum - shadow)) + (value - shadow);
    return (sum_t)(sum, total.y + error);
}

INLINE sum_t join(sum_t a, sum_t b)
{
    sum_t sum = plus(a, b.x);
    sum.y += b.y;
    return sum;
}

INLINE value_t difference(sum_t stop, sum_t start)
{
    return (stop.x - start.x) + (stop.y - start.y);
}

INLINE value_t added(value_t a, value_t b)
{
    return a + b;
}

INLINE value_t without(value_t a, value_t b)
{
    return a - b;
}
#else
typedef long sum_t;
#define LARGEST LONG_MAX
#define SMALLEST LONG_MIN

INLINE bool is_below(value_t a, value_t b)
{
    return a < b;
}

INLINE bool is_special(value_t value)
{
    return false;
}

INLINE sum_t plus(sum_t total, value_t value)
{
    return (long)((ulong)total + (ulong)value);
}

INLINE sum_t join(sum_t a, sum_t b)
{
    return plus(a, b);
}

INLINE value_t difference(sum_t stop, sum_t start)
{
    return (long)((ulong)stop - (ulong)start);
}

INLINE value_t added(value_t a, value_t b)
{
    return plus(a, b);
}

INLINE value_t without(value_t a, value_t b)
{
    return difference(a, b);
}
#endif

typedef struct {
    value_t sum, least, largest;
} summary_t;

// Positions to a sum in a fold.
#define FOLDED (MARKED / FOLDS_OF_MARK)
#define FOLDS_OF_MARK 4u

// The sums of the values of a mark with a bit in `every`, and of all such values before it.
typedef struct {
    ulong every;
    value_t before, sums[FOLDS_OF_MARK];
} fold_t;

typedef struct {
    long count;
    summary_t all;
} aggregate_t;

INLINE void take(summary_t *all, value_t sum, value_t low, value_t high)
{
    all->sum = added(all->sum, sum);
    all->least = is_below(low, all->least) ? low : all->least;
    all->largest = is_below(all->largest, high) ? high : all->largest;
}

#define NO_FOLDS 0xFFFFFFFFFFFFFFFFul
#define VALUES(place) ((__global value_t *)at(slabs, place))
#define SUMS(place) ((__global sum_t *)at(slabs, place))
#define SUMMARIES(place) ((__global summary_t *)at(slabs, place))
#define FOLDS(place) ((__global fold_t *)at(slabs, place))
#define MY_PIECE(first, stop)                                                             \
    uint i = first + piece_start(stop - first, get_global_id(0), get_global_size(0));     \
    uint last = first + piece_start(stop - first, get_global_id(0) + 1, get_global_size(0))

// Values by rid -> values by position, and the sum of each piece. Positions from `first` on.
__kernel void arrange(POOL, ulong rids_place, ulong by_rid_place, uint first, uint count,
                      ulong values_place, ulong pieces_place, ulong special_place)
{
    const slab_t slabs[] = SLABS_OF_POOL;
    __global const uint *rids = UINTS(rids_place);
    __global const value_t *by_rid = VALUES(by_rid_place);
    __global value_t *values = VALUES(values_place);
    sum_t sum = 0;
    bool special = false;
    MY_PIECE(first, count);
    for (; i < last; i++) {
        value_t value = by_rid[rids[i]];
        values[i] = value;
        special |= is_special(value);
        sum = plus(sum, value);
    }
    SUMS(pieces_place)[get_global_id(0)] = sum;
    if (special)
        *UINTS(special_place) = 1;
}

// sums[i + 1] = sum of values[0..i], from sums[first] and the pieces' sums on.
__kernel void scan_values(POOL, ulong values_place, uint first, uint count, ulong pieces_place,
                          ulong sums_place)
{
    const slab_t slabs[] = SLABS_OF_POOL;
    __global const value_t *values = VALUES(values_place);
    __global sum_t *sums = SUMS(sums_place);
    sum_t sum = 0;
    if (first > 0)
        sum = sums[first];
    else if (get_global_id(0) == 0)
        sums[0] = sum;
    for (uint piece = 0; piece < get_global_id(0); piece++)
        sum = join(sum, SUMS(pieces_place)[piece]);
    MY_PIECE(first, count);
    for (; i < last; i++) {
        sum = plus(sum, values[i]);
        sums[i + 1] = sum;
    }
}

// Marks ahead whose values are on their way.
#define FOLDED_AHEAD 16u

// One level: its entries from `first` on, each over FAN values or FAN entries of the level below.
__kernel void summarise(POOL, ulong below_place, uint below_count, uint of_values, uint first,
                        ulong level_place)
{
    const slab_t slabs[] = SLABS_OF_POOL;
    __global const value_t *values = VALUES(below_place);
    __global const summary_t *below = SUMMARIES(below_place);
    uint entries = (below_count + FAN - 1) / FAN;
    MY_PIECE(first, entries);
    for (; i < last; i++) {
        summary_t all = {0, LARGEST, SMALLEST};
        for (uint k = i * FAN; k < least(below_count, (i + 1) * FAN); k++) {
            if (of_values)
                take(&all, values[k], values[k], values[k]);
            else
                take(&all, below[k].sum, below[k].least, below[k].largest);
        }
        SUMMARIES(level_place)[i] = all;
    }
}

// Values on their way, of positions with a bit.
INLINE void fetch_values(__global const value_t *values, ulong bits)
{
    for (; bits > 0; bits &= bits - 1)
        PREFETCH(values + POPCOUNT((bits & -bits) - 1));
}

INLINE value_t sum_of(__global const fold_t *fold)
{
    value_t sum = 0;
    for (uint part = 0; part < FOLDS_OF_MARK; part++)
        sum = added(sum, fold->sums[part]);
    return sum;
}

// Folds as the marks are now, but for the sums before them; and the sum of each piece. Integers
// only: what is subtracted again leaves nothing behind.
__kernel void fold(POOL, ulong marks_place, ulong values_place, uint count, uint fresh,
                   ulong folds_place, ulong pieces_place)
{
    const slab_t slabs[] = SLABS_OF_POOL;
    __global const mark_t *marks = (__global const mark_t *)at(slabs, marks_place);
    __global const value_t *values = VALUES(values_place);
    __global fold_t *folds = FOLDS(folds_place);
    value_t all = 0;
    MY_PIECE(0, count / MARKED + 1);
    for (; i < last; i++) {
        uint ahead = least(i + FOLDED_AHEAD, last - 1);
        if (!fresh)
            fetch_values(values + ahead * MARKED, folds[ahead].every ^ marks[ahead].every);
        ulong every = marks[i].every, before = fresh ? 0 : folds[i].every;
        for (uint part = 0; part < FOLDS_OF_MARK && fresh; part++)
            folds[i].sums[part] = 0;
        for (ulong left = every ^ before; left > 0; left &= left - 1) {
            ulong lowest = left & -left;
            uint k = POPCOUNT(lowest - 1);
            value_t value = values[i * MARKED + k], sum = folds[i].sums[k / FOLDED];
            folds[i].sums[k / FOLDED] = (every & lowest) ? added(sum, value) : without(sum, value);
        }
        folds[i].every = every;
        all = added(all, sum_of(folds + i));
    }
    VALUES(pieces_place)[get_global_id(0)] = all;
}

// The sums before the folds, from the pieces' sums, and the values on the edge.
__kernel void line_up_values(POOL, ulong marks_place, ulong values_place, uint count,
                             ulong folds_place, ulong pieces_place, ulong edges_place)
{
    const slab_t slabs[] = SLABS_OF_POOL;
    __global const mark_t *marks = (__global const mark_t *)at(slabs, marks_place);
    __global const value_t *values = VALUES(values_place);
    __global value_t *edges = VALUES(edges_place);
    __global fold_t *folds = FOLDS(folds_place);
    value_t before = 0;
    for (uint piece = 0; piece < get_global_id(0); piece++)
        before = added(before, VALUES(pieces_place)[piece]);
    uint entries = count / MARKED + 1;
    MY_PIECE(0, entries);
    for (; i < last; i++) {
        uint ahead = least(i + FOLDED_AHEAD, last - 1);
        fetch_values(values + ahead * MARKED, marks[ahead].edge);
        folds[i].before = before;
        before = added(before, sum_of(folds + i));
        uint edge = marks[i].edge_before;
        for (ulong left = marks[i].edge; left > 0; left &= left - 1)
            edges[edge++] = values[i * MARKED + POPCOUNT((left & -left) - 1)];
    }
}

INLINE void take_entries(const slab_t *slabs, __global const column_t *column, uint level,
                         uint start, uint stop, summary_t *all)
{
    __global const value_t *values = VALUES(column->level[level]);
    __global const summary_t *entries = SUMMARIES(column->level[level]);
    for (uint i = start; i < stop; i++) {
        if (level == 0)
            take(all, values[i], values[i], values[i]);
        else
            take(all, entries[i].sum, entries[i].least, entries[i].largest);
    }
}

// Positions [start, stop) over the levels: what sticks out of whole entries, then one level up.
INLINE void walk(const slab_t *slabs, __global const column_t *column, uint start, uint stop,
                 summary_t *all)
{
    for (uint level = 0; start < stop; level++) {
        bool top = level + 1 >= column->depth || stop - start <= 2 * FAN;
        uint low = top ? stop : round_up(start, FAN), high = top ? stop : stop / FAN * FAN;
        take_entries(slabs, column, level, start, low, all);
        take_entries(slabs, column, level, high, stop, all);
        start = low / FAN;
        stop = high / FAN;
    }
}

// Probes ahead whose prefix sums are on their way: about as many lines as a core waits for.
#define AHEAD 12u

// A run of which the probe sees only some: its positions one by one.
INLINE void take_seen(const slab_t *slabs, __global const column_t *column,
                      __global const uint *rids, sight_t sight, uint start, uint stop,
                      __global aggregate_t *result)
{
    __global const value_t *values = VALUES(column->level[0]);
    summary_t all = result->all;
    uint seen = 0;
    if (column->extremes) {
        for (uint i = start; i < stop; i++)
            if (is_seen(rids[i], sight)) {
                take(&all, values[i], values[i], values[i]);
                seen++;
            }
    } else {
        value_t sum = 0;
        for (uint i = start; i < stop; i++) {
            bool is = is_seen(rids[i], sight);
            sum = added(sum, is ? values[i] : 0);
            seen += is;
        }
        all.sum = added(all.sum, sum);
    }
    result->all = all;
    result->count += seen;
}

// The sum of those of the values of a mark, from `start` to before `stop`, that have their bit.
INLINE value_t masked(__global const value_t *values, ulong bits, uint start, uint stop)
{
    value_t sum = 0;
    for (uint k = start; k < stop; k++)
        sum = added(sum, bits >> k & 1 ? values[k] : 0);
    return sum;
}

// The sum of the values before a position that every probe sees.
INLINE value_t folded_before(__global const fold_t *folds, __global const value_t *values,
                             uint position)
{
    __global const fold_t *fold = folds + position / MARKED;
    uint k = position % MARKED, part = (k + FOLDED / 2) / FOLDED, edge = part * FOLDED;
    value_t sum = fold->before;
    for (uint before = 0; before < FOLDS_OF_MARK; before++)
        sum = added(sum, before < part ? fold->sums[before] : 0);
    values += position - k;
    if (edge <= k)
        return added(sum, masked(values, fold->every, edge, k));
    return without(sum, masked(values, fold->every, k, edge));
}

// What `folded_before` will read is on its way then.
INLINE void fetch_folded(__global const mark_t *marks, __global const fold_t *folds,
                         __global const value_t *values, uint position)
{
    PREFETCH(marks + position / MARKED);
    PREFETCH(folds + position / MARKED);
    PREFETCH((__global const uchar *)(folds + position / MARKED + 1) - 1);
    PREFETCH(values + position / FOLDED * FOLDED + FOLDED / 2 * (position % FOLDED > FOLDED / 2));
}

// The same run, by the frontier.
INLINE void take_marked(const slab_t *slabs, __global const column_t *column,
                        __global const mark_t *marks, __global const uint *edges, sight_t sight,
                        uint start, uint stop, effort_t *effort, __global aggregate_t *result)
{
    before_t from = marked_before(marks, start), to = marked_before(marks, stop);
    __global const fold_t *folds = FOLDS(column->folds);
    __global const value_t *values = VALUES(column->level[0]), *on_edge = VALUES(column->edges);
    value_t sum = without(folded_before(folds, values, stop), folded_before(folds, values, start));
    uint seen = to.every - from.every;
    effort->looked += to.edge - from.edge;
    if (effort->looked > effort->most)
        return;
    for (uint i = from.edge; i < to.edge; i++) {
        bool is = is_seen(edges[i], sight);
        sum = added(sum, is ? on_edge[i] : 0);
        seen += is;
    }
    result->all.sum = added(result->all.sum, sum);
    result->count += seen;
}

INLINE void take_run(const slab_t *slabs, __global const column_t *column, bool by_sums,
                     uint start, uint stop, __global aggregate_t *result)
{
    if (start >= stop)
        return;
    summary_t all = {0, LARGEST, SMALLEST};
    if (column->extremes || !by_sums)
        walk(slabs, column, start, stop, &all);
    if (by_sums)
        all.sum = difference(SUMS(column->sums)[stop], SUMS(column->sums)[start]);
    summary_t sofar = result->all;
    take(&sofar, all.sum, all.least, all.largest);
    result->all = sofar;
    result->count += stop - start;
}

// aggregates[probe] over all subwindows, from the records of `probe`. NOT means the positions of
// the record's array around it, and then every probe sees every subwindow whole. A work item with
// too many positions to be looked at gives up. efforts[item] tells.
__kernel void aggregate(POOL, ulong records_place, ulong arrays_place, ulong columns_place,
                        uint subwindows, uint probes, uint runs, uint tiers, uint negated,
                        ulong aggregates_place, ulong sights_place, ulong efforts_place)
{
    const slab_t slabs[] = SLABS_OF_POOL;
    __global const record_t *records = (__global const record_t *)at(slabs, records_place);
    __global const array_t *arrays = (__global const array_t *)at(slabs, arrays_place);
    __global const column_t *columns = (__global const column_t *)at(slabs, columns_place);
    __global aggregate_t *results = (__global aggregate_t *)at(slabs, aggregates_place);
    __global const sights_t *sights = (__global const sights_t *)at(slabs, sights_place);
    MY_PIECE(0, probes);
    uint first = i;
    effort_t effort = {0, 0, (ulong)(last - first) * MOST_LOOKED};
    for (; i < last; i++) {
        aggregate_t nothing = {0, {0, LARGEST, SMALLEST}};
        results[i] = nothing;
    }
    for (uint s = 0; s < subwindows; s++) {
        __global const record_t *rows = records + (ulong)s * probes * runs;
        __global const column_t *column = columns + s;
        __global const sum_t *sums = SUMS(column->sums);
        __global const uint *rids = UINTS(arrays[2 * s].rids);
        bool by_sums = *UINTS(column->special) == 0, whole = sights[s].place == SEES_ALL;
        bool folded = !whole && sights[s].marks != NO_FRONTIER && column->folds != NO_FOLDS;
        __global const value_t *values = VALUES(column->level[0]);
        __global const fold_t *folds = 0;
        __global const mark_t *marks = 0;
        __global const uint *edges = 0;
        if (folded) {
            folds = FOLDS(column->folds);
            marks = marks_of(slabs, sights + s);
            edges = UINTS(sights[s].edges);
        }
        for (i = first; i < last && !whole; i++) {
            sight_t sight = sight_of(slabs, sights + s, probes, i);
            record_t ahead = rows[least(i + AHEAD, last - 1) * runs];
            if (folded) {
                fetch_folded(marks, folds, values, ahead.start);
                fetch_folded(marks, folds, values, ahead.end);
            }
            for (uint run = 0; run < runs; run++) {
                record_t record = rows[i * runs + run];
                effort.met += record.end - record.start;
                if (record.start == record.end)
                    continue;
                if (folded) {
                    take_marked(slabs, column, marks, edges, sight, record.start, record.end,
                                &effort, results + i);
                    continue;
                }
                effort.looked += record.end - record.start;
                if (effort.looked <= effort.most)
                    take_seen(slabs, column, rids, sight, record.start, record.end, results + i);
            }
        }
        for (i = first; i < last && whole; i++) {
            uint ahead = least(i + AHEAD, last - 1) * runs;
            PREFETCH(sums + rows[ahead].start);
            PREFETCH(sums + (rows[ahead].end & ~NOT));
            for (uint run = 0; run < runs; run++) {
                record_t record = rows[i * runs + run];
                uint end = record.end & ~NOT;
                if (!negated) {
                    take_run(slabs, column, by_sums, record.start, end, results + i);
                    continue;
                }
                __global const array_t *array = arrays + 2 * s + run % tiers;
                take_run(slabs, column, by_sums, array->base, record.start, results + i);
                uint stop = array->base + array->count;
                take_run(slabs, column, by_sums, end, stop, results + i);
            }
        }
    }
    tell(slabs, efforts_place, &effort);
}
