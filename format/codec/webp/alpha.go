package webp

// alphaOf reads the alpha of a lossy image, w by h bytes.
func alphaOf(part []byte, w, h int) ([]byte, error) {
	if len(part) < 1 {
		return nil, bad("alpha of no bytes")
	}
	const plain, coded = 0, 1
	out := make([]byte, w*h)
	switch part[0] & 3 {
	case plain:
		if copy(out, part[1:]) < len(out) {
			return nil, bad("alpha of %d bytes for %d pixels", len(part)-1, len(out))
		}
	case coded:
		pix, err := lossless(part[1:], w, h)
		if err != nil {
			return nil, err
		}
		for i, pixel := range pix {
			out[i] = byte(pixel >> 8)
		}
	default:
		return nil, bad("alpha of compression %d", part[0]&3)
	}
	unfilter(out, part[0]>>2&3, w)
	return out, nil
}

// unfilter adds what alpha was predicted from: the left neighbour, the one above, or a plane through three.
func unfilter(a []byte, filter byte, w int) {
	const none, horizontal, vertical = 0, 1, 2
	if filter == none {
		return
	}
	for i := 1; i < len(a); i++ {
		switch x := i % w; {
		case i < w, filter == horizontal && x > 0:
			a[i] += a[i-1]
		case x == 0, filter == vertical:
			a[i] += a[i-w]
		default:
			a[i] += byte(min(max(int(a[i-1])+int(a[i-w])-int(a[i-w-1]), 0), 255))
		}
	}
}
