package openzl_test

import (
	"fmt"

	"github.com/chaski-eo/chaski/format/codec/geozl"
	"github.com/chaski-eo/chaski/format/codec/openzl"
)

func ExampleEncoder() {
	samples := make([]byte, 64*64*2) // 64 rows of 64 samples, a slope
	for i := range 64 * 64 {
		v := 100 + i/64 + i%64
		samples[2*i], samples[2*i+1] = byte(v), byte(v>>8)
	}
	e, err := openzl.NewEncoder("planar>zigzag>transpose>entropy", openzl.EncodeOptions{})
	if err != nil {
		panic(err)
	}
	frame, err := e.Encode(nil, samples, 2, 64, 64)
	if err != nil {
		panic(err)
	}
	back := make([]byte, len(samples))
	d := openzl.NewDecoder(openzl.Options{Custom: geozl.Codecs()})
	if err := d.Decompress(back, frame, 2); err != nil {
		panic(err)
	}
	fmt.Println(len(frame) < len(samples)/10, string(back) == string(samples))
	// Output: true true
}
