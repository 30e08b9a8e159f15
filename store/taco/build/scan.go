package build

import (
	"context"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
)

// Scan returns the files of a local directory as samples, and its directories as folders of them, each in the order of
// the bytes of their names, which are the ids. Names that begin with "." are left out, and so are empty directories.
// Links to files are followed; links to directories are fault.Unsupported, because they may lead round in a circle.
//
// The files in skip are left out. Callers that write a container into dir name it there, so that a second run does not
// pack the container of the first.
func Scan(ctx context.Context, dir string, skip ...string) (*Tortilla, error) {
	s := scanner{}
	for _, name := range skip {
		if st, err := os.Lstat(name); err == nil { // it need not exist yet
			s.skip = append(s.skip, st)
		}
	}
	tortilla, err := s.scan(ctx, dir, 0)
	if err == nil && tortilla == nil {
		err = fault.New(fault.NotFound, "folder", fault.NoOffset, "has no files")
	}
	return tortilla, fault.WithFile(err, dir)
}

// scanner holds the files that are left out.
type scanner struct{ skip []fs.FileInfo }

// skips reports whether a file is left out.
func (s *scanner) skips(e fs.DirEntry) bool {
	if len(s.skip) == 0 {
		return false
	}
	st, err := e.Info()
	return err == nil && slices.ContainsFunc(s.skip, func(not fs.FileInfo) bool { return os.SameFile(st, not) })
}

func (s *scanner) scan(ctx context.Context, dir string, depth int) (*Tortilla, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if depth == taco2.MaxLevels {
		return nil, fault.New(fault.Limit, "folder "+strconv.Quote(dir), fault.NoOffset,
			"lies more than %d levels deep", taco2.MaxLevels)
	}
	entries, err := os.ReadDir(dir) // sorted
	if err != nil {
		return nil, err
	}
	tortilla := &Tortilla{}
	for _, entry := range entries {
		name := pathname.Join(dir, entry.Name())
		if strings.HasPrefix(entry.Name(), ".") || s.skips(entry) {
			continue
		}
		mode := entry.Type()
		if mode&os.ModeSymlink != 0 {
			st, err := os.Stat(name)
			if err != nil {
				return nil, err
			}
			if st.IsDir() {
				return nil, fault.New(fault.Unsupported, "file "+strconv.Quote(name), fault.NoOffset,
					"is a link to a directory")
			}
			mode = st.Mode()
		}
		switch {
		case mode.IsDir():
			below, err := s.scan(ctx, name, depth+1)
			if err != nil {
				return nil, err
			}
			if below != nil {
				tortilla.Samples = append(tortilla.Samples, Sample{ID: entry.Name(), Children: below})
			}
		case mode.IsRegular():
			tortilla.Samples = append(tortilla.Samples, Sample{ID: entry.Name(), File: name})
		default:
			return nil, fault.New(fault.Unsupported, "file "+strconv.Quote(name), fault.NoOffset,
				"is neither a file nor a directory")
		}
	}
	if len(tortilla.Samples) == 0 {
		return nil, nil
	}
	return tortilla, nil
}
