package chunk

import "context"

// Grid is one image of an array that holds many, such as one of Zarr or HDF5. The array stores its chunks one by one,
// each with samples of one image or of several, and with several chunks of the index, where one of these is one band.
type Grid struct {
	Array Array
	Image int64
}

// WithGrid returns a copy of the index for an image of an array.
func (x *Index) WithGrid(g Grid) *Index {
	image, grid := copyWith(x, g)
	image.Grid = grid
	return image
}

// OfArray reports whether the samples lie in an array: the index has Blocks or Grid in place of Ranges, and no blob.
func (x *Index) OfArray() bool { return x.Blocks != nil || x.Grid != nil }

// Array stores the chunks of images of one shape. It is safe for concurrent use, and comparable: equal values are the
// same array.
type Array interface {
	// Part returns the stored chunk that holds chunk i of the index of an image, and the byte of the decoded chunk at
	// which its samples begin.
	Part(image int64, i int) (of ChunkID, begin int)
	// Strides are the strides of the samples of chunk i of the index in the decoded chunk that holds it.
	Strides(i int) Strides
	// Bytes is the size of the largest decoded chunk, Size the size of one.
	Bytes() int
	Size(of ChunkID) int
	// Row is the number of samples that follow each other along the innermost dimension of a decoded chunk; 0 if
	// decoding it takes no longer than decoding another form of it.
	Row(of ChunkID) int
	// Together is the number of images that the largest chunk has samples of.
	Together() int64
	// Known returns where a chunk is, as far as that takes no request. exact is false if Find may say more.
	Known(of ChunkID) (at Stored, exact bool)
	// Find returns where a chunk is. Its errors name the file.
	Find(ctx context.Context, of ChunkID) (Stored, error)
	// Missing reports whether an error of opening an Object says that its chunk was not written.
	Missing(err error) bool
	// Decoder returns what decodes chunks, for one worker. It takes the memory of old, the worker's decoder of another
	// array, or nil.
	Decoder(old ArrayDecoder) ArrayDecoder
	// Fault adds a chunk, and where it is, to an error about its content.
	Fault(err error, of ChunkID, at *Stored) error
}

// ChunkID names a stored chunk. Arrays of one process have different numbers.
type ChunkID struct {
	Array  uint64
	Number int64
}

// Stored is where a chunk of an array is stored.
type Stored struct {
	URI    string
	Size   int64  // of the file; 0 is not known
	ETag   string // of the file; "" is not known
	At     Range
	Absent bool   // it was not written: all its samples are the fill value
	Object bool   // it is the whole file, or Absent for want of a file
	Pad    int64  // zeros that follow the bytes of At, for the chunk to be whole
	Inline []byte // the bytes themselves, in place of At
	Skip   uint32 // a bit for each codec that is not applied to it, the lowest for the first one
}

// ArrayDecoder decodes chunks of one array. It keeps its memory, and is not safe for concurrent use.
type ArrayDecoder interface {
	// Decode decodes the stored bytes of a chunk into dst, whose capacity past its length may be overwritten. Without
	// bytes, of a chunk that was not written, it fills dst. It returns the samples: dst, or stored itself where they
	// are stored as they are.
	Decode(dst, stored []byte, at *Stored, of ChunkID) (samples []byte, err error)
}

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
	if x.Grid != nil {
		return x.Grid.Array.Strides(i)
	}
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
