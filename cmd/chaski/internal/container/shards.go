package container

import (
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/ops/columns"
	"github.com/chaski-eo/chaski/store/taco/build"
)

// shardFlags has the flags of the forms mds and wds.
type shardFlags struct {
	size, compression, rasters string
	bySplit                    bool
}

func (f *shardFlags) add(fl *pflag.FlagSet) {
	flags.NonEmptyVar(fl, &f.size, "shard-size", "of mds and wds: the `SIZE` of a shard at most (default: 64MiB)")
	flags.NonEmptyVar(fl, &f.compression, "compression", "of mds: compress shards as a whole, `zstd[:LEVEL]`")
	flags.NonEmptyVar(fl, &f.rasters, "rasters",
		"of mds and wds: `FORM` of rasters, array (decoded pixels, default) or file (as they are)")
	fl.BoolVar(&f.bySplit, "by-split", false, "of mds and wds: a folder of shards for each value of the column split")
}

// defaultLevel is the level of zstd that MosaicML Streaming takes, and maxLevel the last.
const (
	defaultLevel = 3
	maxLevel     = 22
)

// maxShard is the largest shard: the offsets in one of MDS have 32 bits.
const maxShard = 1<<32 - 1

// into checks the flags, and sets how shards of a form are written.
func (f *shardFlags) into(s *build.Shards, form build.Form) error {
	if f.rasters != "" {
		if err := console.OneOf("rasters", f.rasters, "array", "file"); err != nil {
			return err
		}
	}
	switch {
	case !form.Shards() && (f.size+f.compression+f.rasters != "" || f.bySplit):
		return console.Usagef("--shard-size, --compression, --rasters and --by-split need --form mds or wds")
	case form != build.MDS && f.compression != "":
		return console.Usagef("--compression is for --form mds: compress the files in a tar instead")
	}
	s.BySplit = f.bySplit
	if f.rasters != "file" {
		s.Array = columns.Array
	}
	if f.size != "" {
		n, err := parseSize("shard-size", f.size)
		if err != nil {
			return err
		}
		if s.Bytes = n; n > maxShard {
			return console.Usagef("--shard-size is %s: it must be less than 4GiB", f.size)
		}
	}
	if f.compression == "" {
		return nil
	}
	name, level, given := strings.Cut(f.compression, ":")
	s.Level = defaultLevel
	if given {
		s.Level, _ = strconv.Atoi(level)
	}
	if name != "zstd" || s.Level < 1 || s.Level > maxLevel {
		return console.Usagef("--compression is %q: it must be zstd, or zstd:1 to zstd:%d", f.compression, maxLevel)
	}
	return nil
}

// unpacked is a folder beside OUT for shards that are decompressed, which is made when it is needed.
type unpacked struct {
	out  string
	once sync.Once
	dir  *durable.Folder
	err  error
}

// folder implements taco.Options.Unpack.
func (u *unpacked) folder() (string, error) {
	u.once.Do(func() { u.dir, u.err = durable.NewFolder(u.out) })
	if u.err != nil {
		return "", u.err
	}
	return u.dir.Path, nil
}

func (u *unpacked) remove() error {
	if u.dir == nil {
		return nil
	}
	return u.dir.Remove()
}
