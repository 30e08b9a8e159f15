package chunk

import (
	"bytes"
	"errors"
	"testing"

	"github.com/chaski-eo/chaski/fault"
)

// frameCodec is a codec like OpenZL: the first byte of a frame is the width of its numbers, and the frame fits if all
// of its content is asked for in numbers of that width.
type frameCodec struct{}

func (frameCodec) Decompress(dst, src []byte, t *Tile) error {
	if t.Number != int(src[0]) || t.Need != len(src)-1 {
		return fault.New(fault.Corrupt, "", "another form")
	}
	copy(dst, src[1:])
	return nil
}

// TestFramesInOtherForms: a frame of components gives complex samples, and a frame of the part of a chunk that lies in
// the image gives these samples, and zeros in the rest.
func TestFramesInOtherForms(t *testing.T) {
	for _, dtype := range []DType{Uint8, Uint16, Complex64} {
		for _, form := range []struct {
			bands, height, width int
			inner                Inner
		}{{1, 4, 5, BYX}, {1, 3, 5, BYX}, {1, 4, 3, BYX}, {3, 2, 3, BYX}, {3, 1, 1, BYX}, {3, 2, 3, YXB}} {
			const chunkH, chunkW = 4, 5
			x := &Index{Bands: form.bands, Height: form.height, Width: form.width, ChunkB: form.bands, ChunkH: chunkH,
				ChunkW: chunkW, DType: dtype, Codec: OpenZL, Predictor: NoPredictor, Inner: form.inner,
				Ranges: []Range{{Len: 1}}}
			size := dtype.Size()
			part := size / dtype.Components()
			whole := form.bands * chunkH * chunkW * size
			cut := form.bands * form.height * form.width * size
			for _, content := range []int{whole, cut, cut - size, cut + size} {
				for _, number := range []int{size, part, 16} {
					frame := make([]byte, 1+content)
					for i := range frame {
						frame[i] = byte(i) | 1
					}
					frame[0] = byte(number)
					got := bytes.Repeat([]byte{0xee}, whole)
					codecs := Codecs{OpenZL: func() Decompressor { return frameCodec{} }}
					err := NewDecoder(codecs).Decode(got, frame, x, 0)
					known := number == size || number == part
					switch {
					case known && content == whole:
						if err != nil || !bytes.Equal(got, frame[1:]) {
							t.Errorf("%v, %+v: a whole chunk of numbers of %d bytes: %v", dtype, form, number, err)
						}
					case known && content == cut && form.inner == BYX:
						want := make([]byte, whole)
						for b := range form.bands {
							for y := range form.height {
								for c := range form.width {
									from := ((b*form.height+y)*form.width + c) * size
									copy(want[((b*chunkH+y)*chunkW+c)*size:], frame[1+from:][:size])
								}
							}
						}
						if err != nil || !bytes.Equal(got, want) {
							t.Errorf("%v, %+v: a chunk cut to the image, of numbers of %d bytes: %v\n%x\n%x", dtype,
								form, number, err, got, want)
						}
					default:
						if !errors.Is(err, fault.Corrupt) {
							t.Errorf("%v, %+v: %d bytes of numbers of %d: %v", dtype, form, content, number, err)
						}
					}
				}
			}
		}
	}
}
