package chunk

// retry decodes the OpenZL frame of chunk i, which lacks the usual form, in the other forms that its index allows.
// The count and the width of the numbers in a frame say which form it has:
//
//   - complex samples stored as their components, one number each;
//   - chunks at the edges cut to the image (rumi-eo 0.12 to 0.14), in files that otherwise equal those
//     of rumi-eo 0.8, which pads them. retry pads them with zeros.
//
// It reports false if all forms fail, or the chunk has no frame.
func (d *Decoder) retry(dst, src []byte, x *Index, i int) bool {
	if x.Codec != OpenZL || x.isPacked() || d.opened.live[OpenZL] == nil {
		return false
	}
	decodes := func(dst []byte, width int) bool {
		d.tile.Need, d.tile.Number = len(dst), width
		return d.opened.live[OpenZL].Decompress(dst, src, &d.tile) == nil
	}
	size := x.DType.Size()
	part := size / x.DType.Components()
	box := x.Box(i)
	bands, height, width := x.DecodedShape(i)
	cutH, cutW := box.Y1-box.Y0, box.X1-box.X0
	cut := bands * cutH * cutW * size
	if part != size && decodes(dst, part) {
		return true
	}
	if cut == len(dst) || x.Inner != BYX {
		return false
	}
	if !decodes(dst[:cut], size) && (part == size || !decodes(dst[:cut], part)) {
		return false
	}
	// From the last row to the first: rows only move towards the end, so none is overwritten
	// before it has moved.
	start, row := cut, cutW*size
	for k := bands*height - 1; k >= 0; k-- {
		target := dst[k*width*size:][:width*size]
		n := 0
		if k%height < cutH {
			start -= row
			n = copy(target, dst[start:start+row])
		}
		clear(target[n:])
	}
	return true
}
