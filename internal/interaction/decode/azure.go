package decode

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"assay/internal/interaction"
)

// readAzure reads diagnostic records of Azure. API Management logs the request and the
// answer of a call as rows of their own, long ones in chunks, which are put together by
// their correlation id. Other diagnostics of a model's calls carry no text.
func readAzure(r *record, o *object) {
	if !o.exact[kRecords].isArray() {
		r.azureRow(o.raw)
		return
	}
	r.many = true
	for w := walk(o.exact[kRecords]); w.next() && !r.full; {
		if !w.val.isObject() {
			r.bad(r.take(), notAnObject, "a record that is a %s", kindOf(w.val))
			continue
		}
		r.azureRow(w.val)
	}
}

func (r *record) azureRow(row value) {
	props := azureProperties(row)
	if id := props.member("CorrelationId"); id.isString() && props.member("SequenceNumber") != nil {
		key, _ := id.text()
		r.part(&azureJoint, key, row)
		return
	}
	category := row.member("category")
	if category == nil {
		r.bad(r.take(), unknownShape, "neither a row of a call nor a diagnostic record with a category")
		return
	}
	if !isText(category, "RequestResponse") {
		r.skip(notText)
		return
	}
	o := newObject(row)
	e := r.element(o)
	readAzureDiagnostics(e, row, props)
	r.add(e, o)
}

// azureProperties is where a row's own fields stand: under properties, perhaps as a
// string, or in the row itself where something flattened it.
func azureProperties(row value) value {
	if p := opened(row.member("properties")); p.isObject() {
		return p
	}
	return row
}

// readAzureDiagnostics reads a call's diagnostics, which count it and no more.
func readAzureDiagnostics(e *element, row, props value) {
	if name := strings.ToLower(e.label(row.member("operationName"))); isOtherCall(name) || strings.Contains(name, "list") {
		e.skipReason = notText
		return
	}
	e.setID(row.member("correlationId"), row.member("CorrelationId"))
	e.it.Model = e.label(props.member("modelName"))
	e.it.Route = e.label(props.member("modelDeploymentName"))
	e.gatewayStatus(row.member("resultSignature"))
	e.timed(usual(row, "time", "TimeGenerated"), nil, usual(row, "durationMs", "DurationMs"))
}

// maxParts bounds how many parts of one call are put together: each is looked at again
// with every further one.
const maxParts = 256

// azureJoint puts the rows of one call together.
var azureJoint = joint{format: "azure", whole: azureWhole, read: readAzureRows}

// azureWhole reports whether request and answer are there and no chunk is missing:
// their numbers have no gap, and put together they are JSON.
func azureWhole(rows []value) bool {
	if len(rows) > maxParts {
		return true
	}
	req, resp, gap := azureBodies(rows)
	return !gap && isWhole(req) && isWhole(resp)
}

func isWhole(text string) bool {
	b := []byte(text)
	i := skipSpace(b, 0)
	if i == len(b) || b[i] != '{' && b[i] != '[' {
		return i < len(b) // a plain text comes in one row
	}
	end, _, err := scan(b, i, nestedDepth)
	return err == nil && skipSpace(b, end) == len(b)
}

func wholeNumber(v value) int64 {
	s := string(v)
	if v.isString() {
		s, _ = v.text()
	}
	n, _ := strconv.ParseInt(s, 10, 64) // what is no number comes first, in its order
	return n
}

// azureBodies puts the chunks of request and answer in their order, and tells whether
// one between them is missing.
func azureBodies(rows []value) (req, resp string, gap bool) {
	type chunk struct {
		number    int64
		req, resp string
	}
	chunks := make([]chunk, 0, len(rows))
	for _, row := range rows {
		props := azureProperties(row)
		c := chunk{number: wholeNumber(props.member("SequenceNumber"))}
		c.req, c.resp = azureText(props.member("RequestMessages")), azureText(props.member("ResponseMessages"))
		chunks = append(chunks, c)
	}
	slices.SortStableFunc(chunks, func(a, b chunk) int { return cmp.Compare(a.number, b.number) })
	var in, out strings.Builder
	for i, c := range chunks {
		if i > 0 && c == chunks[i-1] {
			continue // the same row, delivered again
		}
		gap = gap || i > 0 && c.number > chunks[i-1].number+1 || i == 0 && c.number > 1
		in.WriteString(c.req)
		out.WriteString(c.resp)
	}
	return in.String(), out.String(), gap
}

// azureText is a chunk: a text, or JSON where something parsed it on its way.
func azureText(v value) string {
	switch {
	case v.absent():
		return ""
	case v.isString():
		s, _ := v.text()
		return s
	}
	return string(v)
}

func readAzureRows(e *element, rows []value) {
	it := &e.it
	var took value
	for _, row := range rows {
		props := azureProperties(row)
		e.setID(props.member("CorrelationId"))
		if it.Route == "" {
			it.Route = e.label(props.member("DeploymentName"))
		}
		if it.Model == "" {
			it.Model = e.label(props.member("ModelName"))
		}
		if n := e.count(props.member("PromptTokens"), "input_tokens"); n != nil {
			it.InputTokens = n
		}
		if n := e.count(props.member("CompletionTokens"), "output_tokens"); n != nil {
			it.OutputTokens = n
		}
		if v := usual(row, "durationMs", "DurationMs"); v != nil {
			took = v
		}
	}
	req, resp, _ := azureBodies(rows)
	model := it.Model
	e.bodies(textValue(req), textValue(resp))
	e.settle("", model, "")
	e.timed(usual(rows[0], "time", "TimeGenerated"), nil, took)
}

// textValue is s as a JSON string, nil for "".
func textValue(s string) value {
	if interaction.Blank(s) {
		return nil
	}
	return quoted([]byte(s))
}
