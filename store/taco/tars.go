package taco

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/store/taco/internal/shards"
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
)

// tarExtension is the extension of shards of WebDataset.
const tarExtension = ".tar"

// isTarPattern reports whether a name stands for several tar files: "train-{000..146}.tar" or "train-*.tar".
func isTarPattern(uri string) bool {
	base := uri[strings.LastIndexByte(uri, '/')+1:]
	return strings.HasSuffix(base, tarExtension) && strings.ContainsAny(base, "{*")
}

// peekedNames is how many entries of a directory decide whether it is one of tar files: all of them would take a
// second of a directory of a million rasters.
const peekedNames = 64

// isTars reports whether a name is a pattern of tar files, or a local directory of them.
func isTars(_ context.Context, o source.Opener, uri string) bool {
	if isTarPattern(uri) {
		return true
	}
	if source.IsRemote(uri) {
		return false
	}
	names, err := source.RootsOf(bare(o)).Some(uri, peekedNames)
	shard := func(name string) bool { return strings.HasSuffix(name, tarExtension) }
	// Notes about the shards may lie beside them.
	notes := []string{".json", ".txt", ".md", ".idx", ".csv", ".parquet"}
	other := func(name string) bool { return !shard(name) && !slices.Contains(notes, path.Ext(name)) }
	return err == nil && slices.ContainsFunc(names, shard) && !slices.ContainsFunc(names, other)
}

// bare returns the opener below a pool.
func bare(o source.Opener) source.Opener {
	if p, ok := o.(interface{ Unwrap() source.Opener }); ok {
		return p.Unwrap()
	}
	return o
}

// openTars opens the tar files that a name stands for. r is the file itself, or nil.
func openTars(ctx context.Context, o source.Opener, uri string, r source.Reader) (*model.Container, error) {
	uris := []string{uri}
	var err error
	if r != nil {
		err = r.Close()
	} else {
		uris, err = tarsOf(ctx, o, uri)
	}
	if err != nil {
		return nil, fault.WithFile(err, uri)
	}
	return shards.OpenTars(ctx, o, uri, uris)
}

// tarsOf returns the tar files that a pattern or a directory stands for, in the order of their names.
func tarsOf(ctx context.Context, o source.Opener, uri string) ([]string, error) {
	dir, pattern := uri, "*"+tarExtension
	if isTarPattern(uri) {
		if strings.Contains(uri, "{") {
			return braces(uri)
		}
		cut := strings.LastIndexByte(uri, '/') + 1
		dir, pattern = uri[:cut], uri[cut:]
	}
	names, err := namesIn(ctx, o, dir)
	if err != nil {
		return nil, err
	}
	var uris []string
	for _, name := range names {
		matches, err := path.Match(pattern, name)
		if err != nil {
			return nil, fault.New(fault.NotFound, "glob", fault.NoOffset, "%q is not a pattern", pattern)
		}
		if matches {
			uris = append(uris, taco2.Join(dir, name))
		}
	}
	if uris == nil {
		return nil, fault.New(fault.NotFound, "glob", fault.NoOffset, "no tar file matches")
	}
	return uris, nil
}

// namesIn returns the names of the files in a directory, sorted.
func namesIn(ctx context.Context, o source.Opener, dir string) (names []string, err error) {
	if source.IsRemote(dir) {
		names, err = source.Names(ctx, bare(o), strings.TrimRight(dir, "/"))
		slices.Sort(names)
		return names, err
	}
	dir = cmp.Or(dir, ".")
	list, err := source.RootsOf(bare(o)).ReadDir(dir)
	if err != nil && source.Missing(err) {
		err = fault.Wrap(fault.NotFound, "directory", fault.NoOffset, err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names, err
}

// maxTars limits the files that a pattern stands for. A million shards of the usual 64 MiB are 64 TB.
const maxTars = 1 << 20

// braces returns the names that the braces of a pattern stand for, as in a shell: "{000..146}" and "{a,b}".
func braces(pattern string) ([]string, error) {
	open := strings.IndexByte(pattern, '{')
	if open < 0 {
		return []string{pattern}, nil
	}
	end := strings.IndexByte(pattern[open:], '}')
	if end < 0 {
		return nil, fault.New(fault.NotFound, "braces", fault.NoOffset, "%q has no } for a {", pattern)
	}
	inner, after := pattern[open+1:open+end], pattern[open+end+1:]
	var each []string
	if first, last, ok := strings.Cut(inner, ".."); ok {
		lo, err1 := strconv.ParseUint(first, 10, 31)
		hi, err2 := strconv.ParseUint(last, 10, 31)
		if err1 != nil || err2 != nil || lo > hi || hi-lo >= maxTars {
			return nil, fault.New(fault.NotFound, "braces", fault.NoOffset,
				"{%s} is not a range such as {000..146} of at most %d files", inner, maxTars)
		}
		for n := lo; n <= hi; n++ {
			each = append(each, fmt.Sprintf("%0*d", len(first), n))
		}
	} else {
		each = strings.Split(inner, ",")
	}
	rest, err := braces(after)
	if err != nil {
		return nil, err
	}
	if len(each)*len(rest) > maxTars {
		return nil, fault.New(fault.Limit, "braces", fault.NoOffset, "%q stands for over %d files", pattern, maxTars)
	}
	var names []string
	for _, name := range each {
		for _, tail := range rest {
			names = append(names, pattern[:open]+name+tail)
		}
	}
	return names, nil
}
