//go:build !purego && !twins

#include "go_asm.h"
#include "textflag.h"

// Registers, in all of this file:
//
//	R11  the decoder
//	SI   where the next bits are loaded from, R8 the last place from which a turn may begin
//	DI   where the output goes, R9 the last place from which a turn may begin, R10 the begin of the output
//	BX   bits; those above the number of them are what the next load sets
//	CX   the number of bits in its lowest byte; bytes above it have anything
//	AX   an entry of a table; its lowest byte is the number of bits that it takes, so that it is a shift count as it is
//	R12  how far back a match lies, R13 its size
//	DX   anything

// REFILL leaves at least 56 bits in BX.
#define REFILL \
	MOVQ    (SI), DX   \
	SHLXQ   CX, DX, DX \
	ORQ     DX, BX     \
	MOVBLZX CL, DX     \
	XORL    $63, DX    \
	SHRL    $3, DX     \
	ADDQ    DX, SI     \
	ORL     $56, CX

// DROP takes the bits of the entry.
#define DROP \
	SHRXQ AX, BX, BX \
	SUBL  AX, CX

// LOOK looks the next symbol up.
#define LOOK \
	MOVL BX, AX                      \
	ANDL $((1<<const_litBits)-1), AX \
	MOVL Decoder_codes(R11)(AX*4), AX

// BASE adds the base of the entry in AX and the bits beyond its code, and drops all of them. to is 32 bits wide.
#define BASE(to) \
	BZHIQ AX, BX, to \
	MOVL  AX, DX     \
	SHRL  $8, DX     \
	SHRXQ DX, to, to \
	DROP             \
	SHRL  $16, AX    \
	ADDL  AX, to

// INDEX is the index in a sub-table: AX is its entry, bits are those of the first look-up, and to is changed.
#define INDEX(bits, to) \
	MOVL  AX, DX      \
	SHRL  $8, DX      \
	ANDL  $15, DX     \
	MOVQ  BX, to      \
	SHRQ  bits, to    \
	BZHIQ DX, to, to  \
	SHRL  $16, AX     \
	ANDL  $0x3fff, AX \
	ADDL  to, AX

// func fastBMI2(d *Decoder, dst []byte, at int) (out, far int)
TEXT ·fastBMI2(SB), NOSPLIT, $0-56
	MOVQ d+0(FP), R11
	MOVQ Decoder_src(R11), SI
	MOVQ Decoder_src+8(R11), R8
	LEAQ -const_fastSrc(SI)(R8*1), R8
	ADDQ Decoder_at(R11), SI
	MOVQ dst_base+8(FP), R10
	MOVQ dst_len+16(FP), R9
	LEAQ -const_fastDst(R10)(R9*1), R9
	MOVQ at+32(FP), DI
	ADDQ R10, DI
	MOVQ Decoder_buf(R11), BX
	MOVQ Decoder_n(R11), CX
	XORL R12, R12
	REFILL
	LOOK

turn:
	CMPQ SI, R8
	JHI  done
	CMPQ DI, R9
	JHI  done
	TESTL AX, AX
	JPL  base // not isLiteral

	// One or two entries of literals, and what follows them.
	MOVL AX, R12
	SHRL $8, R12
	MOVW R12, (DI)
	DROP
	BTL  $30, AX // isThen
	JCS  then
	SHRL $16, R12
	ANDL $3, R12
	ADDQ R12, DI
	LOOK
	TESTL AX, AX
	JPL  base
	MOVL AX, R12
	SHRL $8, R12
	MOVW R12, (DI)
	DROP
	BTL  $30, AX
	JCS  then
	SHRL $16, R12
	ANDL $3, R12
	ADDQ R12, DI
	LOOK   // 34 bits are left: the next entry need not wait for more
	REFILL
	JMP  turn

then:
	// Two entries of 11 bits leave 34, to look the distance up.
	INCQ DI
	SHRL $16, AX
	MOVBLZX AX, R13
	JMP  distance

base:
	BTL $15, AX // isOdd
	JCS odd

size:
	// The size of a match has 15 + 5 bits at most, so that 25 of 45 are left to look its distance up.
	BASE(R13)

distance:
	MOVL BX, AX
	ANDL $((1<<const_distBits)-1), AX
	MOVL Decoder_dists(R11)(AX*4), AX
	REFILL // while the table is read: after the distance, 28 bits are left at least
	BTL  $15, AX
	JCS  oddDistance

far:
	BASE(R12)
	LOOK
	MOVQ DI, DX
	SUBQ R10, DX
	CMPQ R12, DX
	JHI  fault

	// Copy 8 bytes at a time. What is written past the match is overwritten later.
	MOVQ DI, DX
	SUBQ R12, DX
	CMPQ R12, $8
	JCS  overlap
	MOVQ (DX), R12
	MOVQ R12, (DI)
	CMPL R13, $8
	JHI  long
	ADDQ R13, DI
	JMP  turn

long:
	LEAQ -8(DI)(R13*1), R13

longer:
	ADDQ $8, DX
	ADDQ $8, DI
	MOVQ (DX), R12
	MOVQ R12, (DI)
	CMPQ DI, R13
	JCS  longer
	LEAQ 8(R13), DI
	JMP  turn

overlap:
	ADDQ DI, R13
	CMPQ R12, $1
	JEQ  run

byte:
	MOVB (DX), R12
	MOVB R12, (DI)
	INCQ DX
	INCQ DI
	CMPQ DI, R13
	JNE  byte
	JMP  turn

run:
	MOVBQZX (DX), R12
	MOVQ    $0x0101010101010101, DX
	IMULQ   DX, R12

repeat:
	MOVQ R12, (DI)
	ADDQ $8, DI
	CMPQ DI, R13
	JCS  repeat
	MOVQ R13, DI
	JMP  turn

odd:
	// The end of the block and what is no code are left to the caller, before any of its bits.
	BTL  $14, AX // isSub
	JCC  done
	INDEX($const_litBits, R13)
	MOVL Decoder_codes(R11)(AX*4), AX
	TESTL AX, AX
	JMI  literal
	BTL  $15, AX
	JCC  size
	JMP  done

literal:
	MOVL AX, R12
	SHRL $8, R12
	MOVB R12, (DI)
	INCQ DI
	DROP
	LOOK
	REFILL
	JMP  turn

oddDistance:
	BTL  $14, AX
	JCC  noCode
	INDEX($const_distBits, R12)
	MOVL Decoder_dists(R11)(AX*4), AX
	BTL  $15, AX
	JCC  far

noCode:
	MOVQ $-1, R12
	JMP  fault

done:
	XORL R12, R12

fault:
	MOVBLZX CL, CX
	BZHIQ   CX, BX, BX
	MOVQ    BX, Decoder_buf(R11)
	MOVQ    CX, Decoder_n(R11)
	SUBQ    Decoder_src(R11), SI
	MOVQ    SI, Decoder_at(R11)
	SUBQ    R10, DI
	MOVQ    DI, out+40(FP)
	MOVQ    R12, far+48(FP)
	RET
