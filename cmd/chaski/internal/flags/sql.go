package flags

import (
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/tables/query"
)

// AddSQLLimits adds --sql-time and --sql-memory.
func AddSQLLimits(fl *pflag.FlagSet, l *query.Limits) {
	fl.DurationVar(&l.Time, "sql-time", query.DefaultTime, "how long a query may run")
	console.CountVar(fl, &l.Memory, "sql-memory", 0, 0,
		"memory for the columns that a query computes, or for the process in which chaski-full runs it, in "+
			"bytes\n(default: a quarter of the machine's, from 512 MiB to 4 GiB)")
}

// CheckSQLLimits checks them.
func CheckSQLLimits(l query.Limits) error {
	if l.Time <= 0 {
		return console.Usagef("--sql-time is %v: it must be longer than 0s", l.Time)
	}
	return nil
}
