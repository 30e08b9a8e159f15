package pixels

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// samplesSink keeps the samples of an image in C order.
type samplesSink struct {
	x   *chunk.Index
	out []byte
}

func (s *samplesSink) Put(x *chunk.Index, i int, samples []byte) {
	box, size := x.Box(i), x.DType.Size()
	bands, height, width := x.DecodedShape(i)
	for b := box.B0; b < box.B1; b++ {
		for y := box.Y0; y < box.Y1; y++ {
			for c := box.X0; c < box.X1; c++ {
				pos := placeIn(x, [3]int{bands, height, width}, [3]int{b - box.B0, y - box.Y0, c - box.X0})
				copy(s.out[((b*x.Height+y)*x.Width+c)*size:], samples[pos*size:][:size])
			}
		}
	}
}

// gdalOverviews is what GDAL reads of the overviews of a raster.
type gdalOverviews struct {
	Path      string
	Overviews []struct {
		Shape   [3]int
		Samples string
	} `json:"overview_sums"`
}

// TestOverviewsOfFiles: the overviews in files and beside them have the samples that GDAL reads of them, and the place
// of the raster. So have overviews in members of a container, which have nothing beside them.
func TestOverviewsOfFiles(t *testing.T) {
	dir := filepath.Join(corpus.Testdata(t), "overviews")
	for _, entry := range corpus.Rows[gdalOverviews](t, dir) {
		o := resources.Options{}.WithDefaults()
		path := filepath.Join(dir, entry.Path)
		a, _, err := catalog.OpenAsset(t.Context(), o.Opener, path, o.MaxChunkBytes)
		if err != nil {
			t.Fatal(err)
		}
		a.Place = &catalog.Place{EPSG: 32631}
		levels, err := Overviews(t.Context(), o, a)
		if err != nil || len(levels.Indexes) != len(entry.Overviews) {
			t.Fatalf("%s: %d overviews, want %d; %v", entry.Path, len(levels.Indexes), len(entry.Overviews), err)
		}
		beside := levels.File != nil
		if beside != slices.Contains([]string{"plain.tif", "thirds.tif", "masked.tif"}, entry.Path) {
			t.Errorf("%s: overviews lie beside it: %v", entry.Path, beside)
		}
		check := func(o resources.Options, a catalog.Asset, levels Levels) {
			for k, want := range entry.Overviews {
				level := AtOverview(a, levels, k)
				x := level.Index
				sink := &samplesSink{x, make([]byte, x.Bands*x.Height*x.Width*x.DType.Size())}
				box := chunk.Box{B1: x.Bands, Y1: x.Height, X1: x.Width}
				if err := NewReader(o).Read(t.Context(), level, box, nil, sink, nil); err != nil {
					t.Fatalf("%s: %v", entry.Path, err)
				}
				sum := sha256.Sum256(sink.out)
				if got := hex.EncodeToString(sum[:]); got != want.Samples || want.Shape != [3]int{x.Bands, x.Height,
					x.Width} ||
					level.Place != a.Place || level.Overview != k || (level.Raster == a.Index) != (levels.File == nil) {
					t.Errorf("%s: overview %d of %+v has other samples, or another place", entry.Path, k, want.Shape)
				}
			}
		}
		check(o, a, levels)
		content := testfile.Read(t, path)
		const off = 40 // of the member
		inside := resources.Options{Opener: folder.OneFile(append(make([]byte, off), content...))}.WithDefaults()
		member := catalog.Asset{URI: "f", Member: "m", Offset: off, Length: int64(len(content)),
			Index: a.Index.Shift(off),
			Place: a.Place}
		if levels, err = Overviews(t.Context(), inside, member); err != nil || (len(levels.Indexes) == 0) != beside {
			t.Errorf("%s as a member: %d overviews, %v", entry.Path, len(levels.Indexes), err)
		}
		if !beside {
			for _, x := range levels.Indexes {
				if x.Ranges[0].Off < off {
					t.Errorf("%s as a member: a chunk at %d", entry.Path, x.Ranges[0].Off)
				}
			}
			check(inside, member, levels)
		}
	}
}

// TestFilesWithoutOverviews: a file of overviews that is damaged is an error, which names it. One that is missing means
// none.
func TestFilesWithoutOverviews(t *testing.T) {
	raster := string(folder.TIFF(4, 4, 0))
	dir := folder.Of(t, "none.tif="+raster, "cut.tif="+raster, "cut.tif.ovr="+raster[:20])
	o := resources.Options{}.WithDefaults()
	defer o.CloseOpener()
	for name, kind := range map[string]fault.Kind{"none.tif": 0, "cut.tif": fault.Corrupt} {
		path := filepath.Join(dir, name)
		a, _, err := catalog.OpenAsset(t.Context(), o.Opener, path, o.MaxChunkBytes)
		if err != nil {
			t.Fatal(err)
		}
		levels, err := Overviews(t.Context(), o, a)
		if len(levels.Indexes) > 0 || levels.File != nil || fault.KindOf(err) != kind ||
			kind != 0 && !strings.HasPrefix(err.Error(), path+".ovr: ") {
			t.Errorf("%s: %+v, %v", name, levels, err)
		}
	}
	plain := &chunk.Index{Bands: 1, Height: 4, Width: 4, ChunkB: 1, ChunkH: 4, ChunkW: 4, DType: chunk.Uint8}
	for _, a := range []catalog.Asset{{URI: "missing.tif", Index: plain.WithBlocks(chunk.Blocks{})},
		{URI: "missing.tif", Index: plain, Axes: chunk.Axes{Pages: "bands"}}} { // an array, pages: no file is asked
		if levels, err := Overviews(t.Context(), o, a); err != nil || levels.Indexes != nil || levels.File != nil {
			t.Errorf("pages %q: %+v, %v", a.Axes.Pages, levels, err)
		}
	}
	index := plain.Shift(0)
	index.Height, index.ChunkH = 2, 2
	for name, a := range map[string]catalog.Asset{
		"another size":          {Index: plain, Size: int64(len(raster)) + 1},
		"another time":          {Index: index, Size: int64(len(raster)), MTime: time.Unix(1000, 0)},
		"a member past the end": {Index: plain, Member: "m", Offset: 1, Length: int64(len(raster))},
	} {
		a.URI = filepath.Join(dir, "none.tif")
		if levels, err := Overviews(t.Context(), o, a); fault.KindOf(err) != fault.Corrupt || levels.Indexes != nil {
			t.Errorf("%s: %+v, %v", name, levels, err)
		}
	}
	missing := catalog.Asset{URI: filepath.Join(dir, "missing.tif"), Index: plain}
	if _, err := Overviews(t.Context(), o, missing); fault.KindOf(err) != fault.NotFound {
		t.Errorf("of a file that is missing: %v", err)
	}
}

// TestBandsByName: bands have the numbers of their names, in the order asked for.
func TestBandsByName(t *testing.T) {
	names := []string{"B02", "B03", "", "B04", "B04"}
	for _, c := range []struct {
		want    []string
		numbers []int
		err     string
	}{
		{[]string{"B03", "B02", "B03"}, []int{1, 0, 1}, ""}, {[]string{"B04"}, nil, `two bands are called "B04"`},
		{[]string{"B05"}, nil, `no band "B05"; there are ["B02"`}, {nil, []int{}, ""},
	} {
		got, err := PickBands(names, c.want)
		if !slices.Equal(got, c.numbers) || (err == nil) != (c.err == "") ||
			err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %v, %v", c.want, got, err)
		}
	}
	if _, err := PickBands(nil, []string{"B02"}); err == nil || !strings.Contains(err.Error(), "has no band names") {
		t.Errorf("of a file without names: %v", err)
	}
	for _, c := range []struct {
		names, want []string
		at          string // "": they agree
	}{
		{nil, nil, ""}, {names, names, ""}, {[]string{"a", "", "c"}, []string{"a", "b", ""}, ""},
		{[]string{"a"}, []string{"a", "b"}, ""}, {[]string{"a", "b"}, []string{"a"}, ""},
		{[]string{"a", "b"}, []string{"a", "c"}, "band 1"}, {[]string{"a", "b"}, []string{"b", "b"}, "band 0"},
	} {
		got := Disagreement(c.names, "first", c.want)
		if err := SameNames(c.names, "first", c.want); (got == "") != (c.at == "") || !strings.HasPrefix(got, c.at) ||
			(err == nil) != (got == "") {
			t.Errorf("%q beside %q: %q, %v", c.names, c.want, got, err)
		}
	}
	for n, all := range map[int]bool{1: true, 63: true, 64: true, 65: false, 1000: false} {
		if text := listed(make([]string, n)); strings.HasSuffix(text, `""]`) != all || strings.Count(text,
			`""`) != min(n, 64) {
			t.Errorf("%d names are listed as %s", n, text)
		}
	}
}
