package client

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestAwaitFrames: a wait ends with the frame before the last one of what is waited for, and not before; a second one
// at the same time, one for few bytes, and one for frames that are here already do not wait.
func TestAwaitFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, over := newFrames(), false
		start := time.Now()
		go func() {
			f.await(t.Context(), 8*frameBytes)
			over = true
		}()
		var got []*[]byte
		for n := range 7 {
			synctest.Wait()
			if over {
				t.Fatalf("over after %d frames", n)
			}
			f.await(t.Context(), 8*frameBytes)
			got = append(got, f.Get(frameBytes))
			small := f.Get(frameBytes / 2) // gRPC's pool gives 16 KiB for it
			f.Put(small)
		}
		synctest.Wait()
		if !over || time.Since(start) != 0 {
			t.Fatalf("over is %v after 7 frames and %v", over, time.Since(start))
		}
		f.await(t.Context(), 8*frameBytes) // they are here
		f.await(t.Context(), 2*frameBytes-1)
		for _, b := range got {
			f.Put(b)
		}
		if n := f.out.Load(); n != 0 || time.Since(start) != 0 {
			t.Fatalf("%d frames are out after %v", n, time.Since(start))
		}
	})
}

// TestAwaitFramesEnds: where the frames do not come, a wait ends by itself or with its call.
func TestAwaitFramesEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, start := newFrames(), time.Now()
		f.await(t.Context(), 8*frameBytes)
		if d := time.Since(start); d != longestWait {
			t.Errorf("%v", d)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		f.await(ctx, 8*frameBytes)
		if d := time.Since(start); d != longestWait {
			t.Errorf("%v", d)
		}
	})
}

// TestAwaitFramesGivesUp: where waits do not end early, as behind a proxy that sends small frames, they cost less than
// a millisecond a part in the long run; where they do again, each part is waited for again.
func TestAwaitFramesGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, start := newFrames(), time.Now()
		const parts = 1000
		for range parts {
			f.await(t.Context(), 8*frameBytes)
		}
		if d := time.Since(start); d > parts*time.Millisecond || d == 0 {
			t.Errorf("%v for %d parts", d, parts)
		}
		for range 100 { // the frames come now, while a part is waited for
			go f.await(t.Context(), 8*frameBytes)
			synctest.Wait()
			waits := f.want.Load() > 0
			for range 7 {
				f.Get(frameBytes)
			}
			synctest.Wait()
			f.out.Store(0)
			if waits {
				for range 10 {
					go f.await(t.Context(), 8*frameBytes)
					synctest.Wait()
					if f.want.Load() == 0 {
						t.Fatal("no wait after one that ended early")
					}
					for range 7 {
						f.Get(frameBytes)
					}
					synctest.Wait()
					f.out.Store(0)
				}
				return
			}
		}
		t.Error("no wait in 100 parts")
	})
}
