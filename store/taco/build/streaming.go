package build

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/internal/tortilla"
	"github.com/chaski-eo/chaski/tiff"
)

// chunkRows are the rows of the tiles of a streaming TACO, in the order of the files.
type chunkRows struct {
	ids, roots []string
	spans      []span
}

// add adds the tiles of a file whose bytes begin at an offset of the container.
func (c *chunkRows) add(ctx context.Context, levels []*Level, p place, l *loaded, at int64) error {
	index, err := tiles(ctx, l, inHistogram(p))
	if err != nil {
		return fault.WithPart(err, fmt.Sprintf("sample %q", p.path), fault.NoOffset)
	}
	id, root := levels[p.level].Rows[p.row].ID, rootOf(levels, p.level, p.row)
	for k, r := range taco.FileOrder(index) {
		c.ids, c.roots = append(c.ids, id+"::"+strconv.Itoa(k)), append(c.roots, root)
		c.spans = append(c.spans, span{Off: at + r.Off, Size: r.Len})
	}
	return nil
}

// inHistogram reports whether a file is one of the histograms, which have strips in place of tiles.
func inHistogram(p place) bool {
	top, _, below := strings.Cut(p.path, "/")
	return below && top == tortilla.HistogramID
}

// rootOf returns the value of tortilla:root of a row: the path of its folder, or at level 0 its own id.
func rootOf(levels []*Level, k, row int) string {
	if k > 0 {
		k, row = k-1, int(levels[k].Rows[row].Parent)
	}
	return path(levels, k, row)
}

// tiles returns the index of a file, which must be a TOG, or any TIFF if it is a histogram.
func tiles(ctx context.Context, l *loaded, histogram bool) (*chunk.Index, error) {
	im, err := tiff.Open(ctx, l.open(), tiff.Limits{})
	if err != nil {
		failed := unsupported("file",
			"is not a TOG, and a streaming TACO has no other files: "+
				"see 'chaski convert --to tog', or write a plain TACO")
		failed.Err = err
		return nil, failed
	}
	if x := im.Index; !histogram && (!im.Meta.Tiled || x.Codec != chunk.Zstd || x.ChunkB != 1 || x.BigEndian) {
		return nil, unsupported("file",
			"is a TIFF but not a TOG, which has zstd tiles of one band each: see 'chaski convert --to tog'")
	}
	return im.Index, nil
}
