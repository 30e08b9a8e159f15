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
