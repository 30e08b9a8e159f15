package bench

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/chaski-eo/chaski/fault"
)

//go:embed frames.py
var framesScript string

// original is a Python process that decodes frames with the original library. It works only when asked, because the
// two libraries must not compete for the processor.
type original struct {
	versions string
	cmd      *exec.Cmd
	in       io.WriteCloser
	lines    *bufio.Scanner
	stderr   *tail
	ctx      context.Context
}

// originalAnswer is a line of frames.py.
type originalAnswer struct {
	Versions string  `json:"versions"`
	SHA256   string  `json:"sha256"`
	Refused  string  `json:"refused"`
	Passes   int     `json:"passes"`
	Seconds  float64 `json:"seconds"`
}

// startOriginal starts the interpreter and lets it read and decode all classes once. If it decodes a class to other
// bytes, that is an error.
func startOriginal(ctx context.Context, python string, classes []*frameClass) (_ *original, err error) {
	p := &original{cmd: exec.CommandContext(ctx, python, "-c", framesScript), stderr: &tail{most: 4 << 10}, ctx: ctx}
	p.cmd.Stderr, p.cmd.WaitDelay = p.stderr, 5*time.Second
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.lines = bufio.NewScanner(out)
	defer func() {
		if err != nil {
			p.stop()
		}
	}()
	a, err := p.answer()
	if err != nil {
		return nil, err
	}
	p.versions = a.Versions
	for _, frameClass := range classes {
		files := make([]string, len(frameClass.frames))
		for i, f := range frameClass.frames {
			files[i] = f.path
		}
		if a, err = p.ask(map[string]any{"class": frameClass.name, "files": files}); err != nil {
			return nil, err
		}
		frameClass.refused = a.Refused
		if a.Refused == "" && a.SHA256 != frameClass.sum {
			return nil, fault.WithFile(fault.New(fault.Corrupt, "content", fault.NoOffset,
				"the original decodes the frames to other bytes"), frameClass.dir)
		}
	}
	return p, nil
}

func (p *original) measure(c *frameClass, o FramesOptions) error {
	a, err := p.ask(map[string]any{"class": c.name, "seconds": o.Time.Seconds(), "cpu": o.CPU})
	if err != nil {
		return err
	}
	if a.Passes < 1 || !(a.Seconds > 0) {
		return fmt.Errorf("the original library reports %d passes in %g s", a.Passes, a.Seconds)
	}
	c.theirs = append(c.theirs, float64(a.Passes)*float64(c.bytes)/1e6/a.Seconds)
	return nil
}

func (p *original) ask(what map[string]any) (originalAnswer, error) {
	buf, err := json.Marshal(what)
	if err != nil {
		return originalAnswer{}, err
	}
	if _, err := p.in.Write(append(buf, '\n')); err != nil { // it has ended
		return originalAnswer{}, p.failed(io.ErrUnexpectedEOF)
	}
	return p.answer()
}

func (p *original) answer() (a originalAnswer, err error) {
	if !p.lines.Scan() {
		err = errors.Join(p.lines.Err(), io.ErrUnexpectedEOF)
	} else {
		err = json.Unmarshal(p.lines.Bytes(), &a)
	}
	if err != nil {
		return a, p.failed(err)
	}
	return a, nil
}

// failed ends the process and returns its last message as the error. It needs to end first, since the message may
// still be on its way.
func (p *original) failed(err error) error {
	if p.ctx.Err() != nil {
		return p.ctx.Err()
	}
	p.stop()
	if last := p.stderr.last(); last != "" {
		return fmt.Errorf("the original library with %s: %s", p.cmd.Path, last)
	}
	return fmt.Errorf("the original library with %s: %w", p.cmd.Path, err)
}

// stop ends the process. Calling it again does nothing.
func (p *original) stop() {
	if p.cmd.ProcessState != nil {
		return
	}
	_ = p.in.Close()
	_ = p.cmd.Wait()
}
