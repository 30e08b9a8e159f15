package zstd_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	kzstd "github.com/klauspost/compress/zstd"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/zstd"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

const filler = 0xa5

// decompress runs one of the decoder's two methods into n bytes and checks what both promise:
// errors are Corrupt, and no byte is written past dst and the spare room behind it.
func decompress(t testing.TB, d *zstd.Decoder, src []byte, n, spare int) ([]byte, error) {
	t.Helper()
	const behind = 64
	buf := bytes.Repeat([]byte{filler}, n+spare+behind)
	in := bytes.Clone(src)
	err := d.Decompress(buf[:n:n+spare], src)
	if err != nil && !errors.Is(err, fault.Corrupt) {
		t.Fatalf("an error of kind %v: %v", fault.KindOf(err), err)
	}
	if tail := buf[n+spare:]; bytes.Count(tail, []byte{filler}) != behind {
		t.Fatalf("wrote past %d bytes, %d granted behind: %x", n, spare, tail)
	}
	if !bytes.Equal(in, src) {
		t.Fatal("src was changed")
	}
	return buf[:n], err
}

// TestFramesMadeByHand: frames made by hand from RFC 8878 decode to their content, into exactly as
// many bytes, and frames that violate it are refused for every length of dst.
func TestFramesMadeByHand(t *testing.T) {
	d := zstd.New()
	for _, c := range handmades() {
		for _, spare := range []int{0, zstd.Spare} {
			for n := range 30 {
				if n == len(c.want) && !c.refuse {
					continue
				}
				if _, err := decompress(t, d, c.src, n, spare); err == nil {
					t.Errorf("%s: accepted into %d bytes, spare %d", c.name, n, spare)
				}
			}
			if c.refuse {
				continue
			}
			if got, err := decompress(t, d, c.src, len(c.want), spare); err != nil || !bytes.Equal(got, c.want) {
				t.Errorf("%s: spare %d: %v, %d bytes", c.name, spare, err, len(got))
			}
			for _, n := range []int{len(c.want) + 1, max(0, len(c.want)-1)} {
				if _, err := decompress(t, d, c.src, n, spare); n != len(c.want) && err == nil {
					t.Errorf("%s: %d bytes accepted into %d", c.name, len(c.want), n)
				}
			}
		}
	}
}

// TestClaimsCostNoMemory: memory use follows dst and src, whatever a frame claims or would produce.
func TestClaimsCostNoMemory(t *testing.T) {
	d := zstd.New()
	dst := make([]byte, 1000, 1000+zstd.Spare)
	_ = d.Decompress(dst[:4], handmades()[1].src) // tables are made once
	for _, c := range handmades() {
		n := corpus.Allocated(func() {
			_ = d.Decompress(slices.Clip(dst), c.src)
			_ = d.Decompress(dst, c.src)
		})
		if n > 1<<20 {
			t.Errorf("%s: %d bytes allocated for %d of dst and %d of src", c.name, n, len(dst), len(c.src))
		}
	}
}

// samples are rows like those of a difference predictor: small values, repeats, some noise.
func samples(n int) []byte {
	rnd := rand.New(rand.NewPCG(1, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		if b[i] = byte(rnd.NormFloat64() * 6); i > 600 && rnd.IntN(3) > 0 {
			b[i] = b[i-512]
		}
	}
	return b
}

func compress(t testing.TB, content []byte, o ...kzstd.EOption) []byte {
	t.Helper()
	e, err := kzstd.NewWriter(nil, append(o, kzstd.WithEncoderConcurrency(1))...)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	return e.EncodeAll(content, nil)
}

// TestCutAndChangedFrames: a frame that is cut off anywhere is refused; one with a checksum is
// refused if a changed bit changes the content.
func TestCutAndChangedFrames(t *testing.T) {
	d := zstd.New()
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 100, 4000, 300 << 10} {
		want := samples(n)
		src := compress(t, want)
		for _, spare := range []int{0, zstd.Spare} {
			if got, err := decompress(t, d, src, n, spare); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%d bytes, spare %d: %v", n, spare, err)
			}
			for range 60 {
				if _, err := decompress(t, d, src[:rnd.IntN(len(src))], n, spare); err == nil {
					t.Errorf("%d bytes: accepted though cut", n)
				}
				broken := bytes.Clone(src)
				broken[rnd.IntN(len(src))] ^= 1 << rnd.IntN(8)
				if got, err := decompress(t, d, broken, n, spare); err == nil && !bytes.Equal(got, want) {
					t.Errorf("%d bytes: other bytes accepted against the checksum", n)
				}
			}
			// The decoder still works after these errors.
			if got, err := decompress(t, d, src, n, spare); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%d bytes, after broken ones: %v", n, err)
			}
		}
	}
}

func TestNoAlloc(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector empties the library's pools")
	}
	want := samples(300 << 10)
	src, dst, d := compress(t, want), make([]byte, len(want), len(want)+zstd.Spare), zstd.New()
	if n := testing.AllocsPerRun(10, func() {
		if d.Decompress(slices.Clip(dst), src) != nil || d.Decompress(dst, src) != nil {
			t.Fatal("not decoded")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestPrefix: a prefix is the start of the whole content, for all frames. A frame that is accepted
// as a whole is accepted for every prefix.
func TestPrefix(t *testing.T) {
	d := zstd.New()
	big := samples(600 << 10)
	nul := make([]byte, 3*blockMax)
	cases := append(handmades(),
		handmade{name: "blocks of a window", src: compress(t, big), want: big},
		handmade{name: "no checksum", src: compress(t, big, kzstd.WithEncoderCRC(false)), want: big},
		handmade{name: "single segment", src: compress(t, big, kzstd.WithSingleSegment(true)), want: big},
		handmade{name: "small window", src: compress(t, big, kzstd.WithWindowSize(1<<10)), want: big},
		handmade{
			name: "window of 1 GiB",
			src:  window(30, false).rle(0, blockMax, false).rle(0, blockMax, false).rle(0, blockMax, true).end(),
			want: nul,
		},
		handmade{name: "three frames", src: bytes.Repeat(window(17, true).rle(0, blockMax, true).end(), 3), want: nul},
		handmade{name: "a window of 1 GiB in the second frame", want: nul,
			src: join(window(17, true).rle(0, blockMax, true).end(),
				window(30, true).rle(0, blockMax, false).rle(0, blockMax, true).end())},
	)
	for _, c := range cases {
		if c.refuse {
			continue
		}
		for _, n := range []int{0, 1, 8, len(c.want) / 4, len(c.want) / 2, len(c.want) - 1, len(c.want)} {
			for _, spare := range []int{0, zstd.Spare} {
				if n < 0 || n > len(c.want) {
					continue
				}
				buf := bytes.Repeat([]byte{filler}, len(c.want)+spare+8)
				err := d.DecompressPrefix(buf[:len(c.want):len(c.want)+spare], c.src, n)
				if err != nil || !bytes.Equal(buf[:n], c.want[:n]) {
					t.Errorf("%s: %d of %d bytes: %v", c.name, n, len(c.want), err)
				}
				if bytes.Count(buf[len(c.want)+spare:], []byte{filler}) != 8 {
					t.Errorf("%s: %d of %d bytes: wrote past the end", c.name, n, len(c.want))
				}
			}
		}
	}
}

// TestPrefixStopsEarly: decoding a prefix does not need the bytes behind it.
func TestPrefixStopsEarly(t *testing.T) {
	want := samples(4 * blockMax)
	src, dst := compress(t, want), make([]byte, len(want))
	err := zstd.New().DecompressPrefix(dst, src[:len(src)/2], blockMax)
	if err != nil || !bytes.Equal(dst[:blockMax], want[:blockMax]) {
		t.Errorf("half of the frame, a quarter of the content: %v", err)
	}
}

// TestPrefixCostsNoMemory: a frame that claims a window of 2^30 bytes gets no memory for it.
func TestPrefixCostsNoMemory(t *testing.T) {
	d, dst := zstd.New(), make([]byte, 4*blockMax)
	_ = d.DecompressPrefix(dst, compress(t, dst), 8) // tables are made once
	for _, c := range handmades() {
		for _, src := range [][]byte{
			c.src, append(window(30, false).b, c.src...), window(30, false).rle(0, blockMax, true).end(),
		} {
			if n := corpus.Allocated(func() { _ = d.DecompressPrefix(dst, src, 1000) }); n > 9<<20 {
				t.Errorf("%s: %d bytes allocated", c.name, n)
			}
		}
	}
}

// FuzzPrefix: if a whole frame is accepted, so are its prefixes, with its bytes. Contents have
// several blocks, so that prefixes can end early.
func FuzzPrefix(f *testing.F) {
	for _, n := range []int{200, 3 * blockMax} {
		zeros := make([]byte, n)
		for _, o := range [][]kzstd.EOption{
			nil, {kzstd.WithEncoderCRC(false)},
			{kzstd.WithSingleSegment(true)}, {kzstd.WithWindowSize(1 << 10)},
		} {
			f.Add(compress(f, zeros, o...), uint32(n), uint32(n/4))
			f.Add(compress(f, bytes.Repeat(samples(1000), n/1000+1)[:n], o...), uint32(n), uint32(n/2))
		}
	}
	f.Add(bytes.Repeat(window(17, true).rle(5, blockMax, true).end(), 3), uint32(3*blockMax), uint32(blockMax+1))
	d := zstd.New()
	whole, part := make([]byte, 4*blockMax+zstd.Spare), make([]byte, 4*blockMax+zstd.Spare)
	f.Fuzz(func(t *testing.T, src []byte, size, n uint32) {
		size %= 4*blockMax + 1
		n %= size + 1
		accepted := d.Decompress(whole[:size:size], src) == nil
		err := d.DecompressPrefix(part[:size:size+zstd.Spare], src, int(n))
		if err != nil && (accepted || fault.KindOf(err) == 0) {
			t.Fatalf("the whole was accepted: %v; its first %d bytes: %v", accepted, n, err)
		}
		if accepted && !bytes.Equal(part[:n], whole[:n]) {
			t.Fatalf("other bytes in the first %d of %d", n, size)
		}
	})
}
