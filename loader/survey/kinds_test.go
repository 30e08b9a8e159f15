package survey_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/npy"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/tog"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestFramesAreDescribed: frames have the outputs, codecs and checksums with which OpenZL wrote them.
func TestFramesAreDescribed(t *testing.T) {
	type frame struct {
		Path      string
		Version   int `json:"format_version"`
		Checksums struct{ Content, Compressed bool }
		Outputs   []struct {
			Type         string
			Width, Count int
		}
	}
	dir := filepath.Join(corpus.Testdata(t), "openzl")
	for _, f := range corpus.Rows[frame](t, dir) {
		info, err := survey.Inspect(t.Context(), filepath.Join(dir, f.Path), loader.Options{})
		if err != nil {
			t.Error(f.Path, err)
			continue
		}
		var types []string
		for i, o := range f.Outputs {
			types = append(types, o.Type)
			if n := o.Width * o.Count; o.Width > 0 && i < len(info.Frame.Sizes) && info.Frame.Sizes[i] != n {
				t.Errorf("%s: output %d has %d bytes, want %d", f.Path, i, info.Frame.Sizes[i], n)
			}
		}
		d := info.Frame
		if !slices.Equal(d.Outputs, types) || len(d.Sizes) != len(types) || d.Frames != 1 ||
			!slices.Equal(d.FormatVersions, []int{f.Version}) ||
			d.Checksums != (f.Checksums.Content || f.Checksums.Compressed) {
			t.Errorf("%s: %+v, want %+v", f.Path, d, f)
		}
	}
}

// described are files by what their descriptions say, as JSON, or the error.
func TestDescribedByKind(t *testing.T) {
	data, dir := corpus.Testdata(t), t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		testfile.Write(t, path, []byte(text))
		return path
	}
	beside := func(name, ext, text string) string { // a raster with another file beside it
		file(name+ext, text)
		return file(name, string(folder.TIFF(16, 16, 0)))
	}
	written := func(o tog.Options) string {
		var b bytes.Buffer
		o.Shape, o.DType, o.Tile = [3]int{1, 16, 16}, chunk.Uint8, 16
		if err := tog.Write(&b, make([]byte, 256), o); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	head, err := npy.Header(chunk.Uint8, []int{2, 2})
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	member, err := w.Create("red.npy")
	if err == nil {
		_, err = member.Write(append(head, 1, 2, 3, 4))
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	file("unread.tif.aux.xml", "<PAMDataset></PAMDataset>")
	mask := written(tog.Options{GDALMetadata: `<GDALMetadata><Item name="INTERNAL_MASK_FLAGS_1">2</Item>` +
		`</GDALMetadata>`})
	file("m.vrt.msk", mask)
	pages := folder.TIFF(4, 4, 0)
	second := pages[24:] // the directory, behind 16 pixels, which both have
	pages = append(pages, second...)
	binary.LittleEndian.PutUint32(pages[24+len(second)-4:], uint32(24+len(second)))
	geo := tiff.Geo{EPSG: 32630, Transform: [6]float64{5e5, 10, 0, 4.6e6, 0, -10}, HasTransform: true}
	unread := []byte(written(tog.Options{Geo: geo}))
	at := bytes.Index(unread, []byte{3, 1, 3, 0, 1, 0, 0, 0, 0, 0, 0, 0}) + 12
	binary.LittleEndian.PutUint16(unread[at:], 34712) // JPEG 2000
	legend := `<PAMDataset><PAMRasterBand band="1"><CategoryNames><Category>sea</Category><Category>land</Category>` +
		`</CategoryNames></PAMRasterBand></PAMDataset>`
	patched := func(b []byte, old, new string) string {
		if !bytes.Contains(b, []byte(old)) {
			t.Fatalf("no %q", old)
		}
		return strings.Replace(string(b), old, new, 1)
	}
	const frame = "\xd8\xa5\xb1\xd7"            // the first bytes of one of version 24
	strip := "\x11\x01\x04\x00\x01\x00\x00\x00" // the tag of the offset of one strip
	lost := folder.TIFF(4, 4, 0)
	binary.LittleEndian.PutUint32(lost[len(lost)-4:], 1<<30)
	rumi := filepath.Join(data, "raster", "rumi-3", "unit-t-b-y-x-0.rumi")
	cut := testfile.Read(t, rumi)
	for _, c := range []struct {
		path  string
		limit int
		says  []string
	}{
		{file("a.npz", archive.String()), 0, []string{"error: ", "holds the arrays"}},
		{file("a.jp2", "\x00\x00\x00\x0cjP  \r\n\x87\n"), 0,
			[]string{"error: ", "file at 0: a JPEG 2000 image is not read: convert it"}},
		{file("a.yaml", "?"), 0, []string{"error: ", "file at 0: YAML is not read: unsupported"}},
		{file("a.xyz", "?"), 0, []string{"error: ", "file at 0: neither a TIFF nor"}},
		{filepath.Join(data, "openzl", "n16-concat.zl"), 4, []string{"error: ", "bytes, at most 4: limit"}},
		{file("strip.tif", patched(folder.TIFF(4, 4, 0), strip, strip+"\xff\xff")), 0, []string{"error: ", "corrupt"}},
		{beside("legend.tif", ".aux.xml", legend), 0, []string{`"classes":["sea","land"]`}},
		{file("legend.vrt", `<VRTDataset rasterXSize="16" rasterYSize="16"><VRTRasterBand dataType="Byte" band="1">`+
			`<CategoryNames><Category>sea</Category></CategoryNames><SimpleSource>`+
			`<SourceFilename relativeToVRT="1">legend.tif</SourceFilename><SourceBand>1</SourceBand></SimpleSource>`+
			`</VRTRasterBand></VRTDataset>`), 0, []string{`"classes":["sea"]`}},
		{beside("half.tif", ".ovr", string(folder.TIFF(8, 8, 0))), 0,
			[]string{`half.tif.ovr"`, `"overview_sizes":[[8,8]]`}},
		{rumi, 0, []string{`"codecs":["`, `"interleave":"PIXEL"`}},
		{filepath.Join(filepath.Dir(rumi), "bool.rumi"), 0, []string{`"interleave":"TILE"`}},
		{file("later.rumi", patched(cut, frame, "\xff"+frame[1:])), 0, []string{`"unreadable":"tile 0`, "unsupported"}},
		{file("damaged.rumi", patched(cut, frame, "????")), 0,
			[]string{"error: ", "tile 0 frame header at ", "corrupt"}},
		{filepath.Join(data, "beside", "world.png"), 16, []string{`"unreadable":`, "limit"}},
		{file("w.vrt", `<VRTDataset rasterXSize="2" rasterYSize="2" subClass="VRTWarpedDataset"></VRTDataset>`), 0,
			[]string{`"unreadable":`, "unsupported"}},
		{file("b.vrt", `<VRTDataset rasterXSize="2"`), 0, []string{"error: ", "corrupt"}},
		{file("m.vrt", `<VRTDataset rasterXSize="16" rasterYSize="16">`+
			`<VRTRasterBand dataType="Byte" band="1"><SimpleSource><SourceFilename relativeToVRT="1">m.tif`+
			`</SourceFilename><SourceBand>1</SourceBand></SimpleSource>`+
			`</VRTRasterBand></VRTDataset>`), 0,
			[]string{`"mask":{"kind":"beside"`, `"beside":[".msk"]`, `"sources":1`}},
		{beside("m.tif", ".msk", mask), 0, []string{`"mask":{"kind":"beside"`, `"beside":[".msk"]`}},
		{beside("a.tif", ".msk", "II*\x00\xff\x00\x00\x00"), 0, []string{`"unreadable":`, "a.tif.msk"}},
		{rumi, 64, []string{`"kind":"rumi"`, `"unreadable":`, "limit", `"compression":"OpenZL"`}},
		{file("cut.rumi", string(cut[:len(cut)/2])), 0, []string{"error: ", "corrupt"}},
		{file("unread.tif", string(unread)), 0, []string{`"unreadable":`, `"transform":[500000,10,0,4600000,0,-10]`,
			`"pixel_at":"area"`, `"epsg":32630`}},
		{file("pages.tif", string(pages)), 0, []string{`"pages":2`, `"directories":2`}},
		{file("lost.tif", string(lost)), 0, []string{`"chain":"`, `"raster":`}},
		{beside("o.tif", ".ovr", "II"), 0, []string{`"overview_fault":`, "no TIFF"}},
		{filepath.Join(data, "overviews", "plain.tif"), 0, []string{`"overview_file":"`, `plain.tif.ovr"`}},
		{beside("s.tif", ".aux.xml", `<PAMDataset><PAMRasterBand band="1"><Scale>4</Scale><Offset>3</Offset>`+
			`</PAMRasterBand></PAMDataset>`), 0, []string{`{"scale":4,"offset":3}`, `"beside":[".aux.xml"]`}},
		{filepath.Join(data, "coast", "coast.tacozip"), 0, []string{`"kind":"TACO 2 (ZIP)"`}},
		{filepath.Join(data, "raster", "rumi-3"), 0, []string{`"kind":"folder"`}},
	} {
		info, err := survey.Describe(t.Context(), c.path, nil, loader.Options{MaxChunkBytes: c.limit})
		text := fmt.Sprint("error: ", err)
		if err == nil {
			b, err := json.Marshal(info)
			text = fmt.Sprint(string(b), err)
		}
		for _, says := range c.says {
			if !strings.Contains(text, says) {
				t.Errorf("%s: %s, want %s", filepath.Base(c.path), text, says)
			}
		}
	}
	cube := filepath.Join(data, "tiledb", "cube")
	info, err := survey.Describe(t.Context(), cube, &spec.Timestamp{0, math.MaxInt64}, loader.Options{})
	if _, isFile := info.(*survey.FileInfo); err != nil || isFile {
		t.Errorf("an array at a timestamp: %+v, %v", info, err)
	}
}

// TestFolders: files are counted by their extensions, but for hidden ones; beyond 64 extensions together.
func TestFolders(t *testing.T) {
	dir := t.TempDir()
	for i := range 64 {
		testfile.Write(t, filepath.Join(dir, fmt.Sprint("x.e", i)), make([]byte, 2))
	}
	for _, name := range []string{"sub/y.E1", "z", ".hidden", ".git/config.e1", "sub/.y", "z.new"} {
		folder.Write(t, filepath.Join(dir, name), "abc")
	}
	if err := os.Mkdir(filepath.Join(dir, "closed"), 0); err != nil {
		t.Fatal(err)
	}
	info, err := survey.Inspect(t.Context(), dir, loader.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if f := info.Folder; f.Files != 67 || info.Bytes != 64*2+3*3 || f.ByType[".e1"] != 2 || f.ByType["…"] != 2 ||
		len(f.ByType) != 65 {
		t.Errorf("%d bytes, %+v", info.Bytes, *f)
	}
}
