package jpeg

// The inverse transform is by Loeffler, Ligtenberg and Moschytz ("Practical fast 1-D DCT algorithms with
// 11 multiplications", ICASSP 1989), in integers with the precision of libjpeg's accurate one: constants of 13
// bits, and 2 more bits between the columns and the rows. Sums are exact up to the two places that round, so
// the order of additions does not matter.
const (
	constBits = 13
	passBits  = 2

	// cos and sin of multiples of pi/16, and their sums, times 2^13.
	k0298 = 2446
	k0390 = 3196
	k0541 = 4433
	k0765 = 6270
	k0899 = 7373
	k1175 = 9633
	k1501 = 12299
	k1847 = 15137
	k1961 = 16069
	k2053 = 16819
	k2562 = 20995
	k3072 = 25172
)

// odd returns the sums and differences that the coefficients 1, 3, 5 and 7 contribute to the samples 0 to 3
// (and, negated, to 7 to 4).
func odd(x1, x3, x5, x7 int32) (o0, o1, o2, o3 int32) {
	sum := (x1 + x3 + x5 + x7) * k1175
	a, b := -k0899*(x7+x1), -k2562*(x5+x3)
	c, e := sum-k1961*(x7+x3), sum-k0390*(x5+x1)
	return x1*k1501 + a + e, x3*k3072 + b + c, x5*k2053 + b + e, x7*k0298 + a + c
}

// even returns the contribution of the coefficients 0, 2, 4 and 6 to the samples 0 to 3 (and 7 to 4).
func even(x0, x2, x4, x6 int32) (e0, e1, e2, e3 int32) {
	common := (x2 + x6) * k0541
	low, high := common-x6*k1847, common+x2*k0765
	sum, diff := (x0+x4)<<constBits, (x0-x4)<<constBits
	return sum + high, diff + low, diff - low, sum - high
}

// inversePlain writes the 8 by 8 samples of a block of dequantised coefficients. last is the place of the last
// coefficient that is not 0, in the order of the stream.
func inversePlain(dst []byte, stride int, block *[64]int32, last int) {
	if last == 0 {
		sample := clamp((block[0]<<passBits + 1<<(passBits+2)) >> (passBits + 3))
		for y := range 8 {
			row := dst[y*stride:][:8]
			for x := range row {
				row[x] = sample
			}
		}
		return
	}
	across := 8
	if last < 10 { // the first 10 coefficients lie in the first 4 columns
		across = 4
	}
	const shift, half = constBits - passBits, 1 << (constBits - passBits - 1)
	for x := range across {
		c := block[x:][:57]
		// From 2^17 on the sums below may overflow, as sums of the vectors do, which have no short cut.
		if c[8]|c[16]|c[24]|c[32]|c[40]|c[48]|c[56] == 0 && c[0] == c[0]<<14>>14 {
			v := c[0] << passBits
			c[0], c[8], c[16], c[24], c[32], c[40], c[48], c[56] = v, v, v, v, v, v, v, v
			continue
		}
		e0, e1, e2, e3 := even(c[0], c[16], c[32], c[48])
		o0, o1, o2, o3 := odd(c[8], c[24], c[40], c[56])
		c[0], c[56] = (e0+o0+half)>>shift, (e0-o0+half)>>shift
		c[8], c[48] = (e1+o1+half)>>shift, (e1-o1+half)>>shift
		c[16], c[40] = (e2+o2+half)>>shift, (e2-o2+half)>>shift
		c[24], c[32] = (e3+o3+half)>>shift, (e3-o3+half)>>shift
	}
	for y := range 8 {
		inverseRow(dst[y*stride:][:8], (*[8]int32)(block[8*y:]))
	}
}

func inverseRow(row []byte, c *[8]int32) {
	const shift, half = constBits + passBits + 3, 1 << (constBits + passBits + 2)
	_ = row[7]
	e0, e1, e2, e3 := even(c[0], c[2], c[4], c[6])
	o0, o1, o2, o3 := odd(c[1], c[3], c[5], c[7])
	row[0], row[7] = clamp((e0+o0+half)>>shift), clamp((e0-o0+half)>>shift)
	row[1], row[6] = clamp((e1+o1+half)>>shift), clamp((e1-o1+half)>>shift)
	row[2], row[5] = clamp((e2+o2+half)>>shift), clamp((e2-o2+half)>>shift)
	row[3], row[4] = clamp((e3+o3+half)>>shift), clamp((e3-o3+half)>>shift)
}

// clamp returns the sample of a value around 0.
func clamp(v int32) byte { return saturate(v + 128) }

func saturate(v int32) byte {
	if uint32(v) > 255 {
		v = ^(v >> 31) // 0 for a negative value, else all bits
	}
	return byte(v)
}
