package container

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
)

// leafRoots applies --where and --order-by to the samples of level 0, whose leaves are listed.
func (f *lsFlags) leafRoots(ctx context.Context, d *taco.Dataset, roots []int) ([]int, error) {
	if f.Where == "" && f.OrderBy == "" || d.Levels() == 0 {
		return roots, nil
	}
	table, err := d.Level(ctx, 0)
	if err == nil && roots == nil {
		roots, err = d.Visible(ctx, 0)
	}
	if err != nil {
		return nil, err
	}
	roots, err = flags.ChooseRows(ctx, table, roots, f.Where, f.OrderBy)
	return roots, fault.WithFile(err, d.Parts()[0])
}

// hasRow reports whether row is among rows, which need to ascend.
func hasRow(rows []int, row int) bool {
	_, ok := slices.BinarySearch(rows, row)
	return ok
}

// hashBytes is how much of a sample is read at once for its hash: 256 KiB stay in a processor's cache
// while they are hashed.
const hashBytes = 1 << 18

// Leaf is what --leaves prints.
type Leaf struct {
	Path   string `json:"path"`
	Offset *int64 `json:"offset"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256,omitempty"`
}

// listLeaves lists the samples that have bytes, below the samples of level 0 that the flags leave.
func (f *lsFlags) listLeaves(ctx context.Context, w io.Writer, files source.Opener, d *taco.Dataset,
	left taco.Selection) error {
	var roots []int // nil: all
	if left != nil {
		roots = left[0]
	}
	roots, err := f.leafRoots(ctx, d, roots)
	if err != nil {
		return err
	}
	buf := make([]byte, hashBytes)
	below := map[int][]int{} // the rows that --bbox and --datetime leave, by levels below 0
	count := 0
	print := func(e taco.Entry, err error) error {
		if err == nil && e.Level > 0 && len(left) > 1 {
			var in bool
			if in, err = isLeft(ctx, d, left, below, e); err == nil && !in {
				return nil
			}
		}
		if err != nil {
			return err
		}
		if count++; count <= f.Offset || f.Limit >= 0 && count > f.Offset+f.Limit {
			return nil
		}
		return f.listLeaf(ctx, w, files, e, buf)
	}
	if roots == nil {
		for e, err := range d.Leaves(ctx, f.padding) {
			if err := print(e, err); err != nil {
				return err
			}
		}
		return nil
	}
	for _, row := range roots {
		e, err := d.Entry(ctx, 0, row)
		if err != nil {
			return err
		}
		for e, err := range d.LeavesOf(ctx, e, f.padding) {
			if err := print(e, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// isLeft reports whether --bbox and --datetime leave a sample below level 0. known caches the rows of
// levels, since finding them reads a table.
func isLeft(ctx context.Context, d *taco.Dataset, left taco.Selection, known map[int][]int,
	e taco.Entry) (bool, error) {
	rows, ok := known[e.Level]
	if !ok {
		var err error
		if rows, err = d.RowsBelow(ctx, left, e.Level); err != nil {
			return false, err
		}
		known[e.Level] = rows
	}
	return hasRow(rows, e.Row), nil
}

// listLeaf prints one sample. It opens the sample only for its hash or size.
func (f *lsFlags) listLeaf(ctx context.Context, w io.Writer, files source.Opener, e taco.Entry, buf []byte) error {
	leaf := Leaf{Path: e.Path, Size: e.Size}
	if e.Offset != taco.Whole {
		leaf.Offset = &e.Offset
	}
	if f.sha256 || e.Size == taco.Whole {
		file, err := taco.Section(ctx, files, e)
		if err != nil {
			return err
		}
		leaf.Size = file.Size()
		if f.sha256 {
			leaf.SHA256, err = hashReader(ctx, file, buf)
		}
		if err = cmp.Or(err, file.Close()); err != nil {
			return err
		}
	}
	if f.format == "json" {
		return console.PrintJSON(w, leaf)
	}
	_, err := fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", console.Printable(leaf.Path), leaf.Size, leaf.SHA256,
		console.Printable(taco.VSI(e)))
	return err
}

// hashReader returns the SHA-256 of all bytes of r.
func hashReader(ctx context.Context, r source.Reader, buf []byte) (string, error) {
	hash := sha256.New()
	_, err := io.CopyBuffer(hash, source.Sequential(ctx, r, 0), buf)
	return hex.EncodeToString(hash.Sum(nil)), err
}
