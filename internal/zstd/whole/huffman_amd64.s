//go:build amd64 && !purego && !twins

#include "textflag.h"

// Fields of codes, of the i-th stream.
#define codesWord(i) (48*i+0)(AX)
#define codesUsed(i) (48*i+8)(AX)
#define codesOut(i)  (48*i+16)(AX)
#define codesSafe(i) (48*i+24)(AX)

// The field of looks behind counts: 1<<lookBits + rowSlack bytes.
#define looksSymbols 4128

// The frame: limits, and positions that have no register. A turn may begin with positions from floor on, and places up
// to safe.
#define floor 0(SP)
#define safe0 8(SP)
#define safe1 16(SP)
#define safe2 24(SP)
#define safe3 32(SP)
#define pos2  40(SP)
#define pos3  48(SP)
#define left  56(SP)

// OPEN loads a stream. CX has the address of src, DX that of dst. It overwrites BX.
//
// The lowest bit of `bits` that is set is a mark: when `used` bits were shifted out, it is the bit number `used`. pos
// is 8 times the address of the word in memory, so that bit i of `bits` is the bit pos+i-used of memory, but for the
// mark and those below it.
#define OPEN(i, bits, pos, out, safe) \
	MOVQ  codesOut(i), out    \
	ADDQ  DX, out             \
	MOVQ  codesSafe(i), BX    \
	ADDQ  DX, BX              \
	MOVQ  BX, safe            \
	MOVQ  codesWord(i), BX    \
	ADDQ  CX, BX              \
	MOVQ  (BX), bits          \
	ORQ   $1, bits            \
	SHLQ  $3, BX              \
	MOVQ  BX, pos             \
	MOVQ  codesUsed(i), BX    \
	SHLXQ BX, bits, bits

// CLOSE stores a stream. It overwrites BX.
#define CLOSE(i, bits, pos, out) \
	TZCNTQ bits, bits          \
	MOVQ   pos, BX             \
	SUBQ   bits, BX            \
	MOVQ   BX, bits            \
	NEGQ   bits                \
	ANDQ   $7, bits            \
	MOVQ   bits, codesUsed(i)  \
	ADDQ   $7, BX              \
	SHRQ   $3, BX              \
	SUBQ   CX, BX              \
	MOVQ   BX, codesWord(i)    \
	SUBQ   DX, out             \
	MOVQ   out, codesOut(i)

// LOOK decodes a symbol or two. It stores two, the second of which the next look overwrites if it is none. R15 is
// 64-lookBits.
#define LOOK(bits, out) \
	SHRXQ   R15, bits, DX             \
	MOVBLZX (R9)(DX*1), AX            \
	SHLXQ   AX, bits, bits            \
	MOVWLZX looksSymbols(R9)(DX*2), DX \
	SHRL    $6, AX                    \
	MOVW    DX, (out)                 \
	ADDQ    AX, out

// FILL takes as many bits of memory in as were used, so that pos goes back by these. It takes the word that ends with
// the byte of pos, whose bit 56 + pos%8 is the bit at pos, and shifts it to the place of the mark; above that are bits
// that `bits` has already, below it the new ones. At most 56 may be used.
#define FILL(bits, pos) \
	TZCNTQ bits, AX           \
	MOVQ   pos, DX            \
	MOVQ   DX, BX             \
	SUBQ   AX, pos            \
	SHRQ   $3, BX             \
	ORQ    $-8, DX            \
	SUBQ   AX, DX             \
	SHRXQ  DX, -7(BX), BX     \
	BLSRQ  bits, bits         \
	ORQ    $1, bits           \
	ORQ    BX, bits

// MAY leaves the loop if a stream must not have as many turns more.
#define MAY(pos, out, safe) \
	MOVQ pos, AX   \
	CMPQ AX, floor \
	JB   done      \
	CMPQ out, safe \
	JA   done

#define LOOK0 LOOK(R8, R10)
#define LOOK1 LOOK(R11, R13)
#define LOOK2 LOOK(R14, SI)
#define LOOK3 LOOK(DI, CX)
#define FILL0 FILL(R8, BP)
#define FILL1 FILL(R11, R12)
#define FILL2 FILL(R14, pos2)
#define FILL3 FILL(DI, pos3)
#define MAY0 MAY(BP, R10, safe0)
#define MAY1 MAY(R12, R13, safe1)
#define MAY2 MAY(pos2, SI, safe2)
#define MAY3 MAY(pos3, CX, safe3)

// func decode(looks *looks, streams *[4]codes, n, turns int, src, dst *byte)
//
// A turn takes in what the turn before used, and then 4 looks of each stream. From one look of a stream to the next it
// waits for a load and two shifts, and meanwhile looks go on in the other streams.
//
//	stream  bits  pos   out
//	0       R8    BP    R10    R9  looks
//	1       R11   R12   R13    DX  an index, then the symbols
//	2       R14   pos2  SI     AX  what is taken, then the number of symbols
//	3       DI    pos3  CX     BX  what is taken in
//
// Nothing outside of src and dst is touched:
//   - A turn begins with pos at src+7 or later, because a run of turns begins 6 bytes later for each turn but
//     the last, and a turn uses 48 bits at most. It reads 8 bytes up to that one, inclusive. pos begins with a word in src and
//     moves to lower addresses only.
//   - A turn begins with out 8 bytes or more before the end of the stream's part of dst, because turns before it in the
//     run had 8 more each. It stores 2 bytes 4 times, the last ones at out+6 at most.
//   - An index has 12 bits, and the table has 4096 entries.
//
// Each look uses 1 to 12 bits, and a turn 48 at most, which is less than 56. If a stream is broken, bits before it may
// be decoded. Then more bits are used than it has, which the caller sees.
TEXT ·decode(SB), 0, $64-48
	MOVQ streams+8(FP), AX
	MOVQ src+32(FP), CX
	MOVQ dst+40(FP), DX
	MOVQ turns+24(FP), DI
	LEAQ (DI)(DI*2), DI
	LEAQ 1(CX)(DI*2), DI // src+7, and 6 bytes more for each turn but the first
	SHLQ $3, DI
	MOVQ DI, floor
	OPEN(0, R8, BP, R10, safe0)
	OPEN(1, R11, R12, R13, safe1)
	OPEN(2, R14, pos2, SI, safe2)

	// OPEN of the last stream, which has the registers of src and dst.
	MOVQ  codesSafe(3), BX
	ADDQ  DX, BX
	MOVQ  BX, safe3
	MOVQ  codesWord(3), BX
	ADDQ  CX, BX
	MOVQ  (BX), DI
	ORQ   $1, DI
	MOVQ  codesUsed(3), CX
	SHLQ  CX, DI
	SHLQ  $3, BX
	MOVQ  BX, pos3
	MOVQ  codesOut(3), CX
	ADDQ  DX, CX
	MOVQ  n+16(FP), DX
	MOVQ  looks+0(FP), R9
	MOVQ  $52, R15
	CMPQ  DX, $2
	JB    turns1
	JE    turns2
	CMPQ  DX, $4
	JB    turns3

turns4:
	MOVQ    turns+24(FP), AX
	MOVQ    AX, left
	PCALIGN $32

turn4:
	FILL0
	FILL1
	FILL2
	FILL3
	LOOK0
	LOOK1
	LOOK2
	LOOK3
	LOOK0
	LOOK1
	LOOK2
	LOOK3
	LOOK0
	LOOK1
	LOOK2
	LOOK3
	LOOK0
	LOOK1
	LOOK2
	LOOK3
	DECQ left
	JNZ  turn4
	MAY0
	MAY1
	MAY2
	MAY3
	JMP  turns4

turns3:
	MOVQ turns+24(FP), AX
	MOVQ AX, left

turn3:
	FILL0
	FILL1
	FILL2
	LOOK0
	LOOK1
	LOOK2
	LOOK0
	LOOK1
	LOOK2
	LOOK0
	LOOK1
	LOOK2
	LOOK0
	LOOK1
	LOOK2
	DECQ left
	JNZ  turn3
	MAY0
	MAY1
	MAY2
	JMP  turns3

turns2:
	MOVQ turns+24(FP), AX
	MOVQ AX, left

turn2:
	FILL0
	FILL1
	LOOK0
	LOOK1
	LOOK0
	LOOK1
	LOOK0
	LOOK1
	LOOK0
	LOOK1
	DECQ left
	JNZ  turn2
	MAY0
	MAY1
	JMP  turns2

turns1:
	MOVQ turns+24(FP), AX
	MOVQ AX, left

turn1:
	FILL0
	LOOK0
	LOOK0
	LOOK0
	LOOK0
	DECQ left
	JNZ  turn1
	MAY0
	JMP  turns1

done:
	MOVQ streams+8(FP), AX
	MOVQ dst+40(FP), DX
	MOVQ CX, R9
	MOVQ src+32(FP), CX
	CLOSE(0, R8, BP, R10)
	CLOSE(1, R11, R12, R13)
	CLOSE(2, R14, pos2, SI)
	CLOSE(3, DI, pos3, R9)
	RET

// func double(seconds *looks, n int)
TEXT ·double(SB), NOSPLIT, $0-16
	MOVQ seconds+0(FP), SI
	MOVQ n+8(FP), CX
	ADDQ CX, SI            // counts[n]
	LEAQ (SI)(CX*1), DI    // counts[2n]
	LEAQ (SI)(CX*1), R8    // with looksSymbols, symbols[n]
	LEAQ (R8)(CX*2), R9    // with looksSymbols, symbols[2n]

entries:
	VMOVDQU    (SI), X0
	VMOVDQU    looksSymbols(R8), X2
	VMOVDQU    looksSymbols+16(R8), X4
	VPUNPCKHBW X0, X0, X1
	VPUNPCKLBW X0, X0, X0
	VPUNPCKHWD X2, X2, X3
	VPUNPCKLWD X2, X2, X2
	VPUNPCKHWD X4, X4, X5
	VPUNPCKLWD X4, X4, X4
	VMOVDQU    X0, (DI)
	VMOVDQU    X1, 16(DI)
	VMOVDQU    X2, looksSymbols(R9)
	VMOVDQU    X3, looksSymbols+16(R9)
	VMOVDQU    X4, looksSymbols+32(R9)
	VMOVDQU    X5, looksSymbols+48(R9)
	ADDQ       $16, SI
	ADDQ       $32, DI
	ADDQ       $32, R8
	ADDQ       $64, R9
	SUBQ       $16, CX
	JGT        entries
	VZEROUPPER
	RET

// func pairs(to, seconds *looks, at, run int, firsts *uint8, n int, one uint8)
//
// The entries that a symbol has too many, if its run is less than 16, are those of the next symbols, or behind the
// table.
TEXT ·pairs(SB), NOSPLIT, $0-49
	MOVQ         to+0(FP), DI
	MOVQ         seconds+8(FP), SI
	MOVQ         at+16(FP), AX
	MOVQ         run+24(FP), CX
	MOVQ         firsts+32(FP), R8
	MOVQ         n+40(FP), R9
	ADDQ         R8, R9
	LEAQ         (DI)(AX*2), R10   // with looksSymbols, to.symbols[at]
	ADDQ         AX, DI            // to.counts[at]
	LEAQ         (SI)(CX*2), R11   // with looksSymbols, seconds.symbols[run]
	ADDQ         CX, SI            // seconds.counts[run]
	VPBROADCASTB one+48(FP), X0

symbol:
	MOVBLZX      (R8), AX
	VMOVD        AX, X1
	VPBROADCASTW X1, Y1
	XORL         BX, BX

row:
	VPADDB  (SI)(BX*1), X0, X2
	VPADDW  looksSymbols(R11)(BX*2), Y1, Y3
	VMOVDQU X2, (DI)(BX*1)
	VMOVDQU Y3, looksSymbols(R10)(BX*2)
	ADDQ    $16, BX
	CMPQ    BX, CX
	JB      row
	ADDQ    CX, DI
	LEAQ    (R10)(CX*2), R10
	INCQ    R8
	CMPQ    R8, R9
	JB      symbol
	VZEROUPPER
	RET
