package survey_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/store/catalog/tableinfo"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// inspected are the valid files of the manifests.
func inspected(t *testing.T) []corpus.File {
	t.Helper()
	return slices.DeleteFunc(corpus.Files(t), func(f corpus.File) bool { return f.Kind != "tiff" && f.Kind != "rumi" })
}

// TestInspectAgreesWithManifest: shape, dtype, tiles, CRS, codecs and the TOG profile are those of
// the manifest, which other software made.
func TestInspectAgreesWithManifest(t *testing.T) {
	for _, f := range inspected(t) {
		info, err := survey.Inspect(t.Context(), filepath.Join(f.Dir, f.Path), loader.Options{})
		if err != nil {
			t.Errorf("%s: %v", f.Path, err)
			continue
		}
		if info.Kind != f.Kind {
			t.Errorf("%s is %s, want %s", f.Path, info.Kind, f.Kind)
		}
		r := info.Raster
		if r == nil {
			if !f.MayRefuse() || info.Unreadable == "" {
				t.Errorf("%s is not readable: %q", f.Path, info.Unreadable)
			}
			continue
		}
		if !slices.Equal(r.Shape[:], f.Shape) || r.DType.String() != f.DType {
			t.Errorf("%s: shape %v %s, want %v %s", f.Path, r.Shape, r.DType, f.Shape, f.DType)
		}
		if f.Tile != nil && (r.Chunk[1] != *f.Tile || r.Chunk[2] != *f.Tile) {
			t.Errorf("%s: chunks %v, want tiles of %d", f.Path, r.Chunk, *f.Tile)
		}
		if f.Geo != nil && f.Geo.CRS != nil && f.Geo.CRS != float64(info.TIFF.EPSG) {
			t.Errorf("%s: EPSG %d, want %v", f.Path, info.TIFF.EPSG, f.Geo.CRS)
		}
		checkProfile(t, f, info)
	}
}

func checkProfile(t *testing.T, f corpus.File, info *survey.FileInfo) {
	t.Helper()
	if f.Kind == "rumi" {
		if info.Raster.OpenZL == nil && info.Unreadable == "" {
			t.Errorf("%s: nothing about its frames", f.Path)
		}
		if codecs := slices.Sorted(slices.Values(info.Raster.OpenZL.Codecs)); !slices.Equal(codecs,
			slices.Compact(slices.Clone(codecs))) || len(info.Raster.OpenZL.FormatVersions) != 1 {
			t.Errorf("%s: %+v", f.Path, info.Raster.OpenZL)
		}
		for _, c := range info.Raster.OpenZL.Codecs {
			if !slices.Contains(f.Codecs, c) {
				t.Errorf("%s: codec %s, the writer used %v", f.Path, c, f.Codecs)
			}
		}
		return
	}
	l := f.Layout
	if l != nil && (info.TIFF.BigTIFF != l.BigTIFF || info.TIFF.Tiled != l.Tiled || info.Raster.Chunks != l.NChunks ||
		info.Raster.Sparse != l.Sparse) {
		t.Errorf("%s: %+v, want %+v", f.Path, *info.TIFF, *l)
	}
	// The manifest counts files with statistics in their metadata separately; the profile allows
	// them.
	if info.TIFF.TOG != f.TOG && !strings.Contains(f.Note, "statistics") {
		t.Errorf("%s: TOG %t %q, want %t (%s)", f.Path, info.TIFF.TOG, info.TIFF.NotTOG, f.TOG, f.Note)
	}
}

func TestInspectOtherKinds(t *testing.T) {
	dir := t.TempDir()
	raster := filepath.Join(corpus.Testdata(t), "raster")
	table := filepath.Join(dir, "c.parquet")
	w, err := os.Create(table)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := build.Write(t.Context(), w, []string{filepath.Join(raster, "tog", "tog-*.tif")},
		build.Options{Base: dir})
	if err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		testfile.Write(t, p, []byte(text))
		return p
	}
	for path, kind := range map[string]string{
		table: survey.KindAssets, raster: survey.KindFolder, write("a.csv", "uri,label\nx.tif,1\n"): survey.KindCSV,
	} {
		info, err := survey.Inspect(t.Context(), path, loader.Options{})
		if err != nil || info.Kind != kind {
			t.Errorf("%s: %+v, %v; want %s", path, info, err, kind)
			continue
		}
		if kind == survey.KindAssets &&
			(info.Table.Rows != int64(rows) || info.Table.Columns[0] != (tableinfo.Column{Name: "uri", Type: "text"})) {
			t.Errorf("catalog of %d rows: %+v", rows, *info.Table)
		}
		if kind == survey.KindFolder &&
			(info.Folder.ByType[".tif"] < 10 || info.Folder.ByType[".md"] != 1 || info.Bytes == 0) {
			t.Errorf("folder: %+v", *info.Folder)
		}
	}
	for path, kind := range map[string]fault.Kind{
		write("a.xyz", "hello, world"):                    fault.Unsupported,
		write("empty.tif", ""):                            fault.Unsupported,
		write("a.zip", "PK\x03\x04...."):                  fault.Unsupported,
		write("cut.tif", "II+\x00\x08\x00\x00\x00"):       fault.Corrupt,
		write("cut.parquet", "PAR1"):                      fault.Corrupt,
		filepath.Join(dir, "none"):                        fault.NotFound,
		filepath.Join(raster, "bad", "tog-trunc-611.tif"): fault.Corrupt,
		write("cut.zl", "\xD8\xA5\xB1\xD7"):               fault.Corrupt,
	} {
		_, err := survey.Inspect(t.Context(), path, loader.Options{})
		if fault.KindOf(err) != kind || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("%s: %v, want %v", path, err, kind)
		}
	}
}

// TestInspectKeepsToRoots: nothing outside of the roots is inspected, also not through a link, and
// the error does not tell whether it exists.
func TestInspectKeepsToRoots(t *testing.T) {
	root, other := t.TempDir(), t.TempDir()
	secret := filepath.Join(other, "a.csv")
	testfile.Write(t, secret, []byte("a\n1\n"))
	link := filepath.Join(root, "a.csv")
	if err := os.Symlink(secret, link); err != nil {
		t.Skip(err)
	}
	inside := filepath.Join(root, "b.csv")
	testfile.Write(t, inside, []byte("a\n1\n"))
	o := loader.Options{Roots: []string{root}}
	for _, p := range []string{
		secret, link, other, filepath.Join(other, "none"),
		filepath.Join(root, "..", filepath.Base(other), "a.csv"),
	} {
		if _, err := survey.Inspect(t.Context(), p, o); fault.KindOf(err) != fault.NotFound {
			t.Errorf("%s: %v", p, err)
		}
	}
	for _, p := range []string{inside, root} {
		if _, err := survey.Inspect(t.Context(), p, o); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
	_, err := survey.Inspect(t.Context(), inside, loader.Options{Roots: []string{}})
	if fault.KindOf(err) != fault.NotFound {
		t.Errorf("without a root: %v", err)
	}
}

// TestDescribeStaysBelowTheRoots promises that Describe finds nothing outside of the roots, also where a
// name looks like a path into a container.
func TestDescribeStaysBelowTheRoots(t *testing.T) {
	root, other := t.TempDir(), t.TempDir()
	for _, dir := range []string{root, other} {
		named := filepath.Join(dir, "a"+source.Separator+"b") // a directory, not a path into a container
		testfile.Write(t, filepath.Join(named, "c.csv"), []byte("a\n1\n"))
	}
	o := loader.Options{Roots: []string{root}}
	name := "a" + source.Separator + "b"
	info, err := survey.Describe(t.Context(), filepath.Join(other, name), nil, o)
	if fault.KindOf(err) != fault.NotFound {
		t.Errorf("outside of the roots: %+v, %v", info, err)
	}
	info, err = survey.Describe(t.Context(), filepath.Join(root, name), nil, o)
	if f, ok := info.(*survey.FileInfo); err != nil || !ok || f.Folder == nil || f.Folder.Files != 1 {
		t.Errorf("below the root: %+v, %v", info, err)
	}
	_, err = survey.Describe(t.Context(), filepath.Join(root, name), &spec.Timestamp{}, o)
	if !errors.Is(err, survey.ErrNotArray) {
		t.Errorf("a directory at a timestamp: %v", err)
	}
}

// TestInspectMasks: a mask is described with its bits and chunks.
func TestInspectMasks(t *testing.T) {
	want := map[string]survey.MaskInfo{
		"tog.tif":       {Kind: "internal", Bits: 1, Chunk: [2]int{64, 64}, Chunks: 4, Codec: "deflate"},
		"strips-be.tif": {Kind: "internal", Bits: 1, Chunk: [2]int{16, 77}, Chunks: 4, Codec: "deflate"},
		"bytes.tif":     {Kind: "internal", Bits: 8, Chunk: [2]int{23, 70}, Chunks: 3, Codec: "packbits"},
	}
	for name, w := range want {
		info, err := survey.Inspect(t.Context(), filepath.Join(corpus.Testdata(t), "masks", name), loader.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m := info.Raster.Mask
		if m == nil || !info.TIFF.Mask || m.StoredBytes == 0 {
			t.Fatalf("%s: mask %+v", name, m)
		}
		w.StoredBytes = m.StoredBytes
		if *m != w {
			t.Errorf("%s: %+v, want %+v", name, *m, w)
		}
	}
}

// failing is an opener of local files, but of those whose names end in what.
type failing struct {
	source.Opener
	what string
}

var errNetwork = errors.New("the network is down")

func (f failing) Open(ctx context.Context, name string) (source.Reader, error) {
	if strings.HasSuffix(name, f.what) {
		return nil, errNetwork
	}
	return f.Opener.Open(ctx, name)
}

// TestDescribeFailing: where a file, or one beside it, cannot be reached, nothing is described.
func TestDescribeFailing(t *testing.T) {
	for what, raster := range map[string]string{".tif": "pam.tif", ".xml": "pam.tif", ".msk": "mask.tif",
		".ovr": "pam.tif"} {
		o := loader.Options{Opener: &openers.Mux{Files: failing{&openers.Files{}, what}}}
		info, err := survey.Describe(t.Context(), filepath.Join(corpus.Testdata(t), "beside", raster), nil, o)
		if !errors.Is(err, errNetwork) {
			t.Errorf("%s: %+v, %v", what, info, err)
		}
	}
	geo, dir := filepath.Join(corpus.Testdata(t), "masks", "tog.tif"), t.TempDir()
	b := testfile.Read(t, geo)
	var infos [2]*survey.FileInfo // a file beside that says nothing changes nothing
	for i, beside := range []string{"", "<PAMDataset></PAMDataset>"} {
		copied := filepath.Join(dir, "x.tif")
		err := os.WriteFile(copied, b, 0o600)
		if err == nil && beside != "" {
			err = os.WriteFile(copied+".aux.xml", []byte(beside), 0o600)
		}
		info, described := survey.Describe(t.Context(), copied, nil, loader.Options{})
		if err := errors.Join(err, described); err != nil {
			t.Fatal(err)
		}
		infos[i] = info.(*survey.FileInfo)
	}
	if !reflect.DeepEqual(infos[0].TIFF, infos[1].TIFF) || len(infos[1].Beside) != 1 {
		t.Errorf("%+v with a file beside, %+v without", infos[1].TIFF, infos[0].TIFF)
	}
	raster := testfile.Read(t, filepath.Join(corpus.Testdata(t), "beside", "pam.tif"))
	named := filepath.Join(t.TempDir(), "a.csv")
	testfile.Write(t, named, raster)
	if info, err := survey.Inspect(t.Context(), named, loader.Options{}); err != nil || info.Kind != "tiff" {
		t.Errorf("a TIFF named .csv: %+v, %v", info, err)
	}
}

// TestUnreadable: of a file of a compression that is not read, its tags are described.
func TestUnreadable(t *testing.T) {
	const jpeg2000 = 34712
	b := folder.TIFF(8, 8, 0)
	binary.LittleEndian.PutUint32(b[bytes.Index(b, []byte{3, 1, 4, 0})+8:], jpeg2000)
	path := filepath.Join(t.TempDir(), "a.tif")
	testfile.Write(t, path, b)
	info, err := survey.Describe(t.Context(), path, nil, loader.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if info := info.(*survey.FileInfo); info.Raster != nil || !strings.Contains(info.Unreadable, "unsupported") ||
		!strings.Contains(info.TIFF.Compression, "2000") || info.TIFF.TOG {
		t.Errorf("%+v, %+v", info, info.TIFF)
	}
	coloured, err := survey.Describe(t.Context(), filepath.Join(corpus.Testdata(t), "extras", "palette.tif"), nil,
		loader.Options{})
	if err != nil || len(coloured.(*survey.FileInfo).Raster.Palette) == 0 {
		t.Errorf("no colours: %v", err)
	}
}
