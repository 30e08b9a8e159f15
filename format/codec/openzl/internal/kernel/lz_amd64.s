//go:build amd64 && !purego && !twins

#include "textflag.h"

// Offsets in fieldState.
#define S_DST 0
#define S_LITS 8
#define S_TOKENS 16
#define S_OFFSETS 24
#define S_MORELIT 32
#define S_MOREMATCH 40
#define S_AT 48
#define S_LIT 56
#define S_TOKEN 64
#define S_OFFSET 72
#define S_ML 80
#define S_MM 88
#define S_DSTSAFE 96
#define S_LITSAFE 104
#define S_TOKENEND 112
#define S_OFFSETEND 120
#define S_MLEND 128
#define S_MMEND 136
#define S_R0 144
#define S_R1 152
#define S_R2 160
#define S_SHIFT 168
#define S_LEAST 176

// func fieldSequences(f *fieldState)
//
// DI and SI are where output and literals stand, R8 tokens, R9 offsets; R12, R13 and BX the last
// offsets; AX the token, DX its literals and R14 its match in bytes, R15 its offset; BP is f. What
// is not known to be sound leaves the loop before anything of its sequence is done.
TEXT ·fieldSequences(SB), NOSPLIT, $48-8
	MOVQ f+0(FP), BP
	MOVQ S_DST(BP), DI
	MOVQ S_DSTSAFE(BP), AX
	ADDQ DI, AX
	MOVQ AX, dstSafe-8(SP)
	ADDQ S_AT(BP), DI
	MOVQ S_LITS(BP), SI
	MOVQ S_LITSAFE(BP), AX
	ADDQ SI, AX
	MOVQ AX, litSafe-16(SP)
	ADDQ S_LIT(BP), SI
	MOVQ S_TOKENS(BP), R8
	MOVQ S_TOKENEND(BP), AX
	ADDQ R8, AX
	MOVQ AX, tokenEnd-24(SP)
	ADDQ S_TOKEN(BP), R8
	MOVQ S_OFFSETS(BP), R9
	MOVQ S_OFFSETEND(BP), AX
	ADDQ R9, AX
	MOVQ AX, offsetEnd-32(SP)
	ADDQ S_OFFSET(BP), R9
	MOVQ S_MORELIT(BP), R10
	MOVQ S_R0(BP), R12
	MOVQ S_R1(BP), R13
	MOVQ S_R2(BP), BX
	MOVQ S_SHIFT(BP), CX

next:
	CMPQ    R8, tokenEnd-24(SP)
	JAE     leave
	MOVWLZX (R8), AX
	MOVL    AX, DX
	SHRL    $2, DX
	ANDL    $15, DX
	MOVL    AX, R14
	SHRL    $6, R14
	ANDL    $15, R14
	MOVL    AX, R11
	ANDL    $3, R11
	CMPL    R11, $3
	JNE     old
	CMPQ    R9, offsetEnd-32(SP)
	JAE     leave
	MOVL    (R9), R15
	SHLXQ   CX, R15, R15

lengths:
	CMPL DX, $15
	JEQ  moreLiterals

literalsKnown:
	CMPL R14, $15
	JEQ  moreMatch

matchKnown:
	ADDQ  S_LEAST(BP), R14
	SHLXQ CX, DX, DX
	SHLXQ CX, R14, R14
	LEAQ  (SI)(DX*1), R11
	CMPQ  R11, litSafe-16(SP)
	JA    leave
	LEAQ  (DI)(DX*1), R11
	ADDQ  R14, R11
	CMPQ  R11, dstSafe-8(SP)
	JA    leave
	LEAQ  (DI)(DX*1), R11
	SUBQ  S_DST(BP), R11
	CMPQ  R15, R11
	JA    leave
	CMPQ  R15, $16
	JB    leave

	MOVOU (SI), X0
	MOVOU 16(SI), X1
	MOVOU X0, (DI)
	MOVOU X1, 16(DI)
	CMPQ  DX, $32
	JA    longLiterals

literalsDone:
	ADDQ  DX, SI
	ADDQ  DX, DI
	MOVQ  DI, R11
	SUBQ  R15, R11
	MOVOU (R11), X0
	MOVOU X0, (DI)
	CMPQ  R14, $16
	JA    longMatch

matchDone:
	ADDQ R14, DI
	ADDQ $2, R8

	// The last offsets, and which numbers were used.
	MOVL    AX, R11
	ANDL    $3, R11
	CMPL    R11, $1
	CMOVQHI R13, BX
	CMOVQCC R12, R13
	MOVQ    R15, R12
	CMPL    R11, $3
	JNE     used
	ADDQ    $4, R9

used:
	MOVL AX, R11
	ANDL $0x3c, R11
	CMPL R11, $0x3c
	JNE  usedMatch
	ADDQ $4, S_ML(BP)

usedMatch:
	ANDL $0x3c0, AX
	CMPL AX, $0x3c0
	JNE  next
	ADDQ $4, S_MM(BP)
	JMP  next

old:
	MOVQ    R12, R15
	CMPL    R11, $1
	CMOVQEQ R13, R15
	CMOVQHI BX, R15
	JMP     lengths

moreLiterals:
	MOVQ S_ML(BP), R11
	CMPQ R11, S_MLEND(BP)
	JGE  leave
	MOVL (R10)(R11*1), R11
	ADDQ R11, DX
	JMP  literalsKnown

moreMatch:
	MOVQ S_MM(BP), R11
	CMPQ R11, S_MMEND(BP)
	JGE  leave
	ADDQ S_MOREMATCH(BP), R11
	MOVL (R11), R11
	ADDQ R11, R14
	JMP  matchKnown

longLiterals:
	MOVL $32, R11

literals32:
	MOVOU (SI)(R11*1), X0
	MOVOU 16(SI)(R11*1), X1
	MOVOU X0, (DI)(R11*1)
	MOVOU X1, 16(DI)(R11*1)
	ADDQ  $32, R11
	CMPQ  R11, DX
	JB    literals32
	JMP   literalsDone

longMatch:
	// DX is not needed any more; R11 is where the match comes from, 16 bytes or more before DI.
	MOVL $16, DX

match16:
	MOVOU (R11)(DX*1), X0
	MOVOU X0, (DI)(DX*1)
	ADDQ  $16, DX
	CMPQ  DX, R14
	JB    match16
	JMP   matchDone

leave:
	SUBQ S_DST(BP), DI
	MOVQ DI, S_AT(BP)
	SUBQ S_LITS(BP), SI
	MOVQ SI, S_LIT(BP)
	SUBQ S_TOKENS(BP), R8
	MOVQ R8, S_TOKEN(BP)
	SUBQ S_OFFSETS(BP), R9
	MOVQ R9, S_OFFSET(BP)
	MOVQ R12, S_R0(BP)
	MOVQ R13, S_R1(BP)
	MOVQ BX, S_R2(BP)
	RET

// func quantizePairs(q *Quantizer, dst, codes *byte, n int, extra *byte, limit, pos int) (done, newPos int)
TEXT ·quantizePairs(SB), NOSPLIT, $8-72
	MOVQ q+0(FP), R13
	LEAQ 1024(R13), R12    // bits
	MOVQ dst+8(FP), DI
	MOVQ codes+16(FP), SI
	MOVQ n+24(FP), R8
	LEAQ -2(SI)(R8*1), R8  // the last pair
	MOVQ extra+32(FP), R9
	MOVQ limit+40(FP), R11
	MOVQ pos+48(FP), R10

pair:
	CMPQ    SI, R8
	JA      done
	MOVQ    R10, R15
	SHRQ    $3, R15
	CMPQ    R15, R11
	JGT     done
	MOVBLZX (SI), AX
	MOVBLZX 1(SI), BX
	MOVBLZX (R12)(AX*1), CX
	MOVBLZX (R12)(BX*1), DX
	LEAL    (CX)(DX*1), BP
	CMPL    BP, $57
	JA      done
	MOVQ    (R9)(R15*1), R14
	MOVL    R10, R15
	ANDL    $7, R15
	SHRXQ   R15, R14, R14
	BZHIQ   CX, R14, R15
	ADDL    (R13)(AX*4), R15
	MOVL    R15, (DI)
	SHRXQ   CX, R14, R14
	BZHIQ   DX, R14, R15
	ADDL    (R13)(BX*4), R15
	MOVL    R15, 4(DI)
	ADDQ    BP, R10
	ADDQ    $2, SI
	ADDQ    $8, DI
	JMP     pair

done:
	SUBQ codes+16(FP), SI
	MOVQ SI, done+56(FP)
	MOVQ R10, newPos+64(FP)
	RET
