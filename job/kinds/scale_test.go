package kinds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/cputime"
	"github.com/chaski-eo/chaski/job"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/source"
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

// peak returns the most memory that the process had since fresh, in MB, on Linux.
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

// fresh gives the memory that earlier work left behind back to the system, and has peak begin anew.
func fresh() {
	debug.FreeOSMemory()
	// proc(5): 5 resets the peak. Where that is refused, the peak is that of all stages.
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
}

// stage does a part of the work, prints what it took, and refuses more than most MB.
func stage(t *testing.T, name string, most int, f func() error) time.Duration {
	t.Helper()
	fresh()
	start, cpu := time.Now(), cputime.Used()
	if err := f(); err != nil {
		t.Fatal(err)
	}
	used := cputime.Used() - cpu
	t.Logf("%s: %.1f s of processor time, %.1f s, peak %d MB", name, used.Seconds(), time.Since(start).Seconds(),
		peak(t))
	if most > 0 && peak(t) > most {
		t.Errorf("%s took %d MB, at most %d are allowed", name, peak(t), most)
	}
	return used
}

// most are the bounds of TestManyObjects with ten million objects. Times are of a processor: other work on the machine
// does not count.
const (
	planMB, planTime = 500, time.Minute
	mergeMB          = 1000
	openTime         = 2 * time.Second
)

// TestManyObjects: a catalog of many objects is planned, done and merged in bounded memory, and the merged catalog
// opens at once and trains. It prints what it took. CHASKI_SOAK_OBJECTS says how many; without it, a few thousand only
// show that the store works. CHASKI_SOAK_FOLDER is where the job lies, so that a run that was ended goes on.
func TestManyObjects(t *testing.T) {
	objects, dir, soak := 3000, os.Getenv("CHASKI_SOAK_FOLDER"), false
	if v := os.Getenv("CHASKI_SOAK_OBJECTS"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil {
			t.Fatal(err)
		}
		objects, soak = n, true
	}
	if dir == "" {
		dir = t.TempDir()
	}
	chip, err := os.ReadFile("../../testdata/tiffs/counts-long.tif")
	if err != nil {
		t.Fatal(err)
	}
	bound := func(mb int) int {
		if !soak {
			return 0
		}
		return mb
	}
	o := resources.Options{Logger: slog.New(slog.DiscardHandler), Opener: &source.Mux{Files: &source.Files{},
		Schemes: map[string]source.Opener{"s3": &simulated{objects, chip}}}}
	folder, k := filepath.Join(dir, "job"), &Index{Paths: []string{"s3://bucket/chips"}, Base: dir}
	j, err := Open(t.Context(), folder)
	if errors.Is(err, fault.NotFound) {
		took := stage(t, "plan", bound(planMB), func() (err error) {
			j, err = job.Plan(t.Context(), folder, k, job.PlanOptions{}, o)
			return err
		})
		if soak && took > planTime {
			t.Errorf("the plan took %v, at most %v are allowed", took, planTime)
		}
	} else if err != nil {
		t.Fatal(err)
	}
	stage(t, "all shards", 0, func() error {
		return j.Local(t.Context(), job.LocalOptions{RunOptions: job.RunOptions{Resource: o}, Shards: 2})
	})
	name := filepath.Join(dir, "all.parquet")
	stage(t, "merge", bound(mergeMB), func() error {
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
	var e *loader.Engine
	took := stage(t, "open", 0, func() (err error) {
		e, err = loader.Open(t.Context(), spec.Spec{Source: name, BatchSize: 64, Shuffle: true}, o)
		return err
	})
	defer e.Close()
	if soak && took > openTime {
		t.Errorf("the catalog took %v to open, at most %v are allowed", took, openTime)
	}
	if e.Len() != int64(objects) {
		t.Errorf("%d samples, want %d", e.Len(), objects)
	}
	l, err := loader.NewLoader(e, loader.LoaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	stage(t, "first batch", 0, func() error {
		b, err := l.Next(t.Context())
		if err == nil {
			b.Release()
		}
		return err
	})
}
