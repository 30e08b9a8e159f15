//go:build unix

package diskcache

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/source"
)

const (
	// childVariable names the folder of a process that uses it until it is killed, with killQuota.
	childVariable = "CHASKI_TEST_DISKCACHE"
	// soakVariable is how many processes are killed.
	soakVariable = "CHASKI_SOAK_CACHE"
	killQuota    = 2 * objectBytes
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childVariable); path != "" {
		fmt.Println(useFolder(path))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// useFolder reads random ranges, which it announces before, until bytes are wrong.
func useFolder(path string) error {
	f, err := Open(path, killQuota)
	if err != nil {
		return err
	}
	defer f.Close()
	run := f.NewRun(0)
	run.Ready()
	type read struct {
		stored
		content []byte
	}
	var announced []read
	for now := int64(0); ; now++ {
		for len(announced) < 20 {
			id, version := rand.IntN(8), rand.IntN(20)/19 // a new version comes at times
			object := NameObject(string(rune('a'+id)), "", string(rune('0'+version)), objectBytes)
			from := rand.Int64N(objectBytes)
			span := Span{from, min(objectBytes, from+1+rand.Int64N(3*pageBytes))}
			run.Expect(now+int64(len(announced)), object, source.Range{Off: span.From, Len: span.len()})
			announced = append(announced, read{stored{object, span}, contentOf(id, version)})
		}
		next := announced[0]
		announced = announced[1:]
		run.Begin(now)
		got := make([]byte, next.len())
		err := f.Fill(context.Background(), next.Object, got, next.From, func(p []byte, off int64) error {
			copy(p, next.content[off:])
			return nil
		})
		if err != nil || !bytes.Equal(got, next.content[next.From:next.End]) {
			return fmt.Errorf("wrong bytes from %d on, %w", next.From, err)
		}
		run.Over(now)
	}
}

// TestKilledEngines: of engines that share a folder some are killed at random moments, and others come. None reads a
// wrong byte, nothing is damaged, and the files never take more than the quota.
func TestKilledEngines(t *testing.T) {
	kills := 6
	if n, err := strconv.Atoi(os.Getenv(soakVariable)); err == nil {
		kills = n
	}
	path := t.TempDir()
	type child struct {
		process *exec.Cmd
		said    bytes.Buffer
	}
	start := func() *child {
		c := &child{process: exec.Command(os.Args[0])}
		c.process.Env = append(os.Environ(), childVariable+"="+path)
		c.process.Stdout = &c.said
		if err := c.process.Start(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	end := func(c *child) {
		_ = c.process.Process.Kill()
		_ = c.process.Wait() // it was killed
		if c.said.Len() > 0 {
			t.Fatalf("an engine ended: %s", c.said.String())
		}
	}
	var children []*child
	defer func() {
		for _, c := range children {
			end(c)
		}
	}()
	for k := range kills {
		for len(children) < 3 {
			children = append(children, start())
		}
		for onDisk(t, path) == 0 { // processes may take long to start
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
		gone := rand.IntN(len(children))
		end(children[gone])
		children = append(children[:gone], children[gone+1:]...)
		if k%10 == 9 { // the next engine is alone, and counts anew
			for _, c := range children {
				end(c)
			}
			children = nil
		}
		// Of engines that go on, a range that was counted may make room for one that is counted later.
		for _, c := range children {
			stop(t, c.process.Process.Pid)
		}
		n := onDisk(t, path)
		for _, c := range children {
			if err := c.process.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
		}
		if n > killQuota {
			t.Fatalf("after %d kills %d bytes are on disk, the quota is %d", k+1, n, killQuota)
		}
	}
	ranges, damaged, err := Verify(path, func(int64) {})
	if ranges == 0 || damaged > 0 || err != nil {
		t.Errorf("%d ranges, %d damaged, %v", ranges, damaged, err)
	}
}

// stop stops a child until it gets SIGCONT.
func stop(t *testing.T, pid int) {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("it does not stop: %v, %v", status, err)
	}
}
