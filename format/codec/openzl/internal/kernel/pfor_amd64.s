//go:build amd64 && !purego && !twins

#include "textflag.h"

// PLANAR is the loop of a planarZigzag: n vectors of 32 bytes, at least 1.
#define PLANAR(width, sub, add, greater) \
	MOVQ    dst+0(FP), DI      \
	MOVQ    src+8(FP), SI      \
	MOVQ    above+16(FP), DX   \
	MOVQ    n+24(FP), CX       \
	VPXOR   Y5, Y5, Y5         \
loop:                          \
	VMOVDQU (SI), Y0           \
	VMOVDQU -width(SI), Y1     \
	VMOVDQU (DX), Y2           \
	VMOVDQU -width(DX), Y3     \
	sub     Y1, Y0, Y0         \
	sub     Y3, Y2, Y2         \
	sub     Y2, Y0, Y0         \
	greater Y0, Y5, Y1         \
	add     Y0, Y0, Y0         \
	VPXOR   Y1, Y0, Y0         \
	VMOVDQU Y0, (DI)           \
	ADDQ    $32, SI            \
	ADDQ    $32, DX            \
	ADDQ    $32, DI            \
	DECQ    CX                 \
	JNZ     loop               \
	VZEROUPPER                 \
	RET

// BELOW is the loop of a pforBelow: n vectors of 32 bytes, at least 1. Each element counts in the lowest byte of its
// lane, to at most 64.
#define BELOW(equal, sub) \
	MOVQ         block+0(FP), SI  \
	MOVQ         n+8(FP), CX      \
	VPBROADCASTQ mask+16(FP), Y1  \
	VPXOR        Y0, Y0, Y0       \
	VPXOR        Y3, Y3, Y3       \
loop:                             \
	VPAND        (SI), Y1, Y2     \
	equal        Y2, Y3, Y2       \
	sub          Y2, Y0, Y0       \
	ADDQ         $32, SI          \
	DECQ         CX               \
	JNZ          loop             \
	VPSADBW      Y3, Y0, Y0       \
	VEXTRACTI128 $1, Y0, X1       \
	VPADDQ       X1, X0, X0       \
	VPSRLDQ      $8, X0, X1       \
	VPADDQ       X1, X0, X0       \
	VMOVQ        X0, AX           \
	MOVQ         AX, ret+24(FP)   \
	VZEROUPPER                    \
	RET

// ABOVE is the loop of a pforAbove: n vectors of 32 bytes, at least 1.
#define ABOVE(equal) \
	MOVQ         masks+0(FP), DI  \
	MOVQ         block+8(FP), SI  \
	MOVQ         n+16(FP), CX     \
	VPBROADCASTQ mask+24(FP), Y1  \
	VPXOR        Y3, Y3, Y3       \
loop:                             \
	VPAND        (SI), Y1, Y2     \
	equal        Y2, Y3, Y2       \
	VPMOVMSKB    Y2, AX           \
	NOTL         AX               \
	MOVL         AX, (DI)         \
	ADDQ         $32, SI          \
	ADDQ         $4, DI           \
	DECQ         CX               \
	JNZ          loop             \
	VZEROUPPER                    \
	RET

// func planarZigzag8(dst, src, above *byte, n int)
TEXT ·planarZigzag8(SB), NOSPLIT, $0-32
	PLANAR(1, VPSUBB, VPADDB, VPCMPGTB)

// func planarZigzag16(dst, src, above *byte, n int)
TEXT ·planarZigzag16(SB), NOSPLIT, $0-32
	PLANAR(2, VPSUBW, VPADDW, VPCMPGTW)

// func planarZigzag32(dst, src, above *byte, n int)
TEXT ·planarZigzag32(SB), NOSPLIT, $0-32
	PLANAR(4, VPSUBD, VPADDD, VPCMPGTD)

// func planarZigzag64(dst, src, above *byte, n int)
TEXT ·planarZigzag64(SB), NOSPLIT, $0-32
	PLANAR(8, VPSUBQ, VPADDQ, VPCMPGTQ)

// func pforUnion(block *byte, n int) uint64
TEXT ·pforUnion(SB), NOSPLIT, $0-24
	MOVQ  block+0(FP), SI
	MOVQ  n+8(FP), CX
	VPXOR Y0, Y0, Y0

union:
	VPOR (SI), Y0, Y0
	ADDQ $32, SI
	DECQ CX
	JNZ  union
	VEXTRACTI128 $1, Y0, X1
	VPOR         X1, X0, X0
	VPSRLDQ      $8, X0, X1
	VPOR         X1, X0, X0
	VMOVQ        X0, AX
	MOVQ         AX, ret+16(FP)
	VZEROUPPER
	RET

// func pforBelow8(block *byte, n int, mask uint64) int
TEXT ·pforBelow8(SB), NOSPLIT, $0-32
	BELOW(VPCMPEQB, VPSUBB)

// func pforBelow16(block *byte, n int, mask uint64) int
TEXT ·pforBelow16(SB), NOSPLIT, $0-32
	BELOW(VPCMPEQW, VPSUBW)

// func pforBelow32(block *byte, n int, mask uint64) int
TEXT ·pforBelow32(SB), NOSPLIT, $0-32
	BELOW(VPCMPEQD, VPSUBD)

// func pforBelow64(block *byte, n int, mask uint64) int
TEXT ·pforBelow64(SB), NOSPLIT, $0-32
	BELOW(VPCMPEQQ, VPSUBQ)

// func pforAbove8(masks *uint32, block *byte, n int, mask uint64)
TEXT ·pforAbove8(SB), NOSPLIT, $0-32
	ABOVE(VPCMPEQB)

// func pforAbove16(masks *uint32, block *byte, n int, mask uint64)
TEXT ·pforAbove16(SB), NOSPLIT, $0-32
	ABOVE(VPCMPEQW)

// func pforAbove32(masks *uint32, block *byte, n int, mask uint64)
TEXT ·pforAbove32(SB), NOSPLIT, $0-32
	ABOVE(VPCMPEQD)

// func pforAbove64(masks *uint32, block *byte, n int, mask uint64)
TEXT ·pforAbove64(SB), NOSPLIT, $0-32
	ABOVE(VPCMPEQQ)

// func pforPack(dst, src *byte, n int, lowest *uint64, nbits, wordBits int)
//
// X0 holds the bits that are not written yet, R11 of each lane.
TEXT ·pforPack(SB), NOSPLIT, $0-48
	MOVQ     dst+0(FP), DI
	MOVQ     src+8(FP), SI
	MOVQ     n+16(FP), CX
	MOVQ     lowest+24(FP), R8
	MOVQ     nbits+32(FP), R9
	MOVQ     wordBits+40(FP), R10
	VMOVDDUP (R8)(R9*8), X1
	VPXOR    X0, X0, X0
	XORQ     R11, R11

pack:
	VPAND  (SI), X1, X2
	ADDQ   $16, SI
	VMOVQ  R11, X3
	MOVQ   R10, R12
	SUBQ   R11, R12 // the bits that have room
	CMPQ   R9, R12
	JGE    full
	VPSLLQ X3, X2, X2
	VPOR   X2, X0, X0
	ADDQ   R9, R11
	DECQ   CX
	JNZ    pack
	RET

full:
	VMOVDDUP (R8)(R12*8), X5
	VPAND    X5, X2, X4
	VPSLLQ   X3, X4, X4
	VPOR     X4, X0, X0
	VMOVDQU  X0, (DI)
	ADDQ     $16, DI
	MOVQ     R9, R11
	SUBQ     R12, R11
	VMOVQ    R12, X3
	VPSRLQ   X3, X2, X2
	VMOVDDUP (R8)(R11*8), X5
	VPAND    X5, X2, X0
	DECQ     CX
	JNZ      pack
	RET
