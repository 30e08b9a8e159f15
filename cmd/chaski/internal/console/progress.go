package console

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// Bar is a progress bar. It draws on a terminal only. The zero value draws nothing
// either. It shows the rate and the time that is left.
type Bar struct {
	draw func(total int64) *progressbar.ProgressBar // nil: it is not drawn here

	lines    io.Writer // for a program that draws the bar itself
	mu       sync.Mutex
	bar      *progressbar.ProgressBar // from the first step on
	lastLine time.Time                // when the last one was written
}

// Ten drawings a second look smooth, and avoid that drawing slows down short steps.
const redraw = 100 * time.Millisecond

// NewBar returns a bar, which Set moves.
// For a program (ForProgram) it writes lines of the byte 0x1e, the steps that are done, and total.
func NewBar(stderr io.Writer, what string) *Bar {
	if os.Getenv(ForProgram) != "" {
		return &Bar{lines: stderr}
	}
	if !IsTerminal(stderr) {
		return &Bar{}
	}
	return drawnBar(stderr, what)
}

func drawnBar(terminal io.Writer, what string) *Bar {
	return &Bar{draw: func(total int64) *progressbar.ProgressBar {
		return progressbar.NewOptions64(total, progressbar.OptionSetWriter(terminal),
			progressbar.OptionSetDescription(what), progressbar.OptionThrottle(redraw),
			progressbar.OptionShowCount(), progressbar.OptionShowIts(),
			progressbar.OptionClearOnFinish())
	}}
}

// Set moves the bar to done of total. Several goroutines may call it.
func (p *Bar) Set(done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lines != nil && time.Since(p.lastLine) > redraw {
		p.lastLine = time.Now()
		fmt.Fprintf(p.lines, "\x1e%d %d\n", done, total)
	}
	// Before the first step is done it would show a rate of 0 an hour, and no time left.
	if p.draw == nil || done == 0 {
		return
	}
	switch {
	case p.bar == nil:
		// The first drawing comes after redraw: a rate over microseconds would say nothing.
		p.bar = p.draw(total)
		p.bar.Reset()
	case p.bar.GetMax64() != total:
		p.bar.ChangeMax64(total)
	}
	p.bar.Set64(done) //nolint:errcheck // a bar that cannot be drawn is no reason to stop
}

// Done takes the bar away.
func (p *Bar) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		p.bar.Finish() //nolint:errcheck
	}
}
