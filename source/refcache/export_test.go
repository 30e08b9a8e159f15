package refcache

import (
	"time"

	"github.com/chaski-eo/chaski/source"
)

// NewWatchAt is NewWatch with a clock.
func NewWatchAt(o source.Opener, now func() time.Time) *Watch {
	w := NewWatch(o)
	w.now = now
	return w
}
