//go:build soak

package openzl_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/chaski-eo/chaski/format/codec/geozl"
	"github.com/chaski-eo/chaski/format/codec/openzl"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// judge is the original library in a process of its own, because a frame may crash it.
type judge struct {
	python string
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Scanner
}

func (j *judge) start() error {
	j.cmd = exec.Command(j.python, filepath.Join("testdata", "judge.py"))
	in, err := j.cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := j.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	j.in, j.out = in, bufio.NewScanner(out)
	return j.cmd.Start()
}

func (j *judge) stop() {
	if j.cmd != nil {
		_ = j.in.Close()
		_ = j.cmd.Process.Kill()
		_ = j.cmd.Wait()
		j.cmd = nil
	}
}

// ask returns the verdict on a frame, or "crash" if the process gave none in time.
func (j *judge) ask(frame []byte, verify bool) string {
	if j.cmd == nil {
		if err := j.start(); err != nil {
			return "error: " + err.Error()
		}
	}
	head := binary.LittleEndian.AppendUint32(nil, uint32(len(frame)))
	if verify {
		head = append(head, 1)
	} else {
		head = append(head, 0)
	}
	answer := make(chan string, 1)
	scanner := j.out
	go func() {
		if scanner.Scan() {
			answer <- scanner.Text()
		} else {
			answer <- "crash"
		}
	}()
	_, err := j.in.Write(append(head, frame...))
	select {
	case a := <-answer:
		if err == nil && a != "crash" {
			return a
		}
	case <-time.After(20 * time.Second):
	}
	j.stop()
	return "crash"
}

// verdict is our answer in the judge's words.
func verdict(d *openzl.Decoder, frame []byte) string {
	outs, err := d.Decode(frame)
	if err != nil {
		return "error " + err.Error()
	}
	s := "ok"
	for _, o := range outs {
		h := sha256.New()
		h.Write([]byte(o.Type.String()))
		_ = binary.Write(h, binary.LittleEndian, []uint32{uint32(o.Width), uint32(o.Count)})
		h.Write(o.Data)
		if o.Type == openzl.String {
			_ = binary.Write(h, binary.LittleEndian, o.Lens)
		}
		s += " " + hex.EncodeToString(h.Sum(nil))
	}
	return s
}

// mutate changes a frame in a few places, preferably in its headers. It may repair the checksums of
// the header and of the chunk, so that the damage reaches the codecs.
func mutate(r *rand.Rand, frame, other []byte) []byte {
	f := slices.Clone(frame)
	for range 1 + r.IntN(3) {
		if len(f) < 8 {
			break
		}
		at := 4 + r.IntN(len(f)-4)
		if r.IntN(2) == 0 {
			at = 4 + r.IntN(min(len(f)-4, 80))
		}
		switch r.IntN(8) {
		case 0, 1, 2:
			f[at] ^= 1 << r.IntN(8)
		case 3:
			f[at] = byte(r.Uint32())
		case 4:
			f[at] = []byte{0, 1, 127, 128, 255}[r.IntN(5)]
		case 5:
			f[at]++
		case 6:
			n := min(1+r.IntN(8), len(f)-at, len(other))
			from := r.IntN(len(other) - n + 1)
			copy(f[at:], other[from:from+n])
		case 7:
			if r.IntN(2) == 0 {
				f = slices.Delete(f, at, min(at+1+r.IntN(3), len(f)))
			} else {
				f = slices.Insert(f, at, byte(r.Uint32()))
			}
		}
	}
	if r.IntN(3) > 0 {
		repair(f)
	}
	return f
}

// repair sets the checksum that stands before the end mark (versions from 21 on) or at the end, and
// that of the frame header, in a frame of one output and one chunk.
func repair(f []byte) {
	if len(f) < 16 {
		return
	}
	version := f[0] - 0xc0
	if version < 21 {
		sum := len(f) - 4
		binary.LittleEndian.PutUint32(f[sum:], uint32(xxh3.Hash(f[:sum])))
		return
	}
	if f[4]&2 == 0 || f[5]&15 != 1 {
		return
	}
	_, n := binary.Uvarint(f[6:])
	if n <= 0 || 7+n > len(f)-5 {
		return
	}
	f[6+n] = byte(xxh3.Hash(f[:6+n]))
	sum := len(f) - 5
	binary.LittleEndian.PutUint32(f[sum:], uint32(xxh3.Hash(f[7+n:sum])))
}

// soakCount is the number of frames of a run unless CHASKI_SOAK_COUNT sets another.
const soakCount = 5_000_000

// soakOutput bounds the content of a frame in a run, in bytes.
const soakOutput = 16 << 20

// bounds returns how many frames a run takes and how long, whichever comes first.
func bounds(t *testing.T) (count int, length time.Duration) {
	count, length = soakCount, 24*time.Hour
	if s := os.Getenv("CHASKI_SOAK"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatal("CHASKI_SOAK: ", err)
		}
		length = d
	}
	if s := os.Getenv("CHASKI_SOAK_COUNT"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal("CHASKI_SOAK_COUNT: ", err)
		}
		count = n
	}
	return count, length
}

// TestSoak: damages CHASKI_SOAK_COUNT frames (5 million by default), for at most CHASKI_SOAK (a duration), made from
// files that match CHASKI_SOAK_FRAMES, also of the directory CHASKI_SOAK_DIR, and compares the decoder with the
// original library. Where both accept a frame, the bytes are equal. A frame that the original refuses is refused here
// too, except by zstd, where the two libraries differ. Frames that crash the original, or that only the original
// accepts, are counted and printed. No frame may make this decoder panic, take more than a second, or allocate more
// than four times the allowed content.
func TestSoak(t *testing.T) {
	python := os.Getenv("CHASKI_ORACLE_PYTHON")
	if python == "" {
		t.Skip("CHASKI_ORACLE_PYTHON names no Python with openzl and geozl")
	}
	count, length := bounds(t)
	only := regexp.MustCompile(os.Getenv("CHASKI_SOAK_FRAMES"))
	var frames [][]byte
	var names []string
	for _, p := range []string{
		"../../../testdata/openzl/*.zl", "../geozl/testdata/*.zl", "../../../../shared/corpus/raster/frames/*.zl",
		filepath.Join(os.Getenv("CHASKI_SOAK_DIR"), "*.zl"),
	} {
		files, _ := filepath.Glob(p)
		for _, f := range files {
			b := testfile.Read(t, f)
			// The Python part of geozl lacks some of its codecs.
			skip := regexp.MustCompile(`^old-|binoffset|intmult|floatquant|floatmult|blocked|planar.zigzag.pivco`)
			if name := filepath.Base(f); skip.MatchString(name) || !only.MatchString(name) {
				continue
			}
			if len(b) < 16<<10 && len(b) > 4 && b[0] <= 0xc0+27 {
				frames, names = append(frames, b), append(names, filepath.Base(f))
			}
		}
	}
	if len(frames) == 0 {
		t.Fatal("no frames")
	}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("CHASKI_ORACLE_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("seed %d, %d frames", seed, len(frames))
	r := rand.New(rand.NewPCG(seed, 0))
	j := judge{python: python}
	defer j.stop()
	decoders := map[bool]*openzl.Decoder{
		true:  openzl.NewDecoder(openzl.Options{MaxOutput: soakOutput, Custom: geozl.Codecs()}),
		false: openzl.NewDecoder(openzl.Options{MaxOutput: soakOutput, Custom: geozl.Codecs(), SkipChecksums: true}),
	}
	counts := map[string]int{}
	shown := map[string]int{}
	keep := func(kind string, frame []byte) string {
		file := filepath.Join(os.TempDir(),
			fmt.Sprintf("soak-%s-%d.zl", strings.ReplaceAll(kind, " ", "-"), counts[kind]))
		_ = os.WriteFile(file, frame, 0o600)
		return file
	}
	var now []byte // the frame that is decoded
	w := newWatch(time.Second, 4*soakOutput, time.Minute, func() {
		panic("does not come back from " + keep("hang", now))
	})
	note := func(kind, name string, frame []byte, verify bool, ours, theirs string) {
		counts[kind]++
		key := kind + name + ours[:min(len(ours), 60)]
		if strings.HasPrefix(kind, "accepted") {
			key = kind + name + theirs
		}
		if shown[key]++; shown[key] > 1 || kind == "refused" && (!verify || len(shown) > 200) {
			return
		}
		t.Logf("%s: %s verify=%v\n  ours   %s\n  theirs %s\n  %s", kind, name, verify, ours, theirs, keep(kind, frame))
	}
	start := time.Now()
	executed := 0
	for ; executed < count && time.Since(start) < length; executed++ {
		if executed > 0 && executed%1_000_000 == 0 {
			t.Logf("%d frames in %v: %v", executed, time.Since(start).Round(time.Second), counts)
		}
		k := r.IntN(len(frames))
		frame := mutate(r, frames[k], frames[r.IntN(len(frames))])
		verify := r.IntN(3) == 0
		now = frame
		var ours string
		if wrong := w.call(func() { ours = verdict(decoders[verify], frame) }); wrong != "" {
			note("broken", names[k], frame, verify, wrong, "")
			t.Fail()
			continue
		}
		theirs := j.ask(frame, verify)
		ourOK, theirOK := strings.HasPrefix(ours, "ok"), strings.HasPrefix(theirs, "ok")
		switch {
		case theirs == "crash":
			note("crash", names[k], frame, verify, ours, theirs)
		case ourOK && theirOK && ours != theirs:
			note("different", names[k], frame, verify, ours, theirs)
			t.Fail()
		case ourOK && strings.HasSuffix(theirs, "(zstd)"):
			// The two zstd libraries detect different damage: see internal/zstd.
			note("accepted in zstd", names[k], frame, verify, ours[:2], theirs)
		case ourOK && !theirOK:
			note("accepted", names[k], frame, verify, ours[:2], theirs)
			t.Fail()
		case !ourOK && theirOK:
			note("refused", names[k], frame, verify, ours, theirs)
		case ourOK:
			counts["both read"]++
		default:
			counts["both refuse"]++
		}
	}
	t.Logf("%d frames in %v, the slowest %v, most allocated for one %d bytes: %v", executed,
		time.Since(start).Round(time.Second), w.longest, w.greatest, counts)
}
