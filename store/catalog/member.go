package catalog

import (
	"cmp"
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
func (r *rowReader) member(f *field, uri string) (string, *memberAt) {
	offset := r.cell(f.columns[layout.Offset])
	if offset.Null {
		return uri, nil
	}
	length := r.cell(f.columns[layout.Length])
	container, path, ok := strings.Cut(uri, layout.MemberSeparator)
	if !ok || length.Null || offset.Int < 0 || length.Int < 0 {
		r.fail(fault.Corrupt, "%d bytes at %d of %q, which is not CONTAINER%sPATH", length.Int, offset.Int, uri,
			layout.MemberSeparator)
	}
	return container, &memberAt{path, offset.Int, length.Int}
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
