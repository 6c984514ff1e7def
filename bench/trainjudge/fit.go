package main

import (
	"fmt"
	"math"
	"strconv"

	"gonum.org/v1/gonum/mat"

	"assay/evaluators/judge/embedded"
)

// A sample is a row as the optimiser sees it.
type sample struct {
	values []float64
	agree  float64
	weight float64
}

// Newton's method on the penalised likelihood is convex and done in about eight
// steps; the same order of additions gives the same bits.
const (
	maxSteps  = 50
	tolerance = 1e-10
)

// fit returns standardised features with weights, and the bias. l2 is the penalty on
// each standardised weight, per unit of sample weight.
func fit(samples []sample, names []string, l2 float64) ([]embedded.Feature, float64, error) {
	n := len(names)
	features := standardise(samples, names)
	rows := make([][]float64, len(samples))
	total := 0.0
	for i, s := range samples {
		x := make([]float64, n+1)
		for k, f := range features {
			x[k] = (s.values[k] - f.Mean) / f.Scale
		}
		x[n] = 1
		rows[i] = x
		total += s.weight
	}
	beta := make([]float64, n+1)
	for step := 0; ; step++ {
		if step == maxSteps {
			return nil, 0, fmt.Errorf("no convergence in %d steps", maxSteps)
		}
		gradient, hessian := derivatives(samples, rows, beta, l2*total)
		var chol mat.Cholesky
		if !chol.Factorize(hessian) {
			return nil, 0, fmt.Errorf("step %d: the Hessian is not positive definite", step)
		}
		var move mat.VecDense
		if err := chol.SolveVecTo(&move, mat.NewVecDense(n+1, gradient)); err != nil {
			return nil, 0, fmt.Errorf("step %d: %w", step, err)
		}
		largest := 0.0
		for k := range beta {
			beta[k] -= move.AtVec(k)
			largest = math.Max(largest, math.Abs(move.AtVec(k)))
		}
		if largest < tolerance {
			break
		}
	}
	for k := range features {
		features[k].Weight = rounded(beta[k])
	}
	return features, rounded(beta[n]), nil
}

// standardise takes mean and deviation of every feature. A feature that never varies
// gets the scale 1 and so no say.
func standardise(samples []sample, names []string) []embedded.Feature {
	features := make([]embedded.Feature, len(names))
	for k, name := range names {
		var sum, squares, total float64
		for _, s := range samples {
			sum += s.weight * s.values[k]
			total += s.weight
		}
		mean := sum / total
		for _, s := range samples {
			d := s.values[k] - mean
			squares += s.weight * d * d
		}
		scale := math.Sqrt(squares / total)
		if scale < 1e-9 {
			scale = 1
		}
		features[k] = embedded.Feature{Name: name, Mean: rounded(mean), Scale: rounded(scale)}
	}
	return features
}

// derivatives are those of the negative penalised log likelihood. The bias is not
// penalised.
func derivatives(samples []sample, rows [][]float64, beta []float64, penalty float64) ([]float64, *mat.SymDense) {
	n := len(beta)
	gradient := make([]float64, n)
	h := make([]float64, n*n)
	for i, x := range rows {
		z := 0.0
		for k, v := range x {
			z += beta[k] * v
		}
		p := 1 / (1 + math.Exp(-z))
		slope := samples[i].weight * (p - samples[i].agree)
		curve := samples[i].weight * p * (1 - p)
		for k, v := range x {
			gradient[k] += slope * v
			c := curve * v
			if c == 0 {
				continue
			}
			line := h[k*n : k*n+n]
			for l := k; l < n; l++ {
				line[l] += c * x[l]
			}
		}
	}
	for k := range n - 1 {
		gradient[k] += penalty * beta[k]
		h[k*n+k] += penalty
	}
	h[n*n-1] += 1e-9
	return gradient, mat.NewSymDense(n, h)
}

// rounded keeps six digits. The last bits of an exponential differ between
// processors; six digits of a converged weight do not.
func rounded(x float64) float64 {
	v, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 6, 64), 64)
	if err != nil {
		return x
	}
	return v
}
