//go:build !purego && !twins

#include "go_asm.h"
#include "textflag.h"

// func lzwBMI2(d *lzwDecoder, dst, src []byte)
//
// Registers:
//
//	R11  the decoder
//	SI   src
//	R9   the bits of it that are read
//	R8   64 less the width of a code
//	DI   where the output goes
//	R12  the next entry of the table
//	BX   the first bytes of the previous string, R15 eight times its length, DX its offset in dst
//	AX   the code, then the length of its string, whose entry is CX and whose first byte R10
//	R13  anything
TEXT ·lzwBMI2(SB), NOSPLIT, $24-56
	MOVQ d+0(FP), R11
	MOVQ dst_base+8(FP), DI
	MOVQ dst_len+16(FP), AX
	MOVQ src_base+32(FP), SI
	MOVQ src_len+40(FP), CX

	LEAQ -8(DI)(AX*1), AX
	MOVQ AX, lastOut-8(SP)  // the last place where 8 bytes can be written
	LEAQ -7(CX), CX
	SHLQ $3, CX
	MOVQ CX, endBits-16(SP) // 8 bytes can be loaded for the bits before

	ADDQ lzwDecoder_out(R11), DI
	MOVQ lzwDecoder_pos(R11), R9
	MOVQ lzwDecoder_text(R11), BX
	MOVQ lzwDecoder_length(R11), R15
	MOVQ lzwDecoder_out(R11), DX
	SUBQ R15, DX
	SHLQ $3, R15
	MOVQ lzwDecoder_width(R11), CX
	MOVL $64, R8
	SUBQ CX, R8

	// The entry before the one behind which the width grows, or the table is full, is the last one made here.
	MOVL  $1, R13
	SHLXQ CX, R13, R13
	SUBQ  $2, R13
	SHLQ  $4, R13
	LEAQ  lzwDecoder_table(R11)(R13*1), R13
	MOVQ  R13, lastEntry-24(SP)
	MOVQ  lzwDecoder_next(R11), R12
	SHLQ  $4, R12
	LEAQ  lzwDecoder_table(R11)(R12*1), R12

code:
	CMPQ   R12, lastEntry-24(SP)
	JAE    done
	CMPQ   R9, endBits-16(SP)
	JAE    done
	CMPQ   DI, lastOut-8(SP)
	JHI    done
	MOVQ   R9, AX
	SHRQ   $3, AX
	MOVBEQ (SI)(AX*1), AX
	MOVL   R9, CX
	ANDL   $7, CX
	SHLXQ  CX, AX, AX
	SHRXQ  R8, AX, AX
	SHLQ   $4, AX
	LEAQ   lzwDecoder_table(R11)(AX*1), CX
	CMPQ   CX, R12
	JAE    newest
	MOVL   lzwString_length(CX), AX
	TESTL  AX, AX
	JZ     done                            // clear or end
	MOVBLZX (CX), R10

length:
	CMPL AX, $8
	JHI  room

entry:
	// The new entry is the previous string and the first byte of this one.
	CMPQ  R15, $64
	SBBQ  R13, R13 // 0 if the byte is not among the first eight
	ANDQ  R13, R10
	SHLXQ R15, R10, R10
	ORQ   BX, R10
	MOVQ  R10, (R12)
	MOVL  DX, lzwString_start(R12)
	SHRL  $3, R15
	INCL  R15
	MOVL  R15, lzwString_length(R12)

	MOVQ (CX), BX
	MOVQ BX, (DI)
	MOVQ DI, DX
	SUBQ dst_base+8(FP), DX
	CMPL AX, $8
	JHI  rest

next:
	LEAQ (AX*8), R15
	ADDQ AX, DI
	ADDQ $16, R12
	ADDQ $64, R9
	SUBQ R8, R9
	JMP  code

newest:
	// The entry that is made now: it ends with the byte that it begins with.
	JNE     done
	MOVL    R15, AX
	SHRL    $3, AX
	INCL    AX
	MOVBLZX BL, R10
	JMP     length

room:
	LEAQ (DI)(AX*1), R13
	CMPQ R13, lastOut-8(SP)
	JHI  done
	JMP  entry

rest:
	// A string of more than 8 bytes that overlaps itself begins more than 7 bytes before, so that 8 are there.
	MOVL lzwString_start(CX), R10
	ADDQ dst_base+8(FP), R10
	MOVL $8, R15

copy:
	MOVQ (R10)(R15*1), R13
	MOVQ R13, (DI)(R15*1)
	ADDQ $8, R15
	CMPQ R15, AX
	JB   copy
	JMP  next

done:
	MOVQ R9, lzwDecoder_pos(R11)
	MOVQ BX, lzwDecoder_text(R11)
	SHRQ $3, R15
	MOVQ R15, lzwDecoder_length(R11)
	SUBQ dst_base+8(FP), DI
	MOVQ DI, lzwDecoder_out(R11)
	LEAQ lzwDecoder_table(R11), CX
	SUBQ CX, R12
	SHRQ $4, R12
	MOVQ R12, lzwDecoder_next(R11)
	RET
