package textguard

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// TestTooManyParts: each kind of part is bounded, and the bound itself is free.
func TestTooManyParts(t *testing.T) {
	race.SkipCovered(t)
	most := map[string]int{"band": 2}
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"attributes":            {"<a" + strings.Repeat(" b='1'", maxAttributes) + "/>", true},
		"too many":              {"<a" + strings.Repeat(" b='1'", maxAttributes+1) + "/>", false},
		"without values":        {"<a" + strings.Repeat(" b", maxAttributes+1) + "/>", false},
		"without spaces":        {"<a " + strings.Repeat("b='1'", maxAttributes+1) + "/>", false},
		"in a value":            {"<a b='" + strings.Repeat(" b", maxAttributes+1) + "'/>", true},
		"in a comment":          {"<!--<a" + strings.Repeat(" b", maxAttributes+1) + "/>-->", true},
		"in text":               {"<a><![CDATA[<a" + strings.Repeat(" b", maxAttributes+1) + "/>]]></a>", true},
		"without an end":        {"<a" + strings.Repeat(" b", maxAttributes+1), false},
		"depth":                 {strings.Repeat("<a>", maxDepth) + strings.Repeat("</a>", maxDepth), true},
		"too deep":              {strings.Repeat("<a>", maxDepth+1), false},
		"not deep":              {"<a>" + strings.Repeat("<b c='/'/><d></d>", 1000), true},
		"bands":                 {"<x><band/><v:band/></x>", true},
		"too many bands":        {"<x><band/><v:band/><band a=''></band></x>", false},
		"elements":              {strings.Repeat("<a/>", maxElements), true},
		"too many elements":     {strings.Repeat("<a/>", maxElements+1), false},
		"a type with elements":  {"<!DOCTYPE a [" + strings.Repeat("<a>", maxDepth+1) + "]>", false},
		"nothing":               {"", true},
		"a beginning":           {"<", true},
		"a comment without end": {"<!-- <a", true},
	} {
		_, err := XML("XML", []byte(c.text), most)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, fault.Limit) {
			t.Errorf("XML, %s: %v", name, err)
		}
	}
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"depth":            {strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth), true},
		"too deep":         {strings.Repeat("[", maxDepth+1), false},
		"objects":          {strings.Repeat(`{"a":`, maxDepth+1), false},
		"in a string":      {`"` + strings.Repeat("[", maxDepth+1) + `\"[["`, true},
		"members":          {"{" + strings.Repeat(`"":0,`, maxMembers), true},
		"too many members": {"{" + strings.Repeat(`"":0,`, maxMembers+1), false},
		"too many values":  {"[" + strings.Repeat(`0,`, maxValues+1), false},
	} {
		if _, err := JSON("JSON", []byte(c.text)); (err == nil) != c.ok || err != nil && !errors.Is(err, fault.Limit) {
			t.Errorf("JSON, %s: %v", name, err)
		}
	}
}

// TestValues: separators outside of quotes count, for each record, however the text comes.
func TestValues(t *testing.T) {
	const text = "a,\"b,,,\"\",,\",c,"
	for step := 1; step <= len(text); step++ {
		for most, ok := range map[int]bool{3: true, 2: false} {
			values, fits := Values{Separator: ',', Most: most}, true
			for record := range 2 {
				values.Next()
				for i := 0; i < len(text); i += step {
					fits = values.Add([]byte(text[i:min(i+step, len(text))]))
				}
				if fits != ok {
					t.Errorf("record %d, %d bytes at a time, at most %d values: %v", record, step, most, fits)
				}
			}
		}
	}
}

// TestHold: texts wait for each other's memory, no longer than their context, and a large one is parsed alone.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large, err := Hold(t.Context(), 1<<60)
		if err != nil {
			t.Fatal(err)
		}
		small, err := Hold(t.Context(), smallText)
		if err != nil {
			t.Fatal(err)
		}
		small()
		ctx, cancel := context.WithCancel(t.Context())
		waits := make(chan error)
		go func() { _, err := Hold(ctx, 2*smallText); waits <- err }()
		synctest.Wait()
		cancel()
		if err := <-waits; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		go func() {
			release, err := Hold(t.Context(), 2*smallText)
			if err == nil {
				release()
			}
			waits <- err
		}()
		synctest.Wait()
		large()
		if err := <-waits; err != nil {
			t.Error(err)
		}
	})
}

// TestAParseEndsWithItsContext: a text that is being parsed ends with its context, whose error counts.
func TestAParseEndsWithItsContext(t *testing.T) {
	text := []byte("<a>" + strings.Repeat("<b/>", 1<<16))
	ctx, cancel := context.WithCancel(t.Context())
	read := 0
	err := ParseXML(ctx, "XML", text, nil, func(r io.Reader) error {
		decoder := xml.NewDecoder(r)
		for {
			if _, err := decoder.Token(); err != nil {
				return errors.New("of the parser")
			}
			if read++; read == 100 {
				cancel()
			}
		}
	})
	if !errors.Is(err, context.Canceled) || read > 3000 { // those of a piece of 4 KiB follow
		t.Errorf("%v after %d tokens", err, read)
	}
}

// FuzzXML: encoding/xml finds no more parts than are counted, with its strict rules and without.
func FuzzXML(f *testing.F) {
	for _, text := range []string{
		`<?xml version="1.0"?><a b="1" c='>'><!-- <d> --><e/></a>`, "<a b=c d>&amp;<![CDATA[<x>]]></a>",
		`<!DOCTYPE a [<!ENTITY b "<c>">]><a/>`, "<a b='1'c='2'/>", "<a:b/ ><//a>",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		size, err := XML("", text, nil)
		for _, strict := range []bool{false, true} {
			decoder := xml.NewDecoder(bytes.NewReader(text))
			decoder.Strict = strict
			decoder.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
			elements, depth, deepest, attributes := 0, 0, 0, 0
			for {
				token, err := decoder.RawToken()
				if err != nil {
					break
				}
				switch token := token.(type) {
				case xml.StartElement:
					elements, depth = elements+1, depth+1
					deepest, attributes = max(deepest, depth), max(attributes, len(token.Attr))
				case xml.EndElement:
					depth = max(depth-1, 0)
				}
			}
			if err == nil && (attributes > maxAttributes || deepest > maxDepth ||
				size < int64(len(text)+elementBytes*elements)) {
				t.Fatalf("%d elements, %d deep, with up to %d attributes are counted as %d bytes of %d", elements,
					deepest, attributes, size, len(text))
			}
		}
	})
}

// FuzzJSON: encoding/json finds no more parts than are counted.
func FuzzJSON(f *testing.F) {
	for _, text := range []string{`{"a":[1,2,{"b":null}],"c\"":"[{,:"}`, `[[],[],{}]`, `"\\" "\"["`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		size, err := JSON("", text)
		decoder, tokens, depth, deepest := json.NewDecoder(bytes.NewReader(text)), 0, 0, 0
		for {
			token, err := decoder.Token()
			if err != nil {
				break
			}
			tokens++
			if token == json.Delim('[') || token == json.Delim('{') {
				depth++
			} else if token == json.Delim(']') || token == json.Delim('}') {
				depth--
			}
			deepest = max(deepest, depth)
			if depth == 0 {
				break // one value
			}
		}
		// Of tokens half are ends, and each other one but the first of an array or object has a comma or a colon.
		if err == nil && (deepest > maxDepth || size < int64(len(text)+valueBytes*(tokens/4-1))) {
			t.Fatalf("%d tokens, %d deep, are counted as %d bytes of %d", tokens, deepest, size, len(text))
		}
	})
}
