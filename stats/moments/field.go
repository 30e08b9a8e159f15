package moments

import (
	"fmt"
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/kernel"
	"github.com/chaski-eo/chaski/stats"
)

// Field accumulates the samples of one raster field. It is not safe for concurrent use: each worker
// fills its own, and Merge joins them.
type Field struct {
	dtype chunk.DType
	bands []accumulator
	nd    noData
	tmp   scratch
}

// accumulator measures one band.
type accumulator interface {
	// add adds little-endian samples.
	add(b []byte, nd *noData, tmp *scratch)
	// skip counts samples without data.
	skip(n uint64)
	// merge adds the samples of another accumulator of the same type, which does not change.
	merge(accumulator)
	// samples returns how many samples there are, nodata included.
	samples() uint64
	// measure returns what is known of the samples so far.
	measure() known
	// state writes it, or reads it into an empty one, see state.go.
	state(*stateCoder)
}

// blockLen is the number of samples that the loops process at a time: 32 KiB of float64, so
// several passes over a block need to load it from memory only once.
const blockLen = 4096

// scratch is memory that the accumulators of a Field share.
type scratch struct {
	ints   [blockLen]int64
	floats [blockLen]float64
}

// NewField returns an empty Field for images of a dtype with 1 to chunk.MaxBands bands. Complex
// types are an error.
func NewField(dtype chunk.DType, bands int) (*Field, error) {
	if bands < 1 || bands > chunk.MaxBands {
		return nil, fmt.Errorf("stats: %d bands", bands)
	}
	field := &Field{dtype: dtype, bands: make([]accumulator, bands)}
	for i := range field.bands {
		switch dtype {
		case chunk.Uint8, chunk.Int8, chunk.Uint16, chunk.Int16, chunk.Float16, chunk.BFloat16:
			field.bands[i] = newCounted(dtype)
		case chunk.Int32, chunk.Uint32, chunk.Int64, chunk.Uint64:
			field.bands[i] = newIntegers(dtype)
		case chunk.Float32, chunk.Float64:
			field.bands[i] = newFloats(dtype)
		default:
			return nil, fault.New(fault.Unsupported, "statistics", "samples of type %s cannot be measured", dtype)
		}
	}
	return field, nil
}

// DType returns the type of the samples.
func (f *Field) DType() chunk.DType { return f.dtype }

// Bands returns the number of bands.
func (f *Field) Bands() int { return len(f.bands) }

// NoData sets the value that is left out of the samples added from now on, as in chunk.Index: bits
// has the bits of an integer and takes precedence over value; both nil means none. A value
// that samples cannot have leaves everything in. For floats it is rounded to the type of the
// samples, and NaN means every NaN.
func (f *Field) NoData(value *float64, bits *uint64) { f.nd = makeNoData(f.dtype, value, bits) }

// AddRows adds samples of one band: little-endian, any number of them, in any shape.
// len(data) must be a multiple of the sample's size, or it panics. data is not kept.
func (f *Field) AddRows(band int, data []byte) {
	size := f.dtype.Size()
	if len(data)%size != 0 {
		panic("stats: data is not a whole number of samples")
	}
	for len(data) > 0 {
		n := min(len(data), blockLen*size)
		f.bands[band].add(data[:n], &f.nd, &f.tmp)
		data = data[n:]
	}
}

// AddNoData counts n samples of one band without data, such as those that a mask excludes.
func (f *Field) AddNoData(band int, n uint64) { f.bands[band].skip(n) }

// Merge adds the samples of g, which does not change. Different types or numbers of bands are an
// error, and so are more samples than can be counted; f is as before then.
func (f *Field) Merge(g *Field) error {
	if f.dtype != g.dtype || len(f.bands) != len(g.bands) {
		return fmt.Errorf("stats: cannot merge %d bands of %s with %d bands of %s", len(f.bands), f.dtype,
			len(g.bands), g.dtype)
	}
	for i := range f.bands {
		if a, b := f.bands[i].samples(), g.bands[i].samples(); a > maxMerged || b > maxMerged-a {
			return fmt.Errorf("stats: cannot merge %d and %d samples of a band, at most %d", a, b, uint64(maxMerged))
		}
	}
	for i := range f.bands {
		f.bands[i].merge(g.bands[i])
	}
	return nil
}

// Report returns the statistics so far.
func (f *Field) Report() stats.FieldReport {
	report := stats.FieldReport{DType: f.dtype, Bands: make([]stats.Band, len(f.bands))}
	for i, a := range f.bands {
		samples := a.measure()
		if report.Bands[i] = samples.report(); len(f.bands) > 1 {
			report.Bands[i].Classes = nil
		}
	}
	return report
}

// noData is a nodata value in the type of the samples.
type noData struct {
	on    bool
	nan   bool    // floats: every NaN
	float float64 // floats
	other float64 // floats: also nodata
	key   int64   // integers of 32 and 64 bits, see integers
	bits  uint16  // types of 8 and 16 bits
}

func makeNoData(d chunk.DType, value *float64, bits *uint64) noData {
	var match kernel.Match
	num, ok := d.Num(), true
	switch {
	case num == kernel.None:
		return noData{}
	case bits != nil && !num.IsFloat():
		match = kernel.MatchBits(num, *bits)
	case value == nil:
		return noData{}
	default:
		match, ok = kernel.MatchValue(num, *value)
	}
	made := noData{on: ok, nan: match.NaN, bits: uint16(match.A), key: keyOf(d, match.A)}
	switch d {
	case chunk.Float64:
		made.float, made.other = math.Float64frombits(match.A), math.Float64frombits(match.B)
	case chunk.Float32:
		made.float = float64(math.Float32frombits(uint32(match.A)))
		made.other = float64(math.Float32frombits(uint32(match.B)))
	}
	return made
}
