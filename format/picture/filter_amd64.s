//go:build !purego && !twins

#include "textflag.h"

// func addAVX2(out, in, up *byte, n int)
TEXT ·addAVX2(SB), NOSPLIT, $0-32
	MOVQ out+0(FP), DI
	MOVQ in+8(FP), SI
	MOVQ up+16(FP), DX
	MOVQ n+24(FP), CX
	XORL BX, BX

add:
	VMOVDQU (SI)(BX*1), Y0
	VPADDB  (DX)(BX*1), Y0, Y0
	VMOVDQU Y0, (DI)(BX*1)
	ADDQ    $32, BX
	CMPQ    BX, CX
	JLT     add
	VZEROUPPER
	RET

// The mean of bytes is rounded up by PAVGB: where one of them is odd, that is one too many.

// func averageAVX(out, in, up *byte, pixels, size int)
// X0 is the pixel before, X15 is 1 in each byte.
TEXT ·averageAVX(SB), NOSPLIT, $0-40
	MOVQ     out+0(FP), DI
	MOVQ     in+8(FP), SI
	MOVQ     up+16(FP), DX
	MOVQ     pixels+24(FP), CX
	MOVQ     size+32(FP), R8
	VPXOR    X0, X0, X0
	VPCMPEQB X15, X15, X15
	VPABSB   X15, X15

average:
	VMOVQ  (DX), X1
	VMOVQ  (SI), X2
	VPXOR  X1, X0, X3
	VPAVGB X1, X0, X0
	VPAND  X15, X3, X3
	VPSUBB X3, X2, X2
	VPADDB X2, X0, X0
	VMOVQ  X0, (DI)
	ADDQ   R8, DX
	ADDQ   R8, SI
	ADDQ   R8, DI
	DECQ   CX
	JNZ    average
	RET

// func paethAVX(out, in, up *byte, pixels, size int)
// Bytes are words. X0 is the pixel before, X1 the one above that; the distance of the former does not depend on it.
TEXT ·paethAVX(SB), NOSPLIT, $0-40
	MOVQ  out+0(FP), DI
	MOVQ  in+8(FP), SI
	MOVQ  up+16(FP), DX
	MOVQ  pixels+24(FP), CX
	MOVQ  size+32(FP), R8
	VPXOR X0, X0, X0
	VPXOR X1, X1, X1

paeth:
	VPMOVZXBW (DX), X2
	VPMOVZXBW (SI), X3
	VPSUBW    X1, X2, X4     // above - corner
	VPSUBW    X1, X0, X5     // left - corner
	VPADDW    X4, X5, X6
	VPABSW    X4, X4         // the distance of left
	VPABSW    X5, X5         // of above
	VPABSW    X6, X6         // of the corner
	VPCMPGTW  X6, X5, X7     // the corner is nearer than above
	VPMINSW   X6, X5, X5
	VPBLENDVB X7, X1, X2, X7
	VPCMPGTW  X5, X4, X4     // one of them is nearer than left
	VPBLENDVB X4, X7, X0, X0
	VPADDB    X3, X0, X0
	VMOVDQA   X2, X1
	VPACKUSWB X0, X0, X7
	VMOVQ     X7, (DI)
	ADDQ      R8, DX
	ADDQ      R8, SI
	ADDQ      R8, DI
	DECQ      CX
	JNZ       paeth
	RET
