package remote

import (
	"cmp"
	"fmt"
	"time"

	"github.com/chaski-eo/chaski/source/diskcache"
)

// Defaults of Options.
const (
	DefaultAttempts    = 5
	DefaultBackoff     = 100 * time.Millisecond
	DefaultMaxBackoff  = 5 * time.Second
	DefaultTimeout     = 10 * time.Second
	DefaultMinRate     = 256 << 10
	DefaultStall       = 3 * time.Second
	DefaultConcurrency = 1280
	DefaultRetryBurst  = 32
	DefaultRetryShare  = 0.1
	DefaultBlock       = 64 << 10
	DefaultCacheBytes  = 32 << 20
	DefaultFresh       = time.Minute
	DefaultMaxWhole    = 64 << 20
	DefaultWholeBytes  = 256 << 20
)

// Options are the policy of an Opener. The zero value is the default. They do not change the bytes
// that are read.
type Options struct {
	// Attempts limits the requests for one range. Default DefaultAttempts.
	Attempts int
	// Backoff limits the wait before the second attempt. The limit doubles with each attempt up to
	// MaxBackoff. The wait is random between 0 and the limit, so many clients do not retry at
	// the same moment. Defaults DefaultBackoff, DefaultMaxBackoff.
	Backoff, MaxBackoff time.Duration
	// Timeout is the time limit of an attempt, extended by the time that its bytes take at MinRate
	// bytes a second. Defaults DefaultTimeout, DefaultMinRate.
	Timeout time.Duration
	MinRate int64
	// Stall is how long a response that has begun may go without a byte, until it is asked for again. Default
	// DefaultStall: TCP sends a lost packet again after 0.2 s, and twice as long each time.
	Stall time.Duration
	// Concurrency limits the simultaneous requests to one host. Default DefaultConcurrency: 1280 of 8 KiB over 100 ms
	// bring 105 MB/s. The bytes in flight are limited by what the link holds.
	Concurrency int
	// RetryBurst and RetryShare limit the retries of a host, so they do not make an outage
	// worse: RetryBurst retries, and then RetryShare for each request that succeeds. Defaults
	// DefaultRetryBurst, DefaultRetryShare.
	RetryBurst int
	RetryShare float64
	// Block is the size in bytes of reads that fetch more than a small range: the head of an object
	// when it is opened, its tail, or the bytes after the range. Default DefaultBlock.
	Block int
	// CacheBytes limits the memory of such blocks that are kept after use. Fresh is how long an
	// object counts as unchanged without a request. Defaults DefaultCacheBytes, DefaultFresh.
	CacheBytes int64
	Fresh      time.Duration
	// MaxWhole is the largest object in bytes that is read as a whole if a server has no byte
	// ranges; below 0 means none. WholeBytes limits the memory of such objects in the cache, which
	// drops the least recently used; one more is in memory while it is read. A dropped object is
	// read again as a whole when it is needed. Defaults DefaultMaxWhole, DefaultWholeBytes.
	MaxWhole   int64
	WholeBytes int64
	// Disk keeps ranges of objects that have an entity tag or a time of change. Default: none.
	Disk *diskcache.Ref
	// Gap is the gap of readers; see source.Gapped. Default: round trip × rate ÷ requests in flight, as measured, from
	// source.MinGap to source.MaxGap; StartGap before the first answers, and with a cache on disk.
	Gap int64
}

func (o Options) withDefaults() Options {
	o.Attempts = cmp.Or(o.Attempts, DefaultAttempts)
	o.Backoff = cmp.Or(o.Backoff, DefaultBackoff)
	o.MaxBackoff = cmp.Or(o.MaxBackoff, DefaultMaxBackoff)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.MinRate = cmp.Or(o.MinRate, DefaultMinRate)
	o.Stall = cmp.Or(o.Stall, DefaultStall)
	o.Concurrency = cmp.Or(o.Concurrency, DefaultConcurrency)
	o.RetryBurst = cmp.Or(o.RetryBurst, DefaultRetryBurst)
	o.RetryShare = cmp.Or(o.RetryShare, DefaultRetryShare)
	o.Block = cmp.Or(o.Block, DefaultBlock)
	o.CacheBytes = cmp.Or(o.CacheBytes, DefaultCacheBytes)
	o.Fresh = cmp.Or(o.Fresh, DefaultFresh)
	o.MaxWhole = cmp.Or(o.MaxWhole, DefaultMaxWhole)
	o.WholeBytes = cmp.Or(o.WholeBytes, DefaultWholeBytes)
	return o
}

func (o Options) validate() error {
	switch {
	case o.Attempts < 1 || o.Concurrency < 1 || o.RetryBurst < 0 || o.RetryShare < 0:
		return fmt.Errorf("remote: %d attempts, %d at a time, %d and %v tried again", o.Attempts, o.Concurrency,
			o.RetryBurst, o.RetryShare)
	case min(o.Backoff, o.MaxBackoff, o.Fresh) < 0 || o.Timeout <= 0 || o.MinRate < 1:
		return fmt.Errorf("remote: a time or rate below 0, or no timeout")
	case o.Block < 1 || o.Block > 1<<30 || min(o.CacheBytes, o.Gap, o.WholeBytes) < 0:
		return fmt.Errorf("remote: blocks of %d bytes, %d kept, %d of whole objects, gaps of %d", o.Block,
			o.CacheBytes, o.WholeBytes, o.Gap)
	}
	return nil
}
