// Command slowstore serves a directory on 127.0.0.1 as an object store at some distance does, for measurements:
// docs/measurements.md has some.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"

	"github.com/chaski-eo/chaski/tools/testkit/netsim"
)

func main() {
	var store netsim.Store
	addr := flag.String("addr", "127.0.0.1:8099", "address")
	flag.StringVar(&store.Dir, "dir", ".", "directory to serve")
	flag.DurationVar(&store.Delay, "delay", 0, "round trip")
	flag.Float64Var(&store.Rate, "rate", 0, "bytes a second of all answers together; 0: no limit")
	flag.BoolVar(&store.Apart, "apart", false, "the rate is of each address of clients")
	flag.Int64Var(&store.LateEvery, "late-every", 0, "every so many requests one is late")
	flag.DurationVar(&store.Late, "late", 0, "by how much")
	flag.Int64Var(&store.FailEvery, "fail-every", 0, "every so many requests one is answered with 503")
	flag.Parse()
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		interrupted := make(chan os.Signal, 1)
		signal.Notify(interrupted, os.Interrupt)
		<-interrupted
		_ = listener.Close()
	}()
	if err := http.Serve(listener, &store); err != nil && !errors.Is(err, net.ErrClosed) {
		log.Print(err)
	}
	requests, bytes := store.Counts()
	fmt.Printf("%d requests, %d bytes\n", requests, bytes)
}
