package listing

import (
	"cmp"
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
)

// maxPattern bounds the length of a glob. A path of Linux has at most 4 KiB, and a class such as [Aa] takes four bytes
// of the pattern for one of the path. Since a pattern costs its length for every name that it meets, a longer one would
// keep a core busy for no path.
const maxPattern = 16 << 10

// anyDirs is the part of a glob that matches any number of directories.
const anyDirs = "**"

// IsGlob reports whether a path has characters of a glob.
func IsGlob(s string) bool { return strings.ContainsAny(s, "*?[") }

// OtherCase returns a pattern with its ending in capitals, or in small letters if it is in capitals; "" of a pattern
// whose ending is no word. Systems other than Linux take both for one.
func OtherCase(pattern string) string {
	ending := path.Ext(pattern)
	other := strings.ToUpper(ending)
	if other == ending {
		other = strings.ToLower(ending)
	}
	if other == ending || strings.ContainsAny(ending, "*?[]{}/") {
		return ""
	}
	return strings.TrimSuffix(pattern, ending) + other
}

// glob is globbed with the way to files whose endings are in capitals, where no others match.
func glob(ctx context.Context, pattern string, r *openers.Roots, o source.Opener, wanted Files) (*Listing, error) {
	listing, err := globbed(ctx, pattern, r, o, wanted)
	if other := OtherCase(pattern); other != "" && fault.KindOf(err) == fault.NotFound {
		if found, failed := globbed(ctx, other, r, o, wanted); failed == nil {
			err = fault.New(fault.NotFound, "glob", "no file matches, but %d match %q: write that",
				len(found.Paths)+len(found.Shards), path.Base(other))
		}
	}
	return listing, err
}

// globbed lists the files that a pattern matches. "*" and "?" do not match "/", "**" as a whole part of the path
// matches any number of directories, "[a-z]" one character (path.Match).
func globbed(ctx context.Context, pattern string, r *openers.Roots, o source.Opener,
	wanted Files) (*Listing, error) {
	base, parts := splitLocal(pattern)
	file, prefix := "", "" // a tar that the glob names
	if tar, folder, ok := source.CutTar(filepath.ToSlash(base) + "/"); ok {
		if st, failed := r.Stat(tar); failed == nil && !st.IsDir() {
			file, prefix = tar, path.Base(tar)+"/"
			fixed := strings.Split(strings.TrimSuffix(prefix+folder, "/"), "/")
			base, parts = pathname.Dir(file), slices.Concat(fixed, parts)
		}
	}
	matcher, err := newMatcher(parts)
	if err != nil {
		return nil, err
	}
	listing := &Listing{Base: base, Roots: r, files: wanted}
	if file == "" {
		err = listing.walk(ctx, listing.Base, r, o, matcher)
	} else {
		err = listing.objects(ctx, o, source.TarName(file), prefix, matcher)
	}
	switch {
	case err != nil || len(listing.Shards) > 0 || len(listing.Paths) > 0:
	case listing.skippedPictures+listing.stores > 0:
		n, what := listing.skippedPictures, "PNG, JPEG, NumPy or VRT files"
		if n == 0 {
			n, what = listing.stores, "Zarr stores"
		}
		err = fault.New(fault.NotFound, "glob",
			"no TIFF and no rumi file matches, but %d %s: a glob that ends like one reads them", n, what)
	case wanted&AllFiles != 0:
		err = fault.New(fault.NotFound, "glob", "no file matches")
	default:
		err = cmp.Or[error](listing.notRead(), fault.New(fault.NotFound, "glob", "no raster file matches"))
	}
	return listing, err
}

// splitLocal returns the directory that a glob starts at, and the parts of the pattern below it.
func splitLocal(pattern string) (base string, parts []string) {
	pattern = filepath.ToSlash(pattern)
	parts = strings.Split(pattern, "/")
	fixed := 0
	for fixed < len(parts)-1 && !IsGlob(parts[fixed]) {
		fixed++
	}
	base = strings.Join(parts[:fixed], "/")
	if base == "" {
		base = "."
		if strings.HasPrefix(pattern, "/") {
			base = "/"
		}
	}
	return filepath.FromSlash(base), parts[fixed:]
}

// checkLength refuses a glob that is too long.
func checkLength(src string) error {
	if len(src) > maxPattern {
		return fault.New(fault.Limit, "glob", "the pattern has %d bytes: at most %d are allowed", len(src), maxPattern)
	}
	return nil
}

// globMatcher matches paths with a glob, one part of the path after the other. It keeps how far the pattern reaches at
// each directory of the last path, so a directory is matched once for all files below it: a name costs at most the
// length of the pattern, however deep it lies.
type globMatcher struct {
	pattern []string
	path    []string // the last path
	// reach[d] are the numbers of leading parts of pattern that match the first d parts of path, in rising order.
	reach [][]int32
	steps int // parts of the pattern that were compared with a name, for tests
}

// newMatcher returns a matcher of the parts of a glob. The error is about a part that is not a pattern.
func newMatcher(parts []string) (*globMatcher, error) {
	// "**/**" is "**": repeated, each would be a step for every name.
	parts = slices.CompactFunc(slices.Clone(parts), func(a, b string) bool { return a == anyDirs && b == anyDirs })
	for _, p := range parts {
		if _, err := path.Match(p, ""); err != nil {
			return nil, fault.New(fault.NotFound, "glob", "%q is not a pattern", p)
		}
	}
	m := &globMatcher{pattern: parts, reach: make([][]int32, 1)}
	m.reach[0] = m.extend(nil, 0)
	return m, nil
}

// extend appends the position at to to, and those that follow it without a part of the path.
func (m *globMatcher) extend(to []int32, at int) []int32 {
	for {
		if n := len(to); n == 0 || to[n-1] < int32(at) {
			to = append(to, int32(at))
		}
		if at == len(m.pattern) || m.pattern[at] != anyDirs {
			return to
		}
		at++
	}
}

// match reports whether the pattern matches a path, and whether it can match a path below it.
func (m *globMatcher) match(p string) (whole, below bool) {
	parts := strings.Split(p, "/")
	same := 0
	for same < min(len(parts), len(m.path)) && parts[same] == m.path[same] {
		same++
	}
	m.path = parts
	m.reach = m.reach[:same+1]
	for _, name := range parts[same:] {
		m.reach = append(m.reach, m.step(m.reach[len(m.reach)-1], name))
	}
	last := m.reach[len(parts)]
	n := len(last)
	whole = n > 0 && int(last[n-1]) == len(m.pattern)
	return whole, n > 0 && int(last[0]) < len(m.pattern)
}

// step returns the positions of the pattern after one more part of the path.
func (m *globMatcher) step(from []int32, name string) (to []int32) {
	for _, pos := range from {
		if int(pos) == len(m.pattern) {
			break
		}
		m.steps++
		if m.pattern[pos] == anyDirs {
			to = m.extend(to, int(pos))
		} else if ok, _ := path.Match(m.pattern[pos], name); ok {
			to = m.extend(to, int(pos)+1)
		}
	}
	return to
}
