package procs

import (
	"bytes"
	"cmp"
	"math"
	"os"
	"path"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
)

// unknownMemory is assumed if the system does not say how much memory it has. A small laptop has 8 GiB.
const unknownMemory = 8 << 30

// Memory returns how many bytes of memory this process may use: the machine's, within the limits
// of its control groups (Linux) and of GOMEMLIMIT.
func Memory() int64 {
	heap.mu.Lock()
	limit := debug.SetMemoryLimit(-1)
	if limit == heap.set {
		limit = heap.memory
	}
	heap.mu.Unlock()
	return min(machineMemory(os.DirFS("/").(readFiler)), limit)
}

// heap is the limit of Go's heap since LimitHeap.
var heap struct {
	mu      sync.Mutex
	total   int64 // of the heap and of memory outside of it; 0 before LimitHeap
	memory  int64 // the limit that Memory knows of: the environment's. One of LimitHeap follows from Memory
	outside int64
	set     int64 // GOMEMLIMIT that follows

	shrinks sync.Mutex // one shrinkHeap at a time: the next one continues where it ended
}

// leastHeap is the least share of the limit for the heap: 1/leastHeap, a fifth. A budget is 4/5 of its limit, so this
// is the rest beside a full budget.
const leastHeap = 5

// LimitHeap sets GOMEMLIMIT, unless the environment does: the user knows better.
func LimitHeap(n int64) {
	heap.mu.Lock()
	defer heap.mu.Unlock()
	if os.Getenv("GOMEMLIMIT") == "" {
		heap.total, heap.memory = n, math.MaxInt64
	} else if heap.total == 0 {
		heap.total = debug.SetMemoryLimit(-1)
		heap.memory = heap.total
	}
	limitHeap()
}

// Outside says that n bytes more of the process's memory lie outside of Go's heap. If LimitHeap was called, it lowers
// GOMEMLIMIT by n, because the heap and these bytes together must stay below the limit. Call it before taking the
// memory, so the heap returns unneeded memory first.
func Outside(n int64) {
	heap.mu.Lock()
	heap.outside += n
	limited := heap.total > 0
	if limited {
		limitHeap()
	}
	heap.mu.Unlock()
	if limited && n > 0 {
		shrinkHeap()
	}
}

// shrinkHeap gives memory of the heap back to the system if the heap is over its limit. Lowering the limit is not
// enough: the runtime returns free memory in the background, with a hundredth of a processor, and until then the kernel
// counts it beside the memory that the caller is about to take.
func shrinkHeap() {
	heap.shrinks.Lock()
	defer heap.shrinks.Unlock()
	heap.mu.Lock()
	limit, slack := heap.set, heap.total/heapSlack
	heap.mu.Unlock()
	if taken, spare := heapMemory(); taken > limit && spare > slack {
		debug.FreeOSMemory()
	}
}

// heapSlack is the part of the limit that the heap may have to spare. A sixteenth is 55 MiB for a budget of 700 MiB.
// Giving back costs a collection, so it should be worth one, and not come again before the heap has grown by as much.
const heapSlack = 16

// heapMemory returns the bytes of the system that the heap has, as GOMEMLIMIT counts them, and how many of them it
// might give back: free ones, and those allocated since the last collection.
func heapMemory() (taken, spare int64) {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/gc/heap/live:bytes"},
	}
	metrics.Read(samples)
	bytesOf := func(i int) int64 { return int64(samples[i].Value.Uint64()) }
	return bytesOf(0) - bytesOf(1), bytesOf(2) + max(bytesOf(3)-bytesOf(4), 0)
}

// limitHeap sets GOMEMLIMIT. It needs the lock.
func limitHeap() {
	heap.set = max(heap.total-heap.outside, heap.total/leastHeap)
	debug.SetMemoryLimit(heap.set)
}

type readFiler interface {
	ReadFile(name string) ([]byte, error)
}

// machineMemory is Memory without GOMEMLIMIT, read from the files of a system.
func machineMemory(root readFiler) int64 {
	size := int64(unknownMemory)
	if content, err := root.ReadFile("proc/meminfo"); err == nil {
		if kib := number(field(content, "MemTotal:")); kib > 0 && kib <= math.MaxInt64>>10 {
			size = kib << 10
		}
	}
	groups(root, func(dir, limit, _ string) {
		if bound := numberOf(root, path.Join(dir, limit)); bound > 0 {
			size = min(size, bound)
		}
	})
	return size
}

// groups calls do for the control groups whose limits hold for this process, with the names of the files of the limit
// and of the bytes in use.
func groups(root readFiler, do func(dir, limit, used string)) {
	const top = "sys/fs/cgroup"
	do(top+"/memory", "memory.limit_in_bytes", "memory.usage_in_bytes") // version 1, as a container sees it
	do(top, "memory.max", "memory.current")                             // version 2
	if content, err := root.ReadFile("proc/self/cgroup"); err == nil {
		if _, group, ok := bytes.Cut(bytes.TrimSpace(content), []byte("0::/")); ok {
			group, _, _ := strings.Cut(string(group), "\n")
			// Every group on the way up has a limit of its own, and the smallest one counts, because the
			// kernel ends the process at any of them.
			for parent := path.Clean(group); parent != "." && parent != "/"; parent = path.Dir(parent) {
				do(path.Join(top, parent), "memory.max", "memory.current")
			}
		}
	}
}

// numberOf returns the number in a file, or 0 if it is not one: a limit of "max" must not count.
func numberOf(root readFiler, name string) int64 {
	content, err := root.ReadFile(name)
	if err != nil {
		return 0
	}
	return number(strings.TrimSpace(string(content)))
}

// Available returns how many bytes more this process could take before the machine or one of its control groups (Linux)
// has no memory left. Memory of cached files counts as free. On other systems it is the largest number.
func Available() int64 { return availableMemory(os.DirFS("/").(readFiler)) }

// availableMemory is Available, read from the files of a system.
func availableMemory(root readFiler) int64 {
	free := int64(math.MaxInt64)
	if content, err := root.ReadFile("proc/meminfo"); err == nil {
		if word := field(content, "MemAvailable:"); word != "" {
			free = min(number(word), math.MaxInt64>>10) << 10
		}
	}
	groups(root, func(dir, limit, used string) {
		bound := numberOf(root, path.Join(dir, limit))
		if bound <= 0 {
			return
		}
		left := bound - numberOf(root, path.Join(dir, used))
		if stat, err := root.ReadFile(path.Join(dir, "memory.stat")); err == nil {
			for _, name := range []string{"inactive_file", "active_file"} {
				// Version 1 counts the groups below in names of their own.
				left += number(cmp.Or(field(stat, "total_"+name), field(stat, name)))
			}
		}
		free = min(free, max(left, 0))
	})
	return free
}

// field returns the word after a name, in lines of the form "name  word ...".
func field(b []byte, name string) string {
	for line := range bytes.Lines(b) {
		if words := strings.Fields(string(line)); len(words) > 1 && words[0] == name {
			return words[1]
		}
	}
	return ""
}

// number parses a whole number; it returns 0 if s is not one.
func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
