package pixels

import (
	"encoding/binary"
	"math"
	"slices"
	"sync"

	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/format/chunk"
)

// Converters makes the casts of a field, one for each nodata value, scale and offset that its assets declare, and keeps
// them, so not every sample makes its own. Get and Key are safe for concurrent use.
type Converters struct {
	Base   einops.Convert
	Nodata bool        // the asset's nodata value matters
	Said   [][]float64 // nodata values in place of it, as in einops.Convert; nil: none are said
	NaN    bool        // NaN is nodata of assets without a mask
	// Physical makes physical values of samples, before the arithmetic of Base.
	Physical bool
	// mu guards made. Workers read it for every sample and write it for a new nodata value only, so
	// a plain mutex would let them wait for each other.
	mu   sync.RWMutex
	made map[castKey]*einops.Converter
}

// castKey is what the casts of a field differ in, from asset to asset, as a map key.
type castKey struct {
	nodataKey
	linear string // bytes of the scales and offsets of an asset
	byBand string // the nodata values of each band of the tensor, where the asset lists them
}

// nodataKey is a nodata value as a map key. Values are compared by their bits: a NaN differs from
// itself and would never be found.
type nodataKey struct {
	has   bool
	exact bool   // bits are a sample's (NoDataBits), otherwise a float64's (NoData)
	nan   bool   // NaN is nodata, too
	bits  uint64 // 0 if has is false
}

// maxConverters bounds the converters kept. A dataset has one nodata value and one scale, or a few. If the files of
// one declare more, further converters are made anew for each sample, and memory does not grow.
const maxConverters = 64

// Miss reports whether pixels of index x may be missing.
func (c *Converters) Miss(x *chunk.Index) bool {
	some := slices.ContainsFunc(c.Said, func(values []float64) bool { return len(values) > 0 })
	key := c.key(x)
	return c.Nodata && (key.has || key.nan || some || x.Masking() != nil || x.BandNoData != nil)
}

// Of returns the converters for n bands of the tensor, from band number first on. Numbers go on through all steps of
// time.
func (c *Converters) Of(first, n int) *Converters {
	if len(c.Said) < 2 {
		return c
	}
	out := &Converters{Base: c.Base, Nodata: c.Nodata, NaN: c.NaN, Physical: c.Physical}
	for i := range n {
		out.Said = append(out.Said, c.Said[(first+i)%len(c.Said)])
	}
	return out
}

// key returns the map key of what is nodata in index x: the zero key if nothing is, but for what is said.
func (c *Converters) key(x *chunk.Index) nodataKey {
	value, bits := x.Missing()
	nan := c.NaN && x.Mask == nil && x.DType.Num().IsFloat()
	switch {
	case !c.Nodata:
		return nodataKey{}
	case c.Said != nil:
	case bits != nil:
		return nodataKey{true, true, nan, *bits}
	case value != nil:
		return nodataKey{true, false, nan, math.Float64bits(*value)}
	}
	return nodataKey{nan: nan}
}

// linear returns the arithmetic of Base after physical values of index x; p picks the bands of the tensor. It is nil
// where stored samples are such values.
func (c *Converters) linear(x *chunk.Index, p *PickedBands) (scale, offset []float32) {
	if !c.Physical || x.Physical == nil {
		return nil, nil
	}
	bands := p.bands()
	scale, offset = make([]float32, bands), make([]float32, bands)
	pick := func(values []float32, band int, missing float64) float64 {
		if len(values) == 0 {
			return missing
		}
		return float64(values[min(band, len(values)-1)])
	}
	for i, plane := range p.Picked { // all steps of time have the same bands
		band, linear := p.plane(i)%bands, x.Linear(plane)
		factor := pick(c.Base.Scale, band, 1)
		scale[band] = float32(factor * linear.Scale)
		offset[band] = float32(float64(factor*linear.Offset) + pick(c.Base.Offset, band, 0))
	}
	return scale, offset
}

// byBand returns the nodata values of Said, or else the values of each band of the tensor where index x lists them;
// nil: all bands have the value of x. key tells casts of different bands apart.
func (c *Converters) byBand(x *chunk.Index, p *PickedBands) (missing [][]float64, key string) {
	if c.Said != nil || x.BandNoData == nil || x.Mask != nil {
		return c.Said, ""
	}
	missing = make([][]float64, p.bands())
	for i, plane := range p.Picked { // all steps of time have the same bands
		missing[p.plane(i)%len(missing)] = x.NoDataOf(plane % x.StepBands())
	}
	var own []byte
	for _, values := range missing {
		own = binary.AppendUvarint(own, uint64(len(values)))
		for _, v := range values {
			own = binary.LittleEndian.AppendUint64(own, math.Float64bits(v))
		}
	}
	return missing, string(own)
}

// bytesOf returns the bits of some lists of numbers.
func bytesOf(lists ...[]float32) string {
	var out []byte
	for _, v := range slices.Concat(lists...) {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return string(out)
}

// Get returns the converter from the samples of index x to a tensor of its bands p. It fails if the cast does not
// exist.
func (c *Converters) Get(x *chunk.Index, p *PickedBands) (*einops.Converter, error) {
	scale, offset := c.linear(x, p)
	missing, byBand := c.byBand(x, p)
	key := castKey{c.key(x), bytesOf(scale, offset), byBand}
	c.mu.RLock()
	made := c.made[key]
	c.mu.RUnlock()
	if made != nil {
		return made, nil
	}
	conv := c.Base
	if scale != nil {
		conv.Scale, conv.Offset = scale, offset
	}
	if c.Nodata {
		conv.NoData, conv.NoDataBits = x.Missing()
		conv.Missing, conv.MissNaN = missing, conv.MissNaN || key.nan
	}
	// The lock is not held here. Two workers may make the same converter, and either will do, because
	// converters do not change.
	made, err := einops.NewConverter(conv)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		c.made = map[castKey]*einops.Converter{}
	}
	if len(c.made) < maxConverters {
		c.made[key] = made
	}
	return made, nil
}
