package catalog

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/chunk/blob"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
	"github.com/chaski-eo/chaski/store/catalog/internal/sidecar"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// heavy is a virtual raster of 1 MiB.
type heavy struct{ Virtual }

func (heavy) Cost() int64          { return 1 << 20 }
func (heavy) Legend() chunk.Legend { return chunk.Legend{Names: []string{"water"}} }

// TestCost: an asset costs what it keeps, and little more.
func TestCost(t *testing.T) {
	ranges := func(n int) *chunk.Index { return &chunk.Index{Ranges: make([]chunk.Range, n)} }
	masked := ranges(10_000)
	masked.Mask = ranges(20_000)
	for _, c := range []struct {
		asset Asset
		keeps int64
	}{
		{Asset{Index: ranges(0)}, 0}, {Asset{Index: ranges(10_000)}, 160_000}, {Asset{Index: masked}, 480_000},
		{Asset{Index: ranges(0), Bytes: make([]byte, 10, 1<<20)}, 1 << 20},
		{Asset{Index: ranges(0), URI: string(make([]byte, 4096))}, 4096},
		{Asset{Index: ranges(0), storeBytes: 1 << 20}, 1 << 20},
		{Asset{Index: &chunk.Index{Blocks: &chunk.Blocks{Array: heavy{}}}}, 1 << 20},
	} {
		if got := c.asset.Cost(); got < c.keeps+100 || got > c.keeps+1000 {
			t.Errorf("%d bytes for an asset that keeps %d", got, c.keeps)
		}
	}
}

// TestVirtualRastersThatChange: a virtual raster has the length that its listing says.
func TestVirtualRastersThatChange(t *testing.T) {
	opens := OpenVirtual
	defer func() { OpenVirtual = opens }()
	OpenVirtual = func(_ context.Context, _ source.Opener, r source.Reader, _ string, _ int) (Asset, Meta, error) {
		return Asset{Index: &chunk.Index{Blocks: &chunk.Blocks{Array: heavy{}}}, Size: r.Size()},
			Meta{Format: magic.VRT}, nil
	}
	const before, after = "<VRTDataset/>", "<VRTDataset></VRTDataset>"
	dir := t.TempDir()
	path := filepath.Join(dir, "a.vrt")
	testfile.Write(t, filepath.Join(dir, "t.csv"), []byte("image\na.vrt\n"))
	for _, c := range []struct {
		src, before, after string
		want               fault.Kind
	}{
		{"", before, before, 0}, {"", before, after, fault.Corrupt}, {"", "x", after, fault.Corrupt},
		{"t.csv", before, after, 0}, // which knows no size
	} {
		testfile.Write(t, path, []byte(c.before))
		table, err := Open(t.Context(), filepath.Join(dir, c.src), nil, Options{})
		if err != nil {
			t.Fatal(err)
		}
		testfile.Write(t, path, []byte(c.after))
		a, err := table.Asset(t.Context(), 0, 0)
		if fault.KindOf(err) != c.want || err == nil && (!IsVirtual(a.Index) || !a.HasLegend() ||
			len(a.Legend(t.Context(), nil, nil).Names) != 1) {
			t.Errorf("%s in %q: %+v, %v", c.after, c.src, a.Index, err)
		}
		_ = table.Close()
	}
}

// TestPartsOfErrors: the error of a member says its place in the container, if it says one, and others say none.
func TestPartsOfErrors(t *testing.T) {
	for _, off := range []int64{fault.NoOffset, 0, 1, 7} {
		for member, want := range map[string]string{"": "tile", "m": "sample m tile"} {
			a := Asset{URI: "a.zip", Member: member}
			var got *fault.Error
			err := a.Fault(fault.At(fault.Corrupt, "tile", off, "bad"))
			if !errors.As(err, &got) || got.Off != off || got.Part != want || got.File != "a.zip" {
				t.Errorf("%q at %d: %+v", member, off, got)
			}
		}
	}
	var got *fault.Error
	if err := fault.InPart(errors.New("down"), "field"); errors.As(err, &got) && got.Off >= 0 {
		t.Errorf("an error without a place: %v", err)
	}
}

// TestBandsOfAssets: alpha is no band of data; an array that is not said to be one is a picture.
func TestBandsOfAssets(t *testing.T) {
	rgba := &chunk.Index{Bands: 4, Alpha: true}
	for _, c := range []struct {
		asset Asset
		want  []string
	}{
		{Asset{Index: rgba, Names: []string{"r", "g", "b", "a"}}, []string{"r", "g", "b"}},
		{Asset{Index: &chunk.Index{Bands: 2}, Names: []string{"r", "g"}}, []string{"r", "g"}},
		{Asset{Index: rgba}, nil},
	} {
		if got := c.asset.DataNames(); !slices.Equal(got, c.want) {
			t.Errorf("%q of %q", got, c.asset.Names)
		}
	}
	if x := WithoutAlpha(rgba); x.Alpha || x.Bands != 4 || !rgba.Alpha || WithoutAlpha(x) != x {
		t.Errorf("without alpha: %+v", x)
	}
	for _, inner := range []chunk.Inner{chunk.YXB, 0} {
		for _, dims := range []string{"", "y x b"} {
			for _, uri := range []string{"a.npy", "a.tif"} {
				for _, picture := range []bool{true, false} {
					a := Asset{URI: uri, Index: &chunk.Index{Inner: inner, Picture: picture}}
					a.Axes.Dims = dims
					want := picture || inner == chunk.YXB && dims == "" && uri == "a.npy"
					if got := a.TakenForPicture(); got != want {
						t.Errorf("%s, %v, dims %q, %v: %v", uri, inner, dims, picture, got)
					}
				}
			}
		}
	}
}

// TestNamesOfFiles: the name of a sample is the name of its file without the ending.
func TestNamesOfFiles(t *testing.T) {
	for uri, want := range map[string]string{"s2/a.zarr.zip": "a", "s2/a.b.zip": "a.b", "https://h/d/a.tif?x=/b.c": "a",
		"s3://b/a?b.tif": "a?b", "d/a.npz::x": "a", "a": "a", "d/a.tar.gz": "a.tar"} {
		if got := stem(uri); got != want {
			t.Errorf("%s is called %q, want %q", uri, got, want)
		}
	}
}

// TestNamesOfRows: rows are numbered as people do.
func TestNamesOfRows(t *testing.T) {
	if got := rowName(120) + " " + cellName(120, "x"); got != "row 120 120/x" {
		t.Error(got)
	}
}

// TestSides: the sides of a raster that a cell may have. A query has at most 2^31-1 rows.
func TestSides(t *testing.T) {
	for _, c := range []struct {
		cell Value
		want int32
	}{
		{Value{Int: 5}, 5}, {Value{Null: true}, 0}, {Value{Int: 1}, 1},
		{Value{}, 0},
		{Value{Int: -1}, 0}, {Value{Int: 1 << 30}, 1 << 30}, {Value{Int: 1<<30 + 1}, 0},
		{Value{Int: 1<<32 + 1}, 0}, {Value{Int: 1<<31 - 1}, 0},
	} {
		if got := side(c.cell); got != c.want {
			t.Errorf("%+v: %d", c.cell, got)
		}
	}
	for rows, want := range map[int64]fault.Kind{math.MaxInt32: 0, math.MaxInt32 + 1: fault.Limit} {
		if _, err := (&Table{table: columns.OfFiles(rows)}).Data(t.Context()); fault.KindOf(err) != want {
			t.Errorf("%d rows: %v", rows, err)
		}
	}
}

// TestGroundOfSystems: two rasters lie at the same place by where their CRSs have it: codes of one grid agree, and so
// do boxes in two zones; codes that are not known differ.
func TestGroundOfSystems(t *testing.T) {
	at := func(code int, x, y, size float64) *Asset { return placed(code, 4, 4, north(x, y, size)) }
	utm, zone := at(32630, 500000, 4600000, 10), *at(25830, 500000, 4600000, 10)
	boxed := boxOf(at(32630, 500000, 4600000, 10))
	turned := placed(32630, 4, 4, [6]float64{500000, 10, 0, 4599960, 0, 10})
	for _, c := range []struct {
		name         string
		first, other *Asset
		says         string
	}{
		{"one grid", utm, &zone, ""}, {"the same", utm, utm, ""},
		{"shifted", utm, at(25830, 500100, 4600000, 10), "the CRSs differ"},
		{"another zone", utm, at(32631, 500000, 4600000, 10), "the CRSs differ"},
		{"no such code", utm, at(999999, 500000, 4600000, 10), "the CRSs differ"},
		{"no such first code", at(999999, 500000, 4600000, 10), utm, "the CRSs differ"},
		{"half a pixel", utm, at(32630, 500005, 4600005, 10), ""},
		{"more", utm, at(32630, 500006, 4600000, 10), "it is shifted by 6 m (0.6 pixels) east"},
		{"west", utm, at(32630, 499993, 4599980, 10),
			"it is shifted by 7 m (0.7 pixels) west and 20 m (2 pixels) south"},
		{"turned", utm, turned, "its rows or columns run another way"}, {"a turned box", boxed, turned, ""},
		{"a box of a turned one", turned, boxed, ""}, {"a box", utm, boxed, ""},
		{"small pixels", at(32630, 500000, 4600000, 1), at(32630, 500003, 4600000, 1),
			"it is shifted by 3 m (3 pixels) east"},
		{"another extent", utm, at(32630, 500000, 4600000, 20), "the extents differ"},
		{"skewed", utm, placed(32630, 4, 4, [6]float64{500100, 11, 1, 4600000, 0, -10}), "the extents differ"},
	} {
		err := SameGround(c.first, c.other)
		if (err != nil) != (c.says != "") || err != nil && (fault.KindOf(err) != fault.Misplaced ||
			!strings.Contains(err.Error(), ": "+c.says+": misplaced")) {
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		}
	}
	if *zone.Place != *at(25830, 500000, 4600000, 10).Place {
		t.Error("the comparison changes a place")
	}
	high := crs.Point{1, 1}
	if !within([]crs.Point{{1, 1}}, crs.Point{}, high) || within([]crs.Point{{1, 1.5}}, crs.Point{}, high) {
		t.Error("a limit holds for what lies on it")
	}
}

// TestRepeatedRows: the rows of samples of many images are charged, and bounded.
func TestRepeatedRows(t *testing.T) {
	budgeted, err := budget.New(1<<20).Open(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer budgeted.Close()
	ctx := budget.With(t.Context(), budgeted)
	table := &Table{fields: make([]fieldColumns, 3)}
	if err := table.repeat(ctx, []int64{400, 600}); err != nil || table.n != 1000 || table.stores.images[400] != 0 {
		t.Errorf("%d rows, %v", table.n, err)
	}
	made := 4*len(table.stores.images) + 8*len(table.order)
	for i := range table.fields {
		made += 8 * len(table.fields[i].rows)
	}
	if held := int(budgeted.Held()); held < made || held > made+made/8 {
		t.Errorf("%d bytes are charged for %d", held, made)
	}
	for n, says := range map[int64]string{1 << 17: budget.Flag, 1<<32 + 1: "4294967297 rows, at most 4294967296"} {
		if err := table.repeat(ctx, []int64{n}); fault.KindOf(err) != fault.Limit || !strings.Contains(err.Error(),
			says) {
			t.Errorf("%d rows: %v", n, err)
		}
	}
}

// TestNamesOfACanceledOpening: the names of a directory whose listing was given up are asked for again.
func TestNamesOfACanceledOpening(t *testing.T) {
	dir := t.TempDir()
	testfile.Write(t, filepath.Join(dir, "a.tif.msk"), nil)
	roots := openers.RootsOf(&openers.Files{})
	table := context.WithValue(t.Context(), namesKey{}, lru.New[string, sidecar.Names](1<<20))
	canceled, cancel := context.WithCancel(table)
	release := HoldListing(t, dir)
	cancel()
	if names := namesFor(canceled, roots, dir); names != nil {
		t.Errorf("a listing that hangs found %v", names)
	}
	release()
	if names := namesFor(table, roots, dir); len(names) != 1 {
		t.Errorf("afterwards %v", names)
	}
}

// TestStepsThatAreCounted: counting ends after some assets where one has enough steps, and else with the last.
func TestStepsThatAreCounted(t *testing.T) {
	steps := []int{1, 3, 1, 2, 1}
	blobs := make([]string, len(steps))
	for i, n := range steps {
		x := chunk.Index{Bands: n, Height: 1, Width: 1, ChunkB: 1, ChunkH: 1, ChunkW: 1, DType: chunk.Uint8,
			Predictor: chunk.NoPredictor, Times: n, Ranges: make([]chunk.Range, n)}
		for k := range x.Ranges {
			x.Ranges[k] = chunk.Range{Off: int64(k), Len: 1}
		}
		blobs[i] = string(blob.Append(nil, &x))
	}
	table := &Table{n: int64(len(steps)), fields: []fieldColumns{{blobs: []*columns.Column{uris(blobs)}}}}
	for _, c := range []struct {
		enough int
		most   int64
		want   StepCount
	}{
		{2, 2, StepCount{3, 1, 2}}, {3, 1, StepCount{3, 1, 2}}, {3, 3, StepCount{3, 2, 3}}, {4, 1, StepCount{3, 5, 5}},
		{1, 4, StepCount{3, 0, 4}}, {1, 5, StepCount{3, 0, 5}}, {1, 9, StepCount{3, 0, 5}},
	} {
		if got, err := table.countSteps(t.Context(), 0, c.enough, c.most); err != nil || got != c.want {
			t.Errorf("%d steps of %d assets: %+v, %v, want %+v", c.enough, c.most, got, err, c.want)
		}
	}
}
