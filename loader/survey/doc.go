// Package survey looks at files and datasets without training on them. Describe reports what a
// file, a directory, a container or an array holds. Stats computes statistics of the fields of a
// dataset, and Weights the files of the sampler that draws windows by their content.
package survey
