package sign

import (
	"bufio"
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestWaitingForAnAnswer: while the process that signs does not answer one caller, another one waits no longer than its
// own context.
func TestWaitingForAnAnswer(t *testing.T) { synctest.Test(t, testWaitingForAnAnswer) }

func testWaitingForAnAnswer(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	p := &peer{conn: here, in: bufio.NewReader(here)}
	first := make(chan string)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		answer, err := p.ask(ctx, 0, "a")
		if err != nil {
			t.Error(err)
		}
		first <- string(answer)
	}()
	question := bufio.NewReader(there)
	if _, err := question.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := p.ask(ctx, 0, "b"); err == nil {
		t.Error("another question has an answer")
	}
	if waited := time.Since(begun); waited != time.Minute {
		t.Errorf("the second caller waited for %v", waited)
	}
	if _, err := there.Write([]byte(`{"id":1,"answer":"yes"}` + "\n")); err != nil {
		t.Fatal(err)
	}
	if got := <-first; got != `"yes"` {
		t.Errorf("the answer is %s", got)
	}
}
