// Command chaski-full is the command chaski with DuckDB and, with the build tag datadog, the zstd
// decoder in C.
package main

import (
	"github.com/chaski-eo/chaski/cmd/chaski/cli"
	"github.com/chaski-eo/chaski/duckdb"
)

func main() {
	duckdb.Child() // does not return in the process of a query
	cli.Main(cli.Parts{SQL: duckdb.Isolated})
}
