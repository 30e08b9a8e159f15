//go:build amd64 && !purego && !twins

#include "textflag.h"

// Fields of run.
#define runSrc     0
#define runAt      8
#define runFloor   16
#define runUsed    24
#define runEntries 32
#define runRep     56
#define runDst     80
#define runOut     88
#define runOutSafe 96
#define runLits    104
#define runLit     112
#define runLitSafe 120
#define runWindow  128
#define runLeft    136
#define runOld     144
#define runNext    168
#define runTables  192

// The frame: limits as addresses, and what has no register.
#define floor   0(SP)
#define dst     8(SP)
#define outSafe 16(SP)
#define litSafe 24(SP)
#define window  32(SP)
#define left    40(SP)
#define rep1    48(SP)
#define rep2    56(SP)
#define lits    64(SP)
#define match   72(SP)
#define offset  80(SP)

// STORE puts the sequence that was decoded last into a place of the run at AX. It overwrites DX.
#define STORE(place) \
	MOVQ lits, DX             \
	MOVQ DX, (place+0)(AX)    \
	MOVQ match, DX            \
	MOVQ DX, (place+8)(AX)    \
	MOVQ offset, DX           \
	MOVQ DX, (place+16)(AX)

// func sequences(r *run, p *[16]pattern) int
//
// A sequence is executed after the next one was decoded. What decides the jumps of the one is then known, and a jump
// that was predicted wrongly costs little, because the other goes on meanwhile: from its entries to those of the next
// it waits for two loads of 5 cycles and 6 instructions of one.
//
//	BX  the word of the stream          R9   tables
//	CX  its bits that are used          R10  where the next byte goes
//	SI, R8, DI  entries of literal      R11  next literal
//	    lengths, offsets, matches       R12  last offset
TEXT ·sequences(SB), 0, $88-24
	MOVQ r+0(FP), AX
	MOVQ runSrc(AX), DX
	MOVQ runFloor(AX), CX
	ADDQ DX, CX
	MOVQ CX, floor
	MOVQ runAt(AX), BX
	ADDQ DX, BX
	MOVQ runDst(AX), DX
	MOVQ DX, dst
	MOVQ runOutSafe(AX), CX
	ADDQ DX, CX
	MOVQ CX, outSafe
	MOVQ runOut(AX), R10
	ADDQ DX, R10
	MOVQ runLits(AX), DX
	MOVQ runLitSafe(AX), CX
	ADDQ DX, CX
	MOVQ CX, litSafe
	MOVQ runLit(AX), R11
	ADDQ DX, R11
	MOVQ runWindow(AX), CX
	MOVQ CX, window
	MOVQ runLeft(AX), CX
	DECQ CX
	MOVQ CX, left
	MOVQ (runRep+0)(AX), R12
	MOVQ (runRep+8)(AX), CX
	MOVQ CX, rep1
	MOVQ (runRep+16)(AX), CX
	MOVQ CX, rep2
	MOVQ (runOld+0)(AX), CX
	MOVQ CX, lits
	MOVQ (runOld+8)(AX), CX
	MOVQ CX, match
	MOVQ (runOld+16)(AX), CX
	MOVQ CX, offset
	MOVQ (runEntries+0)(AX), SI
	MOVQ (runEntries+8)(AX), R8
	MOVQ (runEntries+16)(AX), DI
	MOVQ runTables(AX), R9
	MOVQ runUsed(AX), CX
	PCALIGN $32

decode:
	// The bits of the sequence to the lowest places of DX.
	MOVQ    (BX), DX
	LEAQ    (SI)(DI*1), AX
	ADDQ    R8, AX
	MOVBLZX AH, AX
	SHLXQ   CX, DX, DX
	SHRXQ   AX, DX, DX
	NEGB    AX
	CMPL    AX, $57
	JA      notDecoded
	ADDL    AX, CX
	MOVL    CX, R13
	SHRL    $3, R13
	ANDL    $7, CX
	SUBQ    R13, BX
	CMPQ    BX, floor
	JB      corrupt

	// The next states.
	RORXQ $32, R8, BP
	MOVL  R8, R13
	SHRL  $16, R13
	BZHIQ R8, DX, AX
	SHRXQ R8, DX, DX
	ADDL  AX, R13
	MOVQ  4096(R9)(R13*8), R8
	RORXQ $32, DI, R14
	MOVL  DI, R13
	SHRL  $16, R13
	BZHIQ DI, DX, AX
	SHRXQ DI, DX, DX
	ADDL  AX, R13
	MOVQ  8192(R9)(R13*8), DI
	RORXQ $32, SI, R15
	MOVL  SI, R13
	SHRL  $16, R13
	BZHIQ SI, DX, AX
	SHRXQ SI, DX, DX
	ADDL  AX, R13
	MOVQ  (R9)(R13*8), SI

	// The values: literals in R15, the length of the match in R14, the offset in R12.
	BZHIQ R15, DX, AX
	SHRXQ R15, DX, DX
	SHRL  $8, R15
	ADDQ  AX, R15
	BZHIQ R14, DX, AX
	SHRXQ R14, DX, DX
	SHRL  $8, R14
	ADDQ  AX, R14
	BZHIQ BP, DX, AX
	BTSQ  BP, AX
	CMPB  BP, $1
	JBE   repeated
	MOVQ  rep1, DX
	MOVQ  R12, rep1
	MOVQ  DX, rep2
	LEAQ  -3(AX), R12

decoded:
	// The sequence before takes turns with this one.
	MOVQ lits, AX
	MOVQ match, DX
	MOVQ offset, R13
	MOVQ R15, lits
	MOVQ R14, match
	MOVQ R12, offset

	// Is there room? Does the match begin within what is written?
	LEAQ (R10)(AX*1), R14
	LEAQ (R11)(AX*1), R15
	LEAQ (R14)(DX*1), BP
	CMPQ R15, litSafe
	JGT  notExecuted
	CMPQ BP, outSafe
	JGT  notExecuted
	CMPQ R13, window
	JA   notExecuted
	MOVQ R14, BP
	SUBQ R13, BP
	JCS  notExecuted
	CMPQ BP, dst
	JB   notExecuted

	VMOVDQU (R11), Y0
	VMOVDQU Y0, (R10)
	CMPQ    AX, $32
	JA      moreLits

copied:
	MOVQ    R15, R11
	LEAQ    (R14)(DX*1), R10
	CMPQ    R13, $16
	JB      short
	VMOVDQU (BP), X0
	VMOVDQU X0, (R14)
	VMOVDQU 16(BP), X1
	VMOVDQU X1, 16(R14)
	CMPQ    DX, $32
	JA      moreMatch

executed:
	DECQ left
	JNZ  decode
	MOVQ r+0(FP), AX
	STORE(runNext)
	MOVQ $0, ret+16(FP)
	MOVQ $1, DX
	JMP  end

moreLits:
	ADDQ    $32, R10
	ADDQ    $32, R11
	VMOVDQU (R11), Y0
	VMOVDQU Y0, (R10)
	LEAQ    32(R10), AX
	CMPQ    AX, R14
	JB      moreLits
	JMP     copied

moreMatch:
	ADDQ    $32, BP
	ADDQ    $32, R14
	VMOVDQU (BP), X0
	VMOVDQU X0, (R14)
	VMOVDQU 16(BP), X1
	VMOVDQU X1, 16(R14)
	LEAQ    32(R14), AX
	CMPQ    AX, R10
	JB      moreMatch
	JMP     executed

short:
	SHLQ    $5, R13
	MOVQ    p+8(FP), AX
	VMOVDQU (BP), X0
	VPSHUFB (AX)(R13*1), X0, X0
	MOVQ    16(AX)(R13*1), AX

row:
	VMOVDQU X0, (R14)
	VMOVDQU X0, (R14)(AX*1)
	LEAQ    (R14)(AX*2), R14
	CMPQ    R14, R10
	JB      row
	JMP     executed

	// One of the last three offsets, or the last one less 1.
repeated:
	CMPQ    R15, $1
	ADCQ    $-1, AX
	MOVQ    rep1, DX
	MOVQ    rep2, R13
	LEAQ    -1(R12), BP
	CMPQ    AX, $2
	CMOVQEQ R13, BP
	CMOVQCS DX, BP
	CMOVQCC DX, R13
	TESTQ   AX, AX
	CMOVQEQ R12, BP
	CMOVQNE R12, DX
	MOVQ    DX, rep1
	MOVQ    R13, rep2
	MOVQ    BP, R12
	TESTQ   BP, BP
	JNZ     decoded

corrupt:
	VZEROUPPER
	MOVQ $3, ret+16(FP)
	RET

notDecoded:
	MOVQ r+0(FP), AX
	STORE(runOld)
	MOVQ $2, ret+16(FP)
	MOVQ left, DX
	INCQ DX
	JMP  end

notExecuted:
	MOVQ r+0(FP), R14
	MOVQ AX, (runOld+0)(R14)
	MOVQ DX, (runOld+8)(R14)
	MOVQ R13, (runOld+16)(R14)
	MOVQ R14, AX
	STORE(runNext)
	MOVQ $1, ret+16(FP)
	MOVQ left, DX

end:
	VZEROUPPER
	MOVQ DX, runLeft(AX)
	MOVQ CX, runUsed(AX)
	MOVQ SI, (runEntries+0)(AX)
	MOVQ R8, (runEntries+8)(AX)
	MOVQ DI, (runEntries+16)(AX)
	MOVQ R12, (runRep+0)(AX)
	MOVQ rep1, DX
	MOVQ DX, (runRep+8)(AX)
	MOVQ rep2, DX
	MOVQ DX, (runRep+16)(AX)
	MOVQ runSrc(AX), DX
	SUBQ DX, BX
	MOVQ BX, runAt(AX)
	MOVQ runDst(AX), DX
	SUBQ DX, R10
	MOVQ R10, runOut(AX)
	MOVQ runLits(AX), DX
	SUBQ DX, R11
	MOVQ R11, runLit(AX)
	RET
