package verify

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/taco"
)

// File is a file, container or array to check.
type File struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes,omitempty"` // as far as listing it told; not known for an array
}

// Expand returns what Paths checks, in the order in which it reports faults.
func Expand(ctx context.Context, paths []string, o Options) ([]File, error) {
	if o.Opener == nil {
		files := &source.Files{}
		defer files.Close()
		o.Opener = files
	}
	return expand(ctx, o.Opener, paths)
}

// Part is the report of some of the files that Expand returned. Its JSON can be joined with others in another process.
type Part struct {
	Report            // without the notes of Names
	Names  []nameList `json:"names,omitempty"` // of the bands of rasters: notes compare those of all files
}

// Files checks count of the files that Expand returned, from first on.
func Files(ctx context.Context, all []File, first, count int, o Options) (*Part, error) {
	o = o.withDefaults()
	if o.Opener == nil {
		files := &source.Files{}
		defer files.Close()
		o.Opener = files
	}
	part, err := files(ctx, all[first:first+count], o)
	if err != nil {
		return nil, err
	}
	for i := range part.Names {
		part.Names[i].File += first
	}
	return part, nil
}

// Add adds the part of the files that come after those of p. It lists at most maxFaults of the faults.
func (p *Part) Add(q *Part, maxFaults int) {
	p.add(&q.Report)
	p.Notes = append(p.Notes, q.Notes...)
	p.Faulty += q.Faulty
	p.Faults = append(p.Faults, q.Faults[:max(0, min(len(q.Faults), maxFaults-len(p.Faults)))]...)
	names := nameLists{p.Names}
	for _, list := range q.Names {
		names.insert(list)
	}
	p.Names = names.lists
}

// Whole returns the report, if p is of all files.
func (p *Part) Whole() *Report {
	report := p.Report
	report.Notes = append(report.Notes, (&nameLists{p.Names}).notes()...)
	return &report
}

// add adds the counts of what was checked.
func (r *Report) add(q *Report) {
	r.Files += q.Files
	r.Arrays += q.Arrays
	r.Rows += q.Rows
	r.Chunks += q.Chunks
	r.Bytes += q.Bytes
	r.Containers += q.Containers
	r.Samples += q.Samples
	r.Absent += q.Absent
	r.AbsentChunks += q.AbsentChunks
}

// sizeOf returns the size of a file, and 0 for a directory.
func sizeOf(st fs.FileInfo) int64 {
	if st.IsDir() {
		return 0
	}
	return st.Size()
}

// expand replaces the directories among paths by their files, in the order of their names.
func expand(ctx context.Context, open source.Opener, paths []string) ([]File, error) {
	var files []File
	for _, p := range paths {
		p = source.LocalPath(p)
		kind, err := store.Of(ctx, open, p)
		if err != nil {
			return nil, err
		}
		if source.IsRemote(p) && kind != store.Other {
			files = append(files, File{Path: p})
			continue
		}
		if source.IsRemote(p) {
			some, err := expandRemote(ctx, p, open)
			if err != nil {
				return nil, err
			}
			files = append(files, some...)
			continue
		}
		st, err := os.Stat(p)
		if os.IsNotExist(err) && kind == store.Container && taco.IsSet(ctx, open, p) {
			files = append(files, File{Path: p})
			continue
		}
		if err != nil {
			kind := fault.Unsupported
			if os.IsNotExist(err) {
				kind = fault.NotFound
			}
			var system *fs.PathError
			if errors.As(err, &system) {
				err = system.Err // its text would repeat the path
			}
			return nil, fault.WithFile(fault.Wrap(kind, "file", fault.NoOffset, err), p)
		}
		if !st.IsDir() || kind != store.Other {
			files = append(files, File{p, sizeOf(st)})
			continue
		}
		before := len(files)
		err = source.WalkDir(p, func(name string, d fs.DirEntry, err error) error {
			switch {
			case fault.KindOf(err) != 0:
				return err
			case err != nil:
				return fault.WithFile(fault.Wrap(fault.Unsupported, "folder", fault.NoOffset, err), name)
			case ctx.Err() != nil:
				return ctx.Err()
			case name != p && strings.HasPrefix(d.Name(), "."):
				if d.IsDir() {
					return fs.SkipDir
				}
			case d.IsDir() && isStore(ctx, open, name):
				files = append(files, File{Path: name})
				return fs.SkipDir
			// a link that leads nowhere is a fault of its name
			case d.Type().IsRegular() && known(name), d.Type()&fs.ModeSymlink != 0 && known(name):
				st, err := os.Stat(name)
				files = append(files, File{name, 0})
				if err == nil {
					files[len(files)-1].Bytes = sizeOf(st)
				}
			}
			return nil
		})
		if err == nil && len(files) == before {
			err = errNothing(p)
		}
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// expandRemote lists the files of a remote directory. A URI with the extension of a file is one file, and so is each
// URI of HTTP, which has no directories.
func expandRemote(ctx context.Context, uri string, o source.Opener) ([]File, error) {
	if s := source.Scheme(uri); known(uri) || s == "http" || s == "https" {
		return []File{{Path: uri}}, nil
	}
	dir := strings.TrimRight(uri, "/")
	var files []File
	err := source.List(ctx, o, dir, func(e source.Entry) error {
		if known(e.Path) && !strings.HasPrefix(e.Path, ".") && !strings.Contains(e.Path, "/.") {
			files = append(files, File{dir + "/" + e.Path, e.Size})
		}
		return nil
	})
	if err == nil && len(files) == 0 {
		err = errNothing(uri)
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files, err
}

// known reports whether a name has the extension of a file that can be checked.
func known(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".tif", ".tiff", ".rumi", ".zl", ".parquet", ".tacozip", ".taco", ".tortilla":
		return true
	}
	return false
}

// isStore reports whether a directory is an array or a container, which is checked as one. A directory that is two
// things at once counts: checking it has the error.
func isStore(ctx context.Context, open source.Opener, dir string) bool {
	kind, err := store.Of(ctx, open, dir)
	return err != nil || kind != store.Other
}
