//go:build amd64 && !purego && !twins

#include "textflag.h"

// MERGE spreads the next bytes of R8 over the lanes where AX has zeros, and those of R9 over the
// others, and moves both on.
#define MERGE \
	KMOVQ     AX, K1          \
	KNOTQ     K1, K2          \
	VMOVDQU64 (R8), Z0        \
	VMOVDQU64 (R9), Z1        \
	VPEXPANDB.Z Z0, K2, Z2    \
	VPEXPANDB Z1, K1, Z2      \
	POPCNTQ   AX, BX          \
	ADDQ      BX, R9          \
	SUBQ      BX, R8

// func pivcoMergeWords(w *pivcoWords, zeros, ones *byte)
TEXT ·pivcoMergeWords(SB), NOSPLIT, $0-24
	MOVQ w+0(FP), R10
	MOVQ zeros+8(FP), R8
	MOVQ ones+16(FP), R9
	MOVQ 0(R10), DI
	MOVQ 8(R10), SI
	MOVQ 16(R10), CX
	TESTQ CX, CX
	JZ   mergeLast

mergeWord:
	MOVQ (SI), AX
	MERGE
	ADDQ $64, R8
	VMOVDQU64 Z2, (DI)
	ADDQ $8, SI
	ADDQ $64, DI
	DECQ CX
	JNZ  mergeWord

mergeLast:
	MOVQ 32(R10), DX
	TESTQ DX, DX
	JZ   mergeDone
	MOVQ 24(R10), AX
	MERGE
	KMOVQ DX, K3
	VMOVDQU8 Z2, K3, (DI)

mergeDone:
	VZEROUPPER
	RET

// FILL spreads the next bytes of R8 over the lanes where AX has ones, puts Z3 into the others, and
// moves on.
#define FILL \
	KMOVQ     AX, K1          \
	VMOVDQU64 (R8), Z0        \
	VMOVDQA64 Z3, Z2          \
	VPEXPANDB Z0, K1, Z2      \
	POPCNTQ   AX, BX          \
	ADDQ      BX, R8

// func pivcoFillWords(w *pivcoWords, in *byte, v byte, invert uint64)
TEXT ·pivcoFillWords(SB), NOSPLIT, $0-32
	MOVQ w+0(FP), R10
	MOVQ in+8(FP), R8
	MOVBLZX v+16(FP), AX
	VPBROADCASTB AX, Z3
	MOVQ invert+24(FP), R9
	MOVQ 0(R10), DI
	MOVQ 8(R10), SI
	MOVQ 16(R10), CX
	TESTQ CX, CX
	JZ   fillLast

fillWord:
	MOVQ (SI), AX
	XORQ R9, AX
	FILL
	VMOVDQU64 Z2, (DI)
	ADDQ $8, SI
	ADDQ $64, DI
	DECQ CX
	JNZ  fillWord

fillLast:
	MOVQ 32(R10), DX
	TESTQ DX, DX
	JZ   fillDone
	MOVQ 24(R10), AX
	XORQ R9, AX
	FILL
	KMOVQ DX, K3
	VMOVDQU8 Z2, K3, (DI)

fillDone:
	VZEROUPPER
	RET

// FLAT looks up 64 numbers whose bytes are in Z0.
#define FLAT \
	VPERMB Z0, Z4, Z1          \
	VPMULTISHIFTQB Z1, Z5, Z2  \
	VPANDQ Z6, Z2, Z2          \
	VPERMI2B Z8, Z7, Z2

// func pivcoFlatWords(w *pivcoWords, c *flatControl, symbols *[128]byte, step int, load, tail uint64)
TEXT ·pivcoFlatWords(SB), NOSPLIT, $0-48
	MOVQ w+0(FP), R10
	MOVQ c+8(FP), R8
	MOVQ symbols+16(FP), R9
	MOVQ step+24(FP), BX
	MOVQ load+32(FP), AX
	KMOVQ AX, K1
	VMOVDQU64 0(R8), Z4
	VMOVDQU64 64(R8), Z5
	VPBROADCASTQ 128(R8), Z6
	VMOVDQU64 0(R9), Z7
	VMOVDQU64 64(R9), Z8
	MOVQ 0(R10), DI
	MOVQ 8(R10), SI
	MOVQ 16(R10), CX
	TESTQ CX, CX
	JZ   flatLast

flatGroup:
	VMOVDQU8.Z (SI), K1, Z0
	FLAT
	VMOVDQU64 Z2, (DI)
	ADDQ BX, SI
	ADDQ $64, DI
	DECQ CX
	JNZ  flatGroup

flatLast:
	MOVQ 32(R10), DX
	TESTQ DX, DX
	JZ   flatDone
	MOVQ tail+40(FP), AX
	KMOVQ AX, K2
	VMOVDQU8.Z (SI), K2, Z0
	FLAT
	KMOVQ DX, K3
	VMOVDQU8 Z2, K3, (DI)

flatDone:
	VZEROUPPER
	RET
