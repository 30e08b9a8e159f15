package measure

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/bench"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
)

// roundFlags has the flags of all measurements.
type roundFlags struct {
	json    bool
	rounds  int
	seconds float64
}

func (f *roundFlags) add(fl *pflag.FlagSet, seconds float64) {
	console.Var(fl, &f.json, "json", false)
	console.NumberVar(fl, &f.rounds, "rounds", 5, 1, 1000)
	console.Var(fl, &f.seconds, "seconds", seconds)
}

func (f *roundFlags) check() error {
	// Not f.seconds <= 0 || f.seconds > 3600, because that would accept NaN.
	if !(f.seconds > 0 && f.seconds <= 3600) {
		return console.Usagef("--seconds is %v: it must be above 0 and at most 3600", f.seconds)
	}
	return nil
}

func (f *roundFlags) time() time.Duration { return time.Duration(f.seconds * float64(time.Second)) }

// print prints a report, unless there is an error.
func (f *roundFlags) print(env console.Env, r *bench.Report, err error) error {
	if err != nil {
		return err
	}
	return console.Print(env.Out, r, f.json)
}

// bar returns a progress bar of the rounds, and the function that moves it.
func (f *roundFlags) bar(env console.Env) (*console.Bar, func(done, total int)) {
	p := console.NewBar(env.Err, "measuring", int64(f.rounds))
	return p, func(done, total int) { p.Set(int64(done), int64(total)) }
}
