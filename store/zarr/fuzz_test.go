package zarr

import (
	"bytes"
	"math"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/arrays"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/taken"
)

// kinded fails the test if an error about a file has no kind.
func kinded(t *testing.T, err error) {
	t.Helper()
	if err != nil && fault.KindOf(err) == 0 {
		t.Fatalf("an error without a kind: %v", err)
	}
}

// TestTaken: metadata of many values take memory by their length.
func TestTaken(t *testing.T) {
	race.SkipCovered(t)
	for _, array := range []string{"[", `{"attributes":[`, `{"zarr_format":3,"attributes":{"a":[`,
		`{"metadata":{"a/.zattrs":[`} {
		for _, text := range taken.JSON(array) {
			for _, end := range []string{"", "}", "]}", "}}", "]}}"} {
				b := []byte(text + end)
				taken.Check(t, len(b), taken.Factor, func() {
					v, err := parseObject(b)
					if err != nil {
						return
					}
					_, _ = parse3(v)
					_, _ = parse2(v, v)
					_ = open3(t.Context(), arrays.New(t.Context(), nil, "a", open, arrays.Options{}), v)
					_ = consolidated2(t.Context(), arrays.New(t.Context(), nil, "a", open, arrays.Options{}), v)
				})
			}
		}
	}
}

// FuzzMetadata: metadata of any content is parsed or refused, and what is parsed can be asked for anything.
func FuzzMetadata(f *testing.F) {
	for _, s := range [...]string{
		`{"zarr_format":3,"node_type":"array","shape":[5,7],"data_type":"int16","chunk_grid":{"name":"regular",` +
			`"configuration":{"chunk_shape":[4,4]}},"chunk_key_encoding":{"name":"default"},"fill_value":-3,"codecs":` +
			`[{"name":"sharding_indexed","configuration":{"chunk_shape":[2,2],"codecs":[{"name":"transpose",` +
			`"configuration":{"order":[1,0]}},{"name":"bytes","configuration":{"endian":"big"}},"crc32c"],"index_` +
			`codecs":[{"name":"bytes","configuration":{"endian":"little"}},"crc32c"]}}],"dimension_names":["y",null],` +
			`"attributes":{"_FillValue":"AAA=","spatial:transform":[10,0,5,0,-10,7],"proj:code":"EPSG:32632"}}`,
		`{"zarr_format":2,"shape":[9],"chunks":[4],"dtype":">f4","fill_value":NaN,"order":"F","filters":[{"id":` +
			`"fixedscaleoffset","scale":2,"offset":1,"dtype":"<f4","astype":"|u1"}],"compressor":{"id":"blosc"}}`,
		`{"zarr_format":3,"node_type":"group","consolidated_metadata":{"kind":"inline","metadata":{"a/b":` +
			`{"zarr_format":3,"node_type":"group"}}}}`,
		`{"metadata":{"a/.zarray":{"zarr_format":2},".zattrs":{"x":-Infinity}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var v arrays.Object
		var err error
		taken.Check(t, len(b), taken.Factor, func() { v, err = parseObject(b) })
		kinded(t, err)
		if err != nil {
			return
		}
		begin := func() *arrays.Node {
			return arrays.New(t.Context(), folder.OneFile(b), "a", open, arrays.Options{MaxChunk: 1 << 16})
		}
		kinded(t, open3(t.Context(), begin(), v))
		kinded(t, consolidated2(t.Context(), begin(), v))
		for _, parse := range [...]func() (*meta, error){
			func() (*meta, error) { return parse2(v, v) },
			func() (*meta, error) { return parse3(v) },
		} {
			m, err := parse()
			kinded(t, err)
			if err != nil {
				continue
			}
			n := begin()
			a := newArray(n, "a", "", m)
			n.Array = a
			if images, err := a.Images(""); err == nil {
				if g := images.Grid(); g.Validate(-1, 1<<16) == nil {
					_, err := n.Raster(t.Context(), "", "", "")
					kinded(t, err)
				}
			} else {
				kinded(t, err)
			}
			for i := range m.shards {
				_, _, err := m.shards[i].indexSize()
				kinded(t, err)
			}
			// Any bytes are a chunk or the index of a shard, or are refused.
			_, err = a.Verify(t.Context(), 1)
			kinded(t, err)
			n.Place(t.Context(), a)
		}
	})
}

// FuzzShardIndex: every range of an index that is accepted lies in its shard.
func FuzzShardIndex(f *testing.F) {
	f.Add(make([]byte, 64), int64(4), int64(100), false, false)
	f.Add(bytes.Repeat([]byte{0xff}, 32), int64(0), int64(5), true, false)
	f.Add(append(make([]byte, 16), 0xde, 0xad, 0xbe, 0xef), int64(0), int64(50), false, true)
	f.Fuzz(func(t *testing.T, b []byte, base, size int64, big, sum bool) {
		if base < 0 || size < 0 || base > math.MaxInt64-size || len(b) < sumBytes {
			return
		}
		s := shardLevel{big: big, sum: sum}
		list, err := s.parse(b, base, size)
		kinded(t, err)
		for _, r := range list {
			if r.Off == -1 && r.Len == 0 {
				continue
			}
			if r.Off < base || r.Len < 0 || r.Off > base+size-r.Len {
				t.Fatalf("%+v in a shard of %d bytes at %d", r, size, base)
			}
		}
	})
}

// parseObject parses a JSON object, after it has bounded its depth and its number of values.
func parseObject(b []byte) (arrays.Object, error) {
	v, _, err := arrays.DecodeObject(b)
	return v, err
}
