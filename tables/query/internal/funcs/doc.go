// Package funcs has the functions of the values of a row, with their documentation.
package funcs
