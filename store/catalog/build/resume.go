package build

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	pq "github.com/chaski-eo/chaski/format/tables/parquet"
	"github.com/chaski-eo/chaski/store/catalog/internal/layout"
	"github.com/chaski-eo/chaski/store/catalog/internal/rowio"
)

// previousRows reads the rows of an existing catalog in order, once.
type previousRows struct {
	name  string
	masks bool // its chunk indexes include TIFF masks
	f     *os.File
	rowReader
}

// rowReader reads the rows of a catalog.
type rowReader struct {
	r    *parquet.GenericReader[rowio.Row]
	next []rowio.Row // read, and not yet used
	buf  []rowio.Row
	end  bool
}

// openRows opens a file of Parquet that checkCatalog has checked.
func openRows(r io.ReaderAt, size int64) (*rowReader, error) {
	file, err := parquet.OpenFile(r, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, fault.Wrap(fault.Corrupt, "footer", err)
	}
	return &rowReader{r: parquet.NewGenericReader[rowio.Row](file), buf: make([]rowio.Row, 128)}, nil
}

// openPrevious opens an existing catalog, or returns nil if the file does not exist.
func openPrevious(ctx context.Context, name string) (p *previousRows, err error) {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer func() {
		if c := recover(); c != nil {
			err = previousFailed(c)
		}
		if err != nil {
			_ = file.Close()
		}
	}()
	st, err := file.Stat()
	if err != nil {
		return nil, err
	}
	masks, err := checkCatalog(ctx, io.NewSectionReader(file, 0, st.Size()))
	if err != nil {
		return nil, err
	}
	rows, err := openRows(file, st.Size())
	if err != nil {
		return nil, err
	}
	return &previousRows{name, masks, file, *rows}, nil
}

// checkCatalog checks that a file is a catalog of this version, and returns whether its indexes have masks. It uses
// this module's own Parquet reader, which does not trust files; only then is the library's, which panics on some, given
// the file.
func checkCatalog(ctx context.Context, r *io.SectionReader) (masks bool, err error) {
	file, err := pq.Open(ctx, sectionReader{r})
	if err != nil {
		return false, err
	}
	if v := file.Meta[layout.VersionKey]; v != layout.Version {
		return false, fault.New(fault.Unsupported, "footer",
			"catalog version %q; this is version %s", v, layout.Version)
	}
	return file.Meta[layout.MasksKey] == layout.MasksVersion, nil
}

func previousFailed(cause any) error {
	return fault.New(fault.Corrupt, "catalog", "the Parquet reader failed: %v", cause)
}

// find puts the rows of some files into rows, unless rows has them already. The files must follow the files of earlier
// calls: both sides are in the order of their URIs.
func (p *previousRows) find(files []namedFile, rows map[string]rowio.Row) (err error) {
	defer func() {
		if c := recover(); c != nil {
			err = previousFailed(c)
		}
	}()
	last := files[len(files)-1].uri
	for {
		for len(p.next) == 0 {
			if p.end {
				return nil
			}
			if err := p.read(); err != nil {
				return err
			}
		}
		row := &p.next[0]
		if row.URI > last {
			return nil
		}
		_, wanted := slices.BinarySearchFunc(files, row.URI, func(f namedFile, uri string) int {
			return strings.Compare(f.uri, uri)
		})
		if _, found := rows[row.URI]; wanted && !found && (p.masks || len(row.Index) == 0) {
			rows[row.URI] = *row
		}
		p.next = p.next[1:]
	}
}

// read fills next, which is empty, unless it is the end.
func (p *rowReader) read() error {
	clear(p.buf)
	n, err := p.r.Read(p.buf)
	switch {
	case errors.Is(err, io.EOF):
		p.end, err = true, nil
	case err == nil && n == 0:
		err = io.ErrNoProgress
	}
	if err != nil {
		return fault.Wrap(fault.Corrupt, "row", err)
	}
	p.next = p.buf[:n]
	// Copied, because the reader reuses its pages.
	for i := range p.next {
		r := &p.next[i]
		r.Index, r.Header, r.Transform = bytes.Clone(r.Index), bytes.Clone(r.Header), slices.Clone(r.Transform)
	}
	return nil
}

func (p *previousRows) close() error { return errors.Join(p.r.Close(), p.f.Close()) }
