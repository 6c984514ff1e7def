package main

import (
	"fmt"
	"io"
	"math"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// newTable is a plain table: a header, columns, no boxes.
func newTable(out io.Writer, header ...string) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(out)
	style := table.StyleLight
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format.Header = text.FormatDefault
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	t.SetStyle(style)
	row := make(table.Row, len(header))
	for i, h := range header {
		row[i] = h
	}
	t.AppendHeader(row)
	return t
}

// percent writes a share for people: 93.4%.
func percent(p float64) string {
	if math.IsNaN(p) {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*p)
}

// rate writes an estimate with its interval: 93.4% (92.1 to 94.5).
func rate(p, lo, hi float64) string {
	return fmt.Sprintf("%s (%.1f to %.1f)", percent(p), 100*lo, 100*hi)
}
