package virtual

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestShapesOfGDAL promises the bands, rows, columns, dtype and mask that GDAL sees. Package loader/pixels compares
// the pixels.
func TestShapesOfGDAL(t *testing.T) {
	dir := filepath.Join(corpus.Testdata(t), "vrt")
	for _, want := range corpus.Rows[struct {
		corpus.File
		Valid []int64
	}](t, dir) {
		a, m, err := catalog.OpenAsset(t.Context(), new(openers.Files), filepath.Join(dir, want.Path), 0)
		if err != nil {
			t.Fatal(err)
		}
		x := a.Index
		if got := []int{x.DataBands(), x.Height, x.Width}; !slices.Equal(got, want.Shape) ||
			x.DType.String() != want.DType {
			t.Errorf("%s: %v of %s, want %v of %s", want.Path, got, x.DType, want.Shape, want.DType)
		}
		some := slices.ContainsFunc(want.Valid, func(n int64) bool { return n != int64(x.Height)*int64(x.Width) })
		if masked := x.Mask != nil || x.HasNoData() || x.Alpha; some && !masked {
			t.Errorf("%s: GDAL has invalid pixels, and it has neither a mask nor nodata", want.Path)
		}
		if info, err := os.Stat(filepath.Join(dir, want.Path)); err != nil || m.Size != info.Size() {
			t.Errorf("%s: %d bytes (%v)", want.Path, m.Size, err)
		}
	}
}

// text is a virtual raster of one source.
const text = `<VRTDataset rasterXSize="4" rasterYSize="3"><VRTRasterBand dataType="Byte" band="1"><SimpleSource>
<SourceFilename relativeToVRT="1">%s</SourceFilename><SourceBand>1</SourceBand></SimpleSource></VRTRasterBand>
</VRTDataset>`

// TestChains promises that virtual rasters may be sources of each other maxChain deep, without a circle.
func TestChains(t *testing.T) {
	dir := t.TempDir()
	at := func(i int) string { return filepath.Join(dir, fmt.Sprintf("%d.vrt", i)) }
	write := func(i int, source string) {
		testfile.Write(t, at(i), fmt.Appendf(nil, text, source))
	}
	for i := range 20 {
		write(i, fmt.Sprintf("%d.vrt", i+1))
	}
	write(20, "20.vrt")
	write(21, "22.vrt")
	write(22, "21.vrt")
	for start, want := range map[int]int{0: maxChain, 20: 1, 21: 2} {
		a, _, err := catalog.OpenAsset(t.Context(), new(openers.Files), at(start), 0)
		opened := 0
		for err == nil && opened < 20 {
			opened++
			a, err = a.Index.Blocks.Array.(*virtual).source(t.Context(), 0)
		}
		if opened != want || fault.KindOf(err) != fault.Limit {
			t.Errorf("from %d: %d rasters open, want %d; then %v", start, opened, want, err)
		}
	}
}

// TestSourceOfAServer promises that a virtual raster on a server reads no local file.
func TestSourceOfAServer(t *testing.T) {
	dir := t.TempDir()
	local := filepath.Join(dir, "x.vrt")
	testfile.Write(t, local, fmt.Appendf(nil, text, local))
	a, _, err := catalog.OpenAsset(t.Context(), new(openers.Files), local, 0)
	if err != nil {
		t.Fatal(err)
	}
	v := *a.Index.Blocks.Array.(*virtual)
	v.chain, v.id = []string{"https://example.com/x.vrt"}, virtuals.Add(1)
	v.set.Files[0].Relative = false
	if _, err := v.source(t.Context(), 0); fault.KindOf(err) != fault.Unsupported {
		t.Error(err)
	}
}
