//go:build !purego && !twins

#include "go_asm.h"
#include "textflag.h"

// REFILL makes the span long enough. It changes AX.
#define REFILL(past, filled) \
	CMPL    R9, $const_least \
	JCC     filled           \
	SHLL    $8, R9           \
	SHLL    $8, R10          \
	CMPQ    SI, R8           \
	JCC     past             \
	MOVBLZX (SI), AX         \
	ORL     AX, R10          \
past:                     \
	INCQ    SI               \
filled:

// SPLIT decodes a bit by the chance in DI: the flag of carry is set if it is 0. It changes AX and R12.
#define SPLIT \
	MOVL    R9, AX                 \
	SHRL    $const_certainBits, AX \
	IMULL   DI, AX                 \
	SUBL    AX, R9                 \
	MOVL    R10, R12               \
	SUBL    AX, R10                \
	CMOVLCS R12, R10               \
	CMOVLCS AX, R9

// TRAIN changes the chance in DI to what is stored of the new one. AX has all bits set if the bit was 0, and is changed.
#define TRAIN \
	ANDL $~(const_certain-(1<<const_learning)), AX \
	ADDL DI, AX                                    \
	SARL $const_learning, AX                       \
	SUBL AX, DI                                    \
	XORL $const_even, DI

// Registers:
//
//	SI  the next byte of src, R8 the end of it
//	R9  the span, R10 the code
//	BX  the chances, R13 the limit, R11 the number
//	R15 the byte to compare with, DX whether it is compared
//	AX, CX, DI, R12, R14 anything
//
// func numberFast(r *coder, probs *uint16, limit, other, compared uint32) uint32
TEXT ·numberFast(SB), NOSPLIT, $0-36
	MOVQ  r+0(FP), AX
	MOVQ  coder_src(AX), SI
	MOVQ  coder_src+8(AX), R8
	ADDQ  SI, R8              // the end of src
	ADDQ  coder_pos(AX), SI   // the next byte
	MOVL  coder_span(AX), R9
	MOVL  coder_code(AX), R10
	MOVQ  probs+8(FP), BX
	MOVL  limit+16(FP), R13
	MOVL  other+20(FP), R15
	MOVL  compared+24(FP), DX
	MOVL  $1, R11             // the number
	TESTL DX, DX
	JEQ   alone

compare:
	REFILL(past, filled)
	ADDL    R15, R15
	MOVL    R15, CX
	ANDL    DX, CX
	LEAL    (CX)(DX*1), R14
	ADDL    R11, R14
	MOVWLZX (BX)(R14*2), DI
	XORL    $const_even, DI
	SPLIT
	SBBL    AX, AX
	LEAL    1(AX)(R11*2), R11
	XORL    AX, CX
	ANDL    CX, DX
	TRAIN
	MOVW    DI, (BX)(R14*2)
	CMPL    R11, R13
	JCC     done
	TESTL   DX, DX
	JNE     compare

alone:
	MOVWLZX (BX)(R11*2), DI
	XORL    $const_even, DI

	// The chances of the next bit are loaded before this one is known: they are neighbours.
next:
	REFILL(pastNext, filledNext)
	LEAL    (R11)(R11*1), CX
	CMPL    CX, R13
	JCC     last
	MOVL    (BX)(CX*2), DX
	XORL    $(const_even|const_even<<16), DX
	MOVL    DX, R14
	SHRL    $16, R14
	MOVWLZX DX, DX
	SPLIT
	CMOVLCC R14, DX
	SBBL    AX, AX
	LEAL    1(AX)(CX*1), CX
	TRAIN
	MOVW    DI, (BX)(R11*2)
	MOVL    CX, R11
	MOVL    DX, DI
	JMP     next

last:
	SPLIT
	SBBL    AX, AX
	LEAL    1(AX)(CX*1), CX
	TRAIN
	MOVW    DI, (BX)(R11*2)
	MOVL    CX, R11

done:
	MOVQ r+0(FP), AX
	SUBQ coder_src(AX), SI
	MOVQ SI, coder_pos(AX)
	MOVL R9, coder_span(AX)
	MOVL R10, coder_code(AX)
	MOVL R11, ret+32(FP)
	RET
