package loader

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/source/httpsource"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// zarrMeta returns the zarr.json of an array of bytes in chunks of 8 cells along the last two dimensions and 1 along
// the others.
func zarrMeta(dims string, shape ...int) string {
	names, sizes, chunks := strings.Fields(dims), []string{}, []string{}
	for d, n := range shape {
		names[d] = fmt.Sprintf("%q", names[d])
		sizes = append(sizes, fmt.Sprint(n))
		if d < len(shape)-2 {
			chunks = append(chunks, "1")
		} else {
			chunks = append(chunks, "8")
		}
	}
	return fmt.Sprintf(`{"zarr_format":3,"node_type":"array","shape":[%s],"data_type":"uint8","chunk_grid":{"name":`+
		`"regular","configuration":{"chunk_shape":[%s]}},"chunk_key_encoding":{"name":"default"},"fill_value":0,`+
		`"codecs":["bytes"],"dimension_names":[%s]}`, strings.Join(sizes, ","), strings.Join(chunks, ","),
		strings.Join(names, ","))
}

// writeFile writes a file below a directory.
func writeFile(t *testing.T, path, text string) {
	t.Helper()
	testfile.Write(t, path, []byte(text))
}

// writePlane writes the chunks of a plane (h, w) in which pixel (y, x) is base+10*y+x.
func writePlane(t *testing.T, dir string, h, w int, base byte) {
	t.Helper()
	for cy := range (h + 7) / 8 {
		for cx := range (w + 7) / 8 {
			var b []byte
			for y := range 8 {
				for x := range 8 {
					b = append(b, base+byte(10*(cy*8+y)+cx*8+x))
				}
			}
			writeFile(t, filepath.Join(dir, fmt.Sprint(cy), fmt.Sprint(cx)), string(b))
		}
	}
}

// writeProduct writes a group with two bands of 16 by 16 pixels and one of 8 by 8, and returns its consolidated
// metadata.
func writeProduct(t *testing.T, dir string) {
	t.Helper()
	var all []string
	for path, base := range map[string]byte{"r10m/b02": 1, "r10m/b03": 50, "r20m/b11": 100} {
		side := 16
		if strings.HasPrefix(path, "r20m") {
			side = 8
		}
		meta := zarrMeta("y x", side, side)
		writeFile(t, filepath.Join(dir, path, "zarr.json"), meta)
		writePlane(t, filepath.Join(dir, path, "c"), side, side, base)
		all = append(all, fmt.Sprintf("%q:%s", path, meta))
	}
	group := `{"zarr_format":3,"node_type":"group"}`
	all = append(all, `"r10m":`+group, `"r20m":`+group)
	writeFile(t, filepath.Join(dir, "zarr.json"), `{"zarr_format":3,"node_type":"group","consolidated_metadata":`+
		`{"kind":"inline","metadata":{`+strings.Join(all, ",")+`}}}`)
}

// TestZarrGroup: the bands of a group and an array of another resolution show the same ground, from files and over
// HTTP, and band names are those of the arrays.
func TestZarrGroup(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s2.zarr")
	writeProduct(t, dir)
	server := httptest.NewServer(http.FileServer(http.Dir(filepath.Dir(dir))))
	defer server.Close()
	web, err := httpsource.New(httpsource.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	for source, o := range map[string]Options{dir: {}, server.URL + "/s2.zarr": {Opener: web}} {
		spec := Spec{Source: source, BatchSize: 2, Seed: 3, Sampler: Sampler{
			Kind: "random_window", Height: 8, Width: 8, PerAsset: 6},
			Fields: []Field{{Name: "image", Column: "r10m", BandNames: []string{"b03", "b02"}}, {Name: "b11"}}}
		e, err := Open(t.Context(), spec, o)
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		for step := range e.Steps() {
			tk := steps.Ticket{First: step * 2, Count: 2, RowStride: 1}
			plan, err := e.Explain(t.Context(), tk)
			if err != nil {
				t.Fatal(err)
			}
			b := wait(t, e.Start(t.Context(), tk, false))
			image, coarse := b.Tensor("image").Data, b.Tensor("b11").Data
			for r, p := range plan {
				w, c := p.Assets[0].Window, p.Assets[1].Window
				if c.Y*2 != w.Y || c.X*2 != w.X || c.H != 4 || c.W != 4 {
					t.Fatalf("windows %+v and %+v are not the same ground", w, c)
				}
				for i := range 64 {
					v := byte(10*(w.Y+i/8) + w.X + i%8)
					if got := [2]byte{image[r*128+i], image[r*128+64+i]}; got != [2]byte{50 + v, 1 + v} {
						t.Fatalf("%s: pixel %d of window %+v is %v", source, i, w, got)
					}
				}
				for i := range 16 {
					if v := byte(100 + 10*(c.Y+i/4) + c.X + i%4); coarse[r*16+i] != v {
						t.Fatalf("%s: pixel %d of window %+v is %d, want %d", source, i, c, coarse[r*16+i], v)
					}
				}
			}
			b.Release()
		}
		e.Close()
	}
}

// TestZarrMisplaced: arrays that their groups put on other ground are refused as a sample, those on the same are not.
func TestZarrMisplaced(t *testing.T) {
	for west, want := range map[int]fault.Kind{500000: 0, 500020: fault.Misplaced} {
		dir := filepath.Join(t.TempDir(), "s2.zarr")
		writeProduct(t, dir)
		b := testfile.Read(t, filepath.Join(dir, "zarr.json"))
		text := string(b)
		for group, place := range map[string]string{"r10m": "10,0,500000,0,-10,5000000",
			"r20m": fmt.Sprintf("20,0,%d,0,-20,5000000", west)} {
			old := fmt.Sprintf(`"%s":{"zarr_format":3,"node_type":"group"`, group)
			if !strings.Contains(text, old) {
				t.Fatalf("no %s in %s", old, text)
			}
			text = strings.Replace(text, old,
				old+`,"attributes":{"proj:code":"EPSG:32632","spatial:transform":[`+place+`]}`, 1)
		}
		writeFile(t, filepath.Join(dir, "zarr.json"), text)
		for _, fields := range [][]Field{{{Name: "b02"}, {Name: "b11"}}, // arrays, and groups as bands
			{{Name: "fine", Column: "r10m"}, {Name: "coarse", Column: "r20m"}}} {
			e, err := Open(t.Context(), Spec{Source: dir, BatchSize: 1, Fields: fields}, Options{})
			if err == nil {
				var b *batch.Batch
				b, err = e.Start(t.Context(), steps.Ticket{Count: 1, RowStride: 1}, false).Wait(t.Context())
				if err == nil {
					b.Release()
				}
				e.Close()
			}
			if fault.KindOf(err) != want {
				t.Errorf("west of the 20 m grid at %d, %s: %v", west, fields[0].Name, err)
			}
		}
	}
}

// TestZarrTime: dimensions called n, t, y and x are rows, steps of time and pixels, and dims renames them.
func TestZarrTime(t *testing.T) {
	for _, names := range []string{"n t y x", "a b c d"} {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, "zarr.json"), zarrMeta(names, 3, 2, 8, 8))
		for n := range 3 {
			for s := range 2 {
				if n == 2 && s == 1 {
					continue // not written: the fill value
				}
				writePlane(t, filepath.Join(dir, "c", fmt.Sprint(n), fmt.Sprint(s)), 8, 8, byte(20*n+7*s))
			}
		}
		spec := Spec{Source: dir, Dims: "n t y x", BatchSize: 3, Fields: []Field{{Name: "image", Layout: "n t b y x"}}}
		e, err := Open(t.Context(), spec, Options{})
		if err != nil {
			t.Fatal(err)
		}
		b := wait(t, e.Start(t.Context(), steps.Ticket{Count: 3, RowStride: 1}, false))
		x := b.Tensor("image")
		if fmt.Sprint(x.Shape) != "[3 2 1 8 8]" {
			t.Fatalf("shape %v", x.Shape)
		}
		for i, v := range x.Data {
			n, s, y, c := i/128, i/64%2, i/8%8, i%8
			want := byte(20*n + 7*s + 10*y + c)
			if n == 2 && s == 1 {
				want = 0
			}
			if v != want {
				t.Fatalf("%s: image %d, step %d, pixel (%d, %d) is %d, want %d", names, n, s, y, c, v, want)
			}
		}
		b.Release()
		e.Close()
	}
}

// TestZarrBelowRoots: neither a source outside of the roots nor a link or a column that leads out of them is read.
func TestZarrBelowRoots(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.zarr"), filepath.Join(dir, "out.zarr")
	writeProduct(t, in)
	writeProduct(t, out)
	o := Options{Roots: []string{in}}
	open := func(source, column string) error {
		e, err := Open(t.Context(), Spec{Source: source, BatchSize: 1, Fields: []Field{{Name: "x", Column: column}}}, o)
		if err != nil {
			return err
		}
		defer e.Close()
		b, err := e.Start(t.Context(), steps.Ticket{Count: 1, RowStride: 1}, false).Wait(t.Context())
		if err == nil {
			b.Release()
		}
		return err
	}
	if err := open(in, "r10m/b02"); err != nil {
		t.Fatal(err)
	}
	if err := open(out, "r10m/b02"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("outside of the roots: %v", err)
	}
	if err := open(in, "../out.zarr/r10m/b02"); err == nil {
		t.Error("a column leads out of the roots")
	}
	if _, err := survey.Describe(t.Context(), out, nil, o); fault.KindOf(err) != fault.NotFound {
		t.Errorf("describing outside of the roots: %v", err)
	}
	chunks := filepath.Join(in, "r10m", "b02", "c")
	if err := os.RemoveAll(chunks); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(out, "r10m", "b02", "c"), chunks); err != nil {
		t.Fatal(err)
	}
	if err := open(in, "r10m/b02"); err == nil {
		t.Error("a link leads out of the roots")
	}
}
