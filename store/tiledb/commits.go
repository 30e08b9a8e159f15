package tiledb

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// arrayListing is the content of an array's directories: schemas, complete fragments, and the operations on them.
// Formats before 12 keep all in the array's directory, later ones in subdirectories; an array may have both.
type arrayListing struct {
	schemas    []schemaFile // the earliest first
	fragments  []fragmentDir
	conditions []string // the files of deletes and updates
	vacuums    []vacuumFile
}

// schemaFile is the file of a schema.
type schemaFile struct {
	name string // relative to the array
	from uint64
}

// fragmentDir is the directory of a fragment.
type fragmentDir struct {
	nameStamp        // fragments of version 0 need no file that says that they are complete
	dir, name string // dir is relative to the array, and ends with the name
	bad       error  // error about the name, if it may be a fragment of format 3
}

// vacuumFile lists the fragments that a consolidated one replaces.
type vacuumFile struct {
	nameStamp
	names []string
}

// maxCommitFile limits a file that lists commits, in bytes: some 700,000 fragments.
const maxCommitFile = 64 << 20

// arrayLister reads the directories of an array.
type arrayLister struct {
	a       *Array
	done    map[string]bool // names of fragments that are complete
	ignored map[string]bool // names of files of commits that no longer count
	deletes map[string]bool
	out     arrayListing
}

// readListing reads the directories of an array.
func (a *Array) readListing(ctx context.Context, names []string) (*arrayListing, error) {
	lister := &arrayLister{a: a, done: map[string]bool{}, ignored: map[string]bool{}, deletes: map[string]bool{}}
	if slices.Contains(names, schemaName) {
		lister.out.schemas = append(lister.out.schemas, schemaFile{name: schemaName})
	}
	if slices.Contains(names, schemasDir+"/") {
		if err := lister.schemas(ctx); err != nil {
			return nil, err
		}
	}
	var commits []string
	if slices.Contains(names, commitsDir+"/") {
		var err error
		if commits, err = entries(ctx, a.store, a.uri+"/"+commitsDir); err != nil {
			return nil, err
		}
	}
	// Files that say which others do not count come first, because the others are read by them.
	if err := lister.each(ctx, commits, commitsDir+"/", ignoreSuffix, lister.ignore); err != nil {
		return nil, err
	}
	if err := lister.each(ctx, commits, commitsDir+"/", commitsSuffix, lister.consolidated); err != nil {
		return nil, err
	}
	for _, part := range []struct {
		names []string
		dir   string
	}{{names, ""}, {commits, commitsDir + "/"}} {
		if err := lister.each(ctx, part.names, part.dir, vacuumSuffix, lister.vacuum); err != nil {
			return nil, err
		}
		for _, name := range part.names {
			lister.entry(name)
		}
	}
	lister.collect(names)
	return &lister.out, nil
}

func (l *arrayLister) schemas(ctx context.Context) error {
	names, err := entries(ctx, l.a.store, l.a.uri+"/"+schemasDir)
	if err != nil {
		return err
	}
	var list []schemaFile
	for _, name := range names {
		// Other files are ignored, as the format asks of readers.
		if s, err := parseName(name); err == nil && s.version == 0 {
			list = append(list, schemaFile{schemasDir + "/" + name, s.from})
		}
	}
	slices.SortFunc(list, func(a, b schemaFile) int {
		return cmp.Or(cmp.Compare(a.from, b.from), strings.Compare(a.name, b.name))
	})
	l.out.schemas = append(l.out.schemas, list...)
	return nil
}

// each reads the files with a suffix among names in a directory.
func (l *arrayLister) each(ctx context.Context, names []string, dir, suffix string,
	read func(name string, b []byte) error) error {
	for _, name := range names {
		if !strings.HasSuffix(name, suffix) {
			continue
		}
		uri := l.a.uri + "/" + dir + name
		content, err := source.ReadAll(ctx, l.a.store, uri, maxCommitFile)
		if err == nil {
			err = read(name, content)
		}
		if err != nil {
			return fault.WithFile(err, uri)
		}
	}
	return nil
}

// lastName returns the text after the last slash. Depending on the version, files name others by URI,
// by path below the array, or by name.
func lastName(line string) string { return line[strings.LastIndexByte(line, '/')+1:] }

func (l *arrayLister) ignore(_ string, b []byte) error {
	for line := range strings.Lines(string(b)) {
		l.ignored[lastName(strings.TrimSuffix(line, "\n"))] = true
	}
	return nil
}

// consolidated reads a file of commits: lines that name them, and after one that names a delete or an
// update, the length of its content and the content.
func (l *arrayLister) consolidated(_ string, b []byte) error {
	const part = "commits"
	for whole := b; len(b) > 0; {
		pos := int64(len(whole) - len(b))
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			return fault.At(fault.Corrupt, part, pos, "a line without an end")
		}
		name := lastName(string(b[:end]))
		b = b[end+1:]
		if strings.HasSuffix(name, deleteSuffix) || strings.HasSuffix(name, updateSuffix) {
			if len(b) < 8 || binary.LittleEndian.Uint64(b) > uint64(len(b)-8) {
				return fault.At(fault.Corrupt, part, pos, "the condition of %s passes the end of the file", name)
			}
			b = b[8+binary.LittleEndian.Uint64(b):]
		}
		if !l.ignored[name] {
			l.entry(name)
		}
	}
	return nil
}

// entry records a file of the commits directory.
func (l *arrayLister) entry(name string) {
	switch {
	case strings.HasSuffix(name, writeSuffix):
		l.done[strings.TrimSuffix(name, writeSuffix)] = true
	case strings.HasSuffix(name, okSuffix):
		l.done[strings.TrimSuffix(name, okSuffix)] = true
	case strings.HasSuffix(name, deleteSuffix), strings.HasSuffix(name, updateSuffix):
		s, err := parseName(name[:len(name)-len(deleteSuffix)])
		if err == nil && s.version > 0 && !l.deletes[name] && l.a.o.includes(s.from, s.to) {
			l.deletes[name] = true
			l.out.conditions = append(l.out.conditions, name)
		}
	}
}

func (l *arrayLister) vacuum(name string, b []byte) error {
	stamp, err := parseName(strings.TrimSuffix(name, vacuumSuffix))
	if err != nil {
		return nil // not the name of such a file
	}
	replaced := vacuumFile{nameStamp: stamp}
	for line := range strings.Lines(string(b)) {
		replaced.names = append(replaced.names, lastName(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "/")))
	}
	l.out.vacuums = append(l.out.vacuums, replaced)
	return nil
}

// collect lists the fragments that are complete.
func (l *arrayLister) collect(names []string) {
	for _, name := range names {
		name, isDir := strings.CutSuffix(name, "/")
		if !isDir || !strings.HasPrefix(name, "__") {
			continue
		}
		stamp, err := parseName(name)
		if stamp.version > 0 && !l.done[name] {
			continue
		}
		delete(l.done, name)
		l.out.fragments = append(l.out.fragments, fragmentDir{stamp, name, name, err})
	}
	for name := range l.done {
		stamp, err := parseName(name)
		if x, _ := formatOf(stamp.version); err == nil && x.commitsApart {
			l.out.fragments = append(l.out.fragments, fragmentDir{stamp, fragmentsDir + "/" + name, name, nil})
		}
	}
	slices.SortFunc(l.out.fragments, func(a, b fragmentDir) int {
		return cmp.Or(cmp.Compare(a.from, b.from), strings.Compare(a.name, b.name))
	})
}
