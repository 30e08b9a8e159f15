//go:build amd64 && !purego && !twins

#include "textflag.h"

// The numbers of a lane are bits one after the other, lowest first, in words of as many bits as a
// number has when it is unpacked. R8 is the bit of the word at SI where the next number begins.
// The bits that stand in the next word are shifted up from there, and X0 masks what is too much.

// NEXT moves R8 and SI on by one number of R9 bits, for words of 1<<log bits.
#define NEXT(log) \
	ADDQ R9, R8              \
	MOVQ R8, AX              \
	SHRQ $log, AX            \
	SHLQ $4, AX              \
	ADDQ AX, SI              \
	ANDQ $((1<<log)-1), R8

// low8 has, for 0 to 8 bits, 16 bytes with the bits below them set.
DATA low8<>+0(SB)/8, $0x0000000000000000
DATA low8<>+8(SB)/8, $0x0000000000000000
DATA low8<>+16(SB)/8, $0x0101010101010101
DATA low8<>+24(SB)/8, $0x0101010101010101
DATA low8<>+32(SB)/8, $0x0303030303030303
DATA low8<>+40(SB)/8, $0x0303030303030303
DATA low8<>+48(SB)/8, $0x0707070707070707
DATA low8<>+56(SB)/8, $0x0707070707070707
DATA low8<>+64(SB)/8, $0x0f0f0f0f0f0f0f0f
DATA low8<>+72(SB)/8, $0x0f0f0f0f0f0f0f0f
DATA low8<>+80(SB)/8, $0x1f1f1f1f1f1f1f1f
DATA low8<>+88(SB)/8, $0x1f1f1f1f1f1f1f1f
DATA low8<>+96(SB)/8, $0x3f3f3f3f3f3f3f3f
DATA low8<>+104(SB)/8, $0x3f3f3f3f3f3f3f3f
DATA low8<>+112(SB)/8, $0x7f7f7f7f7f7f7f7f
DATA low8<>+120(SB)/8, $0x7f7f7f7f7f7f7f7f
DATA low8<>+128(SB)/8, $0xffffffffffffffff
DATA low8<>+136(SB)/8, $0xffffffffffffffff
GLOBL low8<>(SB), RODATA|NOPTR, $144

// func unpack8(dst, src *byte, n, rest, nbits int)
TEXT ·unpack8(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ nbits+32(FP), R9
	XORQ R8, R8
	SHLQ $4, R9
	LEAQ low8<>(SB), R10
	VMOVDQU (R10)(R9*1), X0
	SHRQ $4, R9

loop8:
	VMOVQ R8, X1
	MOVQ $8, BX
	SUBQ R8, BX
	VMOVQ BX, X2
	SHLQ $4, BX
	VMOVDQU (R10)(BX*1), X5
	VMOVDQU (SI), X3
	VPSRLW X1, X3, X3
	VPAND X5, X3, X3
	VMOVDQU 16(SI), X4
	VPSLLW X2, X4, X4
	VPANDN X4, X5, X4
	VPOR X4, X3, X3
	VPAND X0, X3, X3
	VMOVDQU X3, (DI)
	ADDQ $16, DI
	NEXT(3)
	DECQ CX
	JNZ  loop8

	// All others lie in the last word, behind which nothing may be read.
	MOVQ rest+24(FP), CX

last8:
	VMOVQ R8, X1
	MOVQ $8, BX
	SUBQ R8, BX
	SHLQ $4, BX
	VMOVDQU (R10)(BX*1), X5
	VMOVDQU (SI), X3
	VPSRLW X1, X3, X3
	VPAND X5, X3, X3
	VPAND X0, X3, X3
	VMOVDQU X3, (DI)
	ADDQ $16, DI
	ADDQ R9, R8
	DECQ CX
	JNZ  last8
	RET

// func unpack16(dst, src *byte, n, rest, nbits int)
TEXT ·unpack16(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ nbits+32(FP), R9
	XORQ R8, R8
	VPCMPEQW X0, X0, X0
	MOVQ $16, AX
	SUBQ R9, AX
	VMOVQ AX, X1
	VPSRLW X1, X0, X0

loop16:
	VMOVQ R8, X1
	MOVQ $16, BX
	SUBQ R8, BX
	VMOVQ BX, X2
	VMOVDQU (SI), X3
	VPSRLW X1, X3, X3
	VMOVDQU 16(SI), X4
	VPSLLW X2, X4, X4
	VPOR X4, X3, X3
	VPAND X0, X3, X3
	VMOVDQU X3, (DI)
	ADDQ $16, DI
	NEXT(4)
	DECQ CX
	JNZ  loop16

	// All others lie in the last word, behind which nothing may be read.
	MOVQ rest+24(FP), CX

last16:
	VMOVQ R8, X1
	VMOVDQU (SI), X3
	VPSRLW X1, X3, X3
	VPAND X0, X3, X3
	VMOVDQU X3, (DI)
	ADDQ $16, DI
	ADDQ R9, R8
	DECQ CX
	JNZ  last16
	RET

// func unpack32(dst, src *byte, n, rest, nbits int)
TEXT ·unpack32(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ nbits+32(FP), R9
	XORQ R8, R8
	VPCMPEQD X0, X0, X0
	MOVQ $32, AX
	SUBQ R9, AX
	VMOVQ AX, X1
	VPSRLD X1, X0, X0

loop32:
	VMOVQ R8, X1
	MOVQ $32, BX
	SUBQ R8, BX
	VMOVQ BX, X2
	VMOVDQU (SI), X3
	VPSRLD X1, X3, X3
	VMOVDQU 16(SI), X4
	VPSLLD X2, X4, X4
	VPOR X4, X3, X3
	VPAND X0, X3, X3
	VMOVDQU X3, (DI)
	ADDQ $16, DI
	NEXT(5)
	DECQ CX
	JNZ  loop32

	// All others lie in the last word, behind which nothing may be read.
	MOVQ rest+24(FP), CX

last32:
	VMOVQ R8, X1
	VMOVDQU (SI), X3
	VPSRLD X1, X3, X3
	VPAND X0, X3, X3
	VMOVDQU X3, (DI)
	ADDQ $16, DI
	ADDQ R9, R8
	DECQ CX
	JNZ  last32
	RET

// func unpack64(dst, src *byte, n, rest, nbits int)
TEXT ·unpack64(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ nbits+32(FP), R9
	XORQ R8, R8
	VPCMPEQD X0, X0, X0
	MOVQ $64, AX
	SUBQ R9, AX
	VMOVQ AX, X1
	VPSRLQ X1, X0, X0

loop64:
	VMOVQ R8, X1
	MOVQ $64, BX
	SUBQ R8, BX
	VMOVQ BX, X2
	VMOVDQU (SI), X3
	VPSRLQ X1, X3, X3
	VMOVDQU 16(SI), X4
	VPSLLQ X2, X4, X4
	VPOR X4, X3, X3
	VPAND X0, X3, X3
	VMOVDQU X3, (DI)
	ADDQ $16, DI
	NEXT(6)
	DECQ CX
	JNZ  loop64

	// All others lie in the last word, behind which nothing may be read.
	MOVQ rest+24(FP), CX

last64:
	VMOVQ R8, X1
	VMOVDQU (SI), X3
	VPSRLQ X1, X3, X3
	VPAND X0, X3, X3
	VMOVDQU X3, (DI)
	ADDQ $16, DI
	ADDQ R9, R8
	DECQ CX
	JNZ  last64
	RET
