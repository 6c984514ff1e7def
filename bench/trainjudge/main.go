package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

// defaultDate is when the features or settings were last changed. The clock is not asked: weights
// must come out the same on any day.
const defaultDate = "2026-11-30"

func main() {
	var (
		data = flag.String("data", "", "the EVOUNA file with people's verdicts (NQ)")
		out  = flag.String("out", "", "where to write the weights; nothing is written without it")
		date = flag.String("date", defaultDate, "date that stands in the weights file")
		cv   = flag.Bool("cv", false, "cross-validate on training questions instead of training")
	)
	flag.Parse()
	if err := run(os.Stdout, *data, *out, *date, *cv); err != nil {
		fmt.Fprintln(os.Stderr, "trainjudge:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, data, out, date string, cv bool) error {
	if data == "" {
		return errors.New("-data is missing: name the EVOUNA file")
	}
	questions, hash, err := load(data)
	if err != nil {
		return err
	}
	if cv {
		return crossValidate(w, questions)
	}
	m, err := train(questions, func(question) bool { return true })
	if err != nil {
		return err
	}
	m.Origin.Data, m.Origin.SHA256, m.Origin.License, m.Origin.Date = "EVOUNA-NQ", hash, "Apache-2.0", date
	report(w, m, questions)
	if out == "" {
		return nil
	}
	raw, err := m.Encode()
	if err != nil {
		return err
	}
	return os.WriteFile(out, raw, 0o644)
}
