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
	planes, height, width := x.DecodedShape(i)
	steps, bands := 1, planes
	if planes > 1 {
		steps, bands = x.Steps(), x.StepBands()
	}
	strides := Strides{Bands: bands}
	switch x.Inner {
	case YXB:
		strides.Y, strides.X, strides.T, strides.B = width*planes, planes, bands, 1
	case BTYX:
		strides.B, strides.T, strides.Y, strides.X = steps*height*width, height*width, width, 1
	case YXBT:
		strides.Y, strides.X, strides.B, strides.T = width*planes, planes, steps, 1
	case BYXT:
		strides.B, strides.Y, strides.X, strides.T = height*width*steps, width*steps, steps, 1
	case TYXB:
		strides.T, strides.Y, strides.X, strides.B = height*width*bands, width*bands, bands, 1
	default:
		strides.T, strides.B, strides.Y, strides.X = bands*height*width, height*width, width, 1
	}
	return strides
}
