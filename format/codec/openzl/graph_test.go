package openzl

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/codecs"
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/wire"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// testNode is a node of a hand-made graph.
type testNode struct {
	id        int
	custom    bool
	header    []byte
	vars      int
	distances []int // one a regenerated stream
}

// testFrame writes a frame of format version 24 without checksums: outputs of the given types and
// sizes, one chunk.
func testFrame(types []Type, sizes []int, nodes []testNode, stored ...[]byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, magicBase+24)
	code := func(t Type) byte { return byte(t - Serial) }
	first := byte(len(types)) | code(types[0])<<4
	if len(types) > 1 {
		first |= code(types[1]) << 6
	}
	b = append(b, 0, first)
	for _, n := range sizes {
		b = binary.AppendUvarint(b, uint64(n)+1)
	}
	b = binary.AppendUvarint(b, uint64(len(nodes))+1)
	b = binary.AppendUvarint(b, uint64(len(stored)))
	pack := func(width int, values []int) {
		start := len(b)
		b = append(b, make([]byte, (len(values)*width+7)/8)...)
		for i, v := range values {
			for k := range width {
				if v>>k&1 != 0 {
					p := i*width + k
					b[start+p/8] |= 1 << (p % 8)
				}
			}
		}
	}
	flags := func(f func(testNode) bool) {
		var v []int
		for _, n := range nodes {
			if f(n) {
				v = append(v, 1)
			} else {
				v = append(v, 0)
			}
		}
		pack(1, v)
	}
	flags(func(n testNode) bool { return n.custom })
	var ids, distances []int
	for _, n := range nodes {
		if !n.custom {
			ids = append(ids, n.id)
		}
		distances = append(distances, n.distances...)
	}
	pack(7, ids)
	for _, n := range nodes {
		if n.custom {
			b = binary.AppendUvarint(b, uint64(n.id))
		}
	}
	flags(func(n testNode) bool { return len(n.header) > 0 })
	for _, n := range nodes {
		if len(n.header) > 0 {
			b = binary.AppendUvarint(b, uint64(len(n.header))-1)
		}
	}
	flags(func(n testNode) bool { return n.vars > 0 })
	for _, n := range nodes {
		if n.vars > 0 {
			b = binary.AppendUvarint(b, uint64(n.vars)-1)
		}
	}
	flags(func(n testNode) bool { return len(n.distances) != 1 })
	for _, n := range nodes {
		if len(n.distances) != 1 {
			b = binary.AppendUvarint(b, uint64(len(n.distances))-2)
		}
	}
	pack(wire.BitsFor(len(distances)+len(stored)), distances)
	for _, s := range stored {
		b = binary.AppendUvarint(b, uint64(len(s)))
	}
	for _, n := range nodes {
		b = append(b, n.header...)
	}
	for _, s := range stored {
		b = append(b, s...)
	}
	return append(b, 0)
}

// Ids that the tests use.
const (
	idTranspose       = 2
	idTransposeSplit2 = 30 // and for 4 and 8 streams
	idSplitByStruct   = 41
	idConstant        = 44
	idConcatSerial    = 55
	idDedup           = 56
)

// TestGraphs: graphs whose parts do not fit together are refused as corrupt before anything is
// decoded, and the error names the node.
func TestGraphs(t *testing.T) {
	num := testNode{id: idNumToSerial, header: []byte{0}, distances: []int{0}}
	for name, c := range map[string]struct {
		frame []byte
		want  string // in the message; "" for a sound frame
	}{
		"sound":  {testFrame([]Type{Numeric}, []int{3}, []testNode{num}, []byte("abc")), ""},
		"stored": {testFrame([]Type{Serial}, []int{3}, nil, []byte("abc")), ""},
		"two outputs": {testFrame([]Type{Serial, Serial}, []int{3, 1},
			nil, []byte("d"), []byte("abc")), ""},
		"output type": {testFrame([]Type{Serial}, []int{3}, []testNode{num}, []byte("abc")),
			"output 0 is numeric"},
		"input type": {testFrame([]Type{Numeric}, []int{3}, []testNode{
			{id: idZigzag, distances: []int{0}},
		}, []byte("abc")),
			"node 0 at 7: input 0 of codec zigzag is serial"},
		"no streams": {testFrame([]Type{Serial}, []int{0}, nil), "0 streams for 1 outputs"},
		"stream left over": {testFrame([]Type{Numeric}, []int{3}, []testNode{num}, []byte("abc"), []byte("d")),
			"streams"},
		"stream missing": {testFrame([]Type{Numeric}, []int{3}, []testNode{num, {id: idZigzag, distances: []int{0}}}),
			"node 1 at 7: inputs up to stream 2"},
		"past the end": {testFrame([]Type{Numeric}, []int{3}, []testNode{
			{id: idNumToSerial, header: []byte{0}, distances: []int{1}},
		}, []byte("abc")),
			"node 0 at 7: regenerates stream 2"},
		"made twice": {testFrame([]Type{Numeric}, []int{3},
			[]testNode{{id: idNumToSerial, header: []byte{0}, distances: []int{1}}, num}, []byte("abc"), []byte("abc")),
			"node 1 at 7: regenerates stream 2"},
		"too many made": {testFrame([]Type{Numeric, Numeric}, []int{3, 3},
			[]testNode{{id: idNumToSerial, header: []byte{0}, distances: []int{0, 1}}}, []byte("abc")),
			"regenerates 2 streams"},
		"no variable inputs": {testFrame([]Type{Numeric}, []int{3},
			[]testNode{
				{id: idNumToSerial, header: []byte{0}, vars: 1, distances: []int{0}},
			}, []byte("abc"), []byte("d")),
			"1 variable inputs of codec convert_num_to_serial_le"},
		"width": {testFrame([]Type{Numeric}, []int{3}, []testNode{
			{id: idNumToSerial, header: []byte{1}, distances: []int{0}},
		}, []byte("abc")),
			"node 0 convert_num_to_serial_le at 7: 3 bytes are not elements of 2"},
		"size": {testFrame([]Type{Numeric}, []int{4}, []testNode{num}, []byte("abc")),
			"output 0 has 3 bytes, header says 4"},
		"too large": {testFrame([]Type{Numeric}, []int{2}, []testNode{num}, []byte("abc")),
			"output 0 has more bytes"},
		"dedup": {testFrame([]Type{Numeric, Numeric}, []int{3, 3},
			[]testNode{num, {id: idDedup, distances: []int{1, 0}}}, []byte("abc")), ""},
		"concat": {testFrame([]Type{Serial, Serial}, []int{1, 2},
			[]testNode{
				{id: idNumToSerial, header: []byte{2}, distances: []int{1}},
				{id: idConcatSerial, distances: []int{1, 0}},
			},
			[]byte{1, 0, 0, 0, 2, 0, 0, 0}, []byte("abc")), ""},
	} {
		_, err := NewDecoder(Options{}).Decode(c.frame)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (!errors.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: error %v, want corrupt with %q", name, err, c.want)
		}
	}
}

// TestChunks: the chunks of a frame are joined, by Decode and by Decompress into dst.
func TestChunks(t *testing.T) {
	nodes := []testNode{{id: idNumToSerial, header: []byte{1}, distances: []int{0}}}
	one := testFrame([]Type{Numeric}, []int{4}, nodes, []byte("abcd"))
	two := testFrame([]Type{Numeric}, []int{2}, []testNode{{id: idNumToSerial, header: []byte{1}, distances: []int{0}},
		{id: idDelta, header: []byte("ef"), distances: []int{0}}}, nil)
	wide := testFrame([]Type{Numeric}, []int{4}, []testNode{
		{id: idNumToSerial, header: []byte{2}, distances: []int{0}},
	}, []byte("ijkl"))
	const head = 7 // magic, flags, types, size
	join := func(size byte, frames ...[]byte) []byte {
		b := bytes.Clone(frames[0][:head])
		b[head-1] = size + 1
		for _, f := range frames {
			b = append(b, f[head:len(f)-1]...)
		}
		return append(b, 0)
	}
	d := NewDecoder(Options{})
	frame := join(10, one, two, one)
	outs, err := d.Decode(frame)
	if err != nil || string(outs[0].Data) != "abcdefabcd" || outs[0].Count != 5 || outs[0].Width != 2 {
		t.Errorf("%v, %+v", err, outs)
	}
	dst := make([]byte, 10)
	if err := d.Decompress(dst, frame, 2); err != nil || string(dst) != "abcdefabcd" {
		t.Errorf("%v, %q", err, dst)
	}
	if err := d.Decompress(dst[:8], join(8, one, one), 4); !errors.Is(err, fault.Corrupt) {
		t.Errorf("wrong width: %v", err)
	}
	for name, f := range map[string][]byte{
		"width changes":  join(8, one, wide),
		"too many bytes": join(7, one, one),
		"too few bytes":  join(9, one, one),
	} {
		if _, err := d.Decode(f); !errors.Is(err, fault.Corrupt) {
			t.Errorf("%s: %v", name, err)
		}
		if err := d.Decompress(make([]byte, f[head-1]-1), f, 2); !errors.Is(err, fault.Corrupt) {
			t.Errorf("%s: Decompress: %v", name, err)
		}
	}
	// The original treats such a frame as one whose output was never made.
	if _, err := d.Decode(join(0, one[:head+1])); !errors.Is(err, fault.Corrupt) {
		t.Errorf("no chunk: %v", err)
	}
	if info, err := Inspect(frame); err != nil || info.Chunks != 3 {
		t.Errorf("Inspect: %+v, %v", info, err)
	}
}

// TestUnsupported: errors name the codecs that are not decoded.
func TestUnsupported(t *testing.T) {
	for want, n := range map[string]testNode{
		"chunk 0 node 0 at 7: openzl custom codec (77): unsupported":  {id: 77, custom: true, distances: []int{0}},
		"chunk 0 node 0 at 7: openzl codec unknown (99): unsupported": {id: 99, distances: []int{0}},
	} {
		_, err := NewDecoder(Options{}).Decode(testFrame([]Type{Serial}, []int{3}, []testNode{n}, []byte("abc")))
		if !errors.Is(err, fault.Unsupported) || err.Error() != want {
			t.Errorf("error %q, want %q", err, want)
		}
	}
	// Flags and the id of a bundle, one numeric output of 3 bytes, one node with a header and dictionary 0.
	dict := append(binary.LittleEndian.AppendUint32(nil, magicBase+25),
		8, 1, 0x77, 1|byte(Numeric-Serial)<<4, 4, 2,
		1, 0, idNumToSerial, 1, 0, 0, 0, 1, 1, 0, 0, 3, 0,
		'a', 'b', 'c', 0)
	_, err := NewDecoder(Options{}).Decode(dict)
	if !errors.Is(err, fault.Unsupported) ||
		!strings.Contains(err.Error(), "openzl dictionary of codec convert_num_to_serial_le") {
		t.Errorf("a dictionary: %v", err)
	}
	dict[17] = 0 // nobody uses it, and nothing is said of indices
	outs, err := NewDecoder(Options{}).Decode(append(dict[:18:18], dict[20:]...))
	if err != nil || string(outs[0].Data) != "abc" {
		t.Errorf("a bundle that no node uses: %v", err)
	}
	gone := 0
	for id, c := range codecs.Standard { // codecs that there are in other versions only
		if c.Decode == nil || (c.Max == 0 || c.Max >= 24) && c.Min <= 24 {
			continue
		}
		gone++
		frame := testFrame([]Type{c.Out[0]}, []int{3}, []testNode{{id: id, distances: []int{0}}}, []byte("abc"))
		_, err := NewDecoder(Options{}).Decode(frame)
		if !errors.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), c.Name+" in format version 24") {
			t.Errorf("%s in a frame of version 24: %v", c.Name, err)
		}
	}
	if gone != 8 {
		t.Errorf("%d codecs are of other versions than 24", gone)
	}
	for v, want := range map[uint32]string{7: "openzl format version 7", 28: "openzl format version 28"} {
		_, err := NewDecoder(Options{}).Decode(binary.LittleEndian.AppendUint32(nil, magicBase+v))
		if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("version %d: %v", v, err)
		}
	}
}

// TestBombs: small frames that ask for much memory do not get it.
func TestBombs(t *testing.T) {
	big := binary.AppendUvarint(nil, 1<<28)
	zstdBig := append([]byte{1, 0xa0}, 0, 0, 0, 0x0f, 1, 0, 0) // content of 240 MiB, one empty block
	for name, frame := range map[string][]byte{
		"constant past its output": testFrame([]Type{Serial}, []int{3},
			[]testNode{{id: idConstant, header: big, distances: []int{0}}}, []byte("a")),
		"constant, split and dropped": testFrame([]Type{Serial}, []int{100},
			[]testNode{
				{id: idConstant, header: big, distances: []int{0}},
				{id: idSplitN, vars: 1, distances: []int{0}},
			}, []byte("a")),
		"zstd claims": testFrame([]Type{Serial}, []int{0x0f000000}, []testNode{
			{id: idZstd, distances: []int{0}},
		}, zstdBig),
		"huffman claims": testFrame([]Type{Serial}, []int{1 << 27},
			[]testNode{{id: idNumToSerial, header: []byte{0}, distances: []int{1}},
				{id: 50, header: []byte{0, 0, 0, 0, 8}, distances: []int{0}}}, []byte{9}, []byte{1, 1}),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := NewDecoder(Options{}).Decode(frame)
		runtime.ReadMemStats(&after)
		if fault.KindOf(err) == 0 {
			t.Errorf("%s: error %v", name, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
			t.Errorf("%s: %d bytes allocated for a frame of %d (%v)", name, n, len(frame), err)
		}
	}
	limit := Options{MaxOutput: 1000}
	frame := testFrame([]Type{Serial}, []int{1001}, []testNode{
		{id: idConstant, header: []byte{0xe9, 7}, distances: []int{0}},
	}, []byte("a"))
	if _, err := NewDecoder(limit).Decode(frame); !errors.Is(err, fault.Limit) {
		t.Errorf("1001 bytes with a limit of 1000: %v", err)
	}
	if _, err := NewDecoder(Options{MaxOutput: 1001}).Decode(frame); err != nil {
		t.Errorf("1001 bytes with that limit: %v", err)
	}
}

// TestSplitByStruct: structures are joined from their fields. The original's Python bindings do not
// write this codec, so the test asks its decoder where it is installed.
func TestSplitByStruct(t *testing.T) {
	// The conversions take streams 0 and 1; streams 2 and 3 are the fields, the last one first.
	askBoth(t, "aA1bB2cC3", testFrame([]Type{Serial}, []int{9},
		[]testNode{toStruct(2, 2), toStruct(1, 0), {id: idSplitByStruct, vars: 2, distances: []int{0}}},
		[]byte("aAbBcC"), []byte("123")))
}

// TestTransposes: transposes that the original no longer writes decode to the same bytes as in the
// original.
func TestTransposes(t *testing.T) {
	for _, c := range []struct {
		want   string
		width  int // of the elements that are transposed
		stored string
	}{
		{"adgjbehkcfil", 3, "abcdefghijkl"}, {"abc", 3, "abc"}, {"abc", 1, "abc"}, {"aceg" + "bdfh", 2, "abcdefgh"},
	} {
		askBoth(t, c.want, testFrame([]Type{Struct}, []int{len(c.want)},
			[]testNode{toStruct(byte(c.width), 0), {id: idTranspose, distances: []int{0}}}, []byte(c.stored)))
	}
	for i, planes := range [][]string{
		{"ace", "bdf"},
		{"ae", "bf", "cg", "dh"},
		{"ai", "bj", "ck", "dl", "em", "fn", "go", "hp"},
	} {
		var stored [][]byte
		want := ""
		for _, p := range planes {
			stored = append([][]byte{[]byte(p)}, stored...) // the last one first
		}
		for k := range planes[0] {
			for _, p := range planes {
				want += p[k : k+1]
			}
		}
		node := testNode{id: idTransposeSplit2 + i, distances: []int{0}}
		askBoth(t, want, testFrame([]Type{Struct}, []int{len(want)}, []testNode{node}, stored...))
		stored[0] = stored[0][1:]
		_, err := NewDecoder(Options{}).Decode(testFrame([]Type{Struct}, []int{len(want)}, []testNode{node}, stored...))
		if !errors.Is(err, fault.Corrupt) {
			t.Errorf("planes of two lengths: %v", err)
		}
	}
}

// TestComments: a frame with a comment decodes, here and in the original where it is installed, and
// Inspect returns the comment.
func TestComments(t *testing.T) {
	plain := testFrame([]Type{Serial}, []int{3}, nil, []byte("abc"))
	const begin = 4 + 1 + 1 + 1 // magic number, flags, type, size
	with := func(comment string) []byte {
		b := binary.AppendUvarint(bytes.Clone(plain[:begin]), uint64(len(comment)))
		b[4] |= 4
		return append(append(b, comment...), plain[begin:]...)
	}
	for _, n := range []int{1, 127, 128, maxComment} {
		comment := strings.Repeat("c", n)
		askBoth(t, "abc", with(comment))
		if info, err := Inspect(with(comment)); err != nil || string(info.Comment) != comment {
			t.Errorf("a comment of %d bytes is %d bytes, %v", n, len(info.Comment), err)
		}
	}
	for _, comment := range []string{"", strings.Repeat("c", maxComment+1)} {
		if _, err := NewDecoder(Options{}).Decode(with(comment)); !errors.Is(err, fault.Corrupt) {
			t.Errorf("a comment of %d bytes: %v", len(comment), err)
		}
	}
	if _, err := NewDecoder(Options{}).Decode(with("comment")[:begin+4]); !errors.Is(err, fault.Corrupt) {
		t.Errorf("a comment that is cut: %v", err)
	}
}

// TestChecksumsMayBeSkipped: a wrong checksum refuses the frame, unless the options skip checksums.
func TestChecksumsMayBeSkipped(t *testing.T) {
	dir, entries := own(t)
	tried := 0
	for _, e := range entries {
		if !e.Checksums.Content && !e.Checksums.Compressed || e.FormatVersion < chunkVersion {
			continue
		}
		frame := testfile.Read(t, filepath.Join(dir, e.Path))
		want, err := NewDecoder(Options{}).Decode(frame)
		if err != nil {
			continue // one that is to be refused anyway
		}
		tried++
		wrong := bytes.Clone(frame)
		wrong[len(wrong)-2] ^= 1 // in the last checksum, in front of the end mark
		if _, err := NewDecoder(Options{}).Decode(wrong); !errors.Is(err, fault.Corrupt) {
			t.Errorf("%s: a wrong checksum: %v", e.Path, err)
		}
		got, err := NewDecoder(Options{SkipChecksums: true}).Decode(wrong)
		if err != nil || !bytes.Equal(got[0].Data, want[0].Data) {
			t.Errorf("%s: skipped: %v", e.Path, err)
		}
	}
	if tried < 10 {
		t.Errorf("%d frames have checksums", tried)
	}
}

func toStruct(width byte, distance int) testNode {
	return testNode{id: idSerialToStruct, header: []byte{width}, distances: []int{distance}}
}

// askBoth compares the content of a frame with one output, decoded here and by the original where
// it is installed.
func askBoth(t *testing.T, want string, frame []byte) {
	t.Helper()
	outs, err := NewDecoder(Options{}).Decode(frame)
	if err != nil {
		t.Fatalf("%q: %v", want, err)
	}
	if got := string(outs[0].Data); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	python := os.Getenv("CHASKI_ORACLE_PYTHON")
	if python == "" {
		return
	}
	p := filepath.Join(t.TempDir(), "frame.zl")
	testfile.Write(t, p, frame)
	const script = `
import sys, openzl.ext as zl
sys.stdout.buffer.write(zl.DCtx().decompress(open(sys.argv[1], "rb").read())[0].content.as_bytes())`
	out, err := exec.Command(python, "-c", script, p).CombinedOutput()
	if err != nil || string(out) != want {
		t.Errorf("the original gives %q, %v, want %q", out, err, want)
	}
}
