// Package seed makes the random tests of a package repeatable: it gives pgregory.net/rapid a fixed seed, so that two
// runs of the tests try the same cases. Tests import it for that alone:
//
//	import _ "github.com/chaski-eo/chaski/tools/testkit/seed"
//
// CHASKI_RAPID_SEED chooses another seed; 0 draws one at random, as `make fuzz` does.
package seed

import (
	"cmp"
	"flag"
	"os"

	_ "pgregory.net/rapid" // registers its flags
)

// The flags of the command line are parsed after this, so that -rapid.seed still wins.
func init() {
	if err := flag.Set("rapid.seed", cmp.Or(os.Getenv("CHASKI_RAPID_SEED"), "1")); err != nil {
		panic("CHASKI_RAPID_SEED: " + err.Error())
	}
}
