//go:build !purego && !twins

#include "textflag.h"

// DI is the first column of the block in dst, SI its first line, R8 the distance of rows of dst, R9 of lines.
#define TURN_BEGIN \
	MOVQ dst+0(FP), DI    \
	MOVQ src+8(FP), SI    \
	MOVQ n+16(FP), CX     \
	MOVQ pitch+24(FP), R8 \
	MOVQ step+32(FP), R9  \
	LEAQ (R9)(R9*2), R10

// STAGE interleaves pairs of eight vectors: first of each pair the low, then the high parts.
#define STAGE(LOW, HIGH, A0, A1, A2, A3, A4, A5, A6, A7, B0, B1, B2, B3, B4, B5, B6, B7) \
	LOW  A1, A0, B0 \
	HIGH A1, A0, B1 \
	LOW  A3, A2, B2 \
	HIGH A3, A2, B3 \
	LOW  A5, A4, B4 \
	HIGH A5, A4, B5 \
	LOW  A7, A6, B6 \
	HIGH A7, A6, B7

// EIGHT loads eight lines with LOAD, which begin at SI, to Y0 to Y7. AX is the fifth line.
#define EIGHT(LOAD) \
	LEAQ (SI)(R9*4), AX      \
	LOAD((SI), X0, Y0)       \
	LOAD((SI)(R9*1), X1, Y1) \
	LOAD((SI)(R9*2), X2, Y2) \
	LOAD((SI)(R10*1), X3, Y3) \
	LOAD((AX), X4, Y4)       \
	LOAD((AX)(R9*1), X5, Y5) \
	LOAD((AX)(R9*2), X6, Y6) \
	LOAD((AX)(R10*1), X7, Y7)

#define LINE(M, X, Y) VMOVDQU M, Y
#define HALF(M, X, Y) VMOVDQU M, X
#define UPPER(M, X, Y) VINSERTI128 $1, M, Y, Y

// ROW2 stores the halves of Y in two rows, R11 apart, and moves BX to the row R12 behind.
#define ROW2(X, Y) \
	VMOVDQU      X, (BX)          \
	VEXTRACTI128 $1, Y, (BX)(R11*1) \
	ADDQ         R12, BX

// func reverseAVX2(dst, last *byte, n int, mask *byte)
TEXT ·reverseAVX2(SB), NOSPLIT, $0-32
	MOVQ    dst+0(FP), DI
	MOVQ    last+8(FP), SI
	MOVQ    n+16(FP), CX
	MOVQ    mask+24(FP), AX
	VMOVDQU (AX), Y1

reverse:
	VMOVDQU (SI), Y0
	VPSHUFB Y1, Y0, Y0
	VPERMQ  $0x4e, Y0, Y0
	VMOVDQU Y0, (DI)
	SUBQ    $32, SI
	ADDQ    $32, DI
	DECQ    CX
	JNZ     reverse
	VZEROUPPER
	RET

// func turn16AVX2(dst, src *byte, n, pitch, step int)
TEXT ·turn16AVX2(SB), NOSPLIT, $0-40
	TURN_BEGIN
	LEAQ (R8*8), R11
	MOVQ R8, R12

block16:
	EIGHT(LINE)
	STAGE(VPUNPCKLWD, VPUNPCKHWD, Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, Y9, Y10, Y11, Y12, Y13, Y14, Y15)

	// Y8 and Y9 have two lines, columns 0 to 3 and 4 to 7 of each half; Y10 and Y11 the next two, and so on.
	STAGE(VPUNPCKLDQ, VPUNPCKHDQ, Y8, Y10, Y9, Y11, Y12, Y14, Y13, Y15, Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7)

	// Y0 to Y3 have four lines, two columns each; Y4 to Y7 the other four.
	STAGE(VPUNPCKLQDQ, VPUNPCKHQDQ, Y0, Y4, Y1, Y5, Y2, Y6, Y3, Y7, Y8, Y9, Y10, Y11, Y12, Y13, Y14, Y15)
	MOVQ DI, BX
	ROW2(X8, Y8)
	ROW2(X9, Y9)
	ROW2(X10, Y10)
	ROW2(X11, Y11)
	ROW2(X12, Y12)
	ROW2(X13, Y13)
	ROW2(X14, Y14)
	ROW2(X15, Y15)
	LEAQ (SI)(R9*8), SI
	ADDQ $16, DI
	DECQ CX
	JNZ  block16
	VZEROUPPER
	RET

// func turn8AVX2(dst, src *byte, n, pitch, step int)
TEXT ·turn8AVX2(SB), NOSPLIT, $0-40
	TURN_BEGIN
	MOVQ R8, R11
	LEAQ (R8*2), R12

block8:
	// The lower halves have lines 0 to 7, the upper ones 8 to 15.
	EIGHT(HALF)
	LEAQ (SI)(R9*8), SI
	EIGHT(UPPER)
	LEAQ (SI)(R9*8), SI
	STAGE(VPUNPCKLBW, VPUNPCKHBW, Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, Y9, Y10, Y11, Y12, Y13, Y14, Y15)
	STAGE(VPUNPCKLWD, VPUNPCKHWD, Y8, Y10, Y9, Y11, Y12, Y14, Y13, Y15, Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7)
	STAGE(VPUNPCKLDQ, VPUNPCKHDQ, Y0, Y4, Y1, Y5, Y2, Y6, Y3, Y7, Y8, Y9, Y10, Y11, Y12, Y13, Y14, Y15)

	// Each half has eight lines of two columns: VPERMQ makes halves of a column each.
	VPERMQ $0xd8, Y8, Y8
	VPERMQ $0xd8, Y9, Y9
	VPERMQ $0xd8, Y10, Y10
	VPERMQ $0xd8, Y11, Y11
	VPERMQ $0xd8, Y12, Y12
	VPERMQ $0xd8, Y13, Y13
	VPERMQ $0xd8, Y14, Y14
	VPERMQ $0xd8, Y15, Y15
	MOVQ   DI, BX
	ROW2(X8, Y8)
	ROW2(X9, Y9)
	ROW2(X10, Y10)
	ROW2(X11, Y11)
	ROW2(X12, Y12)
	ROW2(X13, Y13)
	ROW2(X14, Y14)
	ROW2(X15, Y15)
	ADDQ   $16, DI
	DECQ   CX
	JNZ    block8
	VZEROUPPER
	RET
