package report

import (
	"context"
	"fmt"
	"math/bits"
	"strconv"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

// headers reads every sample without its pixels: the chunk indexes of its assets and its values.
func (m *maker) headers(ctx context.Context) error {
	n := m.Report.Samples
	order := shuffle.NewOrder(m.Options.Seed, 0, n, n > MaxFootprints)
	m.Map.Looked = min(n, MaxFootprints)
	m.Map.Of = n
	for row := range n {
		if err := ctx.Err(); err != nil {
			return err
		}
		var lead *catalog.Asset // the first raster of the sample
		for i := range m.Report.Fields {
			f := &m.Report.Fields[i]
			var err error
			if f.Kind == catalog.Raster {
				var a catalog.Asset
				if a, err = m.asset(ctx, i, row); err == nil && lead == nil {
					lead = &a
				} else if err == nil && m.Options.Fields[i].Ground != spec.IgnoreGround {
					m.pair(row, lead, &a)
				}
			} else {
				var v catalog.Value
				if v, err = m.table.Value(ctx, i, row); err == nil {
					f.Values.add(f.Kind, v)
				}
			}
			if err := m.isBad(row, err); err != nil {
				return err
			}
		}
		if order.Position(row) < MaxFootprints {
			if err := m.footprint(ctx, row); err != nil {
				return err
			}
		}
		m.Progress("headers", row+1, n)
	}
	return m.names(ctx)
}

// pair compares the place of a raster with that of the first one of its sample.
func (m *maker) pair(row int64, lead, other *catalog.Asset) {
	if lead.Place == nil || other.Place == nil {
		m.unplaced++
	}
	err := catalog.SameGround(lead, other)
	if err == nil {
		return
	}
	if m.misplaced++; len(m.elsewhere) < maxNamed {
		m.elsewhere = append(m.elsewhere, fmt.Sprintf("sample %d: %s", row, fault.Line(other.Fault(err))))
	}
}

func (m *maker) asset(ctx context.Context, i int, row int64) (catalog.Asset, error) {
	a, err := m.table.Asset(ctx, i, row)
	if err != nil {
		return a, err
	}
	f, x := &m.Report.Fields[i], a.Index
	if f.first == nil {
		f.first, f.firstAsset = x, a
	}
	f.Assets++
	f.Shapes.add(fmt.Sprintf("%d × %d × %d %s", x.Bands, x.Height, x.Width, x.DType))
	f.Codecs.add(x.Codec.String())
	f.NoData.add(noData(x))
	var stored int64
	for _, r := range x.Ranges {
		stored += max(r.Len, 0)
	}
	size := a.Size
	if size == 0 {
		size = stored
	}
	f.Stored += stored
	f.Bytes += size
	f.Sizes.add(size)
	if hi, decoded := bits.Mul64(uint64(x.Height)*uint64(x.Width),
		uint64(x.Bands)*uint64(x.DType.Size())); hi == 0 && decoded < 1<<62 {
		f.Decoded += int64(decoded)
	}
	return a, nil
}

// none is what a tally counts for assets without nodata value or without CRS.
const none = "none"

func noData(x *chunk.Index) string {
	switch {
	case x.NoDataBits != nil && x.DType == chunk.Int64:
		return strconv.FormatInt(int64(*x.NoDataBits), 10)
	case x.NoDataBits != nil:
		return strconv.FormatUint(*x.NoDataBits, 10)
	case x.NoData != nil:
		return strconv.FormatFloat(*x.NoData, 'g', -1, 64)
	}
	return none
}

// names reads the names of bands from the first asset of each field.
func (m *maker) names(ctx context.Context) error {
	for i := range m.Report.Fields {
		f := &m.Report.Fields[i]
		if f.firstAsset.URI == "" {
			continue
		}
		alone := m.Loader
		alone.Opener = rows.Alone(alone.Opener, f.firstAsset)
		info, err := survey.Inspect(ctx, f.firstAsset.URI, alone)
		if err == nil && info.TIFF != nil {
			f.BandNames = info.TIFF.BandNames
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// Sizes counts files by size, in sixteen bins for each power of two.
type Sizes struct {
	N, Total, Min, Max int64
	bins               [16 * 64]int64
}

func (s *Sizes) add(n int64) {
	if s.N == 0 || n < s.Min {
		s.Min = n
	}
	s.N++
	s.Max = max(s.Max, n)
	s.Total += n
	s.bins[sizeBin(n)]++
}

// sizeBin returns 16·floor(log2 n) and the next four bits of n.
func sizeBin(n int64) int {
	if n < 1 {
		return 0
	}
	e := bits.Len64(uint64(n)) - 1
	return 16*e + int(uint64(n)<<(63-e)>>59&15)
}

// sizeEdge returns the lower edge of a bin in bytes.
func sizeEdge(bin int) float64 {
	return float64(uint64(1)<<(bin/16)) * (1 + float64(bin%16)/16)
}

// Mean returns the mean size in bytes.
func (s *Sizes) Mean() int64 { return s.Total / max(s.N, 1) }

// Values summarises a field of numbers or strings.
type Values struct {
	N, Null  int64
	Kinds    Tally
	Min, Max float64 // of numbers that are not NaN
	Sum      float64
	Numbers  int64
	Long     int64 // strings longer than maxText, which are not counted one by one
}

// maxText is the longest string that is kept, in bytes. A longer one is no label, and a report should not show it.
const maxText = 200

func (v *Values) add(k catalog.Kind, x catalog.Value) {
	v.N++
	if x.Null {
		v.Null++
		return
	}
	n := x.Float
	switch k {
	case catalog.Text:
		if len(x.Text) > maxText {
			v.Long++
			return
		}
		v.Kinds.add(x.Text)
		return
	case catalog.Int:
		n = float64(x.Int)
		v.Kinds.add(strconv.FormatInt(x.Int, 10))
	}
	if n != n {
		return
	}
	if v.Numbers == 0 || n < v.Min {
		v.Min = n
	}
	if v.Numbers == 0 || n > v.Max {
		v.Max = n
	}
	v.Sum += n
	v.Numbers++
}
