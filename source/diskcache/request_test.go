//go:build unix

package diskcache

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// origin is a store that counts what it is asked for.
type origin struct {
	content         []byte
	requests, bytes atomic.Int64
	takes           time.Duration
}

func (s *origin) get(p []byte, off int64) error {
	time.Sleep(s.takes)
	s.requests.Add(1)
	s.bytes.Add(int64(len(p)))
	copy(p, s.content[off:])
	return nil
}

// TestOneRequest: workers of one engine that need a range, or a part of it, at a time get it by one request, also when
// nothing is kept.
func TestOneRequest(t *testing.T) {
	for _, quota := range []int64{0, 1 << 30} {
		synctest.Test(t, func(t *testing.T) {
			f := openFolder(t, t.TempDir(), quota)
			defer f.Close()
			store := &origin{content: contentOf(0, 0), takes: time.Second}
			object := NameObject("a", "", "tag", objectBytes)
			var workers sync.WaitGroup
			for k := range 8 {
				workers.Go(func() {
					from, end := int64(0), int64(objectBytes)
					if k > 0 {
						time.Sleep(time.Millisecond)
						from, end = from+int64(k)*1000, end-int64(k)*3000
					}
					got := make([]byte, end-from)
					err := f.Fill(t.Context(), object, got, from, store.get)
					if err != nil || !bytes.Equal(got, store.content[from:end]) {
						t.Errorf("wrong bytes, %v", err)
					}
				})
			}
			workers.Wait()
			if n := store.requests.Load(); n != 1 || f.Stats().Shared != 7 {
				t.Errorf("%d requests, %+v", n, f.Stats())
			}
		})
	}
}

// TestOneRequestOfEngines: engines that share a folder read each range once.
func TestOneRequestOfEngines(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("engines wait for each other on Linux")
	}
	path := t.TempDir()
	store := &origin{content: contentOf(1, 0), takes: 20 * time.Millisecond}
	object := NameObject("a", "", "tag", objectBytes)
	var engines sync.WaitGroup
	for range 3 {
		f := openFolder(t, path, 1<<30)
		defer f.Close()
		engines.Go(func() {
			for off := int64(0); off < objectBytes; off += pageBytes {
				got := make([]byte, pageBytes)
				err := f.Fill(t.Context(), object, got, off, store.get)
				if err != nil || !bytes.Equal(got, store.content[off:off+pageBytes]) {
					t.Errorf("wrong bytes, %v", err)
				}
			}
		})
	}
	engines.Wait()
	if n := store.bytes.Load(); n != objectBytes {
		t.Errorf("%d bytes came from the store, of %d", n, objectBytes)
	}
}

// TestOtherEngineHangs: a range that another engine does not get is read after a while.
func TestOtherEngineHangs(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("engines wait for each other on Linux")
	}
	path := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		hangs, f := openFolder(t, path, 1<<30), openFolder(t, path, 1<<30)
		defer hangs.Close()
		defer f.Close()
		store, object := &origin{content: contentOf(0, 0)}, NameObject("a", "", "tag", objectBytes)
		unlock, _ := hangs.lockRange(t.Context(), object, Span{0, 100})
		defer unlock()
		start, got := time.Now(), make([]byte, 100)
		err := f.Fill(t.Context(), object, got, 0, store.get)
		if err != nil || !bytes.Equal(got, store.content[:100]) || store.requests.Load() != 1 {
			t.Errorf("wrong bytes, %d requests, %v", store.requests.Load(), err)
		}
		if took := time.Since(start); took < othersTake || took > othersTake+time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// TestFailedRequest: a request that fails, or whose reader gives up, fails nobody else.
func TestFailedRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := openFolder(t, t.TempDir(), 1<<30)
		defer f.Close()
		store, object := &origin{content: contentOf(0, 0), takes: time.Second}, NameObject("a", "", "tag", objectBytes)
		broken := errors.New("no answer")
		fails := func([]byte, int64) error { time.Sleep(time.Second); return broken }
		var readers sync.WaitGroup
		read := func(ctx context.Context, get func([]byte, int64) error, want error) {
			readers.Go(func() {
				got := make([]byte, objectBytes)
				err := f.Fill(ctx, object, got, 0, get)
				if !errors.Is(err, want) || want == nil && !bytes.Equal(got, store.content) {
					t.Errorf("%v, want %v", err, want)
				}
			})
			synctest.Wait()
		}
		impatient, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		read(t.Context(), fails, broken)
		read(impatient, store.get, context.DeadlineExceeded)
		read(t.Context(), store.get, nil)
		read(t.Context(), store.get, nil)
		readers.Wait()
		if n := store.requests.Load(); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
}

// TestDiskFailsInARun: while the disk is full, or reads fail, or it is slow, readers have the right bytes and no error;
// a minute later the folder is used again.
func TestDiskFailsInARun(t *testing.T) {
	for name, fails := range map[string]func(reading bool) error{
		"full": func(reading bool) error {
			if !reading && rand.IntN(2) == 0 { // also between two writes of one file
				return syscall.ENOSPC
			}
			return nil
		},
		"broken": func(bool) error { return syscall.EIO },
		"slow":   func(bool) error { time.Sleep(3 * time.Second); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := t.TempDir()
				f := openFolder(t, path, 1<<30)
				defer f.Close()
				store := &origin{content: contentOf(0, 0)}
				object := NameObject("a", "", "tag", objectBytes)
				pass := func() {
					for off := int64(0); off < objectBytes; off += pageBytes {
						got := make([]byte, pageBytes)
						err := f.Fill(t.Context(), object, got, off, store.get)
						if err != nil || !bytes.Equal(got, store.content[off:off+pageBytes]) {
							t.Fatalf("wrong bytes, %v", err)
						}
					}
				}
				f.disk.fails = fails
				pass()
				pass()
				if s := f.Stats(); s.Failed == 0 || s.Failed > 4 {
					t.Errorf("while it fails: %+v", s)
				}
				if n := onDisk(t, path); n != f.Used() {
					t.Errorf("%d bytes on disk, counted %d", n, f.Used())
				}
				f.disk.fails = nil
				time.Sleep(pause)
				pass()
				before := store.requests.Load()
				if pass(); store.requests.Load() != before {
					t.Errorf("a minute later it is not used: %+v", f.Stats())
				}
			})
		})
	}
}
