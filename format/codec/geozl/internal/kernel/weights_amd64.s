//go:build amd64 && !purego && !twins

#include "textflag.h"

#define LOADS \
	MOVQ s+0(FP), AX           \
	MOVQ 0(AX), DI             \
	MOVQ 8(AX), SI             \
	MOVQ 16(AX), R8            \
	MOVQ 24(AX), R9            \
	MOVQ 32(AX), R10           \
	MOVQ 40(AX), R11           \
	MOVQ 48(AX), CX            \
	VPBROADCASTD 56(AX), Y8    \
	VPBROADCASTD 60(AX), Y9    \
	VPBROADCASTD 64(AX), Y10   \
	VPBROADCASTD 68(AX), Y11   \
	VPBROADCASTD 72(AX), Y12   \
	VMOVQ 80(AX), X13

// EIGHT puts eight weighted sums into out.
#define EIGHT(load, at, out) \
	load at(R9), out           \
	VPMULLD Y8, out, out       \
	load at(R8), Y4            \
	VPMULLD Y9, Y4, Y4         \
	VPADDD Y12, out, out       \
	load at(R10), Y5           \
	VPMULLD Y10, Y5, Y5        \
	VPADDD Y4, out, out        \
	load at(R11), Y6           \
	VPMULLD Y11, Y6, Y6        \
	VPADDD Y5, out, out        \
	VPADDD Y6, out, out        \
	VPSRAD X13, out, out

// func weighted16(s *weightState)
TEXT ·weighted16(SB), NOSPLIT, $0-8
	LOADS
	VPCMPEQD Y14, Y14, Y14
	VPSRLD $16, Y14, Y14

words:
	EIGHT(VPMOVZXWD, 0, Y0)
	EIGHT(VPMOVZXWD, 16, Y1)
	VPAND Y14, Y0, Y0
	VPAND Y14, Y1, Y1
	VPACKUSDW Y1, Y0, Y0
	VPERMQ $0xd8, Y0, Y0
	VPADDW (SI), Y0, Y0
	VMOVDQU Y0, (DI)
	ADDQ $32, DI
	ADDQ $32, SI
	ADDQ $32, R8
	ADDQ $32, R9
	ADDQ $32, R10
	ADDQ $32, R11
	DECQ CX
	JNZ  words
	VZEROUPPER
	RET

// func weighted8(s *weightState)
TEXT ·weighted8(SB), NOSPLIT, $0-8
	LOADS
	VPCMPEQD Y14, Y14, Y14
	VPSRLD $24, Y14, Y14

bytes:
	EIGHT(VPMOVZXBD, 0, Y0)
	EIGHT(VPMOVZXBD, 8, Y1)
	VPAND Y14, Y0, Y0
	VPAND Y14, Y1, Y1
	VPACKUSDW Y1, Y0, Y0
	VPERMQ $0xd8, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPACKUSWB X1, X0, X0
	VPADDB (SI), X0, X0
	VMOVDQU X0, (DI)
	ADDQ $16, DI
	ADDQ $16, SI
	ADDQ $16, R8
	ADDQ $16, R9
	ADDQ $16, R10
	ADDQ $16, R11
	DECQ CX
	JNZ  bytes
	VZEROUPPER
	RET
