package bench

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/chaski-eo/chaski/codec/geozl"
	"github.com/chaski-eo/chaski/codec/openzl"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/cputime"
)

// FramesOptions of Frames.
type FramesOptions struct {
	// Rounds of at least Time for each class. Default 5 of 200 ms.
	Rounds int
	Time   time.Duration
	// CPU says to count processor time, not the clock, as a machine with other work needs it.
	CPU bool
	// MaxOutput is the largest content of a frame, in bytes. Default openzl.DefaultMaxOutput.
	MaxOutput int
	// Python, if not empty, is an interpreter with the package openzl, and geozl if frames have its codecs. The
	// original library then decodes the same frames in the same rounds.
	Python string
	// Progress is called after every round.
	Progress func(done, total int)
}

func (o FramesOptions) withDefaults() FramesOptions {
	o.Rounds = cmp.Or(o.Rounds, 5)
	o.Time = cmp.Or(o.Time, 200*time.Millisecond)
	o.MaxOutput = cmp.Or(o.MaxOutput, openzl.DefaultMaxOutput)
	return o
}

// FrameClass has the measurements of the frames in one directory.
type FrameClass struct {
	Class  string  `json:"class"`
	Frames int     `json:"frames"`
	Bytes  int64   `json:"bytes"` // of all outputs of the frames, decoded
	Ratio  float64 `json:"ratio"` // Bytes over the bytes of the frames
	Speed  Figure  `json:"speed"` // MB/s of decoded bytes
	// Original is the speed of the original library, and Relative, round by round, Speed over it. Both
	// are nil without a Python, and where the original refuses a frame, which Refused then says.
	Original *Figure `json:"original,omitempty"`
	Relative *Figure `json:"relative,omitempty"`
	Refused  string  `json:"refused,omitempty"`
}

// FramesReport is the result of Frames.
type FramesReport struct {
	Report
	Classes []FrameClass `json:"classes"`
	// Mean is the geometric mean of the medians of Relative, without StoreClass; 0 if no class has one.
	Mean float64 `json:"mean,omitempty"`
}

// StoreClass is the class that Mean leaves out: frames that hold data uncompressed only measure how fast memory is
// copied.
const StoreClass = "store"

// Limits in bytes of the frames and their content in memory.
const (
	maxFrames  = 2 << 30
	maxDecoded = 8 << 30
)

// Frames measures the decoding of the OpenZL frames dir/CLASS/*.zl on one goroutine. A round decodes all frames of each
// class in turn, again and again until the time is over. A frame with one numeric output is decoded into the caller's
// memory, like chunks of a raster; any other frame into the decoder's.
//
// If FRAME.raw exists beside FRAME.zl, the output must be equal to it, and the output of the original library must be
// equal to ours. A directory without frames has the kind fault.NotFound; other errors have the kinds of openzl.Decoder.
func Frames(ctx context.Context, dir string, o FramesOptions) (*FramesReport, error) {
	o = o.withDefaults()
	if o.Rounds < 1 || o.Time < 0 || o.MaxOutput < 1 {
		return nil, fmt.Errorf("bench: %d rounds of %v", o.Rounds, o.Time)
	}
	classes, err := readClasses(ctx, dir, o.MaxOutput)
	if err != nil {
		return nil, err
	}
	r := &FramesReport{Report: Report{Workload: "frames: OpenZL frames on one core", Machine: ThisMachine()}}
	r.set("classes", "%d", len(classes))
	r.set("rounds", "%d of %v a class", o.Rounds, o.Time)
	var peer *original
	if o.Python != "" {
		if peer, err = startOriginal(ctx, o.Python, classes); err != nil {
			return nil, err
		}
		defer peer.stop()
		r.set("original", "%s", peer.versions)
	}
	for i := range o.Rounds {
		for _, c := range classes {
			if err := c.round(ctx, peer, i, o); err != nil {
				return nil, err
			}
		}
		if o.Progress != nil {
			o.Progress(i+1, o.Rounds)
		}
	}
	r.summarise(classes)
	return r, nil
}

func (r *FramesReport) summarise(classes []*frameClass) {
	logs, n := 0.0, 0
	for _, frameClass := range classes {
		f := FrameClass{Class: frameClass.name, Frames: len(frameClass.frames), Bytes: frameClass.bytes,
			Ratio: float64(frameClass.bytes) / float64(frameClass.stored),
			Speed: newFigure(frameClass.name, "MB/s", frameClass.ours), Refused: frameClass.refused}
		r.Figures = append(r.Figures, f.Speed)
		if len(frameClass.theirs) > 0 {
			relative := make([]float64, len(frameClass.ours))
			for i := range relative {
				relative[i] = frameClass.ours[i] / frameClass.theirs[i]
			}
			theirs, times := newFigure(frameClass.name, "MB/s", frameClass.theirs), newFigure(frameClass.name, "times",
				relative)
			f.Original, f.Relative = &theirs, &times
			if frameClass.name != StoreClass {
				logs, n = logs+math.Log(times.Median), n+1
			}
		}
		r.Classes = append(r.Classes, f)
	}
	if n > 0 {
		r.Mean = math.Exp(logs / float64(n))
	}
}

// WriteText writes the report as a table.
func (r *FramesReport) WriteText(w io.Writer) error {
	var b strings.Builder
	r.writeHead(&b)
	writer := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := "class\tframes\tMB\tratio\tMB/s min\tmedian\tmax\t"
	peers := slices.ContainsFunc(r.Classes, func(c FrameClass) bool { return c.Original != nil || c.Refused != "" })
	if peers {
		head += "original min\tmedian\tmax\ttimes\t"
	}
	fmt.Fprintln(writer, head)
	for _, frameClass := range r.Classes {
		fmt.Fprintf(writer, "%s\t%d\t%s\t%.2f\t%s", frameClass.Class, frameClass.Frames,
			number(float64(frameClass.Bytes)/1e6),
			frameClass.Ratio, spread(frameClass.Speed))
		switch {
		case frameClass.Original != nil:
			fmt.Fprintf(writer, "%s%.3f\t", spread(*frameClass.Original), frameClass.Relative.Median)
		case frameClass.Refused != "":
			fmt.Fprint(writer, "-\t-\t-\t-\t")
		}
		fmt.Fprintln(writer)
	}
	if err := writer.Flush(); err != nil {
		return err
	}
	for _, c := range r.Classes {
		if c.Refused != "" {
			fmt.Fprintf(&b, "%s: the original refuses it: %s\n", c.Class, c.Refused)
		}
	}
	if r.Mean > 0 {
		fmt.Fprintf(&b, "\ngeometric mean of times, %s left out: %.3f\n", StoreClass, r.Mean)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func spread(f Figure) string {
	return number(f.Min) + "\t" + number(f.Median) + "\t" + number(f.Max) + "\t"
}

// frameClass has the frames of a directory, in memory, and their measurements.
type frameClass struct {
	name          string
	dir           string
	decoder       *openzl.Decoder
	frames        []frame
	stored, bytes int64
	sum           string // SHA-256 of all outputs, end to end
	ours, theirs  []float64
	refused       string
}

// frame is a frame and the memory for its output, if that is one numeric output.
type frame struct {
	path  string
	data  []byte
	width int // 0: decoded into the decoder's memory
	out   []byte
}

// readClasses reads and decodes the frames of all classes, in the order of their names.
func readClasses(ctx context.Context, dir string, maxOutput int) ([]*frameClass, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, notThere(err, dir)
	}
	var classes []*frameClass
	var stored, decoded int64
	for _, entry := range entries {
		files, err := filepath.Glob(filepath.Join(escape(filepath.Join(dir, entry.Name())), "*.zl"))
		if err != nil || len(files) == 0 {
			continue
		}
		c := &frameClass{name: entry.Name(), dir: filepath.Join(dir, entry.Name()),
			decoder: openzl.NewDecoder(openzl.Options{MaxOutput: maxOutput, Custom: geozl.Codecs()})}
		sum := sha256.New()
		for _, f := range files {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if err := c.add(f, sum, &stored, &decoded); err != nil {
				return nil, fault.WithFile(err, f)
			}
		}
		if c.bytes == 0 {
			return nil, fault.WithFile(fault.New(fault.Unsupported, "frames", fault.NoOffset,
				"no frame has content"), c.dir)
		}
		c.sum = hex.EncodeToString(sum.Sum(nil))
		classes = append(classes, c)
	}
	if len(classes) == 0 {
		return nil, fault.WithFile(fault.New(fault.NotFound, "folder", fault.NoOffset, "no CLASS/*.zl in it"), dir)
	}
	return classes, nil
}

// escape escapes the characters of a path that have a meaning in a glob.
func escape(p string) string {
	if os.PathSeparator == '\\' {
		return p // on Windows nothing escapes the characters of a glob
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(p)
}

func notThere(err error, name string) error {
	if errors.Is(err, fs.ErrNotExist) {
		err = fault.Wrap(fault.NotFound, "folder", fault.NoOffset, errors.New("no such folder"))
	}
	return fault.WithFile(err, name)
}

// add reads a frame and decodes it once.
func (c *frameClass) add(path string, all io.Writer, stored, decoded *int64) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if *stored += st.Size(); *stored > maxFrames {
		return fault.New(fault.Limit, "frames", fault.NoOffset, "over %d bytes", int64(maxFrames))
	}
	f := frame{path: path}
	if f.data, err = os.ReadFile(path); err != nil {
		return err
	}
	outs, err := c.decoder.Decode(f.data)
	if err != nil {
		return err
	}
	raw, rerr := os.ReadFile(strings.TrimSuffix(path, ".zl") + ".raw")
	if rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
		return rerr
	}
	n, same := 0, rerr != nil
	for _, o := range outs {
		n += len(o.Data)
		_, _ = all.Write(o.Data)
	}
	if !same {
		same = n == len(raw)
		for pos, i := 0, 0; same && i < len(outs); i++ {
			same = string(raw[pos:pos+len(outs[i].Data)]) == string(outs[i].Data)
			pos += len(outs[i].Data)
		}
	}
	if !same {
		return fault.New(fault.Corrupt, "content", fault.NoOffset, "is not that of the .raw file beside it")
	}
	if *decoded += int64(n); *decoded > maxDecoded {
		return fault.New(fault.Limit, "frames", fault.NoOffset, "over %d bytes decoded", int64(maxDecoded))
	}
	if len(outs) == 1 && outs[0].Type == openzl.Numeric {
		f.width, f.out = outs[0].Width, make([]byte, n)
	}
	c.frames = append(c.frames, f)
	c.stored, c.bytes = c.stored+int64(len(f.data)), c.bytes+int64(n)
	return nil
}

// round measures the class once with each library. Which one is first alternates, because the second one finds the
// frames in the processor's cache.
func (c *frameClass) round(ctx context.Context, peer *original, i int, o FramesOptions) error {
	both := []func() error{
		func() error { return c.measure(ctx, o) },
		func() error {
			if peer == nil || c.refused != "" {
				return nil
			}
			return peer.measure(c, o)
		},
	}
	return errors.Join(both[i%2](), both[1-i%2]())
}

// measure decodes all frames, again and again until the time is over.
func (c *frameClass) measure(ctx context.Context, o FramesOptions) error {
	begin := time.Now()
	used := func() time.Duration { return time.Since(begin) }
	if o.CPU {
		used = cputime.Used
	}
	passes, start := 0, used()
	for passes == 0 || used()-start < o.Time {
		for i := range c.frames {
			if err := c.decode(&c.frames[i]); err != nil {
				return fault.WithFile(err, c.frames[i].path)
			}
		}
		passes++
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	c.ours = append(c.ours, float64(passes)*float64(c.bytes)/1e6/(used()-start).Seconds())
	return nil
}

func (c *frameClass) decode(f *frame) error {
	if f.width > 0 {
		return c.decoder.Decompress(f.out, f.data, f.width)
	}
	_, err := c.decoder.Decode(f.data)
	return err
}
