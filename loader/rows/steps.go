package rows

import (
	"context"
	"fmt"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/catalog"
)

// CheckTimes fails with fault.NotFound if a field picks a step of time that no raster of the dataset has, as far as
// that is known without opening all files: of one raster, of arrays, whose rows are alike, and of catalogs. first is
// the raster of the first sample. If that one lacks a step, CheckTimes says how many rasters of a catalog do.
func CheckTimes(ctx context.Context, t *Table, number int, f *spec.Field, first *catalog.Asset) (
	count catalog.StepCount, err error) {
	field := &t.Fields[number]
	if len(f.Times) == 0 || field.Steps != nil {
		return count, nil
	}
	most, last := first.Index.Steps(), slices.Max(f.Times)
	if last < most {
		return count, nil
	}
	if t.N > 1 && field.Size == nil {
		table, ok := field.facts.(*catalog.Table)
		if !ok {
			return count, nil
		}
		count, err = table.CountSteps(ctx, field.number, last+1)
		if most = count.Most; err != nil || most == 0 || last < most {
			return count, err
		}
	}
	there := "step 0 alone"
	if most > 1 {
		there = fmt.Sprintf("steps 0 to %d", most-1)
	}
	return count, first.Fault(InField(f.Name, fault.New(fault.NotFound, "times",
		"times has %d, a step that no raster of the dataset has: there is %s", last, there)))
}
