package verify

import (
	"context"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/each"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/visible"
	"github.com/chaski-eo/chaski/store"
)

// File is a file, container or array to check.
type File struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes,omitempty"` // as far as listing it told; not known for an array
}

// Part is the report of some of the files that Expand returned. Its JSON can be joined with others in another process.
type Part struct {
	Report            // without the notes of Names
	Names  []nameList `json:"names,omitempty"` // of the bands of rasters: notes compare all files
}

// Files checks count of the files that Expand returned, from first on.
func Files(ctx context.Context, all []File, first, count int, o Options) (*Part, error) {
	o, done := o.withDefaults()
	defer done()
	v := &verifier{o: o, files: o.Opener, total: count}
	work := func(ctx context.Context, _ int, numbers iter.Seq[int64]) error {
		w := newWorker(v)
		for i := range numbers {
			if err := w.file(ctx, first+int(i), all[first+int(i)].Path); err != nil {
				return err
			}
		}
		return nil
	}
	if err := each.Share(ctx, each.Numbers(int64(count)), o.Workers, work); err != nil {
		return nil, err
	}
	return v.part(), nil
}

// Add adds the part that has the next files. It lists at most maxFaults of the faults.
func (p *Part) Add(q *Part, maxFaults int) {
	p.Counts.Add(q.Counts)
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

// Expand returns what Paths checks, in the order in which it reports faults: directories among paths are replaced by
// their files, in the order of their names.
func Expand(ctx context.Context, paths []string, o Options) ([]File, error) {
	o, done := o.withDefaults()
	defer done()
	open := o.Opener
	var files []File
	for _, path := range paths {
		path = source.LocalPath(path)
		kind, err := store.Of(ctx, open, path)
		if err != nil {
			return nil, err
		}
		if source.IsRemote(path) {
			// A URI with the extension of a file is one file, and so is each URI of HTTP, which has no directories.
			if kind != store.Other || canVerify(path) || source.IsWeb(path) {
				files = append(files, File{Path: path})
				continue
			}
		} else if st, err := os.Stat(path); os.IsNotExist(err) && isParts(ctx, open, kind, path) {
			files = append(files, File{Path: path})
			continue
		} else if err == nil && (!st.IsDir() || kind != store.Other) {
			file := File{Path: path}
			if !st.IsDir() {
				file.Bytes = st.Size()
			}
			files = append(files, file)
			continue
		}
		before := len(files)
		err = visible.Each(ctx, open, path, func(found visible.Entry) error {
			switch {
			case found.Dir && isStore(ctx, open, found.Path):
				files = append(files, File{Path: found.Path})
				return fs.SkipDir
			case !found.Dir && canVerify(found.Name): // a link that leads nowhere is a fault of its name
				files = append(files, File{found.Path, found.Size})
			}
			return nil
		})
		if err == nil && len(files) == before {
			// A report without faults would suggest that something was checked.
			err = fault.WithFile(fault.New(fault.NotFound, "folder", "it has no files that can be verified"), path)
		}
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// isParts reports whether a name without a file stands for several.
func isParts(ctx context.Context, open source.Opener, kind store.Kind, path string) bool {
	lists, ok := kind.(store.Lists)
	return ok && lists.Parts(ctx, open, path)
}

// canVerify reports whether a name has the extension of a file that can be checked.
func canVerify(name string) bool {
	format := magic.Named(name)
	class := format.Class
	pixels := class.Pixels() && format != magic.NPZ
	whole := class == magic.Frame || class == magic.Container || format.Folder
	return pixels || whole ||
		strings.EqualFold(filepath.Ext(name), ".parquet") // others, such as .geoparquet, have shapes
}

// isStore reports whether a directory is an array or a container, which is checked as one. A directory that is two
// things at once counts: checking it has the error.
func isStore(ctx context.Context, open source.Opener, dir string) bool {
	kind, err := store.Of(ctx, open, dir)
	return err != nil || kind != store.Other
}
