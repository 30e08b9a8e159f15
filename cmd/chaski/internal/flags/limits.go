package flags

import (
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/tables/query"
)

// AddMaxChunk adds --max-chunk, the limit that errors of the engine call max_chunk.
func AddMaxChunk(fl *pflag.FlagSet, limit *int) {
	console.CountVar(fl, limit, "max-chunk", resources.DefaultMaxChunkBytes, 1)
}

// AddSQLLimits adds --sql-time and --sql-memory.
func AddSQLLimits(fl *pflag.FlagSet, l *query.Limits) {
	console.DurationVar(fl, &l.Time, "sql-time", query.DefaultTime)
	console.CountVar(fl, &l.Memory, "sql-memory", 0, 0)
}
