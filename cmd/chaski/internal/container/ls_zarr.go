package container

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/source"
)

// listZarr lists the arrays of Zarr groups.
func (f *lsFlags) listZarr(ctx context.Context, w io.Writer, files source.Opener, paths []string) error {
	for _, p := range paths {
		info, err := survey.InspectZarr(ctx, p, loader.Options{Opener: files})
		if err != nil {
			return err
		}
		for k := range info.Arrays {
			zarrArray := &info.Arrays[k]
			if f.format == "json" {
				err = json.NewEncoder(w).Encode(zarrArray)
			} else {
				_, err = fmt.Fprintf(w, "%s\t%v\t%s%s\n", console.Printable(zarrArray.Path), zarrArray.Shape,
					zarrArray.DType,
					console.Printable(zarrArray.Unreadable))
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
