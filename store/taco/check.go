package taco

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store"
)

// Verify implements store.Verifier: it checks a container, and the pixels of its samples if Check.Pixels asks for
// them, or if nothing else would find a changed bit in them.
func (Kind) Verify(ctx context.Context, c *store.Check, path string) error {
	dataset, err := Open(ctx, c.Opener, []string{path}, Options{})
	if err != nil {
		return err
	}
	defer dataset.Close()
	report, err := dataset.Verify(ctx)
	c.Containers, c.Rows, c.Samples, c.Bytes = 1, report.Rows, report.Files, report.Bytes
	c.Absent = int64(len(report.Absent))
	for _, n := range report.Notes {
		c.Notes = append(c.Notes, path+": "+n)
	}
	switch {
	case err != nil || len(report.Absent) == 0:
	case report.Files == 0 && dataset.Form() == TacocatFile: // it may be kept alone, for queries
		c.Notes = append(c.Notes, path+": none of its source files is there: only the tables are checked")
	default:
		err = fault.WithFile(fault.New(fault.NotFound, "source file",
			"is not there: the catalog lacks %d of its files", len(report.Absent)), report.Absent[0])
	}
	if err != nil || !c.Pixels && !dataset.Form().Unchecked() {
		return err
	}
	return dataset.checkRasters(ctx, c)
}

// checkRasters decodes every chunk of every raster in a container. A fault of one does not end the check.
func (d *Dataset) checkRasters(ctx context.Context, c *store.Check) error {
	number := int64(0)
	for e, err := range d.Leaves(ctx, false) {
		if err != nil {
			return err
		}
		err := c.Guard(e.Path, func() error { return c.Raster(ctx, e.Alone(c.Opener), number, e.Path, e.URI) })
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			c.Fault(number, fault.WithFile(fault.WithPart(err, "sample "+e.Path, 0), e.URI))
		}
		number++
	}
	return nil
}
