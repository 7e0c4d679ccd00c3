// A simulated engine of several cores as a library: whole words in, answers out, cycles counted
// (hw.rtl.engine).

#include <cstdint>
#include <cstring>

#include "Vcore.h"
#include "verilated.h"

double sc_time_stamp() { return 0; }

namespace {

struct Engine {
    VerilatedContext context;
    Vcore model{&context};
    uint64_t cycles = 0;

    void settle() {
        model.clk = 0;
        model.eval();
    }
    void edge() {
        model.clk = 1;
        model.eval();
        cycles++;
    }
};

template <class Bits> void put(Bits &port, const uint32_t *from)
{
    std::memcpy(&port, from, sizeof(port));
}

template <class Bits> void get(const Bits &port, uint32_t *to)
{
    std::memcpy(to, &port, sizeof(port));
}

}  // namespace

extern "C" {

void *engine_open()
{
    Engine *engine = new Engine;
    engine->model.rst = 1;
    for (int n = 0; n < 3; n++) {
        engine->settle();
        engine->edge();
    }
    engine->model.rst = 0;
    engine->cycles = 0;
    return engine;
}

void engine_close(void *handle)
{
    Engine *engine = static_cast<Engine *>(handle);
    engine->model.final();
    delete engine;
}

// 32-bit pieces of a word and of an answer.
uint64_t engine_word_size(void *handle)
{
    return sizeof(static_cast<Engine *>(handle)->model.words___05Fpayload) / 4;
}

uint64_t engine_answer_size(void *handle)
{
    return sizeof(static_cast<Engine *>(handle)->model.answers___05Fpayload) / 4;
}

// Offers `count` words without a pause and takes every answer, until bit `last` was set in
// `commands` of them. Keeps the answers and the cycle of each. Returns how many came; -1 where
// nothing moved for `patience` cycles or there was no `room`.
int64_t engine_run(void *handle, const uint32_t *words, uint64_t count, uint64_t commands,
                   uint64_t last, uint32_t *answers, uint64_t *stamps, uint64_t room,
                   uint64_t patience)
{
    Engine *engine = static_cast<Engine *>(handle);
    Vcore &model = engine->model;
    const uint64_t in_size = engine_word_size(handle), out_size = engine_answer_size(handle);
    uint64_t in = 0, out = 0, still = 0, done = 0;
    model.answers___05Fready = 1;
    while (done < commands) {
        model.words___05Fvalid = in < count;
        if (in < count)
            put(model.words___05Fpayload, words + in * in_size);
        engine->settle();
        const bool goes = in < count && model.words___05Fready;
        const bool comes = model.answers___05Fvalid;
        if (comes) {
            if (out == room)
                return -1;
            uint32_t *answer = answers + out * out_size;
            get(model.answers___05Fpayload, answer);
            stamps[out++] = engine->cycles;
            done += answer[last / 32] >> last % 32 & 1;
        }
        in += goes;
        still = goes || comes ? 0 : still + 1;
        engine->edge();
        if (still > patience)
            return -1;
    }
    return out;
}

}  // extern "C"
