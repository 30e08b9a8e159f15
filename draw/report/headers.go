package report

import (
	"context"
	"fmt"
	"math/bits"
	"strconv"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/catalog"
)

// headers reads every sample without its pixels: the chunk indexes of its assets and its values.
func (m *maker) headers(ctx context.Context) error {
	n := m.Report.Samples
	for row := range n {
		if err := ctx.Err(); err != nil {
			return err
		}
		var lead *catalog.Asset // the first raster of the sample
		for i := range m.Report.Fields {
			field := &m.Report.Fields[i]
			var err error
			if field.Kind == catalog.Raster {
				var a catalog.Asset
				if a, err = m.asset(ctx, i, row); err == nil && lead == nil {
					lead = &a
				} else if err == nil && m.Options.Fields[i].Ground != spec.IgnoreGround {
					m.pair(row, lead, &a)
				}
			} else {
				var v catalog.Value
				if v, err = m.table.Value(ctx, i, row); err == nil {
					field.Values.add(field.Kind, v)
				}
			}
			if err := m.isBad(row, err); err != nil {
				return err
			}
		}
		m.Progress("headers", row+1, n)
	}
	return nil
}

// pair compares the place of a raster with the place of the first one of its sample.
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

// asset returns a raster of a row, and adds what its header says to the report.
func (m *maker) asset(ctx context.Context, i int, row int64) (catalog.Asset, error) {
	asset, err := m.table.Asset(ctx, i, row)
	if err != nil {
		return asset, err
	}
	field, index := &m.Report.Fields[i], asset.Index
	if field.first == nil {
		field.first = index
		// They are optional, and a fault of the file must show when its pixels are read.
		field.BandNames, _ = pixels.BandNames(ctx, m.Loader.Opener, asset)
	}
	field.Assets++
	field.CRS.add(crsOf(asset.Place))
	field.Shapes.add(fmt.Sprintf("%d × %d × %d %s", index.Bands, index.Height, index.Width, index.DType))
	field.Codecs.add(index.Codec.String())
	field.NoData.add(noData(index))
	size, stored := bytesOf(&asset)
	field.Stored += stored
	field.Bytes += size
	if field.Assets == 1 || size < field.Smallest {
		field.Smallest = size
	}
	field.Largest = max(field.Largest, size)
	// A header may claim more bytes than an int64 holds.
	if hi, decoded := bits.Mul64(uint64(index.Height)*uint64(index.Width),
		uint64(index.Bands)*uint64(index.DType.Size())); hi == 0 && decoded < 1<<62 {
		field.Decoded += int64(decoded)
	}
	return asset, nil
}

// crsOf returns the name of the CRS of a place.
func crsOf(place *catalog.Place) string {
	switch {
	case place == nil:
		return none
	case place.EPSG == 0:
		return "a CRS without EPSG code"
	}
	return fmt.Sprintf("EPSG:%d", place.EPSG)
}

// bytesOf returns the bytes of a raster, and of its chunks. A member of a container is smaller than the file, and
// a stack has the bytes of its parts.
func bytesOf(a *catalog.Asset) (size, stored int64) {
	for i := range a.Parts {
		n, m := bytesOf(&a.Parts[i])
		size, stored = size+n, stored+m
	}
	for _, r := range a.Index.Ranges {
		stored += max(r.Len, 0)
	}
	switch {
	case a.Parts != nil:
		return size, stored
	case a.Member != "":
		return a.Length, stored
	case a.Size == 0:
		return stored, stored
	}
	return a.Size, stored
}

// noData returns the nodata value as text.
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
