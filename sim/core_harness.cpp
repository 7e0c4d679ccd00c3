// A simulated join core as a library: one call runs one command with whole arrays.
// Requires: the model Vcore, and the words of a token's data as macros. Nothing here knows a width.

#include <cstdint>
#include <cstring>

#include "Vcore.h"
#include "verilated.h"

double sc_time_stamp() { return 0; }

namespace {

struct Core {
    VerilatedContext context;
    Vcore model{&context};

    void settle() {
        model.clk = 0;
        model.eval();
    }
    void edge() {
        model.clk = 1;
        model.eval();
    }
};

// A wide token: data, then the count and the end bit in a word of their own.
template <typename Payload>
void put_token(Payload &payload, const uint32_t *data, uint64_t rows, int row_words, int words)
{
    const uint64_t taken = rows < LANES ? rows : LANES;
    for (int n = 0; n < words; n++)
        payload[n] = n < int(taken) * row_words ? data[n] : 0;
    payload[words] = uint32_t(taken) | uint32_t(rows == 0) << COUNT_BITS;
}

}  // namespace

extern "C" {

void *core_open()
{
    Core *core = new Core;
    core->model.rst = 1;
    for (int n = 0; n < 3; n++) {
        core->settle();
        core->edge();
    }
    core->model.rst = 0;
    return core;
}

void core_close(void *handle)
{
    Core *core = static_cast<Core *>(handle);
    core->model.final();
    delete core;
}

// Runs one command to its reply. `kind` says which payload it has: 0 none, 1 tuples, 2 keys.
// Returns the records that came, or -1 after `patience` cycles without a reply.
int64_t core_run(void *handle, const uint32_t *command, int kind, const uint32_t *data,
                 uint64_t rows, uint32_t *records, uint32_t *reply, uint64_t patience)
{
    Core *core = static_cast<Core *>(handle);
    Vcore &model = core->model;
    const int row_words = kind == 1 ? TUPLE_WORDS : KEY_WORDS;
    bool sent = kind == 0;  // the whole payload, with its end
    int64_t came = 0;
    for (int n = 0; n < COMMAND_WORDS; n++)
        model.commands___05Fpayload[n] = command[n];
    model.commands___05Fvalid = 1;
    model.records___05Fready = 1;
    model.replies___05Fready = 1;
    bool fresh = true;  // the token has to be set
    for (uint64_t cycle = 0; cycle < patience; cycle++) {
        if (!sent && fresh) {
            if (kind == 1)
                put_token(model.tuples___05Fpayload, data, rows, row_words, TUPLE_WORDS * LANES);
            else
                put_token(model.probes___05Fpayload, data, rows, row_words, KEY_WORDS * LANES);
            fresh = false;
        }
        model.tuples___05Fvalid = !sent && kind == 1;
        model.probes___05Fvalid = !sent && kind == 2;
        core->settle();
        const bool begun = model.commands___05Fvalid && model.commands___05Fready;
        const bool token_goes = !sent && (kind == 1 ? model.tuples___05Fready
                                                    : model.probes___05Fready);
        if (model.records___05Fvalid) {
            const uint32_t state = model.records___05Fpayload[2 * LANES];
            const uint32_t count = state & ((1u << COUNT_BITS) - 1);
            for (uint32_t n = 0; n < 2 * count; n++)
                records[2 * came + n] = model.records___05Fpayload[n];
            came += count;
        }
        const bool done = model.replies___05Fvalid;
        if (done)
            for (int n = 0; n < REPLY_WORDS; n++)
                reply[n] = model.replies___05Fpayload[n];
        core->edge();
        if (begun)
            model.commands___05Fvalid = 0;
        if (token_goes) {
            sent = rows == 0;
            const uint64_t taken = rows < LANES ? rows : LANES;
            data += taken * row_words;
            rows -= taken;
            fresh = true;
        }
        if (done)
            return came;
    }
    return -1;
}

// cycles, stalled, tuples, records: see hw.rtl.join_core.statistics_layout.
void core_statistics(void *handle, uint64_t *counters)
{
    Vcore &model = static_cast<Core *>(handle)->model;
    model.eval();
    for (int n = 0; n < 4; n++) {
        const int bit = 48 * n, word = bit / 32, shift = bit % 32;
        const uint64_t low = model.statistics[word], high = model.statistics[word + 1];
        counters[n] = ((low | high << 32) >> shift) & ((uint64_t(1) << 48) - 1);
    }
}

}  // extern "C"
