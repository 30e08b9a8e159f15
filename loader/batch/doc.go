// Package batch has what a step of a run gives: the tensors of its rows, the rows that are bad, and the memory of both.
// An engine makes batches (package loader), and a client receives them from one (package client).
package batch
