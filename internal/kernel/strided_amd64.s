//go:build !purego && !twins

#include "textflag.h"

// Running sums at a distance of at most 16 bytes. In a vector, each number gets what stands one distance before it, then
// two, then four, in log steps; then the carry, which is the last distance of the vector before, repeated. Only the carry
// waits for the round before.
//
// m has the four shuffles that move numbers up by 1, 2, 4 and 8 distances, and the one that makes the carry. shifts is
// how many of the four move anything.
#define SUMNEAR(ADD) \
	MOVQ    row+0(FP), DI    \
	MOVQ    n+8(FP), CX      \
	MOVQ    m+16(FP), SI     \
	MOVQ    shifts+24(FP), BX \
	VMOVDQU (SI), X8         \
	VMOVDQU 16(SI), X9       \
	VMOVDQU 32(SI), X10      \
	VMOVDQU 48(SI), X11      \
	VMOVDQU 64(SI), X12      \
	VPXOR   X15, X15, X15    \
loop:                        \
	VMOVDQU (DI), X0         \
	CMPQ    BX, $1           \
	JLT     carry            \
	VPSHUFB X8, X0, X1       \
	ADD     X1, X0, X0       \
	JEQ     carry            \
	VPSHUFB X9, X0, X1       \
	ADD     X1, X0, X0       \
	CMPQ    BX, $3           \
	JLT     carry            \
	VPSHUFB X10, X0, X1      \
	ADD     X1, X0, X0       \
	JEQ     carry            \
	VPSHUFB X11, X0, X1      \
	ADD     X1, X0, X0       \
carry:                       \
	VPSHUFB X12, X15, X15    \
	ADD     X0, X15, X15     \
	VMOVDQU X15, (DI)        \
	ADDQ    $16, DI          \
	DECQ    CX               \
	JNZ     loop             \
	RET

// Running sums at a distance of 16 to 32 bytes, or 32 to 64 with vectors of 32: one vector has the sums of the first
// bytes of a distance, one those of the last. They may overlap: both are loaded before one is stored, and have the same
// sums there. LAST is the size of a vector.
#define SUMFAR(ADD, A, B, LAST) \
	MOVQ    row+0(FP), DI       \
	MOVQ    n+8(FP), CX         \
	MOVQ    distance+16(FP), BX \
	LEAQ    -LAST(DI)(BX*1), SI \
	VPXOR   A, A, A             \
	VPXOR   B, B, B             \
loop:                           \
	ADD     (DI), A, A          \
	ADD     (SI), B, B          \
	VMOVDQU A, (DI)             \
	VMOVDQU B, (SI)             \
	ADDQ    BX, DI              \
	ADDQ    BX, SI              \
	DECQ    CX                  \
	JNZ     loop                \
	VZEROUPPER                  \
	RET

// One more load of gatherAVX: its numbers go to their places in X0.
#define GATHER(MASK) \
	VMOVDQU (R9), X1     \
	ADDQ    R8, R9       \
	VPSHUFB MASK, X1, X1 \
	VPOR    X1, X0, X0

// func sumNear8AVX(row *byte, n int, m *byte, shifts int)
TEXT ·sumNear8AVX(SB), NOSPLIT, $0-32
	SUMNEAR(VPADDB)

// func sumNear16AVX(row *byte, n int, m *byte, shifts int)
TEXT ·sumNear16AVX(SB), NOSPLIT, $0-32
	SUMNEAR(VPADDW)

// func sumNear32AVX(row *byte, n int, m *byte, shifts int)
TEXT ·sumNear32AVX(SB), NOSPLIT, $0-32
	SUMNEAR(VPADDD)

// func sumNear64AVX(row *byte, n int, m *byte, shifts int)
TEXT ·sumNear64AVX(SB), NOSPLIT, $0-32
	SUMNEAR(VPADDQ)

// func sumFar8AVX(row *byte, n, distance int)
TEXT ·sumFar8AVX(SB), NOSPLIT, $0-24
	SUMFAR(VPADDB, X0, X1, 16)

// func sumWide8AVX2(row *byte, n, distance int)
TEXT ·sumWide8AVX2(SB), NOSPLIT, $0-24
	SUMFAR(VPADDB, Y0, Y1, 32)

// func sumFar16AVX(row *byte, n, distance int)
TEXT ·sumFar16AVX(SB), NOSPLIT, $0-24
	SUMFAR(VPADDW, X0, X1, 16)

// func sumWide16AVX2(row *byte, n, distance int)
TEXT ·sumWide16AVX2(SB), NOSPLIT, $0-24
	SUMFAR(VPADDW, Y0, Y1, 32)

// func sumFar32AVX(row *byte, n, distance int)
TEXT ·sumFar32AVX(SB), NOSPLIT, $0-24
	SUMFAR(VPADDD, X0, X1, 16)

// func sumWide32AVX2(row *byte, n, distance int)
TEXT ·sumWide32AVX2(SB), NOSPLIT, $0-24
	SUMFAR(VPADDD, Y0, Y1, 32)

// func sumFar64AVX(row *byte, n, distance int)
TEXT ·sumFar64AVX(SB), NOSPLIT, $0-24
	SUMFAR(VPADDQ, X0, X1, 16)

// func sumWide64AVX2(row *byte, n, distance int)
TEXT ·sumWide64AVX2(SB), NOSPLIT, $0-24
	SUMFAR(VPADDQ, Y0, Y1, 32)

// func gatherAVX(dst, src *byte, n int, m *byte, loads, step, advance int)
TEXT ·gatherAVX(SB), NOSPLIT, $0-56
	MOVQ    dst+0(FP), DI
	MOVQ    src+8(FP), SI
	MOVQ    n+16(FP), CX
	MOVQ    m+24(FP), DX
	MOVQ    loads+32(FP), BX
	MOVQ    step+40(FP), R8
	MOVQ    advance+48(FP), R10
	VMOVDQU (DX), X8
	VMOVDQU 16(DX), X9
	VMOVDQU 32(DX), X10
	VMOVDQU 48(DX), X11
	VMOVDQU 64(DX), X12
	VMOVDQU 80(DX), X13
	VMOVDQU 96(DX), X14
	VMOVDQU 112(DX), X15

gather:
	VMOVDQU (SI), X0
	LEAQ    (SI)(R8*1), R9
	VPSHUFB X8, X0, X0
	GATHER(X9)
	CMPQ    BX, $3
	JLT     store
	GATHER(X10)
	CMPQ    BX, $4
	JLT     store
	GATHER(X11)
	CMPQ    BX, $6
	JLT     store
	GATHER(X12)
	GATHER(X13)
	CMPQ    BX, $8
	JLT     store
	GATHER(X14)
	GATHER(X15)

store:
	VMOVDQU X0, (DI)
	ADDQ    $16, DI
	ADDQ    R10, SI
	DECQ    CX
	JNZ     gather
	RET
