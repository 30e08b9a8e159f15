package tiledb

import (
	"context"
	"crypto/cipher"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"
	"golang.org/x/sync/errgroup"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/tiledb/filter"
)

// Defaults of Options.
const (
	DefaultMaxTile   = 256 << 20
	DefaultMaxResult = 2 << 30
)

// maxSchema bounds a decoded schema, in bytes.
const maxSchema = 64 << 20

// Options of Open. The zero value is ready.
type Options struct {
	// Key is the AES-256 key, 32 bytes, of an encrypted array. It is not looked at where the array is not.
	Key []byte
	// MaxTile is the largest decoded tile, in bytes. Default DefaultMaxTile.
	MaxTile int64
	// MaxResult is the most that one read gives, in bytes. Default DefaultMaxResult.
	MaxResult int64
	// Since and Until open the array at a time: the fragments that were written in between, in milliseconds since 1970, both
	// included, are those that there are. Of a consolidated one all of its time has to lie in between. Until 0
	// is no bound. Nothing is written to an array that was opened so.
	Since, Until uint64
}

// open reports whether fragments of some time count.
func (o *Options) open(from, to uint64) bool {
	return from >= o.Since && (o.Until == 0 || to <= o.Until)
}

func (o Options) withDefaults() Options {
	if o.MaxTile <= 0 {
		o.MaxTile = DefaultMaxTile
	}
	if o.MaxResult <= 0 {
		o.MaxResult = DefaultMaxResult
	}
	return o
}

// Array is an open array: what it held when it was opened. It is safe for concurrent use.
type Array struct {
	Schema *Schema
	// Fragments are those that count, in the order in which later ones win.
	Fragments []*Fragment
	// Hidden are those that a consolidated fragment replaces.
	Hidden []*Fragment

	uri   string
	store Store
	o     Options
	key   cipher.AEAD
	axes  []int  // 0, 1, …: the dimensions in their order
	under []bool // sparse fragments that lie under later dense ones
	mixed bool   // there are such
}

// Open reads the schema of the array in a folder, and the footers of its fragments. Faults name the
// file and, in the words of the format, the part. What is not an array is fault.NotFound; an encrypted
// array without a key is fault.Unsupported.
func Open(ctx context.Context, st Store, uri string, o Options) (*Array, error) {
	a := &Array{uri: strings.TrimRight(uri, "/"), store: st, o: o.withDefaults()}
	if a.uri == "" {
		a.uri = uri
	}
	if err := a.readSchema(ctx); err != nil {
		return nil, fault.WithFile(err, a.uri+"/"+schemaName)
	}
	a.axes = inOrder(len(a.Schema.Dims))
	if err := a.readFragments(ctx); err != nil {
		return nil, fault.WithFile(err, a.uri)
	}
	return a, nil
}

// inOrder returns 0, 1, … n-1.
func inOrder(n int) []int {
	axes := make([]int, n)
	for i := range axes {
		axes[i] = i
	}
	return axes
}

// URI returns where the array lies.
func (a *Array) URI() string { return a.uri }

func (a *Array) readSchema(ctx context.Context) error {
	r, err := a.store.Open(ctx, a.uri+"/"+schemaName)
	if fault.KindOf(err) == fault.NotFound {
		if names, err := a.store.Folders(ctx, a.uri); err == nil && slices.Contains(names, laterSchemas) {
			return a.later(ctx, a.uri+"/"+laterSchemas, laterSchemas)
		}
	}
	if err != nil {
		return err
	}
	defer r.Close()
	g, err := readGeneric(ctx, r, schemaPart, 0, r.Size(), min(maxSchema, a.o.MaxTile))
	if err != nil {
		return err
	}
	if g.encrypted {
		if a.o.Key == nil {
			return errNoKey(schemaPart)
		}
		if a.key, err = filter.NewKey(a.o.Key); err != nil {
			return err
		}
	}
	b, err := g.decode(filter.NewDecoder(a.key), schemaPart)
	if err != nil {
		return err
	}
	if a.Schema, err = parseSchema(b, a.o.MaxTile); err != nil {
		return err
	}
	if g.encrypted {
		a.Schema.encrypt()
	}
	return nil
}

// encrypt adds to every pipeline the filter that encrypted arrays have without saying so.
func (s *Schema) encrypt() {
	s.Encrypted = true
	last := filter.Filter{ID: filter.AES256GCM}
	s.Coords, s.Offsets = s.Coords.With(last), s.Offsets.With(last)
	for i := range s.Attrs {
		s.Attrs[i].Pipeline = s.Attrs[i].Pipeline.With(last)
	}
}

// maxOpens is how many fragments are opened at the same time: in an object store each takes a round trip or two.
const maxOpens = 16

// maxLists bounds how often the folder of an array is listed while fragments in it come and go.
const maxLists = 8

// readFragments opens the fragments. Where one that was listed is none, it may have been merged and removed meanwhile: then the list
// is old, if there is a fragment now that is not in it, and all of it is read again. So it is where a file went while one was read.
func (a *Array) readFragments(ctx context.Context) error {
	names, err := a.store.Folders(ctx, a.uri)
	if err != nil {
		return err
	}
	for range maxLists {
		missing, err := a.openAll(ctx, names)
		if err != nil && fault.KindOf(err) != fault.NotFound || err == nil && !missing {
			return err
		}
		now, err2 := a.store.Folders(ctx, a.uri)
		if err2 != nil {
			return err2
		}
		if !others(now, names) && (err == nil || !others(names, now)) {
			return err
		}
		names = now
	}
	return fault.New(fault.Unsupported, "listing", fault.NoOffset, "fragments come and go while it is opened")
}

// others reports whether there are fragments that are not in a list.
func others(names, list []string) bool {
	in := map[string]bool{}
	for _, name := range list {
		in[name] = true
	}
	return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "__") && !in[name] })
}

// openAll opens those of some fragments that are such; missing says that one is not.
func (a *Array) openAll(ctx context.Context, names []string) (missing bool, err error) {
	all, errs, tried := make([]*Fragment, len(names)), make([]error, len(names)), make([]bool, len(names))
	var g errgroup.Group
	g.SetLimit(maxOpens)
	for i, name := range names {
		if !strings.HasPrefix(name, "__") {
			continue
		}
		from, to, err := parseName(name)
		if err == nil && !a.o.open(from, to) {
			continue
		}
		tried[i] = err == nil
		g.Go(func() error {
			all[i], errs[i] = a.readFragment(ctx, a.uri+"/"+name, name)
			return nil
		})
	}
	_ = g.Wait()
	for i, err := range errs {
		if err != nil {
			return false, err
		}
		missing = missing || all[i] == nil && tried[i]
	}
	a.Fragments, a.Hidden = hide(slices.DeleteFunc(all, func(f *Fragment) bool { return f == nil }))
	a.findUnder()
	return missing, nil
}

// readFragment opens what lies in a folder, nil where that is no fragment.
func (a *Array) readFragment(ctx context.Context, uri, name string) (*Fragment, error) {
	if err := a.later(ctx, uri, name); err != nil {
		return nil, err
	}
	f, err := openFragment(ctx, a.store, uri, name, a.Schema)
	if fault.KindOf(err) == fault.NotFound {
		return nil, nil // a folder without metadata is no fragment: a write that did not end
	}
	from, to, err2 := parseName(name)
	if fault.KindOf(err2) == fault.Unsupported {
		return nil, fault.WithFile(err2, uri) // rather than what looks wrong in its metadata
	}
	if err != nil {
		return nil, err
	}
	if f.From, f.To = from, to; err2 != nil {
		return nil, fault.WithFile(err2, uri)
	}
	if !f.Dense && a.Schema.beforeEpoch() {
		return f, a.trust(ctx, f)
	}
	return f, nil
}

// Folders in which TileDB 2 keeps what it adds to an array of any format version.
const (
	laterFragments = "__fragments"
	laterSchemas   = "__schema"
)

// later refuses what TileDB 2 added to the array: without it what is read is not what the array holds.
func (a *Array) later(ctx context.Context, uri, name string) error {
	switch name {
	case laterSchemas:
		return fault.WithFile(fault.New(fault.Unsupported, schemaPart, fault.NoOffset, "it has a later format version than %d", Version), uri)
	case laterFragments:
		names, err := a.store.Folders(ctx, uri)
		if err != nil {
			return err
		}
		for _, name := range names {
			file := uri + "/" + name + "/" + metadataName
			switch r, err := a.store.Open(ctx, file); {
			case fault.KindOf(err) == fault.NotFound: // a write that did not end
			case err != nil:
				return fault.WithFile(err, file)
			default:
				r.Close()
				return fault.WithFile(fault.New(fault.Unsupported, "fragment", fault.NoOffset, "it has a later format version than %d", Version), file)
			}
		}
	}
	return nil
}

// trust widens the non-empty domain of a sparse fragment where its tree shows that it says nothing: see cursor.bounds.
func (a *Array) trust(ctx context.Context, f *Fragment) error {
	tree, err := a.rtree(ctx, f)
	if err != nil {
		return err
	}
	for d, wide := range tree.wide {
		if wide {
			f.NonEmpty[d] = a.Schema.Dims[d].Domain
		}
	}
	return nil
}

// NonEmpty returns the bounds of the cells that were written, inside of the domain; nil where there are none.
func (a *Array) NonEmpty() Box {
	var b Box
	for _, f := range a.Fragments {
		if b == nil {
			b = append(b, f.NonEmpty...)
		}
		for d, i := range f.NonEmpty {
			b[d] = Interval{min(b[d].Lo, i.Lo), max(b[d].Hi, i.Hi)}
		}
	}
	if b == nil {
		return nil
	}
	return b.cut(a.Schema.Domain()) // a dense fragment may reach past it: see denseGrid
}

// maxCovers bounds the pieces that Covers looks at.
const maxCovers = 256

// Covers reports whether every cell of a box was written, as far as dense fragments say so: it may miss it where
// the box is pieced together of very many.
func (a *Array) Covers(b Box) bool {
	left := maxCovers
	return a.covers(b, len(a.Fragments), &left)
}

// covers is Covers for the first n fragments.
func (a *Array) covers(b Box, n int, left *int) bool {
	if *left--; *left < 0 {
		return false
	}
	for n--; n >= 0; n-- {
		f := a.Fragments[n]
		if !f.Dense || !f.NonEmpty.intersects(b) {
			continue
		}
		// What sticks out on each side is for the others.
		rest := append(Box{}, b...)
		for d, i := range f.NonEmpty {
			if rest[d].Lo < i.Lo {
				out := append(Box{}, rest...)
				out[d].Hi = i.Lo - 1
				if !a.covers(out, n, left) {
					return false
				}
				rest[d].Lo = i.Lo
			}
			if rest[d].Hi > i.Hi {
				out := append(Box{}, rest...)
				out[d].Lo = i.Hi + 1
				if !a.covers(out, n, left) {
					return false
				}
				rest[d].Hi = i.Hi
			}
		}
		return true
	}
	return false
}

// Fingerprint returns 32 hexadecimal digits that depend on the schema, and on the names and sizes of the fragments
// that count and what they cover; not on where the array lies. It is the XXH3-128 of
//
//	"chaski array 1\n", the length of the schema's content and the content, the number of fragments,
//	and for each its name, with its length in front, the bounds of what it covers, and the bytes of each of
//	its files
//
// where numbers are 8 bytes, little-endian, and coordinates in their own type. What an encrypted array adds to
// pipelines is left out.
func (a *Array) Fingerprint() string {
	b := []byte("chaski array 1\n")
	number := func(n uint64) { b = binary.LittleEndian.AppendUint64(b, n) }
	s := a.Schema.append(nil)
	number(uint64(len(s)))
	b = append(b, s...)
	number(uint64(len(a.Fragments)))
	for _, f := range a.Fragments {
		number(uint64(len(f.Name)))
		b = append(b, f.Name...)
		for _, i := range f.NonEmpty {
			b = a.Schema.DimType.store(a.Schema.DimType.store(b, i.Lo), i.Hi)
		}
		for _, n := range slices.Concat(f.foot.sizes, f.foot.varSizes) {
			number(n)
		}
	}
	h := xxh3.Hash128(b)
	return fmt.Sprintf("%016x%016x", h.Hi, h.Lo)
}

// ParseBox reads "lo..hi,lo..hi", one interval a dimension, both ends included. Text of another form is an
// error without a kind, a box that is not inside the domain fault.NotFound.
func (s *Schema) ParseBox(text string) (Box, error) {
	parts := strings.Split(text, ",")
	if len(parts) != len(s.Dims) {
		return nil, fault.New(fault.NotFound, "sub-array", fault.NoOffset, "%d intervals for %d dimensions", len(parts), len(s.Dims))
	}
	box := make(Box, len(parts))
	for d, p := range parts {
		lo, hi, ok := strings.Cut(p, "..")
		if !ok {
			return nil, fmt.Errorf("sub-array: %q is not lo..hi", p)
		}
		var err error
		if box[d].Lo, err = s.DimType.ParseCoord(strings.TrimSpace(lo)); err == nil {
			box[d].Hi, err = s.DimType.ParseCoord(strings.TrimSpace(hi))
		}
		if err != nil {
			return nil, fmt.Errorf("sub-array: %w", err)
		}
	}
	return box, s.check(box)
}

// check wants a box inside the domain.
func (s *Schema) check(b Box) error {
	if len(b) != len(s.Dims) {
		return fault.New(fault.NotFound, "sub-array", fault.NoOffset, "%d intervals for %d dimensions", len(b), len(s.Dims))
	}
	for d, i := range b {
		dom := s.Dims[d].Domain
		if i.Lo > i.Hi || !dom.covers(i) {
			f := s.DimType.FormatCoord
			return fault.New(fault.NotFound, "sub-array", fault.NoOffset, "[%s, %s] is not inside dimension %q, [%s, %s]",
				f(i.Lo), f(i.Hi), s.Dims[d].Name, f(dom.Lo), f(dom.Hi))
		}
	}
	return nil
}
