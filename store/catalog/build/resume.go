package build

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
	"github.com/chaski-eo/chaski/store/catalog/internal/layout"
	"github.com/chaski-eo/chaski/store/catalog/internal/rowio"
)

// previousRows are the rows of an existing catalog.
type previousRows struct {
	name string
	f    *os.File
	*rowReader
}

// rowReader reads the rows of a catalog in order, once.
type rowReader struct {
	*rowio.Reader
	masks bool // chunk indexes include TIFF masks
}

// openRows opens a catalog of this version.
func openRows(ctx context.Context, r *io.SectionReader) (*rowReader, error) {
	table, err := columns.OpenParquet(ctx, sectionReader{r}, cacheBytes)
	if err != nil {
		return nil, err
	}
	if v := table.Meta(layout.VersionKey); v != layout.Version {
		return nil, fault.New(fault.Unsupported, "footer",
			"catalog version %q; this is version %s", v, layout.Version)
	}
	rows, err := rowio.NewReader(table)
	return &rowReader{rows, table.Meta(layout.MasksKey) == layout.MasksVersion}, err
}

// openPrevious opens an existing catalog, or returns nil if the file does not exist.
func openPrevious(ctx context.Context, name string) (*previousRows, error) {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	st, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	rows, err := openRows(ctx, io.NewSectionReader(file, 0, st.Size()))
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &previousRows{name, file, rows}, nil
}

// find puts the rows of some files into rows, unless rows has them already. The files must follow the files of earlier
// calls: both sides are in the order of their URIs.
func (p *previousRows) find(ctx context.Context, files []namedFile, rows map[string]rowio.Row) error {
	last := files[len(files)-1].uri
	for {
		row, err := p.Peek(ctx)
		if err != nil || row == nil || row.URI > last {
			return err
		}
		_, wanted := slices.BinarySearchFunc(files, row.URI, func(f namedFile, uri string) int {
			return strings.Compare(f.uri, uri)
		})
		if _, found := rows[row.URI]; wanted && !found && (p.masks || len(row.Index) == 0) {
			rows[row.URI] = *row
		}
		p.Skip()
	}
}
