package catalog

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/catalog/internal/layout"
	"github.com/chaski-eo/chaski/tiff"
)

// memberAt is a raster inside a container, as a row of a catalog describes it.
type memberAt struct {
	path           string
	offset, length int64
}

// member splits the URI of a member of a container into the container's URI and the member. Other URIs it returns as
// they are.
func (t *Table) member(ctx context.Context, f *field, row int64, uri string) (string, *memberAt, error) {
	if f.offset == nil {
		return uri, nil, nil
	}
	off, err := f.offset.Cell(ctx, row)
	if err != nil || off.Null {
		return uri, nil, err
	}
	cell, err := f.length.Cell(ctx, row)
	if err != nil {
		return uri, nil, err
	}
	container, path, ok := strings.Cut(uri, layout.MemberSeparator)
	if !ok || cell.Null || off.Int < 0 || cell.Int < 0 {
		return uri, nil, fault.New(fault.Corrupt, fmt.Sprintf("field %q row %d", f.name, row), fault.NoOffset,
			"%d bytes at %d of %q, which is not CONTAINER%sPATH", cell.Int, off.Int, uri, layout.MemberSeparator)
	}
	return container, &memberAt{path, off.Int, cell.Int}, nil
}

// asset makes the asset of a member from the asset of its container. The index has the member's own offsets; it is
// checked against the member's bytes, so that a raster cannot read its neighbours, and then shifted.
func (m *memberAt) asset(a Asset, maxChunk int) (Asset, error) {
	a.Member, a.Offset, a.Length = m.path, m.offset, m.length
	size := a.Size
	if size <= 0 { // not known
		size = math.MaxInt64
	}
	if m.offset > size || m.length > size-m.offset {
		return a, a.Fault(fault.New(fault.Corrupt, "", m.offset, "%d bytes in a file of %d", m.length, size))
	}
	maxChunk = cmp.Or(maxChunk, tiff.DefaultMaxChunk)
	if err := a.Index.Validate(m.length, maxChunk); err != nil {
		return a, a.Fault(err)
	}
	a.Index = a.Index.Shift(m.offset)
	return a, nil
}
