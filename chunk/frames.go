package chunk

// otherForm decodes the frame of chunk i in the forms that its index does not tell apart, after the usual one failed with err.
// The number and the width of the numbers in a frame say which form it has:
//
//   - complex samples as their components, one number each;
//   - chunks at the edges cut to the image (rumi-eo 0.12 to 0.14), in files that are otherwise those of rumi-eo 0.8, which
//     pads them. They are padded with zeros here.
//
// It returns err if none fits.
func (d *Decoder) otherForm(dst, src []byte, x *Index, i int, err error) error {
	size := x.DType.Size()
	part := size / x.DType.Components()
	box := x.Box(i)
	b, h, w := x.Stored(i)
	cutH, cutW := box.Y1-box.Y0, box.X1-box.X0
	cut := b * cutH * cutW * size
	if part != size && d.live[OpenZL].Decompress(dst, src, part) == nil {
		return nil
	}
	if cut == len(dst) || x.Inner != BYX {
		return err
	}
	if d.live[OpenZL].Decompress(dst[:cut], src, size) != nil && (part == size || d.live[OpenZL].Decompress(dst[:cut], src, part) != nil) {
		return err
	}
	// From the back: a row never moves to the front, so none is overwritten before it has moved.
	from, row := cut, cutW*size
	for k := b*h - 1; k >= 0; k-- {
		to := dst[k*w*size:][:w*size]
		n := 0
		if k%h < cutH {
			from -= row
			n = copy(to, dst[from:from+row])
		}
		clear(to[n:])
	}
	return nil
}
