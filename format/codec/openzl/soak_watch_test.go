//go:build soak

package openzl_test

import (
	"fmt"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"
)

// watch checks the calls of a decoder on hostile input.
type watch struct {
	slow  time.Duration // a call that takes longer three times in a row is reported
	bytes uint64        // so is one that allocates more
	hang  time.Duration // one that takes longer than this does not come back: hung is called
	hung  func()

	longest  time.Duration
	greatest uint64
	sample   [1]metrics.Sample
}

func newWatch(slow time.Duration, bytes uint64, hang time.Duration, hung func()) *watch {
	w := &watch{slow: slow, bytes: bytes, hang: hang, hung: hung}
	w.sample[0].Name = "/gc/heap/allocs:bytes"
	return w
}

func (w *watch) allocated() uint64 {
	metrics.Read(w.sample[:])
	return w.sample[0].Value.Uint64()
}

// call runs decode, once or twice more if it was slow, and returns what is wrong, or "".
func (w *watch) call(decode func()) (wrong string) {
	timer := time.AfterFunc(w.hang, w.hung)
	defer timer.Stop()
	defer func() {
		if p := recover(); p != nil {
			wrong = fmt.Sprintf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	var took time.Duration
	for range 3 {
		before, start := w.allocated(), time.Now()
		decode()
		took = time.Since(start)
		n := w.allocated() - before
		w.greatest = max(w.greatest, n)
		if n > w.bytes {
			return fmt.Sprintf("%d bytes allocated, at most %d", n, w.bytes)
		}
		if took <= w.slow {
			w.longest = max(w.longest, took)
			return ""
		}
	}
	return fmt.Sprintf("takes %v, at most %v", took, w.slow)
}

var sink []byte

// TestWatch: the harness reports a panic, a slow call, a call that does not return and one that
// allocates too much, and nothing else.
func TestWatch(t *testing.T) {
	hung := make(chan struct{})
	const most = 64 << 20 // far above what the runtime counts late of what ran before
	for name, c := range map[string]struct {
		watch *watch
		call  func()
		want  string
	}{
		"sound": {newWatch(time.Minute, most, time.Minute, nil), func() { sink = make([]byte, 1<<20) }, ""},
		"panic": {
			newWatch(time.Minute, most, time.Minute, nil),
			func() { sink[len(sink)] = 0 },
			"panic: runtime error: index out of range",
		},
		"memory": {
			newWatch(time.Minute, most, time.Minute, nil),
			func() { sink = make([]byte, 2*most) },
			"bytes allocated",
		},
		"slow": {
			newWatch(time.Nanosecond, most, time.Minute, nil),
			func() { sink = make([]byte, 1<<20) },
			"takes ",
		},
		"not ended": {newWatch(time.Minute, most, time.Nanosecond, func() { close(hung) }), func() { <-hung }, ""},
	} {
		got := c.watch.call(c.call)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
