package tiledb

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
)

// entries returns the names of the entries of a directory, sorted. Names of directories end in "/".
func entries(ctx context.Context, o source.Opener, uri string) ([]string, error) {
	names, err := openers.Names(ctx, o, uri)
	if err != nil {
		return nil, err
	}
	// Index pages written by hand may have no slash. Remote files of an array are never named like a fragment.
	for i, name := range names {
		isDir := isFragmentName(name) || name == schemasDir || name == fragmentsDir || name == commitsDir
		if isDir && source.IsRemote(uri) {
			names[i] = name + "/"
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// checkLinks refuses a local link that is named like a fragment and leads nowhere.
func checkLinks(o source.Opener, uri string, names []string) error {
	for _, name := range names {
		if source.IsRemote(uri) || !isFragmentName(name) {
			continue
		}
		// Leaving out a link that leads nowhere would silently lose cells.
		if _, err := openers.RootsOf(o).Stat(pathname.Join(source.LocalPath(uri), name)); err != nil {
			return fault.WithFile(fault.New(fault.Corrupt, "link",
				"a link named like a fragment leads nowhere: %v", err), uri+"/"+name)
		}
	}
	return nil
}

// isFragmentName reports whether a fragment of any format version may have this name.
func isFragmentName(name string) bool {
	_, err := parseName(name)
	return err == nil
}

// Is reports whether there is an array at a path. A remote one costs the request that opens the schema, and one that
// lists the directory of schemas. A URI with a query is no array.
func Is(ctx context.Context, o source.Opener, p source.Path) (bool, error) {
	if !p.Remote() {
		return isArray(p, openers.RootsOf(o)), nil
	}
	// Names below a URI with a query would become part of the query.
	if strings.Contains(p.Name, "?") {
		return false, nil
	}
	uri := strings.TrimSuffix(p.Name, "/")
	reader, err := o.Open(ctx, uri+"/"+schemaName)
	if err == nil {
		err = errors.Join(hasVersion(ctx, reader), reader.Close())
		return err == nil, source.Outage(err)
	}
	if source.Unreachable(err) {
		return false, err
	}
	names, err := openers.Names(ctx, o, uri+"/"+schemasDir)
	return err == nil && slices.ContainsFunc(names, isFragmentName), source.Outage(err)
}

// hasVersion returns an error if a file cannot be a schema, because it does not begin with the version of a format.
// Some servers send a page for every name.
func hasVersion(ctx context.Context, r source.Reader) error {
	const most = 1 << 16 // formats count up: the last one is below 30
	head, err := source.Read(ctx, r, 0, 4)
	if err != nil {
		return err
	}
	if v := binary.LittleEndian.Uint32(head); v == 0 || v > most {
		return errVersion(schemaName, 0, uint64(v))
	}
	return nil
}

// isArray reports whether a local directory holds an array.
func isArray(p source.Path, roots *openers.Roots) bool {
	path := p.Local()
	if st, err := roots.Stat(pathname.Join(path, schemaName)); err == nil && st.Mode().IsRegular() {
		return true
	}
	st, err := roots.Stat(pathname.Join(path, schemasDir))
	return err == nil && st.IsDir()
}
