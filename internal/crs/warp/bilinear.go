package warp

// weight returns the fraction of a place as a float32 from 0 to below 1, cut to the 24 bits that it has.
func weight(x int64) float32 { return float32(uint32(x)>>8) * (1.0 / (1 << 24)) }

// blendRow resamples a row bilinearly.
func blendRow[T Number](r *run, src *Plane[T], out []float32, valid []byte) {
	height, width := int64(src.Box.Y1-src.Box.Y0), int64(src.Box.X1-src.Box.X0)
	// Weights count from the centres of pixels. Where all four neighbours exist no test of an edge is needed.
	start := sourcePlace{r.from.x - half, r.from.y - half}
	first, end := inside(start.x, r.step.x, r.n, 0, (width-1)*one)
	top, bottom := inside(start.y, r.step.y, r.n, 0, (height-1)*one)
	if first, end = max(first, top), min(end, bottom); first >= end {
		first, end = 0, 0
	}
	placeOf := func(i int) sourcePlace { return sourcePlace{start.x + int64(i)*r.step.x, start.y + int64(i)*r.step.y} }
	for i := range first {
		out[i], valid[i] = blend(src, placeOf(i))
	}
	for i := end; i < r.n; i++ {
		out[i], valid[i] = blend(src, placeOf(i))
	}
	if src.Valid == nil {
		blendAll(placeOf(first), r.step, src.Pix, width, out[first:end], valid[first:end])
	} else {
		blendValid(placeOf(first), r.step, src, out[first:end], valid[first:end])
	}
}

// blendAll is the loop for pixels that are all valid.
func blendAll[T Number](at, step sourcePlace, pix []T, stride int64, out []float32, valid []byte) {
	x, y := at.x, at.y
	valid = valid[:len(out)]
	for i := range out {
		pixel := (y>>32)*stride + x>>32
		top, bottom := pix[pixel:pixel+2:pixel+2], pix[pixel+stride:pixel+stride+2:pixel+stride+2]
		out[i] = four(float32(top[0]), float32(top[1]), float32(bottom[0]), float32(bottom[1]), weight(x), weight(y))
		valid[i] = 1
		x, y = x+step.x, y+step.y
	}
}

// blendValid is the loop for pixels when some are missing.
func blendValid[T Number](at, step sourcePlace, src *Plane[T], out []float32, valid []byte) {
	stride := int64(src.Box.X1 - src.Box.X0)
	for i := range out {
		pixel := (at.y>>32)*stride + at.x>>32
		upper, lower := src.Valid[pixel:pixel+2:pixel+2], src.Valid[pixel+stride:pixel+stride+2:pixel+stride+2]
		if upper[0]&upper[1]&lower[0]&lower[1] != 0 {
			top, bottom := src.Pix[pixel:pixel+2:pixel+2], src.Pix[pixel+stride:pixel+stride+2:pixel+stride+2]
			out[i], valid[i] = four(float32(top[0]), float32(top[1]), float32(bottom[0]), float32(bottom[1]),
				weight(at.x), weight(at.y)), 1
		} else {
			out[i], valid[i] = blend(src, at)
		}
		at.x, at.y = at.x+step.x, at.y+step.y
	}
}

// four returns the bilinear value of two pixels a and b above c and d.
func four(a, b, c, d, wx, wy float32) float32 {
	// The conversions prevent a fused multiply-add, which rounds once and not on every machine.
	top := a + float32(wx*(b-a))
	bottom := c + float32(wx*(d-c))
	value := top + float32(wy*(bottom-top))
	if value != value {
		return mix(mix(a, b, wx), mix(c, d, wx), wy)
	}
	return value
}

// mix returns a + w(b-a), or a if w is 0 or both are equal: 0 times an infinite difference would be NaN.
func mix(a, b, w float32) float32 {
	if w == 0 || a == b {
		return a
	}
	return a + float32(w*(b-a))
}

// blend returns the bilinear value at a place, which counts from the centre of the first pixel, and
// whether it has one: the nearest pixel stands in for those that are missing or past the edge.
func blend[T Number](src *Plane[T], at sourcePlace) (value float32, valid byte) {
	height, width := src.Box.Y1-src.Box.Y0, src.Box.X1-src.Box.X0
	y, x := int(at.y>>32), int(at.x>>32)
	near := min(max(int((at.y+half)>>32), 0), height-1)*width + min(max(int((at.x+half)>>32), 0), width-1)
	if src.Valid != nil && src.Valid[near] == 0 {
		return 0, 0
	}
	pixel := func(y, x int) float32 {
		index := min(max(y, 0), height-1)*width + min(max(x, 0), width-1)
		if src.Valid != nil && src.Valid[index] == 0 {
			index = near
		}
		return float32(src.Pix[index])
	}
	return four(pixel(y, x), pixel(y, x+1), pixel(y+1, x), pixel(y+1, x+1), weight(at.x), weight(at.y)), 1
}
