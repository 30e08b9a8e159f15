package console

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Bar shows how far a long piece of work is, if stderr is a terminal.
type Bar struct{ bar *progressbar.ProgressBar }

// NewBar returns a bar of total steps; total may be unknown (-1).
func NewBar(stderr io.Writer, what string, total int64) *Bar {
	f, ok := stderr.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return &Bar{}
	}
	return &Bar{progressbar.NewOptions64(total, progressbar.OptionSetWriter(f), progressbar.OptionSetDescription(what),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionShowCount(), progressbar.OptionClearOnFinish())}
}

// Set moves the bar to done of total. It may be called from several goroutines.
func (p *Bar) Set(done, total int64) {
	if p.bar == nil {
		return
	}
	if p.bar.GetMax64() != total {
		p.bar.ChangeMax64(total)
	}
	p.bar.Set64(done) //nolint:errcheck // a bar that cannot be drawn is no reason to stop
}

// Done takes the bar away.
func (p *Bar) Done() {
	if p.bar != nil {
		p.bar.Finish() //nolint:errcheck
	}
}

// Describe says what the bar is about to count.
func (p *Bar) Describe(what string) {
	if p.bar != nil {
		p.bar.Describe(what)
	}
}
