package tiledb

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/source"
)

// meeting is a Store whose readers of fragment metadata wait for each other.
type meeting struct {
	Store
	enter, all chan struct{}
}

func (m *meeting) Open(ctx context.Context, uri string) (source.Reader, error) {
	if strings.HasSuffix(uri, metadataName) {
		m.enter <- struct{}{}
		select {
		case <-m.all:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return m.Store.Open(ctx, uri)
}

// TestFragmentsAreOpenedTogether: not one after the other, each a round trip away.
func TestFragmentsAreOpenedTogether(t *testing.T) {
	const fragments = 3
	dir := filepath.Join(corpusDir(t), "arrays", "dense_1d_gaps")
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var files Files
	defer files.Close()
	m := &meeting{&files, make(chan struct{}), make(chan struct{})}
	go func() {
		defer close(m.all)
		for range fragments {
			select {
			case <-m.enter:
			case <-ctx.Done():
				return
			}
		}
	}()
	a, err := Open(ctx, m, dir, Options{})
	if err != nil || len(a.Fragments) != fragments {
		t.Fatal(err)
	}
	for i, f := range a.Fragments[1:] {
		if f.From < a.Fragments[i].From {
			t.Errorf("fragment %s comes after %s", f.Name, a.Fragments[i].Name)
		}
	}
}
