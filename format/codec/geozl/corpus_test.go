package geozl

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/format/codec/openzl"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// image is one file of the corpus: a raster cut into frames.
type image struct {
	Path   string
	Kind   string
	Shape  []int // bands, rows, columns
	Blob   string
	SHA256 string
}

// layout holds an image's header, and where its frames begin.
type layout struct {
	width, height, tw, th, bands, size int
	cell                               bool // a frame holds all bands
	base                               int
	counts                             []int
}

// parse reads a header: magic and version, then the fields in order, all little-endian, then the
// sizes of the frames less the smallest, in as few bits as they need.
func parse(t *testing.T, blob string) layout {
	b, err := hex.DecodeString(blob)
	if err != nil || len(b) < 28 {
		t.Fatalf("header of %d bytes: %v", len(b), err)
	}
	u32 := func(i int) int { return int(binary.LittleEndian.Uint32(b[i:])) }
	u16 := func(i int) int { return int(binary.LittleEndian.Uint16(b[i:])) }
	l := layout{
		width: u32(6), height: u32(10), tw: u16(14), th: u16(16),
		bands: u16(18), size: int(b[20]) / 8, cell: b[22] == 1,
	}
	n := ((l.width + l.tw - 1) / l.tw) * ((l.height + l.th - 1) / l.th)
	if !l.cell {
		n *= l.bands
	}
	least, nbits := u32(23), int(b[27])
	for i := range n {
		v := 0
		for k := range nbits {
			p := i*nbits + k
			v |= int(b[28+p/8]>>(p%8)&1) << k
		}
		l.counts = append(l.counts, least+v)
	}
	l.base = 252 + 128 + 32
	if l.bands >= 5 {
		l.base += 4 * l.bands
	}
	if n >= 2 {
		l.base += 8 * n
	}
	if n >= 3 {
		l.base += 4 * n
	}
	return l
}

// TestCorpus: images written by users of the original library decode to their samples.
func TestCorpus(t *testing.T) {
	root := filepath.Join(corpus.Dir(t), "raster")
	d := openzl.NewDecoder(openzl.Options{Custom: Codecs()})
	images := 0
	for _, im := range corpus.Rows[image](t, root) {
		if im.Kind != "rumi-new" || !strings.Contains(im.Path, "v0.16.0") {
			continue
		}
		images++
		t.Run(filepath.Base(im.Path), func(t *testing.T) {
			file := testfile.Read(t, filepath.Join(root, im.Path))
			got := assemble(t, d, file, parse(t, im.Blob))
			if sum := sha256.Sum256(got); hex.EncodeToString(sum[:]) != im.SHA256 {
				t.Error("wrong samples")
			}
		})
	}
	if images == 0 {
		t.Error("the corpus has no images")
	}
}

// assemble decodes all frames of a file, one after the other from l.base on, into one raster.
func assemble(t *testing.T, d *openzl.Decoder, file []byte, l layout) []byte {
	out := make([]byte, l.bands*l.height*l.width*l.size)
	at, i := l.base, 0
	for y := 0; y < l.height; y += l.th {
		for x := 0; x < l.width; x += l.tw {
			h, w := min(l.th, l.height-y), min(l.tw, l.width-x)
			for b := 0; b < l.bands; {
				bands := 1
				if l.cell {
					bands = l.bands
				}
				dst := make([]byte, bands*h*w*l.size)
				if err := d.Decompress(dst, file[at:at+l.counts[i]], l.size); err != nil {
					t.Fatalf("frame %d: %v", i, err)
				}
				at += l.counts[i]
				i++
				for r := range bands * h {
					o := (((b+r/h)*l.height+y+r%h)*l.width + x) * l.size
					copy(out[o:], dst[r*w*l.size:(r+1)*w*l.size])
				}
				b += bands
			}
		}
	}
	if at != len(file) {
		t.Errorf("frames end at %d of %d bytes", at, len(file))
	}
	return out
}

// own returns the module's own frames and the digests of their contents, by name.
func own(t testing.TB) map[string][2][]byte {
	t.Helper()
	list := testfile.Read(t, filepath.Join("testdata", "SHA256SUMS"))
	frames := map[string][2][]byte{}
	for line := range strings.Lines(string(list)) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		want, err := hex.DecodeString(sum)
		if !ok || err != nil {
			t.Fatalf("line %q", line)
		}
		frame := testfile.Read(t, filepath.Join("testdata", strings.TrimSuffix(name, ".raw")+".zl"))
		frames[name] = [2][]byte{frame, want}
	}
	return frames
}

// TestOwnFrames: small frames of every codec decode to the bytes that the original library gives,
// also into unaligned memory, and decoding them again allocates nothing.
func TestOwnFrames(t *testing.T) {
	d := openzl.NewDecoder(openzl.Options{Custom: Codecs()})
	seen := map[string]bool{}
	for name, f := range own(t) {
		outs, err := d.Decode(f[0])
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if sum := sha256.Sum256(outs[0].Data); !bytes.Equal(sum[:], f[1]) {
			t.Errorf("%s: wrong samples", name)
		}
		width, want := outs[0].Width, bytes.Clone(outs[0].Data)
		odd := make([]byte, len(want)+1)[1:]
		if err := d.Decompress(odd, f[0], width); err != nil || !bytes.Equal(odd, want) {
			t.Errorf("%s: at an odd address: %v, right: %v", name, err, bytes.Equal(odd, want))
		}
		info, err := openzl.Inspect(f[0])
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, c := range info.Codecs {
			seen[c] = true
		}
	}
	for id, c := range Codecs() {
		if !seen["custom "+strconv.FormatUint(uint64(id), 10)] {
			t.Errorf("no frame of codec %s", c.Name)
		}
	}
}

// TestSteadyState: decoding a frame again allocates nothing.
func TestSteadyState(t *testing.T) {
	if race.Enabled || purego() != "" {
		t.Skip("this build allocates: ", purego())
	}
	d := openzl.NewDecoder(openzl.Options{Custom: Codecs()})
	for name, f := range own(t) {
		outs, err := d.Decode(f[0])
		if err != nil {
			t.Fatal(err)
		}
		dst, width := make([]byte, len(outs[0].Data)), outs[0].Width
		if n := testing.AllocsPerRun(10, func() {
			if err := d.Decompress(dst, f[0], width); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%s: allocates %v times", name, n)
		}
	}
}

// purego returns why this build cannot view bytes as numbers, or "" if it can.
func purego() string {
	if _, ok := cast.Of[uint16](cast.Aligned(2)); !ok {
		return "purego"
	}
	return ""
}
