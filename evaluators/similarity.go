package evaluators

import (
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
)

// maxCells bounds what is compared rune by rune, in runes times runes: about 50 ms.
const maxCells = 25_000_000

// ErrTooLong is of texts or lists whose comparison would take too long.
var ErrTooLong = errors.New("too long to be compared")

// Levenshtein is 1 less the edit distance over the longer length, in runes; two empty
// texts are equal.
func Levenshtein(output, expected string) (float64, error) {
	c := comparison{cells: maxCells}
	return c.levenshtein(output, expected)
}

// NumericDiff is 1 less the distance over the sum of the magnitudes: 105 for 100 is
// .9756. Numbers of different sign score 0.
func NumericDiff(output, expected float64) (float64, error) {
	if math.IsNaN(output) || math.IsInf(output, 0) || math.IsNaN(expected) || math.IsInf(expected, 0) {
		return 0, fmt.Errorf("numbers %g and %g: want finite ones", output, expected)
	}
	if output == expected {
		return 1, nil
	}
	// Scaled first, since the sum of two large numbers may have no float.
	largest := max(math.Abs(output), math.Abs(expected))
	o, e := output/largest, expected/largest
	return 1 - math.Abs(e-o)/(math.Abs(e)+math.Abs(o)), nil
}

const maxListItems = 500

// ListContains is the mean similarity of the best one-to-one assignment of the outputs
// to the expected texts, over the longer list; with allowExtra over the expected ones.
func ListContains(output, expected []string, allowExtra bool) (float64, error) {
	switch {
	case len(output) == 0 && len(expected) == 0:
		return 1, nil
	case len(output) == 0 || len(expected) == 0:
		return 0, nil
	case len(output) > maxListItems || len(expected) > maxListItems:
		return 0, fmt.Errorf("lists of %d and %d items: %w", len(output), len(expected), ErrTooLong)
	}
	rows, columns := output, expected
	if len(rows) > len(columns) {
		rows, columns = columns, rows
	}
	c := comparison{cells: maxCells}
	near := make([][]float64, len(rows))
	for i, a := range rows {
		near[i] = make([]float64, len(columns))
		for j, b := range columns {
			s, err := c.levenshtein(a, b)
			if err != nil {
				return 0, err
			}
			near[i][j] = s
		}
	}
	denominator := len(columns)
	if allowExtra {
		denominator = len(expected)
	}
	return min(assign(near)/float64(denominator), 1), nil
}

// A comparison spends a bounded number of cells on many small distances.
type comparison struct{ cells int }

func (c *comparison) levenshtein(a, b string) (float64, error) {
	if a == b {
		return 1, nil
	}
	n, m := utf8.RuneCountInString(a), utf8.RuneCountInString(b)
	if n > 0 && m > c.cells/n {
		return 0, fmt.Errorf("texts of %d and %d characters: %w", n, m, ErrTooLong)
	}
	c.cells -= n * m
	return 1 - float64(levenshtein.ComputeDistance(a, b))/float64(max(n, m)), nil
}

// assign returns the largest sum of an assignment of every row to a column of its own
// (there are at least as many columns): the Hungarian method with potentials, in
// rows * rows * columns steps.
func assign(gain [][]float64) float64 {
	n, m := len(gain), len(gain[0])
	u, v := make([]float64, n+1), make([]float64, m+1) // potentials
	row := make([]int, m+1)                            // the row of a column; 0 is none
	for i := 1; i <= n; i++ {
		row[0] = i
		column := 0
		slack, from, used := make([]float64, m+1), make([]int, m+1), make([]bool, m+1)
		for j := range slack {
			slack[j] = math.Inf(1)
		}
		for row[column] != 0 {
			used[column] = true
			r, least, next := row[column], math.Inf(1), 0
			for j := 1; j <= m; j++ {
				if used[j] {
					continue
				}
				if d := -gain[r-1][j-1] - u[r] - v[j]; d < slack[j] {
					slack[j], from[j] = d, column
				}
				if slack[j] < least {
					least, next = slack[j], j
				}
			}
			for j := 0; j <= m; j++ {
				if used[j] {
					u[row[j]] += least
					v[j] -= least
				} else {
					slack[j] -= least
				}
			}
			column = next
		}
		for column != 0 { // turn the path around
			row[column] = row[from[column]]
			column = from[column]
		}
	}
	sum := 0.0
	for j := 1; j <= m; j++ {
		if row[j] > 0 {
			sum += gain[row[j]-1][j-1]
		}
	}
	return sum
}
