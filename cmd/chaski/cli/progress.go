package cli

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress shows how far a long piece of work is, if stderr is a terminal.
type progress struct{ bar *progressbar.ProgressBar }

// newProgress returns a bar of total steps; total may be unknown (-1).
func newProgress(stderr io.Writer, what string, total int64) *progress {
	f, ok := stderr.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return &progress{}
	}
	return &progress{progressbar.NewOptions64(total, progressbar.OptionSetWriter(f), progressbar.OptionSetDescription(what),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionShowCount(), progressbar.OptionClearOnFinish())}
}

// set moves the bar to done of total. It may be called from several goroutines.
func (p *progress) set(done, total int64) {
	if p.bar == nil {
		return
	}
	if p.bar.GetMax64() != total {
		p.bar.ChangeMax64(total)
	}
	p.bar.Set64(done) //nolint:errcheck // a bar that cannot be drawn is no reason to stop
}

// done takes the bar away.
func (p *progress) done() {
	if p.bar != nil {
		p.bar.Finish() //nolint:errcheck
	}
}

// describe says what the bar is about to count.
func (p *progress) describe(what string) {
	if p.bar != nil {
		p.bar.Describe(what)
	}
}
