//go:build !purego && !twins

#include "go_asm.h"
#include "textflag.h"

// NUMBER defines a 32-bit number that instructions repeat in all lanes.
#define NUMBER(name, value) \
	DATA name<>+0(SB)/4, $value \
	GLOBL name<>(SB), RODATA|NOPTR, $4

NUMBER(k0298, const_k0298)
NUMBER(k0390, const_k0390)
NUMBER(k0541, const_k0541)
NUMBER(k0765, const_k0765)
NUMBER(k0899, const_k0899)
NUMBER(k1175, const_k1175)
NUMBER(k1501, const_k1501)
NUMBER(k1847, const_k1847)
NUMBER(k1961, const_k1961)
NUMBER(k2053, const_k2053)
NUMBER(k2562, const_k2562)
NUMBER(k3072, const_k3072)
NUMBER(halfColumns, 1<<10)
NUMBER(halfRows, 1<<17)
NUMBER(middle, 128)
NUMBER(halfRGB, 1<<15)
NUMBER(crToR, const_crToR)
NUMBER(cbToG, const_cbToG)
NUMBER(crToG, const_crToG)
NUMBER(cbToB, const_cbToB)
NUMBER(highest, 255)
NUMBER(three, 3)
NUMBER(seven, 7)
NUMBER(eight, 8)

// The bytes of a 4 by 4 matrix, transposed.
DATA transposed<>+0(SB)/8, $0x0d0905010c080400
DATA transposed<>+8(SB)/8, $0x0f0b07030e0a0602
GLOBL transposed<>(SB), RODATA|NOPTR, $16

// The three lower bytes of each number.
DATA triples<>+0(SB)/8, $0x0908060504020100
DATA triples<>+8(SB)/8, $0x808080800e0d0c0a
GLOBL triples<>(SB), RODATA|NOPTR, $16

// TIMES multiplies by a number. It needs Y15.
#define TIMES(name, from, to) \
	VPBROADCASTD name<>(SB), Y15 \
	VPMULLD      Y15, from, to

// PASS is the transform of eight columns at a time: coefficient k of all of them is Yk, and sample k becomes Y(8+k).
// It is even and odd of the Go code.
#define PASS(half, shift) \
	VPADDD Y6, Y2, Y8         \
	TIMES(k0541, Y8, Y8)      \
	TIMES(k1847, Y6, Y9)      \
	VPSUBD Y9, Y8, Y9         \
	TIMES(k0765, Y2, Y10)     \
	VPADDD Y10, Y8, Y8        \
	VPADDD Y4, Y0, Y10        \
	VPSLLD $const_constBits, Y10, Y10 \
	VPSUBD Y4, Y0, Y11        \
	VPSLLD $const_constBits, Y11, Y11 \
	VPBROADCASTD half<>(SB), Y12 \
	VPADDD Y12, Y10, Y10      \
	VPADDD Y12, Y11, Y11      \
	VPADDD Y8, Y10, Y0        \
	VPSUBD Y8, Y10, Y6        \
	VPADDD Y9, Y11, Y2        \
	VPSUBD Y9, Y11, Y4        \
	VPADDD Y5, Y1, Y8         \
	VPADDD Y7, Y3, Y9         \
	VPADDD Y8, Y9, Y10        \
	TIMES(k1175, Y10, Y10)    \
	TIMES(k1961, Y9, Y9)      \
	VPSUBD Y9, Y10, Y9        \
	TIMES(k0390, Y8, Y8)      \
	VPSUBD Y8, Y10, Y8        \
	VPADDD Y7, Y1, Y10        \
	TIMES(k0899, Y10, Y10)    \
	VPADDD Y5, Y3, Y11        \
	TIMES(k2562, Y11, Y11)    \
	TIMES(k1501, Y1, Y1)      \
	TIMES(k3072, Y3, Y3)      \
	TIMES(k2053, Y5, Y5)      \
	TIMES(k0298, Y7, Y7)      \
	VPSUBD Y10, Y1, Y1        \
	VPADDD Y8, Y1, Y1         \
	VPSUBD Y11, Y3, Y3        \
	VPADDD Y9, Y3, Y3         \
	VPSUBD Y11, Y5, Y5        \
	VPADDD Y8, Y5, Y5         \
	VPSUBD Y10, Y7, Y7        \
	VPADDD Y9, Y7, Y7         \
	VPADDD Y1, Y0, Y8         \
	VPSUBD Y1, Y0, Y15        \
	VPADDD Y3, Y2, Y9         \
	VPSUBD Y3, Y2, Y14        \
	VPADDD Y5, Y4, Y10        \
	VPSUBD Y5, Y4, Y13        \
	VPADDD Y7, Y6, Y11        \
	VPSUBD Y7, Y6, Y12        \
	VPSRAD shift, Y8, Y8      \
	VPSRAD shift, Y9, Y9      \
	VPSRAD shift, Y10, Y10    \
	VPSRAD shift, Y11, Y11    \
	VPSRAD shift, Y12, Y12    \
	VPSRAD shift, Y13, Y13    \
	VPSRAD shift, Y14, Y14    \
	VPSRAD shift, Y15, Y15

// func inverseAVX2(dst *byte, stride int, b *[64]int32)
TEXT ·inverseAVX2(SB), NOSPLIT, $0-24
	MOVQ    dst+0(FP), DI
	MOVQ    stride+8(FP), CX
	MOVQ    b+16(FP), SI
	VMOVDQU 0(SI), Y0
	VMOVDQU 32(SI), Y1
	VMOVDQU 64(SI), Y2
	VMOVDQU 96(SI), Y3
	VMOVDQU 128(SI), Y4
	VMOVDQU 160(SI), Y5
	VMOVDQU 192(SI), Y6
	VMOVDQU 224(SI), Y7
	PASS(halfColumns, $(const_constBits-const_passBits))

	VPUNPCKLDQ  Y9, Y8, Y0
	VPUNPCKHDQ  Y9, Y8, Y1
	VPUNPCKLDQ  Y11, Y10, Y2
	VPUNPCKHDQ  Y11, Y10, Y3
	VPUNPCKLDQ  Y13, Y12, Y4
	VPUNPCKHDQ  Y13, Y12, Y5
	VPUNPCKLDQ  Y15, Y14, Y6
	VPUNPCKHDQ  Y15, Y14, Y7
	VPUNPCKLQDQ Y2, Y0, Y8
	VPUNPCKHQDQ Y2, Y0, Y9
	VPUNPCKLQDQ Y3, Y1, Y10
	VPUNPCKHQDQ Y3, Y1, Y11
	VPUNPCKLQDQ Y6, Y4, Y12
	VPUNPCKHQDQ Y6, Y4, Y13
	VPUNPCKLQDQ Y7, Y5, Y14
	VPUNPCKHQDQ Y7, Y5, Y15
	VPERM2I128  $0x20, Y12, Y8, Y0
	VPERM2I128  $0x20, Y13, Y9, Y1
	VPERM2I128  $0x20, Y14, Y10, Y2
	VPERM2I128  $0x20, Y15, Y11, Y3
	VPERM2I128  $0x31, Y12, Y8, Y4
	VPERM2I128  $0x31, Y13, Y9, Y5
	VPERM2I128  $0x31, Y14, Y10, Y6
	VPERM2I128  $0x31, Y15, Y11, Y7
	PASS(halfRows, $(const_constBits+const_passBits+3))

	// Column k is Y(8+k): saturated to bytes, four columns of four rows in each half of Y0 and Y1, then transposed.
	VPBROADCASTD middle<>(SB), Y7
	VPADDD    Y7, Y8, Y8
	VPADDD    Y7, Y9, Y9
	VPADDD    Y7, Y10, Y10
	VPADDD    Y7, Y11, Y11
	VPADDD    Y7, Y12, Y12
	VPADDD    Y7, Y13, Y13
	VPADDD    Y7, Y14, Y14
	VPADDD    Y7, Y15, Y15
	VPACKSSDW Y9, Y8, Y8
	VPACKSSDW Y11, Y10, Y10
	VPACKSSDW Y13, Y12, Y12
	VPACKSSDW Y15, Y14, Y14
	VPACKUSWB Y10, Y8, Y0
	VPACKUSWB Y14, Y12, Y1
	VBROADCASTI128 transposed<>(SB), Y7
	VPSHUFB    Y7, Y0, Y0
	VPSHUFB    Y7, Y1, Y1
	VPUNPCKLDQ Y1, Y0, Y2
	VPUNPCKHDQ Y1, Y0, Y3
	VEXTRACTI128 $1, Y2, X4
	VEXTRACTI128 $1, Y3, X5
	LEAQ    (CX)(CX*2), DX
	LEAQ    (DI)(CX*4), SI
	VMOVQ   X2, (DI)
	VPEXTRQ $1, X2, (DI)(CX*1)
	VMOVQ   X3, (DI)(CX*2)
	VPEXTRQ $1, X3, (DI)(DX*1)
	VMOVQ   X4, (SI)
	VPEXTRQ $1, X4, (SI)(CX*1)
	VMOVQ   X5, (SI)(CX*2)
	VPEXTRQ $1, X5, (SI)(DX*1)
	VZEROUPPER
	RET

// func rgbAVX2(dst, lumas, cbs, crs *byte, n int)
//
// n is a multiple of 8. Four bytes more than the pixels are written.
TEXT ·rgbAVX2(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ lumas+8(FP), SI
	MOVQ cbs+16(FP), DX
	MOVQ crs+24(FP), BX
	MOVQ n+32(FP), CX
	VPBROADCASTD   middle<>(SB), Y7
	VPBROADCASTD   halfRGB<>(SB), Y8
	VPBROADCASTD   crToR<>(SB), Y9
	VPBROADCASTD   cbToG<>(SB), Y10
	VPBROADCASTD   crToG<>(SB), Y11
	VPBROADCASTD   cbToB<>(SB), Y12
	VPBROADCASTD   highest<>(SB), Y13
	VBROADCASTI128 triples<>(SB), Y14
	VPXOR          Y15, Y15, Y15

pixels:
	VPMOVZXBD (SI), Y0
	VPMOVZXBD (DX), Y1
	VPMOVZXBD (BX), Y2
	VPSUBD    Y7, Y1, Y1
	VPSUBD    Y7, Y2, Y2

	VPMULLD Y9, Y2, Y3
	VPMULLD Y10, Y1, Y4
	VPMULLD Y11, Y2, Y5
	VPMULLD Y12, Y1, Y6
	VPADDD  Y5, Y4, Y4
	VPADDD  Y8, Y3, Y3
	VPADDD  Y8, Y4, Y4
	VPADDD  Y8, Y6, Y6
	VPSRAD  $16, Y3, Y3
	VPSRAD  $16, Y4, Y4
	VPSRAD  $16, Y6, Y6
	VPADDD  Y0, Y3, Y3
	VPADDD  Y0, Y4, Y4
	VPADDD  Y0, Y6, Y6
	VPMAXSD Y15, Y3, Y3
	VPMAXSD Y15, Y4, Y4
	VPMAXSD Y15, Y6, Y6
	VPMINSD Y13, Y3, Y3
	VPMINSD Y13, Y4, Y4
	VPMINSD Y13, Y6, Y6

	VPSLLD  $8, Y4, Y4
	VPSLLD  $16, Y6, Y6
	VPOR    Y4, Y3, Y3
	VPOR    Y6, Y3, Y3
	VPSHUFB Y14, Y3, Y3
	VMOVDQU X3, (DI)
	VEXTRACTI128 $1, Y3, 12(DI)

	ADDQ $8, SI
	ADDQ $8, DX
	ADDQ $8, BX
	ADDQ $24, DI
	SUBQ $8, CX
	JNZ  pixels
	VZEROUPPER
	RET

// WEIGHTED sets to to 3 near + far, of eight samples.
#define WEIGHTED(at, to) \
	VPMOVZXBD at(SI)(AX*1), to \
	VPMOVZXBD at(DX)(AX*1), Y5 \
	VPMULLD   Y6, to, to       \
	VPADDD    Y5, to, to

// func spreadAVX2(dst, near, far *byte, n int)
//
// It makes samples 1 to 2n of dst, for n a multiple of 8. One sample more than n is read of near and far.
TEXT ·spreadAVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ near+8(FP), SI
	MOVQ far+16(FP), DX
	MOVQ n+24(FP), CX
	XORL AX, AX
	VPBROADCASTD three<>(SB), Y6
	VPBROADCASTD seven<>(SB), Y7
	VPBROADCASTD eight<>(SB), Y8

samples:
	WEIGHTED(0, Y0)
	WEIGHTED(1, Y1)
	VPMULLD Y6, Y0, Y2
	VPADDD  Y1, Y2, Y2
	VPADDD  Y7, Y2, Y2
	VPSRLD  $4, Y2, Y2
	VPMULLD Y6, Y1, Y3
	VPADDD  Y0, Y3, Y3
	VPADDD  Y8, Y3, Y3
	VPSRLD  $4, Y3, Y3
	VPSLLD  $8, Y3, Y3
	VPOR    Y3, Y2, Y2
	VPACKUSDW Y2, Y2, Y2
	VPERMQ  $8, Y2, Y2
	VMOVDQU X2, 1(DI)(AX*2)
	ADDQ    $8, AX
	CMPQ    AX, CX
	JB      samples
	VZEROUPPER
	RET
