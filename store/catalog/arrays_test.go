package catalog_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
)

// npy returns a NumPy file of bytes with a shape, such as "3, 4".
func npy(shape string, samples []byte) []byte {
	head := fmt.Sprintf("%-117s\n", "{'descr': '|u1', 'fortran_order': False, 'shape': ("+shape+"), }")
	return append(append([]byte("\x93NUMPY\x01\x00\x76\x00"), head...), samples...)
}

// npz returns a ZIP of members in pairs of a name and a content, as numpy.savez or savez_compressed writes it.
func npz(t testing.TB, method uint16, members ...string) string {
	t.Helper()
	var b bytes.Buffer
	archive := zip.NewWriter(&b)
	for i := 0; i < len(members); i += 2 {
		w, err := archive.CreateHeader(&zip.FileHeader{Name: members[i], Method: method})
		if err == nil {
			_, err = w.Write([]byte(members[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestArraysOfArchives: a pattern, a column, a glob and a name lead to arrays in .npz files, here and in a bucket.
func TestArraysOfArchives(t *testing.T) {
	var files []string
	for i := range 3 {
		image := npy(fmt.Sprintf("2, %d, 5", 4+i), slices.Repeat([]byte{byte(i)}, 10*(4+i)))
		mask := npy("4, 5", slices.Repeat([]byte{byte(i + 100)}, 20))
		method := []uint16{zip.Store, zip.Deflate}[i%2]
		files = append(files, fmt.Sprintf("d/s/%d.npz=", i)+
			npz(t, method, "image.npy", string(image), "mask.npy", string(mask), "id.npy", string(npy("", []byte{1}))))
	}
	dir := folder.Of(t, append(files, "d/t.csv=x\ns/0.npz::image\ns/1.npz::image\ns/2.npz::image\n")...)
	image := catalog.Source{Field: "image", Pattern: "s/{id}.npz::image"}
	mask := catalog.Source{Field: "mask", Pattern: "s/{id}.npz::mask"}
	for base, open := range map[string]source.Opener{dir + "/d": nil,
		"s3://bucket/d": &openers.Mux{Files: &openers.Files{}, Schemes: map[string]source.Opener{"s3": bucket{dir}}}} {
		for name, fields := range map[string][]catalog.Source{
			base:                      {image, mask},
			base + "/s":               {{Field: "image", Column: "image"}},
			base + "/s/*.npz::image":  {{Field: "image"}},
			base + "/s/1.npz::image":  {{Field: "image"}},
			base + "/t.csv":           {{Field: "image", Column: "x"}},
			base + "/s/[01].npz":      {{Field: "image", Column: "image"}},
			base + "/s/**/*.NPZ":      nil,
			base + "/s/0.npz::absent": {{Field: "image"}},
			base + "/s/0.npz::id":     {{Field: "image"}},
			base + "/s/0.npz":         {{Field: "image"}},
		} {
			table, err := catalog.Open(t.Context(), name, fields, catalog.Options{Opener: open})
			if fields == nil {
				if fault.KindOf(err) != fault.NotFound {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			for row := range table.Len() {
				one := strings.HasSuffix(name, "/1.npz::image")
				if err = checkArrays(t, table, open, fields, row, one); err != nil {
					break
				}
			}
			want := map[string]string{"/0.npz::absent": "the archive, which has id.npy, image.npy, mask.npy",
				"/0.npz::id": "numbers of samples are columns of a table", "/0.npz": `name one, as in "{id}.npz::`}
			if told := want[strings.TrimPrefix(name, base+"/s")]; (err == nil) != (told == "") ||
				err != nil && !strings.Contains(err.Error(), told) {
				t.Errorf("%s: %v", name, err)
			}
			if err := table.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// checkArrays compares the arrays of a sample. one says that the only file is number 1.
func checkArrays(t *testing.T, table *catalog.Table, open source.Opener, fields []catalog.Source, row int64,
	one bool) error {
	t.Helper()
	if open == nil {
		open = &openers.Files{}
	}
	for i := range fields {
		a, err := table.Asset(t.Context(), i, row)
		if err != nil {
			return err
		}
		number, want := int(row), byte(row)
		if one {
			number, want = 1, 1
		}
		shape := [3]int{2, 4 + number, 5}
		if fields[i].Field == "mask" {
			shape, want = [3]int{1, 4, 5}, want+100
		}
		r, err := a.Open(t.Context(), open, a.Known())
		if err != nil {
			return err
		}
		for _, chunk := range a.Index.Ranges {
			got := make([]byte, chunk.Len)
			if err := r.ReadAt(t.Context(), got, chunk.Off); err != nil {
				t.Errorf("%s: %v", a.Name(), err)
			}
			if !bytes.Equal(got, slices.Repeat([]byte{want}, len(got))) {
				t.Errorf("%s: %v, want %d", a.Name(), got, want)
			}
		}
		if got := [3]int{a.Index.Bands, a.Index.Height, a.Index.Width}; got != shape || r.Close() != nil {
			t.Errorf("%s: %d, want %d", a.Name(), got, shape)
		}
	}
	return nil
}

// TestOneArray: an archive is no raster, however many arrays it has.
func TestOneArray(t *testing.T) {
	one := npz(t, zip.Store, "a.npy", string(npy("4, 5", make([]byte, 20))))
	for content, says := range map[string]string{one: `it holds the arrays a: name one, as in "{id}.npz::a"`,
		npz(t, zip.Store, "a.txt", "x"): "it has no arrays"} {
		path := filepath.Join(folder.Of(t, "x.npz="+content), "x.npz")
		if _, _, err := catalog.OpenAsset(t.Context(), &openers.Files{}, path, 0); fault.KindOf(err) == 0 ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	field := catalog.Source{Field: "image", Column: "a"}
	if a, err := folder.Open(t, folder.Of(t, "x.npz="+one), catalog.Options{}, field).Asset(t.Context(), 0, 0); err !=
		nil || a.Index.Height != 4 {
		t.Errorf("%+v, %v", a.Index, err)
	}
	_, err := catalog.Open(t.Context(), folder.Of(t), []catalog.Source{field}, catalog.Options{})
	if fault.KindOf(err) != fault.NotFound {
		t.Errorf("a column of no files: %v", err)
	}
}

// TestHostileArchives: archives of arrays whose directory or headers lie are refused, and take little memory.
func TestHostileArchives(t *testing.T) {
	good := npz(t, zip.Store, "a.npy", string(npy("4, 5", make([]byte, 20))))
	directory := strings.Index(good, "PK\x01\x02")
	change := func(at int, b string) string { return good[:at] + b + good[at+len(b):] }
	packed := npz(t, zip.Deflate, "a.npy", string(npy("4, 5", make([]byte, 20))))
	size := strings.Index(packed, "PK\x01\x02") + 24
	huge := strings.Repeat("9", 18)
	for name, content := range map[string]string{
		"size":        packed[:size] + "\xfe\xff\xff\x7f" + packed[size+4:],
		"stored size": change(directory+20, "\xfe\xff\xff\x7f"),
		"both sizes":  change(directory+20, "\xfe\xff\xff\x7f\xfe\xff\xff\x7f"),
		"offset":      change(directory+42, "\xfe\xff\xff\x7f"),
		"method":      change(directory+10, "\x08\x00"),
		"cut":         good[:len(good)-9],
		"no ZIP":      strings.Repeat("PK\x03\x04", 99),
		"empty":       "",
		"shape":       npz(t, zip.Deflate, "a.npy", string(npy(huge+", "+huge, make([]byte, 20)))),
		"planes":      npz(t, zip.Deflate, "a.npy", string(npy("2000000000, 1, 1, 1", make([]byte, 20)))),
		"header":      npz(t, zip.Deflate, "a.npy", "\x93NUMPY\x02\x00\xff\xff\xff\xff{"),
		"no array":    npz(t, zip.Deflate, "a.npy", strings.Repeat("x", 4000)),
	} {
		dir := folder.Of(t, "a.npz="+content)
		for _, src := range []string{filepath.Join(dir, "a.npz"), filepath.Join(dir, "a.npz::a")} {
			var err error
			n := corpus.Allocated(func() {
				var table *catalog.Table
				if table, err = catalog.Open(t.Context(), src, nil, catalog.Options{}); err == nil {
					_, err = table.Asset(t.Context(), 0, 0)
					kinded(t, table.Close())
				}
			})
			if kinded(t, err); err == nil || n > 4<<20 {
				t.Errorf("%s: %d bytes for a file of %d: %v", name, n, len(content), err)
			}
		}
	}
}
