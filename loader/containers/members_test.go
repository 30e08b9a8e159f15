package containers_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestMembersStayOpen: reading a chunk or a sample of a container that is kept open costs its own
// ranges only, a rewritten container is opened anew, and only a few stay open.
func TestMembersStayOpen(t *testing.T) {
	stream := filepath.Join(filepath.Dir(coast(t, "")), "containers", "taco-v1", "stream_n2_top.taco")
	for scheme, p := range farContainers(t, stream) {
		o := raster.ReadOptions{Options: loader.Options{Opener: p.opener, Members: &resources.Members{}}}
		for i, k := range []string{"4", "5", "4"} {
			name := "::roi_1/t1/t1-img::" + k
			before := p.requests()
			got, err := raster.Read(t.Context(), []string{p.uri + name}, o)
			if err != nil {
				t.Fatal(err)
			}
			if n := p.requests() - before; i > 0 && n != 1 {
				t.Errorf("chunk %s of %s: %d requests", k, scheme, n)
			}
			want, err := raster.Read(t.Context(), []string{stream + name}, raster.ReadOptions{})
			if err != nil || !slices.Equal(got.Shape, want.Shape) || !bytes.Equal(got.Data, want.Data) {
				t.Errorf("chunk %s of %s is another one, %v", k, scheme, err)
			}
		}
		o.Options.Members.Close()
	}

	files := &openers.Files{}
	defer files.Close()
	members := &resources.Members{}
	defer members.Close()
	o := raster.ReadOptions{Options: loader.Options{Opener: files, Members: members}}
	path := filepath.Join(t.TempDir(), "data.tacozip")
	const name = "::tile_00/s2/img.tif"
	for _, from := range []string{"coast.tacozip", "parts/coast_north.tacozip", "flat.tacozip", "coast.tacozip"} {
		b := testfile.Read(t, coast(t, from))
		testfile.Write(t, path, b)
		want, wantErr := raster.Read(t.Context(), []string{coast(t, from) + name}, raster.ReadOptions{})
		for range 2 {
			got, err := raster.Read(t.Context(), []string{path + name}, o)
			if fault.KindOf(err) != fault.KindOf(wantErr) || err == nil && !bytes.Equal(got.Data, want.Data) {
				t.Errorf("%s: %v, want %v", from, err, wantErr)
			}
		}
	}
}

// TestMembersOfCatalogs: the containers that a catalog lists are checked for changes too.
func TestMembersOfCatalogs(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) {
		t.Helper()
		testfile.Write(t, filepath.Join(dir, name), b)
	}
	write("TACOLLECTION.json", []byte(`{"id":"all","taco:sources":{"count":1,"files":["part.tacozip"]}}`))
	files := &openers.Files{}
	defer files.Close()
	members := &resources.Members{}
	defer members.Close()
	o := raster.ReadOptions{Options: loader.Options{Opener: files, Members: members}}
	for _, x := range []struct {
		from, name string
		kind       fault.Kind
	}{
		{"parts/coast_north.tacozip", "tile_00", 0},
		{"parts/coast_south.tacozip", "tile_00", fault.NotFound},
		{"parts/coast_south.tacozip", "tile_11", 0},
	} {
		b := testfile.Read(t, coast(t, x.from))
		write("part.tacozip", b)
		name := "::" + x.name + "/s2/img.tif"
		got, err := raster.Read(t.Context(), []string{filepath.Join(dir, "TACOLLECTION.json") + name}, o)
		want, wantErr := raster.Read(t.Context(), []string{coast(t, x.from) + name}, raster.ReadOptions{})
		if fault.KindOf(err) != x.kind || fault.KindOf(wantErr) != x.kind ||
			err == nil && !bytes.Equal(got.Data, want.Data) {
			t.Errorf("%s of %s: %v, want %v", x.name, x.from, err, wantErr)
		}
	}
}

// TestMembersAreBounded: open containers take no more memory than the bound, with any number of
// concurrent readers.
func TestMembersAreBounded(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	files := &openers.Files{}
	defer files.Close()
	reads := func(members *resources.Members, times int) int64 {
		c := &counting{}
		defer c.Close()
		defer members.Close()
		o := raster.ReadOptions{Options: loader.Options{Opener: c, Members: members}}
		for range times {
			_, err := raster.Read(t.Context(), []string{coast(t, "coast.tacozip") + "::tile_00/s2/img.tif"}, o)
			if err != nil {
				t.Fatal(err)
			}
		}
		return c.reads.Load()
	}
	once, kept := reads(&resources.Members{}, 1), reads(&resources.Members{}, 3)
	if none := reads(&resources.Members{MaxBytes: 1}, 3); none != 3*once || kept >= none {
		t.Errorf("%d reads for three where nothing is kept, %d for one; where it is %d", none, once, kept)
	}

	members := &resources.Members{MaxBytes: 40 << 10}
	o := raster.ReadOptions{Options: loader.Options{Opener: files, Members: members}}
	var g errgroup.Group
	for i, from := range []string{
		"coast.tacozip", "parts/coast_north.tacozip", "coast_dir", "parts/.tacocat", "flat.tacozip",
	} {
		name := "::tile_00/s2/img.tif"
		if from == "flat.tacozip" {
			name = "::#0"
		}
		want, err := raster.Read(t.Context(), []string{coast(t, from) + name}, raster.ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for k := range 8 {
			g.Go(func() error {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if (i+k)%4 == 0 { // one who gives up is no reason for others to fail
					go cancel()
				}
				got, err := raster.Read(ctx, []string{coast(t, from) + name}, o)
				if ctx.Err() != nil && err != nil {
					return nil
				}
				if err == nil && !bytes.Equal(got.Data, want.Data) {
					err = errors.New(from + ": other pixels")
				}
				return err
			})
		}
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	members.Close()
}

// slowOpener fails as if a deadline of its own had passed, not the caller's.
type slowOpener struct {
	opened int
	enough context.CancelFunc
}

func (o *slowOpener) Open(_ context.Context, uri string) (source.Reader, error) {
	if uri != "a.tif" {
		return nil, fault.New(fault.NotFound, "file", "no such file")
	}
	if o.opened++; o.opened > 10 {
		o.enough()
	}
	return nil, fmt.Errorf("no answer: %w", context.DeadlineExceeded)
}

// TestDeadlinesOfOpeners: a file that an opener gives up by its own deadline is an error, and is
// not retried for ever.
func TestDeadlinesOfOpeners(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	slow := &slowOpener{enough: cancel}
	_, err := raster.Read(ctx, []string{"/vsisubfile/10_20,a.tif"},
		raster.ReadOptions{Options: loader.Options{Opener: slow}})
	if !errors.Is(err, context.DeadlineExceeded) || slow.opened != 1 {
		t.Errorf("opened %d times: %v", slow.opened, err)
	}
}
