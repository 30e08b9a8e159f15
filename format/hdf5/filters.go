package hdf5

import "github.com/chaski-eo/chaski/fault"

// Numbers of filters.
const (
	Deflate     = 1
	Shuffle     = 2
	Fletcher32  = 3
	SZIP        = 4
	NBit        = 5
	ScaleOffset = 6
	BZip2       = 307
	LZF         = 32000
	Blosc       = 32001
	Zstd        = 32015
)

// names are the names of filters, those that are registered with The HDF Group and often seen too.
var names = map[int]string{Deflate: "deflate", Shuffle: "shuffle", Fletcher32: "fletcher32", SZIP: "szip", NBit: "nbit",
	ScaleOffset: "scaleoffset", LZF: "lzf", Blosc: "blosc", Zstd: "zstd", BZip2: "bzip2", 32004: "lz4",
	32008: "bitshuffle", 32013: "zfp", 32017: "sz", 32019: "fcidecomp", 32023: "sperr", 32026: "blosc2", 32028: "sz3"}

// Filter is one filter of the chunks of a dataset.
type Filter struct {
	ID   int
	Name string // as the file has it, or the usual one
	Data []uint32
}

const (
	filtersPart = "filter pipeline"
	maxFilters  = 32 // the bits of the mask of a chunk
)

// filters reads the filters of a dataset, in the order in which they encode.
func (w *walk) filters(m *message) ([]Filter, error) {
	b, err := w.content(m, filtersPart)
	if err != nil {
		return nil, err
	}
	version, err := b.version(1, 2)
	if err != nil {
		return nil, err
	}
	count := int(b.u8())
	if version == 1 {
		b.take(6)
	}
	if count > maxFilters {
		return nil, fault.At(fault.Limit, filtersPart, int64(b.addr), "%d filters, at most %d", count, maxFilters)
	}
	list := make([]Filter, 0, count)
	for range count {
		f := Filter{ID: b.u16()}
		size := 0
		if version == 1 || f.ID >= 256 {
			size = b.u16()
		}
		b.take(2) // flags
		values := b.u16()
		if version == 1 {
			size = (size + 7) &^ 7
		}
		f.Name = names[f.ID]
		if text := b.take(size); f.Name == "" {
			f.Name = cString(text)
		}
		if values > b.rest()/4 {
			return nil, b.fail("filter %d has %d values", f.ID, values)
		}
		for range values {
			f.Data = append(f.Data, b.u32())
		}
		if version == 1 && values%2 == 1 {
			b.take(4)
		}
		list = append(list, f)
	}
	return list, b.err
}
