package pages

import (
	"bytes"
	"runtime"
	"sync"
	"testing"
)

// TestMemory: memory is zeroed, has the length that was asked for, and is counted until it is freed, once.
func TestMemory(t *testing.T) {
	before := Held()
	for _, n := range []int{1, 4095, 4096, 4097, 8 << 20} {
		m, err := New(n)
		if err != nil {
			t.Fatal(err)
		}
		b := m.Bytes()
		if !bytes.Equal(b, make([]byte, n)) {
			t.Fatalf("%d bytes, want %d zeros", len(b), n)
		}
		b[0], b[n-1] = 1, 2
		if got := Held() - before; runtime.GOOS == "linux" && got != int64(n) {
			t.Errorf("%d bytes are counted as %d", n, got)
		}
		var done sync.WaitGroup
		for range 4 {
			done.Go(m.Free)
		}
		done.Wait()
		if got := Held(); got != before {
			t.Errorf("%d bytes are counted when all is freed, were %d", got, before)
		}
	}
}

// TestNoMemory: memory that the system does not have is an error, and is not counted.
func TestNoMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("memory of the heap")
	}
	before := Held()
	if _, err := New(1 << 60); err == nil {
		t.Error("the address space has room for 2^60 bytes")
	}
	if got := Held(); got != before {
		t.Errorf("%d bytes are counted, were %d", got, before)
	}
}
