//go:build !purego && !twins

#include "textflag.h"

// Y0 are 16 residuals, then running sums of each half of them, Y1 is scratch, Y2 the samples, Y3 is zero, Y4 the sum of
// the blocks before in every number, Y5 spreads the last number of every half over it, Y6 is 1 in every number, Y10 and
// Y11 are A and C. DI is the row of elements, DX the row above, SI the residuals, BX the offset in the row above.

DATA planarLast<>+0(SB)/8, $0x0f0e0f0e0f0e0f0e
GLOBL planarLast<>(SB), RODATA|NOPTR, $8

#define PLANAR_BEGIN \
	MOVQ         dst+0(FP), DI           \
	MOVQ         above+8(FP), DX         \
	MOVQ         residuals+16(FP), SI    \
	MOVQ         pitch+24(FP), R8        \
	MOVQ         rows+32(FP), R9         \
	VPXOR        Y3, Y3, Y3              \
	VPBROADCASTQ planarLast<>(SB), Y5    \
	VPCMPEQW     Y6, Y6, Y6              \
	VPSRLW       $15, Y6, Y6

#define SUMS(k) \
	VPSLLDQ $k, Y0, Y1  \
	VPADDW  Y1, Y0, Y0

// The next 16 samples go to Y2 and to the row above.
#define PLANAR_NEXT \
	VMOVDQU    (SI), Y0             \
	VPAND      Y6, Y0, Y1           \
	VPSUBW     Y1, Y3, Y1           \
	VPSRLW     $1, Y0, Y0           \
	VPXOR      Y1, Y0, Y0           \
	SUMS(2)                         \
	SUMS(4)                         \
	SUMS(8)                         \
	VPERM2I128 $0x08, Y0, Y0, Y1    \
	VPSHUFB    Y5, Y1, Y1           \
	VPADDW     Y1, Y0, Y0           \
	VPADDW     (DX)(BX*1), Y4, Y2   \
	VPADDW     Y0, Y2, Y2           \
	VMOVDQU    Y2, (DX)(BX*1)       \
	VPERMQ     $0xff, Y0, Y1        \
	VPSHUFB    Y5, Y1, Y1           \
	VPADDW     Y1, Y4, Y4           \
	ADDQ       $32, SI

#define PLANAR(STORE) \
	PLANAR_BEGIN            \
row:                        \
	MOVQ  n+40(FP), CX      \
	XORL  BX, BX            \
	VPXOR Y4, Y4, Y4        \
loop:                       \
	PLANAR_NEXT             \
	STORE                   \
	ADDQ  $32, BX           \
	DECQ  CX                \
	JNZ   loop              \
	ADDQ  R8, DI            \
	DECQ  R9                \
	JNZ   row               \
	VZEROUPPER              \
	RET

#define COPIED VMOVNTDQ Y2, (DI)(BX*1)

#define CONVERTED(EXTEND) \
	VEXTRACTI128 $1, Y2, X9     \
	EXTEND       X2, Y8         \
	EXTEND       X9, Y9         \
	VCVTDQ2PS    Y8, Y8         \
	VCVTDQ2PS    Y9, Y9         \
	VMULPS       Y10, Y8, Y8    \
	VMULPS       Y10, Y9, Y9    \
	VADDPS       Y11, Y8, Y8    \
	VADDPS       Y11, Y9, Y9    \
	VMOVNTPS     Y8, (DI)(BX*2) \
	VMOVNTPS     Y9, 32(DI)(BX*2)

// func planarCopyAVX2(dst, above, residuals *byte, pitch, rows, n int)
TEXT ·planarCopyAVX2(SB), NOSPLIT, $0-48
	PLANAR(COPIED)

// func planarU16AVX2(dst, above, residuals *byte, pitch, rows, n int, a, c float32)
TEXT ·planarU16AVX2(SB), NOSPLIT, $0-56
	VBROADCASTSS a+48(FP), Y10
	VBROADCASTSS c+52(FP), Y11
	PLANAR(CONVERTED(VPMOVZXWD))

// func planarI16AVX2(dst, above, residuals *byte, pitch, rows, n int, a, c float32)
TEXT ·planarI16AVX2(SB), NOSPLIT, $0-56
	VBROADCASTSS a+48(FP), Y10
	VBROADCASTSS c+52(FP), Y11
	PLANAR(CONVERTED(VPMOVSXWD))
