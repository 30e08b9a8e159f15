package tiledb

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// merging is a Store in whose midst others merge an array: when the first fragment's metadata is opened.
type merging struct {
	Store
	once  sync.Once // the others wait until it is over
	merge func()
}

func (m *merging) Open(ctx context.Context, uri string) (source.Reader, error) {
	if strings.HasSuffix(uri, metadataName) {
		m.once.Do(m.merge)
	}
	return m.Store.Open(ctx, uri)
}

// TestOpeningWhileOthersMerge: an array whose fragments are merged and removed while it is opened is all there.
func TestOpeningWhileOthersMerge(t *testing.T) {
	ctx := context.Background()
	for _, left := range []bool{false, true} {
		a, merged := several(t)
		want := everything(t, a)
		st := &merging{Store: localFiles(t), merge: func() {
			if err := os.Rename(merged, filepath.Join(a.uri, "__10_30_00000000000000000000000000000004")); err != nil {
				t.Error(err)
			}
			for _, f := range a.Fragments { // they go file by file
				if err := os.RemoveAll(f.path()); err != nil {
					t.Error(err)
				}
				if err := os.Mkdir(f.path(), 0o755); left && err != nil {
					t.Error(err)
				} else if !left {
					_ = os.Remove(f.path())
				}
			}
		}}
		now, err := Open(ctx, st, a.uri, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := everything(t, now); !slices.EqualFunc(got, want, sameValues) {
			t.Errorf("folders left %v: %d fragments, %v, want %v", left,
				len(now.Fragments), got, want)
		}
	}
}

// vanishing is a Store of which some folders go when a file is opened for the second time.
type vanishing struct {
	Store
	mu     sync.Mutex
	opened map[string]bool
	gone   []string
	went   bool
}

func (v *vanishing) Open(ctx context.Context, uri string) (source.Reader, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.opened[uri] && !v.went {
		v.went = true
		for _, path := range v.gone {
			if err := os.RemoveAll(path); err != nil {
				return nil, err
			}
		}
	}
	v.opened[uri] = true
	if _, err := os.Stat(uri); err != nil { // what is kept open does not count
		return nil, fault.WithFile(fault.New(fault.NotFound, "file", "it is gone"), uri)
	}
	return v.Store.Open(ctx, uri)
}

// TestOpeningWhileMergedOnesGo: fragments that were merged before the folder was listed may go
// while they are read. Dimensions with times before 1970 have more of a fragment read than its
// footer.
func TestOpeningWhileMergedOnesGo(t *testing.T) {
	ctx := context.Background()
	path := corpus.Known(t, "days")
	a := openLocal(t, path, Options{})
	var days []byte
	for _, day := range []int64{-20, 0, 20} {
		days = DatetimeDay.store(days, DatetimeDay.CoordOf(day))
	}
	want := []Values{{Data: []byte{0, 1, 2}}, {Data: days}}
	st := &vanishing{Store: localFiles(t), opened: map[string]bool{}}
	for _, f := range a.Hidden {
		st.gone = append(st.gone, f.path())
	}
	now, err := Open(ctx, st, path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := everything(t, now); !st.went || !slices.EqualFunc(got, want, sameValues) {
		t.Errorf("%d fragments, %v, want %v", len(now.Fragments), got, want)
	}
}
