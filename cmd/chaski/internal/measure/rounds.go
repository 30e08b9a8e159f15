package measure

import (
	"io"
	"time"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
)

// roundFlags are common to all measurements.
type roundFlags struct {
	json    bool
	rounds  int
	seconds float64
	workers int
}

func (f *roundFlags) add(fl *pflag.FlagSet, seconds float64) {
	f.addRounds(fl, seconds)
	fl.IntVar(&f.workers, "workers", 0, "decoding workers (default: the number of processors)")
}

// addRounds adds the flags of a measurement that has one worker.
func (f *roundFlags) addRounds(fl *pflag.FlagSet, seconds float64) {
	fl.BoolVar(&f.json, "json", false, "one line of JSON instead of a table")
	fl.IntVar(&f.rounds, "rounds", 5, "rounds, each measured for itself")
	fl.Float64Var(&f.seconds, "seconds", seconds, "time of a round, at least, in seconds")
}

func (f *roundFlags) check() error {
	if f.rounds < 1 || f.rounds > 1000 || !(f.seconds >= 0 && f.seconds <= 3600) || f.workers < 0 {
		return console.Usagef("--rounds is from 1 to 1000, --seconds from 0 to 3600, --workers at least 0")
	}
	return nil
}

func (f *roundFlags) time() time.Duration { return time.Duration(f.seconds * float64(time.Second)) }

// print shows a report, if there is one.
func (f *roundFlags) print(env console.Env, r interface{ WriteText(io.Writer) error }, err error) error {
	switch {
	case err != nil:
		return err
	case f.json:
		return console.PrintJSON(env.Out, r)
	}
	return r.WriteText(env.Out)
}

// bar shows the rounds that are done.
func (f *roundFlags) bar(env console.Env) (*console.Bar, func(done, total int)) {
	p := console.NewBar(env.Err, "measuring", int64(f.rounds))
	return p, func(done, total int) { p.Set(int64(done), int64(total)) }
}
