package survey_test

import (
	"context"
	"encoding/hex"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// rumi2 returns the module's files of generation 2.
func rumi2(t *testing.T) []corpus.File {
	t.Helper()
	dir := filepath.Join(corpus.Testdata(t), "raster")
	return append(corpus.Of(corpus.Manifest(t, dir), "rumi-new"),
		corpus.Manifest(t, filepath.Join(dir, "rumi-new", "written"))...)
}

// TestRumi2: files of generation 2 are recognised among TIFFs, indexed with the original writer's
// blob, and read with it.
func TestRumi2(t *testing.T) {
	files := &openers.Files{}
	defer files.Close()
	for _, f := range rumi2(t) {
		path := filepath.Join(f.Dir, f.Path)
		info, err := survey.Inspect(t.Context(), path, loader.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if info.Kind != survey.KindRumi || info.Raster == nil || info.Unreadable != "" ||
			info.TIFF.Compression != "OpenZL" || info.TIFF.TOG || info.TIFF.NotTOG != nil {
			t.Errorf("%s: %+v", f.Path, info)
		}
		a, m, err := catalog.OpenAsset(t.Context(), files, path, 0)
		if err != nil {
			t.Fatal(err)
		}
		if m.Format != magic.Rumi || hex.EncodeToString(m.Blob) != f.Blob {
			t.Errorf("%s: %s with blob %x", f.Path, m.Format.Name, m.Blob)
		}
		if f.Geo == nil && (m.EPSG != 0 || m.Transform != nil) ||
			f.Geo != nil && (f.Geo.CRS != float64(m.EPSG) || m.Transform == nil) {
			t.Errorf("%s: EPSG %d, transform %v", f.Path, m.EPSG, m.Transform)
		}
		if f.Unit == "cell" && a.Index.ChunkB != f.Shape[0] {
			t.Errorf("%s: chunks of %d bands", f.Path, a.Index.ChunkB)
		}
		for _, headers := range [][][]byte{nil, {m.Blob}} {
			got, err := raster.Read(context.Background(), []string{path}, raster.ReadOptions{
				Headers: headers, Threads: 3,
			})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Shape, f.Shape) || got.DType.String() != f.DType ||
				corpus.SHA256(got.Data) != f.SHA256 {
				t.Errorf("%s: %v %s, want %v %s, or other samples", f.Path, got.Shape, got.DType, f.Shape, f.DType)
			}
		}
	}
}

// TestLaterRumi: a file of a later generation is recognised and refused.
func TestLaterRumi(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.rumi")
	testfile.Write(t, path, []byte("RUMI\x02\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00"))
	info, err := survey.Inspect(t.Context(), path, loader.Options{})
	if err != nil || info.Kind != survey.KindRumi || !strings.Contains(info.Unreadable, "generation") {
		t.Errorf("%+v, %v", info, err)
	}
	_, err = raster.Read(context.Background(), []string{path}, raster.ReadOptions{})
	if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "generation") {
		t.Errorf("%v", err)
	}
}
