package vector

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/internal/textguard"
)

// randomText returns a text of some letters.
func randomText(r *rand.Rand, letters string, most int) string {
	runes, out := []rune(letters), make([]rune, r.IntN(most+1))
	for i := range out {
		out[i] = runes[r.IntN(len(runes))]
	}
	return string(out)
}

// TestDecimal: a number that decimal knows is bit for bit the one of strconv.ParseFloat, and it knows no other text.
func TestDecimal(t *testing.T) {
	r, known := rand.New(rand.NewPCG(1, 2)), 0
	for range 200_000 {
		text := randomText(r, "0123456789012345678901234567890123456789..-+eE_xn ", 18)
		if r.IntN(3) == 0 {
			text = strconv.FormatFloat(r.NormFloat64()*math.Pow(10, float64(r.IntN(12)-6)), 'f', r.IntN(12), 64)
		}
		got, ok := decimal(text)
		want, err := strconv.ParseFloat(text, 64)
		if ok && (err != nil || math.Float64bits(got) != math.Float64bits(want)) {
			t.Fatalf("%q: %v, want %v, %v", text, got, want, err)
		}
		if ok {
			known++
		}
	}
	if known < 50_000 {
		t.Errorf("%d numbers are known", known)
	}
}

// TestFieldsOfLines: the words of lines are those of strings.Fields, also of lines that are longer than the buffer.
func TestFieldsOfLines(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		text := randomText(r, "ab1 \t\r\n\n\v\fé\u00a0\u2003", 200)
		in := bufio.NewReaderSize(strings.NewReader(text), 16)
		var got, words []string
		for {
			line, err := readLine(in)
			if err != nil {
				break
			}
			words = appendFields(words[:0], line)
			got = append(got, fmt.Sprintf("%q", words))
		}
		var want []string
		for line := range strings.Lines(text) {
			want = append(want, fmt.Sprintf("%q", strings.Fields(line)))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestEachMember: the members of valid objects are those that the decoder of encoding/json visits.
func TestEachMember(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var value func(depth int) string
	blank := func() string { return randomText(r, " \t\n", 2) }
	text := func() string {
		out, _ := json.Marshal(randomText(r, `ab"\{}[],:é😀`+"\n", 6))
		if r.IntN(4) == 0 {
			return `"\u00e9\ud83d\ude00\"` + string(out[1:])
		}
		return string(out)
	}
	value = func(depth int) string {
		switch n := r.IntN(8); {
		case n < 3 && depth > 0:
			list := []string{}
			for range r.IntN(4) {
				v := value(depth - 1)
				if n > 0 {
					v = text() + blank() + ":" + blank() + v
				}
				list = append(list, blank()+v+blank())
			}
			if n > 0 {
				return "{" + blank() + strings.Join(list, ",") + "}"
			}
			return "[" + blank() + strings.Join(list, ",") + "]"
		case n < 6:
			return text()
		}
		return []string{"1", "-2.5e3", "true", "null", `"\xff"`}[r.IntN(4)]
	}
	objects := 0
	for range 20_000 {
		object := value(4)
		if object[0] != '{' {
			continue
		}
		objects++
		var got, want []string
		eachMember([]byte(object), func(key string, v json.RawMessage) { got = append(got, key+"\x00"+string(v)) })
		d := json.NewDecoder(bytes.NewReader([]byte(object)))
		_, err := d.Token()
		if err == nil {
			err = textguard.EachMember(d, func(key string) error {
				var v json.RawMessage
				err := d.Decode(&v)
				want = append(want, key+"\x00"+string(v))
				return err
			})
		}
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%s: %q, want %q, %v", object, got, want, err)
		}
	}
	if objects < 1000 {
		t.Errorf("%d objects", objects)
	}
}
