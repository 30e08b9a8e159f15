package flags

import (
	"os"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source/diskcache"
)

// AddMaxChunk adds --max-chunk, the limit that errors of the engine call max_chunk.
func AddMaxChunk(fl *pflag.FlagSet, limit *int) {
	console.CountVar(fl, limit, "max-chunk", resources.DefaultMaxChunkBytes, 1)
}

// AddSQLLimits adds --sql-time and --sql-memory.
func AddSQLLimits(fl *pflag.FlagSet, l *tables.QueryLimits) {
	console.DurationVar(fl, &l.Time, "sql-time", tables.DefaultQueryTime)
	console.CountVar(fl, &l.Memory, "sql-memory", 0, 0)
}

// MemoryVariable is the environment variable of --memory-total. Python starts engines without this flag, so the
// variable is the only way to set their limit.
const MemoryVariable = "CHASKI_MEMORY_TOTAL"

// The default budget is 5/8 of the memory that the process may use, and GOMEMLIMIT 5/4 of the budget, which is 25/32 of
// the memory: of 8 GiB, 5 GiB and 6.25 GiB. The quarter beyond the budget is for memory that is not charged: chunks of
// workers, caches of remote files, connections, and garbage that waits for its collection. Shared memory and
// large arrays lie outside of the heap, whose limit sinks by their size. The rest, 7/32, is for the page
// cache, and for the time until a collection ends, in which the heap may pass its limit.
const (
	budgetNumerator, budgetDenominator = 5, 8
	heapNumerator, heapDenominator     = 5, 4
)

// minMemoryTotal is the smallest --memory-total in bytes: two batches of a few MiB, a read, and a table.
const minMemoryTotal = 32 << 20

// MemoryTotal is the value of --memory-total.
type MemoryTotal struct{ bytes int64 }

// Add adds the flag.
func (m *MemoryTotal) Add(fl *pflag.FlagSet) {
	console.Var(fl, &m.bytes, "memory-total", 0)
}

// LimitHeap sets GOMEMLIMIT for commands without a budget, unless the environment does: to 5/4 of $CHASKI_MEMORY_TOTAL,
// or to 25/32 of the memory. Garbage is then collected before the machine or the control group has no memory left.
func LimitHeap() {
	n, err := strconv.ParseInt(os.Getenv(MemoryVariable), 10, 64)
	if err != nil || n < minMemoryTotal {
		n = max(procs.Memory()/budgetDenominator*budgetNumerator, minMemoryTotal)
	}
	procs.LimitHeap(n / heapDenominator * heapNumerator)
}

// Budget returns the budget, and limits the heap of this process to match. memory is --memory.
func (m *MemoryTotal) Budget(memory int64) (*resources.Budget, error) {
	name, n := budget.Flag[2:], m.bytes
	if text := os.Getenv(MemoryVariable); n == 0 && text != "" {
		var err error
		if n, err = strconv.ParseInt(text, 10, 64); err != nil || n == 0 {
			return nil, console.Usagef("%s is %q: it must be a number of bytes", MemoryVariable, text)
		}
		name = MemoryVariable
	}
	total := procs.Memory()
	if n == 0 {
		n = max(total/budgetDenominator*budgetNumerator, minMemoryTotal)
	}
	if err := console.AtLeast(name, n, minMemoryTotal); err != nil {
		return nil, err
	}
	if memory > n {
		return nil, console.Usagef("--memory is %d: it must be at most --memory-total, which is %d", memory, n)
	}
	procs.LimitHeap(n / heapDenominator * heapNumerator)
	return resources.NewBudget(n), nil
}

// CacheVariable and CacheBytesVariable are the environment variables of --cache-dir and --cache-bytes. Python starts
// engines without these flags.
const (
	CacheVariable      = "CHASKI_CACHE_DIR"
	CacheBytesVariable = "CHASKI_CACHE_BYTES"
)

// leastCache has room for one block of a remote file: a smaller cache keeps none. Python has the same.
const leastCache = 64 << 10

// DiskCache has the flags of the folder that keeps ranges of remote objects.
type DiskCache struct {
	Dir   string
	Bytes int64
}

// Add adds the flags.
func (f *DiskCache) Add(fl *pflag.FlagSet) {
	console.Var(fl, &f.Dir, "cache-dir", "")
	console.CountVar(fl, &f.Bytes, "cache-bytes", 0, 0)
}

// Set says to the openers that have ref which folder it is, if there is one.
func (f *DiskCache) Set(ref *diskcache.Ref) error {
	if f.Dir == "" {
		f.Dir = os.Getenv(CacheVariable)
	}
	if f.Bytes != 0 && f.Dir == "" {
		return console.Usagef("--cache-bytes is %d, and there is no --cache-dir that it could bound", f.Bytes)
	}
	text := os.Getenv(CacheBytesVariable)
	if f.Bytes == 0 && text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 {
			return console.Usagef("%s is %q: it must be a number of bytes", CacheBytesVariable, text)
		}
		f.Bytes = n
	}
	if f.Dir != "" && f.Bytes == 0 {
		return console.Usagef("--cache-dir %s needs --cache-bytes: the most that it may take on disk", f.Dir)
	}
	if f.Dir != "" && f.Bytes < leastCache {
		return console.Usagef("--cache-bytes is %d: it must be at least %d", f.Bytes, leastCache)
	}
	ref.Set(f.Dir, f.Bytes)
	return nil
}
