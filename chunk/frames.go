package chunk

// otherForm decodes the OpenZL frame of chunk i in the forms that its index does not tell apart, after
// the usual form failed with err. The count and the width of the numbers in a frame say which form it
// has:
//
//   - complex samples stored as their components, one number each;
//   - chunks at the edges cut to the image (rumi-eo 0.12 to 0.14), in files that otherwise equal those
//     of rumi-eo 0.8, which pads them. otherForm pads them with zeros.
//
// It returns err if no form fits.
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
	if d.live[OpenZL].Decompress(dst[:cut], src, size) != nil &&
		(part == size || d.live[OpenZL].Decompress(dst[:cut], src, part) != nil) {
		return err
	}
	// From the last row to the first: rows only move towards the end, so that none is overwritten
	// before it has moved.
	start, row := cut, cutW*size
	for k := b*h - 1; k >= 0; k-- {
		target := dst[k*w*size:][:w*size]
		n := 0
		if k%h < cutH {
			start -= row
			n = copy(target, dst[start:start+row])
		}
		clear(target[n:])
	}
	return nil
}
