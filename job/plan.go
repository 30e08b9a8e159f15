package job

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/resources"
)

// PlanOptions say how a job is divided.
type PlanOptions struct {
	// Shards is how many shards there are. 0: as many as the other options need.
	Shards int
	// ShardItems and ShardBytes are the most items of a shard, and the most bytes that it reads unless it has one item.
	// 0: DefaultShardItems and DefaultShardBytes.
	ShardItems int
	ShardBytes int64
}

const (
	// DefaultShardItems is the most items of a shard unless PlanOptions say something else: of chips that decode in a
	// millisecond, some ten seconds, beside which the start of a process is short.
	DefaultShardItems = 10_000
	// DefaultShardBytes is the most bytes that a shard reads unless PlanOptions say something else: a minute of a
	// machine that reads and decodes 70 MB/s of stored bytes.
	DefaultShardBytes = 4 << 30
	// itemBytes is the cost of an item beside its bytes, in bytes: a link of 100 MB/s moves 1 MB while a request waits
	// 10 ms.
	itemBytes = 1 << 20
)

// Plan writes a new job into a folder of a file system, which must not hold one.
func Plan(ctx context.Context, path string, k Kind, o PlanOptions, r resources.Options) (*Job, error) {
	return PlanIn(ctx, Dir(path), k, o, r)
}

// PlanIn is Plan for any folder.
func PlanIn(ctx context.Context, f Folder, k Kind, o PlanOptions, r resources.Options) (j *Job, err error) {
	switch found, err := f.exists(ctx, manifestName); {
	case err != nil:
		return nil, err
	case found:
		return nil, errThere(f.name(manifestName))
	}
	items, err := k.Items(ctx, r)
	if err != nil {
		return nil, err
	}
	if items.Close != nil {
		defer func() { err = errors.Join(err, items.Close()) }()
	}
	if items.Count < 1 {
		return nil, fault.New(fault.NotFound, "dataset", fault.NoOffset, "nothing to do")
	}
	manifest := Manifest{Version: Version, Kind: k.Name(), Items: items.Count, Bytes: items.Bytes}
	list, err := newListWriter()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, list.close()) }()
	if manifest.Shards, err = divide(ctx, items, o, list); err != nil {
		return nil, err
	}
	if manifest.Work, err = json.Marshal(k); err != nil {
		return nil, err
	}
	if notText(manifest.Work) {
		return nil, fault.New(fault.Unsupported, "job", fault.NoOffset, "a name in the work is not UTF-8")
	}
	if items.Lists {
		manifest.List = list.name()
	}
	buf, err := json.Marshal(manifest)
	if err != nil {
		return nil, err
	}
	kinds := Kinds{k.Name(): func() Kind { return k }}
	// A job that cannot be opened must not be written.
	if err := new(Job).parse(buf, kinds); err != nil {
		return nil, err
	}
	if err := f.prepare(ctx); err != nil {
		return nil, err
	}
	if manifest.List != "" {
		if err := f.write(ctx, manifest.List, list.copyTo); err != nil {
			return nil, err
		}
	}
	// The manifest comes last, and of two plans at once the first one's stays.
	switch err := f.create(ctx, manifestName, append(buf, '\n')); {
	case errors.Is(err, fs.ErrExist):
		return nil, errThere(f.name(manifestName))
	case err != nil:
		return nil, err
	}
	return OpenIn(ctx, f, kinds)
}

// divide returns the shards of the items, and lists the bodies of each.
func divide(ctx context.Context, items Items, o PlanOptions, list *listWriter) ([]Shard, error) {
	sized := o.ShardItems > 0 || o.ShardBytes > 0
	if o.Shards < 0 || o.ShardItems < 0 || o.ShardBytes < 0 || o.Shards > 0 && sized {
		return nil, fmt.Errorf("job: %d shards of at most %d items and %d bytes: one of both is needed", o.Shards,
			o.ShardItems, o.ShardBytes)
	}
	d := &divider{items: items, list: list, n: min(int64(o.Shards), items.Count),
		most: int64(cmp.Or(o.ShardItems, DefaultShardItems)), mostBytes: cmp.Or(o.ShardBytes, DefaultShardBytes)}
	each := items.Each
	if each == nil {
		each = func(_ context.Context, add func(Item) error) error {
			for range items.Count {
				if err := add(Item{}); err != nil {
					return err
				}
			}
			return nil
		}
	}
	if err := each(ctx, d.add); err != nil {
		return nil, err
	}
	if seen := d.now.First + d.now.Count; seen != items.Count || d.bytes != items.Bytes {
		return nil, fault.New(fault.Corrupt, "dataset", fault.NoOffset,
			"it changed meanwhile: %d items of %d bytes, and %d of %d before", seen, d.bytes, items.Count, items.Bytes)
	}
	return d.shards, d.end()
}

// divider cuts a stream of items into shards.
type divider struct {
	items     Items
	list      *listWriter
	n         int64 // shards of equal cost; 0: the limits decide
	most      int64
	mostBytes int64

	shards []Shard
	now    Shard
	bytes  int64 // of the items so far
}

// add adds the next item.
func (d *divider) add(it Item) error {
	if it.Bytes < 0 || it.Bytes > math.MaxInt64-d.bytes {
		return corrupt("an item has %d bytes", it.Bytes)
	}
	if d.full(it) {
		if err := d.end(); err != nil {
			return err
		}
	}
	if len(d.shards) >= MaxShards {
		return fault.New(fault.Limit, "job", fault.NoOffset, "more than %d shards", MaxShards)
	}
	d.bytes += it.Bytes
	d.now.Count++
	d.now.Bytes += it.Bytes
	if d.items.Lists {
		return d.list.add(it.Body)
	}
	return nil
}

// full reports whether the current shard has no room for an item.
func (d *divider) full(it Item) bool {
	switch {
	case d.now.Count == 0:
		return false
	case d.n == 0:
		return d.now.Count >= d.most || d.now.Bytes+it.Bytes > d.mostBytes
	}
	seen, done := d.now.First+d.now.Count, int64(len(d.shards))+1 // with the current one
	if done == d.n {
		return false
	}
	cost := float64(d.bytes) + itemBytes*float64(seen)
	total := float64(d.items.Bytes) + itemBytes*float64(d.items.Count)
	// Each later shard needs an item, however much the first ones cost.
	return cost*float64(d.n) >= total*float64(done) || d.items.Count-seen <= d.n-done
}

// end ends the current shard.
func (d *divider) end() (err error) {
	shard := d.now
	if d.items.Lists {
		if shard.Offset, shard.Length, shard.Sum, err = d.list.cut(); err != nil {
			return err
		}
	}
	d.shards = append(d.shards, shard)
	d.now = Shard{First: shard.First + shard.Count}
	return nil
}
