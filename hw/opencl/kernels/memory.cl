// An engine's memory: up to eight buffers, and places in them.
// A place is a buffer's number in the top byte and a byte offset below it. Every kernel takes all
// buffers, so that one launch reaches any number of subwindows.

#define POOL                                                                                   \
    __global uchar *slab0, __global uchar *slab1, __global uchar *slab2, __global uchar *slab3, \
        __global uchar *slab4, __global uchar *slab5, __global uchar *slab6, __global uchar *slab7
#define SLABS_OF_POOL {slab0, slab1, slab2, slab3, slab4, slab5, slab6, slab7}

typedef __global uchar *slab_t;

INLINE __global uchar *at(const slab_t *slabs, ulong place)
{
    return slabs[place >> 56] + (place & 0x00FFFFFFFFFFFFFFul);
}

#define KEYS(place) ((__global key_t *)at(slabs, place))
#define UINTS(place) ((__global uint *)at(slabs, place))

INLINE uint least(uint a, uint b)
{
    return a < b ? a : b;
}

INLINE uint most_of(uint a, uint b)
{
    return a > b ? a : b;
}

INLINE uint round_up(uint value, uint unit)
{
    return (value + unit - 1) / unit * unit;
}

// The first of `total` things that belong to piece `piece` of `pieces` of nearly equal size.
INLINE uint piece_start(uint total, uint piece, uint pieces)
{
    return (uint)((ulong)total * piece / pieces);
}
