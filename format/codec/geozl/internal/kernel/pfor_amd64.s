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

// Of a block of 8 or 16 bits, the first half of the numbers takes as many whole words as a number has bits, the second
// half the words behind them: both halves are unpacked at a time, in the halves of a vector, with the same shifts.

// WORD is word k of both halves, of n words each.
#define WORD(k, n, X, Y) \
	VMOVDQU     (16*(k))(SI), X             \
	VINSERTI128 $1, (16*((k)+(n)))(SI), Y, Y

// Vector i of both halves, of vectors each, whose bits lie in one word or in two.
#define PUT(i, vectors) \
	VPAND        Y0, Y1, Y1                     \
	VMOVDQU      X1, (16*(i))(DI)               \
	VEXTRACTI128 $1, Y1, (16*((i)+(vectors)))(DI)

#define ONE16(n, i) \
	WORD((i)*(n)/16, n, X1, Y1)   \
	VPSRLW $((i)*(n)%16), Y1, Y1  \
	PUT(i, 16)

#define TWO16(n, i) \
	WORD((i)*(n)/16, n, X1, Y1)      \
	WORD((i)*(n)/16+1, n, X2, Y2)    \
	VPSRLW $((i)*(n)%16), Y1, Y1     \
	VPSLLW $(16-(i)*(n)%16), Y2, Y2  \
	VPOR   Y2, Y1, Y1                \
	PUT(i, 16)

// Shifts are of 16 bits. What they move from one byte to its neighbour is masked: OWN has the bits that the first word
// gives.
#define ONE8(n, i) \
	WORD((i)*(n)/8, n, X1, Y1)   \
	VPSRLW $((i)*(n)%8), Y1, Y1  \
	PUT(i, 8)

#define TWO8(n, i, OWN) \
	WORD((i)*(n)/8, n, X1, Y1)     \
	WORD((i)*(n)/8+1, n, X2, Y2)   \
	VPSRLW $((i)*(n)%8), Y1, Y1    \
	VPAND  OWN, Y1, Y1             \
	VPSLLW $(8-(i)*(n)%8), Y2, Y2  \
	VPANDN Y2, OWN, Y2             \
	VPOR   Y2, Y1, Y1              \
	PUT(i, 8)

// The body eight blocks or so ahead, whose lines would otherwise be awaited: frames lie in memory for an epoch.
#define AHEAD2(k) PREFETCHT0 (2048+64*(k))(SI); PREFETCHT0 (2112+64*(k))(SI)

// Masks of the lowest bits of bytes.
#define LOW(bits, Y) \
	VPBROADCASTB low8<>+bits(SB), Y

DATA low8<>+0(SB)/8, $0x7f3f1f0f07030100
GLOBL low8<>(SB), RODATA|NOPTR, $8

// 1 bits of 8.
TEXT unpack8x1<>(SB), NOSPLIT, $0-0
	AHEAD2(0)
	LOW(1, Y0)
	ONE8(1, 0); ONE8(1, 1); ONE8(1, 2); ONE8(1, 3)
	ONE8(1, 4); ONE8(1, 5); ONE8(1, 6); ONE8(1, 7)
	VZEROUPPER
	RET

// 2 bits of 8.
TEXT unpack8x2<>(SB), NOSPLIT, $0-0
	AHEAD2(0)
	LOW(2, Y0)
	ONE8(2, 0); ONE8(2, 1); ONE8(2, 2); ONE8(2, 3)
	ONE8(2, 4); ONE8(2, 5); ONE8(2, 6); ONE8(2, 7)
	VZEROUPPER
	RET

// 3 bits of 8.
TEXT unpack8x3<>(SB), NOSPLIT, $0-0
	AHEAD2(0)
	LOW(3, Y0)
	LOW(1, Y9)
	LOW(2, Y10)
	ONE8(3, 0); ONE8(3, 1); TWO8(3, 2, Y10); ONE8(3, 3)
	ONE8(3, 4); TWO8(3, 5, Y9); ONE8(3, 6); ONE8(3, 7)
	VZEROUPPER
	RET

// 4 bits of 8.
TEXT unpack8x4<>(SB), NOSPLIT, $0-0
	AHEAD2(0)
	LOW(4, Y0)
	ONE8(4, 0); ONE8(4, 1); ONE8(4, 2); ONE8(4, 3)
	ONE8(4, 4); ONE8(4, 5); ONE8(4, 6); ONE8(4, 7)
	VZEROUPPER
	RET

// 5 bits of 8.
TEXT unpack8x5<>(SB), NOSPLIT, $0-0
	AHEAD2(0); AHEAD2(2)
	LOW(5, Y0)
	LOW(1, Y9)
	LOW(2, Y10)
	LOW(3, Y11)
	LOW(4, Y12)
	ONE8(5, 0); TWO8(5, 1, Y11); ONE8(5, 2); TWO8(5, 3, Y9)
	TWO8(5, 4, Y12); ONE8(5, 5); TWO8(5, 6, Y10); ONE8(5, 7)
	VZEROUPPER
	RET

// 6 bits of 8.
TEXT unpack8x6<>(SB), NOSPLIT, $0-0
	AHEAD2(0); AHEAD2(2)
	LOW(6, Y0)
	LOW(2, Y10)
	LOW(4, Y12)
	ONE8(6, 0); TWO8(6, 1, Y10); TWO8(6, 2, Y12); ONE8(6, 3)
	ONE8(6, 4); TWO8(6, 5, Y10); TWO8(6, 6, Y12); ONE8(6, 7)
	VZEROUPPER
	RET

// 7 bits of 8.
TEXT unpack8x7<>(SB), NOSPLIT, $0-0
	AHEAD2(0); AHEAD2(2)
	LOW(7, Y0)
	LOW(1, Y9)
	LOW(2, Y10)
	LOW(3, Y11)
	LOW(4, Y12)
	LOW(5, Y13)
	LOW(6, Y14)
	ONE8(7, 0); TWO8(7, 1, Y9); TWO8(7, 2, Y10); TWO8(7, 3, Y11)
	TWO8(7, 4, Y12); TWO8(7, 5, Y13); TWO8(7, 6, Y14); ONE8(7, 7)
	VZEROUPPER
	RET

DATA bodies8<>+0(SB)/8, $unpack8x1<>(SB)
DATA bodies8<>+8(SB)/8, $unpack8x2<>(SB)
DATA bodies8<>+16(SB)/8, $unpack8x3<>(SB)
DATA bodies8<>+24(SB)/8, $unpack8x4<>(SB)
DATA bodies8<>+32(SB)/8, $unpack8x5<>(SB)
DATA bodies8<>+40(SB)/8, $unpack8x6<>(SB)
DATA bodies8<>+48(SB)/8, $unpack8x7<>(SB)
GLOBL bodies8<>(SB), NOPTR, $56

// 1 bits of 16.
TEXT unpack16x1<>(SB), NOSPLIT, $0-0
	AHEAD2(0)
	VPCMPEQW Y0, Y0, Y0
	VPSRLW   $15, Y0, Y0
	ONE16(1, 0); ONE16(1, 1); ONE16(1, 2); ONE16(1, 3)
	ONE16(1, 4); ONE16(1, 5); ONE16(1, 6); ONE16(1, 7)
	ONE16(1, 8); ONE16(1, 9); ONE16(1, 10); ONE16(1, 11)
	ONE16(1, 12); ONE16(1, 13); ONE16(1, 14); ONE16(1, 15)
	VZEROUPPER
	RET

// 2 bits of 16.
TEXT unpack16x2<>(SB), NOSPLIT, $0-0
	AHEAD2(0)
	VPCMPEQW Y0, Y0, Y0
	VPSRLW   $14, Y0, Y0
	ONE16(2, 0); ONE16(2, 1); ONE16(2, 2); ONE16(2, 3)
	ONE16(2, 4); ONE16(2, 5); ONE16(2, 6); ONE16(2, 7)
	ONE16(2, 8); ONE16(2, 9); ONE16(2, 10); ONE16(2, 11)
	ONE16(2, 12); ONE16(2, 13); ONE16(2, 14); ONE16(2, 15)
	VZEROUPPER
	RET

// 3 bits of 16.
TEXT unpack16x3<>(SB), NOSPLIT, $0-0
	AHEAD2(0)
	VPCMPEQW Y0, Y0, Y0
	VPSRLW   $13, Y0, Y0
	ONE16(3, 0); ONE16(3, 1); ONE16(3, 2); ONE16(3, 3)
	ONE16(3, 4); TWO16(3, 5); ONE16(3, 6); ONE16(3, 7)
	ONE16(3, 8); ONE16(3, 9); TWO16(3, 10); ONE16(3, 11)
	ONE16(3, 12); ONE16(3, 13); ONE16(3, 14); ONE16(3, 15)
	VZEROUPPER
	RET

// 4 bits of 16.
TEXT unpack16x4<>(SB), NOSPLIT, $0-0
	AHEAD2(0)
	VPCMPEQW Y0, Y0, Y0
	VPSRLW   $12, Y0, Y0
	ONE16(4, 0); ONE16(4, 1); ONE16(4, 2); ONE16(4, 3)
	ONE16(4, 4); ONE16(4, 5); ONE16(4, 6); ONE16(4, 7)
	ONE16(4, 8); ONE16(4, 9); ONE16(4, 10); ONE16(4, 11)
	ONE16(4, 12); ONE16(4, 13); ONE16(4, 14); ONE16(4, 15)
	VZEROUPPER
	RET

// 5 bits of 16.
TEXT unpack16x5<>(SB), NOSPLIT, $0-0
	AHEAD2(0); AHEAD2(2)
	VPCMPEQW Y0, Y0, Y0
	VPSRLW   $11, Y0, Y0
	ONE16(5, 0); ONE16(5, 1); ONE16(5, 2); TWO16(5, 3)
	ONE16(5, 4); ONE16(5, 5); TWO16(5, 6); ONE16(5, 7)
	ONE16(5, 8); TWO16(5, 9); ONE16(5, 10); ONE16(5, 11)
	TWO16(5, 12); ONE16(5, 13); ONE16(5, 14); ONE16(5, 15)
	VZEROUPPER
	RET

// 6 bits of 16.
TEXT unpack16x6<>(SB), NOSPLIT, $0-0
	AHEAD2(0); AHEAD2(2)
	VPCMPEQW Y0, Y0, Y0
	VPSRLW   $10, Y0, Y0
	ONE16(6, 0); ONE16(6, 1); TWO16(6, 2); ONE16(6, 3)
	ONE16(6, 4); TWO16(6, 5); ONE16(6, 6); ONE16(6, 7)
	ONE16(6, 8); ONE16(6, 9); TWO16(6, 10); ONE16(6, 11)
	ONE16(6, 12); TWO16(6, 13); ONE16(6, 14); ONE16(6, 15)
	VZEROUPPER
	RET

// 7 bits of 16.
TEXT unpack16x7<>(SB), NOSPLIT, $0-0
	AHEAD2(0); AHEAD2(2)
	VPCMPEQW Y0, Y0, Y0
	VPSRLW   $9, Y0, Y0
	ONE16(7, 0); ONE16(7, 1); TWO16(7, 2); ONE16(7, 3)
	TWO16(7, 4); ONE16(7, 5); TWO16(7, 6); ONE16(7, 7)
	ONE16(7, 8); TWO16(7, 9); ONE16(7, 10); TWO16(7, 11)
	ONE16(7, 12); TWO16(7, 13); ONE16(7, 14); ONE16(7, 15)
	VZEROUPPER
	RET

// 8 bits of 16.
TEXT unpack16x8<>(SB), NOSPLIT, $0-0
	AHEAD2(0); AHEAD2(2)
	VPCMPEQW Y0, Y0, Y0
	VPSRLW   $8, Y0, Y0
	ONE16(8, 0); ONE16(8, 1); ONE16(8, 2); ONE16(8, 3)
	ONE16(8, 4); ONE16(8, 5); ONE16(8, 6); ONE16(8, 7)
	ONE16(8, 8); ONE16(8, 9); ONE16(8, 10); ONE16(8, 11)
	ONE16(8, 12); ONE16(8, 13); ONE16(8, 14); ONE16(8, 15)
	VZEROUPPER
	RET

// 9 bits of 16.
TEXT unpack16x9<>(SB), NOSPLIT, $0-0
	AHEAD2(0); AHEAD2(2); AHEAD2(4)
	VPCMPEQW Y0, Y0, Y0
	VPSRLW   $7, Y0, Y0
	ONE16(9, 0); TWO16(9, 1); ONE16(9, 2); TWO16(9, 3)
	ONE16(9, 4); TWO16(9, 5); ONE16(9, 6); TWO16(9, 7)
	TWO16(9, 8); ONE16(9, 9); TWO16(9, 10); ONE16(9, 11)
	TWO16(9, 12); ONE16(9, 13); TWO16(9, 14); ONE16(9, 15)
	VZEROUPPER
	RET

// 10 bits of 16.
TEXT unpack16x10<>(SB), NOSPLIT, $0-0
	AHEAD2(0); AHEAD2(2); AHEAD2(4)
	VPCMPEQW Y0, Y0, Y0
	VPSRLW   $6, Y0, Y0
	ONE16(10, 0); TWO16(10, 1); ONE16(10, 2); TWO16(10, 3)
	TWO16(10, 4); ONE16(10, 5); TWO16(10, 6); ONE16(10, 7)
	ONE16(10, 8); TWO16(10, 9); ONE16(10, 10); TWO16(10, 11)
	TWO16(10, 12); ONE16(10, 13); TWO16(10, 14); ONE16(10, 15)
	VZEROUPPER
	RET

// 11 bits of 16.
TEXT unpack16x11<>(SB), NOSPLIT, $0-0
	AHEAD2(0); AHEAD2(2); AHEAD2(4)
	VPCMPEQW Y0, Y0, Y0
	VPSRLW   $5, Y0, Y0
	ONE16(11, 0); TWO16(11, 1); TWO16(11, 2); ONE16(11, 3)
	TWO16(11, 4); TWO16(11, 5); ONE16(11, 6); TWO16(11, 7)
	TWO16(11, 8); ONE16(11, 9); TWO16(11, 10); TWO16(11, 11)
	ONE16(11, 12); TWO16(11, 13); TWO16(11, 14); ONE16(11, 15)
	VZEROUPPER
	RET

// 12 bits of 16.
TEXT unpack16x12<>(SB), NOSPLIT, $0-0
	AHEAD2(0); AHEAD2(2); AHEAD2(4)
	VPCMPEQW Y0, Y0, Y0
	VPSRLW   $4, Y0, Y0
	ONE16(12, 0); TWO16(12, 1); TWO16(12, 2); ONE16(12, 3)
	ONE16(12, 4); TWO16(12, 5); TWO16(12, 6); ONE16(12, 7)
	ONE16(12, 8); TWO16(12, 9); TWO16(12, 10); ONE16(12, 11)
	ONE16(12, 12); TWO16(12, 13); TWO16(12, 14); ONE16(12, 15)
	VZEROUPPER
	RET

// 13 bits of 16.
TEXT unpack16x13<>(SB), NOSPLIT, $0-0
	AHEAD2(0); AHEAD2(2); AHEAD2(4); AHEAD2(6)
	VPCMPEQW Y0, Y0, Y0
	VPSRLW   $3, Y0, Y0
	ONE16(13, 0); TWO16(13, 1); TWO16(13, 2); TWO16(13, 3)
	TWO16(13, 4); ONE16(13, 5); TWO16(13, 6); TWO16(13, 7)
	TWO16(13, 8); TWO16(13, 9); ONE16(13, 10); TWO16(13, 11)
	TWO16(13, 12); TWO16(13, 13); TWO16(13, 14); ONE16(13, 15)
	VZEROUPPER
	RET

// 14 bits of 16.
TEXT unpack16x14<>(SB), NOSPLIT, $0-0
	AHEAD2(0); AHEAD2(2); AHEAD2(4); AHEAD2(6)
	VPCMPEQW Y0, Y0, Y0
	VPSRLW   $2, Y0, Y0
	ONE16(14, 0); TWO16(14, 1); TWO16(14, 2); TWO16(14, 3)
	TWO16(14, 4); TWO16(14, 5); TWO16(14, 6); ONE16(14, 7)
	ONE16(14, 8); TWO16(14, 9); TWO16(14, 10); TWO16(14, 11)
	TWO16(14, 12); TWO16(14, 13); TWO16(14, 14); ONE16(14, 15)
	VZEROUPPER
	RET

// 15 bits of 16.
TEXT unpack16x15<>(SB), NOSPLIT, $0-0
	AHEAD2(0); AHEAD2(2); AHEAD2(4); AHEAD2(6)
	VPCMPEQW Y0, Y0, Y0
	VPSRLW   $1, Y0, Y0
	ONE16(15, 0); TWO16(15, 1); TWO16(15, 2); TWO16(15, 3)
	TWO16(15, 4); TWO16(15, 5); TWO16(15, 6); TWO16(15, 7)
	TWO16(15, 8); TWO16(15, 9); TWO16(15, 10); TWO16(15, 11)
	TWO16(15, 12); TWO16(15, 13); TWO16(15, 14); ONE16(15, 15)
	VZEROUPPER
	RET

DATA bodies16<>+0(SB)/8, $unpack16x1<>(SB)
DATA bodies16<>+8(SB)/8, $unpack16x2<>(SB)
DATA bodies16<>+16(SB)/8, $unpack16x3<>(SB)
DATA bodies16<>+24(SB)/8, $unpack16x4<>(SB)
DATA bodies16<>+32(SB)/8, $unpack16x5<>(SB)
DATA bodies16<>+40(SB)/8, $unpack16x6<>(SB)
DATA bodies16<>+48(SB)/8, $unpack16x7<>(SB)
DATA bodies16<>+56(SB)/8, $unpack16x8<>(SB)
DATA bodies16<>+64(SB)/8, $unpack16x9<>(SB)
DATA bodies16<>+72(SB)/8, $unpack16x10<>(SB)
DATA bodies16<>+80(SB)/8, $unpack16x11<>(SB)
DATA bodies16<>+88(SB)/8, $unpack16x12<>(SB)
DATA bodies16<>+96(SB)/8, $unpack16x13<>(SB)
DATA bodies16<>+104(SB)/8, $unpack16x14<>(SB)
DATA bodies16<>+112(SB)/8, $unpack16x15<>(SB)
GLOBL bodies16<>(SB), NOPTR, $120

// func unpack8(dst, src *byte, nbits int)
TEXT ·unpack8(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ nbits+16(FP), AX
	LEAQ bodies8<>(SB), CX
	MOVQ -8(CX)(AX*8), AX
	JMP  AX

// func unpack16(dst, src *byte, nbits int)
TEXT ·unpack16(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ nbits+16(FP), AX
	LEAQ bodies16<>(SB), CX
	MOVQ -8(CX)(AX*8), AX
	JMP  AX

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
