// Package survey goes over files and datasets without training: what a file, a directory, a container or an
// array is (Describe), and the statistics of a dataset's fields (Stats).
package survey
