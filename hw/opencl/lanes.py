"""Words of the kernels that count in comparisons of 16 lanes, as a processor does it fastest."""

__all__ = ["lane_words"]


def lane_words(key_bits: int) -> str:
    """C macros over comparisons of 16 lanes, of keys or of 32-bit words.

    LANES_SET(hits)      how many lanes of a comparison of keys are true
    SIGNS(hits, more)    one word for two such comparisons, in which LANES_OF_FIRST, LANES_OF_SECOND
                         and LANES_OF_BOTH count
    SIGNS_OF_16(hits)    one bit to each lane of a comparison of 32-bit words
    PACK_16(words, signs, into)
                         the words with a bit, one behind the other; 16 words may be written

    With AVX-512 a comparison is a word of bits as it is. With AVX2, clang's own words take the sign
    of each lane; the general form adds up the lanes.
    """
    return "".join((
        "#if defined(__AVX512DQ__)\n", _avx512(key_bits),
        "#elif defined(__AVX2__)\n", _avx2(key_bits), _PACKED_BY_EIGHT,
        "#else\n", _GENERAL, _SIGNS_OF_COUNTS, _PACKED_SINGLY,
        "#endif\n",
    ))


def _avx512(key_bits: int) -> str:
    narrow = "(uint)__builtin_ia32_cvtd2mask512(as_int16(hits))"
    wide = " | ".join(
        f"(uint)__builtin_ia32_cvtq2mask512(as_long8((hits).{half})) << {place}"
        for half, place in (("lo", 0), ("hi", 8))
    )
    return f"""#define SIGNS_OF_16(hits) ({narrow})
#define PACK_16(words, signs, into)                                             \\
    STORE16(uint, as_uint16(__builtin_ia32_compresssi512_mask(as_int16(words),  \\
                                                              (int16)(0), signs)), into)
#define SIGNS_OF_KEYS(hits) ({narrow if key_bits == 32 else wide})
#define LANES_SET(hits) ((uint)__builtin_popcount(SIGNS_OF_KEYS(hits)))
#define SIGNS(hits, more) (SIGNS_OF_KEYS(hits) | SIGNS_OF_KEYS(more) << 16)
#define LANES_OF_FIRST(signs) ((uint)__builtin_popcount((signs) & 0xFFFFu))
#define LANES_OF_SECOND(signs) ((uint)__builtin_popcount((signs) >> 16))
#define LANES_OF_BOTH(signs) ((uint)__builtin_popcount(signs))
"""


def _avx2(key_bits: int) -> str:
    halves = ("lo", "hi") if key_bits == 32 else ("lo.lo", "lo.hi", "hi.lo", "hi.hi")
    word, real, lanes = ("ps", "float8", 8) if key_bits == 32 else ("pd", "double4", 4)
    signs = " | ".join(
        f"__builtin_ia32_movmsk{word}256(as_{real}((hits).{half})) << {lanes * place}"
        for place, half in enumerate(halves)
    )
    return f"""#define SIGNS_OF_16(hits)                                        \\
    ((uint)(__builtin_ia32_movmskps256(as_float8((hits).lo)) |   \\
            __builtin_ia32_movmskps256(as_float8((hits).hi)) << 8))
#define LANES_SET(hits) ((uint)__builtin_popcount({signs}))
""" + (_SIGNS_OF_BYTES if key_bits == 32 else _SIGNS_OF_COUNTS)


_GENERAL = """INLINE uint lanes_set(key16_t hits)
{
    key8_t by_8 = hits.lo + hits.hi;
    key4_t by_4 = by_8.lo + by_8.hi;
    key2_t by_2 = by_4.lo + by_4.hi;
    return (uint)-(by_2.x + by_2.y);
}
INLINE uint signs_of_16(int16 hits)
{
    const uint16 lane = (uint16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    uint16 by_16 = (as_uint16(hits) & 1u) << lane;
    uint8 by_8 = by_16.lo | by_16.hi;
    uint4 by_4 = by_8.lo | by_8.hi;
    uint2 by_2 = by_4.lo | by_4.hi;
    return by_2.x | by_2.y;
}
#define LANES_SET(hits) lanes_set(hits)
#define SIGNS_OF_16(hits) signs_of_16(hits)
"""

#: The bytes of `order` are the numbers of the lanes that are set, the lowest first. No branch: how
#: many are set cannot be guessed.
_PACKED_BY_EIGHT = """typedef uint8 __attribute__((aligned(sizeof(uint)))) any_uint8_t;
INLINE void pack_8(uint8 words, uint signs, __global uint *into)
{
    ulong lanes = __builtin_ia32_pdep_di(signs, 0x0101010101010101ul) * 0xFFul;
    ulong order = __builtin_ia32_pext_di(0x0706050403020100ul, lanes);
    int8 numbers = __builtin_convertvector(as_uchar8(order), int8);
    *(__global any_uint8_t *)into =
        as_uint8(__builtin_ia32_permvarsi256(as_int8(words), numbers));
}
INLINE void pack_16(uint16 words, uint signs, __global uint *into)
{
    pack_8(words.lo, signs & 0xFFu, into);
    pack_8(words.hi, signs >> 8, into + __builtin_popcount(signs & 0xFFu));
}
#define PACK_16(words, signs, into) pack_16(words, signs, into)
"""

#: Through memory, from which a lane is read by its number; mostly few are set.
_PACKED_SINGLY = """INLINE void pack_16(uint16 words, uint signs, __global uint *into)
{
    const uint *lanes = (const uint *)&words;
    for (; signs > 0; signs &= signs - 1)
        *into++ = lanes[POPCOUNT((signs & -signs) - 1)];
}
#define PACK_16(words, signs, into) pack_16(words, signs, into)
"""

_SIGNS_OF_COUNTS = """#define SIGNS(hits, more) (LANES_SET(hits) | LANES_SET(more) << 16)
#define LANES_OF_FIRST(signs) ((signs) & 0xFFFFu)
#define LANES_OF_SECOND(signs) ((signs) >> 16)
#define LANES_OF_BOTH(signs) (LANES_OF_FIRST(signs) + LANES_OF_SECOND(signs))
"""

#: Lanes of 32 bits cut to 16 and then to 8, which come by turns of eight from the first and the
#: second comparison.
_SIGNS_OF_BYTES = """#define SIGNS(hits, more)                                      \\
    ((uint)__builtin_ia32_pmovmskb256(__builtin_ia32_packsswb256(                  \\
        __builtin_ia32_packssdw256((hits).lo, (hits).hi),                          \\
        __builtin_ia32_packssdw256((more).lo, (more).hi))))
#define LANES_OF_FIRST(signs) ((uint)__builtin_popcount((signs) & 0x00FF00FFu))
#define LANES_OF_SECOND(signs) ((uint)__builtin_popcount((signs) & 0xFF00FF00u))
#define LANES_OF_BOTH(signs) ((uint)__builtin_popcount(signs))
"""
