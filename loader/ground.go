package loader

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
)

// checkGround compares the places of the rasters of all selected rows, where a catalog knows them. It logs how many
// rows are misplaced. With the policy "error" the first of them is its error, because the run would meet it anyway, but
// hours later.
func (d *dataset) checkGround(ctx context.Context, e *Engine) error {
	if len(d.rasters) < 2 || d.extras.Misplaced == nil {
		return nil
	}
	lead := d.rasters[0]
	for _, r := range d.rasters[1:] {
		if r.Ground == spec.IgnoreGround {
			continue
		}
		n, first := 0, error(nil)
		err := d.extras.Misplaced(ctx, lead.TableColumn, r.TableColumn, d.rows, func(_ int64, err error) {
			if n++; first == nil {
				first = err
			}
		})
		if err != nil {
			return err
		}
		if n == 0 {
			continue
		}
		e.options.Logger.Warn("rasters of samples lie at different places on the ground", "source", d.source.Source,
			"field", r.Name, "samples", n, "first", fault.Line(first))
		if e.spec.BadSamples == spec.BadError {
			return rows.InField(r.Name, first)
		}
	}
	return nil
}
