package containers

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog"
)

// stuckOpener opens files when the test lets it.
type stuckOpener struct {
	openers.Files
	asked, let chan struct{}
}

func (o *stuckOpener) Open(ctx context.Context, uri string) (source.Reader, error) {
	o.asked <- struct{}{}
	<-o.let
	return o.Files.Open(ctx, uri)
}

// TestWaitingForAFileCanBeCancelled: of several callers that need one file of rasters, one opens
// it, and each of the others can stop waiting.
func TestWaitingForAFileCanBeCancelled(t *testing.T) {
	o := &stuckOpener{asked: make(chan struct{}), let: make(chan struct{})}
	defer o.Close()
	c := NewMemberContainer(resources.Options{Opener: o})
	const file = "../../testdata/coast/coast.tacozip"
	opened := make(chan catalog.Asset)
	go func() {
		f, err := c.fileOf(context.Background(), file)
		if err != nil {
			t.Error(err)
		}
		opened <- f
	}()
	<-o.asked
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	gaveUp := make(chan error)
	go func() {
		_, err := c.fileOf(ctx, file)
		gaveUp <- err
	}()
	select {
	case err := <-gaveUp:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("who gave up got %v", err)
		}
	case <-time.After(5 * time.Minute):
		t.Error("who gave up waits on")
	}
	close(o.let)
	f := <-opened
	again, err := c.fileOf(t.Context(), file) // not opened again: nobody takes from o.asked
	if err != nil || again.URI != f.URI || again.Size != f.Size || f.Size == 0 {
		t.Errorf("%v, then %v, %v", f, again, err)
	}
}
