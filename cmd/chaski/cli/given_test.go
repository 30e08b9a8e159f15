package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// piecesOf writes pieces as a program does: the first has words.
func piecesOf(words []string, more ...string) string {
	var first, all strings.Builder
	for _, word := range words {
		first.WriteString(word + "\x00")
	}
	for _, piece := range append([]string{first.String()}, more...) {
		fmt.Fprintf(&all, "%d\n%s", len(piece), piece)
	}
	return all.String()
}

// TestWordsOfStandardInput promises that a program can give the words of a command where no other user sees them, also
// names of any bytes, and that the command is told when the program ends.
func TestWordsOfStandardInput(t *testing.T) {
	words := []string{"--", "-", "a\nb", "", "\xff.tif", strings.Repeat("long", 1<<16)}
	for _, given := range [][]string{words, nil} {
		ended := make(chan bool)
		in, out := io.Pipe()
		go func() { _, _ = io.WriteString(out, piecesOf(given, "the ", "rest")+"0\n") }()
		args, rest, err := wordsOf([]string{"sql", "@-"}, in, func() { close(ended) })
		if err != nil || !slices.Equal(args, append([]string{"sql"}, given...)) {
			t.Fatalf("%.80q, %v", args, err)
		}
		if b, err := io.ReadAll(rest); err != nil || string(b) != "the rest" {
			t.Errorf("then %q, %v", b, err)
		}
		select {
		case <-ended:
			t.Error("the program has ended, and has its end of the pipe")
		default:
		}
		_ = out.Close()
		<-ended
	}
	if args, _, err := wordsOf([]string{"sql", "@-", "a"}, strings.NewReader(""), nil); err != nil || len(args) != 3 {
		t.Errorf("%q, %v", args, err)
	}
}

// TestCutStandardInput promises that the input of a command whose program has died never looks whole.
func TestCutStandardInput(t *testing.T) {
	for _, text := range []string{"", "3\na\x00", "2\nab", "-2\n", "x\n", "5", "99999999999\na\x00",
		strings.Repeat("0", 1<<13)} {
		if args, _, err := wordsOf([]string{"sql", "@-"}, strings.NewReader(text), nil); err == nil {
			t.Errorf("%.20q is %q", text, args)
		}
	}
	whole := piecesOf([]string{"a"}, "bcd", "e")
	for n := len(piecesOf([]string{"a"})); n <= len(whole); n++ {
		ended := make(chan bool)
		_, rest, err := wordsOf([]string{"sql", "@-"}, strings.NewReader(whole[:n]), func() { close(ended) })
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(rest); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.HasPrefix("bcde", string(b)) {
			t.Errorf("%d bytes: %q, %v", n, b, err)
		}
		<-ended
	}
}
