//go:build amd64 && !purego && !twins

#include "textflag.h"

// REFILL reads the next word of a stream. The number of zeros below the one in b says how many of
// its bits were used: whole bytes move p, the rest is shifted out.
#define REFILL(b, p) \
	TZCNTQ b, CX     \
	MOVQ   CX, AX    \
	SHRQ   $3, AX    \
	SUBQ   AX, p     \
	ANDL   $7, CX    \
	MOVQ   (p), b    \
	ORQ    $1, b     \
	SHLXQ  CX, b, b

// SYMBOL decodes one symbol of a stream. The entry's lower byte is the length of the code.
#define SYMBOL(b, mem) \
	MOVQ    b, AX          \
	SHRQ    $52, AX        \
	MOVWLZX (R8)(AX*2), AX \
	SHLXQ   AX, b, b       \
	MOVB    AH, mem

#define ROUND(k)                 \
	SYMBOL(R9, k(DI))           \
	SYMBOL(R10, k(DI)(SI*1))    \
	SYMBOL(R11, k(DI)(SI*2))    \
	SYMBOL(R12, k(DI)(DX*1))

// func huffmanFour5(t *uint16, s *huffmanState)
TEXT ·huffmanFour5(SB), NOSPLIT, $8-16
	MOVQ t+0(FP), R8
	MOVQ s+8(FP), AX
	MOVQ 0(AX), DI
	MOVQ 8(AX), SI
	LEAQ (SI)(SI*2), DX
	MOVQ 16(AX), R13
	ADDQ 48(AX), R13
	MOVQ 24(AX), R14
	ADDQ 56(AX), R14
	MOVQ 32(AX), R15
	ADDQ 64(AX), R15
	MOVQ 40(AX), BX
	ADDQ 72(AX), BX
	MOVQ 80(AX), R9
	MOVQ 88(AX), R10
	MOVQ 96(AX), R11
	MOVQ 104(AX), R12
	MOVQ 112(AX), BP

rounds:
	REFILL(R9, R13)
	REFILL(R10, R14)
	REFILL(R11, R15)
	REFILL(R12, BX)
	ROUND(0)
	ROUND(1)
	ROUND(2)
	ROUND(3)
	ROUND(4)
	ADDQ $5, DI
	DECQ BP
	JNZ  rounds

	MOVQ s+8(FP), AX
	SUBQ 16(AX), R13
	MOVQ R13, 48(AX)
	SUBQ 24(AX), R14
	MOVQ R14, 56(AX)
	SUBQ 32(AX), R15
	MOVQ R15, 64(AX)
	SUBQ 40(AX), BX
	MOVQ BX, 72(AX)
	MOVQ R9, 80(AX)
	MOVQ R10, 88(AX)
	MOVQ R11, 96(AX)
	MOVQ R12, 104(AX)
	RET

// LOOK decodes the symbols that one look at a stream gives, and moves d behind them. An entry is
// bits and count (8 each), and from bit 32 on the symbols.
#define LOOK(b, d)         \
	MOVQ    b, AX          \
	SHRQ    $53, AX        \
	MOVQ    (R8)(AX*8), AX \
	SHLXQ   AX, b, b       \
	MOVBLZX AH, CX         \
	SHRQ    $32, AX        \
	MOVL    AX, (d)        \
	ADDQ    CX, d

#define LOOKS         \
	LOOK(R9, DI)  \
	LOOK(R10, SI) \
	LOOK(R11, DX) \
	LOOK(R12, BP)

// func huffmanQuads(t *quadTable, s *quadStreams)
TEXT ·huffmanQuads(SB), NOSPLIT, $16-16
	MOVQ t+0(FP), R8
	MOVQ s+8(FP), AX
	MOVQ 0(AX), DI
	ADDQ 128(AX), DI
	MOVQ 8(AX), SI
	ADDQ 136(AX), SI
	MOVQ 16(AX), DX
	ADDQ 144(AX), DX
	MOVQ 24(AX), BP
	ADDQ 152(AX), BP
	MOVQ 32(AX), R13
	ADDQ 64(AX), R13
	MOVQ 40(AX), R14
	ADDQ 72(AX), R14
	MOVQ 48(AX), R15
	ADDQ 80(AX), R15
	MOVQ 56(AX), BX
	ADDQ 88(AX), BX
	MOVQ 96(AX), R9
	MOVQ 104(AX), R10
	MOVQ 112(AX), R11
	MOVQ 120(AX), R12
	MOVQ 160(AX), AX
	MOVQ AX, rounds-8(SP)

looks:
	REFILL(R9, R13)
	REFILL(R10, R14)
	REFILL(R11, R15)
	REFILL(R12, BX)
	LOOKS
	LOOKS
	LOOKS
	LOOKS
	LOOKS
	DECQ rounds-8(SP)
	JNZ  looks

	MOVQ s+8(FP), AX
	SUBQ 0(AX), DI
	MOVQ DI, 128(AX)
	SUBQ 8(AX), SI
	MOVQ SI, 136(AX)
	SUBQ 16(AX), DX
	MOVQ DX, 144(AX)
	SUBQ 24(AX), BP
	MOVQ BP, 152(AX)
	SUBQ 32(AX), R13
	MOVQ R13, 64(AX)
	SUBQ 40(AX), R14
	MOVQ R14, 72(AX)
	SUBQ 48(AX), R15
	MOVQ R15, 80(AX)
	SUBQ 56(AX), BX
	MOVQ BX, 88(AX)
	MOVQ R9, 96(AX)
	MOVQ R10, 104(AX)
	MOVQ R11, 112(AX)
	MOVQ R12, 120(AX)
	RET

// STATE decodes one symbol: x is the state, R9 the next bits, left-aligned, CX how many of these 64
// are left. An entry is base and mask (16 bits each), bits and symbol (8 each).
#define STATE(x, k)                 \
	MOVBLZX 4(R8)(x*8), AX          \
	MOVBLZX 5(R8)(x*8), BX          \
	SUBQ    AX, CX                  \
	MOVB    BX, k(DI)               \
	SHRXQ   CX, R9, BX              \
	MOVWLZX 2(R8)(x*8), AX          \
	MOVWLZX 0(R8)(x*8), x           \
	ANDL    AX, BX                  \
	ADDL    BX, x

// func fseFour(t *fseState, dst *byte, n int, src *byte, pos, over int, s *[4]uint64) (done, newPos, newOver int)
//
// The words that the next bits come from are loaded before it is known how many bits of them a
// round takes: what it waits for is then shifts, not loads.
TEXT ·fseFour(SB), NOSPLIT, $16-80
	MOVQ  t+0(FP), R8
	MOVQ  dst+8(FP), DI
	MOVQ  n+16(FP), AX
	LEAQ  -4(DI)(AX*1), AX
	MOVQ  AX, last-8(SP)    // the last place for four symbols
	MOVQ  src+24(FP), SI
	LEAQ  8(SI), AX
	MOVQ  AX, lowest-16(SP) // the last place to read a word from, and go on
	ADDQ  pos+32(FP), SI
	MOVQ  over+40(FP), R15
	MOVQ  s+48(FP), AX
	MOVQ  0(AX), R10
	MOVQ  8(AX), R11
	MOVQ  16(AX), R12
	MOVQ  24(AX), R13
	MOVQ  (SI), R9
	SHLXQ R15, R9, R9

four:
	CMPQ  SI, lowest-16(SP)
	JB    done
	CMPQ  DI, last-8(SP)
	JA    done
	MOVQ  (SI), R14
	MOVQ  -8(SI), DX
	SHRQ  $1, DX
	ADDQ  $64, R15
	MOVL  $64, CX
	STATE(R10, 0)
	STATE(R11, 1)
	STATE(R12, 2)
	STATE(R13, 3)
	ADDQ  $4, DI
	SUBQ  CX, R15           // bits of R14 that were used, at most 7+48
	SHLXQ R15, R14, R9
	MOVQ  R15, AX
	NOTQ  AX
	SHRXQ AX, DX, DX
	ORQ   DX, R9
	MOVQ  R15, AX
	SHRQ  $3, AX
	SUBQ  AX, SI
	ANDL  $7, R15
	JMP   four

done:
	SUBQ dst+8(FP), DI
	MOVQ DI, done+56(FP)
	SUBQ src+24(FP), SI
	MOVQ SI, newPos+64(FP)
	MOVQ R15, newOver+72(FP)
	MOVQ s+48(FP), AX
	MOVQ R10, 0(AX)
	MOVQ R11, 8(AX)
	MOVQ R12, 16(AX)
	MOVQ R13, 24(AX)
	RET

// func fseStates(t *fseState, symbols *uint8, n int, next *[256]uint32, log int)
TEXT ·fseStates(SB), NOSPLIT, $0-40
	MOVQ t+0(FP), DI
	MOVQ symbols+8(FP), SI
	MOVQ n+16(FP), R11
	MOVQ next+24(FP), R8
	MOVQ log+32(FP), R9
	SUBQ $31, R9
	MOVL $-1, R10
	LEAQ (SI)(R11*1), R12

state:
	MOVBLZX (SI), AX
	MOVL    (R8)(AX*4), DX
	LEAL    1(DX), CX
	MOVL    CX, (R8)(AX*4)
	LZCNTL  DX, CX
	ADDL    R9, CX          // bits
	SHLXL   CX, DX, DX
	SUBL    R11, DX         // base
	BZHIL   CX, R10, BX     // mask
	SHLQ    $8, AX
	ORQ     CX, AX
	SHLQ    $16, AX
	ORQ     BX, AX
	SHLQ    $16, AX
	ORQ     DX, AX
	MOVQ    AX, (DI)
	ADDQ    $8, DI
	INCQ    SI
	CMPQ    SI, R12
	JB      state
	RET

// func shiftAhead(dst, src *uint64, n int, add uint64)
TEXT ·shiftAhead(SB), NOSPLIT, $0-32
	MOVQ    dst+0(FP), DI
	MOVQ    src+8(FP), SI
	MOVQ    n+16(FP), CX
	MOVQ    add+24(FP), X4
	PUNPCKLQDQ X4, X4
	MOVQ    $0xffffff00ffffff00, AX
	MOVQ    AX, X5
	PUNPCKLQDQ X5, X5

ahead:
	MOVOU (SI), X0
	MOVOU 16(SI), X1
	PSLLQ $8, X0
	PSLLQ $8, X1
	PAND  X5, X0
	PAND  X5, X1
	PADDQ X4, X0
	PADDQ X4, X1
	MOVOU X0, (DI)
	MOVOU X1, 16(DI)
	ADDQ  $32, SI
	ADDQ  $32, DI
	SUBQ  $4, CX
	JNZ   ahead
	RET

// func shiftLooks(dst, src *uint64, n int, add uint64)
TEXT ·shiftLooks(SB), NOSPLIT, $0-32
	MOVQ    dst+0(FP), DI
	MOVQ    src+8(FP), SI
	MOVQ    n+16(FP), CX
	MOVQ    add+24(FP), X4
	PUNPCKLQDQ X4, X4
	MOVQ    $0xffffff00ffffff00, AX
	MOVQ    AX, X5
	PUNPCKLQDQ X5, X5
	MOVQ    $0x700, AX
	MOVQ    AX, X6
	PUNPCKLQDQ X6, X6
	MOVQ    $15, AX
	MOVQ    AX, X7
	PUNPCKLQDQ X7, X7
	MOVQ    $0xffffffff00000000, AX
	MOVQ    AX, X8
	PUNPCKLQDQ X8, X8

looks:
	MOVOU (SI), X0
	PSLLQ $8, X0
	PAND  X5, X0
	PADDQ X4, X0
	MOVO  X0, X1
	MOVO  X0, X2
	PAND  X8, X0
	PSRLQ $20, X1
	PAND  X6, X1
	PSRLQ $24, X2
	PAND  X7, X2
	POR   X1, X0
	POR   X2, X0
	MOVOU X0, (DI)
	ADDQ  $16, SI
	ADDQ  $16, DI
	SUBQ  $2, CX
	JNZ   looks
	RET
