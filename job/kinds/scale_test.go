package kinds

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/internal/cputime"
	"github.com/chaski-eo/chaski/job"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// simulated is a store of many objects, each of which is the same chip.
type simulated struct {
	objects int
	chip    []byte
}

func (s *simulated) List(_ context.Context, _ string, each func(source.Entry) error) error {
	for i := range s.objects {
		err := each(source.Entry{Path: fmt.Sprintf("%05d/chip-%08d.tif", i/1000, i), Size: int64(len(s.chip)),
			ETag: fmt.Sprintf("%032x", i)})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *simulated) Open(context.Context, string) (source.Reader, error) { return object{s.chip}, nil }

type object struct{ b []byte }

func (o object) Size() int64  { return int64(len(o.b)) }
func (o object) Close() error { return nil }
func (o object) ReadAt(_ context.Context, p []byte, off int64) error {
	if off < 0 || off > int64(len(o.b)) || copy(p, o.b[off:]) < len(p) {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// peak returns the most memory that the process had, in MB, on Linux.
func peak(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		t.Skip("no VmHWM")
	}
	kB, err := strconv.Atoi(fields[0])
	if err != nil {
		t.Fatal(err)
	}
	return kB / 1000
}

// TestManyObjects: a catalog of many objects is planned, done and merged in bounded memory. It prints what it took.
// CHASKI_SOAK_OBJECTS says how many; without it, a few thousand only show that the store works.
func TestManyObjects(t *testing.T) {
	objects, soak := 3000, false
	if v := os.Getenv("CHASKI_SOAK_OBJECTS"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil {
			t.Fatal(err)
		}
		objects, soak = n, true
	}
	chip, err := os.ReadFile("../../testdata/tiffs/counts-long.tif")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	o := resources.Options{Opener: &simulated{objects, chip}}
	stage := func(name string, f func() error) {
		t.Helper()
		start, cpu := time.Now(), cputime.Used()
		if err := f(); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %.1f s, %.1f s of processor time, peak %d MB", name, time.Since(start).Seconds(),
			(cputime.Used() - cpu).Seconds(), peak(t))
	}
	var j *job.Job
	folder, k := filepath.Join(dir, "job"), &Index{Paths: []string{"s3://bucket/chips"}, Base: dir}
	stage("plan", func() (err error) {
		j, err = job.Plan(t.Context(), folder, k, job.PlanOptions{}, o)
		return err
	})
	if soak && peak(t) > 500 {
		t.Errorf("the plan took %d MB, at most 500 are allowed", peak(t))
	}
	stage("run", func() error {
		return j.Local(t.Context(), job.LocalOptions{RunOptions: job.RunOptions{Resource: o}})
	})
	name := filepath.Join(dir, "all.parquet")
	stage("merge", func() error {
		r, err := j.Results(t.Context())
		if err != nil {
			return err
		}
		f, err := os.Create(name)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = r.Merge(t.Context(), f, job.MergeOptions{Name: name})
		return err
	})
	if soak && peak(t) > 1000 {
		t.Errorf("it took %d MB, at most 1,000 are allowed", peak(t))
	}
	stage("open", func() error {
		table, err := catalog.Open(t.Context(), name, nil, catalog.Options{})
		if err != nil {
			return err
		}
		defer table.Close()
		if table.Len() != int64(objects) {
			t.Errorf("%d rows, want %d", table.Len(), objects)
		}
		return nil
	})
}
