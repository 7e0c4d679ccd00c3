// One set of words for what the vendors spell apart: channels (Intel) and pipes (Xilinx), kernels
// of one work item, pipelined loops. Nothing outside of this file names a vendor.
//
//   CHANNEL(type, name, words)    a first-in-first-out channel at program scope; words >= 16 and a
//                                 power of two, as pipes demand
//   PUT(name, value)              waits for room; `value` is a variable
//   GET(name, value)              waits for data
//   TRY_GET(name, value, ok)      never waits; `ok` says whether there was data
//   TASK                          begins a kernel that is launched as a single work item
//   PIPELINE                      before a loop: one iteration a clock
//
// A kernel has one call site for each end of a channel it uses: that is one port in hardware.

#if defined(XILINX)
#define CHANNEL(type, name, words) pipe type name __attribute__((xcl_reqd_pipe_depth(words)));
#define PUT(name, value) write_pipe_block(name, &(value))
#define GET(name, value) read_pipe_block(name, &(value))
#define TRY_GET(name, value, ok) ((ok) = read_pipe(name, &(value)) == 0)
#define TASK __attribute__((reqd_work_group_size(1, 1, 1))) __kernel void
#define PIPELINE __attribute__((xcl_pipeline_loop(1)))
#else
#pragma OPENCL EXTENSION cl_intel_channels : enable
#define CHANNEL(type, name, words) channel type name __attribute__((depth(words)));
#define PUT(name, value) write_channel_intel(name, value)
#define GET(name, value) ((value) = read_channel_intel(name))
#define TRY_GET(name, value, ok) ((value) = read_channel_nb_intel(name, &(ok)))
#define TASK \
    __attribute__((max_global_work_dim(0))) __attribute__((uses_global_work_offset(0))) \
    __kernel void
#define PIPELINE _Pragma("ii 1")
#endif

// Names of what exists once a core, or once a lane or merger of a core: a file that describes one
// of them is compiled once for each, with CORE and LANE set to its numbers.
#define PASTE2(name, core) name##_##core
#define PASTE3(name, core, lane) name##_##core##_##lane
#define OF_CORE(name, core) PASTE2(name, core)
#define OF_LANE(name, core, lane) PASTE3(name, core, lane)
#define HERE(name) OF_CORE(name, CORE)
#define UNIT(name) OF_LANE(name, CORE, LANE)
