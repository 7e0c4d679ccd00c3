// Prober LANE of core CORE (PanJoin IV, Figure 9): a stream of stored keys, a stream of bounds, a
// comparator. As with the merger, a kernel of its own makes the keys a stream.

CHANNEL(key_t, UNIT(rows), KEY_DEPTH)
CHANNEL(uint, UNIT(found), DEPTH)

// Ensures: the keys of all asked rows flow, in order of asking; no rows asked is the end.
TASK UNIT(fetch)(__global const key_t *restrict keys)
{
    bool more = true;
    while (more) {
        uint2 fetch;
        GET(UNIT(fetches), fetch);
        PIPELINE
        for (uint i = 0; i < fetch.y; i++) {
            key_t key = keys[fetch.x + i];
            PUT(UNIT(rows), key);
        }
        more = fetch.y > 0;
    }
}

// Ensures: for each target the first position that is not before its bound. The merge-like scan of
//          PanJoin III-E: a key that is before the bound is before all later ones too, so each key
//          is looked at once. (Print has the order of its t1 and t2 inverted: batches ascend.)
TASK UNIT(probe)(void)
{
    target_t target;
    key_t head = 0;                     // the key at `position`, if held
    bool held = false, asked = false, more = true;
    uint position = 0, left = 0, stale = 0;     // keys to come of these rows and of the last ones
    // A key or an answer a clock: what an iteration needs of the one before are these registers.
    PIPELINE
    while (more) {
        if (!asked) {
            GET(UNIT(targets), target);
            asked = true;
            if (target.fresh || target.closing) {
                stale = left;
                left = target.count;
                position = target.first;
                held = false;
            }
        } else {
            bool scans = !target.known || target.closing;
            bool drop = scans && stale > 0;
            bool take = scans && !drop && !held && left > 0;
            if (drop || take)
                GET(UNIT(rows), head);
            stale -= drop ? 1 : 0;
            left -= take ? 1 : 0;
            held = held || take;
            bool pass = !target.known && !drop && held && BEFORE(head, target.key, target.above);
            if (pass) {
                held = false;
                position++;
            } else if (!drop) {
                uint answer = target.known ? target.first : position;
                if (!target.closing)
                    PUT(UNIT(found), answer);
                asked = false;
                more = !target.closing;
            }
        }
    }
}
