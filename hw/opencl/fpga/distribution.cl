// SplitJoin's distribution (Algorithm 1): every word goes to every core, and no one else decides
// anything. The fan-out is one level: a channel a core, all written in the same clock.

#define DECLARE(core) \
    CHANNEL(tuple_t, OF_CORE(tuples, core), DEPTH) \
    CHANNEL(interval_t, OF_CORE(probes, core), DEPTH)
EACH_CORE(DECLARE)
#undef DECLARE

// Ensures: every core gets batch[first .. first + count) in order.
TASK distribute_tuples(__global const tuple_t *restrict batch, uint first, uint count)
{
    PIPELINE
    for (uint i = 0; i < count; i++) {
        tuple_t tuple = batch[first + i];
#define SEND(core) PUT(OF_CORE(tuples, core), tuple);
        EACH_CORE(SEND)
#undef SEND
    }
}

// Ensures: every core gets the words [first, first + count) once for each of its subwindows. A word
// is one probe key, as the interval [key, key], or with `intervals` an explicit interval.
TASK distribute_probes(__global const key_t *restrict keys,
                       __global const interval_t *restrict wanted,
                       uint first, uint count, uint intervals, uint subwindows)
{
    for (uint subwindow = 0; subwindow < subwindows; subwindow++) {
        PIPELINE
        for (uint i = 0; i < count; i++) {
            interval_t word;
            if (intervals) {
                word = wanted[first + i];
            } else {
                key_t key = keys[first + i];
                word.lo = key;
                word.hi = key;
            }
#define SEND(core) PUT(OF_CORE(probes, core), word);
            EACH_CORE(SEND)
#undef SEND
        }
    }
}
