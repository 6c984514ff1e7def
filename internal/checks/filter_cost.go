package checks

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/checker"
	"cel.dev/cel-go/common/types"
)

// Bounds of what a filter reads: the decoder cuts labels, and keeps so many attributes at
// most, however it is set.
const (
	maxFilterText = 1024
	maxFilterList = 10_000
)

// program makes the filter's program. A filter that cannot cost too much, whatever it
// reads, needs no counting of what it costs: that would take longer than most filters.
func (e *filterEnv) program(checked *cel.Ast) (cel.Program, error) {
	options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize)}
	if cost, err := e.env.EstimateCost(checked, fieldSizes{}); err != nil || cost.Max > maxFilterCost {
		options = append(options, cel.CostLimit(maxFilterCost))
	}
	return e.env.Program(checked, options...)
}

// fieldSizes are the sizes of an interaction's fields.
type fieldSizes struct{}

// EstimateSize bounds a field, or what is inside of it.
func (fieldSizes) EstimateSize(n checker.AstNode) *checker.SizeEstimate {
	if n.Type().Kind() == types.StringKind {
		return &checker.SizeEstimate{Max: maxFilterText}
	}
	return &checker.SizeEstimate{Max: maxFilterList}
}

// EstimateCallCost leaves the costs of functions to the library.
func (fieldSizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}
