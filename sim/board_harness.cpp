// A simulated board as a library: bytes over its serial line (hw.boards.top).

#include <cstdint>

#include "Vcore.h"
#include "verilated.h"

double sc_time_stamp() { return 0; }

namespace {

struct Board {
    VerilatedContext context;
    Vcore model{&context};
    uint64_t cycles = 0;
    // The line into the board: bits of the byte that is being sent, lowest first.
    uint32_t sending = 0;
    int bits_to_send = 0, ticks_to_send = 0;
    // The line out of it.
    int bits_to_come = 0, ticks_to_come = 0;
    uint32_t coming = 0;

    void cycle()
    {
        model.clk = 0;
        model.eval();
        model.clk = 1;
        model.eval();
        cycles++;
    }
};

}  // namespace

extern "C" {

// Presses the board's button.
void board_reset(void *handle)
{
    Board *board = static_cast<Board *>(handle);
    board->model.restart = 1;
    for (int n = 0; n < 3; n++)
        board->cycle();
    board->model.restart = 0;
}

void *board_open()
{
    Board *board = new Board;
    board->model.rx = 1;
    board->model.rst = 1;  // registers as they are configured
    for (int n = 0; n < 3; n++)
        board->cycle();
    board->model.rst = 0;
    return board;
}

void board_close(void *handle)
{
    Board *board = static_cast<Board *>(handle);
    board->model.final();
    delete board;
}

uint64_t board_cycles(void *handle) { return static_cast<Board *>(handle)->cycles; }

// Runs `cycles` cycles and sends up to `sent` bytes; stops early once they are out, something
// came, and the board has been silent for two bytes. Returns how many came; `taken` went.
uint64_t board_run(void *handle, const uint8_t *data, uint64_t sent, uint8_t *received,
                   uint64_t room, uint64_t cycles, uint64_t *taken)
{
    Board *board = static_cast<Board *>(handle);
    Vcore &model = board->model;
    uint64_t in = 0, out = 0, silent = 0;
    for (uint64_t cycle = 0; cycle < cycles && out < room; cycle++) {
        silent = board->bits_to_come ? 0 : silent + 1;
        if (in == sent && out && silent > 20 * DIVISOR)
            break;
        if (board->ticks_to_send == 0 && board->bits_to_send == 0 && in < sent) {
            board->sending = uint32_t(data[in++]) << 1 | 0x200;  // start bit, byte, stop bit
            board->bits_to_send = 10;
        }
        if (board->ticks_to_send == 0 && board->bits_to_send != 0) {
            model.rx = board->sending & 1;
            board->sending >>= 1;
            board->bits_to_send--;
            board->ticks_to_send = DIVISOR;
        }
        if (board->ticks_to_send != 0)
            board->ticks_to_send--;
        board->cycle();
        if (board->bits_to_come == 0) {
            if (!model.tx) {
                board->bits_to_come = 9;
                board->ticks_to_come = DIVISOR + DIVISOR / 2 - 1;
                board->coming = 0;
            }
        } else if (--board->ticks_to_come == 0) {
            board->bits_to_come--;
            board->ticks_to_come = DIVISOR;
            if (board->bits_to_come != 0)
                board->coming |= uint32_t(model.tx) << (8 - board->bits_to_come);
            else if (model.tx)
                received[out++] = board->coming;
        }
    }
    *taken = in;
    return out;
}

}  // extern "C"
