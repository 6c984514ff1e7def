package embedded

import (
	"math"
	"strings"
)

// A unit is what a quantity is measured in. Units of one dimension convert into each
// other, and this judge does not convert.
type unit struct {
	dimension string
	name      string
}

func unitTable() map[string]unit {
	m := map[string]unit{}
	add := func(dimension string, names ...string) {
		for _, n := range names {
			words := strings.Fields(n)
			for _, w := range words {
				m[w] = unit{dimension, words[0]}
			}
		}
	}
	add("length", "metre metres meter meters", "kilometre kilometres kilometer kilometers km kms", "centimetre centimetres centimeter centimeters cm",
		"millimetre millimetres millimeter millimeters mm", "mile miles mi", "foot feet ft", "inch inches", "yard yards yd")
	add("mass", "kilogram kilograms kilo kilos kg kgs", "gram grams", "milligram milligrams mg", "pound pounds lb lbs", "ounce ounces oz", "tonne tonnes ton tons")
	add("temperature", "celsius", "fahrenheit", "kelvin", "degree degrees")
	add("volume", "litre litres liter liters", "millilitre millilitres milliliter milliliters ml", "gallon gallons", "pint pints")
	add("speed", "mph", "kmh kph", "knot knots")
	add("area", "acre acres", "hectare hectares ha")
	add("energy", "joule joules", "calorie calories", "kwh", "watt watts", "kilowatt kilowatts")
	add("duration", "second seconds", "minute minutes", "hour hours hr hrs", "day days", "week weeks", "month months", "year years")
	add("data", "byte bytes", "kilobyte kilobytes kb", "megabyte megabytes mb", "gigabyte gigabytes gb", "terabyte terabytes tb")
	return m
}

// A quantity is a number and the unit behind it.
type quantity struct {
	value float64
	unit  unit
}

// quantities lists the numbers of a text that carry a unit.
func (l *lexicon) quantities(d *document) []quantity {
	var found []quantity
	for i := 0; i+1 < len(d.tokens); i++ {
		t, next := d.tokens[i], d.tokens[i+1]
		if !t.isNumber || t.weak && t.text != "one" {
			continue
		}
		if u, ok := l.units[next.text]; ok {
			found = append(found, quantity{t.number, u})
		}
	}
	return found
}

// roundingMargin is the relative difference under which two quantities of one unit
// may be the same one, rounded: whether they are is a tolerance, and those are the user's.
const roundingMargin = 0.05

// unitDecides reports whether reference and answer can only be compared by
// converting a unit or granting a tolerance. If the answer repeats one of the
// reference's quantities, neither is needed.
func unitDecides(reference, answer []quantity) bool {
	decides := false
	for _, r := range reference {
		for _, a := range answer {
			if r.unit.dimension != a.unit.dimension {
				continue
			}
			if r.unit == a.unit && r.value == a.value {
				return false
			}
			if r.unit != a.unit || math.Abs(r.value-a.value) <= roundingMargin*math.Max(math.Abs(r.value), math.Abs(a.value)) {
				decides = true
			}
		}
	}
	return decides
}

// unitsDiffer reports whether the answer measures in another unit of the same dimension.
func unitsDiffer(reference, answer []quantity) bool {
	for _, r := range reference {
		for _, a := range answer {
			if r.unit.dimension == a.unit.dimension && r.unit != a.unit {
				return true
			}
		}
	}
	return false
}
