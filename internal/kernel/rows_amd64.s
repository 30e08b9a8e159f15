//go:build !purego && !twins

#include "go_asm.h"
#include "textflag.h"

// The functions of this file convert rows of samples, of one band (row...) or of up to four bands that lie side by side
// (quad...), as Rows says. Eight numbers of a band are a vector of 32 bits each until they are stored. A row whose width
// is not a multiple of eight ends with a vector that overlaps the one before: it writes the same again.
//
// DI is the rowArgs, SI the next sample, BX and DX the offsets of the next element and of its mask in their rows, CX the
// numbers that are left of the row, R8 to R11 the rows of elements, R12 and R13 one and three times the distance of
// samples. Y0 to Y3 are the numbers of a band each, Y4 the nodata among them, Y7 counts these, X8 is 1 in each byte. For
// bfloat16, Y12 to Y15 are as in storeBF16AVX2. The other vectors are free.

// Dwords k to 16+k have ones in the last k.
DATA lastLanes<>+0(SB)/8, $0
DATA lastLanes<>+8(SB)/8, $0
DATA lastLanes<>+16(SB)/8, $0
DATA lastLanes<>+24(SB)/8, $0
DATA lastLanes<>+32(SB)/8, $0
DATA lastLanes<>+40(SB)/8, $0
DATA lastLanes<>+48(SB)/8, $0
DATA lastLanes<>+56(SB)/8, $0
DATA lastLanes<>+64(SB)/8, $-1
DATA lastLanes<>+72(SB)/8, $-1
DATA lastLanes<>+80(SB)/8, $-1
DATA lastLanes<>+88(SB)/8, $-1
DATA lastLanes<>+96(SB)/8, $-1
DATA lastLanes<>+104(SB)/8, $-1
DATA lastLanes<>+112(SB)/8, $-1
DATA lastLanes<>+120(SB)/8, $-1
GLOBL lastLanes<>(SB), RODATA|NOPTR, $128

// Eight numbers of one band go to Y0.
#define ROW_U8 VPMOVZXBD (SI), Y0
#define ROW_U16 VPMOVZXWD (SI), Y0
#define ROW_I16 VPMOVSXWD (SI), Y0
#define ROW_F32 VMOVUPS (SI), Y0

// The eight numbers behind them go to Y1.
#define NEXT_U8 VPMOVZXBD 8(SI), Y1
#define NEXT_U16 VPMOVZXWD 16(SI), Y1
#define NEXT_I16 VPMOVSXWD 16(SI), Y1
#define NEXT_F32 VMOVUPS 32(SI), Y1

// Eight pixels of four bands go to Y0 to Y3: pixels are interleaved in pairs, pairs in fours, fours in eights.
#define QUAD_U8 \
	LEAQ       (SI)(R12*4), AX \
	VMOVD      (SI), X0        \
	VMOVD      (SI)(R12*1), X1 \
	VMOVD      (SI)(R12*2), X2 \
	VMOVD      (SI)(R13*1), X3 \
	VMOVD      (AX), X4        \
	VMOVD      (AX)(R12*1), X5 \
	VMOVD      (AX)(R12*2), X6 \
	VMOVD      (AX)(R13*1), X9 \
	VPUNPCKLBW X1, X0, X0      \
	VPUNPCKLBW X3, X2, X2      \
	VPUNPCKLBW X5, X4, X4      \
	VPUNPCKLBW X9, X6, X6      \
	VPUNPCKLWD X2, X0, X0      \
	VPUNPCKLWD X6, X4, X4      \
	VPUNPCKLDQ X4, X0, X1      \
	VPUNPCKHDQ X4, X0, X3      \
	VPMOVZXBD  X1, Y0          \
	VPSRLDQ    $8, X1, X1      \
	VPMOVZXBD  X3, Y2          \
	VPSRLDQ    $8, X3, X3      \
	VPMOVZXBD  X1, Y1          \
	VPMOVZXBD  X3, Y3

#define QUAD_16(EXTEND) \
	LEAQ        (SI)(R12*4), AX \
	VMOVQ       (SI), X0        \
	VMOVQ       (SI)(R12*1), X1 \
	VMOVQ       (SI)(R12*2), X2 \
	VMOVQ       (SI)(R13*1), X3 \
	VMOVQ       (AX), X4        \
	VMOVQ       (AX)(R12*1), X5 \
	VMOVQ       (AX)(R12*2), X6 \
	VMOVQ       (AX)(R13*1), X9 \
	VPUNPCKLWD  X1, X0, X0      \
	VPUNPCKLWD  X3, X2, X2      \
	VPUNPCKLWD  X5, X4, X4      \
	VPUNPCKLWD  X9, X6, X6      \
	VPUNPCKLDQ  X2, X0, X1      \
	VPUNPCKHDQ  X2, X0, X3      \
	VPUNPCKLDQ  X6, X4, X5      \
	VPUNPCKHDQ  X6, X4, X9      \
	VPUNPCKLQDQ X5, X1, X0      \
	VPUNPCKHQDQ X5, X1, X1      \
	VPUNPCKLQDQ X9, X3, X2      \
	VPUNPCKHQDQ X9, X3, X3      \
	EXTEND      X0, Y0          \
	EXTEND      X1, Y1          \
	EXTEND      X2, Y2          \
	EXTEND      X3, Y3

#define QUAD_U16 QUAD_16(VPMOVZXWD)
#define QUAD_I16 QUAD_16(VPMOVSXWD)

#define QUAD_F32 \
	LEAQ        (SI)(R12*4), AX         \
	VMOVUPS     (SI), X0                \
	VMOVUPS     (SI)(R12*1), X1         \
	VMOVUPS     (SI)(R12*2), X2         \
	VMOVUPS     (SI)(R13*1), X3         \
	VINSERTF128 $1, (AX), Y0, Y0        \
	VINSERTF128 $1, (AX)(R12*1), Y1, Y1 \
	VINSERTF128 $1, (AX)(R12*2), Y2, Y2 \
	VINSERTF128 $1, (AX)(R13*1), Y3, Y3 \
	VUNPCKLPS   Y1, Y0, Y4              \
	VUNPCKHPS   Y1, Y0, Y5              \
	VUNPCKLPS   Y3, Y2, Y6              \
	VUNPCKHPS   Y3, Y2, Y9              \
	VUNPCKLPD   Y6, Y4, Y0              \
	VUNPCKHPD   Y6, Y4, Y1              \
	VUNPCKLPD   Y9, Y5, Y2              \
	VUNPCKHPD   Y9, Y5, Y3

// Numbers become float32.
#define INT(Y) VCVTDQ2PS Y, Y
#define FLOAT(Y) VMOVAPS Y, Y

// Y4 becomes -1 where numbers of the band are nodata.
#define HIT_INT(OFF, Y) \
	VPCMPEQD rowArgs_first+OFF(DI), Y, Y4  \
	VPCMPEQD rowArgs_second+OFF(DI), Y, Y5 \
	VPOR     Y5, Y4, Y4

#define HIT_FLOAT(OFF, Y) \
	HIT_INT(OFF, Y)                      \
	VCMPPS   $3, Y, Y, Y5                \
	VPAND    rowArgs_nan+OFF(DI), Y5, Y5 \
	VPOR     Y5, Y4, Y4                  \
	VPAND    rowArgs_match+OFF(DI), Y4, Y4

// Numbers become elements and are stored OFF bytes behind the next element.
#define STORE_F32(Y, X, R, OFF) VMOVUPS Y, OFF(R)(BX*1)

#define STORE_F16(Y, X, R, OFF) VCVTPS2PH $0, Y, OFF(R)(BX*1)

#define STORE_BF16(Y, X, R, OFF) \
	VCMPPS       $3, Y, Y, Y9  \
	VPSRLD       $16, Y, Y10   \
	VPAND        Y14, Y10, Y11 \
	VPAND        Y12, Y10, Y10 \
	VPOR         Y13, Y10, Y10 \
	VPADDD       Y15, Y, Y     \
	VPADDD       Y11, Y, Y     \
	VPSRLD       $16, Y, Y     \
	VPBLENDVB    Y9, Y10, Y, Y \
	VEXTRACTI128 $1, Y, X9     \
	VPACKUSDW    X9, X, X      \
	VMOVDQU      X, OFF(R)(BX*1)

#define STORE_PAST(Y, X, R, OFF) VMOVNTPS Y, OFF(R)(BX*1)

#define STORE_LANES(Y, X, R, OFF) \
	VMOVDQU    rowArgs_lanes(DI), Y5 \
	VMASKMOVPS Y, Y5, OFF(R)(BX*1)

// AFFINE is of a band in quad, ROWAFFINE of the only one in row, whose A and C are Y2 and Y3.
#define AFFINE(BAND, Y) \
	VMULPS rowArgs_a+BAND(DI), Y, Y \
	VADDPS rowArgs_c+BAND(DI), Y, Y

#define ROWAFFINE(BAND, Y) \
	VMULPS Y2, Y, Y \
	VADDPS Y3, Y, Y

// MAXPS and MINPS are as in clipAVX2. Y4 and Y5 are the limits.
#define LIMITS \
	VMOVUPS rowArgs_lo(DI), Y4 \
	VMOVUPS rowArgs_hi(DI), Y5

#define LIMIT(Y) \
	VMAXPS Y, Y4, Y \
	VMINPS Y, Y5, Y

// One band without nodata, limits and mask. BAND and PTR are its offsets in the arrays of numbers and of pointers.
#define PLAIN(BAND, PTR, Y, X, R, NUMBER, HIT, STORE, LIN) \
	NUMBER(Y)    \
	LIN(BAND, Y) \
	STORE(Y, X, R, 0)

// One band with them: the vector stored OFF bytes behind the next element, the mask at MOFF, lanes at LOFF.
#define FULLAT(BAND, PTR, Y, X, R, NUMBER, HIT, STORE, LIN, OFF, MOFF, LOFF) \
	HIT(BAND, Y)                                \
	NUMBER(Y)                                   \
	VPAND        rowArgs_lanes+LOFF(DI), Y4, Y5 \
	VPADDD       Y5, Y7, Y7                     \
	LIN(BAND, Y)                                \
	VMOVUPS      rowArgs_lo(DI), Y5             \
	VMAXPS       Y, Y5, Y                       \
	VMOVUPS      rowArgs_hi(DI), Y5             \
	VMINPS       Y, Y5, Y                       \
	VPAND        rowArgs_fills(DI), Y4, Y5      \
	VBLENDVPS    Y5, rowArgs_fill(DI), Y, Y     \
	VEXTRACTI128 $1, Y4, X5                     \
	VPACKSSDW    X5, X4, X5                     \
	VPACKSSWB    X5, X5, X5                     \
	VPADDB       X8, X5, X5                     \
	MOVQ         rowArgs_maskRow+PTR(DI), AX    \
	VMOVQ        X5, MOFF(AX)(DX*1)             \
	STORE(Y, X, R, OFF)

#define FULL(BAND, PTR, Y, X, R, NUMBER, HIT, STORE, LIN) \
	FULLAT(BAND, PTR, Y, X, R, NUMBER, HIT, STORE, LIN, 0, 0, 0)

// JNE goes where one of four bands, or of two vectors of one, has nodata.
#define ANYOF4(HIT) \
	HIT(0, Y0)         \
	VMOVAPS Y4, Y6     \
	HIT(32, Y1)        \
	VPOR    Y4, Y6, Y6 \
	HIT(64, Y2)        \
	VPOR    Y4, Y6, Y6 \
	HIT(96, Y3)        \
	VPOR    Y4, Y6, Y6 \
	VPTEST  Y6, Y6

#define ANYOF2(HIT) \
	HIT(0, Y0)         \
	VMOVAPS Y4, Y6     \
	HIT(0, Y1)         \
	VPOR    Y4, Y6, Y6 \
	VPTEST  Y6, Y6

#define BEGIN \
	MOVQ     args+0(FP), DI          \
	MOVQ     rowArgs_src(DI), SI     \
	MOVQ     SI, rowArgs_srcRow(DI)  \
	MOVQ     rowArgs_dst(DI), R8     \
	MOVQ     rowArgs_dst+8(DI), R9   \
	MOVQ     rowArgs_dst+16(DI), R10 \
	MOVQ     rowArgs_dst+24(DI), R11 \
	VPXOR    Y7, Y7, Y7              \
	VPCMPEQD Y15, Y15, Y15           \
	VPABSB   X15, X8                 \
	VPSRLD   $31, Y15, Y14           \
	VPSLLD   $15, Y14, Y12           \
	VPSLLD   $6, Y14, Y13            \
	VPSRLD   $24, Y15, Y15           \
	VPSLLD   $7, Y15, Y15            \
	VPOR     Y15, Y13, Y13           \
	VPCMPEQD Y15, Y15, Y15           \
	VPSRLD   $17, Y15, Y15           \
	VMOVUPS  rowArgs_a(DI), Y2       \
	VMOVUPS  rowArgs_c(DI), Y3       \
	MOVQ     rowArgs_step(DI), R12   \
	LEAQ     (R12)(R12*2), R13

// Rows of the mask begin where maskRow says. Without a mask, its bytes go to one place.
#define MASKS \
	MOVQ rowArgs_mask(DI), SI       \
	MOVQ rowArgs_mask+8(DI), BX     \
	MOVQ rowArgs_mask+16(DI), AX    \
	MOVQ rowArgs_mask+24(DI), CX    \
	CMPQ rowArgs_maskStep(DI), $0   \
	JNE  masked                     \
	LEAQ rowArgs_noMask(DI), SI     \
	MOVQ SI, BX                     \
	MOVQ SI, AX                     \
	MOVQ SI, CX                     \
masked:                             \
	MOVQ SI, rowArgs_maskRow(DI)    \
	MOVQ BX, rowArgs_maskRow+8(DI)  \
	MOVQ AX, rowArgs_maskRow+16(DI) \
	MOVQ CX, rowArgs_maskRow+24(DI) \
	MOVQ rowArgs_srcRow(DI), SI

// CX is the numbers of the row behind the next COUNT.
#define ROWBEGIN(COUNT) \
	MOVQ rowArgs_width(DI), CX \
	SUBQ $COUNT, CX            \
	XORL BX, BX                \
	XORL DX, DX

// The last COUNT numbers of a row begin -CX numbers before the end of those before.
#define LAST(SIZE) \
	MOVQ  CX, AX  \
	IMULQ R12, AX \
	ADDQ  AX, SI  \
	LEAQ  (BX)(CX*SIZE), BX

// The same for the mask and for counts: lanes that both have are not counted again. CX becomes what is new of COUNT.
#define LASTFULL(COUNT) \
	MOVQ    rowArgs_maskStep(DI), AX \
	IMULQ   CX, AX                   \
	SARQ    $3, AX                   \
	ADDQ    AX, DX                   \
	ADDQ    $COUNT, CX               \
	LEAQ    lastLanes<>(SB), AX      \
	LEAQ    (AX)(CX*4), AX           \
	VMOVDQU (64-4*COUNT)(AX), Y0     \
	VMOVDQU Y0, rowArgs_lanes(DI)    \
	VMOVDQU 32(AX), Y0               \
	VMOVDQU Y0, rowArgs_lanes+32(DI)

// The rest of a loop over COUNT numbers at a time, up to the next row.
#define TURN(COUNT, SIZE, ATLAST, RESET) \
	SUBQ $COUNT, CX  \
	JGE  loop        \
	CMPQ CX, $-COUNT \
	JEQ  next        \
	LAST(SIZE)       \
	ATLAST           \
	XORL CX, CX      \
	JMP  loop        \
next:                \
	RESET            \
	ROWEND           \
	JNZ  row         \
	END

#define ALLLANES \
	VPCMPEQD Y0, Y0, Y0            \
	VMOVDQU  Y0, rowArgs_lanes(DI) \
	VMOVDQU  Y0, rowArgs_lanes+32(DI)

#define LAST8 LASTFULL(8)
#define LAST16 LASTFULL(16)
#define NOTHING

// The next row, or the end of the function behind JNZ.
#define ROWEND \
	MOVQ rowArgs_srcRow(DI), SI     \
	ADDQ rowArgs_srcPitch(DI), SI   \
	MOVQ SI, rowArgs_srcRow(DI)     \
	MOVQ rowArgs_dstPitch(DI), AX   \
	ADDQ AX, R8                     \
	ADDQ AX, R9                     \
	ADDQ AX, R10                    \
	ADDQ AX, R11                    \
	MOVQ rowArgs_maskPitch(DI), AX  \
	ADDQ AX, rowArgs_maskRow(DI)    \
	ADDQ AX, rowArgs_maskRow+8(DI)  \
	ADDQ AX, rowArgs_maskRow+16(DI) \
	ADDQ AX, rowArgs_maskRow+24(DI) \
	DECQ rowArgs_rows(DI)

#define END \
	VEXTRACTI128 $1, Y7, X0          \
	VPADDD       X0, X7, X7          \
	VPSRLDQ      $8, X7, X0          \
	VPADDD       X0, X7, X7          \
	VPSRLDQ      $4, X7, X0          \
	VPADDD       X0, X7, X7          \
	VMOVD        X7, AX              \
	NEGL         AX                  \
	MOVQ         AX, rowArgs_bad(DI) \
	VZEROUPPER                       \
	RET

// Rows of one band, at least 16 numbers, 16 at a time. SRC and DST are the bytes of eight.
#define TWICE(GET, NEXT, NUMBER, STORE, SIZE, SRC, DST) \
	BEGIN                  \
row:                       \
	ROWBEGIN(16)           \
loop:                      \
	GET                    \
	NEXT                   \
	NUMBER(Y0)             \
	NUMBER(Y1)             \
	ROWAFFINE(0, Y0)       \
	ROWAFFINE(0, Y1)       \
	STORE(Y0, X0, R8, 0)   \
	STORE(Y1, X1, R8, DST) \
	ADDQ $2*DST, BX        \
	ADDQ $2*SRC, SI        \
	TURN(16, SIZE, NOTHING, NOTHING)

// The same with nodata, limits or a mask.
#define TWICEFULL(GET, NEXT, NUMBER, HIT, STORE, SIZE, SRC, DST) \
	BEGIN                                                               \
	MASKS                                                               \
row:                                                                    \
	ROWBEGIN(16)                                                        \
loop:                                                                   \
	GET                                                                 \
	NEXT                                                                \
	ANYOF2(HIT)                                                         \
	JNE  hits                                                           \
	NUMBER(Y0)                                                          \
	NUMBER(Y1)                                                          \
	ROWAFFINE(0, Y0)                                                    \
	ROWAFFINE(0, Y1)                                                    \
	CMPQ rowArgs_limits(DI), $0                                         \
	JEQ  limited                                                        \
	LIMITS                                                              \
	LIMIT(Y0)                                                           \
	LIMIT(Y1)                                                           \
limited:                                                                \
	CMPQ rowArgs_maskStep(DI), $0                                       \
	JEQ  store                                                          \
	MOVQ    rowArgs_maskRow(DI), AX                                     \
	VMOVDQU X8, (AX)(DX*1)                                              \
	ADDQ    $16, DX                                                     \
store:                                                                  \
	STORE(Y0, X0, R8, 0)                                                \
	STORE(Y1, X1, R8, DST)                                              \
turn:                                                                   \
	ADDQ $2*DST, BX                                                     \
	ADDQ $2*SRC, SI                                                     \
	TURN(16, SIZE, LAST16, ALLLANES)                                    \
hits:                                                                   \
	FULLAT(0, 0, Y0, X0, R8, NUMBER, HIT, STORE, ROWAFFINE, 0, 0, 0)    \
	FULLAT(0, 0, Y1, X1, R8, NUMBER, HIT, STORE, ROWAFFINE, DST, 8, 32) \
	ADDQ rowArgs_maskStep(DI), DX                                       \
	ADDQ rowArgs_maskStep(DI), DX                                       \
	JMP  turn

// Eight numbers of a row, or of rows, in some lanes.
#define ONE(GET, NUMBER, HIT) \
	BEGIN                                                       \
	MASKS                                                       \
row:                                                            \
	ROWBEGIN(8)                                                 \
	GET                                                         \
	FULL(0, 0, Y0, X0, R8, NUMBER, HIT, STORE_LANES, ROWAFFINE) \
	ROWEND                                                      \
	JNZ  row                                                    \
	END

// BAND of the bands that there are. JLT and JEQ go to the label done.
#define BANDS(BAND, NUMBER, HIT, STORE, DONE) \
	BAND(0, 0, Y0, X0, R8, NUMBER, HIT, STORE, AFFINE)    \
	CMPQ rowArgs_bands(DI), $2                            \
	JLT  DONE                                             \
	BAND(32, 8, Y1, X1, R9, NUMBER, HIT, STORE, AFFINE)   \
	CMPQ rowArgs_bands(DI), $3                            \
	JLT  DONE                                             \
	BAND(64, 16, Y2, X2, R10, NUMBER, HIT, STORE, AFFINE) \
	JEQ  DONE                                             \
	BAND(96, 24, Y3, X3, R11, NUMBER, HIT, STORE, AFFINE)

// Rows of up to four bands, at least eight pixels, eight at a time.
#define FOUR(GET, NUMBER, STORE, SIZE, DST) \
	BEGIN                                        \
row:                                             \
	ROWBEGIN(8)                                  \
loop:                                            \
	GET                                          \
	BANDS(PLAIN, NUMBER, NOTHING, STORE, pixels) \
pixels:                                          \
	LEAQ (SI)(R12*8), SI                         \
	ADDQ $DST, BX                                \
	TURN(8, SIZE, NOTHING, NOTHING)

// The same with nodata, limits or a mask.
#define STOREONLY(BAND, PTR, Y, X, R, NUMBER, HIT, STORE, LIN) STORE(Y, X, R, 0)

#define MASKONLY(BAND, PTR, Y, X, R, NUMBER, HIT, STORE, LIN) \
	MOVQ  rowArgs_maskRow+PTR(DI), AX \
	VMOVQ X8, (AX)(DX*1)

#define FOURFULL(GET, NUMBER, HIT, STORE, SIZE, DST) \
	BEGIN                                             \
	MASKS                                             \
row:                                                  \
	ROWBEGIN(8)                                       \
loop:                                                 \
	GET                                               \
	ANYOF4(HIT)                                       \
	JNE  hits                                         \
	NUMBER(Y0)                                        \
	NUMBER(Y1)                                        \
	NUMBER(Y2)                                        \
	NUMBER(Y3)                                        \
	AFFINE(0, Y0)                                     \
	AFFINE(32, Y1)                                    \
	AFFINE(64, Y2)                                    \
	AFFINE(96, Y3)                                    \
	CMPQ rowArgs_limits(DI), $0                       \
	JEQ  limited                                      \
	LIMITS                                            \
	LIMIT(Y0)                                         \
	LIMIT(Y1)                                         \
	LIMIT(Y2)                                         \
	LIMIT(Y3)                                         \
limited:                                              \
	CMPQ rowArgs_maskStep(DI), $0                     \
	JEQ  store                                        \
	BANDS(MASKONLY, NOTHING, NOTHING, NOTHING, store) \
store:                                                \
	BANDS(STOREONLY, NOTHING, NOTHING, STORE, pixels) \
	JMP  pixels                                       \
hits:                                                 \
	BANDS(FULL, NUMBER, HIT, STORE, pixels)           \
pixels:                                               \
	ADDQ rowArgs_maskStep(DI), DX                     \
	LEAQ (SI)(R12*8), SI                              \
	ADDQ $DST, BX                                     \
	TURN(8, SIZE, LAST8, ALLLANES)

// Eight pixels of a row, or of rows, in some lanes.
#define FOURLANES(GET, NUMBER, HIT) \
	BEGIN                                         \
	MASKS                                         \
row:                                              \
	ROWBEGIN(8)                                   \
	GET                                           \
	BANDS(FULL, NUMBER, HIT, STORE_LANES, pixels) \
pixels:                                           \
	ROWEND                                        \
	JNZ  row                                      \
	END

TEXT rowU8PlainF32<>(SB), NOSPLIT, $0-8
	TWICE(ROW_U8, NEXT_U8, INT, STORE_F32, 4, 8, 32)

TEXT rowU8PlainF16<>(SB), NOSPLIT, $0-8
	TWICE(ROW_U8, NEXT_U8, INT, STORE_F16, 2, 8, 16)

TEXT rowU8PlainBF16<>(SB), NOSPLIT, $0-8
	TWICE(ROW_U8, NEXT_U8, INT, STORE_BF16, 2, 8, 16)

TEXT rowU8FullF32<>(SB), NOSPLIT, $0-8
	TWICEFULL(ROW_U8, NEXT_U8, INT, HIT_INT, STORE_F32, 4, 8, 32)

TEXT rowU8FullF16<>(SB), NOSPLIT, $0-8
	TWICEFULL(ROW_U8, NEXT_U8, INT, HIT_INT, STORE_F16, 2, 8, 16)

TEXT rowU8FullBF16<>(SB), NOSPLIT, $0-8
	TWICEFULL(ROW_U8, NEXT_U8, INT, HIT_INT, STORE_BF16, 2, 8, 16)

TEXT rowU8PlainPast<>(SB), NOSPLIT, $0-8
	TWICE(ROW_U8, NEXT_U8, INT, STORE_PAST, 4, 8, 32)

TEXT rowU8FullPast<>(SB), NOSPLIT, $0-8
	TWICEFULL(ROW_U8, NEXT_U8, INT, HIT_INT, STORE_PAST, 4, 8, 32)

TEXT rowU8FullLanes<>(SB), NOSPLIT, $0-8
	ONE(ROW_U8, INT, HIT_INT)

TEXT rowU16PlainF32<>(SB), NOSPLIT, $0-8
	TWICE(ROW_U16, NEXT_U16, INT, STORE_F32, 4, 16, 32)

TEXT rowU16PlainF16<>(SB), NOSPLIT, $0-8
	TWICE(ROW_U16, NEXT_U16, INT, STORE_F16, 2, 16, 16)

TEXT rowU16PlainBF16<>(SB), NOSPLIT, $0-8
	TWICE(ROW_U16, NEXT_U16, INT, STORE_BF16, 2, 16, 16)

TEXT rowU16FullF32<>(SB), NOSPLIT, $0-8
	TWICEFULL(ROW_U16, NEXT_U16, INT, HIT_INT, STORE_F32, 4, 16, 32)

TEXT rowU16FullF16<>(SB), NOSPLIT, $0-8
	TWICEFULL(ROW_U16, NEXT_U16, INT, HIT_INT, STORE_F16, 2, 16, 16)

TEXT rowU16FullBF16<>(SB), NOSPLIT, $0-8
	TWICEFULL(ROW_U16, NEXT_U16, INT, HIT_INT, STORE_BF16, 2, 16, 16)

TEXT rowU16PlainPast<>(SB), NOSPLIT, $0-8
	TWICE(ROW_U16, NEXT_U16, INT, STORE_PAST, 4, 16, 32)

TEXT rowU16FullPast<>(SB), NOSPLIT, $0-8
	TWICEFULL(ROW_U16, NEXT_U16, INT, HIT_INT, STORE_PAST, 4, 16, 32)

TEXT rowU16FullLanes<>(SB), NOSPLIT, $0-8
	ONE(ROW_U16, INT, HIT_INT)

TEXT rowI16PlainF32<>(SB), NOSPLIT, $0-8
	TWICE(ROW_I16, NEXT_I16, INT, STORE_F32, 4, 16, 32)

TEXT rowI16PlainF16<>(SB), NOSPLIT, $0-8
	TWICE(ROW_I16, NEXT_I16, INT, STORE_F16, 2, 16, 16)

TEXT rowI16PlainBF16<>(SB), NOSPLIT, $0-8
	TWICE(ROW_I16, NEXT_I16, INT, STORE_BF16, 2, 16, 16)

TEXT rowI16FullF32<>(SB), NOSPLIT, $0-8
	TWICEFULL(ROW_I16, NEXT_I16, INT, HIT_INT, STORE_F32, 4, 16, 32)

TEXT rowI16FullF16<>(SB), NOSPLIT, $0-8
	TWICEFULL(ROW_I16, NEXT_I16, INT, HIT_INT, STORE_F16, 2, 16, 16)

TEXT rowI16FullBF16<>(SB), NOSPLIT, $0-8
	TWICEFULL(ROW_I16, NEXT_I16, INT, HIT_INT, STORE_BF16, 2, 16, 16)

TEXT rowI16PlainPast<>(SB), NOSPLIT, $0-8
	TWICE(ROW_I16, NEXT_I16, INT, STORE_PAST, 4, 16, 32)

TEXT rowI16FullPast<>(SB), NOSPLIT, $0-8
	TWICEFULL(ROW_I16, NEXT_I16, INT, HIT_INT, STORE_PAST, 4, 16, 32)

TEXT rowI16FullLanes<>(SB), NOSPLIT, $0-8
	ONE(ROW_I16, INT, HIT_INT)

TEXT rowF32PlainF32<>(SB), NOSPLIT, $0-8
	TWICE(ROW_F32, NEXT_F32, FLOAT, STORE_F32, 4, 32, 32)

TEXT rowF32PlainF16<>(SB), NOSPLIT, $0-8
	TWICE(ROW_F32, NEXT_F32, FLOAT, STORE_F16, 2, 32, 16)

TEXT rowF32PlainBF16<>(SB), NOSPLIT, $0-8
	TWICE(ROW_F32, NEXT_F32, FLOAT, STORE_BF16, 2, 32, 16)

TEXT rowF32FullF32<>(SB), NOSPLIT, $0-8
	TWICEFULL(ROW_F32, NEXT_F32, FLOAT, HIT_FLOAT, STORE_F32, 4, 32, 32)

TEXT rowF32FullF16<>(SB), NOSPLIT, $0-8
	TWICEFULL(ROW_F32, NEXT_F32, FLOAT, HIT_FLOAT, STORE_F16, 2, 32, 16)

TEXT rowF32FullBF16<>(SB), NOSPLIT, $0-8
	TWICEFULL(ROW_F32, NEXT_F32, FLOAT, HIT_FLOAT, STORE_BF16, 2, 32, 16)

TEXT rowF32PlainPast<>(SB), NOSPLIT, $0-8
	TWICE(ROW_F32, NEXT_F32, FLOAT, STORE_PAST, 4, 32, 32)

TEXT rowF32FullPast<>(SB), NOSPLIT, $0-8
	TWICEFULL(ROW_F32, NEXT_F32, FLOAT, HIT_FLOAT, STORE_PAST, 4, 32, 32)

TEXT rowF32FullLanes<>(SB), NOSPLIT, $0-8
	ONE(ROW_F32, FLOAT, HIT_FLOAT)

TEXT quadU8PlainF32<>(SB), NOSPLIT, $0-8
	FOUR(QUAD_U8, INT, STORE_F32, 4, 32)

TEXT quadU8PlainF16<>(SB), NOSPLIT, $0-8
	FOUR(QUAD_U8, INT, STORE_F16, 2, 16)

TEXT quadU8PlainBF16<>(SB), NOSPLIT, $0-8
	FOUR(QUAD_U8, INT, STORE_BF16, 2, 16)

TEXT quadU8FullF32<>(SB), NOSPLIT, $0-8
	FOURFULL(QUAD_U8, INT, HIT_INT, STORE_F32, 4, 32)

TEXT quadU8FullF16<>(SB), NOSPLIT, $0-8
	FOURFULL(QUAD_U8, INT, HIT_INT, STORE_F16, 2, 16)

TEXT quadU8FullBF16<>(SB), NOSPLIT, $0-8
	FOURFULL(QUAD_U8, INT, HIT_INT, STORE_BF16, 2, 16)

TEXT quadU8PlainPast<>(SB), NOSPLIT, $0-8
	FOUR(QUAD_U8, INT, STORE_PAST, 4, 32)

TEXT quadU8FullPast<>(SB), NOSPLIT, $0-8
	FOURFULL(QUAD_U8, INT, HIT_INT, STORE_PAST, 4, 32)

TEXT quadU8FullLanes<>(SB), NOSPLIT, $0-8
	FOURLANES(QUAD_U8, INT, HIT_INT)

TEXT quadU16PlainF32<>(SB), NOSPLIT, $0-8
	FOUR(QUAD_U16, INT, STORE_F32, 4, 32)

TEXT quadU16PlainF16<>(SB), NOSPLIT, $0-8
	FOUR(QUAD_U16, INT, STORE_F16, 2, 16)

TEXT quadU16PlainBF16<>(SB), NOSPLIT, $0-8
	FOUR(QUAD_U16, INT, STORE_BF16, 2, 16)

TEXT quadU16FullF32<>(SB), NOSPLIT, $0-8
	FOURFULL(QUAD_U16, INT, HIT_INT, STORE_F32, 4, 32)

TEXT quadU16FullF16<>(SB), NOSPLIT, $0-8
	FOURFULL(QUAD_U16, INT, HIT_INT, STORE_F16, 2, 16)

TEXT quadU16FullBF16<>(SB), NOSPLIT, $0-8
	FOURFULL(QUAD_U16, INT, HIT_INT, STORE_BF16, 2, 16)

TEXT quadU16PlainPast<>(SB), NOSPLIT, $0-8
	FOUR(QUAD_U16, INT, STORE_PAST, 4, 32)

TEXT quadU16FullPast<>(SB), NOSPLIT, $0-8
	FOURFULL(QUAD_U16, INT, HIT_INT, STORE_PAST, 4, 32)

TEXT quadU16FullLanes<>(SB), NOSPLIT, $0-8
	FOURLANES(QUAD_U16, INT, HIT_INT)

TEXT quadI16PlainF32<>(SB), NOSPLIT, $0-8
	FOUR(QUAD_I16, INT, STORE_F32, 4, 32)

TEXT quadI16PlainF16<>(SB), NOSPLIT, $0-8
	FOUR(QUAD_I16, INT, STORE_F16, 2, 16)

TEXT quadI16PlainBF16<>(SB), NOSPLIT, $0-8
	FOUR(QUAD_I16, INT, STORE_BF16, 2, 16)

TEXT quadI16FullF32<>(SB), NOSPLIT, $0-8
	FOURFULL(QUAD_I16, INT, HIT_INT, STORE_F32, 4, 32)

TEXT quadI16FullF16<>(SB), NOSPLIT, $0-8
	FOURFULL(QUAD_I16, INT, HIT_INT, STORE_F16, 2, 16)

TEXT quadI16FullBF16<>(SB), NOSPLIT, $0-8
	FOURFULL(QUAD_I16, INT, HIT_INT, STORE_BF16, 2, 16)

TEXT quadI16PlainPast<>(SB), NOSPLIT, $0-8
	FOUR(QUAD_I16, INT, STORE_PAST, 4, 32)

TEXT quadI16FullPast<>(SB), NOSPLIT, $0-8
	FOURFULL(QUAD_I16, INT, HIT_INT, STORE_PAST, 4, 32)

TEXT quadI16FullLanes<>(SB), NOSPLIT, $0-8
	FOURLANES(QUAD_I16, INT, HIT_INT)

TEXT quadF32PlainF32<>(SB), NOSPLIT, $0-8
	FOUR(QUAD_F32, FLOAT, STORE_F32, 4, 32)

TEXT quadF32PlainF16<>(SB), NOSPLIT, $0-8
	FOUR(QUAD_F32, FLOAT, STORE_F16, 2, 16)

TEXT quadF32PlainBF16<>(SB), NOSPLIT, $0-8
	FOUR(QUAD_F32, FLOAT, STORE_BF16, 2, 16)

TEXT quadF32FullF32<>(SB), NOSPLIT, $0-8
	FOURFULL(QUAD_F32, FLOAT, HIT_FLOAT, STORE_F32, 4, 32)

TEXT quadF32FullF16<>(SB), NOSPLIT, $0-8
	FOURFULL(QUAD_F32, FLOAT, HIT_FLOAT, STORE_F16, 2, 16)

TEXT quadF32FullBF16<>(SB), NOSPLIT, $0-8
	FOURFULL(QUAD_F32, FLOAT, HIT_FLOAT, STORE_BF16, 2, 16)

TEXT quadF32PlainPast<>(SB), NOSPLIT, $0-8
	FOUR(QUAD_F32, FLOAT, STORE_PAST, 4, 32)

TEXT quadF32FullPast<>(SB), NOSPLIT, $0-8
	FOURFULL(QUAD_F32, FLOAT, HIT_FLOAT, STORE_PAST, 4, 32)

TEXT quadF32FullLanes<>(SB), NOSPLIT, $0-8
	FOURLANES(QUAD_F32, FLOAT, HIT_FLOAT)

// The functions in the order of rowArgs.form.
DATA rowForms<>+0(SB)/8, $rowU8PlainF32<>(SB)
DATA rowForms<>+8(SB)/8, $rowU8PlainF16<>(SB)
DATA rowForms<>+16(SB)/8, $rowU8PlainBF16<>(SB)
DATA rowForms<>+24(SB)/8, $rowU8FullF32<>(SB)
DATA rowForms<>+32(SB)/8, $rowU8FullF16<>(SB)
DATA rowForms<>+40(SB)/8, $rowU8FullBF16<>(SB)
DATA rowForms<>+48(SB)/8, $rowU8PlainPast<>(SB)
DATA rowForms<>+56(SB)/8, $rowU8FullPast<>(SB)
DATA rowForms<>+64(SB)/8, $rowU8FullLanes<>(SB)
DATA rowForms<>+72(SB)/8, $rowU16PlainF32<>(SB)
DATA rowForms<>+80(SB)/8, $rowU16PlainF16<>(SB)
DATA rowForms<>+88(SB)/8, $rowU16PlainBF16<>(SB)
DATA rowForms<>+96(SB)/8, $rowU16FullF32<>(SB)
DATA rowForms<>+104(SB)/8, $rowU16FullF16<>(SB)
DATA rowForms<>+112(SB)/8, $rowU16FullBF16<>(SB)
DATA rowForms<>+120(SB)/8, $rowU16PlainPast<>(SB)
DATA rowForms<>+128(SB)/8, $rowU16FullPast<>(SB)
DATA rowForms<>+136(SB)/8, $rowU16FullLanes<>(SB)
DATA rowForms<>+144(SB)/8, $rowI16PlainF32<>(SB)
DATA rowForms<>+152(SB)/8, $rowI16PlainF16<>(SB)
DATA rowForms<>+160(SB)/8, $rowI16PlainBF16<>(SB)
DATA rowForms<>+168(SB)/8, $rowI16FullF32<>(SB)
DATA rowForms<>+176(SB)/8, $rowI16FullF16<>(SB)
DATA rowForms<>+184(SB)/8, $rowI16FullBF16<>(SB)
DATA rowForms<>+192(SB)/8, $rowI16PlainPast<>(SB)
DATA rowForms<>+200(SB)/8, $rowI16FullPast<>(SB)
DATA rowForms<>+208(SB)/8, $rowI16FullLanes<>(SB)
DATA rowForms<>+216(SB)/8, $rowF32PlainF32<>(SB)
DATA rowForms<>+224(SB)/8, $rowF32PlainF16<>(SB)
DATA rowForms<>+232(SB)/8, $rowF32PlainBF16<>(SB)
DATA rowForms<>+240(SB)/8, $rowF32FullF32<>(SB)
DATA rowForms<>+248(SB)/8, $rowF32FullF16<>(SB)
DATA rowForms<>+256(SB)/8, $rowF32FullBF16<>(SB)
DATA rowForms<>+264(SB)/8, $rowF32PlainPast<>(SB)
DATA rowForms<>+272(SB)/8, $rowF32FullPast<>(SB)
DATA rowForms<>+280(SB)/8, $rowF32FullLanes<>(SB)
DATA rowForms<>+288(SB)/8, $quadU8PlainF32<>(SB)
DATA rowForms<>+296(SB)/8, $quadU8PlainF16<>(SB)
DATA rowForms<>+304(SB)/8, $quadU8PlainBF16<>(SB)
DATA rowForms<>+312(SB)/8, $quadU8FullF32<>(SB)
DATA rowForms<>+320(SB)/8, $quadU8FullF16<>(SB)
DATA rowForms<>+328(SB)/8, $quadU8FullBF16<>(SB)
DATA rowForms<>+336(SB)/8, $quadU8PlainPast<>(SB)
DATA rowForms<>+344(SB)/8, $quadU8FullPast<>(SB)
DATA rowForms<>+352(SB)/8, $quadU8FullLanes<>(SB)
DATA rowForms<>+360(SB)/8, $quadU16PlainF32<>(SB)
DATA rowForms<>+368(SB)/8, $quadU16PlainF16<>(SB)
DATA rowForms<>+376(SB)/8, $quadU16PlainBF16<>(SB)
DATA rowForms<>+384(SB)/8, $quadU16FullF32<>(SB)
DATA rowForms<>+392(SB)/8, $quadU16FullF16<>(SB)
DATA rowForms<>+400(SB)/8, $quadU16FullBF16<>(SB)
DATA rowForms<>+408(SB)/8, $quadU16PlainPast<>(SB)
DATA rowForms<>+416(SB)/8, $quadU16FullPast<>(SB)
DATA rowForms<>+424(SB)/8, $quadU16FullLanes<>(SB)
DATA rowForms<>+432(SB)/8, $quadI16PlainF32<>(SB)
DATA rowForms<>+440(SB)/8, $quadI16PlainF16<>(SB)
DATA rowForms<>+448(SB)/8, $quadI16PlainBF16<>(SB)
DATA rowForms<>+456(SB)/8, $quadI16FullF32<>(SB)
DATA rowForms<>+464(SB)/8, $quadI16FullF16<>(SB)
DATA rowForms<>+472(SB)/8, $quadI16FullBF16<>(SB)
DATA rowForms<>+480(SB)/8, $quadI16PlainPast<>(SB)
DATA rowForms<>+488(SB)/8, $quadI16FullPast<>(SB)
DATA rowForms<>+496(SB)/8, $quadI16FullLanes<>(SB)
DATA rowForms<>+504(SB)/8, $quadF32PlainF32<>(SB)
DATA rowForms<>+512(SB)/8, $quadF32PlainF16<>(SB)
DATA rowForms<>+520(SB)/8, $quadF32PlainBF16<>(SB)
DATA rowForms<>+528(SB)/8, $quadF32FullF32<>(SB)
DATA rowForms<>+536(SB)/8, $quadF32FullF16<>(SB)
DATA rowForms<>+544(SB)/8, $quadF32FullBF16<>(SB)
DATA rowForms<>+552(SB)/8, $quadF32PlainPast<>(SB)
DATA rowForms<>+560(SB)/8, $quadF32FullPast<>(SB)
DATA rowForms<>+568(SB)/8, $quadF32FullLanes<>(SB)
GLOBL rowForms<>(SB), NOPTR, $576

// func convertRowsAVX2(args *rowArgs)
TEXT ·convertRowsAVX2(SB), NOSPLIT, $0-8
	MOVQ args+0(FP), DI
	MOVQ rowArgs_form(DI), AX
	LEAQ rowForms<>(SB), CX
	MOVQ (CX)(AX*8), AX
	JMP  AX
