//go:build amd64 && !purego && !twins

#include "textflag.h"

// last<w> spreads the last number of w bytes of every half over it.
DATA last1<>+0(SB)/8, $0x0f0f0f0f0f0f0f0f
DATA last1<>+8(SB)/8, $0x0f0f0f0f0f0f0f0f
GLOBL last1<>(SB), RODATA|NOPTR, $16
DATA last2<>+0(SB)/8, $0x0f0e0f0e0f0e0f0e
DATA last2<>+8(SB)/8, $0x0f0e0f0e0f0e0f0e
GLOBL last2<>(SB), RODATA|NOPTR, $16
DATA last4<>+0(SB)/8, $0x0f0e0d0c0f0e0d0c
DATA last4<>+8(SB)/8, $0x0f0e0d0c0f0e0d0c
GLOBL last4<>(SB), RODATA|NOPTR, $16

// low<w> has a one in the lowest bit of every number.
DATA low1<>+0(SB)/8, $0x0101010101010101
GLOBL low1<>(SB), RODATA|NOPTR, $8
DATA low2<>+0(SB)/8, $0x0001000100010001
GLOBL low2<>(SB), RODATA|NOPTR, $8
DATA low4<>+0(SB)/8, $0x0000000100000001
GLOBL low4<>(SB), RODATA|NOPTR, $8

// bits7 keeps what a shift by one of 16-bit numbers leaves of two 8-bit ones.
DATA bits7<>+0(SB)/8, $0x7f7f7f7f7f7f7f7f
GLOBL bits7<>(SB), RODATA|NOPTR, $8

// Y0 is a block, Y1 and Y2 are scratch, Y3 is zero, Y4 the sum of all blocks before in every
// number, Y5 last<w>, Y6 low<w>, Y7 bits7.

#define ARGS(low, last) \
	MOVQ         dst+0(FP), DI   \
	MOVQ         src+8(FP), SI   \
	MOVQ         above+16(FP), DX \
	MOVQ         n+24(FP), CX    \
	VPXOR        Y3, Y3, Y3      \
	VBROADCASTI128 last<>(SB), Y5 \
	VPBROADCASTQ low<>(SB), Y6   \
	VPBROADCASTQ bits7<>(SB), Y7

#define ZIGZAG1 \
	VPAND  Y6, Y0, Y1  \
	VPSUBB Y1, Y3, Y1  \
	VPSRLW $1, Y0, Y0  \
	VPAND  Y7, Y0, Y0  \
	VPXOR  Y1, Y0, Y0

#define ZIGZAG2 \
	VPAND  Y6, Y0, Y1  \
	VPSUBW Y1, Y3, Y1  \
	VPSRLW $1, Y0, Y0  \
	VPXOR  Y1, Y0, Y0

#define ZIGZAG4 \
	VPAND  Y6, Y0, Y1  \
	VPSUBD Y1, Y3, Y1  \
	VPSRLD $1, Y0, Y0  \
	VPXOR  Y1, Y0, Y0

// ACROSS adds the last sum of the lower half of Y0 to all of the upper one, puts the sums with what
// came before in Y2, and the last sum in every number of Y4.
#define ACROSS(ADD) \
	VPERM2I128 $0x08, Y0, Y0, Y1 \
	VPSHUFB    Y5, Y1, Y1        \
	ADD        Y1, Y0, Y0        \
	ADD        Y4, Y0, Y2        \
	VPERMQ     $0xff, Y0, Y1     \
	VPSHUFB    Y5, Y1, Y1        \
	ADD        Y1, Y4, Y4

#define STEP(k, ADD) \
	VPSLLDQ $k, Y0, Y1 \
	ADD     Y1, Y0, Y0

// IN1, IN2 and IN4 replace the numbers of each half of Y0 by their running sums.
#define IN1 \
	STEP(1, VPADDB) \
	STEP(2, VPADDB) \
	STEP(4, VPADDB) \
	STEP(8, VPADDB)

#define IN2 \
	STEP(2, VPADDW) \
	STEP(4, VPADDW) \
	STEP(8, VPADDW)

#define IN4 \
	STEP(4, VPADDD) \
	STEP(8, VPADDD)

#define SUM1 \
	IN1 \
	ACROSS(VPADDB)

#define SUM2 \
	IN2 \
	ACROSS(VPADDW)

#define SUM4 \
	IN4 \
	ACROSS(VPADDD)

// ROWS is a function over pairs of rows: a half of Y0 is of each, so no sum crosses from half to half.
#define ROWS(IN, ADD, last) \
	MOVQ           first+0(FP), SI \
	MOVQ           pitch+8(FP), R8 \
	MOVQ           pairs+16(FP), DX \
	VBROADCASTI128 last<>(SB), Y5 \
pair: \
	MOVQ  n+24(FP), CX \
	VPXOR Y4, Y4, Y4 \
loop: \
	VMOVDQU      (SI), X0 \
	VINSERTI128  $1, (SI)(R8*1), Y0, Y0 \
	IN \
	ADD          Y4, Y0, Y0 \
	VPSHUFB      Y5, Y0, Y4 \
	VMOVDQU      X0, (SI) \
	VEXTRACTI128 $1, Y0, (SI)(R8*1) \
	ADDQ         $16, SI \
	DECQ         CX \
	JNZ          loop \
	ADDQ         R8, SI \
	DECQ         DX \
	JNZ          pair \
	VZEROUPPER \
	RET

// func sum8(dst, src, above *byte, n int, v uint64) uint64
TEXT ·sum8(SB), NOSPLIT, $0-48
	ARGS(low1, last1)
	MOVQ         v+32(FP), AX
	VMOVQ        AX, X4
	VPBROADCASTB X4, Y4

loop:
	VMOVDQU (SI), Y0
	SUM1
	VMOVDQU Y2, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DI
	DECQ    CX
	JNZ     loop
	VMOVQ   X4, AX
	MOVQ    AX, ret+40(FP)
	VZEROUPPER
	RET

// func sumAbove8(dst, src, above *byte, n int, v uint64) uint64
TEXT ·sumAbove8(SB), NOSPLIT, $0-48
	ARGS(low1, last1)
	MOVQ         v+32(FP), AX
	VMOVQ        AX, X4
	VPBROADCASTB X4, Y4

loop:
	VMOVDQU (SI), Y0
	SUM1
	VPADDB  (DX), Y2, Y2
	VMOVDQU Y2, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DI
	ADDQ    $32, DX
	DECQ    CX
	JNZ     loop
	VMOVQ   X4, AX
	MOVQ    AX, ret+40(FP)
	VZEROUPPER
	RET

// func sumZigzag8(dst, src, above *byte, n int, v uint64) uint64
TEXT ·sumZigzag8(SB), NOSPLIT, $0-48
	ARGS(low1, last1)
	MOVQ         v+32(FP), AX
	VMOVQ        AX, X4
	VPBROADCASTB X4, Y4

loop:
	VMOVDQU (SI), Y0
	ZIGZAG1
	SUM1
	VMOVDQU Y2, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DI
	DECQ    CX
	JNZ     loop
	VMOVQ   X4, AX
	MOVQ    AX, ret+40(FP)
	VZEROUPPER
	RET

// func sumZigzagAbove8(dst, src, above *byte, n int, v uint64) uint64
TEXT ·sumZigzagAbove8(SB), NOSPLIT, $0-48
	ARGS(low1, last1)
	MOVQ         v+32(FP), AX
	VMOVQ        AX, X4
	VPBROADCASTB X4, Y4

loop:
	VMOVDQU (SI), Y0
	ZIGZAG1
	SUM1
	VPADDB  (DX), Y2, Y2
	VMOVDQU Y2, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DI
	ADDQ    $32, DX
	DECQ    CX
	JNZ     loop
	VMOVQ   X4, AX
	MOVQ    AX, ret+40(FP)
	VZEROUPPER
	RET

// func zigzag8(dst, src, above *byte, n int, v uint64) uint64
TEXT ·zigzag8(SB), NOSPLIT, $0-48
	ARGS(low1, last1)

loop:
	VMOVDQU (SI), Y0
	ZIGZAG1
	VMOVDQU Y0, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DI
	DECQ    CX
	JNZ     loop
	MOVQ    $0, ret+40(FP)
	VZEROUPPER
	RET

// func sum16(dst, src, above *byte, n int, v uint64) uint64
TEXT ·sum16(SB), NOSPLIT, $0-48
	ARGS(low2, last2)
	MOVQ         v+32(FP), AX
	VMOVQ        AX, X4
	VPBROADCASTW X4, Y4

loop:
	VMOVDQU (SI), Y0
	SUM2
	VMOVDQU Y2, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DI
	DECQ    CX
	JNZ     loop
	VMOVQ   X4, AX
	MOVQ    AX, ret+40(FP)
	VZEROUPPER
	RET

// func sumAbove16(dst, src, above *byte, n int, v uint64) uint64
TEXT ·sumAbove16(SB), NOSPLIT, $0-48
	ARGS(low2, last2)
	MOVQ         v+32(FP), AX
	VMOVQ        AX, X4
	VPBROADCASTW X4, Y4

loop:
	VMOVDQU (SI), Y0
	SUM2
	VPADDW  (DX), Y2, Y2
	VMOVDQU Y2, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DI
	ADDQ    $32, DX
	DECQ    CX
	JNZ     loop
	VMOVQ   X4, AX
	MOVQ    AX, ret+40(FP)
	VZEROUPPER
	RET

// func sumZigzag16(dst, src, above *byte, n int, v uint64) uint64
TEXT ·sumZigzag16(SB), NOSPLIT, $0-48
	ARGS(low2, last2)
	MOVQ         v+32(FP), AX
	VMOVQ        AX, X4
	VPBROADCASTW X4, Y4

loop:
	VMOVDQU (SI), Y0
	ZIGZAG2
	SUM2
	VMOVDQU Y2, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DI
	DECQ    CX
	JNZ     loop
	VMOVQ   X4, AX
	MOVQ    AX, ret+40(FP)
	VZEROUPPER
	RET

// func sumZigzagAbove16(dst, src, above *byte, n int, v uint64) uint64
TEXT ·sumZigzagAbove16(SB), NOSPLIT, $0-48
	ARGS(low2, last2)
	MOVQ         v+32(FP), AX
	VMOVQ        AX, X4
	VPBROADCASTW X4, Y4

loop:
	VMOVDQU (SI), Y0
	ZIGZAG2
	SUM2
	VPADDW  (DX), Y2, Y2
	VMOVDQU Y2, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DI
	ADDQ    $32, DX
	DECQ    CX
	JNZ     loop
	VMOVQ   X4, AX
	MOVQ    AX, ret+40(FP)
	VZEROUPPER
	RET

// func zigzag16(dst, src, above *byte, n int, v uint64) uint64
TEXT ·zigzag16(SB), NOSPLIT, $0-48
	ARGS(low2, last2)

loop:
	VMOVDQU (SI), Y0
	ZIGZAG2
	VMOVDQU Y0, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DI
	DECQ    CX
	JNZ     loop
	MOVQ    $0, ret+40(FP)
	VZEROUPPER
	RET

// func sum32(dst, src, above *byte, n int, v uint64) uint64
TEXT ·sum32(SB), NOSPLIT, $0-48
	ARGS(low4, last4)
	MOVQ         v+32(FP), AX
	VMOVQ        AX, X4
	VPBROADCASTD X4, Y4

loop:
	VMOVDQU (SI), Y0
	SUM4
	VMOVDQU Y2, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DI
	DECQ    CX
	JNZ     loop
	VMOVQ   X4, AX
	MOVQ    AX, ret+40(FP)
	VZEROUPPER
	RET

// func sumAbove32(dst, src, above *byte, n int, v uint64) uint64
TEXT ·sumAbove32(SB), NOSPLIT, $0-48
	ARGS(low4, last4)
	MOVQ         v+32(FP), AX
	VMOVQ        AX, X4
	VPBROADCASTD X4, Y4

loop:
	VMOVDQU (SI), Y0
	SUM4
	VPADDD  (DX), Y2, Y2
	VMOVDQU Y2, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DI
	ADDQ    $32, DX
	DECQ    CX
	JNZ     loop
	VMOVQ   X4, AX
	MOVQ    AX, ret+40(FP)
	VZEROUPPER
	RET

// func sumZigzag32(dst, src, above *byte, n int, v uint64) uint64
TEXT ·sumZigzag32(SB), NOSPLIT, $0-48
	ARGS(low4, last4)
	MOVQ         v+32(FP), AX
	VMOVQ        AX, X4
	VPBROADCASTD X4, Y4

loop:
	VMOVDQU (SI), Y0
	ZIGZAG4
	SUM4
	VMOVDQU Y2, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DI
	DECQ    CX
	JNZ     loop
	VMOVQ   X4, AX
	MOVQ    AX, ret+40(FP)
	VZEROUPPER
	RET

// func sumZigzagAbove32(dst, src, above *byte, n int, v uint64) uint64
TEXT ·sumZigzagAbove32(SB), NOSPLIT, $0-48
	ARGS(low4, last4)
	MOVQ         v+32(FP), AX
	VMOVQ        AX, X4
	VPBROADCASTD X4, Y4

loop:
	VMOVDQU (SI), Y0
	ZIGZAG4
	SUM4
	VPADDD  (DX), Y2, Y2
	VMOVDQU Y2, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DI
	ADDQ    $32, DX
	DECQ    CX
	JNZ     loop
	VMOVQ   X4, AX
	MOVQ    AX, ret+40(FP)
	VZEROUPPER
	RET

// func zigzag32(dst, src, above *byte, n int, v uint64) uint64
TEXT ·zigzag32(SB), NOSPLIT, $0-48
	ARGS(low4, last4)

loop:
	VMOVDQU (SI), Y0
	ZIGZAG4
	VMOVDQU Y0, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DI
	DECQ    CX
	JNZ     loop
	MOVQ    $0, ret+40(FP)
	VZEROUPPER
	RET

// func add8(dst, src, above *byte, n int, v uint64) uint64
TEXT ·add8(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ above+16(FP), DX
	MOVQ n+24(FP), CX

loop:
	VMOVDQU (SI), Y0
	VPADDB  (DX), Y0, Y0
	VMOVDQU Y0, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DX
	ADDQ    $32, DI
	DECQ    CX
	JNZ     loop
	MOVQ    $0, ret+40(FP)
	VZEROUPPER
	RET

// func add16(dst, src, above *byte, n int, v uint64) uint64
TEXT ·add16(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ above+16(FP), DX
	MOVQ n+24(FP), CX

loop:
	VMOVDQU (SI), Y0
	VPADDW  (DX), Y0, Y0
	VMOVDQU Y0, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DX
	ADDQ    $32, DI
	DECQ    CX
	JNZ     loop
	MOVQ    $0, ret+40(FP)
	VZEROUPPER
	RET

// func add32(dst, src, above *byte, n int, v uint64) uint64
TEXT ·add32(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ above+16(FP), DX
	MOVQ n+24(FP), CX

loop:
	VMOVDQU (SI), Y0
	VPADDD  (DX), Y0, Y0
	VMOVDQU Y0, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DX
	ADDQ    $32, DI
	DECQ    CX
	JNZ     loop
	MOVQ    $0, ret+40(FP)
	VZEROUPPER
	RET

// func rows8(first *byte, pitch, pairs, n int)
TEXT ·rows8(SB), NOSPLIT, $0-32
	ROWS(IN1, VPADDB, last1)

// func rows16(first *byte, pitch, pairs, n int)
TEXT ·rows16(SB), NOSPLIT, $0-32
	ROWS(IN2, VPADDW, last2)

// func rows32(first *byte, pitch, pairs, n int)
TEXT ·rows32(SB), NOSPLIT, $0-32
	ROWS(IN4, VPADDD, last4)
