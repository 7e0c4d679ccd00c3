// A simulated engine behind bytes as a library (hw.rtl.engine_port).

#include <cstdint>

#include "Vcore.h"
#include "verilated.h"

double sc_time_stamp() { return 0; }

namespace {

struct Port {
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

}  // namespace

extern "C" {

void *port_open()
{
    Port *port = new Port;
    port->model.rst = 1;
    for (int n = 0; n < 3; n++) {
        port->settle();
        port->edge();
    }
    port->model.rst = 0;
    port->cycles = 0;
    return port;
}

void port_close(void *handle)
{
    Port *port = static_cast<Port *>(handle);
    port->model.final();
    delete port;
}

uint64_t port_cycles(void *handle) { return static_cast<Port *>(handle)->cycles; }

// Sends `sent` bytes and takes answers until one is complete or `room` bytes have come.
// Returns how many came; -1 after `patience` cycles in which nothing moved.
// `done` tells whether the answer is complete, `taken` how many bytes went in.
int64_t port_exchange(void *handle, const uint8_t *data, uint64_t sent, uint8_t *answer,
                      uint64_t room, uint64_t patience, uint64_t *taken, int *done)
{
    Port *port = static_cast<Port *>(handle);
    Vcore &model = port->model;
    uint64_t in = 0, out = 0, still = 0;
    *done = 0;
    while (!*done && out < room) {
        model.commands___05Fvalid = in < sent;
        model.commands___05Fpayload = in < sent ? data[in] : 0;
        model.answers___05Fready = 1;
        port->settle();
        const bool goes = in < sent && model.commands___05Fready;
        if (model.answers___05Fvalid) {
            answer[out++] = model.answers___05Fpayload & 0xff;
            *done = model.answers___05Fpayload >> 8;
        }
        still = goes || model.answers___05Fvalid ? 0 : still + 1;
        in += goes;
        port->edge();
        if (still > patience)
            return -1;
    }
    *taken = in;
    return out;
}

}  // extern "C"
