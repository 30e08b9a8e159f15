package chunk

// Strides says where the samples of a decoded chunk stand, in samples: the sample of plane p (from 0 in the
// chunk), row y and column x stands at Plane(p) + y·Y + x·X.
type Strides struct {
	// B is the distance of neighbouring bands, and T the distance of neighbouring steps of time. Without time
	// all planes are bands of one step.
	T, B, Y, X int
	// Bands is the number of bands of a step in the chunk.
	Bands int
}

// Plane returns where plane p begins.
func (s Strides) Plane(p int) int {
	if p < s.Bands {
		return p * s.B
	}
	return p/s.Bands*s.T + p%s.Bands*s.B
}

// Strides returns the strides of decoded chunk i.
func (x *Index) Strides(i int) Strides {
	planes, h, w := x.Stored(i)
	t, b := 1, planes
	if planes > 1 {
		t, b = x.Steps(), x.StepBands()
	}
	strides := Strides{Bands: b}
	switch x.Inner {
	case YXB:
		strides.Y, strides.X, strides.T, strides.B = w*planes, planes, b, 1
	case BTYX:
		strides.B, strides.T, strides.Y, strides.X = t*h*w, h*w, w, 1
	case YXBT:
		strides.Y, strides.X, strides.B, strides.T = w*planes, planes, t, 1
	case BYXT:
		strides.B, strides.Y, strides.X, strides.T = h*w*t, w*t, t, 1
	case TYXB:
		strides.T, strides.Y, strides.X, strides.B = h*w*b, w*b, b, 1
	default:
		strides.T, strides.B, strides.Y, strides.X = b*h*w, h*w, w, 1
	}
	return strides
}
