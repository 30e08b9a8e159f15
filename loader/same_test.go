package loader_test

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/dryrun"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/tiff/tog"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

const (
	captioned = 5 // images
	captions  = 4 // rows of each
)

// imageFile returns image number i as a file of a format, and what of it has the pixels.
func imageFile(t *testing.T, ext string, i int) (content []byte, array string) {
	t.Helper()
	const height, width = 40, 48
	r := rand.New(rand.NewPCG(uint64(i), 1))
	img, samples := image.NewRGBA(image.Rect(0, 0, width, height)), []byte(nil)
	for k := range height * width {
		v := color.RGBA{byte(r.Uint32()), byte(k), byte(i), 255}
		img.SetRGBA(k%width, k/width, v)
		samples = append(samples, v.R, v.G, v.B)
	}
	var b bytes.Buffer
	var err error
	switch ext {
	case "png":
		err = png.Encode(&b, img)
	case "jpg":
		err = jpeg.Encode(&b, img, nil)
	case "tif":
		err = tog.Write(&b, samples, tog.Options{Shape: [3]int{3, height, width}, DType: chunk.Uint8, Tile: 16})
	case "npz":
		archive := zip.NewWriter(&b)
		w, cerr := archive.Create("image.npy")
		if err = cerr; err == nil {
			head := fmt.Sprintf("%-117s\n", "{'descr': '|u1', 'fortran_order': False, 'shape': (3, 40, 48), }")
			_, err = w.Write(append(append([]byte("\x93NUMPY\x01\x00\x76\x00"), head...), samples...))
		}
		array, err = "::image", cmpErr(err, archive.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), array
}

func cmpErr(first, other error) error {
	if first != nil {
		return first
	}
	return other
}

// captionRows writes images, and returns the path of the image of each row: with alone, each row has a file of its own.
func captionRows(t *testing.T, dir, ext string, alone bool) (paths []string) {
	t.Helper()
	var b bytes.Buffer
	archive := zip.NewWriter(&b)
	for k := range captioned * captions {
		i, name := k/captions, fmt.Sprintf("%d.%s", k/captions, strings.TrimPrefix(ext, "zip/"))
		content, array := imageFile(t, strings.TrimPrefix(ext, "zip/"), i)
		if alone {
			name = fmt.Sprintf("%d-%s", k, name)
		}
		if strings.HasPrefix(ext, "zip/") {
			if alone || k%captions == 0 {
				w, err := archive.CreateHeader(&zip.FileHeader{Name: name})
				if err == nil {
					_, err = w.Write(content)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			name = "/vsizip/" + filepath.Join(dir, "images.zip") + "/" + name
		} else {
			testfile.Write(t, filepath.Join(dir, name), content)
		}
		paths = append(paths, name+array)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(ext, "zip/") {
		testfile.Write(t, filepath.Join(dir, "images.zip"), b.Bytes())
	}
	return paths
}

// captionTable writes a table with a row for each path, and returns what loads it.
func captionTable(t *testing.T, dir, way string, paths []string) loader.Spec {
	t.Helper()
	var csv, lines, images strings.Builder
	csv.WriteString("path,caption\n")
	lines.WriteString("image,caption\n")
	images.WriteString("id,path\n")
	seen := map[string]bool{}
	for k, path := range paths {
		fmt.Fprintf(&csv, "%s,caption %d\n", path, k)
		fmt.Fprintf(&lines, "key%d,caption %d\n", slices.Index(paths, path), k)
		if !seen[path] {
			fmt.Fprintf(&images, "key%d,%s\n", k, path)
		}
		seen[path] = true
	}
	for name, text := range map[string]string{"a.csv": csv.String(), "lines.csv": lines.String(),
		"images.csv": images.String()} {
		if err := writeFile(filepath.Join(dir, name), text); err != nil {
			t.Fatal(err)
		}
	}
	s := loader.Spec{Source: filepath.Join(dir, "a.csv"), Fields: []loader.Field{
		{Name: "image", Column: "path", Kind: spec.RasterField, DType: "float32"},
		{Name: "caption", Column: "caption", Kind: spec.TextField}}}
	switch way {
	case "joined":
		s.Source = filepath.Join(dir, "lines.csv")
		s.Tables = []spec.SideTable{{Path: filepath.Join(dir, "images.csv"), On: "image", Column: "id"}}
	case "catalog":
		var out strings.Builder
		_, err := build.Write(t.Context(), &out, []string{s.Source}, build.Options{Base: dir,
			Fields: []catalog.Source{{Field: "path", Column: "path", Kind: catalog.Raster}}})
		if err != nil {
			t.Fatal(err)
		}
		s.Source = filepath.Join(dir, "a.parquet")
		if err := writeFile(s.Source, out.String()); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// reading counts the reads of images.
type reading struct {
	source.Opener
	mu    sync.Mutex
	reads int
}

type readingOf struct {
	source.Reader
	of *reading
}

func (r *reading) Open(ctx context.Context, uri string) (source.Reader, error) {
	file, err := r.Opener.Open(ctx, uri)
	if err != nil || !slices.Contains([]string{".png", ".jpg", ".tif"}, filepath.Ext(uri)) {
		return file, err
	}
	return readingOf{file, r}, nil
}

func (r readingOf) ReadAt(ctx context.Context, p []byte, off int64) error {
	r.of.mu.Lock()
	r.of.reads++
	r.of.mu.Unlock()
	return r.Reader.ReadAt(ctx, p, off)
}

// captionRun reads two epochs. It returns the batches, and for each how many chunks were decoded, and how many times
// files of images were read.
func captionRun(t *testing.T, s loader.Spec, native bool) (out []*batch.Batch, decoded, reads []int) {
	t.Helper()
	counts := &resources.Stages{}
	files := &reading{Opener: &openers.Files{}}
	e := mustOpen(t, s, loader.Options{Workers: 3, Stages: counts, Opener: files})
	for step := range 2 * e.Steps() {
		files.reads = 0
		before, _ := counts.Decoded()
		ticket := steps.StepTicket(uint64(step/e.Steps()), step%e.Steps(), s.BatchSize, 0, 1)
		b, err := e.Start(t.Context(), ticket, native).Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Release)
		after, _ := counts.Decoded()
		out, decoded = append(out, b), append(decoded, int(after-before))
		reads = append(reads, files.reads)
	}
	forecast, err := e.Forecast(t.Context(), dryrun.Options{Samples: -1})
	if err != nil {
		t.Fatal(err)
	}
	sum := int64(0)
	for _, n := range decoded[:e.Steps()] {
		sum += int64(n)
	}
	if want := forecast.Total.Chunks; s.BadSamples != "" && s.BadSamples != spec.BadError {
		return out, decoded, reads // headers do not show what is bad
	} else if sum > want || forecast.Exact() && sum < want {
		t.Errorf("%d chunks decoded in an epoch, forecast %d (exact: %v)", sum, want, forecast.Exact())
	}
	return out, decoded, reads
}

// TestRowsOfOneImage: an image that several rows of a batch name is read and decoded once for all of them, whatever the
// windows, and each row has the pixels that it has of a file of its own. The first batch of a run that goes on in the
// middle is the one that would have come.
func TestRowsOfOneImage(t *testing.T) {
	race.SkipCovered(t)
	windows := map[string]func(*loader.Spec){
		"whole":  func(*loader.Spec) {},
		"turned": func(s *loader.Spec) { s.Augment, s.Fields[0].Validity = "flips", "ok" },
		"random": func(s *loader.Spec) { s.Sampler = spec.Sampler{Kind: spec.RandomWindow, Height: 16, Width: 16} },
		"scaled": func(s *loader.Spec) {
			s.Sampler = spec.Sampler{Kind: spec.ResizedWindow, Height: 24, Width: 20}
			s.Sampler.Whole = true
		},
		"views": func(s *loader.Spec) {
			s.Sampler = spec.Sampler{Kind: spec.RandomWindow, Height: 32, Width: 32,
				Views: []spec.Sampler{{Kind: spec.RandomWindow, Height: 16, Width: 16}}}
		},
		"stack": func(s *loader.Spec) {
			s.Fields[0].Column, s.Fields[0].Columns = "", []string{"path", "path"}
		},
		"across": func(s *loader.Spec) { s.Fields[0].Layout, s.Fields[0].Validity = "b n (y x)", "ok" },
	}
	for _, ext := range []string{"png", "jpg", "tif", "npz", "zip/png"} {
		for _, way := range []string{"table", "joined", "catalog"} {
			if way == "catalog" && ext == "npz" {
				continue // catalogs have no arrays of these
			}
			own, shared := t.TempDir(), t.TempDir()
			alone := captionTable(t, own, way, captionRows(t, own, ext, true))
			several := captionTable(t, shared, way, captionRows(t, shared, ext, false))
			for name, set := range windows {
				for _, shuffled := range []bool{false, true} {
					t.Run(fmt.Sprint(ext, " ", way, " ", name, " ", shuffled), func(t *testing.T) {
						one, many := alone, several
						for _, s := range []*loader.Spec{&one, &many} {
							s.Fields = slices.Clone(s.Fields)
							s.BatchSize, s.Shuffle, s.Seed = 9, shuffled, 4
							set(s)
						}
						want, each, reads := captionRun(t, one, name == "turned")
						got, decoded, again := captionRun(t, many, name == "turned")
						compareCaptions(t, want, got)
						for i, b := range got {
							rows, images := counted(b)
							most, readings := each[i]/rows*images, (reads[i]*images+rows-1)/rows
							if name == "random" || name == "views" { // which need some of the tiles of a TIFF
								most, readings = max(most, 27*images), reads[i]
							} else if decoded[i] < most {
								t.Errorf("batch %d: %d chunks decoded, want %d", i, decoded[i], most)
							}
							if decoded[i] > most || again[i] > readings {
								t.Errorf("batch %d, %d images in %d rows: %d chunks decoded, at most %d; %d reads, "+
									"at most %d", i, images, rows, decoded[i], most, again[i], readings)
							}
						}
					})
				}
			}
		}
	}
}

// counted returns how many rows a batch has, and how many images.
func counted(b *batch.Batch) (rows, images int) {
	seen := map[int64]bool{}
	for _, sample := range b.Samples {
		if sample >= 0 {
			seen[sample/captions] = true
			rows++
		}
	}
	return rows, len(seen)
}

// compareCaptions compares the batches of two runs.
func compareCaptions(t *testing.T, want, got []*batch.Batch) {
	t.Helper()
	for i, b := range got {
		if !slices.Equal(b.Samples, want[i].Samples) || len(b.Bad) > 0 {
			t.Fatalf("batch %d has samples %d, want %d; bad %v", i, b.Samples, want[i].Samples, b.Bad)
		}
		for k := range b.Tensors {
			if got, want := &b.Tensors[k], &want[i].Tensors[k]; !bytes.Equal(got.Data, want.Data) ||
				(got.Convert == nil) != (want.Convert == nil) ||
				got.Convert != nil && !bytes.Equal(got.Convert.Mask, want.Convert.Mask) {
				t.Errorf("batch %d: tensor %s differs", i, got.Name)
			}
		}
	}
}

// TestRowsOfOneBadImage: each row of an image that cannot be read is bad, as a row of a file of its own is.
func TestRowsOfOneBadImage(t *testing.T) {
	for _, policy := range []string{spec.BadSkip, spec.BadReplace, spec.BadFill} {
		var runs [2][]*batch.Batch
		for i, alone := range []bool{true, false} {
			dir := t.TempDir()
			paths := captionRows(t, dir, "png", alone)
			for _, path := range paths[2*captions : 3*captions] {
				content, _ := imageFile(t, "png", 2)
				testfile.Write(t, filepath.Join(dir, path), content[:len(content)-100])
			}
			s := captionTable(t, dir, "table", paths)
			s.BatchSize, s.Shuffle, s.Seed, s.BadSamples = 9, true, 4, policy
			runs[i], _, _ = captionRun(t, s, false)
		}
		bad := 0
		for i, b := range runs[1] {
			want := runs[0][i]
			bad += len(b.Bad)
			if !slices.Equal(b.Valid, want.Valid) || !slices.Equal(b.Samples, want.Samples) ||
				len(b.Bad) != len(want.Bad) || !bytes.Equal(b.Tensors[0].Data, want.Tensors[0].Data) {
				t.Errorf("%s: batch %d: valid %v, samples %d, bad %v; want %v, %d, %v", policy, i, b.Valid, b.Samples,
					b.Bad, want.Valid, want.Samples, want.Bad)
			}
		}
		if bad != 2*captions {
			t.Errorf("%s: %d bad rows, want %d", policy, bad, 2*captions)
		}
	}
}

// meeting makes each read of a file wait until another one has begun, for a while.
type meeting struct {
	source.Opener
	waiting chan struct{}
	met     atomic.Int64 // reads that had another one beside them
}

type meetingOf struct {
	source.Reader
	of *meeting
}

func (m *meeting) Open(ctx context.Context, uri string) (source.Reader, error) {
	file, err := m.Opener.Open(ctx, uri)
	if err != nil || filepath.Ext(uri) != ".tif" {
		return file, err
	}
	return meetingOf{file, m}, nil
}

func (m meetingOf) ReadAt(ctx context.Context, p []byte, off int64) error {
	select {
	case m.of.waiting <- struct{}{}:
		m.of.met.Add(1)
	case <-m.of.waiting:
		m.of.met.Add(1)
	case <-time.After(50 * time.Millisecond):
	}
	return m.Reader.ReadAt(ctx, p, off)
}

// TestManyRowsOfOneImage: many windows of one image are read by several workers, as those of several images are, and
// the forecast says that it does not count them.
func TestManyRowsOfOneImage(t *testing.T) {
	dir := t.TempDir()
	paths := captionRows(t, dir, "tif", false)
	s := captionTable(t, dir, "table", slices.Repeat(paths[:captions], 8))
	s.BatchSize, s.Shuffle, s.Seed = 8*captions, true, 4
	s.Sampler = spec.Sampler{Kind: spec.RandomWindow, Height: 8, Width: 8}
	files := &meeting{Opener: &openers.Files{}, waiting: make(chan struct{})}
	e := mustOpen(t, s, loader.Options{Workers: 3, Opener: files})
	b, err := e.Start(t.Context(), steps.StepTicket(0, 0, s.BatchSize, 0, 1), false).Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.Release()
	if files.met.Load() == 0 {
		t.Error("one worker read all windows")
	}
	forecast, err := e.Forecast(t.Context(), dryrun.Options{Samples: -1})
	if err != nil || forecast.Exact() {
		t.Errorf("forecast says that it is exact: %v", err)
	}
}
