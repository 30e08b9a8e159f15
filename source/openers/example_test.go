package openers_test

import (
	"context"
	"fmt"
	"log"

	"github.com/chaski-eo/chaski/source/openers"
)

// The first bytes of a local file. Mux takes openers for other schemes, such as those of httpsource and blobsource.
func Example() {
	ctx := context.Background()
	opener := &openers.Mux{Files: &openers.Files{}}
	defer opener.Close()
	r, err := opener.Open(ctx, "../../testdata/demo/coast.tif")
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	magic := make([]byte, 4)
	if err := r.ReadAt(ctx, magic, 0); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("% x\n", magic)
	// Output: 49 49 2b 00
}
