// Package server serves batches over gRPC: the service chaski.v1.Chaski
// (proto/chaski/v1/chaski.proto) in front of package loader.
//
// A server keeps nothing between tickets but opened datasets, and those only to be fast: it may
// forget them, and says "unknown spec" to tickets for one that it does not have. A batch is started
// when the client has a credit for it, and its memory goes to the transport as it is; with
// Options.SharedMemory, a client of the same user on this host gets the memory itself.
//
// Options.Gate says who may call, and what each client may read. TLS is
// Options.Credentials, such as auth.ServerTLS gives. Batches are not compressed.
package server
