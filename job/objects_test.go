package job

import (
	"context"
	"errors"
	"io"
	"path"
	"strings"
	"testing"

	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/resources"
)

// inStore plans a job of echo in a store in memory, of which tests see the objects.
func inStore(t testing.TB, e *echo, o PlanOptions) (*Job, stored) {
	t.Helper()
	b := memblob.OpenBucket(nil)
	t.Cleanup(func() { _ = b.Close() })
	j, err := PlanIn(t.Context(), Objects(b, "some/job/", "mem://b/some/job"), e, o, resources.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return j, stored{t, b, "some/job/"}
}

// stored is the folder of a job in a store, for happen.
type stored struct {
	t      testing.TB
	bucket *blob.Bucket
	prefix string
}

func (s stored) names() (names []string) {
	s.t.Helper()
	it := s.bucket.List(&blob.ListOptions{Prefix: s.prefix + resultsName + "/"})
	for {
		o, err := it.Next(s.t.Context())
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			s.t.Fatal(err)
		}
		names = append(names, path.Base(o.Key))
	}
}

func (s stored) key(name string) string { return s.prefix + resultsName + "/" + name }

func (s stored) read(name string) []byte {
	s.t.Helper()
	b, err := s.bucket.ReadAll(s.t.Context(), s.key(name))
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

func (s stored) write(name string, b []byte) {
	s.t.Helper()
	if err := s.bucket.WriteAll(s.t.Context(), s.key(name), b, nil); err != nil {
		s.t.Fatal(err)
	}
}

func (s stored) remove(name string) {
	s.t.Helper()
	if err := s.bucket.Delete(s.t.Context(), s.key(name)); err != nil {
		s.t.Fatal(err)
	}
}

// TestOnePlanWinsInStore: of plans into one place of a store at once, one writes the job and the others are refused.
func TestOnePlanWinsInStore(t *testing.T) {
	b := memblob.OpenBucket(nil)
	defer b.Close()
	f := Objects(b, "job", "mem://b/job")
	onePlanWins(t, func(e *echo) (*Job, error) {
		return PlanIn(t.Context(), f, e, PlanOptions{}, resources.Options{})
	}, func() (*Job, error) { return OpenIn(t.Context(), f, kinds) })
}

// TestStoreThatFails: a request that fails for a while is made again; an object that is not there is not found at once;
// a writer that fails, and a context that ends, leave no object.
func TestStoreThatFails(t *testing.T) {
	b := memblob.OpenBucket(nil)
	defer b.Close()
	f := Objects(b, "", "mem://b").(*objects)
	n := 0
	err := f.again(t.Context(), "x", func() error {
		if n++; n < 3 {
			return errors.New("slow down")
		}
		return nil
	})
	if err != nil || n != 3 {
		t.Errorf("%v after %d requests", err, n)
	}
	_, err = f.read(t.Context(), "x", 9)
	if !errors.Is(err, fault.NotFound) || !strings.Contains(err.Error(), "mem://b/x") {
		t.Errorf("%v, want not found", err)
	}
	bad := fault.New(fault.Corrupt, "x", fault.NoOffset, "it is bad")
	ctx, cancel := context.WithCancel(t.Context())
	for _, write := range []func(w io.Writer) error{
		func(w io.Writer) error { return errors.Join(bad, second(w.Write([]byte("half")))) },
		func(w io.Writer) error {
			cancel()
			return second(w.Write([]byte("whole")))
		},
	} {
		if err := f.write(ctx, "x", write); err == nil {
			t.Error("it was written")
		}
		if there, err := f.exists(t.Context(), "x"); there || err != nil {
			t.Errorf("there %t, %v", there, err)
		}
	}
	if err := f.create(t.Context(), "y", []byte("y")); err != nil {
		t.Error(err)
	}
	if _, err := f.read(t.Context(), "y", 0); !errors.Is(err, fault.Limit) {
		t.Errorf("%v, want limit", err)
	}
	if _, err := f.section(t.Context(), "y", 0, 2); !errors.Is(err, fault.Corrupt) {
		t.Errorf("%v, want corrupt", err)
	}
}

func second(_ int, err error) error { return err }
