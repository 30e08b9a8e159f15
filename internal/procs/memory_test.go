package procs

import (
	"runtime"
	"runtime/debug"
	"testing"
	"testing/fstest"
)

// TestMachineMemory: the smallest of the machine's memory and the limits of its control groups
// counts.
func TestMachineMemory(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	meminfo := file("MemTotal:       16000000 kB\nMemFree:  5 kB\n")
	for name, c := range map[string]struct {
		files fstest.MapFS
		want  int64
	}{
		"nothing":   {fstest.MapFS{}, unknownMemory},
		"machine":   {fstest.MapFS{"proc/meminfo": meminfo}, 16000000 << 10},
		"container": {fstest.MapFS{"proc/meminfo": meminfo, "sys/fs/cgroup/memory.max": file("4294967296\n")}, 4 << 30},
		"no limit":  {fstest.MapFS{"proc/meminfo": meminfo, "sys/fs/cgroup/memory.max": file("max\n")}, 16000000 << 10},
		"version 1": {
			fstest.MapFS{"proc/meminfo": meminfo, "sys/fs/cgroup/memory/memory.limit_in_bytes": file("1073741824\n")},
			1 << 30,
		},
		"a group above": {
			fstest.MapFS{
				"proc/meminfo": meminfo, "proc/self/cgroup": file("0::/jobs/a/step\n"),
				"sys/fs/cgroup/jobs/memory.max":   file("2147483648\n"),
				"sys/fs/cgroup/jobs/a/memory.max": file("max\n"),
			},
			2 << 30,
		},
		"nonsense": {
			fstest.MapFS{
				"proc/meminfo":     file("MemTotal: 99999999999999999999 kB"),
				"proc/self/cgroup": file("0::/../.."),
			},
			unknownMemory,
		},
	} {
		if got := machineMemory(c.files); got != c.want {
			t.Errorf("%s: %d, not %d", name, got, c.want)
		}
	}
	if n := Memory(); n < 1<<20 {
		t.Errorf("%d bytes", n)
	}
}

// TestLimitHeap: a limit of the heap follows from the memory and does not change it, and the environment's stays.
func TestLimitHeap(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "")
	before, memory := debug.SetMemoryLimit(-1), Memory()
	t.Cleanup(func() {
		debug.SetMemoryLimit(before)
		heap.total, heap.memory, heap.set = 0, 0, 0
	})
	if LimitHeap(64 << 20); debug.SetMemoryLimit(-1) != 64<<20 || Memory() != memory {
		t.Errorf("a limit of %d bytes, memory of %d", debug.SetMemoryLimit(-1), Memory())
	}
	t.Setenv("GOMEMLIMIT", "96MiB")
	if LimitHeap(32 << 20); debug.SetMemoryLimit(-1) != 64<<20 {
		t.Errorf("a limit of %d bytes", debug.SetMemoryLimit(-1))
	}
}

// TestOutside: memory outside of the heap leaves less for the heap, but never less than a fifth, and does not change
// what the process may use. Without a limit it sets none.
func TestOutside(t *testing.T) {
	before, memory := debug.SetMemoryLimit(-1), Memory()
	t.Cleanup(func() {
		debug.SetMemoryLimit(before)
		heap.total, heap.memory, heap.set = 0, 0, 0
	})
	Outside(16 << 20)
	if debug.SetMemoryLimit(-1) != before {
		t.Errorf("without a limit: %d, was %d", debug.SetMemoryLimit(-1), before)
	}
	expect := func(limit int64) {
		t.Helper()
		if got := debug.SetMemoryLimit(-1); got != limit || Memory() != memory {
			t.Errorf("a limit of %d bytes, want %d; memory of %d, was %d", got, limit, Memory(), memory)
		}
	}
	t.Setenv("GOMEMLIMIT", "")
	LimitHeap(800 << 20)
	expect(784 << 20)
	Outside(600 << 20)
	expect(184 << 20)
	Outside(100 << 20)
	expect(160 << 20)
	Outside(-716 << 20)
	expect(800 << 20)

	heap.total, heap.set = 0, 0
	t.Setenv("GOMEMLIMIT", "512MiB")
	memory = min(memory, 512<<20)
	debug.SetMemoryLimit(512 << 20) // as Go does it at the start
	LimitHeap(800 << 20)
	expect(512 << 20)
	Outside(100 << 20)
	LimitHeap(900 << 20)
	expect(412 << 20)
	Outside(-100 << 20)
	expect(512 << 20)
}

// TestShrinkHeap: when memory outside of the heap is announced, the system has back what the heap has no use for before
// that memory is taken. The process would have both at once, more than it may use.
func TestShrinkHeap(t *testing.T) {
	before, percent := debug.SetMemoryLimit(-1), debug.SetGCPercent(-1) // no collection by itself below the limit
	t.Cleanup(func() {
		debug.SetMemoryLimit(before)
		debug.SetGCPercent(percent)
		heap.total, heap.memory, heap.set, heap.outside = 0, 0, 0, 0
	})
	t.Setenv("GOMEMLIMIT", "")
	LimitHeap(400 << 20)
	garbage(200 << 20)
	taken, _ := heapMemory()
	if taken < 200<<20 {
		t.Fatalf("the heap has %d MiB", taken>>20)
	}
	Outside(300 << 20)
	if taken, _ = heapMemory(); taken > 100<<20 {
		t.Errorf("the heap has %d MiB, at most 100", taken>>20)
	}
	Outside(-300 << 20)
}

//go:noinline
func garbage(n int) {
	held := make([][]byte, n>>20)
	for i := range held {
		held[i] = make([]byte, 1<<20)
	}
	runtime.KeepAlive(held)
}
