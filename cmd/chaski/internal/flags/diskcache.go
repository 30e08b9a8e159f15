package flags

import (
	"os"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/source/diskcache"
)

// CacheVariable and CacheBytesVariable are the environment variables of --cache-dir and --cache-bytes. Python starts
// engines without these flags.
const (
	CacheVariable      = "CHASKI_CACHE_DIR"
	CacheBytesVariable = "CHASKI_CACHE_BYTES"
)

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
	ref.Set(f.Dir, f.Bytes)
	return nil
}
