// Package console has what every command needs: its streams, the line and the exit code of a
// failure, checks of arguments, printed results and progress bars.
package console

import (
	"io"

	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/diskcache"
	"github.com/chaski-eo/chaski/tables/query"
)

// Env has the standard streams of a command, and the parts that differ between binaries.
type Env struct {
	In       io.Reader
	Out, Err io.Writer

	// SQL runs the queries that package query does not read. It is nil in the default command, which
	// has no DuckDB. Commands get it as a value because a package variable would tie all of them to
	// one package.
	SQL query.Full
	// Files opens local files and remote objects. It is closed when the command has ended. It is nil where no command
	// runs, such as for the pages of the site.
	Files source.Opener
	// Cache is the folder of --cache-dir, in which Files keeps ranges of remote objects.
	Cache   *diskcache.Ref
	Version string
}
