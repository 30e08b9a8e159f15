package shards

import (
	"context"
	"crypto/md5"  //nolint:gosec // to compare, not to protect
	"crypto/sha1" //nolint:gosec // to compare, not to protect
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"hash"
	"maps"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// check is a hash of a shard.
type check struct{ name, want string }

// hashes are the algorithms that are compared, by their names in Python. MDS writers take one of these as a rule.
var hashes = map[string]func() hash.Hash{
	"md5": md5.New, "sha1": sha1.New, "sha224": sha256.New224, "sha256": sha256.New, "sha384": sha512.New384,
	"sha512": sha512.New, "xxh64": func() hash.Hash { return xxhash.New() },
}

// checks returns the hashes of a file, in the order of their names.
func (f *fileInfo) checks() (out []check) {
	for _, name := range slices.Sorted(maps.Keys(f.Hashes)) {
		out = append(out, check{name, f.Hashes[name]})
	}
	return out
}

// hashBytes is how much of a shard is hashed at a time.
const hashBytes = 1 << 20

// verify compares a shard with its hashes. Hashes of other algorithms are noted.
func (s *shard) verify(ctx context.Context, o source.Opener, r *model.Report) (err error) {
	var sums []hash.Hash
	var want []check
	for _, check := range s.check {
		if hashes[check.name] == nil {
			r.Note("%s: the hash %s is not compared", s.uri, check.name)
			continue
		}
		sums, want = append(sums, hashes[check.name]()), append(want, check)
	}
	if len(sums) == 0 {
		return nil
	}
	in, err := source.OpenKnown(ctx, o, s.uri, s.object)
	if err != nil {
		return fault.WithFile(err, s.uri)
	}
	defer func() {
		if cerr := in.Close(); err == nil {
			err = cerr
		}
		err = fault.WithFile(err, s.uri)
	}()
	data := make([]byte, min(hashBytes, in.Size()))
	for off := int64(0); off < in.Size(); off += int64(len(data)) {
		data = data[:min(int64(len(data)), in.Size()-off)]
		if err := in.ReadAt(ctx, data, off); err != nil {
			return err
		}
		for _, h := range sums {
			_, _ = h.Write(data) // a hash takes all
		}
	}
	for i, h := range sums {
		if got := hex.EncodeToString(h.Sum(nil)); got != want[i].want {
			return fault.New(fault.Corrupt, "shard", fault.NoOffset, "its %s is %s, and %s by its index", want[i].name,
				got, want[i].want)
		}
	}
	return nil
}
