//go:build amd64 && !purego && !twins

#include "textflag.h"

// func join2x16(dst, a, b *byte, n int)
TEXT ·join2x16(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ n+24(FP), CX

two:
	MOVOU     (SI), X0
	MOVOU     (DX), X1
	MOVO      X0, X2
	PUNPCKLBW X1, X0
	PUNPCKHBW X1, X2
	MOVOU     X0, (DI)
	MOVOU     X2, 16(DI)
	ADDQ      $16, SI
	ADDQ      $16, DX
	ADDQ      $32, DI
	DECQ      CX
	JNZ       two
	RET

// PAIR(a, b, hi) leaves the bytes of a and b in turns in a (first half) and hi (second half).
#define PAIR(a, b, hi) \
	MOVO      a, hi \
	PUNPCKLBW b, a  \
	PUNPCKHBW b, hi

// QUAD does the same for pairs of bytes, OCT for fours.
#define QUAD(a, b, hi) \
	MOVO      a, hi \
	PUNPCKLWL b, a  \
	PUNPCKHWL b, hi

#define OCT(a, b, hi) \
	MOVO      a, hi \
	PUNPCKLLQ b, a  \
	PUNPCKHLQ b, hi

// func join4x16(dst, a, b, c, d *byte, n int)
TEXT ·join4x16(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ c+24(FP), R8
	MOVQ d+32(FP), R9
	MOVQ n+40(FP), CX
	XORQ AX, AX

four:
	MOVOU (SI)(AX*1), X0
	MOVOU (DX)(AX*1), X1
	MOVOU (R8)(AX*1), X2
	MOVOU (R9)(AX*1), X3
	PAIR(X0, X1, X4)
	PAIR(X2, X3, X5)
	QUAD(X0, X2, X6)
	QUAD(X4, X5, X7)
	MOVOU X0, (DI)
	MOVOU X6, 16(DI)
	MOVOU X4, 32(DI)
	MOVOU X7, 48(DI)
	ADDQ  $16, AX
	ADDQ  $64, DI
	DECQ  CX
	JNZ   four
	RET

// func join8x16(dst *byte, planes *[8]*byte, n int)
TEXT ·join8x16(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ planes+8(FP), AX
	MOVQ n+16(FP), CX
	MOVQ (AX), SI
	MOVQ 8(AX), DX
	MOVQ 16(AX), R8
	MOVQ 24(AX), R9
	MOVQ 32(AX), R10
	MOVQ 40(AX), R11
	MOVQ 48(AX), R12
	MOVQ 56(AX), R13
	XORQ AX, AX

eight:
	MOVOU (SI)(AX*1), X0
	MOVOU (DX)(AX*1), X1
	MOVOU (R8)(AX*1), X2
	MOVOU (R9)(AX*1), X3
	MOVOU (R10)(AX*1), X4
	MOVOU (R11)(AX*1), X5
	MOVOU (R12)(AX*1), X6
	MOVOU (R13)(AX*1), X7
	PAIR(X0, X1, X8)
	PAIR(X2, X3, X9)
	PAIR(X4, X5, X10)
	PAIR(X6, X7, X11)
	QUAD(X0, X2, X1)
	QUAD(X8, X9, X3)
	QUAD(X4, X6, X5)
	QUAD(X10, X11, X7)
	OCT(X0, X4, X12)
	OCT(X1, X5, X13)
	OCT(X8, X10, X14)
	OCT(X3, X7, X2)
	MOVOU X0, (DI)
	MOVOU X12, 16(DI)
	MOVOU X1, 32(DI)
	MOVOU X13, 48(DI)
	MOVOU X8, 64(DI)
	MOVOU X14, 80(DI)
	MOVOU X3, 96(DI)
	MOVOU X2, 112(DI)
	ADDQ  $16, AX
	ADDQ  $128, DI
	DECQ  CX
	JNZ   eight
	RET
