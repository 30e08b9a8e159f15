//go:build !purego && !twins

#include "go_asm.h"
#include "textflag.h"

// Registers, in all of this file:
//
//	DI  a row of samples, R8 from one to the next, R9 how many are left, BX the next samples, AX how many are left
//	SI  the next eight numbers, CX their size in bytes, which is their width in bits, DX where the fifth one begins
//	Y0, Y1, Y2 their layout
//	Y3, Y4, Y5 offset, scale and highest in each lane

// START takes the arguments.
#define START \
	MOVQ         dst+0(FP), DI             \
	MOVQ         stride+8(FP), R8          \
	MOVQ         src+16(FP), SI            \
	MOVQ         l+24(FP), AX              \
	MOVQ         width+32(FP), CX          \
	MOVQ         h+48(FP), R9              \
	MOVQ         CX, DX                    \
	SHRQ         $1, DX                    \
	VMOVDQU      layout_bytes(AX), Y0      \
	VMOVDQU      layout_shift(AX), Y1      \
	VPBROADCASTD layout_mask(AX), Y2

// NUMBERS reads eight numbers into Y6.
#define NUMBERS \
	VMOVDQU     (SI), X6                  \
	VINSERTI128 $1, (SI)(DX*1), Y6, Y6    \
	ADDQ        CX, SI                    \
	VPSHUFB     Y0, Y6, Y6                \
	VPSRLVD     Y1, Y6, Y6                \
	VPAND       Y2, Y6, Y6

// func shortsAVX2(dst *uint16, stride int, src *byte, l *layout, width, w, h int, offset, scale, highest int32)
TEXT ·shortsAVX2(SB), NOSPLIT, $0-68
	START
	VBROADCASTSS offset+56(FP), Y3
	VBROADCASTSS scale+60(FP), Y4
	VBROADCASTSS highest+64(FP), Y5
	VPCMPEQD     Y7, Y7, Y7
	VPSRLD       $16, Y7, Y7

row:
	MOVQ DI, BX
	MOVQ w+40(FP), AX

eight:
	NUMBERS
	VPMULLD   Y4, Y6, Y6
	VPADDD    Y3, Y6, Y6
	VPMINSD   Y5, Y6, Y6
	VPAND     Y7, Y6, Y6
	VPACKUSDW Y6, Y6, Y6
	VPERMQ    $0x08, Y6, Y6
	VMOVDQU   X6, (BX)
	ADDQ      $16, BX
	SUBQ      $8, AX
	JNZ       eight
	ADDQ      R8, DI
	DECQ      R9
	JNZ       row
	VZEROUPPER
	RET

// func floatsAVX2(dst *float32, stride int, src *byte, l *layout, width, w, h int, offset, scale, highest float64)
TEXT ·floatsAVX2(SB), NOSPLIT, $0-80
	START
	VBROADCASTSD offset+56(FP), Y3
	VBROADCASTSD scale+64(FP), Y4
	VBROADCASTSD highest+72(FP), Y5

row:
	MOVQ DI, BX
	MOVQ w+40(FP), AX

eight:
	NUMBERS
	VEXTRACTI128 $1, Y6, X7
	VCVTDQ2PD    X6, Y6
	VCVTDQ2PD    X7, Y7
	VMULPD       Y4, Y6, Y6
	VMULPD       Y4, Y7, Y7
	VADDPD       Y3, Y6, Y6
	VADDPD       Y3, Y7, Y7

	// The second of these, as the manual counts, stays unless the first is less: a NaN too.
	VMINPD     Y6, Y5, Y6
	VMINPD     Y7, Y5, Y7
	VCVTPD2PSY Y6, X6
	VCVTPD2PSY Y7, X7
	VMOVUPS    X6, (BX)
	VMOVUPS    X7, 16(BX)
	ADDQ       $32, BX
	SUBQ       $8, AX
	JNZ        eight
	ADDQ       R8, DI
	DECQ       R9
	JNZ        row
	VZEROUPPER
	RET
