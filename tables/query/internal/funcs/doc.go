// Package funcs defines the functions of one row's values, and their documentation.
package funcs
