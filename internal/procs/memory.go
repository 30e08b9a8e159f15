package procs

import (
	"bytes"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
)

// unknownMemory is assumed if the system does not say how much memory it has. A small laptop has 8 GiB.
const unknownMemory = 8 << 30

// Memory returns how many bytes of memory this process may use: those of the machine, within the limits
// of its control groups (Linux) and of GOMEMLIMIT.
func Memory() int64 {
	limit := debug.SetMemoryLimit(-1)
	if limit == own.Load() {
		limit = math.MaxInt64
	}
	return min(machineMemory(os.DirFS("/").(readFiler)), limit)
}

// own is the limit that LimitHeap has set, which follows from Memory and so must not change it.
var own atomic.Int64

// LimitHeap sets GOMEMLIMIT, unless the environment does: the user knows better.
func LimitHeap(n int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		own.Store(n)
		debug.SetMemoryLimit(n)
	}
}

type readFiler interface {
	ReadFile(name string) ([]byte, error)
}

// machineMemory is Memory without GOMEMLIMIT, read from the files of a system.
func machineMemory(root readFiler) int64 {
	size := int64(unknownMemory)
	if b, err := root.ReadFile("proc/meminfo"); err == nil {
		if kib := number(field(b, "MemTotal:")); kib > 0 && kib <= math.MaxInt64>>10 {
			size = kib << 10
		}
	}
	limit := func(name string) {
		if b, err := root.ReadFile(name); err == nil {
			if n := number(strings.TrimSpace(string(b))); n > 0 { // "max" is no limit
				size = min(size, n)
			}
		}
	}
	limit("sys/fs/cgroup/memory/memory.limit_in_bytes") // version 1, as a container sees it
	limit("sys/fs/cgroup/memory.max")                   // version 2
	if b, err := root.ReadFile("proc/self/cgroup"); err == nil {
		if _, group, ok := bytes.Cut(bytes.TrimSpace(b), []byte("0::/")); ok {
			group, _, _ := strings.Cut(string(group), "\n")
			// Every group on the way up has a limit of its own, and the smallest one counts, because the
			// kernel ends the process at any of them.
			for g := path.Clean(group); g != "." && g != "/"; g = path.Dir(g) {
				limit(path.Join("sys/fs/cgroup", g, "memory.max"))
			}
		}
	}
	return size
}

// field returns the word after a name, in lines of the form "name  word ...".
func field(b []byte, name string) string {
	for line := range bytes.Lines(b) {
		if f := strings.Fields(string(line)); len(f) > 1 && f[0] == name {
			return f[1]
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
