package rumi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/cursor"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

// Trailer is what stands behind the frames of a file of generation 3: the names of its bands, and its times.
type Trailer struct {
	// Bands has one name for each band. It is nil in files of rumi-eo 0.18 to 0.24.
	Bands []string
	// Kind says what Times are. Only files of rumi-eo 0.18 to 0.24 may have UndefinedTime.
	Kind TimeKind
	// Times are seconds since 1970: one instant for each step of time, or the begin and the end of each.
	Times []int64
}

// TimeKind is the kind of the times of a file.
type TimeKind uint8

// Kinds of times, with their numbers in the file.
const (
	UndefinedTime TimeKind = iota // no times
	Interval                      // each step has a begin and an end
	Instant                       // each step has one time
)

// String returns the kind in lower case.
func (k TimeKind) String() string {
	if k > Instant {
		return "invalid"
	}
	return [...]string{"undefined", "interval", "instant"}[k]
}

// counts returns how many times there are for steps of time.
func (k TimeKind) counts(steps int) int {
	return steps * [...]int{UndefinedTime: 0, Interval: 2, Instant: 1}[k]
}

const (
	tailMagic = 0x4C494154 // of rumi-eo 0.25 and later
	timeMagic = 0x454D4954 // of rumi-eo 0.18 to 0.24, without names of bands

	trailerVersion = 1
	day            = 86400 // seconds
	// maxTime bounds times in seconds, 36 billion years, so sums of three of them fit in an int64.
	maxTime = 1 << 60
)

// TrailerOf reads the trailer of a file of generation 3 whose directories are read already, by Open.
func TrailerOf(ctx context.Context, f *ifd.File) (*Trailer, error) {
	_, _, t, err := index3(ctx, f)
	return t, err
}

// readTrailer reads the trailer at off, of a file with those bands and steps of time.
func readTrailer(ctx context.Context, f *ifd.File, off int64, bands, steps int) (*Trailer, error) {
	data, err := f.Bytes(ctx, "trailer", off, f.Size()-off)
	if err != nil {
		return nil, err
	}
	trailer, err := parseTrailer(data, bands, steps)
	return trailer, fault.WithPart(err, "", off)
}

// parseTrailer reads a trailer. Any other form than append writes is corrupt.
func parseTrailer(data []byte, bands, steps int) (*Trailer, error) {
	parser := trailerParser{cursor.Cursor{B: data, Part: "trailer"}}
	trailer := parser.trailer(bands, steps)
	parser.End()
	if parser.Err != nil {
		return nil, parser.Err
	}
	// Writing it again finds every other form, which avoids a check of each field.
	again, err := trailer.append(nil, bands, steps)
	if err != nil || !bytes.Equal(again, data) {
		return nil, fault.At(fault.Corrupt, "trailer", 0, "not the shortest form of its names and times")
	}
	return trailer, nil
}

type trailerParser struct{ cursor.Cursor }

func (p *trailerParser) u16() int {
	if field := p.Bytes(2); field != nil {
		return int(binary.LittleEndian.Uint16(field))
	}
	return 0
}

func (p *trailerParser) u32() uint32 {
	if field := p.Bytes(4); field != nil {
		return binary.LittleEndian.Uint32(field)
	}
	return 0
}

func (p *trailerParser) trailer(bands, steps int) *Trailer {
	trailer := &Trailer{}
	magic := p.u32()
	if p.Err == nil && magic != tailMagic && magic != timeMagic {
		p.Fail(fault.Corrupt, "magic %#x", magic)
	}
	if version := p.u16(); p.Err == nil && version != trailerVersion {
		p.Fail(fault.Unsupported, "version %d", version)
	}
	if magic == tailMagic {
		// A name takes at least three bytes, so memory follows from the bytes of the file.
		for range bands {
			name := string(p.Bytes(p.u16()))
			if p.Err != nil {
				return trailer
			}
			trailer.Bands = append(trailer.Bands, name)
		}
	}
	p.times(trailer, steps)
	return trailer
}

// times reads the times, for which append knows the one form that they may have.
func (p *trailerParser) times(t *Trailer, steps int) {
	kind, width := TimeKind(p.U8()), int(p.U8())
	epoch, step, scale := int64(p.U64()), int64(p.U64()), int64(p.u32())
	if p.Err != nil {
		return
	}
	if kind > Instant || width > 64 || scale != 1 && scale != day {
		p.Fail(fault.Corrupt, "times of kind %d in %d bits, times %d seconds", kind, width, scale)
		return
	}
	t.Kind = kind
	count := kind.counts(steps)
	packed := cursor.Unpacker{Src: p.Bytes((count*width + 7) / 8)} // count is below 2^22
	if p.Err != nil {
		return
	}
	largest := int64(maxTime) / scale
	inRange := func(seconds int64) bool { return -largest <= seconds && seconds <= largest }
	if !inRange(epoch) || !inRange(step) {
		p.Fail(fault.Corrupt, "times from %d on in steps of %d", epoch, step)
		return
	}
	t.Times = make([]int64, count)
	for i := range t.Times {
		high, low := bits.Mul64(uint64(max(step, -step)), uint64(i))
		residual := cursor.Unzigzag(packed.Get(width))
		seconds := epoch
		// In these bounds the sum of the three is below 2^63.
		fits := high == 0 && low <= uint64(2*largest) && -2*largest <= residual && residual <= 2*largest
		if fits {
			seconds += int64(i)*step + residual
		}
		if !fits || !inRange(seconds) {
			p.Fail(fault.Corrupt, "time %d overflows", i)
			return
		}
		t.Times[i] = seconds * scale
	}
}

// check returns an error unless the trailer is one of an image with those bands and steps of time.
func (t *Trailer) check(bands, steps int) error {
	if t.Bands != nil && len(t.Bands) != bands {
		return fmt.Errorf("rumi: %d names of %d bands", len(t.Bands), bands)
	}
	seen := make(map[string]bool, len(t.Bands))
	for _, name := range t.Bands {
		if !validName(name) || seen[name] {
			return fmt.Errorf("rumi: a band is called %.64q: names must be texts of 1 to 65,535 bytes, without the "+
				"character 0, each once", name)
		}
		seen[name] = true
	}
	if t.Kind > Instant || t.Kind == UndefinedTime && t.Bands != nil {
		return fmt.Errorf("rumi: times of kind %s", t.Kind)
	}
	if want := t.Kind.counts(steps); len(t.Times) != want {
		return fmt.Errorf("rumi: %d times of %d steps of kind %s: there must be %d", len(t.Times), steps, t.Kind, want)
	}
	for i, seconds := range t.Times {
		if seconds < -maxTime || seconds > maxTime {
			return fmt.Errorf("rumi: time %d is %d seconds: it must be within 2^60", i, seconds)
		}
	}
	return nil
}

// validName reports whether a band may have the name.
func validName(name string) bool {
	return name != "" && len(name) < 1<<16 && !strings.ContainsRune(name, 0) && utf8.ValidString(name)
}

// BandNames returns a name for each of n bands as a file of generation 3 needs them, no two equal: those given, and
// "band 0" and so on in place of missing and impossible ones. It reports whether all that were given are kept.
func BandNames(given []string, n int) (names []string, kept bool) {
	kept = true
	seen := map[string]bool{}
	names = make([]string, n)
	for i := range min(n, len(given)) {
		if name := given[i]; validName(name) && !seen[name] {
			names[i], seen[name] = name, true
		} else if name != "" {
			kept = false
		}
	}
	for i := range names {
		for name := fmt.Sprintf("band %d", i); names[i] == ""; name += "'" {
			if !seen[name] {
				names[i], seen[name] = name, true
			}
		}
	}
	return names, kept
}

// append appends the trailer of an image with those bands and steps of time.
func (t *Trailer) append(dst []byte, bands, steps int) ([]byte, error) {
	if err := t.check(bands, steps); err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	if t.Bands == nil {
		dst = le.AppendUint16(le.AppendUint32(dst, timeMagic), trailerVersion)
	} else {
		dst = le.AppendUint16(le.AppendUint32(dst, tailMagic), trailerVersion)
		for _, name := range t.Bands {
			dst = append(le.AppendUint16(dst, uint16(len(name))), name...)
		}
	}
	scale := int64(1)
	if len(t.Times) > 0 && !slices.ContainsFunc(t.Times, func(v int64) bool { return v%day != 0 }) {
		scale = day
	}
	epoch, step := int64(0), int64(0)
	count := len(t.Times)
	if count > 0 {
		epoch = t.Times[0] / scale
	}
	if count > 1 {
		step = nearest(t.Times[count-1]/scale-epoch, int64(count-1))
	}
	residuals := make([]uint64, count)
	width := 0
	for i, seconds := range t.Times {
		residuals[i] = cursor.Zigzag(seconds/scale - epoch - int64(i)*step) // no overflow, by maxTime
		width = max(width, bits.Len64(residuals[i]))
	}
	dst = append(dst, byte(t.Kind), byte(width))
	dst = le.AppendUint64(dst, uint64(epoch))
	dst = le.AppendUint64(dst, uint64(step))
	dst = le.AppendUint32(dst, uint32(scale))
	packer := cursor.Packer{Dst: dst}
	for _, residual := range residuals {
		packer.Put(residual, width)
	}
	return packer.Bytes(), nil
}

// nearest returns v / n, rounded to the nearest whole number, halves upward. v is below 2^61 and n below 2^22.
func nearest(v, n int64) int64 {
	v = 2*v + n
	quotient := v / (2 * n)
	// Go rounds towards 0, but halves go up, which needs to be a floor.
	if v%(2*n) < 0 {
		quotient--
	}
	return quotient
}

// ParseTimes reads times as ISO 8601 writes them, in UTC where they name no zone: instants ("2024-05-06",
// "2024-05-06T07:08:09Z") or intervals of two of them ("2024-05-06/2024-05-09"), all of one kind.
func ParseTimes(texts []string) (kind TimeKind, seconds []int64, err error) {
	for i, text := range texts {
		ends := strings.Split(text, "/")
		timeKind := Instant
		if len(ends) == 2 {
			timeKind = Interval
		}
		if len(ends) > 2 || i > 0 && timeKind != kind {
			return 0, nil, fmt.Errorf("time is %q: times must be all instants or all intervals, begin/end", text)
		}
		kind = timeKind
		for _, end := range ends {
			when, err := parseTime(end)
			if err != nil {
				return 0, nil, fmt.Errorf("time is %q: it must be like 2024-05-06, 2024-05-06T07:08:09Z or begin/end",
					text)
			}
			seconds = append(seconds, when.Unix())
		}
		if last := len(seconds); timeKind == Interval && seconds[last-1] < seconds[last-2] {
			return 0, nil, fmt.Errorf("time is %q: it ends before it begins", text)
		}
	}
	return kind, seconds, nil
}

func parseTime(text string) (at time.Time, err error) {
	for _, form := range []string{time.DateOnly, time.RFC3339, "2006-01-02T15:04:05", time.DateTime} {
		if at, err = time.Parse(form, text); err == nil && at.Nanosecond() == 0 {
			return at, nil
		}
	}
	return at, cmp.Or(err, errors.New("rumi: a fraction of a second"))
}
