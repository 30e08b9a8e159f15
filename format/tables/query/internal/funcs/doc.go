// Package funcs defines the functions of one row's values and the aggregates, and their documentation.
package funcs
