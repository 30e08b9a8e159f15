package client_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/grpc/client"
	"github.com/chaski-eo/chaski/grpc/server"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
	"golang.org/x/sync/errgroup"
)

// started is a loader's engine as servers take it, planless the same without its plan: a server of it knows no groups.
type (
	started  struct{ *loader.Engine }
	planless struct {
		server.Engine
		server.Starter
	}
)

func (e started) Start(ctx context.Context, t steps.Ticket, native bool) server.Pending {
	return e.Engine.Start(ctx, t, native)
}

// decoded runs two epochs of all ranks over some servers, each with its own memory, and returns how many chunks they
// decoded.
func decoded(t *testing.T, spec loader.Spec, servers int, grouped bool, o batch.LoaderOptions) int64 {
	t.Helper()
	var targets []string
	counts := make([]*resources.Stages, servers)
	for i := range servers {
		s, err := server.New(server.Options{
			Roots: []string{"/"}, Logger: quiet, Loader: loader.Options{Workers: 1},
			Open: func(ctx context.Context, spec loader.Spec, o loader.Options) (server.Engine, error) {
				counts[i] = o.Stages // the server's own
				e, err := loader.Open(ctx, spec, o)
				if err != nil {
					return nil, err
				}
				if grouped {
					return started{e}, nil
				}
				return planless{started{e}, started{e}}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		targets = append(targets, run(t, s.Serve))
	}
	r, err := dial(t, strings.Join(targets, ","), client.Options{}).Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	o.Epochs = 2
	var ranks errgroup.Group
	for rank := range max(o.World, 1) {
		o.Rank = rank
		l, err := r.Loader(o)
		if err != nil {
			t.Fatal(err)
		}
		ranks.Go(func() error {
			defer l.Close()
			for b, err := range l.All(t.Context()) {
				if err != nil {
					return err
				}
				b.Release()
			}
			return nil
		})
	}
	if err := ranks.Wait(); err != nil {
		t.Fatal(err)
	}
	sum := int64(0)
	for _, stages := range counts {
		n, _ := stages.Decoded()
		sum += n
	}
	if sum == 0 {
		t.Fatal("no chunk is decoded")
	}
	return sum
}

// TestGroupsOfMixtures: three servers that share the batches of a mixture of tile-aware windows, or
// of its strata, decode far fewer chunks with groups than without.
func TestGroupsOfMixtures(t *testing.T) {
	if testing.Short() {
		t.Skip("counts chunks; the goroutines are those of TestServersDecodeWhatOneDoes")
	}
	chip, err := filepath.Abs(coast)
	if err != nil {
		t.Fatal(err)
	}
	chips := table(t, chip)
	base := loader.Spec{
		Fields: []loader.Field{{Name: "image", Column: "image", Bands: []int{0}}}, BatchSize: 8, Shuffle: true,
		Sampler: loader.Sampler{Kind: spec.TileWindow, Height: 64, Width: 64,
			TileWindows: spec.TileWindows{PerVisit: 16, Pool: 4}, PerAsset: 20},
	}
	mixture, strata := base, base
	mixture.Sources = []loader.Source{{Name: "a", Source: chips, Weight: 2}, {Name: "b", Source: chips, Weight: 1}}
	strata.Source, strata.Strata = chips, &spec.Strata{Column: "class"}
	for name, spec := range map[string]loader.Spec{"mixture": mixture, "strata": strata} {
		t.Run(name, func(t *testing.T) {
			o := batch.LoaderOptions{Prefetch: 6}
			one := decoded(t, spec, 1, true, o)
			none, groups := decoded(t, spec, 3, false, o), decoded(t, spec, 3, true, o)
			t.Logf("one server decodes %d chunks; three %d, and with groups %d", one, none, groups)
			if 10*groups > 7*none {
				t.Errorf("%d chunks are decoded with groups, %d without", groups, none)
			}
		})
	}
}

// TestServersDecodeWhatOneDoes: with all servers at work, each tile is still decoded by one of them
// only.
func TestServersDecodeWhatOneDoes(t *testing.T) {
	race.SkipCovered(t)
	chip, err := filepath.Abs(coast)
	if err != nil {
		t.Fatal(err)
	}
	spec := loader.Spec{
		Source:    table(t, chip),
		Fields:    []loader.Field{{Name: "image", Column: "image", Bands: []int{0}}},
		BatchSize: 8, Shuffle: true,
		Sampler: loader.Sampler{Kind: spec.TileWindow, Height: 64, Width: 64,
			TileWindows: spec.TileWindows{PerVisit: 16, Pool: 8}, PerAsset: 24},
	}
	var o batch.LoaderOptions
	one, groups := decoded(t, spec, 1, true, o), decoded(t, spec, 3, true, o)
	none := 2 * one
	if !testing.Short() { // without groups, the same goroutines decode more
		none = decoded(t, spec, 3, false, o)
	}
	t.Logf("one server decodes %d chunks; three %d, and with groups %d", one, none, groups)
	if 10*groups > 11*one || 2*none < 3*one {
		t.Errorf("one server decodes %d chunks; three %d, and with groups %d", one, none, groups)
	}
}

// TestServersShareLanes: each block of an order of blocks is decoded by one of several servers, as there are ranks for
// all of them.
func TestServersShareLanes(t *testing.T) {
	const samples, side, together = 768, 32, 16 // smaller chunks are not kept
	dir := filepath.Join(t.TempDir(), "x.zarr")
	testfile.Write(t, filepath.Join(dir, "zarr.json"), fmt.Appendf(nil, `{"zarr_format":3,"node_type":"array",`+
		`"shape":[%d,%d,%d],"data_type":"uint8","fill_value":0,`+
		`"codecs":["bytes",{"name":"gzip","configuration":{"level":1}}],`+
		`"dimension_names":["n","y","x"],`+
		`"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[%d,%d,%d]}},`+
		`"chunk_key_encoding":{"name":"default"}}`, samples, side, side, together, side, side))
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, err := w.Write(make([]byte, together*side*side))
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	for i := range samples / together {
		testfile.Write(t, filepath.Join(dir, "c", fmt.Sprint(i), "0/0"), zipped.Bytes())
	}
	spec := loader.Spec{Source: dir, BatchSize: 24, Shuffle: true, Blocks: &spec.Blocks{}}
	o := batch.LoaderOptions{World: 3}
	one, lanes := decoded(t, spec, 1, true, o), decoded(t, spec, 3, true, o)
	none := decoded(t, spec, 3, false, o)
	t.Logf("one server decodes %d chunks; three %d, and with groups %d", one, none, lanes)
	// A server keeps a third of the chunks of the first epoch, and by chance lacks two thirds of its third of the
	// second one: 1 + 2/3 of all.
	if 10*lanes > 18*one || 10*none < 28*one {
		t.Errorf("one server decodes %d chunks; three %d, and with groups %d", one, none, lanes)
	}
}

// table writes a table of eight copies of a chip, in two classes.
func table(t *testing.T, chip string) string {
	t.Helper()
	content, err := os.ReadFile(chip)
	if err != nil {
		t.Fatal(err)
	}
	dir, rows := t.TempDir(), "image,class\n"
	for i := range 8 {
		name := fmt.Sprintf("%d.tif", i)
		testfile.Write(t, filepath.Join(dir, name), content)
		rows += fmt.Sprintf("%s,class %d\n", name, i%2)
	}
	name := filepath.Join(dir, "chips.csv")
	testfile.Write(t, name, []byte(rows))
	return name
}
