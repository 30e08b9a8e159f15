package shards

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
)

// tarExtension is the extension of shards of WebDataset.
const tarExtension = ".tar"

// IsTarPattern reports whether a name stands for several tar files: "train-{000..146}.tar" or "train-*.tar".
func IsTarPattern(uri string) bool {
	base := uri[strings.LastIndexByte(uri, '/')+1:]
	return strings.HasSuffix(base, tarExtension) && strings.ContainsAny(base, "{*")
}

// bare returns the opener below a pool, which has the roots and the listings.
func bare(o source.Opener) source.Opener {
	if p, ok := o.(interface{ Unwrap() source.Opener }); ok {
		return p.Unwrap()
	}
	return o
}

// peekedNames is how many entries of a directory decide whether it is one of tar files: all of them would take a
// second of a directory of a million rasters.
const peekedNames = 64

// AreTars reports whether a name is a pattern of tar files, or a local directory of them. Notes about the shards may
// lie beside them.
func AreTars(o source.Opener, uri string) bool {
	if IsTarPattern(uri) || source.IsRemote(uri) {
		return IsTarPattern(uri)
	}
	names, err := source.RootsOf(bare(o)).Some(uri, peekedNames)
	shard := func(name string) bool { return strings.HasSuffix(name, tarExtension) }
	allowed := []string{tarExtension, ".json", ".txt", ".md", ".idx", ".csv", ".parquet"}
	other := func(name string) bool { return !slices.Contains(allowed, path.Ext(name)) }
	return err == nil && slices.ContainsFunc(names, shard) && !slices.ContainsFunc(names, other)
}

// tarsOf returns the tar files that a pattern or a directory stands for, in the order of their names.
func tarsOf(ctx context.Context, o source.Opener, uri string) (uris []string, err error) {
	dir, pattern := uri, "*"+tarExtension
	if IsTarPattern(uri) {
		if strings.Contains(uri, "{") {
			return braces(uri)
		}
		cut := strings.LastIndexByte(uri, '/') + 1
		dir, pattern = uri[:cut], uri[cut:]
	}
	names, err := source.Names(ctx, bare(o), strings.TrimRight(cmp.Or(dir, "."), "/"))
	slices.Sort(names)
	for _, name := range names {
		matches, merr := path.Match(pattern, name)
		if merr != nil {
			return nil, fault.New(fault.NotFound, "glob", fault.NoOffset, "%q is not a pattern", pattern)
		}
		if matches {
			uris = append(uris, source.Join(dir, name))
		}
	}
	if err == nil && uris == nil {
		err = fault.New(fault.NotFound, "glob", fault.NoOffset, "no tar file matches")
	}
	return uris, err
}

// maxTars limits the files that a pattern stands for. A million shards of the usual 64 MiB are 64 TB.
const maxTars = 1 << 20

// braces returns the names that the braces of a pattern stand for, as in a shell: "{000..146}" and "{a,b}".
func braces(pattern string) ([]string, error) {
	before, inner, found := strings.Cut(pattern, "{")
	if !found {
		return []string{pattern}, nil
	}
	inner, after, closed := strings.Cut(inner, "}")
	choices := strings.Split(inner, ",")
	if first, last, isRange := strings.Cut(inner, ".."); isRange {
		lo, err1 := strconv.ParseUint(first, 10, 31)
		hi, err2 := strconv.ParseUint(last, 10, 31)
		closed = closed && err1 == nil && err2 == nil && lo <= hi && hi-lo < maxTars
		choices = nil
		for n := lo; n <= hi && closed; n++ {
			choices = append(choices, fmt.Sprintf("%0*d", len(first), n))
		}
	}
	if !closed {
		return nil, fault.New(fault.NotFound, "braces", fault.NoOffset,
			"{%s is neither {a,b} nor a range such as {000..146} of at most %d files", inner, maxTars)
	}
	rest, err := braces(after)
	if err != nil {
		return nil, err
	}
	if len(choices)*len(rest) > maxTars {
		return nil, fault.New(fault.Limit, "braces", fault.NoOffset, "%q stands for over %d files", pattern, maxTars)
	}
	var names []string
	for _, choice := range choices {
		for _, tail := range rest {
			names = append(names, before+choice+tail)
		}
	}
	return names, nil
}
