//go:build !purego && !twins

#include "textflag.h"

// DX less the sum of the four words of Y12 is the result of a function that counts.
#define COUNT \
	VEXTRACTI128 $1, Y12, X0   \
	VPADDQ       X0, X12, X12  \
	VPSRLDQ      $8, X12, X0   \
	VPADDQ       X0, X12, X12  \
	VMOVQ        X12, AX       \
	SUBQ         AX, DX        \
	VZEROUPPER

// func affineU16AVX2(dst *float32, src *byte, n int, a, c float32)
TEXT ·affineU16AVX2(SB), NOSPLIT, $0-32
	MOVQ         dst+0(FP), DI
	MOVQ         src+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSS a+24(FP), Y14
	VBROADCASTSS c+28(FP), Y15

u16loop:
	VPMOVZXWD (SI), Y0
	VPMOVZXWD 16(SI), Y1
	VCVTDQ2PS Y0, Y0
	VCVTDQ2PS Y1, Y1
	VMULPS    Y14, Y0, Y0
	VMULPS    Y14, Y1, Y1
	VADDPS    Y15, Y0, Y0
	VADDPS    Y15, Y1, Y1
	VMOVUPS   Y0, (DI)
	VMOVUPS   Y1, 32(DI)
	ADDQ      $32, SI
	ADDQ      $64, DI
	SUBQ      $16, CX
	JNZ       u16loop
	VZEROUPPER
	RET

// func affineU8AVX2(dst *float32, src *byte, n int, a, c float32)
TEXT ·affineU8AVX2(SB), NOSPLIT, $0-32
	MOVQ         dst+0(FP), DI
	MOVQ         src+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSS a+24(FP), Y14
	VBROADCASTSS c+28(FP), Y15

u8loop:
	VPMOVZXBD (SI), Y0
	VPMOVZXBD 8(SI), Y1
	VCVTDQ2PS Y0, Y0
	VCVTDQ2PS Y1, Y1
	VMULPS    Y14, Y0, Y0
	VMULPS    Y14, Y1, Y1
	VADDPS    Y15, Y0, Y0
	VADDPS    Y15, Y1, Y1
	VMOVUPS   Y0, (DI)
	VMOVUPS   Y1, 32(DI)
	ADDQ      $16, SI
	ADDQ      $64, DI
	SUBQ      $16, CX
	JNZ       u8loop
	VZEROUPPER
	RET

// func affineF32AVX2(f *float32, n int, a, c float32)
TEXT ·affineF32AVX2(SB), NOSPLIT, $0-24
	MOVQ         f+0(FP), DI
	MOVQ         n+8(FP), CX
	VBROADCASTSS a+16(FP), Y14
	VBROADCASTSS c+20(FP), Y15

f32loop:
	VMOVUPS (DI), Y0
	VMOVUPS 32(DI), Y1
	VMULPS  Y14, Y0, Y0
	VMULPS  Y14, Y1, Y1
	VADDPS  Y15, Y0, Y0
	VADDPS  Y15, Y1, Y1
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	ADDQ    $64, DI
	SUBQ    $16, CX
	JNZ     f32loop
	VZEROUPPER
	RET

// func affineI16AVX2(dst *float32, src *byte, n int, a, c float32)
TEXT ·affineI16AVX2(SB), NOSPLIT, $0-32
	MOVQ         dst+0(FP), DI
	MOVQ         src+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSS a+24(FP), Y14
	VBROADCASTSS c+28(FP), Y15

i16loop:
	VPMOVSXWD (SI), Y0
	VPMOVSXWD 16(SI), Y1
	VCVTDQ2PS Y0, Y0
	VCVTDQ2PS Y1, Y1
	VMULPS    Y14, Y0, Y0
	VMULPS    Y14, Y1, Y1
	VADDPS    Y15, Y0, Y0
	VADDPS    Y15, Y1, Y1
	VMOVUPS   Y0, (DI)
	VMOVUPS   Y1, 32(DI)
	ADDQ      $32, SI
	ADDQ      $64, DI
	SUBQ      $16, CX
	JNZ       i16loop
	VZEROUPPER
	RET

// MAXPS and MINPS give their second source, here the number, unless the first is beyond it: a NaN
// and the sign of a zero stay.

// func clipAVX2(f *float32, n int, lo, hi float32)
TEXT ·clipAVX2(SB), NOSPLIT, $0-24
	MOVQ         f+0(FP), DI
	MOVQ         n+8(FP), CX
	VBROADCASTSS lo+16(FP), Y14
	VBROADCASTSS hi+20(FP), Y15

cliploop:
	VMOVUPS (DI), Y0
	VMOVUPS 32(DI), Y1
	VMAXPS  Y0, Y14, Y0
	VMAXPS  Y1, Y14, Y1
	VMINPS  Y0, Y15, Y0
	VMINPS  Y1, Y15, Y1
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	ADDQ    $64, DI
	SUBQ    $16, CX
	JNZ     cliploop
	VZEROUPPER
	RET

// func loadF16AVX(dst *float32, src *byte, n int)
TEXT ·loadF16AVX(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX

loadf16loop:
	VCVTPH2PS (SI), Y0
	VCVTPH2PS 16(SI), Y1
	VMOVUPS   Y0, (DI)
	VMOVUPS   Y1, 32(DI)
	ADDQ      $32, SI
	ADDQ      $64, DI
	SUBQ      $16, CX
	JNZ       loadf16loop
	VZEROUPPER
	RET

// func storeF16AVX(dst *byte, src *float32, n int)
TEXT ·storeF16AVX(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX

storef16loop:
	VMOVUPS   (SI), Y0
	VMOVUPS   32(SI), Y1
	VCVTPS2PH $0, Y0, (DI)
	VCVTPS2PH $0, Y1, 16(DI)
	ADDQ      $64, SI
	ADDQ      $32, DI
	SUBQ      $16, CX
	JNZ       storef16loop
	VZEROUPPER
	RET

// func storeBF16AVX2(dst *byte, src *float32, n int)
// Y15 is 0x7fff, Y14 is 1, Y13 is 0x7fc0, Y12 is 0x8000, in each 32 bits.
TEXT ·storeBF16AVX2(SB), NOSPLIT, $0-24
	MOVQ         dst+0(FP), DI
	MOVQ         src+8(FP), SI
	MOVQ         n+16(FP), CX
	VPCMPEQD     Y0, Y0, Y0
	VPSRLD       $17, Y0, Y15
	VPSRLD       $31, Y0, Y14
	VPSLLD       $15, Y14, Y12
	VPSRLD       $24, Y0, Y13
	VPSLLD       $24, Y13, Y13
	VPSRLD       $17, Y13, Y13
	VPSRLD       $31, Y0, Y0
	VPSLLD       $6, Y0, Y0
	VPOR         Y0, Y13, Y13

bf16loop:
	VMOVUPS   (SI), Y0
	VMOVUPS   32(SI), Y1
	VCMPPS    $3, Y0, Y0, Y2
	VCMPPS    $3, Y1, Y1, Y3
	VPSRLD    $16, Y0, Y4
	VPSRLD    $16, Y1, Y5
	VPAND     Y14, Y4, Y6
	VPAND     Y14, Y5, Y7
	VPAND     Y12, Y4, Y4
	VPAND     Y12, Y5, Y5
	VPOR      Y13, Y4, Y4
	VPOR      Y13, Y5, Y5
	VPADDD    Y15, Y0, Y0
	VPADDD    Y15, Y1, Y1
	VPADDD    Y6, Y0, Y0
	VPADDD    Y7, Y1, Y1
	VPSRLD    $16, Y0, Y0
	VPSRLD    $16, Y1, Y1
	VPBLENDVB Y2, Y4, Y0, Y0
	VPBLENDVB Y3, Y5, Y1, Y1
	VPACKUSDW Y1, Y0, Y0
	VPERMQ    $0xD8, Y0, Y0
	VMOVDQU   Y0, (DI)
	ADDQ      $64, SI
	ADDQ      $32, DI
	SUBQ      $16, CX
	JNZ       bf16loop
	VZEROUPPER
	RET

// Where dwords stand after two packings inside of lanes.
DATA unpack<>+0(SB)/8, $0x0000000400000000
DATA unpack<>+8(SB)/8, $0x0000000500000001
DATA unpack<>+16(SB)/8, $0x0000000600000002
DATA unpack<>+24(SB)/8, $0x0000000700000003
GLOBL unpack<>(SB), RODATA|NOPTR, $32

DATA max255<>+0(SB)/4, $0x437f0000
GLOBL max255<>(SB), RODATA|NOPTR, $4

// func storeU8AVX2(dst *byte, src *float32, n int)
// MAXPS gives its second source, 0, for a NaN.
TEXT ·storeU8AVX2(SB), NOSPLIT, $0-24
	MOVQ         dst+0(FP), DI
	MOVQ         src+8(FP), SI
	MOVQ         n+16(FP), CX
	VXORPS       Y14, Y14, Y14
	VBROADCASTSS max255<>(SB), Y15
	VMOVDQU      unpack<>(SB), Y13

u8store:
	VMOVUPS   (SI), Y0
	VMOVUPS   32(SI), Y1
	VMOVUPS   64(SI), Y2
	VMOVUPS   96(SI), Y3
	VMAXPS    Y14, Y0, Y0
	VMAXPS    Y14, Y1, Y1
	VMAXPS    Y14, Y2, Y2
	VMAXPS    Y14, Y3, Y3
	VMINPS    Y15, Y0, Y0
	VMINPS    Y15, Y1, Y1
	VMINPS    Y15, Y2, Y2
	VMINPS    Y15, Y3, Y3
	VCVTPS2DQ Y0, Y0
	VCVTPS2DQ Y1, Y1
	VCVTPS2DQ Y2, Y2
	VCVTPS2DQ Y3, Y3
	VPACKSSDW Y1, Y0, Y0
	VPACKSSDW Y3, Y2, Y2
	VPACKUSWB Y2, Y0, Y0
	VPERMD    Y0, Y13, Y0
	VMOVDQU   Y0, (DI)
	ADDQ      $128, SI
	ADDQ      $32, DI
	SUBQ      $32, CX
	JNZ       u8store
	VZEROUPPER
	RET

// Validity: comparisons give -1 for nodata; plus 1 that is 0, and 1 elsewhere. PSADBW adds the ones up.

// func validU8AVX2(valid, src *byte, n int, a uint8) int
TEXT ·validU8AVX2(SB), NOSPLIT, $0-40
	MOVQ         valid+0(FP), DI
	MOVQ         src+8(FP), SI
	MOVQ         n+16(FP), CX
	MOVQ         CX, DX
	VPBROADCASTB a+24(FP), Y15
	VPCMPEQB     Y0, Y0, Y0
	VPABSB       Y0, Y14
	VPXOR        Y13, Y13, Y13
	VPXOR        Y12, Y12, Y12

valid8loop:
	VPCMPEQB (SI), Y15, Y0
	VPADDB   Y14, Y0, Y0
	VMOVDQU  Y0, (DI)
	VPSADBW  Y13, Y0, Y0
	VPADDQ   Y0, Y12, Y12
	ADDQ     $32, SI
	ADDQ     $32, DI
	SUBQ     $32, CX
	JNZ      valid8loop
	COUNT
	MOVQ DX, ret+32(FP)
	RET

// func validU16AVX2(valid, src *byte, n int, a uint16) int
TEXT ·validU16AVX2(SB), NOSPLIT, $0-40
	MOVQ         valid+0(FP), DI
	MOVQ         src+8(FP), SI
	MOVQ         n+16(FP), CX
	MOVQ         CX, DX
	VPBROADCASTW a+24(FP), Y15
	VPCMPEQB     Y0, Y0, Y0
	VPABSB       Y0, Y14
	VPXOR        Y13, Y13, Y13
	VPXOR        Y12, Y12, Y12

valid16loop:
	VPCMPEQW  (SI), Y15, Y0
	VPCMPEQW  32(SI), Y15, Y1
	VPACKSSWB Y1, Y0, Y0
	VPERMQ    $0xD8, Y0, Y0
	VPADDB    Y14, Y0, Y0
	VMOVDQU   Y0, (DI)
	VPSADBW   Y13, Y0, Y0
	VPADDQ    Y0, Y12, Y12
	ADDQ      $64, SI
	ADDQ      $32, DI
	SUBQ      $32, CX
	JNZ       valid16loop
	COUNT
	MOVQ DX, ret+32(FP)
	RET

// func validU32AVX2(valid, src *byte, n int, a, b uint32) int
TEXT ·validU32AVX2(SB), NOSPLIT, $0-40
	MOVQ         valid+0(FP), DI
	MOVQ         src+8(FP), SI
	MOVQ         n+16(FP), CX
	MOVQ         CX, DX
	VBROADCASTSS a+24(FP), Y15
	VBROADCASTSS b+28(FP), Y11
	VMOVDQU      unpack<>(SB), Y10
	VPCMPEQB     Y0, Y0, Y0
	VPABSB       Y0, Y14
	VPXOR        Y13, Y13, Y13
	VPXOR        Y12, Y12, Y12

valid32loop:
	VMOVDQU   (SI), Y0
	VMOVDQU   32(SI), Y1
	VMOVDQU   64(SI), Y2
	VMOVDQU   96(SI), Y3
	VPCMPEQD  Y0, Y11, Y4
	VPCMPEQD  Y1, Y11, Y5
	VPCMPEQD  Y2, Y11, Y6
	VPCMPEQD  Y3, Y11, Y7
	VPCMPEQD  Y0, Y15, Y0
	VPCMPEQD  Y1, Y15, Y1
	VPCMPEQD  Y2, Y15, Y2
	VPCMPEQD  Y3, Y15, Y3
	VPOR      Y4, Y0, Y0
	VPOR      Y5, Y1, Y1
	VPOR      Y6, Y2, Y2
	VPOR      Y7, Y3, Y3
	VPACKSSDW Y1, Y0, Y0
	VPACKSSDW Y3, Y2, Y2
	VPACKSSWB Y2, Y0, Y0
	VPERMD    Y0, Y10, Y0
	VPADDB    Y14, Y0, Y0
	VMOVDQU   Y0, (DI)
	VPSADBW   Y13, Y0, Y0
	VPADDQ    Y0, Y12, Y12
	ADDQ      $128, SI
	ADDQ      $32, DI
	SUBQ      $32, CX
	JNZ       valid32loop
	COUNT
	MOVQ DX, ret+32(FP)
	RET

// func validNaN32AVX2(valid, src *byte, n int) int
TEXT ·validNaN32AVX2(SB), NOSPLIT, $0-32
	MOVQ     valid+0(FP), DI
	MOVQ     src+8(FP), SI
	MOVQ     n+16(FP), CX
	MOVQ     CX, DX
	VMOVDQU  unpack<>(SB), Y10
	VPCMPEQB Y0, Y0, Y0
	VPABSB   Y0, Y14
	VPXOR    Y13, Y13, Y13
	VPXOR    Y12, Y12, Y12

validnanloop:
	VMOVUPS   (SI), Y0
	VMOVUPS   32(SI), Y1
	VMOVUPS   64(SI), Y2
	VMOVUPS   96(SI), Y3
	VCMPPS    $3, Y0, Y0, Y0
	VCMPPS    $3, Y1, Y1, Y1
	VCMPPS    $3, Y2, Y2, Y2
	VCMPPS    $3, Y3, Y3, Y3
	VPACKSSDW Y1, Y0, Y0
	VPACKSSDW Y3, Y2, Y2
	VPACKSSWB Y2, Y0, Y0
	VPERMD    Y0, Y10, Y0
	VPADDB    Y14, Y0, Y0
	VMOVDQU   Y0, (DI)
	VPSADBW   Y13, Y0, Y0
	VPADDQ    Y0, Y12, Y12
	ADDQ      $128, SI
	ADDQ      $32, DI
	SUBQ      $32, CX
	JNZ       validnanloop
	COUNT
	MOVQ DX, ret+24(FP)
	RET

// The same past the caches: whole lines are written without being read first.

// func streamU16AVX2(dst *float32, src *byte, n int, a, c float32)
TEXT ·streamU16AVX2(SB), NOSPLIT, $0-32
	MOVQ         dst+0(FP), DI
	MOVQ         src+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSS a+24(FP), Y14
	VBROADCASTSS c+28(FP), Y15

streamu16loop:
	VPMOVZXWD (SI), Y0
	VPMOVZXWD 16(SI), Y1
	VCVTDQ2PS Y0, Y0
	VCVTDQ2PS Y1, Y1
	VMULPS    Y14, Y0, Y0
	VMULPS    Y14, Y1, Y1
	VADDPS    Y15, Y0, Y0
	VADDPS    Y15, Y1, Y1
	VMOVNTPS  Y0, (DI)
	VMOVNTPS  Y1, 32(DI)
	ADDQ      $32, SI
	ADDQ      $64, DI
	SUBQ      $16, CX
	JNZ       streamu16loop
	VZEROUPPER
	RET

// func streamI16AVX2(dst *float32, src *byte, n int, a, c float32)
TEXT ·streamI16AVX2(SB), NOSPLIT, $0-32
	MOVQ         dst+0(FP), DI
	MOVQ         src+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSS a+24(FP), Y14
	VBROADCASTSS c+28(FP), Y15

streami16loop:
	VPMOVSXWD (SI), Y0
	VPMOVSXWD 16(SI), Y1
	VCVTDQ2PS Y0, Y0
	VCVTDQ2PS Y1, Y1
	VMULPS    Y14, Y0, Y0
	VMULPS    Y14, Y1, Y1
	VADDPS    Y15, Y0, Y0
	VADDPS    Y15, Y1, Y1
	VMOVNTPS  Y0, (DI)
	VMOVNTPS  Y1, 32(DI)
	ADDQ      $32, SI
	ADDQ      $64, DI
	SUBQ      $16, CX
	JNZ       streami16loop
	VZEROUPPER
	RET

// func streamU8AVX2(dst *float32, src *byte, n int, a, c float32)
TEXT ·streamU8AVX2(SB), NOSPLIT, $0-32
	MOVQ         dst+0(FP), DI
	MOVQ         src+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSS a+24(FP), Y14
	VBROADCASTSS c+28(FP), Y15

streamu8loop:
	VPMOVZXBD (SI), Y0
	VPMOVZXBD 8(SI), Y1
	VCVTDQ2PS Y0, Y0
	VCVTDQ2PS Y1, Y1
	VMULPS    Y14, Y0, Y0
	VMULPS    Y14, Y1, Y1
	VADDPS    Y15, Y0, Y0
	VADDPS    Y15, Y1, Y1
	VMOVNTPS  Y0, (DI)
	VMOVNTPS  Y1, 32(DI)
	ADDQ      $16, SI
	ADDQ      $64, DI
	SUBQ      $16, CX
	JNZ       streamu8loop
	VZEROUPPER
	RET

// func storeFence()
TEXT ·storeFence(SB), NOSPLIT, $0-0
	SFENCE
	RET
