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

// MERGE8 spreads the next bytes of R8 to the places where bits of byte k of SI are 0, and those of R9 to the others, and
// moves R9 on. R8 moves on by the bytes written, which the offset 8*k stands for, less those of R9. POPCNT writes the
// register that it reads, since some processors wait for the last value of the register written.
#define MERGE8(k) \
	MOVBLZX k(SI), AX          \
	VMOVQ   (8*k)(R8), X0      \
	VMOVHPS (R9), X0, X0       \
	VMOVQ   (R11)(AX*8), X1    \
	VPSHUFB X1, X0, X0         \
	POPCNTL AX, AX             \
	VMOVQ   X0, (8*k)(DI)      \
	ADDQ    AX, R9             \
	SUBQ    AX, R8

// func pivcoMergeBytes(out, zeros, ones, m *byte, n int, table *[256]uint64) int
TEXT ·pivcoMergeBytes(SB), NOSPLIT, $0-56
	MOVQ out+0(FP), DI
	MOVQ zeros+8(FP), R8
	MOVQ ones+16(FP), R9
	MOVQ m+24(FP), SI
	MOVQ n+32(FP), CX
	MOVQ table+40(FP), R11
	SUBQ $4, CX
	JLT  mergeBytesLast

mergeBytes:
	MERGE8(0)
	MERGE8(1)
	MERGE8(2)
	MERGE8(3)
	ADDQ $4, SI
	ADDQ $32, DI
	ADDQ $32, R8
	SUBQ $4, CX
	JGE  mergeBytes

mergeBytesLast:
	ADDQ $4, CX
	JZ   mergeBytesDone

mergeByte:
	MERGE8(0)
	INCQ SI
	ADDQ $8, DI
	ADDQ $8, R8
	DECQ CX
	JNZ  mergeByte

mergeBytesDone:
	SUBQ ones+16(FP), R9
	MOVQ R9, ret+48(FP)
	VZEROUPPER
	RET

// FILL8 spreads the next bytes of R8 to the places where bits of byte k of SI differ from R9, puts v to the others, and
// moves on.
#define FILL8(k) \
	MOVBLZX k(SI), AX          \
	XORL    R9, AX             \
	VMOVHPS (R8), X2, X0       \
	VMOVQ   (R11)(AX*8), X1    \
	VPSHUFB X1, X0, X0         \
	POPCNTL AX, AX             \
	VMOVQ   X0, (8*k)(DI)      \
	ADDQ    AX, R8

// func pivcoFillBytes(out, in, m *byte, n int, table *[256]uint64, v, invert uint64) int
TEXT ·pivcoFillBytes(SB), NOSPLIT, $0-64
	MOVQ out+0(FP), DI
	MOVQ in+8(FP), R8
	MOVQ m+16(FP), SI
	MOVQ n+24(FP), CX
	MOVQ table+32(FP), R11
	VMOVQ v+40(FP), X2
	MOVBLZX invert+48(FP), R9
	SUBQ $4, CX
	JLT  fillBytesLast

fillBytes:
	FILL8(0)
	FILL8(1)
	FILL8(2)
	FILL8(3)
	ADDQ $4, SI
	ADDQ $32, DI
	SUBQ $4, CX
	JGE  fillBytes

fillBytesLast:
	ADDQ $4, CX
	JZ   fillBytesDone

fillByte:
	FILL8(0)
	INCQ SI
	ADDQ $8, DI
	DECQ CX
	JNZ  fillByte

fillBytesDone:
	SUBQ in+8(FP), R8
	MOVQ R8, ret+56(FP)
	VZEROUPPER
	RET

// CUT cuts 32 numbers from the 4*BX bytes of SI, moves on, and looks up those below 16 in Y3. Each lane of Y0 has 8
// numbers, and Y1 has those between.
#define CUT \
	VPBROADCASTQ (SI), Y0         \
	VPBROADCASTQ (SI)(BX*2), Y1   \
	VPBLENDD $0xF0, Y1, Y0, Y0    \
	VPBROADCASTQ (SI)(BX*1), Y1   \
	VPBROADCASTQ (SI)(DX*1), Y2   \
	VPBLENDD $0xF0, Y2, Y1, Y1    \
	VPSHUFB  Y4, Y0, Y0           \
	VPSHUFB  Y4, Y1, Y1           \
	VPMULLW  Y5, Y0, Y0           \
	VPMULLW  Y5, Y1, Y1           \
	VPSRLW   X6, Y0, Y0           \
	VPSRLW   X6, Y1, Y1           \
	VPACKUSWB Y1, Y0, Y0          \
	LEAQ     (SI)(BX*4), SI       \
	VPSHUFB  Y0, Y8, Y3

// NEXT16 makes the lookup that of 16 symbols higher where numbers are that high. Others become negative, for which
// VPSHUFB gives 0.
#define NEXT16(table) \
	VPSUBB  Y7, Y0, Y0     \
	VPSHUFB Y0, table, Y2  \
	VPXOR   Y2, Y3, Y3

#define PUT \
	VMOVDQU Y3, (DI)  \
	ADDQ    $32, DI   \
	DECQ    CX

// func pivcoFlatGroups(out, m *byte, n, depth int, c *flatShuffle, tables *[128]byte)
TEXT ·pivcoFlatGroups(SB), NOSPLIT, $0-48
	MOVQ out+0(FP), DI
	MOVQ m+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ depth+24(FP), BX
	MOVQ c+32(FP), R8
	MOVQ tables+40(FP), R9
	LEAQ (BX)(BX*2), DX
	VBROADCASTI128 0(R8), Y4
	VBROADCASTI128 16(R8), Y5
	MOVQ $16, AX
	VMOVQ AX, X7
	VPBROADCASTB X7, Y7
	SUBQ BX, AX
	VMOVQ AX, X6
	VBROADCASTI128 0(R9), Y8
	VBROADCASTI128 16(R9), Y9
	VBROADCASTI128 32(R9), Y10
	VBROADCASTI128 48(R9), Y11
	VBROADCASTI128 64(R9), Y12
	VBROADCASTI128 80(R9), Y13
	VBROADCASTI128 96(R9), Y14
	VBROADCASTI128 112(R9), Y15
	CMPQ BX, $5
	JLT  flat16
	JEQ  flat32
	CMPQ BX, $6
	JEQ  flat64

flat128:
	CUT
	NEXT16(Y9)
	NEXT16(Y10)
	NEXT16(Y11)
	NEXT16(Y12)
	NEXT16(Y13)
	NEXT16(Y14)
	NEXT16(Y15)
	PUT
	JNZ  flat128
	VZEROUPPER
	RET

flat16:
	CUT
	PUT
	JNZ  flat16
	VZEROUPPER
	RET

flat32:
	CUT
	NEXT16(Y9)
	PUT
	JNZ  flat32
	VZEROUPPER
	RET

flat64:
	CUT
	NEXT16(Y9)
	NEXT16(Y10)
	NEXT16(Y11)
	PUT
	JNZ  flat64
	VZEROUPPER
	RET
