// Command chaski-full is the command chaski with DuckDB, and with the zstd decoder in C where the tag
// datadog says so.
package main

import (
	"github.com/chaski-eo/chaski/cmd/chaski/cli"
	"github.com/chaski-eo/chaski/duckdb"
)

func main() { cli.Main(cli.Parts{SQL: duckdb.Run}) }
