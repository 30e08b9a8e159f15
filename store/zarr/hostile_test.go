package zarr

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/arrays"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

const plainArray = `{"zarr_format":3,"node_type":"array","shape":[4,4],"data_type":"uint8","chunk_grid":{"name":` +
	`"regular","configuration":{"chunk_shape":[2,2]}},"chunk_key_encoding":{"name":"default"},"fill_value":0,` +
	`"codecs":["bytes"]}`

// put writes a file below a directory.
func put(t *testing.T, dir, name, text string) {
	t.Helper()
	p := filepath.Join(dir, name)
	testfile.Write(t, p, []byte(text))
}

// TestPathsStayInside: neither consolidated metadata nor a column leads out of a group.
func TestPathsStayInside(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "secret/zarr.json", plainArray)
	put(t, dir, "open/zarr.json", `{"zarr_format":3,"node_type":"group"}`)
	var files openers.Files
	defer files.Close()
	for _, p := range []string{"../secret", "/secret", "a/../../secret", "a//b", ".", "a\\..\\b", "", "a/\x00"} {
		text := fmt.Sprintf(`{"zarr_format":3,"node_type":"group","consolidated_metadata":{"kind":"inline","metadata":`+
			`{%q:%s}}}`, p, plainArray)
		put(t, dir, "all/zarr.json", strings.ReplaceAll(text, `\x00`, `\u0000`))
		_, err := Open(t.Context(), &files, filepath.Join(dir, "all"), arrays.Options{})
		if fault.KindOf(err) != fault.Corrupt {
			t.Errorf("consolidated metadata of the node %q: %v", p, err)
		}
		n, err := Open(t.Context(), &files, filepath.Join(dir, "open"), arrays.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if at, err := n.At(t.Context(), p); err == nil {
			t.Errorf("%q opens %s", p, at.URI)
		}
	}
}

// TestRefused: what is not read is refused with its name and a kind.
func TestRefused(t *testing.T) {
	with := func(old, to string) string {
		if !strings.Contains(plainArray, old) {
			t.Fatalf("no %q to replace", old)
		}
		return strings.Replace(plainArray, old, to, 1)
	}
	const numbers = ": arrays of numbers and booleans are read: unsupported"
	for _, c := range [][2]string{
		{with(`"uint8"`, `"string"`),
			`codec "bytes": unsupported`},
		{with(`"uint8"`, `{"name":"struct"}`),
			`data type "struct"` + numbers},
		{with(`["bytes"]`, `["bytes","pcodec"]`),
			`codec "pcodec": unsupported`},
		{with(`["bytes"]`, `["bytes","gzip","zstd"]`),
			`codec "zstd" around another compressor: unsupported`},
		{with(`["bytes"]`, `["gzip"]`),
			`codec "gzip": unsupported`},
		{with(`["bytes"]`, `["vlen-utf8"]`),
			`codec "vlen-utf8": unsupported`},
		{with(`"name":"regular"`, `"name":"rectangular"`),
			`chunk grid "rectangular": regular ones are read: unsupported`},
		{with(`"name":"default"`, `"name":"hilbert"`),
			`chunk key encoding "hilbert": unsupported`},
		{with(`{"zarr`, `{"odd":{"x":1},"zarr`),
			`extension "odd": unsupported`},
		{with(`"fill_value":0`, `"fill_value":256`),
			`fill value "256" is not one of type uint8: corrupt`},
		{with(`[2,2]`, `[2,0]`),
			`4 cells in chunks of 0 along dimension 1: corrupt`},
		{with(`[2,2]`, `[2]`),
			`chunks of 1 dimensions in an array of 2: corrupt`},
		{with(`"zarr_format":3`, `"zarr_format":4`),
			`zarr_format 4 in zarr.json: unsupported`},
		{with(`"fill_value":0`, `"x":`+strings.Repeat("[", 65)),
			`more than 64 levels of nesting: limit`},
		{with(`"fill_value":0`, `"x":[`+strings.Repeat("1,", 1<<19+1)+`]`),
			`more than 524288 values: limit`},
		{`[]`,
			`corrupt`},
	} {
		text, want := c[0], c[1]
		dir := t.TempDir()
		put(t, dir, "zarr.json", text)
		var files openers.Files
		_, err := Open(t.Context(), &files, dir, arrays.Options{})
		if err == nil || !strings.HasSuffix(err.Error(), want) || fault.KindOf(err) == 0 {
			t.Errorf("%.200s: %v, want %s", text, err, want)
		}
		if err := files.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSizesAllocateNothing: the sizes that metadata and the index of a shard claim take no memory.
func TestSizesAllocateNothing(t *testing.T) {
	const huge = `{"zarr_format":3,"node_type":"array","shape":[2000000000,2000000000],"data_type":"float64",` +
		`"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[%d,%d]}},"chunk_key_encoding":` +
		`{"name":"default"},"fill_value":0,"codecs":[%s]}`
	plain := `{"name":"bytes","configuration":{"endian":"little"}}`
	shard := `{"name":"sharding_indexed","configuration":{"chunk_shape":[1,1],"codecs":[{"name":"bytes","config` +
		`uration":{"endian":"little"}}],"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}}]}}`
	for name, text := range map[string]string{
		"chunk":       fmt.Sprintf(huge, 4096, 4096, plain),
		"large chunk": fmt.Sprintf(huge, 1000000000, 1000000000, plain),
		"index":       fmt.Sprintf(huge, 2048, 2048, shard),
		"large index": fmt.Sprintf(huge, 1000000000, 1000000000, shard),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, "zarr.json", text)
			put(t, dir, "c/0/0", "few bytes")
			var files openers.Files
			defer files.Close()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := readCorner(t.Context(), &files, dir)
			runtime.ReadMemStats(&after)
			if fault.KindOf(err) != fault.Corrupt && fault.KindOf(err) != fault.Limit {
				t.Errorf("reading gives %v", err)
			}
			// 4096 by 4096 float64 are 128 MiB, and 2048 by 2048 entries of an index 64 MiB.
			if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
				t.Errorf("reading took %d bytes", n)
			}
		})
	}
}

// readCorner reads the first pixel of an array.
func readCorner(ctx context.Context, o source.Opener, dir string) error {
	n, err := Open(ctx, o, dir, arrays.Options{})
	if err != nil {
		return err
	}
	return n.Array.Read(ctx, make([]byte, 8), []int64{0, 0}, []int64{1, 1})
}

// TestUnreadableArraysAreNotReplaced: where the array that a field means cannot be read, or one that may be a band,
// the field is refused: other arrays in its place would be other pixels.
func TestUnreadableArraysAreNotReplaced(t *testing.T) {
	broken := strings.Replace(plainArray, `[2,2]`, `[2,0]`, 1)
	for name, text := range map[string]string{
		"listed": `{"zarr_format":3,"node_type":"group"}`,
		"consolidated": `{"zarr_format":3,"node_type":"group","consolidated_metadata":{"kind":"inline",` +
			`"metadata":{"a":` + plainArray + `,"b":` + broken + `}}}`,
	} {
		dir := t.TempDir()
		put(t, dir, "zarr.json", text)
		put(t, dir, "a/zarr.json", plainArray)
		put(t, dir, "b/zarr.json", broken)
		var files openers.Files
		defer files.Close()
		n, err := Open(t.Context(), &files, dir, arrays.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range [][2]string{{"b", ""}, {"x", "b"}, {"x", "."}} {
			if _, err := n.Raster(t.Context(), c[0], c[1], ""); fault.KindOf(err) != fault.Corrupt {
				t.Errorf("%s: field %q, column %q: %v", name, c[0], c[1], err)
			}
		}
		if _, err := n.Raster(t.Context(), "a", "", ""); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestChainsEnd: a chain of codecs cannot make a small chunk cost hours.
func TestChainsEnd(t *testing.T) {
	many := strings.Repeat(`,{"name":"numcodecs.shuffle","configuration":{"elementsize":1}}`, 100)
	dir := t.TempDir()
	put(t, dir, "zarr.json", strings.Replace(plainArray, `["bytes"]`, `["bytes"`+many+`]`, 1))
	put(t, dir, "2/.zarray", `{"zarr_format":2,"shape":[4,4],"chunks":[2,2],"dtype":"|u1","order":"C","fill_value":0,`+
		`"compressor":null,"filters":[{"id":"shuffle"}`+strings.Repeat(`,{"id":"shuffle"}`, 100)+`]}`)
	var files openers.Files
	defer files.Close()
	for _, at := range []string{dir, filepath.Join(dir, "2")} {
		if _, err := Open(t.Context(), &files, at, arrays.Options{}); fault.KindOf(err) != fault.Limit {
			t.Errorf("a chain of 101 codecs: %v", err)
		}
	}
}

// TestLongPaths: the path of a node has a bound, so that looking up the groups above it does.
func TestLongPaths(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "zarr.json", `{"zarr_format":3,"node_type":"group","consolidated_metadata":{"kind":"inline",`+
		`"metadata":{"`+strings.Repeat("a/", 100000)+`b":`+plainArray+`}}}`)
	var files openers.Files
	defer files.Close()
	_, err := Open(t.Context(), &files, dir, arrays.Options{})
	if fault.KindOf(err) != fault.Corrupt || len(err.Error()) > 500 {
		t.Errorf("a path of 100,001 names: %.500v", err)
	}
}

// counting counts what is opened.
type counting struct {
	source.Opener
	n int
}

// Open implements source.Opener.
func (c *counting) Open(ctx context.Context, uri string) (source.Reader, error) {
	c.n++
	return c.Opener.Open(ctx, uri)
}

// TestCoordinatesCostFewRequests: coordinate arrays of many chunks are not read for the transform.
func TestCoordinatesCostFewRequests(t *testing.T) {
	const side = 4096
	axis := fmt.Sprintf(`{"zarr_format":3,"node_type":"array","shape":[%d],"data_type":"uint8","chunk_grid":{"name":`+
		`"regular","configuration":{"chunk_shape":[1]}},"chunk_key_encoding":{"name":"default"},"fill_value":0,`+
		`"codecs":["bytes"]}`, side)
	image := strings.Replace(plainArray, "[4,4]", fmt.Sprintf("[%d,%d]", side, side), 1)
	image = strings.Replace(image, `"codecs"`, `"dimension_names":["y","x"],"codecs"`, 1)
	dir := t.TempDir()
	put(t, dir, "zarr.json", `{"zarr_format":3,"node_type":"group","consolidated_metadata":{"kind":"inline",`+
		`"metadata":{"a":`+image+`,"y":`+axis+`,"x":`+axis+`}}}`)
	var files openers.Files
	defer files.Close()
	o := &counting{Opener: &files}
	n, err := Open(t.Context(), o, dir, arrays.Options{})
	if err != nil {
		t.Fatal(err)
	}
	at, err := n.At(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if p := n.Place(t.Context(), at.Array); p.Transform != nil || o.n > 512 {
		t.Errorf("%d files were opened for %+v", o.n, p)
	}
}

// TestLargeIndexIsKept: the index of a shard is read once for all its chunks, even if it is larger than the indexes
// that an array may keep.
func TestLargeIndexIsKept(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "zarr.json", strings.Replace(plainArray, `"bytes"`, `{"name":"sharding_indexed","configuration":{`+
		`"chunk_shape":[1,1],"codecs":["bytes"],`+
		`"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}}]}}`, 1))
	put(t, dir, "c/0/0", strings.Repeat("\xff", 4*indexEntry))
	var files openers.Files
	defer files.Close()
	o := &counting{Opener: &files}
	n, err := Open(t.Context(), o, dir, arrays.Options{MaxIndexes: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Raster(t.Context(), "", "", ""); err != nil { // makes room
		t.Fatal(err)
	}
	if _, err := n.Array.Find(t.Context(), []int64{0, 0}); err != nil {
		t.Fatal(err)
	}
	once := o.n
	if p, err := n.Array.Find(t.Context(), []int64{1, 1}); err != nil || !p.Absent || o.n != once {
		t.Errorf("the second chunk of a shard: %+v, %v, %d files opened again", p, err, o.n-once)
	}
}

// TestPlacesOfManyArrays: to find where an array lies costs no copy of the entries of its whole group.
func TestPlacesOfManyArrays(t *testing.T) {
	race.SkipCovered(t)
	const nodes = 5000
	var all strings.Builder
	for i := range nodes {
		fmt.Fprintf(&all, `,"g/%d":%s`, i, plainArray)
	}
	dir := t.TempDir()
	put(t, dir, "zarr.json", `{"zarr_format":3,"node_type":"group","consolidated_metadata":{"kind":"inline",`+
		`"metadata":{"g":{"zarr_format":3,"node_type":"group","attributes":{"proj:code":"EPSG:32632"}}`+
		all.String()+`}}}`)
	var files openers.Files
	defer files.Close()
	n, err := Open(t.Context(), &files, dir, arrays.Options{})
	if err != nil {
		t.Fatal(err)
	}
	at, err := n.At(t.Context(), "g/7")
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p := n.Place(t.Context(), at.Array)
	runtime.ReadMemStats(&after)
	// A copy takes at least the 16 bytes of each key.
	if got := after.TotalAlloc - before.TotalAlloc; got > 16*nodes || p.EPSG != 32632 {
		t.Errorf("%d bytes for %+v", got, p)
	}
}

// TestDamagedShard promises that a chunk whose place cannot be found is refused, and not taken for one that was never
// written.
func TestDamagedShard(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "zarr.json", strings.Replace(plainArray, `"bytes"`, `{"name":"sharding_indexed","configuration":{`+
		`"chunk_shape":[1,1],"codecs":["bytes"],`+
		`"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}}]}}`, 1))
	put(t, dir, "c/0/0", "damaged")
	var files openers.Files
	defer files.Close()
	node, err := Open(t.Context(), &files, dir, arrays.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := node.Raster(t.Context(), "", "", "y x")
	if err != nil {
		t.Fatal(err)
	}
	_, err = readWindow(t.Context(), windowReader(&files), m.Index(0), chunk.Box{B1: 1, Y1: 1, X1: 1})
	read := node.Array.Read(t.Context(), make([]byte, 1), []int64{0, 0}, []int64{1, 1})
	if fault.KindOf(err) != fault.Corrupt || fault.KindOf(read) != fault.Corrupt {
		t.Errorf("%v in a window, %v in a box", err, read)
	}
}
