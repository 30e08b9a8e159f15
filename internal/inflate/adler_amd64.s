//go:build !purego && !twins

#include "textflag.h"

DATA weights<>+0(SB)/8, $0x191a1b1c1d1e1f20
DATA weights<>+8(SB)/8, $0x1112131415161718
DATA weights<>+16(SB)/8, $0x090a0b0c0d0e0f10
DATA weights<>+24(SB)/8, $0x0102030405060708
GLOBL weights<>(SB), RODATA|NOPTR, $32

DATA ones<>+0(SB)/4, $0x00010001
GLOBL ones<>(SB), RODATA|NOPTR, $4

// TOTAL sums the eight numbers of y, whose lower half is x, into the lowest of x. It needs X7.
#define TOTAL(y, x) \
	VEXTRACTI128 $1, y, X7      \
	VPADDD       X7, x, x       \
	VPSHUFD      $0x4e, x, X7   \
	VPADDD       X7, x, x       \
	VPSHUFD      $0xb1, x, X7   \
	VPADDD       X7, x, x

// func adlerAVX2(p *byte, n int, a, b uint32) (a2, b2 uint32)
TEXT ·adlerAVX2(SB), NOSPLIT, $0-32
	MOVQ         p+0(FP), SI
	MOVQ         n+8(FP), CX
	MOVL         a+16(FP), AX
	MOVL         b+20(FP), DX
	VMOVD        AX, X0
	VMOVD        DX, X1
	VPXOR        Y2, Y2, Y2 // of the sums of bytes, before each 32 of them
	VPXOR        Y3, Y3, Y3
	VMOVDQU      weights<>(SB), Y4
	VPBROADCASTD ones<>(SB), Y5

bytes:
	VMOVDQU    (SI), Y6
	VPADDD     Y0, Y2, Y2
	VPSADBW    Y3, Y6, Y7
	VPADDD     Y7, Y0, Y0
	VPMADDUBSW Y4, Y6, Y6
	VPMADDWD   Y5, Y6, Y6
	VPADDD     Y6, Y1, Y1
	ADDQ       $32, SI
	SUBQ       $32, CX
	JNZ        bytes

	// Each of the 32 bytes adds the sum before them once.
	VPSLLD $5, Y2, Y2
	VPADDD Y2, Y1, Y1
	TOTAL(Y0, X0)
	TOTAL(Y1, X1)
	VMOVD X0, AX
	VMOVD X1, DX
	MOVL  AX, a2+24(FP)
	MOVL  DX, b2+28(FP)
	VZEROUPPER
	RET
