package inspect

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/tiff"
)

// NewCRS returns the hidden command crs: the Python package asks by it what to write into a file,
// so that the registry of codes stays in one place.
func NewCRS(env console.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "crs EPSG",
		Short: "Say whether an EPSG code is a CRS of longitude and latitude, for programs",
		Long: `Say whether the CRS that has the code EPSG has longitude and latitude for its axes: one line of JSON,
{"geographic":true} or {"geographic":false}. The Python package asks it before it writes a file's CRS.`,
		Example: `  chaski crs 4326`,
		Hidden:  true,
		Args:    console.ExactlyOne("EPSG"),
		RunE: func(_ *cobra.Command, args []string) error {
			code, err := strconv.Atoi(args[0])
			if err != nil {
				return console.Usagef("EPSG is %q: it must be a whole number", args[0])
			}
			geo := tiff.Geo{EPSG: code}
			return console.PrintJSON(env.Out, map[string]bool{"geographic": geo.IsGeographic()})
		},
	}
}
