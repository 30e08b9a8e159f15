package madestore_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/cmd/chaski/cli"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/batch"
	_ "github.com/chaski-eo/chaski/loader/formats"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/ops/verify"
	"github.com/chaski-eo/chaski/shuffle/steps"
	_ "github.com/chaski-eo/chaski/tools/testkit/madestore" // all that plugs the store in
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// command says that the test is the command chaski.
const command = "CHASKI_MADE_STORE"

func TestMain(m *testing.M) {
	if os.Getenv(command) != "" {
		cli.Main()
	}
	os.Exit(m.Run())
}

const images, side = 8, 6

// pixel is the value of a pixel of an image.
func pixel(image, y, x int) byte { return byte(20*image + side*y + x) }

// write writes a store of images and their labels, of which image 2 is missing and so zero.
func write(t *testing.T, dir string) {
	t.Helper()
	testfile.Write(t, filepath.Join(dir, "header.json"), fmt.Appendf(nil, `{
		"image":{"type":"|u1","shape":[%d,%d,%d],"dims":["n","y","x"],"attrs":{"proj:code":"EPSG:32632"}},
		"class":{"type":">i2","shape":[%d],"dims":["n"]}}`, images, side, side, images))
	var labels []byte
	for image := range images {
		labels = append(labels, 0, byte(image%3))
		var samples []byte
		for i := range side * side {
			samples = append(samples, pixel(image, i/side, i%side))
		}
		if image != 2 {
			testfile.Write(t, filepath.Join(dir, "image", fmt.Sprintf("%d.raw", image)), samples)
		}
	}
	testfile.Write(t, filepath.Join(dir, "class", "0.raw"), labels)
}

// chaski runs the command with the store.
func chaski(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), command+"=1")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("chaski %s: %v: %s%s", strings.Join(args, " "), err, out, errs.String())
	}
	return string(out)
}

// TestAStorePlugsIn: a store that one import adds is a dataset, a sample of datasets, listed, described, resumed,
// measured, explained, planned and verified.
func TestAStorePlugsIn(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "a.raws")
	write(t, dir)
	sp := spec.Spec{Source: dir, BatchSize: 2, Seed: 5, Fields: []spec.Field{{Name: "image"},
		{Name: "class", Kind: spec.ClassField}}}
	e, err := loader.Open(t.Context(), sp, loader.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	seen := map[int]bool{}
	var batches [][]byte
	read := func(b *batch.Batch) (all []byte) {
		data, classes := b.Tensor("image").Data, b.Tensor("class").Data
		for row := range len(classes) / 8 {
			pixels := data[row*side*side:][:side*side]
			image := int(pixels[0]) / 20
			want := func(i int) byte { return pixel(image, i/side, i%side) }
			if slices.Equal(pixels, make([]byte, side*side)) {
				image, want = 2, func(int) byte { return 0 }
			}
			for i, v := range pixels {
				if v != want(i) {
					t.Fatalf("pixel %d of image %d is %d", i, image, v)
				}
			}
			if int(classes[row*8]) != image%3 {
				t.Errorf("image %d has the label %d", image, classes[row*8])
			}
			seen[image] = true
		}
		all = append(slices.Clone(data), classes...)
		b.Release()
		return all
	}
	ticket := func(step int64) steps.Ticket { return steps.Ticket{First: 2 * step, Count: 2, RowStride: 1} }
	for step := range e.Steps() {
		b, err := e.Start(t.Context(), ticket(step), false).Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		batches = append(batches, read(b))
	}
	if len(batches) < images/2 || len(seen) < images-1 {
		t.Errorf("%d batches of %d images", len(batches), len(seen))
	}

	// Another engine goes on at a step.
	again, err := loader.Open(t.Context(), sp, loader.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if again.Hash() != e.Hash() || again.Fingerprint() != e.Fingerprint() {
		t.Error("the same store is another dataset")
	}
	b, err := again.Start(t.Context(), ticket(2), false).Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := read(b); !bytes.Equal(got, batches[2]) {
		t.Error("another engine gives another batch at step 2")
	}

	plan, err := e.Explain(t.Context(), ticket(1))
	if err != nil || len(plan) != 2 || len(plan[0].Assets) == 0 || len(plan[0].Assets[0].Chunks) != 1 ||
		!strings.Contains(fmt.Sprintf("%+v", plan[0]), ".raw") {
		t.Errorf("explained: %+v, %v", plan, err)
	}
	report, err := survey.Stats(t.Context(), sp, loader.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for i := range images * side * side {
		if image := i / side / side; image != 2 {
			sum += float64(pixel(image, i/side%side, i%side))
		}
	}
	if got, want := *report.Fields["image"].Bands[0].Mean, sum/(images*side*side); math.Abs(got-want) > 1e-9 {
		t.Errorf("a mean of %v, want %v", got, want)
	}

	if got, want := chaski(t, "ls", dir), "class\t[8]\tint16\nimage\t[8 6 6]\tuint8\n"; got != want {
		t.Errorf("ls: %q, want %q", got, want)
	}
	if out := chaski(t, "info", "--json", dir); !strings.Contains(out, `"raws"`) || !strings.Contains(out, "32632") {
		t.Errorf("info: %s", out)
	}
	if out := chaski(t, "plan", dir); !strings.Contains(out, "8") {
		t.Errorf("plan: %s", out)
	}

	checked, err := verify.Paths(t.Context(), []string{root}, verify.Options{Workers: 1})
	if err != nil || checked.Faulty != 0 || checked.Arrays != 2 || checked.Chunks != images ||
		checked.AbsentChunks != 1 {
		t.Errorf("verified: %+v, %v", checked, err)
	}
	testfile.Write(t, filepath.Join(dir, "image", "4.raw"), []byte("short"))
	checked, err = verify.Paths(t.Context(), []string{dir}, verify.Options{Workers: 1})
	if err != nil || checked.Faulty != 1 || !strings.Contains(checked.Faults[0], "chunk 4.0.0") {
		t.Errorf("a damaged image: %+v, %v", checked, err)
	}
}

// TestStoresAsSamples: a folder of such stores is a dataset of all their images.
func TestStoresAsSamples(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"a.raws", "b.raws"} {
		write(t, filepath.Join(root, name))
	}
	e, err := loader.Open(t.Context(), spec.Spec{Source: root, BatchSize: 2, Fields: []spec.Field{{Name: "image"},
		{Name: "label", Column: "class", Kind: spec.NumberField}}}, loader.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if e.Len() != 2*images {
		t.Errorf("%d samples", e.Len())
	}
}

// TestNothingNamesIt: no code outside of this folder knows the store.
func TestNothingNamesIt(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	known := 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		if filepath.Base(filepath.Dir(path)) == "madestore" {
			known++
		} else if err == nil && (bytes.Contains(text, []byte("madestore")) || bytes.Contains(text, []byte(".raws"))) {
			t.Errorf("%s names it", path)
		}
		return err
	})
	if err != nil || known != 2 {
		t.Error(known, err)
	}
}
